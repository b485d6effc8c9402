/* SPDX-License-Identifier: Apache-2.0
 *
 * What device memory (memory.h) is made of: a window of granules for each device, blocks of
 * granules in it, slabs from which small chunks are cut, and what was freed and waits for the
 * worker.  The caller of everything here holds heap.lock.
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_HEAP_H
#define VCUDA_SHIM_DRIVER_MEMORY_HEAP_H

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/wire/channel.h"
#include "protocol/wire/open.h"
#include "shim/driver/memory/free_extents.h"
#include "shim/engine/blocks.h"

#define SLAB_UNIT 512u			    /* alignment that CUDA programs rely on is 256 */
#define SLAB_BYTES (BLOCKS_MAX * SLAB_UNIT) /* 2 MiB: the granularity of NVIDIA's devices */
/* Larger ones get granules of their own: half a slab, so at most half of one is lost. */
#define SLAB_LARGEST (SLAB_BYTES / 2)
/* Freed chunks wait for a ticket together: one post for so many, or for so much of a slab, so
 * that the next chunks find room in it. */
#define FREED_BATCH 64
#define FREED_BYTES (SLAB_BYTES / 4)
/* Slabs that stay when they are empty: to map and unmap memory holds up the worker for longer
 * than many launches take. */
#define SLABS_SPARE 4

enum block_kind { BLOCK_WHOLE, BLOCK_SLAB, BLOCK_RESERVED };

struct slab {
	struct blocks map;
	uint64_t starts[BLOCKS_MAX / 64]; /* bit u: a live chunk starts at unit u */
	uint32_t bytes[BLOCKS_MAX];	  /* by first unit: as asked for */
	uint64_t id[BLOCKS_MAX];
	uint32_t live; /* chunks not yet given back to the map */
};

struct block {
	enum block_kind kind;
	int device;
	uint16_t context; /* that it goes with: heap_owner() */
	bool async;	  /* a pool's, or a graph's */
	bool plain;	  /* memory_alloc's, and nobody else has it mapped */
	bool shared;	  /* others may have it mapped */
	bool managed;	  /* managed memory is made of it */
	uint64_t base;
	uint64_t size; /* granules, in bytes */
	uint64_t bytes;
	uint64_t id;
	struct slab *slab;
	struct block *next; /* of the device's slabs, or spares */
};

/* Waits for its ticket: a chunk of a slab, a whole block that stays mapped, or granules whose
 * memory goes (both NULL). */
struct freed {
	uint64_t ticket;
	uint64_t address;
	uint64_t size;
	struct block *slab;
	struct block *whole;
	uint64_t backed; /* bytes that no longer count against the lease */
	int device;
};

struct window {
	uint64_t base;
	uint64_t bytes;
	uint64_t granularity;
	uint64_t slab_size;
	uint64_t lease;
	uint64_t mapped; /* counted against the lease, until its unmapping is confirmed */
	struct block **granule;
	struct free_extents free; /* free granules */
	struct block *slabs;
	uint32_t empty_slabs;  /* of them */
	struct block *spares;  /* freed, confirmed, and mapped: spare.c */
	uint64_t spare_bytes;  /* with those that are not confirmed yet */
	uint32_t reservations; /* blocks of that kind */
	bool reserved;	       /* the app's own mappings are kept out */
};

/* Of one agent: it counts its own tickets. */
struct freed_queue {
	struct freed *list; /* [first, next) */
	size_t first, next, room;
	uint32_t unticketed; /* chunks since the last ticket */
	uint64_t unticketed_bytes;
	uint64_t last_ticket;
};

extern struct heap {
	pthread_mutex_t lock;
	struct window windows[OPEN_DEVICES_MOST];
	struct freed_queue freed[CHANNEL_AGENTS]; /* by device.agent */
	uint64_t last_id;
} heap;

/* The window that an address is in; NULL: none. */
struct window *heap_window(CUdeviceptr address);
/* The block around an address, and the window; NULL: none. */
struct block *heap_block_at(CUdeviceptr address, struct window **window);
/* SIZE bytes of granules at granule WANTED if that can be had (FREE_EXTENTS_NONE: anywhere),
 * with memory of the worker's behind them, but for BLOCK_RESERVED.  NULL: *status says why. */
struct block *heap_block_new(struct window *w, enum block_kind kind, uint64_t size,
	uint64_t wanted, bool async, CUresult *status);
/* Whose the memory is that is made now: the current context's, or the primary one's where that
 * is another device's or a green one.  What is ASYNC is the device's: it goes with its primary
 * context, but not with one of the program's own (CONTEXT_NONE). */
uint16_t heap_owner(const struct window *w, bool async);
/* Its granules go to the worker, which takes their memory away. */
void heap_block_free(struct block *block);
/* Says whose the granules are; NULL: nobody's. */
void heap_granules_set(struct window *w, uint64_t base, uint64_t size, struct block *block);
/* Whether the lease has room for SIZE more bytes as it is. */
bool heap_leased(const struct window *w, uint64_t size);
/* Makes room for SIZE more bytes under the lease.  What is free is given back first, which
 * waits for host functions too: they may need a lock of this thread, so while one is
 * outstanding only where there is no other memory. */
CUresult heap_lease(struct window *w, uint64_t size);

/* --- slab.c --- */
CUresult slab_alloc(struct window *w, size_t bytes, bool async, CUdeviceptr *address);
/* The first unit of the chunk around an address; BLOCKS_NONE: no live chunk there. */
uint32_t slab_start(const struct block *block, uint64_t address);
/* It has become empty, and goes back where SLABS_SPARE others of the device are. */
void slab_free(struct block *block);
/* All empty ones go back, but an owner's last one stays for the next small allocation unless
 * LAST is true. */
void slab_trim(struct window *w, bool last);
/* Gives a slab back with all that is in it. */
void slab_drop(struct block *block);

/* --- spare.c --- */
/* The program has freed the block: it stays mapped once the worker has confirmed that.  False:
 * it is to be unmapped. */
bool spare_keep(struct block *block);
/* That was confirmed. */
void spare_put(struct block *block);
/* One of SIZE bytes that fits the allocation; NULL: none. */
struct block *spare_get(struct window *w, uint64_t size, bool async);
/* The same where the lease has no room for another one: waits for those that are not confirmed,
 * as it would have to for any room, and so none of them is unmapped to be mapped again. */
struct block *spare_await(struct window *w, uint64_t size, bool async);
/* All that are confirmed go. */
void spare_trim(struct window *w);

/* --- freed.c --- */
/* Remembers what waits for its ticket.  False: no memory for that, so it is never used again.
 */
bool freed_push(const struct freed *freed);
/* The queue of the device's agent. */
struct freed_queue *freed_queue(int device);
/* Posts the next ticket, for which all chunks that were freed so far wait too, and the bytes
 * that the worker unmaps with it (0: none). Which it is. */
uint64_t freed_post(int device, uint64_t address, uint64_t bytes);
/* Makes free whatever the worker has confirmed. */
void freed_reap(void);
/* The slab is to go: no chunk of it waits any more. */
void freed_forget(const struct block *slab);
/* Posts the ticket of the chunks that wait for one at the device's agent. */
void freed_ticket_chunks(int device);
/* Gives whole granules back to the worker, which takes their memory away. */
void freed_unmap(struct window *w, uint64_t address, uint64_t size);
/* Waits until the device's worker has confirmed everything that was freed so far. */
CUresult freed_await(int device);
/* Waits until the device's worker has unmapped everything that is free. */
CUresult freed_drain(int device);

#endif
