/* SPDX-License-Identifier: Apache-2.0
 *
 * What the pieces of pools are made of, by kind.  Memory of a device is not given out again
 * before the worker has confirmed that (memory.h); pinned and managed memory may be another's
 * at once, so a piece of it stays with its pool until its stream is known to have come to where
 * it was freed.
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_POOLS_POOL_MEMORY_H
#define VCUDA_SHIM_DRIVER_MEMORY_POOLS_POOL_MEMORY_H

#include <cuda.h>
#include <stdbool.h>

struct pool_piece;

/* Memory for a piece of a pool and a size: its address. Without the lock. */
CUresult pool_memory_get(struct pool_piece *piece);
/* It goes back; WAIT: what may still use it is waited for. Without the lock. */
CUresult pool_memory_put(const struct pool_piece *piece, bool wait);
/* With the lock held: it went with its context, and so does what else it has. */
void pool_memory_gone(const struct pool_piece *piece);
/* False: it has gone with its context. */
bool pool_memory_lives(const struct pool_piece *piece);
/* It was freed, and may go back, or be given out on any stream of its context. */
bool pool_memory_idle(const struct pool_piece *piece);

#endif
