/* SPDX-License-Identifier: Apache-2.0
 *
 * What the store says to sessions, in its order: what a worker, or a process of the node, does
 * not take at once waits here.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_TENSOR_TENSOR_OUTBOUND_H
#define VCUDA_GPU_AGENT_FRONT_TENSOR_TENSOR_OUTBOUND_H

#include <stdint.h>

#include "gpu-agent/tensor.h"

struct front;
struct pool_worker;

/* The session's worker; NULL: there is none. */
struct pool_worker *tensor_outbound_worker(struct front *front, uint64_t session);
/* To who has the message's session; nobody: it is dropped. FD stays the caller's, or is -1. */
void tensor_outbound_send(struct front *front, const struct tensor_message *message, int fd);
/* Answers that wait for the session: it may not ask for ever without reading. */
uint32_t tensor_outbound_answers(const struct front *front, uint64_t session);
/* The session is over: what waits for it goes. */
void tensor_outbound_over(struct front *front, uint64_t session);
/* Says what can be said now; the next time to look. */
uint64_t tensor_outbound_tick(struct front *front, uint64_t now);

#endif
