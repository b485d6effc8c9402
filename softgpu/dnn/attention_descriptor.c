/* SPDX-License-Identifier: Apache-2.0
 *
 * Sequence data and attention descriptors, and what follows from them.
 */
#include <string.h>

#include "softgpu/dnn/attention.h"

#define ENABLE_BIASES 2u
/* More than any network has: keeps products in 64 bits. */
#define MOST 65536

/* ---- sequences ---- */

DNN_CALL(cudnnCreateSeqDataDescriptor, struct dnn_seq **seq)
{
	if (!seq)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*seq = calloc(1, sizeof(**seq));
	return *seq ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;
}

DNN_CALL(cudnnDestroySeqDataDescriptor, struct dnn_seq *seq)
{
	if (seq)
		free(seq->lengths);
	free(seq);
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnSetSeqDataDescriptor, struct dnn_seq *seq, int type, int count, const int *dim,
	const int *axes, size_t sequences, const int *lengths, const void *fill)
{
	struct dnn_seq s = {.type = type, .count = (int)sequences};
	unsigned seen = 0;
	int *copy;

	(void)fill; /* what lies behind a sequence's end is 0 */
	if (!seq || !dim || !axes || !lengths)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!dnn_size(type))
		return CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE;
	if (count != SEQ_DIMS || axes[SEQ_DIMS - 1] != SEQ_VECTOR)
		return CUDNN_STATUS_BAD_PARAM;
	for (int i = 0; i < SEQ_DIMS; i++) {
		if (dim[i] < 1 || dim[i] > MOST || axes[i] < 0 || axes[i] >= SEQ_DIMS)
			return CUDNN_STATUS_BAD_PARAM;
		s.dim[i] = dim[i];
		s.axes[i] = axes[i];
		seen |= 1u << axes[i];
	}
	if (seen != (1u << SEQ_DIMS) - 1 ||
		sequences != (size_t)dim[SEQ_BATCH] * (size_t)dim[SEQ_BEAM] ||
		sequences > 1u << 24 || dnn_seq_elements(&s) > (int64_t)1 << 40)
		return CUDNN_STATUS_BAD_PARAM;
	for (size_t i = 0; i < sequences; i++)
		if (lengths[i] < 0 || lengths[i] > dim[SEQ_TIME])
			return CUDNN_STATUS_BAD_PARAM;
	copy = malloc(sizeof(*copy) * sequences);
	if (!copy)
		return CUDNN_STATUS_ALLOC_FAILED;
	memcpy(copy, lengths, sizeof(*copy) * sequences);
	s.lengths = copy;
	free(seq->lengths);
	*seq = s;
	return CUDNN_STATUS_SUCCESS;
}

int64_t dnn_seq_elements(const struct dnn_seq *seq)
{
	int64_t elements = 1;

	for (int i = 0; i < SEQ_DIMS; i++)
		if (__builtin_mul_overflow(elements, seq->dim[i], &elements))
			return INT64_MAX;
	return elements;
}

int dnn_seq_number(const struct dnn_seq *seq, int batch, int beam)
{
	for (int i = 0; i < SEQ_DIMS; i++) {
		if (seq->axes[i] == SEQ_BATCH)
			return batch * seq->dim[SEQ_BEAM] + beam;
		if (seq->axes[i] == SEQ_BEAM)
			return beam * seq->dim[SEQ_BATCH] + batch;
	}
	return 0;
}

/* The same as a tensor of batch, beam, step, element. */
static struct dnn_tensor seq_tensor(const struct dnn_seq *seq)
{
	static const int order[SEQ_DIMS] = {SEQ_BATCH, SEQ_BEAM, SEQ_TIME, SEQ_VECTOR};
	struct dnn_tensor t = {.type = seq->type, .count = SEQ_DIMS};
	int64_t stride[SEQ_DIMS], next = 1;

	for (int i = SEQ_DIMS - 1; i >= 0; i--) {
		stride[seq->axes[i]] = next;
		next *= seq->dim[seq->axes[i]];
	}
	for (int i = 0; i < SEQ_DIMS; i++) {
		t.dim[i] = seq->dim[order[i]];
		t.stride[i] = stride[order[i]];
	}
	return t;
}

