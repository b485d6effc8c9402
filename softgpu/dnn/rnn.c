/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls of recurrent networks. The reserve space has the records of training, in double,
 * and behind them what dropout kept.
 */
#include <string.h>

#include "softgpu/dnn/rnn.h"

enum direction { FORWARD, BACK_DATA, BACK_WEIGHTS };

struct rnn_job {
	struct dnn_job job;
	struct dnn_rnn of;
	struct dnn_dropout dropout;
	enum direction direction;
	bool training, add;
	struct dnn_rnn_data x, y; /* lengths are not theirs */
	struct dnn_tensor h, c;
	const int *device_lengths;
	const void *x_at, *y_at, *dy, *hx, *cx, *dhy, *dcy, *weights;
	void *y_to, *hy, *cy, *dx, *dhx, *dcx, *dweights;
	void *reserve;
	int lengths[]; /* where the device has none */
};

/* ---- data ---- */

/* Where a vector is in memory, in vectors; -1: nowhere. */
static int64_t vector_at(const struct dnn_rnn_data *d, const int *lengths, int64_t t, int64_t s)
{
	int64_t at = s;

	if (d->layout == 2)
		return s * d->longest + t;
	if (d->layout == 0)
		return t * d->batch + s;
	if (t >= lengths[s])
		return -1;
	for (int64_t i = 0; i < d->batch; i++)
		at += lengths[i] < t ? lengths[i] : t;
	return at;
}

/* All vectors as they are in memory. */
static struct dnn_tensor data_tensor(const struct dnn_rnn_data *d, const int *lengths)
{
	struct dnn_tensor t = {.type = d->type, .count = 2, .dim = {0, d->vector}};

	t.dim[0] = (int64_t)d->longest * d->batch;
	for (int64_t i = 0; d->layout == 1 && i < d->batch; i++)
		t.dim[0] -= d->longest - lengths[i];
	dnn_packed(&t, false);
	return t;
}

/* The values by step, sequence and element; zeros where there are none. */
static double *data_load(
	struct rnn_job *j, const struct dnn_rnn_data *d, const int *lengths, const void *at)
{
	struct dnn_tensor t = data_tensor(d, lengths);
	int64_t rows = (int64_t)d->longest * d->batch, n = d->vector;
	double *to = dnn_values_new(&j->job, rows * n);
	cleanup_values double *from = to && t.dim[0] ? dnn_load(&j->job, &t, at) : NULL;

	for (int64_t row = 0; from && row < rows; row++)
		if (row / d->batch < lengths[row % d->batch])
			memcpy(to + row * n,
				from + n * vector_at(
						   d, lengths, row / d->batch, row % d->batch),
				sizeof(*to) * (size_t)n);
	return to;
}

/* What is behind a sequence's end gets the filling, or stays. */
static void data_store(struct rnn_job *j, const struct dnn_rnn_data *d, const int *lengths,
	void *at, const double *values)
{
	struct dnn_tensor t = data_tensor(d, lengths);
	int64_t rows = (int64_t)d->longest * d->batch, n = d->vector;
	cleanup_values double *to = t.dim[0] ? dnn_load(&j->job, &t, at) : NULL;

	if (!to)
		return;
	for (int64_t row = 0; row < rows; row++) {
		int64_t place = vector_at(d, lengths, row / d->batch, row % d->batch);

		if (row / d->batch < lengths[row % d->batch])
			memcpy(to + n * place, values + row * n, sizeof(*to) * (size_t)n);
		else if (place >= 0 && d->fills)
			for (int64_t i = 0; i < n; i++)
				to[n * place + i] = d->fill;
	}
	dnn_store(&j->job, &t, at, to, 1, 0);
}

/* ---- the job ---- */

/* States by layer and direction, sequence and element; zeros where there are none. */
static double *state_load(struct rnn_job *j, const struct dnn_tensor *t, const void *at, int n)
{
	int64_t rows = (int64_t)j->of.layers * j->of.directions * j->x.batch;

	return at ? dnn_load(&j->job, t, at) : dnn_values_new(&j->job, rows * n);
}

