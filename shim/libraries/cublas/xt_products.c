/* SPDX-License-Identifier: Apache-2.0
 *
 * cublasXt's products and updates: each tile of the result is a sum of products of tiles.  See
 * xt.h.
 */
#include <stdlib.h>

#include "shim/libraries/cublas/xt.h"

enum { OP_N, OP_T, OP_C };

static bool valid_op(int op)
{
	return op >= OP_N && op <= OP_C;
}

/* As the functions of cuBLAS answer; `ld` against rows. */
static bool fits(size_t rows, size_t ld)
{
	return ld >= (rows ? rows : 1);
}

/* Tile (i, l) of op(A). */
static struct xt_tile tile_of(
	struct xt_run *run, const struct xt_matrix *a, int op, size_t i, size_t l)
{
	return op ? xt_tile(run, a, l, i, true) : xt_tile(run, a, i, l, true);
}

cublasStatus_t xt_gemm(enum xt_type type, cublasXtHandle_t handle, int transa, int transb,
	size_t m, size_t n, size_t k, const void *alpha, const void *A, size_t lda,
	const void *B, size_t ldb, const void *beta, void *C, size_t ldc)
{
	const struct xt_matrix a = {A, transa ? k : m, transa ? m : k, lda, false, 0};
	const struct xt_matrix b = {B, transb ? n : k, transb ? k : n, ldb, false, 0};
	const struct xt_matrix c = {C, m, n, ldc, false, 0};
	struct xt_scalar by, and, one = xt_number(type, 1);
	struct xt_run run;
	size_t inner;

	if (!xt_begin(&run, type, handle))
		return run.status;
	if (!valid_op(transa) || !valid_op(transb) || !alpha || !beta || !fits(a.rows, lda) ||
		!fits(b.rows, ldb) || !fits(m, ldc))
		return CUBLAS_STATUS_INVALID_VALUE;
	by = xt_given(type, alpha, false);
	and = xt_given(type, beta, false);
	inner = xt_tiles(&run, k);
	for (size_t j = 0; j < xt_tiles(&run, n); j++) {
		xt_panel(&run, j);
		for (size_t i = 0; i < xt_tiles(&run, m) && !run.status; i++) {
			struct xt_tile to;

			xt_step(&run);
			to = xt_tile(&run, &c, i, j, !xt_is_zero(type, and));
			for (size_t l = 0; l < inner; l++) {
				xt_step(&run);
				to = xt_tile(&run, &c, i, j, true);
				xt_multiply(&run, transa, transb, &by,
					tile_of(&run, &a, transa, i, l),
					tile_of(&run, &b, transb, l, j), l ? &one : &and, to);
			}
			if (!inner)
				xt_multiply(&run, OP_N, OP_N, &by,
					(struct xt_tile){to.at, to.rows, 0},
					(struct xt_tile){to.at, 0, to.cols}, &and, to);
			xt_result(&run, &c, i, j, to);
		}
	}
	return xt_end(&run);
}

/* ---- updates of one half ---- */

struct update {
	enum xt_rank what;
	int uplo, op;
	bool hermitian;
	struct xt_matrix a, b, c;
	struct xt_scalar alpha, turned, beta, one;
};

/* Tile (i, j) of the result, with what comes of the tiles number l of A and B; L < 0: of none.
 */
static void update_step(
	struct xt_run *run, const struct update *u, size_t i, size_t j, size_t l, bool first)
{
	int turn = u->op ? OP_N : u->hermitian ? OP_C : OP_T;
	const struct xt_scalar *keep = first ? &u->beta : &u->one;
	struct xt_tile to, ai, aj, bi, bj;

	xt_step(run);
	to = xt_tile(run, &u->c, i, j, true);
	ai = tile_of(run, &u->a, u->op, i, l);
	bj = tile_of(run, &u->b, u->op, j, l);
	if (i == j) {
		xt_update(run, u->what, u->uplo, u->op, &u->alpha, ai, bj, keep, to);
		return;
	}
	xt_multiply(run, u->op, turn, &u->alpha, ai, bj, keep, to);
	if (u->what != XT_SYR2K && u->what != XT_HER2K)
		return;
	bi = tile_of(run, &u->b, u->op, i, l);
	aj = tile_of(run, &u->a, u->op, j, l);
	xt_multiply(run, u->op, turn, &u->turned, bi, aj, &u->one, to);
}

static void update_tile(
	struct xt_run *run, const struct update *u, size_t i, size_t j, size_t k)
{
	size_t inner = xt_tiles(run, k);
	struct xt_tile to;

	xt_step(run);
	/* Of a tile on the diagonal the other half stays as it is: it is read whatever beta is.
	 */
	to = xt_tile(run, &u->c, i, j, i == j || !xt_is_zero(run->type, u->beta));
	for (size_t l = 0; l < inner; l++)
		update_step(run, u, i, j, l, !l);
	if (!inner && i == j)
		xt_update(run, u->what, u->uplo, OP_N, &u->alpha,
			(struct xt_tile){to.at, to.rows, 0},
			(struct xt_tile){to.at, to.rows, 0}, &u->beta, to);
	else if (!inner)
		xt_multiply(run, OP_N, OP_N, &u->alpha, (struct xt_tile){to.at, to.rows, 0},
			(struct xt_tile){to.at, 0, to.cols}, &u->beta, to);
	xt_result(run, &u->c, i, j, to);
}

