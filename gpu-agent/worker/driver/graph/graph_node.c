/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes of graphs: what the app adds and changes.  Parameters come in the
 * structs of protocol/wire/graph.h and are checked as the calls are that they stand for.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/driver/array/array.h"
#include "gpu-agent/worker/driver/graph/conditional.h"
#include "gpu-agent/worker/driver/graph/graph.h"
#include "protocol/wire/launch.h"

/* A node's parameters as the driver wants them. */
struct node_params {
	CUDA_KERNEL_NODE_PARAMS kernel;
	void **kernel_params; /* malloc'ed; NULL: the block goes as EXTRA */
	void *extra[5];
	uint64_t function; /* that the kernel is */
	size_t param_bytes;
	CUDA_MEMCPY3D copy;
	CUDA_MEMSET_NODE_PARAMS fill;
	CUDA_HOST_NODE_PARAMS host;
	CUgraph child;
	struct worker_graph *inside; /* the same */
	bool move;		     /* itself, not a clone */
	CUevent event;
	CUDA_BATCH_MEM_OP_NODE_PARAMS batch; /* its array is malloc'ed */
	const struct graph_conditional *conditional;
	CUgraph *bodies; /* that its node has, once there is one */
};

/* Exactly the struct, for types that have no more. */
static const void *params_of(struct request *r, const void *bytes, uint32_t n, size_t need)
{
	static const unsigned char zeros[128];

	if (n == need)
		return bytes;
	worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
	return zeros;
}

/* A pointer to each of the kernel's parameters within their BLOCK; NULL where the driver does
 * not say where they are, or they are not all in it. */
static void **kernel_pointers(
	struct worker *w, CUfunction function, const unsigned char *block, size_t bytes)
{
	size_t count = 0, offset, size;
	void **pointers;

	if (!bytes || !w->cuda.cuFuncGetParamInfo)
		return NULL;
	pointers = calloc(bytes, sizeof(*pointers)); /* none is smaller than a byte */
	while (pointers && !w->cuda.cuFuncGetParamInfo(function, count, &offset, &size)) {
		if (count == bytes || offset > bytes || size > bytes - offset) {
			count = 0;
			break;
		}
		pointers[count++] = (void *)(uintptr_t)(block + offset);
	}
	if (count)
		return pointers;
	free(pointers);
	return NULL;
}

