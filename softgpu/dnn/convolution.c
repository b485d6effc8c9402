/* SPDX-License-Identifier: Apache-2.0
 *
 * The descriptor API's convolutions.  There is one algorithm under whatever number asks for it;
 * its matrix of patches lies in the workspace.
 */
#include <string.h>
#include <time.h>

#include "softgpu/dnn/dnn.h"

/* cudnnConvolutionFwdAlgoPerf_t, and those of the two others. */
struct dnn_perf {
	int algorithm, status;
	float time; /* milliseconds; -1: not measured */
	size_t memory;
	int determinism, math, reserved[3];
};

enum way { FORWARD, DATA, FILTER };

static const struct {
	int best, count;
} algorithms[] = {
	[FORWARD] = {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
		CUDNN_CONVOLUTION_FWD_ALGO_COUNT},
	[DATA] = {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT},
	[FILTER] = {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
		CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT},
};

/* ---- what a convolution takes ---- */

static int shape_of(struct dnn_shape *shape, const struct dnn_convolution *convolution,
	const struct dnn_tensor *x, const struct dnn_filter *w, const struct dnn_tensor *y)
{
	struct dnn_tensor filter;

	if (!convolution || !x || !w || !y)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!dnn_tensor_right(x) || !dnn_tensor_right(y) || !w->count)
		return CUDNN_STATUS_BAD_PARAM;
	filter = dnn_filter_tensor(w);
	return dnn_shape_of(shape, &convolution->window, convolution->groups,
		convolution->mode == CUDNN_CONVOLUTION, x, &filter, y);
}

static int workspace_of(const struct dnn_convolution *convolution, const struct dnn_tensor *x,
	const struct dnn_filter *w, const struct dnn_tensor *y, enum way way, int algorithm,
	size_t *size)
{
	struct dnn_shape shape;
	int status = shape_of(&shape, convolution, x, w, y);

	if (status)
		return status;
	if (!size)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (algorithm < 0 || algorithm >= algorithms[way].count)
		return CUDNN_STATUS_BAD_PARAM;
	*size = dnn_convolve_workspace(&shape);
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnGetConvolutionForwardWorkspaceSize, struct dnn_handle *handle,
	const struct dnn_tensor *x, const struct dnn_filter *w,
	const struct dnn_convolution *convolution, const struct dnn_tensor *y, int algorithm,
	size_t *size)
{
	(void)handle;
	return workspace_of(convolution, x, w, y, FORWARD, algorithm, size);
}

DNN_CALL(cudnnGetConvolutionBackwardDataWorkspaceSize, struct dnn_handle *handle,
	const struct dnn_filter *w, const struct dnn_tensor *dy,
	const struct dnn_convolution *convolution, const struct dnn_tensor *dx, int algorithm,
	size_t *size)
{
	(void)handle;
	return workspace_of(convolution, dx, w, dy, DATA, algorithm, size);
}

DNN_CALL(cudnnGetConvolutionBackwardFilterWorkspaceSize, struct dnn_handle *handle,
	const struct dnn_tensor *x, const struct dnn_tensor *dy,
	const struct dnn_convolution *convolution, const struct dnn_filter *dw, int algorithm,
	size_t *size)
{
	(void)handle;
	return workspace_of(convolution, x, dw, dy, FILTER, algorithm, size);
}

static int algorithm_of(const struct dnn_convolution *convolution, const struct dnn_tensor *x,
	const struct dnn_filter *w, const struct dnn_tensor *y, enum way way, int most,
	int *count, struct dnn_perf *perf)
{
	size_t size;
	int status = workspace_of(convolution, x, w, y, way, algorithms[way].best, &size);

	if (status)
		return status;
	if (!count || !perf)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (most < 1)
		return CUDNN_STATUS_BAD_PARAM;
	*count = 1;
	*perf = (struct dnn_perf){.algorithm = algorithms[way].best,
		.status = CUDNN_STATUS_SUCCESS,
		.time = -1,
		.memory = size,
		.determinism = CUDNN_DETERMINISTIC,
		.math = convolution->math};
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnGetConvolutionForwardAlgorithm_v7, struct dnn_handle *handle,
	const struct dnn_tensor *x, const struct dnn_filter *w,
	const struct dnn_convolution *convolution, const struct dnn_tensor *y, int most,
	int *count, struct dnn_perf *perf)
{
	(void)handle;
	return algorithm_of(convolution, x, w, y, FORWARD, most, count, perf);
}

DNN_CALL(cudnnGetConvolutionBackwardDataAlgorithm_v7, struct dnn_handle *handle,
	const struct dnn_filter *w, const struct dnn_tensor *dy,
	const struct dnn_convolution *convolution, const struct dnn_tensor *dx, int most,
	int *count, struct dnn_perf *perf)
{
	(void)handle;
	return algorithm_of(convolution, dx, w, dy, DATA, most, count, perf);
}

