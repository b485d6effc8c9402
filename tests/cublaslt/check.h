/* SPDX-License-Identifier: Apache-2.0
 *
 * What the cuBLASLt programs share beside tests/cublas/check.h: a product as data, and its
 * descriptors.
 */
#ifndef TESTS_CUBLASLT_CHECK_H
#define TESTS_CUBLASLT_CHECK_H

#include "protocol/generated/cublaslt_api.h"
#include "tests/cublas/check.h"

enum { TF32 = 77, F32 = 68, F64 = 70, I32 = 72 }; /* cublasComputeType_t */

struct descs {
	cublasLtMatmulDesc_t op;
	cublasLtMatrixLayout_t a, b, c, d;
	cublasLtMatmulPreference_t pref;
};

#define SET_OP(DESCS, NAME, VALUE)                                                             \
	BLAS(cublasLtMatmulDescSetAttribute(                                                   \
		(DESCS)->op, CUBLASLT_MATMUL_DESC_##NAME, &(VALUE), sizeof(VALUE)))
#define SET_LAYOUT(LAYOUT, NAME, VALUE)                                                        \
	BLAS(cublasLtMatrixLayoutSetAttribute(                                                 \
		LAYOUT, CUBLASLT_MATRIX_LAYOUT_##NAME, &(VALUE), sizeof(VALUE)))

/* op(A) is m by k, op(B) k by n; all of them column after column, without gaps. */
static inline struct descs descs_new(int compute, cudaDataType scale, cudaDataType in,
	cudaDataType out, int ta, int tb, int m, int n, int k)
{
	struct descs d;
	size_t workspace = 1 << 20;

	BLAS(cublasLtMatmulDescCreate(&d.op, compute, scale));
	SET_OP(&d, TRANSA, ta);
	SET_OP(&d, TRANSB, tb);
	BLAS(cublasLtMatrixLayoutCreate(
		&d.a, in, (uint64_t)(ta ? k : m), (uint64_t)(ta ? m : k), ta ? k : m));
	BLAS(cublasLtMatrixLayoutCreate(
		&d.b, in, (uint64_t)(tb ? n : k), (uint64_t)(tb ? k : n), tb ? n : k));
	BLAS(cublasLtMatrixLayoutCreate(&d.c, out, (uint64_t)m, (uint64_t)n, m));
	BLAS(cublasLtMatrixLayoutCreate(&d.d, out, (uint64_t)m, (uint64_t)n, m));
	BLAS(cublasLtMatmulPreferenceCreate(&d.pref));
	BLAS(cublasLtMatmulPreferenceSetAttribute(d.pref,
		CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace)));
	return d;
}

static inline void descs_free(struct descs *d)
{
	BLAS(cublasLtMatmulDescDestroy(d->op));
	BLAS(cublasLtMatrixLayoutDestroy(d->a));
	BLAS(cublasLtMatrixLayoutDestroy(d->b));
	BLAS(cublasLtMatrixLayoutDestroy(d->c));
	BLAS(cublasLtMatrixLayoutDestroy(d->d));
	BLAS(cublasLtMatmulPreferenceDestroy(d->pref));
}

/* The best algorithm; its status where there is none. */
static inline int descs_algo(
	cublasLtHandle_t handle, const struct descs *d, cublasLtMatmulHeuristicResult_t *best)
{
	int count = 0;
	int status = cublasLtMatmulAlgoGetHeuristic(
		handle, d->op, d->a, d->b, d->c, d->d, d->pref, 1, best, &count);

	if (!status && !count)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	return status ? status : best->state;
}

#endif
