/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls that take a node of whatever type, and nodes that are switched off.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/driver/forms.h"
#include "shim/generated/cuda_hand.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/engine/engine.h"
#include "shim/driver/graph/graph_node.h"

/* ---- whatever it is ---- */

/* PARTS: as for node_params_copy. */
static CUresult any_params(
	struct node_params *p, const CUgraphNodeParams *any, const struct parts *parts)
{
	CUDA_MEMSET_NODE_PARAMS fill;
	CUDA_HOST_NODE_PARAMS host;

	switch (any->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		/* Versions 2 and 3 of the struct are the same. */
		return node_params_kernel(p, (const void *)&any->kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		if (any->memcpy.flags)
			return CUDA_ERROR_NOT_SUPPORTED;
		return node_params_copy(p, &any->memcpy.copyParams, parts);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		fill = (CUDA_MEMSET_NODE_PARAMS){.dst = any->memset.dst,
			.pitch = any->memset.pitch,
			.value = any->memset.value,
			.elementSize = any->memset.elementSize,
			.width = any->memset.width,
			.height = any->memset.height};
		return node_params_fill(p, &fill);
	case CU_GRAPH_NODE_TYPE_HOST:
		host = (CUDA_HOST_NODE_PARAMS){
			.fn = any->host.fn, .userData = any->host.userData};
		return node_params_host(p, &host);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return node_params_child(p, any->graph.graph, any->graph.ownership);
	case CU_GRAPH_NODE_TYPE_EMPTY: return node_params_empty(p);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		/* Versions 1 and 2 of the struct are the same. */
		return node_params_batch(p, (const void *)&any->memOp);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return node_params_event(
			p, CU_GRAPH_NODE_TYPE_WAIT_EVENT, any->eventWait.event);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return node_params_event(
			p, CU_GRAPH_NODE_TYPE_EVENT_RECORD, any->eventRecord.event);
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

/* Which the description names. */
static CUcontext any_context(const CUgraphNodeParams *any)
{
	switch (any->type) {
	case CU_GRAPH_NODE_TYPE_MEMCPY: return any->memcpy.copyCtx;
	case CU_GRAPH_NODE_TYPE_MEMSET: return any->memset.ctx;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return any->memOp.ctx;
	default: return NULL;
	}
}

static CUresult any_within(const CUgraphNodeParams *any, bool *entered)
{
	/* Versions 2 and 3 of the struct are the same. */
	return any->type == CU_GRAPH_NODE_TYPE_KERNEL
		       ? node_within_kernel((const void *)&any->kernel, entered)
		       : node_within(any_context(any), entered);
}

CUresult hand_cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
	size_t numDependencies, CUgraphNodeParams *nodeParams)
{
	struct graph *graph = graph_find(hGraph);
	struct node_params p = {0};
	bool entered;
	CUresult status;

	if (!nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	if (nodeParams->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		return node_add_conditional(phGraphNode, hGraph, dependencies, dependencyData,
			numDependencies, &nodeParams->conditional);
	/* Versions 1 and 2 of the struct are the same; it learns the address. */
	if (nodeParams->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		return node_add_alloc(phGraphNode, hGraph, dependencies, dependencyData,
			numDependencies, (void *)&nodeParams->alloc);
	if (nodeParams->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
		return node_add(phGraphNode, hGraph, dependencies, dependencyData,
			numDependencies, &p,
			node_params_free_memory(&p, graph, nodeParams->free.dptr));
	status = any_within(nodeParams, &entered);
	if (status)
		return status;
	status = node_add(phGraphNode, hGraph, dependencies, dependencyData, numDependencies,
		&p, any_params(&p, nodeParams, graph ? &graph->parts : NULL));
	return node_without(entered, status);
}

static CUresult any_get_fill(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS_v2 *to)
{
	CUDA_MEMSET_NODE_PARAMS fill;
	CUresult status = hand_cuGraphMemsetNodeGetParams(hNode, &fill);

	if (status)
		return status;
	*to = (CUDA_MEMSET_NODE_PARAMS_v2){.dst = fill.dst,
		.pitch = fill.pitch,
		.value = fill.value,
		.elementSize = fill.elementSize,
		.width = fill.width,
		.height = fill.height};
	return cuCtxGetCurrent(&to->ctx);
}

static CUresult any_get_copy(CUgraphNode hNode, CUDA_MEMCPY_NODE_PARAMS *to)
{
	CUresult status = hand_cuGraphMemcpyNodeGetParams(hNode, &to->copyParams);

	return status ? status : cuCtxGetCurrent(&to->copyCtx);
}

static CUresult any_get_host(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS_v2 *to)
{
	CUDA_HOST_NODE_PARAMS host;
	CUresult status = hand_cuGraphHostNodeGetParams(hNode, &host);

	to->fn = status ? NULL : host.fn;
	to->userData = status ? NULL : host.userData;
	return status;
}

CUresult hand_cuGraphNodeGetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
	CUgraphNodeType type;
	CUresult status;

	if (!nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	status = hand_cuGraphNodeGetType(hNode, &type);
	if (status)
		return status;
	memset(nodeParams, 0, sizeof(*nodeParams));
	nodeParams->type = type;
	/* Where the structs have two versions these are the same. */
	switch ((int)type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return hand_cuGraphKernelNodeGetParams_v2(hNode, (void *)&nodeParams->kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY: return any_get_copy(hNode, &nodeParams->memcpy);
	case CU_GRAPH_NODE_TYPE_MEMSET: return any_get_fill(hNode, &nodeParams->memset);
	case CU_GRAPH_NODE_TYPE_HOST: return any_get_host(hNode, &nodeParams->host);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return hand_cuGraphChildGraphNodeGetGraph(hNode, &nodeParams->graph.graph);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return graph_event_get(hNode, type, &nodeParams->eventWait.event);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return graph_event_get(hNode, type, &nodeParams->eventRecord.event);
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		return hand_cuGraphMemAllocNodeGetParams(hNode, (void *)&nodeParams->alloc);
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return hand_cuGraphMemFreeNodeGetParams(hNode, &nodeParams->free.dptr);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return hand_cuGraphBatchMemOpNodeGetParams(hNode, (void *)&nodeParams->memOp);
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return node_get_conditional(graph_node_find(hNode), &nodeParams->conditional);
	default: return CUDA_SUCCESS;
	}
}

/* Nodes that stay as they were added. */
static bool any_fixed(CUgraphNodeType type)
{
	return type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE ||
	       type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
}

CUresult hand_cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
	struct node_params p = {0};
	CUgraphNodeType type;
	CUresult status;
	bool entered;

	if (!nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	if (any_fixed(nodeParams->type)) {
		status = hand_cuGraphNodeGetType(hNode, &type);
		if (status)
			return status;
		return type == nodeParams->type ? CUDA_ERROR_NOT_SUPPORTED
						: CUDA_ERROR_INVALID_VALUE;
	}
	if (nodeParams->type == CU_GRAPH_NODE_TYPE_GRAPH)
		return node_set_child(hNode, &nodeParams->graph);
	status = any_within(nodeParams, &entered);
	if (status)
		return status;
	status = node_set(hNode, NULL, &p, any_params(&p, nodeParams, NULL));
	return node_without(entered, status);
}

/* A conditional node stays as it is. */
static CUresult exec_conditional(CUgraphExec exec, CUgraphNode hNode)
{
	struct graph_node *node = graph_node_find(hNode);
	uint32_t type;

	return graph_exec_find(exec) && node &&
			       !graph_node_type(node->graph, node->number, &type) &&
			       type == CU_GRAPH_NODE_TYPE_CONDITIONAL
		       ? CUDA_ERROR_NOT_SUPPORTED
		       : CUDA_ERROR_INVALID_VALUE;
}

CUresult hand_cuGraphExecNodeSetParams(
	CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
	struct node_params p = {0};
	CUresult status;
	bool entered;

	if (!nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	if (nodeParams->type == CU_GRAPH_NODE_TYPE_GRAPH)
		return hand_cuGraphExecChildGraphNodeSetParams(
			hGraphExec, hNode, nodeParams->graph.graph);
	if (nodeParams->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		return exec_conditional(hGraphExec, hNode);
	status = any_within(nodeParams, &entered);
	if (status)
		return status;
	if (nodeParams->type == CU_GRAPH_NODE_TYPE_MEMCPY)
		exec_copy_begin(&p, hGraphExec, hNode, &nodeParams->memcpy.copyParams);
	status = node_set(hNode, &hGraphExec, &p, any_params(&p, nodeParams, NULL));
	return node_without(entered, status);
}

/* ---- nodes that are switched off ---- */

static struct graph_off *off_find(struct graph_exec *exec, const struct graph_node *node)
{
	for (size_t i = 0; i < exec->off_count; i++)
		if (exec->off[i].graph == node->graph->handle &&
			exec->off[i].node == node->number)
			return &exec->off[i];
	return NULL;
}

static bool off_set(struct graph_exec *exec, const struct graph_node *node, bool off)
{
	struct graph_off *found = off_find(exec, node), *list;

	if (!off == !found)
		return true;
	if (found) {
		*found = exec->off[--exec->off_count];
		return true;
	}
	list = realloc(exec->off, (exec->off_count + 1) * sizeof(*list));
	if (!list)
		return false;
	exec->off = list;
	list[exec->off_count++] = (struct graph_off){node->graph->handle, node->number};
	return true;
}

/* Only kernels, copies and fills can be switched. */
static CUresult switch_check(const struct graph_exec *exec, const struct graph_node *node)
{
	uint32_t type;
	CUresult status;

	if (!exec || !node || !exec_has_node(exec, node))
		return CUDA_ERROR_INVALID_VALUE;
	status = graph_node_type(node->graph, node->number, &type);
	if (status)
		return status;
	return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY ||
			       type == CU_GRAPH_NODE_TYPE_MEMSET
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

CUresult hand_cuGraphNodeSetEnabled(
	CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled)
{
	struct graph_exec *exec = graph_exec_find(hGraphExec);
	struct graph_node *node = graph_node_find(hNode);
	struct graph_enabled enabled = {.enabled = isEnabled != 0};
	struct wire_vcudaGraphSet *body;
	struct part_place *place;
	struct shim_call call;
	CUresult status;

	status = switch_check(exec, node);
	if (status)
		return status;
	place = node_place(node, &exec->parts);
	if (place)
		place->off = !isEnabled;
	if (!off_set(exec, node, !isEnabled))
		return CUDA_ERROR_OUT_OF_MEMORY;
	body = shim_begin(&call, OP_vcudaGraphSet, sizeof(*body));
	body->graph = node->graph->handle;
	body->node = node->number;
	body->exec = exec->handle;
	body->type = GRAPH_SET_ENABLED;
	body->bytes = sizeof(enabled);
	shim_put(&call, &body->params, &enabled, sizeof(enabled));
	return shim_post(&call);
}

CUresult hand_cuGraphNodeGetEnabled(
	CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int *isEnabled)
{
	struct graph_exec *exec = graph_exec_find(hGraphExec);
	struct graph_node *node = graph_node_find(hNode);
	CUresult status;

	status = isEnabled ? switch_check(exec, node) : CUDA_ERROR_INVALID_VALUE;
	if (!status)
		*isEnabled = !off_find(exec, node);
	return status;
}
