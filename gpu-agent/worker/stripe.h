/* SPDX-License-Identifier: Apache-2.0
 *
 * Further connections of the session at the worker's end: a thread each, which receives into
 * pinned memory of its own, ahead of the frames that name the pieces.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_STRIPE_H
#define VCUDA_GPU_AGENT_WORKER_STRIPE_H

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu-agent/worker/staging.h"
#include "transport/transport.h"

struct cuda_driver;
struct link;
struct worker;

/* One more connection, and the thread that receives from it. */
#define STRIPE_SLOTS 8
struct stripe {
	struct link *link;
	int wake; /* eventfd: a piece came while the loop slept for it */
	pthread_t thread;
	const struct cuda_driver *cuda;
	CUcontext context;
	unsigned char *base; /* STRIPE_SLOTS times FRAME_PAYLOAD_MAX, pinned */
	uint64_t spin_ns;
	uint32_t taken;		 /* the loop's: pieces that frames have claimed */
	_Atomic uint32_t filled; /* pieces received */
	_Atomic uint32_t freed;	 /* slots that the GPU has read; the thread sleeps on it */
	_Atomic uint32_t asleep, awaited;
	_Atomic bool over;   /* nothing more will come */
	_Atomic bool cut;    /* another connection is to take its place */
	_Atomic bool failed; /* since there is no pinned memory for it */
	struct stripe_slot {
		uint32_t length;
		struct staging_range range;
	} slots[STRIPE_SLOTS];
};

/* Owns the connection, as it was handed over, from then on; ends the session where it cannot.
 */
void stripe_open(struct worker *w, uint32_t number, const int fds[TRANSPORT_FDS]);
/* It was opened, and is not cut. */
bool stripe_there(const struct worker *w, uint32_t number);
/* Nothing more comes over any of them. */
void stripes_cut(struct worker *w);
/* The next piece, which must have N bytes; its range is the loop's until it is done. -EAGAIN:
 * not there yet; -ECONNRESET: it never will be; -ENOMEM: nor ever could; -EPROTO: another
 * length. */
int stripe_receive(
	struct stripe *stripe, uint32_t n, unsigned char **bytes, struct staging_range **range);
/* Before sleeping on stripe->wake: false where there is no need to. stripe_awake: afterwards.
 */
bool stripe_sleep(struct stripe *stripe);
void stripe_awake(struct stripe *stripe);
bool stripes_busy(const struct worker *w); /* the GPU still reads from some */
void stripes_reap(struct worker *w);
void stripes_forget(struct worker *w, uint16_t context);

#endif
