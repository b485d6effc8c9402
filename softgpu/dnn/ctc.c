/* SPDX-License-Identifier: Apache-2.0
 *
 * The connectionist temporal classification loss, with softmax before it: sums over all paths
 * that give a label, kept as logarithms. Label 0 is the blank.
 */
#include <math.h>
#include <string.h>

#include "softgpu/dnn/dnn.h"

struct dnn_ctc {
	int type, norm, most;
};

struct ctc_job {
	struct dnn_job job;
	struct dnn_tensor x, dx; /* T, N, A */
	const void *x_at;
	void *costs, *dx_at;
	const int *labels, *label_lengths, *input_lengths;
	bool on_device;
	int copied[]; /* all three, where they came from the host */
};

/* ---- descriptors ---- */

DNN_CALL(cudnnCreateCTCLossDescriptor, struct dnn_ctc **ctc)
{
	if (!ctc)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*ctc = calloc(1, sizeof(**ctc));
	return *ctc ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;
}

DNN_CALL(cudnnDestroyCTCLossDescriptor, struct dnn_ctc *ctc)
{
	free(ctc);
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnSetCTCLossDescriptor_v9, struct dnn_ctc *ctc, int type, int norm, int mode,
	int most)
{
	if (!ctc)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (type != CUDNN_DATA_FLOAT || norm < 0 || norm > CUDNN_LOSS_NORMALIZATION_SOFTMAX ||
		mode < 0 || mode > 1)
		return CUDNN_STATUS_BAD_PARAM;
	*ctc = (struct dnn_ctc){type, norm, most};
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnSetCTCLossDescriptor_v8, struct dnn_ctc *ctc, int type, int norm, int nan,
	int most)
{
	return cudnnSetCTCLossDescriptor_v9(ctc, type, norm, nan, most);
}

DNN_CALL(cudnnSetCTCLossDescriptorEx, struct dnn_ctc *ctc, int type, int norm, int nan)
{
	return cudnnSetCTCLossDescriptor_v9(ctc, type, norm, nan, 0);
}

DNN_CALL(cudnnSetCTCLossDescriptor, struct dnn_ctc *ctc, int type)
{
	return cudnnSetCTCLossDescriptor_v9(ctc, type, CUDNN_LOSS_NORMALIZATION_NONE, 0, 0);
}

/* ---- one sequence ---- */

static double log_sum(double a, double b)
{
	double most = a > b ? a : b;

	return most == -INFINITY ? most : most + log(exp(a - most) + exp(b - most));
}

/* What place S of the label stands for, blanks being between its letters. */
static int letter(const int *label, int64_t s)
{
	return s % 2 ? label[s / 2] : 0;
}

/* Whether a path may come to place S from two before. */
static bool skips(const int *label, int64_t s)
{
	return s > 1 && s % 2 && letter(label, s) != letter(label, s - 2);
}

/* The loss of one sequence of T steps. `y` has logarithms of probabilities, A a step, `step`
 * values apart; `dx` (may be NULL) gets the gradient. False: no memory, or the label is wrong.
 */
