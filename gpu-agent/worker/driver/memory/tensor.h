/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors with names: memory of the agent's store, mapped as memory with a name (vmm.h).
 */
#ifndef VCUDA_GPU_AGENT_WORKER_DRIVER_MEMORY_TENSOR_H
#define VCUDA_GPU_AGENT_WORKER_DRIVER_MEMORY_TENSOR_H

#include "gpu-agent/worker/worker_state.h"

struct vmm;

/* M, which waits, is about to be mapped: imports it. */
CUresult tensor_import(struct worker *w, struct vmm *m);
/* M waits no more: it is imported, or released next. */
void tensor_descriptor_close(struct vmm *m);
/* A tensor's memory is released and mapped nowhere; M is freed next. */
void tensor_closed(struct worker *w, struct vmm *m);

#endif
