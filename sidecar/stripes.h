/* SPDX-License-Identifier: Apache-2.0
 *
 * Lanes: more connections of one session, each with a thread that does nothing but send.  They
 * carry the payloads of large copies, whose copying into the kernel is more than one core does
 * at the speed of the wire; header and body go over the link as ever and name the lane
 * (protocol/wire/session.h).  They are opened once a process has sent enough to be worth it.
 *
 * All functions are for the channel's thread, but for those that count: any.  The senders only
 * see their own queue.
 */
#ifndef VCUDA_SIDECAR_LANES_H
#define VCUDA_SIDECAR_LANES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "protocol/wire/session.h"
#include "transport/transport.h"

#define LANE_QUEUE 256u		   /* a power of two */
#define LANE_LEAST (128u * 1024)   /* bytes: a smaller payload costs more to hand over */
#define LANES_OPEN_AT (8ull << 20) /* bytes of large payloads before lanes are opened */

enum lane_state { LANE_CLOSED, LANE_DIALING, LANE_REFUSED, LANE_OPEN, LANE_BROKEN };

struct lane {
	struct lanes *lanes;
	pthread_t thread;
	bool started;
	unsigned number; /* as the agent gave it */
	struct link *stripe;
	_Atomic uint32_t state; /* enum lane_state */
	_Atomic uint32_t head;	/* sent */
	_Atomic uint32_t tail;	/* queued; the sender sleeps on it */
	_Atomic uint32_t asleep;
	struct lane_piece {
		const unsigned char *bytes;
		uint32_t n;
	} queue[LANE_QUEUE];
};

struct lanes {
	bool possible; /* the agent knows them and the link was dialed to a place */
	bool tried;
	_Atomic bool stop;
	int wake; /* eventfd of the channel: written when a lane breaks */
	uint64_t bulk;
	uint64_t spin;
	unsigned next;
	struct transport_place place;
	struct session_hello hello;
	struct lane at[SESSION_LANES];
};

/* After the session was opened with HELLO and WELCOME. SPIN: ns before a sender sleeps. */
void lanes_init(struct lanes *lanes, struct link *link, const struct session_hello *hello,
	const struct session_welcome *welcome, int wake, uint64_t spin);

/* Takes N bytes at BYTES, which must stay until the agent has acknowledged the frame. The
 * lane's number, or 0: they go over the link. */
unsigned lanes_take(struct lanes *lanes, const unsigned char *bytes, uint32_t n);

/* Nothing is being sent: shared memory may go. */
bool lanes_idle(const struct lanes *lanes);

/* That carry payloads now. */
unsigned lanes_count(const struct lanes *lanes);

/* That did not come about: the link and the other lanes carry what they would have. */
unsigned lanes_refused(const struct lanes *lanes);

/* One broke: the session cannot go on. */
bool lanes_broken(const struct lanes *lanes);

/* Ends the senders and waits for them (2 s at the most, where one is still dialing). Twice is
 * fine. */
void lanes_close(struct lanes *lanes);

#endif
