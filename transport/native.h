/* SPDX-License-Identifier: Apache-2.0
 *
 * native://HOST:PORT: two TCP connections a session (protocol/wire/session.h).
 */
#ifndef VCUDA_TRANSPORT_NATIVE_H
#define VCUDA_TRANSPORT_NATIVE_H

#include "transport/transport.h"

extern const struct transport transport_native;

/* One more connection of a running session (SESSION_LANE): PEER is where its commands go
 * (link_peer), HELLO has session and secret. Writes its number to *LANE; the socket, which
 * does not block, or -errno with *error. */
int native_dial_lane(const struct sockaddr_storage *peer, const struct session_hello *hello,
	uint64_t deadline, unsigned *lane, struct error *error);

#endif
