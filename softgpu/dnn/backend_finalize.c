/* SPDX-License-Identifier: Apache-2.0
 *
 * What each kind of backend descriptor becomes when it is finalized, with cuDNN's checks.
 */
#include <math.h>
#include <string.h>

#include "softgpu/dnn/backend.h"

#define KIND(NAME) CUDNN_BACKEND_##NAME##_DESCRIPTOR
#define ATTR(NAME) CUDNN_ATTR_##NAME

/* The attribute's numbers, or NULL if they are not COUNT. */
static const int64_t *integers(const struct backend_descriptor *d, int name, int64_t count)
{
	const struct backend_attribute *a = soft_backend_find(d, name);

	return a && a->count == count ? a->bytes : NULL;
}

static int finalize_tensor(struct backend_descriptor *d)
{
	const struct backend_attribute *dims = soft_backend_find(d, ATTR(TENSOR_DIMENSIONS));
	struct backend_tensor t = {.uid = backend_integer(d, ATTR(TENSOR_UNIQUE_ID), 0),
		.is_virtual = backend_integer(d, ATTR(TENSOR_IS_VIRTUAL), 0),
		.by_value = backend_integer(d, ATTR(TENSOR_IS_BY_VALUE), 0)};
	int64_t alignment = backend_integer(d, ATTR(TENSOR_BYTE_ALIGNMENT), 0);
	const int64_t *strides;

	if (!dims || !soft_backend_find(d, ATTR(TENSOR_UNIQUE_ID)) ||
		!soft_backend_find(d, ATTR(TENSOR_DATA_TYPE)))
		return CUDNN_STATUS_BAD_PARAM;
	strides = integers(d, ATTR(TENSOR_STRIDES), dims->count);
	if (!strides || alignment < 1 || (alignment & (alignment - 1)))
		return CUDNN_STATUS_BAD_PARAM;
	if (backend_integer(d, ATTR(TENSOR_VECTOR_COUNT), 1) != 1 ||
		backend_integer(d, ATTR(TENSOR_REORDERING_MODE), 0))
		return CUDNN_STATUS_NOT_SUPPORTED;
	t.tensor.type = (int)backend_integer(d, ATTR(TENSOR_DATA_TYPE), -1);
	t.tensor.count = (int)dims->count;
	memcpy(t.tensor.dim, dims->bytes, sizeof(int64_t) * (size_t)dims->count);
	memcpy(t.tensor.stride, strides, sizeof(int64_t) * (size_t)dims->count);
	if (!dnn_size(t.tensor.type))
		return CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE;
	if (!dnn_tensor_right(&t.tensor) || (t.by_value && dnn_elements(&t.tensor) != 1))
		return CUDNN_STATUS_BAD_PARAM;
	d->tensor = t;
	return CUDNN_STATUS_SUCCESS;
}

static int finalize_convolution(struct backend_descriptor *d)
{
	int64_t count = backend_integer(d, ATTR(CONVOLUTION_SPATIAL_DIMS), 0);
	const int64_t *dilations = integers(d, ATTR(CONVOLUTION_DILATIONS), count);
	const int64_t *strides = integers(d, ATTR(CONVOLUTION_FILTER_STRIDES), count);
	const int64_t *pre = integers(d, ATTR(CONVOLUTION_PRE_PADDINGS), count);
	const int64_t *post = integers(d, ATTR(CONVOLUTION_POST_PADDINGS), count);
	struct dnn_window w = {.count = (int)count};

	if (count < 1 || !dilations || !strides || !pre || !post ||
		!soft_backend_find(d, ATTR(CONVOLUTION_COMP_TYPE)) ||
		!soft_backend_find(d, ATTR(CONVOLUTION_CONV_MODE)))
		return CUDNN_STATUS_BAD_PARAM;
	for (int i = 0; i < w.count; i++) {
		if (dilations[i] < 1 || strides[i] < 1 || pre[i] < 0 || post[i] < 0 ||
			dilations[i] > INT32_MAX || strides[i] > INT32_MAX ||
			pre[i] > INT32_MAX || post[i] > INT32_MAX)
			return CUDNN_STATUS_BAD_PARAM;
		w.dilation[i] = dilations[i];
		w.stride[i] = strides[i];
		w.pre[i] = pre[i];
		w.post[i] = post[i];
	}
	d->window = w;
	d->flip = backend_integer(d, ATTR(CONVOLUTION_CONV_MODE), 0) == CUDNN_CONVOLUTION;
	return CUDNN_STATUS_SUCCESS;
}

