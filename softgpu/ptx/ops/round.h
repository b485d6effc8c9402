/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounding a double to any smaller binary format, in any mode, on the bits.  Serves f16, bf16,
 * tf32 and the 8-bit formats, where no processor instruction does.
 */
#ifndef VCUDA_SOFTGPU_PTX_OPS_ROUND_H
#define VCUDA_SOFTGPU_PTX_OPS_ROUND_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* PTX's OOB-NaN: what tensor copies put where there is no tensor, over and over in a wider
 * element.  PTX does not tell its bits; these are what others have read from GPUs. */
#define PTX_OOB_NAN 0x7ff7u

/* The order of `rounds` in ptx_decode_cvt. */
enum ptx_rounding {
	PTX_RN,
	PTX_RM,
	PTX_RP,
	PTX_RZ,
	PTX_RNA,
	PTX_RNI,
	PTX_RMI,
	PTX_RPI,
	PTX_RZI
};

struct ptx_format {
	unsigned mantissa, exponent; /* bits stored */
	bool no_infinity; /* e4m3: all ones is NaN, the rest of that binade are numbers */
};

static const struct ptx_format ptx_f16 = {10, 5, false};
static const struct ptx_format ptx_bf16 = {7, 8, false};
static const struct ptx_format ptx_tf32 = {10, 8, false};
static const struct ptx_format ptx_e4m3 = {3, 4, true};
static const struct ptx_format ptx_e5m2 = {2, 5, false};

static inline uint32_t ptx_format_max(const struct ptx_format *f)
{
	uint32_t inf = ((1u << f->exponent) - 1) << f->mantissa;

	return f->no_infinity ? inf + (1u << f->mantissa) - 2 : inf - 1;
}

static inline uint32_t ptx_format_nan(const struct ptx_format *f)
{
	return (1u << (f->mantissa + f->exponent)) - 1;
}

/* `finite`: what is too large becomes the largest number. */
static inline uint32_t ptx_round(
	double v, const struct ptx_format *f, enum ptx_rounding mode, bool finite)
{
	uint64_t bits, mantissa, rest, half;
	uint32_t sign, result, top = f->mantissa + f->exponent;
	int bias = (1 << (f->exponent - 1)) - 1, exponent, drop;

	memcpy(&bits, &v, sizeof(bits));
	sign = (uint32_t)(bits >> 63) << top;
	exponent = (int)(bits >> 52 & 0x7ff);
	mantissa = bits & ((UINT64_C(1) << 52) - 1);
	if (exponent == 0x7ff && mantissa)
		return ptx_format_nan(f);
	if (exponent == 0x7ff) {
		if (finite || f->no_infinity)
			return finite ? sign | ptx_format_max(f) : sign | ptx_format_nan(f);
		return sign | (ptx_format_max(f) + 1);
	}
	if (exponent == 0 && !mantissa)
		return sign;
	mantissa |= UINT64_C(1) << 52; /* a subnormal double's too: it is tiny either way */
	exponent -= 1023;
	drop = 52 - (int)f->mantissa;
	if (exponent < 1 - bias) {
		drop += 1 - bias - exponent;
		exponent = 0;
	} else {
		exponent += bias - 1; /* the implicit bit adds one below */
	}
	if (drop > 54) {
		mantissa = 1;
		drop = 54; /* tiny: only its being there matters */
	}
	rest = mantissa & ((UINT64_C(1) << drop) - 1);
	half = UINT64_C(1) << (drop - 1);
	mantissa >>= drop;
	switch (mode) {
	case PTX_RN: mantissa += rest > half || (rest == half && mantissa & 1); break;
	case PTX_RNA: mantissa += rest >= half; break;
	case PTX_RM: mantissa += rest && sign; break;
	case PTX_RP: mantissa += rest && !sign; break;
	default: break;
	}
	result = (uint32_t)(((uint64_t)exponent << f->mantissa) + mantissa);
	if (result > ptx_format_max(f)) {
		bool stay = finite || mode == PTX_RZ || (mode == PTX_RM && !sign) ||
			    (mode == PTX_RP && sign);

		result = stay		  ? ptx_format_max(f)
			 : f->no_infinity ? ptx_format_nan(f)
					  : ptx_format_max(f) + 1;
	}
	return sign | result;
}