struct states {
	double *hx, *cx, *dhy, *dcy, *h, *c; /* h, c: of the result */
};

static bool states_load(struct rnn_job *j, struct states *s)
{
	int n = j->of.hidden, p = j->of.projected;

	s->hx = state_load(j, &j->h, j->hx, p);
	s->cx = state_load(j, &j->c, j->cx, n);
	s->dhy = state_load(j, &j->h, j->dhy, p);
	s->dcy = state_load(j, &j->c, j->dcy, n);
	s->h = state_load(j, &j->h, NULL, p);
	s->c = state_load(j, &j->c, NULL, n);
	return s->hx && s->cx && s->dhy && s->dcy && s->h && s->c;
}

static void states_free(struct states *s)
{
	free(s->hx);
	free(s->cx);
	free(s->dhy);
	free(s->dcy);
	free(s->h);
	free(s->c);
}

static void states_store(struct rnn_job *j, const struct states *s, void *h, void *c)
{
	if (h)
		dnn_store(&j->job, &j->h, h, s->h, 1, 0);
	if (c)
		dnn_store(&j->job, &j->c, c, s->c, 1, 0);
}

static void forward(struct rnn_job *j, struct dnn_recur *r, struct states *s)
{
	int64_t rows = r->steps * r->batch;
	cleanup_values double *x = data_load(j, &j->x, r->lengths, j->x_at);
	cleanup_values double *y = dnn_values_new(&j->job, rows * j->y.vector);

	if (!x || !y)
		return;
	if (r->kept && !dnn_dropout_draw(&j->job, j->of.dropout, r->kept,
			       dnn_recur_kept(&j->of, r->steps, r->batch)))
		return;
	memcpy(dnn_recur_input(r, 0), x, sizeof(*x) * (size_t)(rows * j->x.vector));
	dnn_recur(r, s->hx, s->cx, y, s->h, s->c);
	data_store(j, &j->y, r->lengths, j->y_to, y);
	states_store(j, s, j->hy, j->cy);
}

static void back_data(struct rnn_job *j, struct dnn_recur *r, struct states *s)
{
	cleanup_values double *dy = data_load(j, &j->y, r->lengths, j->dy);
	cleanup_values double *dx = dnn_values_new(&j->job, r->steps * r->batch * j->x.vector);

	if (!dy || !dx)
		return;
	dnn_recur_back(r, s->hx, s->cx, dy, s->dhy, s->dcy, dx, s->h, s->c);
	data_store(j, &j->x, r->lengths, j->dx, dx);
	states_store(j, s, j->dhx, j->dcx);
}

static void back_weights(
	struct rnn_job *j, struct dnn_recur *r, struct states *s, const struct dnn_tensor *all)
{
	cleanup_values double *dw = dnn_values_new(&j->job, all->dim[0]);

	if (!dw)
		return;
	dnn_recur_weights(r, s->hx, dw);
	dnn_store(&j->job, all, j->dweights, dw, 1, j->add ? 1 : 0);
}

static bool lengths_right(const struct rnn_job *j, const int *lengths)
{
	for (int i = 0; lengths && i < j->x.batch; i++)
		if (lengths[i] < 0 || lengths[i] > j->x.longest)
			return false;
	return lengths;
}

