/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention in plain loops over arrays of double. A row is a step of one sequence.
 */
#include <math.h>
#include <string.h>

#include "softgpu/dnn/attention.h"

/* ---- projections ---- */

void dnn_attend_project(struct dnn_attend *a, int which, const double *x)
{
	const struct dnn_projection *by = &a->by[which];
	int64_t heads = a->of->heads;
	double *to = a->projected[which];

	for (int64_t r = 0; r < a->rows[which]; r++, x += by->in)
		for (int64_t i = 0; i < heads * by->out; i++, to++) {
			const double *w = a->weights + by->weights + i * by->in;

			if (!by->used) {
				*to = x[i % by->in];
				continue;
			}
			*to = by->biases < 0 ? 0 : a->weights[by->biases + i];
			for (int64_t j = 0; j < by->in; j++)
				*to += w[j] * x[j];
		}
}

void dnn_attend_input(const struct dnn_attend *a, int which, double *dx)
{
	const struct dnn_projection *by = &a->by[which];
	int64_t heads = a->of->heads;
	const double *from = a->d_projected[which];

	for (int64_t r = 0; r < a->rows[which]; r++, dx += by->in)
		for (int64_t i = 0; i < heads * by->out; i++, from++) {
			const double *w = a->weights + by->weights + i * by->in;

			if (!by->used)
				dx[i % by->in] += *from;
			else
				for (int64_t j = 0; j < by->in; j++)
					dx[j] += w[j] * *from;
		}
}

static void input_weights(const struct dnn_attend *a, int which, const double *x, double *dw)
{
	const struct dnn_projection *by = &a->by[which];
	int64_t heads = a->of->heads;
	const double *from = a->d_projected[which];

	for (int64_t r = 0; by->used && r < a->rows[which]; r++, x += by->in)
		for (int64_t i = 0; i < heads * by->out; i++, from++) {
			for (int64_t j = 0; j < by->in; j++)
				dw[by->weights + i * by->in + j] += *from * x[j];
			if (by->biases >= 0)
				dw[by->biases + i] += *from;
		}
}

/* ---- one step of one sequence ---- */

struct place {
	int64_t row, first; /* of Q; the first of K and V */
	int64_t low, high;  /* which of these count */
	int64_t step;
	bool valid;
};

static struct place place_of(const struct dnn_attend *a, int64_t row)
{
	int64_t step = row % a->q_steps, sequence = row / a->q_steps;
	int64_t batch = sequence / a->beams, beam = sequence % a->beams;
	int64_t other = batch * a->kv_beams + (a->kv_beams == 1 ? 0 : beam);
	struct place p = {.row = row, .first = other * a->kv_steps, .step = step};

	p.low = a->low[step] > 0 ? a->low[step] : 0;
	p.high = a->high[step] < a->kv_length[other] ? a->high[step] : a->kv_length[other];
	p.high = p.high < a->kv_steps ? p.high : a->kv_steps;
	p.valid = step < a->q_length[sequence] && (a->current < 0 || step == a->current);
	return p;
}

static double *vector_of(
	const struct dnn_attend *a, double *const *from, int which, int64_t row, int64_t head)
{
	return from[which] + (row * a->of->heads + head) * a->by[which].out;
}

