/* SPDX-License-Identifier: Apache-2.0
 *
 * Recurrent networks forward, in plain loops over arrays of double.
 */
#include <math.h>
#include <string.h>

#include "softgpu/dnn/rnn.h"

/* ---- memory ---- */

static int64_t record_size(const struct dnn_rnn *of)
{
	return (3 * (int64_t)dnn_rnn_gates(of) + 2) * of->hidden + 2 * (int64_t)of->projected;
}

static int64_t layer_in(const struct dnn_rnn *of, int layer)
{
	return layer ? (int64_t)of->directions * of->projected : of->input;
}

/* Doubles of one layer, for each step of each sequence. */
static int64_t layer_size(const struct dnn_rnn *of, int layer)
{
	return layer_in(of, layer) + of->directions * record_size(of);
}

int64_t dnn_recur_memory(const struct dnn_rnn *of, int64_t steps, int64_t batch)
{
	int64_t each = 0, all;

	for (int i = 0; i < of->layers; i++)
		each += layer_size(of, i);
	if (__builtin_mul_overflow(each, steps, &all) ||
		__builtin_mul_overflow(all, batch, &all) || all > (int64_t)1 << 40)
		return -1;
	return all;
}

int64_t dnn_recur_kept(const struct dnn_rnn *of, int64_t steps, int64_t batch)
{
	return dnn_dropout_rate(of->dropout) > 0
		       ? steps * batch * (of->layers - 1) * layer_in(of, 1)
		       : 0;
}

double *dnn_recur_input(const struct dnn_recur *r, int layer)
{
	int64_t before = 0;

	for (int i = 0; i < layer; i++)
		before += layer_size(r->of, i);
	return r->memory + before * r->steps * r->batch;
}

struct dnn_rnn_record dnn_recur_record(
	const struct dnn_recur *r, int layer, int direction, int64_t step, int64_t sequence)
{
	int64_t rows = r->steps * r->batch, size = record_size(r->of);
	int64_t wide = r->gates * (int64_t)r->of->hidden;
	double *at = dnn_recur_input(r, layer) + layer_in(r->of, layer) * rows +
		     (direction * rows + step * r->batch + sequence) * size;
	struct dnn_rnn_record record = {.gate = at, .cell = at + wide};

	record.inner = record.cell + r->of->hidden;
	record.out = record.inner + r->of->hidden;
	record.d_input = record.out + r->of->projected;
	record.d_last = record.d_input + wide;
	record.d_out = record.d_last + wide;
	return record;
}

int64_t dnn_recur_step(const struct dnn_recur *r, int direction, int64_t sequence, int64_t at)
{
	int64_t length = r->lengths[sequence];

	if (at < 0 || at >= length)
		return -1;
	return direction ? length - 1 - at : at;
}

/* ---- one step ---- */

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

static double biased(const struct dnn_recur *r, int64_t bias, int64_t unit)
{
	return bias < 0 ? 0 : r->weights[bias + unit];
}

