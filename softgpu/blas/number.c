/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements: how large they are, and as floating-point numbers, from 8 bits on.
 */
#include <math.h>
#include <string.h>

#include "softgpu/blas/lt.h"

uint32_t blas_size(enum blas_type type)
{
	switch (type) {
	case BLAS_I8: return 1;
	case BLAS_F16:
	case BLAS_BF16: return 2;
	case BLAS_F32:
	case BLAS_I32: return 4;
	case BLAS_F64:
	case BLAS_C32: return 8;
	case BLAS_C64: return 16;
	}
	return 0;
}

float blas_half_in(uint16_t half)
{
	_Float16 value;

	memcpy(&value, &half, sizeof(value));
	return (float)value;
}

uint16_t blas_half_out(float value)
{
	_Float16 half = (_Float16)value;
	uint16_t bits;

	memcpy(&bits, &half, sizeof(bits));
	return bits;
}

float blas_bfloat_in(uint16_t half)
{
	uint32_t bits = (uint32_t)half << 16;
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

uint16_t blas_bfloat_out(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	if (value != value)
		return 0x7fff;
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >>
			  16); /* to nearest, ties to even */
}

uint32_t lt_size(uint32_t type)
{
	return type == LT_F8_E4M3 || type == LT_F8_E5M2 ? 1 : blas_size((enum blas_type)type);
}

/* A float of 8 bits: sign, `exponent` bits of exponent, the rest mantissa. */
static double small_in(uint8_t bits, int exponent, int bias)
{
	int mantissa = 7 - exponent, e = bits >> mantissa & ((1 << exponent) - 1);
	int m = bits & ((1 << mantissa) - 1);
	double value;

	if (exponent == 4 ? (bits & 0x7f) == 0x7f : e == 31 && m)
		value = NAN;
	else if (exponent == 5 && e == 31)
		value = INFINITY;
	else if (e)
		value = ldexp((1 << mantissa) + m, e - bias - mantissa);
	else
		value = ldexp(m, 1 - bias - mantissa);
	return bits & 0x80 ? -value : value;
}

/* The nearest one, ties to even, the largest where it would not fit. */
static uint8_t small_out(double value, int exponent, int bias, double largest)
{
	int mantissa = 7 - exponent, e;
	double magnitude = fabs(value);
	uint8_t sign = signbit(value) ? 0x80 : 0;
	long steps;

	if (value != value)
		return (uint8_t)(sign | 0x7f);
	if (magnitude > largest)
		magnitude = largest;
	if (magnitude == 0)
		return sign;
	frexp(magnitude, &e);
	e = e - 1 < 1 - bias ? 1 - bias : e - 1;
	steps = lrint(ldexp(magnitude, mantissa - e));
	/* A mantissa that overflows carries into the exponent by itself. */
	return (uint8_t)(sign | (((e + bias - 1) << mantissa) + steps));
}

double lt_get(const void *at, uint32_t type, uint64_t i)
{
	switch (type) {
	case BLAS_F16: return blas_half_in(((const uint16_t *)at)[i]);
	case BLAS_BF16: return blas_bfloat_in(((const uint16_t *)at)[i]);
	case BLAS_I8: return ((const int8_t *)at)[i];
	case BLAS_I32: return ((const int32_t *)at)[i];
	case BLAS_F64: return ((const double *)at)[i];
	case LT_F8_E4M3: return small_in(((const uint8_t *)at)[i], 4, 7);
	case LT_F8_E5M2: return small_in(((const uint8_t *)at)[i], 5, 15);
	default: return ((const float *)at)[i];
	}
}

/* Whole numbers saturate. */
static double whole(double value, double low, double high)
{
	value = nearbyint(value);
	return value < low ? low : value > high ? high : value;
}

void lt_put(void *at, uint32_t type, uint64_t i, double value)
{
	switch (type) {
	case BLAS_F16: ((uint16_t *)at)[i] = blas_half_out((float)value); break;
	case BLAS_BF16: ((uint16_t *)at)[i] = blas_bfloat_out((float)value); break;
	case BLAS_I8: ((int8_t *)at)[i] = (int8_t)whole(value, -128, 127); break;
	case BLAS_I32: ((int32_t *)at)[i] = (int32_t)whole(value, INT32_MIN, INT32_MAX); break;
	case BLAS_F64: ((double *)at)[i] = value; break;
	case LT_F8_E4M3: ((uint8_t *)at)[i] = small_out(value, 4, 7, 448); break;
	case LT_F8_E5M2: ((uint8_t *)at)[i] = small_out(value, 5, 15, 57344); break;
	default: ((float *)at)[i] = (float)value; break;
	}
}
