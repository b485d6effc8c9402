/* SPDX-License-Identifier: Apache-2.0
 *
 * What slides a window over a tensor: convolution and pooling descriptors, and the shapes that
 * come out.
 */
#include <string.h>

#include "shim/libraries/cudnn/forms.h"
#include "shim/generated/cudnn_hand.h"
#include "shim/libraries/cudnn/cudnn.h"

#define SPACE_MAX (CUDNN_DIM_MAX - 2)

static cudnnStatus_t bad(const char *text)
{
	return cudnn_fault(CUDNN_STATUS_BAD_PARAM, text);
}

/* --- convolution: mode, compute type, math type, groups, reorder, n, pads, strides, dilations
 */

static struct cudnn_descriptor *convolution_of(const void *descriptor)
{
	return cudnn_descriptor_of(descriptor, CUDNN_KIND_CONVOLUTION);
}

cudnnStatus_t hand_cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t convDesc,
	int arrayLength, const int padA[], const int filterStrideA[], const int dilationA[],
	cudnnConvolutionMode_t mode, cudnnDataType_t computeType)
{
	struct cudnn_descriptor *d = convolution_of(convDesc);
	uint32_t n = (uint32_t)arrayLength;

	if (!d || !padA || !filterStrideA || !dilationA || arrayLength < 0 || mode < 0 ||
		mode > CUDNN_CROSS_CORRELATION)
		return bad("no convolution descriptor, or an unknown mode");
	if (arrayLength < 1 || arrayLength > SPACE_MAX)
		return cudnn_fault(
			CUDNN_STATUS_NOT_SUPPORTED, "a convolution in 1 to 6 dimensions");
	for (int i = 0; i < arrayLength; i++)
		if (padA[i] < 0 || filterStrideA[i] <= 0 || dilationA[i] <= 0)
			return bad("a pad below 0, or a stride or dilation below 1");
	if (!d->word[CONVOLUTION_GROUPS]) /* what has setters of its own stays */
		d->word[CONVOLUTION_GROUPS] = 1;
	d->word[CONVOLUTION_MODE] = (uint32_t)mode;
	d->word[CONVOLUTION_COMPUTE] = (uint32_t)computeType;
	d->word[CONVOLUTION_COUNT] = n;
	memcpy(d->word + CONVOLUTION_ARRAYS, padA, n * 4);
	memcpy(d->word + CONVOLUTION_ARRAYS + n, filterStrideA, n * 4);
	memcpy(d->word + CONVOLUTION_ARRAYS + 2 * n, dilationA, n * 4);
	d->words = (uint16_t)(CONVOLUTION_ARRAYS + 3 * n);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convDesc,
	int pad_h, int pad_w, int u, int v, int dilation_h, int dilation_w,
	cudnnConvolutionMode_t mode, cudnnDataType_t computeType)
{
	const int pads[] = {pad_h, pad_w};
	const int strides[] = {u, v};
	const int dilations[] = {dilation_h, dilation_w};

	return hand_cudnnSetConvolutionNdDescriptor(
		convDesc, 2, pads, strides, dilations, mode, computeType);
}

