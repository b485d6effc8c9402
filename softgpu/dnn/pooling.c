/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling, forward and backward.  In a window whose greatest value is there twice, the first
 * one gets the gradient.
 */
#include <math.h>

#include "softgpu/dnn/dnn.h"

struct dnn_pooling {
	int mode, nan;
	struct dnn_window window;
	int64_t size[DNN_SPATIAL];
};

/* ---- descriptors ---- */

DNN_CALL(cudnnCreatePoolingDescriptor, struct dnn_pooling **pooling)
{
	if (!pooling)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*pooling = calloc(1, sizeof(**pooling));
	return *pooling ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;
}

DNN_CALL(cudnnDestroyPoolingDescriptor, struct dnn_pooling *pooling)
{
	free(pooling);
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnSetPoolingNdDescriptor, struct dnn_pooling *pooling, int mode, int nan, int count,
	const int *size, const int *pad, const int *stride)
{
	struct dnn_pooling p = {.mode = mode, .nan = nan, .window.count = count};

	if (!pooling || !size || !pad || !stride)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (mode < 0 || mode > CUDNN_POOLING_MAX_DETERMINISTIC || nan < 0 || nan > 1 ||
		count < 1)
		return CUDNN_STATUS_BAD_PARAM;
	if (count > DNN_SPATIAL)
		return CUDNN_STATUS_NOT_SUPPORTED;
	for (int d = 0; d < DNN_SPATIAL; d++) {
		bool used = d < count;

		if (used && (size[d] < 1 || pad[d] < 0 || stride[d] < 1 || pad[d] >= size[d]))
			return CUDNN_STATUS_BAD_PARAM;
		p.size[d] = used ? size[d] : 1;
		p.window.pre[d] = p.window.post[d] = used ? pad[d] : 0;
		p.window.stride[d] = used ? stride[d] : 1;
		p.window.dilation[d] = 1;
	}
	*pooling = p;
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnSetPooling2dDescriptor, struct dnn_pooling *pooling, int mode, int nan, int h,
	int w, int pad_h, int pad_w, int stride_h, int stride_w)
{
	return cudnnSetPoolingNdDescriptor(pooling, mode, nan, 2, (int[]){h, w},
		(int[]){pad_h, pad_w}, (int[]){stride_h, stride_w});
}

DNN_CALL(cudnnGetPoolingNdDescriptor, const struct dnn_pooling *pooling, int most, int *mode,
	int *nan, int *count, int *size, int *pad, int *stride)
{
	if (!pooling || !mode || !nan || !count || !size || !pad || !stride)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*mode = pooling->mode;
	*nan = pooling->nan;
	*count = pooling->window.count;
	for (int d = 0; d < most && d < *count; d++) {
		size[d] = (int)pooling->size[d];
		pad[d] = (int)pooling->window.pre[d];
		stride[d] = (int)pooling->window.stride[d];
	}
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnGetPoolingNdForwardOutputDim, const struct dnn_pooling *pooling,
	const struct dnn_tensor *x, int count, int *dim)
{
	if (!pooling || !x || !dim)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!dnn_tensor_right(x) || count != x->count || count != pooling->window.count + 2)
		return CUDNN_STATUS_BAD_PARAM;
	for (int d = 0; d < count; d++)
		dim[d] = (int)(d < 2 ? x->dim[d]
				     : dnn_window_out(&pooling->window, d - 2, x->dim[d],
					       pooling->size[d - 2]));
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnGetPooling2dForwardOutputDim, const struct dnn_pooling *pooling,
	const struct dnn_tensor *x, int *n, int *c, int *h, int *w)
{
	int dim[4];
	int status = cudnnGetPoolingNdForwardOutputDim(pooling, x, 4, dim);

	if (status)
		return status;
	if (!n || !c || !h || !w)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*n = dim[0];
	*c = dim[1];
	*h = dim[2];
	*w = dim[3];
	return CUDNN_STATUS_SUCCESS;
}

/* ---- the calls ---- */

struct pooling_job {
	struct dnn_job job;
	struct dnn_pooling pooling;
	struct dnn_tensor x, y, dx, dy;
	const void *x_at, *dy_at;
	void *y_at, *dx_at;
	double alpha, beta;
	int64_t in[DNN_SPATIAL], out[DNN_SPATIAL];
};

/* The next tap of a window; false after the last. */
static bool next(const struct dnn_pooling *p, int64_t *tap)
{
	for (int d = DNN_SPATIAL - 1; d >= 0; d--) {
		if (++tap[d] < p->size[d])
			return true;
		tap[d] = 0;
	}
	return false;
}

/* The pixel of a tap of output `out`; -1: padding. */
static int64_t pixel(const struct pooling_job *j, const int64_t *tap, int64_t out)
{
	int64_t at = 0, step = 1;

	for (int d = DNN_SPATIAL - 1; d >= 0; d--) {
		int64_t i = out % j->out[d] * j->pooling.window.stride[d] -
			    j->pooling.window.pre[d] + tap[d];

		out /= j->out[d];
		if (i < 0 || i >= j->in[d])
			return -1;
		at += i * step;
		step *= j->in[d];
	}
	return at;
}

