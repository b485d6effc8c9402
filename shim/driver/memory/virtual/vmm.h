/* SPDX-License-Identifier: Apache-2.0
 *
 * Virtual memory management (vmm.c): what the rest of the shim has to do with it.
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_VIRTUAL_VMM_H
#define VCUDA_SHIM_DRIVER_MEMORY_VIRTUAL_VMM_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The device's last context was reset: nothing is mapped there any more. */
void vmm_reset(int device);

/* There is memory behind all of [address, address + bytes). */
bool vmm_mapped(CUdeviceptr address, size_t bytes);
/* And it is a device's, and cuMemSetAccess has let a device to all of it: else natively no copy
 * or fill reaches it. */
bool vmm_accessible(CUdeviceptr address, size_t bytes);
/* What it is; false: no such handle. */
bool vmm_about(CUmemGenericAllocationHandle handle, CUmemAllocationProp *prop, size_t *bytes);
/* The same of what is mapped at an address; false: nothing is. */
bool vmm_about_mapped(CUdeviceptr address, CUmemAllocationProp *prop);
/* Where that mapping begins, and how large it is; false: nothing is mapped there. */
bool vmm_mapping_at(uint64_t address, uint64_t *base, uint64_t *bytes);
/* Memory that is mapped into an array counts as mapped until it is let go. INVALID_VALUE: no
 * such handle, or no tile pool of that device. */
struct vmm_memory;
CUresult vmm_hold(CUmemGenericAllocationHandle handle, int device, struct vmm_memory **memory);
void vmm_let_go(struct vmm_memory *memory);
uint64_t vmm_handle(const struct vmm_memory *memory);
/* Another process's memory, which the agent knows by NAME, under a handle of our own. */
CUresult vmm_import(
	int device, const uint8_t name[16], size_t bytes, CUmemGenericAllocationHandle *handle);

/* The same of memory of the program's machine, by its descriptor; UNKNOWN: it is none of such.
 * And what another process gets; false: the handle is none of such. */
CUresult vmm_import_host(int fd, CUmemGenericAllocationHandle *handle);
bool vmm_export_host(CUmemGenericAllocationHandle handle, int *fd, CUresult *status);

/* A handle for a tensor (driver/tensor/tensor.c), whose memory is the agent's store's: it
 * counts against no lease. 0: no memory. Then its size, or that the agent has not given it. */
uint64_t vmm_tensor_new(int device);
void vmm_tensor_size(uint64_t handle, size_t bytes);
void vmm_tensor_none(uint64_t handle);

#endif
