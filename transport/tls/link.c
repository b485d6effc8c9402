/* SPDX-License-Identifier: Apache-2.0
 *
 * Records on the descriptors of a stream link.  What is read ahead is whole or partial records;
 * what waits to be sent is records that were made of bytes which the caller still counts as
 * his: they are taken when the last of them is on its way, so he comes back with them.
 *
 * Each direction belongs to one thread at a time, as links do; the two know nothing of each
 * other.
 */
#include "transport/tls/link.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "transport/socket_link.h"

/* What one system call moves: more does not pay, and less than 64 KiB costs (bench/tls). */
#define READ_AHEAD (128u * 1024)
#define BATCH 8	       /* records sealed before they are sent */
#define TURN_BATCHES 8 /* of one call, so that its caller looks elsewhere too */

struct receiver {
	struct record_half half;
	int failed;	/* -errno, for good */
	unsigned at, n; /* of `ahead` that was not looked at yet */
	unsigned plain_at, plain_n;
	unsigned char plain[RECORD_BODY_MAX];
	unsigned char ahead[READ_AHEAD];
};

struct sender {
	struct record_half half;
	size_t owed; /* bytes of the caller's in `sealed` */
	unsigned at, n;
	unsigned char sealed[(BATCH + 1) * (RECORD_PLAIN + RECORD_OVERHEAD)];
};

struct tls_link {
	struct link link;
	struct link *inner; /* the descriptors: for all that is not bytes */
	int receive_fd, send_fd;
	struct receiver *receiver;
	struct sender *sender;
};

/* --- sending ------------------------------------------------------------------------------ */

/* 0: all of it is on its way; -EAGAIN, or -errno. */
static int push(struct tls_link *l)
{
	struct sender *s = l->sender;

	while (s->at < s->n) {
		ssize_t sent = send(l->send_fd, s->sealed + s->at, s->n - s->at,
			MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent >= 0)
			s->at += (unsigned)sent;
		else if (errno != EINTR)
			return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	}
	s->at = s->n = 0;
	return 0;
}

static int seal(struct sender *s, enum record_type type, const struct iovec *iov, int *at,
	size_t *offset, size_t n)
{
	int length = record_seal(&s->half, type, iov, at, offset, n, s->sealed + s->n);

	if (length < 0)
		return length;
	s->n += (unsigned)length;
	return 0;
}

/* KeyUpdate, which asks for none in return (RFC 8446, 4.6.3). */
static int update(struct sender *s)
{
	static const unsigned char message[] = {24, 0, 0, 1, 0};
	const struct iovec iov = {(void *)message, sizeof(message)};
	size_t offset = 0;
	int at = 0, ret = seal(s, RECORD_HANDSHAKE, &iov, &at, &offset, sizeof(message));

	return ret ? ret : record_update(&s->half);
}

/* Up to BATCH records of what is left from *at and *offset on: their bytes, or -errno. */
static ssize_t seal_batch(
	struct sender *s, const struct iovec *iov, int *at, size_t *offset, size_t left)
{
	size_t all = 0;
	int ret = s->half.keys.sequence >= s->half.limit ? update(s) : 0;

	for (int i = 0; !ret && i < BATCH && left; i++) {
		size_t n = left < RECORD_PLAIN ? left : RECORD_PLAIN;

		ret = seal(s, RECORD_DATA, iov, at, offset, n);
		left -= n;
		all += n;
	}
	return ret ? ret : (ssize_t)all;
}

static size_t length_of(const struct iovec *iov, int count)
{
	size_t n = 0;

	for (int i = 0; i < count; i++)
		n += iov[i].iov_len;
	return n;
}

static void skip(const struct iovec *iov, int count, size_t n, int *at, size_t *offset)
{
	for (*at = 0; *at < count && n >= iov[*at].iov_len; ++*at)
		n -= iov[*at].iov_len;
	*offset = n;
}

static ssize_t tls_send(struct link *link, const struct iovec *iov, int count)
{
	struct tls_link *l = (struct tls_link *)link;
	struct sender *s = l->sender;
	size_t left = length_of(iov, count), taken = 0, offset;
	int ret = push(l), at;

	if (ret < 0)
		return ret;
	taken = s->owed < left ? s->owed : left;
	s->owed -= taken;
	left -= taken;
	skip(iov, count, taken, &at, &offset);
	for (int i = 0; i < TURN_BATCHES && left && !s->owed; i++) {
		ssize_t n = seal_batch(s, iov, &at, &offset, left);

		if (n < 0)
			return n;
		left -= (size_t)n;
		ret = push(l);
		if (ret < 0) {
			s->owed = (size_t)n;
			break;
		}
		taken += (size_t)n;
	}
	return taken ? (ssize_t)taken : ret < 0 ? ret : 0;
}

/* --- receiving ---------------------------------------------------------------------------- */

/* The body of the whole record that comes next; -EAGAIN: it is not all there; -EPROTO. */
static int next_record(const struct receiver *r)
{
	int body;

	if (r->n - r->at < RECORD_HEADER)
		return -EAGAIN;
	body = record_length(r->ahead + r->at);
	if (body < 0)
		return body;
	return r->n - r->at >= RECORD_HEADER + (unsigned)body ? body : -EAGAIN;
}

/* More of them. 1, 0: the end, -EAGAIN or another -errno. */
static int fill(struct tls_link *l, int flags)
{
	struct receiver *r = l->receiver;
	ssize_t n;

	if (r->at) {
		memmove(r->ahead, r->ahead + r->at, r->n - r->at);
		r->n -= r->at;
		r->at = 0;
	}
	do
		n = recv(l->receive_fd, r->ahead + r->n, sizeof(r->ahead) - r->n, flags);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		r->n += (unsigned)n;
	return n > 0 ? 1 : !n ? 0 : errno == EWOULDBLOCK ? -EAGAIN : -errno;
}

