/* SPDX-License-Identifier: Apache-2.0
 *
 * What files of memory that processes share ask of one another.
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_SHARING_SHARE_H
#define VCUDA_SHIM_DRIVER_MEMORY_SHARING_SHARE_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct pool_place;

/* What a descriptor that a program passes on holds: whose is read by its magic. */
struct share_token {
	char magic[8];
	uint8_t name[16];
	uint8_t uuid[16]; /* the device's */
	uint64_t bytes;
};

/* --- share.c --- */
/* CUmemAllocationHandleType: what memory can be passed on as; 0: nothing. */
extern const unsigned share_handles;

/* --- ipc.c: the agent's half, one question at a time --- */
/* Held over each of them. */
void share_lock(void);
void share_unlock(void);
/* A name for the memory with that handle, and back. HANDLE is ours, minted already. */
CUresult share_name(uint64_t handle, uint8_t name[16]);
CUresult share_import(uint64_t handle, int device, const uint8_t name[16], uint64_t bytes);
/* A name for the pool that no other has. */
void share_pool_name(CUmemoryPool pool, uint8_t name[16]);
/* An allocation of the pool of that name as 64 bytes that another process opens; INVALID_VALUE:
 * it was another pool's. */
CUresult share_pointer(
	CUdeviceptr address, const char magic[8], const uint8_t pool[16], void *out);
CUresult share_open_pointer(int device, const char magic[8], const uint8_t pool[16],
	const void *from, CUdeviceptr *address);
/* A number that no other process of the pod has, a fork of this one neither. It opens nothing:
 * a guessed one is refused what it could not use. */
uint64_t share_process(void);
/* Another process's memory is there. */
bool share_opened(CUdeviceptr address);
/* False: another process's memory is not there. What was opened by cuIpcOpenMemHandle is not
 * closed so: *STATUS says it. */
bool share_close_pointer(CUdeviceptr address, CUresult *status);

/* A context is gone: what was opened in it is not open any more. */
void ipc_reset(void);

/* --- pool.c --- */
/* The pool's device and whether it was made to be shared; false: no pool. */
bool pool_sharing(CUmemoryPool pool, int *device, bool *shareable, bool *imported);
/* Of one that was imported: the name by which it was. */
void pool_imported_name(CUmemoryPool pool, uint8_t name[16]);
/* A shared pool, from which nothing is allocated: the same each time for the same NAME, and
 * destroyed as often as it was imported. A name of zeroes is none. */
CUresult pool_import(
	const struct pool_place *place, const uint8_t name[16], CUmemoryPool *pool);
/* Another process may have it from now on. */
void pool_shared(CUmemoryPool pool);
/* The address is a live allocation of a pool that has been shared: that. */
bool pool_shares(CUdeviceptr address, CUmemoryPool *pool);

#endif