DNN_CALL(cudnnGetConvolutionBackwardFilterAlgorithm_v7, struct dnn_handle *handle,
	const struct dnn_tensor *x, const struct dnn_tensor *dy,
	const struct dnn_convolution *convolution, const struct dnn_filter *dw, int most,
	int *count, struct dnn_perf *perf)
{
	(void)handle;
	return algorithm_of(convolution, x, dw, dy, FILTER, most, count, perf);
}

#define MAX_COUNT(NAME, WAY)                                                                   \
	DNN_CALL(NAME, struct dnn_handle *handle, int *count)                                  \
	{                                                                                      \
		(void)handle;                                                                  \
		if (!count)                                                                    \
			return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;                            \
		*count = algorithms[WAY].count;                                                \
		return CUDNN_STATUS_SUCCESS;                                                   \
	}
MAX_COUNT(cudnnGetConvolutionForwardAlgorithmMaxCount, FORWARD)
MAX_COUNT(cudnnGetConvolutionBackwardDataAlgorithmMaxCount, DATA)
MAX_COUNT(cudnnGetConvolutionBackwardFilterAlgorithmMaxCount, FILTER)

/* ---- the calls ---- */

struct convolution_job {
	struct dnn_job job;
	enum way way;
	struct dnn_shape shape;
	struct dnn_tensor x, w, y;
	const void *x_at, *w_at, *y_at; /* the one that is written too */
	void *workspace;
	double alpha, beta;
	/* Of a fused forward: y = act(alpha * conv + z_alpha * z + bias). */
	bool fused;
	struct dnn_tensor z, bias;
	const void *z_at, *bias_at;
	double z_alpha;
	struct dnn_activation activation;
	int math; /* for who searches */
};

static void fuse(struct convolution_job *j, double *y)
{
	cleanup_values double *z =
		j->z_alpha != 0 ? dnn_load_as(&j->job, &j->z, &j->y, j->z_at) : NULL;
	cleanup_values double *bias = dnn_load_as(&j->job, &j->bias, &j->y, j->bias_at);

	if (!bias || (j->z_alpha != 0 && !z))
		return;
	for (int64_t i = 0, n = dnn_elements(&j->y); i < n; i++)
		y[i] = dnn_activate(&j->activation,
			j->alpha * y[i] + (z ? j->z_alpha * z[i] : 0) + bias[i]);
	dnn_store(&j->job, &j->y, (void *)(uintptr_t)j->y_at, y, 1, 0);
}

static void convolution_run(struct dnn_job *job)
{
	struct convolution_job *j = (void *)job;
	const struct dnn_tensor *to = j->way == FORWARD ? &j->y
				      : j->way == DATA	? &j->x
							: &j->w;
	const void *at = j->way == FORWARD ? j->y_at : j->way == DATA ? j->x_at : j->w_at;
	cleanup_values double *x = to == &j->x ? NULL : dnn_load(job, &j->x, j->x_at);
	cleanup_values double *w = to == &j->w ? NULL : dnn_load(job, &j->w, j->w_at);
	cleanup_values double *y = to == &j->y ? NULL : dnn_load(job, &j->y, j->y_at);
	cleanup_values double *result = dnn_values_new(job, dnn_elements(to));
	double *column = dnn_reach(job, j->workspace, dnn_convolve_workspace(&j->shape));

	if (job->handle->failed)
		return;
	switch (j->way) {
	case FORWARD: dnn_convolve(&j->shape, x, w, result, column); break;
	case DATA: dnn_convolve_data(&j->shape, w, y, result, column); break;
	case FILTER: dnn_convolve_filter(&j->shape, x, y, result, column); break;
	}
	if (j->fused)
		fuse(j, result);
	else
		dnn_store(job, to, (void *)(uintptr_t)at, result, j->alpha, j->beta);
}

/* A job with all but its fused part, or NULL with *status. */
static struct convolution_job *convolution_new(struct dnn_handle *handle, enum way way,
	const struct dnn_convolution *convolution, const struct dnn_tensor *x, const void *x_at,
	const struct dnn_filter *w, const void *w_at, const struct dnn_tensor *y,
	const void *y_at, int algorithm, void *workspace, size_t bytes, const void *alpha,
	const void *beta, int *status)
{
	struct convolution_job *j;
	struct dnn_shape shape;

	*status = shape_of(&shape, convolution, x, w, y);
	if (*status)
		return NULL;
	*status = CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!x_at || !w_at || !y_at || !alpha || !beta)
		return NULL;
	*status = CUDNN_STATUS_BAD_PARAM;
	if (algorithm < 0 || algorithm >= algorithms[way].count || x->type != w->type ||
		!workspace || bytes < dnn_convolve_workspace(&shape) ||
		(uintptr_t)workspace % sizeof(double))
		return NULL;
	j = dnn_job_new(handle, convolution_run, sizeof(*j), status);
	if (!j)
		return NULL;
	j->way = way;
	j->shape = shape;
	j->x = *x;
	j->w = dnn_filter_tensor(w);
	j->y = *y;
	j->x_at = x_at;
	j->w_at = w_at;
	j->y_at = y_at;
	j->workspace = workspace;
	j->math = convolution->math;
	j->alpha = dnn_scalar(alpha, x->type);
	j->beta = dnn_scalar(beta, x->type);
	return j;
}

