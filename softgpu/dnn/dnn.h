/* SPDX-License-Identifier: Apache-2.0
 *
 * cuDNN on the software GPU: a subset, in plain loops and OpenBLAS.  A call checks its
 * descriptors and becomes a job, a host function in the handle's stream, so it is in order with
 * kernels and copies.  A job unpacks its tensors, whatever their types and strides, into arrays
 * of double in the order of their dimensions, computes there, and packs the result.
 *
 * It is a library of its own beside libvcuda-softgpu.so, and uses only what that one exports.
 * Statuses are cuDNN 9's. Calls are as thread-safe as cuDNN's: one thread a handle at a time.
 */
#ifndef VCUDA_SOFTGPU_DNN_DNN_H
#define VCUDA_SOFTGPU_DNN_DNN_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "softgpu/dnn/constants.h"

/* Begins the definition of an exported function that returns a status. */
#define DNN_CALL(NAME, ...)                                                                    \
	__attribute__((visibility("default"))) int NAME(__VA_ARGS__);                          \
	__attribute__((visibility("default"))) int NAME(__VA_ARGS__)

#define DNN_DIMS 8
#define DNN_SPATIAL 3 /* most spatial dimensions of a convolution or a pooling */

struct dnn_handle {
	CUstream stream;
	_Atomic bool failed;   /* a job met memory that is not the device's, or had none */
	_Atomic unsigned refs; /* the program's, and each job's */
};

/* A tensor descriptor. Strides in elements. */
struct dnn_tensor {
	int type;
	int count; /* dimensions; 0: not set */
	int64_t dim[DNN_DIMS], stride[DNN_DIMS];
};

struct dnn_filter {
	int type, format, count;
	int dim[DNN_DIMS];
};

struct dnn_activation {
	int mode, nan;
	double coef, swish_beta;
};

/* What every job begins with. `run` is called in stream order, in the call's context. */
struct dnn_job {
	void (*run)(struct dnn_job *job); /* as often as a graph that it was captured in runs */
	void (*drop)(struct dnn_job *job); /* before it is freed; or NULL */
	struct dnn_handle *handle;
	CUcontext context;
};

/* ---- handle.c ---- */

/* A zeroed job of SIZE bytes that begins with struct dnn_job, or NULL with *status. */
void *dnn_job_new(
	struct dnn_handle *handle, void (*run)(struct dnn_job *), size_t size, int *status);
/* Puts it into the stream, which frees it, or the graph that the stream captures. It is freed
 * where it cannot be put there, too. */
int dnn_submit(struct dnn_job *job);
/* A job that is not submitted. */
void dnn_job_drop(struct dnn_job *job);
/* Marks the handle: its calls give EXECUTION_FAILED from now on. */
void dnn_fail(struct dnn_job *job);
/* [at, at + bytes) if the device has it; else NULL, and the handle failed. */
void *dnn_reach(struct dnn_job *job, const void *at, uint64_t bytes);

/* One for a call that takes a stream instead; NULL: no memory. The caller drops it. */
struct dnn_handle *dnn_handle_of(CUstream stream);
void dnn_handle_drop(struct dnn_handle *handle);

/* ---- values.c ---- */

#define cleanup_values __attribute__((cleanup(dnn_values_free)))
static inline void dnn_values_free(double **values)
{
	free(*values);
}

uint32_t dnn_size(int type); /* bytes of an element; 0: not served */
double dnn_get(const void *at, int type, int64_t element);
/* alpha or beta of a call on tensors of that type. */
double dnn_scalar(const void *at, int type);

int64_t dnn_elements(const struct dnn_tensor *tensor);
uint64_t dnn_bytes(const struct dnn_tensor *tensor); /* from its first element to its last */
bool dnn_same_shape(const struct dnn_tensor *a, const struct dnn_tensor *b);
/* Whether each dimension of `small` is that of `large`, or 1. */
bool dnn_fits(const struct dnn_tensor *small, const struct dnn_tensor *large);
/* Strides of a packed tensor, its dimensions and type being set. */
void dnn_packed(struct dnn_tensor *tensor, bool channels_last);

