/* SPDX-License-Identifier: Apache-2.0
 *
 * Symmetric eigenvalue problems in all types: by the 32-bit and 64-bit calls, these with
 * parameters and without, by Jacobi's method, in batches, in part, and of pairs of matrices of
 * all three kinds.
 */
#include "tests/cusolver/check.h"

static cusolverDnHandle_t handle;
static cusolverDnParams_t params;
static syevjInfo_t jacobi;
static int *info;

#define UPLO(LOWER) ((LOWER) ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER)
#define VECTORS CUSOLVER_EIG_MODE_VECTOR

static void *work_of(enum type t, int words)
{
	return device((size_t)words * size_of(t));
}

static void done(void *work, const char *what)
{
	CUDA(cuCtxSynchronize());
	CHECK(!int_of(info), "%s: info %d", what, int_of(info));
	release(work);
}

/* As near as the type can come: for 1e-16 NVIDIA's turns floats in vain, and info is n + 1
 * (H200, 2026-11-23). */
static void jacobi_for(enum type t)
{
	SOLVER(cusolverDnXsyevjSetTolerance(jacobi, real_of(t) == S ? 1e-6 : 1e-14));
}

enum how { PLAIN, WIDE, JACOBI };

static void solve(enum type t, enum how how, bool lower, int n, void *a, int ld, void *w)
{
	int words = 0;
	size_t bytes, on_host;
	void *work, *rest;

	switch (how) {
	case PLAIN:
		SOLVER(TYPED2(t, syevd_bufferSize, heevd_bufferSize, handle, VECTORS,
			UPLO(lower), n, a, ld, w, &words));
		work = work_of(t, words);
		SOLVER(TYPED2(t, syevd, heevd, handle, VECTORS, UPLO(lower), n, a, ld, w, work,
			words, info));
		break;
	case JACOBI:
		SOLVER(TYPED2(t, syevj_bufferSize, heevj_bufferSize, handle, VECTORS,
			UPLO(lower), n, a, ld, w, &words, jacobi));
		work = work_of(t, words);
		SOLVER(TYPED2(t, syevj, heevj, handle, VECTORS, UPLO(lower), n, a, ld, w, work,
			words, info, jacobi));
		break;
	default:
		SOLVER(cusolverDnXsyevd_bufferSize(handle, params, VECTORS, UPLO(lower), n,
			data_types[t], a, ld, data_types[real_of(t)], w, data_types[t], &bytes,
			&on_host));
		work = device(bytes);
		rest = host(on_host);
		SOLVER(cusolverDnXsyevd(handle, params, VECTORS, UPLO(lower), n, data_types[t],
			a, ld, data_types[real_of(t)], w, data_types[t], work, bytes, rest,
			on_host, info));
		CUDA(cuCtxSynchronize());
		free(rest);
	}
	done(work, how == JACOBI ? "syevj" : "syevd");
}

/* A V = V W, for `found` columns. */
static void pairs_are(enum type t, const number *a, const number *v, const number *w, int n,
	int found, const char *what)
{
	number *av = product('N', a, 'N', v, n, found, n), *vw = copy_of(v, n * found);

	for (int j = 0; j < found; j++)
		for (int i = 0; i < n; i++)
			vw[i + j * n] *= w[j];
	/* Values near zero make columns near zero: what counts is their part of the whole. */
	CHECK(distance(vw, av, n * found) * norm(av, n * found) <=
			tolerance(t, 4 * n) * (norm(a, n * n) + 1),
		"%s: type %d, size %d", what, (int)t, n);
	for (int j = 1; j < found; j++)
		CHECK(creal(w[j - 1]) <= creal(w[j]), "%s: %d and %d are not in order", what,
			j - 1, j);
	FREE(av, vw);
}

static void all(enum type t, int n, enum how how, bool lower)
{
	int ld = n + 1;
	number *a = hermitian(t, n, false, 0), *v, *w;
	void *at = put(t, a, n, n, ld), *values = device((size_t)n * size_of(real_of(t)));

	solve(t, how, lower, n, at, ld, values);
	v = get(t, at, n, n, ld);
	w = get(real_of(t), values, n, 1, n);
	ORTHONORMAL(t, v, n, n, "syevd");
	pairs_are(t, a, v, w, n, n, "syevd");
	if (how == JACOBI) {
		double left = -1;
		int sweeps = -1;

		SOLVER(cusolverDnXsyevjGetResidual(handle, jacobi, &left));
		SOLVER(cusolverDnXsyevjGetSweeps(handle, jacobi, &sweeps));
		CHECK(left >= 0 && left <= tolerance(t, 4 * n) * (norm(a, n * n) + 1),
			"residual %g", left);
		CHECK(sweeps >= 0 && sweeps <= 100, "%d sweeps", sweeps);
	}
	RELEASE(at, values);
	FREE(a, v, w);
}

/* Without an object of parameters, as PyTorch asks. */
static void without_params(enum type t, int n)
{
	cusolverDnParams_t object = params;

	params = NULL;
	all(t, n, WIDE, true);
	params = object;
}

