/* SPDX-License-Identifier: Apache-2.0
 *
 * How a session gets its UDP sockets.  The client sends a HELLO of the role SESSION_LIGHT, with
 * session and secret, in a datagram as large as QUIC's first ones: where those do not get
 * through, this one does not either.  The front, which knows the secrets, answers with a
 * WELCOME from a socket of its own for that client's address, and hands it on.  Nothing is kept
 * and nothing is answered for a datagram that names no session.  A client whose address has
 * changed knocks again, and its session gets another socket.
 *
 * The keys of QUIC come of session and secret, so nobody but the two talks to a session.
 */
#ifndef VCUDA_TRANSPORT_LIGHT_KNOCK_H
#define VCUDA_TRANSPORT_LIGHT_KNOCK_H

#include "protocol/wire/session.h"
#include "transport/dial.h"
#include "transport/transport.h"

#define KNOCK_BYTES 1200 /* the least that QUIC's paths carry (RFC 9000, 14) */

struct light_key {
	unsigned char bytes[32];
};

void knock_key(const struct session_hello *hello, struct light_key *key);

/* Whose a UDP socket is, by its number, until it is handed on. Any thread. */
int knock_keep(int fd, const struct session_hello *hello); /* 0 or -ENOMEM */
bool knock_kept(int fd, struct session_hello *hello);
void knock_forget(int fd);

/* Sends HELLO as a knock: whether it is on its way. */
bool knock_send(int fd, const struct session_hello *hello);
/* Whether the N bytes are a knock. */
bool knock_is(const void *bytes, size_t n);
/* Answers one that was answered before: the answer was lost. */
void knock_again(int fd);

#endif