double *dnn_values_new(struct dnn_job *job, int64_t elements); /* zeroes */
/* The tensor's values; as those of the larger `shape` with `load_as`. NULL: the handle failed.
 */
double *dnn_load(struct dnn_job *job, const struct dnn_tensor *tensor, const void *at);
double *dnn_load_as(struct dnn_job *job, const struct dnn_tensor *tensor,
	const struct dnn_tensor *shape, const void *at);
/* at = alpha * values + beta * at; what is there is not read where beta is 0. */
void dnn_store(struct dnn_job *job, const struct dnn_tensor *tensor, void *at,
	const double *values, double alpha, double beta);

/* ---- tensor_descriptor.c ---- */

/* Whether it has dimensions, strides and a type that are served. */
bool dnn_tensor_right(const struct dnn_tensor *tensor);
struct dnn_tensor dnn_filter_tensor(const struct dnn_filter *filter);

/* ---- activation.c ---- */

double dnn_activate(const struct dnn_activation *activation, double x);

/* ---- dropout.c ---- */

/* A dropout descriptor. */
struct dnn_dropout {
	float rate;
	void *states;
	size_t bytes;
	unsigned long long seed;
};

/* 0 for none. */
double dnn_dropout_rate(const struct dnn_dropout *dropout);
/* Draws which of N values stay; false: the handle failed. */
bool dnn_dropout_draw(
	struct dnn_job *job, const struct dnn_dropout *dropout, uint8_t *kept, int64_t n);
/* Drops them, and makes up for it in the others. */
void dnn_dropout_apply(
	const struct dnn_dropout *dropout, const uint8_t *kept, double *values, int64_t n);

/* ---- convolve.c ---- */

struct dnn_window {
	int count; /* spatial dimensions */
	int64_t pre[DNN_SPATIAL], post[DNN_SPATIAL], stride[DNN_SPATIAL], dilation[DNN_SPATIAL];
};

/* A convolution in numbers; missing spatial dimensions are 1. */
struct dnn_shape {
	int64_t n, c, k, groups; /* c and k: of all groups */
	int64_t in[DNN_SPATIAL], kernel[DNN_SPATIAL], out[DNN_SPATIAL];
	struct dnn_window window;
	bool flip; /* a convolution in the mathematician's sense */
};

/* A convolution descriptor. */
struct dnn_convolution {
	struct dnn_window window;
	int64_t groups;
	int mode, type, math, reorder;
};

/* What the three tensors say, checked; a status. */
int dnn_shape_of(struct dnn_shape *shape, const struct dnn_window *window, int64_t groups,
	bool flip, const struct dnn_tensor *x, const struct dnn_tensor *w,
	const struct dnn_tensor *y);
/* Size of the output along dimension D; 0 or less: none. */
int64_t dnn_window_out(const struct dnn_window *window, int d, int64_t in, int64_t kernel);
uint64_t dnn_convolve_workspace(const struct dnn_shape *shape); /* bytes */
/* All values packed; the third array is written; `column` has dnn_convolve_workspace bytes. */
void dnn_convolve(const struct dnn_shape *shape, const double *x, const double *w, double *y,
	double *column);
void dnn_convolve_data(const struct dnn_shape *shape, const double *w, const double *dy,
	double *dx, double *column);
void dnn_convolve_filter(const struct dnn_shape *shape, const double *x, const double *dy,
	double *dw, double *column);

/* ---- reduce.c ---- */

/* y (a shape that fits x) = x reduced over the dimensions that y has as 1. */
void dnn_reduce(int op, const struct dnn_tensor *x, const double *from,
	const struct dnn_tensor *y, double *to);
bool dnn_reduce_served(int op);

#endif
