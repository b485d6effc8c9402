/* SPDX-License-Identifier: Apache-2.0
 *
 * Causal convolutions in plain loops: see causal.h.
 */
#include <math.h>
#include <string.h>

#include "softgpu/dnn/causal.h"

/* ---- arrays ---- */

static double tap(const struct causal_shape *s, const double *w, int64_t channel, int64_t back)
{
	return w[channel * s->taps + (s->forwards ? back : s->taps - 1 - back)];
}

static void convolve(const struct causal_shape *s, const double *x, const double *w, double *y)
{
	for (int64_t row = 0; row < s->batch * s->dim; row++, x += s->steps, y += s->steps)
		for (int64_t t = 0; t < s->steps; t++) {
			y[t] = 0;
			for (int64_t j = 0; j < s->taps && j <= t; j++)
				y[t] += x[t - j] * tap(s, w, row % s->dim, j);
		}
}

static void convolve_data(
	const struct causal_shape *s, const double *w, const double *dy, double *dx)
{
	for (int64_t row = 0; row < s->batch * s->dim; row++, dx += s->steps, dy += s->steps)
		for (int64_t t = 0; t < s->steps; t++) {
			dx[t] = 0;
			for (int64_t j = 0; j < s->taps && t + j < s->steps; j++)
				dx[t] += dy[t + j] * tap(s, w, row % s->dim, j);
		}
}

/* Adds to dw. */
static void convolve_filter(
	const struct causal_shape *s, const double *x, const double *dy, double *dw)
{
	for (int64_t row = 0; row < s->batch * s->dim; row++, x += s->steps, dy += s->steps)
		for (int64_t j = 0; j < s->taps; j++) {
			int64_t place = s->forwards ? j : s->taps - 1 - j;

			for (int64_t t = j; t < s->steps; t++)
				dw[row % s->dim * s->taps + place] += dy[t] * x[t - j];
		}
}

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

/* ---- jobs ---- */

/* [batch][dim][steps], as it lies in memory. */
static struct dnn_tensor signal(const struct causal_job *j)
{
	struct dnn_tensor t = {
		.type = j->type, .count = 3, .dim = {j->s.batch, j->s.dim, j->s.steps}};

	dnn_packed(&t, j->nwh);
	return t;
}

/* [dim][taps]. */
static struct dnn_tensor filter(const struct causal_job *j, int type, int64_t taps)
{
	struct dnn_tensor t = {.type = type,
		.count = 2,
		.dim = {j->s.dim, taps},
		.stride = {j->nwh ? 1 : taps, j->nwh ? j->s.dim : 1}};

	return t;
}

static double *load(struct causal_job *j, struct dnn_tensor t, const void *at)
{
	return dnn_load(&j->job, &t, at);
}

static void store(
	struct causal_job *j, struct dnn_tensor t, void *at, const double *values, bool add)
{
	dnn_store(&j->job, &t, at, values, 1, add ? 1 : 0);
}

static void forward(struct causal_job *j)
{
	cleanup_values double *x = load(j, signal(j), j->x);
	cleanup_values double *w = load(j, filter(j, j->type, j->s.taps), j->w);
	cleanup_values double *bias = j->bias ? load(j, filter(j, j->type, 1), j->bias) : NULL;
	int64_t n = j->s.batch * j->s.dim * j->s.steps;
	cleanup_values double *y = dnn_values_new(&j->job, n);

	if (!x || !w || !y || (j->bias && !bias))
		return;
	convolve(&j->s, x, w, y);
	for (int64_t i = 0; bias && i < n; i++) {
		y[i] += bias[i / j->s.steps % j->s.dim];
		y[i] *= j->silu ? sigmoid(y[i]) : 1;
	}
	store(j, signal(j), j->to, y, false);
}

