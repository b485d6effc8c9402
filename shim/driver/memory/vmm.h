/* SPDX-License-Identifier: Apache-2.0
 *
 * Virtual memory management (vmm.c): what the rest of the shim has to do with it.
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_VMM_H
#define VCUDA_SHIM_DRIVER_MEMORY_VMM_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The device was reset: nothing is mapped there any more. The bytes of memory that the app
 * still has a handle of. */
uint64_t vmm_reset(int device);

/* What it is; false: no such handle. */
bool vmm_about(CUmemGenericAllocationHandle handle, CUmemAllocationProp *prop, size_t *bytes);
/* Another process's memory, which the agent knows by NAME, under a handle of our own. */
CUresult vmm_import(
	int device, const uint8_t name[16], size_t bytes, CUmemGenericAllocationHandle *handle);

#endif
