/* SPDX-License-Identifier: Apache-2.0
 *
 * GPUs that have fallen: what lay in their memory is lost, and the store marks the tensors
 * there.  A session's worker runs a tenant's code, so its word makes the front look, by workers
 * that have none, and no more.  What NVML says, and what a new worker finds, counts.  Sessions
 * get the other GPUs; a new worker looks now and then whether one is of use again.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_TENSOR_FALLEN_H
#define VCUDA_GPU_AGENT_FRONT_TENSOR_FALLEN_H

#include "gpu-agent/control.h"
#include "gpu-agent/handoff.h"

struct front;
struct pool_worker;

/* Whether an error is one of the GPU itself, and not of what a program did. */
bool fallen_status(uint32_t status);
/* A session's worker met such an error: those that wait are replaced. */
void fallen_doubt(struct front *front);
/* Whether a worker that has got ready was started before that: it is replaced, too. */
bool fallen_late(struct front *front, struct pool_worker *worker);
/* A new worker could not get ready; or it has, with those devices. */
void fallen_failed(struct front *front, const struct handoff *h);
void fallen_ready(struct front *front, const struct handoff *h);
/* The ledger has other GPUs than before, those of H. */
void fallen_others(struct front *front, const struct handoff *h);
/* Bit d: GPU d has fallen. */
uint32_t fallen_gpus(const struct front *front);
/* Has them looked at; when to call again. */
uint64_t fallen_tick(struct front *front, uint64_t now);
/* The meter's, of GPU. */
void fallen_metered(struct front *front, uint32_t gpu, const struct control_gpu *meter);
/* The store is another one: it hears what has fallen. */
void fallen_tell(struct front *front);

#endif
