/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalization: per activation and spatial, alone, with an activation, and with an added
 * tensor and an activation.  What the activation let through is kept in the reserve space, a
 * byte an element.
 */
#include <math.h>

#include "softgpu/dnn/dnn.h"

struct norm_job {
	struct dnn_job job;
	bool spatial, training;
	int ops;
	struct dnn_tensor x, y, z, dx, dy, dz, parameters;
	const void *x_at, *z_at, *dy_at, *scale, *bias, *mean, *variance;
	void *y_at, *dx_at, *dz_at, *running_mean, *running_variance, *saved_mean,
		*saved_inverse;
	void *dscale, *dbias;
	uint8_t *reserve;
	double alpha, beta, parameter_alpha, parameter_beta, factor, epsilon;
	struct dnn_activation activation;
};

/* The parameter that an element belongs to. */
static int64_t parameter_of(const struct norm_job *j, int64_t element)
{
	int64_t image = dnn_elements(&j->x) / j->x.dim[0];

	element %= image;
	return j->spatial ? element / (image / j->x.dim[1]) : element;
}

/* Mean and 1 / sqrt(variance + epsilon) of each parameter's elements; returns how many those
 * are, and leaves the variance in `variance`. */
static double statistics(const struct norm_job *j, const double *x, double *mean,
	double *variance, double *inverse)
{
	int64_t n = dnn_elements(&j->x), p = dnn_elements(&j->parameters);
	double each = (double)(n / p);

	for (int64_t i = 0; i < n; i++)
		mean[parameter_of(j, i)] += x[i] / each;
	for (int64_t i = 0; i < n; i++) {
		double off = x[i] - mean[parameter_of(j, i)];

		variance[parameter_of(j, i)] += off * off / each;
	}
	for (int64_t i = 0; i < p; i++)
		inverse[i] = 1 / sqrt(variance[i] + j->epsilon);
	return each;
}

/* running = (1 - factor) * running + factor * now */
static void run_on(struct norm_job *j, void *running, const double *now)
{
	if (running)
		dnn_store(&j->job, &j->parameters, running, now, j->factor, 1 - j->factor);
}

static void forward(struct dnn_job *job)
{
	struct norm_job *j = (void *)job;
	int64_t n = dnn_elements(&j->x), p = dnn_elements(&j->parameters);
	bool added = j->ops == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION;
	cleanup_values double *x = dnn_load(job, &j->x, j->x_at);
	cleanup_values double *z = added ? dnn_load(job, &j->z, j->z_at) : NULL;
	cleanup_values double *scale = dnn_load(job, &j->parameters, j->scale);
	cleanup_values double *bias = dnn_load(job, &j->parameters, j->bias);
	cleanup_values double *inverse = dnn_values_new(job, p);
	cleanup_values double *mean =
		j->training ? dnn_values_new(job, p) : dnn_load(job, &j->parameters, j->mean);
	cleanup_values double *variance = j->training
						  ? dnn_values_new(job, p)
						  : dnn_load(job, &j->parameters, j->variance);
	uint8_t *mask = NULL;
	double each;

	if (j->ops != CUDNN_BATCHNORM_OPS_BN && j->training)
		mask = dnn_reach(job, j->reserve, (uint64_t)n);
	if (job->handle->failed)
		return;
	if (j->training) {
		each = statistics(j, x, mean, variance, inverse);
		if (j->saved_mean)
			dnn_store(job, &j->parameters, j->saved_mean, mean, 1, 0);
		if (j->saved_inverse)
			dnn_store(job, &j->parameters, j->saved_inverse, inverse, 1, 0);
		run_on(j, j->running_mean, mean);
		/* The running one is of the population. */
		for (int64_t i = 0; i < p && each > 1; i++)
			variance[i] *= each / (each - 1);
		run_on(j, j->running_variance, variance);
	} else {
		for (int64_t i = 0; i < p; i++)
			inverse[i] = 1 / sqrt(variance[i] + j->epsilon);
	}
	for (int64_t i = 0; i < n; i++) {
		int64_t at = parameter_of(j, i);

		x[i] = scale[at] * (x[i] - mean[at]) * inverse[at] + bias[at];
		if (j->ops == CUDNN_BATCHNORM_OPS_BN)
			continue;
		x[i] = dnn_activate(&j->activation, x[i] + (z ? z[i] : 0));
		if (mask)
			mask[i] = x[i] > 0;
	}
	dnn_store(job, &j->y, j->y_at, x, j->alpha, j->beta);
}

