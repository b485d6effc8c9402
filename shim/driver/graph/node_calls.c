/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls that add, change and read nodes, by type: each packs its parameters and hands them
 * to graph_node.c.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/driver/forms.h"
#include "shim/generated/cuda_hand.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/context/context.h"
#include "shim/engine/engine.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/graph/graph_node.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/module/module.h"

/* ---- kernels ---- */

static CUDA_KERNEL_NODE_PARAMS kernel_of(const CUDA_KERNEL_NODE_PARAMS_v1 *old)
{
	return (CUDA_KERNEL_NODE_PARAMS){.func = old->func,
		.gridDimX = old->gridDimX,
		.gridDimY = old->gridDimY,
		.gridDimZ = old->gridDimZ,
		.blockDimX = old->blockDimX,
		.blockDimY = old->blockDimY,
		.blockDimZ = old->blockDimZ,
		.sharedMemBytes = old->sharedMemBytes,
		.kernelParams = old->kernelParams,
		.extra = old->extra};
}

CUresult hand_cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	struct node_params p = {0};
	bool entered;
	CUresult status = node_within_kernel(nodeParams, &entered);

	if (status)
		return status;
	status = node_add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &p,
		node_params_kernel(&p, nodeParams));
	return node_without(entered, status);
}

CUresult hand_cuGraphAddKernelNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	CUDA_KERNEL_NODE_PARAMS kernel;

	if (!nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	kernel = kernel_of(nodeParams);
	return hand_cuGraphAddKernelNode_v2(
		phGraphNode, hGraph, dependencies, numDependencies, &kernel);
}

/* The block of parameters with a pointer to each, kept with the node until it is asked again.
 */
static CUresult kernel_pointers(struct graph_node *node, const struct function *f,
	const unsigned char *block, size_t bytes, void ***pointers)
{
	size_t head = f->layout_count * sizeof(void *);
	unsigned char *storage = malloc(head + bytes + 1);
	void **list = (void **)(void *)storage;

	if (!storage)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(storage + head, block, bytes);
	for (uint32_t i = 0; i < f->layout_count; i++) {
		size_t end = (size_t)f->layout[i].offset + f->layout[i].size;

		list[i] = end <= bytes ? storage + head + f->layout[i].offset : NULL;
	}
	free(node->storage);
	node->storage = storage;
	*pointers = list;
	return CUDA_SUCCESS;
}

/* Without F `func` is NULL. */
static CUDA_KERNEL_NODE_PARAMS kernel_said(
	const struct graph_kernel *k, const struct function *f)
{
	return (CUDA_KERNEL_NODE_PARAMS){
		.func = (CUfunction)(uintptr_t)(f ? f->handle : 0),
		.gridDimX = k->grid[0],
		.gridDimY = k->grid[1],
		.gridDimZ = k->grid[2],
		.blockDimX = k->block[0],
		.blockDimY = k->block[1],
		.blockDimZ = k->block[2],
		.sharedMemBytes = k->shared,
		.kern = f ? library_kernel(f) : NULL,
		.ctx = f ? (CUcontext)(uintptr_t)module_context(f->module)->handle : NULL,
	};
}

bool node_kernel_gone(const struct graph_node *node)
{
	return node->kernel.function && !shim_object_of(node->kernel.function, KIND_CUfunction);
}

/* What a kernel node holds: the struct, and the parameter block behind it (malloc'ed). */
static CUresult kernel_read(
	const struct graph_node *node, struct graph_kernel *k, unsigned char **bytes, size_t *n)
{
	CUresult status = node_get_all(node, CU_GRAPH_NODE_TYPE_KERNEL, bytes, n);

	if (status)
		return status;
	if (*n >= sizeof(*k)) {
		memcpy(k, *bytes, sizeof(*k));
		return CUDA_SUCCESS;
	}
	free(*bytes);
	return CUDA_ERROR_UNKNOWN;
}

