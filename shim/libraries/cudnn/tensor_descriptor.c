/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor, filter and transform descriptors: shapes and strides, all of it local.
 */
#include <string.h>

#include "shim/libraries/cudnn/forms.h"
#include "shim/generated/cudnn_hand.h"
#include "shim/libraries/cudnn/cudnn.h"

#define TYPE_LAST CUDNN_DATA_FP8_E5M3

static cudnnStatus_t bad(const char *text)
{
	return cudnn_fault(CUDNN_STATUS_BAD_PARAM, text);
}

/* A tensor's words: type, format or CUDNN_BY_STRIDES, n, dims, strides. */
cudnnStatus_t cudnn_tensor_set(cudnnTensorDescriptor_t tensor, cudnnDataType_t type,
	uint32_t format, int n, const int *dims, const int *strides)
{
	struct cudnn_descriptor *d = cudnn_descriptor_of(tensor, CUDNN_KIND_TENSOR);

	if (!d || !dims || !strides)
		return bad("no tensor descriptor, or no sizes");
	if (type < 0 || type > TYPE_LAST)
		return bad("an unknown data type");
	if (n < 1 || n > CUDNN_DIM_MAX)
		return cudnn_fault(CUDNN_STATUS_NOT_SUPPORTED, "a tensor of 1 to 8 dimensions");
	for (int i = 0; i < n; i++)
		if (dims[i] <= 0)
			return bad("a tensor's sizes are 1 or more");
	d->word[0] = (uint32_t)type;
	d->word[1] = format;
	d->word[2] = (uint32_t)n;
	memcpy(d->word + 3, dims, (size_t)n * 4);
	memcpy(d->word + 3 + n, strides, (size_t)n * 4);
	d->words = (uint16_t)(3 + 2 * n);
	return CUDNN_STATUS_SUCCESS;
}

/* Strides of a packed tensor: dims are given as n, c, then space. */
static cudnnStatus_t packed(cudnnTensorFormat_t format, int n, const int *dims, int *strides)
{
	int64_t step = 1;
	int order[CUDNN_DIM_MAX];

	if (n < 1 || n > CUDNN_DIM_MAX)
		return cudnn_fault(CUDNN_STATUS_NOT_SUPPORTED, "a tensor of 1 to 8 dimensions");
	for (int i = 0; i < n; i++)
		order[i] = i; /* from the slowest to the fastest */
	if (format == CUDNN_TENSOR_NHWC && n > 2) {
		for (int i = 1; i < n - 1; i++)
			order[i] = i + 1;
		order[n - 1] = 1;
	}
	for (int i = n - 1; i >= 0; i--) {
		strides[order[i]] = (int)step;
		step *= dims[order[i]] > 0 ? dims[order[i]] : 1;
		if (step > INT32_MAX)
			return cudnn_fault(CUDNN_STATUS_NOT_SUPPORTED,
				"a tensor of 2^31 elements or more");
	}
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t tensorDesc,
	cudnnTensorFormat_t format, cudnnDataType_t dataType, int nbDims, const int dimA[])
{
	int strides[CUDNN_DIM_MAX] = {0};
	cudnnStatus_t status;

	if (format < 0 || format > CUDNN_TENSOR_NCHW_VECT_C || !dimA)
		return bad("an unknown format");
	status = packed(format, nbDims, dimA, strides);
	if (status)
		return status;
	return cudnn_tensor_set(tensorDesc, dataType, (uint32_t)format, nbDims, dimA, strides);
}

cudnnStatus_t hand_cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensorDesc,
	cudnnTensorFormat_t format, cudnnDataType_t dataType, int n, int c, int h, int w)
{
	const int dims[] = {n, c, h, w};

	return hand_cudnnSetTensorNdDescriptorEx(tensorDesc, format, dataType, 4, dims);
}

cudnnStatus_t hand_cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t tensorDesc,
	cudnnDataType_t dataType, int n, int c, int h, int w, int nStride, int cStride,
	int hStride, int wStride)
{
	const int dims[] = {n, c, h, w};
	const int strides[] = {nStride, cStride, hStride, wStride};

	return cudnn_tensor_set(tensorDesc, dataType, CUDNN_BY_STRIDES, 4, dims, strides);
}

