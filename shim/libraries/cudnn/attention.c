/* SPDX-License-Identifier: Apache-2.0
 *
 * Multi-head attention as it was before graphs: its descriptors, its sequences', its sizes and
 * where its weights lie.
 */
#include <stdlib.h>
#include <string.h>

#include "protocol/generated/cudnn_ops.h"
#include "shim/generated/cuda_calls.h"
#include "shim/libraries/cudnn/forms.h"

_Static_assert(sizeof(struct cudnn_attention_words) <= 4 * CUDNN_DESCRIPTOR_WORDS, "it fits");

static cudnnStatus_t bad(const char *text)
{
	return cudnn_fault(CUDNN_STATUS_BAD_PARAM, text);
}

/* --- sequences ---------------------------------------------------------------------------- */

/* Whether each axis is named once, and the vectors' elements are together. */
static bool axes_are_all(const cudnnSeqDataAxis_t *axes)
{
	unsigned seen = 0;

	for (int i = 0; i < CUDNN_SEQDATA_DIM_COUNT; i++)
		if (axes[i] >= 0 && axes[i] < CUDNN_SEQDATA_DIM_COUNT)
			seen |= 1u << axes[i];
	return seen == 15 && axes[CUDNN_SEQDATA_DIM_COUNT - 1] == CUDNN_SEQDATA_VECT_DIM;
}

