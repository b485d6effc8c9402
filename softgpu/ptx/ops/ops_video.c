/* SPDX-License-Identifier: Apache-2.0
 *
 * Video instructions: on parts of 32-bit words, one at a time or all side by side, with more
 * bits inside than out.
 */
#include "softgpu/ptx/ops/ops.h"
#include "softgpu/ptx/video.h"

static const struct {
	uint8_t shift, bits;
} part_at[] = {{0, 32}, {0, 8}, {8, 8}, {16, 8}, {24, 8}, {0, 16}, {16, 16}};

static int64_t part(uint32_t word, unsigned shift, unsigned bits, bool is_signed)
{
	const uint64_t v = (uint64_t)word >> shift << (64 - bits);

	return is_signed ? (int64_t)v >> (64 - bits) : (int64_t)(v >> (64 - bits));
}

static int64_t clamp(int64_t v, unsigned bits, bool is_signed)
{
	const int64_t most = (INT64_C(1) << (bits - is_signed)) - 1;
	const int64_t least = is_signed ? -most - 1 : 0;

	return v < least ? least : v > most ? most : v;
}

static bool holds(enum video_compare compare, int64_t a, int64_t b)
{
	switch (compare) {
	case VIDEO_EQ: return a == b;
	case VIDEO_NE: return a != b;
	case VIDEO_LT: return a < b;
	case VIDEO_LE: return a <= b;
	case VIDEO_GT: return a > b;
	default: return a >= b;
	}
}

/* By 32 at most, into PTX's 34 bits: what is above them is lost, and the last is the sign. */
static int64_t shift_left(int64_t a, unsigned shift)
{
	return (int64_t)((uint64_t)a << shift << 30) >> 30;
}

static int64_t apply(const struct video *v, int64_t a, int64_t b)
{
	const unsigned shift = v->wrap ? (unsigned)b & 31 : b > 32 ? 32 : (unsigned)b;

	switch (v->op) {
	case VIDEO_ADD: return a + b;
	case VIDEO_SUB: return a - b;
	case VIDEO_ABSDIFF: return a < b ? b - a : a - b;
	case VIDEO_MIN: return a < b ? a : b;
	case VIDEO_MAX: return a > b ? a : b;
	case VIDEO_SHL: return shift_left(a, shift);
	case VIDEO_SHR: return a >> shift;
	case VIDEO_AVERAGE: return (a + b + (a + b >= 0)) >> 1;
	default: return holds(v->compare, a, b);
	}
}

/* Where an H200 (2026-11-23) gives other results than PTX's text, it is the H200's.  Of what is
 * unsigned and a whole word, sums and differences saturate at 0 alone. */
static int64_t saturate(const struct video *v, int64_t r, unsigned bits)
{
	const bool sum = v->op == VIDEO_ADD || v->op == VIDEO_SUB || v->op == VIDEO_ABSDIFF;

	if (sum && bits == 32 && !v->d_signed)
		return r < 0 ? 0 : r;
	return clamp(r, bits, v->d_signed);
}

/* a * b + c; negated is one more than inverted.  A whole word is signed whatever its type says,
 * and so is c; an unsigned sum saturates at 0, but shifted it has 64 bits without a sign. */
static uint32_t multiply_add(const struct video *v, uint32_t a, uint32_t b, uint32_t c)
{
	const bool is_signed = v->a_signed || v->b_signed || v->minus_product || v->minus_c;
	int64_t r = part(a, part_at[v->a].shift, part_at[v->a].bits, v->a_signed || !v->a) *
		    part(b, part_at[v->b].shift, part_at[v->b].bits, v->b_signed || !v->b);

	if (v->minus_product)
		r = ~r;
	if (v->minus_c)
		c = ~c;
	r += (int64_t)(int32_t)c + (v->plus_one || v->minus_product || v->minus_c);
	if (!is_signed && v->scale)
		r = (int64_t)((uint64_t)r >> v->scale);
	else
		r >>= v->scale;
	return (uint32_t)(v->saturate ? clamp(r, 32, is_signed) : r);
}

static uint32_t one(const struct video *v, uint32_t a, uint32_t b, uint32_t c)
{
	const unsigned shift = part_at[v->d].shift, bits = part_at[v->d].bits;
	const uint32_t mask = (uint32_t)(UINT64_MAX >> (64 - bits)) << shift;
	const int64_t second = part(c, 0, 32, v->d_signed);
	int64_t r = apply(v, part(a, part_at[v->a].shift, part_at[v->a].bits, v->a_signed),
		part(b, part_at[v->b].shift, part_at[v->b].bits, v->b_signed));

	if (v->saturate)
		r = saturate(v, r, bits);
	/* A second operation has 32 bits of a sum or difference, and all of the rest. */
	if (v->op == VIDEO_ADD || v->op == VIDEO_SUB)
		r = part((uint32_t)r, 0, 32, v->d_signed);
	switch (v->second) {
	case VIDEO_PLUS: return (uint32_t)r + c;
	case VIDEO_LEAST: return (uint32_t)(r < second ? r : second);
	case VIDEO_MOST: return (uint32_t)(r > second ? r : second);
	case VIDEO_MERGE: return ((uint32_t)r << shift & mask) | (c & ~mask);
	default: return (uint32_t)r;
	}
}

static uint32_t side_by_side(const struct video *v, uint32_t a, uint32_t b, uint32_t c)
{
	const unsigned bits = 32 / v->parts;
	uint32_t word = 0;
	int64_t sum = 0;

	for (unsigned at = 0; at < 32; at += bits) {
		int64_t r = apply(
			v, part(a, at, bits, v->a_signed), part(b, at, bits, v->b_signed));

		if (v->saturate)
			r = clamp(r, bits, v->d_signed);
		word |= ((uint32_t)r & (uint32_t)(UINT64_MAX >> (64 - bits))) << at;
		sum += r;
	}
	return v->second == VIDEO_PLUS ? c + (uint32_t)sum : word;
}

OP(video, "video", "x")
{
	struct video v;

	DST(uint32_t);
	SRC_A(uint32_t);
	SRC_B(uint32_t);
	SRC_C(uint32_t);
	memcpy(&v, &i->imm, sizeof(v));
	EACH(m)
	d[l] = v.op == VIDEO_MAD ? multiply_add(&v, a[l], b[l], c[l])
	       : v.parts > 1	 ? side_by_side(&v, a[l], b[l], c[l])
				 : one(&v, a[l], b[l], c[l]);
}
