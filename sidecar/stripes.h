/* SPDX-License-Identifier: Apache-2.0
 *
 * Stripes: more connections of one session, each with a thread that does nothing but send. They
 * carry the payloads of large copies, whose copying into the kernel is more than one core does
 * at the speed of the wire; header and body go over the link as ever and name the stripe
 * (protocol/wire/session.h).  They are opened once a process has sent enough to be worth it.
 *
 * All functions are for the channel's thread, but for those that count: any.  The senders only
 * see their own queue.
 */
#ifndef VCUDA_SIDECAR_STRIPES_H
#define VCUDA_SIDECAR_STRIPES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "protocol/wire/session.h"
#include "transport/transport.h"

#define STRIPE_QUEUE 256u	     /* a power of two */
#define STRIPE_LEAST (128u * 1024)   /* bytes: a smaller payload costs more to hand over */
#define STRIPES_OPEN_AT (8ull << 20) /* bytes of large payloads before stripes are opened */

enum stripe_state { STRIPE_CLOSED, STRIPE_DIALING, STRIPE_REFUSED, STRIPE_OPEN, STRIPE_BROKEN };

struct stripe {
	struct stripes *stripes;
	pthread_t thread;
	bool started;
	unsigned number; /* as the agent gave it */
	struct link *link;
	_Atomic uint32_t state; /* enum stripe_state */
	_Atomic uint32_t head;	/* sent */
	_Atomic uint32_t tail;	/* queued; the sender sleeps on it */
	_Atomic uint32_t asleep;
	struct stripe_piece {
		const unsigned char *bytes;
		uint32_t n;
	} queue[STRIPE_QUEUE];
};

struct stripes {
	bool possible; /* the agent knows them and the link was dialed to a place */
	bool tried;
	_Atomic bool stop;
	int wake; /* eventfd of the channel: written when a stripe breaks */
	uint64_t bulk;
	uint64_t spin;
	unsigned next;
	struct transport_place place;
	struct session_hello hello;
	struct stripe at[SESSION_STRIPES];
};

/* After the session was opened with HELLO and WELCOME. SPIN: ns before a sender sleeps. */
void stripes_init(struct stripes *stripes, struct link *link, const struct session_hello *hello,
	const struct session_welcome *welcome, int wake, uint64_t spin);

/* Takes N bytes at BYTES, which must stay until the agent has acknowledged the frame. The
 * stripe's number, or 0: they go over the link. */
unsigned stripes_queue(struct stripes *stripes, const unsigned char *bytes, uint32_t n);

/* Nothing is being sent: shared memory may go. */
bool stripes_idle(const struct stripes *stripes);

/* That carry payloads now. */
unsigned stripes_count(const struct stripes *stripes);

/* That did not come about: the link and the other stripes carry what they would have. */
unsigned stripes_refused(const struct stripes *stripes);

/* One broke: the session cannot go on. */
bool stripes_broken(const struct stripes *stripes);

/* Ends the senders and waits for them (2 s at the most, where one is still dialing). Twice is
 * fine. */
void stripes_close(struct stripes *stripes);

#endif
