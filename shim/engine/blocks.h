/* SPDX-License-Identifier: Apache-2.0
 *
 * A region cut into units, with one bit a unit: finds runs of free units first-fit.  Bounce
 * buffers, slabs of device memory and of pinned memory are all cut with it.  The caller locks.
 */
#ifndef VCUDA_SHIM_ENGINE_BLOCKS_H
#define VCUDA_SHIM_ENGINE_BLOCKS_H

#include <stdint.h>

#define BLOCKS_MAX 4096u
#define BLOCKS_NONE UINT32_MAX

struct blocks {
	uint32_t count;	  /* units, <= BLOCKS_MAX */
	uint32_t free;	  /* units that are free */
	uint32_t longest; /* no run of free units is longer than this; may be less tight */
	uint32_t lowest;  /* no unit below it is free */
	uint64_t used[BLOCKS_MAX / 64];
};

void blocks_init(struct blocks *blocks, uint32_t count);
/* There are COUNT units from now on, no fewer than before; the new ones are free. */
void blocks_extend(struct blocks *blocks, uint32_t count);
/* The first unit of N free ones in a row, now taken; BLOCKS_NONE where there is no such run. */
uint32_t blocks_alloc(struct blocks *blocks, uint32_t n);
/* [first, first + n) must be taken. */
void blocks_free(struct blocks *blocks, uint32_t first, uint32_t n);

#endif
