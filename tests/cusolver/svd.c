/* SPDX-License-Identifier: Apache-2.0
 *
 * Singular values and vectors in all types: with V^H (gesvd, 32 and 64 bits), with V (by
 * Jacobi's method, in batches, of strided matrices, by polar decomposition) and of a random
 * projection.
 */
#include "tests/cusolver/check.h"

static cusolverDnHandle_t handle;
static cusolverDnParams_t params;
static gesvdjInfo_t jacobi;
static int *info;

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

/* How much farther than the others gesvda may be, which takes A^H A (3 times for 25 by 16,
 * H200, 2026-11-23). */
#define APPROXIMATE 100

/* A = U S V^H of K columns, orthonormal ones, the values falling. `v` is V^H where `rows` tells
 * how many it has, and V where that is 0. They are right within `loose` times the tolerance. */
static void parts_are(enum type t, const number *a, int m, int n, int k, const number *u,
	const number *s, const number *v, int rows, int loose, const char *what)
{
	number *us = copy_of(u, m * k), *vt, *back, *square, *unit = identity(k);

	for (int j = 0; j < k; j++) {
		CHECK(creal(s[j]) >= 0 && (!j || creal(s[j - 1]) >= creal(s[j])),
			"%s: value %d is %g", what, j, creal(s[j]));
		for (int i = 0; i < m; i++)
			us[i + j * m] *= s[j];
	}
	vt = host((size_t)k * (size_t)n * sizeof(*vt));
	for (int j = 0; j < k; j++)
		for (int i = 0; i < n; i++)
			vt[j + i * k] = rows ? v[j + i * rows] : conj(v[i + j * n]);
	back = product('N', us, 'N', vt, m, n, k);
	CHECK(distance(back, a, m * n) <= loose * tolerance(t, 4 * (m + n)),
		"%s: type %d, %d by %d: %g", what, (int)t, m, n, distance(back, a, m * n));
	square = product('C', u, 'N', u, k, k, m);
	CHECK(distance(square, unit, k * k) <= loose * tolerance(t, m),
		"%s: type %d, %d by %d: U is off by %g", what, (int)t, m, n,
		distance(square, unit, k * k));
	FREE(us, vt, back, square, unit);
}

static void with_vt(enum type t, int m, int n, signed char job, bool wide)
{
	int ld = m + 1, ldu = m + 2, ldvt = n + 3, words = 0, ucols = job == 'A' ? m : n;
	size_t bytes, on_host;
	number *a = some(t, m, n), *u, *s, *vt;
	void *at = put(t, a, m, n, ld), *values = device((size_t)n * size_of(real_of(t)));
	void *left = device((size_t)ldu * (size_t)ucols * size_of(t));
	void *right = device((size_t)ldvt * (size_t)n * size_of(t)), *work, *rest = NULL;

	if (wide) {
		SOLVER(cusolverDnXgesvd_bufferSize(handle, params, job, job, m, n,
			data_types[t], at, ld, data_types[real_of(t)], values, data_types[t],
			left, ldu, data_types[t], right, ldvt, data_types[t], &bytes,
			&on_host));
		work = device(bytes);
		rest = host(on_host);
		SOLVER(cusolverDnXgesvd(handle, params, job, job, m, n, data_types[t], at, ld,
			data_types[real_of(t)], values, data_types[t], left, ldu, data_types[t],
			right, ldvt, data_types[t], work, bytes, rest, on_host, info));
	} else {
		SOLVER(TYPED(t, gesvd_bufferSize, handle, m, n, &words));
		work = work_of(t, words);
		SOLVER(TYPED(t, gesvd, handle, job, job, m, n, at, ld, values, left, ldu, right,
			ldvt, work, words, NULL, info));
	}
	done(work, "gesvd");
	u = get(t, left, m, ucols, ldu);
	s = get(real_of(t), values, n, 1, n);
	vt = get(t, right, n, n, ldvt);
	parts_are(t, a, m, n, n, u, s, vt, n, 1, "gesvd");
	ORTHONORMAL(t, u, m, ucols, "gesvd");
	RELEASE(at, values, left, right);
	FREE(a, u, s, vt, rest);
}

enum how { BY_JACOBI, BY_POLAR };

