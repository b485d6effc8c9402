/* SPDX-License-Identifier: Apache-2.0
 *
 * A recurrent network of any kind in plain loops, and differences of its result. Values are by
 * step, sequence and element; states by layer and direction, sequence, element.
 */
#ifndef TESTS_CUDNN_RECUR_H
#define TESTS_CUDNN_RECUR_H

#include "tests/cudnn/check.h"

enum { T = 3, N = 3, MOST_LAYERS = 4, IDS = 9, MOST_MATRIX = 64, MOST_VALUES = 128 };

struct network {
	const char *name;
	int cell, layers, directions, input, hidden, projected, bias, layout, type;
	bool states, skip;
	double clip; /* 0: not */
	double tolerance;
	int lengths[N];
	/* By layer and direction, linear layer, element. */
	double w[MOST_LAYERS][IDS][MOST_MATRIX], b[MOST_LAYERS][IDS][8];
	double x[MOST_VALUES], hx[MOST_VALUES], cx[MOST_VALUES];
	double y[MOST_VALUES], hy[MOST_VALUES], cy[MOST_VALUES];
	double dy[MOST_VALUES], dhy[MOST_VALUES], dcy[MOST_VALUES];
};

static inline int gates_of(const struct network *n)
{
	return n->cell == CUDNN_LSTM ? 4 : n->cell == CUDNN_GRU ? 3 : 1;
}

static inline int in_of(const struct network *n, int layer)
{
	return layer ? n->directions * n->projected : n->input;
}

/* ---- the loops ---- */

static inline double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

static inline double linear(
	const struct network *n, int layer, int id, int unit, const double *v)
{
	int gates = gates_of(n),
	    wide = id < gates ? in_of(n, layer / n->directions) : n->projected;
	double sum = n->b[layer][id][unit];

	if (n->skip && id < gates && layer < n->directions)
		return sum + v[unit];
	for (int i = 0; i < wide; i++)
		sum += n->w[layer][id][unit * wide + i] * v[i];
	return sum;
}

/* A cell is clipped wherever it is used, the first one too, and given as it is: so does cuDNN
 * 9.19 (H200, 2026-11-23). */
static inline double clipped(const struct network *n, double cell)
{
	return n->clip > 0 ? fmin(fmax(cell, -n->clip), n->clip) : cell;
}

/* A step of one layer in one direction; h and c become the new ones. */
static inline void step(
	const struct network *n, int layer, const double *x, double *h, double *c)
{
	double out[8], g[4];
	int gates = gates_of(n);

	for (int u = 0; u < n->hidden; u++) {
		for (int i = 0; i < gates; i++) {
			g[i] = linear(n, layer, i, u, x);
			if (n->cell != CUDNN_GRU || i < 2)
				g[i] += linear(n, layer, i + gates, u, h);
		}
		if (n->cell == CUDNN_RNN_RELU)
			out[u] = g[0] > 0 ? g[0] : 0;
		else if (n->cell == CUDNN_RNN_TANH)
			out[u] = tanh(g[0]);
		else if (n->cell == CUDNN_LSTM) {
			c[u] = sigmoid(g[1]) * clipped(n, c[u]) + sigmoid(g[0]) * tanh(g[2]);
			out[u] = sigmoid(g[3]) * tanh(clipped(n, c[u]));
		} else {
			g[2] = tanh(g[2] + sigmoid(g[0]) * linear(n, layer, 5, u, h));
			out[u] = (1 - sigmoid(g[1])) * g[2] + sigmoid(g[1]) * h[u];
		}
	}
	for (int u = 0; u < n->projected; u++) {
		h[u] = n->projected < n->hidden ? 0 : out[u];
		for (int i = 0; n->projected < n->hidden && i < n->hidden; i++)
			h[u] += n->w[layer][8][u * n->hidden + i] * out[i];
	}
}

static inline void forward(struct network *n)
{
	double from[MOST_VALUES], to[MOST_VALUES];
	int wide = n->directions * n->projected;

	memcpy(from, n->x, sizeof(from));
	memset(to, 0, sizeof(to));
	for (int l = 0; l < n->layers; l++) {
		for (int d = 0; d < n->directions; d++)
			for (int s = 0; s < N; s++) {
				int layer = l * n->directions + d, at = layer * N + s;
				double h[8], c[8];

				memcpy(h, n->hx + at * n->projected,
					sizeof(*h) * (size_t)n->projected);
				memcpy(c, n->cx + at * n->hidden,
					sizeof(*c) * (size_t)n->hidden);
				for (int i = 0; i < n->lengths[s]; i++) {
					int t = d ? n->lengths[s] - 1 - i : i;

					step(n, layer, from + (t * N + s) * in_of(n, l), h, c);
					memcpy(to + (t * N + s) * wide + d * n->projected, h,
						sizeof(*h) * (size_t)n->projected);
				}
				memcpy(n->hy + at * n->projected, h,
					sizeof(*h) * (size_t)n->projected);
				memcpy(n->cy + at * n->hidden, c,
					sizeof(*c) * (size_t)n->hidden);
			}
		memcpy(from, to, sizeof(from));
	}
	memcpy(n->y, to, sizeof(to));
}

static inline bool is_there(const struct network *n, int row)
{
	return row / N < n->lengths[row % N];
}

static inline double total(struct network *n)
{
	int wide = n->directions * n->projected, states = n->layers * n->directions * N;
	double sum = 0;

	forward(n);
	for (int i = 0; i < T * N * wide; i++)
		sum += is_there(n, i / wide) ? n->y[i] * n->dy[i] : 0;
	for (int i = 0; n->states && i < states * n->projected; i++)
		sum += n->hy[i] * n->dhy[i];
	for (int i = 0; n->states && n->cell == CUDNN_LSTM && i < states * n->hidden; i++)
		sum += n->cy[i] * n->dcy[i];
	return sum;
}

static inline double difference(struct network *n, double *of)
{
	double more, less, at = *of;

	*of = at + 1e-5;
	more = total(n);
	*of = at - 1e-5;
	less = total(n);
	*of = at;
	return (more - less) / 2e-5;
}

#endif
