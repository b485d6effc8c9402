/* SPDX-License-Identifier: Apache-2.0
 *
 * The packs of fused operations: see fused.h.
 */
#include <string.h>

#include "softgpu/dnn/fused.h"

int fused_new(int **at, size_t size, int ops)
{
	if (!at)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (ops < 0 || ops >= OPS)
		return CUDNN_STATUS_BAD_PARAM;
	*at = calloc(1, size);
	if (!*at)
		return CUDNN_STATUS_ALLOC_FAILED;
	**at = ops;
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnCreateFusedOpsConstParamPack, struct fused_constants **pack, int ops)
{
	return fused_new((int **)pack, sizeof(**pack), ops);
}

DNN_CALL(cudnnDestroyFusedOpsConstParamPack, struct fused_constants *pack)
{
	free(pack);
	return CUDNN_STATUS_SUCCESS;
}

static bool is_filter(int label)
{
	return label == W || label == DW;
}

static bool is_tensor(int label)
{
	switch (label) {
	case X:
	case EQ:
	case Y:
	case DY:
	case STATS:
	case BN:
	case 26:
	case 28:
	case 31:
	case 33:
	case 35: return true;
	default: return false;
	}
}

DNN_CALL(cudnnSetFusedOpsConstParamPackAttribute, struct fused_constants *pack, int label,
	const void *from)
{
	if (!pack)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (label < 0 || label >= CONSTANTS)
		return CUDNN_STATUS_BAD_PARAM;
	pack->has[label] = from;
	pack->number[label] = 0;
	if (!from)
		return CUDNN_STATUS_SUCCESS;
	if (is_tensor(label))
		pack->tensor[label] = *(const struct dnn_tensor *)from;
	else if (is_filter(label))
		pack->filter[label] = *(const struct dnn_filter *)from;
	else if (label == ACTIVATION)
		pack->activation = *(const struct dnn_activation *)from;
	else if (label == CONVOLUTION)
		pack->convolution = *(const struct dnn_convolution *)from;
	else
		pack->number[label] = *(const int *)from;
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnGetFusedOpsConstParamPackAttribute, const struct fused_constants *pack, int label,
	void *to, int *missing)
{
	if (!pack || !to || !missing)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (label < 0 || label >= CONSTANTS)
		return CUDNN_STATUS_BAD_PARAM;
	*missing = !pack->has[label];
	if (*missing)
		return CUDNN_STATUS_SUCCESS;
	if (is_tensor(label))
		*(struct dnn_tensor *)to = pack->tensor[label];
	else if (is_filter(label))
		*(struct dnn_filter *)to = pack->filter[label];
	else if (label == ACTIVATION)
		*(struct dnn_activation *)to = pack->activation;
	else if (label == CONVOLUTION)
		*(struct dnn_convolution *)to = pack->convolution;
	else
		*(int *)to = pack->number[label];
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnCreateFusedOpsVariantParamPack, struct fused_variants **pack, int ops)
{
	return fused_new((int **)pack, sizeof(**pack), ops);
}

DNN_CALL(cudnnDestroyFusedOpsVariantParamPack, struct fused_variants *pack)
{
	free(pack);
	return CUDNN_STATUS_SUCCESS;
}

static void *scalar_at(struct fused_variants *pack, int label)
{
	switch (label) {
	case S_SIZE: return &pack->size;
	case S_COUNT: return &pack->count;
	case S_FACTOR: return &pack->factor;
	case S_EPSILON: return &pack->epsilon;
	default: return NULL;
	}
}

DNN_CALL(cudnnSetFusedOpsVariantParamPackAttribute, struct fused_variants *pack, int label,
	void *at)
{
	void *scalar;

	if (!pack)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (label >= 0 && label < POINTERS) {
		pack->pointer[label] = at;
		return CUDNN_STATUS_SUCCESS;
	}
	scalar = scalar_at(pack, label);
	if (!scalar || !at)
		return CUDNN_STATUS_BAD_PARAM;
	memcpy(scalar, at, 8);
	return CUDNN_STATUS_SUCCESS;
}

DNN_CALL(cudnnGetFusedOpsVariantParamPackAttribute, struct fused_variants *pack, int label,
	void *to)
{
	const void *scalar;

	if (!pack || !to)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (label >= 0 && label < POINTERS) {
		*(void **)to = pack->pointer[label];
		return CUDNN_STATUS_SUCCESS;
	}
	scalar = scalar_at(pack, label);
	if (!scalar)
		return CUDNN_STATUS_BAD_PARAM;
	memcpy(to, scalar, 8);
	return CUDNN_STATUS_SUCCESS;
}