double *dnn_seq_load(struct dnn_job *job, const struct dnn_seq *seq, const void *at)
{
	struct dnn_tensor t = seq_tensor(seq);

	return dnn_load(job, &t, at);
}

void dnn_seq_store(
	struct dnn_job *job, const struct dnn_seq *seq, void *at, const double *values)
{
	struct dnn_tensor t = seq_tensor(seq);

	dnn_store(job, &t, at, values, 1, 0);
}

/* ---- networks ---- */

DNN_CALL(cudnnCreateAttnDescriptor, struct dnn_attention **of)
{
	if (!of)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*of = calloc(1, sizeof(**of));
	return *of ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;
}

DNN_CALL(cudnnDestroyAttnDescriptor, struct dnn_attention *of)
{
	free(of);
	return CUDNN_STATUS_SUCCESS;
}

/* Scores are of vectors of one length: what Q and K are projected to. */
static bool fits(const struct dnn_attention *a)
{
	struct dnn_projection by[PROJECTIONS];

	dnn_projections(a, by);
	return by[Q].out == by[K].out;
}

DNN_CALL(cudnnSetAttnDescriptor, struct dnn_attention *of, unsigned mode, int heads,
	double scaler, int type, int precision, int math, struct dnn_dropout *dropout,
	struct dnn_dropout *post, int q_size, int k_size, int v_size, int q_proj, int k_proj,
	int v_proj, int o_proj, int q_longest, int kv_longest, int batch, int beam)
{
	const int sizes[] = {q_size, k_size, v_size, q_longest, kv_longest, batch, beam, heads};
	const int projected[] = {q_proj, k_proj, v_proj, o_proj};
	struct dnn_attention a = {mode, heads, scaler, type, {q_size, k_size, v_size},
		{q_proj, k_proj, v_proj, o_proj}, q_longest, kv_longest, batch, beam};

	(void)precision;
	(void)math;
	if (!of)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (mode > 3 || !(scaler >= 0))
		return CUDNN_STATUS_BAD_PARAM;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (sizes[i] < 1 || sizes[i] > MOST)
			return CUDNN_STATUS_BAD_PARAM;
	for (int i = 0; i < PROJECTIONS; i++)
		if (projected[i] < 0 || projected[i] > MOST)
			return CUDNN_STATUS_BAD_PARAM;
	if (type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_DOUBLE && type != CUDNN_DATA_HALF)
		return CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE;
	if (dnn_dropout_rate(dropout) > 0 || dnn_dropout_rate(post) > 0)
		return CUDNN_STATUS_NOT_SUPPORTED;
	if (!fits(&a))
		return CUDNN_STATUS_BAD_PARAM;
	*of = a;
	return CUDNN_STATUS_SUCCESS;
}

int64_t dnn_projections(const struct dnn_attention *of, struct dnn_projection *by)
{
	int64_t at = 0;

	for (int i = 0; i < PROJECTIONS; i++) {
		by[i].in = i == O ? by[V].out : of->size[i];
		by[i].used = of->projected[i] > 0;
		by[i].out = by[i].used ? of->projected[i] : by[i].in;
		by[i].weights = at;
		by[i].biases = -1;
		if (by[i].used)
			at += of->heads * by[i].in * by[i].out;
	}
	/* A bias for each head; the result has one for all. */
	for (int i = 0; i < PROJECTIONS && of->mode & ENABLE_BIASES; i++)
		if (by[i].used) {
			by[i].biases = at;
			at += (i == O ? 1 : of->heads) * by[i].out;
		}
	return at;
}

int64_t dnn_attention_out(const struct dnn_attention *of)
{
	struct dnn_projection by[PROJECTIONS];

	dnn_projections(of, by);
	return by[O].used ? by[O].out : of->heads * by[V].out;
}

int64_t dnn_attention_scores(const struct dnn_attention *of)
{
	return (int64_t)of->batch * of->beam * of->heads * of->q_longest * of->kv_longest;
}

