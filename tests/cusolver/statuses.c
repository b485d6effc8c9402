/* SPDX-License-Identifier: Apache-2.0
 *
 * What NVIDIA's documentation says of wrong arguments: sizes, leading dimensions, handles,
 * objects of parameters; and of matrices without elements. Not all that it says is so:
 * cusolverDnSpotrf_bufferSize takes a size of -1, and cusolverDnSgeqrf launches its kernels for
 * -1 rows, which fails (H200, 2026-11-23), so that is not asked.
 */
#include "tests/cusolver/check.h"

#define WRONG CUSOLVER_STATUS_INVALID_VALUE

static cusolverDnHandle_t handle;
static cusolverDnParams_t params;

static void sizes_and_dimensions(enum type t)
{
	int words = 0;
	void *a = device(64 * 16), *work = device(4096 * 16), *info = device(8),
	     *pivots = device(64);
	/* A library that lets a wrong call through would use them. */
	const int order[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	const cublasFillMode_t lower = CUBLAS_FILL_MODE_LOWER;

	CUDA(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)pivots, order, sizeof(order)));
	SOLVER(TYPED(t, potrf_bufferSize, handle, lower, -1, a, 8, &words));
	EXPECTED(TYPED(t, potrf_bufferSize, handle, lower, 8, a, 7, &words), WRONG);
	EXPECTED(TYPED(t, potrf, handle, lower, -1, a, 8, work, 4096, info), WRONG);
	EXPECTED(TYPED(t, potrf, handle, lower, 8, a, 7, work, 4096, info), WRONG);
	EXPECTED(TYPED(t, potrs, handle, lower, 8, -1, a, 8, a, 8, info), WRONG);
	EXPECTED(TYPED(t, potrs, handle, lower, 8, 1, a, 8, a, 7, info), WRONG);
	EXPECTED(TYPED(t, getrf_bufferSize, handle, -1, 8, a, 8, &words), WRONG);
	EXPECTED(TYPED(t, getrf, handle, 8, 8, a, 7, work, pivots, info), WRONG);
	EXPECTED(TYPED(t, getrs, handle, CUBLAS_OP_N, 8, 1, a, 8, pivots, a, 7, info), WRONG);
	EXPECTED(TYPED(t, geqrf_bufferSize, handle, 8, 8, a, 7, &words), WRONG);
	EXPECTED(TYPED2(t, syevd_bufferSize, heevd_bufferSize, handle, CUSOLVER_EIG_MODE_VECTOR,
			 lower, 8, a, 7, a, &words),
		WRONG);
	EXPECTED(
		TYPED2(t, orgqr_bufferSize, ungqr_bufferSize, handle, 4, 5, 4, a, 8, a, &words),
		WRONG);
	RELEASE(a, work, info, pivots);
}

/* Nothing is there, and nothing is wrong. */
static void nothing(enum type t)
{
	int words = -1, *info = device(sizeof(*info)), seven = 7;
	void *a = device(16), *work;

	SOLVER(TYPED(t, potrf_bufferSize, handle, CUBLAS_FILL_MODE_UPPER, 0, a, 1, &words));
	CHECK(words >= 0, "a workspace of %d", words);
	work = device((size_t)words * size_of(t) + 64);
	CUDA(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)info, &seven, sizeof(seven)));
	EXPECTED(TYPED(t, potrf, handle, CUBLAS_FILL_MODE_UPPER, 0, a, 1, work, words, info),
		CUSOLVER_STATUS_SUCCESS);
	EXPECTED(TYPED(t, potrs, handle, CUBLAS_FILL_MODE_UPPER, 0, 0, a, 1, a, 1, info),
		CUSOLVER_STATUS_SUCCESS);
	CUDA(cuCtxSynchronize());
	RELEASE(a, work, info);
}

static void objects(void)
{
	syevjInfo_t syevj;
	gesvdjInfo_t gesvdj;
	cusolverDeterministicMode_t mode;
	size_t bytes, on_host;
	int value = -1, major = -1;
	void *a = device(64 * 8);

	EXPECTED(cusolverDnDgetrf_bufferSize(NULL, 8, 8, a, 8, &value),
		CUSOLVER_STATUS_NOT_INITIALIZED);
	SOLVER(cusolverGetVersion(&value));
	SOLVER(cusolverGetProperty(MAJOR_VERSION, &major));
	CHECK(value / 1000 == major && major >= 11, "version %d, major %d", value, major);

	SOLVER(cusolverDnSetDeterministicMode(
		handle, CUSOLVER_ALLOW_NON_DETERMINISTIC_RESULTS));
	SOLVER(cusolverDnGetDeterministicMode(handle, &mode));
	CHECK(mode == CUSOLVER_ALLOW_NON_DETERMINISTIC_RESULTS, "mode %d", (int)mode);
	SOLVER(cusolverDnSetDeterministicMode(handle, CUSOLVER_DETERMINISTIC_RESULTS));

	SOLVER(cusolverDnSetAdvOptions(params, CUSOLVERDN_GETRF, CUSOLVER_ALG_0));
	EXPECTED(cusolverDnXpotrf_bufferSize(handle, params, CUBLAS_FILL_MODE_LOWER, 8,
			 CUDA_R_64F, a, 7, CUDA_R_64F, &bytes, &on_host),
		WRONG);
	SOLVER(cusolverDnCreateSyevjInfo(&syevj));
	SOLVER(cusolverDnCreateGesvdjInfo(&gesvdj));
	SOLVER(cusolverDnDestroySyevjInfo(syevj));
	SOLVER(cusolverDnDestroyGesvdjInfo(gesvdj));
	release(a);
}

int main(void)
{
	device_begin();
	SOLVER(cusolverDnCreate(&handle));
	SOLVER(cusolverDnCreateParams(&params));
	EACH_TYPE(t)
	{
		sizes_and_dimensions(t);
		nothing(t);
	}
	objects();
	SOLVER(cusolverDnDestroyParams(params));
	SOLVER(cusolverDnDestroy(handle));
	printf("ok\n");
	return 0;
}
