/* SPDX-License-Identifier: Apache-2.0
 *
 * Cholesky's factorization in all types and sizes: one matrix, a batch of them, by 64-bit
 * calls with parameters and without; systems solved and matrices inverted with it; a matrix
 * that is not definite.
 */
#include "tests/cusolver/check.h"

static cusolverDnHandle_t handle;
static cusolverDnParams_t params;
static int *info;

#define UPLO(LOWER) ((LOWER) ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER)

static void factor(enum type t, bool lower, bool wide, void *a, int n, int ld)
{
	int words = -1;
	size_t bytes = 1, on_host = 1;
	void *work;

	if (wide) {
		void *rest;

		SOLVER(cusolverDnXpotrf_bufferSize(handle, params, UPLO(lower), n,
			data_types[t], a, ld, data_types[t], &bytes, &on_host));
		work = device(bytes);
		rest = host(on_host);
		SOLVER(cusolverDnXpotrf(handle, params, UPLO(lower), n, data_types[t], a, ld,
			data_types[t], work, bytes, rest, on_host, info));
		CUDA(cuCtxSynchronize());
		free(rest);
	} else {
		SOLVER(TYPED(t, potrf_bufferSize, handle, UPLO(lower), n, a, ld, &words));
		work = device((size_t)words * size_of(t));
		SOLVER(TYPED(t, potrf, handle, UPLO(lower), n, a, ld, work, words, info));
	}
	CUDA(cuCtxSynchronize());
	release(work);
}

static void factor_is(enum type t, bool lower, const number *factors, const number *a, int n)
{
	number *half = triangle_of(factors, n, n, lower, false, n);
	number *back = product(lower ? 'N' : 'C', half, lower ? 'C' : 'N', half, n, n, n);

	CLOSE(t, back, a, n * n, n, "potrf");
	FREE(half, back);
}

static void one(enum type t, int n, bool lower, bool wide)
{
	int ld = n + 3, nrhs = 5, words;
	number *a = hermitian(t, n, false, n + 1), *x = some(t, n, nrhs);
	number *b = product('N', a, 'N', x, n, nrhs, n), *got, *unit = identity(n), *back;
	void *at = put(t, a, n, n, ld), *right = put(t, b, n, nrhs, ld), *work;

	factor(t, lower, wide, at, n, ld);
	CHECK(!int_of(info), "info %d", int_of(info));
	got = get(t, at, n, n, ld);
	factor_is(t, lower, got, a, n);
	free(got);

	if (wide)
		SOLVER(cusolverDnXpotrs(handle, params, UPLO(lower), n, nrhs, data_types[t], at,
			ld, data_types[t], right, ld, info));
	else
		SOLVER(TYPED(t, potrs, handle, UPLO(lower), n, nrhs, at, ld, right, ld, info));
	got = get(t, right, n, nrhs, ld);
	CLOSE(t, got, x, n * nrhs, n, "potrs");
	free(got);

	SOLVER(TYPED(t, potri_bufferSize, handle, UPLO(lower), n, at, ld, &words));
	work = device((size_t)words * size_of(t));
	SOLVER(TYPED(t, potri, handle, UPLO(lower), n, at, ld, work, words, info));
	got = get(t, at, n, n, ld);
	for (int j = 0; j < n; j++) /* the other triangle keeps what was there */
		for (int i = 0; i < n; i++)
			if (lower ? i < j : i > j)
				got[i + j * n] = conj(got[j + i * n]);
	back = product('N', got, 'N', a, n, n, n);
	CLOSE(t, back, unit, n * n, n, "potri");
	RELEASE(at, right, work);
	FREE(a, x, b, got, unit, back);
}

/* Without an object of parameters: the defaults. */
static void without_params(enum type t, int n, bool lower)
{
	cusolverDnParams_t object = params;

	params = NULL;
	one(t, n, lower, true);
	params = object;
}