/* A library's own kernel gets a function here when it is asked for, and its parameters come
 * once it has one. */
static CUresult kernel_read_named(
	const struct graph_node *node, struct graph_kernel *k, unsigned char **bytes, size_t *n)
{
	CUcontext handle =
		(CUcontext)(uintptr_t)pointer_context_by_number(node->graph->context);
	struct context *context = handle ? context_of(handle) : NULL;
	CUresult status = kernel_read(node, k, bytes, n);
	struct function *f;

	if (status || k->function || !context ||
		module_node_function(context, node->graph->handle, node->number, &f))
		return status;
	free(*bytes);
	return kernel_read(node, k, bytes, n);
}

CUresult hand_cuGraphKernelNodeGetParams_v2(
	CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	struct graph_node *node = graph_node_find(hNode);
	unsigned char *bytes;
	struct graph_kernel k;
	struct function *f;
	size_t n;
	CUresult status;

	if (!node || !nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	/* NVIDIA's driver looks into a module that is gone. */
	if (node_kernel_gone(node)) {
		*nodeParams = kernel_said(&node->kernel, NULL);
		return CUDA_SUCCESS;
	}
	status = kernel_read_named(node, &k, &bytes, &n);
	if (status)
		return status;
	f = shim_object_of(k.function, KIND_CUfunction);
	*nodeParams = kernel_said(&k, f);
	if (f && f->layout_count)
		status = kernel_pointers(
			node, f, bytes + sizeof(k), n - sizeof(k), &nodeParams->kernelParams);
	free(bytes);
	return status;
}

CUresult hand_cuGraphKernelNodeGetParams(
	CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	CUDA_KERNEL_NODE_PARAMS k;
	CUresult status;

	if (!nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	status = hand_cuGraphKernelNodeGetParams_v2(hNode, &k);
	if (!status)
		*nodeParams = (CUDA_KERNEL_NODE_PARAMS_v1){.func = k.func,
			.gridDimX = k.gridDimX,
			.gridDimY = k.gridDimY,
			.gridDimZ = k.gridDimZ,
			.blockDimX = k.blockDimX,
			.blockDimY = k.blockDimY,
			.blockDimZ = k.blockDimZ,
			.sharedMemBytes = k.sharedMemBytes,
			.kernelParams = k.kernelParams};
	return status;
}

CUresult hand_cuGraphKernelNodeSetParams_v2(
	CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	struct node_params p = {0};
	bool entered;
	CUresult status = node_within_kernel(nodeParams, &entered);

	if (status)
		return status;
	status = node_set(hNode, NULL, &p, node_params_kernel(&p, nodeParams));
	return node_without(entered, status);
}

CUresult hand_cuGraphKernelNodeSetParams(
	CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	CUDA_KERNEL_NODE_PARAMS kernel;

	if (!nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	kernel = kernel_of(nodeParams);
	return hand_cuGraphKernelNodeSetParams_v2(hNode, &kernel);
}

CUresult hand_cuGraphExecKernelNodeSetParams_v2(
	CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	struct node_params p = {0};
	bool entered;
	CUresult status = node_within_kernel(nodeParams, &entered);

	if (status)
		return status;
	status = node_set(hNode, &hGraphExec, &p, node_params_kernel(&p, nodeParams));
	return node_without(entered, status);
}

CUresult hand_cuGraphExecKernelNodeSetParams(
	CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	CUDA_KERNEL_NODE_PARAMS kernel;

	if (!nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	kernel = kernel_of(nodeParams);
	return hand_cuGraphExecKernelNodeSetParams_v2(hGraphExec, hNode, &kernel);
}

/* ---- fills ---- */

CUresult hand_cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
	struct node_params p = {0};
	bool entered;
	CUresult status = node_within(ctx, &entered);

	if (status)
		return status;
	status = node_add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &p,
		node_params_fill(&p, memsetParams));
	return node_without(entered, status);
}

CUresult hand_cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
	struct graph_node *node = graph_node_find(hNode);
	struct graph_fill f;
	size_t n;
	CUresult status;

	if (!node || !nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	status = node_get(node, CU_GRAPH_NODE_TYPE_MEMSET, &f, sizeof(f), &n);
	if (!status)
		*nodeParams = (CUDA_MEMSET_NODE_PARAMS){.dst = f.dst,
			.pitch = f.pitch,
			.value = f.value,
			.elementSize = f.element,
			.width = f.width,
			.height = f.height};
	return status;
}

CUresult hand_cuGraphMemsetNodeSetParams(
	CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
	/* That there is no such node is told even before cuInit. */
	CUresult status = graph_node_find(hNode) ? shim_ready() : CUDA_ERROR_INVALID_VALUE;
	struct node_params p = {0};

	return status ? status : node_set(hNode, NULL, &p, node_params_fill(&p, nodeParams));
}

CUresult hand_cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
	const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
	struct node_params p = {0};
	bool entered;
	CUresult status = node_within(ctx, &entered);

	if (status)
		return status;
	status = node_set(hNode, &hGraphExec, &p, node_params_fill(&p, memsetParams));
	return node_without(entered, status);
}

/* ---- host functions ---- */

CUresult hand_cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	struct node_params p = {0};

	return node_add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &p,
		node_params_host(&p, nodeParams));
}

