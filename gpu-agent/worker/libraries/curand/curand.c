/* SPDX-License-Identifier: Apache-2.0
 *
 * What is written by hand of cuRAND on the worker: its version, its tables, and distributions,
 * which are device memory of the library's that kernels read.
 */
#include <stdlib.h>

#include "gpu-agent/generated/curand_library.h"
#include "gpu-agent/worker/libraries/common/plain.h"
#include "gpu-agent/worker/worker_state.h"

#define DISTRIBUTIONS 1024 /* at once */

/* Of the session: only what was made may be destroyed. */
static curandDiscreteDistribution_t distributions[DISTRIBUTIONS];

CUresult serve_curandGetVersion(struct worker *w, struct request *r)
{
	const struct wire_curandGetVersion *req = (const void *)r->body;
	struct wire_curandGetVersion_reply *answer = (void *)r->answer;
	const struct curand_library *l = plain_open(w, r, &curand_plain, req->major);

	if (!l)
		return r->refused;
	if (!l->curandGetVersion)
		return worker_lacks(w, "curandGetVersion");
	answer->plain.status = (uint32_t)l->curandGetVersion(&answer->version);
	return CUDA_SUCCESS;
}

static int table_of(const struct curand_library *l, uint32_t table, const void **from)
{
	curandDirectionVectors32_t *vectors32 = NULL;
	curandDirectionVectors64_t *vectors64 = NULL;
	unsigned int *constants32 = NULL;
	unsigned long long *constants64 = NULL;
	int status = CURAND_STATUS_INTERNAL_ERROR;

	switch (table) {
	case CURAND_VECTORS_32:
	case CURAND_SCRAMBLED_VECTORS_32:
		if (l->curandGetDirectionVectors32)
			status = l->curandGetDirectionVectors32(&vectors32, (int)table);
		*from = vectors32;
		return status;
	case CURAND_VECTORS_64:
	case CURAND_SCRAMBLED_VECTORS_64:
		if (l->curandGetDirectionVectors64)
			status = l->curandGetDirectionVectors64(&vectors64, (int)table);
		*from = vectors64;
		return status;
	case CURAND_CONSTANTS_32:
		if (l->curandGetScrambleConstants32)
			status = l->curandGetScrambleConstants32(&constants32);
		*from = constants32;
		return status;
	default:
		if (l->curandGetScrambleConstants64)
			status = l->curandGetScrambleConstants64(&constants64);
		*from = constants64;
		return status;
	}
}

CUresult serve_curandGetDirectionVectors32(struct worker *w, struct request *r)
{
	const struct wire_curandGetDirectionVectors32 *req = (const void *)r->body;
	struct wire_curandGetDirectionVectors32_reply *answer = (void *)r->answer;
	uint64_t bytes = curand_table_bytes(req->table);
	const struct curand_library *l;
	const void *from = NULL;
	CUdeviceptr to;

	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	to = worker_range(w, r, req->address, bytes);
	l = plain_open(w, r, &curand_plain, req->major);
	if (!l || worker_refused(r))
		return r->refused;
	answer->plain.status = (uint32_t)table_of(l, req->table, &from);
	if (answer->plain.status || !from)
		return CUDA_SUCCESS;
	return w->cuda.cuMemcpyHtoD_v2(to, from, bytes);
}

CUresult serve_curandCreatePoissonDistribution(struct worker *w, struct request *r)
{
	const struct wire_curandCreatePoissonDistribution *req = (const void *)r->body;
	struct wire_curandCreatePoissonDistribution_reply *answer = (void *)r->answer;
	const struct curand_library *l = plain_open(w, r, &curand_plain, req->major);
	unsigned at = 0;

	if (!l)
		return r->refused;
	if (!l->curandCreatePoissonDistribution || !l->curandDestroyDistribution)
		return worker_lacks(w, "curandCreatePoissonDistribution");
	while (at < DISTRIBUTIONS && distributions[at])
		at++;
	if (at == DISTRIBUTIONS) {
		answer->plain.status = CURAND_STATUS_ALLOCATION_FAILED;
		return CUDA_SUCCESS;
	}
	answer->plain.status =
		(uint32_t)l->curandCreatePoissonDistribution(req->lambda, &distributions[at]);
	if (answer->plain.status)
		distributions[at] = NULL;
	answer->distribution = (uint64_t)(uintptr_t)distributions[at];
	return CUDA_SUCCESS;
}

CUresult serve_curandDestroyDistribution(struct worker *w, struct request *r)
{
	const struct wire_curandDestroyDistribution *req = (const void *)r->body;
	struct wire_curandDestroyDistribution_reply *answer = (void *)r->answer;
	const struct curand_library *l = plain_open(w, r, &curand_plain, req->major);

	if (!l)
		return r->refused;
	answer->plain.status = CURAND_STATUS_NOT_INITIALIZED;
	for (unsigned i = 0; req->distribution && i < DISTRIBUTIONS; i++) {
		if ((uint64_t)(uintptr_t)distributions[i] != req->distribution)
			continue;
		answer->plain.status = (uint32_t)l->curandDestroyDistribution(distributions[i]);
		distributions[i] = NULL;
	}
	return CUDA_SUCCESS;
}
