/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements of any type as double complex, steps of vectors, and matrices that are stored in
 * full, in bands or packed, for the functions that OpenBLAS does not have in every type.
 */
#ifndef VCUDA_SOFTGPU_BLAS_ELEMENT_H
#define VCUDA_SOFTGPU_BLAS_ELEMENT_H

#include "softgpu/blas/blas.h"

/* An exported function of that name and parameters, declared and begun. */
#define BLAS_FUNCTION(NAME, ...)                                                               \
	BLAS_EXPORT int NAME(__VA_ARGS__);                                                     \
	BLAS_EXPORT int NAME(__VA_ARGS__)

static inline double complex blas_get(const void *at, enum blas_type type, uint64_t i)
{
	switch (type) {
	case BLAS_F32: return ((const float *)at)[i];
	case BLAS_F64: return ((const double *)at)[i];
	case BLAS_C32: return ((const float complex *)at)[i];
	case BLAS_C64: return ((const double complex *)at)[i];
	case BLAS_F16: return blas_half_in(((const uint16_t *)at)[i]);
	case BLAS_BF16: return blas_bfloat_in(((const uint16_t *)at)[i]);
	case BLAS_I8: return ((const int8_t *)at)[i];
	case BLAS_I32: return ((const int32_t *)at)[i];
	}
	return 0;
}

/* Integers are not written. */
static inline void blas_put(void *at, enum blas_type type, uint64_t i, double complex value)
{
	switch (type) {
	case BLAS_F32: ((float *)at)[i] = (float)creal(value); break;
	case BLAS_F64: ((double *)at)[i] = creal(value); break;
	case BLAS_C32: ((float complex *)at)[i] = (float complex)value; break;
	case BLAS_C64: ((double complex *)at)[i] = value; break;
	case BLAS_F16: ((uint16_t *)at)[i] = blas_half_out((float)creal(value)); break;
	case BLAS_BF16: ((uint16_t *)at)[i] = blas_bfloat_out((float)creal(value)); break;
	case BLAS_I8:
	case BLAS_I32: break;
	}
}

/* Where element I of N lies. */
static inline uint64_t blas_at(int n, int i, int step)
{
	return (uint64_t)((step < 0 ? (1 - (int64_t)n) * step : 0) + (int64_t)i * step);
}

static inline bool blas_is_complex(enum blas_type type)
{
	return type == BLAS_C32 || type == BLAS_C64;
}

enum blas_layout { BLAS_FULL, BLAS_BAND, BLAS_PACKED };
/* What stands for the half that is not stored. */
enum blas_fold { BLAS_NO_FOLD, BLAS_TRIANGLE, BLAS_SYMMETRIC, BLAS_HERMITIAN };

struct blas_view {
	void *at;
	enum blas_type type;
	enum blas_layout layout;
	enum blas_fold fold;
	int uplo, order, ld; /* order: of a packed one */
	int kl, ku;	     /* diagonals of a band below and above */
	bool unit;
};

/* Elements that its memory has. */
static inline uint64_t blas_view_extent(const struct blas_view *v, int rows, int cols)
{
	if (v->layout == BLAS_PACKED)
		return (uint64_t)v->order * ((uint64_t)v->order + 1) / 2;
	return blas_extent(v->layout == BLAS_BAND ? v->kl + v->ku + 1 : rows, cols, v->ld);
}

/* Where (i, j), of the half that is stored, lies. */
static inline uint64_t blas_view_at(const struct blas_view *v, int i, int j)
{
	uint64_t row = (uint64_t)i, col = (uint64_t)j, n = (uint64_t)v->order;

	switch (v->layout) {
	case BLAS_PACKED:
		return v->uplo == BLAS_UPPER ? row + col * (col + 1) / 2
					     : row + (2 * n - col - 1) * col / 2;
	case BLAS_BAND: return col * (uint64_t)v->ld + (uint64_t)((int64_t)v->ku + i - j);
	case BLAS_FULL: break;
	}
	return col * (uint64_t)v->ld + row;
}

/* Element (i, j) of what it stands for. */
static inline double complex blas_view_get(const struct blas_view *v, int i, int j)
{
	bool turned = v->fold != BLAS_NO_FOLD && (v->uplo == BLAS_LOWER ? i < j : i > j);
	double complex value;

	if (v->fold == BLAS_TRIANGLE && (turned || (i == j && v->unit)))
		return i == j;
	if (turned) {
		int t = i;

		i = j;
		j = t;
	}
	if (v->layout == BLAS_BAND && (i - j > v->kl || j - i > v->ku))
		return 0;
	value = blas_get(v->at, v->type, blas_view_at(v, i, j));
	if (v->fold != BLAS_HERMITIAN)
		return value;
	return i == j ? creal(value) : turned ? conj(value) : value;
}

/* Element (i, j) of op(it). */
static inline double complex blas_view_op(const struct blas_view *v, int op, int i, int j)
{
	double complex value = op ? blas_view_get(v, j, i) : blas_view_get(v, i, j);

	return op == BLAS_OP_C ? conj(value) : value;
}

#endif
