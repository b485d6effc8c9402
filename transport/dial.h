/* SPDX-License-Identifier: Apache-2.0
 *
 * The client's half of the handshake (protocol/wire/session.h), for transports whose
 * connections are stream descriptors: they say how to connect, this says HELLO on each
 * connection and checks what comes back.  All of it against one deadline.
 */
#ifndef VCUDA_TRANSPORT_DIAL_H
#define VCUDA_TRANSPORT_DIAL_H

#include "transport/transport.h"

struct dial {
	/* One connection in the role of ROLE, which does not block: to place where that is
	 * known (place.transport), else to ADDRESS, and then it writes both place and where.
	 * fd, or -errno with *error. */
	int (*connect)(struct dial *dial, enum session_role role);
	/* Before the last connection of a link that has a feature of its own: makes it by other
	 * means, HELLO and WELCOME too. fd; or -errno, and it is made as the others are. NULL:
	 * there are none. */
	int (*last)(struct dial *dial, const struct session_hello *hello);
	const struct transport *transport;
	const char *address;
	const char *hint; /* for an address at which something else answers; NULL = none */
	struct transport_place place;
	uint16_t reply_port; /* as WELCOME named it */
	uint64_t deadline;
	struct error *error;
	char where[280]; /* what the texts call the agent */
};

/* What transport.dial is to do. */
int dial_session(struct dial *dial, const struct session_hello *wanted,
	struct session_welcome *welcome, struct link **link);

/* What transport.open_stripe is to do; place is known. */
int dial_stripe(struct dial *dial, const struct session_hello *wanted, unsigned *number,
	struct link **stripe);

/* What transport.join is to do: fd, or -errno. */
int dial_peer(struct dial *dial, const struct session_hello *wanted);

/* 0 when fd is ready, -ETIMEDOUT at UNTIL. */
int dial_wait(uint64_t until, int fd, short events);

#endif
