/* SPDX-License-Identifier: Apache-2.0
 *
 * Fused operations: a convolution, or its filter's gradient, of what a normalization and an
 * activation make of x, with sums of the result; and what a normalization makes of such sums.
 */
#include <math.h>

#include "softgpu/dnn/fused.h"

struct fused_plan {
	int ops;
	bool made;
	struct fused_constants constants;
};

/* ---- plans ---- */

DNN_CALL(cudnnCreateFusedOpsPlan, struct fused_plan **plan, int ops)
{
	return fused_new((int **)plan, sizeof(**plan), ops);
}

DNN_CALL(cudnnDestroyFusedOpsPlan, struct fused_plan *plan)
{
	free(plan);
	return CUDNN_STATUS_SUCCESS;
}

/* The placeholder of each pointer that is looked at. */
static const int placeholder[POINTERS] = {[P_X] = 1,
	[P_EQSCALE] = 4,
	[P_EQBIAS] = 5,
	[P_W] = 9,
	[P_DW] = 11,
	[P_Y] = 13,
	[P_DY] = 15,
	[P_SUM] = 17,
	[P_SQUARES] = 18,
	[P_SCALE] = 20,
	[P_BIAS] = 21,
	[P_MEAN] = 22,
	[P_INVSTD] = 23,
	[P_RUNNING_MEAN] = 24,
	[P_RUNNING_VAR] = 25};

static bool uses(const struct fused_constants *c, int pointer)
{
	return placeholder[pointer] && c->number[placeholder[pointer]];
}

/* A vector of channels: of as many as `channels`. */
static bool vector_right(const struct fused_constants *c, int label, int64_t channels)
{
	const struct dnn_tensor *t = &c->tensor[label];

	return c->has[label] && dnn_tensor_right(t) && t->count > 1 && t->dim[1] == channels &&
	       dnn_elements(t) == channels;
}

static int convolution_shape(const struct fused_constants *c, struct dnn_shape *shape)
{
	bool back = c->ops == WGRAD;
	int w = back ? DW : W, y = back ? DY : Y;
	struct dnn_tensor filter;

	if (!c->has[X] || !c->has[w] || !c->has[y] || !c->has[CONVOLUTION] || !uses(c, P_X) ||
		!uses(c, back ? P_DW : P_W) || !uses(c, back ? P_DY : P_Y) ||
		!dnn_tensor_right(&c->tensor[X]) || !dnn_tensor_right(&c->tensor[y]) ||
		!c->filter[w].count)
		return CUDNN_STATUS_BAD_PARAM;
	if ((uses(c, P_EQSCALE) || uses(c, P_EQBIAS)) &&
		!vector_right(c, EQ, c->tensor[X].dim[1]))
		return CUDNN_STATUS_BAD_PARAM;
	if ((uses(c, P_SUM) || uses(c, P_SQUARES)) &&
		!vector_right(c, STATS, c->tensor[y].dim[1]))
		return CUDNN_STATUS_BAD_PARAM;
	filter = dnn_filter_tensor(&c->filter[w]);
	return dnn_shape_of(shape, &c->convolution.window, c->convolution.groups,
		c->convolution.mode == CUDNN_CONVOLUTION, &c->tensor[X], &filter,
		&c->tensor[y]);
}

static int finalize_right(const struct fused_constants *c)
{
	int64_t channels = c->tensor[BN].count > 1 ? c->tensor[BN].dim[1] : 0;
	bool training = c->ops == FINALIZE_TRAINING;

	if (!vector_right(c, BN, channels) || !vector_right(c, EQ, channels) ||
		(training && (!vector_right(c, STATS, channels) || !uses(c, P_SUM) ||
				     !uses(c, P_SQUARES))) ||
		(!training && (!uses(c, P_RUNNING_MEAN) || !uses(c, P_RUNNING_VAR))) ||
		!uses(c, P_SCALE) || !uses(c, P_BIAS))
		return CUDNN_STATUS_BAD_PARAM;
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnMakeFusedOpsPlan, struct dnn_handle *handle, struct fused_plan *plan,
	const struct fused_constants *constants, size_t *workspace)
{
	struct dnn_shape shape;
	int status;

	if (!handle || !plan || !constants || !workspace)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (plan->ops != constants->ops)
		return CUDNN_STATUS_BAD_PARAM;
	if (plan->ops >= SERVED)
		return CUDNN_STATUS_NOT_SUPPORTED;
	*workspace = 0;
	if (plan->ops <= WGRAD) {
		status = convolution_shape(constants, &shape);
		if (!status)
			*workspace = dnn_convolve_workspace(&shape);
	} else {
		status = finalize_right(constants);
	}
	if (status)
		return status;
	plan->constants = *constants;
	plan->made = true;
	return CUDNN_STATUS_SUCCESS;
}

/* ---- executing ---- */

struct fused_job {
	struct dnn_job job;
	struct fused_constants c;
	struct fused_variants v;
};

/* A vector of channels, or NULL where the operation does not use it. */
static double *vector(struct fused_job *j, int label, int pointer)
{
	return uses(&j->c, pointer)
		       ? dnn_load(&j->job, &j->c.tensor[label], j->v.pointer[pointer])
		       : NULL;
}

static void vector_store(struct fused_job *j, int label, int pointer, const double *values)
{
	if (uses(&j->c, pointer))
		dnn_store(&j->job, &j->c.tensor[label], j->v.pointer[pointer], values, 1, 0);
}