static void with_v(enum type t, int m, int n, bool econ, enum how how)
{
	int least = m < n ? m : n, words = 0, ucols = econ ? least : m,
	    vcols = econ ? least : n;
	size_t bytes, on_host;
	double changed = -1, left_over = -1;
	number *a = some(t, m, n), *u, *s, *v;
	void *at = put(t, a, m, n, m), *values = device((size_t)least * size_of(real_of(t)));
	void *left = device((size_t)m * (size_t)ucols * size_of(t)), *rest = NULL;
	void *right = device((size_t)n * (size_t)vcols * size_of(t)), *work;

	if (how == BY_POLAR) {
		SOLVER(cusolverDnXgesvdp_bufferSize(handle, params, VECTORS, econ, m, n,
			data_types[t], at, m, data_types[real_of(t)], values, data_types[t],
			left, m, data_types[t], right, n, data_types[t], &bytes, &on_host));
		work = device(bytes);
		rest = host(on_host);
		SOLVER(cusolverDnXgesvdp(handle, params, VECTORS, econ, m, n, data_types[t], at,
			m, data_types[real_of(t)], values, data_types[t], left, m,
			data_types[t], right, n, data_types[t], work, bytes, rest, on_host,
			info, &changed));
		CUDA(cuCtxSynchronize());
		CHECK(changed >= 0 && changed < 1e-3, "gesvdp changed %g", changed);
	} else {
		SOLVER(TYPED(t, gesvdj_bufferSize, handle, VECTORS, econ, m, n, at, m, values,
			left, m, right, n, &words, jacobi));
		work = work_of(t, words);
		SOLVER(TYPED(t, gesvdj, handle, VECTORS, econ, m, n, at, m, values, left, m,
			right, n, work, words, info, jacobi));
		SOLVER(cusolverDnXgesvdjGetResidual(handle, jacobi, &left_over));
		CHECK(left_over >= 0 &&
				left_over <= tolerance(t, 4 * (m + n)) * (norm(a, m * n) + 1),
			"gesvdj left %g", left_over);
	}
	done(work, "gesvdj");
	u = get(t, left, m, ucols, m);
	s = get(real_of(t), values, least, 1, least);
	v = get(t, right, n, vcols, n);
	parts_are(t, a, m, n, least, u, s, v, 0, 1, how == BY_POLAR ? "gesvdp" : "gesvdj");
	ORTHONORMAL(t, v, n, how == BY_POLAR ? least : vcols, "V");
	RELEASE(at, values, left, right);
	FREE(a, u, s, v, rest);
}

enum { BATCH = 3 };

/* Matrices of a batch, EACH elements apart. */
static void *several(enum type t, number **a, int m, int n, size_t each)
{
	char *at = device(BATCH * each * size_of(t));

	for (int i = 0; i < BATCH; i++) {
		void *one;

		a[i] = some(t, m, n);
		one = put(t, a[i], m, n, m);
		CUDA(cuMemcpyDtoD((CUdeviceptr)(uintptr_t)at + (size_t)i * each * size_of(t),
			(CUdeviceptr)(uintptr_t)one, (size_t)m * (size_t)n * size_of(t)));
		release(one);
	}
	return at;
}

static void batch(enum type t, int m, int n)
{
	int least = m < n ? m : n, words = 0, *infos = device(BATCH * sizeof(int));
	size_t real = size_of(real_of(t)), size = size_of(t);
	number *a[BATCH];
	char *at = several(t, a, m, n, (size_t)m * (size_t)n);
	char *values = device(BATCH * (size_t)least * real);
	char *left = device(BATCH * (size_t)m * (size_t)m * size);
	char *right = device(BATCH * (size_t)n * (size_t)n * size);
	void *work;

	SOLVER(TYPED(t, gesvdjBatched_bufferSize, handle, VECTORS, m, n, (void *)at, m,
		(void *)values, (void *)left, m, (void *)right, n, &words, jacobi, BATCH));
	work = work_of(t, words);
	SOLVER(TYPED(t, gesvdjBatched, handle, VECTORS, m, n, (void *)at, m, (void *)values,
		(void *)left, m, (void *)right, n, work, words, infos, jacobi, BATCH));
	CUDA(cuCtxSynchronize());
	for (int i = 0; i < BATCH; i++) {
		size_t k = (size_t)i;
		number *u = get(t, left + k * (size_t)(m * m) * size, m, m, m);
		number *s = get(real_of(t), values + k * (size_t)least * real, least, 1, least);
		number *v = get(t, right + k * (size_t)(n * n) * size, n, n, n);

		CHECK(!int_of(&infos[i]), "info %d of %d", int_of(&infos[i]), i);
		parts_are(t, a[i], m, n, least, u, s, v, 0, 1, "gesvdjBatched");
		FREE(a[i], u, s, v);
	}
	RELEASE(at, values, left, right, infos, work);
}

/* How far U S V^H of K columns is from A, as a Frobenius norm. */
static double distance_of(
	const number *a, const number *u, const number *s, const number *v, int m, int n, int k)
{
	double sum = 0;

	for (int j = 0; j < n; j++)
		for (int i = 0; i < m; i++) {
			number rest = a[i + j * m];

			for (int l = 0; l < k; l++)
				rest -= u[i + l * m] * s[l] * conj(v[j + l * n]);
			sum += creal(rest * conj(rest));
		}
	return sqrt(sum);
}

/* High matrices, each somewhere, with as many values as the rank says; how far the products are
 * from the matrices comes back on the host. */