CUresult hand_cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams)
{
	struct graph_node *node = graph_node_find(hNode);
	struct graph_number ticket;
	size_t n;
	CUresult status;

	if (!node || !nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	status = node_get(node, CU_GRAPH_NODE_TYPE_HOST, &ticket, sizeof(ticket), &n);
	if (status)
		return status;
	return host_function_node_read(ticket.number, &nodeParams->fn, &nodeParams->userData)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_NOT_SUPPORTED; /* a library's own, on the agent */
}

CUresult hand_cuGraphHostNodeSetParams(
	CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	struct node_params p = {0};

	return node_set(hNode, NULL, &p, node_params_host(&p, nodeParams));
}

CUresult hand_cuGraphExecHostNodeSetParams(
	CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	struct node_params p = {0};

	return node_set(hNode, &hGraphExec, &p, node_params_host(&p, nodeParams));
}

/* ---- empty nodes ---- */

CUresult hand_cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies)
{
	struct node_params p = {0};

	return node_add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &p,
		node_params_empty(&p));
}

/* ---- events: that there is none is told even before cuInit ---- */

static CUresult event_add(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t n, uint32_t type, CUevent event)
{
	CUresult status = event ? shim_ready() : CUDA_ERROR_INVALID_VALUE;
	struct node_params p = {0};

	return status ? status
		      : node_add(phGraphNode, hGraph, dependencies, NULL, n, &p,
				node_params_event(&p, type, event));
}

CUresult hand_cuGraphAddEventRecordNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies, CUevent event)
{
	return event_add(phGraphNode, hGraph, dependencies, numDependencies,
		CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult hand_cuGraphAddEventWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies, CUevent event)
{
	return event_add(phGraphNode, hGraph, dependencies, numDependencies,
		CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

CUresult graph_event_get(CUgraphNode hNode, uint32_t type, CUevent *event)
{
	struct graph_node *node = graph_node_find(hNode);
	struct graph_number number;
	size_t n;
	CUresult status;

	if (!node || !event)
		return CUDA_ERROR_INVALID_VALUE;
	status = node_get(node, type, &number, sizeof(number), &n);
	if (!status)
		*event = (CUevent)(uintptr_t)number.number;
	return status;
}

CUresult graph_event_set(
	CUgraphNode hNode, const CUgraphExec *exec, uint32_t type, CUevent event)
{
	CUresult status = event ? shim_ready() : CUDA_ERROR_INVALID_VALUE;
	struct node_params p = {0};

	return status ? status : node_set(hNode, exec, &p, node_params_event(&p, type, event));
}