cudnnStatus_t hand_cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t tensorDesc,
	int nbDimsRequested, cudnnDataType_t *dataType, int *nbDims, int dimA[], int strideA[])
{
	const struct cudnn_descriptor *d = cudnn_set_of(tensorDesc, CUDNN_KIND_TENSOR);
	uint32_t n;

	if (!d || nbDimsRequested < 0 || nbDimsRequested > CUDNN_DIM_MAX)
		return bad("no tensor descriptor that was set");
	n = d->word[2];
	if (dataType)
		*dataType = (int)d->word[0];
	if (nbDims)
		*nbDims = (int)n;
	for (uint32_t i = 0; i < n && i < (uint32_t)nbDimsRequested; i++) {
		if (dimA)
			dimA[i] = (int)d->word[3 + i];
		if (strideA)
			strideA[i] = (int)d->word[3 + n + i];
	}
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnGetTensor4dDescriptor(const cudnnTensorDescriptor_t tensorDesc,
	cudnnDataType_t *dataType, int *n, int *c, int *h, int *w, int *nStride, int *cStride,
	int *hStride, int *wStride)
{
	const struct cudnn_descriptor *d = cudnn_set_of(tensorDesc, CUDNN_KIND_TENSOR);
	int *const to[] = {n, c, h, w, nStride, cStride, hStride, wStride};

	if (!d || d->word[2] != 4)
		return bad("no tensor descriptor of four dimensions");
	if (dataType)
		*dataType = (int)d->word[0];
	for (int i = 0; i < 8; i++)
		if (to[i])
			*to[i] = (int)d->word[3 + i];
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnGetTensorSizeInBytes(
	const cudnnTensorDescriptor_t tensorDesc, size_t *size)
{
	const struct cudnn_descriptor *d = cudnn_set_of(tensorDesc, CUDNN_KIND_TENSOR);
	uint64_t last = 0;

	if (!d || !size)
		return bad("no tensor descriptor that was set");
	for (uint32_t i = 0; i < d->word[2]; i++) {
		int64_t stride = (int32_t)d->word[3 + d->word[2] + i];

		last += (uint64_t)(d->word[3 + i] - 1) *
			(uint64_t)(stride < 0 ? -stride : stride);
	}
	*size = (last + 1) * cudnn_data_bytes(d->word[0]);
	return CUDNN_STATUS_SUCCESS;
}

/* --- filters ------------------------------------------------------------------------------ */

cudnnStatus_t hand_cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filterDesc,
	cudnnDataType_t dataType, cudnnTensorFormat_t format, int nbDims,
	const int filterDimA[])
{
	struct cudnn_descriptor *d = cudnn_descriptor_of(filterDesc, CUDNN_KIND_FILTER);

	if (!d || !filterDimA || dataType < 0 || dataType > TYPE_LAST || format < 0 ||
		format > CUDNN_TENSOR_NCHW_VECT_C)
		return bad("no filter descriptor, or an unknown type or format");
	if (nbDims < 1 || nbDims > CUDNN_DIM_MAX)
		return cudnn_fault(CUDNN_STATUS_NOT_SUPPORTED, "a filter of 1 to 8 dimensions");
	for (int i = 0; i < nbDims; i++)
		if (filterDimA[i] <= 0)
			return bad("a filter's sizes are 1 or more");
	d->word[0] = (uint32_t)dataType;
	d->word[1] = (uint32_t)format;
	d->word[2] = (uint32_t)nbDims;
	memcpy(d->word + 3, filterDimA, (size_t)nbDims * 4);
	d->words = (uint16_t)(3 + nbDims);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filterDesc,
	cudnnDataType_t dataType, cudnnTensorFormat_t format, int k, int c, int h, int w)
{
	const int dims[] = {k, c, h, w};

	return hand_cudnnSetFilterNdDescriptor(filterDesc, dataType, format, 4, dims);
}

cudnnStatus_t hand_cudnnGetFilterNdDescriptor(const cudnnFilterDescriptor_t filterDesc,
	int nbDimsRequested, cudnnDataType_t *dataType, cudnnTensorFormat_t *format,
	int *nbDims, int filterDimA[])
{
	const struct cudnn_descriptor *d = cudnn_set_of(filterDesc, CUDNN_KIND_FILTER);

	if (!d || nbDimsRequested < 0)
		return bad("no filter descriptor that was set");
	if (dataType)
		*dataType = (int)d->word[0];
	if (format)
		*format = (int)d->word[1];
	if (nbDims)
		*nbDims = (int)d->word[2];
	for (uint32_t i = 0; filterDimA && i < d->word[2] && i < (uint32_t)nbDimsRequested; i++)
		filterDimA[i] = (int)d->word[3 + i];
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnGetFilter4dDescriptor(const cudnnFilterDescriptor_t filterDesc,
	cudnnDataType_t *dataType, cudnnTensorFormat_t *format, int *k, int *c, int *h, int *w)
{
	int *const to[] = {k, c, h, w};
	int dims[4], n = 0;
	cudnnStatus_t status =
		hand_cudnnGetFilterNdDescriptor(filterDesc, 4, dataType, format, &n, dims);

	if (!status && n != 4)
		status = bad("no filter descriptor of four dimensions");
	for (int i = 0; !status && i < 4; i++)
		if (to[i])
			*to[i] = dims[i];
	return status;
}

cudnnStatus_t hand_cudnnGetFilterSizeInBytes(
	const cudnnFilterDescriptor_t filterDesc, size_t *size)
{
	const struct cudnn_descriptor *d = cudnn_set_of(filterDesc, CUDNN_KIND_FILTER);

	if (!d || !size)
		return bad("no filter descriptor that was set");
	*size = cudnn_data_bytes(d->word[0]);
	for (uint32_t i = 0; i < d->word[2]; i++)
		*size *= d->word[3 + i];
	return CUDNN_STATUS_SUCCESS;
}

/* --- transforms --------------------------------------------------------------------------- */

cudnnStatus_t hand_cudnnSetTensorTransformDescriptor(
	cudnnTensorTransformDescriptor_t transformDesc, const uint32_t nbDims,
	const cudnnTensorFormat_t destFormat, const int32_t padBeforeA[],
	const int32_t padAfterA[], const uint32_t foldA[],
	const cudnnFoldingDirection_t direction)
{
	struct cudnn_descriptor *d = cudnn_descriptor_of(transformDesc, CUDNN_KIND_TRANSFORM);

	if (!d || nbDims < 1 || nbDims > CUDNN_DIM_MAX || direction < 0 ||
		direction > CUDNN_TRANSFORM_UNFOLD)
		return bad("no transform descriptor, or its sizes");
	memset(d->word, 0, sizeof(d->word));
	d->word[0] = nbDims;
	d->word[1] = (uint32_t)destFormat;
	d->word[2] = (uint32_t)direction;
	if (padBeforeA)
		memcpy(d->word + 3, padBeforeA, nbDims * 4);
	if (padAfterA)
		memcpy(d->word + 3 + nbDims, padAfterA, nbDims * 4);
	for (uint32_t i = 0; i < nbDims; i++)
		d->word[3 + 2 * nbDims + i] = foldA ? foldA[i] : 1;
	d->words = (uint16_t)(3 + 3 * nbDims);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnGetTensorTransformDescriptor(
	cudnnTensorTransformDescriptor_t transformDesc, uint32_t nbDimsRequested,
	cudnnTensorFormat_t *destFormat, int32_t padBeforeA[], int32_t padAfterA[],
	uint32_t foldA[], cudnnFoldingDirection_t *direction)
{
	const struct cudnn_descriptor *d = cudnn_set_of(transformDesc, CUDNN_KIND_TRANSFORM);
	uint32_t n;

	if (!d)
		return bad("no transform descriptor that was set");
	n = d->word[0] < nbDimsRequested ? d->word[0] : nbDimsRequested;
	if (destFormat)
		*destFormat = (int)d->word[1];
	if (direction)
		*direction = (int)d->word[2];
	if (padBeforeA)
		memcpy(padBeforeA, d->word + 3, n * 4);
	if (padAfterA)
		memcpy(padAfterA, d->word + 3 + d->word[0], n * 4);
	if (foldA)
		memcpy(foldA, d->word + 3 + 2 * d->word[0], n * 4);
	return CUDNN_STATUS_SUCCESS;
}