/* One window of one image. Forward: its value. Backward: gives `dy` back to `dx`. */
static double window(
	const struct pooling_job *j, const double *image, int64_t out, double dy, double *dx)
{
	bool mean = j->pooling.mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING ||
		    j->pooling.mode == CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
	int64_t tap[DNN_SPATIAL] = {0}, best = -1, inside = 0;
	double most = -INFINITY, sum = 0, each;

	do {
		int64_t at = pixel(j, tap, out);

		if (at < 0)
			continue;
		inside++;
		sum += image[at];
		if (best < 0 || image[at] > most || image[at] != image[at]) {
			most = image[at];
			best = at;
		}
	} while (next(&j->pooling, tap));
	if (!mean) {
		if (dx && best >= 0)
			dx[best] += dy;
		return most;
	}
	each = j->pooling.mode == CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING
		       ? (double)inside
		       : (double)(j->pooling.size[0] * j->pooling.size[1] * j->pooling.size[2]);
	if (dx)
		do {
			int64_t at = pixel(j, tap, out);

			if (at >= 0)
				dx[at] += dy / each;
		} while (next(&j->pooling, tap));
	return each > 0 ? sum / each : 0;
}

static void pooling_run(struct dnn_job *job)
{
	struct pooling_job *j = (void *)job;
	int64_t images = j->x.dim[0] * j->x.dim[1];
	int64_t pixels = j->in[0] * j->in[1] * j->in[2];
	int64_t outs = j->out[0] * j->out[1] * j->out[2];
	cleanup_values double *x = dnn_load(job, &j->x, j->x_at);
	cleanup_values double *y =
		j->dx_at ? dnn_load(job, &j->dy, j->dy_at) : dnn_values_new(job, images * outs);
	cleanup_values double *dx = j->dx_at ? dnn_values_new(job, images * pixels) : NULL;

	if (!x || !y || (j->dx_at && !dx))
		return;
	for (int64_t i = 0; i < images; i++)
		for (int64_t o = 0; o < outs; o++) {
			double *at = &y[i * outs + o];
			double value =
				window(j, x + i * pixels, o, *at, dx ? dx + i * pixels : NULL);

			if (!dx)
				*at = value;
		}
	if (dx)
		dnn_store(job, &j->dx, j->dx_at, dx, j->alpha, j->beta);
	else
		dnn_store(job, &j->y, j->y_at, y, j->alpha, j->beta);
}

static struct pooling_job *pooling_new(struct dnn_handle *handle,
	const struct dnn_pooling *pooling, const void *alpha, const struct dnn_tensor *x,
	const void *x_at, const void *beta, const struct dnn_tensor *y, int *status)
{
	struct pooling_job *j;

	*status = CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!pooling || !alpha || !x || !x_at || !beta || !y)
		return NULL;
	*status = CUDNN_STATUS_BAD_PARAM;
	if (!dnn_tensor_right(x) || !dnn_tensor_right(y) ||
		x->count != pooling->window.count + 2 || y->count != x->count ||
		y->dim[0] != x->dim[0] || y->dim[1] != x->dim[1])
		return NULL;
	for (int d = 2; d < x->count; d++)
		if (y->dim[d] != dnn_window_out(&pooling->window, d - 2, x->dim[d],
					 pooling->size[d - 2]))
			return NULL;
	j = dnn_job_new(handle, pooling_run, sizeof(*j), status);
	if (!j)
		return NULL;
	j->pooling = *pooling;
	j->x = *x;
	j->x_at = x_at;
	j->alpha = dnn_scalar(alpha, x->type);
	j->beta = dnn_scalar(beta, x->type);
	for (int d = 0; d < DNN_SPATIAL; d++) {
		j->in[d] = d + 2 < x->count ? x->dim[d + 2] : 1;
		j->out[d] = d + 2 < x->count ? y->dim[d + 2] : 1;
	}
	return j;
}

DNN_CALL(cudnnPoolingForward, struct dnn_handle *handle, const struct dnn_pooling *pooling,
	const void *alpha, const struct dnn_tensor *x, const void *x_at, const void *beta,
	const struct dnn_tensor *y, void *y_at)
{
	struct pooling_job *j;
	int status;

	if (!y_at)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	j = pooling_new(handle, pooling, alpha, x, x_at, beta, y, &status);
	if (!j)
		return status;
	j->y = *y;
	j->y_at = y_at;
	return dnn_submit(&j->job);
}

DNN_CALL(cudnnPoolingBackward, struct dnn_handle *handle, const struct dnn_pooling *pooling,
	const void *alpha, const struct dnn_tensor *y, const void *y_at,
	const struct dnn_tensor *dy, const void *dy_at, const struct dnn_tensor *x,
	const void *x_at, const void *beta, const struct dnn_tensor *dx, void *dx_at)
{
	struct pooling_job *j;
	int status;

	if (!y || !y_at || !dy || !dy_at || !dx || !dx_at)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!dnn_same_shape(y, dy) || !x || !dnn_same_shape(x, dx))
		return CUDNN_STATUS_BAD_PARAM;
	j = pooling_new(handle, pooling, alpha, x, x_at, beta, y, &status);
	if (!j)
		return status;
	j->dx = *dx;
	j->dy = *dy;
	j->dy_at = dy_at;
	j->dx_at = dx_at;
	return dnn_submit(&j->job);
}
