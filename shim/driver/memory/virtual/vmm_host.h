/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory with a name that is the program's machine's (cuMemCreate for HOST and HOST_NUMA): a
 * file in memory, which is mapped at reserved addresses, where the program and kernels have it.
 * Its descriptor is what processes share, so that neither sidecar nor agent takes part. The
 * agent has some of its own once kernels reach it, at the same addresses; the two are kept in
 * step as a mirror is.
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_VIRTUAL_VMM_HOST_H
#define VCUDA_SHIM_DRIVER_MEMORY_VIRTUAL_VMM_HOST_H

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct host_piece;

/* What devices may do with a mapping, a bit for each CUdevice. */
struct vmm_access {
	uint64_t readers, writers; /* who writes reads, too */
	bool host;		   /* the host was let to it */
};

struct vmm_host {
	uint64_t handle; /* that of cuMemCreate */
	size_t bytes;
	int fd;
	/* Under LOCK_HOST, once kernels reach it: where the agent has it, and we. */
	uint64_t mirror;
	void *live;
};

/* Whether the agent knows of such memory. */
bool vmm_host_served(void);

/* BYTES of PROP, zero. NULL: no memory. And what another process exported: *PROP and *BYTES are
 * filled in; UNKNOWN: FD is no such memory. */
struct vmm_host *vmm_host_new(size_t bytes, const CUmemAllocationProp *prop);
CUresult vmm_host_import(
	int fd, struct vmm_host **memory, CUmemAllocationProp *prop, size_t *bytes);
CUresult vmm_host_export(const struct vmm_host *memory, int *fd);
/* It is mapped nowhere, and its handle is gone. */
void vmm_host_free(struct vmm_host *memory);

/* Maps it at AT, in DEVICE's window, for the program; and there is nothing any more. */
CUresult vmm_host_map(struct vmm_host *memory, CUdeviceptr at, int device);
void vmm_host_unmap(const struct vmm_host *memory, CUdeviceptr at, int device);

/* Such memory is mapped at an address. */
extern _Atomic uint32_t vmm_host_mappings;
bool vmm_host_there(CUdeviceptr address);
static inline bool vmm_host_at(CUdeviceptr address)
{
	return __builtin_expect(
		       atomic_load_explicit(&vmm_host_mappings, memory_order_relaxed), 0) &&
	       vmm_host_there(address);
}

/* --- for pinned/, which has LOCK_HOST --- */
/* Kernels reach the mapping from now on; INVALID_VALUE: no device may. */
CUresult vmm_host_reach(const struct host_piece *piece);
/* They do, and are let to do that. */
CUresult vmm_host_let(const struct host_piece *piece, struct vmm_access access);
/* The mapping goes. */
void vmm_host_leave(const struct host_piece *piece);

#endif
