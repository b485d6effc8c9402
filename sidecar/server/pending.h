/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections that have not said yet what they want.  They cost a descriptor and a line here:
 * the main thread looks after them, and a thread of its own has only who attaches.  Who says
 * nothing goes after a while, or at once where there are too many: then the oldest of the peer
 * that has most, so that nobody can keep the others out.
 */
#ifndef VCUDA_SIDECAR_SERVER_PENDING_H
#define VCUDA_SIDECAR_SERVER_PENDING_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define PENDING_MOST 128

struct server;

struct pending_peer {
	int socket;
	struct ucred peer;
	uint64_t since; /* ns */
};

struct pending {
	unsigned count;
	struct pending_peer at[PENDING_MOST]; /* the oldest first */
};

/* Takes SOCKET over. */
void pending_add(struct pending *pending, int socket, uint64_t now);
/* Ends the oldest of the peer that has most. False: there is none. */
bool pending_evict(struct pending *pending);
/* What to poll for: pending->count of them. */
void pending_fds(const struct pending *pending, struct pollfd *fds);
/* After poll() filled in FDS, and nothing was added since: serves who spoke, ends who waited
 * for too long. */
void pending_serve(
	struct pending *pending, struct server *server, const struct pollfd *fds, uint64_t now);
/* When the first one's time is over; UINT64_MAX: there is none. */
uint64_t pending_deadline(const struct pending *pending);

#endif
