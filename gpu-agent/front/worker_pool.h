/* SPDX-License-Identifier: Apache-2.0
 *
 * Workers as the front sees them: asked for, started, taken, handed a session, reaped.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_WORKER_POOL_H
#define VCUDA_GPU_AGENT_FRONT_WORKER_POOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "gpu-agent/control.h"
#include "gpu-agent/front/events.h"
#include "gpu-agent/front/replacement.h"
#include "gpu-agent/handoff.h"

struct tensor_copy;
struct front;
struct session;

enum worker_state {
	WORKER_FREE,
	WORKER_ASKED,	 /* the supervisor is starting it */
	WORKER_STARTING, /* it has a pid, and is not READY yet */
	WORKER_READY,
	WORKER_TAKEN,  /* READY, kept for a session that is joining, or a copy */
	WORKER_BUSY,   /* serves a session, or copies a tensor */
	WORKER_ENDING, /* told to stop, or gone and not reaped yet */
	WORKER_STATES
};
const char *worker_state_name(enum worker_state state);

struct pool_worker {
	enum worker_state state;
	struct watch handoff;
	uint32_t number;
	pid_t pid;
	uint64_t deadline; /* ASKED, STARTING: when to give up */
	uint64_t contexts[HANDOFF_DEVICES];
	bool counted; /* its contexts are in the ledger */
	bool failed;  /* it said FAILED: its exit is no news */
	bool doubted; /* started before a GPU was doubted: it may have seen that before it fell
		       */
	/* LEASEs that wait for workers that are ending: bytes by device, 0 = none. */
	uint64_t wishes[HANDOFF_DEVICES];
	uint64_t wishes_until; /* 0: none */
	bool wishes_heard;     /* what was said before they were asked has been heard */
	uint64_t ending_since; /* ENDING: from when on */
	uint32_t drains;       /* DRAIN: the questions that wait, 0 = none … */
	uint64_t drains_asked; /* … when the last of them came … */
	uint64_t drains_until; /* … and until when they wait */
	uint32_t silent;       /* looks since it said anything */
	bool adopted;	       /* what it asks is not heard until it said AGAIN */
	uint32_t image_wants, image_puts; /* on their way (images.c), and bytes of the latter */
	uint64_t image_bytes;
	struct watch refusals;	/* refusals.c, from here on */
	uint32_t refusal_looks; /* since it was watched */
	int refusals_fd;	/* until refusals_at, where that is not 0: not watched */
	uint64_t refusals_at;
	bool refusal_logged, refusal_logged_early; /* in the log: of its session, before it */
	struct session *session;
	struct tensor_copy *copy; /* that it makes (tensor/tensor_copy.h) */
	uint32_t lacks;		  /* bit d: GPU d had fallen when it got ready */
	bool told_short;	  /* its session has asked for memory that way */
};

struct pool {
	struct pool_worker *workers;
	uint32_t room;
	uint32_t next_number;
	uint32_t count[WORKER_STATES];
	bool failing; /* the last start failed: text says why */
	char text[192];
	char logged[192];  /* said in the log already */
	uint64_t retry_at; /* not before, when failing */
	uint64_t retry_delay;
	uint64_t short_until; /* none is kept warm until then; 0: as many as wanted */
	struct replacement replacement;
	uint32_t killed;  /* in a row, before they were ready */
	uint64_t look_at; /* for workers that say nothing */
	uint32_t driver_version;
	char driver_release[32]; /* the driver's own version */
	char driver[192];	 /* what READY called it */
	uint32_t sandbox;	 /* what keeps the last one in (sandbox.h) */
	uint32_t refusals_held;	 /* workers that are not watched for a moment (refusals.c) */
	uint32_t libraries;	 /* that sessions used: new workers make them ready */
};

int pool_open(struct front *front, struct error *error);
/* A worker that serves a session already; takes FD. NULL: it cannot be had. */
struct pool_worker *pool_adopt(
	struct front *front, pid_t pid, const uint64_t contexts[HANDOFF_DEVICES], int fd);
/* Starts what is wanted, and gives ready workers to waiting sessions. */
void pool_balance(struct front *front, uint64_t now);
void pool_started(struct front *front, const struct control *control, int fd);
void pool_refused(struct front *front, const struct control *control);
void pool_exited(struct front *front, const struct control *control);
/* Its client was told that the session has this worker. */
void pool_announce(struct front *front, struct session *session);
/* Hands the session's connections, in the order in which they were made, to its worker; the
 * caller still owns them. -errno where the worker does not take them. */
int pool_hand_over(
	struct front *front, struct session *session, const int *fds, unsigned count);
int pool_hand_over_stripe(struct session *session, uint32_t stripe, int fd);
int pool_hand_over_path(struct session *session, int fd);
/* A TAKEN worker whose session, or copy, did not come about is READY again. */
void pool_release(struct front *front, struct pool_worker *worker);
/* Tells a worker to end, and the supervisor to kill it if it does not. */
void pool_stop(
	struct front *front, struct pool_worker *worker, uint32_t status, const char *text);
/* A session misses memory that it was granted: workers that are warm give theirs back. Once for
 * each session, which the others' cold starts pay for. */
void pool_short(struct front *front, struct pool_worker *worker);
uint64_t pool_tick(struct front *front, uint64_t now);
/* A datagram to a worker; 0 or -errno. */
int pool_say(struct pool_worker *worker, const struct handoff *h);
int pool_say_with(struct pool_worker *worker, const struct handoff *h, int fd);
/* What it says makes no sense: it is killed. */
void pool_fault(struct front *front, struct pool_worker *worker, const char *text);

#endif
