/* SPDX-License-Identifier: Apache-2.0
 *
 * Activations and softmax, forward and backward.
 */
#include <math.h>

#include "softgpu/dnn/dnn.h"

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

double dnn_activate(const struct dnn_activation *a, double x)
{
	switch (a->mode) {
	case CUDNN_ACTIVATION_SIGMOID: return sigmoid(x);
	case CUDNN_ACTIVATION_RELU: return x < 0 ? 0 : x;
	case CUDNN_ACTIVATION_TANH: return tanh(x);
	case CUDNN_ACTIVATION_CLIPPED_RELU: return x < 0 ? 0 : x > a->coef ? a->coef : x;
	case CUDNN_ACTIVATION_ELU: return x < 0 ? a->coef * expm1(x) : x;
	case CUDNN_ACTIVATION_SWISH: return x * sigmoid(a->swish_beta * x);
	default: return x;
	}
}

static double dnn_activate_back(const struct dnn_activation *a, double x, double y, double dy)
{
	double s;

	switch (a->mode) {
	case CUDNN_ACTIVATION_SIGMOID: return dy * y * (1 - y);
	case CUDNN_ACTIVATION_RELU: return x > 0 ? dy : 0;
	case CUDNN_ACTIVATION_TANH: return dy * (1 - y * y);
	case CUDNN_ACTIVATION_CLIPPED_RELU: return x > 0 && x < a->coef ? dy : 0;
	case CUDNN_ACTIVATION_ELU: return x < 0 ? dy * (y + a->coef) : dy;
	case CUDNN_ACTIVATION_SWISH:
		s = sigmoid(a->swish_beta * x);
		return dy * (s + a->swish_beta * x * s * (1 - s));
	default: return dy;
	}
}

struct activation_job {
	struct dnn_job job;
	struct dnn_activation activation;
	struct dnn_tensor x, y, dx, dy;
	const void *x_at, *y_at, *dy_at;
	void *to;
	double alpha, beta;
};

static void activation_forward(struct dnn_job *job)
{
	struct activation_job *j = (void *)job;
	cleanup_values double *x = dnn_load(job, &j->x, j->x_at);

	if (!x)
		return;
	for (int64_t i = 0, n = dnn_elements(&j->x); i < n; i++)
		x[i] = dnn_activate(&j->activation, x[i]);
	dnn_store(job, &j->y, j->to, x, j->alpha, j->beta);
}

DNN_CALL(cudnnActivationForward, struct dnn_handle *handle,
	const struct dnn_activation *activation, const void *alpha, const struct dnn_tensor *x,
	const void *x_at, const void *beta, const struct dnn_tensor *y, void *y_at)
{
	struct activation_job *j;
	int status;

	if (!activation || !alpha || !beta || !x || !y || !x_at || !y_at)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!dnn_tensor_right(x) || !dnn_same_shape(x, y) || x->type != y->type)
		return CUDNN_STATUS_BAD_PARAM;
	j = dnn_job_new(handle, activation_forward, sizeof(*j), &status);
	if (!j)
		return status;
	j->activation = *activation;
	j->x = *x;
	j->y = *y;
	j->x_at = x_at;
	j->to = y_at;
	j->alpha = dnn_scalar(alpha, x->type);
	j->beta = dnn_scalar(beta, x->type);
	return dnn_submit(&j->job);
}

static void activation_backward(struct dnn_job *job)
{
	struct activation_job *j = (void *)job;
	cleanup_values double *x = dnn_load(job, &j->x, j->x_at);
	cleanup_values double *y = dnn_load(job, &j->y, j->y_at);
	cleanup_values double *dy = dnn_load(job, &j->dy, j->dy_at);

	if (!x || !y || !dy)
		return;
	for (int64_t i = 0, n = dnn_elements(&j->x); i < n; i++)
		dy[i] = dnn_activate_back(&j->activation, x[i], y[i], dy[i]);
	dnn_store(job, &j->dx, j->to, dy, j->alpha, j->beta);
}

DNN_CALL(cudnnActivationBackward, struct dnn_handle *handle,
	const struct dnn_activation *activation, const void *alpha, const struct dnn_tensor *y,
	const void *y_at, const struct dnn_tensor *dy, const void *dy_at,
	const struct dnn_tensor *x, const void *x_at, const void *beta,
	const struct dnn_tensor *dx, void *dx_at)
{
	struct activation_job *j;
	int status;

	if (!activation || !alpha || !beta || !x || !y || !dx || !dy || !x_at || !y_at ||
		!dx_at || !dy_at)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!dnn_tensor_right(x) || !dnn_same_shape(x, y) || !dnn_same_shape(x, dy) ||
		!dnn_same_shape(x, dx))
		return CUDNN_STATUS_BAD_PARAM;
	j = dnn_job_new(handle, activation_backward, sizeof(*j), &status);
	if (!j)
		return status;
	j->activation = *activation;
	j->x = *x;
	j->y = *y;
	j->dx = *dx;
	j->dy = *dy;
	j->x_at = x_at;
	j->y_at = y_at;
	j->dy_at = dy_at;
	j->to = dx_at;
	j->alpha = dnn_scalar(alpha, x->type);
	j->beta = dnn_scalar(beta, x->type);
	return dnn_submit(&j->job);
}

