/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory with a name (vmm.c).
 */
#ifndef VCUDA_GPU_AGENT_WORKER_DRIVER_MEMORY_VMM_H
#define VCUDA_GPU_AGENT_WORKER_DRIVER_MEMORY_VMM_H

#include "gpu-agent/worker/worker_state.h"

struct vmm {
	CUmemGenericAllocationHandle memory;
	uint32_t device;
	uint32_t mappings;
	uint64_t bytes;
	bool released;
	bool shareable; /* it was made so */
	bool tile_pool; /* the same: arrays map it */
	/* The machine's memory (vmm_host.c): where the worker has it; 0: a device's. */
	uint64_t host;
	struct vmm *next_host;
	bool named; /* others may have it, by this name (ipc.c) */
	uint8_t name[16];
	/* A tensor (tensor.c): the store's memory, which counts against no lease. */
	bool is_tensor;
	bool read_only;
	uint32_t
		others; /* devices that were let to a mapping in another's window: a bit each */
	uint8_t tensor[16];
	bool waits; /* it is imported when it is mapped first: there is no `memory` yet, … */
	int fd;	    /* … but this descriptor */
	struct vmm *next_tensor;
};

/* One mapping of it is gone. */
void vmm_unmapped(struct worker *w, struct vmm *m);
/* A tensor is sealed: what is mapped of it, now and later, is for reading. */
void vmm_protect(struct worker *w, struct vmm *m);
/* Binds the session's handle to MEMORY, which is then counted and released with it. */
CUresult vmm_adopt(struct worker *w, struct request *r, uint64_t handle, uint32_t device,
	CUmemGenericAllocationHandle memory, uint64_t bytes);

#endif
