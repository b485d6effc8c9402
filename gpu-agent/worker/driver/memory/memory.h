/* SPDX-License-Identifier: Apache-2.0
 *
 * Device memory in the windows, at addresses that the shim chooses.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_DRIVER_MEMORY_MEMORY_H
#define VCUDA_GPU_AGENT_WORKER_DRIVER_MEMORY_MEMORY_H

#include "gpu-agent/worker/worker_state.h"

/* Whose window an address is in; device_count: nobody's. */
uint32_t memory_window_of(const struct worker *w, uint64_t address);
/* First granule and count of [address, address + bytes); false where it is not granules of the
 * window. */
bool memory_granules(const struct worker_device *d, uint64_t address, uint64_t bytes,
	uint64_t *first, uint64_t *count);
/* It is granules of the window, and nothing is mapped there. */
bool memory_vacant(const struct worker_device *d, uint64_t address, uint64_t bytes);
/* What of LEASE there is on the GPU. What lies beyond would fail only when it is mapped, where
 * nobody waits for the answer. */
uint64_t memory_there(struct worker *w, uint32_t device, uint64_t lease);
/* Memory within the lease, for a call that the program's thread does not wait for: where the
 * GPU has it not, within a while, the session ends with OUT_OF_MEMORY, since a kernel that uses
 * the address would fault and name no reason. */
CUresult memory_create(struct worker *w, CUmemGenericAllocationHandle *memory, uint64_t bytes,
	const CUmemAllocationProp *prop);
/* Maps memory there, which is vacant, for its own device and (where it has no name) those that
 * were given access to all of it; takes it over where it returns
 * SUCCESS. `of`: the app's own piece, else NULL. The caller counts it as used. */
CUresult memory_put(struct worker *w, uint32_t device, uint64_t address, uint64_t bytes,
	CUmemGenericAllocationHandle memory, struct vmm *of);
uint32_t memory_unmapped(struct worker *w, uint32_t device, uint64_t first);
/* Everything that may touch the session's memory is done. */
CUresult worker_drain(struct worker *w);
void vmm_unmapped(struct worker *w, struct vmm *m);
/* Where the pod has a limit: what is left of it and how much it is, from what the driver says
 * of the device. */
void memory_limited(
	const struct worker *w, uint32_t device, uint64_t *free_bytes, uint64_t *total);

#endif
