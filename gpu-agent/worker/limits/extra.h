/* SPDX-License-Identifier: Apache-2.0
 *
 * Device memory of a session that no mapping shows.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LIMITS_EXTRA_H
#define VCUDA_GPU_AGENT_WORKER_LIMITS_EXTRA_H

#include <cuda.h>
#include <stdint.h>

struct worker;

void extra_open(struct worker *w); /* after the driver */
CUresult extra_context(struct worker *w, uint16_t context, uint32_t device);
/* A green context, which has no memory of its own. */
void extra_green(struct worker *w, uint16_t context, uint32_t device);
void extra_context_gone(struct worker *w, uint16_t context);

/* Whose device a context is of. */
uint32_t extra_device(uint16_t context);

#endif
