/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls of multi-head attention. The reserve space has the scores after softmax, in double,
 * from which gradients are computed.
 */
#include <string.h>

#include "softgpu/dnn/attention.h"

enum direction { FORWARD, BACK_DATA, BACK_WEIGHTS };

struct attention_job {
	struct dnn_job job;
	struct dnn_attention of;
	enum direction direction;
	int current, add;
	struct dnn_seq seq[PROJECTIONS]; /* Q, K, V and the result; lengths are not these */
	const void *at[PROJECTIONS];
	void *to[PROJECTIONS]; /* of a gradient; of a result: to[O] */
	const void *residuals, *weights;
	void *dweights;
	const int *q_lengths, *kv_lengths; /* the device's; NULL: in `numbers` */
	double *reserve;
	int sequences[2]; /* lengths of the result's and of the keys' descriptors */
	int numbers[];	  /* low and high of each step, these lengths */
};

/* Lengths by batch and beam. */
static int *lengths_of(
	struct attention_job *j, const struct dnn_seq *seq, const int *device, const int *host)
{
	int n = seq->dim[SEQ_BATCH] * seq->dim[SEQ_BEAM];
	const int *from = device ? dnn_reach(&j->job, device, sizeof(int) * (size_t)n) : host;
	int *to = from ? malloc(sizeof(int) * (size_t)n) : NULL;

	for (int b = 0; to && b < seq->dim[SEQ_BATCH]; b++)
		for (int k = 0; k < seq->dim[SEQ_BEAM]; k++)
			to[b * seq->dim[SEQ_BEAM] + k] = from[dnn_seq_number(seq, b, k)];
	if (!to)
		dnn_fail(&j->job);
	return to;
}

static double *load_weights(struct attention_job *j, const void *at, int64_t count)
{
	struct dnn_tensor t = {.type = j->of.type, .count = 1, .dim = {count}, .stride = {1}};

	return count ? dnn_load(&j->job, &t, at) : dnn_values_new(&j->job, 0);
}

static void forward(struct attention_job *j, struct dnn_attend *a)
{
	int64_t n = dnn_seq_elements(&j->seq[O]), wide = dnn_attention_out(&j->of);
	cleanup_values double *out = j->current < 0
					     ? dnn_values_new(&j->job, n)
					     : dnn_seq_load(&j->job, &j->seq[O], j->to[O]);
	struct dnn_seq like = j->seq[Q];
	cleanup_values double *more = NULL;

	like.dim[SEQ_VECTOR] = j->seq[O].dim[SEQ_VECTOR];
	if (j->residuals)
		more = dnn_seq_load(&j->job, &like, j->residuals);
	if (!out || (j->residuals && !more))
		return;
	for (int64_t row = 0; j->current >= 0 && row < a->rows[Q]; row++)
		if (row % a->q_steps == j->current)
			memset(out + row * wide, 0, sizeof(*out) * (size_t)wide);
	dnn_attend(a, out);
	for (int64_t i = 0; more && i < n; i++)
		if (j->current < 0 || i / wide % a->q_steps == j->current)
			out[i] += more[i];
	dnn_seq_store(&j->job, &j->seq[O], j->to[O], out);
}

static void back(
	struct attention_job *j, struct dnn_attend *a, double *const *x, int64_t weights)
{
	cleanup_values double *dout = dnn_seq_load(&j->job, &j->seq[O], j->at[O]);
	struct dnn_tensor all = {
		.type = j->of.type, .count = 1, .dim = {weights}, .stride = {1}};

	if (!dout)
		return;
	dnn_attend_back(a, dout);
	for (int i = Q; i <= V && j->direction == BACK_DATA; i++) {
		cleanup_values double *dx =
			dnn_values_new(&j->job, dnn_seq_elements(&j->seq[i]));

		if (!dx)
			return;
		dnn_attend_input(a, i, dx);
		dnn_seq_store(&j->job, &j->seq[i], j->to[i], dx);
	}
	if (j->direction == BACK_WEIGHTS && weights) {
		cleanup_values double *dw = dnn_values_new(&j->job, weights);

		if (!dw)
			return;
		dnn_attend_weights(a, (const double *const *)x, dout, dw);
		dnn_store(&j->job, &all, j->dweights, dw, 1, j->add ? 1 : 0);
	}
}

