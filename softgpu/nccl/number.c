/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions, in the order of the ranks. Floating-point numbers are reduced in double precision
 * and rounded once; whole ones wrap.
 */
#include <string.h>

#include "softgpu/blas/lt.h"
#include "softgpu/nccl/nccl.h"

static const struct {
	uint8_t size;
	bool real, is_signed;
	uint32_t as; /* lt_get's, of a real one */
} types[NCCL_TYPES] = {
	[NCCL_I8] = {1, false, true, 0},
	[NCCL_U8] = {1, false, false, 0},
	[NCCL_I32] = {4, false, true, 0},
	[NCCL_U32] = {4, false, false, 0},
	[NCCL_I64] = {8, false, true, 0},
	[NCCL_U64] = {8, false, false, 0},
	[NCCL_F16] = {2, true, true, BLAS_F16},
	[NCCL_F32] = {4, true, true, BLAS_F32},
	[NCCL_F64] = {8, true, true, BLAS_F64},
	[NCCL_BF16] = {2, true, true, BLAS_BF16},
	[NCCL_E4M3] = {1, true, true, LT_F8_E4M3},
	[NCCL_E5M2] = {1, true, true, LT_F8_E5M2},
};

uint32_t softnccl_size(int type)
{
	return (unsigned)type < NCCL_TYPES ? types[type].size : 0;
}

/* Sign-extended where the type has a sign. */
static uint64_t whole_get(int type, const void *at, size_t i)
{
	switch (type) {
	case NCCL_I8: return (uint64_t)((const int8_t *)at)[i];
	case NCCL_U8: return ((const uint8_t *)at)[i];
	case NCCL_I32: return (uint64_t)((const int32_t *)at)[i];
	case NCCL_U32: return ((const uint32_t *)at)[i];
	default: return ((const uint64_t *)at)[i];
	}
}

static void whole_put(int type, void *at, size_t i, uint64_t value)
{
	switch (types[type].size) {
	case 1: ((uint8_t *)at)[i] = (uint8_t)value; break;
	case 4: ((uint32_t *)at)[i] = (uint32_t)value; break;
	default: ((uint64_t *)at)[i] = value; break;
	}
}

static bool whole_less(int type, uint64_t a, uint64_t b)
{
	return types[type].is_signed ? (int64_t)a < (int64_t)b : a < b;
}

static uint64_t whole_two(int type, int op, uint64_t a, uint64_t b)
{
	switch (op) {
	case NCCL_PROD: return a * b;
	case NCCL_MAX: return whole_less(type, a, b) ? b : a;
	case NCCL_MIN: return whole_less(type, b, a) ? b : a;
	default: return a + b;
	}
}

/* A sum wraps in its type before it is divided. */
static uint64_t whole_mean(int type, uint64_t sum, int n)
{
	uint64_t wrapped[1];

	whole_put(type, wrapped, 0, sum);
	sum = whole_get(type, wrapped, 0);
	return types[type].is_signed ? (uint64_t)((int64_t)sum / n) : sum / (uint64_t)n;
}

static double real_two(int op, double a, double b)
{
	switch (op) {
	case NCCL_PROD: return a * b;
	case NCCL_MAX: return a < b || b != b ? b : a;
	case NCCL_MIN: return b < a || b != b ? b : a;
	default: return a + b;
	}
}

void softnccl_reduce(int type, int op, void *out, char *const *from, int n, size_t count)
{
	for (size_t i = 0; i < count && types[type].real; i++) {
		double value = lt_get(from[0], types[type].as, i);

		for (int k = 1; k < n; k++)
			value = real_two(op, value, lt_get(from[k], types[type].as, i));
		lt_put(out, types[type].as, i, op == NCCL_AVG ? value / n : value);
	}
	for (size_t i = 0; i < count && !types[type].real; i++) {
		uint64_t value = whole_get(type, from[0], i);

		for (int k = 1; k < n; k++)
			value = whole_two(type, op, value, whole_get(type, from[k], i));
		whole_put(type, out, i, op == NCCL_AVG ? whole_mean(type, value, n) : value);
	}
}

void softnccl_scale(int type, void *elements, size_t count, const void *scalar)
{
	for (size_t i = 0; i < count; i++) {
		if (types[type].real)
			lt_put(elements, types[type].as, i,
				lt_get(elements, types[type].as, i) *
					lt_get(scalar, types[type].as, 0));
		else
			whole_put(type, elements, i,
				whole_get(type, elements, i) * whole_get(type, scalar, 0));
	}
}