/* Those at places FIRST to LAST, and those between two numbers. */
static void some_of(enum type t, int n, bool wide)
{
	int first = 2, last = n - 1, words = 0, found = -1;
	int64_t found64 = -1;
	size_t bytes, on_host;
	double low = 0, high = 0; /* as a float, too */
	number *a = hermitian(t, n, false, 0), *v, *w;
	void *at = put(t, a, n, n, n), *values = device((size_t)n * size_of(real_of(t)));
	void *work, *rest = NULL;

	if (wide) {
		SOLVER(cusolverDnXsyevdx_bufferSize(handle, params, VECTORS,
			CUSOLVER_EIG_RANGE_I, CUBLAS_FILL_MODE_LOWER, n, data_types[t], at, n,
			&low, &high, first, last, &found64, data_types[real_of(t)], values,
			data_types[t], &bytes, &on_host));
		work = device(bytes);
		rest = host(on_host);
		SOLVER(cusolverDnXsyevdx(handle, params, VECTORS, CUSOLVER_EIG_RANGE_I,
			CUBLAS_FILL_MODE_LOWER, n, data_types[t], at, n, &low, &high, first,
			last, &found64, data_types[real_of(t)], values, data_types[t], work,
			bytes, rest, on_host, info));
		found = (int)found64;
	} else {
		SOLVER(TYPED2(t, syevdx_bufferSize, heevdx_bufferSize, handle, VECTORS,
			CUSOLVER_EIG_RANGE_I, CUBLAS_FILL_MODE_LOWER, n, at, n, 0, 0, first,
			last, &found, values, &words));
		work = work_of(t, words);
		SOLVER(TYPED2(t, syevdx, heevdx, handle, VECTORS, CUSOLVER_EIG_RANGE_I,
			CUBLAS_FILL_MODE_LOWER, n, at, n, 0, 0, first, last, &found, values,
			work, words, info));
	}
	CHECK(found == last - first + 1, "syevdx found %d", found);
	done(work, "syevdx");
	v = get(t, at, n, found, n);
	w = get(real_of(t), values, found, 1, found);
	ORTHONORMAL(t, v, n, found, "syevdx");
	pairs_are(t, a, v, w, n, found, "syevdx");
	RELEASE(at, values);
	FREE(a, v, w, rest);
}

/* The eigenvalues of a diagonal matrix are known, and so is how many lie in a range. */
static void between(enum type t)
{
	enum { N = 10 };
	int words = 0, found = -1;
	number *a = host(N * N * sizeof(*a)), *w;
	void *at, *values = device(N * size_of(real_of(t))), *work;

	for (int i = 0; i < N; i++)
		a[i + i * N] = N - i; /* 10 down to 1 */
	at = put(t, a, N, N, N);
	SOLVER(TYPED2(t, syevdx_bufferSize, heevdx_bufferSize, handle,
		CUSOLVER_EIG_MODE_NOVECTOR, CUSOLVER_EIG_RANGE_V, CUBLAS_FILL_MODE_UPPER, N, at,
		N, 2.5, 6.5, 0, 0, &found, values, &words));
	work = work_of(t, words);
	SOLVER(TYPED2(t, syevdx, heevdx, handle, CUSOLVER_EIG_MODE_NOVECTOR,
		CUSOLVER_EIG_RANGE_V, CUBLAS_FILL_MODE_UPPER, N, at, N, 2.5, 6.5, 0, 0, &found,
		values, work, words, info));
	CHECK(found == 4, "%d values in the range", found);
	done(work, "syevdx by values");
	w = get(real_of(t), values, found, 1, found);
	for (int i = 0; i < found; i++)
		CHECK(fabs(creal(w[i]) - (i + 3)) < 1e-4, "value %d is %g", i, creal(w[i]));
	RELEASE(at, values);
	FREE(a, w);
}

enum { BATCH = 4 };

static void batch(enum type t, int n)
{
	int words = 0, *infos = device(BATCH * sizeof(int));
	size_t each = (size_t)n * (size_t)n * size_of(t);
	number *a[BATCH], *v, *w;
	char *at = device(BATCH * each);
	size_t row = (size_t)n * size_of(real_of(t));
	char *values = device(BATCH * row);
	void *work;

	for (int i = 0; i < BATCH; i++) {
		void *one;

		a[i] = hermitian(t, n, false, 0);
		one = put(t, a[i], n, n, n);
		CUDA(cuMemcpyDtoD((CUdeviceptr)(uintptr_t)at + (size_t)i * each,
			(CUdeviceptr)(uintptr_t)one, each));
		release(one);
	}
	SOLVER(TYPED2(t, syevjBatched_bufferSize, heevjBatched_bufferSize, handle, VECTORS,
		CUBLAS_FILL_MODE_LOWER, n, (void *)at, n, (void *)values, &words, jacobi,
		BATCH));
	work = work_of(t, words);
	SOLVER(TYPED2(t, syevjBatched, heevjBatched, handle, VECTORS, CUBLAS_FILL_MODE_LOWER, n,
		(void *)at, n, (void *)values, work, words, infos, jacobi, BATCH));
	CUDA(cuCtxSynchronize());
	release(work);
	for (int i = 0; i < BATCH; i++) {
		CHECK(!int_of(&infos[i]), "info %d of %d", int_of(&infos[i]), i);
		v = get(t, at + (size_t)i * each, n, n, n);
		w = get(real_of(t), values + (size_t)i * row, n, 1, n);
		ORTHONORMAL(t, v, n, n, "syevjBatched");
		pairs_are(t, a[i], v, w, n, n, "syevjBatched");
		FREE(v, w, a[i]);
	}
	RELEASE(at, values, infos);
}