DNN_CALL(cudnnGetMultiHeadAttnBuffers, struct dnn_handle *handle,
	const struct dnn_attention *of, size_t *weights, size_t *workspace, size_t *reserve)
{
	struct dnn_projection by[PROJECTIONS];
	int64_t scores;

	if (!handle || !of || !weights || !workspace)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!of->heads)
		return CUDNN_STATUS_BAD_PARAM;
	if (__builtin_mul_overflow((int64_t)of->batch * of->beam * of->heads,
		    (int64_t)of->q_longest * of->kv_longest, &scores) ||
		scores > (int64_t)1 << 40)
		return CUDNN_STATUS_NOT_SUPPORTED;
	*weights = (size_t)dnn_projections(of, by) * dnn_size(of->type);
	*workspace = 0;
	if (reserve)
		*reserve = (size_t)scores * sizeof(double);
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnGetMultiHeadAttnWeights, struct dnn_handle *handle,
	const struct dnn_attention *of, int kind, size_t bytes, const void *weights,
	struct dnn_tensor *tensor, void **at)
{
	struct dnn_projection by[PROJECTIONS];
	bool bias = kind >= PROJECTIONS;
	int64_t start;

	if (!handle || !of || !weights || !tensor || !at)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!of->heads || kind < 0 || kind >= 2 * PROJECTIONS)
		return CUDNN_STATUS_BAD_PARAM;
	if (bytes < (size_t)dnn_projections(of, by) * dnn_size(of->type))
		return CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT;
	kind %= PROJECTIONS;
	start = bias ? by[kind].biases : by[kind].used ? by[kind].weights : -1;
	*at = NULL;
	if (start < 0)
		return CUDNN_STATUS_SUCCESS;
	*tensor = (struct dnn_tensor){.type = of->type,
		.count = 3,
		.dim = {bias && kind == O ? 1 : of->heads, by[kind].out,
			bias ? 1 : by[kind].in}};
	dnn_packed(tensor, false);
	*at = (char *)(uintptr_t)weights + start * dnn_size(of->type);
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnGetSeqDataDescriptor, const struct dnn_seq *seq, int *type, int *count, int most,
	int *dim, int *axes, size_t *sequences, size_t most_lengths, int *lengths, void *fill)
{
	(void)fill;
	if (!seq)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (type)
		*type = seq->type;
	if (count)
		*count = SEQ_DIMS;
	for (int i = 0; i < most && i < SEQ_DIMS; i++) {
		if (dim)
			dim[i] = seq->dim[i];
		if (axes)
			axes[i] = seq->axes[i];
	}
	if (sequences)
		*sequences = (size_t)seq->count;
	for (size_t i = 0; lengths && i < most_lengths && i < (size_t)seq->count; i++)
		lengths[i] = seq->lengths[i];
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnGetAttnDescriptor, const struct dnn_attention *of, unsigned *mode, int *heads,
	double *scaler, int *type, int *precision, int *math, struct dnn_dropout **dropout,
	struct dnn_dropout **post, int *q_size, int *k_size, int *v_size, int *q_proj,
	int *k_proj, int *v_proj, int *o_proj, int *q_longest, int *kv_longest, int *batch,
	int *beam)
{
	int *const to[] = {heads, type, precision, q_size, k_size, v_size, q_proj, k_proj,
		v_proj, o_proj, q_longest, kv_longest, batch, beam};
	if (!of)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	for (size_t i = 0; i < sizeof(to) / sizeof(to[0]); i++) {
		const int from[] = {of->heads, of->type, of->type, of->size[Q], of->size[K],
			of->size[V], of->projected[Q], of->projected[K], of->projected[V],
			of->projected[O], of->q_longest, of->kv_longest, of->batch, of->beam};

		if (to[i])
			*to[i] = from[i];
	}
	if (mode)
		*mode = of->mode;
	if (scaler)
		*scaler = of->scaler;
	if (math)
		*math = 0;
	if (dropout)
		*dropout = NULL;
	if (post)
		*post = NULL;
	return CUDNN_STATUS_SUCCESS;
}