static void strided(enum type t, int m, int n, int rank)
{
	int words = 0, *infos = device(BATCH * sizeof(int));
	size_t real = size_of(real_of(t)), size = size_of(t);
	size_t each[] = {(size_t)(m * n) + 8, (size_t)rank + 4, (size_t)(m * rank) + 8,
		(size_t)(n * rank) + 4};
	long long strides[4];
	double rest[BATCH] = {-1, -1};
	number *a[BATCH];
	char *at = several(t, a, m, n, each[0]), *values = device(BATCH * each[1] * real);
	char *left = device(BATCH * each[2] * size), *right = device(BATCH * each[3] * size);
	void *work;

	for (int i = 0; i < 4; i++)
		strides[i] = (long long)each[i];
	SOLVER(TYPED(t, gesvdaStridedBatched_bufferSize, handle, VECTORS, rank, m, n,
		(void *)at, m, strides[0], (void *)values, strides[1], (void *)left, m,
		strides[2], (void *)right, n, strides[3], &words, BATCH));
	work = work_of(t, words);
	SOLVER(TYPED(t, gesvdaStridedBatched, handle, VECTORS, rank, m, n, (void *)at, m,
		strides[0], (void *)values, strides[1], (void *)left, m, strides[2],
		(void *)right, n, strides[3], work, words, infos, rest, BATCH));
	CUDA(cuCtxSynchronize());
	for (int i = 0; i < BATCH; i++) {
		size_t k = (size_t)i;
		number *u = get(t, left + k * each[2] * size, m, rank, m);
		number *s = get(real_of(t), values + k * each[1] * real, rank, 1, rank);
		number *v = get(t, right + k * each[3] * size, n, rank, n);
		double far;

		CHECK(!int_of(&infos[i]), "info %d of %d", int_of(&infos[i]), i);
		if (rank == n)
			parts_are(t, a[i], m, n, n, u, s, v, 0, APPROXIMATE, "gesvda");
		far = distance_of(a[i], u, s, v, m, n, rank);
		CHECK(fabs(rest[i] - far) <= APPROXIMATE * tolerance(t, 4 * (m + n)),
			"gesvda: %g away, not %g", rest[i], far);
		FREE(a[i], u, s, v);
	}
	RELEASE(at, values, left, right, infos, work);
}

/* A matrix of rank two, found whole by a projection on a few columns. */
static void random_projection(enum type t, int m, int n)
{
	int rank = 2, more = 3;
	size_t bytes, on_host;
	number *high = some(t, m, rank), *flat = some(t, rank, n);
	number *a = product('N', high, 'N', flat, m, n, rank), *u, *s, *v;
	void *at = put(t, a, m, n, m), *values = device((size_t)n * size_of(real_of(t)));
	void *left = device((size_t)m * (size_t)m * size_of(t));
	void *right = device((size_t)n * (size_t)n * size_of(t)), *work, *rest;

	SOLVER(cusolverDnXgesvdr_bufferSize(handle, params, 'S', 'S', m, n, rank, more, 2,
		data_types[t], at, m, data_types[real_of(t)], values, data_types[t], left, m,
		data_types[t], right, n, data_types[t], &bytes, &on_host));
	work = device(bytes);
	rest = host(on_host);
	SOLVER(cusolverDnXgesvdr(handle, params, 'S', 'S', m, n, rank, more, 2, data_types[t],
		at, m, data_types[real_of(t)], values, data_types[t], left, m, data_types[t],
		right, n, data_types[t], work, bytes, rest, on_host, info));
	done(work, "gesvdr");
	u = get(t, left, m, rank, m);
	s = get(real_of(t), values, rank, 1, rank);
	v = get(t, right, n, rank, n);
	parts_are(t, a, m, n, rank, u, s, v, 0, 1, "gesvdr");
	RELEASE(at, values, left, right);
	FREE(high, flat, a, u, s, v, rest);
}

int main(void)
{
	device_begin();
	SOLVER(cusolverDnCreate(&handle));
	SOLVER(cusolverDnCreateParams(&params));
	SOLVER(cusolverDnCreateGesvdjInfo(&jacobi));
	SOLVER(cusolverDnXgesvdjSetTolerance(jacobi, 1e-16));
	SOLVER(cusolverDnXgesvdjSetMaxSweeps(jacobi, 100));
	SOLVER(cusolverDnXgesvdjSetSortEig(jacobi, 1));
	info = device(sizeof(*info));
	EACH_TYPE(t)
	{
		EACH_SIZE(n)
		{
			if (!n)
				continue;
			for (int wide = 0; wide < 2; wide++) {
				with_vt(t, n, n, 'A', wide);
				with_vt(t, n + 7, n, 'A', wide);
				with_vt(t, n + 7, n, 'S', wide);
			}
			for (int econ = 0; econ < 2; econ++) {
				with_v(t, n, n, econ, BY_JACOBI);
				with_v(t, n + 5, n, econ, BY_JACOBI);
				with_v(t, n, n + 5, econ, BY_JACOBI);
			}
			with_v(t, n + 5, n, true, BY_POLAR);
			strided(t, n + 9, n, n);
		}
		batch(t, 8, 8);
		batch(t, 32, 11);
		batch(t, 5, 13);
		strided(t, 40, 12, 5);
		random_projection(t, 30, 20);
	}
	release(info);
	SOLVER(cusolverDnDestroyGesvdjInfo(jacobi));
	SOLVER(cusolverDnDestroyParams(params));
	SOLVER(cusolverDnDestroy(handle));
	printf("ok\n");
	return 0;
}
