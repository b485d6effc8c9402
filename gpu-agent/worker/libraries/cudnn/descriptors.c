/* SPDX-License-Identifier: Apache-2.0
 *
 * The library's descriptors, kept by content: a call brings what its descriptors hold, and the
 * same content finds the same descriptor.  The least lately used ones go when there are many.
 * Every number that came is checked before it is used for a size; whether it makes sense is for
 * the library to say.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/beside_call.h"
#include "gpu-agent/worker/libraries/cudnn/cudnn.h"

#define BUCKETS 1024
/* More than any model has; a program that makes ever new shapes turns them over. */
#define KEPT_MAX 4096
/* Where none of them may go, as calls beside the loop may use them. */
#define KEPT_MOST (4 * KEPT_MAX)

struct kept {
	struct kept *next;	    /* of the bucket */
	struct kept *newer, *older; /* by use */
	uint64_t hash;
	uint64_t used; /* the newest call that used it */
	const struct cudnn_library *library;
	void *descriptor;
	void *dropouts[2]; /* a network's own, or NULL */
	uint16_t context;
	uint16_t kind;
	uint32_t words, ints;
	uint32_t content[]; /* words, then ints */
};

static struct kept *buckets[BUCKETS];
static struct kept *newest, *oldest;
static unsigned kept_count;

static uint64_t kept_hash(const uint32_t *words, uint32_t n, uint64_t hash)
{
	for (uint32_t i = 0; i < n; i++)
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15u ^ hash >> 29;
	return hash;
}

/* --- taking them out ---------------------------------------------------------------------- */

static void kept_unlink(struct kept *k)
{
	*(k->newer ? &k->newer->older : &newest) = k->older;
	*(k->older ? &k->older->newer : &oldest) = k->newer;
}

static void kept_front(struct kept *k)
{
	k->newer = NULL;
	k->older = newest;
	*(newest ? &newest->newer : &oldest) = k;
	newest = k;
}

void cudnn_destroy(const struct cudnn_library *l, enum cudnn_kind kind, void *descriptor)
{
	switch (kind) {
	case CUDNN_KIND_TENSOR: l->cudnnDestroyTensorDescriptor(descriptor); break;
	case CUDNN_KIND_FILTER: l->cudnnDestroyFilterDescriptor(descriptor); break;
	case CUDNN_KIND_CONVOLUTION: l->cudnnDestroyConvolutionDescriptor(descriptor); break;
	case CUDNN_KIND_POOLING: l->cudnnDestroyPoolingDescriptor(descriptor); break;
	case CUDNN_KIND_ACTIVATION: l->cudnnDestroyActivationDescriptor(descriptor); break;
	case CUDNN_KIND_LRN: l->cudnnDestroyLRNDescriptor(descriptor); break;
	case CUDNN_KIND_SPATIAL: l->cudnnDestroySpatialTransformerDescriptor(descriptor); break;
	case CUDNN_KIND_OP_TENSOR: l->cudnnDestroyOpTensorDescriptor(descriptor); break;
	case CUDNN_KIND_REDUCE: l->cudnnDestroyReduceTensorDescriptor(descriptor); break;
	case CUDNN_KIND_CTC: l->cudnnDestroyCTCLossDescriptor(descriptor); break;
	case CUDNN_KIND_TRANSFORM: l->cudnnDestroyTensorTransformDescriptor(descriptor); break;
	case CUDNN_KIND_DROPOUT: l->cudnnDestroyDropoutDescriptor(descriptor); break;
	case CUDNN_KIND_RNN: l->cudnnDestroyRNNDescriptor(descriptor); break;
	case CUDNN_KIND_RNN_DATA: l->cudnnDestroyRNNDataDescriptor(descriptor); break;
	case CUDNN_KIND_SEQ_DATA: l->cudnnDestroySeqDataDescriptor(descriptor); break;
	case CUDNN_KIND_ATTENTION: l->cudnnDestroyAttnDescriptor(descriptor); break;
	case CUDNN_KIND_FUSED: cudnn_fused_free(l, descriptor); break;
	case CUDNN_KIND_NONE:
	case CUDNN_KIND_LAST: break;
	}
}

static void cudnn_destroy_dropouts(const struct cudnn_library *l, void *const *dropouts)
{
	for (int i = 0; i < 2; i++)
		if (dropouts[i])
			cudnn_destroy(l, CUDNN_KIND_DROPOUT, dropouts[i]);
}

static void kept_drop(struct kept *k)
{
	struct kept **at = &buckets[k->hash % BUCKETS];

	while (*at != k)
		at = &(*at)->next;
	*at = k->next;
	kept_unlink(k);
	kept_count--;
	cudnn_destroy(k->library, k->kind, k->descriptor);
	cudnn_destroy_dropouts(k->library, k->dropouts);
	free(k);
}

/* --- making them -------------------------------------------------------------------------- */

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

/* --- finding them ------------------------------------------------------------------------- */