cudnnStatus_t hand_cudnnGetConvolutionNdDescriptor(const cudnnConvolutionDescriptor_t convDesc,
	int arrayLengthRequested, int *arrayLength, int padA[], int strideA[], int dilationA[],
	cudnnConvolutionMode_t *mode, cudnnDataType_t *computeType)
{
	const struct cudnn_descriptor *d = convolution_of(convDesc);
	int *const to[] = {padA, strideA, dilationA};
	uint32_t n;

	if (!d || !d->words || arrayLengthRequested < 0)
		return bad("no convolution descriptor that was set");
	n = d->word[CONVOLUTION_COUNT];
	if (arrayLength)
		*arrayLength = (int)n;
	if (mode)
		*mode = (int)d->word[CONVOLUTION_MODE];
	if (computeType)
		*computeType = (int)d->word[CONVOLUTION_COMPUTE];
	for (uint32_t a = 0; a < 3; a++)
		for (uint32_t i = 0; to[a] && i < n && i < (uint32_t)arrayLengthRequested; i++)
			to[a][i] = (int)d->word[CONVOLUTION_ARRAYS + a * n + i];
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnGetConvolution2dDescriptor(const cudnnConvolutionDescriptor_t convDesc,
	int *pad_h, int *pad_w, int *u, int *v, int *dilation_h, int *dilation_w,
	cudnnConvolutionMode_t *mode, cudnnDataType_t *computeType)
{
	const struct cudnn_descriptor *d = convolution_of(convDesc);
	int *const to[] = {pad_h, pad_w, u, v, dilation_h, dilation_w};

	if (!d || !d->words || d->word[CONVOLUTION_COUNT] != 2)
		return bad("no convolution descriptor in two dimensions");
	for (int i = 0; i < 6; i++)
		if (to[i])
			*to[i] = (int)d->word[CONVOLUTION_ARRAYS + i];
	return hand_cudnnGetConvolutionNdDescriptor(
		convDesc, 0, NULL, NULL, NULL, NULL, mode, computeType);
}

cudnnStatus_t cudnn_convolution_set(const void *descriptor, unsigned at, int value, int least)
{
	struct cudnn_descriptor *d = convolution_of(descriptor);

	if (!d || value < least)
		return bad("no convolution descriptor, or a value out of range");
	d->word[at] = (uint32_t)value;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnn_convolution_get(const void *descriptor, unsigned at, int *value)
{
	const struct cudnn_descriptor *d = convolution_of(descriptor);

	if (!d || !value)
		return bad("no convolution descriptor, or nowhere to put the value");
	*value = (int)d->word[at];
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnGetConvolutionNdForwardOutputDim(
	const cudnnConvolutionDescriptor_t convDesc,
	const cudnnTensorDescriptor_t inputTensorDesc, const cudnnFilterDescriptor_t filterDesc,
	int nbDims, int tensorOuputDimA[])
{
	const struct cudnn_descriptor *d = convolution_of(convDesc);
	const struct cudnn_descriptor *x = cudnn_set_of(inputTensorDesc, CUDNN_KIND_TENSOR);
	const struct cudnn_descriptor *w = cudnn_set_of(filterDesc, CUDNN_KIND_FILTER);
	uint32_t n;

	if (!d || !d->words || !x || !w || !tensorOuputDimA)
		return bad("a descriptor that was never set");
	n = d->word[CONVOLUTION_COUNT];
	if (x->word[2] != n + 2 || w->word[2] != n + 2 || nbDims != (int)n + 2 ||
		(uint64_t)w->word[4] * d->word[CONVOLUTION_GROUPS] != x->word[4])
		return bad("shapes that do not go together");
	tensorOuputDimA[0] = (int)x->word[3];
	tensorOuputDimA[1] = (int)w->word[3];
	for (uint32_t i = 0; i < n; i++) {
		int64_t pad = d->word[CONVOLUTION_ARRAYS + i],
			stride = d->word[CONVOLUTION_ARRAYS + n + i];
		int64_t dilation = d->word[CONVOLUTION_ARRAYS + 2 * n + i];
		int64_t window = ((int64_t)w->word[5 + i] - 1) * dilation + 1;
		int64_t room = (int64_t)x->word[5 + i] + 2 * pad - window;

		if (room < 0)
			return bad("a window larger than what it slides over");
		tensorOuputDimA[2 + i] = (int)(room / stride + 1);
	}
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnGetConvolution2dForwardOutputDim(
	const cudnnConvolutionDescriptor_t convDesc,
	const cudnnTensorDescriptor_t inputTensorDesc, const cudnnFilterDescriptor_t filterDesc,
	int *n, int *c, int *h, int *w)
{
	int dims[4];
	cudnnStatus_t status = hand_cudnnGetConvolutionNdForwardOutputDim(
		convDesc, inputTensorDesc, filterDesc, 4, dims);

	if (!status && (!n || !c || !h || !w))
		status = bad("nowhere to put the sizes");
	if (status)
		return status;
	*n = dims[0];
	*c = dims[1];
	*h = dims[2];
	*w = dims[3];
	return CUDNN_STATUS_SUCCESS;
}

/* --- pooling: mode, NaN, n, windows, pads, strides ---------------------------------------- */

cudnnStatus_t hand_cudnnSetPoolingNdDescriptor(cudnnPoolingDescriptor_t poolingDesc,
	const cudnnPoolingMode_t mode, const cudnnNanPropagation_t maxpoolingNanOpt, int nbDims,
	const int windowDimA[], const int paddingA[], const int strideA[])
{
	struct cudnn_descriptor *d = cudnn_descriptor_of(poolingDesc, CUDNN_KIND_POOLING);
	uint32_t n = (uint32_t)nbDims;

	if (!d || !windowDimA || !paddingA || !strideA || mode < 0 ||
		mode > CUDNN_POOLING_MAX_DETERMINISTIC || nbDims < 1 || nbDims > SPACE_MAX)
		return bad("no pooling descriptor, an unknown mode, or too many dimensions");
	for (int i = 0; i < nbDims; i++)
		if (windowDimA[i] <= 0 || paddingA[i] < 0 || strideA[i] <= 0)
			return bad("a window or stride below 1, or a pad below 0");
	d->word[0] = (uint32_t)mode;
	d->word[1] = (uint32_t)maxpoolingNanOpt;
	d->word[2] = n;
	memcpy(d->word + 3, windowDimA, n * 4);
	memcpy(d->word + 3 + n, paddingA, n * 4);
	memcpy(d->word + 3 + 2 * n, strideA, n * 4);
	d->words = (uint16_t)(3 + 3 * n);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t poolingDesc,
	cudnnPoolingMode_t mode, cudnnNanPropagation_t maxpoolingNanOpt, int windowHeight,
	int windowWidth, int verticalPadding, int horizontalPadding, int verticalStride,
	int horizontalStride)
{
	const int window[] = {windowHeight, windowWidth};
	const int pads[] = {verticalPadding, horizontalPadding};
	const int strides[] = {verticalStride, horizontalStride};

	return hand_cudnnSetPoolingNdDescriptor(
		poolingDesc, mode, maxpoolingNanOpt, 2, window, pads, strides);
}

cudnnStatus_t hand_cudnnGetPoolingNdDescriptor(const cudnnPoolingDescriptor_t poolingDesc,
	int nbDimsRequested, cudnnPoolingMode_t *mode, cudnnNanPropagation_t *maxpoolingNanOpt,
	int *nbDims, int windowDimA[], int paddingA[], int strideA[])
{
	const struct cudnn_descriptor *d = cudnn_set_of(poolingDesc, CUDNN_KIND_POOLING);
	int *const to[] = {windowDimA, paddingA, strideA};
	uint32_t n;

	if (!d || nbDimsRequested < 0)
		return bad("no pooling descriptor that was set");
	n = d->word[2];
	if (mode)
		*mode = (int)d->word[0];
	if (maxpoolingNanOpt)
		*maxpoolingNanOpt = (int)d->word[1];
	if (nbDims)
		*nbDims = (int)n;
	for (uint32_t a = 0; a < 3; a++)
		for (uint32_t i = 0; to[a] && i < n && i < (uint32_t)nbDimsRequested; i++)
			to[a][i] = (int)d->word[3 + a * n + i];
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnGetPooling2dDescriptor(const cudnnPoolingDescriptor_t poolingDesc,
	cudnnPoolingMode_t *mode, cudnnNanPropagation_t *maxpoolingNanOpt, int *windowHeight,
	int *windowWidth, int *verticalPadding, int *horizontalPadding, int *verticalStride,
	int *horizontalStride)
{
	const struct cudnn_descriptor *d = cudnn_set_of(poolingDesc, CUDNN_KIND_POOLING);
	int *const to[] = {windowHeight, windowWidth, verticalPadding, horizontalPadding,
		verticalStride, horizontalStride};

	if (!d || d->word[2] != 2)
		return bad("no pooling descriptor in two dimensions");
	for (int i = 0; i < 6; i++)
		if (to[i])
			*to[i] = (int)d->word[3 + i];
	return hand_cudnnGetPoolingNdDescriptor(
		poolingDesc, 0, mode, maxpoolingNanOpt, NULL, NULL, NULL, NULL);
}

cudnnStatus_t hand_cudnnGetPoolingNdForwardOutputDim(const cudnnPoolingDescriptor_t poolingDesc,
	const cudnnTensorDescriptor_t inputTensorDesc, int nbDims, int outputTensorDimA[])
{
	const struct cudnn_descriptor *d = cudnn_set_of(poolingDesc, CUDNN_KIND_POOLING);
	const struct cudnn_descriptor *x = cudnn_set_of(inputTensorDesc, CUDNN_KIND_TENSOR);
	uint32_t n;

	if (!d || !x || !outputTensorDimA)
		return bad("a descriptor that was never set");
	n = d->word[2];
	if (x->word[2] != n + 2 || nbDims != (int)n + 2)
		return bad("shapes that do not go together");
	outputTensorDimA[0] = (int)x->word[3];
	outputTensorDimA[1] = (int)x->word[4];
	for (uint32_t i = 0; i < n; i++) {
		int64_t window = d->word[3 + i], pad = d->word[3 + n + i];
		int64_t room = (int64_t)x->word[5 + i] + 2 * pad - window;

		if (room < 0)
			return bad("a window larger than what it slides over");
		outputTensorDimA[2 + i] = (int)(room / d->word[3 + 2 * n + i] + 1);
	}
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnGetPooling2dForwardOutputDim(const cudnnPoolingDescriptor_t poolingDesc,
	const cudnnTensorDescriptor_t inputTensorDesc, int *n, int *c, int *h, int *w)
{
	int dims[4];
	cudnnStatus_t status =
		hand_cudnnGetPoolingNdForwardOutputDim(poolingDesc, inputTensorDesc, 4, dims);

	if (!status && (!n || !c || !h || !w))
		status = bad("nowhere to put the sizes");
	if (status)
		return status;
	*n = dims[0];
	*c = dims[1];
	*h = dims[2];
	*w = dims[3];
	return CUDNN_STATUS_SUCCESS;
}
