/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes that the app adds and changes, in a graph or in an executable graph.  Whatever it is,
 * it becomes the bytes of protocol/wire/graph.h, and the part that stays here (graph.h) where
 * the app's own memory, a host function or an event belongs to it.
 */
#include "shim/driver/graph/graph_node.h"

#include <stdlib.h>
#include <string.h>

#include "shim/generated/cuda_hand.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/context/context.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/stream/memop.h"
#include "shim/engine/driver.h"
#include "shim/driver/stream/function_order.h"
#include "shim/engine/engine.h"
#include "shim/driver/memory/pinned/host.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/mirror/mirror.h"
#include "shim/driver/module/module.h"

void node_params_free(struct node_params *p)
{
	part_put(p->part);
	free(p->bytes);
	*p = (struct node_params){0};
}

static bool params_set(struct node_params *p, uint32_t type, const void *bytes, size_t n)
{
	p->type = type;
	p->bytes = malloc(n ? n : 1);
	if (!p->bytes)
		return false;
	if (bytes)
		memcpy(p->bytes, bytes, n);
	else
		memset(p->bytes, 0, n);
	p->size = n;
	return true;
}

static CUresult params_number(struct node_params *p, uint32_t type, uint64_t number)
{
	struct graph_number bytes = {number};

	return params_set(p, type, &bytes, sizeof(bytes)) ? CUDA_SUCCESS
							  : CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- kernels ---- */

static CUresult kernel_pack(const struct function *f, const CUDA_KERNEL_NODE_PARAMS *k,
	unsigned char *to, size_t room)
{
	const void *packed = NULL;
	size_t size = 0;

	if (k->kernelParams) {
		if (k->extra)
			return CUDA_ERROR_INVALID_VALUE;
		if (f->info.param_count > f->layout_count)
			return CUDA_ERROR_NOT_SUPPORTED;
		for (uint32_t i = 0; i < f->layout_count; i++) {
			if (!k->kernelParams[i])
				return CUDA_ERROR_INVALID_VALUE;
			memcpy(to + f->layout[i].offset, k->kernelParams[i], f->layout[i].size);
		}
		return CUDA_SUCCESS;
	}
	if (!k->extra)
		return f->info.param_count ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	for (void **extra = k->extra; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
			packed = extra[1];
		else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
			size = *(const size_t *)extra[1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (size < room || (room && !packed))
		return CUDA_ERROR_INVALID_VALUE;
	if (room)
		memcpy(to, packed, room);
	return CUDA_SUCCESS;
}

CUresult node_params_kernel(struct node_params *p, const CUDA_KERNEL_NODE_PARAMS *k)
{
	struct context *context = context_current();
	struct graph_kernel *kernel;
	struct function *f;
	CUresult status;

	p->type = CU_GRAPH_NODE_TYPE_KERNEL;
	if (!k)
		return CUDA_ERROR_INVALID_VALUE;
	if (!k->func && !k->kern)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!k->func && !node_context_ok(k->ctx))
		return CUDA_ERROR_NOT_SUPPORTED;
	status = function_find(k->func ? k->func : (CUfunction)k->kern, &f);
	if (status)
		return status;
	status = launch_fits_node(f, (unsigned[3]){k->gridDimX, k->gridDimY, k->gridDimZ},
		(unsigned[3]){k->blockDimX, k->blockDimY, k->blockDimZ}, k->sharedMemBytes);
	if (status)
		return status;
	if (!params_set(
		    p, CU_GRAPH_NODE_TYPE_KERNEL, NULL, sizeof(*kernel) + f->info.param_bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	kernel = (void *)p->bytes;
	*kernel = (struct graph_kernel){.function = f->handle,
		.grid = {k->gridDimX, k->gridDimY, k->gridDimZ},
		.block = {k->blockDimX, k->blockDimY, k->blockDimZ},
		.shared = k->sharedMemBytes,
		.param_bytes = f->info.param_bytes};
	p->kernel = *kernel;
	return kernel_pack(f, k, p->bytes + sizeof(*kernel), f->info.param_bytes);
}

bool node_context_ok(CUcontext ctx)
{
	return !ctx || context_of(ctx) == context_current();
}

/* ---- the others ---- */

CUresult node_params_copy(
	struct node_params *p, const CUDA_MEMCPY3D *copy, const struct parts *parts)
{
	struct graph_copy inside;
	struct part_copy app;
	enum copy_way way;
	CUresult status;

	p->type = CU_GRAPH_NODE_TYPE_MEMCPY;
	p->copy = copy;
	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	status = copy_node(copy, p->stands, &way, &inside, &app);
	if (status == CUDA_ERROR_INVALID_HANDLE) /* of an array; nodes have no such answer */
		return CUDA_ERROR_INVALID_VALUE;
	if (!status && way != COPY_WAY_INSIDE) {
		status = part_copy_new((enum part_kind)way, &app, parts, &p->part);
		if (!status)
			part_inside(p->part, &inside);
	}
	if (!status && !params_set(p, CU_GRAPH_NODE_TYPE_MEMCPY, &inside, sizeof(inside)))
		status = CUDA_ERROR_OUT_OF_MEMORY;
	return status;
}

CUresult node_params_fill(struct node_params *p, const CUDA_MEMSET_NODE_PARAMS *fill)
{
	struct graph_fill bytes;
	size_t row, extent;

	p->type = CU_GRAPH_NODE_TYPE_MEMSET;
	if (!fill || !fill->width || !fill->height ||
		(fill->elementSize != 1 && fill->elementSize != 2 && fill->elementSize != 4) ||
		__builtin_mul_overflow(fill->width, fill->elementSize, &row) ||
		fill->dst % fill->elementSize ||
		(fill->height > 1 && (fill->pitch < row || fill->pitch % fill->elementSize)) ||
		__builtin_mul_overflow(fill->height - 1, fill->pitch, &extent) ||
		__builtin_add_overflow(extent, row, &extent))
		return CUDA_ERROR_INVALID_VALUE;
	if (host_any())
		host_named(&fill->dst, sizeof(fill->dst));
	if (!mirror_reaches(fill->dst, extent))
		return CUDA_ERROR_INVALID_VALUE;
	p->fill = *fill;
	bytes = (struct graph_fill){.dst = mirror_address(fill->dst),
		.pitch = fill->pitch,
		.value = fill->value,
		.element = fill->elementSize,
		.width = fill->width,
		.height = fill->height};
	return params_set(p, CU_GRAPH_NODE_TYPE_MEMSET, &bytes, sizeof(bytes))
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult node_params_host(struct node_params *p, const CUDA_HOST_NODE_PARAMS *host)
{
	CUresult status;

	p->type = CU_GRAPH_NODE_TYPE_HOST;
	if (!host || !host->fn)
		return CUDA_ERROR_INVALID_VALUE;
	status = host_function_node_new(host->fn, host->userData, &p->part);
	return status ? status : params_number(p, CU_GRAPH_NODE_TYPE_HOST, p->part->number);
}

/* What is nowhere travels as address 0, which a driver takes for a node, too. */
static CUresult batch_place(struct node_params *p, CUstreamBatchMemOpParams *op)
{
	if (memop_reached(op))
		return CUDA_SUCCESS;
	op->waitValue.address = 0;
	p->awaited = true; /* an agent of before takes no such address */
	if (!p->part)
		p->part = part_new(PART_NOWHERE);
	return p->part ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult node_params_batch(struct node_params *p, const CUDA_BATCH_MEM_OP_NODE_PARAMS *batch)
{
	CUstreamBatchMemOpParams *ops;
	struct graph_batch head;
	CUresult status;
	size_t size;

	p->type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
	if (!batch || !batch->ctx || batch->flags || batch->count > GRAPH_BATCH_MAX ||
		(batch->count && !batch->paramArray))
		return CUDA_ERROR_INVALID_VALUE;
	status = memop_check_node(batch->paramArray, batch->count);
	if (status)
		return status;
	if (!node_context_ok(batch->ctx))
		return CUDA_ERROR_NOT_SUPPORTED;
	head = (struct graph_batch){.count = batch->count, .flags = batch->flags};
	size = batch->count * sizeof(*batch->paramArray);
	if (!params_set(p, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, NULL, sizeof(head) + size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	p->batch = batch;
	memcpy(p->bytes, &head, sizeof(head));
	ops = (CUstreamBatchMemOpParams *)(void *)(p->bytes + sizeof(head));
	for (unsigned i = 0; i < batch->count && !status; i++) {
		ops[i] = batch->paramArray[i];
		status = batch_place(p, &ops[i]);
	}
	return status;
}

CUresult node_params_event(struct node_params *p, uint32_t type, CUevent event)
{
	uint64_t handle = (uint64_t)(uintptr_t)event;

	p->type = type;
	if (!shim_object_of(handle, KIND_CUevent))
		return CUDA_ERROR_INVALID_VALUE;
	if (type == CU_GRAPH_NODE_TYPE_EVENT_RECORD) {
		p->part = part_new(PART_RECORD);
		if (!p->part)
			return CUDA_ERROR_OUT_OF_MEMORY;
		p->part->number = handle;
	} else {
		function_order_unknown(); /* the graph waits, wherever it is launched */
	}
	return params_number(p, type, handle);
}

CUresult node_params_child(
	struct node_params *p, CUgraph child, CUgraphChildGraphNodeOwnership ownership)
{
	struct graph *graph = graph_find(child);
	struct graph_child bytes;
	CUresult status;

	p->type = CU_GRAPH_NODE_TYPE_GRAPH;
	if (!graph || ownership > CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
		return CUDA_ERROR_INVALID_VALUE;
	p->move = ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
	if (graph->has_conditional || graph->has_handle || (graph->has_memory && !p->move))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (graph->capturing)
		return CUDA_ERROR_INVALID_VALUE;
	/* It is a node's already, or runs by itself. */
	if (p->move && (graph->parent || shim_object_of(graph->exec, KIND_CUgraphExec)))
		return CUDA_ERROR_INVALID_VALUE;
	/* The node's clone has no names for its nodes, by which they could be set. */
	status = graph_reach(graph);
	if (status)
		return status;
	p->child = graph;
	p->awaited = p->move;
	bytes = (struct graph_child){.graph = graph->handle, .move = p->move};
	return params_set(p, CU_GRAPH_NODE_TYPE_GRAPH, &bytes, sizeof(bytes))
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The graph is the node's from now on, and its parts are looked for in there. */
static void child_move(struct graph *graph, uint32_t number, struct graph *child)
{
	child->body = true;
	child->parent = graph;
	child->parent_node = number;
	child->sibling = graph->children;
	graph->children = child;
	graph->has_memory |= child->has_memory;
}

CUresult node_params_empty(struct node_params *p)
{
	return params_set(p, CU_GRAPH_NODE_TYPE_EMPTY, NULL, 0) ? CUDA_SUCCESS
								: CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- adding ---- */

static bool edges_have_data(const CUgraphEdgeData *data, size_t n)
{
	static const CUgraphEdgeData none;

	for (size_t i = 0; data && i < n; i++)
		if (memcmp(&data[i], &none, sizeof(none)))
			return true;
	return false;
}

static CUresult add_send(
	struct graph *graph, const uint32_t *after, size_t n, const struct node_params *p)
{
	struct wire_vcudaGraphAdd *body;
	struct shim_call call;
	CUresult status = pinned_before(p->bytes, p->size);

	if (status)
		return status;
	body = shim_begin(&call, OP_vcudaGraphAdd, sizeof(*body));
	body->graph = graph->handle;
	body->node = graph->count;
	body->type = p->type;
	body->count = (uint32_t)n;
	body->bytes = (uint32_t)p->size;
	shim_put(&call, &body->after, after, n * sizeof(*after));
	shim_put(&call, &body->params, p->bytes, p->size);
	if (!p->awaited)
		return shim_post(&call);
	shim_wait(&call, 0);
	status = shim_end(&call);
	if (status) {
		/* The number is taken all the same. */
		graph_added(graph, GRAPH_NO_NODE);
		graph->pruned = true;
	}
	return status;
}

/* GRAPH is AROUND, or somewhere inside of it. */
static bool graph_within(const struct graph *graph, const struct graph *around)
{
	while (graph && graph != around)
		graph = graph->parent;
	return graph != NULL;
}

/* A node cannot be behind another one twice. NUMBERS are below COUNT; of few of them each pair
 * is looked at. Where there is no memory to tell, the driver will. */
static bool numbers_twice(const uint32_t *numbers, size_t n, uint32_t count)
{
	enum { FEW = 16 };
	unsigned char *seen = n > FEW ? calloc(1, count) : NULL;
	bool twice = false;

	for (size_t i = 0; seen && i < n; i++) {
		twice |= seen[numbers[i]];
		seen[numbers[i]] = 1;
	}
	free(seen);
	for (size_t i = 0; n <= FEW && i < n; i++)
		for (size_t k = 0; k < i; k++)
			twice |= numbers[i] == numbers[k];
	return twice;
}

/* The line of node NUMBER, which is behind AFTER. */
static uint64_t node_line(struct graph *graph, const uint32_t *after, size_t n, uint32_t number)
{
	if (!graph_line_goes_on(graph, after, n))
		graph->line = capture_line_new();
	graph->line_end = number;
	return graph->line;
}

/* A kernel that is none, or in clusters that it does not fit into; a graph that is nobody's
 * child. */
static bool told_at_once(uint32_t type, CUresult status)
{
	return status == CUDA_ERROR_INVALID_HANDLE ||
	       status == CUDA_ERROR_INVALID_CLUSTER_SIZE ||
	       (type == CU_GRAPH_NODE_TYPE_GRAPH && status == CUDA_ERROR_NOT_SUPPORTED);
}

CUresult node_add(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
	const CUgraphEdgeData *data, size_t n, struct node_params *p, CUresult status)
{
	struct graph *graph = graph_find(hGraph);
	bool with_data = edges_have_data(data, n);
	const struct node_params said = *p; /* its description outlives it */
	uint32_t *after = NULL, number;
	CUgraphNode node;
	uint64_t line = 0;

	/* As natively: what is told at once, where the node goes, and only then the rest. */
	if (!told_at_once(p->type, status) &&
		(!phGraphNode || !graph || graph_numbers(graph, dependencies, n, &after) ||
			numbers_twice(after, n, graph->count) ||
			(p->child && graph_within(graph, p->child))))
		status = CUDA_ERROR_INVALID_VALUE;
	if (!status && graph->count == GRAPH_NODES_MAX)
		status = CUDA_ERROR_OUT_OF_MEMORY;
	number = graph ? graph->count : 0;
	if (!status)
		status = add_send(graph, after, with_data ? 0 : n, p);
	if (!status)
		line = node_line(graph, after, with_data ? 0 : n, number);
	free(after);
	if (status) {
		node_params_free(p);
		return status;
	}
	graph_added(graph, p->type);
	if (p->child && !p->move)
		shapes_put(&graph->shapes, number, p->child);
	graph->has_memory |= p->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
			     p->type == CU_GRAPH_NODE_TYPE_MEM_FREE;
	if (p->child && p->move)
		child_move(graph, number, p->child);
	else if (p->child && !parts_copy_child(&graph->parts, p->child, number))
		status = CUDA_ERROR_OUT_OF_MEMORY;
	if (p->part && parts_add_line(&graph->parts, p->part, graph->handle, number, line))
		p->part = NULL;
	else if (p->part)
		status = CUDA_ERROR_OUT_OF_MEMORY;
	node_params_free(p);
	node = graph_node_name(graph, number);
	if (!node)
		return CUDA_ERROR_OUT_OF_MEMORY;
	node_describe(graph->nodes[number], &said);
	/* Edges that say more than before and behind are added by themselves: there is no node
	 * where one cannot be. */
	for (size_t i = 0; with_data && i < n && !status; i++)
		status = hand_cuGraphAddDependencies_v2(
			hGraph, &dependencies[i], &node, &data[i], 1);
	if (with_data && status)
		hand_cuGraphDestroyNode(node);
	else
		*phGraphNode = node;
	return status;
}