static void backward(struct dnn_job *job)
{
	struct norm_job *j = (void *)job;
	int64_t n = dnn_elements(&j->x), p = dnn_elements(&j->parameters);
	bool saved = j->saved_mean && j->saved_inverse;
	cleanup_values double *x = dnn_load(job, &j->x, j->x_at);
	cleanup_values double *dy = dnn_load(job, &j->dy, j->dy_at);
	cleanup_values double *scale = dnn_load(job, &j->parameters, j->scale);
	cleanup_values double *dscale = dnn_values_new(job, p);
	cleanup_values double *dbias = dnn_values_new(job, p);
	cleanup_values double *variance = dnn_values_new(job, p);
	cleanup_values double *mean =
		saved ? dnn_load(job, &j->parameters, j->saved_mean) : dnn_values_new(job, p);
	cleanup_values double *inverse = saved ? dnn_load(job, &j->parameters, j->saved_inverse)
					       : dnn_values_new(job, p);
	uint8_t *mask = NULL;
	double each = (double)(n / p);

	if (j->ops != CUDNN_BATCHNORM_OPS_BN)
		mask = dnn_reach(job, j->reserve, (uint64_t)n);
	if (job->handle->failed)
		return;
	if (!saved)
		statistics(j, x, mean, variance, inverse);
	for (int64_t i = 0; i < n; i++) {
		int64_t at = parameter_of(j, i);

		if (mask && !mask[i])
			dy[i] = 0;
		x[i] = (x[i] - mean[at]) * inverse[at];
		dscale[at] += dy[i] * x[i];
		dbias[at] += dy[i];
	}
	if (j->dz_at)
		dnn_store(job, &j->dz, j->dz_at, dy, 1, 0);
	for (int64_t i = 0; i < n; i++) {
		int64_t at = parameter_of(j, i);

		dy[i] = scale[at] * inverse[at] *
			(dy[i] - dbias[at] / each - x[i] * dscale[at] / each);
	}
	dnn_store(job, &j->dx, j->dx_at, dy, j->alpha, j->beta);
	dnn_store(
		job, &j->parameters, j->dscale, dscale, j->parameter_alpha, j->parameter_beta);
	dnn_store(job, &j->parameters, j->dbias, dbias, j->parameter_alpha, j->parameter_beta);
}

/* Whether parameters of that shape go with x. */
static bool parameters_right(int mode, const struct dnn_tensor *x, const struct dnn_tensor *p)
{
	if (x->count < 4 || x->count > 5 || p->count != x->count || p->dim[0] != 1 ||
		p->dim[1] != x->dim[1])
		return false;
	for (int d = 2; d < x->count; d++)
		if (p->dim[d] != (mode == CUDNN_BATCHNORM_PER_ACTIVATION ? x->dim[d] : 1))
			return false;
	return true;
}

/* A job with what all forms have, or NULL with *status. */
static struct norm_job *norm_new(struct dnn_handle *handle, void (*run)(struct dnn_job *),
	int mode, int ops, const struct dnn_tensor *x, const void *x_at,
	const struct dnn_tensor *parameters, const void *scale, const void *alpha,
	const void *beta, double epsilon, const struct dnn_activation *activation,
	void *reserve, size_t reserve_bytes, int *status)
{
	bool active = ops != CUDNN_BATCHNORM_OPS_BN;
	struct norm_job *j;

	*status = CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!x || !x_at || !parameters || !scale || !alpha || !beta || (active && !activation))
		return NULL;
	*status = CUDNN_STATUS_BAD_PARAM;
	if (mode < 0 || mode > CUDNN_BATCHNORM_SPATIAL_PERSISTENT || ops < 0 ||
		ops > CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION || !dnn_tensor_right(x) ||
		!dnn_tensor_right(parameters) || !parameters_right(mode, x, parameters) ||
		!(epsilon >= 0) || (active && reserve_bytes < (uint64_t)dnn_elements(x)))
		return NULL;
	*status = CUDNN_STATUS_NOT_SUPPORTED;
	if (active && activation->mode != CUDNN_ACTIVATION_RELU)
		return NULL;
	j = dnn_job_new(handle, run, sizeof(*j), status);
	if (!j)
		return NULL;
	j->spatial = mode != CUDNN_BATCHNORM_PER_ACTIVATION;
	j->ops = ops;
	j->x = *x;
	j->x_at = x_at;
	j->parameters = *parameters;
	j->scale = scale;
	j->alpha = dnn_scalar(alpha, x->type);
	j->beta = dnn_scalar(beta, x->type);
	j->epsilon = epsilon;
	if (active)
		j->activation = *activation;
	j->reserve = reserve;
	return j;
}

