/* SPDX-License-Identifier: Apache-2.0
 *
 * Multi-head attention as it was before graphs: its descriptors by content, and the calls of
 * cudnn.api whose host arrays, windows of the keys for each step, need a look.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/libraries/cudnn/cudnn.h"

/* Steps that the arrays of windows may have; more than travel. The bound is against clients. */
#define STEPS_MAX 65536u

static const struct cudnn_attention_words no_attention;
static const struct cudnn_seq_data_words no_sequence;

cudnnStatus_t cudnn_set_seq_data(
	const struct cudnn_library *l, void *d, const struct cudnn_content *c)
{
	struct cudnn_seq_data_words words;

	if (c->words != sizeof(words) / 4)
		return CUDNN_STATUS_BAD_PARAM;
	memcpy(&words, c->word, sizeof(words));
	if (!c->ints || c->ints != (uint64_t)words.dim[CUDNN_SEQDATA_BATCH_DIM] *
					   words.dim[CUDNN_SEQDATA_BEAM_DIM])
		return CUDNN_STATUS_BAD_PARAM;
	return l->cudnnSetSeqDataDescriptor(d, (int)words.type, CUDNN_SEQDATA_DIM_COUNT,
		(const int *)words.dim, (const int *)words.axes, c->ints, c->sequence,
		words.fills ? words.fill : NULL);
}

/* One of the network's dropouts, made by the caller; NULL where it has none. */
static cudnnStatus_t attention_dropout(struct library_frame *f, uint32_t has,
	const struct cudnn_dropout_words *words, void **dropout)
{
	const struct cudnn_library *l = f->library;

	if (!has)
		return CUDNN_STATUS_SUCCESS;
	if (!l->cudnnCreateDropoutDescriptor || !l->cudnnRestoreDropoutDescriptor ||
		l->cudnnCreateDropoutDescriptor((cudnnDropoutDescriptor_t *)dropout))
		return CUDNN_STATUS_NOT_SUPPORTED;
	return cudnn_set_dropout(f, *dropout, (const uint32_t *)words);
}

cudnnStatus_t cudnn_set_attention(
	struct library_frame *f, void *d, const struct cudnn_content *c, void **dropouts)
{
	struct cudnn_attention_words words;
	cudnnStatus_t status;
	double scaler;

	if (c->words != sizeof(words) / 4)
		return CUDNN_STATUS_BAD_PARAM;
	memcpy(&words, c->word, sizeof(words));
	memcpy(&scaler, words.scaler, sizeof(scaler));
	status = attention_dropout(f, words.has_dropout, &words.dropout, &dropouts[0]);
	if (!status)
		status = attention_dropout(f, words.has_post, &words.post, &dropouts[1]);
	if (status)
		return status;
	return cudnn_of(f)->cudnnSetAttnDescriptor(d, words.mode, (int)words.heads, scaler,
		(int)words.type, (int)words.precision, (int)words.math, dropouts[0],
		dropouts[1], (int)words.q_size, (int)words.k_size, (int)words.v_size,
		(int)words.q_proj, (int)words.k_proj, (int)words.v_proj, (int)words.o_proj,
		(int)words.q_longest, (int)words.kv_longest, (int)words.batch, (int)words.beam);
}

int run_cudnnGetMultiHeadAttnBuffers(struct library_frame *f)
{
	const struct cudnn_library *l = f->library;
	cudnnAttnDescriptor_t attention = library_get_descriptor(f, CUDNN_KIND_ATTENTION);
	bool training = library_get_int(f) != 0;
	size_t weights = 0, workspace = 0, reserve = 0;
	uint64_t *out = f->answer->out;
	cudnnStatus_t status;

	if (library_stop(f, !l->cudnnGetMultiHeadAttnBuffers, "cudnnGetMultiHeadAttnBuffers"))
		return f->status;
	status = l->cudnnGetMultiHeadAttnBuffers(
		f->handle, attention, &weights, &workspace, training ? &reserve : NULL);
	out[0] = weights;
	out[1] = workspace;
	out[2] = reserve;
	return status;
}

