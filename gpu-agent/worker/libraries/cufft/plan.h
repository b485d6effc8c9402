/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans of the library's, kept by content and context: two plans of the program that are alike
 * are one here, whose stream and work area are set for each transform.  None has a work area of
 * its own.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LIBRARIES_CUFFT_PLAN_H
#define VCUDA_GPU_AGENT_WORKER_LIBRARIES_CUFFT_PLAN_H

#include "gpu-agent/generated/cufft_library.h"
#include "gpu-agent/worker/libraries/cufft/callback.h"
#include "gpu-agent/worker/libraries/common/plain.h"

struct cufft_plan {
	struct cufft_plan *next;
	const struct cufft_library *library;
	struct cufft_whole content;
	size_t bytes; /* of the work area that it needs */
	size_t limit; /* as the library left it when it took the content's policy */
	CUstream stream;
	CUdeviceptr area;
	cufftHandle handle;
	uint32_t names; /* numbers of the program's that stand for it */
	uint64_t used;	/* the higher, the later */
	uint16_t context;
	bool stream_set;
};

/* The plan of that content in the context; NULL: there is none. */
struct cufft_plan *cufft_plan_find(uint16_t context, const struct cufft_whole *content);
/* A plan of the library's, not kept yet; the context is current. May run on any thread. NULL:
 * the library's status says why. */
struct cufft_plan *cufft_plan_make(const struct cufft_library *library,
	const struct cufft_whole *content, struct cufft_callbacks *callbacks, int *status);
/* Keeps one that was made; the plan that is kept for the content from now on. */
struct cufft_plan *cufft_plan_keep(struct worker *w, uint16_t context, struct cufft_plan *made);
/* What was made and is not kept, in its context. */
void cufft_plan_drop(struct cufft_plan *made);
/* The library's number for what only asks. */
int cufft_size(const struct cufft_library *library, const struct cufft_whole *content,
	struct cufft_callbacks *callbacks, bool estimate, size_t *bytes);
/* Destroys what no number stands for and was not used lately. */
void cufft_plans_trim(struct worker *w);
/* Those of a context that is going, and current. */
void cufft_plans_forget(uint16_t context);

#endif
