/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers and indices of each type, as complex doubles and 64-bit integers.
 */
#include <math.h>

#include "softgpu/ptx/ops/round.h"
#include "softgpu/sparse/sparse.h"

bool sparse_complex(int type)
{
	return type == SPARSE_C_32F || type == SPARSE_C_64F || type == SPARSE_C_16F ||
	       type == SPARSE_C_16BF;
}

/* The type of each half of a complex number. */
static int real_of(int type)
{
	switch (type) {
	case SPARSE_C_32F: return SPARSE_R_32F;
	case SPARSE_C_64F: return SPARSE_R_64F;
	case SPARSE_C_16F: return SPARSE_R_16F;
	case SPARSE_C_16BF: return SPARSE_R_16BF;
	default: return type;
	}
}

static unsigned real_size(int type)
{
	switch (type) {
	case SPARSE_R_32F:
	case SPARSE_R_32I: return 4;
	case SPARSE_R_64F: return 8;
	case SPARSE_R_16F:
	case SPARSE_R_16BF: return 2;
	case SPARSE_R_8I: return 1;
	default: return 0;
	}
}

unsigned sparse_size(int type)
{
	return real_size(real_of(type)) << sparse_complex(type);
}

unsigned sparse_index_size(int type)
{
	return type == SPARSE_INDEX_16U	  ? 2
	       : type == SPARSE_INDEX_32I ? 4
	       : type == SPARSE_INDEX_64I ? 8
					  : 0;
}

static double real_load(int type, const void *array, int64_t i)
{
	switch (type) {
	case SPARSE_R_32F: return (double)((const float *)array)[i];
	case SPARSE_R_64F: return ((const double *)array)[i];
	case SPARSE_R_16F: return (double)ptx_half_to_float(((const uint16_t *)array)[i]);
	case SPARSE_R_16BF: return (double)ptx_bf16_to_float(((const uint16_t *)array)[i]);
	case SPARSE_R_8I: return ((const int8_t *)array)[i];
	default: return ((const int32_t *)array)[i];
	}
}

/* An integer takes the nearest value that it has. */
static int32_t clamped(double value, double least, double most)
{
	return (int32_t)fmin(fmax(nearbyint(value), least), most);
}

static void real_store(int type, void *array, int64_t i, double value)
{
	switch (type) {
	case SPARSE_R_32F: ((float *)array)[i] = (float)value; break;
	case SPARSE_R_64F: ((double *)array)[i] = value; break;
	case SPARSE_R_16F: ((uint16_t *)array)[i] = ptx_half_from(value); break;
	case SPARSE_R_16BF: ((uint16_t *)array)[i] = ptx_bf16_from(value); break;
	case SPARSE_R_8I:
		((int8_t *)array)[i] = (int8_t)clamped(value, INT8_MIN, INT8_MAX);
		break;
	default: ((int32_t *)array)[i] = clamped(value, INT32_MIN, INT32_MAX);
	}
}

sparse_number sparse_load(int type, const void *array, int64_t i)
{
	if (sparse_complex(type))
		return __builtin_complex(real_load(real_of(type), array, 2 * i),
			real_load(real_of(type), array, 2 * i + 1));
	return real_load(type, array, i);
}

void sparse_store(int type, void *array, int64_t i, sparse_number value)
{
	if (sparse_complex(type)) {
		real_store(real_of(type), array, 2 * i, creal(value));
		real_store(real_of(type), array, 2 * i + 1, cimag(value));
	} else {
		real_store(type, array, i, creal(value));
	}
}

int64_t sparse_index(int type, const void *array, int64_t i)
{
	switch (type) {
	case SPARSE_INDEX_16U: return ((const uint16_t *)array)[i];
	case SPARSE_INDEX_32I: return ((const int32_t *)array)[i];
	default: return ((const int64_t *)array)[i];
	}
}

void sparse_set_index(int type, void *array, int64_t i, int64_t value)
{
	switch (type) {
	case SPARSE_INDEX_16U: ((uint16_t *)array)[i] = (uint16_t)value; break;
	case SPARSE_INDEX_32I: ((int32_t *)array)[i] = (int32_t)value; break;
	default: ((int64_t *)array)[i] = value;
	}
}

struct sparse_scalar sparse_scalar(const struct sparse_handle *handle, const void *at, int type)
{
	if (handle->pointer_mode)
		return (struct sparse_scalar){.device = at, .type = type};
	return (struct sparse_scalar){.type = type, .value = sparse_load(type, at, 0)};
}

bool sparse_scalar_value(
	struct sparse_task *task, const struct sparse_scalar *scalar, sparse_number *value)
{
	*value = scalar->value;
	if (!scalar->device)
		return true;
	if (!sparse_area(task, scalar->device, 0, 1, sparse_size(scalar->type)))
		return false;
	*value = sparse_load(scalar->type, scalar->device, 0);
	return true;
}

void sparse_blend(int type, void *array, int64_t i, sparse_number alpha, sparse_number sum,
	sparse_number beta)
{
	sparse_number value = alpha * sum;

	if (beta != 0)
		value += beta * sparse_load(type, array, i);
	sparse_store(type, array, i, value);
}

bool sparse_types(int a, int b, int c, int compute)
{
	if (a == b && b == c && c == compute)
		return a == SPARSE_R_32F || a == SPARSE_R_64F || a == SPARSE_C_32F ||
		       a == SPARSE_C_64F;
	if (a == SPARSE_R_8I && b == a)
		return (compute == SPARSE_R_32I && c == SPARSE_R_32I) ||
		       (compute == SPARSE_R_32F && c == SPARSE_R_32F);
	if ((a == SPARSE_R_16F || a == SPARSE_R_16BF) && b == a)
		return compute == SPARSE_R_32F && (c == SPARSE_R_32F || c == a);
	if ((a == SPARSE_C_16F || a == SPARSE_C_16BF) && b == a)
		return compute == SPARSE_C_32F && c == a;
	/* A matrix narrower than all else, or real where all else is complex. */
	return b == c && c == compute &&
	       ((a == SPARSE_R_32F && (b == SPARSE_R_64F || b == SPARSE_C_32F)) ||
		       (a == SPARSE_R_64F && b == SPARSE_C_64F));
}