static double product(const double *a, const double *b, int64_t n)
{
	double sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

static double *scores_of(const struct dnn_attend *a, const struct place *p, int64_t head)
{
	return a->scores + (p->row * a->of->heads + head) * a->kv_steps;
}

static void softmax_scores(const struct dnn_attend *a, const struct place *p, int64_t head)
{
	const double *q = vector_of(a, a->projected, Q, p->row, head);
	double *scores = scores_of(a, p, head), most = -INFINITY, sum = 0;

	memset(scores, 0, sizeof(*scores) * (size_t)a->kv_steps);
	for (int64_t j = p->low; j < p->high; j++) {
		scores[j] = a->of->scaler *
			    product(q, vector_of(a, a->projected, K, p->first + j, head),
				    a->by[K].out);
		most = fmax(most, scores[j]);
	}
	for (int64_t j = p->low; j < p->high; j++)
		sum += scores[j] = exp(scores[j] - most);
	for (int64_t j = p->low; j < p->high; j++)
		scores[j] /= sum;
}

static double *mix(const struct dnn_attend *a, const struct place *p, int64_t head)
{
	int64_t n = a->by[V].out;
	double *to = a->mixed + (p->row * a->of->heads + head) * n;
	const double *scores = scores_of(a, p, head);

	memset(to, 0, sizeof(*to) * (size_t)n);
	for (int64_t j = 0; j < a->kv_steps; j++)
		if (scores[j] != 0)
			for (int64_t i = 0; i < n; i++)
				to[i] += scores[j] *
					 vector_of(a, a->projected, V, p->first + j, head)[i];
	return to;
}

void dnn_attend(struct dnn_attend *a, double *out)
{
	const struct dnn_projection *o = &a->by[O];
	int64_t heads = a->of->heads, n = a->by[V].out, wide = dnn_attention_out(a->of);

	for (int64_t row = 0; row < a->rows[Q]; row++) {
		struct place p = place_of(a, row);
		double *to = out + row * wide;

		for (int64_t h = 0; h < heads; h++) {
			const double *mixed;

			if (!p.valid) {
				if (a->current < 0)
					memset(scores_of(a, &p, h), 0,
						sizeof(double) * (size_t)a->kv_steps);
				continue;
			}
			softmax_scores(a, &p, h);
			mixed = mix(a, &p, h);
			for (int64_t i = 0; !o->used && i < n; i++)
				to[h * n + i] = mixed[i];
			for (int64_t i = 0; o->used && i < o->out; i++)
				to[i] += product(a->weights + o->weights + (h * o->out + i) * n,
					mixed, n);
		}
		for (int64_t i = 0; p.valid && o->used && o->biases >= 0 && i < o->out; i++)
			to[i] += a->weights[o->biases + i];
	}
}

/* ---- back ---- */

/* What the result's gradient is for one head's mixed values. */
static void d_mixed(const struct dnn_attend *a, int64_t head, const double *dout, double *d)
{
	const struct dnn_projection *o = &a->by[O];
	int64_t n = a->by[V].out;

	memset(d, 0, sizeof(*d) * (size_t)n);
	for (int64_t i = 0; !o->used && i < n; i++)
		d[i] = dout[head * n + i];
	for (int64_t j = 0; o->used && j < o->out; j++)
		for (int64_t i = 0; i < n; i++)
			d[i] += a->weights[o->weights + (head * o->out + j) * n + i] * dout[j];
}

static void back_one(
	const struct dnn_attend *a, const struct place *p, int64_t head, const double *d)
{
	const double *scores = scores_of(a, p, head);
	const double *q = vector_of(a, a->projected, Q, p->row, head);
	double *dq = vector_of(a, a->d_projected, Q, p->row, head);
	int64_t n = a->by[V].out, wide = a->by[Q].out;
	double mean = 0;

	for (int64_t j = 0; j < a->kv_steps; j++)
		if (scores[j] != 0)
			mean += scores[j] *
				product(d, vector_of(a, a->projected, V, p->first + j, head),
					n);
	for (int64_t j = 0; j < a->kv_steps; j++) {
		const double *k = vector_of(a, a->projected, K, p->first + j, head);
		const double *v = vector_of(a, a->projected, V, p->first + j, head);
		double *dk = vector_of(a, a->d_projected, K, p->first + j, head);
		double *dv = vector_of(a, a->d_projected, V, p->first + j, head);
		double slope;

		if (scores[j] == 0)
			continue;
		slope = a->of->scaler * scores[j] * (product(d, v, n) - mean);
		for (int64_t i = 0; i < wide; i++) {
			dq[i] += slope * k[i];
			dk[i] += slope * q[i];
		}
		for (int64_t i = 0; i < n; i++)
			dv[i] += scores[j] * d[i];
	}
}

void dnn_attend_back(struct dnn_attend *a, const double *dout)
{
	int64_t wide = dnn_attention_out(a->of), n = a->by[V].out;

	for (int64_t row = 0; row < a->rows[Q]; row++) {
		struct place p = place_of(a, row);

		for (int64_t h = 0; p.valid && h < a->of->heads; h++) {
			/* Its place is free: what is mixed is made behind it. */
			double *d = a->mixed + (row * a->of->heads + h) * n;

			d_mixed(a, h, dout + row * wide, d);
			back_one(a, &p, h, d);
			mix(a, &p, h);
		}
	}
}

void dnn_attend_weights(
	const struct dnn_attend *a, const double *const *x, const double *dout, double *dw)
{
	const struct dnn_projection *o = &a->by[O];
	int64_t n = a->by[V].out;

	for (int which = Q; which <= V; which++)
		input_weights(a, which, x[which], dw);
	for (int64_t row = 0; o->used && row < a->rows[Q]; row++, dout += o->out) {
		if (!place_of(a, row).valid)
			continue;
		for (int64_t h = 0; h < a->of->heads; h++)
			for (int64_t i = 0; i < o->out; i++)
				for (int64_t j = 0; j < n; j++)
					dw[o->weights + (h * o->out + i) * n + j] +=
						dout[i] *
						a->mixed[(row * a->of->heads + h) * n + j];
		for (int64_t i = 0; o->biases >= 0 && i < o->out; i++)
			dw[o->biases + i] += dout[i];
	}
}
