/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes that wait for and write values in memory, and attributes of kernel nodes.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/generated/cuda_hand.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "protocol/wire/launch.h"
#include "shim/driver/context/context.h"
#include "shim/driver/graph/graph_node.h"
#include "shim/engine/engine.h"
#include "shim/engine/thread.h"

/* ---- values in memory ---- */

/* The call is made in the context that it names, of the same device; which was current before.
 */
static struct context *batch_enter(const CUDA_BATCH_MEM_OP_NODE_PARAMS *batch)
{
	struct context *context = batch && batch->ctx ? context_of(batch->ctx) : NULL;
	struct context *before = thread_self.current;

	if (context && atomic_load(&context->live) &&
		(!before || before->device == context->device))
		thread_set(context);
	return before;
}

CUresult hand_cuGraphAddBatchMemOpNode(CUgraphNode *phGraphNode, CUgraph hGraph,
	const CUgraphNode *dependencies, size_t numDependencies,
	const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
	struct context *before = batch_enter(nodeParams);
	struct node_params p = {0};
	CUresult status;

	status = node_add(phGraphNode, hGraph, dependencies, NULL, numDependencies, &p,
		node_params_batch(&p, nodeParams));
	thread_set(before);
	return status;
}

/* The array stays with the node until it is asked again, as CUDA's does until it changes. */
CUresult hand_cuGraphBatchMemOpNodeGetParams(
	CUgraphNode hNode, CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams_out)
{
	struct graph_node *node = graph_node_find(hNode);
	struct graph_batch batch;
	unsigned char *bytes;
	size_t n;
	CUresult status;

	if (!node || !nodeParams_out)
		return CUDA_ERROR_INVALID_VALUE;
	if (node->batch) {
		*nodeParams_out = *node->batch;
		return CUDA_SUCCESS;
	}
	status = node_get_all(node, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, &bytes, &n);
	if (status)
		return status;
	if (n < sizeof(batch)) {
		free(bytes);
		return CUDA_ERROR_UNKNOWN;
	}
	memcpy(&batch, bytes, sizeof(batch));
	memmove(bytes, bytes + sizeof(batch), n - sizeof(batch));
	free(node->storage);
	node->storage = bytes;
	*nodeParams_out = (CUDA_BATCH_MEM_OP_NODE_PARAMS){.count = batch.count,
		.paramArray = (CUstreamBatchMemOpParams *)(void *)bytes,
		.flags = batch.flags};
	return cuCtxGetCurrent(&nodeParams_out->ctx);
}

CUresult hand_cuGraphBatchMemOpNodeSetParams(
	CUgraphNode hNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
	struct context *before = batch_enter(nodeParams);
	struct node_params p = {0};
	CUresult status = node_set(hNode, NULL, &p, node_params_batch(&p, nodeParams));

	thread_set(before);
	return status;
}

CUresult hand_cuGraphExecBatchMemOpNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
	const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
	/* How many there are, and which, may not change: the driver's to say. */
	struct node_params p = {.awaited = true};

	return node_set(hNode, &hGraphExec, &p, node_params_batch(&p, nodeParams));
}

/* ---- attributes of kernel nodes ---- */

/* The node if it is a kernel's; as natively none whose module was unloaded. */
static struct graph_node *kernel_node(CUgraphNode hNode)
{
	struct graph_node *node = graph_node_find(hNode);
	uint32_t type;

	if (!node || graph_node_type(node->graph, node->number, &type) ||
		type != CU_GRAPH_NODE_TYPE_KERNEL || node_kernel_gone(node))
		return NULL;
	return node;
}

/* Awaited: whether the device and the kernel have it is the driver's to say. */
static CUresult attribute_wait(
	const struct graph_node *node, uint32_t what, const void *bytes, size_t n)
{
	struct wire_vcudaGraphSet *body;
	struct shim_call call;

	body = shim_begin(&call, OP_vcudaGraphSet, sizeof(*body));
	body->graph = node->graph->handle;
	body->node = node->number;
	body->type = what;
	body->bytes = (uint32_t)n;
	shim_put(&call, &body->params, bytes, n);
	shim_wait(&call, 0);
	return shim_end(&call);
}

CUresult hand_cuGraphKernelNodeSetAttribute(
	CUgraphNode hNode, CUkernelNodeAttrID attr, const CUkernelNodeAttrValue *value)
{
	struct graph_node *node = kernel_node(hNode);
	struct graph_attribute attribute = {.id = (uint32_t)attr};

	if (!node || !value)
		return CUDA_ERROR_INVALID_VALUE;
	if (attr == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
		return value->deviceUpdatableKernelNode.deviceUpdatable
			       ? CUDA_ERROR_NOT_SUPPORTED
			       : CUDA_SUCCESS;
	if (!launch_attribute_travels(attr))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(attribute.value, value, sizeof(attribute.value));
	return attribute_wait(node, GRAPH_SET_ATTRIBUTE, &attribute, sizeof(attribute));
}

CUresult hand_cuGraphKernelNodeGetAttribute(
	CUgraphNode hNode, CUkernelNodeAttrID attr, CUkernelNodeAttrValue *value_out)
{
	const struct wire_vcudaGraphAttribute_reply *reply;
	struct graph_node *node = kernel_node(hNode);
	struct wire_vcudaGraphAttribute *body;
	struct shim_call call;
	const void *value;
	size_t n;

	if (!node || !value_out)
		return CUDA_ERROR_INVALID_VALUE;
	if (attr == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE) {
		value_out->deviceUpdatableKernelNode.deviceUpdatable = 0;
		value_out->deviceUpdatableKernelNode.devNode = NULL; /* none can be made one */
		return CUDA_SUCCESS;
	}
	if (!launch_attribute_travels(attr))
		return CUDA_ERROR_INVALID_VALUE;
	body = shim_begin(&call, OP_vcudaGraphAttribute, sizeof(*body));
	body->graph = node->graph->handle;
	body->node = node->number;
	body->attribute = (uint32_t)attr;
	reply = shim_wait(&call, sizeof(*reply));
	if (reply) {
		value = shim_run(&call, &reply->value, &n);
		if (value && n == sizeof(*value_out))
			memcpy(value_out, value, launch_attribute_bytes(attr));
		else
			call.status = CUDA_ERROR_UNKNOWN;
	}
	return shim_end(&call);
}

CUresult hand_cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src)
{
	struct graph_node *to = kernel_node(dst), *from = kernel_node(src);
	struct graph_from bytes;

	if (!to || !from)
		return CUDA_ERROR_INVALID_VALUE;
	bytes = (struct graph_from){.graph = from->graph->handle, .node = from->number};
	return attribute_wait(to, GRAPH_COPY_ATTRIBUTES, &bytes, sizeof(bytes));
}
