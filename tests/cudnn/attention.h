/* SPDX-License-Identifier: Apache-2.0
 *
 * Multi-head attention by plain loops: what a network makes of its values, and how its result
 * changes with one of them.
 */
#ifndef TESTS_CUDNN_ATTENTION_H
#define TESTS_CUDNN_ATTENTION_H

#include "tests/cudnn/check.h"

enum { Q, K, V, O, KINDS, MOST_VALUES = 512, MOST_STEPS = 8, MOST_SEQUENCES = 4 };

struct network {
	const char *name;
	int type, heads, size[3], projected[4], steps, keys, batch;
	bool biases, residual, by_batch, add;
	double tolerance;
	/* Values of queries, keys, values by sequence and step; weights, then biases. */
	double x[3][MOST_VALUES], w[2 * KINDS][MOST_VALUES], more[MOST_VALUES];
	double out[MOST_VALUES], slope[MOST_VALUES];
	int low[MOST_STEPS], high[MOST_STEPS];
	int lengths[2][MOST_SEQUENCES]; /* of queries, of keys */
	int bias_rows;			/* of the result's bias: 1, or one for each head */
};

static inline int in_of(const struct network *n, int kind);

/* What a vector of Q, K or V is projected to. */
static inline int wide_of(const struct network *n, int kind)
{
	return n->projected[kind] ? n->projected[kind] : in_of(n, kind);
}

static inline int in_of(const struct network *n, int kind)
{
	return kind == O ? wide_of(n, V) : n->size[kind];
}

static inline int out_of(const struct network *n)
{
	return n->projected[O] ? n->projected[O] : n->heads * wide_of(n, V);
}

static inline double projected(const struct network *n, int kind, int row, int head, int i)
{
	const double *x = &n->x[kind][row * n->size[kind]];
	int in = n->size[kind], out = wide_of(n, kind);
	double sum;

	if (!n->projected[kind])
		return x[i];
	sum = n->biases ? n->w[KINDS + kind][head * out + i] : 0;
	for (int j = 0; j < in; j++)
		sum += n->w[kind][(head * out + i) * in + j] * x[j];
	return sum;
}

/* One head's values at one step, mixed. */
static inline void mixed(const struct network *n, int sequence, int step, int head, double *to)
{
	double score[MOST_STEPS], sum = 0;
	int wide = wide_of(n, V);

	memset(to, 0, sizeof(*to) * (size_t)wide);
	for (int j = 0; j < n->keys; j++) {
		double dot = 0;

		score[j] = 0;
		if (j < n->low[step] || j >= n->high[step] || j >= n->lengths[1][sequence])
			continue;
		for (int i = 0; i < wide_of(n, Q); i++)
			dot += projected(n, Q, sequence * n->steps + step, head, i) *
			       projected(n, K, sequence * n->keys + j, head, i);
		sum += score[j] = exp(0.5 * dot);
	}
	for (int j = 0; j < n->keys; j++)
		for (int i = 0; score[j] > 0 && i < wide; i++)
			to[i] += score[j] / sum *
				 projected(n, V, sequence * n->keys + j, head, i);
}

static inline void forward(struct network *n)
{
	int wide = out_of(n), inner = wide_of(n, V);

	for (int row = 0; row < n->batch * n->steps; row++) {
		double *out = &n->out[row * wide];

		for (int i = 0; i < wide; i++)
			out[i] = n->residual ? n->more[row * wide + i] : 0;
		for (int i = 0; n->biases && i < n->bias_rows * wide; i++)
			out[i % wide] += n->w[KINDS + O][i];
		for (int h = 0; h < n->heads; h++) {
			double mix[MOST_VALUES];

			mixed(n, row / n->steps, row % n->steps, h, mix);
			for (int i = 0; i < wide; i++)
				for (int j = 0; n->projected[O] && j < inner; j++)
					out[i] += n->w[O][(h * wide + i) * inner + j] * mix[j];
			for (int j = 0; !n->projected[O] && j < inner; j++)
				out[h * inner + j] += mix[j];
		}
	}
}

static inline bool counts(const struct network *n, int kind, int row)
{
	int steps = kind == Q || kind == O ? n->steps : n->keys;

	return row % steps < n->lengths[kind == K || kind == V][row / steps];
}

static inline double total(struct network *n)
{
	double sum = 0;

	forward(n);
	for (int row = 0; row < n->batch * n->steps; row++)
		for (int i = 0; counts(n, O, row) && i < out_of(n); i++)
			sum += n->out[row * out_of(n) + i] * n->slope[row * out_of(n) + i];
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