static int finalize_pointwise(struct backend_descriptor *d)
{
	d->pointwise = (struct backend_pointwise){
		.mode = (int)backend_integer(d, ATTR(POINTWISE_MODE), -1),
		.lower = backend_real(d, ATTR(POINTWISE_RELU_LOWER_CLIP), 0),
		.upper = backend_real(d, ATTR(POINTWISE_RELU_UPPER_CLIP), INFINITY),
		.slope = backend_real(d, ATTR(POINTWISE_RELU_LOWER_CLIP_SLOPE), 0),
		.elu_alpha = backend_real(d, ATTR(POINTWISE_ELU_ALPHA), 1),
		.softplus_beta = backend_real(d, ATTR(POINTWISE_SOFTPLUS_BETA), 1),
		.swish_beta = backend_real(d, ATTR(POINTWISE_SWISH_BETA), 1),
		.axis = backend_integer(d, ATTR(POINTWISE_AXIS), -1),
	};
	if (!soft_backend_find(d, ATTR(POINTWISE_MODE)) ||
		!soft_backend_find(d, ATTR(POINTWISE_MATH_PREC)))
		return CUDNN_STATUS_BAD_PARAM;
	return backend_pointwise_inputs(d->pointwise.mode) ? CUDNN_STATUS_SUCCESS
							   : CUDNN_STATUS_NOT_SUPPORTED;
}

static int finalize_reduction(struct backend_descriptor *d)
{
	d->reduction = (int)backend_integer(d, ATTR(REDUCTION_OPERATOR), -1);
	if (d->reduction < 0 || !soft_backend_find(d, ATTR(REDUCTION_COMP_TYPE)))
		return CUDNN_STATUS_BAD_PARAM;
	return dnn_reduce_served(d->reduction) ? CUDNN_STATUS_SUCCESS
					       : CUDNN_STATUS_NOT_SUPPORTED;
}

/* ---- operations ---- */

/* Copies the tensor that an attribute names into its role; false: there is none. */
static bool take(
	const struct backend_descriptor *d, int name, struct backend_operation *op, int role)
{
	const struct backend_descriptor *t = backend_nested(d, name, 0, KIND(TENSOR));

	if (t)
		op->tensors[role] = t->tensor;
	return t;
}

/* Whether each dimension of `small` is 1 or the result's. */
static bool broadcasts(const struct backend_operation *op, int role)
{
	return dnn_fits(&op->tensors[role].tensor, &op->tensors[ROLE_OUT].tensor);
}

static int take_convolution(const struct backend_descriptor *d, struct backend_operation *op,
	int convolution_name, int x, int x_role, int w, int w_role, int y, int y_role)
{
	const struct backend_descriptor *c =
		backend_nested(d, convolution_name, 0, KIND(CONVOLUTION));
	const struct dnn_tensor *wt = &op->tensors[w_role].tensor;
	const struct dnn_tensor *xt = &op->tensors[x_role].tensor;

	if (!c || !take(d, x, op, x_role) || !take(d, w, op, w_role) || !take(d, y, op, y_role))
		return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
	if (xt->count < 3 || wt->count < 3 || xt->dim[1] % wt->dim[1])
		return CUDNN_STATUS_BAD_PARAM;
	return dnn_shape_of(&op->shape, &c->window, xt->dim[1] / wt->dim[1], c->flip, xt, wt,
		&op->tensors[y_role].tensor);
}

