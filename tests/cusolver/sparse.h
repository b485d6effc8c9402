/* SPDX-License-Identifier: Apache-2.0
 *
 * Sparse matrices for the programs of cusolverSp: band matrices in compressed rows, with what a
 * product with them is.
 */
#ifndef TESTS_CUSOLVER_SPARSE_H
#define TESTS_CUSOLVER_SPARSE_H

#include "tests/cusolver/check.h"

#include <cusolverSp.h>
#include <cusolverSp_LOWLEVEL_PREVIEW.h>

#define SPARSE(CALL)                                                                           \
	do {                                                                                   \
		int sparse_ = (int)(CALL);                                                     \
		if (sparse_)                                                                   \
			DIE("%s gave %d", #CALL, sparse_);                                     \
	} while (0)
/* The function of a type. */
#define SP_TYPED(T, NAME, ...)                                                                 \
	((T) == S	   ? cusolverSpS##NAME(__VA_ARGS__)                                    \
		: (T) == D ? cusolverSpD##NAME(__VA_ARGS__)                                    \
		: (T) == C ? cusolverSpC##NAME(__VA_ARGS__)                                    \
			   : cusolverSpZ##NAME(__VA_ARGS__))

struct sparse {
	enum type t;
	int m, n, entries, base;
	int *rows, *columns; /* on the host */
	number *values;
	cusparseMatDescr_t descriptor;
	void *at; /* on the device, as are … */
	int *at_rows, *at_columns;
};

static inline void sparse_upload(struct sparse *s)
{
	s->at = put(s->t, s->values, s->entries, 1, s->entries ? s->entries : 1);
	s->at_rows = device((size_t)(s->m + 1) * sizeof(int));
	s->at_columns = device((size_t)s->entries * sizeof(int));
	CUDA(cuMemcpyHtoD(
		(CUdeviceptr)(uintptr_t)s->at_rows, s->rows, (size_t)(s->m + 1) * sizeof(int)));
	if (s->entries)
		CUDA(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)s->at_columns, s->columns,
			(size_t)s->entries * sizeof(int)));
}

/* Hermitian and positive definite where m is n: its diagonal is 8, and four neighbours of each
 * row are less than 1. Row and column `gone` have no entry but a 0 on the diagonal; -1: none.
 */
static inline struct sparse sparse_band(enum type t, int m, int n, int base, int gone)
{
	struct sparse s = {.t = t, .m = m, .n = n, .base = base};

	s.rows = host((size_t)(m + 1) * sizeof(int));
	s.columns = host((size_t)m * 5 * sizeof(int));
	s.values = host((size_t)m * 5 * sizeof(number));
	for (int i = 0; i < m; i++) {
		s.rows[i] = s.entries + base;
		for (int j = i - 5; j <= i + 5; j++) {
			number v = i == j ? 8
					  : (0.5 + 0.4 * cos(i + j)) +
						    (is_complex(t) ? 0.3 * (i - j) : 0) * 1i;

			if (j < 0 || j >= n || (i != j && abs(i - j) != 1 && abs(i - j) != 5))
				continue;
			if (i == gone || j == gone) {
				if (i != j)
					continue;
				v = 0;
			}
			s.columns[s.entries] = j + base;
			s.values[s.entries++] = v;
		}
	}
	s.rows[m] = s.entries + base;
	SPARSE(cusparseCreateMatDescr(&s.descriptor));
	SPARSE(cusparseSetMatIndexBase(
		s.descriptor, base ? CUSPARSE_INDEX_BASE_ONE : CUSPARSE_INDEX_BASE_ZERO));
	sparse_upload(&s);
	return s;
}

static inline void sparse_drop(struct sparse *s)
{
	SPARSE(cusparseDestroyMatDescr(s->descriptor));
	RELEASE(s->at, s->at_rows, s->at_columns);
	FREE(s->rows, s->columns, s->values);
}

/* Its product with x, of m numbers. */
static inline number *sparse_times(const struct sparse *s, const number *x)
{
	number *b = host((size_t)s->m * sizeof(*b));

	for (int i = 0; i < s->m; i++)
		for (int k = s->rows[i] - s->base; k < s->rows[i + 1] - s->base; k++)
			b[i] += s->values[k] * x[s->columns[k] - s->base];
	return b;
}

#endif
