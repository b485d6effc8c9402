/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes that a program adds by itself, and their parameters.
 */
#include <stdlib.h>

#include "softgpu/driver/graph/graph.h"

static CUresult set_of(CUgraph graph, const CUgraphNode *nodes, size_t n, struct node_set *set)
{
	if (!object_is(graph, OBJECT_GRAPH) || (n && !nodes))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n; i++) {
		if (!object_is(nodes[i], OBJECT_NODE) || nodes[i]->graph != graph)
			return CUDA_ERROR_INVALID_VALUE;
		for (size_t d = 0; d < i; d++)
			if (nodes[d] == nodes[i])
				return CUDA_ERROR_INVALID_VALUE;
		if (!node_set_add(set, nodes[i]))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

/* Takes OP in any case. */
static CUresult node_add(CUgraphNode *out, CUgraph graph, const CUgraphNode *after, size_t n,
	CUgraphNodeType type, struct op *op, CUevent event, CUgraph child)
{
	struct node_set set = {0};
	struct CUgraphNode_st *node = NULL;
	CUresult ret = out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&queue_lock);
	if (!ret)
		ret = set_of(graph, after, n, &set);
	if (!ret && event && !object_is(event, OBJECT_EVENT))
		ret = CUDA_ERROR_INVALID_VALUE;
	if (!ret && type == CU_GRAPH_NODE_TYPE_GRAPH &&
		(!object_is(child, OBJECT_GRAPH) || child == graph))
		ret = CUDA_ERROR_INVALID_VALUE;
	if (!ret) {
		node = graph_add(graph, type, &set, op, event);
		if (!node)
			ret = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (node && child) {
		node->child = graph_clone(child);
		if (node->child) {
			node->child->parent = node;
		} else {
			graph_remove(node);
			node = NULL;
			op = NULL;
			ret = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	if (!node && op)
		op->drop(op);
	node_set_free(&set);
	pthread_mutex_unlock(&queue_lock);
	if (!ret)
		*out = node;
	return ret;
}

static CUresult node_get(CUgraphNode node, CUgraphNodeType type, void *params)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&queue_lock);
	if (params && object_is(node, OBJECT_NODE) && node->type == type) {
		ret = CUDA_SUCCESS;
		switch ((int)type) {
		case CU_GRAPH_NODE_TYPE_KERNEL: launch_op_read(node->op, params); break;
		case CU_GRAPH_NODE_TYPE_MEMCPY: copy_op_read(node->op, params); break;
		case CU_GRAPH_NODE_TYPE_MEMSET: fill_op_read(node->op, params); break;
		case CU_GRAPH_NODE_TYPE_HOST: host_op_read(node->op, params); break;
		case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: memop_batch_read(node->op, params); break;
		default: *(CUevent *)params = node->event; break;
		}
	}
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

/* Takes OP in any case. */
static CUresult node_set(CUgraphNode node, struct op *op)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&queue_lock);
	if (object_is(node, OBJECT_NODE) && node->op && node->type == op->node) {
		struct op *old = node->op;

		if (node->type == CU_GRAPH_NODE_TYPE_KERNEL)
			launch_op_keep_attributes(op, old);
		node->op = op;
		op = old;
		ret = CUDA_SUCCESS;
	}
	op->drop(op);
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	struct op *op;
	CUresult ret = launch_op_new(nodeParams, &op);

	return ret ? ret
		   : node_add(phGraphNode, hGraph, dependencies, numDependencies,
			     CU_GRAPH_NODE_TYPE_KERNEL, op, NULL, NULL);
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	return node_get(hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams);
}

CUresult cuGraphKernelNodeSetParams_v2(
	CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	struct op *op;
	CUresult ret = launch_op_new(nodeParams, &op);

	return ret ? ret : node_set(hNode, op);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
	struct op *op;
	CUresult ret = copy_op_new(copyParams, &op);

	(void)ctx;
	return ret ? ret
		   : node_add(phGraphNode, hGraph, dependencies, numDependencies,
			     CU_GRAPH_NODE_TYPE_MEMCPY, op, NULL, NULL);
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams)
{
	return node_get(hNode, CU_GRAPH_NODE_TYPE_MEMCPY, nodeParams);
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams)
{
	struct op *op;
	CUresult ret = copy_op_new(nodeParams, &op);

	return ret ? ret : node_set(hNode, op);
}