static int take_pointwise(const struct backend_descriptor *d, struct backend_operation *op)
{
	const struct backend_descriptor *p =
		backend_nested(d, ATTR(OPERATION_POINTWISE_PW_DESCRIPTOR), 0, KIND(POINTWISE));
	bool back;
	int inputs;

	if (!p)
		return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
	op->pointwise = p->pointwise;
	back = backend_pointwise_backward(p->pointwise.mode);
	inputs = backend_pointwise_inputs(p->pointwise.mode);
	if (!take(d, back ? ATTR(OPERATION_POINTWISE_DXDESC) : ATTR(OPERATION_POINTWISE_YDESC),
		    op, ROLE_OUT))
		return CUDNN_STATUS_BAD_PARAM;
	/* A gradient from the output alone is not served. */
	if (!take(d, ATTR(OPERATION_POINTWISE_XDESC), op, ROLE_X))
		return back ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_BAD_PARAM;
	if (back ? !take(d, ATTR(OPERATION_POINTWISE_DYDESC), op, ROLE_B)
		 : inputs > 1 && !take(d, ATTR(OPERATION_POINTWISE_BDESC), op, ROLE_B))
		return CUDNN_STATUS_BAD_PARAM;
	if (inputs > 2 && !take(d, ATTR(OPERATION_POINTWISE_TDESC), op, ROLE_T))
		return CUDNN_STATUS_BAD_PARAM;
	op->alpha = backend_real(d, ATTR(OPERATION_POINTWISE_ALPHA1), 1);
	op->beta = backend_real(d, ATTR(OPERATION_POINTWISE_ALPHA2), 1);
	for (int role = ROLE_X; role <= ROLE_T; role++)
		if (op->tensors[role].tensor.count && !broadcasts(op, role))
			return CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
	if (p->pointwise.mode == CUDNN_POINTWISE_GEN_INDEX &&
		(p->pointwise.axis < 0 ||
			p->pointwise.axis >= op->tensors[ROLE_OUT].tensor.count))
		return CUDNN_STATUS_BAD_PARAM;
	return CUDNN_STATUS_SUCCESS;
}

static int take_matmul(const struct backend_descriptor *d, struct backend_operation *op)
{
	const struct dnn_tensor *a = &op->tensors[ROLE_X].tensor;
	const struct dnn_tensor *b = &op->tensors[ROLE_B].tensor;
	const struct dnn_tensor *c = &op->tensors[ROLE_OUT].tensor;

	if (!backend_nested(d, ATTR(OPERATION_MATMUL_DESC), 0, KIND(MATMUL)) ||
		!take(d, ATTR(OPERATION_MATMUL_ADESC), op, ROLE_X) ||
		!take(d, ATTR(OPERATION_MATMUL_BDESC), op, ROLE_B) ||
		!take(d, ATTR(OPERATION_MATMUL_CDESC), op, ROLE_OUT))
		return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
	if (a->count < 2 || a->count != b->count || a->count != c->count)
		return CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
	for (int i = 0; i < c->count - 2; i++)
		if ((a->dim[i] != 1 && a->dim[i] != c->dim[i]) ||
			(b->dim[i] != 1 && b->dim[i] != c->dim[i]))
			return CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
	if (a->dim[c->count - 2] != c->dim[c->count - 2] ||
		b->dim[c->count - 1] != c->dim[c->count - 1] ||
		a->dim[c->count - 1] != b->dim[c->count - 2])
		return CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
	for (int i = c->count - 2; i < c->count; i++)
		if (a->dim[i] > INT32_MAX || b->dim[i] > INT32_MAX || c->dim[i] > INT32_MAX)
			return CUDNN_STATUS_NOT_SUPPORTED;
	return CUDNN_STATUS_SUCCESS;
}

static int take_reduction(const struct backend_descriptor *d, struct backend_operation *op)
{
	const struct backend_descriptor *r =
		backend_nested(d, ATTR(OPERATION_REDUCTION_DESC), 0, KIND(REDUCTION));

	if (!r || !take(d, ATTR(OPERATION_REDUCTION_XDESC), op, ROLE_X) ||
		!take(d, ATTR(OPERATION_REDUCTION_YDESC), op, ROLE_OUT))
		return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
	op->reduction = r->reduction;
	return dnn_fits(&op->tensors[ROLE_OUT].tensor, &op->tensors[ROLE_X].tensor)
		       ? CUDNN_STATUS_SUCCESS
		       : CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
}

