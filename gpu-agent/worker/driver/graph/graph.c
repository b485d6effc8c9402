/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs and executable graphs under the names that the shim minted; launches.
 */
#include "gpu-agent/worker/loop/closing.h"
#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/driver/graph/capture.h"
#include "gpu-agent/worker/driver/graph/graph.h"
#include "gpu-agent/worker/loop/fence.h"
#include "gpu-agent/worker/handle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The text of a graph for people: beyond this it is cut off. */
#define DOT_MAX (64u << 20)

/* ---- graphs ---- */

struct worker_graph *graph_new_object(CUgraph graph, uint64_t handle)
{
	struct worker_graph *object = graph_charge(1) ? calloc(1, sizeof(*object)) : NULL;

	if (object) {
		object->graph = graph;
		object->handle = handle;
		object->owned = true;
	}
	return object;
}

void graph_drop_object(struct worker *w, struct worker_graph *graph)
{
	struct name *name = handles_find(w, graph->handle, KIND_CUgraph);
	struct worker_graph *child, *next;

	if (name)
		handles_forget(w, name);
	for (child = graph->children; child; child = next) {
		next = child->sibling;
		child->parent = NULL;
		graph_drop_object(w, child);
	}
	if (graph->parent) {
		struct worker_graph **at = &graph->parent->children;

		while (*at != graph)
			at = &(*at)->sibling;
		*at = graph->sibling;
	}
	/* The graph around it goes while a stream captures into it. */
	if (graph->origin) {
		graph->origin->capture = NULL;
		capture_over(w);
	}
	graph_discharge(graph->count + graph->condition_count + 1);
	graph_modules_drop(w, &graph->modules);
	free(graph->conditions);
	free(graph->nodes);
	free(graph->slots);
	free(graph);
}

void graph_drop_children(struct worker *w, struct worker_graph *graph, uint32_t number)
{
	struct worker_graph *child, *next;

	for (child = graph->children; child; child = next) {
		next = child->sibling;
		if (child->parent_node == number)
			graph_drop_object(w, child);
	}
}

/* A name for CUGRAPH, which goes again where that cannot be had. */
static CUresult graph_bind(
	struct worker *w, struct request *r, CUgraph graph, uint64_t handle, bool owned)
{
	struct worker_graph *object = graph_new_object(graph, handle);

	if (object) {
		object->owned = owned;
		worker_bind(w, r, handle, KIND_CUgraph, object);
		if (!r->refused)
			return CUDA_SUCCESS;
		graph_discharge(1);
		free(object);
	}
	if (owned)
		w->cuda.cuGraphDestroy(graph);
	return r->refused ? r->refused : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult graph_make_clone(
	struct worker *w, struct request *r, uint64_t handle, struct worker_graph *from)
{
	struct worker_graph *to;
	CUgraph graph;
	CUresult status;

	if (!w->cuda.cuGraphClone || !w->cuda.cuGraphNodeFindInClone)
		return worker_lacks(w, "cuGraphClone");
	status = graph_refresh(w, from);
	if (!status)
		status = w->cuda.cuGraphClone(&graph, from->graph);
	if (!status)
		status = graph_bind(w, r, graph, handle, true);
	if (status)
		return status;
	to = handles_find(w, handle, KIND_CUgraph)->object;
	if (!graph_modules_add_graph(&to->modules, from))
		status = CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < from->count && !status; i++) {
		CUgraphNode node = NULL;

		if (from->nodes[i])
			status = w->cuda.cuGraphNodeFindInClone(&node, from->nodes[i], graph);
		if (!status && !graph_add_number(to, node))
			status = CUDA_ERROR_OUT_OF_MEMORY;
	}
	return status;
}

CUresult graph_bind_inside(struct worker *w, struct request *r, struct worker_graph *from,
	uint32_t number, CUgraph graph, uint64_t handle)
{
	struct worker_graph *child;
	CUresult status = graph_bind(w, r, graph, handle, false);

	if (status)
		return status;
	child = handles_find(w, handle, KIND_CUgraph)->object;
	child->parent = from;
	child->parent_node = number;
	child->sibling = from->children;
	from->children = child;
	return CUDA_SUCCESS;
}