static bool sequence(const double *y, double *dx, int64_t t_count, int64_t a, int64_t step,
	const int *label, int64_t length, double *cost)
{
	int64_t s_count = 2 * length + 1;
	cleanup_values double *paths =
		malloc(sizeof(double) * (size_t)(t_count * s_count + 2 * s_count));
	double *back = paths ? paths + t_count * s_count : NULL, *before, total;

	for (int64_t i = 0; i < length; i++)
		if (label[i] < 1 || label[i] >= a)
			return false;
	if (!paths)
		return false;
	for (int64_t t = 0; t < t_count; t++)
		for (int64_t s = 0; s < s_count; s++) {
			double *at = &paths[t * s_count + s], *from = at - s_count;

			*at = t || s > 1 ? -INFINITY : 0;
			if (t) {
				*at = from[0];
				if (s > 0)
					*at = log_sum(*at, from[-1]);
				if (skips(label, s))
					*at = log_sum(*at, from[-2]);
			}
			*at += y[t * step + letter(label, s)];
		}
	before = &paths[(t_count - 1) * s_count];
	total = log_sum(before[s_count - 1], s_count > 1 ? before[s_count - 2] : -INFINITY);
	*cost = -total;
	if (!dx)
		return true;
	/* From the end: what is left of a path after step t, and of each place its share. */
	before = back + s_count;
	for (int64_t t = t_count - 1; t >= 0; t--) {
		for (int64_t k = 0; k < a; k++)
			dx[t * step + k] = exp(y[t * step + k]);
		for (int64_t s = 0; s < s_count; s++) {
			back[s] = t == t_count - 1 && s >= s_count - 2 ? 0 : -INFINITY;
			if (t < t_count - 1) {
				const double *next = &y[(t + 1) * step];

				back[s] = before[s] + next[letter(label, s)];
				if (s + 1 < s_count)
					back[s] = log_sum(back[s],
						before[s + 1] + next[letter(label, s + 1)]);
				if (s + 2 < s_count && skips(label, s + 2))
					back[s] = log_sum(back[s],
						before[s + 2] + next[letter(label, s + 2)]);
			}
			if (total > -INFINITY)
				dx[t * step + letter(label, s)] -=
					exp(paths[t * s_count + s] + back[s] - total);
		}
		memcpy(before, back, sizeof(double) * (size_t)s_count);
	}
	return true;
}

/* ---- the call ---- */

static void log_softmax(double *at, int64_t a)
{
	double most = -INFINITY, sum = 0;

	for (int64_t k = 0; k < a; k++)
		most = at[k] > most ? at[k] : most;
	for (int64_t k = 0; k < a; k++)
		sum += exp(at[k] - most);
	for (int64_t k = 0; k < a; k++)
		at[k] -= most + log(sum);
}

/* An array of the call: its own copy, or the device's. */
static const int *array(struct ctc_job *j, const int *at, int64_t count)
{
	if (!j->on_device)
		return at;
	return dnn_reach(&j->job, at, (uint64_t)count * sizeof(*at));
}

static void ctc_run(struct dnn_job *job)
{
	struct ctc_job *j = (void *)job;
	int64_t t = j->x.dim[0], n = j->x.dim[1], a = j->x.dim[2], first = 0;
	cleanup_values double *x = dnn_load(job, &j->x, j->x_at);
	cleanup_values double *dx = j->dx_at ? dnn_values_new(job, dnn_elements(&j->dx)) : NULL;
	const int *lengths = array(j, j->label_lengths, n), *inputs;
	float *costs = dnn_reach(job, j->costs, (uint64_t)n * sizeof(*costs));

	inputs = array(j, j->input_lengths, n);
	if (job->handle->failed)
		return;
	for (int64_t i = 0; i < t * n; i++)
		log_softmax(x + i * a, a);
	for (int64_t i = 0; i < n; i++) {
		const int *label;
		double cost;

		if (lengths[i] < 0 || inputs[i] < 1 || inputs[i] > t) {
			dnn_fail(job);
			return;
		}
		label = array(j, j->labels + first, lengths[i] ? lengths[i] : 1);
		if (!label || !sequence(x + i * a, dx ? dx + i * a : NULL, inputs[i], a, n * a,
				      label, lengths[i], &cost)) {
			dnn_fail(job);
			return;
		}
		costs[i] = (float)cost;
		first += lengths[i];
	}
	if (dx)
		dnn_store(job, &j->dx, j->dx_at, dx, 1, 0);
}

