/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tls/connection.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/log.h"
#include "common/wait.h"
#include "protocol/wire/status.h"
#include "transport/stream.h"
#include "transport/tls/certificate.h"
#include "transport/tls/context.h"

#define BUCKETS 256
#define HANDSHAKE_BYTES (64u * 1024) /* of one peer: certificates take most of them */
#define FLIGHT_BYTES (64u * 1024)    /* of ours */
#define LOG_NS 1000000000ull

struct tls_connection {
	struct tls_connection *next;
	int fd;
	enum transport_end end;
	char host[256]; /* client's */
	struct transport_peer peer;
	struct transport_certificate certificate; /* agent's: the client's */
	SSL *ssl; /* handshake, and until the client's first data: a ticket may come */
	BIO *in, *out;
	struct tls_secrets secrets;
	bool done;
	int failed;	  /* -errno, for good, … */
	char why[200];	  /* … and the reason */
	unsigned heard;	  /* bytes of the handshake */
	unsigned tickets; /* records that the agent sent behind the handshake */
	struct record_half send, receive;
	unsigned got; /* of `record` */
	unsigned char record[RECORD_HEADER + RECORD_BODY_MAX];
	unsigned plain_at, plain_n;
	unsigned char plain[RECORD_BODY_MAX];
};

static struct {
	pthread_mutex_t lock;
	struct tls_connection *first[BUCKETS];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};
static _Atomic uint64_t count_full, count_resumed, count_failed;

void tls_connection_counts(struct transport_tls_counts *counts)
{
	counts->full = atomic_load(&count_full);
	counts->resumed = atomic_load(&count_resumed);
	counts->failed = atomic_load(&count_failed);
}

/* --- by descriptor ------------------------------------------------------------------------ */

static struct tls_connection **place(int fd)
{
	struct tls_connection **at = &table.first[(unsigned)fd % BUCKETS];

	while (*at && (*at)->fd != fd)
		at = &(*at)->next;
	return at;
}

/* It stays until tls_connection_forget, which its owner calls. */
static struct tls_connection *find(int fd)
{
	struct tls_connection *found;

	pthread_mutex_lock(&table.lock);
	found = *place(fd);
	pthread_mutex_unlock(&table.lock);
	return found;
}

