/* SPDX-License-Identifier: Apache-2.0
 *
 * What a pool says that it has reserved.  NVIDIA's pools take memory in units of 32 MiB, one
 * behind the other, lay allocations out in them first-fit, and give back the units that nothing
 * lies in (seen on an H200, driver 580).  Ours give each allocation memory of its own, so this
 * is reckoned: the same requests, laid out in the same way.  The caller locks.
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_POOLS_POOL_UNITS_H
#define VCUDA_SHIM_DRIVER_MEMORY_POOLS_POOL_UNITS_H

#include <stddef.h>
#include <stdint.h>

#include "shim/driver/memory/free_extents.h"

#define POOL_UNIT (32ull << 20)

struct pool_units {
	struct free_extents free; /* of the pool's places, in granules */
	uint32_t *lying;	  /* for each unit: how many allocations lie in it, … */
	bool *held;		  /* … and whether the pool holds it */
	size_t room;		  /* of both */
	size_t holds, idle;	  /* units that it holds; of those, such as nothing lies in */
};

/* The place of an allocation of BYTES (not 0); FREE_EXTENTS_NONE: no memory to remember it. */
uint64_t pool_units_alloc(struct pool_units *units, size_t bytes);
/* What pool_units_alloc gave, with its bytes, is free again; its units stay held. */
void pool_units_free(struct pool_units *units, uint64_t place, size_t bytes);
/* Gives idle units back, as long as those that are still held have at least KEEP bytes. */
void pool_units_trim(struct pool_units *units, uint64_t keep);

#endif