/* COPIED: how many numbers of labels to copy from the host; -1: they are on the device. */
static int ctc(struct dnn_handle *handle, const struct dnn_ctc *of, const struct dnn_tensor *x,
	const void *x_at, const int *labels, const int *label_lengths, const int *input_lengths,
	void *costs, const struct dnn_tensor *dx, void *dx_at, int64_t copied)
{
	size_t count = copied < 0 ? 0 : (size_t)(copied + 2 * x->dim[1]);
	struct ctc_job *j;
	int status;

	if (of->norm != CUDNN_LOSS_NORMALIZATION_SOFTMAX)
		return CUDNN_STATUS_NOT_SUPPORTED;
	j = dnn_job_new(handle, ctc_run, sizeof(*j) + count * sizeof(int), &status);
	if (!j)
		return status;
	j->x = *x;
	j->x_at = x_at;
	j->costs = costs;
	if (dx) {
		j->dx = *dx;
		j->dx_at = dx_at;
	}
	j->on_device = copied < 0;
	if (j->on_device) {
		j->labels = labels;
		j->label_lengths = label_lengths;
		j->input_lengths = input_lengths;
	} else {
		size_t n = (size_t)x->dim[1];

		j->labels = j->copied;
		j->label_lengths = j->copied + copied;
		j->input_lengths = j->label_lengths + n;
		memcpy(j->copied, labels, (size_t)copied * sizeof(int));
		memcpy(j->copied + copied, label_lengths, n * sizeof(int));
		memcpy(j->copied + copied + n, input_lengths, n * sizeof(int));
	}
	return dnn_submit(&j->job);
}

static int checked(const struct dnn_ctc *of, const struct dnn_tensor *x, const void *x_at,
	const int *labels, const int *label_lengths, const int *input_lengths,
	const void *costs, const struct dnn_tensor *dx, const void *dx_at)
{
	if (!of || !x || !x_at || !labels || !label_lengths || !input_lengths || !costs)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!dnn_tensor_right(x) || x->count != 3 || x->type != CUDNN_DATA_FLOAT ||
		(dx && (!dx_at || !dnn_same_shape(x, dx))))
		return CUDNN_STATUS_BAD_PARAM;
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnCTCLoss, struct dnn_handle *handle, const struct dnn_tensor *x, const void *x_at,
	const int *labels, const int *label_lengths, const int *input_lengths, void *costs,
	const struct dnn_tensor *dx, void *dx_at, int algorithm, const struct dnn_ctc *of,
	void *workspace, size_t bytes)
{
	int status =
		checked(of, x, x_at, labels, label_lengths, input_lengths, costs, dx, dx_at);
	int64_t count = 0;

	(void)algorithm;
	(void)workspace;
	(void)bytes;
	if (status)
		return status;
	for (int64_t i = 0; i < x->dim[1]; i++) {
		if (label_lengths[i] < 0 || input_lengths[i] < 1 ||
			input_lengths[i] > x->dim[0])
			return CUDNN_STATUS_BAD_PARAM;
		count += label_lengths[i];
	}
	return ctc(handle, of, x, x_at, labels, label_lengths, input_lengths, costs, dx, dx_at,
		count);
}

DNN_CALL(cudnnCTCLoss_v8, struct dnn_handle *handle, int algorithm, const struct dnn_ctc *of,
	const struct dnn_tensor *x, const void *x_at, const int *labels,
	const int *label_lengths, const int *input_lengths, void *costs,
	const struct dnn_tensor *dx, void *dx_at, size_t bytes, void *workspace)
{
	int status =
		checked(of, x, x_at, labels, label_lengths, input_lengths, costs, dx, dx_at);

	(void)algorithm;
	(void)workspace;
	(void)bytes;
	if (status)
		return status;
	return ctc(handle, of, x, x_at, labels, label_lengths, input_lengths, costs, dx, dx_at,
		-1);
}

/* The library computes in memory of its own. */
static int ctc_workspace(const struct dnn_ctc *of, const struct dnn_tensor *x, size_t *size)
{
	if (!of || !x || !size)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*size = 0;
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnGetCTCLossWorkspaceSize, struct dnn_handle *handle, const struct dnn_tensor *x,
	const struct dnn_tensor *dx, const int *labels, const int *label_lengths,
	const int *input_lengths, int algorithm, const struct dnn_ctc *of, size_t *size)
{
	(void)handle;
	(void)dx;
	(void)labels;
	(void)label_lengths;
	(void)input_lengths;
	(void)algorithm;
	return ctc_workspace(of, x, size);
}

DNN_CALL(cudnnGetCTCLossWorkspaceSize_v8, struct dnn_handle *handle, int algorithm,
	const struct dnn_ctc *of, const struct dnn_tensor *x, const struct dnn_tensor *dx,
	size_t *size)
{
	(void)handle;
	(void)algorithm;
	(void)dx;
	return ctc_workspace(of, x, size);
}
