/* SPDX-License-Identifier: Apache-2.0
 *
 * Backend descriptors and their attributes.  `rules` says which attributes each kind has; what
 * is computed rather than set is answered by `answer`.
 */
#include <string.h>

#include "softgpu/dnn/backend.h"

/* A type of a rule: float or double. */
#define TYPE_REAL (-1)

#define KIND(NAME) CUDNN_BACKEND_##NAME##_DESCRIPTOR
#define ATTR(NAME) CUDNN_ATTR_##NAME
#define TYPE(NAME) CUDNN_TYPE_##NAME
#define NESTED TYPE(BACKEND_DESCRIPTOR)

static const struct rule {
	int kind, name, type;
	int64_t most; /* elements */
} rules[] = {
	{KIND(TENSOR), ATTR(TENSOR_BYTE_ALIGNMENT), TYPE(INT64), 1},
	{KIND(TENSOR), ATTR(TENSOR_DATA_TYPE), TYPE(DATA_TYPE), 1},
	{KIND(TENSOR), ATTR(TENSOR_DIMENSIONS), TYPE(INT64), DNN_DIMS},
	{KIND(TENSOR), ATTR(TENSOR_STRIDES), TYPE(INT64), DNN_DIMS},
	{KIND(TENSOR), ATTR(TENSOR_VECTOR_COUNT), TYPE(INT64), 1},
	{KIND(TENSOR), ATTR(TENSOR_VECTORIZED_DIMENSION), TYPE(INT64), 1},
	{KIND(TENSOR), ATTR(TENSOR_UNIQUE_ID), TYPE(INT64), 1},
	{KIND(TENSOR), ATTR(TENSOR_IS_VIRTUAL), TYPE(BOOLEAN), 1},
	{KIND(TENSOR), ATTR(TENSOR_IS_BY_VALUE), TYPE(BOOLEAN), 1},
	{KIND(TENSOR), ATTR(TENSOR_REORDERING_MODE), TYPE(TENSOR_REORDERING_MODE), 1},

	{KIND(CONVOLUTION), ATTR(CONVOLUTION_COMP_TYPE), TYPE(DATA_TYPE), 1},
	{KIND(CONVOLUTION), ATTR(CONVOLUTION_CONV_MODE), TYPE(CONVOLUTION_MODE), 1},
	{KIND(CONVOLUTION), ATTR(CONVOLUTION_DILATIONS), TYPE(INT64), DNN_SPATIAL},
	{KIND(CONVOLUTION), ATTR(CONVOLUTION_FILTER_STRIDES), TYPE(INT64), DNN_SPATIAL},
	{KIND(CONVOLUTION), ATTR(CONVOLUTION_POST_PADDINGS), TYPE(INT64), DNN_SPATIAL},
	{KIND(CONVOLUTION), ATTR(CONVOLUTION_PRE_PADDINGS), TYPE(INT64), DNN_SPATIAL},
	{KIND(CONVOLUTION), ATTR(CONVOLUTION_SPATIAL_DIMS), TYPE(INT64), 1},

	{KIND(POINTWISE), ATTR(POINTWISE_MODE), TYPE(POINTWISE_MODE), 1},
	{KIND(POINTWISE), ATTR(POINTWISE_MATH_PREC), TYPE(DATA_TYPE), 1},
	{KIND(POINTWISE), ATTR(POINTWISE_NAN_PROPAGATION), TYPE(NAN_PROPOGATION), 1},
	{KIND(POINTWISE), ATTR(POINTWISE_RELU_LOWER_CLIP), TYPE_REAL, 1},
	{KIND(POINTWISE), ATTR(POINTWISE_RELU_UPPER_CLIP), TYPE_REAL, 1},
	{KIND(POINTWISE), ATTR(POINTWISE_RELU_LOWER_CLIP_SLOPE), TYPE_REAL, 1},
	{KIND(POINTWISE), ATTR(POINTWISE_ELU_ALPHA), TYPE_REAL, 1},
	{KIND(POINTWISE), ATTR(POINTWISE_SOFTPLUS_BETA), TYPE_REAL, 1},
	{KIND(POINTWISE), ATTR(POINTWISE_SWISH_BETA), TYPE_REAL, 1},
	{KIND(POINTWISE), ATTR(POINTWISE_AXIS), TYPE(INT64), 1},

	{KIND(MATMUL), ATTR(MATMUL_COMP_TYPE), TYPE(DATA_TYPE), 1},
	{KIND(REDUCTION), ATTR(REDUCTION_OPERATOR), TYPE(REDUCTION_OPERATOR_TYPE), 1},
	{KIND(REDUCTION), ATTR(REDUCTION_COMP_TYPE), TYPE(DATA_TYPE), 1},

#define CONVOLUTION_RULES(OF, NAME, A, B, C)                                                   \
	{KIND(OF), ATTR(OPERATION_CONVOLUTION_##NAME##_ALPHA), TYPE_REAL, 1},                  \
		{KIND(OF), ATTR(OPERATION_CONVOLUTION_##NAME##_BETA), TYPE_REAL, 1},           \
		{KIND(OF), ATTR(OPERATION_CONVOLUTION_##NAME##_CONV_DESC), NESTED, 1},         \
		{KIND(OF), ATTR(OPERATION_CONVOLUTION_##NAME##_##A), NESTED, 1},               \
		{KIND(OF), ATTR(OPERATION_CONVOLUTION_##NAME##_##B), NESTED, 1},               \
		{KIND(OF), ATTR(OPERATION_CONVOLUTION_##NAME##_##C), NESTED, 1}
	CONVOLUTION_RULES(OPERATION_CONVOLUTION_FORWARD, FORWARD, X, W, Y),
	CONVOLUTION_RULES(OPERATION_CONVOLUTION_BACKWARD_DATA, BWD_DATA, DX, W, DY),
	CONVOLUTION_RULES(OPERATION_CONVOLUTION_BACKWARD_FILTER, BWD_FILTER, X, DW, DY),

	{KIND(OPERATION_POINTWISE), ATTR(OPERATION_POINTWISE_PW_DESCRIPTOR), NESTED, 1},
	{KIND(OPERATION_POINTWISE), ATTR(OPERATION_POINTWISE_XDESC), NESTED, 1},
	{KIND(OPERATION_POINTWISE), ATTR(OPERATION_POINTWISE_BDESC), NESTED, 1},
	{KIND(OPERATION_POINTWISE), ATTR(OPERATION_POINTWISE_TDESC), NESTED, 1},
	{KIND(OPERATION_POINTWISE), ATTR(OPERATION_POINTWISE_YDESC), NESTED, 1},
	{KIND(OPERATION_POINTWISE), ATTR(OPERATION_POINTWISE_DXDESC), NESTED, 1},
	{KIND(OPERATION_POINTWISE), ATTR(OPERATION_POINTWISE_DYDESC), NESTED, 1},
	{KIND(OPERATION_POINTWISE), ATTR(OPERATION_POINTWISE_ALPHA1), TYPE_REAL, 1},
	{KIND(OPERATION_POINTWISE), ATTR(OPERATION_POINTWISE_ALPHA2), TYPE_REAL, 1},

	{KIND(OPERATION_MATMUL), ATTR(OPERATION_MATMUL_ADESC), NESTED, 1},
	{KIND(OPERATION_MATMUL), ATTR(OPERATION_MATMUL_BDESC), NESTED, 1},
	{KIND(OPERATION_MATMUL), ATTR(OPERATION_MATMUL_CDESC), NESTED, 1},
	{KIND(OPERATION_MATMUL), ATTR(OPERATION_MATMUL_DESC), NESTED, 1},

	{KIND(OPERATION_REDUCTION), ATTR(OPERATION_REDUCTION_XDESC), NESTED, 1},
	{KIND(OPERATION_REDUCTION), ATTR(OPERATION_REDUCTION_YDESC), NESTED, 1},
	{KIND(OPERATION_REDUCTION), ATTR(OPERATION_REDUCTION_DESC), NESTED, 1},

	{KIND(OPERATIONGRAPH), ATTR(OPERATIONGRAPH_HANDLE), TYPE(HANDLE), 1},
	{KIND(OPERATIONGRAPH), ATTR(OPERATIONGRAPH_OPS), NESTED, BACKEND_OPERATIONS},
	{KIND(ENGINE), ATTR(ENGINE_OPERATION_GRAPH), NESTED, 1},
	{KIND(ENGINE), ATTR(ENGINE_GLOBAL_INDEX), TYPE(INT64), 1},
	{KIND(ENGINE), ATTR(ENGINE_SM_COUNT_TARGET), TYPE(INT32), 1},
	{KIND(ENGINECFG), ATTR(ENGINECFG_ENGINE), NESTED, 1},
	{KIND(ENGINEHEUR), ATTR(ENGINEHEUR_OPERATION_GRAPH), NESTED, 1},
	{KIND(ENGINEHEUR), ATTR(ENGINEHEUR_MODE), TYPE(HEUR_MODE), 1},
	{KIND(ENGINEHEUR), ATTR(ENGINEHEUR_SM_COUNT_TARGET), TYPE(INT32), 1},
	{KIND(EXECUTION_PLAN), ATTR(EXECUTION_PLAN_HANDLE), TYPE(HANDLE), 1},
	{KIND(EXECUTION_PLAN), ATTR(EXECUTION_PLAN_ENGINE_CONFIG), NESTED, 1},
	{KIND(VARIANT_PACK), ATTR(VARIANT_PACK_UNIQUE_IDS), TYPE(INT64), 1024},
	{KIND(VARIANT_PACK), ATTR(VARIANT_PACK_DATA_POINTERS), TYPE(VOID_PTR), 1024},
	{KIND(VARIANT_PACK), ATTR(VARIANT_PACK_WORKSPACE), TYPE(VOID_PTR), 1},
};

static const struct rule *rule_of(int kind, int name)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (rules[i].kind == kind && rules[i].name == name)
			return &rules[i];
	return NULL;
}

static bool kind_served(int kind)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (rules[i].kind == kind)
			return true;
	/* Programs make some to be filled in by the engine, which has none. */
	return kind == KIND(KNOB_INFO);
}

static bool type_fits(const struct rule *rule, int type)
{
	if (rule->type == TYPE_REAL)
		return type == TYPE(FLOAT) || type == TYPE(DOUBLE);
	return rule->type == type;
}

static size_t type_size(int type)
{
	switch (type) {
	case TYPE(BOOLEAN): return 1;
	case TYPE(INT64):
	case TYPE(DOUBLE):
	case TYPE(HANDLE):
	case TYPE(VOID_PTR):
	case NESTED: return 8;
	default: return 4;
	}
}

const struct backend_attribute *soft_backend_find(const struct backend_descriptor *d, int name)
{
	for (int i = 0; i < d->count; i++)
		if (d->attributes[i].name == name)
			return &d->attributes[i];
	return NULL;
}

int64_t backend_integer(const struct backend_descriptor *d, int name, int64_t otherwise)
{
	const struct backend_attribute *a = soft_backend_find(d, name);

	if (!a || !a->count)
		return otherwise;
	switch (type_size(a->type)) {
	case 1: return *(const uint8_t *)a->bytes;
	case 4: return *(const int32_t *)a->bytes;
	default: return *(const int64_t *)a->bytes;
	}
}

double backend_real(const struct backend_descriptor *d, int name, double otherwise)
{
	const struct backend_attribute *a = soft_backend_find(d, name);

	if (!a || !a->count)
		return otherwise;
	return a->type == TYPE(DOUBLE) ? *(const double *)a->bytes
				       : (double)*(const float *)a->bytes;
}

struct backend_descriptor *backend_nested(
	const struct backend_descriptor *d, int name, int64_t index, int kind)
{
	const struct backend_attribute *a = soft_backend_find(d, name);
	struct backend_descriptor *nested;

	if (!a || index >= a->count)
		return NULL;
	nested = ((struct backend_descriptor *const *)a->bytes)[index];
	if (!nested || !nested->finalized || (kind >= 0 && nested->kind != kind))
		return NULL;
	return nested;
}

void backend_graph_drop(struct backend_graph *graph)
{
	if (graph && --graph->users == 0)
		free(graph);
}

/* ---- life ---- */

DNN_CALL(cudnnBackendCreateDescriptor, int kind, struct backend_descriptor **descriptor)
{
	if (!descriptor)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!kind_served(kind))
		return CUDNN_STATUS_NOT_SUPPORTED;
	*descriptor = calloc(1, sizeof(**descriptor));
	if (!*descriptor)
		return CUDNN_STATUS_ALLOC_FAILED;
	(*descriptor)->kind = kind;
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnBackendDestroyDescriptor, struct backend_descriptor *descriptor)
{
	if (!descriptor)
		return CUDNN_STATUS_SUCCESS;
	for (int i = 0; i < descriptor->count; i++)
		free(descriptor->attributes[i].bytes);
	free(descriptor->operation);
	backend_graph_drop(descriptor->graph);
	free(descriptor);
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnBackendFinalize, struct backend_descriptor *descriptor)
{
	int status;

	if (!descriptor)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (descriptor->finalized)
		return CUDNN_STATUS_SUCCESS;
	status = backend_finalize(descriptor);
	descriptor->finalized = !status;
	return status;
}

/* ---- attributes ---- */

DNN_CALL(cudnnBackendSetAttribute, struct backend_descriptor *descriptor, int name, int type,
	int64_t count, const void *elements)
{
	const struct rule *rule;
	struct backend_attribute *a;
	void *bytes;

	if (!descriptor || !elements)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (descriptor->finalized)
		return CUDNN_STATUS_NOT_INITIALIZED;
	rule = rule_of(descriptor->kind, name);
	if (!rule)
		return CUDNN_STATUS_NOT_SUPPORTED;
	if (!type_fits(rule, type))
		return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
	if (count < 1 || count > rule->most)
		return CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND;
	bytes = malloc((size_t)count * type_size(type));
	if (!bytes)
		return CUDNN_STATUS_ALLOC_FAILED;
	memcpy(bytes, elements, (size_t)count * type_size(type));
	a = (struct backend_attribute *)(uintptr_t)soft_backend_find(descriptor, name);
	if (!a)
		/* Never more than there are rules of a kind. */
		a = &descriptor->attributes[descriptor->count++];
	free(a->bytes);
	*a = (struct backend_attribute){name, type, count, bytes};
	return CUDNN_STATUS_SUCCESS;
}

/* Makes a finalized descriptor of KIND, that the caller brought, one of the graph. */
static int fill(struct backend_descriptor *to, int kind, struct backend_graph *graph)
{
	if (!to || to->kind != kind)
		return CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE;
	backend_graph_drop(to->graph);
	graph->users++;
	to->graph = graph;
	to->finalized = true;
	return CUDNN_STATUS_SUCCESS;
}

static int give(int64_t value, int want, int type, int64_t room, int64_t *count, void *elements)
{
	if (type != want)
		return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
	if (count)
		*count = 1;
	if (room < 1 || !elements)
		return CUDNN_STATUS_SUCCESS;
	if (type_size(type) == 4)
		*(int32_t *)elements = (int32_t)value;
	else
		*(int64_t *)elements = value;
	return CUDNN_STATUS_SUCCESS;
}

/* Attributes that nobody sets. There is one engine, number 0, with no knobs and no notes. */
static int answer(const struct backend_descriptor *d, int name, int type, int64_t room,
	int64_t *count, void *elements)
{
	struct backend_descriptor *const *to = elements;

	switch (name) {
	case ATTR(ENGINEHEUR_RESULTS):
	case ATTR(ENGINECFG_ENGINE):
		if (d->kind !=
			(name == ATTR(ENGINEHEUR_RESULTS) ? KIND(ENGINEHEUR) : KIND(ENGINECFG)))
			return CUDNN_STATUS_NOT_SUPPORTED;
		if (type != NESTED)
			return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
		if (count)
			*count = 1;
		if (room < 1 || !to)
			return CUDNN_STATUS_SUCCESS;
		return fill(to[0],
			name == ATTR(ENGINEHEUR_RESULTS) ? KIND(ENGINECFG) : KIND(ENGINE),
			d->graph);
	case ATTR(OPERATIONGRAPH_ENGINE_GLOBAL_COUNT):
		return give(1, TYPE(INT64), type, room, count, elements);
	case ATTR(ENGINE_GLOBAL_INDEX):
		return give(0, TYPE(INT64), type, room, count, elements);
	case ATTR(EXECUTION_PLAN_WORKSPACE_SIZE):
	case ATTR(ENGINECFG_WORKSPACE_SIZE):
		return give(
			(int64_t)d->graph->workspace, TYPE(INT64), type, room, count, elements);
	case ATTR(ENGINECFG_SHARED_MEMORY_USED):
		return give(0, TYPE(INT64), type, room, count, elements);
	case ATTR(ENGINECFG_INTERMEDIATE_INFO):
	case ATTR(ENGINECFG_KNOB_CHOICES):
	case ATTR(ENGINE_KNOB_INFO):
	case ATTR(ENGINE_NUMERICAL_NOTE):
	case ATTR(ENGINE_LAYOUT_INFO):
	case ATTR(ENGINE_BEHAVIOR_NOTE):
	case ATTR(EXECUTION_PLAN_COMPUTED_INTERMEDIATE_UIDS):
		if (!count)
			return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
		*count = 0;
		return CUDNN_STATUS_SUCCESS;
	default: return CUDNN_STATUS_NOT_SUPPORTED;
	}
}

DNN_CALL(cudnnBackendGetAttribute, const struct backend_descriptor *descriptor, int name,
	int type, int64_t room, int64_t *count, void *elements)
{
	const struct backend_attribute *a;
	int64_t copied;

	if (!descriptor)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!descriptor->finalized)
		return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
	a = soft_backend_find(descriptor, name);
	/* A nested one is filled into one of the caller's, where that is served. */
	if (!a || a->type == NESTED)
		return answer(descriptor, name, type, room, count, elements);
	if (type != a->type)
		return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
	if (count)
		*count = a->count;
	copied = room < a->count ? room : a->count;
	if (elements && copied > 0)
		memcpy(elements, a->bytes, (size_t)copied * type_size(type));
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnBackendExecute, struct dnn_handle *handle, const struct backend_descriptor *plan,
	const struct backend_descriptor *pack)
{
	if (!handle || !plan || !pack)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (plan->kind != KIND(EXECUTION_PLAN) || pack->kind != KIND(VARIANT_PACK))
		return CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE;
	if (!plan->finalized || !pack->finalized)
		return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
	return backend_execute(handle, plan, pack);
}