static void end_handshake(struct tls_connection *c)
{
	if (!c->ssl)
		return;
	/* Else OpenSSL takes the session for one that broke, and its ticket for a bad one. */
	SSL_set_shutdown(c->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(c->ssl); /* and what it reads from and writes to */
	c->ssl = NULL;
	ERR_clear_error();
}

static void connection_free(struct tls_connection *c)
{
	if (!c)
		return;
	end_handshake(c);
	record_close(&c->send);
	record_close(&c->receive);
	explicit_bzero(c, sizeof(*c));
	free(c);
}

void tls_connection_forget(int fd)
{
	struct tls_connection **at, *found;

	pthread_mutex_lock(&table.lock);
	at = place(fd);
	found = *at;
	if (found)
		*at = found->next;
	pthread_mutex_unlock(&table.lock);
	connection_free(found);
}

static int begin_handshake(struct tls_connection *c, struct error *error)
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

int tls_connection_open(int fd, enum transport_end end, const char *host,
	const struct transport_peer *peer, struct error *error)
{
	struct tls_connection *c = calloc(1, sizeof(*c));
	struct tls_connection **at;

	tls_connection_forget(fd); /* of one that had the number before */
	if (!c)
		return error_set(error, ENOMEM, "tls");
	c->fd = fd;
	c->end = end;
	if (host)
		snprintf(c->host, sizeof(c->host), "%s", host);
	if (peer)
		c->peer = *peer;
	/* The agent's waits for the first bytes: who says nothing costs no more than this. */
	if (end == TRANSPORT_CLIENT && begin_handshake(c, error)) {
		connection_free(c);
		return -EPROTO;
	}
	pthread_mutex_lock(&table.lock);
	at = place(fd);
	*at = c;
	pthread_mutex_unlock(&table.lock);
	return 0;
}

void tls_connection_certificate(int fd, struct transport_certificate *certificate)
{
	struct tls_connection *c = find(fd);

	*certificate = c ? c->certificate : (struct transport_certificate){0};
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

static int fail(struct tls_connection *c, struct error *error, const char *why)
{
	c->failed = -EPROTO;
	snprintf(c->why, sizeof(c->why), "%s", why);
	say(c, why);
	error_set(error, 0, "%s", why);
	return c->failed;
}

const char *tls_connection_why(int fd)
{
	struct tls_connection *c = find(fd);

	return c ? c->why : "";
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
	return fail(c, error, why);
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
	return fail(c, error, "a client that does not speak TLS");
}

/* --- records ------------------------------------------------------------------------------ */

static bool is_plain_hello(const struct tls_connection *c)
{
	const uint64_t magic = SESSION_MAGIC;

	return c->end == TRANSPORT_AGENT && !c->heard && !memcmp(c->record, &magic, 5);
}

/* How much of the record is wanted, as far as is known. */
static int wanted(const struct tls_connection *c)
{
	int body;

	if (c->got < RECORD_HEADER)
		return RECORD_HEADER;
	if (c->done)
		return (body = record_length(c->record)) < 0 ? body : RECORD_HEADER + body;
	body = c->record[3] << 8 | c->record[4];
	if (c->record[0] < RECORD_CHANGE_CIPHER || c->record[0] > RECORD_DATA ||
		c->record[1] != 3 || !body || body > RECORD_BODY_MAX)
		return -EPROTO;
	return RECORD_HEADER + body;
}

/* One whole record and nothing behind it. 0, -EAGAIN, or -errno: the end is -ECONNRESET. */
static int read_record(struct tls_connection *c)
{
	for (;;) {
		int want = wanted(c);
		ssize_t n;

		if (want < 0)
			return want;
		if (c->got >= RECORD_HEADER && c->got == (unsigned)want)
			return 0;
		n = stream_read(c->fd, c->record + c->got, (size_t)want - c->got);
		if (n == -EINTR)
			continue;
		if (n <= 0)
			return n ? (int)n : -ECONNRESET;
		c->got += (unsigned)n;
	}
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
			return fail(c, error, "the client's certificate has expired");
	}
	ret = take_keys(c);
	if (ret)
		return fail(c, error, "TLS handshake: no keys came of it");
	atomic_fetch_add(SSL_session_reused(c->ssl) ? &count_resumed : &count_full, 1);
	ret = flush(c);
	if (ret)
		return fail(c, error, "TLS handshake: the peer takes nothing");
	c->done = true;
	if (c->end == TRANSPORT_AGENT)
		end_handshake(c);
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
		return fail(c, error, "TLS handshake: the peer takes nothing");
	return -EAGAIN;
}

static int fail_read(struct tls_connection *c, int ret, struct error *error)
{
	if (ret == -ECONNRESET)
		return fail(c, error,
			"the connection was closed in the TLS handshake: does the other side "
			"speak TLS?");
	return fail(c, error,
		c->end == TRANSPORT_CLIENT ? "what answers there does not speak TLS"
					   : "not a TLS record");
}

static int handshake(struct tls_connection *c, struct error *error)
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
		ret = read_record(c);
		if (ret == -EAGAIN)
			return ret;
		if (ret == -EPROTO && is_plain_hello(c))
			return fail_plain(c, error);
		if (ret < 0)
			return fail_read(c, ret, error);
		c->heard += c->got;
		if (c->heard > HANDSHAKE_BYTES)
			return fail(c, error, "TLS handshake: too long");
		if (!c->ssl && begin_handshake(c, error))
			return fail(c, error, "TLS handshake: no memory");
		if (BIO_write(c->in, c->record, (int)c->got) != (int)c->got)
			return fail(c, error, "TLS handshake: no memory");
		c->got = 0;
		ret = step(c, error);
		if (ret != -EAGAIN)
			return ret;
	}
}

