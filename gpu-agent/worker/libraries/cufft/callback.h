/* SPDX-License-Identifier: Apache-2.0
 *
 * Callbacks of plans, as they came in pieces: a set for each plan that has some.  A plan that
 * is being made beside the loop holds its set.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LIBRARIES_CUFFT_CALLBACK_H
#define VCUDA_GPU_AGENT_WORKER_LIBRARIES_CUFFT_CALLBACK_H

#include "gpu-agent/generated/cufft_library.h"

struct cufft_callbacks;

/* The next piece; its bytes follow the body. A status of the library's. */
int cufft_callbacks_add(uint16_t context, const struct wire_cufftXtSetJITCallback *body,
	const void *piece, uint64_t bytes);
/* The set of that number in the context, held; NULL: there is none. */
struct cufft_callbacks *cufft_callbacks_get(uint16_t context, uint32_t number);
/* SET: or NULL. On the loop, or in its place. */
void cufft_callbacks_put(struct cufft_callbacks *set);
/* The plan that it was for is gone. */
void cufft_callbacks_end(uint16_t context, uint32_t number);
void cufft_callbacks_forget(uint16_t context);
/* Tells the library of them, before it makes the plan; a status of its own. */
int cufft_callbacks_set(
	const struct cufft_library *library, cufftHandle plan, struct cufft_callbacks *set);

#endif