static cudnnStatus_t keep_lengths(struct cudnn_descriptor *d, const int *lengths, size_t count)
{
	int32_t *ints = malloc(count * sizeof(*ints));

	if (!ints)
		return CUDNN_STATUS_ALLOC_FAILED;
	memcpy(ints, lengths, count * sizeof(*ints));
	free(d->ints);
	d->ints = ints;
	d->int_count = (uint32_t)count;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnSetSeqDataDescriptor(cudnnSeqDataDescriptor_t seqDataDesc,
	cudnnDataType_t dataType, int nbDims, const int dimA[], const cudnnSeqDataAxis_t axes[],
	size_t seqLengthArraySize, const int seqLengthArray[], void *paddingFill)
{
	struct cudnn_descriptor *d = cudnn_descriptor_of(seqDataDesc, CUDNN_KIND_SEQ_DATA);
	struct cudnn_seq_data_words words = {.type = (uint32_t)dataType};
	cudnnStatus_t status;

	if (!d || !dimA || !axes || !seqLengthArray || nbDims != CUDNN_SEQDATA_DIM_COUNT ||
		!axes_are_all(axes))
		return bad("no sequence descriptor, or axes that are none");
	for (int i = 0; i < CUDNN_SEQDATA_DIM_COUNT; i++) {
		if (dimA[i] <= 0)
			return bad("a size below 1");
		words.dim[i] = (uint32_t)dimA[i];
		words.axes[i] = (uint32_t)axes[i];
	}
	if (seqLengthArraySize != (uint64_t)words.dim[CUDNN_SEQDATA_BATCH_DIM] *
					  words.dim[CUDNN_SEQDATA_BEAM_DIM] ||
		seqLengthArraySize > LIBRARY_EACH_MAX)
		return bad("not as many lengths as sequences");
	for (size_t i = 0; i < seqLengthArraySize; i++)
		if (seqLengthArray[i] < 0 || seqLengthArray[i] > dimA[CUDNN_SEQDATA_TIME_DIM])
			return bad("a sequence longer than the longest, or below 0");
	status = keep_lengths(d, seqLengthArray, seqLengthArraySize);
	if (status)
		return status;
	words.fills = paddingFill != NULL;
	if (paddingFill)
		memcpy(words.fill, paddingFill, cudnn_data_bytes(words.type));
	memcpy(d->word, &words, sizeof(words));
	d->words = sizeof(words) / 4;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnGetSeqDataDescriptor(const cudnnSeqDataDescriptor_t seqDataDesc,
	cudnnDataType_t *dataType, int *nbDims, int nbDimsRequested, int dimA[],
	cudnnSeqDataAxis_t axes[], size_t *seqLengthArraySize, size_t seqLengthSizeRequested,
	int seqLengthArray[], void *paddingFill)
{
	const struct cudnn_descriptor *d = cudnn_set_of(seqDataDesc, CUDNN_KIND_SEQ_DATA);
	struct cudnn_seq_data_words words;

	if (!d)
		return bad("no sequence descriptor that was set");
	memcpy(&words, d->word, sizeof(words));
	if (dataType)
		*dataType = (cudnnDataType_t)words.type;
	if (nbDims)
		*nbDims = CUDNN_SEQDATA_DIM_COUNT;
	for (int i = 0; i < nbDimsRequested && i < CUDNN_SEQDATA_DIM_COUNT; i++) {
		if (dimA)
			dimA[i] = (int)words.dim[i];
		if (axes)
			axes[i] = (cudnnSeqDataAxis_t)words.axes[i];
	}
	if (seqLengthArraySize)
		*seqLengthArraySize = d->int_count;
	for (uint32_t i = 0; seqLengthArray && i < d->int_count && i < seqLengthSizeRequested;
		i++)
		seqLengthArray[i] = d->ints[i];
	if (paddingFill && words.fills)
		memcpy(paddingFill, words.fill, cudnn_data_bytes(words.type));
	return CUDNN_STATUS_SUCCESS;
}

uint32_t cudnn_seq_steps(cudnnSeqDataDescriptor_t queries)
{
	const struct cudnn_descriptor *d = cudnn_set_of(queries, CUDNN_KIND_SEQ_DATA);

	return d ? d->word[1 + CUDNN_SEQDATA_TIME_DIM] : 0;
}

/* --- the network -------------------------------------------------------------------------- */

/* The sizes that Set takes and Get gives, in their order: where in the words. */
#define SIZE(NAME) (offsetof(struct cudnn_attention_words, NAME) / 4)
static const uint8_t sizes_at[] = {SIZE(q_size), SIZE(k_size), SIZE(v_size), SIZE(q_proj),
	SIZE(k_proj), SIZE(v_proj), SIZE(o_proj), SIZE(q_longest), SIZE(kv_longest),
	SIZE(batch), SIZE(beam)};
#define SIZES (sizeof(sizes_at) / sizeof(sizes_at[0]))

static bool is_projection(size_t size)
{
	return size >= 3 && size <= 6;
}

cudnnStatus_t hand_cudnnSetAttnDescriptor(cudnnAttnDescriptor_t attnDesc, unsigned attnMode,
	int nHeads, double smScaler, cudnnDataType_t dataType, cudnnDataType_t computePrec,
	cudnnMathType_t mathType, cudnnDropoutDescriptor_t attnDropoutDesc,
	cudnnDropoutDescriptor_t postDropoutDesc, int qSize, int kSize, int vSize,
	int qProjSize, int kProjSize, int vProjSize, int oProjSize, int qoMaxSeqLength,
	int kvMaxSeqLength, int maxBatchSize, int maxBeamSize)
{
	const int sizes[SIZES] = {qSize, kSize, vSize, qProjSize, kProjSize, vProjSize,
		oProjSize, qoMaxSeqLength, kvMaxSeqLength, maxBatchSize, maxBeamSize};
	struct cudnn_descriptor *d = cudnn_descriptor_of(attnDesc, CUDNN_KIND_ATTENTION);
	struct cudnn_attention_words words = {.mode = attnMode,
		.heads = (uint32_t)nHeads,
		.type = (uint32_t)dataType,
		.precision = (uint32_t)computePrec,
		.math = (uint32_t)mathType};
	cudnnStatus_t status;

	if (!d || nHeads <= 0 || !(smScaler >= 0) ||
		attnMode & ~(CUDNN_ATTN_QUERYMAP_ONE_TO_ONE | CUDNN_ATTN_ENABLE_PROJ_BIASES))
		return bad("no attention descriptor, or a value out of range");
	for (size_t i = 0; i < SIZES; i++)
		if (sizes[i] < 0 || (!sizes[i] && !is_projection(i)))
			return bad("a size below 1");
	memcpy(words.scaler, &smScaler, sizeof(smScaler));
	status = cudnn_dropout_copy(attnDropoutDesc, &words.has_dropout, &words.dropout);
	if (!status)
		status = cudnn_dropout_copy(postDropoutDesc, &words.has_post, &words.post);
	if (status)
		return status;
	memcpy(d->word, &words, sizeof(words));
	for (size_t i = 0; i < SIZES; i++)
		d->word[sizes_at[i]] = (uint32_t)sizes[i];
	d->other = (struct cudnn_descriptor *)attnDropoutDesc;
	d->post = (struct cudnn_descriptor *)postDropoutDesc;
	d->words = sizeof(words) / 4;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnGetAttnDescriptor(cudnnAttnDescriptor_t attnDesc, unsigned *attnMode,
	int *nHeads, double *smScaler, cudnnDataType_t *dataType, cudnnDataType_t *computePrec,
	cudnnMathType_t *mathType, cudnnDropoutDescriptor_t *attnDropoutDesc,
	cudnnDropoutDescriptor_t *postDropoutDesc, int *qSize, int *kSize, int *vSize,
	int *qProjSize, int *kProjSize, int *vProjSize, int *oProjSize, int *qoMaxSeqLength,
	int *kvMaxSeqLength, int *maxBatchSize, int *maxBeamSize)
{
	int *const sizes[SIZES] = {qSize, kSize, vSize, qProjSize, kProjSize, vProjSize,
		oProjSize, qoMaxSeqLength, kvMaxSeqLength, maxBatchSize, maxBeamSize};
	const struct cudnn_descriptor *d = cudnn_set_of(attnDesc, CUDNN_KIND_ATTENTION);
	struct cudnn_attention_words words;

	if (!d)
		return bad("no attention descriptor that was set");
	memcpy(&words, d->word, sizeof(words));
	if (attnMode)
		*attnMode = words.mode;
	if (nHeads)
		*nHeads = (int)words.heads;
	if (smScaler)
		memcpy(smScaler, words.scaler, sizeof(*smScaler));
	if (dataType)
		*dataType = (cudnnDataType_t)words.type;
	if (computePrec)
		*computePrec = (cudnnDataType_t)words.precision;
	if (mathType)
		*mathType = (cudnnMathType_t)words.math;
	if (attnDropoutDesc)
		*attnDropoutDesc = (cudnnDropoutDescriptor_t)d->other;
	if (postDropoutDesc)
		*postDropoutDesc = (cudnnDropoutDescriptor_t)d->post;
	for (size_t i = 0; i < SIZES; i++)
		if (sizes[i])
			*sizes[i] = (int)d->word[sizes_at[i]];
	return CUDNN_STATUS_SUCCESS;
}

/* --- what the library knows --------------------------------------------------------------- */

/* Without a reserve space it is for inference, which may need more workspace. */
cudnnStatus_t hand_cudnnGetMultiHeadAttnBuffers(cudnnHandle_t handle,
	const cudnnAttnDescriptor_t attnDesc, size_t *weightSizeInBytes,
	size_t *workSpaceSizeInBytes, size_t *reserveSpaceSizeInBytes)
{
	struct library_items items;
	struct library_answer reply;

	if (!weightSizeInBytes || !workSpaceSizeInBytes)
		return bad("nowhere to put a size");
	library_begin(&items, &cudnn_front, FRONT_COUNTED, OP_cudnnGetMultiHeadAttnBuffers,
		LIBRARY_CACHED, handle);
	library_put_descriptor(&items, attnDesc, CUDNN_KIND_ATTENTION);
	library_put_int(&items, reserveSpaceSizeInBytes != NULL);
	if (library_exchange(&items, &reply, sizeof(reply)))
		return items.status;
	*weightSizeInBytes = reply.out[0];
	*workSpaceSizeInBytes = reply.out[1];
	if (reserveSpaceSizeInBytes)
		*reserveSpaceSizeInBytes = reply.out[2];
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t hand_cudnnGetMultiHeadAttnWeights(cudnnHandle_t handle,
	const cudnnAttnDescriptor_t attnDesc, cudnnMultiHeadAttnWeightKind_t wKind,
	size_t weightSizeInBytes, const void *weights, cudnnTensorDescriptor_t wDesc,
	void **wAddr)
{
	struct library_items items;
	struct library_answer reply;

	if (!cudnn_descriptor_of(wDesc, CUDNN_KIND_TENSOR) || !wAddr)
		return bad("no tensor descriptor, or nowhere to put the address");
	library_begin(&items, &cudnn_front, FRONT_COUNTED, OP_cudnnGetMultiHeadAttnWeights,
		LIBRARY_CACHED, handle);
	library_put_descriptor(&items, attnDesc, CUDNN_KIND_ATTENTION);
	library_put_int(&items, (uint32_t)wKind);
	library_put_long(&items, weightSizeInBytes);
	library_put_device(&items, weights);
	if (library_exchange(&items, &reply, sizeof(reply)))
		return items.status;
	cudnn_place(&reply.out[0], &reply.out[2], weights, wDesc, CUDNN_KIND_TENSOR, wAddr);
	return CUDNN_STATUS_SUCCESS;
}