CUresult cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
	struct op *op;
	CUresult ret = fill_op_new(memsetParams, &op);

	(void)ctx;
	return ret ? ret
		   : node_add(phGraphNode, hGraph, dependencies, numDependencies,
			     CU_GRAPH_NODE_TYPE_MEMSET, op, NULL, NULL);
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
	return node_get(hNode, CU_GRAPH_NODE_TYPE_MEMSET, nodeParams);
}

CUresult cuGraphMemsetNodeSetParams(
	CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
	struct op *op;
	CUresult ret = fill_op_new(nodeParams, &op);

	return ret ? ret : node_set(hNode, op);
}

CUresult cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	struct op *op;
	CUresult ret = host_op_new(nodeParams, &op);

	return ret ? ret
		   : node_add(phGraphNode, hGraph, dependencies, numDependencies,
			     CU_GRAPH_NODE_TYPE_HOST, op, NULL, NULL);
}

CUresult cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams)
{
	return node_get(hNode, CU_GRAPH_NODE_TYPE_HOST, nodeParams);
}

CUresult cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	struct op *op;
	CUresult ret = host_op_new(nodeParams, &op);

	return ret ? ret : node_set(hNode, op);
}

CUresult cuGraphAddBatchMemOpNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
	struct op *op;
	CUresult ret = memop_batch_new(nodeParams, true, &op);

	return ret ? ret
		   : node_add(phGraphNode, hGraph, dependencies, numDependencies,
			     CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, op, NULL, NULL);
}

CUresult cuGraphBatchMemOpNodeGetParams(
	CUgraphNode hNode, CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams_out)
{
	return node_get(hNode, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, nodeParams_out);
}

CUresult cuGraphBatchMemOpNodeSetParams(
	CUgraphNode hNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
	struct op *op;
	CUresult ret = memop_batch_new(nodeParams, true, &op);

	return ret ? ret : node_set(hNode, op);
}

CUresult cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies)
{
	return node_add(phGraphNode, hGraph, dependencies, numDependencies,
		CU_GRAPH_NODE_TYPE_EMPTY, NULL, NULL, NULL);
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies, CUgraph childGraph)
{
	if (!childGraph)
		return CUDA_ERROR_INVALID_VALUE;
	return node_add(phGraphNode, hGraph, dependencies, numDependencies,
		CU_GRAPH_NODE_TYPE_GRAPH, NULL, NULL, childGraph);
}

/* The bodies belong to the node, and are empty at first. */
static CUresult add_bodies(struct CUgraphNode_st *node, const CUDA_CONDITIONAL_NODE_PARAMS *p)
{
	node->branch_type = p->type;
	node->bodies = calloc(p->size, sizeof(struct CUgraph_st *));
	if (!node->bodies)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned i = 0; i < p->size; i++) {
		node->bodies[i] = soft_graph_new();
		if (!node->bodies[i])
			return CUDA_ERROR_OUT_OF_MEMORY;
		node->bodies[i]->parent = node;
		node->body_count++;
	}
	return CUDA_SUCCESS;
}

static bool conditional_valid(const CUDA_CONDITIONAL_NODE_PARAMS *p)
{
	switch ((int)p->type) {
	case CU_GRAPH_COND_TYPE_IF: return p->size == 1 || p->size == 2;
	case CU_GRAPH_COND_TYPE_WHILE: return p->size == 1;
	case CU_GRAPH_COND_TYPE_SWITCH: return p->size > 0;
	default: return false;
	}
}

static CUresult add_conditional(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
	size_t n, CUDA_CONDITIONAL_NODE_PARAMS *p)
{
	struct condition *condition;
	struct CUgraphNode_st *node = NULL;
	struct node_set set = {0};
	CUresult ret;

	if (!out || !conditional_valid(p))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&queue_lock);
	ret = set_of(graph, after, n, &set);
	condition = ret ? NULL : condition_find(graph, p->handle);
	if (!ret && !condition)
		ret = CUDA_ERROR_INVALID_VALUE;
	if (!ret) {
		node = graph_add(graph, CU_GRAPH_NODE_TYPE_CONDITIONAL, &set, NULL, NULL);
		ret = node ? add_bodies(node, p) : CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!ret) {
		node->condition = condition_get(condition);
		p->phGraph_out = node->bodies;
		*out = node;
	} else if (node) {
		graph_remove(node);
	}
	node_set_free(&set);
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