int tls_connection_handshake(int fd, struct error *error)
{
	struct tls_connection *c = find(fd);

	return c ? handshake(c, error) : -EPROTO;
}

/* --- what is said behind it --------------------------------------------------------------- */

/* A ticket comes before anything else that the agent says, so OpenSSL counts as we do. */
static void take_ticket(struct tls_connection *c)
{
	char waste[16];

	if (c->ssl && BIO_write(c->in, c->record, (int)c->got) == (int)c->got)
		(void)!SSL_read(c->ssl, waste, sizeof(waste));
	ERR_clear_error();
}

/* The alerts that people can do something about. */
static const char *alert_text(unsigned char alert)
{
	switch (alert) {
	case 42:
	case 43:
	case 46: return "the peer does not accept our certificate";
	case 44: return "the peer says that our certificate is revoked";
	case 45: return "the peer says that our certificate has expired";
	case 48: return "the peer does not know who signed our certificate";
	case 116: return "the peer asks for a certificate (tls.cert, tls.key)";
	default: return "the peer ended the TLS connection";
	}
}

/* The next record with data. 0, -EAGAIN, -ECONNRESET or -EPROTO. */
static int next_plain(struct tls_connection *c)
{
	for (;;) {
		enum record_type type;
		int n = read_record(c);

		if (n < 0)
			return n == -EPROTO ? fail(c, NULL, "not a TLS record") : n;
		n = record_unseal(
			&c->receive, c->record, (int)c->got - RECORD_HEADER, c->plain, &type);
		if (n < 0)
			return fail(c, NULL, "a TLS record that was changed on its way");
		if (type == RECORD_HANDSHAKE && c->end == TRANSPORT_CLIENT)
			take_ticket(c);
		c->got = 0;
		if (type == RECORD_ALERT)
			return fail(c, NULL, alert_text(n == 2 ? c->plain[1] : 0));
		if (type == RECORD_DATA && n) {
			end_handshake(c);
			c->plain_at = 0;
			c->plain_n = (unsigned)n;
			return 0;
		}
		if (type != RECORD_HANDSHAKE || c->end != TRANSPORT_CLIENT)
			return fail(c, NULL, "a TLS record that has no place there");
	}
}

ssize_t tls_connection_read(int fd, void *bytes, size_t n)
{
	struct tls_connection *c = find(fd);
	int ret = c ? handshake(c, NULL) : -EPROTO;

	if (!ret && !c->plain_n)
		ret = next_plain(c);
	if (ret == -ECONNRESET)
		return 0;
	if (ret < 0)
		return ret;
	if (n > c->plain_n)
		n = c->plain_n;
	memcpy(bytes, c->plain + c->plain_at, n);
	explicit_bzero(c->plain + c->plain_at, n); /* a HELLO has a token */
	c->plain_at += (unsigned)n;
	c->plain_n -= (unsigned)n;
	return (ssize_t)n;
}

int tls_connection_write(int fd, const void *bytes, size_t n)
{
	struct tls_connection *c = find(fd);
	const struct iovec iov = {(void *)bytes, n};
	unsigned char record[4096];
	size_t offset = 0;
	int at = 0, length;

	if (!c || !c->done || c->failed || n + RECORD_OVERHEAD > sizeof(record))
		return -EPROTO;
	length = record_seal(&c->send, RECORD_DATA, &iov, &at, &offset, n, record);
	return length < 0 ? length : stream_write(fd, record, (size_t)length);
}

int tls_connection_state(int fd, struct tls_state *state)
{
	struct tls_connection *c = find(fd);

	if (!c || !c->done || c->failed || c->got || c->plain_n)
		return -EPROTO;
	*state = (struct tls_state){.send = c->send.keys, .receive = c->receive.keys};
	return 0;
}