int run_cudnnGetMultiHeadAttnWeights(struct library_frame *f)
{
	const struct cudnn_library *l = f->library;
	cudnnAttnDescriptor_t attention = library_get_descriptor(f, CUDNN_KIND_ATTENTION);
	int kind = (int)library_get_int(f);
	uint64_t bytes = library_get_long(f);
	void *start = library_get_device(f);
	cudnnTensorDescriptor_t tensor = NULL;
	void *address = NULL;
	uint64_t *out = f->answer->out;
	cudnnStatus_t status;

	if (library_stop(f, !l->cudnnGetMultiHeadAttnWeights, "cudnnGetMultiHeadAttnWeights"))
		return f->status;
	status = l->cudnnCreateTensorDescriptor(&tensor);
	if (!status)
		status = l->cudnnGetMultiHeadAttnWeights(
			f->handle, attention, kind, bytes, start, tensor, &address);
	if (!status) {
		out[0] = cudnn_distance(address, start);
		out[2] = address ? cudnn_words_of_tensor(l, tensor, (uint32_t *)(out + 3), 20)
				 : 0;
	}
	if (tensor)
		l->cudnnDestroyTensorDescriptor(tensor);
	return status;
}

/* --- windows ------------------------------------------------------------------------------ */

/* The words of the descriptor that comes next, which has been checked once it is got. */
static const void *words_next(const struct library_frame *f, size_t words, const void *none)
{
	return (size_t)(f->key_end - f->key) > words ? f->key + 1 : none;
}

struct windows {
	const int *low, *high;
	uint32_t lows, highs;
	int *room; /* both, as long as the library may read */
};

static void windows_get(struct library_frame *f, struct windows *w)
{
	w->low = library_get_ints(f, false, &w->lows);
	w->high = library_get_ints(f, false, &w->highs);
}

/* The library reads a number for each step of the queries, or for as many as the network has at
 * most: behind what came, the last step's again. */
static void windows_complete(struct library_frame *f, struct windows *w,
	const struct cudnn_attention_words *attention, const struct cudnn_seq_data_words *q)
{
	uint32_t steps, longest;

	if (f->stopped)
		return;
	steps = q->dim[CUDNN_SEQDATA_TIME_DIM];
	longest = steps > attention->q_longest ? steps : attention->q_longest;
	if (!w->low || !w->high || !steps || w->lows != steps || w->highs != steps) {
		library_refuse(f, CUDNN_STATUS_BAD_PARAM);
		return;
	}
	w->room = longest <= STEPS_MAX ? malloc(2 * sizeof(int) * (size_t)longest) : NULL;
	if (!w->room) {
		library_refuse(f, CUDNN_STATUS_NOT_SUPPORTED);
		return;
	}
	for (uint32_t i = 0; i < longest; i++) {
		w->room[i] = w->low[i < steps ? i : steps - 1];
		w->room[longest + i] = w->high[i < steps ? i : steps - 1];
	}
	w->low = w->room;
	w->high = w->room + longest;
}

/* What the products with windows share. */
struct attended {
	const struct cudnn_attention_words *shape;
	const struct cudnn_seq_data_words *steps; /* of the queries */
	cudnnAttnDescriptor_t attention;
	struct windows windows;
	void *q_lengths, *k_lengths, *weights, *workspace, *reserve;
	uint64_t weight_bytes, workspace_bytes, reserve_bytes;
};

static void attention_get(struct library_frame *f, struct attended *a)
{
	a->shape = words_next(f, sizeof(*a->shape) / 4, &no_attention);
	a->attention = library_get_descriptor(f, CUDNN_KIND_ATTENTION);
}

static void windows_and_lengths_get(struct library_frame *f, struct attended *a)
{
	windows_get(f, &a->windows);
	a->q_lengths = library_get_device(f);
	a->k_lengths = library_get_device(f);
}

