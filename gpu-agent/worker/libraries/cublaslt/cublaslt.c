/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLASLt on the worker: one handle for each context (plain_shared), in the major that the app
 * uses (the next one where only that is there). Everything else comes with the frame.
 */
#include "gpu-agent/worker/libraries/cublaslt/cublaslt.h"

#include <string.h>

#include "gpu-agent/worker/libraries/common/plain.h"

/* What an address is told as where only its alignment matters: never looked at. */
#define CUBLASLT_NOWHERE 0x7f0000000000u

static const struct cublaslt_library *cublaslt_use(
	struct worker *w, struct request *r, uint64_t major, cublasLtHandle_t *handle)
{
	return plain_shared(w, r, &cublaslt_plain, (uint32_t)major, (void **)handle);
}

static CUresult cublaslt_status(struct request *r, cublasStatus_t status)
{
	return plain_status(r, &cublaslt_plain, status);
}

static CUresult cublaslt_lacks(struct worker *w, struct request *r, const char *name)
{
	return plain_without(w, r, &cublaslt_plain, name);
}

/* ---- what is asked about algorithms ---- */

static uint64_t nowhere(uint64_t alignment)
{
	return alignment && alignment < 64 ? CUBLASLT_NOWHERE + (1ull << (alignment - 1)) : 0;
}

/* A product whose addresses are known by their alignment only. */
static cublasStatus_t make_nowhere(const struct cublaslt_library *l,
	const struct cublaslt_problem *problem, const struct cublaslt_more *more,
	const uint8_t *alignments, struct cublaslt_kept *made)
{
	uint64_t pointers[CUBLASLT_POINTERS], bit_count = 0;
	struct cublaslt_more at = *more;

	for (int i = 0; i < CUBLASLT_POINTERS; i++)
		pointers[i] = nowhere(alignments[i]);
	for (int i = 0; i < CUBLASLT_MATRICES; i++)
		for (int array = 0; array < 3; array++)
			at.group[i].at[array] = nowhere(at.group[i].at[array]);
	if (problem->emulation.bit_count)
		bit_count = CUBLASLT_NOWHERE + CUBLASLT_ALIGNMENT;
	return cublaslt_make(l, problem, &at, pointers, bit_count, made);
}

/* Answers with the items that the library found, none if it failed or says that there are more
 * than it was asked for.  Returns their count. */
static uint32_t answer_list(struct request *r, cublasStatus_t status, int count,
	uint32_t wanted, const void *items, size_t size)
{
	uint32_t n = status || count < 0 || (uint32_t)count > wanted ? 0 : (uint32_t)count;
	struct wire_run run;

	memcpy(worker_out(r, &run, n * size), items, n * size);
	return n;
}

/* Of a question that says nothing more. */
static const struct cublaslt_more no_more = {
	.desc = CUBLASLT_MATMUL_MORE_DEFAULTS, .stream = CUBLASLT_NO_STREAM};

/* Whether the library lacks what the question needs: then it is refused by that name. */
static bool more_lacks(struct worker *w, struct request *r, const struct cublaslt_library *l,
	const struct cublaslt_more *more, const void *for_stream, const char *name)
{
	if (more->grouped && !l->cublasLtGroupedMatrixLayoutCreate)
		name = "cublasLtGroupedMatrixLayoutCreate";
	else if (more->stream == CUBLASLT_NO_STREAM || for_stream)
		return false;
	worker_refuse(r, cublaslt_lacks(w, r, name));
	return true;
}

