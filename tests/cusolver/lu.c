/* SPDX-License-Identifier: Apache-2.0
 *
 * LU in all types and shapes, with and without pivots, by 32-bit and 64-bit calls; systems
 * solved with it, plain and transposed; exchanges of rows; a singular matrix; all in a stream's
 * order.
 */
#include "tests/cusolver/check.h"

static cusolverDnHandle_t handle;
static cusolverDnParams_t params;
static int *info;

static void factor(enum type t, bool wide, int m, int n, void *a, int ld, void *pivots)
{
	int words = -1;
	size_t bytes = 1, on_host = 1;
	void *work, *rest = NULL;

	if (wide) {
		SOLVER(cusolverDnXgetrf_bufferSize(handle, params, m, n, data_types[t], a, ld,
			data_types[t], &bytes, &on_host));
		work = device(bytes);
		rest = host(on_host);
		SOLVER(cusolverDnXgetrf(handle, params, m, n, data_types[t], a, ld, pivots,
			data_types[t], work, bytes, rest, on_host, info));
	} else {
		SOLVER(TYPED(t, getrf_bufferSize, handle, m, n, a, ld, &words));
		work = device((size_t)words * size_of(t));
		SOLVER(TYPED(t, getrf, handle, m, n, a, ld, work, pivots, info));
	}
	CUDA(cuCtxSynchronize());
	release(work);
	free(rest);
}

static int64_t pivot(const void *pivots, bool wide, int i)
{
	int64_t value = 0;

	CUDA(cuMemcpyDtoH(&value, (CUdeviceptr)(uintptr_t)pivots + (size_t)i * (wide ? 8 : 4),
		wide ? 8 : 4));
	return value;
}

static void swap_rows(number *a, int rows, int cols, int64_t i, int64_t j)
{
	for (int k = 0; k < cols; k++) {
		number kept = a[i + k * rows];

		a[i + k * rows] = a[j + k * rows];
		a[j + k * rows] = kept;
	}
}

/* P A = L U. */
static void shape(enum type t, int m, int n, bool wide, bool pivoting)
{
	int ld = m + 3, least = m < n ? m : n;
	number *a = some(t, m, n), *got, *lower, *upper, *back;
	void *at, *pivots = pivoting ? device((size_t)least * 8) : NULL;

	for (int i = 0; !pivoting && i < least; i++)
		a[i + i * m] += m + n;
	at = put(t, a, m, n, ld);
	factor(t, wide, m, n, at, ld, pivots);
	CHECK(!int_of(info), "getrf: info %d", int_of(info));
	got = get(t, at, m, n, ld);
	lower = triangle_of(got, m, least, true, true, m);
	upper = triangle_of(got, least, n, false, false, m);
	back = product('N', lower, 'N', upper, m, n, least);
	for (int i = 0; pivoting && i < least; i++) {
		int64_t row = pivot(pivots, wide, i) - 1;

		CHECK(row >= i && row < m, "pivot %d names row %d", i, (int)row);
		swap_rows(a, m, n, i, row);
	}
	CLOSE(t, back, a, m * n, m + n, "getrf");
	RELEASE(at);
	if (pivots)
		release(pivots);
	FREE(a, got, lower, upper, back);
}

static void solve(enum type t, int n, char op, bool wide, bool pivoting)
{
	int ld = n + 1, nrhs = 3;
	cublasOperation_t which = op == 'N'   ? CUBLAS_OP_N
				  : op == 'T' ? CUBLAS_OP_T
					      : CUBLAS_OP_C;
	number *a = some(t, n, n), *x = some(t, n, nrhs), *b, *got;
	void *at, *right, *pivots = pivoting ? device((size_t)n * 8) : NULL;

	for (int i = 0; i < n; i++)
		a[i + i * n] += n;
	b = product(op, a, 'N', x, n, nrhs, n);
	at = put(t, a, n, n, ld);
	right = put(t, b, n, nrhs, ld);
	factor(t, wide, n, n, at, ld, pivots);
	if (wide)
		SOLVER(cusolverDnXgetrs(handle, params, which, n, nrhs, data_types[t], at, ld,
			pivots, data_types[t], right, ld, info));
	else
		SOLVER(TYPED(
			t, getrs, handle, which, n, nrhs, at, ld, pivots, right, ld, info));
	got = get(t, right, n, nrhs, ld);
	CLOSE(t, got, x, n * nrhs, n, "getrs");
	RELEASE(at, right);
	if (pivots)
		release(pivots);
	FREE(a, x, b, got);
}

