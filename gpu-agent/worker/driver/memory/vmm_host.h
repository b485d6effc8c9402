/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory with a name that is the machine's: see vmm_host.c.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_DRIVER_MEMORY_VMM_HOST_H
#define VCUDA_GPU_AGENT_WORKER_DRIVER_MEMORY_VMM_HOST_H

#include "gpu-agent/worker/worker_state.h"

struct vmm;

/* OPEN_FEATURE_HOST_MEMORY, where the driver makes such memory for each device. */
uint64_t vmm_host_feature(const struct worker *w);
/* The worker's own mapping of such memory begins there. */
bool vmm_host_at(const struct worker *w, uint64_t address);
/* M's is released and mapped nowhere; M is freed next. */
void vmm_host_closed(struct worker *w, struct vmm *m);

#endif
