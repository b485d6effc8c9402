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

/* Half precision without tables: exact. */
static inline float ptx_half_to_float(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, bits;
	uint32_t exponent = h >> 10 & 31, mantissa = h & 1023;
	float v;

	if (exponent == 31) {
		bits = mantissa ? 0x7fffffffu : sign | 0x7f800000u;
	} else if (exponent) {
		bits = sign | (exponent + 112) << 23 | mantissa << 13;
	} else {
		v = (float)mantissa * 0x1p-24f;
		memcpy(&bits, &v, sizeof(bits));
		bits |= sign;
	}
	memcpy(&v, &bits, sizeof(v));
	return v;
}

static inline uint16_t ptx_half_from(double v)
{
	return (uint16_t)ptx_round(v, &ptx_f16, PTX_RN, false);
}

static inline float ptx_bf16_to_float(uint16_t h)
{
	uint32_t bits = (uint32_t)h << 16;
	float v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

static inline uint16_t ptx_bf16_from(double v)
{
	return (uint16_t)ptx_round(v, &ptx_bf16, PTX_RN, false);
}

#endif
