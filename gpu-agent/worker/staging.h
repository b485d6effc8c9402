/* SPDX-License-Identifier: Apache-2.0
 *
 * Pinned memory between socket and GPU: rings, taken in order and released in order.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_STAGING_H
#define VCUDA_GPU_AGENT_WORKER_STAGING_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct worker;

/* Pinned memory for payloads on their way, each direction. Sixteen chunks: enough that socket
 * and copy engine overlap, and 32 MiB of pinned memory a worker in all. */
#define STAGING_BYTES (16u << 20)
#define STAGING_ALIGN 256u
#define STAGING_RANGES 4096

#define STAGING_FRAME 1u  /* held by its frame, until staging_done */
#define STAGING_STRIPE 2u /* held by a thread that sends it, until staging_sent */

/* A ring of pinned memory, taken and released in order. */
struct staging_range {
	uint32_t begin; /* ring position of `head` before it was taken */
	uint32_t bytes; /* with the skipped tail of the ring, if any */
	CUevent event;	/* not NULL: busy until it is done */
	uint16_t context;
	_Atomic uint32_t held; /* STAGING_…; 0: nobody reads it any more */
};

struct staging {
	unsigned char *base;
	uint32_t size;
	uint32_t head; /* next free byte */
	uint32_t used;
	struct staging_range *ranges; /* STAGING_RANGES, FIFO */
	uint32_t first, count;
};

int staging_open(struct worker *w, struct staging *s);
/* NULL: no room now. */
struct staging_range *staging_alloc(
	struct worker *w, struct staging *s, uint32_t n, unsigned char **bytes);
void staging_done(struct staging_range *range);
/* As if RANGE had not been taken. False: it is not the one that was taken last. */
bool staging_untake(struct staging *s, struct staging_range *range);
/* A stripe sends it (the loop's thread), and has sent it (any thread). */
void staging_sending(struct staging_range *range);
void staging_sent(struct staging_range *range);
/* Busy until what was put on `stream` so far is done. */
CUresult staging_busy(
	struct worker *w, struct staging_range *range, uint16_t context, CUstream stream);
void staging_reap(struct worker *w, struct staging *s);
/* The context is done with, and so are its events. */
void staging_forget(struct worker *w, struct staging *s, uint16_t context);
void staging_range_forget(struct worker *w, struct staging_range *range, uint16_t context);
/* Nobody reads it any more. */
bool staging_idle(struct worker *w, struct staging_range *range);

#endif
