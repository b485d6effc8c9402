/* SPDX-License-Identifier: Apache-2.0
 *
 * What host.c (segments, pieces) and host_calls.c both work on.
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_PINNED_HOST_STATE_H
#define VCUDA_SHIM_DRIVER_MEMORY_PINNED_HOST_STATE_H

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/driver/memory/virtual/vmm_host.h"
#include "shim/engine/blocks.h"

/* Pages: what kernels reach is mirrored by pages, each piece by itself. */
#define HOST_UNIT HOST_PAGE
#define HOST_PAGE 4096u

struct host_segment {
	struct host_segment *next;
	struct session
		*session; /* whose sidecar channel shares it: only there it has a number */
	unsigned char *base;
	size_t size;
	uint32_t number;
	bool shared;
	_Atomic bool used; /* by posts since the last time that a free waited */
	struct blocks map; /* shared ones */
};

/* Streams with copies to one allocation at a time, of which each is known by itself. */
#define HOST_OUTS 4

struct host_piece {
	unsigned char *base;
	size_t bytes;
	unsigned flags;
	uint64_t id;
	uint16_t context;
	struct context *home;	      /* the context with which it goes */
	struct host_segment *segment; /* NULL: registered, or a file has it */
	bool pooled;		      /* a memory pool's (pool_memory.h) */
	struct vmm_host *mapped;      /* cuMemMap's (vmm_host.h), else NULL */
	int device;		      /* and whose window that is in */
	struct vmm_access access;     /* and who may use it */
	bool active;		      /* kernels reach it (mirror.h) … */
	bool apart;		      /* … or cannot */
	struct host_out { /* the last copies from the device that were not awaited */
		uint64_t stream, seq; /* seq 0: none */
		uint16_t context;
	} outs[HOST_OUTS];
	struct host_out lost; /* one that found no place there: its stream says nothing */
};

struct pinned {
	pthread_mutex_t lock; /* LOCK_HOST */
	struct host_segment *segments;
	struct host_piece *pieces;  /* by address */
	_Atomic size_t piece_count; /* read without the lock too */
	size_t piece_room;
	uint64_t last_piece;
};
extern struct pinned pinned;

/* Those below with the lock held. The segment is unmapped, and the sidecar told. */
void host_segment_free(struct host_segment *segment);
/* The index of the last piece at or below the address; -1: none. */
long host_piece_below(const void *host);
/* The piece around the address; NULL: none. */
struct host_piece *host_piece_at(const void *host);
/* Where it has its place by address. False: no memory. */
bool host_piece_add(const struct host_piece *piece);
/* Counts it where kernels do not reach it (host.h), or no more. */
void host_piece_idle(const struct host_piece *piece, bool more);
void host_piece_remove(struct host_piece *piece);
/* Copies to it may be outstanding that nobody awaits. */
bool host_piece_awaited(struct host_piece *piece);
/* A piece of a segment. */
CUresult host_alloc(size_t bytes, unsigned flags, void **out);

#endif