/* What is not data: the next key, or the end. */
static int control(struct receiver *r, enum record_type type, const unsigned char *bytes, int n)
{
	static const unsigned char message[] = {24, 0, 0, 1, 0};

	if (type == RECORD_HANDSHAKE && n == sizeof(message) && !memcmp(bytes, message, 5))
		return record_update(&r->half);
	return type == RECORD_ALERT ? -ECONNRESET : -EPROTO;
}

/* One record, straight to OUT where there is room for it. Bytes got, 0 where it was none of
 * data, or -errno. */
static ssize_t take_record(struct receiver *r, int body, unsigned char *out, size_t room)
{
	bool direct = room >= (size_t)body; /* 17 more than it can carry */
	unsigned char *to = direct ? out : r->plain;
	enum record_type type;
	int n = record_unseal(&r->half, r->ahead + r->at, body, to, &type);

	if (n < 0)
		return n;
	r->at += RECORD_HEADER + (unsigned)body;
	if (type != RECORD_DATA)
		return control(r, type, to, n);
	if (direct)
		return n;
	r->plain_at = 0;
	r->plain_n = (unsigned)n;
	return 0;
}

static size_t take_plain(struct receiver *r, unsigned char *out, size_t room)
{
	size_t n = room < r->plain_n ? room : r->plain_n;

	memcpy(out, r->plain + r->plain_at, n);
	r->plain_at += (unsigned)n;
	r->plain_n -= (unsigned)n;
	return n;
}

/* At most SIZE bytes; FLAGS for the first system call. Bytes, 0 = the end, or -errno. */
static ssize_t receive(struct tls_link *l, unsigned char *out, size_t size, int flags)
{
	struct receiver *r = l->receiver;
	size_t got = 0;
	bool filled = false;

	while (got < size && !r->failed) {
		ssize_t n;
		int body;

		if (r->plain_n) {
			got += take_plain(r, out + got, size - got);
			continue;
		}
		body = next_record(r);
		if (body == -EAGAIN) {
			if (got && filled)
				break;
			n = fill(l, got ? MSG_DONTWAIT : flags);
			if (n <= 0)
				return got ? (ssize_t)got : n;
			filled = true;
			continue;
		}
		n = body < 0 ? body : take_record(r, body, out + got, size - got);
		if (n < 0)
			r->failed = (int)n;
		else
			got += (size_t)n;
	}
	return got ? (ssize_t)got : r->failed;
}

static ssize_t tls_receive(struct link *link, void *buffer, size_t n)
{
	return receive((struct tls_link *)link, buffer, n, MSG_DONTWAIT);
}

static int tls_receive_all(struct link *link, void *buffer, size_t n)
{
	unsigned char *at = buffer;

	while (n) {
		ssize_t got = receive((struct tls_link *)link, at, n, 0);

		if (got <= 0)
			return got ? (int)got : -ECONNRESET;
		at += got;
		n -= (size_t)got;
	}
	return 0;
}

/* --- the rest ----------------------------------------------------------------------------- */

static void tls_fds(struct link *link, struct pollfd fds[2], int want_send)
{
	link_fds(((struct tls_link *)link)->inner, fds, want_send);
}

/* What was read ahead no descriptor announces. */
static uint64_t tls_wake_at(struct link *link)
{
	const struct receiver *r = ((struct tls_link *)link)->receiver;

	return r->failed || r->plain_n || next_record(r) != -EAGAIN ? 0 : UINT64_MAX;
}

static void tls_shut(struct link *link)
{
	link_shut(((struct tls_link *)link)->inner);
}

static void release(struct tls_link *l)
{
	if (l->receiver)
		record_close(&l->receiver->half);
	if (l->sender)
		record_close(&l->sender->half);
	free(l->receiver);
	free(l->sender);
	free(l);
}

static void tls_close(struct link *link)
{
	struct tls_link *l = (struct tls_link *)link;

	link_close(l->inner);
	release(l);
}

static const struct link_ops tls_ops = {
	.send = tls_send,
	.receive = tls_receive,
	.receive_all = tls_receive_all,
	.fds = tls_fds,
	.wake_at = tls_wake_at,
	.shut = tls_shut,
	.close = tls_close,
};

int tls_link_open(const int *fds, const struct tls_state *states, unsigned count,
	enum transport_end end, struct link **link, struct error *error)
{
	unsigned receives = end == TRANSPORT_CLIENT ? count - 1 : 0;
	unsigned sends = end == TRANSPORT_CLIENT ? 0 : count - 1;
	struct tls_link *l = calloc(1, sizeof(*l));
	int ret = -ENOMEM;

	if (l) {
		l->link.ops = &tls_ops;
		l->receive_fd = fds[receives];
		l->send_fd = fds[sends];
		l->receiver = calloc(1, sizeof(*l->receiver));
		l->sender = calloc(1, sizeof(*l->sender));
	}
	if (!l || !l->receiver || !l->sender ||
		record_open(&l->receiver->half, &states[receives].receive, false) ||
		record_open(&l->sender->half, &states[sends].send, true))
		error_set(error, ENOMEM, "tls link");
	else
		ret = stream_link(fds, count, end, &l->inner, error);
	if (ret && l)
		release(l);
	else if (!ret)
		*link = &l->link;
	return ret;
}
