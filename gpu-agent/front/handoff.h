/* SPDX-License-Identifier: Apache-2.0
 *
 * What handoff.c (what workers say) and worker_pool.c (which workers there are) have of each
 * other.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_HANDOFF_H
#define VCUDA_GPU_AGENT_FRONT_HANDOFF_H

#include <stdint.h>

#include "gpu-agent/front/worker_pool.h"

/* The callback of a worker's socket. */
void handoff_ready(struct watch *watch, uint32_t mask);
/* One message; *FD came with it, and is -1 where it was taken. */
void handoff_handle(
	struct front *front, struct pool_worker *worker, struct handoff *h, int *fd);

void pool_set_state(struct front *front, struct pool_worker *worker, enum worker_state state);
/* Workers that are asked for or not ready yet. */
uint32_t pool_starting(const struct pool *pool);
/* A start came to nothing: says why once, tells who waits, tries again later. */
void pool_failed(struct front *front, const char *text);
/* The worker is to be gone within MS; the supervisor sees to it. */
void pool_expect_end(struct front *front, struct pool_worker *worker, uint32_t ms);

#endif
