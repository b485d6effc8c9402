/* SPDX-License-Identifier: Apache-2.0
 *
 * The free granules of a window: ranges by address, neighbours joined, found first-fit. The
 * caller locks.
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_FREE_EXTENTS_H
#define VCUDA_SHIM_DRIVER_MEMORY_FREE_EXTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FREE_EXTENTS_NONE UINT64_MAX

struct free_extent {
	uint64_t first;
	uint64_t count;
};

struct free_extents {
	struct free_extent *list;
	size_t count, room;
};

/* Makes [first, first + count) free; none of it may be free already. False: no memory to
 * remember it, so it is never used again. */
bool free_extents_put(struct free_extents *free_extents, uint64_t first, uint64_t count);
/* The first range of COUNT that fits, taken; FREE_EXTENTS_NONE: none. */
uint64_t free_extents_get(struct free_extents *free_extents, uint64_t count);
/* Where COUNT are free, not taken: at WANTED if that can be had, else the first place where
 * BASE + it is a multiple of ALIGNMENT, not 0; FREE_EXTENTS_NONE: nowhere. */
uint64_t free_extents_find(const struct free_extents *free_extents, uint64_t count,
	uint64_t wanted, uint64_t base, uint64_t alignment);
/* Takes exactly that range. False: it is not free. */
bool free_extents_get_at(struct free_extents *free_extents, uint64_t first, uint64_t count);

#endif