static CUresult serve_heuristic(struct worker *w, struct request *r,
	const struct wire_cublasLtMatmulAlgoGetHeuristic *req, const struct cublaslt_more *more)
{
	struct wire_cublasLtMatmulAlgoGetHeuristic_reply *answer = (void *)r->answer;
	bool on_stream = more->stream != CUBLASLT_NO_STREAM;
	cublasLtMatmulHeuristicResult_t results[CUBLASLT_RESULTS_MAX];
	cublasLtMatmulPreference_t preference;
	const struct cublaslt_library *l;
	struct cublaslt_kept made;
	cublasLtHandle_t handle;
	cublasStatus_t status;
	CUstream stream = NULL;
	int count = 0;

	if (!req->wanted || req->wanted > CUBLASLT_RESULTS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	l = cublaslt_use(w, r, req->problem.major, &handle);
	if (!l || more_lacks(w, r, l, more, l->cublasLtMatmulAlgoGetHeuristicForStream,
			  "cublasLtMatmulAlgoGetHeuristicForStream"))
		return r->refused;
	if (on_stream)
		stream = worker_stream(w, r, more->stream);
	if (worker_refused(r))
		return r->refused;
	memset(results, 0, sizeof(results));
	memcpy(&results[0].algo, req->algo, sizeof(results[0].algo));
	status = make_nowhere(l, &req->problem, more, req->pointers, &made);
	if (!status)
		status = cublaslt_make_preference(
			l, &req->preference, &more->preference, &preference);
#define ASKED                                                                                  \
	handle, made.desc, made.layout[CUBLASLT_A], made.layout[CUBLASLT_B],                   \
		made.layout[CUBLASLT_C], made.layout[CUBLASLT_D]
	if (!status) {
		status = on_stream
				 ? l->cublasLtMatmulAlgoGetHeuristicForStream(ASKED, preference,
					   (int)req->wanted, results, &count, stream)
				 : l->cublasLtMatmulAlgoGetHeuristic(ASKED, preference,
					   (int)req->wanted, results, &count);
		l->cublasLtMatmulPreferenceDestroy(preference);
	}
	answer->count = answer_list(r, status, count, req->wanted, results, sizeof(results[0]));
	worker_refuse(r, cublaslt_status(r, status));
	return r->refused;
}

CUresult serve_cublasLtMatmulAlgoGetHeuristic(struct worker *w, struct request *r)
{
	return serve_heuristic(w, r, (const void *)r->body, &no_more);
}

CUresult serve_cublasLtMatmulAlgoGetHeuristicForStream(struct worker *w, struct request *r)
{
	const struct wire_cublasLtMatmulAlgoGetHeuristicForStream *req = (const void *)r->body;

	return serve_heuristic(w, r, &req->plain, &req->more);
}

static CUresult serve_check(struct worker *w, struct request *r,
	const struct wire_cublasLtMatmulAlgoCheck *req, const struct cublaslt_more *more)
{
	struct wire_cublasLtMatmulAlgoCheck_reply *answer = (void *)r->answer;
	bool on_stream = more->stream != CUBLASLT_NO_STREAM;
	const struct cublaslt_library *l;
	cublasLtMatmulAlgo_t algo;
	struct cublaslt_kept made;
	cublasLtHandle_t handle;
	cublasStatus_t status;
	CUstream stream = NULL;

	l = cublaslt_use(w, r, req->problem.major, &handle);
	if (!l)
		return r->refused;
	if (!l->cublasLtMatmulAlgoCheck)
		return cublaslt_lacks(w, r, "cublasLtMatmulAlgoCheck");
	if (more_lacks(w, r, l, more, l->cublasLtMatmulAlgoCheckForStream,
		    "cublasLtMatmulAlgoCheckForStream"))
		return r->refused;
	if (on_stream)
		stream = worker_stream(w, r, more->stream);
	if (worker_refused(r))
		return r->refused;
	memcpy(&algo, req->algo, sizeof(algo));
	status = make_nowhere(l, &req->problem, more, req->pointers, &made);
	if (!status)
		status = on_stream ? l->cublasLtMatmulAlgoCheckForStream(
					     ASKED, &algo, &answer->result, stream)
				   : l->cublasLtMatmulAlgoCheck(ASKED, &algo, &answer->result);
#undef ASKED
	return cublaslt_status(r, status);
}

CUresult serve_cublasLtMatmulAlgoCheck(struct worker *w, struct request *r)
{
	return serve_check(w, r, (const void *)r->body, &no_more);
}

CUresult serve_cublasLtMatmulAlgoCheckForStream(struct worker *w, struct request *r)
{
	const struct wire_cublasLtMatmulAlgoCheckForStream *req = (const void *)r->body;

	return serve_check(w, r, &req->plain, &req->more);
}

CUresult serve_cublasLtMatmulAlgoGetIds(struct worker *w, struct request *r)
{
	const struct wire_cublasLtMatmulAlgoGetIds *req = (const void *)r->body;
	struct wire_cublasLtMatmulAlgoGetIds_reply *answer = (void *)r->answer;
	int ids[CUBLASLT_IDS_MAX], count = 0;
	const struct cublaslt_library *l;
	cublasLtHandle_t handle;
	cublasStatus_t status;

	if (!req->wanted || req->wanted > CUBLASLT_IDS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	l = cublaslt_use(w, r, req->major, &handle);
	if (!l)
		return r->refused;
	if (!l->cublasLtMatmulAlgoGetIds)
		return cublaslt_lacks(w, r, "cublasLtMatmulAlgoGetIds");
	status = l->cublasLtMatmulAlgoGetIds(handle, req->compute, (cudaDataType)req->scale,
		(cudaDataType)req->a, (cudaDataType)req->b, (cudaDataType)req->c,
		(cudaDataType)req->d, (int)req->wanted, ids, &count);
	answer->count = answer_list(r, status, count, req->wanted, ids, sizeof(ids[0]));
	worker_refuse(r, cublaslt_status(r, status));
	return r->refused;
}

CUresult serve_cublasLtMatmulAlgoInit(struct worker *w, struct request *r)
{
	const struct wire_cublasLtMatmulAlgoInit *req = (const void *)r->body;
	struct wire_cublasLtMatmulAlgoInit_reply *answer = (void *)r->answer;
	const struct cublaslt_library *l;
	cublasLtMatmulAlgo_t algo = {0};
	cublasLtHandle_t handle;
	cublasStatus_t status;

	l = cublaslt_use(w, r, req->major, &handle);
	if (!l)
		return r->refused;
	if (!l->cublasLtMatmulAlgoInit)
		return cublaslt_lacks(w, r, "cublasLtMatmulAlgoInit");
	status = l->cublasLtMatmulAlgoInit(handle, req->compute, (cudaDataType)req->scale,
		(cudaDataType)req->a, (cudaDataType)req->b, (cudaDataType)req->c,
		(cudaDataType)req->d, req->id, &algo);
	memcpy(answer->algo, &algo, sizeof(algo));
	return cublaslt_status(r, status);
}

/* Both kinds of attributes; an algorithm's bytes are the app's, and the library checks them. */
static CUresult attribute(struct worker *w, struct request *r, bool of_config)
{
	const struct wire_cublasLtMatmulAlgoCapGetAttribute *req = (const void *)r->body;
	struct wire_cublasLtMatmulAlgoCapGetAttribute_reply *answer = (void *)r->answer;
	static _Alignas(16) unsigned char bytes[CUBLASLT_ATTRIBUTE_MAX];
	const struct cublaslt_library *l;
	cublasLtMatmulAlgo_t algo;
	cublasLtHandle_t handle;
	cublasStatus_t status;
	size_t written = 0, n = 0;
	struct wire_run run;

	if (req->bytes > sizeof(bytes) || req->from > req->bytes)
		return CUDA_ERROR_INVALID_VALUE;
	l = cublaslt_use(w, r, req->major, &handle);
	if (!l)
		return r->refused;
	if (!l->cublasLtMatmulAlgoCapGetAttribute || !l->cublasLtMatmulAlgoConfigGetAttribute)
		return cublaslt_lacks(w, r, "cublasLtMatmulAlgo…GetAttribute");
	memcpy(&algo, req->algo, sizeof(algo));
	status = of_config ? l->cublasLtMatmulAlgoConfigGetAttribute(
				     &algo, req->attribute, bytes, req->bytes, &written)
			   : l->cublasLtMatmulAlgoCapGetAttribute(
				     &algo, req->attribute, bytes, req->bytes, &written);
	if (!status && req->bytes && written <= req->bytes && written > req->from)
		n = written - req->from;
	if (n > CUBLASLT_SLICE)
		n = CUBLASLT_SLICE;
	answer->written = written;
	answer->bytes = (uint32_t)n;
	memcpy(worker_out(r, &run, n), bytes + req->from, n);
	worker_refuse(r, cublaslt_status(r, status));
	return r->refused;
}

CUresult serve_cublasLtMatmulAlgoCapGetAttribute(struct worker *w, struct request *r)
{
	return attribute(w, r, false);
}

CUresult serve_cublasLtMatmulAlgoConfigGetAttribute(struct worker *w, struct request *r)
{
	return attribute(w, r, true);
}

CUresult serve_cublasLtMatmulAlgoConfigSetAttribute(struct worker *w, struct request *r)
{
	const struct wire_cublasLtMatmulAlgoConfigSetAttribute *req = (const void *)r->body;
	struct wire_cublasLtMatmulAlgoConfigSetAttribute_reply *answer = (void *)r->answer;
	const struct cublaslt_library *l;
	cublasLtMatmulAlgo_t algo;
	cublasLtHandle_t handle;
	cublasStatus_t status;

	if (!req->bytes || req->bytes > sizeof(req->value))
		return CUDA_ERROR_INVALID_VALUE;
	l = cublaslt_use(w, r, req->major, &handle);
	if (!l)
		return r->refused;
	if (!l->cublasLtMatmulAlgoConfigSetAttribute)
		return cublaslt_lacks(w, r, "cublasLtMatmulAlgoConfigSetAttribute");
	memcpy(&algo, req->algo, sizeof(algo));
	status = l->cublasLtMatmulAlgoConfigSetAttribute(
		&algo, req->attribute, req->value, req->bytes);
	memcpy(answer->algo, &algo, sizeof(algo));
	return cublaslt_status(r, status);
}

/* ---- the library itself ---- */

CUresult serve_cublasLtGetVersion(struct worker *w, struct request *r)
{
	const struct wire_cublasLtGetVersion *req = (const void *)r->body;
	struct library_opened *answer = (void *)r->answer;
	const struct cublaslt_library *l;
	cublasLtHandle_t handle;

	l = cublaslt_use(w, r, req->major, &handle);
	if (l) {
		answer->version = (uint32_t)l->cublasLtGetVersion();
		answer->knows = CUBLASLT_KNOWS_MORE;
	}
	return r->refused;
}

CUresult serve_cublasLtHeuristicsCacheGetCapacity(struct worker *w, struct request *r)
{
	const struct wire_cublasLtHeuristicsCacheGetCapacity *req = (const void *)r->body;
	struct wire_cublasLtHeuristicsCacheGetCapacity_reply *answer = (void *)r->answer;
	const struct cublaslt_library *l;
	cublasLtHandle_t handle;
	cublasStatus_t status;
	size_t capacity = 0;

	l = cublaslt_use(w, r, req->major, &handle);
	if (!l)
		return r->refused;
	if (!l->cublasLtHeuristicsCacheGetCapacity)
		return cublaslt_lacks(w, r, "cublasLtHeuristicsCacheGetCapacity");
	status = l->cublasLtHeuristicsCacheGetCapacity(&capacity);
	answer->capacity = capacity;
	return cublaslt_status(r, status);
}

/* The cache is in this process's memory: beyond what any program has use for is no wish. */
#define CUBLASLT_CAPACITY_MAX (1u << 20)

CUresult serve_cublasLtHeuristicsCacheSetCapacity(struct worker *w, struct request *r)
{
	const struct wire_cublasLtHeuristicsCacheSetCapacity *req = (const void *)r->body;
	const struct cublaslt_library *l;
	cublasLtHandle_t handle;

	if (req->capacity > CUBLASLT_CAPACITY_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	l = cublaslt_use(w, r, req->major, &handle);
	if (!l)
		return r->refused;
	if (!l->cublasLtHeuristicsCacheSetCapacity)
		return cublaslt_lacks(w, r, "cublasLtHeuristicsCacheSetCapacity");
	return cublaslt_status(r, l->cublasLtHeuristicsCacheSetCapacity(req->capacity));
}