/* x as the convolution reads it. */
static double *input(struct fused_job *j)
{
	const struct dnn_tensor *t = &j->c.tensor[X];
	double *x = dnn_load(&j->job, t, j->v.pointer[P_X]);
	cleanup_values double *scale = vector(j, EQ, P_EQSCALE);
	cleanup_values double *bias = vector(j, EQ, P_EQBIAS);
	int64_t inner = dnn_elements(t) / t->dim[0] / t->dim[1];

	for (int64_t i = 0; x && i < dnn_elements(t); i++) {
		int64_t channel = i / inner % t->dim[1];

		x[i] = (scale ? scale[channel] : 1) * x[i] + (bias ? bias[channel] : 0);
		if (j->c.has[ACTIVATION])
			x[i] = dnn_activate(&j->c.activation, x[i]);
	}
	return x;
}

static void sums(struct fused_job *j, const double *y)
{
	const struct dnn_tensor *t = &j->c.tensor[Y];
	int64_t inner = dnn_elements(t) / t->dim[0] / t->dim[1];
	cleanup_values double *sum = dnn_values_new(&j->job, t->dim[1]);
	cleanup_values double *squares = dnn_values_new(&j->job, t->dim[1]);

	if (!sum || !squares)
		return;
	for (int64_t i = 0; i < dnn_elements(t); i++) {
		sum[i / inner % t->dim[1]] += y[i];
		squares[i / inner % t->dim[1]] += y[i] * y[i];
	}
	vector_store(j, STATS, P_SUM, sum);
	vector_store(j, STATS, P_SQUARES, squares);
}

static void convolution_run(struct fused_job *j)
{
	bool back = j->c.ops == WGRAD;
	int out = back ? DY : Y;
	struct dnn_tensor filter = dnn_filter_tensor(&j->c.filter[back ? DW : W]);
	struct dnn_shape shape;
	cleanup_values double *x = input(j), *w = NULL, *y = NULL, *column = NULL;

	if (convolution_shape(&j->c, &shape)) {
		dnn_fail(&j->job);
		return;
	}
	column = dnn_values_new(&j->job, (int64_t)(dnn_convolve_workspace(&shape) / 8));
	w = back ? dnn_values_new(&j->job, dnn_elements(&filter))
		 : dnn_load(&j->job, &filter, j->v.pointer[P_W]);
	y = back ? dnn_load(&j->job, &j->c.tensor[out], j->v.pointer[P_DY])
		 : dnn_values_new(&j->job, dnn_elements(&j->c.tensor[out]));
	if (!x || !w || !y || !column)
		return;
	if (back) {
		dnn_convolve_filter(&shape, x, y, w, column);
		dnn_store(&j->job, &filter, j->v.pointer[P_DW], w, 1, 0);
		return;
	}
	dnn_convolve(&shape, x, w, y, column);
	dnn_store(&j->job, &j->c.tensor[out], j->v.pointer[P_Y], y, 1, 0);
	sums(j, y);
}

static void finalize_run(struct fused_job *j)
{
	bool training = j->c.ops == FINALIZE_TRAINING;
	int64_t n = dnn_elements(&j->c.tensor[BN]);
	double count = (double)j->v.count, f = j->v.factor;
	cleanup_values double *sum = vector(j, STATS, P_SUM);
	cleanup_values double *squares = vector(j, STATS, P_SQUARES);
	cleanup_values double *scale = vector(j, BN, P_SCALE), *bias = vector(j, BN, P_BIAS);
	cleanup_values double *mean = dnn_values_new(&j->job, n);
	cleanup_values double *inverse = dnn_values_new(&j->job, n);
	cleanup_values double *running = vector(j, BN, P_RUNNING_MEAN);
	cleanup_values double *spread = vector(j, BN, P_RUNNING_VAR);

	if (!scale || !bias || !mean || !inverse || (training && (!sum || !squares)) ||
		(!training && (!running || !spread)))
		return;
	for (int64_t i = 0; i < n; i++) {
		double variance = training ? 0 : spread[i];

		mean[i] = training ? sum[i] / count : running[i];
		if (training) {
			variance = fmax(squares[i] / count - mean[i] * mean[i], 0);
			if (running)
				running[i] += f * (mean[i] - running[i]);
			if (spread)
				spread[i] +=
					f * (variance * (count > 1 ? count / (count - 1) : 1) -
						    spread[i]);
		}
		inverse[i] = 1 / sqrt(variance + j->v.epsilon);
		scale[i] *= inverse[i];
		bias[i] -= scale[i] * mean[i];
	}
	vector_store(j, EQ, P_EQSCALE, scale);
	vector_store(j, EQ, P_EQBIAS, bias);
	if (!training)
		return;
	vector_store(j, BN, P_MEAN, mean);
	vector_store(j, BN, P_INVSTD, inverse);
	if (running)
		vector_store(j, BN, P_RUNNING_MEAN, running);
	if (spread)
		vector_store(j, BN, P_RUNNING_VAR, spread);
}

static void fused_run(struct dnn_job *job)
{
	struct fused_job *j = (void *)job;

	if (j->c.ops <= WGRAD)
		convolution_run(j);
	else
		finalize_run(j);
}

DNN_CALL(cudnnFusedOpsExecute, struct dnn_handle *handle, const struct fused_plan *plan,
	const struct fused_variants *variants)
{
	struct fused_job *j;
	int status;

	if (!plan || !variants)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!plan->made || plan->ops != variants->ops ||
		(plan->ops == FINALIZE_TRAINING && variants->count < 1))
		return CUDNN_STATUS_BAD_PARAM;
	for (int i = 0; i < POINTERS; i++)
		if (uses(&plan->constants, i) && !variants->pointer[i])
			return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	j = dnn_job_new(handle, fused_run, sizeof(*j), &status);
	if (!j)
		return status;
	j->c = plan->constants;
	j->v = *variants;
	return dnn_submit(&j->job);
}
