/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions to two diagonals and to three: the orthogonal matrices that they leave, made and
 * multiplied with, give the matrix back.
 */
#include "tests/cusolver/check.h"

static cusolverDnHandle_t handle;
static int *info;

#define UPLO(LOWER) ((LOWER) ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER)

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

/* A = Q B P^H, where B has a diagonal and one above it. */
static void two(enum type t, int m, int n)
{
	int words;
	number *a = some(t, m, n), *d, *e, *b = host((size_t)n * (size_t)n * sizeof(*b));
	number *q, *p, *qb, *back, *got;
	void *at = put(t, a, m, n, m), *left, *right, *work;
	size_t vector = (size_t)n * size_of(t);
	void *dd = device(vector), *ee = device(vector), *tauq = device(vector);
	void *taup = device(vector);

	SOLVER(TYPED(t, gebrd_bufferSize, handle, m, n, &words));
	work = work_of(t, words);
	SOLVER(TYPED(t, gebrd, handle, m, n, at, m, dd, ee, tauq, taup, work, words, info));
	done(work, "gebrd");
	got = get(t, at, m, n, m);
	left = put(t, got, m, n, m);
	free(got);
	got = get(t, at, n, n, m);
	right = put(t, got, n, n, n);

	SOLVER(TYPED2(t, orgbr_bufferSize, ungbr_bufferSize, handle, CUBLAS_SIDE_LEFT, m, n, n,
		left, m, tauq, &words));
	work = work_of(t, words);
	SOLVER(TYPED2(t, orgbr, ungbr, handle, CUBLAS_SIDE_LEFT, m, n, n, left, m, tauq, work,
		words, info));
	done(work, "orgbr Q");
	SOLVER(TYPED2(t, orgbr_bufferSize, ungbr_bufferSize, handle, CUBLAS_SIDE_RIGHT, n, n, m,
		right, n, taup, &words));
	work = work_of(t, words);
	SOLVER(TYPED2(t, orgbr, ungbr, handle, CUBLAS_SIDE_RIGHT, n, n, m, right, n, taup, work,
		words, info));
	done(work, "orgbr P");

	d = get(real_of(t), dd, n, 1, n);
	e = get(real_of(t), ee, n, 1, n);
	for (int i = 0; i < n; i++) {
		b[i + i * n] = d[i];
		if (i)
			b[i - 1 + i * n] = e[i - 1];
	}
	q = get(t, left, m, n, m);
	p = get(t, right, n, n, n);
	ORTHONORMAL(t, q, m, n, "orgbr");
	qb = product('N', q, 'N', b, m, n, n);
	back = product('N', qb, 'N', p, m, n, n);
	CLOSE(t, back, a, m * n, m + n, "gebrd");
	RELEASE(at, left, right, dd, ee, tauq, taup);
	FREE(a, b, d, e, q, p, qb, back, got);
}

/* A = Q T Q^H. */
static void three(enum type t, int n, bool lower)
{
	int words;
	number *a = hermitian(t, n, false, 0), *d, *e, *q, *qt, *back, *tri,
	       *ones = identity(n);
	void *at = put(t, a, n, n, n), *made, *work, *unit = put(t, ones, n, n, n);
	size_t vector = (size_t)n * size_of(t);
	void *dd = device(vector), *ee = device(vector), *tau = device(vector);

	SOLVER(TYPED2(t, sytrd_bufferSize, hetrd_bufferSize, handle, UPLO(lower), n, at, n, dd,
		ee, tau, &words));
	work = work_of(t, words);
	SOLVER(TYPED2(t, sytrd, hetrd, handle, UPLO(lower), n, at, n, dd, ee, tau, work, words,
		info));
	done(work, "sytrd");
	q = get(t, at, n, n, n);
	made = put(t, q, n, n, n);
	free(q);
	SOLVER(TYPED2(t, ormtr_bufferSize, unmtr_bufferSize, handle, CUBLAS_SIDE_LEFT,
		UPLO(lower), CUBLAS_OP_N, n, n, at, n, tau, unit, n, &words));
	work = work_of(t, words);
	SOLVER(TYPED2(t, ormtr, unmtr, handle, CUBLAS_SIDE_LEFT, UPLO(lower), CUBLAS_OP_N, n, n,
		at, n, tau, unit, n, work, words, info));
	done(work, "ormtr");
	SOLVER(TYPED2(t, orgtr_bufferSize, ungtr_bufferSize, handle, UPLO(lower), n, made, n,
		tau, &words));
	work = work_of(t, words);
	SOLVER(TYPED2(
		t, orgtr, ungtr, handle, UPLO(lower), n, made, n, tau, work, words, info));
	done(work, "orgtr");

	q = get(t, made, n, n, n);
	back = get(t, unit, n, n, n);
	CLOSE(t, back, q, n * n, n, "ormtr");
	free(back);
	d = get(real_of(t), dd, n, 1, n);
	e = get(real_of(t), ee, n, 1, n);
	tri = host((size_t)n * (size_t)n * sizeof(*tri));
	for (int i = 0; i < n; i++) {
		tri[i + i * n] = d[i];
		if (i)
			tri[i - 1 + i * n] = tri[i + (i - 1) * n] = e[i - 1];
	}
	qt = product('N', q, 'N', tri, n, n, n);
	back = product('N', qt, 'C', q, n, n, n);
	CLOSE(t, back, a, n * n, n, "sytrd");
	RELEASE(at, made, unit, dd, ee, tau);
	FREE(a, d, e, q, qt, back, tri, ones);
}

int main(void)
{
	device_begin();
	SOLVER(cusolverDnCreate(&handle));
	info = device(sizeof(*info));
	EACH_TYPE(t)
	EACH_SIZE(n)
	{
		if (!n)
			continue;
		two(t, n, n);
		two(t, n + 6, n);
		three(t, n, false);
		three(t, n, true);
	}
	release(info);
	SOLVER(cusolverDnDestroy(handle));
	printf("ok\n");
	return 0;
}
