/* SPDX-License-Identifier: Apache-2.0
 *
 * The free granules of a window: ranges by address, neighbours joined, found first-fit. The
 * caller locks.
 */
#ifndef VCUDA_SHIM_HOLES_H
#define VCUDA_SHIM_HOLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOLES_NONE UINT64_MAX

struct hole {
	uint64_t first;
	uint64_t count;
};

struct holes {
	struct hole *list;
	size_t count, room;
};

/* Makes [first, first + count) free; none of it may be free already. False: no memory to
 * remember it, so it is never used again. */
bool holes_give(struct holes *holes, uint64_t first, uint64_t count);
/* The first range of COUNT that fits, taken; HOLES_NONE: none. */
uint64_t holes_take(struct holes *holes, uint64_t count);
/* Takes exactly that range. False: it is not free. */
bool holes_take_at(struct holes *holes, uint64_t first, uint64_t count);

#endif
