/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies as nodes: adding, asking and changing them.
 */
#include "shim/driver/context/context.h"
#include "shim/driver/graph/graph_node.h"
#include "shim/driver/memory/pinned/host.h"
#include "shim/driver/module/module.h"
#include "shim/engine/thread.h"
#include "shim/generated/cuda_hand.h"

static CUresult within(struct context *context, bool *entered)
{
	const struct context *current = context_current();

	*entered = false;
	if (context == current)
		return CUDA_SUCCESS;
	if (!atomic_load(&context->live))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (current && current->session != context->session)
		return CUDA_ERROR_NOT_SUPPORTED;
	*entered = thread_push(context);
	return *entered ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult node_within(CUcontext ctx, bool *entered)
{
	struct context *context = ctx ? context_of(ctx) : NULL;

	*entered = false;
	if (!ctx)
		return CUDA_SUCCESS;
	return context ? within(context, entered) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult node_within_kernel(const CUDA_KERNEL_NODE_PARAMS *k, bool *entered)
{
	struct function *f;

	*entered = false;
	if (!k || !k->func)
		return node_within(k ? k->ctx : NULL, entered);
	/* What is no function is answered where the node's parameters are read. */
	return function_find(k->func, &f) ? CUDA_SUCCESS : within(f->context, entered);
}

CUresult node_without(bool entered, CUresult status)
{
	struct context *popped;

	if (entered)
		thread_pop(&popped);
	return status;
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
	bool entered;
	CUresult status = node_within(ctx, &entered);

	if (status)
		return status;
	status = node_add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &p,
		node_params_copy(&p, copyParams, graph ? &graph->parts : NULL));
	return node_without(entered, status);
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

/* The app's memory again, in place of what stands in for it. */
static void copy_names_app(CUDA_MEMCPY3D *to, const struct part *part)
{
	const struct part_copy *copy = &part->copy;

	if (part->kind == PART_WITHIN) {
		to->dstMemoryType = CU_MEMORYTYPE_HOST;
		to->dstDevice = 0;
		to->dstHost = (void *)(uintptr_t)copy->device;
		to->dstPitch = copy->device_pitch;
		to->dstHeight = copy->device_slice / copy->device_pitch;
		to->WidthInBytes = copy->width;
		to->Height = copy->height;
		to->Depth = copy->depth;
	}
	if (part->kind != PART_OUT) {
		to->srcMemoryType = CU_MEMORYTYPE_HOST;
		to->srcDevice = 0;
		to->srcHost = (const void *)(uintptr_t)copy->host;
		to->srcPitch = copy->host_pitch;
		to->srcHeight = copy->host_slice / copy->host_pitch;
	} else {
		to->dstMemoryType = CU_MEMORYTYPE_HOST;
		to->dstDevice = 0;
		to->dstHost = (void *)(uintptr_t)copy->host;
		to->dstPitch = copy->host_pitch;
		to->dstHeight = copy->host_slice / copy->host_pitch;
	}
}

/* Nothing is said of rows where there is but one, packed. */
static void copy_names_row(
	const CUDA_MEMCPY3D *copy, CUmemorytype type, size_t *pitch, size_t *rows)
{
	if (type != CU_MEMORYTYPE_ARRAY && copy->Height == 1 && copy->Depth == 1 &&
		*pitch == copy->WidthInBytes)
		*pitch = *rows = 0;
}

/* One that was captured, or is in a graph inside of a node. */
CUresult node_copy_ask(const struct graph_node *node, CUDA_MEMCPY3D *to)
{
	const struct part *part;
	struct graph_copy c;
	size_t n;
	CUresult status = node_get(node, CU_GRAPH_NODE_TYPE_MEMCPY, &c, sizeof(c), &n);

	if (status)
		return status;
	part = copy_part(&node->graph->parts, &c);
	*to = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
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
		copy_names_array(&to->srcMemoryType, &to->srcArray, &to->srcXInBytes, &to->srcY,
			&to->srcZ, &to->srcDevice, c.src_array, c.src, c.src_pitch,
			c.src_slice);
	if (c.dst_array)
		copy_names_array(&to->dstMemoryType, &to->dstArray, &to->dstXInBytes, &to->dstY,
			&to->dstZ, &to->dstDevice, c.dst_array, c.dst, c.dst_pitch,
			c.dst_slice);
	if (part)
		copy_names_app(to, part);
	copy_names_row(to, to->srcMemoryType, &to->srcPitch, &to->srcHeight);
	copy_names_row(to, to->dstMemoryType, &to->dstPitch, &to->dstHeight);
	return CUDA_SUCCESS;
}

CUresult hand_cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams)
{
	const struct graph_node *node = graph_node_find(hNode);

	if (!node || !nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	if (!node->copy)
		return node_copy_ask(node, nodeParams);
	*nodeParams = *node->copy;
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
	bool entered;
	CUresult status = node_within(ctx, &entered);

	if (status)
		return status;
	exec_copy_begin(&p, hGraphExec, hNode, copyParams);
	status = node_set(hNode, &hGraphExec, &p, node_params_copy(&p, copyParams, NULL));
	return node_without(entered, status);
}
