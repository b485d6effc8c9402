/* SPDX-License-Identifier: Apache-2.0
 *
 * QR in all types and shapes, by 32-bit and 64-bit calls, these with parameters and without;
 * its orthogonal matrix made and multiplied with; blocks of reflectors.
 */
#include "tests/cusolver/check.h"

static cusolverDnHandle_t handle;
static cusolverDnParams_t params;
static int *info;

static void factor(enum type t, bool wide, int m, int n, void *a, int ld, void *tau)
{
	int words = -1;
	size_t bytes = 1, on_host = 1;
	void *work, *rest = NULL;

	if (wide) {
		SOLVER(cusolverDnXgeqrf_bufferSize(handle, params, m, n, data_types[t], a, ld,
			data_types[t], tau, data_types[t], &bytes, &on_host));
		work = device(bytes);
		rest = host(on_host);
		SOLVER(cusolverDnXgeqrf(handle, params, m, n, data_types[t], a, ld,
			data_types[t], tau, data_types[t], work, bytes, rest, on_host, info));
	} else {
		SOLVER(TYPED(t, geqrf_bufferSize, handle, m, n, a, ld, &words));
		work = device((size_t)words * size_of(t));
		SOLVER(TYPED(t, geqrf, handle, m, n, a, ld, tau, work, words, info));
	}
	CUDA(cuCtxSynchronize());
	CHECK(!int_of(info), "geqrf: info %d", int_of(info));
	release(work);
	free(rest);
}

/* op(Q) C, or C op(Q): C is its own copy on the device. */
static void multiply(enum type t, bool left, char op, const void *q, int ldq, const void *tau,
	int k, void *c, int m, int n, int ldc)
{
	cublasSideMode_t side = left ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT;
	cublasOperation_t which = op == 'N'   ? CUBLAS_OP_N
				  : op == 'T' ? CUBLAS_OP_T
					      : CUBLAS_OP_C;
	int words;
	void *work;

	SOLVER(TYPED2(t, ormqr_bufferSize, unmqr_bufferSize, handle, side, which, m, n, k, q,
		ldq, tau, c, ldc, &words));
	work = device((size_t)words * size_of(t));
	SOLVER(TYPED2(t, ormqr, unmqr, handle, side, which, m, n, k, q, ldq, tau, c, ldc, work,
		words, info));
	CUDA(cuCtxSynchronize());
	CHECK(!int_of(info), "ormqr: info %d", int_of(info));
	release(work);
}

/* A = Q R with Q made, and with Q multiplied by. */
static void shape(enum type t, int m, int n, bool wide)
{
	int ld = m + 2, least = m < n ? m : n, words;
	number *a = some(t, m, n), *got, *r, *q, *back;
	void *at = put(t, a, m, n, ld), *tau = device((size_t)least * size_of(t)), *work, *full;

	factor(t, wide, m, n, at, ld, tau);
	got = get(t, at, m, n, ld);
	r = triangle_of(got, least, n, false, false, m);

	/* Q^H A = R */
	full = put(t, a, m, n, ld);
	multiply(t, true, is_complex(t) ? 'C' : 'T', at, ld, tau, least, full, m, n, ld);
	free(got);
	got = get(t, full, m, n, ld);
	back = triangle_of(got, least, n, false, false, m);
	CLOSE(t, back, r, least * n, m + n, "ormqr");
	release(full);
	free(back);

	SOLVER(TYPED2(t, orgqr_bufferSize, ungqr_bufferSize, handle, m, least, least, at, ld,
		tau, &words));
	work = device((size_t)words * size_of(t));
	SOLVER(TYPED2(
		t, orgqr, ungqr, handle, m, least, least, at, ld, tau, work, words, info));
	q = get(t, at, m, least, ld);
	CHECK(!int_of(info), "orgqr: info %d", int_of(info));
	ORTHONORMAL(t, q, m, least, "orgqr");
	back = product('N', q, 'N', r, m, n, least);
	CLOSE(t, back, a, m * n, m + n, "geqrf");
	RELEASE(at, tau, work);
	FREE(a, got, r, q, back);
}

/* Without an object of parameters, as PyTorch factors. */
static void without_params(enum type t, int n)
{
	cusolverDnParams_t object = params;

	params = NULL;
	shape(t, n + 9, n, true);
	params = object;
}

/* From the right, plain: C Q. */
static void right(enum type t, int n)
{
	int rows = 4;
	number *a = some(t, n, n), *c = some(t, rows, n), *got, *q, *want;
	void *at = put(t, a, n, n, n), *tau = device((size_t)n * size_of(t));
	void *to = put(t, c, rows, n, rows), *unit;
	number *ones = identity(n);

	factor(t, false, n, n, at, n, tau);
	unit = put(t, ones, n, n, n);
	multiply(t, true, 'N', at, n, tau, n, unit, n, n, n);
	multiply(t, false, 'N', at, n, tau, n, to, rows, n, rows);
	q = get(t, unit, n, n, n);
	want = product('N', c, 'N', q, rows, n, n);
	got = get(t, to, rows, n, rows);
	CLOSE(t, got, want, rows * n, n, "ormqr from the right");
	RELEASE(at, tau, to, unit);
	FREE(a, c, got, q, want, ones);
}

/* I - V T V^H is the product of the reflectors, so it is Q. */
static void block(enum type t, int m, int k)
{
	size_t bytes = 1, on_host = 1;
	number *a = some(t, m, k), *v, *got, *whole, *vt, *q, *ones = identity(m), *want;
	void *at = put(t, a, m, k, m), *tau = device((size_t)k * size_of(t)), *work, *rest;
	void *to = device((size_t)k * (size_t)k * size_of(t)), *unit = put(t, ones, m, m, m);

	factor(t, false, m, k, at, m, tau);
	SOLVER(cusolverDnXlarft_bufferSize(handle, params, CUBLAS_DIRECT_FORWARD,
		CUBLAS_STOREV_COLUMNWISE, m, k, data_types[t], at, m, data_types[t], tau,
		data_types[t], to, k, data_types[t], &bytes, &on_host));
	work = device(bytes);
	rest = host(on_host);
	SOLVER(cusolverDnXlarft(handle, params, CUBLAS_DIRECT_FORWARD, CUBLAS_STOREV_COLUMNWISE,
		m, k, data_types[t], at, m, data_types[t], tau, data_types[t], to, k,
		data_types[t], work, bytes, rest, on_host));
	got = get(t, at, m, k, m);
	v = triangle_of(got, m, k, true, true, m);
	free(got);
	got = get(t, to, k, k, k);
	whole = triangle_of(got, k, k, false, false, k);
	vt = product('N', v, 'N', whole, m, k, k);
	q = product('N', vt, 'C', v, m, m, k);
	for (int i = 0; i < m * m; i++)
		q[i] = ones[i] - q[i];
	multiply(t, true, 'N', at, m, tau, k, unit, m, m, m);
	want = get(t, unit, m, m, m);
	CLOSE(t, q, want, m * m, m, "larft");
	RELEASE(at, tau, work, to, unit);
	FREE(a, v, got, whole, vt, q, ones, want, rest);
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
			for (int wide = 0; wide < 2; wide++) {
				shape(t, n, n, wide);
				shape(t, n + 9, n, wide);
				shape(t, n, n + 9, wide);
			}
			without_params(t, n);
			right(t, n);
		}
		block(t, 40, 7);
	}
	release(info);
	SOLVER(cusolverDnDestroyParams(params));
	SOLVER(cusolverDnDestroy(handle));
	printf("ok\n");
	return 0;
}