static void back(struct causal_job *j)
{
	cleanup_values double *x = load(j, signal(j), j->x);
	cleanup_values double *w = load(j, filter(j, j->type, j->s.taps), j->w);
	cleanup_values double *dy = load(j, signal(j), j->dy);
	cleanup_values double *bias = j->bias ? load(j, filter(j, j->type, 1), j->bias) : NULL;
	int64_t n = j->s.batch * j->s.dim * j->s.steps;
	cleanup_values double *y = dnn_values_new(&j->job, n);
	cleanup_values double *dw = dnn_values_new(&j->job, j->s.dim * j->s.taps);
	cleanup_values double *db = dnn_values_new(&j->job, j->s.dim);

	if (!x || !w || !dy || !y || !dw || !db || (j->bias && !bias))
		return;
	if (j->silu) {
		convolve(&j->s, x, w, y);
		for (int64_t i = 0; i < n; i++) {
			double z = y[i] + bias[i / j->s.steps % j->s.dim], s = sigmoid(z);

			dy[i] *= s * (1 + z * (1 - s));
		}
	}
	convolve_data(&j->s, w, dy, y);
	convolve_filter(&j->s, x, dy, dw);
	for (int64_t i = 0; i < n; i++)
		db[i / j->s.steps % j->s.dim] += dy[i];
	store(j, signal(j), j->dx, y, false);
	store(j, filter(j, j->dtype, j->s.taps), j->dw, dw, j->add);
	if (j->dbias)
		store(j, filter(j, j->dtype, 1), j->dbias, db, j->add);
}

int64_t causal_long_doubles(const struct causal_shape *s)
{
	return (s->batch + 1) * s->dim * s->steps;
}

/* The forward call leaves what it read for the one back. */
static void long_run(struct causal_job *j)
{
	int64_t n = j->s.batch * j->s.dim * j->s.steps;
	double *kept = dnn_reach(&j->job, j->reserve, (uint64_t)causal_long_doubles(&j->s) * 8);
	cleanup_values double *x = NULL, *w = NULL;
	cleanup_values double *y = dnn_values_new(&j->job, n);

	if (!kept || !y)
		return;
	if (j->kind == LONG_FORWARD) {
		x = load(j, signal(j), j->x);
		w = load(j, filter(j, j->type, j->s.taps), j->w);
		if (!x || !w)
			return;
		memcpy(kept, x, sizeof(*x) * (size_t)n);
		memcpy(kept + n, w, sizeof(*w) * (size_t)(j->s.dim * j->s.taps));
		convolve(&j->s, x, w, y);
		store(j, signal(j), j->to, y, false);
		return;
	}
	x = load(j, signal(j), j->dy);
	w = dnn_values_new(&j->job, j->s.dim * j->s.taps);
	if (!x || !w)
		return;
	convolve_data(&j->s, kept + n, x, y);
	convolve_filter(&j->s, kept, x, w);
	store(j, signal(j), j->dx, y, false);
	store(j, filter(j, j->type, j->s.taps), j->dw, w, false);
}

/* ---- two, and gates ---- */

/* One of the three signals of [batch][dim][3][steps], or of the filters [dim][3][taps]. */
static struct dnn_tensor third(const struct causal_job *j, bool filters, int type)
{
	int64_t n = filters ? j->s.taps : j->s.steps;
	struct dnn_tensor t = {.type = type,
		.count = 3,
		.dim = {filters ? 1 : j->s.batch, j->s.dim, n},
		.stride = {3 * j->s.dim * n, 3 * n, 1}};

	return t;
}

static const void *at_third(
	const struct causal_job *j, const void *at, int which, bool filters, int type)
{
	return (const char *)at +
	       which * (filters ? j->s.taps : j->s.steps) * (int64_t)dnn_size(type);
}

/* The first multiplies the result, the others' product goes through the second convolution;
 * what skips it is the product times the bias. */
