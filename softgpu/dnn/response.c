/* SPDX-License-Identifier: Apache-2.0
 *
 * Local response normalization across channels, forward and backward:
 * y = x / s^beta, s = k + alpha / n * the sum of the squares of n channels around it.
 */
#include <math.h>

#include "softgpu/dnn/dnn.h"

#define RESPONSE_MOST 16 /* channels */

struct dnn_response {
	unsigned n;
	double alpha, beta, k;
};

DNN_CALL(cudnnCreateLRNDescriptor, struct dnn_response **response)
{
	if (!response)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*response = calloc(1, sizeof(**response));
	if (!*response)
		return CUDNN_STATUS_ALLOC_FAILED;
	**response = (struct dnn_response){5, 1e-4, 0.75, 2};
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnDestroyLRNDescriptor, struct dnn_response *response)
{
	free(response);
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnSetLRNDescriptor, struct dnn_response *response, unsigned n, double alpha,
	double beta, double k)
{
	if (!response)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (n < 1 || n > RESPONSE_MOST || k < 1e-5 || beta < 0.01)
		return CUDNN_STATUS_BAD_PARAM;
	*response = (struct dnn_response){n, alpha, beta, k};
	return CUDNN_STATUS_SUCCESS;
}

struct response_job {
	struct dnn_job job;
	struct dnn_response response;
	struct dnn_tensor x, y, dy, dx;
	const void *x_at, *dy_at;
	void *y_at, *dx_at;
	double alpha, beta;
	int64_t images, channels, pixels;
};

/* The channels that channel C is divided by: [*from, *to). */
static void around(const struct response_job *j, int64_t c, int64_t *from, int64_t *to)
{
	int64_t behind = (j->response.n - 1) / 2, ahead = j->response.n - behind - 1;

	*from = c < behind ? 0 : c - behind;
	*to = c + ahead + 1 > j->channels ? j->channels : c + ahead + 1;
}

static void divisors(const struct response_job *j, const double *x, double *s)
{
	int64_t from, to;

	for (int64_t c = 0; c < j->channels; c++) {
		around(j, c, &from, &to);
		for (int64_t p = 0; p < j->pixels; p++) {
			double sum = 0;

			for (int64_t o = from; o < to; o++)
				sum += x[o * j->pixels + p] * x[o * j->pixels + p];
			s[c * j->pixels + p] =
				j->response.k + j->response.alpha / j->response.n * sum;
		}
	}
}

/* What the outputs around an input get of it, beside its own. */
static void gradients(const struct response_job *j, const double *x, const double *s,
	const double *dy, double *dx)
{
	double by = 2 * j->response.alpha * j->response.beta / j->response.n;
	int64_t from, to;

	for (int64_t o = 0; o < j->channels; o++) {
		around(j, o, &from, &to);
		for (int64_t p = 0; p < j->pixels; p++) {
			int64_t at = o * j->pixels + p;
			double root = pow(s[at], -j->response.beta);

			dx[at] += dy[at] * root;
			for (int64_t c = from; c < to; c++)
				dx[c * j->pixels + p] -= by * x[c * j->pixels + p] * dy[at] *
							 x[at] * root / s[at];
		}
	}
}

static void response_run(struct dnn_job *job)
{
	struct response_job *j = (void *)job;
	int64_t image = j->channels * j->pixels, all = j->images * image;
	cleanup_values double *x = dnn_load(job, &j->x, j->x_at);
	cleanup_values double *y = dnn_values_new(job, all);
	cleanup_values double *s = dnn_values_new(job, image);
	cleanup_values double *dy = j->dx_at ? dnn_load(job, &j->dy, j->dy_at) : NULL;

	if (!x || !y || !s || (j->dx_at && !dy))
		return;
	for (int64_t i = 0; i < j->images; i++) {
		divisors(j, x + i * image, s);
		if (dy)
			gradients(j, x + i * image, s, dy + i * image, y + i * image);
		for (int64_t at = 0; !dy && at < image; at++)
			y[i * image + at] = x[i * image + at] * pow(s[at], -j->response.beta);
	}
	if (dy)
		dnn_store(job, &j->dx, j->dx_at, y, j->alpha, j->beta);
	else
		dnn_store(job, &j->y, j->y_at, y, j->alpha, j->beta);
}

static struct response_job *response_new(struct dnn_handle *handle,
	const struct dnn_response *response, int mode, const void *alpha,
	const struct dnn_tensor *x, const void *x_at, const void *beta,
	const struct dnn_tensor *y, int *status)
{
	struct response_job *j;

	*status = CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!response || !alpha || !x || !x_at || !beta || !y)
		return NULL;
	*status = CUDNN_STATUS_BAD_PARAM;
	if (mode || !dnn_tensor_right(x) || !dnn_same_shape(x, y) || x->count < 2)
		return NULL;
	j = dnn_job_new(handle, response_run, sizeof(*j), status);
	if (!j)
		return NULL;
	j->response = *response;
	j->x = *x;
	j->x_at = x_at;
	j->alpha = dnn_scalar(alpha, x->type);
	j->beta = dnn_scalar(beta, x->type);
	j->images = x->dim[0];
	j->channels = x->dim[1];
	j->pixels = 1;
	for (int d = 2; d < x->count; d++)
		j->pixels *= x->dim[d];
	return j;
}

DNN_CALL(cudnnLRNCrossChannelForward, struct dnn_handle *handle,
	const struct dnn_response *response, int mode, const void *alpha,
	const struct dnn_tensor *x, const void *x_at, const void *beta,
	const struct dnn_tensor *y, void *y_at)
{
	struct response_job *j;
	int status;

	if (!y_at)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	j = response_new(handle, response, mode, alpha, x, x_at, beta, y, &status);
	if (!j)
		return status;
	j->y = *y;
	j->y_at = y_at;
	return dnn_submit(&j->job);
}

DNN_CALL(cudnnLRNCrossChannelBackward, struct dnn_handle *handle,
	const struct dnn_response *response, int mode, const void *alpha,
	const struct dnn_tensor *y, const void *y_at, const struct dnn_tensor *dy,
	const void *dy_at, const struct dnn_tensor *x, const void *x_at, const void *beta,
	const struct dnn_tensor *dx, void *dx_at)
{
	struct response_job *j;
	int status;

	if (!y || !y_at || !dy || !dy_at || !dx || !dx_at)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!x || !dnn_same_shape(y, dy) || !dnn_same_shape(x, dx))
		return CUDNN_STATUS_BAD_PARAM;
	j = response_new(handle, response, mode, alpha, x, x_at, beta, y, &status);
	if (!j)
		return status;
	j->dy = *dy;
	j->dx = *dx;
	j->dy_at = dy_at;
	j->dx_at = dx_at;
	return dnn_submit(&j->job);
}
