/* SPDX-License-Identifier: Apache-2.0
 *
 * The library's descriptors, kept by content: a call brings what its descriptors hold, and the
 * same content finds the same descriptor.  The least lately used ones go when there are many.
 * Every number that came is checked before it is used for a size; whether it makes sense is for
 * the library to say.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/loop/beside_call.h"
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
