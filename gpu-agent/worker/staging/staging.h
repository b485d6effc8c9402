/* SPDX-License-Identifier: Apache-2.0
 *
 * Pinned memory between socket and GPU.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_STAGING_STAGING_H
#define VCUDA_GPU_AGENT_WORKER_STAGING_STAGING_H

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

struct staging_range {
	uint32_t at, bytes;
	/* By address. `next` is also that of those that are free. */
	struct staging_range *next, *previous;
	CUevent event; /* not NULL: busy until it is done */
	uint16_t context;
	_Atomic uint32_t held; /* STAGING_…; 0: nobody reads it any more */
};

/* Ranges are taken behind one another and round, as from a ring, but one that is busy for long
 * holds up no other: what is done behind it is found where there is no room else. */
struct staging {
	unsigned char *base;
	uint32_t size;
	uint32_t used;
	uint32_t count;
	struct staging_range *ranges; /* STAGING_RANGES */
	struct staging_range *first;  /* by address */
	struct staging_range *last;   /* the one taken last, or before it by address */
	struct staging_range *free;   /* used before */
	uint32_t fresh;	   /* of the ranges behind this nobody has used one, and they have no
			      memory */
	uint64_t sweep_at; /* not before that are all looked at; ns */
};

int staging_open(struct worker *w, struct staging *s);
/* NULL: no room now. */
struct staging_range *staging_alloc(
	struct worker *w, struct staging *s, uint32_t n, unsigned char **bytes);
/* Whether there is room for N bytes. */
bool staging_fits(struct worker *w, struct staging *s, uint32_t n);
/* Whether more than half of it is busy. */
bool staging_half_busy(struct worker *w, struct staging *s);
void staging_done(struct staging_range *range);
/* Gives back at once what nothing was put on a stream for. False: RANGE is none of S's. */
bool staging_free(struct staging *s, struct staging_range *range);
/* A stripe sends it (the loop's thread), and has sent it (any thread). */
void staging_sending(struct staging_range *range);
void staging_sent(struct staging_range *range);
/* Busy until what was put on `stream` so far is done. */
CUresult staging_busy(
	struct worker *w, struct staging_range *range, uint16_t context, CUstream stream);
/* Gives back what is done, in the order in which it was taken, up to what is busy. */
void staging_reap(struct worker *w, struct staging *s);
/* The context is done with, and so are its events. */
void staging_forget(struct worker *w, struct staging *s, uint16_t context);
void staging_range_forget(struct worker *w, struct staging_range *range, uint16_t context);
/* Nobody reads it any more. */
bool staging_idle(struct worker *w, struct staging_range *range);

#endif
