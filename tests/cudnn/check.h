/* SPDX-License-Identifier: Apache-2.0
 *
 * What the cuDNN programs share: tensors of any type and layout with a descriptor and a copy on
 * the device, filled with numbers that are the same in every run, and compared with what plain
 * loops in double say.  They are ordinary programs, with the driver and cuDNN's own functions:
 * natively they check NVIDIA's.
 *
 * Numbers are eighths between -7/8 and 7/8, exact in every floating type, so a product in a
 * narrower one (TF32) changes nothing.
 */
#ifndef TESTS_CUDNN_CHECK_H
#define TESTS_CUDNN_CHECK_H

#include <cuda.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/generated/cudnn_api.h"
#include "tests/check.h"

#define DNN_IS(CALL, WANT) ANSWERS(CALL, WANT)
#define DNN(CALL) DNN_IS(CALL, CUDNN_STATUS_SUCCESS)

/* Whether a status says that the library, or this device, does not do it. */
static inline bool not_supported(int status)
{
	return status == CUDNN_STATUS_NOT_SUPPORTED || status / 1000 == 3;
}

/* A part of a program that this library does not do is told, not failed. */
static inline void skipped(const char *what)
{
	printf("skip: %s: not supported by this cuDNN\n", what);
}

static cudnnHandle_t handle;

static inline void begin(void)
{
	CUcontext context;
	CUdevice device;

	CUDA(cuInit(0));
	CUDA(cuDeviceGet(&device, 0));
	CUDA(cuDevicePrimaryCtxRetain(&context, device));
	CUDA(cuCtxSetCurrent(context));
	DNN(cudnnCreate(&handle));
}

static inline int end(void)
{
	CUDA(cuCtxSynchronize());
	DNN(cudnnDestroy(handle));
	return 0;
}

/* Device memory; BYTES may be 0. */
static inline void *device_new(size_t bytes)
{
	CUdeviceptr at;

	CUDA(cuMemAlloc(&at, bytes ? bytes : 1));
	return (void *)(uintptr_t)at;
}

static inline void device_free(void *at)
{
	CUDA(cuMemFree((CUdeviceptr)(uintptr_t)at));
}

static inline void to_device(void *to, const void *from, size_t bytes)
{
	CUDA(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)to, from, bytes));
}

static inline void from_device(void *to, const void *from, size_t bytes)
{
	CUDA(cuMemcpyDtoH(to, (CUdeviceptr)(uintptr_t)from, bytes));
}

/* ---- values ---- */

static inline size_t size_of(int type)
{
	switch (type) {
	case CUDNN_DATA_FLOAT:
	case CUDNN_DATA_INT32: return 4;
	case CUDNN_DATA_DOUBLE: return 8;
	case CUDNN_DATA_HALF:
	case CUDNN_DATA_BFLOAT16: return 2;
	default: DIE("no type %d here", type);
	}
}

static inline double get_at(const void *at, int type, size_t i)
{
	_Float16 half;
	uint32_t bits;
	float single;

	switch (type) {
	case CUDNN_DATA_FLOAT: return (double)((const float *)at)[i];
	case CUDNN_DATA_DOUBLE: return ((const double *)at)[i];
	case CUDNN_DATA_INT32: return ((const int32_t *)at)[i];
	case CUDNN_DATA_HALF:
		memcpy(&half, (const uint16_t *)at + i, sizeof(half));
		return (double)half;
	case CUDNN_DATA_BFLOAT16:
		bits = (uint32_t)((const uint16_t *)at)[i] << 16;
		memcpy(&single, &bits, sizeof(single));
		return (double)single;
	default: DIE("no type %d here", type);
	}
}

static inline void put_at(void *at, int type, size_t i, double value)
{
	_Float16 half = (_Float16)value;
	float single = (float)value;
	uint32_t bits;

	switch (type) {
	case CUDNN_DATA_FLOAT: ((float *)at)[i] = single; break;
	case CUDNN_DATA_DOUBLE: ((double *)at)[i] = value; break;
	case CUDNN_DATA_INT32: ((int32_t *)at)[i] = (int32_t)value; break;
	case CUDNN_DATA_HALF: memcpy((uint16_t *)at + i, &half, sizeof(half)); break;
	case CUDNN_DATA_BFLOAT16:
		memcpy(&bits, &single, sizeof(bits));
		((uint16_t *)at)[i] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
		break;
	default: DIE("no type %d here", type);
	}
}