/* Its arrays, all there or the handle failed. */
static bool attend_begin(struct attention_job *j, struct dnn_attend *a, double **x)
{
	int64_t heads = j->of.heads, scores;
	bool all = true;

	a->beams = j->seq[Q].dim[SEQ_BEAM];
	a->kv_beams = j->seq[K].dim[SEQ_BEAM];
	a->q_steps = j->seq[Q].dim[SEQ_TIME];
	a->kv_steps = j->seq[K].dim[SEQ_TIME];
	for (int i = Q; i <= V; i++) {
		a->rows[i] = dnn_seq_elements(&j->seq[i]) / j->seq[i].dim[SEQ_VECTOR];
		x[i] = dnn_seq_load(&j->job, &j->seq[i], j->at[i]);
		a->projected[i] = dnn_values_new(&j->job, a->rows[i] * heads * a->by[i].out);
		a->d_projected[i] = dnn_values_new(&j->job, a->rows[i] * heads * a->by[i].out);
		all &= x[i] && a->projected[i] && a->d_projected[i];
	}
	scores = a->rows[Q] * heads * a->kv_steps;
	a->scores = j->reserve ? dnn_reach(&j->job, j->reserve, (uint64_t)scores * 8)
			       : dnn_values_new(&j->job, scores);
	a->mixed = dnn_values_new(&j->job, a->rows[Q] * heads * a->by[V].out);
	return all && a->scores && a->mixed;
}

static void attend_end(struct attention_job *j, struct dnn_attend *a, double **x)
{
	for (int i = Q; i <= V; i++) {
		free(x[i]);
		free(a->projected[i]);
		free(a->d_projected[i]);
	}
	if (!j->reserve)
		free(a->scores);
	free(a->mixed);
}

static void attention_run(struct dnn_job *job)
{
	struct attention_job *j = (void *)job;
	struct dnn_attend a = {.of = &j->of, .current = j->current};
	int64_t count = dnn_projections(&j->of, a.by);
	int steps = j->seq[Q].dim[SEQ_TIME];
	int *q_lengths = lengths_of(j, &j->seq[O], j->q_lengths, j->numbers + 2 * steps);
	int *kv_lengths = lengths_of(
		j, &j->seq[K], j->kv_lengths, j->numbers + 2 * steps + j->sequences[0]);
	cleanup_values double *weights = load_weights(j, j->weights, count);
	double *x[PROJECTIONS - 1] = {NULL};

	a.weights = weights;
	a.low = j->numbers;
	a.high = j->numbers + steps;
	a.q_length = q_lengths;
	a.kv_length = kv_lengths;
	if (q_lengths && kv_lengths && weights && attend_begin(j, &a, x)) {
		for (int i = Q; i <= V; i++)
			dnn_attend_project(&a, i, x[i]);
		if (j->direction == FORWARD)
			forward(j, &a);
		else
			back(j, &a, x, count);
	}
	attend_end(j, &a, x);
	free(q_lengths);
	free(kv_lengths);
}

/* ---- the calls ---- */

static bool shapes_fit(const struct dnn_attention *of, const struct dnn_seq *const *seq)
{
	const int *q = seq[Q]->dim, *k = seq[K]->dim, *v = seq[V]->dim, *o = seq[O]->dim;

	for (int i = Q; i <= V; i++)
		if (!seq[i]->count || seq[i]->dim[SEQ_VECTOR] != of->size[i] ||
			seq[i]->dim[SEQ_BATCH] != q[SEQ_BATCH])
			return false;
	return seq[O]->count && o[SEQ_VECTOR] == dnn_attention_out(of) &&
	       o[SEQ_BATCH] == q[SEQ_BATCH] && o[SEQ_BEAM] == q[SEQ_BEAM] &&
	       o[SEQ_TIME] == q[SEQ_TIME] && k[SEQ_TIME] == v[SEQ_TIME] &&
	       k[SEQ_BEAM] == v[SEQ_BEAM] && k[SEQ_BEAM] == (of->mode & 1 ? q[SEQ_BEAM] : 1) &&
	       q[SEQ_TIME] <= of->q_longest && k[SEQ_TIME] <= of->kv_longest &&
	       q[SEQ_BATCH] <= of->batch && q[SEQ_BEAM] <= of->beam;
}

/* A job with its descriptors and windows, LOW and HIGH or, where they are NULL, of all keys. */
static struct attention_job *attention_new(struct dnn_handle *handle,
	const struct dnn_attention *of, const struct dnn_seq *const *seq, const int *low,
	const int *high, size_t reserve_bytes, void *reserve, int *status)
{
	struct attention_job *j;
	int steps, *numbers;

	*status = CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	for (int i = 0; i < PROJECTIONS; i++)
		if (!seq[i])
			return NULL;
	if (!of)
		return NULL;
	*status = CUDNN_STATUS_BAD_PARAM;
	if (!of->heads || !shapes_fit(of, seq))
		return NULL;
	*status = CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT;
	if (reserve && reserve_bytes < (size_t)dnn_attention_scores(of) * sizeof(double))
		return NULL;
	steps = seq[Q]->dim[SEQ_TIME];
	j = dnn_job_new(handle, attention_run,
		sizeof(*j) + sizeof(int) * ((size_t)steps * 2 + (size_t)seq[O]->count +
						   (size_t)seq[K]->count),
		status);
	if (!j)
		return NULL;
	numbers = j->numbers;
	for (int i = 0; i < steps; i++) {
		numbers[i] = low ? low[i] : 0;
		numbers[steps + i] = high ? high[i] : seq[K]->dim[SEQ_TIME];
	}
	memcpy(numbers + 2 * steps, seq[O]->lengths, sizeof(int) * (size_t)seq[O]->count);
	memcpy(numbers + 2 * steps + seq[O]->count, seq[K]->lengths,
		sizeof(int) * (size_t)seq[K]->count);
	j->of = *of;
	j->current = -1;
	j->reserve = reserve;
	for (int i = 0; i < PROJECTIONS; i++)
		j->seq[i] = *seq[i];
	j->sequences[0] = seq[O]->count;
	j->sequences[1] = seq[K]->count;
	return j;
}

