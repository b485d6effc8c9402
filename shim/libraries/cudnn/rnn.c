/* SPDX-License-Identifier: Apache-2.0
 *
 * Recurrent networks: their descriptors, and where a layer's weights lie. The place of a weight
 * is asked once for each network, as a distance from the start of the weights.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/libraries/cudnn/forms.h"
#include "shim/generated/cuda_calls.h"
#include "shim/generated/cudnn_hand.h"
#include "protocol/generated/cudnn_ops.h"
#include "shim/libraries/cudnn/cudnn.h"

_Static_assert(sizeof(struct cudnn_rnn_words) <= 4 * CUDNN_DESCRIPTOR_WORDS, "it fits");

static cudnnStatus_t bad(const char *text)
{
	return cudnn_fault(CUDNN_STATUS_BAD_PARAM, text);
}

/* A copy of what the descriptor holds; NULL, and zeros, where it is none. */
static struct cudnn_descriptor *load(cudnnRNNDescriptor_t rnn, struct cudnn_rnn_words *words)
{
	struct cudnn_descriptor *d = cudnn_descriptor_of(rnn, CUDNN_KIND_RNN);

	memset(words, 0, sizeof(*words));
	if (d)
		memcpy(words, d->word, sizeof(*words));
	return d;
}

static void store(struct cudnn_descriptor *d, const struct cudnn_rnn_words *words)
{
	memcpy(d->word, words, sizeof(*words));
}

static cudnnStatus_t copy_dropout(struct cudnn_descriptor *d, struct cudnn_rnn_words *words,
	cudnnDropoutDescriptor_t dropout)
{
	d->other = (struct cudnn_descriptor *)dropout;
	return cudnn_dropout_copy(dropout, &words->has_dropout, &words->dropout);
}