/* ---- softmax ---- */

struct softmax_job {
	struct dnn_job job;
	struct dnn_tensor x, y, z; /* forward: from x to z; backward: from y and dy (x) to z */
	const void *x_at, *y_at;
	void *to;
	double alpha, beta;
	bool logarithm, channel;
};

/* One softmax lies at `first` and every `step` from there. */
static void softmax_one(double *v, int64_t count, int64_t step, bool logarithm)
{
	double most = -INFINITY, sum = 0;

	for (int64_t i = 0; i < count; i++)
		most = v[i * step] > most ? v[i * step] : most;
	for (int64_t i = 0; i < count; i++)
		sum += exp(v[i * step] - most);
	for (int64_t i = 0; i < count; i++)
		v[i * step] = logarithm ? v[i * step] - most - log(sum)
					: exp(v[i * step] - most) / sum;
}

static void softmax_one_back(
	const double *y, double *dy, int64_t count, int64_t step, bool logarithm)
{
	double sum = 0;

	for (int64_t i = 0; i < count; i++)
		sum += logarithm ? dy[i * step] : dy[i * step] * y[i * step];
	for (int64_t i = 0; i < count; i++)
		dy[i * step] = logarithm ? dy[i * step] - exp(y[i * step]) * sum
					 : (dy[i * step] - sum) * y[i * step];
}

static void softmax_run(struct dnn_job *job)
{
	struct softmax_job *j = (void *)job;
	cleanup_values double *x = dnn_load(job, &j->x, j->x_at);
	cleanup_values double *y = j->y_at ? dnn_load(job, &j->y, j->y_at) : NULL;
	int64_t n = j->x.dim[0], each = dnn_elements(&j->x) / n;
	int64_t count = j->channel ? j->x.dim[1] : each, step = each / count;

	if (!x || (j->y_at && !y))
		return;
	for (int64_t i = 0; i < n; i++)
		for (int64_t s = 0; s < step; s++) {
			if (y)
				softmax_one_back(y + i * each + s, x + i * each + s, count,
					step, j->logarithm);
			else
				softmax_one(x + i * each + s, count, step, j->logarithm);
		}
	dnn_store(job, &j->z, j->to, x, j->alpha, j->beta);
}

static int softmax(struct dnn_handle *handle, int algorithm, int mode, const void *alpha,
	const struct dnn_tensor *x, const void *x_at, const struct dnn_tensor *y,
	const void *y_at, const void *beta, const struct dnn_tensor *z, void *to)
{
	struct softmax_job *j;
	int status;

	if (!alpha || !beta || !x || !y || !z || !x_at || !to)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (algorithm < 0 || algorithm > CUDNN_SOFTMAX_LOG || mode < 0 ||
		mode > CUDNN_SOFTMAX_MODE_CHANNEL || !dnn_tensor_right(x) || x->count < 2 ||
		!dnn_same_shape(x, y) || !dnn_same_shape(x, z))
		return CUDNN_STATUS_BAD_PARAM;
	j = dnn_job_new(handle, softmax_run, sizeof(*j), &status);
	if (!j)
		return status;
	j->x = *x;
	j->y = *y;
	j->z = *z;
	j->x_at = x_at;
	j->y_at = y_at;
	j->to = to;
	j->alpha = dnn_scalar(alpha, x->type);
	j->beta = dnn_scalar(beta, x->type);
	j->logarithm = algorithm == CUDNN_SOFTMAX_LOG;
	j->channel = mode == CUDNN_SOFTMAX_MODE_CHANNEL;
	return dnn_submit(&j->job);
}

DNN_CALL(cudnnSoftmaxForward, struct dnn_handle *handle, int algorithm, int mode,
	const void *alpha, const struct dnn_tensor *x, const void *x_at, const void *beta,
	const struct dnn_tensor *y, void *y_at)
{
	return softmax(handle, algorithm, mode, alpha, x, x_at, y, NULL, beta, y, y_at);
}

DNN_CALL(cudnnSoftmaxBackward, struct dnn_handle *handle, int algorithm, int mode,
	const void *alpha, const struct dnn_tensor *y, const void *y_at,
	const struct dnn_tensor *dy, const void *dy_at, const void *beta,
	const struct dnn_tensor *dx, void *dx_at)
{
	if (!y_at)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	return softmax(handle, algorithm, mode, alpha, dy, dy_at, y, y_at, beta, dx, dx_at);
}