static inline double some_number(void)
{
	static uint32_t state = 12345;

	state = state * 1664525u + 1013904223u;
	return ((int)(state >> 16 & 15) - 7) / 8.0;
}

static inline double tolerance_of(int type)
{
	switch (type) {
	case CUDNN_DATA_DOUBLE: return 1e-11;
	case CUDNN_DATA_HALF: return 4e-3;
	case CUDNN_DATA_BFLOAT16: return 2e-2;
	default: return 1e-4;
	}
}

/* alpha and beta for a type: cuDNN wants doubles for double, floats for the rest. */
struct scalar {
	double wide;
	float single;
	bool is_wide;
};

static inline struct scalar scalar(int type, double value)
{
	return (struct scalar){value, (float)value, type == CUDNN_DATA_DOUBLE};
}

static inline const void *at_scalar(const struct scalar *s)
{
	return s->is_wide ? (const void *)&s->wide : &s->single;
}
#define SCALAR(TYPE, VALUE) at_scalar(&(struct scalar[]){scalar(TYPE, VALUE)}[0])

/* ---- tensors ---- */

#define MOST 5

struct tensor {
	int type, count;
	int dim[MOST], stride[MOST];
	size_t elements, bytes;
	void *host, *device;
	cudnnTensorDescriptor_t descriptor;
};

/* Dimensions in cuDNN's order; `last`: channels last in memory. */
static inline struct tensor tensor_new(int type, bool last, int count, const int *dim)
{
	struct tensor t = {.type = type, .count = count};
	int stride = last ? dim[1] : 1;

	for (int d = count - 1; d >= 0; d--) {
		t.dim[d] = dim[d];
		if (last && d == 1) {
			t.stride[d] = 1;
			continue;
		}
		t.stride[d] = stride;
		stride *= dim[d];
	}
	t.elements = (size_t)stride;
	t.bytes = t.elements * size_of(type);
	t.host = malloc(t.bytes);
	t.device = device_new(t.bytes);
	for (size_t i = 0; i < t.elements; i++)
		put_at(t.host, type, i, some_number());
	to_device(t.device, t.host, t.bytes);
	DNN(cudnnCreateTensorDescriptor(&t.descriptor));
	DNN(cudnnSetTensorNdDescriptor(t.descriptor, type, count, t.dim, t.stride));
	return t;
}
#define TENSOR(TYPE, LAST, ...)                                                                \
	tensor_new(TYPE, LAST, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)),              \
		(const int[]){__VA_ARGS__})

static inline void tensor_free(struct tensor *t)
{
	DNN(cudnnDestroyTensorDescriptor(t->descriptor));
	free(t->host);
	device_free(t->device);
}

static inline size_t offset(const struct tensor *t, const int *index)
{
	size_t at = 0;

	for (int d = 0; d < t->count; d++)
		at += (size_t)index[d] * (size_t)t->stride[d];
	return at;
}

/* Its value on the host, and setting it there. */
static inline double get(const struct tensor *t, const int *index)
{
	return get_at(t->host, t->type, offset(t, index));
}
static inline void put(struct tensor *t, const int *index, double value)
{
	put_at(t->host, t->type, offset(t, index), value);
}
#define GET(T, ...) get(T, (const int[]){__VA_ARGS__})
#define PUT(T, VALUE, ...) put(T, (const int[]){__VA_ARGS__}, VALUE)

/* The next index in the order of the dimensions; false after the last. Begin with zeroes. */
static inline bool next(const struct tensor *t, int *index)
{
	for (int d = t->count - 1; d >= 0; d--) {
		if (++index[d] < t->dim[d])
			return true;
		index[d] = 0;
	}
	return false;
}

static inline void to_there(const struct tensor *t)
{
	to_device(t->device, t->host, t->bytes);
}

/* Every number of a run of memory on the device must be near what `want` holds. */
static inline void compare(const void *device, const void *want, int type, size_t elements,
	double tolerance, const char *what)
{
	size_t bytes = elements * size_of(type);
	void *got = malloc(bytes);

	from_device(got, device, bytes);
	for (size_t i = 0; i < elements; i++) {
		double a = get_at(got, type, i), b = get_at(want, type, i);

		if (!(fabs(a - b) <= tolerance * (1 + fabs(b))))
			DIE("%s: element %zu is %g, not %g", what, i, a, b);
	}
	free(got);
}

/* What the device has now must be what `host` holds. */
static inline void tensor_check(const struct tensor *t, const char *what)
{
	compare(t->device, t->host, t->type, t->elements, tolerance_of(t->type), what);
}

#endif
