/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies as nodes: adding, asking and changing them.
 */
#include "shim/driver/context.h"
#include "shim/driver/graph/graph_node.h"
#include "shim/driver/memory/host.h"
#include "shim/generated/cuda_hand.h"

CUresult node_context(CUcontext ctx)
{
	return node_context_ok(ctx) ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

bool node_context_gone(CUcontext ctx)
{
	const struct context *context = ctx ? context_of(ctx) : NULL;

	return context && !atomic_load(&context->live);
}

void exec_copy_begin(
	struct node_params *p, CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *copy)
{
	struct graph_exec *changed = graph_exec_find(exec);
	struct graph_node *there = graph_node_find(node);

	p->stands = changed && there && node_place(there, &changed->parts);
	if (!copy || p->stands)
		return;
	if (copy->srcMemoryType == CU_MEMORYTYPE_HOST)
		host_named(&copy->srcHost, sizeof(copy->srcHost));
	else if (copy->srcMemoryType == CU_MEMORYTYPE_UNIFIED)
		host_named(&copy->srcDevice, sizeof(copy->srcDevice));
	if (copy->dstMemoryType == CU_MEMORYTYPE_HOST)
		host_named(&copy->dstHost, sizeof(copy->dstHost));
	else if (copy->dstMemoryType == CU_MEMORYTYPE_UNIFIED)
		host_named(&copy->dstDevice, sizeof(copy->dstDevice));
}

CUresult hand_cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
	struct graph *graph = graph_find(hGraph);
	struct node_params p = {0};

	if (node_context_gone(ctx))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return node_add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &p,
		node_params_copy(&p, copyParams, graph ? &graph->parts : NULL)
			?: node_context(ctx));
}

static const struct part *copy_part(const struct parts *parts, const struct graph_copy *copy)
{
	for (size_t i = 0; i < parts->count; i++) {
		const struct part *part = parts->places[i].part;

		if (part_is(part, copy))
			return part;
	}
	return NULL;
}

static void copy_names_array(CUmemorytype *type, CUarray *name, size_t *x, size_t *y, size_t *z,
	CUdeviceptr *device, uint64_t array, uint64_t at, uint64_t row, uint64_t slice)
{
	*type = CU_MEMORYTYPE_ARRAY;
	*name = (CUarray)(uintptr_t)array;
	*x = at;
	*y = row;
	*z = slice;
	*device = 0;
}

CUresult hand_cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams)
{
	struct graph_node *node = graph_node_find(hNode);
	const struct part *part;
	struct graph_copy c;
	size_t n;
	CUresult status;

	if (!node || !nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	status = node_get(node, CU_GRAPH_NODE_TYPE_MEMCPY, &c, sizeof(c), &n);
	if (status)
		return status;
	part = copy_part(&node->graph->parts, &c);
	*nodeParams = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = c.src,
		.srcPitch = c.src_pitch,
		.srcHeight = c.src_pitch ? c.src_slice / c.src_pitch : c.height,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = c.dst,
		.dstPitch = c.dst_pitch,
		.dstHeight = c.dst_pitch ? c.dst_slice / c.dst_pitch : c.height,
		.WidthInBytes = c.width,
		.Height = c.height,
		.Depth = c.depth};
	if (c.src_array)
		copy_names_array(&nodeParams->srcMemoryType, &nodeParams->srcArray,
			&nodeParams->srcXInBytes, &nodeParams->srcY, &nodeParams->srcZ,
			&nodeParams->srcDevice, c.src_array, c.src, c.src_pitch, c.src_slice);
	if (c.dst_array)
		copy_names_array(&nodeParams->dstMemoryType, &nodeParams->dstArray,
			&nodeParams->dstXInBytes, &nodeParams->dstY, &nodeParams->dstZ,
			&nodeParams->dstDevice, c.dst_array, c.dst, c.dst_pitch, c.dst_slice);
	if (!part)
		return CUDA_SUCCESS;
	/* The app's memory again, in place of what stands in for it. */
	if (part->kind == PART_WITHIN) {
		nodeParams->dstMemoryType = CU_MEMORYTYPE_HOST;
		nodeParams->dstDevice = 0;
		nodeParams->dstHost = (void *)(uintptr_t)part->copy.device;
		nodeParams->dstPitch = part->copy.device_pitch;
		nodeParams->dstHeight = part->copy.device_slice / part->copy.device_pitch;
		nodeParams->WidthInBytes = part->copy.width;
		nodeParams->Height = part->copy.height;
		nodeParams->Depth = part->copy.depth;
	}
	if (part->kind != PART_OUT) {
		nodeParams->srcMemoryType = CU_MEMORYTYPE_HOST;
		nodeParams->srcDevice = 0;
		nodeParams->srcHost = (const void *)(uintptr_t)part->copy.host;
		nodeParams->srcPitch = part->copy.host_pitch;
		nodeParams->srcHeight = part->copy.host_slice / part->copy.host_pitch;
	} else {
		nodeParams->dstMemoryType = CU_MEMORYTYPE_HOST;
		nodeParams->dstDevice = 0;
		nodeParams->dstHost = (void *)(uintptr_t)part->copy.host;
		nodeParams->dstPitch = part->copy.host_pitch;
		nodeParams->dstHeight = part->copy.host_slice / part->copy.host_pitch;
	}
	return CUDA_SUCCESS;
}

CUresult hand_cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams)
{
	struct node_params p = {0};

	return node_set(hNode, NULL, &p, node_params_copy(&p, nodeParams, NULL));
}

CUresult hand_cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
	const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
	struct node_params p = {0};

	if (node_context_gone(ctx))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	exec_copy_begin(&p, hGraphExec, hNode, copyParams);
	return node_set(hNode, &hGraphExec, &p,
		node_params_copy(&p, copyParams, NULL) ?: node_context(ctx));
}