static void gated_run(struct causal_job *j)
{
	int64_t n = j->s.batch * j->s.dim * j->s.steps;
	struct causal_shape mixer = j->s;
	double *x[3] = {NULL}, *w[3] = {NULL}, *p[3] = {NULL};
	cleanup_values double *w2 = load(j, filter(j, j->type, j->mixer), j->w2);
	cleanup_values double *bias = load(j, filter(j, j->type, 1), j->bias);
	cleanup_values double *dy = j->dy ? load(j, signal(j), j->dy) : NULL;
	cleanup_values double *z = dnn_values_new(&j->job, n), *y = dnn_values_new(&j->job, n);
	cleanup_values double *dz = dnn_values_new(&j->job, n), *d = dnn_values_new(&j->job, n);
	cleanup_values double *dw = dnn_values_new(&j->job, j->s.dim * j->s.taps);
	cleanup_values double *dw2 = dnn_values_new(&j->job, j->s.dim * j->mixer);
	cleanup_values double *db = dnn_values_new(&j->job, j->s.dim);
	bool all = w2 && bias && z && y && dz && d && dw && dw2 && db && (dy || !j->dy);

	mixer.taps = j->mixer;
	for (int i = 0; i < 3; i++) {
		x[i] = load(j, third(j, false, j->type), at_third(j, j->x, i, false, j->type));
		w[i] = load(j, third(j, true, j->type), at_third(j, j->w, i, true, j->type));
		p[i] = dnn_values_new(&j->job, n);
		all &= x[i] && w[i] && p[i];
		if (all)
			convolve(&j->s, x[i], w[i], p[i]);
	}
	for (int64_t i = 0; all && i < n; i++)
		z[i] = p[1][i] * p[2][i];
	if (all)
		convolve(&mixer, z, w2, y);
	for (int64_t i = 0; all && i < n; i++)
		y[i] += bias[i / j->s.steps % j->s.dim] * z[i];
	if (all && j->kind == GATED_FORWARD) {
		store(j, signal(j), j->to, y, false);
		for (int64_t i = 0; i < n; i++)
			y[i] *= p[0][i];
		store(j, signal(j), j->dx, y, false);
	} else if (all) {
		for (int64_t i = 0; i < n; i++) {
			double one = dy[i];

			dy[i] *= p[0][i]; /* of y */
			p[0][i] = one * y[i];
			db[i / j->s.steps % j->s.dim] += dy[i] * z[i];
		}
		convolve_data(&mixer, w2, dy, dz);
		convolve_filter(&mixer, z, dy, dw2);
		for (int64_t i = 0; i < n; i++) {
			double one = dz[i] + bias[i / j->s.steps % j->s.dim] * dy[i],
			       two = p[1][i];

			p[1][i] = one * p[2][i];
			p[2][i] = one * two;
		}
		for (int i = 0; i < 3; i++) {
			memset(dw, 0, sizeof(*dw) * (size_t)(j->s.dim * j->s.taps));
			convolve_data(&j->s, w[i], p[i], d);
			convolve_filter(&j->s, x[i], p[i], dw);
			store(j, third(j, false, j->type),
				(void *)(uintptr_t)at_third(j, j->dx, i, false, j->type), d,
				false);
			store(j, third(j, true, j->dtype),
				(void *)(uintptr_t)at_third(j, j->dw, i, true, j->dtype), dw,
				true);
		}
		store(j, filter(j, j->dtype, j->mixer), j->dw2, dw2, true);
		store(j, filter(j, j->dtype, 1), j->dbias, db, true);
	}
	for (int i = 0; i < 3; i++) {
		free(x[i]);
		free(w[i]);
		free(p[i]);
	}
}

void causal_run(struct dnn_job *job)
{
	struct causal_job *j = (void *)job;

	switch (j->kind) {
	case FORWARD: forward(j); break;
	case BACK: back(j); break;
	case LONG_FORWARD:
	case LONG_BACK: long_run(j); break;
	case GATED_FORWARD:
	case GATED_BACK: gated_run(j); break;
	}
}
