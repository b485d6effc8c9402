/* SPDX-License-Identifier: Apache-2.0
 *
 * Further connections of the session at the worker's end: a thread each, which receives into
 * pinned memory of its own, ahead of the frames that name the pieces; and, once the client says
 * that it receives there, another which sends payloads of ours.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_STAGING_STRIPE_H
#define VCUDA_GPU_AGENT_WORKER_STAGING_STRIPE_H

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu-agent/worker/staging/staging.h"
#include "gpu-agent/worker/staging/uploads.h"
#include "transport/codec/piece.h"
#include "transport/transport.h"

struct cuda_driver;
struct link;
struct worker;

/* One more connection, and the threads that receive from it and send to it. */
#define STRIPE_SLOTS 8
#define STRIPE_QUEUE 64u /* a power of two: more than there are pieces in `out` of staging */
struct stripe {
	struct link *link;
	int wake; /* eventfd: a piece came while the loop slept for it */
	pthread_t thread;
	const struct cuda_driver *cuda;
	CUcontext context;
	unsigned char *base; /* STRIPE_SLOTS times FRAME_PAYLOAD_MAX, pinned */
	int memory;	     /* the same as a file, for agent-uploads; -1: it is none */
	struct uploads_lane_end uploads; /* the thread's */
	pthread_mutex_t sending;	 /* the link: answers to names, and payloads */
	uint64_t spin_ns;
	uint32_t taken;		 /* the loop's: pieces that frames have claimed */
	_Atomic uint32_t filled; /* pieces received */
	_Atomic uint32_t freed;	 /* slots that the GPU has read; the thread sleeps on it */
	_Atomic uint32_t asleep, awaited;
	_Atomic bool over;	      /* nothing more will come */
	_Atomic bool cut;	      /* another connection is to take its place */
	_Atomic bool failed;	      /* since there is no pinned memory for it */
	_Atomic bool forged;	      /* since what came is no piece */
	struct piece_receiver pieces; /* the thread's */
	struct stripe_slot {
		uint32_t length, wire; /* of the payload; as it came */
		int fill; /* ≥ 0: all bytes are this one, and the slot has none of them */
		struct staging_range range;
	} slots[STRIPE_SLOTS];

	_Atomic bool both; /* the client receives too */
	/* What the other thread sends (stripe_send.c). */
	struct stripe_sender {
		pthread_t thread;
		bool started;	       /* the loop's */
		_Atomic uint32_t head; /* sent */
		_Atomic uint32_t tail; /* queued; the thread sleeps on it */
		_Atomic uint32_t asleep;
		_Atomic bool broken, over;
		struct piece_sender pieces; /* the thread's */
		struct stripe_piece {
			const unsigned char *bytes;
			uint32_t n;
			struct staging_range *range;
		} queue[STRIPE_QUEUE];
	} sender;
};

/* Owns the connection, as it was handed over, from then on; ends the session where it cannot.
 */
void stripe_open(struct worker *w, uint32_t number, const int fds[TRANSPORT_FDS]);
/* The lane to agent-uploads of stripe NUMBER, which is opened next; takes what is there. */
void stripe_uploads(struct worker *w, uint32_t number, const int fds[TRANSPORT_FDS]);
/* It was opened, and is not cut. */
bool stripe_there(const struct worker *w, uint32_t number);
/* Nothing more comes over any of them. */
void stripes_cut(struct worker *w);
/* The next piece, which must have N bytes; its range is the loop's until it is done. *fill: 0,
 * or 1 + the byte that all of them are: *bytes has room for them, no more. -EAGAIN: not there
 * yet; -ECONNRESET: it never will be; -ENOMEM: nor ever could; -EPROTO: another length, or no
 * piece that can be. */
int stripe_receive(struct stripe *stripe, uint32_t n, unsigned char **bytes, uint32_t *fill,
	struct staging_range **range);
/* Whether what came was no piece, and bytes on the wire of the last one that was received. */
bool stripe_forged(const struct stripe *stripe);
uint32_t stripe_took(const struct stripe *stripe);
/* Before sleeping on stripe->wake: false where there is no need to. stripe_awake: afterwards.
 */
bool stripe_sleep(struct stripe *stripe);
void stripe_awake(struct stripe *stripe);
/* stripe_send.c. Takes N bytes at BYTES, of RANGE, which is held until they are sent: the
 * stripe's number; or 0, and they go over the link. */
uint32_t stripes_send(
	struct worker *w, const unsigned char *bytes, uint32_t n, struct staging_range *range);
bool stripes_sending(const struct worker *w);	 /* something has not gone out yet */
bool stripe_send_broken(const struct worker *w); /* and will not: the session is cut */
void stripe_send_end(struct stripe *stripe);	 /* after `cut` was set; does not wait */
/* The thread has ended, or never began: it is as new. */
bool stripe_send_reset(struct stripe *stripe);
bool stripes_busy(const struct worker *w); /* the GPU still reads from some */
void stripes_reap(struct worker *w);
void stripes_forget(struct worker *w, uint16_t context);
/* What they and the link carried, into w->stats. */
void stripes_stats(struct worker *w);

#endif