/* The child itself becomes the node's. */
static CUresult add_moved(
	CUgraphNode *out, CUgraph graph, const CUgraphNode *after, size_t n, CUgraph child)
{
	struct CUgraphNode_st *node = NULL;
	struct node_set set = {0};
	CUresult ret;

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&queue_lock);
	ret = set_of(graph, after, n, &set);
	if (!ret && (!object_is(child, OBJECT_GRAPH) || child->parent || child->capture))
		ret = CUDA_ERROR_INVALID_VALUE;
	for (struct CUgraph_st *g = graph; !ret && g; g = g->parent ? g->parent->graph : NULL)
		if (g == child)
			ret = CUDA_ERROR_INVALID_VALUE;
	if (!ret) {
		node = graph_add(graph, CU_GRAPH_NODE_TYPE_GRAPH, &set, NULL, NULL);
		ret = node ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!ret) {
		node->child = child;
		child->parent = node;
		*out = node;
	}
	node_set_free(&set);
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
	size_t numDependencies, CUgraphNodeParams *nodeParams)
{
	for (size_t i = 0; dependencyData && i < numDependencies; i++)
		if (dependencyData[i].from_port || dependencyData[i].to_port ||
			dependencyData[i].type)
			return CUDA_ERROR_NOT_SUPPORTED;
	if (!nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	switch ((int)nodeParams->type) {
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return add_conditional(phGraphNode, hGraph, dependencies, numDependencies,
			&nodeParams->conditional);
	case CU_GRAPH_NODE_TYPE_EMPTY:
		return cuGraphAddEmptyNode(phGraphNode, hGraph, dependencies, numDependencies);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return nodeParams->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE
			       ? add_moved(phGraphNode, hGraph, dependencies, numDependencies,
					 nodeParams->graph.graph)
			       : cuGraphAddChildGraphNode(phGraphNode, hGraph, dependencies,
					 numDependencies, nodeParams->graph.graph);
	/* The others have calls of their own. */
	default: return CUDA_ERROR_NOT_SUPPORTED;
	}
}

CUresult cuGraphAddEventRecordNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies, CUevent event)
{
	if (!event)
		return CUDA_ERROR_INVALID_VALUE;
	return node_add(phGraphNode, hGraph, dependencies, numDependencies,
		CU_GRAPH_NODE_TYPE_EVENT_RECORD, NULL, event, NULL);
}

CUresult cuGraphAddEventWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies, CUevent event)
{
	if (!event)
		return CUDA_ERROR_INVALID_VALUE;
	return node_add(phGraphNode, hGraph, dependencies, numDependencies,
		CU_GRAPH_NODE_TYPE_WAIT_EVENT, NULL, event, NULL);
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
	return node_get(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event_out);
}

CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
	return node_get(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event_out);
}

static CUresult node_set_event(CUgraphNode node, CUgraphNodeType type, CUevent event)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&queue_lock);
	if (object_is(node, OBJECT_NODE) && node->type == type &&
		object_is(event, OBJECT_EVENT)) {
		event_hold(event);
		event_let(node->event);
		node->event = event;
		ret = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event)
{
	return node_set_event(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event)
{
	return node_set_event(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

/* ---- attributes of kernel nodes ---- */

/* With the kernel there still. */
static bool kernel_node(CUgraphNode node)
{
	return object_is(node, OBJECT_NODE) && node->type == CU_GRAPH_NODE_TYPE_KERNEL &&
	       launch_op_loaded(node->op);
}

CUresult cuGraphKernelNodeSetAttribute(
	CUgraphNode hNode, CUlaunchAttributeID attr, const CUlaunchAttributeValue *value)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&queue_lock);
	if (value && kernel_node(hNode))
		ret = launch_op_attribute(hNode->op, attr, value);
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuGraphKernelNodeGetAttribute(
	CUgraphNode hNode, CUlaunchAttributeID attr, CUlaunchAttributeValue *value_out)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&queue_lock);
	if (value_out && kernel_node(hNode))
		ret = launch_op_attribute_read(hNode->op, attr, value_out);
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&queue_lock);
	if (kernel_node(dst) && kernel_node(src)) {
		launch_op_keep_attributes(dst->op, src->op);
		ret = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&queue_lock);
	if (type && object_is(hNode, OBJECT_NODE)) {
		*type = hNode->type;
		ret = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&queue_lock);
	return ret;
}
