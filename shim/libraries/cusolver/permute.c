/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows and columns of a sparse matrix of the host in another order, and the order of rows that
 * leaves no zero on the diagonal.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/generated/cusolver_hand.h"
#include "shim/libraries/cusolver/cusolver.h"

/* Whether it has each of 0 … n - 1 once; `inverse`, of n, is filled in. */
static bool permutation(const int *p, int n, int *inverse)
{
	for (int i = 0; i < n; i++)
		inverse[i] = -1;
	for (int i = 0; p && i < n; i++) {
		if (p[i] < 0 || p[i] >= n || inverse[p[i]] >= 0)
			return false;
		inverse[p[i]] = i;
	}
	return p;
}

cusolverStatus_t hand_cusolverSpXcsrperm_bufferSizeHost(cusolverSpHandle_t handle, int m, int n,
	int nnzA, const cusparseMatDescr_t descrA, const int *csrRowPtrA, const int *csrColIndA,
	const int *p, const int *q, size_t *bufferSizeInBytes)
{
	struct cusolver_pattern pattern;
	int status =
		cusolver_pattern(&pattern, handle, m, n, nnzA, descrA, csrRowPtrA, csrColIndA);

	if (status || !p || !q || !bufferSizeInBytes)
		return status ? status : CUSOLVER_STATUS_INVALID_VALUE;
	*bufferSizeInBytes = sizeof(int) * (2 * (size_t)nnzA + (size_t)m + (size_t)n + 2);
	return CUSOLVER_STATUS_SUCCESS;
}

/* The room of a permutation; it lies in one piece of memory. */
struct room {
	int *rows, *columns, *map, *inverse;
};

/* An entry into its row, which is kept in the order of its columns. */
static void entry_put(const struct room *room, int from, int at, int column, int which)
{
	while (at > from && room->columns[at - 1] > column) {
		room->columns[at] = room->columns[at - 1];
		room->map[at] = room->map[at - 1];
		at--;
	}
	room->columns[at] = column;
	room->map[at] = which;
}

static void permute(
	const struct cusolver_pattern *a, const int *p, const int *map, const struct room *to)
{
	int count = 0;

	for (int i = 0; i < a->m; i++) {
		int from = count;

		to->rows[i] = from + a->base;
		for (int k = a->rows[p[i]] - a->base; k < a->rows[p[i] + 1] - a->base; k++)
			entry_put(to, from, count++,
				to->inverse[a->columns[k] - a->base] + a->base, map[k]);
	}
	to->rows[a->m] = count + a->base;
}

cusolverStatus_t hand_cusolverSpXcsrpermHost(cusolverSpHandle_t handle, int m, int n, int nnzA,
	const cusparseMatDescr_t descrA, int *csrRowPtrA, int *csrColIndA, const int *p,
	const int *q, int *map, void *pBuffer)
{
	struct cusolver_pattern a;
	struct room room;
	size_t rows = (size_t)m + 1, entries = (size_t)nnzA, most = (size_t)(m > n ? m : n);
	int status = cusolver_pattern(&a, handle, m, n, nnzA, descrA, csrRowPtrA, csrColIndA);

	if (status || !map || !pBuffer)
		return status ? status : CUSOLVER_STATUS_INVALID_VALUE;
	room.rows = malloc((rows + 2 * entries + most + 1) * sizeof(int));
	if (!room.rows)
		return CUSOLVER_STATUS_ALLOC_FAILED;
	room.columns = room.rows + rows;
	room.map = room.columns + entries;
	room.inverse = room.map + entries;
	if (permutation(p, m, room.inverse) && permutation(q, n, room.inverse)) {
		permute(&a, p, map, &room);
		memcpy(csrRowPtrA, room.rows, rows * sizeof(int));
		memcpy(csrColIndA, room.columns, entries * sizeof(int));
		memcpy(map, room.map, entries * sizeof(int));
	} else {
		status = CUSOLVER_STATUS_INVALID_VALUE;
	}
	free(room.rows);
	return status;
}

/* ---- a diagonal without zeros: a matching of rows and columns ---- */

