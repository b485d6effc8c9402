/* SPDX-License-Identifier: Apache-2.0
 *
 * Stripes: more connections of one session, each with a thread that does nothing but send and,
 * where the agent knows that, one that does nothing but receive.  They carry the payloads of
 * large copies, whose copying into the kernel and out of it is more than one core does at the
 * speed of the wire; header and body go over the link as ever and name the stripe
 * (protocol/wire/session.h).  They are opened once a process has copied enough to be worth it.
 *
 * All functions are for the channel's thread, but for those that count: any.  The threads only
 * see their own queue.
 */
#ifndef VCUDA_SIDECAR_STRIPES_STRIPES_H
#define VCUDA_SIDECAR_STRIPES_STRIPES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "protocol/wire/session.h"
#include "sidecar/stripes/names.h"
#include "sidecar/memory/segment.h"
#include "transport/codec/piece.h"
#include "transport/transport.h"

#define STRIPE_QUEUE 256u	     /* a power of two */
#define STRIPES_OPEN_AT (8ull << 20) /* bytes of large payloads before stripes are opened */
#define STRIPE_PLACES 64u	     /* a power of two: payloads awaited of one stripe */

enum stripe_state {
	STRIPE_CLOSED,
	STRIPE_DIALING,
	STRIPE_REFUSED,
	STRIPE_GREETING, /* connected; the worker has not said yet that it is there */
	STRIPE_OPEN,
	STRIPE_BROKEN
};

struct stripe {
	struct stripes *stripes;
	pthread_t thread;
	bool started;
	unsigned number; /* as the agent gave it */
	struct link *link;
	_Atomic uint32_t state; /* enum stripe_state */
	_Atomic uint32_t head;	/* sent */
	_Atomic uint32_t tail;	/* queued */
	_Atomic uint32_t work;	/* queued, and answers; the sender sleeps on it */
	_Atomic uint32_t asleep;
	struct piece_sender sender; /* the thread's */
	struct names names;
	struct stripe_piece {
		const unsigned char *bytes;
		uint32_t n;
	} queue[STRIPE_QUEUE];

	/* What is to come over it, in that order. */
	struct stripe_receiver {
		pthread_t thread;
		bool started;		 /* the sender's, until it has ended */
		_Atomic uint32_t landed; /* received */
		_Atomic uint32_t awaited;
		_Atomic uint32_t work; /* awaited, and questions; the receiver sleeps on it */
		_Atomic uint32_t asleep;
		struct piece_receiver pieces; /* the thread's */
		struct stripe_place {
			unsigned char *to; /* NULL: nowhere */
			uint32_t n;
		} places[STRIPE_PLACES];
	} receiver;
};

/* Of all connections that a channel has had. */
struct stripes_counts {
	struct piece_counts sent, received;
};

static inline uint64_t stripes_wire(const struct piece_counts *counts)
{
	return atomic_load_explicit(&counts->wire, memory_order_relaxed);
}
void stripes_add(struct stripes_counts *to, const struct stripes_counts *counts);

struct stripes {
	bool possible; /* the agent knows them and the link was dialed to a place */
	bool both;     /* the agent sends over them, too */
	bool tried;
	unsigned most; /* that the agent takes */
	bool coded;    /* the agent knows coded pieces */
	bool named;    /* and payloads by content: */
	bool whole;    /* … the last payload was a whole piece of a copy: its rest may come */
	_Atomic bool held;   /* … the channel waits for room, or for the stripes */
	uint64_t hold_until; /* … for the latter so long */
	enum controller_mode compress;
	struct stripes_counts *counts;
	_Atomic bool stop;
	_Atomic bool robbed;
	int wake; /* eventfd of the channel: written when a stripe breaks, and when something
		   * landed while … */
	_Atomic uint32_t asleep; /* … it sleeps */
	const struct segments *segments;
	uint64_t bulk;
	uint64_t last; /* when the last large payload came; ns */
	uint64_t spin;
	unsigned next;
	struct transport_place place;
	struct session_hello hello;
	struct stripe at[SESSION_STRIPES];
};

/* What stripes are made with, beside the connection. */
struct stripes_setting {
	const struct segments *segments; /* where payloads lie */
	int wake;			 /* eventfd of the channel */
	uint64_t spin;			 /* 0: no thread is to stay awake */
	enum controller_mode compress;
	struct stripes_counts *counts; /* stay the caller's; are added to */
};

/* After the session was opened with HELLO and WELCOME. */
void stripes_init(struct stripes *stripes, struct link *link, const struct session_hello *hello,
	const struct session_welcome *welcome, const struct stripes_setting *setting);

/* How many connections carry the pieces of one copy at once, if it is cut for them: where
 * payloads are named they are whole pieces. 0: one. */
unsigned stripes_streams(const struct stripes *stripes);

/* Takes N bytes at BYTES, which must stay until the agent has acknowledged the frame. The
 * stripe's number, or 0: they go over the link. */
unsigned stripes_queue(struct stripes *stripes, const unsigned char *bytes, uint32_t n);

/* Whether a payload of N bytes, the next one, is to wait for what becomes of the stripes: the
 * agent may have it, and the link does not ask. `wake` is written when it is to be asked again;
 * *until: when at the latest. */
bool stripes_hold(struct stripes *stripes, uint32_t n, uint64_t *until);

/* N bytes came over the link: with enough of that, stripes are opened. */
void stripes_came(struct stripes *stripes, uint32_t n);

/* The next payload of stripe NUMBER has N bytes, for TO, which stays until they have landed or
 * the stripes are closed. *ticket: for stripes_landed. -EPROTO: no such stripe is open;
 * -EAGAIN: too many are awaited. */
int stripes_await(struct stripes *stripes, unsigned number, unsigned char *to, uint32_t n,
	uint32_t *ticket);
bool stripes_landed(const struct stripes *stripes, unsigned number, uint32_t ticket);

/* Before the channel sleeps, and after it: what lands meanwhile writes `wake`. */
void stripes_sleep(struct stripes *stripes, bool asleep);

/* Nothing is being sent: shared memory may go. */
bool stripes_idle(const struct stripes *stripes);

/* That carry payloads now. */
unsigned stripes_count(const struct stripes *stripes);

/* That did not come about: the link and the other stripes carry what they would have. */
unsigned stripes_refused(const struct stripes *stripes);

/* One broke: the session cannot go on. */
bool stripes_broken(const struct stripes *stripes);

/* One broke since the program took memory away that it was to read or to write. */
bool stripes_robbed(const struct stripes *stripes);

/* Ends the senders and waits for them (2 s at the most, where one is still dialing). Twice is
 * fine. */
void stripes_close(struct stripes *stripes);

#endif
