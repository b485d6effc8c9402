/* SPDX-License-Identifier: Apache-2.0
 *
 * Sparse factorizations that are kept: QR and Cholesky's in steps, solved with many times; a
 * batch of least squares on one pattern.
 */
#include "tests/cusolver/sparse.h"

static cusolverSpHandle_t handle;

#define PATTERN s.descriptor, s.at_rows, s.at_columns
#define MATRIX s.descriptor, s.at, s.at_rows, s.at_columns

/* Solves for another x with what was factored, by STEP, which takes the right side and x. */
#define SOLVED(WHAT, CALL)                                                                     \
	do {                                                                                   \
		number *x_ = some(t, s.n, 1), *b_ = sparse_times(&s, x_), *got_;               \
		void *right = put(t, b_, s.m, 1, s.m), *to = device((size_t)s.n * size_of(t)); \
		SOLVER(CALL);                                                                  \
		CUDA(cuCtxSynchronize());                                                      \
		got_ = get(t, to, s.n, 1, s.n);                                                \
		CLOSE(t, got_, x_, s.n, s.n, WHAT);                                            \
		RELEASE(right, to);                                                            \
		FREE(x_, b_, got_);                                                            \
	} while (0)

static void setup(enum type t, const struct sparse *of, csrqrInfo_t info)
{
	const struct sparse s = *of;

	switch (t) {
	case S:
		SOLVER(cusolverSpScsrqrSetup(handle, s.m, s.n, s.entries, MATRIX, 0, info));
		break;
	case D:
		SOLVER(cusolverSpDcsrqrSetup(handle, s.m, s.n, s.entries, MATRIX, 0, info));
		break;
	case C:
		SOLVER(cusolverSpCcsrqrSetup(
			handle, s.m, s.n, s.entries, MATRIX, make_cuComplex(0, 0), info));
		break;
	default:
		SOLVER(cusolverSpZcsrqrSetup(
			handle, s.m, s.n, s.entries, MATRIX, make_cuDoubleComplex(0, 0), info));
	}
}

static void qr_of(enum type t, int m, int n)
{
	struct sparse s = sparse_band(t, m, n, 0, -1);
	csrqrInfo_t info;
	size_t inside = 0, bytes = 0;
	int position = 99;
	void *work;

	SOLVER(cusolverSpCreateCsrqrInfo(&info));
	SOLVER(cusolverSpXcsrqrAnalysis(handle, m, n, s.entries, PATTERN, info));
	SOLVER(SP_TYPED(
		t, csrqrBufferInfo, handle, m, n, s.entries, MATRIX, info, &inside, &bytes));
	work = device(bytes);
	setup(t, &s, info);
	SOLVER(SP_TYPED(t, csrqrFactor, handle, m, n, s.entries, NULL, NULL, info, work));
	SOLVER(SP_TYPED(t, csrqrZeroPivot, handle, info, 0, &position));
	CHECK(position == -1, "type %d, n %d: a pivot of zero at %d", t, n, position);
	for (int i = 0; i < 3; i++)
		SOLVED("csrqrSolve",
			SP_TYPED(t, csrqrSolve, handle, m, n, right, to, info, work));
	release(work);
	SOLVER(cusolverSpDestroyCsrqrInfo(info));
	sparse_drop(&s);
}

static void batch_of(enum type t, int m, int n)
{
	enum { BATCH = 3 };
	struct sparse s = sparse_band(t, m, n, 0, -1);
	size_t one = (size_t)s.entries, inside = 0, bytes = 0;
	number *values = host(BATCH * one * sizeof(*values));
	number *x = some(t, n, BATCH), *b = host(BATCH * (size_t)m * sizeof(*b)), *got;
	void *at, *right, *to = device(BATCH * (size_t)n * size_of(t)), *work;
	csrqrInfo_t info;

	for (int i = 0; i < BATCH; i++) {
		number *product;

		for (size_t k = 0; k < one; k++)
			values[k + (size_t)i * one] = s.values[k] *= 1 + 0.25 * i;
		product = sparse_times(&s, x + i * n);
		memcpy(b + i * m, product, (size_t)m * sizeof(*b));
		free(product);
	}
	at = put(t, values, s.entries, BATCH, s.entries);
	right = put(t, b, m, BATCH, m);
	SOLVER(cusolverSpCreateCsrqrInfo(&info));
	SOLVER(cusolverSpXcsrqrAnalysisBatched(handle, m, n, s.entries, PATTERN, info));
	SOLVER(SP_TYPED(t, csrqrBufferInfoBatched, handle, m, n, s.entries, s.descriptor, at,
		s.at_rows, s.at_columns, BATCH, info, &inside, &bytes));
	CHECK(bytes, "no workspace");
	work = device(bytes);
	SOLVER(SP_TYPED(t, csrqrsvBatched, handle, m, n, s.entries, s.descriptor, at, s.at_rows,
		s.at_columns, right, to, BATCH, info, work));
	CUDA(cuCtxSynchronize());
	got = get(t, to, n, BATCH, n);
	CLOSE(t, got, x, n * BATCH, n, "csrqrsvBatched");
	SOLVER(cusolverSpDestroyCsrqrInfo(info));
	RELEASE(at, right, to, work);
	FREE(values, x, b, got);
	sparse_drop(&s);
}

