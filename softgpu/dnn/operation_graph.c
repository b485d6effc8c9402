/* SPDX-License-Identifier: Apache-2.0
 *
 * Running an operation graph: operation by operation, each tensor's values kept by its number
 * until the end, those that are not virtual stored where the variant pack says.
 */
#include <cblas.h>
#include <string.h>

#include "softgpu/dnn/backend.h"

#define KIND(NAME) CUDNN_BACKEND_##NAME##_DESCRIPTOR
#define ATTR(NAME) CUDNN_ATTR_##NAME

/* A tensor of the graph: where it is, or what it is. */
struct slot {
	int64_t uid;
	void *at;
	double value; /* passed by value */
	bool by_value;
	double *values; /* packed, while the graph runs */
};

struct graph_job {
	struct dnn_job job;
	struct backend_graph *graph;
	void *workspace;
	int count;
	struct slot slots[BACKEND_OPERATIONS * BACKEND_TENSORS];
};

static struct slot *slot_of(struct graph_job *j, int64_t uid)
{
	for (int i = 0; i < j->count; i++)
		if (j->slots[i].uid == uid)
			return &j->slots[i];
	return NULL;
}

/* The values of what an operation reads; NULL: the handle failed. */
static const double *input(struct graph_job *j, const struct backend_operation *op, int role)
{
	const struct backend_tensor *t = &op->tensors[role];
	struct slot *s = slot_of(j, t->uid);

	if (s->values)
		return s->values;
	if (s->by_value) {
		s->values = dnn_values_new(&j->job, 1);
		if (s->values)
			s->values[0] = s->value;
	} else {
		s->values = dnn_load(&j->job, &t->tensor, s->at);
	}
	return s->values;
}

/* Values of a tensor stretched to a larger one's shape; the caller frees. */
static double *stretched(struct graph_job *j, const struct backend_operation *op, int role)
{
	const struct dnn_tensor *from = &op->tensors[role].tensor;
	const struct dnn_tensor *to = &op->tensors[ROLE_OUT].tensor;
	const double *values = input(j, op, role);
	int64_t n = dnn_elements(to);
	double *out = values ? dnn_values_new(&j->job, n) : NULL;

	for (int64_t i = 0; out && i < n; i++) {
		int64_t rest = i, at = 0, step = 1;

		for (int d = to->count - 1; d >= 0; d--) {
			if (from->dim[d] != 1)
				at += rest % to->dim[d] * step;
			rest /= to->dim[d];
			step *= from->dim[d];
		}
		out[i] = values[at];
	}
	return out;
}

static void run_pointwise(
	struct graph_job *j, const struct backend_operation *op, double *result)
{
	const struct dnn_tensor *to = &op->tensors[ROLE_OUT].tensor;
	const struct backend_pointwise *p = &op->pointwise;
	bool back = backend_pointwise_backward(p->mode);
	cleanup_values double *x = stretched(j, op, ROLE_X);
	cleanup_values double *b =
		op->tensors[ROLE_B].tensor.count ? stretched(j, op, ROLE_B) : NULL;
	cleanup_values double *t =
		op->tensors[ROLE_T].tensor.count ? stretched(j, op, ROLE_T) : NULL;
	double alpha = back ? 1 : op->alpha, beta = back ? 1 : op->beta;
	int64_t inner = 1;

	if (j->job.handle->failed)
		return;
	if (p->mode == CUDNN_POINTWISE_GEN_INDEX)
		for (int d = (int)p->axis + 1; d < to->count; d++)
			inner *= to->dim[d];
	for (int64_t i = 0, n = dnn_elements(to); i < n; i++)
		result[i] = backend_pointwise_value(p, alpha * x[i], b ? beta * b[i] : 0,
			t ? t[i] : 0,
			p->mode == CUDNN_POINTWISE_GEN_INDEX ? i / inner % to->dim[p->axis]
							     : 0);
}

/* The matrix of a batch member: A or B may have 1 where the result has many. */
static int64_t member(
	const struct dnn_tensor *of, const struct dnn_tensor *result, int64_t batch)
{
	int64_t at = 0, step = 1;

	for (int d = result->count - 3; d >= 0; d--) {
		if (of->dim[d] != 1)
			at += batch % result->dim[d] * step;
		batch /= result->dim[d];
		step *= of->dim[d];
	}
	return at * of->dim[of->count - 2] * of->dim[of->count - 1];
}

static void run_matmul(struct graph_job *j, const struct backend_operation *op, double *result)
{
	const struct dnn_tensor *at = &op->tensors[ROLE_X].tensor;
	const struct dnn_tensor *bt = &op->tensors[ROLE_B].tensor;
	const struct dnn_tensor *ct = &op->tensors[ROLE_OUT].tensor;
	const double *a = input(j, op, ROLE_X), *b = input(j, op, ROLE_B);
	int m = (int)ct->dim[ct->count - 2], n = (int)ct->dim[ct->count - 1];
	int k = (int)at->dim[at->count - 1];
	int64_t each = (int64_t)m * n, batches = dnn_elements(ct) / each;

	if (!a || !b)
		return;
	for (int64_t i = 0; i < batches; i++)
		cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1,
			a + member(at, ct, i), k, b + member(bt, ct, i), n, 0,
			result + i * each, n);
}

