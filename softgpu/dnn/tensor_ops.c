/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls on whole tensors: fill, scale, add, combine, transform, reduce.
 */
#include <math.h>

#include "softgpu/dnn/dnn.h"

struct dnn_op {
	int op, type, nan;
};

struct dnn_reduction {
	int op, type, nan, indices, indices_type;
};

struct tensor_job {
	struct dnn_job job;
	struct dnn_tensor a, b, c; /* c is the result */
	const void *a_at, *b_at;
	void *c_at;
	double alpha, alpha2, beta;
	int op;
};

/* ---- c = alpha, c = alpha * c ---- */

static void fill_run(struct dnn_job *job)
{
	struct tensor_job *j = (void *)job;
	cleanup_values double *values = dnn_values_new(job, dnn_elements(&j->c));

	if (!values)
		return;
	for (int64_t i = 0, n = dnn_elements(&j->c); i < n; i++)
		values[i] = 1;
	dnn_store(job, &j->c, j->c_at, values, j->alpha, 0);
}

static void scale_run(struct dnn_job *job)
{
	struct tensor_job *j = (void *)job;
	cleanup_values double *values = dnn_load(job, &j->c, j->c_at);

	if (values)
		dnn_store(job, &j->c, j->c_at, values, j->alpha, 0);
}

static int change(struct dnn_handle *handle, void (*run)(struct dnn_job *),
	const struct dnn_tensor *c, void *c_at, double alpha)
{
	struct tensor_job *j;
	int status;

	if (!dnn_tensor_right(c))
		return CUDNN_STATUS_BAD_PARAM;
	j = dnn_job_new(handle, run, sizeof(*j), &status);
	if (!j)
		return status;
	j->c = *c;
	j->c_at = c_at;
	j->alpha = alpha;
	return dnn_submit(&j->job);
}

DNN_CALL(cudnnSetTensor, struct dnn_handle *handle, const struct dnn_tensor *y, void *y_at,
	const void *value)
{
	if (!y || !y_at || !value)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	/* The value has the tensor's own type. */
	return change(handle, fill_run, y, y_at, dnn_get(value, y->type, 0));
}

DNN_CALL(cudnnScaleTensor, struct dnn_handle *handle, const struct dnn_tensor *y, void *y_at,
	const void *alpha)
{
	if (!y || !y_at || !alpha)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	return change(handle, scale_run, y, y_at, dnn_scalar(alpha, y->type));
}

/* ---- c = alpha * a + beta * c ---- */

static void add_run(struct dnn_job *job)
{
	struct tensor_job *j = (void *)job;
	cleanup_values double *a = dnn_load_as(job, &j->a, &j->c, j->a_at);

	if (a)
		dnn_store(job, &j->c, j->c_at, a, j->alpha, j->beta);
}

static int add(struct dnn_handle *handle, const void *alpha, const struct dnn_tensor *a,
	const void *a_at, const void *beta, const struct dnn_tensor *c, void *c_at, bool same)
{
	struct tensor_job *j;
	int status;

	if (!alpha || !beta || !a || !c || !a_at || !c_at)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!dnn_tensor_right(a) || !dnn_tensor_right(c) ||
		(same ? !dnn_same_shape(a, c) : !dnn_fits(a, c)))
		return CUDNN_STATUS_BAD_PARAM;
	j = dnn_job_new(handle, add_run, sizeof(*j), &status);
	if (!j)
		return status;
	j->a = *a;
	j->c = *c;
	j->a_at = a_at;
	j->c_at = c_at;
	j->alpha = dnn_scalar(alpha, c->type);
	j->beta = dnn_scalar(beta, c->type);
	return dnn_submit(&j->job);
}

DNN_CALL(cudnnAddTensor, struct dnn_handle *handle, const void *alpha,
	const struct dnn_tensor *a, const void *a_at, const void *beta,
	const struct dnn_tensor *c, void *c_at)
{
	return add(handle, alpha, a, a_at, beta, c, c_at, false);
}

