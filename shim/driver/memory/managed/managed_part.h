/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of managed memory share: managed.c (allocations, towards the device) and
 * managed_touch.c (towards the program).
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_MANAGED_MANAGED_PART_H
#define VCUDA_SHIM_DRIVER_MEMORY_MANAGED_MANAGED_PART_H

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/wire/handle.h"
#include "shim/driver/memory/pages/page_fault.h"
#include "shim/driver/memory/pages/pages.h"

/* What the program advised of a page, and where it was prefetched to last: types and numbers of
 * CUmemLocation, 0 and CU_DEVICE_INVALID where there is none. */
struct page_advice {
	int32_t preferred, prefetched;
	uint8_t preferred_type, prefetched_type;
	bool read_mostly;
	uint32_t accessed_by; /* bit d: device d; ADVICE_CPU */
};
#define ADVICE_CPU (1u << 31)

/* Device memory that small allocations are cut from. */
struct chunk;

/* A variable of a module, or the part of it that lies in a region. */
struct piece {
	struct piece *next;
	uint64_t first, end; /* addresses */
	uint64_t module;
};

struct region {
	uint64_t base;
	uint64_t bytes; /* whole pages */
	uint64_t asked;
	uint64_t id;
	struct context *context; /* that was current when it was made */
	struct chunk *chunk;	 /* NULL: device memory of its own */
	unsigned char *view;	 /* where this library reads and writes its pages */
	uint64_t reached;	 /* other devices that have access, a bit each */
	bool ours;		 /* it lies in a reservation of the shim's */
	bool pooled;		 /* a memory pool's (pool_memory.h) */
	struct piece *pieces;	 /* it is of variables: only these bytes are theirs */
	unsigned attach;	 /* CU_MEM_ATTACH_… */
	uint64_t stream;	 /* with CU_MEM_ATTACH_SINGLE */
	uint64_t worked; /* if not attached to all streams: of the last work before that */
	uint64_t stream_synced;	    /* attached to one: work up to there is done in it */
	struct page_advice *advice; /* of each page; NULL: none was given */
	struct pages pages;
};

extern struct managed {
	pthread_mutex_t lock;
	const struct fault_way *way;
	struct region **regions; /* by address */
	size_t count, room;
	struct chunk *chunks;
	uint64_t last_id;
	_Atomic uint64_t low, high; /* all regions that ever were lie in there */
	_Atomic bool touched;	    /* some region has pages for managed_push */
	_Atomic bool apart;	    /* some region is, or was, not attached to all streams */
	_Atomic bool apart_devices; /* some region is, or was, not all devices' */
	_Atomic uint64_t epoch;	    /* rises with all work */
	_Atomic uint64_t worked;    /* number of the last frame that began work */
	/* The same of each context: whose work is known to be done need not be waited for. */
	_Atomic uint64_t worked_in[CONTEXT_MAX];
	_Atomic bool created; /* one that the program made worked */
} managed;

/* Does work on that stream of the program reach it? */
static inline bool region_reached(const struct region *r, uint64_t stream)
{
	return r->attach == CU_MEM_ATTACH_GLOBAL ||
	       (r->attach == CU_MEM_ATTACH_SINGLE && r->stream == stream);
}

/* With the lock held: the region around an address, or NULL. */
struct region *managed_region(uint64_t address);
/* A region of whole pages, which nobody knows yet; NULL: no memory. */
struct region *managed_region_new(struct context *context, size_t bytes, unsigned attach);
void managed_region_free(struct region *r);
/* With the lock held: makes its pages the program's. False: it has something there. */
bool managed_region_map(struct region *r);
/* With the lock held: the reverse, and frees it. The device's memory is another's. */
void managed_region_drop(struct region *r);

/* How what is new gets to the device: before work that comes later, or, where streams must not
 * be used or are held, at once by a stream of the shim's own. */
enum push { PUSH_BEFORE_WORK, PUSH_AT_ONCE };
/* With the lock held: the device gets what is new of these pages, and the program has none of
 * them. */
CUresult managed_push_pages(struct region *r, size_t first, size_t n, enum push how);
/* As sync_wait() in the context of that number (CONTEXT_NONE: in all), but prints nothing: a
 * thread that waits for a page may be in the middle of printing. SEQ may be NULL. */
CUresult managed_wait(uint16_t context, uint32_t scope, uint64_t handle, uint64_t *seq);
/* With the lock held: copies that the program got between managed_push and the work itself (the
 * call read its own arguments there) are older than what the work makes. */
void managed_evict_clean(struct region *r);
/* All work that could have touched managed memory is done, of whichever context: other devices
 * reach it too. Without the lock. */
CUresult managed_sync(void);
/* The program touched a page. On a thread of page_fault.c, and the second one only what can be
 * done without waiting: false, and nothing was done. */
void managed_touch(const struct fault *fault);
bool managed_touch_now(const struct fault *fault);

#endif