static cudnnSeqDataDescriptor_t queries_get(struct library_frame *f, struct attended *a)
{
	a->steps = words_next(f, sizeof(*a->steps) / 4, &no_sequence);
	return library_get_descriptor(f, CUDNN_KIND_SEQ_DATA);
}

/* The rest; Q: the queries. False, where the call ends here. */
static bool memory_get(struct library_frame *f, struct attended *a, cudnnSeqDataDescriptor_t q,
	bool lacks, const char *name)
{
	a->weight_bytes = library_get_long(f);
	a->weights = library_get_device(f);
	a->workspace_bytes = library_get_long(f);
	a->workspace = library_get_device(f);
	a->reserve_bytes = library_get_long(f);
	a->reserve = library_get_device(f);
	if (!f->stopped && (!a->attention || !q))
		library_refuse(f, CUDNN_STATUS_BAD_PARAM);
	windows_complete(f, &a->windows, a->shape, a->steps);
	if (!library_stop(f, lacks, name))
		return true;
	free(a->windows.room);
	return false;
}

int run_cudnnMultiHeadAttnForward(struct library_frame *f)
{
	const struct cudnn_library *l = f->library;
	struct attended a = {0};
	cudnnSeqDataDescriptor_t q, k, v, o;
	void *q_at, *residuals, *k_at, *v_at, *o_at;
	cudnnStatus_t status;
	int current;

	attention_get(f, &a);
	current = (int)library_get_int(f);
	windows_and_lengths_get(f, &a);
	q = queries_get(f, &a);
	q_at = library_get_device(f);
	residuals = library_get_device(f);
	k = library_get_descriptor(f, CUDNN_KIND_SEQ_DATA);
	k_at = library_get_device(f);
	v = library_get_descriptor(f, CUDNN_KIND_SEQ_DATA);
	v_at = library_get_device(f);
	o = library_get_descriptor(f, CUDNN_KIND_SEQ_DATA);
	o_at = library_get_device(f);
	if (!memory_get(f, &a, q, !l->cudnnMultiHeadAttnForward, "cudnnMultiHeadAttnForward"))
		return f->status;
	status = l->cudnnMultiHeadAttnForward(f->handle, a.attention, current, a.windows.low,
		a.windows.high, a.q_lengths, a.k_lengths, q, q_at, residuals, k, k_at, v, v_at,
		o, o_at, a.weight_bytes, a.weights, a.workspace_bytes, a.workspace,
		a.reserve_bytes, a.reserve);
	free(a.windows.room);
	return status;
}

int run_cudnnMultiHeadAttnBackwardData(struct library_frame *f)
{
	const struct cudnn_library *l = f->library;
	struct attended a = {0};
	cudnnSeqDataDescriptor_t o, q, k, v;
	void *dout, *dq, *q_at, *dk, *k_at, *dv, *v_at;
	cudnnStatus_t status;

	attention_get(f, &a);
	windows_and_lengths_get(f, &a);
	o = library_get_descriptor(f, CUDNN_KIND_SEQ_DATA);
	dout = library_get_device(f);
	q = queries_get(f, &a);
	dq = library_get_device(f);
	q_at = library_get_device(f);
	k = library_get_descriptor(f, CUDNN_KIND_SEQ_DATA);
	dk = library_get_device(f);
	k_at = library_get_device(f);
	v = library_get_descriptor(f, CUDNN_KIND_SEQ_DATA);
	dv = library_get_device(f);
	v_at = library_get_device(f);
	if (!memory_get(f, &a, q, !l->cudnnMultiHeadAttnBackwardData,
		    "cudnnMultiHeadAttnBackwardData"))
		return f->status;
	status = l->cudnnMultiHeadAttnBackwardData(f->handle, a.attention, a.windows.low,
		a.windows.high, a.q_lengths, a.k_lengths, o, dout, q, dq, q_at, k, dk, k_at, v,
		dv, v_at, a.weight_bytes, a.weights, a.workspace_bytes, a.workspace,
		a.reserve_bytes, a.reserve);
	free(a.windows.room);
	return status;
}
