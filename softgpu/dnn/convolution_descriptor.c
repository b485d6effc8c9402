/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution descriptors.
 */
#include "softgpu/dnn/dnn.h"

DNN_CALL(cudnnCreateConvolutionDescriptor, struct dnn_convolution **convolution)
{
	if (!convolution)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*convolution = calloc(1, sizeof(**convolution));
	if (!*convolution)
		return CUDNN_STATUS_ALLOC_FAILED;
	(*convolution)->groups = 1;
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnDestroyConvolutionDescriptor, struct dnn_convolution *convolution)
{
	free(convolution);
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnSetConvolutionNdDescriptor, struct dnn_convolution *convolution, int count,
	const int *pad, const int *stride, const int *dilation, int mode, int type)
{
	struct dnn_window window = {.count = count};

	if (!convolution || !pad || !stride || !dilation)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (mode < 0 || mode > CUDNN_CROSS_CORRELATION || count < 1)
		return CUDNN_STATUS_BAD_PARAM;
	if (count > DNN_SPATIAL)
		return CUDNN_STATUS_NOT_SUPPORTED;
	for (int d = 0; d < count; d++) {
		if (pad[d] < 0 || stride[d] < 1 || dilation[d] < 1)
			return CUDNN_STATUS_BAD_PARAM;
		window.pre[d] = window.post[d] = pad[d];
		window.stride[d] = stride[d];
		window.dilation[d] = dilation[d];
	}
	convolution->window = window;
	convolution->mode = mode;
	convolution->type = type;
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnSetConvolution2dDescriptor, struct dnn_convolution *convolution, int pad_h,
	int pad_w, int stride_h, int stride_w, int dilation_h, int dilation_w, int mode,
	int type)
{
	return cudnnSetConvolutionNdDescriptor(convolution, 2, (int[]){pad_h, pad_w},
		(int[]){stride_h, stride_w}, (int[]){dilation_h, dilation_w}, mode, type);
}

DNN_CALL(cudnnGetConvolutionNdDescriptor, const struct dnn_convolution *convolution, int most,
	int *count, int *pad, int *stride, int *dilation, int *mode, int *type)
{
	if (!convolution || !count || !pad || !stride || !dilation || !mode || !type)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*count = convolution->window.count;
	for (int d = 0; d < most && d < *count; d++) {
		pad[d] = (int)convolution->window.pre[d];
		stride[d] = (int)convolution->window.stride[d];
		dilation[d] = (int)convolution->window.dilation[d];
	}
	*mode = convolution->mode;
	*type = convolution->type;
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnSetConvolutionMathType, struct dnn_convolution *convolution, int math)
{
	if (!convolution)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (math < 0 || math >= CUDNN_MATH_COUNT)
		return CUDNN_STATUS_BAD_PARAM;
	convolution->math = math;
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnGetConvolutionMathType, const struct dnn_convolution *convolution, int *math)
{
	if (!convolution || !math)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*math = convolution->math;
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnSetConvolutionGroupCount, struct dnn_convolution *convolution, int groups)
{
	if (!convolution)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (groups < 1)
		return CUDNN_STATUS_BAD_PARAM;
	convolution->groups = groups;
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnGetConvolutionGroupCount, const struct dnn_convolution *convolution, int *groups)
{
	if (!convolution || !groups)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*groups = (int)convolution->groups;
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnSetConvolutionReorderType, struct dnn_convolution *convolution, int reorder)
{
	if (!convolution)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	convolution->reorder = reorder;
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(
	cudnnGetConvolutionReorderType, const struct dnn_convolution *convolution, int *reorder)
{
	if (!convolution || !reorder)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*reorder = convolution->reorder;
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnGetConvolutionNdForwardOutputDim, const struct dnn_convolution *convolution,
	const struct dnn_tensor *x, const struct dnn_filter *w, int count, int *dim)
{
	if (!convolution || !x || !w || !dim)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!dnn_tensor_right(x) || x->count != convolution->window.count + 2 ||
		count != x->count || w->count != x->count ||
		x->dim[1] != w->dim[1] * convolution->groups)
		return CUDNN_STATUS_BAD_PARAM;
	dim[0] = (int)x->dim[0];
	dim[1] = w->dim[0];
	for (int d = 2; d < count; d++) {
		dim[d] = (int)dnn_window_out(&convolution->window, d - 2, x->dim[d], w->dim[d]);
		if (dim[d] < 1)
			return CUDNN_STATUS_BAD_PARAM;
	}
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnGetConvolution2dForwardOutputDim, const struct dnn_convolution *convolution,
	const struct dnn_tensor *x, const struct dnn_filter *w, int *n, int *c, int *h,
	int *wide)
{
	int dim[4];
	int status = cudnnGetConvolutionNdForwardOutputDim(convolution, x, w, 4, dim);

	if (status)
		return status;
	if (!n || !c || !h || !wide)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*n = dim[0];
	*c = dim[1];
	*h = dim[2];
	*wide = dim[3];
	return CUDNN_STATUS_SUCCESS;
}
