/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor, filter and activation descriptors.
 */
#include <string.h>

#include "softgpu/dnn/dnn.h"

/* More elements than any device has; keeps sums of products in 64 bits. */
#define DNN_MOST ((int64_t)1 << 44)

bool dnn_tensor_right(const struct dnn_tensor *t)
{
	int64_t last = 0, elements = 1;

	if (t->count < 1 || t->count > DNN_DIMS || !dnn_size(t->type))
		return false;
	for (int d = 0; d < t->count; d++) {
		if (t->dim[d] < 1 || t->dim[d] > DNN_MOST || t->stride[d] < 0 ||
			t->stride[d] > DNN_MOST)
			return false;
		if (__builtin_mul_overflow(elements, t->dim[d], &elements) ||
			elements > DNN_MOST)
			return false;
		if (t->dim[d] > 1 && t->stride[d] > DNN_MOST / t->dim[d])
			return false;
		last += (t->dim[d] - 1) * t->stride[d];
	}
	return last < DNN_MOST;
}

struct dnn_tensor dnn_filter_tensor(const struct dnn_filter *filter)
{
	struct dnn_tensor t = {.type = filter->type, .count = filter->count};

	for (int d = 0; d < t.count; d++)
		t.dim[d] = filter->dim[d];
	dnn_packed(&t, filter->format == CUDNN_TENSOR_NHWC);
	return t;
}

/* ---- tensors ---- */

DNN_CALL(cudnnCreateTensorDescriptor, struct dnn_tensor **tensor)
{
	if (!tensor)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*tensor = calloc(1, sizeof(**tensor));
	return *tensor ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;
}

DNN_CALL(cudnnDestroyTensorDescriptor, struct dnn_tensor *tensor)
{
	free(tensor);
	return CUDNN_STATUS_SUCCESS;
}

static int tensor_set(struct dnn_tensor *tensor, int type, int count, const int *dim,
	const int *stride, bool channels_last)
{
	struct dnn_tensor t = {.type = type, .count = count};

	if (!tensor || !dim)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (count < 1 || count > DNN_DIMS)
		return CUDNN_STATUS_NOT_SUPPORTED;
	if (!dnn_size(type))
		return CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE;
	for (int d = 0; d < count; d++) {
		t.dim[d] = dim[d];
		t.stride[d] = stride ? stride[d] : 0;
	}
	if (!dnn_tensor_right(&t))
		return CUDNN_STATUS_BAD_PARAM;
	if (!stride)
		dnn_packed(&t, channels_last);
	*tensor = t;
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnSetTensor4dDescriptor, struct dnn_tensor *tensor, int format, int type, int n,
	int c, int h, int w)
{
	if (format != CUDNN_TENSOR_NCHW && format != CUDNN_TENSOR_NHWC)
		return CUDNN_STATUS_NOT_SUPPORTED;
	return tensor_set(
		tensor, type, 4, (int[]){n, c, h, w}, NULL, format == CUDNN_TENSOR_NHWC);
}

DNN_CALL(cudnnSetTensor4dDescriptorEx, struct dnn_tensor *tensor, int type, int n, int c, int h,
	int w, int n_stride, int c_stride, int h_stride, int w_stride)
{
	return tensor_set(tensor, type, 4, (int[]){n, c, h, w},
		(int[]){n_stride, c_stride, h_stride, w_stride}, false);
}

DNN_CALL(cudnnSetTensorNdDescriptor, struct dnn_tensor *tensor, int type, int count,
	const int *dim, const int *stride)
{
	if (!stride)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	return tensor_set(tensor, type, count, dim, stride, false);
}

DNN_CALL(cudnnSetTensorNdDescriptorEx, struct dnn_tensor *tensor, int format, int type,
	int count, const int *dim)
{
	if (format != CUDNN_TENSOR_NCHW && format != CUDNN_TENSOR_NHWC)
		return CUDNN_STATUS_NOT_SUPPORTED;
	return tensor_set(tensor, type, count, dim, NULL, format == CUDNN_TENSOR_NHWC);
}

DNN_CALL(cudnnGetTensorNdDescriptor, const struct dnn_tensor *tensor, int most, int *type,
	int *count, int *dim, int *stride)
{
	if (!tensor || !type || !count)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*type = tensor->type;
	*count = tensor->count;
	for (int d = 0; d < most && d < tensor->count; d++) {
		if (dim)
			dim[d] = (int)tensor->dim[d];
		if (stride)
			stride[d] = (int)tensor->stride[d];
	}
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnGetTensor4dDescriptor, const struct dnn_tensor *tensor, int *type, int *n, int *c,
	int *h, int *w, int *n_stride, int *c_stride, int *h_stride, int *w_stride)
{
	int *const dims[] = {n, c, h, w};
	int *const strides[] = {n_stride, c_stride, h_stride, w_stride};

	if (!tensor || !type || !n || !c || !h || !w || !n_stride || !c_stride || !h_stride ||
		!w_stride)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (tensor->count != 4)
		return CUDNN_STATUS_BAD_PARAM;
	*type = tensor->type;
	for (int d = 0; d < 4; d++) {
		*dims[d] = (int)tensor->dim[d];
		*strides[d] = (int)tensor->stride[d];
	}
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnGetTensorSizeInBytes, const struct dnn_tensor *tensor, size_t *size)
{
	if (!tensor || !size)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*size = tensor->count ? dnn_bytes(tensor) : 0;
	return CUDNN_STATUS_SUCCESS;
}