static void run_convolution(
	struct graph_job *j, const struct backend_operation *op, double *result)
{
	double *column = dnn_reach(&j->job, j->workspace, dnn_convolve_workspace(&op->shape));
	const double *x = NULL, *w = NULL, *y = NULL;

	if (op->tensors[ROLE_X].tensor.count)
		x = input(j, op, ROLE_X);
	if (op->tensors[ROLE_B].tensor.count)
		w = input(j, op, ROLE_B);
	if (op->tensors[ROLE_DY].tensor.count)
		y = input(j, op, ROLE_DY);
	if (j->job.handle->failed)
		return;
	switch (op->kind) {
	case KIND(OPERATION_CONVOLUTION_FORWARD):
		dnn_convolve(&op->shape, x, w, result, column);
		break;
	case KIND(OPERATION_CONVOLUTION_BACKWARD_DATA):
		dnn_convolve_data(&op->shape, w, y, result, column);
		break;
	default: dnn_convolve_filter(&op->shape, x, y, result, column); break;
	}
	/* What a later operation reads is the scaled one. */
	for (int64_t i = 0, n = dnn_elements(&op->tensors[ROLE_OUT].tensor);
		op->alpha != 1 && i < n; i++)
		result[i] *= op->alpha;
}

static void run_operation(struct graph_job *j, const struct backend_operation *op)
{
	const struct backend_tensor *out = &op->tensors[ROLE_OUT];
	double *result = dnn_values_new(&j->job, dnn_elements(&out->tensor));
	struct slot *s = slot_of(j, out->uid);
	double beta = op->shape.n ? op->beta : 0;
	const double *x;

	if (!result)
		return;
	free(s->values);
	s->values = result;
	switch (op->kind) {
	case KIND(OPERATION_POINTWISE): run_pointwise(j, op, result); break;
	case KIND(OPERATION_MATMUL): run_matmul(j, op, result); break;
	case KIND(OPERATION_REDUCTION):
		x = input(j, op, ROLE_X);
		if (x)
			dnn_reduce(op->reduction, &op->tensors[ROLE_X].tensor, x, &out->tensor,
				result);
		break;
	default: run_convolution(j, op, result); break;
	}
	if (!out->is_virtual && !j->job.handle->failed)
		dnn_store(&j->job, &out->tensor, s->at, result, 1, beta);
}

static void graph_run(struct dnn_job *job)
{
	struct graph_job *j = (void *)job;

	for (int i = 0; i < j->graph->count && !job->handle->failed; i++)
		run_operation(j, &j->graph->operations[i]);
	for (int i = 0; i < j->count; i++) {
		free(j->slots[i].values);
		j->slots[i].values = NULL;
	}
}

static void graph_end(struct dnn_job *job)
{
	backend_graph_drop(((struct graph_job *)job)->graph);
}

/* Where the variant pack has a tensor; NULL: nowhere. */
static void *place_of(const struct backend_descriptor *pack, int64_t uid)
{
	const struct backend_attribute *ids =
		soft_backend_find(pack, ATTR(VARIANT_PACK_UNIQUE_IDS));
	const struct backend_attribute *places =
		soft_backend_find(pack, ATTR(VARIANT_PACK_DATA_POINTERS));

	for (int64_t i = 0; i < ids->count; i++)
		if (((const int64_t *)ids->bytes)[i] == uid)
			return ((void *const *)places->bytes)[i];
	return NULL;
}

/* A slot for each tensor of the graph; a status. */
static int placed(struct graph_job *j, const struct backend_descriptor *pack)
{
	for (int i = 0; i < j->graph->count; i++)
		for (int role = 0; role < BACKEND_TENSORS; role++) {
			const struct backend_tensor *t = &j->graph->operations[i].tensors[role];
			struct slot s = {.uid = t->uid, .by_value = t->by_value};

			if (!t->tensor.count || slot_of(j, t->uid))
				continue;
			if (!t->is_virtual) {
				s.at = place_of(pack, t->uid);
				if (!s.at)
					return CUDNN_STATUS_BAD_PARAM;
			}
			if (t->by_value)
				s.value = dnn_get(s.at, t->tensor.type, 0);
			j->slots[j->count++] = s;
		}
	return CUDNN_STATUS_SUCCESS;
}

int backend_execute(struct dnn_handle *handle, const struct backend_descriptor *plan,
	const struct backend_descriptor *pack)
{
	struct graph_job *j;
	int status;

	j = dnn_job_new(handle, graph_run, sizeof(*j), &status);
	if (!j)
		return status;
	j->graph = plan->graph;
	j->workspace =
		(void *)(uintptr_t)backend_integer(pack, ATTR(VARIANT_PACK_WORKSPACE), 0);
	status = placed(j, pack);
	if (!status && j->graph->workspace &&
		(!j->workspace || (uintptr_t)j->workspace % sizeof(double)))
		status = CUDNN_STATUS_BAD_PARAM;
	if (status) {
		dnn_job_drop(&j->job);
		return status;
	}
	j->graph->users++;
	j->job.drop = graph_end;
	return dnn_submit(&j->job);
}