cublasStatus_t xt_rank(enum xt_type type, enum xt_rank what, cublasXtHandle_t handle, int uplo,
	int trans, size_t n, size_t k, const void *alpha, const void *A, size_t lda,
	const void *B, size_t ldb, const void *beta, void *C, size_t ldc)
{
	bool alone = what == XT_SYRK || what == XT_HERK, complex_type = type >= XT_C;
	struct update u = {.what = what, .uplo = uplo, .op = trans};
	size_t rows = trans ? k : n, cols = trans ? n : k, tiles;
	struct xt_run run;

	u.hermitian = what == XT_HERK || what == XT_HER2K || what == XT_HERKX;
	if (!xt_begin(&run, type, handle))
		return run.status;
	if (uplo < 0 || uplo > 1 || !valid_op(trans) || (u.hermitian && trans == OP_T) ||
		(!u.hermitian && complex_type && trans == OP_C) || !alpha || !beta ||
		!fits(rows, lda) || (!alone && !fits(rows, ldb)) || !fits(n, ldc))
		return CUBLAS_STATUS_INVALID_VALUE;
	u.a = (struct xt_matrix){A, rows, cols, lda, false, 0};
	u.b = alone ? u.a : (struct xt_matrix){B, rows, cols, ldb, false, 0};
	u.c = (struct xt_matrix){C, n, n, ldc, false, 0};
	u.one = xt_number(type, 1);
	u.alpha = xt_given(type, alpha, what == XT_HERK);
	u.turned = u.hermitian ? xt_conjugate(type, u.alpha) : u.alpha;
	u.beta = xt_given(type, beta, u.hermitian);
	tiles = xt_tiles(&run, n);
	for (size_t j = 0; j < tiles; j++) {
		xt_panel(&run, j);
		for (size_t i = uplo ? 0 : j; i < (uplo ? j + 1 : tiles) && !run.status; i++)
			update_tile(&run, &u, i, j, k);
	}
	return xt_end(&run);
}

/* ---- products with a matrix of which one half is stored ---- */

struct mirror {
	bool hermitian;
	int side, uplo;
	struct xt_matrix a, b, c;
	struct xt_scalar alpha, beta, one;
};

/* Tile (i, j) of the result, with what comes of tile l of the inner direction. */
static void mirror_step(
	struct xt_run *run, const struct mirror *x, size_t i, size_t j, size_t l)
{
	size_t row = x->side ? l : i, col = x->side ? j : l; /* of the tile of A */
	bool stored = row == col || (x->uplo ? row < col : row > col);
	int op = stored ? OP_N : x->hermitian ? OP_C : OP_T;
	const struct xt_scalar *keep = l ? &x->one : &x->beta;
	struct xt_tile to, a, b;

	xt_step(run);
	to = xt_tile(run, &x->c, i, j, true);
	a = tile_of(run, &x->a, op, row, col);
	b = x->side ? xt_tile(run, &x->b, i, l, true) : xt_tile(run, &x->b, l, j, true);
	if (row == col)
		xt_mirrored(run, x->hermitian, x->side, x->uplo, &x->alpha, a, b, keep, to);
	else if (x->side)
		xt_multiply(run, OP_N, op, &x->alpha, b, a, keep, to);
	else
		xt_multiply(run, op, OP_N, &x->alpha, a, b, keep, to);
}

cublasStatus_t xt_mirror(enum xt_type type, enum xt_mirror what, cublasXtHandle_t handle,
	int side, int uplo, size_t m, size_t n, const void *alpha, const void *A, size_t lda,
	const void *B, size_t ldb, const void *beta, void *C, size_t ldc)
{
	size_t order = side ? n : m;
	struct mirror x = {
		.hermitian = what == XT_HEMM,
		.side = side,
		.uplo = uplo,
		.a = {A, order, order, lda, what == XT_SPMM, uplo},
		.b = {B, m, n, ldb, false, 0},
		.c = {C, m, n, ldc, false, 0},
		.one = xt_number(type, 1),
	};
	struct xt_run run;

	if (!xt_begin(&run, type, handle))
		return run.status;
	if (side < 0 || side > 1 || uplo < 0 || uplo > 1 || !alpha || !beta ||
		(what != XT_SPMM && !fits(order, lda)) || !fits(m, ldb) || !fits(m, ldc))
		return CUBLAS_STATUS_INVALID_VALUE;
	x.alpha = xt_given(type, alpha, false);
	x.beta = xt_given(type, beta, false);
	for (size_t j = 0; j < xt_tiles(&run, n); j++) {
		xt_panel(&run, j);
		for (size_t i = 0; i < xt_tiles(&run, m) && !run.status; i++) {
			struct xt_tile to;

			xt_step(&run);
			to = xt_tile(&run, &x.c, i, j, !xt_is_zero(type, x.beta));
			for (size_t l = 0; l < xt_tiles(&run, order); l++)
				mirror_step(&run, &x, i, j, l);
			xt_result(&run, &x.c, i, j, to);
		}
	}
	return xt_end(&run);
}
