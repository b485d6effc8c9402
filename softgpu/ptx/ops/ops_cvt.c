/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversions.  The common ones have a handler each; cvt.any serves every other combination of
 * types, rounding, saturation and flushing.
 */
#include "softgpu/ptx/ops/ops.h"
#include "softgpu/ptx/ops/round.h"

/* Between integer registers: narrowing keeps low bits. */
#define MOVES(to, form, T)                                                                     \
	UNARY(cvt_##to##_u16, "cvt." #to ".u16", form, T, uint16_t, a[l])                      \
	UNARY(cvt_##to##_u32, "cvt." #to ".u32", form, T, uint32_t, a[l])                      \
	UNARY(cvt_##to##_u64, "cvt." #to ".u64", form, T, uint64_t, a[l])
MOVES(u16, "x", uint16_t)
MOVES(u32, "x", uint32_t)
MOVES(u64, "x", uint64_t)
UNARY(cvt_u32_s16, "cvt.u32.s16", "x", uint32_t, int16_t, a[l])
UNARY(cvt_u64_s16, "cvt.u64.s16", "x", uint64_t, int16_t, a[l])
UNARY(cvt_u64_s32, "cvt.u64.s32", "x", uint64_t, int32_t, a[l])

OP(cvt_u128_u64, "cvt.u128.u64", "x")
{
	EACH(m)
	{
		uint64_t v[2] = {REG(const uint64_t, a)[l], 0};

		memcpy(ptx_reg(w, i->d) + 16 * l, v, 16);
	}
}

INLINE float canon32(float v)
{
	uint32_t bits = 0x7fffffffu;
	float nan;

	memcpy(&nan, &bits, sizeof(nan));
	return v != v ? nan : v;
}

UNARY(cvt_f64_f32, "cvt.f64.f32", "x", double, float, a[l])
UNARY(cvt_f32_f64, "cvt.rn.f32.f64", "x", float, double, canon32((float)a[l]))
UNARY(cvt_f32_s32, "cvt.rn.f32.s32", "x", float, int32_t, a[l])
UNARY(cvt_f32_u32, "cvt.rn.f32.u32", "x", float, uint32_t, a[l])
UNARY(cvt_f64_s32, "cvt.rn.f64.s32", "x", double, int32_t, a[l])
UNARY(cvt_f64_u32, "cvt.rn.f64.u32", "x", double, uint32_t, a[l])
UNARY(cvt_f64_s64, "cvt.rn.f64.s64", "x", double, int64_t, a[l])
UNARY(cvt_f32_s64, "cvt.rn.f32.s64", "x", float, int64_t, a[l])
UNARY(cvt_f32_s16, "cvt.rn.f32.s16", "x", float, int16_t, a[l])
UNARY(cvt_f32_u16, "cvt.rn.f32.u16", "x", float, uint16_t, a[l])
UNARY(cvt_f32_f16, "cvt.f32.f16", "x", float, uint16_t, ptx_half_to_float(a[l]))
UNARY(cvt_f32_bf16, "cvt.f32.bf16", "x", float, uint16_t, canon32(ptx_bf16_to_float(a[l])))
UNARY(cvt_f16_f32, "cvt.rn.f16.f32", "x", uint16_t, float, ptx_half_from((double)a[l]))
UNARY(cvt_bf16_f32, "cvt.rn.bf16.f32", "x", uint16_t, float, ptx_bf16_from((double)a[l]))

/* To an integer: too large and too small clamp; NaN is 0, but from f64 the least. */
UNARY(cvt_rzi_s32_f32, "cvt.rzi.s32.f32", "x", int32_t, float,
	a[l] != a[l]	   ? 0
	: a[l] >= 0x1p31f  ? INT32_MAX
	: a[l] <= -0x1p31f ? INT32_MIN
			   : (int32_t)a[l])
UNARY(cvt_rzi_s32_f64, "cvt.rzi.s32.f64", "x", int32_t, double,
	a[l] >= 0x1p31	 ? INT32_MAX
	: a[l] > -0x1p31 ? (int32_t)a[l]
			 : INT32_MIN)

/* ---- Any to any ---- */

/* The order of `kinds` in ptx_decode_cvt. */
enum kind {
	KIND_U8,
	KIND_S8,
	KIND_U16,
	KIND_S16,
	KIND_U32,
	KIND_S32,
	KIND_U64,
	KIND_S64,
	KIND_F16,
	KIND_BF16,
	KIND_F32,
	KIND_F64,
	KIND_TF32
};

struct value {
	bool is_float;
	double f;
	unsigned __int128 magnitude; /* of an integer */
	bool minus;
};

static struct value fetch(const unsigned char *reg, unsigned lane, enum kind kind, bool ftz)
{
	struct value v = {0};
	uint64_t u = 0;
	int64_t s = 0;
	uint32_t bits;
	uint16_t half;
	float f;
	bool is_signed = false;

	switch (kind) {
	case KIND_U8: u = reg[2 * lane]; break;
	case KIND_S8: s = (int8_t)reg[2 * lane], is_signed = true; break;
	case KIND_U16: u = ((const uint16_t *)(const void *)reg)[lane]; break;
	case KIND_S16: s = ((const int16_t *)(const void *)reg)[lane], is_signed = true; break;
	case KIND_U32: u = ((const uint32_t *)(const void *)reg)[lane]; break;
	case KIND_S32: s = ((const int32_t *)(const void *)reg)[lane], is_signed = true; break;
	case KIND_U64: u = ((const uint64_t *)(const void *)reg)[lane]; break;
	case KIND_S64: s = ((const int64_t *)(const void *)reg)[lane], is_signed = true; break;
	case KIND_F16:
	case KIND_BF16:
		half = ((const uint16_t *)(const void *)reg)[lane];
		f = kind == KIND_F16 ? ptx_half_to_float(half) : ptx_bf16_to_float(half);
		v.is_float = true;
		v.f = (double)f;
		return v;
	case KIND_F32:
	case KIND_TF32:
		bits = ((const uint32_t *)(const void *)reg)[lane];
		if (ftz && !(bits & 0x7f800000u))
			bits &= 0x80000000u;
		memcpy(&f, &bits, sizeof(f));
		v.is_float = true;
		v.f = (double)f;
		return v;
	case KIND_F64:
		v.is_float = true;
		memcpy(&v.f, reg + 8 * lane, sizeof(v.f));
		return v;
	}
	v.minus = is_signed && s < 0;
	v.magnitude = v.minus ? 0 - (uint64_t)s : is_signed ? (uint64_t)s : u;
	return v;
}

/* A double rounded to an integer, kept as a double. */
static double integral(double f, enum ptx_rounding mode)
{
	double down;

	switch (mode) {
	case PTX_RM:
	case PTX_RMI: return floor(f);
	case PTX_RP:
	case PTX_RPI: return ceil(f);
	case PTX_RZ:
	case PTX_RZI: return trunc(f);
	default:
		if (fabs(f) >= 0x1p52)
			return f;
		down = floor(f);
		if (f - down > 0.5 || (f - down == 0.5 && fmod(down, 2.0) != 0.0))
			down += 1.0;
		return copysign(down, f);
	}
}

/* An integer, or a double, to float or double by mode. */
static double to_double(const struct value *v, bool to_f32, enum ptx_rounding mode)
{
	unsigned __int128 m = v->magnitude, rest, half;
	unsigned bits = 0, keep = to_f32 ? 24 : 53, drop;
	double f;

	if (v->is_float) {
		if (!to_f32)
			return v->f;
		f = (double)(float)v->f;
		if (f != v->f && !isnan(f)) {
			double away = f;

			/* The neighbour on the side that the mode asks for. */
			if (mode == PTX_RM && f > v->f)
				away = (double)nextafterf((float)f, -INFINITY);
			else if (mode == PTX_RP && f < v->f)
				away = (double)nextafterf((float)f, INFINITY);
			else if (mode == PTX_RZ && fabs(f) > fabs(v->f))
				away = (double)nextafterf((float)f, 0.0f);
			return away;
		}
		return f;
	}
	while (m >> bits)
		bits++;
	if (bits > keep) {
		drop = bits - keep;
		rest = m & (((unsigned __int128)1 << drop) - 1);
		half = (unsigned __int128)1 << (drop - 1);
		m >>= drop;
		if (mode == PTX_RP	 ? rest && !v->minus
			: mode == PTX_RM ? rest && v->minus
			: mode == PTX_RZ ? false
					 : rest > half || (rest == half && m & 1))
			m++;
		f = ldexp((double)(uint64_t)m, (int)drop);
	} else {
		f = (double)(uint64_t)m;
	}
	return v->minus ? -f : f;
}

static uint64_t to_integer(const struct value *v, enum kind kind, enum kind from,
	enum ptx_rounding mode, bool clamp)
{
	static const unsigned widths[] = {8, 8, 16, 16, 32, 32, 64, 64};
	unsigned bits = widths[kind];
	bool is_signed = kind & 1, minus = v->minus;
	uint64_t most = is_signed ? (UINT64_C(1) << (bits - 1)) - 1 : UINT64_MAX >> (64 - bits);
	unsigned __int128 m = v->magnitude;

	if (v->is_float) {
		double f = integral(v->f, mode);

		/* As PTX says: the highest bit from f64 or to 64 bits, else 0. */
		if (isnan(f))
			return from == KIND_F64 || bits == 64 ? UINT64_C(1) << (bits - 1) : 0;
		minus = f < 0.0;
		f = fabs(f);
		m = f >= 0x1p65 ? (unsigned __int128)1 << 65 : (unsigned __int128)f;
		clamp = true; /* always, from a float */
	}
	if (clamp) {
		if (minus && m > (is_signed ? (unsigned __int128)most + 1 : 0))
			m = is_signed ? (unsigned __int128)most + 1 : 0;
		else if (!minus && m > most)
			m = most;
	}
	return minus ? 0 - (uint64_t)m : (uint64_t)m;
}

/* A NaN through rna keeps its bits, as on an H200 (2026-11-23). */
static uint32_t quiet_tf32(double nan)
{
	const float f = (float)nan;
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return (bits | 0x400000u) & 0xffffe000u;
}

OP(cvt_any, "cvt.any", "x")
{
	enum kind to = i->imm & 255, from = i->imm >> 8 & 255;
	enum ptx_rounding mode = i->imm >> 16 & 255;
	bool sat = i->imm >> 24 & 1, ftz = i->imm >> 25 & 1, relu = i->imm >> 26 & 1;
	unsigned char *d = ptx_reg(w, i->d);
	const unsigned char *a = ptx_reg(w, i->a);

	EACH(m)
	{
		/* To f16 an H200 flushes nothing: rm and rp see a subnormal (2026-11-23). */
		struct value v = fetch(a, l, from, ftz && to != KIND_F16);
		uint64_t result;
		float narrow;
		uint32_t bits;
		double f;

		if (to <= KIND_S64) {
			result = to_integer(&v, to, from, mode, sat);
			/* Eight bits fill a 16-bit register. */
			if (to == KIND_U8)
				result &= 255;
			else if (to == KIND_S8)
				result = (uint64_t)(int64_t)(int8_t)result;
			memcpy(d + l * (to < KIND_U32	       ? 2
					       : to < KIND_U64 ? 4
							       : 8),
				&result,
				to < KIND_U32	? 2
				: to < KIND_U64 ? 4
						: 8);
			continue;
		}
		/* A float rounded to an integral value stays a float. */
		if (v.is_float && mode >= PTX_RNI)
			v.f = integral(v.f, mode);
		f = to_double(&v, to == KIND_F32, mode >= PTX_RNI ? PTX_RN : mode);
		if (sat)
			f = f > 0.0 ? (f < 1.0 ? f : 1.0) : 0.0;
		if (relu)
			f = f > 0.0 || isnan(f) ? f : 0.0;
		switch (to) {
		case KIND_F16:
		case KIND_BF16:
			result = ptx_round(
				f, to == KIND_F16 ? &ptx_f16 : &ptx_bf16, mode, false);
			memcpy(d + 2 * l, &result, 2);
			break;
		case KIND_TF32:
			bits = mode == PTX_RNA && isnan(f)
				       ? quiet_tf32(f)
				       : ptx_round(f, &ptx_tf32, mode, false) << 13;
			memcpy(d + 4 * l, &bits, 4);
			break;
		case KIND_F32:
			narrow = canon32((float)f);
			memcpy(&bits, &narrow, sizeof(bits));
			if (ftz && !(bits & 0x7f800000u))
				bits &= 0x80000000u;
			memcpy(d + 4 * l, &bits, 4);
			break;
		default: memcpy(d + 8 * l, &f, 8);
		}
	}
}

/* ---- Pairs: d = { a high, b low } ---- */

INLINE uint32_t pair(float high, float low, const struct ptx_format *f, enum ptx_rounding mode,
	bool relu, bool finite, unsigned bits)
{
	if (relu) {
		high = high > 0.0f || high != high ? high : 0.0f;
		low = low > 0.0f || low != low ? low : 0.0f;
	}
	return ptx_round((double)high, f, mode, finite) << bits |
	       ptx_round((double)low, f, mode, finite);
}

#define PAIR(id, mode, relu, T, f, bits, finite, name)                                         \
	BINARY(pair_##id, name, "x", T, float, pair(a[l], b[l], f, mode, relu, finite, bits))
PAIR(f16_rn, PTX_RN, false, uint32_t, &ptx_f16, 16, false, "cvt.rn.f16x2.f32")
PAIR(f16_rz, PTX_RZ, false, uint32_t, &ptx_f16, 16, false, "cvt.rz.f16x2.f32")
PAIR(f16_rn_relu, PTX_RN, true, uint32_t, &ptx_f16, 16, false, "cvt.rn.relu.f16x2.f32")
PAIR(bf16_rn, PTX_RN, false, uint32_t, &ptx_bf16, 16, false, "cvt.rn.bf16x2.f32")
PAIR(bf16_rz, PTX_RZ, false, uint32_t, &ptx_bf16, 16, false, "cvt.rz.bf16x2.f32")
PAIR(bf16_rn_relu, PTX_RN, true, uint32_t, &ptx_bf16, 16, false, "cvt.rn.relu.bf16x2.f32")
PAIR(f16_rn_finite, PTX_RN, false, uint32_t, &ptx_f16, 16, true, "cvt.rn.satfinite.f16x2.f32")
PAIR(f16_rn_relu_finite, PTX_RN, true, uint32_t, &ptx_f16, 16, true,
	"cvt.rn.relu.satfinite.f16x2.f32")
PAIR(f16_rz_finite, PTX_RZ, false, uint32_t, &ptx_f16, 16, true, "cvt.rz.satfinite.f16x2.f32")
PAIR(f16_rz_relu, PTX_RZ, true, uint32_t, &ptx_f16, 16, false, "cvt.rz.relu.f16x2.f32")
PAIR(f16_rz_relu_finite, PTX_RZ, true, uint32_t, &ptx_f16, 16, true,
	"cvt.rz.relu.satfinite.f16x2.f32")
PAIR(bf16_rn_finite, PTX_RN, false, uint32_t, &ptx_bf16, 16, true,
	"cvt.rn.satfinite.bf16x2.f32")
PAIR(bf16_rn_relu_finite, PTX_RN, true, uint32_t, &ptx_bf16, 16, true,
	"cvt.rn.relu.satfinite.bf16x2.f32")
PAIR(bf16_rz_finite, PTX_RZ, false, uint32_t, &ptx_bf16, 16, true,
	"cvt.rz.satfinite.bf16x2.f32")
PAIR(bf16_rz_relu, PTX_RZ, true, uint32_t, &ptx_bf16, 16, false, "cvt.rz.relu.bf16x2.f32")
PAIR(bf16_rz_relu_finite, PTX_RZ, true, uint32_t, &ptx_bf16, 16, true,
	"cvt.rz.relu.satfinite.bf16x2.f32")
PAIR(e4m3, PTX_RN, false, uint16_t, &ptx_e4m3, 8, true, "cvt.rn.e4m3x2.f32")
PAIR(e5m2, PTX_RN, false, uint16_t, &ptx_e5m2, 8, true, "cvt.rn.e5m2x2.f32")

PAIR(e4m3_relu, PTX_RN, true, uint16_t, &ptx_e4m3, 8, true, "cvt.rn.relu.e4m3x2.f32")
PAIR(e5m2_relu, PTX_RN, true, uint16_t, &ptx_e5m2, 8, true, "cvt.rn.relu.e5m2x2.f32")

#define TO8(id, f, relu, name)                                                                 \
	UNARY(to_##id, name, "x", uint16_t, uint32_t,                                          \
		pair(ptx_half_to_float((uint16_t)(a[l] >> 16)),                                \
			ptx_half_to_float((uint16_t)a[l]), f, PTX_RN, relu, true, 8))
TO8(e4m3, &ptx_e4m3, false, "cvt.rn.e4m3x2.f16x2")
TO8(e5m2, &ptx_e5m2, false, "cvt.rn.e5m2x2.f16x2")
TO8(e4m3_relu, &ptx_e4m3, true, "cvt.rn.relu.e4m3x2.f16x2")
TO8(e5m2_relu, &ptx_e5m2, true, "cvt.rn.relu.e5m2x2.f16x2")

#define FROM8(id, f, name)                                                                     \
	OP(from_##id, name, "x")                                                               \
	{                                                                                      \
		DST(uint32_t);                                                                 \
		SRC_A(uint16_t);                                                               \
		EACH(m)                                                                        \
		d[l] = (uint32_t)ptx_half_from(ptx_unround(a[l] >> 8, f)) << 16 |              \
		       ptx_half_from(ptx_unround(a[l] & 255u, f));                             \
	}
FROM8(e4m3, &ptx_e4m3, "cvt.rn.f16x2.e4m3x2")
FROM8(e5m2, &ptx_e5m2, "cvt.rn.f16x2.e5m2x2")

#define FROM8_RELU(id, f, name)                                                                \
	OP(from_relu_##id, name, "x")                                                          \
	{                                                                                      \
		DST(uint32_t);                                                                 \
		SRC_A(uint16_t);                                                               \
		EACH(m)                                                                        \
		d[l] = pair((float)ptx_unround(a[l] >> 8, f),                                  \
			(float)ptx_unround(a[l] & 255u, f), &ptx_f16, PTX_RN, true, false,     \
			16);                                                                   \
	}
FROM8_RELU(e4m3, &ptx_e4m3, "cvt.rn.relu.f16x2.e4m3x2")
FROM8_RELU(e5m2, &ptx_e5m2, "cvt.rn.relu.f16x2.e5m2x2")

/* ---- Integers of `e` bits side by side, saturated: a above b, and c above both ---- */

INLINE uint32_t saturated(int32_t v, unsigned bits, bool is_signed)
{
	const int32_t most = (int32_t)((1u << (bits - is_signed)) - 1);
	const int32_t least = is_signed ? -most - 1 : 0;

	return (uint32_t)(v < least ? least : v > most ? most : v) & ((1u << bits) - 1);
}

OP(cvt_pack, "cvt.pack", "x")
{
	DST(uint32_t);
	SRC_A(int32_t);
	SRC_B(int32_t);
	const unsigned bits = i->e;
	const bool is_signed = i->f;

	PUT(uint32_t,
		saturated(a[l], bits, is_signed) << bits | saturated(b[l], bits, is_signed));
}

OP(cvt_pack_b32, "cvt.pack.b32", "x")
{
	DST(uint32_t);
	SRC_A(int32_t);
	SRC_B(int32_t);
	SRC_C(uint32_t);
	const unsigned bits = i->e;
	const bool is_signed = i->f;

	PUT(uint32_t, c[l] << 2 * bits | saturated(a[l], bits, is_signed) << bits |
			      saturated(b[l], bits, is_signed));
}