/* ---- filters ---- */

DNN_CALL(cudnnCreateFilterDescriptor, struct dnn_filter **filter)
{
	if (!filter)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*filter = calloc(1, sizeof(**filter));
	return *filter ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;
}

DNN_CALL(cudnnDestroyFilterDescriptor, struct dnn_filter *filter)
{
	free(filter);
	return CUDNN_STATUS_SUCCESS;
}

static int filter_set(
	struct dnn_filter *filter, int type, int format, int count, const int *dim)
{
	struct dnn_filter f = {.type = type, .format = format, .count = count};
	struct dnn_tensor t;

	if (!filter || !dim)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (count < 3 || count > DNN_DIMS ||
		(format != CUDNN_TENSOR_NCHW && format != CUDNN_TENSOR_NHWC))
		return CUDNN_STATUS_NOT_SUPPORTED;
	memcpy(f.dim, dim, sizeof(*dim) * (size_t)count);
	t = (struct dnn_tensor){.type = type, .count = count};
	for (int d = 0; d < count; d++)
		t.dim[d] = dim[d];
	if (!dnn_tensor_right(&t))
		return CUDNN_STATUS_BAD_PARAM;
	*filter = f;
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnSetFilter4dDescriptor, struct dnn_filter *filter, int type, int format, int k,
	int c, int h, int w)
{
	return filter_set(filter, type, format, 4, (int[]){k, c, h, w});
}

DNN_CALL(cudnnSetFilterNdDescriptor, struct dnn_filter *filter, int type, int format, int count,
	const int *dim)
{
	return filter_set(filter, type, format, count, dim);
}

DNN_CALL(cudnnGetFilterNdDescriptor, const struct dnn_filter *filter, int most, int *type,
	int *format, int *count, int *dim)
{
	if (!filter || !type || !format || !count || !dim)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*type = filter->type;
	*format = filter->format;
	*count = filter->count;
	for (int d = 0; d < most && d < filter->count; d++)
		dim[d] = filter->dim[d];
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnGetFilter4dDescriptor, const struct dnn_filter *filter, int *type, int *format,
	int *k, int *c, int *h, int *w)
{
	if (!filter || !type || !format || !k || !c || !h || !w)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (filter->count != 4)
		return CUDNN_STATUS_BAD_PARAM;
	*type = filter->type;
	*format = filter->format;
	*k = filter->dim[0];
	*c = filter->dim[1];
	*h = filter->dim[2];
	*w = filter->dim[3];
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnGetFilterSizeInBytes, const struct dnn_filter *filter, size_t *size)
{
	struct dnn_tensor t;

	if (!filter || !size)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	t = dnn_filter_tensor(filter);
	*size = t.count ? dnn_bytes(&t) : 0;
	return CUDNN_STATUS_SUCCESS;
}

/* ---- activations ---- */

DNN_CALL(cudnnCreateActivationDescriptor, struct dnn_activation **activation)
{
	if (!activation)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*activation = calloc(1, sizeof(**activation));
	if (!*activation)
		return CUDNN_STATUS_ALLOC_FAILED;
	(*activation)->swish_beta = 1;
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnDestroyActivationDescriptor, struct dnn_activation *activation)
{
	free(activation);
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnSetActivationDescriptor, struct dnn_activation *activation, int mode, int nan,
	double coef)
{
	if (!activation)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (mode < 0 || mode > CUDNN_ACTIVATION_SWISH || nan < 0 || nan > 1)
		return CUDNN_STATUS_BAD_PARAM;
	activation->mode = mode;
	activation->nan = nan;
	activation->coef = coef;
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnGetActivationDescriptor, const struct dnn_activation *activation, int *mode,
	int *nan, double *coef)
{
	if (!activation || !mode || !nan || !coef)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*mode = activation->mode;
	*nan = activation->nan;
	*coef = activation->coef;
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnSetActivationDescriptorSwishBeta, struct dnn_activation *activation, double beta)
{
	if (!activation)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	activation->swish_beta = beta;
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnGetActivationDescriptorSwishBeta, const struct dnn_activation *activation,
	double *beta)
{
	if (!activation || !beta)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*beta = activation->swish_beta;
	return CUDNN_STATUS_SUCCESS;
}
