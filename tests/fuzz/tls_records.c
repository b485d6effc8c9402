/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: TLS records behind a handshake, of a peer that has the keys and violates the
 * protocol.  The input is what it sends, step by step: two bytes of what and how much, then the
 * bytes.  The data of whole records arrives as it was sent, up to the first thing that is none;
 * behind that nothing arrives.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "transport/tls/link.h"
#include "transport/tls/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

#define MOST 16384 /* bytes sent: what a socket holds */

enum step {
	STEP_DATA,
	STEP_RAW,	/* no record, or not one of these keys */
	STEP_KEYS,	/* "the next key comes", and it does */
	STEP_KEYS_STAY, /* the same, and it does not */
	STEP_HANDSHAKE, /* another message */
	STEP_ALERT,
	STEP_CHANGE,
	STEPS
};

/* What the peer sent, and what of it has to arrive. */
struct sent {
	struct record_half half;
	unsigned char wire[MOST], data[MOST];
	size_t n, data_n;
	bool ended; /* nothing behind it arrives */
};

static void must(bool right)
{
	if (!right)
		abort();
}

static void seal(struct sent *s, enum record_type type, const void *bytes, size_t n)
{
	const struct iovec iov = {(void *)(uintptr_t)bytes, n};
	size_t offset = 0;
	int at = 0, length;

	length = record_seal(&s->half, type, &iov, &at, &offset, n, s->wire + s->n);
	must(length > 0);
	s->n += (size_t)length;
}

static void step(struct sent *s, enum step what, const uint8_t *bytes, size_t n)
{
	static const unsigned char next_key[] = {24, 0, 0, 1, 0};
	bool keys = what == STEP_KEYS || what == STEP_KEYS_STAY;

	if (what == STEP_RAW) {
		memcpy(s->wire + s->n, bytes, n);
		s->n += n;
		s->ended |= n > 0;
	} else if (what == STEP_DATA) {
		seal(s, RECORD_DATA, bytes, n);
		if (!s->ended) {
			memcpy(s->data + s->data_n, bytes, n);
			s->data_n += n;
		}
	} else if (keys) {
		seal(s, RECORD_HANDSHAKE, next_key, sizeof(next_key));
		if (what == STEP_KEYS)
			must(!record_update(&s->half));
		s->ended |= what == STEP_KEYS_STAY;
	} else {
		seal(s,
			what == STEP_HANDSHAKE ? RECORD_HANDSHAKE
			: what == STEP_ALERT   ? RECORD_ALERT
					       : RECORD_CHANGE_CIPHER,
			bytes, n);
		s->ended |= what != STEP_HANDSHAKE || n != sizeof(next_key) ||
			    memcmp(bytes, next_key, n) != 0;
		if (!s->ended)
			must(!record_update(&s->half));
	}
}

static void send_all(struct sent *s, const uint8_t *bytes, size_t n)
{
	while (n >= 2) {
		enum step what = (enum step)(bytes[0] % STEPS);
		size_t length = bytes[1] * (bytes[0] & 0x80 ? 16u : 1u);

		bytes += 2;
		n -= 2;
		length = length < n ? length : n;
		if (s->n + length + RECORD_OVERHEAD + 5 > MOST)
			return;
		step(s, what, bytes, length);
		bytes += length;
		n -= length;
	}
}

/* All that arrives, in reads of ROOM bytes. */
static void receive_all(struct sent *s, struct link *link, size_t room)
{
	static unsigned char got[MOST + 1];
	size_t n = 0;
	ssize_t more;

	while ((more = link_receive(link, got + n, room < MOST - n ? room : MOST + 1 - n)) > 0)
		n += (size_t)more;
	must(more != -EAGAIN);
	must(n == s->data_n && !memcmp(got, s->data, n));
	/* And then no more. */
	must(link_receive(link, got, 1) <= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static struct sent s;
	struct record_keys keys = {.secret = {1, 2, 3}};
	const struct tls_state state = {.send = {.secret = {4, 5, 6}}, .receive = keys};
	struct link *link;
	struct error error;
	int pair[2];

	log_level = LOG_ERROR;
	if (!n)
		return 0;
	s.n = s.data_n = 0;
	s.ended = false;
	must(!record_open(&s.half, &keys, true));
	send_all(&s, bytes + 1, n - 1);
	record_close(&s.half);
	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
	must(!tls_link_open(&pair[0], &state, 1, TRANSPORT_AGENT, &link, &error));
	must(send(pair[1], s.wire, s.n, MSG_NOSIGNAL) == (ssize_t)s.n && !close(pair[1]));
	receive_all(&s, link, 1 + bytes[0] * 64u);
	link_close(link);
	return 0;
}