static void exchanges(enum type t)
{
	enum { ROWS = 6, COLS = 3 };
	const int rows[] = {2, 5, 3, 6};
	number *a = some(t, ROWS, COLS), *got;
	void *at = put(t, a, ROWS, COLS, ROWS), *pivots = device(sizeof(rows));

	CUDA(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)pivots, rows, sizeof(rows)));
	SOLVER(TYPED(t, laswp, handle, COLS, at, ROWS, 1, 4, pivots, 1));
	for (int i = 0; i < 4; i++)
		swap_rows(a, ROWS, COLS, i, rows[i] - 1);
	got = get(t, at, ROWS, COLS, ROWS);
	CHECK(!distance(got, a, ROWS * COLS), "laswp: type %d", (int)t);
	RELEASE(at, pivots);
	FREE(a, got);
}

/* The first zero on U's diagonal. */
static void singular(enum type t, bool wide)
{
	int n = 8;
	number *a = some(t, n, n);
	void *at, *pivots = device(64);

	for (int i = 0; i < n; i++)
		a[i + 5 * n] = 0;
	at = put(t, a, n, n, n);
	factor(t, wide, n, n, at, n, pivots);
	CHECK(int_of(info) == 6, "info %d of a singular matrix", int_of(info));
	RELEASE(at, pivots);
	free(a);
}

/* Copies before and after in the same stream need nothing else. */
static void in_order(void)
{
	enum { N = 48 };
	number *a = some(Z, N, N), *x = some(Z, N, 1), *b, *got = host(N * sizeof(*got));
	void *at = device(sizeof(*a) * N * N), *right = device(sizeof(*b) * N);
	void *pivots = device(N * 4), *work;
	CUstream stream, asked;
	int words;

	for (int i = 0; i < N; i++)
		a[i + i * N] += N;
	b = product('N', a, 'N', x, N, 1, N);
	CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	SOLVER(cusolverDnSetStream(handle, (cudaStream_t)stream));
	SOLVER(cusolverDnGetStream(handle, (cudaStream_t *)&asked));
	CHECK(asked == stream, "another stream");
	SOLVER(cusolverDnZgetrf_bufferSize(handle, N, N, at, N, &words));
	work = device((size_t)words * sizeof(*a));
	CUDA(cuCtxSynchronize());
	CUDA(cuMemcpyHtoDAsync((CUdeviceptr)(uintptr_t)at, a, sizeof(*a) * N * N, stream));
	CUDA(cuMemcpyHtoDAsync((CUdeviceptr)(uintptr_t)right, b, sizeof(*b) * N, stream));
	SOLVER(cusolverDnZgetrf(handle, N, N, at, N, work, pivots, info));
	SOLVER(cusolverDnZgetrs(handle, CUBLAS_OP_N, N, 1, at, N, pivots, right, N, info));
	CUDA(cuMemcpyDtoHAsync(got, (CUdeviceptr)(uintptr_t)right, sizeof(*got) * N, stream));
	CUDA(cuStreamSynchronize(stream));
	CLOSE(Z, got, x, N, N, "in a stream");
	SOLVER(cusolverDnSetStream(handle, NULL));
	CUDA(cuStreamDestroy(stream));
	RELEASE(at, right, pivots, work);
	FREE(a, x, b, got);
}

int main(void)
{
	device_begin();
	SOLVER(cusolverDnCreate(&handle));
	SOLVER(cusolverDnCreateParams(&params));
	info = device(sizeof(*info));
	EACH_TYPE(t)
	{
		EACH_SIZE(n)
		{
			if (!n)
				continue;
			for (int way = 0; way < 4; way++) {
				shape(t, n, n, way & 1, way & 2);
				shape(t, n + 5, n, way & 1, way & 2);
				shape(t, n, n + 5, way & 1, way & 2);
				for (const char *op = "NTC"; *op; op++)
					solve(t, n, *op, way & 1, way & 2);
			}
		}
		exchanges(t);
		singular(t, false);
		singular(t, true);
	}
	in_order();
	release(info);
	SOLVER(cusolverDnDestroyParams(params));
	SOLVER(cusolverDnDestroy(handle));
	printf("ok\n");
	return 0;
}
