/* SPDX-License-Identifier: Apache-2.0
 *
 * Stream-ordered memory: what was freed on a stream may be given out again on the same stream
 * at once, which is what pools are for; elsewhere it goes the way of memory.c.
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_POOLS_POOL_H
#define VCUDA_SHIM_DRIVER_MEMORY_POOLS_POOL_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

/* After a synchronisation: pools give back what is above their release threshold. */
void pool_synced(void);
/* The stream is being destroyed: what was freed on it is no stream's any more. Frames up to
 * SYNCED are known to be done in it. */
void pool_stream_gone(uint64_t stream, uint64_t synced);
/* The same for the legacy stream of a context. */
void pool_context_gone(uint16_t context);
/* cuMemFree of memory from a pool: false if it is none. */
bool pool_free(CUdeviceptr address, CUresult *status);
/* The pool that memory at BASE was allocated from; NULL: a graph's, or given back. */
CUmemoryPool pool_holding(CUdeviceptr base);
/* A context of the device is gone, and so is what has no memory any more, of hosts as well. */
void pool_reset(int device);

/* For memory of DEVICE that is no pool's: what an access of that kind is answered, and access
 * of one more kind, or of one less, of the device BY. */
CUresult pool_access_check(int device, const CUmemAccessDesc *access);
CUresult pool_reach(int device, int by, bool in);

/* Of pinned memory at BASE, of a pool: whether that gives the device access. */
bool pool_lets(CUdeviceptr base, int device);

/* Of a device; under LOCK_POOL. */
struct pool *pool_default(int device);
struct pool *pool_current(int device);

#endif