static void cholesky_of(enum type t, int n)
{
	struct sparse s = sparse_band(t, n, n, 0, -1);
	csrcholInfo_t info;
	size_t inside = 0, bytes = 0;
	int position = 99;
	number *diagonal;
	void *work, *at = device((size_t)n * size_of(real_of(t)));

	SOLVER(cusolverSpCreateCsrcholInfo(&info));
	SOLVER(cusolverSpXcsrcholAnalysis(handle, n, s.entries, PATTERN, info));
	SOLVER(SP_TYPED(
		t, csrcholBufferInfo, handle, n, s.entries, MATRIX, info, &inside, &bytes));
	work = device(bytes);
	SOLVER(SP_TYPED(t, csrcholFactor, handle, n, s.entries, MATRIX, info, work));
	SOLVER(SP_TYPED(t, csrcholZeroPivot, handle, info, 0, &position));
	CHECK(position == -1, "type %d, n %d: ended at %d", t, n, position);
	SOLVER(SP_TYPED(t, csrcholDiag, handle, info, at));
	CUDA(cuCtxSynchronize());
	diagonal = get(real_of(t), at, n, 1, n);
	/* Squares of what is left of a diagonal of 8. */
	for (int i = 0; i < n; i++)
		CHECK(creal(diagonal[i]) > 2 && creal(diagonal[i]) < 2.83, "L(%d) is %g", i,
			creal(diagonal[i]));
	for (int i = 0; i < 3; i++)
		SOLVED("csrcholSolve",
			SP_TYPED(t, csrcholSolve, handle, n, right, to, info, work));
	SOLVER(cusolverSpDestroyCsrcholInfo(info));
	RELEASE(work, at);
	free(diagonal);
	sparse_drop(&s);
}

static void singular_of(enum type t)
{
	enum { N = 20, GONE = 7 };
	struct sparse s = sparse_band(t, N, N, 0, GONE);
	csrqrInfo_t info;
	size_t inside, bytes;
	int position = -1;
	void *work;

	SOLVER(cusolverSpCreateCsrqrInfo(&info));
	SOLVER(cusolverSpXcsrqrAnalysis(handle, N, N, s.entries, PATTERN, info));
	SOLVER(SP_TYPED(
		t, csrqrBufferInfo, handle, N, N, s.entries, MATRIX, info, &inside, &bytes));
	work = device(bytes);
	setup(t, &s, info);
	SOLVER(SP_TYPED(t, csrqrFactor, handle, N, N, s.entries, NULL, NULL, info, work));
	SOLVER(SP_TYPED(t, csrqrZeroPivot, handle, info, 1e-6, &position));
	CHECK(position >= 0, "type %d: no pivot of zero", t);
	release(work);
	SOLVER(cusolverSpDestroyCsrqrInfo(info));
	sparse_drop(&s);
}

int main(void)
{
	csrqrInfo_t info;

	device_begin();
	SOLVER(cusolverSpCreate(&handle));
	EACH_TYPE(t)
	{
		EACH_SIZE(n)
		{
			if (!n)
				continue;
			qr_of(t, n, n);
			qr_of(t, n + 4, n);
			batch_of(t, n, n);
			batch_of(t, n + 3, n);
			cholesky_of(t, n);
		}
		singular_of(t);
	}
	SOLVER(cusolverSpCreateCsrqrInfo(&info));
	SOLVER(cusolverSpDestroyCsrqrInfo(info));
	SOLVER(cusolverSpDestroy(handle));
	printf("ok\n");
	return 0;
}
