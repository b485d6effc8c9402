/* SPDX-License-Identifier: Apache-2.0
 *
 * What the stubs of shim/generated/ may name: functions that many of cuDNN's functions are a
 * form of, as their as() in cudnn.api says.
 */
#ifndef VCUDA_SHIM_CUDNN_FORMS_H
#define VCUDA_SHIM_CUDNN_FORMS_H

#include "protocol/generated/cudnn_ops.h"
#include "protocol/libraries/cudnn_body.h"
#include "shim/generated/cudnn_hand.h"
#include "shim/libraries/cudnn/cudnn.h"

/* The parts of this library are one: of each the version is right. */
static inline cudnnStatus_t cudnn_versions_agree(void)
{
	return CUDNN_STATUS_SUCCESS;
}

/* A tensor's words: type, format or CUDNN_BY_STRIDES, n, dims, strides. */
cudnnStatus_t cudnn_tensor_set(cudnnTensorDescriptor_t tensor, cudnnDataType_t type,
	uint32_t format, int n, const int *dims, const int *strides);

/* A convolution's words. */
enum cudnn_convolution_word {
	CONVOLUTION_MODE,
	CONVOLUTION_COMPUTE,
	CONVOLUTION_MATH,
	CONVOLUTION_GROUPS,
	CONVOLUTION_REORDER,
	CONVOLUTION_COUNT,
	CONVOLUTION_ARRAYS, /* pads, strides, dilations */
};
cudnnStatus_t cudnn_convolution_set(const void *descriptor, unsigned at, int value, int least);
cudnnStatus_t cudnn_convolution_get(const void *descriptor, unsigned at, int *value);

/* Where in struct cudnn_rnn_words. */
cudnnStatus_t cudnn_rnn_set(cudnnRNNDescriptor_t rnn, size_t at, uint32_t value);
cudnnStatus_t cudnn_rnn_get(cudnnRNNDescriptor_t rnn, size_t at, void *value);
/* How many algorithms a search tries. */
cudnnStatus_t cudnn_rnn_algorithms(
	cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, int *count);
/* Where one layer's matrix or bias lies in the weights. */
cudnnStatus_t cudnn_rnn_layer(uint16_t op, cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
	int pseudoLayer, cudnnTensorDescriptor_t xDesc, cudnnFilterDescriptor_t wDesc,
	const void *w, int linLayerID, cudnnFilterDescriptor_t desc, void **address);

cudnnStatus_t cudnn_ctc_set(cudnnCTCLossDescriptor_t ctc, enum cudnn_ctc_form form,
	cudnnDataType_t type, int normalization, int gradient, int longest);
cudnnStatus_t cudnn_ctc_get(cudnnCTCLossDescriptor_t ctc, cudnnDataType_t *type,
	int *normalization, int *gradient, int *longest);

cudnnStatus_t cudnn_dropout_keep(cudnnDropoutDescriptor_t dropoutDesc, cudnnHandle_t handle,
	float dropout, const void *states, size_t bytes, unsigned long long seed);

#endif
