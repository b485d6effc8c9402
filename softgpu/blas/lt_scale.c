/* SPDX-License-Identifier: Apache-2.0
 *
 * Scale factors of parts of an operand of 8-bit floats, as cuBLASLt has them for compute
 * capability 9.0: numbers of 32 bits beside the matrix.
 */
#include "softgpu/blas/lt.h"

enum { BLOCK = 128, STEP = 4 }; /* factors of blocks begin at every fourth, for each column */

bool lt_scales_served(const struct lt_matmul *d, uint32_t in, uint32_t out)
{
	int32_t a = d->modes[0], b = d->modes[1];
	bool small = in == LT_F8_E4M3 || in == LT_F8_E5M2;

	for (unsigned i = 2; i < sizeof(d->modes) / sizeof(d->modes[0]); i++)
		if (d->modes[i])
			return false;
	if (a == LT_SCALE_ONE && b == LT_SCALE_ONE)
		return true;
	if (!small || lt_size(out) == 1 || !d->transa || d->transb)
		return false;
	if (a == LT_SCALE_OUTER || b == LT_SCALE_OUTER)
		return a == b;
	return (a == LT_SCALE_128 && (b == LT_SCALE_128 || b == LT_SCALE_128X128)) ||
	       (a == LT_SCALE_128X128 && b == LT_SCALE_128);
}

static uint64_t blocks(uint64_t n)
{
	return n / BLOCK + !!(n % BLOCK);
}

/* Factors of 128 by 128 elements from one column of blocks to the next. */
static uint64_t column(const struct lt_scales *s)
{
	return (blocks(s->k) + STEP - 1) / STEP * STEP;
}

bool lt_scales_reached(struct lt_task *t, const struct lt_scales *s)
{
	uint64_t count;

	switch (s->mode) {
	case LT_SCALE_ONE: return true;
	case LT_SCALE_OUTER: count = s->outer; break;
	case LT_SCALE_128: count = blocks(s->k) * s->outer; break;
	default: count = column(s) * blocks(s->outer); break;
	}
	if (blas_reaches(s->at, count * sizeof(*s->at), sizeof(*s->at)))
		return true;
	t->base.handle->failed = true;
	return false;
}

double lt_scale(const struct lt_scales *s, uint64_t k, uint64_t outer)
{
	switch (s->mode) {
	case LT_SCALE_ONE: return 1;
	case LT_SCALE_OUTER: return s->at[outer];
	case LT_SCALE_128: return s->at[k / BLOCK * s->outer + outer];
	default: return s->at[outer / BLOCK * column(s) + k / BLOCK];
	}
}
