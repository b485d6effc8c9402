/* SPDX-License-Identifier: Apache-2.0
 *
 * Updates, mirrored products and triangles as plain loops, for the programs that compare
 * cuBLAS's and cublasXt's with them. What they find goes to WANT, laid out as C is, which may
 * be C's own memory on the host.
 */
#ifndef TESTS_CUBLAS_LOOPS_H
#define TESTS_CUBLAS_LOOPS_H

#include "tests/cublas/forms.h"

/* Element (i, j) of a matrix of which one half stands for the other. */
static inline double complex half_get(
	const struct matrix *m, int uplo, bool hermitian, int i, int j)
{
	bool other = uplo ? i > j : i < j;
	double complex v = other ? at_of(m, 0, j, i) : at_of(m, 0, i, j);

	if (!hermitian)
		return v;
	return i == j ? creal(v) : other ? conj(v) : v;
}

/* A matrix that op() makes rows by cols. */
static inline struct matrix operand(cudaDataType type, int op, int rows, int cols)
{
	int r = op ? cols : rows, c = op ? rows : cols;

	return matrix_new(type, r + 1, c > 0 ? c : 1);
}

enum update { ONE, TWO, OTHER }; /* A A', A B' + B A', A B' */

/* One half of C, by the product of op(A) and op(B), and C. */
static inline void loop_update(void *want, const struct matrix *c, const struct matrix *a,
	const struct matrix *b, enum update what, bool hermitian, int n, int k, int uplo,
	int op, double complex by, double complex and)
{
	for (int j = 0; j < n; j++)
		for (int i = uplo ? 0 : j; i < (uplo ? j + 1 : n); i++) {
			size_t at = (size_t)(j * c->ld + i);
			double complex sum = 0;

			for (int l = 0; l < k; l++) {
				double complex ai = at_of(a, op, i, l), aj = at_of(a, op, j, l);
				double complex bi = at_of(b, op, i, l), bj = at_of(b, op, j, l);
				double complex other = what == ONE ? aj : bj;

				sum += by * ai * (hermitian ? conj(other) : other);
				if (what == TWO && hermitian)
					sum += conj(by) * bi * conj(aj);
				else if (what == TWO)
					sum += by * bi * aj;
			}
			sum += and * get_at(c->host, c->type, at);
			put_at(want, c->type, at, hermitian && i == j ? creal(sum) : sum);
		}
}

/* A, of which one half is looked at, times B or B times A; by alpha, and beta C. */
static inline void loop_mirrored(void *want, const struct matrix *c, const struct matrix *a,
	const struct matrix *b, bool hermitian, int m, int n, int side, int uplo,
	double complex by, double complex and)
{
	int order = side ? n : m;

	for (int j = 0; j < n; j++)
		for (int i = 0; i < m; i++) {
			size_t at = (size_t)(j * c->ld + i);
			double complex sum = 0;

			for (int l = 0; l < order; l++)
				sum += side ? at_of(b, 0, i, l) *
						       half_get(a, uplo, hermitian, l, j)
					    : half_get(a, uplo, hermitian, i, l) *
						       at_of(b, 0, l, j);
			put_at(want, c->type, at, by * sum + and*get_at(c->host, c->type, at));
		}
}

static inline double complex triangle_get(
	const struct matrix *a, int uplo, int op, int diag, int i, int j)
{
	int row = op ? j : i, col = op ? i : j;
	double complex v = at_of(a, 0, row, col);

	if (row == col && diag)
		return 1;
	if (uplo ? row > col : row < col)
		return 0;
	return op == 2 ? conj(v) : v;
}

/* by op(A) B or by B op(A), of which A is a triangle. */
static inline void loop_triangle(void *want, const struct matrix *c, const struct matrix *a,
	const struct matrix *b, int m, int n, int side, int uplo, int op, int diag,
	double complex by)
{
	int order = side ? n : m;

	for (int j = 0; j < n; j++)
		for (int i = 0; i < m; i++) {
			double complex sum = 0;

			for (int l = 0; l < order; l++)
				sum += side ? at_of(b, 0, i, l) *
						       triangle_get(a, uplo, op, diag, l, j)
					    : triangle_get(a, uplo, op, diag, i, l) *
						       at_of(b, 0, l, j);
			put_at(want, c->type, (size_t)(j * c->ld + i), by * sum);
		}
}

/* A triangle that may be solved: little beside its diagonal. */
static inline void triangle_solid(struct matrix *a, int order)
{
	for (size_t i = 0; i < a->count; i++)
		put_at(a->host, a->type, i, get_at(a->host, a->type, i) / 16);
	for (int i = 0; i < order; i++)
		put_at(a->host, a->type, (size_t)(i * a->ld + i), 1.5 + 0.5 * I);
}

#endif
