/* SPDX-License-Identifier: Apache-2.0
 *
 * What the workers of two agents say to each other (protocol/wire/direct.h), carried by the
 * sidecar, since neither agent may dial the other or reaches it.  The program has a ticket of
 * each end; the sidecar dials both, in the role in which an agent's front would, and passes
 * bytes on as they are.  It goes only to agents at which the process has sessions here.
 *
 * Each has a thread of its own, which ends with either connection.
 */
#ifndef VCUDA_SIDECAR_CHANNEL_RELAY_H
#define VCUDA_SIDECAR_CHANNEL_RELAY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "protocol/wire/channel.h"

struct channel;
struct relay;

/* The server's. */
struct relays {
	struct relay *first;
	unsigned count;
	uint64_t told[CHANNEL_AGENTS];	/* bit j of [i]: the log has a warning of i and j */
	_Atomic uint64_t opened, bytes; /* of all that there were; each byte once */
};

/* REQUEST of CHANNEL, a RELAY: it is answered from here, now or by the thread once both agents
 * have taken their ticket. The channel's thread. */
void relay_start(struct channel *channel, const struct channel_request *request);

/* For `status`: the next one behind AFTER, NULL: the first. Under the server's lock. */
struct relay_view {
	const char *agents[2]; /* as the sidecar dialed them */
	const char *sessions[2];
	int pid; /* of the program */
	uint64_t opened_at, bytes;
};
const struct relay *relay_next(
	const struct relays *relays, const struct relay *after, struct relay_view *view);

#endif
