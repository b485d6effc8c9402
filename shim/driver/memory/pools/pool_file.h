/* SPDX-License-Identifier: Apache-2.0
 *
 * Pools of pinned memory that processes share: a file in memory, whose pages are the pool's.
 * Its descriptor is what a program passes on, so that neither sidecar nor agent takes part;
 * to them such memory is as if each process had registered it.
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_POOLS_POOL_FILE_H
#define VCUDA_SHIM_DRIVER_MEMORY_POOLS_POOL_FILE_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct pool;
struct pool_piece;

/* The file of a new pool, which has a name already. False: no memory. */
bool pool_file_make(struct pool *pool);
/* Memory for a piece: address, id and place. Without the lock. */
CUresult pool_file_get(struct pool_piece *piece);
/* With the lock of pools held: the piece is gone, and is mapped no more. */
void pool_file_put(const struct pool_piece *piece);
/* The same: the pool is destroyed; what was given out keeps the file. */
void pool_file_leave(struct pool *pool);

/* --- for share.c --- */
/* False: the pool has none. */
bool pool_file_is(CUmemoryPool pool);
/* A descriptor for another process, and what came from one; UNKNOWN: it is no pool's file. */
CUresult pool_file_export(CUmemoryPool pool, int *fd);
CUresult pool_file_import(int fd, CUmemoryPool *pool);
/* A live piece as 64 bytes, and that of an imported pool; INVALID_VALUE: it is another's. */
CUresult pool_file_tell(CUmemoryPool pool, CUdeviceptr address, void *out);
CUresult pool_file_open(CUmemoryPool pool, const void *from, CUdeviceptr *address);

#endif
