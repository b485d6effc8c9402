/* SPDX-License-Identifier: Apache-2.0
 *
 * The handshake of a connection: OpenSSL's steps, one record at a time, how they fail, and the
 * keys that are left of them.
 */
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "common/wait.h"
#include "protocol/wire/status.h"
#include "transport/socket_link.h"
#include "transport/tls/certificate.h"
#include "transport/tls/connection_core.h"

#define HANDSHAKE_BYTES (64u * 1024) /* of one peer: certificates take most of them */
#define FLIGHT_BYTES (64u * 1024)    /* of ours */
#define LOG_NS 1000000000ull

static _Atomic uint64_t count_full, count_resumed, count_failed;

void tls_connection_counts(struct transport_tls_counts *counts)
{
	counts->full = atomic_load(&count_full);
	counts->resumed = atomic_load(&count_resumed);
	counts->failed = atomic_load(&count_failed);
}

void tls_handshake_end(struct tls_connection *c)
{
	if (!c->ssl)
		return;
	/* Else OpenSSL takes the session for one that broke, and its ticket for a bad one. */
	SSL_set_shutdown(c->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(c->ssl); /* and what it reads from and writes to */
	c->ssl = NULL;
	ERR_clear_error();
}

int tls_handshake_begin(struct tls_connection *c, struct error *error)
{
	SSL *ssl = tls_context_session(c->end, c->host, error);

	c->in = BIO_new(BIO_s_mem());
	c->out = BIO_new(BIO_s_mem());
	if (!ssl || !c->in || !c->out) {
		SSL_free(ssl);
		BIO_free(c->in);
		BIO_free(c->out);
		c->in = c->out = NULL;
		return -EPROTO;
	}
	SSL_set_bio(ssl, c->in, c->out);
	tls_context_watch(ssl, &c->secrets);
	c->ssl = ssl;
	return 0;
}

/* --- failing ------------------------------------------------------------------------------ */

static void say(const struct tls_connection *c, const char *why)
{
	static _Atomic uint64_t said_at;
	uint64_t now = wait_now();

	atomic_fetch_add(&count_failed, 1);
	if (c->end != TRANSPORT_AGENT || now - atomic_load(&said_at) < LOG_NS)
		return;
	atomic_store(&said_at, now);
	log_warn("tls.refused", "peer=%s text=\"%s\"", c->peer.text, why);
}

int tls_handshake_fail(struct tls_connection *c, struct error *error, const char *why)
{
	c->failed = -EPROTO;
	snprintf(c->why, sizeof(c->why), "%s", why);
	say(c, why);
	error_set(error, 0, "%s", why);
	return c->failed;
}

/* Of a handshake: OpenSSL's reason, or the certificate's. */
static int fail_handshake(struct tls_connection *c, struct error *error)
{
	long verified = SSL_get_verify_result(c->ssl);
	const char *reason = ERR_reason_error_string(ERR_peek_error());
	char why[200];

	ERR_clear_error();
	if (verified != X509_V_OK)
		snprintf(why, sizeof(why), "the %s certificate: %s (by %.80s)",
			c->end == TRANSPORT_CLIENT ? "agent's" : "client's",
			X509_verify_cert_error_string(verified), tls_context_ca(c->end));
	else
		snprintf(why, sizeof(why), "TLS handshake: %s", reason ? reason : "failed");
	return tls_handshake_fail(c, error, why);
}

/* An older client, or one that was not told: in its own words. */
static int fail_plain(struct tls_connection *c, struct error *error)
{
	const struct session_welcome welcome = {
		.magic = SESSION_MAGIC,
		.version = SESSION_VERSION,
		.status = STATUS_NOT_PERMITTED,
		.text = "this agent speaks TLS only: tls://HOST and its CA (tls.ca, $VCUDA_CA) "
			"are to be set on the client's side",
	};

	stream_write(c->fd, &welcome, sizeof(welcome));
	return tls_handshake_fail(c, error, "a client that does not speak TLS");
}

/* --- its steps ---------------------------------------------------------------------------- */

static bool is_plain_hello(const struct tls_connection *c)
{
	const uint64_t magic = SESSION_MAGIC;

	return c->end == TRANSPORT_AGENT && !c->heard && !memcmp(c->record, &magic, 5);
}

/* What OpenSSL has to say. It is little, and the socket is empty. */
static int flush(struct tls_connection *c)
{
	unsigned char bytes[4096];
	size_t all = 0;
	int n;

	while ((n = BIO_read(c->out, bytes, sizeof(bytes))) > 0) {
		int ret = stream_write(c->fd, bytes, (size_t)n);

		all += (size_t)n;
		if (ret < 0 || all > FLIGHT_BYTES)
			return ret < 0 ? ret : -EPROTO;
	}
	return 0;
}

/* The records in what OpenSSL wrote behind the client's Finished: tickets. */
static unsigned count_tickets(struct tls_connection *c)
{
	char *bytes;
	long n = BIO_get_mem_data(c->out, &bytes);
	unsigned count = 0;

	for (long at = 0; at + RECORD_HEADER <= n; count++)
		at += RECORD_HEADER +
		      ((unsigned char)bytes[at + 3] << 8 | (unsigned char)bytes[at + 4]);
	return count;
}

static int take_keys(struct tls_connection *c)
{
	bool agent = c->end == TRANSPORT_AGENT;
	struct record_keys send = {.sequence = c->tickets}, receive = {0};
	int ret;

	if (c->secrets.have != 3)
		return -EPROTO;
	memcpy(send.secret, agent ? c->secrets.server : c->secrets.client, RECORD_SECRET);
	memcpy(receive.secret, agent ? c->secrets.client : c->secrets.server, RECORD_SECRET);
	ret = record_open(&c->send, &send, true);
	if (!ret)
		ret = record_open(&c->receive, &receive, false);
	explicit_bzero(&send, sizeof(send));
	explicit_bzero(&receive, sizeof(receive));
	OPENSSL_cleanse(&c->secrets, sizeof(c->secrets));
	return ret;
}

static int finished(struct tls_connection *c, struct error *error)
{
	int ret;

	if (c->end == TRANSPORT_AGENT) {
		c->tickets = count_tickets(c);
		/* A ticket outlives the certificate that it was given for. */
		if (!certificate_read(c->ssl, &c->certificate))
			return tls_handshake_fail(
				c, error, "the client's certificate has expired");
	}
	ret = take_keys(c);
	if (ret)
		return tls_handshake_fail(c, error, "TLS handshake: no keys came of it");
	atomic_fetch_add(SSL_session_reused(c->ssl) ? &count_resumed : &count_full, 1);
	ret = flush(c);
	if (ret)
		return tls_handshake_fail(c, error, "TLS handshake: the peer takes nothing");
	c->done = true;
	if (c->end == TRANSPORT_AGENT)
		tls_handshake_end(c);
	return 0;
}

/* One step with what is in c->in. 0: done, -EAGAIN: it wants more. */
static int step(struct tls_connection *c, struct error *error)
{
	int ret;

	ERR_clear_error();
	ret = SSL_do_handshake(c->ssl);
	if (ret == 1)
		return finished(c, error);
	if (SSL_get_error(c->ssl, ret) != SSL_ERROR_WANT_READ) {
		flush(c); /* an alert */
		return fail_handshake(c, error);
	}
	if (flush(c))
		return tls_handshake_fail(c, error, "TLS handshake: the peer takes nothing");
	return -EAGAIN;
}

static int fail_read(struct tls_connection *c, int ret, struct error *error)
{
	if (ret == -ECONNRESET)
		return tls_handshake_fail(c, error,
			"the connection was closed in the TLS handshake: does the other side "
			"speak TLS?");
	return tls_handshake_fail(c, error,
		c->end == TRANSPORT_CLIENT ? "what answers there does not speak TLS"
					   : "not a TLS record");
}

int tls_handshake(struct tls_connection *c, struct error *error)
{
	int ret;

	if (c->failed)
		return c->failed;
	if (c->done)
		return 0;
	if (c->end == TRANSPORT_CLIENT && !c->heard && !c->got) {
		ret = step(c, error);
		if (ret != -EAGAIN)
			return ret;
	}
	for (;;) {
		ret = tls_connection_record(c);
		if (ret == -EAGAIN)
			return ret;
		if (ret == -EPROTO && is_plain_hello(c))
			return fail_plain(c, error);
		if (ret < 0)
			return fail_read(c, ret, error);
		c->heard += c->got;
		if (c->heard > HANDSHAKE_BYTES)
			return tls_handshake_fail(c, error, "TLS handshake: too long");
		if (!c->ssl && tls_handshake_begin(c, error))
			return tls_handshake_fail(c, error, "TLS handshake: no memory");
		if (BIO_write(c->in, c->record, (int)c->got) != (int)c->got)
			return tls_handshake_fail(c, error, "TLS handshake: no memory");
		c->got = 0;
		ret = step(c, error);
		if (ret != -EAGAIN)
			return ret;
	}
}
