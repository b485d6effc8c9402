/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions of packed values, as matrix products: an image's patches become the columns of a
 * matrix, some outputs at a time so that it stays small, and the filter is the other factor.
 */
#include <cblas.h>
#include <string.h>

#include "softgpu/dnn/dnn.h"

#define CONVOLVE_COLUMNS 1024	/* outputs at a time: a matrix that a cache holds */
#define CONVOLVE_MOST INT32_MAX /* what OpenBLAS counts with */

int64_t dnn_window_out(const struct dnn_window *w, int d, int64_t in, int64_t kernel)
{
	int64_t span = in + w->pre[d] + w->post[d] - ((kernel - 1) * w->dilation[d] + 1);

	return span < 0 ? 0 : span / w->stride[d] + 1;
}

int dnn_shape_of(struct dnn_shape *s, const struct dnn_window *window, int64_t groups,
	bool flip, const struct dnn_tensor *x, const struct dnn_tensor *w,
	const struct dnn_tensor *y)
{
	int count = window->count;

	if (count < 1 || count > DNN_SPATIAL)
		return CUDNN_STATUS_NOT_SUPPORTED;
	if (x->count != count + 2 || w->count != count + 2 || y->count != count + 2)
		return CUDNN_STATUS_BAD_PARAM;
	*s = (struct dnn_shape){.n = x->dim[0],
		.c = x->dim[1],
		.k = w->dim[0],
		.groups = groups,
		.window = *window,
		.flip = flip};
	if (groups < 1 || s->k % groups || s->c % groups || w->dim[1] != s->c / groups ||
		y->dim[0] != s->n || y->dim[1] != s->k)
		return CUDNN_STATUS_BAD_PARAM;
	for (int d = 0; d < DNN_SPATIAL; d++) {
		if (d >= count) {
			s->in[d] = s->kernel[d] = s->out[d] = 1;
			s->window.pre[d] = s->window.post[d] = 0;
			s->window.stride[d] = s->window.dilation[d] = 1;
			continue;
		}
		s->in[d] = x->dim[d + 2];
		s->kernel[d] = w->dim[d + 2];
		s->out[d] = y->dim[d + 2];
		if (s->out[d] != dnn_window_out(window, d, s->in[d], s->kernel[d]))
			return CUDNN_STATUS_BAD_PARAM;
		if (s->in[d] > CONVOLVE_MOST || s->kernel[d] > CONVOLVE_MOST ||
			s->out[d] > CONVOLVE_MOST)
			return CUDNN_STATUS_NOT_SUPPORTED;
	}
	if (s->out[0] * s->out[1] > CONVOLVE_MOST ||
		s->out[0] * s->out[1] * s->out[2] > CONVOLVE_MOST || s->k > CONVOLVE_MOST ||
		dnn_elements(w) / s->k > CONVOLVE_MOST)
		return CUDNN_STATUS_NOT_SUPPORTED;
	return CUDNN_STATUS_SUCCESS;
}

static int64_t volume(const int64_t *of)
{
	return of[0] * of[1] * of[2];
}

/* Rows of the matrix of patches of a group. */
static int64_t rows_of(const struct dnn_shape *s)
{
	return s->c / s->groups * volume(s->kernel);
}

static int64_t columns_of(const struct dnn_shape *s)
{
	return volume(s->out) < CONVOLVE_COLUMNS ? volume(s->out) : CONVOLVE_COLUMNS;
}

uint64_t dnn_convolve_workspace(const struct dnn_shape *s)
{
	return (uint64_t)rows_of(s) * (uint64_t)columns_of(s) * sizeof(double);
}

/* The place in an image's channel that tap `tap` reads for output `out`; -1: padding. */
static int64_t place(const struct dnn_shape *s, int64_t tap, int64_t out)
{
	int64_t at = 0, taps[DNN_SPATIAL], outs[DNN_SPATIAL];

	for (int d = DNN_SPATIAL - 1; d >= 0; d--) {
		taps[d] = tap % s->kernel[d];
		tap /= s->kernel[d];
		outs[d] = out % s->out[d];
		out /= s->out[d];
	}
	for (int d = 0; d < DNN_SPATIAL; d++) {
		int64_t i = outs[d] * s->window.stride[d] - s->window.pre[d] +
			    taps[d] * s->window.dilation[d];

		if (i < 0 || i >= s->in[d])
			return -1;
		at = at * s->in[d] + i;
	}
	return at;
}

/* Patches of outputs [first, first + count) into `column`, or added back from it to `image`. */
static void patches(const struct dnn_shape *s, double *image, int64_t first, int64_t count,
	double *column, bool back)
{
	int64_t taps = volume(s->kernel), channels = s->c / s->groups, pixels = volume(s->in);

	for (int64_t tap = 0; tap < taps; tap++)
		for (int64_t o = 0; o < count; o++) {
			int64_t at = place(s, s->flip ? taps - 1 - tap : tap, first + o);

			for (int64_t c = 0; c < channels; c++) {
				double *cell = &column[(c * taps + tap) * count + o];

				if (!back)
					*cell = at < 0 ? 0 : image[c * pixels + at];
				else if (at >= 0)
					image[c * pixels + at] += *cell;
			}
		}
}

enum way { FORWARD, DATA, FILTER };

/* One group of one image. x, w and y are what the way makes it of them. */
static void group(const struct dnn_shape *s, enum way way, double *x, double *w, double *y,
	double *column)
{
	int k = (int)(s->k / s->groups), rows = (int)rows_of(s), all = (int)volume(s->out);
	int step = (int)columns_of(s);

	for (int first = 0; first < all; first += step) {
		int count = all - first < step ? all - first : step;

		switch (way) {
		case FORWARD:
			patches(s, x, first, count, column, false);
			cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, k, count, rows,
				1, w, rows, column, count, 0, y + first, all);
			break;
		case DATA:
			cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, rows, count, k, 1,
				w, rows, y + first, all, 0, column, count);
			patches(s, x, first, count, column, true);
			break;
		case FILTER:
			patches(s, x, first, count, column, false);
			cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, k, rows, count, 1,
				y + first, all, column, count, 1, w, rows);
			break;
		}
	}
}

static void each_group(const struct dnn_shape *s, enum way way, double *x, double *w, double *y,
	double *column)
{
	int64_t gx = s->c / s->groups * volume(s->in), gw = s->k / s->groups * rows_of(s);
	int64_t gy = s->k / s->groups * volume(s->out);

	for (int64_t n = 0; n < s->n; n++)
		for (int64_t g = 0; g < s->groups; g++)
			group(s, way, x + (n * s->groups + g) * gx, w + g * gw,
				y + (n * s->groups + g) * gy, column);
}

void dnn_convolve(
	const struct dnn_shape *s, const double *x, const double *w, double *y, double *column)
{
	each_group(s, FORWARD, (double *)(uintptr_t)x, (double *)(uintptr_t)w, y, column);
}

void dnn_convolve_data(const struct dnn_shape *s, const double *w, const double *dy, double *dx,
	double *column)
{
	memset(dx, 0, sizeof(*dx) * (size_t)(s->n * s->c * volume(s->in)));
	each_group(s, DATA, dx, (double *)(uintptr_t)w, (double *)(uintptr_t)dy, column);
}

void dnn_convolve_filter(const struct dnn_shape *s, const double *x, const double *dy,
	double *dw, double *column)
{
	memset(dw, 0, sizeof(*dw) * (size_t)(s->k * rows_of(s)));
	each_group(s, FILTER, (double *)(uintptr_t)x, dw, (double *)(uintptr_t)dy, column);
}
