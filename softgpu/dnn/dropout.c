/* SPDX-License-Identifier: Apache-2.0
 *
 * Dropout.  The states, on the device, are a seed and a count of numbers drawn so far; a number
 * is a hash of both. What a forward call let through is in the reserve space, a byte an
 * element.
 */
#include "softgpu/dnn/dnn.h"

struct states {
	uint64_t seed, drawn;
};

struct dropout_job {
	struct dnn_job job;
	struct dnn_dropout dropout;
	struct dnn_tensor x, y;
	const void *x_at;
	void *y_at;
	uint8_t *reserve;
	bool back;
};

double dnn_dropout_rate(const struct dnn_dropout *dropout)
{
	return dropout ? (double)dropout->rate : 0;
}

DNN_CALL(cudnnCreateDropoutDescriptor, struct dnn_dropout **dropout)
{
	if (!dropout)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*dropout = calloc(1, sizeof(**dropout));
	return *dropout ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;
}

DNN_CALL(cudnnDestroyDropoutDescriptor, struct dnn_dropout *dropout)
{
	free(dropout);
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnDropoutGetStatesSize, struct dnn_handle *handle, size_t *size)
{
	if (!handle || !size)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*size = sizeof(struct states);
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnDropoutGetReserveSpaceSize, const struct dnn_tensor *x, size_t *size)
{
	if (!x || !size)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!dnn_tensor_right(x))
		return CUDNN_STATUS_BAD_PARAM;
	*size = (size_t)dnn_elements(x);
	return CUDNN_STATUS_SUCCESS;
}

static void seed_run(struct dnn_job *job)
{
	struct dropout_job *j = (void *)job;
	struct states *states = dnn_reach(job, j->dropout.states, sizeof(*states));

	if (states)
		*states = (struct states){.seed = j->dropout.seed};
}

DNN_CALL(cudnnRestoreDropoutDescriptor, struct dnn_dropout *dropout, struct dnn_handle *handle,
	float rate, void *states, size_t bytes, unsigned long long seed)
{
	if (!dropout || !handle)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!(rate >= 0 && rate <= 1))
		return CUDNN_STATUS_BAD_PARAM;
	if (states && bytes < sizeof(struct states))
		return CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT;
	*dropout = (struct dnn_dropout){rate, states, bytes, seed};
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnSetDropoutDescriptor, struct dnn_dropout *dropout, struct dnn_handle *handle,
	float rate, void *states, size_t bytes, unsigned long long seed)
{
	int status = cudnnRestoreDropoutDescriptor(dropout, handle, rate, states, bytes, seed);
	struct dropout_job *j;

	if (status || !states)
		return status;
	j = dnn_job_new(handle, seed_run, sizeof(*j), &status);
	if (!j)
		return status;
	j->dropout = *dropout;
	return dnn_submit(&j->job);
}

DNN_CALL(cudnnGetDropoutDescriptor, const struct dnn_dropout *dropout,
	struct dnn_handle *handle, float *rate, void **states, unsigned long long *seed)
{
	if (!dropout || !handle || !rate || !states || !seed)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*rate = dropout->rate;
	*states = dropout->states;
	*seed = dropout->seed;
	return CUDNN_STATUS_SUCCESS;
}

/* A number in [0, 1) for each pair: splitmix64's mixing. */
static double drawn(uint64_t seed, uint64_t number)
{
	uint64_t z = seed + (number + 1) * 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

bool dnn_dropout_draw(
	struct dnn_job *job, const struct dnn_dropout *dropout, uint8_t *kept, int64_t n)
{
	struct states *states = dnn_reach(job, dropout->states, sizeof(*states));

	for (int64_t i = 0; states && i < n; i++)
		kept[i] = drawn(states->seed, states->drawn + (uint64_t)i) >=
			  (double)dropout->rate;
	if (states)
		states->drawn += (uint64_t)n;
	return states;
}

void dnn_dropout_apply(
	const struct dnn_dropout *dropout, const uint8_t *kept, double *values, int64_t n)
{
	double rate = (double)dropout->rate;

	for (int64_t i = 0; i < n; i++)
		values[i] = kept[i] && rate < 1 ? values[i] / (1 - rate) : 0;
}

static void dropout_run(struct dnn_job *job)
{
	struct dropout_job *j = (void *)job;
	int64_t n = dnn_elements(&j->x);
	cleanup_values double *x = dnn_load(job, &j->x, j->x_at);
	uint8_t *kept = dnn_reach(job, j->reserve, (uint64_t)n);

	if (!x || !kept || (!j->back && !dnn_dropout_draw(job, &j->dropout, kept, n)))
		return;
	dnn_dropout_apply(&j->dropout, kept, x, n);
	dnn_store(job, &j->y, j->y_at, x, 1, 0);
}

static int dropout(struct dnn_handle *handle, const struct dnn_dropout *of,
	const struct dnn_tensor *x, const void *x_at, const struct dnn_tensor *y, void *y_at,
	void *reserve, size_t bytes, bool back)
{
	struct dropout_job *j;
	int status;

	if (!of || !x || !x_at || !y || !y_at || !reserve || (!back && !of->states))
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!dnn_tensor_right(x) || !dnn_tensor_right(y) || dnn_elements(x) != dnn_elements(y))
		return CUDNN_STATUS_BAD_PARAM;
	if (bytes < (size_t)dnn_elements(x))
		return CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT;
	j = dnn_job_new(handle, dropout_run, sizeof(*j), &status);
	if (!j)
		return status;
	j->dropout = *of;
	j->x = *x;
	j->y = *y;
	j->x_at = x_at;
	j->y_at = y_at;
	j->reserve = reserve;
	j->back = back;
	return dnn_submit(&j->job);
}

DNN_CALL(cudnnDropoutForward, struct dnn_handle *handle, const struct dnn_dropout *of,
	const struct dnn_tensor *x, const void *x_at, const struct dnn_tensor *y, void *y_at,
	void *reserve, size_t bytes)
{
	return dropout(handle, of, x, x_at, y, y_at, reserve, bytes, false);
}

DNN_CALL(cudnnDropoutBackward, struct dnn_handle *handle, const struct dnn_dropout *of,
	const struct dnn_tensor *dy, const void *dy_at, const struct dnn_tensor *dx,
	void *dx_at, void *reserve, size_t bytes)
{
	return dropout(handle, of, dy, dy_at, dx, dx_at, reserve, bytes, true);
}
