/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLAS's functions of four types as one for tiles, and their scalars.  See xt.h.
 */
#include <string.h>

#include "shim/libraries/cublas/xt.h"

/* ---- scalars ---- */

struct xt_scalar xt_number(enum xt_type type, double value)
{
	struct xt_scalar s = {{0}};
	float single = (float)value;

	if (type == XT_S || type == XT_C)
		memcpy(s.bytes, &single, sizeof(single));
	else
		memcpy(s.bytes, &value, sizeof(value));
	return s;
}

struct xt_scalar xt_given(enum xt_type type, const void *at, bool real)
{
	static const size_t bytes[] = {[XT_S] = 4, [XT_D] = 8, [XT_C] = 8, [XT_Z] = 16};
	struct xt_scalar s = {{0}};

	memcpy(s.bytes, at, real && type >= XT_C ? bytes[type] / 2 : bytes[type]);
	return s;
}

struct xt_scalar xt_conjugate(enum xt_type type, struct xt_scalar value)
{
	float single[2];
	double twice[2];

	if (type == XT_C) {
		memcpy(single, value.bytes, sizeof(single));
		single[1] = -single[1];
		memcpy(value.bytes, single, sizeof(single));
	} else if (type == XT_Z) {
		memcpy(twice, value.bytes, sizeof(twice));
		twice[1] = -twice[1];
		memcpy(value.bytes, twice, sizeof(twice));
	}
	return value;
}

bool xt_is_zero(enum xt_type type, struct xt_scalar value)
{
	float single[2];
	double twice[2];

	memcpy(single, value.bytes, sizeof(single));
	memcpy(twice, value.bytes, sizeof(twice));
	if (type == XT_S || type == XT_C)
		return single[0] == 0 && single[1] == 0;
	return twice[0] == 0 && twice[1] == 0;
}

/* ---- calls ---- */

/* One of four calls, by the run's type, with its status; nothing after a failure. */
#define CALL(RUN, NAME, S, D, C, Z)                                                            \
	do {                                                                                   \
		if ((RUN)->status)                                                             \
			break;                                                                 \
		switch ((RUN)->type) {                                                         \
		case XT_S: (RUN)->status = cublasS##NAME S; break;                             \
		case XT_D: (RUN)->status = cublasD##NAME D; break;                             \
		case XT_C: (RUN)->status = cublasC##NAME C; break;                             \
		case XT_Z: (RUN)->status = cublasZ##NAME Z; break;                             \
		}                                                                              \
	} while (0)
/* The same arguments for each type, whose pointers are void pointers. */
#define EVERY(RUN, NAME, ...)                                                                  \
	CALL(RUN, NAME, (__VA_ARGS__), (__VA_ARGS__), (__VA_ARGS__), (__VA_ARGS__))
#define COMPLEX(RUN, NAME, ...)                                                                \
	do {                                                                                   \
		if (!(RUN)->status)                                                            \
			(RUN)->status = (RUN)->type == XT_C ? cublasC##NAME(__VA_ARGS__)       \
							    : cublasZ##NAME(__VA_ARGS__);      \
	} while (0)

static void *at(struct xt_tile tile)
{
	return (void *)(uintptr_t)tile.at;
}

static const void *value(const struct xt_scalar *s)
{
	return s->bytes;
}

/* A leading dimension is at least 1, of a tile that is not there too. */
static int ld(struct xt_tile tile)
{
	return tile.rows > 1 ? tile.rows : 1;
}

void xt_multiply(struct xt_run *run, int op_a, int op_b, const struct xt_scalar *alpha,
	struct xt_tile a, struct xt_tile b, const struct xt_scalar *beta, struct xt_tile c)
{
	int inner = op_a ? a.rows : a.cols;

	if (!run->status)
		EVERY(run, gemm_v2, run->on->blas, op_a, op_b, c.rows, c.cols, inner,
			value(alpha), at(a), ld(a), at(b), ld(b), value(beta), at(c), ld(c));
}

void xt_update(struct xt_run *run, enum xt_rank what, int uplo, int op,
	const struct xt_scalar *alpha, struct xt_tile a, struct xt_tile b,
	const struct xt_scalar *beta, struct xt_tile c)
{
	int k = op ? a.rows : a.cols, la = ld(a), lb = ld(b), lc = ld(c);
	cublasHandle_t h = run->on->blas;

	switch (what) {
	case XT_SYRK:
		EVERY(run, syrk_v2, h, uplo, op, c.rows, k, value(alpha), at(a), la,
			value(beta), at(c), lc);
		break;
	case XT_SYR2K:
		EVERY(run, syr2k_v2, h, uplo, op, c.rows, k, value(alpha), at(a), la, at(b), lb,
			value(beta), at(c), lc);
		break;
	case XT_SYRKX:
		EVERY(run, syrkx, h, uplo, op, c.rows, k, value(alpha), at(a), la, at(b), lb,
			value(beta), at(c), lc);
		break;
	case XT_HERK:
		COMPLEX(run, herk_v2, h, uplo, op, c.rows, k, value(alpha), at(a), la,
			value(beta), at(c), lc);
		break;
	case XT_HER2K:
		COMPLEX(run, her2k_v2, h, uplo, op, c.rows, k, value(alpha), at(a), la, at(b),
			lb, value(beta), at(c), lc);
		break;
	case XT_HERKX:
		COMPLEX(run, herkx, h, uplo, op, c.rows, k, value(alpha), at(a), la, at(b), lb,
			value(beta), at(c), lc);
		break;
	}
}

void xt_mirrored(struct xt_run *run, bool hermitian, int side, int uplo,
	const struct xt_scalar *alpha, struct xt_tile a, struct xt_tile b,
	const struct xt_scalar *beta, struct xt_tile c)
{
	if (hermitian)
		COMPLEX(run, hemm_v2, run->on->blas, side, uplo, c.rows, c.cols, value(alpha),
			at(a), ld(a), at(b), ld(b), value(beta), at(c), ld(c));
	else
		EVERY(run, symm_v2, run->on->blas, side, uplo, c.rows, c.cols, value(alpha),
			at(a), ld(a), at(b), ld(b), value(beta), at(c), ld(c));
}

void xt_triangle(struct xt_run *run, const int how[4], const struct xt_scalar *alpha,
	struct xt_tile a, struct xt_tile b, struct xt_tile c)
{
	EVERY(run, trmm_v2, run->on->blas, how[0], how[1], how[2], how[3], c.rows, c.cols,
		value(alpha), at(a), ld(a), at(b), ld(b), at(c), ld(c));
}

void xt_solve(struct xt_run *run, const int how[4], const struct xt_scalar *alpha,
	struct xt_tile a, struct xt_tile b)
{
	EVERY(run, trsm_v2, run->on->blas, how[0], how[1], how[2], how[3], b.rows, b.cols,
		value(alpha), at(a), ld(a), at(b), ld(b));
}
