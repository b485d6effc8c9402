/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of a graph's nodes and edges; edges and nodes that go, and edges that come.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/driver/graph/graph.h"

/* GRAPH_NO_NODE: it is gone. */
static CUresult node_type(
	struct worker *w, const struct worker_graph *graph, uint32_t number, uint32_t *type)
{
	CUgraphNodeType of = (CUgraphNodeType)0;
	CUgraphNode node = graph->nodes[number];
	CUresult status = node ? w->cuda.cuGraphNodeGetType(node, &of) : CUDA_SUCCESS;

	*type = node ? (uint32_t)of : GRAPH_NO_NODE;
	return status;
}

static CUresult list_types(struct worker *w, struct request *r, struct worker_graph *graph,
	uint32_t first, struct wire_vcudaGraphList_reply *answer)
{
	enum { ROOM = GRAPH_LIST_BYTES / sizeof(uint32_t) };
	uint32_t types[ROOM];
	CUresult status = graph_refresh(w, graph);

	answer->total = graph->count;
	for (uint32_t i = first; i < graph->count && answer->count < ROOM && !status; i++)
		status = node_type(w, graph, i, &types[answer->count++]);
	if (!status && answer->count)
		memcpy(worker_out(r, &answer->list, answer->count * sizeof(*types)), types,
			answer->count * sizeof(*types));
	return status;
}

struct edges {
	CUgraphNode *from, *to;
	CUgraphEdgeData *data;
	size_t count;
};

static CUresult edges_get(struct worker *w, CUgraph graph, struct edges *e)
{
	const struct cuda_driver *cuda = &w->cuda;
	CUresult status;

	if (!cuda->cuGraphGetEdges_v2)
		return worker_lacks(w, "cuGraphGetEdges");
	status = cuda->cuGraphGetEdges_v2(graph, NULL, NULL, NULL, &e->count);
	if (status || !e->count)
		return status;
	e->from = calloc(e->count, sizeof(CUgraphNode));
	e->to = calloc(e->count, sizeof(CUgraphNode));
	e->data = calloc(e->count, sizeof(*e->data));
	if (!e->from || !e->to || !e->data)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return cuda->cuGraphGetEdges_v2(graph, e->from, e->to, e->data, &e->count);
}

static void edges_free(struct edges *e)
{
	free(e->from);
	free(e->to);
	free(e->data);
}

static struct graph_edge edge_of(
	const struct worker_graph *graph, const struct edges *e, size_t i)
{
	struct graph_edge edge = {.from = graph_number_of(graph, e->from[i]),
		.to = graph_number_of(graph, e->to[i])};

	memcpy(edge.data, &e->data[i], sizeof(edge.data));
	return edge;
}

static CUresult list_edges(struct worker *w, struct request *r, struct worker_graph *graph,
	uint32_t first, struct wire_vcudaGraphList_reply *answer)
{
	enum { ROOM = GRAPH_LIST_BYTES / sizeof(struct graph_edge) };
	struct graph_edge list[ROOM];
	struct edges e = {0};
	CUresult status = edges_get(w, graph->graph, &e);

	answer->total = (uint32_t)e.count;
	for (size_t i = first; !status && i < e.count && answer->count < ROOM; i++)
		list[answer->count++] = edge_of(graph, &e, i);
	if (!status && answer->count)
		memcpy(worker_out(r, &answer->list, answer->count * sizeof(*list)), list,
			answer->count * sizeof(*list));
	edges_free(&e);
	return status;
}

size_t graph_list_whole(struct worker *w, struct worker_graph *graph, unsigned char *to,
	uint32_t *types, uint32_t *edges)
{
	size_t each = sizeof(uint32_t), bytes = graph->count * each;
	struct edges e = {0};
	bool whole = bytes <= GRAPH_LIST_BYTES && !edges_get(w, graph->graph, &e) &&
		     e.count <= (GRAPH_LIST_BYTES - bytes) / sizeof(struct graph_edge);

	for (uint32_t i = 0; i < graph->count && whole; i++) {
		uint32_t type;

		whole = !node_type(w, graph, i, &type);
		memcpy(to + i * each, &type, each);
	}
	for (size_t i = 0; i < e.count && whole; i++, bytes += sizeof(struct graph_edge)) {
		struct graph_edge edge = edge_of(graph, &e, i);

		memcpy(to + bytes, &edge, sizeof(edge));
	}
	*types = whole ? graph->count : 0;
	*edges = whole ? (uint32_t)e.count : 0;
	edges_free(&e);
	return whole ? bytes : 0;
}

CUresult serve_vcudaGraphList(struct worker *w, struct request *r)
{
	const struct wire_vcudaGraphList *req = (const void *)r->body;
	struct wire_vcudaGraphList_reply *answer = (void *)r->answer;
	struct worker_graph *graph = graph_of(w, r, req->graph);

	if (worker_refused(r))
		return r->refused;
	switch (req->what) {
	case GRAPH_TYPES: return list_types(w, r, graph, req->first, answer);
	case GRAPH_EDGES: return list_edges(w, r, graph, req->first, answer);
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult serve_vcudaGraphEdges(struct worker *w, struct request *r)
{
	const struct wire_vcudaGraphEdges *req = (const void *)r->body;
	struct worker_graph *graph = graph_of(w, r, req->graph);
	const struct graph_edge *edges = worker_in(r, &req->edges, 16ull * req->count);
	const struct cuda_driver *cuda = &w->cuda;
	struct edges e = {0};
	CUresult status = CUDA_SUCCESS;

	if (worker_refused(r) || !req->count)
		return r->refused;
	e.from = calloc(req->count, sizeof(CUgraphNode));
	e.to = calloc(req->count, sizeof(CUgraphNode));
	e.data = calloc(req->count, sizeof(*e.data));
	if (!e.from || !e.to || !e.data)
		status = CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; !status && i < req->count; i++) {
		e.from[i] = graph_node(r, graph, edges[i].from);
		e.to[i] = graph_node(r, graph, edges[i].to);
		memcpy(&e.data[i], edges[i].data, sizeof(e.data[i]));
	}
	if (!status)
		status = r->refused;
	if (!status &&
		(!cuda->cuGraphAddDependencies_v2 || !cuda->cuGraphRemoveDependencies_v2))
		status = worker_lacks(w, "cuGraphAddDependencies");
	if (!status)
		status = req->remove ? cuda->cuGraphRemoveDependencies_v2(
					       graph->graph, e.from, e.to, e.data, req->count)
				     : cuda->cuGraphAddDependencies_v2(
					       graph->graph, e.from, e.to, e.data, req->count);
	edges_free(&e);
	return status;
}

CUresult serve_vcudaGraphRemove(struct worker *w, struct request *r)
{
	const struct wire_vcudaGraphRemove *req = (const void *)r->body;
	struct worker_graph *graph = graph_of(w, r, req->graph);
	CUgraphNode node = graph_node(r, graph, req->node);
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	status = w->cuda.cuGraphDestroyNode(node);
	if (status)
		return status;
	graph_drop_children(w, graph, req->node);
	graph_remove_number(graph, req->node);
	return CUDA_SUCCESS;
}
