/* SPDX-License-Identifier: Apache-2.0
 *
 * One thing, over and over, for who counts round trips: steady THING COUNT.  Each asks for the
 * size of its workspace every time, as PyTorch does.
 */
#include "tests/cusolver/sparse.h"

enum { N = 24 };

static cusolverDnHandle_t handle;
static void *a, *b, *values, *left, *right, *pivots, *work;
static int *info;

static void solve(void)
{
	int words;

	SOLVER(cusolverDnDgetrf_bufferSize(handle, N, N, a, N, &words));
	SOLVER(cusolverDnDgetrf(handle, N, N, a, N, work, pivots, info));
	SOLVER(cusolverDnDgetrs(handle, CUBLAS_OP_N, N, 1, a, N, pivots, b, N, info));
}

static void qr(void)
{
	int words;

	SOLVER(cusolverDnDgeqrf_bufferSize(handle, N, N, a, N, &words));
	SOLVER(cusolverDnDgeqrf(handle, N, N, a, N, values, work, words, info));
	SOLVER(cusolverDnDormqr_bufferSize(
		handle, CUBLAS_SIDE_LEFT, CUBLAS_OP_T, N, 1, N, a, N, values, b, N, &words));
	SOLVER(cusolverDnDormqr(handle, CUBLAS_SIDE_LEFT, CUBLAS_OP_T, N, 1, N, a, N, values, b,
		N, work, words, info));
}

static void eigen(void)
{
	cusolverDnParams_t params;
	size_t bytes, on_host;
	void *rest;

	SOLVER(cusolverDnCreateParams(&params));
	SOLVER(cusolverDnXsyevd_bufferSize(handle, params, CUSOLVER_EIG_MODE_VECTOR,
		CUBLAS_FILL_MODE_LOWER, N, CUDA_R_64F, a, N, CUDA_R_64F, values, CUDA_R_64F,
		&bytes, &on_host));
	rest = host(on_host);
	SOLVER(cusolverDnXsyevd(handle, params, CUSOLVER_EIG_MODE_VECTOR,
		CUBLAS_FILL_MODE_LOWER, N, CUDA_R_64F, a, N, CUDA_R_64F, values, CUDA_R_64F,
		work, bytes, rest, on_host, info));
	free(rest);
	SOLVER(cusolverDnDestroyParams(params));
}

static void svd(void)
{
	gesvdjInfo_t jacobi;
	int words;

	SOLVER(cusolverDnCreateGesvdjInfo(&jacobi));
	SOLVER(cusolverDnXgesvdjSetTolerance(jacobi, 1e-14));
	SOLVER(cusolverDnXgesvdjSetSortEig(jacobi, 1));
	SOLVER(cusolverDnDgesvdj_bufferSize(handle, CUSOLVER_EIG_MODE_VECTOR, 1, N, N, a, N,
		values, left, N, right, N, &words, jacobi));
	SOLVER(cusolverDnDgesvdj(handle, CUSOLVER_EIG_MODE_VECTOR, 1, N, N, a, N, values, left,
		N, right, N, work, words, info, jacobi));
	SOLVER(cusolverDnDestroyGesvdjInfo(jacobi));
}

/* What hands a number to the host has to wait for it. */
static void range(void)
{
	int words, found;

	SOLVER(cusolverDnDsyevdx_bufferSize(handle, CUSOLVER_EIG_MODE_NOVECTOR,
		CUSOLVER_EIG_RANGE_I, CUBLAS_FILL_MODE_LOWER, N, a, N, 0, 0, 1, 3, &found,
		values, &words));
	SOLVER(cusolverDnDsyevdx(handle, CUSOLVER_EIG_MODE_NOVECTOR, CUSOLVER_EIG_RANGE_I,
		CUBLAS_FILL_MODE_LOWER, N, a, N, 0, 0, 1, 3, &found, values, work, words,
		info));
}

/* A batch of sparse systems on a pattern that is analysed once. */
static void sparse(void)
{
	static cusolverSpHandle_t on;
	static csrqrInfo_t analysed;
	static struct sparse s;

	if (!on) {
		SOLVER(cusolverSpCreate(&on));
		s = sparse_band(D, N, N, 0, -1);
		SOLVER(cusolverSpCreateCsrqrInfo(&analysed));
		SOLVER(cusolverSpXcsrqrAnalysisBatched(
			on, N, N, s.entries, s.descriptor, s.at_rows, s.at_columns, analysed));
	}
	SOLVER(cusolverSpDcsrqrsvBatched(on, N, N, s.entries, s.descriptor, s.at, s.at_rows,
		s.at_columns, b, values, 1, analysed, work));
}

static const struct {
	const char *name;
	void (*run)(void);
} things[] = {
	{"solve", solve},
	{"qr", qr},
	{"eigen", eigen},
	{"svd", svd},
	{"range", range},
	{"sparse", sparse},
};

int main(int argc, char **argv)
{
	number *start;

	CHECK(argc == 3, "steady THING COUNT");
	device_begin();
	SOLVER(cusolverDnCreate(&handle));
	start = hermitian(D, N, false, 2 * N);
	a = put(D, start, N, N, N);
	b = device(N * N * 8);
	values = device(N * 8);
	left = device(N * N * 8);
	right = device(N * N * 8);
	pivots = device(N * 8);
	info = device(sizeof(*info));
	work = device(16 << 20);
	for (size_t i = 0; i < sizeof(things) / sizeof(*things); i++)
		for (int n = strcmp(argv[1], things[i].name) ? 0 : atoi(argv[2]); n > 0; n--)
			things[i].run();
	CUDA(cuCtxSynchronize());
	return 0;
}