static CUresult graph_make_child(struct worker *w, struct request *r, uint64_t handle,
	struct worker_graph *from, uint32_t number)
{
	CUgraphNode node = graph_node(r, from, number);
	CUgraph graph;
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	if (!w->cuda.cuGraphChildGraphNodeGetGraph)
		return worker_lacks(w, "cuGraphChildGraphNodeGetGraph");
	status = w->cuda.cuGraphChildGraphNodeGetGraph(node, &graph);
	if (!status)
		status = graph_bind_inside(w, r, from, number, graph, handle);
	return status ? status
		      : graph_refresh(w, handles_find(w, handle, KIND_CUgraph)->object);
}

CUresult serve_vcudaGraphMake(struct worker *w, struct request *r)
{
	const struct wire_vcudaGraphMake *req = (const void *)r->body;
	struct wire_vcudaGraphMake_reply *answer = (void *)r->answer;
	struct worker_graph *from = req->what == GRAPH_NEW ? NULL : graph_of(w, r, req->of),
			    *made;
	struct name *name;
	CUgraph graph;
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	switch (req->what) {
	case GRAPH_NEW:
		if (!w->cuda.cuGraphCreate)
			return worker_lacks(w, "cuGraphCreate");
		status = w->cuda.cuGraphCreate(&graph, 0);
		if (!status)
			status = graph_bind(w, r, graph, req->graph, true);
		break;
	case GRAPH_CLONE: status = graph_make_clone(w, r, req->graph, from); break;
	case GRAPH_CHILD: status = graph_make_child(w, r, req->graph, from, req->node); break;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	name = status ? NULL : handles_find(w, req->graph, KIND_CUgraph);
	made = name ? name->object : NULL;
	answer->nodes = made ? made->count : 0;
	return status;
}

CUresult serve_vcudaGraphFindInClone(struct worker *w, struct request *r)
{
	const struct wire_vcudaGraphFindInClone *req = (const void *)r->body;
	struct wire_vcudaGraphFindInClone_reply *answer = (void *)r->answer;
	struct worker_graph *clone = graph_of(w, r, req->clone);
	CUgraphNode node = graph_node(r, graph_of(w, r, req->graph), req->node), found;
	CUresult status;

	answer->number = GRAPH_NO_NODE;
	if (worker_refused(r))
		return r->refused;
	if (!w->cuda.cuGraphNodeFindInClone)
		return worker_lacks(w, "cuGraphNodeFindInClone");
	status = w->cuda.cuGraphNodeFindInClone(&found, node, clone->graph);
	if (!status)
		status = graph_refresh(w, clone);
	if (!status)
		answer->number = graph_number_of(clone, found);
	/* The driver looks into graphs further inside, too. */
	return !status && answer->number == GRAPH_NO_NODE ? CUDA_ERROR_INVALID_VALUE : status;
}

/* ---- executable graphs ---- */

/* Of the app's; a library that was captured may have nodes of its own. */
static bool graph_host_node(struct worker *w, CUgraphNode node)
{
	CUDA_HOST_NODE_PARAMS params = {0};

	return !w->cuda.cuGraphHostNodeGetParams ||
	       (!w->cuda.cuGraphHostNodeGetParams(node, &params) &&
		       params.fn == host_function_run_node);
}

struct node_sums {
	uint32_t host, kernels; /* of conditional nodes nobody looks what is inside */
};

/* Those of child graphs too. */
static CUresult graph_sums(
	struct worker *w, CUgraph graph, uint32_t depth, struct node_sums *sums)
{
	enum { DEPTH = 16 };
	CUgraphNode *nodes;
	size_t count;
	CUresult status;

	if (depth == DEPTH)
		return CUDA_SUCCESS;
	status = graph_nodes_read(w, graph, &nodes, &count);
	for (size_t i = 0; i < count && !status; i++) {
		CUgraphNodeType type;
		CUgraph child;

		status = w->cuda.cuGraphNodeGetType(nodes[i], &type);
		if (status)
			break;
		if (type == CU_GRAPH_NODE_TYPE_HOST && graph_host_node(w, nodes[i]))
			sums->host++;
		sums->kernels += type == CU_GRAPH_NODE_TYPE_KERNEL ||
				 type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
		if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
			status = w->cuda.cuGraphChildGraphNodeGetGraph(nodes[i], &child);
			if (!status)
				status = graph_sums(w, child, depth + 1, sums);
		}
	}
	free(nodes);
	return status;
}

/* Its nodes and those of the graphs inside of them that have names. */
static uint32_t graph_total(const struct worker_graph *graph)
{
	uint32_t total = graph->count + 1;

	for (const struct worker_graph *child = graph->children; child; child = child->sibling)
		total += graph_total(child);
	return total;
}