cudnnStatus_t hand_cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t rnnDesc, cudnnRNNAlgo_t algo,
	cudnnRNNMode_t cellMode, cudnnRNNBiasMode_t biasMode, cudnnDirectionMode_t dirMode,
	cudnnRNNInputMode_t inputMode, cudnnDataType_t dataType, cudnnDataType_t mathPrec,
	cudnnMathType_t mathType, int32_t inputSize, int32_t hiddenSize, int32_t projSize,
	int32_t numLayers, cudnnDropoutDescriptor_t dropoutDesc, uint32_t auxFlags)
{
	struct cudnn_rnn_words words;
	struct cudnn_descriptor *d = load(rnnDesc, &words);
	cudnnStatus_t status;

	if (!d || algo < 0 || cellMode < 0 || cellMode > CUDNN_GRU || biasMode < 0 ||
		dirMode < 0 || dirMode > CUDNN_BIDIRECTIONAL || inputMode < 0 ||
		inputSize < 0 || hiddenSize <= 0 || numLayers <= 0 || projSize < 0 ||
		projSize > hiddenSize)
		return bad("no RNN descriptor, or a value out of range");
	words = (struct cudnn_rnn_words){
		.form = CUDNN_RNN_V8,
		.algo = (uint32_t)algo,
		.cell = (uint32_t)cellMode,
		.bias = (uint32_t)biasMode,
		.direction = (uint32_t)dirMode,
		.input = (uint32_t)inputMode,
		.type = (uint32_t)dataType,
		.precision = (uint32_t)mathPrec,
		.math = (uint32_t)mathType,
		.input_size = (uint32_t)inputSize,
		.hidden = (uint32_t)hiddenSize,
		.projection = (uint32_t)projSize,
		.layers = (uint32_t)numLayers,
		.flags = auxFlags,
	};
	status = copy_dropout(d, &words, dropoutDesc);
	if (status)
		return status;
	store(d, &words);
	d->words = sizeof(words) / 4;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnGetRNNDescriptor_v8(cudnnRNNDescriptor_t rnnDesc, cudnnRNNAlgo_t *algo,
	cudnnRNNMode_t *cellMode, cudnnRNNBiasMode_t *biasMode, cudnnDirectionMode_t *dirMode,
	cudnnRNNInputMode_t *inputMode, cudnnDataType_t *dataType, cudnnDataType_t *mathPrec,
	cudnnMathType_t *mathType, int32_t *inputSize, int32_t *hiddenSize, int32_t *projSize,
	int32_t *numLayers, cudnnDropoutDescriptor_t *dropoutDesc, uint32_t *auxFlags)
{
	struct cudnn_rnn_words words;
	struct cudnn_descriptor *d = load(rnnDesc, &words);
	const uint32_t from[] = {words.algo, words.cell, words.bias, words.direction,
		words.input, words.type, words.precision, words.math, words.input_size,
		words.hidden, words.projection, words.layers};
	int32_t *const to[] = {algo, cellMode, biasMode, dirMode, inputMode, dataType, mathPrec,
		mathType, inputSize, hiddenSize, projSize, numLayers};

	if (!d || !d->words)
		return bad("no RNN descriptor that was set");
	for (size_t i = 0; i < sizeof(to) / sizeof(to[0]); i++)
		if (to[i])
			*to[i] = (int32_t)from[i];
	if (dropoutDesc)
		*dropoutDesc = (cudnnDropoutDescriptor_t)d->other;
	if (auxFlags)
		*auxFlags = words.flags;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnSetRNNDescriptor_v6(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
	const int hiddenSize, const int numLayers, cudnnDropoutDescriptor_t dropoutDesc,
	cudnnRNNInputMode_t inputMode, cudnnDirectionMode_t direction, cudnnRNNMode_t cellMode,
	cudnnRNNAlgo_t algo, cudnnDataType_t mathPrec)
{
	struct cudnn_rnn_words words;
	struct cudnn_descriptor *d = load(rnnDesc, &words);
	uint32_t bias, padding, math;
	cudnnStatus_t status;

	if (!d || !cudnn_find(handle) || hiddenSize <= 0 || numLayers <= 0 || algo < 0 ||
		cellMode < 0 || cellMode > CUDNN_GRU || direction < 0 ||
		direction > CUDNN_BIDIRECTIONAL || inputMode < 0)
		return bad("no RNN descriptor, or a value out of range");
	bias = d->words ? words.bias : CUDNN_RNN_DOUBLE_BIAS;
	padding = words.padding;
	math = words.math;
	words = (struct cudnn_rnn_words){
		.form = CUDNN_RNN_V6,
		.algo = (uint32_t)algo,
		.cell = (uint32_t)cellMode,
		.bias = bias,
		.direction = (uint32_t)direction,
		.input = (uint32_t)inputMode,
		.precision = (uint32_t)mathPrec,
		.math = math,
		.hidden = (uint32_t)hiddenSize,
		.layers = (uint32_t)numLayers,
		.padding = padding,
	};
	status = copy_dropout(d, &words, dropoutDesc);
	if (status)
		return status;
	store(d, &words);
	d->words = sizeof(words) / 4;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnGetRNNDescriptor_v6(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
	int *hiddenSize, int *numLayers, cudnnDropoutDescriptor_t *dropoutDesc,
	cudnnRNNInputMode_t *inputMode, cudnnDirectionMode_t *direction,
	cudnnRNNMode_t *cellMode, cudnnRNNAlgo_t *algo, cudnnDataType_t *mathPrec)
{
	if (!cudnn_find(handle))
		return bad("no handle of cuDNN");
	return hand_cudnnGetRNNDescriptor_v8(rnnDesc, algo, cellMode, NULL, direction,
		inputMode, NULL, mathPrec, NULL, NULL, hiddenSize, NULL, numLayers, dropoutDesc,
		NULL);
}

/* Where in struct cudnn_rnn_words. */
cudnnStatus_t cudnn_rnn_set(cudnnRNNDescriptor_t rnn, size_t at, uint32_t value)
{
	struct cudnn_descriptor *d = cudnn_descriptor_of(rnn, CUDNN_KIND_RNN);

	if (!d)
		return bad("no RNN descriptor");
	d->word[at / 4] = value;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnn_rnn_get(cudnnRNNDescriptor_t rnn, size_t at, void *value)
{
	const struct cudnn_descriptor *d = cudnn_set_of(rnn, CUDNN_KIND_RNN);

	if (!d || !value)
		return bad("no RNN descriptor that was set");
	memcpy(value, &d->word[at / 4], 4);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnSetRNNProjectionLayers(cudnnHandle_t handle,
	cudnnRNNDescriptor_t rnnDesc, const int recProjSize, const int outProjSize)
{
	cudnnStatus_t status;

	if (!cudnn_find(handle) || recProjSize < 0 || outProjSize < 0)
		return bad("no handle of cuDNN, or a size below 0");
	status = cudnn_rnn_set(
		rnnDesc, offsetof(struct cudnn_rnn_words, projection), (uint32_t)recProjSize);
	if (!status)
		status =
			cudnn_rnn_set(rnnDesc, offsetof(struct cudnn_rnn_words, out_projection),
				(uint32_t)outProjSize);
	return status;
}

cudnnStatus_t hand_cudnnGetRNNProjectionLayers(cudnnHandle_t handle,
	const cudnnRNNDescriptor_t rnnDesc, int *recProjSize, int *outProjSize)
{
	cudnnStatus_t status;

	if (!cudnn_find(handle))
		return bad("no handle of cuDNN");
	status = cudnn_rnn_get(
		rnnDesc, offsetof(struct cudnn_rnn_words, projection), recProjSize);
	if (!status)
		status = cudnn_rnn_get(
			rnnDesc, offsetof(struct cudnn_rnn_words, out_projection), outProjSize);
	return status;
}

cudnnStatus_t hand_cudnnRNNSetClip_v8(cudnnRNNDescriptor_t rnnDesc, cudnnRNNClipMode_t clipMode,
	cudnnNanPropagation_t clipNanOpt, double lclip, double rclip)
{
	struct cudnn_rnn_words words;
	struct cudnn_descriptor *d = load(rnnDesc, &words);

	if (!d || clipMode < 0 || clipMode > CUDNN_RNN_CLIP_MINMAX || !(lclip <= rclip))
		return bad("no RNN descriptor, or limits that are none");
	words.clip = 1 + (uint32_t)clipMode;
	words.clip_nan = (uint32_t)clipNanOpt;
	memcpy(words.left, &lclip, sizeof(lclip));
	memcpy(words.right, &rclip, sizeof(rclip));
	store(d, &words);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnRNNSetClip(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
	cudnnRNNClipMode_t clipMode, cudnnNanPropagation_t clipNanOpt, double lclip,
	double rclip)
{
	if (!cudnn_find(handle))
		return bad("no handle of cuDNN");
	return hand_cudnnRNNSetClip_v8(rnnDesc, clipMode, clipNanOpt, lclip, rclip);
}

cudnnStatus_t hand_cudnnRNNGetClip_v8(cudnnRNNDescriptor_t rnnDesc,
	cudnnRNNClipMode_t *clipMode, cudnnNanPropagation_t *clipNanOpt, double *lclip,
	double *rclip)
{
	struct cudnn_rnn_words words;
	const struct cudnn_descriptor *d = load(rnnDesc, &words);

	if (!d || !d->words)
		return bad("no RNN descriptor that was set");
	if (clipMode)
		*clipMode = words.clip ? (int)words.clip - 1 : CUDNN_RNN_CLIP_NONE;
	if (clipNanOpt)
		*clipNanOpt = (int)words.clip_nan;
	if (lclip)
		memcpy(lclip, words.left, sizeof(*lclip));
	if (rclip)
		memcpy(rclip, words.right, sizeof(*rclip));
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnRNNGetClip(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
	cudnnRNNClipMode_t *clipMode, cudnnNanPropagation_t *clipNanOpt, double *lclip,
	double *rclip)
{
	if (!cudnn_find(handle))
		return bad("no handle of cuDNN");
	return hand_cudnnRNNGetClip_v8(rnnDesc, clipMode, clipNanOpt, lclip, rclip);
}

/* The agent builds it when it first meets the descriptor. */
cudnnStatus_t hand_cudnnBuildRNNDynamic(
	cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, int miniBatch)
{
	if (!cudnn_find(handle) || miniBatch <= 0)
		return bad("no handle of cuDNN, or no minibatch");
	return cudnn_rnn_set(
		rnnDesc, offsetof(struct cudnn_rnn_words, built), (uint32_t)miniBatch);
}

/* A plan is what BuildRNNDynamic has built: of which minibatch, for the network as it was. */
cudnnStatus_t hand_cudnnCreatePersistentRNNPlan(cudnnRNNDescriptor_t rnnDesc,
	const int minibatch, const cudnnDataType_t dataType, cudnnPersistentRNNPlan_t *plan)
{
	const struct cudnn_descriptor *rnn = cudnn_set_of(rnnDesc, CUDNN_KIND_RNN);
	cudnnStatus_t status;
	struct cudnn_descriptor *d;

	if (!rnn || minibatch <= 0 || dataType < 0)
		return bad("no RNN descriptor that was set, or no minibatch");
	status = cudnn_descriptor_new((void **)plan, CUDNN_KIND_PERSISTENT);
	if (status)
		return status;
	d = cudnn_descriptor_of(*plan, CUDNN_KIND_PERSISTENT);
	d->word[0] = (uint32_t)minibatch;
	d->words = 1;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnSetPersistentRNNPlan(
	cudnnRNNDescriptor_t rnnDesc, cudnnPersistentRNNPlan_t plan)
{
	const struct cudnn_descriptor *d = cudnn_set_of(plan, CUDNN_KIND_PERSISTENT);

	if (!d)
		return bad("no plan");
	return cudnn_rnn_set(rnnDesc, offsetof(struct cudnn_rnn_words, built), d->word[0]);
}

/* --- sequences ---------------------------------------------------------------------------- */

cudnnStatus_t hand_cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t rnnDataDesc,
	cudnnDataType_t dataType, cudnnRNNDataLayout_t layout, int maxSeqLength, int batchSize,
	int vectorSize, const int seqLengthArray[], void *paddingFill)
{
	struct cudnn_descriptor *d = cudnn_descriptor_of(rnnDataDesc, CUDNN_KIND_RNN_DATA);
	struct cudnn_rnn_data_words words;
	size_t bytes = dataType == CUDNN_DATA_DOUBLE ? 8 : dataType == CUDNN_DATA_FLOAT ? 4 : 2;
	int32_t *ints;

	if (!d || !seqLengthArray || maxSeqLength <= 0 || batchSize <= 0 || vectorSize <= 0 ||
		layout < 0 || layout > CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED)
		return bad("no RNN data descriptor, or a size below 1");
	for (int i = 0; i < batchSize; i++)
		if (seqLengthArray[i] < 0 || seqLengthArray[i] > maxSeqLength)
			return bad("a sequence longer than the longest, or below 0");
	ints = malloc((size_t)batchSize * sizeof(*ints));
	if (!ints)
		return CUDNN_STATUS_ALLOC_FAILED;
	memcpy(ints, seqLengthArray, (size_t)batchSize * sizeof(*ints));
	free(d->ints);
	d->ints = ints;
	d->int_count = (uint32_t)batchSize;
	words = (struct cudnn_rnn_data_words){
		.type = (uint32_t)dataType,
		.layout = (uint32_t)layout,
		.longest = (uint32_t)maxSeqLength,
		.batch = (uint32_t)batchSize,
		.vector = (uint32_t)vectorSize,
		.fills = paddingFill != NULL,
	};
	if (paddingFill)
		memcpy(words.fill, paddingFill, bytes);
	memcpy(d->word, &words, sizeof(words));
	d->words = sizeof(words) / 4;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnGetRNNDataDescriptor(cudnnRNNDataDescriptor_t rnnDataDesc,
	cudnnDataType_t *dataType, cudnnRNNDataLayout_t *layout, int *maxSeqLength,
	int *batchSize, int *vectorSize, int arrayLengthRequested, int seqLengthArray[],
	void *paddingFill)
{
	const struct cudnn_descriptor *d = cudnn_set_of(rnnDataDesc, CUDNN_KIND_RNN_DATA);
	int *const to[] = {dataType, layout, maxSeqLength, batchSize, vectorSize};

	if (!d || arrayLengthRequested < 0)
		return bad("no RNN data descriptor that was set");
	for (int i = 0; i < 5; i++)
		if (to[i])
			*to[i] = (int)d->word[i];
	for (uint32_t i = 0; seqLengthArray && i < d->int_count; i++)
		if (i < (uint32_t)arrayLengthRequested)
			seqLengthArray[i] = d->ints[i];
	if (paddingFill && d->word[5])
		memcpy(paddingFill, d->word + 6,
			d->word[0] == CUDNN_DATA_DOUBLE	 ? 8
			: d->word[0] == CUDNN_DATA_FLOAT ? 4
							 : 2);
	return CUDNN_STATUS_SUCCESS;
}

/* --- where weights lie -------------------------------------------------------------------- */

#define PLACE_WORDS 20

void cudnn_place(const uint64_t *distance, const uint64_t *words, const void *start,
	void *descriptor, uint32_t kind, void **address)
{
	struct cudnn_descriptor *d = cudnn_descriptor_of(descriptor, kind);

	if (address)
		*address = *distance ? (char *)(uintptr_t)start + (*distance - 1) : NULL;
	if (!d)
		return;
	d->words = words[0] <= PLACE_WORDS ? (uint16_t)words[0] : 0;
	memcpy(d->word, words + 1, PLACE_WORDS * 4);
}

cudnnStatus_t hand_cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
	int32_t pseudoLayer, size_t weightSpaceSize, const void *weightSpace,
	int32_t linLayerID, cudnnTensorDescriptor_t mDesc, void **mAddr,
	cudnnTensorDescriptor_t bDesc, void **bAddr)
{
	struct library_items items;
	struct library_answer reply;

	library_begin(&items, &cudnn_front, FRONT_COUNTED, OP_cudnnGetRNNWeightParams,
		LIBRARY_CACHED, handle);
	library_put_descriptor(&items, rnnDesc, CUDNN_KIND_RNN);
	library_put_int(&items, (uint32_t)pseudoLayer);
	library_put_long(&items, weightSpaceSize);
	library_put_device(&items, weightSpace);
	library_put_int(&items, (uint32_t)linLayerID);
	if (library_exchange(&items, &reply, sizeof(reply)))
		return items.status;
	cudnn_place(&reply.out[0], &reply.out[2], weightSpace, mDesc, CUDNN_KIND_TENSOR, mAddr);
	cudnn_place(
		&reply.out[1], &reply.out[13], weightSpace, bDesc, CUDNN_KIND_TENSOR, bAddr);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnn_rnn_layer(uint16_t op, cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
	int pseudoLayer, cudnnTensorDescriptor_t xDesc, cudnnFilterDescriptor_t wDesc,
	const void *w, int linLayerID, cudnnFilterDescriptor_t desc, void **address)
{
	struct library_items items;
	struct library_answer reply;

	library_begin(&items, &cudnn_front, FRONT_COUNTED, op, LIBRARY_CACHED, handle);
	library_put_descriptor(&items, rnnDesc, CUDNN_KIND_RNN);
	library_put_int(&items, (uint32_t)pseudoLayer);
	library_put_descriptor(&items, xDesc, CUDNN_KIND_TENSOR);
	library_put_descriptor(&items, wDesc, CUDNN_KIND_FILTER);
	library_put_device(&items, w);
	library_put_int(&items, (uint32_t)linLayerID);
	if (library_exchange(&items, &reply, sizeof(reply)))
		return items.status;
	cudnn_place(&reply.out[0], &reply.out[2], w, desc, CUDNN_KIND_FILTER, address);
	return CUDNN_STATUS_SUCCESS;
}