static int take_operation(const struct backend_descriptor *d, struct backend_operation *op)
{
	op->kind = d->kind;
	op->alpha = 1;
	switch (d->kind) {
#define SCALARS(NAME)                                                                          \
	op->alpha = backend_real(d, ATTR(OPERATION_CONVOLUTION_##NAME##_ALPHA), 1);            \
	op->beta = backend_real(d, ATTR(OPERATION_CONVOLUTION_##NAME##_BETA), 0)
	case KIND(OPERATION_CONVOLUTION_FORWARD):
		SCALARS(FORWARD);
		return take_convolution(d, op, ATTR(OPERATION_CONVOLUTION_FORWARD_CONV_DESC),
			ATTR(OPERATION_CONVOLUTION_FORWARD_X), ROLE_X,
			ATTR(OPERATION_CONVOLUTION_FORWARD_W), ROLE_B,
			ATTR(OPERATION_CONVOLUTION_FORWARD_Y), ROLE_OUT);
	case KIND(OPERATION_CONVOLUTION_BACKWARD_DATA):
		SCALARS(BWD_DATA);
		return take_convolution(d, op, ATTR(OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC),
			ATTR(OPERATION_CONVOLUTION_BWD_DATA_DX), ROLE_OUT,
			ATTR(OPERATION_CONVOLUTION_BWD_DATA_W), ROLE_B,
			ATTR(OPERATION_CONVOLUTION_BWD_DATA_DY), ROLE_DY);
	case KIND(OPERATION_CONVOLUTION_BACKWARD_FILTER):
		SCALARS(BWD_FILTER);
		return take_convolution(d, op, ATTR(OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC),
			ATTR(OPERATION_CONVOLUTION_BWD_FILTER_X), ROLE_X,
			ATTR(OPERATION_CONVOLUTION_BWD_FILTER_DW), ROLE_OUT,
			ATTR(OPERATION_CONVOLUTION_BWD_FILTER_DY), ROLE_DY);
	case KIND(OPERATION_POINTWISE): return take_pointwise(d, op);
	case KIND(OPERATION_MATMUL): return take_matmul(d, op);
	default: return take_reduction(d, op);
	}
}

static int finalize_operation(struct backend_descriptor *d)
{
	struct backend_operation *op = calloc(1, sizeof(*op));
	int status = op ? take_operation(d, op) : CUDNN_STATUS_ALLOC_FAILED;

	if (!status && op->tensors[ROLE_OUT].by_value)
		status = CUDNN_STATUS_BAD_PARAM;
	if (status) {
		free(op);
		return status;
	}
	d->operation = op;
	return CUDNN_STATUS_SUCCESS;
}

/* ---- graphs, and what stands for one ---- */

/* Whether `op` reads what `from` writes. */
static bool reads(const struct backend_operation *op, const struct backend_operation *from)
{
	for (int role = 0; role < ROLE_OUT; role++)
		if (op->tensors[role].tensor.count &&
			op->tensors[role].uid == from->tensors[ROLE_OUT].uid)
			return true;
	return false;
}

/* Operations in an order in which each comes after those that it reads from. */
static int sorted(struct backend_graph *g, struct backend_operation *const *ops, int count)
{
	bool done[BACKEND_OPERATIONS] = {false};

	while (g->count < count) {
		int before = g->count;

		for (int i = 0; i < count; i++) {
			bool ready = !done[i];

			for (int j = 0; j < count && ready; j++)
				ready = done[j] || j == i || !reads(ops[i], ops[j]);
			if (!ready)
				continue;
			done[i] = true;
			g->operations[g->count++] = *ops[i];
		}
		if (g->count == before)
			return CUDNN_STATUS_BAD_PARAM; /* a circle */
	}
	/* Every virtual tensor that is read is written by one. */
	for (int i = 0; i < count; i++)
		for (int role = 0; role < ROLE_OUT; role++) {
			const struct backend_tensor *t = &g->operations[i].tensors[role];
			bool written = !t->tensor.count || !t->is_virtual;

			for (int j = 0; j < i && !written; j++)
				written = g->operations[j].tensors[ROLE_OUT].uid == t->uid;
			if (!written)
				return CUDNN_STATUS_BAD_PARAM;
		}
	return CUDNN_STATUS_SUCCESS;
}

static int finalize_graph(struct backend_descriptor *d)
{
	const struct backend_attribute *a = soft_backend_find(d, ATTR(OPERATIONGRAPH_OPS));
	struct backend_operation *ops[BACKEND_OPERATIONS];
	struct backend_graph *g;
	int status;

	if (!a)
		return CUDNN_STATUS_BAD_PARAM;
	for (int64_t i = 0; i < a->count; i++) {
		struct backend_descriptor *op =
			backend_nested(d, ATTR(OPERATIONGRAPH_OPS), i, -1);

		if (!op || !op->operation)
			return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
		ops[i] = op->operation;
	}
	g = calloc(1, sizeof(*g) + sizeof(g->operations[0]) * (size_t)a->count);
	if (!g)
		return CUDNN_STATUS_ALLOC_FAILED;
	g->users = 1;
	status = sorted(g, ops, (int)a->count);
	if (status) {
		free(g);
		return status;
	}
	for (int i = 0; i < g->count; i++) {
		const struct dnn_shape *shape = &g->operations[i].shape;
		uint64_t bytes = shape->n ? dnn_convolve_workspace(shape) : 0;

		g->workspace = bytes > g->workspace ? bytes : g->workspace;
	}
	d->graph = g;
	return CUDNN_STATUS_SUCCESS;
}

/* Shares the graph of the descriptor that an attribute names. */
static int share(struct backend_descriptor *d, int name, int kind)
{
	struct backend_descriptor *from = backend_nested(d, name, 0, kind);

	if (!from || !from->graph)
		return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
	from->graph->users++;
	d->graph = from->graph;
	return CUDNN_STATUS_SUCCESS;
}

static int finalize_heuristics(struct backend_descriptor *d)
{
	int64_t mode = backend_integer(d, ATTR(ENGINEHEUR_MODE), -1);

	if (mode < 0 || mode >= CUDNN_HEUR_MODES_COUNT)
		return CUDNN_STATUS_BAD_PARAM;
	return share(d, ATTR(ENGINEHEUR_OPERATION_GRAPH), KIND(OPERATIONGRAPH));
}

static int finalize_engine(struct backend_descriptor *d)
{
	if (backend_integer(d, ATTR(ENGINE_GLOBAL_INDEX), -1) != 0)
		return CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND;
	return share(d, ATTR(ENGINE_OPERATION_GRAPH), KIND(OPERATIONGRAPH));
}

static int finalize_pack(const struct backend_descriptor *d)
{
	const struct backend_attribute *ids =
		soft_backend_find(d, ATTR(VARIANT_PACK_UNIQUE_IDS));
	const struct backend_attribute *places =
		soft_backend_find(d, ATTR(VARIANT_PACK_DATA_POINTERS));

	if (!ids || !places || ids->count != places->count)
		return CUDNN_STATUS_BAD_PARAM;
	return CUDNN_STATUS_SUCCESS;
}

int backend_finalize(struct backend_descriptor *d)
{
	switch (d->kind) {
	case KIND(TENSOR): return finalize_tensor(d);
	case KIND(CONVOLUTION): return finalize_convolution(d);
	case KIND(POINTWISE): return finalize_pointwise(d);
	case KIND(MATMUL):
		return soft_backend_find(d, ATTR(MATMUL_COMP_TYPE)) ? CUDNN_STATUS_SUCCESS
								    : CUDNN_STATUS_BAD_PARAM;
	case KIND(REDUCTION): return finalize_reduction(d);
	case KIND(OPERATIONGRAPH): return finalize_graph(d);
	case KIND(ENGINEHEUR): return finalize_heuristics(d);
	case KIND(ENGINE): return finalize_engine(d);
	case KIND(ENGINECFG): return share(d, ATTR(ENGINECFG_ENGINE), KIND(ENGINE));
	case KIND(EXECUTION_PLAN):
		return share(d, ATTR(EXECUTION_PLAN_ENGINE_CONFIG), KIND(ENGINECFG));
	case KIND(VARIANT_PACK): return finalize_pack(d);
	case KIND(KNOB_INFO): return CUDNN_STATUS_BAD_PARAM; /* it is only filled in */
	default: return finalize_operation(d);
	}
}
