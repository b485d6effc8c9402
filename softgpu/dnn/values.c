/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors as arrays of double, in the order of their dimensions, and back.
 */
#include <math.h>
#include <string.h>

#include "softgpu/dnn/dnn.h"

uint32_t dnn_size(int type)
{
	switch (type) {
	case CUDNN_DATA_INT8:
	case CUDNN_DATA_UINT8:
	case CUDNN_DATA_BOOLEAN: return 1;
	case CUDNN_DATA_HALF:
	case CUDNN_DATA_BFLOAT16: return 2;
	case CUDNN_DATA_FLOAT:
	case CUDNN_DATA_INT32: return 4;
	case CUDNN_DATA_DOUBLE:
	case CUDNN_DATA_INT64: return 8;
	default: return 0;
	}
}

double dnn_get(const void *at, int type, int64_t i)
{
	_Float16 half;
	uint32_t bits;
	float wide;

	switch (type) {
	case CUDNN_DATA_FLOAT: return (double)((const float *)at)[i];
	case CUDNN_DATA_DOUBLE: return ((const double *)at)[i];
	case CUDNN_DATA_HALF:
		memcpy(&half, (const char *)at + 2 * i, sizeof(half));
		return (double)half;
	case CUDNN_DATA_BFLOAT16:
		bits = (uint32_t)((const uint16_t *)at)[i] << 16;
		memcpy(&wide, &bits, sizeof(wide));
		return (double)wide;
	case CUDNN_DATA_INT8: return ((const int8_t *)at)[i];
	case CUDNN_DATA_UINT8:
	case CUDNN_DATA_BOOLEAN: return ((const uint8_t *)at)[i];
	case CUDNN_DATA_INT32: return ((const int32_t *)at)[i];
	case CUDNN_DATA_INT64: return (double)((const int64_t *)at)[i];
	default: return 0;
	}
}

/* To the nearest integer that the type has; NaN is 0. */
static double whole(double value, double least, double most)
{
	if (!(value == value))
		return 0;
	return value < least ? least : value > most ? most : nearbyint(value);
}

static uint16_t bfloat(double value)
{
	float wide = (float)value;
	uint32_t bits;

	if (!(wide == wide))
		return 0x7fff;
	memcpy(&bits, &wide, sizeof(bits));
	/* To nearest, ties to even. */
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void dnn_put(void *at, int type, int64_t i, double value)
{
	_Float16 half;

	switch (type) {
	case CUDNN_DATA_FLOAT: ((float *)at)[i] = (float)value; break;
	case CUDNN_DATA_DOUBLE: ((double *)at)[i] = value; break;
	case CUDNN_DATA_HALF:
		half = (_Float16)value;
		memcpy((char *)at + 2 * i, &half, sizeof(half));
		break;
	case CUDNN_DATA_BFLOAT16: ((uint16_t *)at)[i] = bfloat(value); break;
	case CUDNN_DATA_INT8: ((int8_t *)at)[i] = (int8_t)whole(value, -128, 127); break;
	case CUDNN_DATA_UINT8: ((uint8_t *)at)[i] = (uint8_t)whole(value, 0, 255); break;
	case CUDNN_DATA_BOOLEAN: ((uint8_t *)at)[i] = value != 0; break;
	case CUDNN_DATA_INT32:
		((int32_t *)at)[i] = (int32_t)whole(value, INT32_MIN, INT32_MAX);
		break;
	case CUDNN_DATA_INT64:
		/* The largest double below 2^63. */
		((int64_t *)at)[i] = (int64_t)whole(value, -0x1p63, 0x1.fffffffffffffp62);
		break;
	default: break;
	}
}

double dnn_scalar(const void *at, int type)
{
	double wide;
	float value;

	if (type == CUDNN_DATA_DOUBLE) {
		memcpy(&wide, at, sizeof(wide));
		return wide;
	}
	memcpy(&value, at, sizeof(value));
	return (double)value;
}

int64_t dnn_elements(const struct dnn_tensor *t)
{
	int64_t elements = 1;

	for (int d = 0; d < t->count; d++)
		elements *= t->dim[d];
	return elements;
}

uint64_t dnn_bytes(const struct dnn_tensor *t)
{
	int64_t last = 0;

	for (int d = 0; d < t->count; d++)
		last += (t->dim[d] - 1) * t->stride[d];
	return (uint64_t)(last + 1) * dnn_size(t->type);
}

bool dnn_same_shape(const struct dnn_tensor *a, const struct dnn_tensor *b)
{
	return a->count == b->count &&
	       !memcmp(a->dim, b->dim, sizeof(a->dim[0]) * (size_t)a->count);
}

bool dnn_fits(const struct dnn_tensor *small, const struct dnn_tensor *large)
{
	if (small->count != large->count)
		return false;
	for (int d = 0; d < small->count; d++)
		if (small->dim[d] != 1 && small->dim[d] != large->dim[d])
			return false;
	return true;
}

void dnn_packed(struct dnn_tensor *t, bool channels_last)
{
	int64_t stride = 1;

	if (channels_last && t->count > 1) {
		t->stride[1] = 1;
		stride = t->dim[1];
	}
	for (int d = t->count - 1; d >= 0; d--) {
		if (channels_last && d == 1)
			continue;
		t->stride[d] = stride;
		stride *= t->dim[d];
	}
}

double *dnn_values_new(struct dnn_job *job, int64_t elements)
{
	double *values = calloc((size_t)elements + 1, sizeof(*values));

	if (!values)
		dnn_fail(job);
	return values;
}

/* A place that goes through a tensor's elements in the order of its dimensions. */
struct walk {
	int64_t at[DNN_DIMS];
	int64_t offset;
};

static void walk_on(struct walk *w, const struct dnn_tensor *t)
{
	for (int d = t->count - 1; d >= 0; d--) {
		w->offset += t->stride[d];
		if (++w->at[d] < t->dim[d])
			return;
		w->offset -= t->dim[d] * t->stride[d];
		w->at[d] = 0;
	}
}

double *dnn_load(struct dnn_job *job, const struct dnn_tensor *t, const void *at)
{
	int64_t elements = dnn_elements(t);
	const void *from = dnn_reach(job, at, dnn_bytes(t));
	double *values = from ? dnn_values_new(job, elements) : NULL;
	struct walk w = {0};

	if (values)
		for (int64_t i = 0; i < elements; i++, walk_on(&w, t))
			values[i] = dnn_get(from, t->type, w.offset);
	return values;
}

double *dnn_load_as(struct dnn_job *job, const struct dnn_tensor *t,
	const struct dnn_tensor *shape, const void *at)
{
	struct dnn_tensor wide = *t;

	for (int d = 0; d < t->count; d++)
		if (t->dim[d] != shape->dim[d]) {
			wide.dim[d] = shape->dim[d];
			wide.stride[d] = 0;
		}
	return dnn_load(job, &wide, at);
}

void dnn_store(struct dnn_job *job, const struct dnn_tensor *t, void *at, const double *values,
	double alpha, double beta)
{
	int64_t elements = dnn_elements(t);
	void *to = dnn_reach(job, at, dnn_bytes(t));
	struct walk w = {0};

	if (!to)
		return;
	for (int64_t i = 0; i < elements; i++, walk_on(&w, t)) {
		double value = alpha * values[i];

		if (beta != 0)
			value += beta * dnn_get(to, t->type, w.offset);
		dnn_put(to, t->type, w.offset, value);
	}
}