static void rnn_run(struct dnn_job *job)
{
	struct rnn_job *j = (void *)job;
	struct dnn_tensor all = {.type = j->of.type, .count = 1, .stride = {1}};
	struct dnn_recur r = {.of = &j->of,
		.steps = j->x.longest,
		.batch = j->x.batch,
		.gates = dnn_rnn_gates(&j->of),
		.lengths = j->lengths};
	int64_t doubles = dnn_recur_memory(&j->of, r.steps, r.batch);
	int64_t kept = dnn_recur_kept(&j->of, r.steps, r.batch);
	cleanup_values double *weights = NULL, *own = NULL;
	struct states s = {0};

	j->of.dropout = &j->dropout;
	all.dim[0] = dnn_rnn_layer(&j->of, 0, 0, NULL);
	if (j->device_lengths)
		r.lengths = dnn_reach(job, j->device_lengths, sizeof(int) * (size_t)r.batch);
	if (!lengths_right(j, r.lengths)) {
		dnn_fail(job);
		return;
	}
	if (j->training)
		r.memory = dnn_reach(job, j->reserve, (uint64_t)doubles * 8 + (uint64_t)kept);
	else
		r.memory = own = dnn_values_new(job, doubles);
	if (j->training && kept && r.memory)
		r.kept = (uint8_t *)(r.memory + doubles);
	r.weights = weights = j->weights ? dnn_load(job, &all, j->weights) : NULL;
	if (r.memory && states_load(j, &s) && !job->handle->failed) {
		if (j->direction == FORWARD)
			forward(j, &r, &s);
		else if (j->direction == BACK_DATA)
			back_data(j, &r, &s);
		else
			back_weights(j, &r, &s, &all);
	}
	states_free(&s);
}

/* ---- the calls ---- */

DNN_CALL(cudnnGetRNNTempSpaceSizes, struct dnn_handle *handle, const struct dnn_rnn *rnn,
	int mode, const struct dnn_rnn_data *x, size_t *workspace, size_t *reserve)
{
	int64_t doubles;

	if (!handle || !rnn || !x)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!rnn->layers || !x->batch || mode < 0 || mode > 1)
		return CUDNN_STATUS_BAD_PARAM;
	doubles = dnn_recur_memory(rnn, x->longest, x->batch);
	if (doubles < 0)
		return CUDNN_STATUS_NOT_SUPPORTED;
	if (workspace)
		*workspace = 0;
	if (reserve)
		*reserve = !mode ? 0
				 : (size_t)doubles * 8 +
					   (size_t)dnn_recur_kept(rnn, x->longest, x->batch);
	return CUDNN_STATUS_SUCCESS;
}

/* It may have more dimensions, of one element each: PyTorch 2.15's have five. */
static bool state_fits(const struct dnn_rnn *of, const struct dnn_tensor *t, int batch, int n)
{
	if (!dnn_tensor_right(t) || t->count < 3)
		return false;
	for (int i = 3; i < t->count; i++)
		if (t->dim[i] != 1)
			return false;
	return t->dim[0] == of->layers * of->directions && t->dim[1] == batch && t->dim[2] == n;
}

/* A job with its descriptors; c may be NULL. */
static struct rnn_job *rnn_new(struct dnn_handle *handle, const struct dnn_rnn *of,
	const int *lengths, const struct dnn_rnn_data *x, const struct dnn_rnn_data *y,
	const struct dnn_tensor *h, const struct dnn_tensor *c, size_t weight_bytes,
	size_t reserve_bytes, bool training, int *status)
{
	struct rnn_job *j;
	int64_t doubles;

	*status = CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!of || !x || !y)
		return NULL;
	*status = CUDNN_STATUS_BAD_PARAM;
	if (!of->layers || !x->batch || x->longest != y->longest || x->batch != y->batch ||
		x->vector != of->input || y->vector != of->directions * of->projected ||
		x->type != of->type || y->type != of->type ||
		(h && !state_fits(of, h, x->batch, of->projected)) ||
		(c && of->cell == RNN_LSTM && !state_fits(of, c, x->batch, of->hidden)))
		return NULL;
	doubles = dnn_recur_memory(of, x->longest, x->batch);
	*status = CUDNN_STATUS_NOT_SUPPORTED;
	if (doubles < 0)
		return NULL;
	*status = CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT;
	if (weight_bytes < (size_t)dnn_rnn_layer(of, 0, 0, NULL) * dnn_size(of->type) ||
		(training && reserve_bytes <
				     (size_t)doubles * 8 +
					     (size_t)dnn_recur_kept(of, x->longest, x->batch)))
		return NULL;
	j = dnn_job_new(handle, rnn_run, sizeof(*j) + sizeof(int) * (size_t)x->batch, status);
	if (!j)
		return NULL;
	memcpy(j->lengths, x->lengths, sizeof(int) * (size_t)x->batch);
	j->device_lengths = lengths;
	j->of = *of;
	if (of->dropout)
		j->dropout = *of->dropout;
	j->x = *x;
	j->y = *y;
	if (h)
		j->h = *h;
	if (c)
		j->c = *c;
	j->training = training;
	return j;
}