DNN_CALL(cudnnMultiHeadAttnForward, struct dnn_handle *handle, const struct dnn_attention *of,
	int current, const int *low, const int *high, const int *q_lengths,
	const int *kv_lengths, const struct dnn_seq *q, const void *q_at, const void *residuals,
	const struct dnn_seq *k, const void *k_at, const struct dnn_seq *v, const void *v_at,
	const struct dnn_seq *o, void *o_at, size_t weight_bytes, const void *weights,
	size_t workspace_bytes, void *workspace, size_t reserve_bytes, void *reserve)
{
	const struct dnn_seq *const seq[] = {q, k, v, o};
	struct attention_job *j;
	int status;

	(void)weight_bytes;
	(void)workspace_bytes;
	(void)workspace;
	if (!low || !high || !q_lengths || !kv_lengths || !q_at || !k_at || !v_at || !o_at)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	/* Training is of all steps. */
	if (current >= 0 && reserve)
		return CUDNN_STATUS_BAD_PARAM;
	j = attention_new(handle, of, seq, low, high, reserve_bytes, reserve, &status);
	if (!j)
		return status;
	j->direction = FORWARD;
	j->current = current;
	j->q_lengths = q_lengths;
	j->kv_lengths = kv_lengths;
	j->at[Q] = q_at;
	j->at[K] = k_at;
	j->at[V] = v_at;
	j->to[O] = o_at;
	j->residuals = residuals;
	j->weights = weights;
	return dnn_submit(&j->job);
}

DNN_CALL(cudnnMultiHeadAttnBackwardData, struct dnn_handle *handle,
	const struct dnn_attention *of, const int *low, const int *high, const int *q_lengths,
	const int *kv_lengths, const struct dnn_seq *o, const void *dout,
	const struct dnn_seq *q, void *dq, const void *q_at, const struct dnn_seq *k, void *dk,
	const void *k_at, const struct dnn_seq *v, void *dv, const void *v_at,
	size_t weight_bytes, const void *weights, size_t workspace_bytes, void *workspace,
	size_t reserve_bytes, void *reserve)
{
	const struct dnn_seq *const seq[] = {q, k, v, o};
	struct attention_job *j;
	int status;

	(void)weight_bytes;
	(void)workspace_bytes;
	(void)workspace;
	if (!low || !high || !q_lengths || !kv_lengths || !dout || !dq || !q_at || !dk ||
		!k_at || !dv || !v_at || !reserve)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	j = attention_new(handle, of, seq, low, high, reserve_bytes, reserve, &status);
	if (!j)
		return status;
	j->direction = BACK_DATA;
	j->q_lengths = q_lengths;
	j->kv_lengths = kv_lengths;
	memcpy(j->at, ((const void *[]){q_at, k_at, v_at, dout}), sizeof(j->at));
	memcpy(j->to, ((void *[]){dq, dk, dv, NULL}), sizeof(j->to));
	j->weights = weights;
	return dnn_submit(&j->job);
}

DNN_CALL(cudnnMultiHeadAttnBackwardWeights, struct dnn_handle *handle,
	const struct dnn_attention *of, int add, const struct dnn_seq *q, const void *q_at,
	const struct dnn_seq *k, const void *k_at, const struct dnn_seq *v, const void *v_at,
	const struct dnn_seq *o, const void *dout, size_t weight_bytes, const void *weights,
	void *dweights, size_t workspace_bytes, void *workspace, size_t reserve_bytes,
	void *reserve)
{
	const struct dnn_seq *const seq[] = {q, k, v, o};
	struct attention_job *j;
	int status;

	(void)weight_bytes;
	(void)workspace_bytes;
	(void)workspace;
	if (!q_at || !k_at || !v_at || !dout || !weights || !dweights || !reserve)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	j = attention_new(handle, of, seq, NULL, NULL, reserve_bytes, reserve, &status);
	if (!j)
		return status;
	j->direction = BACK_WEIGHTS;
	j->add = add == 0; /* CUDNN_WGRAD_MODE_ADD */
	memcpy(j->at, ((const void *[]){q_at, k_at, v_at, dout}), sizeof(j->at));
	j->weights = weights;
	j->dweights = dweights;
	return dnn_submit(&j->job);
}
