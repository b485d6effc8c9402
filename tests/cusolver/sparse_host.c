/* SPDX-License-Identifier: Apache-2.0
 *
 * Sparse matrices of the host: systems solved, orders of the rows, permutations, a diagonal
 * without zeros, symmetry.
 */
#include "tests/cusolver/sparse.h"

static cusolverSpHandle_t handle;

#define PATTERN s.descriptor, s.rows, s.columns

/* Numbers of the host in a type's own form. */
static void *typed(enum type t, const number *from, int count)
{
	char *to = host((size_t)(count + 1) * sizeof(number));

	for (int i = 0; i < count; i++)
		switch (t) {
		case S: ((float *)(void *)to)[i] = (float)creal(from[i]); break;
		case D: ((double *)(void *)to)[i] = creal(from[i]); break;
		case C: ((float complex *)(void *)to)[i] = (float complex)from[i]; break;
		case Z: ((number *)(void *)to)[i] = from[i]; break;
		}
	return to;
}

static number *plain(enum type t, const void *from, int count)
{
	number *to = host((size_t)(count + 1) * sizeof(*to));

	for (int i = 0; i < count; i++)
		to[i] = t == S	 ? ((const float *)from)[i]
			: t == D ? ((const double *)from)[i]
			: t == C ? ((const float complex *)from)[i]
				 : ((const number *)from)[i];
	return to;
}

