/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker that has no session fetches a tensor from another agent, or sends it one
 * (protocol/wire/tensor_copy.h).  It blocks, with deadlines, and is fit for the next copy or a
 * session behind it: nothing of a tenant's ran, and what went through its memory is wiped.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_DIRECT_TENSOR_COPY_H
#define VCUDA_GPU_AGENT_WORKER_DIRECT_TENSOR_COPY_H

#include <stdbool.h>

#include "gpu-agent/tensor.h"

struct worker;

/* FILL or SPILL, with MEMORY, which is taken; the connection comes behind it. False: the agent
 * is gone. */
bool tensor_copy_run(struct worker *w, const struct tensor_message *message, int memory);

#endif