/* Pointers where that can be: CUDA asks for them where the kernel is to be cooperative. */
static void params_kernel(struct worker *w, struct request *r, const unsigned char *bytes,
	uint32_t n, struct node_params *p)
{
	const struct graph_kernel *k = (const void *)bytes;

	if (n < sizeof(*k) || k->param_bytes != n - sizeof(*k)) {
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
		return;
	}
	p->param_bytes = k->param_bytes;
	p->function = k->function;
	p->extra[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
	p->extra[1] = (void *)(uintptr_t)(bytes + sizeof(*k));
	p->extra[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
	p->extra[3] = &p->param_bytes;
	p->extra[4] = CU_LAUNCH_PARAM_END;
	p->kernel = (CUDA_KERNEL_NODE_PARAMS){
		.func = worker_handle(w, r, k->function, KIND_CUfunction),
		.gridDimX = k->grid[0],
		.gridDimY = k->grid[1],
		.gridDimZ = k->grid[2],
		.blockDimX = k->block[0],
		.blockDimY = k->block[1],
		.blockDimZ = k->block[2],
		.sharedMemBytes = k->shared,
	};
	if (worker_refused(r))
		return;
	p->kernel_params =
		kernel_pointers(w, p->kernel.func, bytes + sizeof(*k), p->param_bytes);
	p->kernel.kernelParams = p->kernel_params;
	p->kernel.extra = p->param_bytes && !p->kernel_params ? p->extra : NULL;
}

static void params_fill(
	struct worker *w, struct request *r, const struct graph_fill *f, struct node_params *p)
{
	copy_check_fill(w, r, f->dst, f->pitch, f->element, f->width, f->height);
	p->fill = (CUDA_MEMSET_NODE_PARAMS){.dst = f->dst,
		.pitch = f->pitch,
		.value = f->value,
		.elementSize = f->element,
		.width = f->width,
		.height = f->height};
}

static void params_batch(struct worker *w, struct request *r, const unsigned char *bytes,
	uint32_t n, struct node_params *p)
{
	const struct graph_batch *batch = (const void *)bytes;
	const CUstreamBatchMemOpParams *given = (const void *)(bytes + sizeof(*batch));

	if (n < sizeof(*batch) || batch->count > GRAPH_BATCH_MAX ||
		n != sizeof(*batch) + batch->count * sizeof(*given)) {
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
		return;
	}
	p->batch = (CUDA_BATCH_MEM_OP_NODE_PARAMS){.ctx = w->contexts[r->header.context],
		.count = batch->count,
		.paramArray = calloc(batch->count + 1, sizeof(*given)),
		.flags = batch->flags};
	if (!p->batch.paramArray)
		worker_refuse(r, CUDA_ERROR_OUT_OF_MEMORY);
	for (uint32_t i = 0; i < batch->count && !worker_refused(r); i++)
		stream_value(w, r, &given[i], &p->batch.paramArray[i], true);
}

static void params_read(struct worker *w, struct request *r, uint32_t type,
	const unsigned char *bytes, uint32_t n, struct node_params *p)
{
	const struct graph_number *number = (const void *)bytes;
	const struct graph_child *child;

	switch (type) {
	case CU_GRAPH_NODE_TYPE_KERNEL: params_kernel(w, r, bytes, n, p); break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		copy_describe(
			w, r, params_of(r, bytes, n, sizeof(struct graph_copy)), &p->copy);
		break;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		params_fill(w, r, params_of(r, bytes, n, sizeof(struct graph_fill)), p);
		break;
	case CU_GRAPH_NODE_TYPE_HOST:
		number = params_of(r, bytes, n, sizeof(*number));
		p->host.fn = host_function_run_node;
		p->host.userData = (void *)(uintptr_t)number->number;
		break;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		child = params_of(r, bytes, n, sizeof(*child));
		p->inside = graph_of(w, r, child->graph);
		p->child = p->inside ? p->inside->graph : NULL;
		p->move = child->move;
		break;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		number = params_of(r, bytes, n, sizeof(*number));
		p->event = worker_handle(w, r, number->number, KIND_CUevent);
		break;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: params_batch(w, r, bytes, n, p); break;
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		conditional_read(r, bytes, n);
		p->conditional = (const void *)bytes;
		break;
	/* The shim's own matter, but for their place: an empty node stands for them. */
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
	case CU_GRAPH_NODE_TYPE_EMPTY: params_of(r, bytes, n, 0); break;
	default: worker_refuse(r, CUDA_ERROR_NOT_SUPPORTED); break;
	}
}

/* What the node has kernels of. */
static void params_modules(struct worker *w, struct request *r, const struct node_params *p,
	struct graph_modules *set)
{
	if (!worker_refused(r) &&
		((p->function && !graph_modules_add(w, set, p->function)) ||
			(p->inside && !p->move && !graph_modules_add_graph(set, p->inside))))
		worker_refuse(r, CUDA_ERROR_OUT_OF_MEMORY);
}

static void params_free(struct node_params *p)
{
	free(p->batch.paramArray);
	free(p->kernel_params);
}

/* GRAPH is AROUND, or somewhere inside of it. */
static bool graph_within(const struct worker_graph *graph, const struct worker_graph *around)
{
	while (graph && graph != around)
		graph = graph->parent;
	return graph != NULL;
}

/* The driver's graph belongs to the node then, and its name goes with that of TO. */
static CUresult child_move(struct worker *w, struct worker_graph *to, const CUgraphNode *after,
	size_t count, struct worker_graph *child, CUgraphNode *node)
{
	CUgraphNodeParams params;
	CUresult status;

	if (!child->owned || child->origin || graph_within(to, child))
		return CUDA_ERROR_INVALID_VALUE;
	if (!w->cuda.cuGraphAddNode_v2)
		return worker_lacks(w, "cuGraphAddNode");
	memset(&params, 0, sizeof(params));
	params.type = CU_GRAPH_NODE_TYPE_GRAPH;
	params.graph.graph = child->graph;
	params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
	status = w->cuda.cuGraphAddNode_v2(node, to->graph, after, NULL, count, &params);
	if (status)
		return status;
	child->owned = false;
	child->parent = to;
	child->parent_node = to->count; /* the number that it gets next */
	child->sibling = to->children;
	to->children = child;
	return CUDA_SUCCESS;
}

static CUresult node_add(struct worker *w, uint32_t type, CUgraphNode *node,
	struct worker_graph *to, const CUgraphNode *after, size_t count, struct node_params *p,
	CUcontext context)
{
	const struct cuda_driver *cuda = &w->cuda;
	CUgraph graph = to->graph;

	switch (type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return cuda->cuGraphAddKernelNode_v2(node, graph, after, count, &p->kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return cuda->cuGraphAddMemcpyNode(node, graph, after, count, &p->copy, context);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return cuda->cuGraphAddMemsetNode(node, graph, after, count, &p->fill, context);
	case CU_GRAPH_NODE_TYPE_HOST:
		return cuda->cuGraphAddHostNode(node, graph, after, count, &p->host);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return p->move ? child_move(w, to, after, count, p->inside, node)
			       : cuda->cuGraphAddChildGraphNode(
					 node, graph, after, count, p->child);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return cuda->cuGraphAddEventWaitNode(node, graph, after, count, p->event);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return cuda->cuGraphAddEventRecordNode(node, graph, after, count, p->event);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return cuda->cuGraphAddBatchMemOpNode
			       ? cuda->cuGraphAddBatchMemOpNode(
					 node, graph, after, count, &p->batch)
			       : worker_lacks(w, "cuGraphAddBatchMemOpNode");
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return conditional_add(
			w, to, after, count, p->conditional, context, node, &p->bodies);
	default: return cuda->cuGraphAddEmptyNode(node, graph, after, count);
	}
}

CUresult serve_vcudaGraphAdd(struct worker *w, struct request *r)
{
	const struct wire_vcudaGraphAdd *req = (const void *)r->body;
	struct worker_graph *graph = graph_of(w, r, req->graph);
	const uint32_t *after = worker_in(r, &req->after, 4ull * req->count);
	const unsigned char *bytes = worker_in(r, &req->params, req->bytes);
	struct node_params p = {0};
	CUgraphNode node = NULL, *nodes;
	CUresult status;

	params_read(w, r, req->type, bytes, req->bytes, &p);
	nodes = graph_nodes_in(r, graph, after, req->count);
	if (graph)
		params_modules(w, r, &p, &graph->modules);
	if (worker_refused(r)) {
		free(nodes);
		params_free(&p);
		return r->refused;
	}
	/* Where it fails the number is taken all the same: the app counts on. */
	status = req->node == graph->count
			 ? node_add(w, req->type, &node, graph, nodes, req->count, &p,
				   w->contexts[r->header.context])
			 : CUDA_ERROR_INVALID_VALUE;
	free(nodes);
	params_free(&p);
	if (req->node == graph->count && !graph_add_number(graph, node))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return status || !p.bodies
		       ? status
		       : conditional_bind(w, r, graph, req->node, p.conditional, p.bodies);
}

/* The node gets a clone of another graph, and what had a name in the one before is gone. */
static CUresult child_set(struct worker *w, struct worker_graph *graph, uint32_t number,
	CUgraphNode node, const struct node_params *p)
{
	CUgraphNodeParams params;
	CUresult status;

	if (p->move)
		return CUDA_ERROR_INVALID_VALUE;
	if (!w->cuda.cuGraphNodeSetParams)
		return worker_lacks(w, "cuGraphNodeSetParams");
	memset(&params, 0, sizeof(params));
	params.type = CU_GRAPH_NODE_TYPE_GRAPH;
	params.graph.graph = p->child;
	params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE;
	status = w->cuda.cuGraphNodeSetParams(node, &params);
	if (!status)
		graph_drop_children(w, graph, number);
	return status;
}

static CUresult node_set(
	struct worker *w, uint32_t type, CUgraphNode node, const struct node_params *p)
{
	const struct cuda_driver *cuda = &w->cuda;

	switch (type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return cuda->cuGraphKernelNodeSetParams_v2(node, &p->kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY: return cuda->cuGraphMemcpyNodeSetParams(node, &p->copy);
	case CU_GRAPH_NODE_TYPE_MEMSET: return cuda->cuGraphMemsetNodeSetParams(node, &p->fill);
	case CU_GRAPH_NODE_TYPE_HOST: return cuda->cuGraphHostNodeSetParams(node, &p->host);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return cuda->cuGraphEventWaitNodeSetEvent(node, p->event);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return cuda->cuGraphEventRecordNodeSetEvent(node, p->event);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return cuda->cuGraphBatchMemOpNodeSetParams
			       ? cuda->cuGraphBatchMemOpNodeSetParams(node, &p->batch)
			       : worker_lacks(w, "cuGraphBatchMemOpNodeSetParams");
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult exec_set(struct worker *w, uint32_t type, CUgraphExec exec, CUgraphNode node,
	const struct node_params *p, CUcontext context)
{
	const struct cuda_driver *cuda = &w->cuda;

	switch (type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return cuda->cuGraphExecKernelNodeSetParams_v2(exec, node, &p->kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return cuda->cuGraphExecMemcpyNodeSetParams(exec, node, &p->copy, context);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return cuda->cuGraphExecMemsetNodeSetParams(exec, node, &p->fill, context);
	case CU_GRAPH_NODE_TYPE_HOST:
		return cuda->cuGraphExecHostNodeSetParams(exec, node, &p->host);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return cuda->cuGraphExecChildGraphNodeSetParams(exec, node, p->child);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return cuda->cuGraphExecEventWaitNodeSetEvent(exec, node, p->event);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return cuda->cuGraphExecEventRecordNodeSetEvent(exec, node, p->event);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return cuda->cuGraphExecBatchMemOpNodeSetParams
			       ? cuda->cuGraphExecBatchMemOpNodeSetParams(exec, node, &p->batch)
			       : worker_lacks(w, "cuGraphExecBatchMemOpNodeSetParams");
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult set_enabled(struct worker *w, struct request *r, struct worker_exec *exec,
	CUgraphNode node, const struct graph_enabled *enabled)
{
	if (!worker_refused(r) && !exec)
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
	if (worker_refused(r))
		return r->refused;
	if (!w->cuda.cuGraphNodeSetEnabled)
		return worker_lacks(w, "cuGraphNodeSetEnabled");
	return w->cuda.cuGraphNodeSetEnabled(exec->exec, node, enabled->enabled);
}

static CUresult set_attribute(struct worker *w, struct request *r, CUgraphNode node,
	const struct graph_attribute *attribute)
{
	CUlaunchAttributeID id = (CUlaunchAttributeID)attribute->id;
	CUlaunchAttributeValue value;

	if (!worker_refused(r) && !launch_attribute_travels(id))
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
	if (worker_refused(r))
		return r->refused;
	if (!w->cuda.cuGraphKernelNodeSetAttribute)
		return worker_lacks(w, "cuGraphKernelNodeSetAttribute");
	memcpy(&value, attribute->value, sizeof(value));
	return w->cuda.cuGraphKernelNodeSetAttribute(node, id, &value);
}

static CUresult copy_attributes(
	struct worker *w, struct request *r, CUgraphNode node, const struct graph_from *from)
{
	CUgraphNode source = graph_node(r, graph_of(w, r, from->graph), from->node);

	if (worker_refused(r))
		return r->refused;
	if (!w->cuda.cuGraphKernelNodeCopyAttributes)
		return worker_lacks(w, "cuGraphKernelNodeCopyAttributes");
	return w->cuda.cuGraphKernelNodeCopyAttributes(node, source);
}

CUresult serve_vcudaGraphSet(struct worker *w, struct request *r)
{
	const struct wire_vcudaGraphSet *req = (const void *)r->body;
	struct worker_graph *graph = graph_of(w, r, req->graph);
	CUgraphNode node = graph_node(r, graph, req->node);
	struct worker_exec *exec =
		req->exec ? worker_handle(w, r, req->exec, KIND_CUgraphExec) : NULL;
	const unsigned char *bytes = worker_in(r, &req->params, req->bytes);
	struct node_params p = {0};
	CUresult status;

	switch (req->type) {
	case GRAPH_SET_ENABLED:
		return set_enabled(w, r, exec, node,
			params_of(r, bytes, req->bytes, sizeof(struct graph_enabled)));
	case GRAPH_SET_ATTRIBUTE:
		return set_attribute(w, r, node,
			params_of(r, bytes, req->bytes, sizeof(struct graph_attribute)));
	case GRAPH_COPY_ATTRIBUTES:
		return copy_attributes(
			w, r, node, params_of(r, bytes, req->bytes, sizeof(struct graph_from)));
	default: break;
	}
	params_read(w, r, req->type, bytes, req->bytes, &p);
	if (graph)
		params_modules(w, r, &p, exec ? &exec->modules : &graph->modules);
	if (worker_refused(r))
		status = r->refused;
	else if (!exec && req->type == CU_GRAPH_NODE_TYPE_GRAPH)
		status = child_set(w, graph, req->node, node, &p);
	else
		status = exec ? exec_set(w, req->type, exec->exec, node, &p,
					w->contexts[r->header.context])
			      : node_set(w, req->type, node, &p);
	params_free(&p);
	return status;
}

CUresult serve_vcudaGraphAttribute(struct worker *w, struct request *r)
{
	const struct wire_vcudaGraphAttribute *req = (const void *)r->body;
	struct wire_vcudaGraphAttribute_reply *answer = (void *)r->answer;
	CUgraphNode node = graph_node(r, graph_of(w, r, req->graph), req->node);
	CUlaunchAttributeID id = (CUlaunchAttributeID)req->attribute;
	CUlaunchAttributeValue value = {0};
	CUresult status;

	if (!worker_refused(r) && !launch_attribute_travels(id))
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
	if (worker_refused(r))
		return r->refused;
	if (!w->cuda.cuGraphKernelNodeGetAttribute)
		return worker_lacks(w, "cuGraphKernelNodeGetAttribute");
	status = w->cuda.cuGraphKernelNodeGetAttribute(node, id, &value);
	if (!status)
		memcpy(worker_out(r, &answer->value, sizeof(value)), &value, sizeof(value));
	return status ? status : r->refused;
}