struct matching {
	const struct cusolver_pattern *a;
	const bool *zero;	 /* of each entry */
	int *row_of, *column_of; /* -1: none */
	int *seen;		 /* the row for which a column was reached last, … */
	int *came, *queue;	 /* … by which row; rows to look at */
};

/* A row gets a column, others theirs anew; false: there is none left for it. */
static bool match(struct matching *m, int row)
{
	const struct cusolver_pattern *a = m->a;
	int count = 1;

	m->queue[0] = row;
	for (int at = 0; at < count; at++) {
		int i = m->queue[at];

		for (int k = a->rows[i] - a->base; k < a->rows[i + 1] - a->base; k++) {
			int j = a->columns[k] - a->base;

			if (m->zero[k] || m->seen[j] == row)
				continue;
			m->seen[j] = row;
			m->came[j] = i;
			if (m->row_of[j] >= 0) {
				m->queue[count++] = m->row_of[j];
				continue;
			}
			while (j >= 0) { /* back along the way that it was found by */
				int by = m->came[j], before = m->column_of[by];

				m->row_of[j] = by;
				m->column_of[by] = j;
				j = by == row ? -1 : before;
			}
			return true;
		}
	}
	return false;
}

/* Row P[j] is the j-th; how many of the diagonal are no zeros. */
static int match_all(struct matching *m, int *p)
{
	int n = m->a->n, found = 0, rest = 0;

	memset(m->row_of, 0xff, (size_t)n * sizeof(int));
	memset(m->column_of, 0xff, (size_t)n * sizeof(int));
	memset(m->seen, 0xff, (size_t)n * sizeof(int));
	for (int i = 0; i < n; i++)
		found += match(m, i);
	for (int j = 0; j < n; j++) {
		while (m->row_of[j] < 0 && m->column_of[rest] >= 0)
			rest++;
		p[j] = m->row_of[j] >= 0 ? m->row_of[j] : rest++;
	}
	return found;
}

static int zero_free(const struct cusolver_pattern *a, const bool *zero, int *p, int *numnz)
{
	size_t n = (size_t)a->n + 1;
	struct matching m = {.a = a, .zero = zero};

	m.row_of = malloc(5 * n * sizeof(int));
	if (!m.row_of)
		return CUSOLVER_STATUS_ALLOC_FAILED;
	m.column_of = m.row_of + n;
	m.came = m.column_of + n;
	m.queue = m.came + n;
	m.seen = m.queue + n;
	*numnz = match_all(&m, p);
	free(m.row_of);
	return CUSOLVER_STATUS_SUCCESS;
}

#define ZERO_FREE(P, TYPE, IS_ZERO)                                                            \
	cusolverStatus_t hand_cusolverSp##P##csrzfdHost(cusolverSpHandle_t handle, int n,      \
		int nnz, const cusparseMatDescr_t descrA, const TYPE *csrValA,                 \
		const int *csrRowPtrA, const int *csrColIndA, int *order, int *numnz)          \
	{                                                                                      \
		struct cusolver_pattern a;                                                     \
		bool *zero;                                                                    \
		int status = cusolver_pattern(                                                 \
			&a, handle, n, n, nnz, descrA, csrRowPtrA, csrColIndA);                \
                                                                                               \
		if (status || (nnz && !csrValA) || !order || !numnz)                           \
			return status ? status : CUSOLVER_STATUS_INVALID_VALUE;                \
		zero = malloc((size_t)nnz + 1);                                                \
		if (!zero)                                                                     \
			return CUSOLVER_STATUS_ALLOC_FAILED;                                   \
		for (int k = 0; k < nnz; k++)                                                  \
			zero[k] = IS_ZERO(csrValA[k]);                                         \
		status = zero_free(&a, zero, order, numnz);                                    \
		free(zero);                                                                    \
		return status;                                                                 \
	}
#define REAL_ZERO(V) ((V) == 0)
#define COMPLEX_ZERO(V) ((V).x == 0 && (V).y == 0)
ZERO_FREE(S, float, REAL_ZERO)
ZERO_FREE(D, double, REAL_ZERO)
ZERO_FREE(C, cuComplex, COMPLEX_ZERO)
ZERO_FREE(Z, cuDoubleComplex, COMPLEX_ZERO)
