/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of virtual memory management share: vmm.c has addresses and physical memory,
 * vmm_map.c where the one is mapped to the other, and for whom.
 */
#ifndef VCUDA_SOFTGPU_DRIVER_MEMORY_VMM_CORE_H
#define VCUDA_SOFTGPU_DRIVER_MEMORY_VMM_CORE_H

#include "softgpu/driver/softgpu.h"

/* Physical memory that is not shared; under memory_lock. -1: not made yet. */
extern int soft_memory_file;

static inline void *vmm_pointer(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

static inline bool vmm_granular(uint64_t value)
{
	return value % GRANULE == 0;
}

static inline CUresult vmm_initialised(void)
{
	return device_initialised() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

static inline bool vmm_mapped_anywhere(uint64_t start, uint64_t size)
{
	return !ranges_free(&memory_mappings, start, size);
}

/* NULL: the handle is of none. */
struct physical *soft_physical_of(CUmemGenericAllocationHandle handle);
/* memory_lock held for writing. */
void soft_physical_unref(struct physical *physical);

#endif
