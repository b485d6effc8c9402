/* SPDX-License-Identifier: Apache-2.0
 *
 * A descriptor of the library's, made of what a call says that it holds.
 */
#include <string.h>

#include "gpu-agent/worker/libraries/cudnn/cudnn.h"

/* False where the library lacks such descriptors, too. */
#define MADE(l, Name, set, made)                                                               \
	((l)->cudnnCreate##Name##Descriptor && (l)->set &&                                     \
		!(l)->cudnnCreate##Name##Descriptor((cudnn##Name##Descriptor_t *)(made)))

/* A float or double that came as words. */
static double cudnn_double(const uint32_t *words)
{
	double value;

	memcpy(&value, words, sizeof(value));
	return value;
}

/* Whether the words are a head of `head` words whose last says how many dimensions follow, in
 * `arrays` arrays. */
static bool cudnn_shaped(
	const struct cudnn_content *c, uint32_t head, uint32_t arrays, uint32_t least)
{
	uint32_t n = c->words >= head ? c->word[head - 1] : 0;

	return n >= least && n <= CUDNN_DIM_MAX && c->words == head + arrays * n;
}

static cudnnStatus_t cudnn_set_tensor(
	const struct cudnn_library *l, void *d, const struct cudnn_content *c)
{
	const uint32_t *word = c->word;
	const int *dims = (const int *)(word + 3);

	if (!cudnn_shaped(c, 3, 2, 1))
		return CUDNN_STATUS_BAD_PARAM;
	if (word[1] == CUDNN_BY_STRIDES)
		return l->cudnnSetTensorNdDescriptor(
			d, (int)word[0], (int)word[2], dims, dims + word[2]);
	return l->cudnnSetTensorNdDescriptorEx(
		d, (int)word[1], (int)word[0], (int)word[2], dims);
}

static cudnnStatus_t cudnn_set_convolution(
	const struct cudnn_library *l, void *d, const struct cudnn_content *c)
{
	const uint32_t *word = c->word;
	const int *arrays = (const int *)(word + 6);
	cudnnStatus_t status;

	if (!cudnn_shaped(c, 6, 3, 1))
		return CUDNN_STATUS_BAD_PARAM;
	status = l->cudnnSetConvolutionNdDescriptor(d, (int)word[5], arrays, arrays + word[5],
		arrays + 2 * word[5], (int)word[0], (int)word[1]);
	if (!status && l->cudnnSetConvolutionMathType)
		status = l->cudnnSetConvolutionMathType(d, (int)word[2]);
	if (!status && word[3] != 1 && l->cudnnSetConvolutionGroupCount)
		status = l->cudnnSetConvolutionGroupCount(d, (int)word[3]);
	if (!status && word[4] && l->cudnnSetConvolutionReorderType)
		status = l->cudnnSetConvolutionReorderType(d, (int)word[4]);
	return status;
}

static cudnnStatus_t cudnn_set_activation(
	const struct cudnn_library *l, void *d, const struct cudnn_content *c)
{
	const uint32_t *word = c->word;
	cudnnStatus_t status;

	if (c->words != 6)
		return CUDNN_STATUS_BAD_PARAM;
	status = l->cudnnSetActivationDescriptor(
		d, (int)word[0], (int)word[1], cudnn_double(word + 2));
	if (!status && word[0] == CUDNN_ACTIVATION_SWISH &&
		l->cudnnSetActivationDescriptorSwishBeta)
		status = l->cudnnSetActivationDescriptorSwishBeta(d, cudnn_double(word + 4));
	return status;
}

static cudnnStatus_t cudnn_set_ctc(
	const struct cudnn_library *l, void *d, const struct cudnn_content *c)
{
	int type, normalization, gradient, longest;

	if (c->words != sizeof(struct cudnn_ctc_words) / 4)
		return CUDNN_STATUS_BAD_PARAM;
	type = (int)c->word[1];
	normalization = (int)c->word[2];
	gradient = (int)c->word[3];
	longest = (int)c->word[4];
	switch (c->word[0]) {
	case CUDNN_CTC_PLAIN:
		if (l->cudnnSetCTCLossDescriptor)
			return l->cudnnSetCTCLossDescriptor(d, type);
		return CUDNN_STATUS_NOT_SUPPORTED;
	case CUDNN_CTC_EX:
		if (l->cudnnSetCTCLossDescriptorEx)
			return l->cudnnSetCTCLossDescriptorEx(d, type, normalization, gradient);
		return CUDNN_STATUS_NOT_SUPPORTED;
	case CUDNN_CTC_V8:
		return l->cudnnSetCTCLossDescriptor_v8(
			d, type, normalization, gradient, longest);
	default:
		if (!l->cudnnSetCTCLossDescriptor_v9)
			return CUDNN_STATUS_NOT_SUPPORTED;
		return l->cudnnSetCTCLossDescriptor_v9(
			d, type, normalization, gradient, longest);
	}
}

/* Takes over states that are there already: filling them is a call of its own. */
cudnnStatus_t cudnn_set_dropout(struct library_frame *f, void *d, const uint32_t *word)
{
	struct cudnn_dropout_words words;
	uint64_t states, bytes, seed;
	float dropout;

	memcpy(&words, word, sizeof(words));
	memcpy(&dropout, &words.dropout, sizeof(dropout));
	memcpy(&states, words.states, sizeof(states));
	memcpy(&bytes, words.bytes, sizeof(bytes));
	memcpy(&seed, words.seed, sizeof(seed));
	if (!states) /* a probability alone */
		return cudnn_of(f)->cudnnSetDropoutDescriptor(
			d, f->handle, dropout, NULL, 0, seed);
	return cudnn_of(f)->cudnnRestoreDropoutDescriptor(
		d, f->handle, dropout, (void *)(uintptr_t)states, bytes, seed);
}

static cudnnStatus_t cudnn_set_rnn6(
	struct library_frame *f, void *d, const struct cudnn_rnn_words *words, void *dropout)
{
	const struct cudnn_library *l = f->library;
	cudnnStatus_t status;

	if (!l->cudnnSetRNNDescriptor_v6 || !l->cudnnSetRNNMatrixMathType) {
		worker_lacks(f->w, "cudnnSetRNNDescriptor_v6"); /* gone in 9 */
		return CUDNN_STATUS_NOT_SUPPORTED;
	}
	status = l->cudnnSetRNNDescriptor_v6(f->handle, d, (int)words->hidden,
		(int)words->layers, dropout, (int)words->input, (int)words->direction,
		(int)words->cell, (int)words->algo, (int)words->precision);
	if (!status)
		status = l->cudnnSetRNNMatrixMathType(d, (int)words->math);
	if (!status && words->bias != CUDNN_RNN_DOUBLE_BIAS && l->cudnnSetRNNBiasMode)
		status = l->cudnnSetRNNBiasMode(d, (int)words->bias);
	if (!status && (words->projection || words->out_projection) &&
		l->cudnnSetRNNProjectionLayers)
		status = l->cudnnSetRNNProjectionLayers(
			f->handle, d, (int)words->projection, (int)words->out_projection);
	if (!status && words->padding && l->cudnnSetRNNPaddingMode)
		status = l->cudnnSetRNNPaddingMode(d, words->padding);
	return status;
}

static cudnnStatus_t cudnn_set_rnn(
	struct library_frame *f, void *d, const struct cudnn_content *c, void **dropout)
{
	const struct cudnn_library *l = f->library;
	struct cudnn_rnn_words words;
	cudnnStatus_t status = CUDNN_STATUS_SUCCESS;

	if (c->words != sizeof(words) / 4)
		return CUDNN_STATUS_BAD_PARAM;
	memcpy(&words, c->word, sizeof(words));
	if (!MADE(l, Dropout, cudnnRestoreDropoutDescriptor, dropout))
		return CUDNN_STATUS_NOT_SUPPORTED;
	if (words.has_dropout)
		status = cudnn_set_dropout(f, *dropout, (const uint32_t *)&words.dropout);
	if (!status && words.form == CUDNN_RNN_V6)
		status = cudnn_set_rnn6(f, d, &words, *dropout);
	else if (!status)
		status = l->cudnnSetRNNDescriptor_v8(d, (int)words.algo, (int)words.cell,
			(int)words.bias, (int)words.direction, (int)words.input,
			(int)words.type, (int)words.precision, (int)words.math,
			(int)words.input_size, (int)words.hidden, (int)words.projection,
			(int)words.layers, *dropout, words.flags);
	if (!status && words.clip && l->cudnnRNNSetClip_v8)
		status = l->cudnnRNNSetClip_v8(d, (int)(words.clip - 1), (int)words.clip_nan,
			cudnn_double(words.left), cudnn_double(words.right));
	if (!status && words.built && l->cudnnBuildRNNDynamic)
		status = l->cudnnBuildRNNDynamic(f->handle, d, (int)words.built);
	return status;
}

static cudnnStatus_t cudnn_set_rnn_data(
	const struct cudnn_library *l, void *d, const struct cudnn_content *c)
{
	struct cudnn_rnn_data_words words;

	if (c->words != sizeof(words) / 4)
		return CUDNN_STATUS_BAD_PARAM;
	memcpy(&words, c->word, sizeof(words));
	if (words.batch != c->ints || !c->ints)
		return CUDNN_STATUS_BAD_PARAM;
	return l->cudnnSetRNNDataDescriptor(d, (int)words.type, (int)words.layout,
		(int)words.longest, (int)words.batch, (int)words.vector, c->sequence,
		words.fills ? words.fill : NULL);
}

cudnnStatus_t cudnn_make(
	struct library_frame *f, const struct cudnn_content *c, void **made, void **dropouts)
{
	const struct cudnn_library *l = f->library;
	const uint32_t *word = c->word;
	const int *ints = (const int *)word;
	cudnnStatus_t none = CUDNN_STATUS_NOT_SUPPORTED;

	switch (c->kind) {
	case CUDNN_KIND_TENSOR:
		return MADE(l, Tensor, cudnnSetTensorNdDescriptorEx, made)
			       ? cudnn_set_tensor(l, *made, c)
			       : none;
	case CUDNN_KIND_FILTER:
		if (!cudnn_shaped(c, 3, 1, 1))
			return CUDNN_STATUS_BAD_PARAM;
		return MADE(l, Filter, cudnnSetFilterNdDescriptor, made)
			       ? l->cudnnSetFilterNdDescriptor(
					 *made, ints[0], ints[1], ints[2], ints + 3)
			       : none;
	case CUDNN_KIND_CONVOLUTION:
		return MADE(l, Convolution, cudnnSetConvolutionNdDescriptor, made)
			       ? cudnn_set_convolution(l, *made, c)
			       : none;
	case CUDNN_KIND_POOLING:
		if (!cudnn_shaped(c, 3, 3, 1))
			return CUDNN_STATUS_BAD_PARAM;
		return MADE(l, Pooling, cudnnSetPoolingNdDescriptor, made)
			       ? l->cudnnSetPoolingNdDescriptor(*made, ints[0], ints[1],
					 ints[2], ints + 3, ints + 3 + word[2],
					 ints + 3 + 2 * word[2])
			       : none;
	case CUDNN_KIND_ACTIVATION:
		return MADE(l, Activation, cudnnSetActivationDescriptor, made)
			       ? cudnn_set_activation(l, *made, c)
			       : none;
	case CUDNN_KIND_LRN:
		if (c->words != 7)
			return CUDNN_STATUS_BAD_PARAM;
		return MADE(l, LRN, cudnnSetLRNDescriptor, made)
			       ? l->cudnnSetLRNDescriptor(*made, word[0],
					 cudnn_double(word + 1), cudnn_double(word + 3),
					 cudnn_double(word + 5))
			       : none;
	case CUDNN_KIND_SPATIAL:
		if (!cudnn_shaped(c, 3, 1, 1))
			return CUDNN_STATUS_BAD_PARAM;
		return MADE(l, SpatialTransformer, cudnnSetSpatialTransformerNdDescriptor, made)
			       ? l->cudnnSetSpatialTransformerNdDescriptor(
					 *made, ints[0], ints[1], ints[2], ints + 3)
			       : none;
	case CUDNN_KIND_OP_TENSOR:
		if (c->words != 3)
			return CUDNN_STATUS_BAD_PARAM;
		return MADE(l, OpTensor, cudnnSetOpTensorDescriptor, made)
			       ? l->cudnnSetOpTensorDescriptor(*made, ints[0], ints[1], ints[2])
			       : none;
	case CUDNN_KIND_REDUCE:
		if (c->words != 5)
			return CUDNN_STATUS_BAD_PARAM;
		return MADE(l, ReduceTensor, cudnnSetReduceTensorDescriptor, made)
			       ? l->cudnnSetReduceTensorDescriptor(
					 *made, ints[0], ints[1], ints[2], ints[3], ints[4])
			       : none;
	case CUDNN_KIND_CTC:
		return MADE(l, CTCLoss, cudnnSetCTCLossDescriptor_v8, made)
			       ? cudnn_set_ctc(l, *made, c)
			       : none;
	case CUDNN_KIND_TRANSFORM:
		if (c->words < 3 || !word[0] || word[0] > CUDNN_DIM_MAX ||
			c->words != 3 + 3 * word[0])
			return CUDNN_STATUS_BAD_PARAM;
		return MADE(l, TensorTransform, cudnnSetTensorTransformDescriptor, made)
			       ? l->cudnnSetTensorTransformDescriptor(*made, word[0], ints[1],
					 ints + 3, ints + 3 + word[0], word + 3 + 2 * word[0],
					 ints[2])
			       : none;
	case CUDNN_KIND_DROPOUT:
		if (c->words != sizeof(struct cudnn_dropout_words) / 4)
			return CUDNN_STATUS_BAD_PARAM;
		return MADE(l, Dropout, cudnnRestoreDropoutDescriptor, made)
			       ? cudnn_set_dropout(f, *made, word)
			       : none;
	case CUDNN_KIND_RNN:
		return MADE(l, RNN, cudnnSetRNNDescriptor_v8, made)
			       ? cudnn_set_rnn(f, *made, c, dropouts)
			       : none;
	case CUDNN_KIND_RNN_DATA:
		return MADE(l, RNNData, cudnnSetRNNDataDescriptor, made)
			       ? cudnn_set_rnn_data(l, *made, c)
			       : none;
	case CUDNN_KIND_SEQ_DATA:
		return MADE(l, SeqData, cudnnSetSeqDataDescriptor, made)
			       ? cudnn_set_seq_data(l, *made, c)
			       : none;
	case CUDNN_KIND_ATTENTION:
		return MADE(l, Attn, cudnnSetAttnDescriptor, made)
			       ? cudnn_set_attention(f, *made, c, dropouts)
			       : none;
	case CUDNN_KIND_FUSED: return cudnn_set_fused(f, c, made);
	case CUDNN_KIND_NONE:
	case CUDNN_KIND_LAST: break;
	}
	return CUDNN_STATUS_BAD_PARAM;
}