DNN_CALL(cudnnBatchNormalizationForwardInference, struct dnn_handle *handle, int mode,
	const void *alpha, const void *beta, const struct dnn_tensor *x, const void *x_at,
	const struct dnn_tensor *y, void *y_at, const struct dnn_tensor *parameters,
	const void *scale, const void *bias, const void *mean, const void *variance,
	double epsilon)
{
	struct norm_job *j;
	int status;

	if (!y || !y_at || !bias || !mean || !variance)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!x || !dnn_same_shape(x, y))
		return CUDNN_STATUS_BAD_PARAM;
	j = norm_new(handle, forward, mode, CUDNN_BATCHNORM_OPS_BN, x, x_at, parameters, scale,
		alpha, beta, epsilon, NULL, NULL, 0, &status);
	if (!j)
		return status;
	j->y = *y;
	j->y_at = y_at;
	j->bias = bias;
	j->mean = mean;
	j->variance = variance;
	return dnn_submit(&j->job);
}

DNN_CALL(cudnnBatchNormalizationForwardTrainingEx, struct dnn_handle *handle, int mode, int ops,
	const void *alpha, const void *beta, const struct dnn_tensor *x, const void *x_at,
	const struct dnn_tensor *z, const void *z_at, const struct dnn_tensor *y, void *y_at,
	const struct dnn_tensor *parameters, const void *scale, const void *bias, double factor,
	void *running_mean, void *running_variance, double epsilon, void *saved_mean,
	void *saved_inverse, const struct dnn_activation *activation, void *workspace,
	size_t workspace_bytes, void *reserve, size_t reserve_bytes)
{
	bool added = ops == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION;
	struct norm_job *j;
	int status;

	(void)workspace;
	(void)workspace_bytes;
	if (!y || !y_at || !bias || (added && (!z || !z_at)))
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!x || !dnn_same_shape(x, y) || (added && !dnn_same_shape(x, z)) ||
		!running_mean != !running_variance || !saved_mean != !saved_inverse)
		return CUDNN_STATUS_BAD_PARAM;
	j = norm_new(handle, forward, mode, ops, x, x_at, parameters, scale, alpha, beta,
		epsilon, activation, reserve, reserve_bytes, &status);
	if (!j)
		return status;
	j->training = true;
	j->y = *y;
	j->y_at = y_at;
	if (added) {
		j->z = *z;
		j->z_at = z_at;
	}
	j->bias = bias;
	j->factor = factor;
	j->running_mean = running_mean;
	j->running_variance = running_variance;
	j->saved_mean = saved_mean;
	j->saved_inverse = saved_inverse;
	return dnn_submit(&j->job);
}

DNN_CALL(cudnnBatchNormalizationForwardTraining, struct dnn_handle *handle, int mode,
	const void *alpha, const void *beta, const struct dnn_tensor *x, const void *x_at,
	const struct dnn_tensor *y, void *y_at, const struct dnn_tensor *parameters,
	const void *scale, const void *bias, double factor, void *running_mean,
	void *running_variance, double epsilon, void *saved_mean, void *saved_inverse)
{
	return cudnnBatchNormalizationForwardTrainingEx(handle, mode, CUDNN_BATCHNORM_OPS_BN,
		alpha, beta, x, x_at, NULL, NULL, y, y_at, parameters, scale, bias, factor,
		running_mean, running_variance, epsilon, saved_mean, saved_inverse, NULL, NULL,
		0, NULL, 0);
}

DNN_CALL(cudnnBatchNormalizationBackwardEx, struct dnn_handle *handle, int mode, int ops,
	const void *alpha, const void *beta, const void *parameter_alpha,
	const void *parameter_beta, const struct dnn_tensor *x, const void *x_at,
	const struct dnn_tensor *y, const void *y_at, const struct dnn_tensor *dy,
	const void *dy_at, const struct dnn_tensor *dz, void *dz_at,
	const struct dnn_tensor *dx, void *dx_at, const struct dnn_tensor *parameters,
	const void *scale, const void *bias, void *dscale, void *dbias, double epsilon,
	const void *saved_mean, const void *saved_inverse,
	const struct dnn_activation *activation, void *workspace, size_t workspace_bytes,
	void *reserve, size_t reserve_bytes)
{
	bool added = ops == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION;
	struct norm_job *j;
	int status;

	(void)y;
	(void)y_at;
	(void)bias;
	(void)workspace;
	(void)workspace_bytes;
	if (!parameter_alpha || !parameter_beta || !dy || !dy_at || !dx || !dx_at || !dscale ||
		!dbias || (added && (!dz || !dz_at)))
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!x || !dnn_same_shape(x, dy) || !dnn_same_shape(x, dx) ||
		(added && !dnn_same_shape(x, dz)) || !saved_mean != !saved_inverse)
		return CUDNN_STATUS_BAD_PARAM;
	j = norm_new(handle, backward, mode, ops, x, x_at, parameters, scale, alpha, beta,
		epsilon, activation, reserve, reserve_bytes, &status);
	if (!j)
		return status;
	j->parameter_alpha = dnn_scalar(parameter_alpha, x->type);
	j->parameter_beta = dnn_scalar(parameter_beta, x->type);
	j->dx = *dx;
	j->dx_at = dx_at;
	j->dy = *dy;
	j->dy_at = dy_at;
	if (added) {
		j->dz = *dz;
		j->dz_at = dz_at;
	}
	j->dscale = dscale;
	j->dbias = dbias;
	j->saved_mean = (void *)(uintptr_t)saved_mean;
	j->saved_inverse = (void *)(uintptr_t)saved_inverse;
	return dnn_submit(&j->job);
}