DNN_CALL(cudnnConvolutionForward, struct dnn_handle *handle, const void *alpha,
	const struct dnn_tensor *x, const void *x_at, const struct dnn_filter *w,
	const void *w_at, const struct dnn_convolution *convolution, int algorithm,
	void *workspace, size_t bytes, const void *beta, const struct dnn_tensor *y, void *y_at)
{
	int status;
	struct convolution_job *j = convolution_new(handle, FORWARD, convolution, x, x_at, w,
		w_at, y, y_at, algorithm, workspace, bytes, alpha, beta, &status);

	return j ? dnn_submit(&j->job) : status;
}

DNN_CALL(cudnnConvolutionBackwardData, struct dnn_handle *handle, const void *alpha,
	const struct dnn_filter *w, const void *w_at, const struct dnn_tensor *dy,
	const void *dy_at, const struct dnn_convolution *convolution, int algorithm,
	void *workspace, size_t bytes, const void *beta, const struct dnn_tensor *dx,
	void *dx_at)
{
	int status;
	struct convolution_job *j = convolution_new(handle, DATA, convolution, dx, dx_at, w,
		w_at, dy, dy_at, algorithm, workspace, bytes, alpha, beta, &status);

	return j ? dnn_submit(&j->job) : status;
}

DNN_CALL(cudnnConvolutionBackwardFilter, struct dnn_handle *handle, const void *alpha,
	const struct dnn_tensor *x, const void *x_at, const struct dnn_tensor *dy,
	const void *dy_at, const struct dnn_convolution *convolution, int algorithm,
	void *workspace, size_t bytes, const void *beta, const struct dnn_filter *dw,
	void *dw_at)
{
	int status;
	struct convolution_job *j = convolution_new(handle, FILTER, convolution, x, x_at, dw,
		dw_at, dy, dy_at, algorithm, workspace, bytes, alpha, beta, &status);

	return j ? dnn_submit(&j->job) : status;
}

DNN_CALL(cudnnConvolutionBiasActivationForward, struct dnn_handle *handle, const void *alpha1,
	const struct dnn_tensor *x, const void *x_at, const struct dnn_filter *w,
	const void *w_at, const struct dnn_convolution *convolution, int algorithm,
	void *workspace, size_t bytes, const void *alpha2, const struct dnn_tensor *z,
	const void *z_at, const struct dnn_tensor *bias, const void *bias_at,
	const struct dnn_activation *activation, const struct dnn_tensor *y, void *y_at)
{
	struct convolution_job *j;
	int status;

	if (!z || !bias || !bias_at || !activation || !alpha2)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	j = convolution_new(handle, FORWARD, convolution, x, x_at, w, w_at, y, y_at, algorithm,
		workspace, bytes, alpha1, alpha2, &status);
	if (!j)
		return status;
	if (!dnn_fits(bias, y) || !dnn_same_shape(z, y) || (j->beta != 0 && !z_at)) {
		dnn_job_drop(&j->job);
		return CUDNN_STATUS_BAD_PARAM;
	}
	if (activation->mode != CUDNN_ACTIVATION_RELU &&
		activation->mode != CUDNN_ACTIVATION_IDENTITY) {
		dnn_job_drop(&j->job);
		return CUDNN_STATUS_NOT_SUPPORTED;
	}
	j->fused = true;
	j->z = *z;
	j->bias = *bias;
	j->z_at = z_at;
	j->bias_at = bias_at;
	j->z_alpha = j->beta;
	j->activation = *activation;
	return dnn_submit(&j->job);
}

