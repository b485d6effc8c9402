/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes of launches, and of the kernel nodes of graphs.
 */
#include <string.h>

#include "softgpu/driver/graph/graph.h"
#include "softgpu/driver/launch_core.h"

CUresult launch_attribute_set(struct ptx_launch *ptx, struct hints *hints,
	CUlaunchAttributeID id, const CUlaunchAttributeValue *value)
{
	switch (id) {
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: ptx->cooperative = value->cooperative != 0; break;
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
		ptx->cluster[0] = value->clusterDim.x;
		ptx->cluster[1] = value->clusterDim.y;
		ptx->cluster[2] = value->clusterDim.z;
		hints->has_cluster = true;
		break;
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		hints->window = value->accessPolicyWindow;
		break;
	case CU_LAUNCH_ATTRIBUTE_PRIORITY: hints->priority = value->priority; break;
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		hints->cluster_policy = value->clusterSchedulingPolicyPreference;
		break;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
		hints->domain_map = value->memSyncDomainMap;
		break;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN: hints->domain = value->memSyncDomain; break;
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
		hints->has_preferred = true;
		hints->preferred[0] = value->preferredClusterDim.x;
		hints->preferred[1] = value->preferredClusterDim.y;
		hints->preferred[2] = value->preferredClusterDim.z;
		break;
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		hints->carveout = value->sharedMemCarveout;
		break;
	case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING: break; /* a hint */
	case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
		if (value->deviceUpdatableKernelNode.deviceUpdatable)
			return CUDA_ERROR_NOT_SUPPORTED;
		break;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

bool launch_op_loaded(const struct op *base)
{
	return object_is(((const struct launch_op *)base)->function, OBJECT_FUNCTION);
}

/* Those that a node has on an H200, and the two domains that there are. */
static bool node_attribute(CUlaunchAttributeID id, const CUlaunchAttributeValue *value)
{
	return id != CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION &&
	       (id != CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN ||
		       (unsigned)value->memSyncDomain <= CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE);
}

CUresult launch_op_attribute(
	struct op *base, CUlaunchAttributeID id, const CUlaunchAttributeValue *value)
{
	struct launch_op *op = (struct launch_op *)base;
	struct launch launch = {.ptx = op->ptx,
		.dynamic_shared = op->ptx.dynamic_shared,
		.function = op->function,
		.hints = op->hints};
	CUresult ret = node_attribute(id, value)
			       ? launch_attribute_set(&launch.ptx, &launch.hints, id, value)
			       : CUDA_ERROR_INVALID_VALUE;

	if (!ret)
		ret = launch_check(&launch);
	if (!ret && launch.ptx.cooperative)
		ret = launch_cooperative_check(&launch);
	if (ret)
		return ret;
	op->ptx = launch.ptx;
	op->hints = launch.hints;
	return CUDA_SUCCESS;
}

CUresult launch_op_attribute_read(
	const struct op *base, CUlaunchAttributeID id, CUlaunchAttributeValue *value)
{
	const struct launch_op *op = (const struct launch_op *)base;
	const struct hints *hints = &op->hints;
	CUlaunchAttributeValue v = {0};

	switch (id) {
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: v.cooperative = op->ptx.cooperative; break;
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
		if (!hints->has_cluster)
			break;
		v.clusterDim.x = op->ptx.cluster[0];
		v.clusterDim.y = op->ptx.cluster[1];
		v.clusterDim.z = op->ptx.cluster[2];
		break;
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		v.accessPolicyWindow = hints->window;
		break;
	case CU_LAUNCH_ATTRIBUTE_PRIORITY: v.priority = hints->priority; break;
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		v.clusterSchedulingPolicyPreference = hints->cluster_policy;
		break;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
		v.memSyncDomainMap = hints->domain_map;
		break;
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN: v.memSyncDomain = hints->domain; break;
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		v.sharedMemCarveout = hints->carveout;
		break;
	case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE: break;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	*value = v;
	return CUDA_SUCCESS;
}

void launch_op_keep_attributes(struct op *base, const struct op *before)
{
	struct launch_op *op = (struct launch_op *)base;
	const struct launch_op *from = (const struct launch_op *)before;

	op->hints = from->hints;
	op->ptx.cooperative = from->ptx.cooperative;
	if (from->hints.has_cluster)
		memcpy(op->ptx.cluster, from->ptx.cluster, sizeof(op->ptx.cluster));
}