/* A x = w B x; A B x = w x; B A x = w x. */
static void of_pairs(enum type t, int n, int kind, bool lower, bool turned)
{
	int words = 0;
	number *a = hermitian(t, n, false, 0), *b = hermitian(t, n, false, 2 * n), *v, *w,
	       *left;
	number *right, *inner;
	void *at = put(t, a, n, n, n), *other = put(t, b, n, n, n), *work;
	void *values = device((size_t)n * size_of(real_of(t)));
	cusolverEigType_t type = (cusolverEigType_t)kind;

	if (turned) {
		SOLVER(TYPED2(t, sygvj_bufferSize, hegvj_bufferSize, handle, type, VECTORS,
			UPLO(lower), n, at, n, other, n, values, &words, jacobi));
		work = work_of(t, words);
		SOLVER(TYPED2(t, sygvj, hegvj, handle, type, VECTORS, UPLO(lower), n, at, n,
			other, n, values, work, words, info, jacobi));
	} else {
		SOLVER(TYPED2(t, sygvd_bufferSize, hegvd_bufferSize, handle, type, VECTORS,
			UPLO(lower), n, at, n, other, n, values, &words));
		work = work_of(t, words);
		SOLVER(TYPED2(t, sygvd, hegvd, handle, type, VECTORS, UPLO(lower), n, at, n,
			other, n, values, work, words, info));
	}
	done(work, "sygvd");
	v = get(t, at, n, n, n);
	w = get(real_of(t), values, n, 1, n);
	if (kind == 1) {
		left = product('N', a, 'N', v, n, n, n);
		right = product('N', b, 'N', v, n, n, n);
	} else {
		inner = product('N', kind == 2 ? b : a, 'N', v, n, n, n);
		left = product('N', kind == 2 ? a : b, 'N', inner, n, n, n);
		right = copy_of(v, n * n);
		free(inner);
	}
	for (int j = 0; j < n; j++)
		for (int i = 0; i < n; i++)
			right[i + j * n] *= w[j];
	CHECK(distance(left, right, n * n) <= tolerance(t, 40 * n),
		"sygvd: kind %d, type %d, %d: %g", kind, (int)t, n,
		distance(left, right, n * n));
	RELEASE(at, other, values);
	FREE(a, b, v, w, left, right);
}

/* B that is not definite: info is behind n. */
static void not_definite(void)
{
	enum { N = 6 };
	int words = 0;
	number *a = hermitian(D, N, false, 0), *b = hermitian(D, N, false, 2 * N);
	void *at = put(D, a, N, N, N), *other, *values = device(N * sizeof(double)), *work;

	b[2 + 2 * N] = -1;
	other = put(D, b, N, N, N);
	SOLVER(cusolverDnDsygvd_bufferSize(handle, CUSOLVER_EIG_TYPE_1, VECTORS,
		CUBLAS_FILL_MODE_LOWER, N, at, N, other, N, values, &words));
	work = work_of(D, words);
	SOLVER(cusolverDnDsygvd(handle, CUSOLVER_EIG_TYPE_1, VECTORS, CUBLAS_FILL_MODE_LOWER, N,
		at, N, other, N, values, work, words, info));
	CHECK(int_of(info) == N + 3, "info %d", int_of(info));
	RELEASE(at, other, values, work);
	FREE(a, b);
}

int main(void)
{
	device_begin();
	SOLVER(cusolverDnCreate(&handle));
	SOLVER(cusolverDnCreateParams(&params));
	SOLVER(cusolverDnCreateSyevjInfo(&jacobi));
	SOLVER(cusolverDnXsyevjSetMaxSweeps(jacobi, 100));
	SOLVER(cusolverDnXsyevjSetSortEig(jacobi, 1));
	info = device(sizeof(*info));
	EACH_TYPE(t)
	{
		jacobi_for(t);
		EACH_SIZE(n)
		{
			if (!n)
				continue;
			for (enum how how = PLAIN; how <= JACOBI; how++) {
				all(t, n, how, false);
				all(t, n, how, true);
			}
			without_params(t, n);
			if (n > 3) {
				some_of(t, n, false);
				some_of(t, n, true);
			}
			batch(t, n);
			for (int kind = 1; kind <= 3; kind++)
				for (int way = 0; way < 4; way++)
					of_pairs(t, n, kind, way & 1, way & 2);
		}
		between(t);
	}
	not_definite();
	release(info);
	SOLVER(cusolverDnDestroySyevjInfo(jacobi));
	SOLVER(cusolverDnDestroyParams(params));
	SOLVER(cusolverDnDestroy(handle));
	printf("ok\n");
	return 0;
}