/* Runs the convolution once, as cuDNN's search does, and says what it took. */
static int found(struct dnn_handle *handle, struct convolution_job *j, int status, int most,
	int *count, struct dnn_perf *perf)
{
	struct timespec from, to;

	if (!j)
		return status;
	if (most < 1 || !count || !perf || cuStreamSynchronize(handle->stream)) {
		dnn_job_drop(&j->job);
		return CUDNN_STATUS_BAD_PARAM;
	}
	*perf = (struct dnn_perf){.algorithm = algorithms[j->way].best,
		.memory = dnn_convolve_workspace(&j->shape),
		.determinism = CUDNN_DETERMINISTIC,
		.math = j->math};
	clock_gettime(CLOCK_MONOTONIC, &from);
	status = dnn_submit(&j->job);
	if (status)
		return status;
	if (cuStreamSynchronize(handle->stream) || handle->failed)
		return CUDNN_STATUS_EXECUTION_FAILED;
	clock_gettime(CLOCK_MONOTONIC, &to);
	perf->time = (float)(to.tv_sec - from.tv_sec) * 1e3f +
		     (float)(to.tv_nsec - from.tv_nsec) * 1e-6f;
	*count = 1;
	return CUDNN_STATUS_SUCCESS;
}

static const double one = 1, zero;
static const float one_f = 1, zero_f;

static const void *unit(const struct dnn_tensor *x)
{
	return x && x->type == CUDNN_DATA_DOUBLE ? (const void *)&one : &one_f;
}

static const void *nought(const struct dnn_tensor *x)
{
	return x && x->type == CUDNN_DATA_DOUBLE ? (const void *)&zero : &zero_f;
}

DNN_CALL(cudnnFindConvolutionForwardAlgorithmEx, struct dnn_handle *handle,
	const struct dnn_tensor *x, const void *x_at, const struct dnn_filter *w,
	const void *w_at, const struct dnn_convolution *convolution, const struct dnn_tensor *y,
	void *y_at, int most, int *count, struct dnn_perf *perf, void *workspace, size_t bytes)
{
	int status;
	struct convolution_job *j = convolution_new(handle, FORWARD, convolution, x, x_at, w,
		w_at, y, y_at, algorithms[FORWARD].best, workspace, bytes, unit(x), nought(x),
		&status);

	return found(handle, j, status, most, count, perf);
}

DNN_CALL(cudnnFindConvolutionBackwardDataAlgorithmEx, struct dnn_handle *handle,
	const struct dnn_filter *w, const void *w_at, const struct dnn_tensor *dy,
	const void *dy_at, const struct dnn_convolution *convolution,
	const struct dnn_tensor *dx, void *dx_at, int most, int *count, struct dnn_perf *perf,
	void *workspace, size_t bytes)
{
	int status;
	struct convolution_job *j =
		convolution_new(handle, DATA, convolution, dx, dx_at, w, w_at, dy, dy_at,
			algorithms[DATA].best, workspace, bytes, unit(dx), nought(dx), &status);

	return found(handle, j, status, most, count, perf);
}

DNN_CALL(cudnnFindConvolutionBackwardFilterAlgorithmEx, struct dnn_handle *handle,
	const struct dnn_tensor *x, const void *x_at, const struct dnn_tensor *dy,
	const void *dy_at, const struct dnn_convolution *convolution,
	const struct dnn_filter *dw, void *dw_at, int most, int *count, struct dnn_perf *perf,
	void *workspace, size_t bytes)
{
	int status;
	struct convolution_job *j =
		convolution_new(handle, FILTER, convolution, x, x_at, dw, dw_at, dy, dy_at,
			algorithms[FILTER].best, workspace, bytes, unit(x), nought(x), &status);

	return found(handle, j, status, most, count, perf);
}

/* ---- the bias's gradient ---- */

struct bias_job {
	struct dnn_job job;
	struct dnn_tensor dy, db;
	const void *dy_at;
	void *db_at;
	double alpha, beta;
};

static void bias_run(struct dnn_job *job)
{
	struct bias_job *j = (void *)job;
	cleanup_values double *dy = dnn_load(job, &j->dy, j->dy_at);
	cleanup_values double *db = dnn_values_new(job, dnn_elements(&j->db));

	if (!dy || !db)
		return;
	dnn_reduce(CUDNN_REDUCE_TENSOR_ADD, &j->dy, dy, &j->db, db);
	dnn_store(job, &j->db, j->db_at, db, j->alpha, j->beta);
}

DNN_CALL(cudnnConvolutionBackwardBias, struct dnn_handle *handle, const void *alpha,
	const struct dnn_tensor *dy, const void *dy_at, const void *beta,
	const struct dnn_tensor *db, void *db_at)
{
	struct bias_job *j;
	int status;

	if (!alpha || !beta || !dy || !db || !dy_at || !db_at)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!dnn_tensor_right(dy) || !dnn_tensor_right(db) || !dnn_fits(db, dy))
		return CUDNN_STATUS_BAD_PARAM;
	j = dnn_job_new(handle, bias_run, sizeof(*j), &status);
	if (!j)
		return status;
	j->dy = *dy;
	j->db = *db;
	j->dy_at = dy_at;
	j->db_at = db_at;
	j->alpha = dnn_scalar(alpha, dy->type);
	j->beta = dnn_scalar(beta, dy->type);
	return dnn_submit(&j->job);
}