DNN_CALL(cudnnTransformTensor, struct dnn_handle *handle, const void *alpha,
	const struct dnn_tensor *x, const void *x_at, const void *beta,
	const struct dnn_tensor *y, void *y_at)
{
	return add(handle, alpha, x, x_at, beta, y, y_at, true);
}

/* ---- c = op(alpha * a, alpha2 * b) + beta * c ---- */

DNN_CALL(cudnnCreateOpTensorDescriptor, struct dnn_op **op)
{
	if (!op)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*op = calloc(1, sizeof(**op));
	return *op ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;
}

DNN_CALL(cudnnDestroyOpTensorDescriptor, struct dnn_op *op)
{
	free(op);
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnSetOpTensorDescriptor, struct dnn_op *op, int kind, int type, int nan)
{
	if (!op)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (kind < 0 || kind > CUDNN_OP_TENSOR_NOT)
		return CUDNN_STATUS_BAD_PARAM;
	*op = (struct dnn_op){kind, type, nan};
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnGetOpTensorDescriptor, const struct dnn_op *op, int *kind, int *type, int *nan)
{
	if (!op || !kind || !type || !nan)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*kind = op->op;
	*type = op->type;
	*nan = op->nan;
	return CUDNN_STATUS_SUCCESS;
}

static double combined(int op, double a, double b)
{
	switch (op) {
	case CUDNN_OP_TENSOR_MUL: return a * b;
	case CUDNN_OP_TENSOR_MIN: return a < b ? a : b;
	case CUDNN_OP_TENSOR_MAX: return a > b ? a : b;
	case CUDNN_OP_TENSOR_SQRT: return sqrt(a);
	case CUDNN_OP_TENSOR_NOT: return 1 - a;
	default: return a + b;
	}
}

static bool unary(int op)
{
	return op == CUDNN_OP_TENSOR_SQRT || op == CUDNN_OP_TENSOR_NOT;
}

static void op_run(struct dnn_job *job)
{
	struct tensor_job *j = (void *)job;
	cleanup_values double *a = dnn_load(job, &j->a, j->a_at);
	cleanup_values double *b =
		unary(j->op) ? NULL : dnn_load_as(job, &j->b, &j->a, j->b_at);

	if (!a || (!b && !unary(j->op)))
		return;
	for (int64_t i = 0, n = dnn_elements(&j->a); i < n; i++)
		a[i] = combined(j->op, j->alpha * a[i], b ? j->alpha2 * b[i] : 0);
	dnn_store(job, &j->c, j->c_at, a, 1, j->beta);
}

DNN_CALL(cudnnOpTensor, struct dnn_handle *handle, const struct dnn_op *op, const void *alpha,
	const struct dnn_tensor *a, const void *a_at, const void *alpha2,
	const struct dnn_tensor *b, const void *b_at, const void *beta,
	const struct dnn_tensor *c, void *c_at)
{
	struct tensor_job *j;
	int status;

	if (!op || !alpha || !beta || !a || !c || !a_at || !c_at ||
		(!unary(op->op) && (!alpha2 || !b || !b_at)))
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!dnn_tensor_right(a) || !dnn_tensor_right(c) || !dnn_same_shape(a, c) ||
		(!unary(op->op) && (!dnn_tensor_right(b) || !dnn_fits(b, a))))
		return CUDNN_STATUS_BAD_PARAM;
	j = dnn_job_new(handle, op_run, sizeof(*j), &status);
	if (!j)
		return status;
	j->op = op->op;
	j->a = *a;
	j->c = *c;
	j->a_at = a_at;
	j->c_at = c_at;
	j->alpha = dnn_scalar(alpha, op->type);
	j->beta = dnn_scalar(beta, op->type);
	if (!unary(op->op)) {
		j->b = *b;
		j->b_at = b_at;
		j->alpha2 = dnn_scalar(alpha2, op->type);
	}
	return dnn_submit(&j->job);
}

