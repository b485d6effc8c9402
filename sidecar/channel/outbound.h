/* SPDX-License-Identifier: Apache-2.0
 *
 * From the ring to the agent: many entries in one send.  Headers and bodies go out of a private
 * copy, payloads straight from shared memory, large ones by the stripes where there are any.
 */
#ifndef VCUDA_SIDECAR_CHANNEL_OUTBOUND_H
#define VCUDA_SIDECAR_CHANNEL_OUTBOUND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "common/error.h"
#include "sidecar/stripes/stripes.h"
#include "transport/ring.h"
#include "sidecar/channel/timing.h"
#include "transport/transport.h"

#define OUTBOUND_BUFFER (128u * 1024)
#define OUTBOUND_IOV 64
#define OUTBOUND_BULK (1u << 20) /* payload bytes a turn: then the replies have theirs */

struct outbound {
	int first, count;	/* iov[first … count) is to be sent */
	size_t used;		/* of buffer */
	uint64_t frames, bytes; /* sent over the link: frames counted when gathered */
	struct timing *timing;	/* NULL: nothing is timed */
	bool held;		/* what comes next waits for the stripes, … */
	uint64_t held_until;	/* … at the most until then */
	struct iovec iov[OUTBOUND_IOV + 1];
	unsigned char buffer[OUTBOUND_BUFFER];
};

static inline bool outbound_empty(const struct outbound *out)
{
	return out->first == out->count;
}

/* Only when empty. Entries gathered, or -EPROTO with *error: the violation; what stood before
 * it is gathered. */
int outbound_gather(
	struct outbound *out, struct ring *ring, struct stripes *stripes, struct error *error);

/* A bare frame of the sidecar's own (PING, PONG, BYE). false: no room now. */
bool outbound_control(struct outbound *out, uint8_t kind, uint64_t seq);

/* The connection is gone: nothing is to be sent any more. */
void outbound_clear(struct outbound *out);

/* Bytes sent, 0 where the link takes none now, or -errno. */
ssize_t outbound_send(struct outbound *out, struct link *link);

#endif