DNN_CALL(cudnnRNNForward, struct dnn_handle *handle, const struct dnn_rnn *of, int mode,
	const int32_t *lengths, const struct dnn_rnn_data *x, const void *x_at,
	const struct dnn_rnn_data *y, void *y_at, const struct dnn_tensor *h, const void *hx,
	void *hy, const struct dnn_tensor *c, const void *cx, void *cy, size_t weight_bytes,
	const void *weights, size_t workspace_bytes, void *workspace, size_t reserve_bytes,
	void *reserve)
{
	struct rnn_job *j;
	int status;

	(void)workspace_bytes;
	(void)workspace;
	if (!x_at || !y_at || !weights || (mode && !reserve) || (!h && (hx || hy)) ||
		(!c && (cx || cy)))
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	j = rnn_new(
		handle, of, lengths, x, y, h, c, weight_bytes, reserve_bytes, mode, &status);
	if (!j)
		return status;
	j->direction = FORWARD;
	j->x_at = x_at;
	j->y_to = y_at;
	j->hx = hx;
	j->hy = hy;
	j->cx = of->cell == RNN_LSTM ? cx : NULL;
	j->cy = of->cell == RNN_LSTM ? cy : NULL;
	j->weights = weights;
	j->reserve = reserve;
	return dnn_submit(&j->job);
}

DNN_CALL(cudnnRNNBackwardData_v8, struct dnn_handle *handle, const struct dnn_rnn *of,
	const int32_t *lengths, const struct dnn_rnn_data *y, const void *y_at, const void *dy,
	const struct dnn_rnn_data *x, void *dx, const struct dnn_tensor *h, const void *hx,
	const void *dhy, void *dhx, const struct dnn_tensor *c, const void *cx, const void *dcy,
	void *dcx, size_t weight_bytes, const void *weights, size_t workspace_bytes,
	void *workspace, size_t reserve_bytes, void *reserve)
{
	struct rnn_job *j;
	int status;

	(void)workspace_bytes;
	(void)workspace;
	if (!y_at || !dy || !dx || !weights || !reserve || (!h && (hx || dhy || dhx)) ||
		(!c && (cx || dcy || dcx)))
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	j = rnn_new(
		handle, of, lengths, x, y, h, c, weight_bytes, reserve_bytes, true, &status);
	if (!j)
		return status;
	j->direction = BACK_DATA;
	j->dy = dy;
	j->dx = dx;
	j->hx = hx;
	j->dhy = dhy;
	j->dhx = dhx;
	if (of->cell == RNN_LSTM) {
		j->cx = cx;
		j->dcy = dcy;
		j->dcx = dcx;
	}
	j->weights = weights;
	j->reserve = reserve;
	return dnn_submit(&j->job);
}

DNN_CALL(cudnnRNNBackwardWeights_v8, struct dnn_handle *handle, const struct dnn_rnn *of,
	int add, const int32_t *lengths, const struct dnn_rnn_data *x, const void *x_at,
	const struct dnn_tensor *h, const void *hx, const struct dnn_rnn_data *y,
	const void *y_at, size_t weight_bytes, void *dweights, size_t workspace_bytes,
	void *workspace, size_t reserve_bytes, void *reserve)
{
	struct rnn_job *j;
	int status;

	(void)workspace_bytes;
	(void)workspace;
	if (!x_at || !y_at || !dweights || !reserve || (!h && hx))
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (add < 0 || add > 1)
		return CUDNN_STATUS_BAD_PARAM;
	j = rnn_new(
		handle, of, lengths, x, y, h, NULL, weight_bytes, reserve_bytes, true, &status);
	if (!j)
		return status;
	j->direction = BACK_WEIGHTS;
	j->add = add == 0; /* CUDNN_WGRAD_MODE_ADD */
	j->hx = hx;
	j->dweights = dweights;
	j->reserve = reserve;
	return dnn_submit(&j->job);
}