/* The inverse of a triangle, and its product with itself. */
static void triangles(enum type t, int n, bool lower)
{
	int ld = n + 1, words;
	size_t bytes, on_host;
	number *a = hermitian(t, n, false, n + 1),
	       *half = triangle_of(a, n, n, lower, false, n);
	number *unit = identity(n), *got, *inverse, *back, *want;
	void *at = put(t, half, n, n, ld), *work, *rest;

	SOLVER(TYPED(t, lauum_bufferSize, handle, UPLO(lower), n, at, ld, &words));
	work = device((size_t)words * size_of(t));
	SOLVER(TYPED(t, lauum, handle, UPLO(lower), n, at, ld, work, words, info));
	got = get(t, at, n, n, ld);
	want = product(lower ? 'C' : 'N', half, lower ? 'N' : 'C', half, n, n, n);
	inverse = triangle_of(want, n, n, lower, false, n);
	CLOSE(t, got, inverse, n * n, n, "lauum");
	RELEASE(at, work);
	FREE(got, want, inverse);

	at = put(t, half, n, n, ld);
	SOLVER(cusolverDnXtrtri_bufferSize(handle, UPLO(lower), CUBLAS_DIAG_NON_UNIT, n,
		data_types[t], at, ld, &bytes, &on_host));
	work = device(bytes);
	rest = host(on_host);
	SOLVER(cusolverDnXtrtri(handle, UPLO(lower), CUBLAS_DIAG_NON_UNIT, n, data_types[t], at,
		ld, work, bytes, rest, on_host, info));
	got = get(t, at, n, n, ld);
	back = product('N', got, 'N', half, n, n, n);
	CLOSE(t, back, unit, n * n, n, "trtri");
	RELEASE(at, work);
	FREE(a, half, unit, got, back, rest);
}

enum { BATCH = 5 };

static void *array_of(void *const *at)
{
	void *array = device(BATCH * sizeof(void *));

	CUDA(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)array, at, BATCH * sizeof(void *)));
	return array;
}

static void batch(enum type t, int n, bool lower)
{
	int ld = n + 2, *infos = device(BATCH * sizeof(int));
	number *a[BATCH], *x[BATCH], *b[BATCH], *got;
	void *at[BATCH], *right[BATCH], *array, *rights;

	for (int i = 0; i < BATCH; i++) {
		a[i] = hermitian(t, n, false, n + 1);
		x[i] = some(t, n, 1);
		b[i] = product('N', a[i], 'N', x[i], n, 1, n);
		at[i] = put(t, a[i], n, n, ld);
		right[i] = put(t, b[i], n, 1, ld);
	}
	array = array_of(at);
	rights = array_of(right);
	SOLVER(TYPED(t, potrfBatched, handle, UPLO(lower), n, array, ld, infos, BATCH));
	SOLVER(TYPED(t, potrsBatched, handle, UPLO(lower), n, 1, array, ld, rights, ld, info,
		BATCH));
	CHECK(!int_of(info), "potrsBatched: info %d", int_of(info));
	for (int i = 0; i < BATCH; i++) {
		CHECK(!int_of(&infos[i]), "info %d of %d", int_of(&infos[i]), i);
		got = get(t, at[i], n, n, ld);
		factor_is(t, lower, got, a[i], n);
		free(got);
		got = get(t, right[i], n, 1, ld);
		CLOSE(t, got, x[i], n, n, "potrsBatched");
		FREE(got, a[i], b[i], x[i]);
		RELEASE(at[i], right[i]);
	}
	RELEASE(array, rights, infos);
}

/* info says which leading part is not definite. */
static void not_definite(enum type t, bool wide)
{
	int n = 9;
	number *a = hermitian(t, n, false, n + 1);
	void *at;

	a[4 + 4 * n] = -1;
	at = put(t, a, n, n, n);
	factor(t, true, wide, at, n, n);
	CHECK(int_of(info) == 5, "info %d of a matrix that is not definite", int_of(info));
	release(at);
	free(a);
}

int main(void)
{
	device_begin();
	SOLVER(cusolverDnCreate(&handle));
	SOLVER(cusolverDnCreateParams(&params));
	info = device(sizeof(*info));
	EACH_TYPE(t)
	{
		for (int lower = 0; lower < 2; lower++)
			EACH_SIZE(n)
			{
				if (!n)
					continue;
				one(t, n, lower, false);
				one(t, n, lower, true);
				without_params(t, n, lower);
				triangles(t, n, lower);
				batch(t, n, lower);
			}
		not_definite(t, false);
		not_definite(t, true);
	}
	release(info);
	SOLVER(cusolverDnDestroyParams(params));
	SOLVER(cusolverDnDestroy(handle));
	printf("ok\n");
	return 0;
}
