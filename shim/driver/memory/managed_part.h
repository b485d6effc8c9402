/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of managed memory share: managed.c (allocations, towards the device) and
 * managed_touch.c (towards the program).
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_MANAGED_PART_H
#define VCUDA_SHIM_DRIVER_MEMORY_MANAGED_PART_H

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>

#include "shim/driver/memory/fault.h"
#include "shim/driver/memory/pages.h"

struct region {
	uint64_t base;
	uint64_t bytes; /* whole pages */
	uint64_t asked;
	uint64_t id;
	struct context *context; /* that was current when it was made */
	bool ours;		 /* it lies in a reservation of the shim's */
	struct pages pages;
};

extern struct managed {
	pthread_mutex_t lock;
	const struct fault_way *way;
	struct region **regions; /* by address */
	size_t count, room;
	uint64_t last_id;
	_Atomic bool touched;	 /* some region has pages for managed_push */
	_Atomic uint64_t epoch;	 /* rises with all work */
	_Atomic uint64_t worked; /* number of the last frame that began work */
} managed;

/* With the lock held: the region around an address, or NULL. */
struct region *managed_region(uint64_t address);
/* With the lock held: the device gets what is new of these pages, and the program has none of
 * them. */
CUresult managed_push_pages(struct region *r, size_t first, size_t n);
/* The program touched a page: on the thread of fault.c. */
void managed_touch(const struct fault *fault);

#endif
