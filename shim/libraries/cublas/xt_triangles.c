/* SPDX-License-Identifier: Apache-2.0
 *
 * cublasXt's triangles: products with them and solutions.  Tiles of a panel are taken in the
 * order in which none that is overwritten is needed later (a product may have its result where
 * B was), or in which each needs only what is solved already.  See xt.h.
 */
#include "shim/libraries/cublas/xt.h"

enum { OP_N };

struct triangle {
	int how[4]; /* side, uplo, op, diag */
	struct xt_matrix a, b, c;
	struct xt_scalar alpha, one, less;
	size_t tiles; /* of A, in a direction */
};

/* Whether op(A) has something below its diagonal. */
static bool lower(const struct triangle *t)
{
	return !t->how[1] == !t->how[2];
}

/* Tile (row, col) of op(A). */
static struct xt_tile tile_of(
	struct xt_run *run, const struct triangle *t, size_t row, size_t col)
{
	return t->how[2] ? xt_tile(run, &t->a, col, row, true)
			 : xt_tile(run, &t->a, row, col, true);
}

/* The tile at IN, along the triangle's direction, of panel ACROSS. */
static struct xt_tile along(struct xt_run *run, const struct triangle *t,
	const struct xt_matrix *m, size_t in, size_t across, bool read)
{
	return t->how[0] ? xt_tile(run, m, across, in, read)
			 : xt_tile(run, m, in, across, read);
}

static void result(struct xt_run *run, const struct triangle *t, const struct xt_matrix *m,
	size_t in, size_t across, struct xt_tile tile)
{
	if (t->how[0])
		xt_result(run, m, across, in, tile);
	else
		xt_result(run, m, in, across, tile);
}

/* C(s) = factor * op(A)(s, l) B(l) + keep * C(s), or from the right */
static void step(struct xt_run *run, const struct triangle *t, const struct xt_matrix *from,
	const struct xt_scalar *factor, const struct xt_scalar *keep, size_t s, size_t l,
	size_t across)
{
	struct xt_tile a, b, c;

	xt_step(run);
	c = along(run, t, &t->c, s, across, true);
	b = along(run, t, from, l, across, true);
	a = t->how[0] ? tile_of(run, t, l, s) : tile_of(run, t, s, l);
	if (t->how[0])
		xt_multiply(run, OP_N, t->how[2], factor, b, a, keep, c);
	else
		xt_multiply(run, t->how[2], OP_N, factor, a, b, keep, c);
}

/* What tile S needs of the others: [*first, *end). */
static void needs(const struct triangle *t, size_t s, size_t *first, size_t *end)
{
	bool before = lower(t) != (t->how[0] != 0);

	*first = before ? 0 : s + 1;
	*end = before ? s : t->tiles;
}

static void product(struct xt_run *run, const struct triangle *t, size_t s, size_t across)
{
	struct xt_tile a, b, c;
	size_t first, end;

	xt_step(run);
	c = along(run, t, &t->c, s, across, false);
	b = along(run, t, &t->b, s, across, true);
	a = xt_tile(run, &t->a, s, s, true);
	xt_triangle(run, t->how, &t->alpha, a, b, c);
	needs(t, s, &first, &end);
	for (size_t l = first; l < end; l++)
		step(run, t, &t->b, &t->alpha, &t->one, s, l, across);
	result(run, t, &t->c, s, across, c);
}

/* Of what is solved of it, B keeps the solution. */
static void solution(struct xt_run *run, const struct triangle *t, size_t s, size_t across)
{
	size_t first, end;
	struct xt_tile a, b;

	needs(t, s, &first, &end);
	for (size_t l = first; l < end; l++)
		step(run, t, &t->c, &t->less, l == first ? &t->alpha : &t->one, s, l, across);
	xt_step(run);
	b = along(run, t, &t->c, s, across, true);
	a = xt_tile(run, &t->a, s, s, true);
	xt_solve(run, t->how, first == end ? &t->alpha : &t->one, a, b);
	result(run, t, &t->c, s, across, b);
}

static cublasStatus_t triangle(enum xt_type type, cublasXtHandle_t handle, struct triangle *t,
	const void *alpha, bool solve)
{
	const int *how = t->how;
	size_t order = how[0] ? t->c.cols : t->c.rows, across = how[0] ? t->c.rows : t->c.cols;
	struct xt_run run;
	bool up;

	if (!xt_begin(&run, type, handle))
		return run.status;
	if (how[0] < 0 || how[0] > 1 || how[1] < 0 || how[1] > 1 || how[2] < 0 || how[2] > 2 ||
		how[3] < 0 || how[3] > 1 || !alpha || t->a.ld < (order ? order : 1) ||
		t->b.ld < (t->b.rows ? t->b.rows : 1) || t->c.ld < (t->c.rows ? t->c.rows : 1))
		return CUBLAS_STATUS_INVALID_VALUE;
	t->a.rows = t->a.cols = order;
	t->alpha = xt_given(type, alpha, false);
	t->one = xt_number(type, 1);
	t->less = xt_number(type, -1);
	t->tiles = xt_tiles(&run, order);
	/* What a tile of a solution needs comes before it; of a product, after it. */
	up = (lower(t) != (how[0] != 0)) == solve;
	for (size_t p = 0; p < xt_tiles(&run, across); p++) {
		xt_panel(&run, p);
		for (size_t i = 0; i < t->tiles && !run.status; i++)
			(solve ? solution : product)(&run, t, up ? i : t->tiles - 1 - i, p);
	}
	return xt_end(&run);
}

cublasStatus_t xt_trmm(enum xt_type type, cublasXtHandle_t handle, int side, int uplo,
	int trans, int diag, size_t m, size_t n, const void *alpha, const void *A, size_t lda,
	const void *B, size_t ldb, void *C, size_t ldc)
{
	struct triangle t = {
		.how = {side, uplo, trans, diag},
		.a = {.at = A, .ld = lda},
		.b = {B, m, n, ldb, false, 0},
		.c = {C, m, n, ldc, false, 0},
	};

	return triangle(type, handle, &t, alpha, false);
}

cublasStatus_t xt_trsm(enum xt_type type, cublasXtHandle_t handle, int side, int uplo,
	int trans, int diag, size_t m, size_t n, const void *alpha, const void *A, size_t lda,
	void *B, size_t ldb)
{
	struct triangle t = {
		.how = {side, uplo, trans, diag},
		.a = {.at = A, .ld = lda},
		.b = {B, m, n, ldb, false, 0},
		.c = {B, m, n, ldb, false, 0},
	};

	return triangle(type, handle, &t, alpha, true);
}