/* Whether the driver's context keeps what kernels needed, for graphs that have some. */
static bool context_keeps(struct worker *w, const struct node_sums *sums)
{
	unsigned flags = 0;

	return w->graphs.tells_kernels && sums->kernels && w->cuda.cuCtxGetFlags &&
	       !w->cuda.cuCtxGetFlags(&flags) && flags & CU_CTX_LMEM_RESIZE_TO_MAX;
}

CUresult serve_vcudaGraphInstantiate(struct worker *w, struct request *r)
{
	const struct wire_vcudaGraphInstantiate *req = (const void *)r->body;
	struct wire_vcudaGraphInstantiate_reply *answer = (void *)r->answer;
	struct worker_graph *graph = graph_of(w, r, req->graph);
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = req->flags};
	struct node_sums sums = {0};
	struct worker_exec *exec;
	uint32_t total;
	CUresult status;

	answer->node = GRAPH_NO_NODE;
	if (worker_refused(r))
		return r->refused;
	if (!w->cuda.cuGraphInstantiateWithParams)
		return worker_lacks(w, "cuGraphInstantiateWithParams");
	total = graph_total(graph);
	if (!graph_charge(total))
		return CUDA_ERROR_OUT_OF_MEMORY;
	exec = calloc(1, sizeof(*exec));
	if (!exec) {
		graph_discharge(total);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	exec->count = total;
	status = graph_modules_add_graph(&exec->modules, graph)
			 ? graph_sums(w, graph->graph, 0, &sums)
			 : CUDA_ERROR_OUT_OF_MEMORY;
	exec->host_nodes = sums.host;
	if (!status)
		status = w->cuda.cuGraphInstantiateWithParams(
			&exec->exec, graph->graph, &params);
	answer->result = (uint32_t)params.result_out;
	if (!status && context_keeps(w, &sums))
		answer->result |= GRAPH_RESULT_KERNELS;
	if (params.hErrNode_out)
		answer->node = graph_number_of(graph, params.hErrNode_out);
	if (!status) {
		worker_bind(w, r, req->exec, KIND_CUgraphExec, exec);
		if (r->refused)
			w->cuda.cuGraphExecDestroy(exec->exec);
	}
	if (status || r->refused) {
		graph_discharge(exec->count);
		graph_modules_drop(w, &exec->modules);
		free(exec);
	}
	/* What is wrong with the graph goes with the answer. */
	answer->status = (uint32_t)status;
	return r->refused;
}

CUresult serve_vcudaGraphUpdate(struct worker *w, struct request *r)
{
	const struct wire_vcudaGraphUpdate *req = (const void *)r->body;
	struct wire_vcudaGraphUpdate_reply *answer = (void *)r->answer;
	struct worker_exec *exec = worker_handle(w, r, req->exec, KIND_CUgraphExec);
	struct worker_graph *graph = graph_of(w, r, req->graph);
	CUgraphExecUpdateResultInfo info = {.result = CU_GRAPH_EXEC_UPDATE_ERROR};
	struct node_sums sums = {0};
	CUresult status;

	answer->node = answer->from = GRAPH_NO_NODE;
	if (worker_refused(r))
		return r->refused;
	if (!w->cuda.cuGraphExecUpdate_v2)
		return worker_lacks(w, "cuGraphExecUpdate");
	status = graph_modules_add_graph(&exec->modules, graph)
			 ? graph_sums(w, graph->graph, 0, &sums)
			 : CUDA_ERROR_OUT_OF_MEMORY;
	if (!status)
		status = w->cuda.cuGraphExecUpdate_v2(exec->exec, graph->graph, &info);
	if (!status)
		exec->host_nodes = sums.host;
	answer->result = (uint32_t)info.result;
	answer->node = graph_number_of(graph, info.errorNode);
	answer->from = graph_number_of(graph, info.errorFromNode);
	/* That the graphs differ too much is an answer. */
	if (status == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE) {
		answer->status = (uint32_t)status;
		return CUDA_SUCCESS;
	}
	return status;
}

