/* SPDX-License-Identifier: Apache-2.0
 *
 * The _64 forms: each integer of a call, in a register or on the stack, is looked at on its
 * own. One that does not fit an int is served by NVIDIA's library and NOT_SUPPORTED by ours;
 * taken by its low half it would give the third answer.
 */
#include "tests/cublas/check.h"

enum { SIZE = 4 };

static const int64_t huge = 1ll << 32;
static cublasHandle_t handle;
static struct matrix a, b, c;

static int gemm(int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc)
{
	float alpha = 1, beta = 0;

	return cublasSgemm_v2_64(handle, 0, 0, m, n, k, &alpha, a.device, lda, b.device, ldb,
		&beta, c.device, ldc);
}

static void must(const char *what, int status, int natively)
{
	if (status != natively && status != CUBLAS_STATUS_NOT_SUPPORTED)
		DIE("%s gave %d", what, status);
}

int main(void)
{
	float result = 0, norm = 0;
	int64_t index = 0;

	BLAS(cublasCreate_v2(&handle));
	a = matrix_new(CUDA_R_32F, SIZE, SIZE);
	b = matrix_new(CUDA_R_32F, SIZE, SIZE);
	c = matrix_new(CUDA_R_32F, SIZE, SIZE);

	BLAS(gemm(SIZE, SIZE, SIZE, SIZE, SIZE, SIZE));
	must("m", gemm(huge, 1, 1, SIZE, SIZE, SIZE), CUBLAS_STATUS_INVALID_VALUE);
	must("k", gemm(1, 1, huge, SIZE, SIZE, SIZE), CUBLAS_STATUS_INVALID_VALUE);
	must("lda", gemm(1, 1, 1, huge, SIZE, SIZE), CUBLAS_STATUS_SUCCESS);
	must("ldb", gemm(1, 1, 1, SIZE, huge, SIZE), CUBLAS_STATUS_SUCCESS);
	must("ldc", gemm(1, 1, 1, SIZE, SIZE, huge), CUBLAS_STATUS_SUCCESS);
	/* Negative numbers fit. */
	BLAS_IS(gemm(-1, 1, 1, SIZE, SIZE, SIZE), CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(gemm(1, 1, 1, -1, SIZE, SIZE), CUBLAS_STATUS_INVALID_VALUE);

	BLAS(cublasSnrm2_v2_64(handle, SIZE, a.device, 1, &norm));
	BLAS(cublasSdot_v2_64(handle, SIZE, a.device, 1, a.device, 1, &result));
	if (fabsf(norm * norm - result) > 1e-4f * result)
		DIE("%g squared is not %g", (double)norm, (double)result);
	BLAS(cublasIsamax_v2_64(handle, SIZE, a.device, 1, &index));
	if (index < 1 || index > SIZE)
		DIE("the largest is number %lld", (long long)index);
	BLAS(cublasDestroy_v2(handle));
	return 0;
}