static double product(const double *a, const double *b, int64_t n)
{
	double sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

/* What a gate makes of the input, and of the last output. */
static double from_input(const struct dnn_recur *r, const struct dnn_rnn_layer *l, int gate,
	int64_t unit, const double *x)
{
	double sum = biased(r, l->wb[gate], unit);

	return l->w[gate] < 0 ? sum + x[unit]
			      : sum + product(r->weights + l->w[gate] + unit * l->in, x, l->in);
}

static double from_last(const struct dnn_recur *r, const struct dnn_rnn_layer *l, int gate,
	int64_t unit, const double *h)
{
	int64_t n = r->of->projected;

	return biased(r, l->rb[gate], unit) + product(r->weights + l->r[gate] + unit * n, h, n);
}

/* The output before its projection; GRU's is in `out`, which it does not project. */
static void unit_step(const struct dnn_recur *r, const struct dnn_rnn_layer *l,
	const struct dnn_rnn_record *to, int64_t u, const double *x, const double *h,
	const double *c)
{
	int64_t wide = r->of->hidden;
	double g[RNN_GATES] = {0};

	for (int i = 0; i < r->gates; i++) {
		g[i] = from_input(r, l, i, u, x);
		if (r->of->cell != RNN_GRU || i < 2)
			g[i] += from_last(r, l, i, u, h);
	}
	switch (r->of->cell) {
	case RNN_RELU: g[0] = g[0] > 0 ? g[0] : 0; break;
	case RNN_TANH: g[0] = tanh(g[0]); break;
	case RNN_LSTM: /* input, forget, new, output */
		for (int i = 0; i < 4; i++)
			g[i] = i == 2 ? tanh(g[i]) : sigmoid(g[i]);
		to->cell[u] = g[1] * dnn_rnn_clipped(r->of, c[u]) + g[0] * g[2];
		to->inner[u] = g[3] * tanh(dnn_rnn_clipped(r->of, to->cell[u]));
		break;
	default: /* reset, update, new */
		g[0] = sigmoid(g[0]);
		g[1] = sigmoid(g[1]);
		to->inner[u] = from_last(r, l, 2, u, h);
		g[2] = tanh(g[2] + g[0] * to->inner[u]);
		to->out[u] = (1 - g[1]) * g[2] + g[1] * h[u];
		break;
	}
	for (int i = 0; i < r->gates; i++)
		to->gate[i * wide + u] = g[i];
	if (r->of->cell < RNN_LSTM)
		to->out[u] = g[0];
}

static void step(const struct dnn_recur *r, const struct dnn_rnn_layer *l,
	const struct dnn_rnn_record *to, const double *x, const double *h, const double *c)
{
	int64_t n = r->of->hidden;

	for (int64_t u = 0; u < n; u++)
		unit_step(r, l, to, u, x, h, c);
	if (r->of->cell != RNN_LSTM)
		return;
	for (int64_t u = 0; u < r->of->projected; u++)
		to->out[u] = l->project < 0
				     ? to->inner[u]
				     : product(r->weights + l->project + u * n, to->inner, n);
}

/* ---- all ---- */

/* One direction of a layer for one sequence; the states end in hy and cy, which may be NULL. */
static void sequence_forward(struct dnn_recur *r, int layer, int direction, int64_t n,
	const double *hx, const double *cx, double *y, double *hy, double *cy)
{
	int64_t p = r->of->projected, in = layer_in(r->of, layer), t;
	int64_t wide = r->of->directions * p;
	struct dnn_rnn_layer l;
	const double *x = dnn_recur_input(r, layer), *h = hx, *c = cx;

	dnn_rnn_layer(r->of, layer, direction, &l);
	for (int64_t i = 0; (t = dnn_recur_step(r, direction, n, i)) >= 0; i++) {
		struct dnn_rnn_record to = dnn_recur_record(r, layer, direction, t, n);

		step(r, &l, &to, x + (t * r->batch + n) * in, h, c);
		h = to.out;
		c = to.cell;
		memcpy(y + (t * r->batch + n) * wide + direction * p, h,
			sizeof(*h) * (size_t)p);
	}
	if (hy)
		memcpy(hy, h, sizeof(*h) * (size_t)p);
	if (cy)
		memcpy(cy, c, sizeof(*c) * (size_t)r->of->hidden);
}

void dnn_recur(struct dnn_recur *r, const double *hx, const double *cx, double *y, double *hy,
	double *cy)
{
	int64_t p = r->of->projected, wide = r->of->hidden, rows = r->steps * r->batch;
	int64_t n = rows * layer_in(r->of, 1);

	for (int layer = 0; layer < r->of->layers; layer++) {
		bool last = layer == r->of->layers - 1;
		double *to = last ? y : dnn_recur_input(r, layer + 1);

		for (int d = 0; d < r->of->directions; d++)
			for (int64_t s = 0; s < r->batch; s++) {
				int64_t at = (layer * r->of->directions + d) * r->batch + s;

				sequence_forward(r, layer, d, s, hx + at * p, cx + at * wide,
					to, hy ? hy + at * p : NULL,
					cy ? cy + at * wide : NULL);
			}
		if (!last && r->kept)
			dnn_dropout_apply(r->of->dropout, r->kept + layer * n, to, n);
	}
}