CUresult serve_cuGraphLaunch(struct worker *w, struct request *r)
{
	const struct wire_cuGraphLaunch *req = (const void *)r->body;
	struct worker_exec *exec = worker_handle(w, r, req->hGraph, KIND_CUgraphExec);
	struct worker_stream *stream = worker_stream_object(w, r, req->hStream);
	struct pending *look;
	CUresult status;
	bool captured;

	if (worker_refused(r))
		return r->refused;
	w->stats.launches++;
	captured = capture_of(w, stream);
	if (captured && !graph_modules_add_all(&w->graphs.captured, &exec->modules))
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = w->cuda.cuGraphLaunch(exec->exec, stream->stream);
	if (status || !exec->host_nodes || captured)
		return status;
	w->callbacks.outstanding += exec->host_nodes;
	/* As behind a host function on a stream: host_function.c. */
	look = fence_new(w, PENDING_LOOK, stream->context);
	if (look && !fence_stream(w, look, stream))
		fence_push(w, look);
	else if (look)
		fence_free(w, look);
	return CUDA_SUCCESS;
}

CUresult serve_cuGraphUpload(struct worker *w, struct request *r)
{
	const struct wire_cuGraphUpload *req = (const void *)r->body;
	struct worker_exec *exec = worker_handle(w, r, req->hGraph, KIND_CUgraphExec);
	CUstream stream = worker_stream(w, r, req->hStream);

	if (worker_refused(r))
		return r->refused;
	if (!w->cuda.cuGraphUpload)
		return worker_lacks(w, "cuGraphUpload");
	return w->cuda.cuGraphUpload(exec->exec, stream);
}

/* ---- the end ---- */

static CUresult graph_close_exec(struct worker *w, void *object)
{
	struct worker_exec *exec = object;
	CUresult status = w->cuda.cuGraphExecDestroy(exec->exec);

	graph_discharge(exec->count);
	graph_modules_drop(w, &exec->modules);
	free(exec);
	return status;
}

void graph_forget(struct worker *w, enum handle_kind kind, void *object)
{
	struct worker_graph *graph = object;

	if (kind == KIND_CUgraphExec) {
		graph_close_exec(w, object);
	} else if (graph->owned && !graph->origin) {
		w->cuda.cuGraphDestroy(graph->graph);
		graph_drop_object(w, graph);
	}
}

CUresult serve_vcudaGraphGone(struct worker *w, struct request *r)
{
	const struct wire_vcudaGraphGone *req = (const void *)r->body;
	struct name *name = handles_find(w, req->handle, KIND_CUgraphExec);
	struct worker_graph *graph;
	struct worker_exec *exec;
	CUresult status;

	if (name) {
		exec = name->object;
		handles_forget(w, name);
		return closing_do(w, graph_close_exec, exec);
	}
	graph = graph_of(w, r, req->handle);
	if (!graph)
		return r->refused;
	if (!graph->owned || graph->origin)
		return CUDA_ERROR_INVALID_VALUE;
	status = w->cuda.cuGraphDestroy(graph->graph);
	graph_drop_object(w, graph);
	return status;
}

/* ---- a picture ---- */

/* The driver prints into a file of ours: memory with a name in /proc. */
CUresult serve_vcudaGraphDot(struct worker *w, struct request *r)
{
	const struct wire_vcudaGraphDot *req = (const void *)r->body;
	struct wire_vcudaGraphDot_reply *answer = (void *)r->answer;
	struct worker_graph *graph = graph_of(w, r, req->graph);
	char path[64], text[1900];
	CUresult status;
	off_t size;
	ssize_t n;

	if (worker_refused(r))
		return r->refused;
	if (!w->cuda.cuGraphDebugDotPrint)
		return worker_lacks(w, "cuGraphDebugDotPrint");
	if (!req->first) {
		if (w->graphs.dot)
			close(w->graphs.dot);
		w->graphs.dot = memfd_create("vcuda-graph", MFD_CLOEXEC);
		if (w->graphs.dot <= 0) {
			w->graphs.dot = 0;
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		snprintf(path, sizeof(path), "/proc/self/fd/%d", w->graphs.dot);
		status = w->cuda.cuGraphDebugDotPrint(graph->graph, path, req->flags);
		if (status)
			return status;
	}
	size = w->graphs.dot ? lseek(w->graphs.dot, 0, SEEK_END) : 0;
	if (size < 0 || (uint64_t)size < req->first)
		return CUDA_ERROR_INVALID_VALUE;
	if ((uint64_t)size > DOT_MAX)
		size = DOT_MAX;
	n = pread(w->graphs.dot, text, sizeof(text), (off_t)req->first);
	if (n < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	answer->total = (uint64_t)size;
	answer->count = (uint32_t)n;
	if (n)
		memcpy(worker_out(r, &answer->text, (uint64_t)n), text, (size_t)n);
	return r->refused;
}
