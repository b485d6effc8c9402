/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLAS's products in groups: the frame's lists become those that the library takes.
 */
#include <string.h>

#include "gpu-agent/generated/cublas_library.h"
#include "gpu-agent/worker/libraries/common/plain.h"
#include "gpu-agent/worker/worker.h"

/* One column of the shapes. */
#define COLUMN(MEMBER)                                                                         \
	for (uint32_t i = 0; i < n; i++)                                                       \
	lists.MEMBER[i] = shapes[i].MEMBER

CUresult serve_cublasGemmGroupedBatchedEx(struct worker *w, struct request *r)
{
	const struct wire_cublasGemmGroupedBatchedEx *req = (const void *)r->body;
	static struct { /* the worker is one thread */
		int transa[CUBLAS_GROUPS_MAX], transb[CUBLAS_GROUPS_MAX];
		int m[CUBLAS_GROUPS_MAX], n[CUBLAS_GROUPS_MAX], k[CUBLAS_GROUPS_MAX];
		int lda[CUBLAS_GROUPS_MAX], ldb[CUBLAS_GROUPS_MAX], ldc[CUBLAS_GROUPS_MAX];
		int size[CUBLAS_GROUPS_MAX];
		_Alignas(16) unsigned char alpha[8 * CUBLAS_GROUPS_MAX];
		_Alignas(16) unsigned char beta[8 * CUBLAS_GROUPS_MAX];
	} lists;
	uint32_t n = req->groups, each;
	const struct cublas_library *lib;
	struct plain_served *s;
	const struct cublas_group_scalars *scalars;
	const struct cublas_group *shapes;
	const uint64_t *places;
	const void *const *a, *const *b;
	void *const *c;
	int status;

	if (!n || n > CUBLAS_GROUPS_MAX || req->which > CUBLAS_GROUPED_D ||
		req->state.word[cublas_plain.pointer_mode] != LIBRARY_POINTERS_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	shapes = worker_in(r, &req->shapes, (uint64_t)n * sizeof(*shapes));
	scalars = worker_in(r, &req->scalars, (uint64_t)n * sizeof(*scalars));
	places = worker_in(r, &req->places, 3 * sizeof(*places));
	s = plain_use(w, r, &cublas_plain, &req->state);
	if (!s || worker_refused(r))
		return r->refused;
	lib = s->library;
	each = req->which == CUBLAS_GROUPED_S ? sizeof(float)
	       : req->which == CUBLAS_GROUPED_D
		       ? sizeof(double)
		       : cublas_compute_bytes(req->compute, (cudaDataType)req->c_type);
	if (each > sizeof(uint64_t))
		return CUDA_ERROR_INVALID_VALUE;
	COLUMN(transa);
	COLUMN(transb);
	COLUMN(m);
	COLUMN(n);
	COLUMN(k);
	COLUMN(lda);
	COLUMN(ldb);
	COLUMN(ldc);
	COLUMN(size);
	for (uint32_t i = 0; i < n; i++) {
		memcpy(lists.alpha + (size_t)i * each, &scalars[i].alpha, each);
		memcpy(lists.beta + (size_t)i * each, &scalars[i].beta, each);
	}
	a = (const void *const *)(uintptr_t)places[0];
	b = (const void *const *)(uintptr_t)places[1];
	c = (void *const *)(uintptr_t)places[2];
	switch (req->which) {
	case CUBLAS_GROUPED_S:
		if (!lib->cublasSgemmGroupedBatched)
			return plain_lacks(w, r, s, "cublasSgemmGroupedBatched");
		status = lib->cublasSgemmGroupedBatched(s->handle, lists.transa, lists.transb,
			lists.m, lists.n, lists.k, (const float *)lists.alpha,
			(const float *const *)a, lists.lda, (const float *const *)b, lists.ldb,
			(const float *)lists.beta, (float *const *)c, lists.ldc, (int)n,
			lists.size);
		break;
	case CUBLAS_GROUPED_D:
		if (!lib->cublasDgemmGroupedBatched)
			return plain_lacks(w, r, s, "cublasDgemmGroupedBatched");
		status = lib->cublasDgemmGroupedBatched(s->handle, lists.transa, lists.transb,
			lists.m, lists.n, lists.k, (const double *)lists.alpha,
			(const double *const *)a, lists.lda, (const double *const *)b,
			lists.ldb, (const double *)lists.beta, (double *const *)c, lists.ldc,
			(int)n, lists.size);
		break;
	default:
		if (!lib->cublasGemmGroupedBatchedEx)
			return plain_lacks(w, r, s, "cublasGemmGroupedBatchedEx");
		status = lib->cublasGemmGroupedBatchedEx(s->handle, lists.transa, lists.transb,
			lists.m, lists.n, lists.k, lists.alpha, a, (cudaDataType)req->a_type,
			lists.lda, b, (cudaDataType)req->b_type, lists.ldb, lists.beta, c,
			(cudaDataType)req->c_type, lists.ldc, (int)n, lists.size, req->compute);
	}
	return plain_answer(w, r, s, status);
}
