/* SPDX-License-Identifier: Apache-2.0
 *
 * Recurrent networks back, from what the records of training say.
 */
#include <math.h>
#include <string.h>

#include "softgpu/dnn/rnn.h"

/* to += the transposed matrix times `from`. */
static void back_through(
	const double *matrix, const double *from, int64_t rows, double *to, int64_t columns)
{
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < columns; j++)
			to[j] += matrix[i * columns + j] * from[i];
}

/* dw += from times x. */
static void outer(
	double *dw, const double *from, int64_t rows, const double *x, int64_t columns)
{
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < columns; j++)
			dw[i * columns + j] += from[i] * x[j];
}

/* One unit: DU is the gradient of its output before the projection, *dc that of its cell, and
 * becomes the last cell's. Returns what of DU goes to the last output without a matrix. */
static double unit_back(const struct dnn_recur *r, const struct dnn_rnn_record *at, int64_t u,
	double du, double *dc, double last_h, double last_c)
{
	int64_t wide = r->of->hidden;
	const double *g = at->gate + u;
	double tc, c, *d = at->d_input + u, *dl = at->d_last + u;

	switch (r->of->cell) {
	case RNN_RELU: d[0] = g[0] > 0 ? du : 0; break;
	case RNN_TANH: d[0] = du * (1 - g[0] * g[0]); break;
	case RNN_LSTM:
		tc = tanh(dnn_rnn_clipped(r->of, at->cell[u]));
		c = dnn_rnn_clipped(r->of, last_c);
		*dc += du * g[3 * wide] * (1 - tc * tc);
		if (r->of->clips && (at->cell[u] <= r->of->low || at->cell[u] >= r->of->high))
			*dc = 0;
		d[0] = *dc * g[2 * wide] * g[0] * (1 - g[0]);
		d[wide] = *dc * c * g[wide] * (1 - g[wide]);
		d[2 * wide] = *dc * g[0] * (1 - g[2 * wide] * g[2 * wide]);
		d[3 * wide] = du * tc * g[3 * wide] * (1 - g[3 * wide]);
		*dc *= c == last_c ? g[wide] : 0;
		break;
	default:
		d[wide] = du * (last_h - g[2 * wide]) * g[wide] * (1 - g[wide]);
		d[2 * wide] = du * (1 - g[wide]) * (1 - g[2 * wide] * g[2 * wide]);
		d[0] = d[2 * wide] * at->inner[u] * g[0] * (1 - g[0]);
		dl[0] = d[0];
		dl[wide] = d[wide];
		dl[2 * wide] = d[2 * wide] * g[0];
		return du * g[wide];
	}
	for (int i = 0; i < r->gates; i++)
		dl[i * wide] = d[i * wide];
	return 0;
}

/* One step: dh and dc are its state's gradients and become those of the one before. */
static void step_back(const struct dnn_recur *r, const struct dnn_rnn_layer *l,
	const struct dnn_rnn_record *at, const double *last_h, const double *last_c, double *dh,
	double *dc, double *du, double *dx)
{
	int64_t n = r->of->hidden, p = r->of->projected;

	memcpy(at->d_out, dh, sizeof(*dh) * (size_t)p);
	memset(dh, 0, sizeof(*dh) * (size_t)p);
	if (l->project < 0) {
		memcpy(du, at->d_out, sizeof(*du) * (size_t)n);
	} else {
		memset(du, 0, sizeof(*du) * (size_t)n);
		back_through(r->weights + l->project, at->d_out, p, du, n);
	}
	for (int64_t u = 0; u < n; u++) {
		double more = unit_back(r, at, u, du[u], &dc[u],
			r->of->cell == RNN_GRU ? last_h[u] : 0,
			r->of->cell == RNN_LSTM ? last_c[u] : 0);

		if (r->of->cell == RNN_GRU)
			dh[u] += more;
	}
	for (int g = 0; g < r->gates; g++) {
		back_through(r->weights + l->r[g], at->d_last + g * n, n, dh, p);
		if (l->w[g] >= 0)
			back_through(r->weights + l->w[g], at->d_input + g * n, n, dx, l->in);
		for (int64_t u = 0; l->w[g] < 0 && u < n; u++)
			dx[u] += at->d_input[g * n + u];
	}
}