DNN_CALL(cudnnBatchNormalizationBackward, struct dnn_handle *handle, int mode,
	const void *alpha, const void *beta, const void *parameter_alpha,
	const void *parameter_beta, const struct dnn_tensor *x, const void *x_at,
	const struct dnn_tensor *dy, const void *dy_at, const struct dnn_tensor *dx,
	void *dx_at, const struct dnn_tensor *parameters, const void *scale, void *dscale,
	void *dbias, double epsilon, const void *saved_mean, const void *saved_inverse)
{
	return cudnnBatchNormalizationBackwardEx(handle, mode, CUDNN_BATCHNORM_OPS_BN, alpha,
		beta, parameter_alpha, parameter_beta, x, x_at, NULL, NULL, dy, dy_at, NULL,
		NULL, dx, dx_at, parameters, scale, NULL, dscale, dbias, epsilon, saved_mean,
		saved_inverse, NULL, NULL, 0, NULL, 0);
}

/* ---- shapes and sizes ---- */

DNN_CALL(cudnnDeriveBNTensorDescriptor, struct dnn_tensor *derived, const struct dnn_tensor *x,
	int mode)
{
	if (!derived || !x)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!dnn_tensor_right(x) || x->count < 4 || x->count > 5 || mode < 0 ||
		mode > CUDNN_BATCHNORM_SPATIAL_PERSISTENT)
		return CUDNN_STATUS_BAD_PARAM;
	*derived = (struct dnn_tensor){.count = x->count,
		.type = x->type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT};
	for (int d = 0; d < x->count; d++)
		derived->dim[d] =
			d == 1 || (d && mode == CUDNN_BATCHNORM_PER_ACTIVATION) ? x->dim[d] : 1;
	dnn_packed(derived, false);
	return CUDNN_STATUS_SUCCESS;
}

/* The workspace is the library's own memory. */
static int no_workspace(size_t *size)
{
	if (!size)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*size = 0;
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize, struct dnn_handle *handle,
	int mode, int ops, const struct dnn_tensor *x, const struct dnn_tensor *z,
	const struct dnn_tensor *y, const struct dnn_tensor *parameters,
	const struct dnn_activation *activation, size_t *size)
{
	(void)handle;
	(void)mode;
	(void)ops;
	(void)x;
	(void)z;
	(void)y;
	(void)parameters;
	(void)activation;
	return no_workspace(size);
}

DNN_CALL(cudnnGetBatchNormalizationBackwardExWorkspaceSize, struct dnn_handle *handle, int mode,
	int ops, const struct dnn_tensor *x, const struct dnn_tensor *y,
	const struct dnn_tensor *dy, const struct dnn_tensor *dz, const struct dnn_tensor *dx,
	const struct dnn_tensor *parameters, const struct dnn_activation *activation,
	size_t *size)
{
	(void)handle;
	(void)mode;
	(void)ops;
	(void)x;
	(void)y;
	(void)dy;
	(void)dz;
	(void)dx;
	(void)parameters;
	(void)activation;
	return no_workspace(size);
}

DNN_CALL(cudnnGetBatchNormalizationTrainingExReserveSpaceSize, struct dnn_handle *handle,
	int mode, int ops, const struct dnn_activation *activation, const struct dnn_tensor *x,
	size_t *size)
{
	(void)handle;
	(void)mode;
	(void)activation;
	if (!x || !size)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!dnn_tensor_right(x))
		return CUDNN_STATUS_BAD_PARAM;
	*size = ops == CUDNN_BATCHNORM_OPS_BN ? 0 : (size_t)dnn_elements(x);
	return CUDNN_STATUS_SUCCESS;
}