static void system_of(enum type t, int n, int base)
{
	struct sparse s = sparse_band(t, n, n, base, -1);
	number *x = some(t, n, 1), *b = sparse_times(&s, x);
	void *values = typed(t, s.values, s.entries), *right = typed(t, b, n);
	void *to = host((size_t)(n + 1) * sizeof(number));

#define SOLVED(NAME)                                                                           \
	do {                                                                                   \
		int singular_ = 99;                                                            \
		number *got_;                                                                  \
		memset(to, 0, (size_t)n * sizeof(number));                                     \
		SOLVER(SP_TYPED(t, NAME, handle, n, s.entries, s.descriptor, values, s.rows,   \
			s.columns, right, 0, 0, to, &singular_));                              \
		CHECK(singular_ == -1, #NAME ": type %d, n %d: singular at %d", t, n,          \
			singular_);                                                            \
		got_ = plain(t, to, n);                                                        \
		CLOSE(t, got_, x, n, n, #NAME);                                                \
		free(got_);                                                                    \
	} while (0)
	SOLVED(csrlsvqrHost);
	SOLVED(csrlsvluHost);
	SOLVED(csrlsvcholHost);
	FREE(x, b, values, right, to);
	sparse_drop(&s);
}

/* Both factorizations in steps, solved with twice. */
static void steps_of(enum type t, int n)
{
	struct sparse s = sparse_band(t, n, n, 0, -1);
	number *x = some(t, n, 1), *b = sparse_times(&s, x);
	void *values = typed(t, s.values, s.entries), *right = typed(t, b, n);
	void *to = host((size_t)(n + 1) * sizeof(number)), *work;
	csrcholInfoHost_t cholesky;
	csrqrInfoHost_t qr;
	size_t inside, bytes;
	int position = 99;

#define MATRIX s.descriptor, values, s.rows, s.columns
#define FOUND(NAME, CALL)                                                                      \
	do {                                                                                   \
		number *got_;                                                                  \
		memset(to, 0, (size_t)n * sizeof(number));                                     \
		SOLVER(CALL);                                                                  \
		got_ = plain(t, to, n);                                                        \
		CLOSE(t, got_, x, n, n, NAME);                                                 \
		free(got_);                                                                    \
	} while (0)
	SOLVER(cusolverSpCreateCsrcholInfoHost(&cholesky));
	SOLVER(cusolverSpXcsrcholAnalysisHost(handle, n, s.entries, PATTERN, cholesky));
	SOLVER(SP_TYPED(t, csrcholBufferInfoHost, handle, n, s.entries, MATRIX, cholesky,
		&inside, &bytes));
	work = host(bytes);
	SOLVER(SP_TYPED(t, csrcholFactorHost, handle, n, s.entries, MATRIX, cholesky, work));
	SOLVER(SP_TYPED(t, csrcholZeroPivotHost, handle, cholesky, 0, &position));
	CHECK(position == -1, "ended at %d", position);
	for (int i = 0; i < 2; i++)
		FOUND("csrcholSolveHost",
			SP_TYPED(t, csrcholSolveHost, handle, n, right, to, cholesky, work));
	SOLVER(cusolverSpDestroyCsrcholInfoHost(cholesky));
	free(work);
	SOLVER(cusolverSpCreateCsrqrInfoHost(&qr));
	SOLVER(cusolverSpXcsrqrAnalysisHost(handle, n, n, s.entries, PATTERN, qr));
	SOLVER(SP_TYPED(
		t, csrqrBufferInfoHost, handle, n, n, s.entries, MATRIX, qr, &inside, &bytes));
	work = host(bytes);
	switch (t) {
	case S:
		SOLVER(cusolverSpScsrqrSetupHost(handle, n, n, s.entries, MATRIX, 0, qr));
		break;
	case D:
		SOLVER(cusolverSpDcsrqrSetupHost(handle, n, n, s.entries, MATRIX, 0, qr));
		break;
	case C:
		SOLVER(cusolverSpCcsrqrSetupHost(
			handle, n, n, s.entries, MATRIX, make_cuComplex(0, 0), qr));
		break;
	default:
		SOLVER(cusolverSpZcsrqrSetupHost(
			handle, n, n, s.entries, MATRIX, make_cuDoubleComplex(0, 0), qr));
	}
	SOLVER(SP_TYPED(t, csrqrFactorHost, handle, n, n, s.entries, NULL, NULL, qr, work));
	position = 99;
	SOLVER(SP_TYPED(t, csrqrZeroPivotHost, handle, qr, 0, &position));
	CHECK(position == -1, "a pivot of zero at %d", position);
	for (int i = 0; i < 2; i++) {
		/* It may be Q's product with it when the call is done. */
		free(right);
		right = typed(t, b, n);
		FOUND("csrqrSolveHost",
			SP_TYPED(t, csrqrSolveHost, handle, n, n, right, to, qr, work));
	}
	SOLVER(cusolverSpDestroyCsrqrInfoHost(qr));
	FREE(x, b, values, right, to, work);
	sparse_drop(&s);
}

static void each_once(const int *p, int n, const char *what)
{
	bool *seen = host((size_t)n + 1);

	for (int i = 0; i < n; i++) {
		CHECK(p[i] >= 0 && p[i] < n && !seen[p[i]], "%s: %d at %d of %d", what, p[i], i,
			n);
		seen[p[i]] = true;
	}
	free(seen);
}

static void orders_of(int n, int base)
{
	struct sparse s = sparse_band(D, n, n, base, -1);
	int *p = host((size_t)(n + 1) * sizeof(int)), symmetric = 9;

	SOLVER(cusolverSpXcsrsymrcmHost(handle, n, s.entries, PATTERN, p));
	each_once(p, n, "symrcm");
	SOLVER(cusolverSpXcsrsymmdqHost(handle, n, s.entries, PATTERN, p));
	each_once(p, n, "symmdq");
	SOLVER(cusolverSpXcsrsymamdHost(handle, n, s.entries, PATTERN, p));
	each_once(p, n, "symamd");
	SOLVER(cusolverSpXcsrmetisndHost(handle, n, s.entries, PATTERN, NULL, p));
	each_once(p, n, "metisnd");
	SOLVER(cusolverSpXcsrissymHost(
		handle, n, s.entries, s.descriptor, s.rows, s.rows + 1, s.columns, &symmetric));
	CHECK(symmetric == 1, "a symmetric pattern is told to be none");
	free(p);
	sparse_drop(&s);
}

/* A cyclic exchange: the diagonal is empty, and no pattern is symmetric. */
static void cycle_of(int n, int base)
{
	struct sparse s = sparse_band(D, n, n, base, -1);
	double *values = host((size_t)n * sizeof(*values));
	int *p = host((size_t)n * sizeof(int)), *q = host((size_t)n * sizeof(int));
	int *map = host((size_t)n * sizeof(int)), count = -1, symmetric = 9;
	size_t bytes = 0;
	void *work;

	for (int i = 0; i < n; i++) {
		s.rows[i] = i + base;
		s.columns[i] = (i + 1) % n + base;
		values[i] = i + 1;
		map[i] = q[i] = i;
	}
	s.rows[n] = n + base;
	SOLVER(cusolverSpXcsrissymHost(
		handle, n, n, s.descriptor, s.rows, s.rows + 1, s.columns, &symmetric));
	CHECK(symmetric == (n < 3), "symmetric: %d", symmetric);
	SOLVER(cusolverSpDcsrzfdHost(
		handle, n, n, s.descriptor, values, s.rows, s.columns, p, &count));
	CHECK(count == n, "%d of %d on the diagonal", count, n);
	each_once(p, n, "zfd");
	SOLVER(cusolverSpXcsrperm_bufferSizeHost(
		handle, n, n, n, s.descriptor, s.rows, s.columns, p, q, &bytes));
	work = host(bytes);
	SOLVER(cusolverSpXcsrpermHost(
		handle, n, n, n, s.descriptor, s.rows, s.columns, p, q, map, work));
	for (int i = 0; i < n; i++)
		CHECK(s.columns[i] - base == i && s.rows[i] == i + base && map[i] == p[i],
			"row %d: column %d, entry %d", i, s.columns[i] - base, map[i]);
	FREE(values, p, q, map, work);
	sparse_drop(&s);
}

/* Rows and columns in other orders, looked up in a dense copy. */
static void permuted_of(int n)
{
	struct sparse s = sparse_band(D, n, n, 0, -1);
	int *p = host((size_t)n * sizeof(int)), *q = host((size_t)n * sizeof(int));
	int *map = host((size_t)s.entries * sizeof(int));
	number *dense = host((size_t)n * (size_t)n * sizeof(*dense));
	size_t bytes = 0;
	void *work;

	for (int i = 0; i < n; i++) {
		p[i] = n - 1 - i;
		q[i] = (i + n / 2) % n;
		for (int k = s.rows[i]; k < s.rows[i + 1]; k++)
			dense[i + s.columns[k] * n] = s.values[k];
	}
	for (int k = 0; k < s.entries; k++)
		map[k] = k;
	SOLVER(cusolverSpXcsrperm_bufferSizeHost(
		handle, n, n, s.entries, PATTERN, p, q, &bytes));
	work = host(bytes);
	SOLVER(cusolverSpXcsrpermHost(
		handle, n, n, s.entries, s.descriptor, s.rows, s.columns, p, q, map, work));
	CHECK(s.rows[0] == 0 && s.rows[n] == s.entries, "%d entries", s.rows[n]);
	for (int i = 0; i < n; i++)
		for (int k = s.rows[i]; k < s.rows[i + 1]; k++)
			CHECK(s.values[map[k]] == dense[p[i] + q[s.columns[k]] * n],
				"row %d, column %d", i, s.columns[k]);
	FREE(p, q, map, dense, work);
	sparse_drop(&s);
}

int main(void)
{
	device_begin();
	SOLVER(cusolverSpCreate(&handle));
	EACH_SIZE(n)
	{
		if (!n)
			continue;
		for (int base = 0; base < 2; base++) {
			EACH_TYPE(t)
			system_of(t, n, base);
			orders_of(n, base);
			if (n > 1)
				cycle_of(n, base);
		}
		permuted_of(n);
		EACH_TYPE(t)
		steps_of(t, n);
	}
	SOLVER(cusolverSpDestroy(handle));
	printf("ok\n");
	return 0;
}