static inline double ptx_unround(uint32_t bits, const struct ptx_format *f)
{
	int bias = (1 << (f->exponent - 1)) - 1;
	uint32_t mantissa = bits & ((1u << f->mantissa) - 1);
	int exponent = (int)(bits >> f->mantissa & ((1u << f->exponent) - 1));
	bool minus = bits >> (f->mantissa + f->exponent) & 1;
	double v;

	if (f->no_infinity ? (bits & ptx_format_nan(f)) == ptx_format_nan(f)
			   : exponent == (1 << f->exponent) - 1 && mantissa)
		return (double)NAN;
	if (!f->no_infinity && exponent == (1 << f->exponent) - 1)
		v = (double)INFINITY;
	else if (!exponent)
		v = ldexp((double)mantissa, 1 - bias - (int)f->mantissa);
	else
		v = ldexp((double)(mantissa | 1u << f->mantissa),
			exponent - bias - (int)f->mantissa);
	return minus ? -v : v;
}

/* ---- f16 and bf16 without a branch or a call, so that loops over lanes become vectors ---- */

#ifndef INLINE /* as in ops.h */
#define INLINE static inline __attribute__((always_inline))
#endif

INLINE uint32_t ptx_float_bits(float v)
{
	uint32_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

INLINE float ptx_bits_float(uint32_t bits)
{
	float v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

INLINE float ptx_half_to_float(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = (uint32_t)(h & 0x7fff) << 13;
	uint32_t least = ptx_float_bits((float)(h & 1023) * 0x1p-24f) | sign;
	uint32_t large = rest & 0x7fffff ? 0x7fffffffu : 0x7f800000u | sign;
	uint32_t bits = (rest + (112u << 23)) | sign;

	bits = rest < 1u << 23 ? least : bits;
	return ptx_bits_float(rest < 31u << 23 ? bits : large);
}

INLINE uint64_t ptx_double_bits(double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

/* `near` is a rounded number, of its sign, and `lost` what rounding took from it.  Bit 1:
 * `near` lies beyond the number, as seen from 0; bit 0: it is not the number.  0 where that is
 * NaN. */
INLINE uint64_t ptx_lost(double near, double lost)
{
	uint64_t bits = ptx_double_bits(lost == lost ? lost : 0.0), some = bits << 1;

	some = (some | (0 - some)) >> 63;
	return some | (some & (bits ^ ptx_double_bits(near)) >> 63) << 1;
}

/* Rounded to odd: the bits of the float next to v towards 0, with the last one set if that is
 * not v.  A format of fewer bits rounds it as it would round v. */
INLINE uint32_t ptx_float_odd(double v)
{
	float near = (float)v;
	uint32_t lost = (uint32_t)ptx_lost(v, v - (double)near);

	return (ptx_float_bits(near) - (lost >> 1)) | (lost & 1);
}

/* x + y, rounded to odd in the same way. */
INLINE double ptx_add_odd(double x, double y)
{
	double sum = x + y, part = sum - x;
	uint64_t lost = ptx_lost(sum, (x - (sum - part)) + (y - part)), bits;

	bits = (ptx_double_bits(sum) - (lost >> 1)) | (lost & 1);
	memcpy(&sum, &bits, sizeof(sum));
	return sum;
}

/* The same in float. */
INLINE float ptx_add_odd_float(float x, float y)
{
	float sum = x + y, part = sum - x, lost = (x - (sum - part)) + (y - part);
	uint32_t bits = ptx_float_bits(lost == lost ? lost : 0.0f), some = bits << 1;

	some = (some | (0 - some)) >> 31;
	bits = ptx_float_bits(sum) - (some & (bits ^ ptx_float_bits(sum)) >> 31);
	return ptx_bits_float(bits | some);
}

INLINE uint16_t ptx_half_of(uint32_t bits)
{
	uint32_t sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
	/* Adding this leaves the bits of the result at the end of the sum's. */
	uint32_t least = ptx_float_bits(ptx_bits_float(rest) + 0.5f) - ptx_float_bits(0.5f);
	uint32_t half = (rest - (112u << 23) + 0xfff + (rest >> 13 & 1)) >> 13;

	half = rest < 113u << 23 ? least : half;
	half = rest < 143u << 23 ? half : 0x7c00;
	return (uint16_t)(rest > 0x7f800000u ? 0x7fff : half | sign);
}

INLINE uint16_t ptx_half_from(double v)
{
	return ptx_half_of(ptx_float_odd(v));
}

INLINE float ptx_bf16_to_float(uint16_t h)
{
	return ptx_bits_float((uint32_t)h << 16);
}

INLINE uint16_t ptx_bf16_of(uint32_t bits)
{
	uint32_t half = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;

	return (uint16_t)((bits & 0x7fffffff) > 0x7f800000u ? 0x7fff : half);
}

INLINE uint16_t ptx_bf16_from(double v)
{
	return ptx_bf16_of(ptx_float_odd(v));
}

#endif
