/* SPDX-License-Identifier: Apache-2.0
 *
 * What pool.c and pool_calls.c both work on.
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_POOLS_POOL_STATE_H
#define VCUDA_SHIM_DRIVER_MEMORY_POOLS_POOL_STATE_H

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/driver/context/context.h"
#include "shim/driver/memory/pools/pool_units.h"

/* What a pool gives out: memory of a device, pinned memory (host.h), or managed memory. */
enum pool_kind { POOL_DEVICE, POOL_HOST, POOL_MANAGED };

struct pool_place {
	enum pool_kind kind;
	CUmemLocation
		location; /* of managed memory: the preferred one; id 0 where it has none */
};

static inline struct pool_place pool_place_on(int device)
{
	return (struct pool_place){
		POOL_DEVICE, {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
}

struct pool {
	uint64_t handle;
	struct pool_place place;
	int device;	      /* that the place is; CU_DEVICE_INVALID: none */
	struct pool *current; /* of a default one: which is to be used instead; NULL: none */
	bool is_default;
	bool shareable;		/* with other processes (share.c) */
	bool shared;		/* it has been: only then its allocations are */
	bool imported;		/* nothing is allocated from it */
	uint8_t name[16];	/* of an imported one: whose it is */
	unsigned imports;	/* and how often it was, less how often it was destroyed */
	struct pool_file *file; /* of pinned memory that processes share; NULL: it has none */
	uint64_t most;		/* bytes that it may have; 0: any number */
	uint64_t threshold;
	uint64_t used, used_high; /* bytes that the app asked for and has */
	uint64_t taken;		  /* bytes of memory: the app's, and those kept for reuse */
	struct pool_units units;  /* what it says that it has reserved … */
	uint64_t reserved_high;	  /* … and the most of that, in bytes */
	struct pool *next;	  /* of pools.all */
	struct pool *next_default;
	uint32_t policies[4]; /* of reuse, by CU_MEMPOOL_ATTR_… - 1 */
	uint64_t peers;	      /* other devices with access, a bit for each CUdevice */
};

/* A live allocation, or one that was freed and is kept. */
struct pool_piece {
	struct pool_piece *next;
	CUdeviceptr address;
	size_t bytes;
	size_t asked;	/* of a live one: what the app wanted … */
	uint64_t place; /* … and where that lies in the pool's units */
	struct pool *pool;
	uint64_t id;	      /* of the memory: its address may be another's by now */
	uint64_t offset;      /* where that is in the pool's file, if it has one … */
	unsigned opens;	      /* … and, of another process's, how often it was opened again */
	struct context *home; /* with which managed memory goes */
	uint64_t stream;      /* of kept ones: where it was freed; 0: the legacy one … */
	uint64_t seq;	      /* … behind frames up to that, … */
	uint16_t context;     /* … of that context */
	bool idle;	      /* and that has gone, or the stream, having come there */
};

#define POOL_BUCKETS 1024

struct pools {
	pthread_mutex_t lock; /* LOCK_POOL */
	struct pool_piece *live[POOL_BUCKETS];
	struct pool_piece *kept;
	_Atomic bool idle; /* something may be given back; read without the lock too */
	struct pool *all;
	struct pool *defaults[OPEN_DEVICES_MOST]; /* of devices */
	struct pool *defaults_others;		  /* of other places: by next_default */
	unsigned reached[OPEN_DEVICES_MOST]
			[OPEN_DEVICES_MOST]; /* pools of the one that let the other */
};
extern struct pools pools;

/* Those below under the lock. NULL: the handle is no pool's. */
struct pool *pool_of(CUmemoryPool pool);
/* NULL: no memory. */
struct pool *pool_new(const struct pool_place *place);
struct pool *pool_default_at(const struct pool_place *place);
/* The one that is to be used there. */
struct pool *pool_current_at(const struct pool_place *place);
bool pool_place_is(const struct pool_place *a, const struct pool_place *b);
/* The link to the live allocation at that address; NULL: there is none. */
struct pool_piece **pool_piece_find(CUdeviceptr address);
/* It is the app's from now on, ASKED bytes of it, and no longer. */
void pool_piece_add(struct pool_piece *piece, size_t asked);
void pool_piece_gone(struct pool_piece *piece);
/* It was freed before. */
bool pool_kept_at(CUdeviceptr address);
/* Takes kept pieces away from the pool until it has at most `keep` bytes, and its idle units;
 * they are for pool_pieces_free(). */
struct pool_piece *pool_trim(struct pool *pool, uint64_t keep);
/* Without the lock: to give pinned memory back, the agent may have to be waited for. */
void pool_pieces_free(struct pool_piece *first);
/* What it says that it has reserved, in bytes. */
uint64_t pool_reserved(const struct pool *pool);

#endif