/* `room`: of dh, dc and du. */
static void sequence_back(struct dnn_recur *r, int layer, int direction, int64_t n,
	const double *hx, const double *cx, const double *dy, double *dx, double *room)
{
	int64_t p = r->of->projected, wide = r->of->directions * p;
	double *dh = room, *dc = dh + p, *du = dc + r->of->hidden;
	struct dnn_rnn_layer l;

	dnn_rnn_layer(r->of, layer, direction, &l);
	for (int64_t i = r->lengths[n] - 1; i >= 0; i--) {
		int64_t t = dnn_recur_step(r, direction, n, i), before;
		struct dnn_rnn_record at = dnn_recur_record(r, layer, direction, t, n);
		struct dnn_rnn_record last = {
			.out = (double *)(uintptr_t)hx, .cell = (double *)(uintptr_t)cx};

		before = dnn_recur_step(r, direction, n, i - 1);
		if (before >= 0)
			last = dnn_recur_record(r, layer, direction, before, n);
		for (int64_t u = 0; u < p; u++)
			dh[u] += dy[(t * r->batch + n) * wide + direction * p + u];
		step_back(r, &l, &at, last.out, last.cell, dh, dc, du,
			dx + (t * r->batch + n) * l.in);
	}
}

/* Where a layer's state of one sequence is, or zeros in `to`. */
static void state_load(const double *from, int64_t at, int64_t n, double *to)
{
	memset(to, 0, sizeof(*to) * (size_t)n);
	if (from)
		memcpy(to, from + at * n, sizeof(*to) * (size_t)n);
}

void dnn_recur_back(struct dnn_recur *r, const double *hx, const double *cx, const double *dy,
	const double *dhy, const double *dcy, double *dx, double *dhx, double *dcx)
{
	int64_t p = r->of->projected, n = r->of->hidden, rows = r->steps * r->batch;
	int64_t wide = r->of->directions * p;
	cleanup_values double *room = malloc(sizeof(double) * (size_t)(p + 2 * n));
	cleanup_values double *one = calloc((size_t)(rows * wide) + 1, sizeof(double));
	cleanup_values double *two = calloc((size_t)(rows * wide) + 1, sizeof(double));
	double *next = one, *to;

	if (!room || !one || !two)
		return;
	for (int layer = r->of->layers - 1; layer >= 0; layer--) {
		to = layer ? next : dx;
		if (layer)
			memset(to, 0, sizeof(double) * (size_t)(rows * wide));
		for (int d = 0; d < r->of->directions; d++)
			for (int64_t s = 0; s < r->batch; s++) {
				int64_t at = (layer * r->of->directions + d) * r->batch + s;

				state_load(dhy, at, p, room);
				state_load(dcy, at, n, room + p);
				sequence_back(
					r, layer, d, s, hx + at * p, cx + at * n, dy, to, room);
				if (dhx)
					memcpy(dhx + at * p, room, sizeof(double) * (size_t)p);
				if (dcx)
					memcpy(dcx + at * n, room + p,
						sizeof(double) * (size_t)n);
			}
		if (layer && r->kept)
			dnn_dropout_apply(r->of->dropout, r->kept + (layer - 1) * rows * wide,
				to, rows * wide);
		dy = to;
		next = next == one ? two : one;
	}
}

void dnn_recur_weights(struct dnn_recur *r, const double *hx, double *dw)
{
	int64_t p = r->of->projected, n = r->of->hidden;
	struct dnn_rnn_layer l;

	for (int layer = 0; layer < r->of->layers; layer++)
		for (int d = 0; d < r->of->directions; d++) {
			const double *x = dnn_recur_input(r, layer);

			dnn_rnn_layer(r->of, layer, d, &l);
			for (int64_t row = 0; row < r->steps * r->batch; row++) {
				int64_t t = row / r->batch, s = row % r->batch, before;
				struct dnn_rnn_record at = dnn_recur_record(r, layer, d, t, s);
				const double *last =
					hx +
					((layer * r->of->directions + d) * r->batch + s) * p;

				if (t >= r->lengths[s])
					continue;
				before = d ? t + 1 : t - 1;
				if (before >= 0 && before < r->lengths[s])
					last = dnn_recur_record(r, layer, d, before, s).out;
				for (int g = 0; g < r->gates; g++) {
					const double *dg = at.d_input + g * n;
					const double *dl = at.d_last + g * n;

					if (l.w[g] >= 0)
						outer(dw + l.w[g], dg, n, x + row * l.in, l.in);
					outer(dw + l.r[g], dl, n, last, p);
					for (int64_t u = 0; l.wb[g] >= 0 && u < n; u++)
						dw[l.wb[g] + u] += dg[u];
					for (int64_t u = 0; l.rb[g] >= 0 && u < n; u++)
						dw[l.rb[g] + u] += dl[u];
				}
				if (l.project >= 0)
					outer(dw + l.project, at.d_out, p, at.inner, n);
			}
		}
}