static bool kept_is(const struct kept *k, const struct library_frame *f,
	const struct cudnn_content *c, uint64_t hash)
{
	return k->hash == hash && k->library == f->library && k->kind == c->kind &&
	       k->context == f->r->header.context && k->words == c->words &&
	       k->ints == c->ints && !memcmp(k->content, c->word, 4 * (size_t)c->words) &&
	       !memcmp(k->content + k->words, c->sequence ? (const void *)c->sequence : k,
		       4 * (size_t)c->ints);
}

static void *cudnn_descriptor(struct library_frame *f, const struct cudnn_content *c)
{
	uint64_t hash = kept_hash(c->word, c->words, c->kind * 0x100000001b3u);
	void *made = NULL, *dropouts[2] = {NULL, NULL};
	cudnnStatus_t status;
	struct kept *k;

	if (c->ints)
		hash = kept_hash((const uint32_t *)c->sequence, c->ints, hash);
	for (k = buckets[hash % BUCKETS]; k; k = k->next)
		if (kept_is(k, f, c, hash))
			break;
	if (k) {
		kept_unlink(k);
		kept_front(k);
		if (k->used < f->r->header.seq)
			k->used = f->r->header.seq;
		return k->descriptor;
	}
	/* Never one that this call uses, or one beside the loop. */
	if (kept_count >= KEPT_MAX && oldest->used < beside_first(f->w, f->r))
		kept_drop(oldest);
	if (kept_count >= KEPT_MOST) {
		library_refuse(f, CUDNN_STATUS_ALLOC_FAILED);
		return NULL;
	}
	k = malloc(sizeof(*k) + 4 * ((size_t)c->words + c->ints));
	status = k ? cudnn_make(f, c, &made, dropouts) : CUDNN_STATUS_ALLOC_FAILED;
	if (status) {
		if (made)
			cudnn_destroy(f->library, c->kind, made);
		cudnn_destroy_dropouts(f->library, dropouts);
		free(k);
		/* Small numbers are the library's own, of 8; ours are 9's. */
		library_refuse(f, status < 1000 ? cudnn_nine(f->library, status) : status);
		return NULL;
	}
	*k = (struct kept){.next = buckets[hash % BUCKETS],
		.hash = hash,
		.used = f->r->header.seq,
		.library = f->library,
		.descriptor = made,
		.dropouts = {dropouts[0], dropouts[1]},
		.context = f->r->header.context,
		.kind = (uint16_t)c->kind,
		.words = c->words,
		.ints = c->ints};
	memcpy(k->content, c->word, 4 * (size_t)c->words);
	if (c->ints)
		memcpy(k->content + c->words, c->sequence, 4 * (size_t)c->ints);
	buckets[hash % BUCKETS] = k;
	kept_front(k);
	kept_count++;
	return made;
}

void *cudnn_get_descriptor(struct library_frame *f, uint32_t kind)
{
	struct cudnn_content content = {.kind = kind};

	content.words = library_get_content(f, kind,
		kind == CUDNN_KIND_FUSED ? CUDNN_FUSED_WORDS : CUDNN_DESCRIPTOR_WORDS,
		&content.word);
	if (!content.words)
		return NULL;
	if (kind == CUDNN_KIND_RNN_DATA || kind == CUDNN_KIND_SEQ_DATA)
		content.sequence = library_get_varying_ints(f, &content.ints);
	return f->stopped ? NULL : cudnn_descriptor(f, &content);
}

void cudnn_descriptors_forget(uint16_t context)
{
	struct kept *k = newest;

	while (k) {
		struct kept *older = k->older;

		if (k->context == context)
			kept_drop(k);
		k = older;
	}
}

/* --- reading them back -------------------------------------------------------------------- */

uint32_t cudnn_words_of_tensor(const struct cudnn_library *l, cudnnTensorDescriptor_t tensor,
	uint32_t *words, uint32_t room)
{
	int type = 0, n = 0, dims[CUDNN_DIM_MAX], strides[CUDNN_DIM_MAX];

	if (l->cudnnGetTensorNdDescriptor(tensor, CUDNN_DIM_MAX, &type, &n, dims, strides) ||
		n < 1 || n > CUDNN_DIM_MAX || room < 3 + 2 * (uint32_t)n)
		return 0;
	words[0] = (uint32_t)type;
	words[1] = CUDNN_BY_STRIDES;
	words[2] = (uint32_t)n;
	memcpy(words + 3, dims, (size_t)n * 4);
	memcpy(words + 3 + n, strides, (size_t)n * 4);
	return 3 + 2 * (uint32_t)n;
}

uint32_t cudnn_words_of_filter(const struct cudnn_library *l, cudnnFilterDescriptor_t filter,
	uint32_t *words, uint32_t room)
{
	int type = 0, format = 0, n = 0, dims[CUDNN_DIM_MAX];

	if (l->cudnnGetFilterNdDescriptor(filter, CUDNN_DIM_MAX, &type, &format, &n, dims) ||
		n < 1 || n > CUDNN_DIM_MAX || room < 3 + (uint32_t)n)
		return 0;
	words[0] = (uint32_t)type;
	words[1] = (uint32_t)format;
	words[2] = (uint32_t)n;
	memcpy(words + 3, dims, (size_t)n * 4);
	return 3 + (uint32_t)n;
}
