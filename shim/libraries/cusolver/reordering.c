/* SPDX-License-Identifier: Apache-2.0
 *
 * What the host asks of a sparse matrix' pattern: orders of its rows, permutations, symmetry.
 * No number is computed, so it is answered here.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/generated/cusolver_hand.h"
#include "shim/libraries/cusolver/cusolver.h"

int cusolver_pattern(struct cusolver_pattern *p, cusolverSpHandle_t handle, int m, int n,
	int nnz, const cusparseMatDescr_t descr, const int *rows, const int *columns)
{
	struct cusolver_matrix matrix;

	if (!vcuda_library_find(&cusolverSpHandle_front, handle))
		return CUSOLVER_STATUS_NOT_INITIALIZED;
	if (m < 0 || n < 0 || nnz < 0 || !rows || (nnz && !columns) ||
		!cusolver_matrix_of(descr, &matrix))
		return CUSOLVER_STATUS_INVALID_VALUE;
	*p = (struct cusolver_pattern){m, n, nnz, matrix.base, rows, columns};
	if (rows[0] != p->base || rows[m] - p->base != nnz)
		return CUSOLVER_STATUS_INVALID_VALUE;
	for (int i = 0; i < m; i++)
		if (rows[i + 1] < rows[i])
			return CUSOLVER_STATUS_INVALID_VALUE;
	for (int k = 0; k < nnz; k++)
		if (columns[k] < p->base || columns[k] - p->base >= n)
			return CUSOLVER_STATUS_INVALID_VALUE;
	return CUSOLVER_STATUS_SUCCESS;
}

/* ---- neighbours: the pattern of A + A^T without its diagonal ---- */

struct graph {
	int n;
	int *from, *to; /* those of i: to[from[i]] … to[from[i + 1] - 1] */
};

static void graph_drop(struct graph *g)
{
	free(g->from);
	free(g->to);
}

static bool graph_make(struct graph *g, const struct cusolver_pattern *p)
{
	size_t n = (size_t)p->n;
	int *next = calloc(n + 2, sizeof(*next));

	*g = (struct graph){.n = p->n,
		.from = calloc(n + 2, sizeof(int)),
		.to = calloc(2 * (size_t)p->entries + 1, sizeof(int))};
	if (!next || !g->from || !g->to) {
		free(next);
		return false;
	}
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < p->m; i++)
			for (int k = p->rows[i] - p->base; k < p->rows[i + 1] - p->base; k++) {
				int j = p->columns[k] - p->base;

				if (i == j)
					continue;
				if (pass) {
					g->to[next[i]++] = j;
					g->to[next[j]++] = i;
				} else {
					g->from[i + 1]++;
					g->from[j + 1]++;
				}
			}
		for (int i = 0; !pass && i < p->n; i++)
			next[i + 1] = g->from[i + 1] += g->from[i];
	}
	free(next);
	return true;
}

static int degree(const struct graph *g, int i)
{
	return g->from[i + 1] - g->from[i];
}

/* From the given row outwards, level by level, those with few neighbours first: how many rows
 * were found, the last of them farthest. */
static int levels(const struct graph *g, int start, int *order, bool *seen)
{
	int count = 1;

	order[0] = start;
	seen[start] = true;
	for (int at = 0; at < count; at++) {
		int first = count;

		for (int k = g->from[order[at]]; k < g->from[order[at] + 1]; k++) {
			int j = g->to[k], place = count;

			if (seen[j])
				continue;
			seen[j] = true;
			while (place > first && degree(g, order[place - 1]) > degree(g, j)) {
				order[place] = order[place - 1];
				place--;
			}
			order[place] = j;
			count++;
		}
	}
	return count;
}

/* Cuthill and McKee's order, reversed. Each part of the graph begins at a row that is farthest
 * from another. */
static bool rows_order(const struct graph *g, int *order)
{
	bool *seen = calloc((size_t)g->n + 1, sizeof(*seen));
	int done = 0;

	for (int i = 0; seen && i < g->n; i++) {
		int count, end;

		if (seen[i])
			continue;
		count = levels(g, i, order + done, seen);
		end = order[done + count - 1];
		for (int k = 0; k < count; k++)
			seen[order[done + k]] = false;
		done += levels(g, end, order + done, seen);
	}
	for (int i = 0; seen && i < g->n / 2; i++) {
		int other = order[i];

		order[i] = order[g->n - 1 - i];
		order[g->n - 1 - i] = other;
	}
	free(seen);
	return done == g->n;
}

int cusolver_order(const struct cusolver_pattern *pattern, int *p)
{
	struct graph g = {0};
	int status = CUSOLVER_STATUS_SUCCESS;

	if (!graph_make(&g, pattern) || !rows_order(&g, p))
		status = CUSOLVER_STATUS_ALLOC_FAILED;
	graph_drop(&g);
	return status;
}

/* Whichever order is asked for. */
static int order_of(cusolverSpHandle_t handle, int n, int nnz, const cusparseMatDescr_t descr,
	const int *rows, const int *columns, int *p)
{
	struct cusolver_pattern pattern;
	int status = cusolver_pattern(&pattern, handle, n, n, nnz, descr, rows, columns);

	if (status || !p)
		return status ? status : CUSOLVER_STATUS_INVALID_VALUE;
	return cusolver_order(&pattern, p);
}

#define ORDER(NAME)                                                                            \
	cusolverStatus_t hand_cusolverSpXcsr##NAME##Host(cusolverSpHandle_t handle, int n,     \
		int nnzA, const cusparseMatDescr_t descrA, const int *csrRowPtrA,              \
		const int *csrColIndA, int *p)                                                 \
	{                                                                                      \
		return order_of(handle, n, nnzA, descrA, csrRowPtrA, csrColIndA, p);           \
	}
ORDER(symrcm)
ORDER(symmdq)
ORDER(symamd)

/* The options choose among ways to the order, which is one here. */
cusolverStatus_t hand_cusolverSpXcsrmetisndHost(cusolverSpHandle_t handle, int n, int nnzA,
	const cusparseMatDescr_t descrA, const int *csrRowPtrA, const int *csrColIndA,
	const int64_t *options, int *p)
{
	(void)options;
	return order_of(handle, n, nnzA, descrA, csrRowPtrA, csrColIndA, p);
}

/* ---- symmetry ---- */

static bool row_has(const struct cusolver_pattern *p, int i, int j)
{
	for (int k = p->rows[i] - p->base; k < p->rows[i + 1] - p->base; k++)
		if (p->columns[k] - p->base == j)
			return true;
	return false;
}

cusolverStatus_t hand_cusolverSpXcsrissymHost(cusolverSpHandle_t handle, int m, int nnzA,
	const cusparseMatDescr_t descrA, const int *csrRowPtrA, const int *csrEndPtrA,
	const int *csrColIndA, int *issym)
{
	struct cusolver_pattern p;
	int status;

	if (csrEndPtrA != csrRowPtrA + 1) /* rows with room between them */
		return CUSOLVER_STATUS_NOT_SUPPORTED;
	status = cusolver_pattern(&p, handle, m, m, nnzA, descrA, csrRowPtrA, csrColIndA);
	if (status || !issym)
		return status ? status : CUSOLVER_STATUS_INVALID_VALUE;
	*issym = 1;
	for (int i = 0; i < m && *issym; i++)
		for (int k = p.rows[i] - p.base; k < p.rows[i + 1] - p.base; k++)
			if (!row_has(&p, p.columns[k] - p.base, i))
				*issym = 0;
	return CUSOLVER_STATUS_SUCCESS;
}
