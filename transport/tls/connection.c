/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tls/connection.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "transport/socket_link.h"
#include "transport/tls/connection_core.h"

#define BUCKETS 256

static struct {
	pthread_mutex_t lock;
	struct tls_connection *first[BUCKETS];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

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

static void connection_free(struct tls_connection *c)
{
	if (!c)
		return;
	tls_handshake_end(c);
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
	if (end == TRANSPORT_CLIENT && tls_handshake_begin(c, error)) {
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

const char *tls_connection_why(int fd)
{
	struct tls_connection *c = find(fd);

	return c ? c->why : "";
}

/* --- records ------------------------------------------------------------------------------ */

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

int tls_connection_record(struct tls_connection *c)
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

int tls_connection_handshake(int fd, struct error *error)
{
	struct tls_connection *c = find(fd);

	return c ? tls_handshake(c, error) : -EPROTO;
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
		int n = tls_connection_record(c);

		if (n < 0)
			return n == -EPROTO ? tls_handshake_fail(c, NULL, "not a TLS record")
					    : n;
		n = record_unseal(
			&c->receive, c->record, (int)c->got - RECORD_HEADER, c->plain, &type);
		if (n < 0)
			return tls_handshake_fail(
				c, NULL, "a TLS record that was changed on its way");
		if (type == RECORD_HANDSHAKE && c->end == TRANSPORT_CLIENT)
			take_ticket(c);
		c->got = 0;
		if (type == RECORD_ALERT)
			return tls_handshake_fail(
				c, NULL, alert_text(n == 2 ? c->plain[1] : 0));
		if (type == RECORD_DATA && n) {
			tls_handshake_end(c);
			c->plain_at = 0;
			c->plain_n = (unsigned)n;
			return 0;
		}
		if (type != RECORD_HANDSHAKE || c->end != TRANSPORT_CLIENT)
			return tls_handshake_fail(
				c, NULL, "a TLS record that has no place there");
	}
}

ssize_t tls_connection_read(int fd, void *bytes, size_t n)
{
	struct tls_connection *c = find(fd);
	int ret = c ? tls_handshake(c, NULL) : -EPROTO;

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
