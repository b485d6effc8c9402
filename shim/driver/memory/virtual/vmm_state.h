/* SPDX-License-Identifier: Apache-2.0
 *
 * What vmm.c (memory, ranges) and vmm_map.c (mappings) both work on.
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_VIRTUAL_VMM_STATE_H
#define VCUDA_SHIM_DRIVER_MEMORY_VIRTUAL_VMM_STATE_H

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vmm_memory {
	uint64_t handle;
	size_t size;
	int device;
	unsigned references; /* the app's: create, retain */
	unsigned mappings;
	bool unleased;	       /* a tensor's */
	struct vmm_host *host; /* of the program's machine, not of the device; or NULL */
	CUmemAllocationProp prop;
};

struct vmm_mapping {
	CUdeviceptr base;
	size_t size;
	struct vmm_memory *memory;
	int device; /* whose window it is in */
	/* What that one may do: as the app has said, and at the worker, where it may read and
	 * write from the start. */
	CUmemAccess_flags own, worker;
	CUmemAccess_flags host; /* what the host was let to do, with memory of its machine */
	uint64_t peers;		/* other devices that have access, a bit for each CUdevice */
	uint64_t readers;	/* those of them that only read */
};

struct vmm {
	pthread_mutex_t lock;	      /* LOCK_VMM */
	struct vmm_mapping *mappings; /* by address */
	size_t mapping_count, mapping_room;
};
extern struct vmm vmm;

/* The first mapping that ends behind ADDRESS; that and the others with the lock held. */
size_t vmm_mapping_from(CUdeviceptr address);
/* The mappings from the I-th on that cover [ptr, ptr + size) without a gap; 0: they do not. */
size_t vmm_covering(size_t i, CUdeviceptr ptr, size_t size);
/* NULL: no such handle. */
struct vmm_memory *vmm_memory_of(CUmemGenericAllocationHandle handle);
/* It goes where neither the app nor a mapping has it any more. */
void vmm_memory_done(struct vmm_memory *m);

#endif