/* ---- c = alpha * reduce(a) + beta * c ---- */

DNN_CALL(cudnnCreateReduceTensorDescriptor, struct dnn_reduction **reduction)
{
	if (!reduction)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*reduction = calloc(1, sizeof(**reduction));
	return *reduction ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;
}

DNN_CALL(cudnnDestroyReduceTensorDescriptor, struct dnn_reduction *reduction)
{
	free(reduction);
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnSetReduceTensorDescriptor, struct dnn_reduction *reduction, int op, int type,
	int nan, int indices, int indices_type)
{
	if (!reduction)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!dnn_reduce_served(op))
		return CUDNN_STATUS_BAD_PARAM;
	*reduction = (struct dnn_reduction){op, type, nan, indices, indices_type};
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnGetReduceTensorDescriptor, const struct dnn_reduction *reduction, int *op,
	int *type, int *nan, int *indices, int *indices_type)
{
	if (!reduction || !op || !type || !nan || !indices || !indices_type)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	*op = reduction->op;
	*type = reduction->type;
	*nan = reduction->nan;
	*indices = reduction->indices;
	*indices_type = reduction->indices_type;
	return CUDNN_STATUS_SUCCESS;
}

/* The library computes in memory of its own. */
static int reduce_size(const struct dnn_reduction *reduction, const struct dnn_tensor *a,
	const struct dnn_tensor *c, size_t *size)
{
	if (!reduction || !a || !c || !size)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (reduction->indices)
		return CUDNN_STATUS_NOT_SUPPORTED;
	*size = 0;
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnGetReductionWorkspaceSize, struct dnn_handle *handle,
	const struct dnn_reduction *reduction, const struct dnn_tensor *a,
	const struct dnn_tensor *c, size_t *size)
{
	(void)handle;
	return reduce_size(reduction, a, c, size);
}

DNN_CALL(cudnnGetReductionIndicesSize, struct dnn_handle *handle,
	const struct dnn_reduction *reduction, const struct dnn_tensor *a,
	const struct dnn_tensor *c, size_t *size)
{
	(void)handle;
	return reduce_size(reduction, a, c, size);
}

static void reduce_run(struct dnn_job *job)
{
	struct tensor_job *j = (void *)job;
	cleanup_values double *a = dnn_load(job, &j->a, j->a_at);
	cleanup_values double *c = dnn_values_new(job, dnn_elements(&j->c));

	if (!a || !c)
		return;
	dnn_reduce(j->op, &j->a, a, &j->c, c);
	dnn_store(job, &j->c, j->c_at, c, j->alpha, j->beta);
}

DNN_CALL(cudnnReduceTensor, struct dnn_handle *handle, const struct dnn_reduction *reduction,
	void *indices, size_t indices_bytes, void *workspace, size_t workspace_bytes,
	const void *alpha, const struct dnn_tensor *a, const void *a_at, const void *beta,
	const struct dnn_tensor *c, void *c_at)
{
	struct tensor_job *j;
	size_t size;
	int status = reduce_size(reduction, a, c, &size);

	(void)indices;
	(void)indices_bytes;
	(void)workspace;
	(void)workspace_bytes;
	if (status)
		return status;
	if (!alpha || !beta || !a_at || !c_at)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!dnn_tensor_right(a) || !dnn_tensor_right(c) || !dnn_fits(c, a))
		return CUDNN_STATUS_BAD_PARAM;
	j = dnn_job_new(handle, reduce_run, sizeof(*j), &status);
	if (!j)
		return status;
	j->op = reduction->op;
	j->a = *a;
	j->c = *c;
	j->a_at = a_at;
	j->c_at = c_at;
	j->alpha = dnn_scalar(alpha, reduction->type);
	j->beta = dnn_scalar(beta, reduction->type);
	return dnn_submit(&j->job);
}
