/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking at a graph and changing its edges.  Types and edges are asked for once and kept; what
 * a capture adds is asked for again while it goes on.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/driver/forms.h"
#include "shim/generated/cuda_hand.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/generated/vcuda_send.h"
#include "shim/engine/engine.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/graph/graph.h"
#include "shim/driver/memory/pinned/host.h"

#define EDGES_A_FRAME 1024

_Static_assert(sizeof(CUgraphEdgeData) == sizeof(((struct graph_edge *)0)->data), "edge data");

/* ---- what the worker knows ---- */

static bool types_room(struct graph *graph, uint32_t count)
{
	uint32_t *types = realloc(graph->types, (count ? count : 1) * sizeof(*types));

	if (types)
		graph->types = types;
	return types != NULL;
}

/* Fetches the list WHAT from element FIRST on into *LIST (malloc'ed, of *COUNT elements). */
static CUresult list_fetch(const struct graph *graph, enum graph_list what, uint32_t first,
	size_t element, void **list, uint32_t *count, uint32_t *total)
{
	unsigned char *to = NULL;
	uint32_t have = 0;
	CUresult status;

	*total = 0;
	do {
		const struct wire_vcudaGraphList_reply *reply;
		struct wire_vcudaGraphList *body;
		const void *run = NULL;
		struct shim_call call;
		size_t bytes = 0;

		body = shim_begin(&call, OP_vcudaGraphList, sizeof(*body));
		body->graph = graph->handle;
		body->what = what;
		body->first = first + have;
		reply = shim_wait(&call, sizeof(*reply));
		if (reply) {
			unsigned char *more;

			*total = reply->total;
			run = shim_run(&call, &reply->list, &bytes);
			bytes -= bytes % element;
			more = realloc(to, (size_t)have * element + bytes + 1);
			if (more) {
				to = more;
				if (bytes)
					memcpy(to + (size_t)have * element, run, bytes);
				have += (uint32_t)(bytes / element);
			} else {
				call.status = CUDA_ERROR_OUT_OF_MEMORY;
			}
		}
		status = shim_end(&call);
		if (!bytes)
			break;
	} while (!status && first + have < *total);
	if (!status && first + have < *total)
		status = CUDA_ERROR_UNKNOWN; /* the list shrank while it was read */
	if (status) {
		free(to);
		return status;
	}
	*list = to;
	*count = have;
	return CUDA_SUCCESS;
}

/* What the worker has an empty node for. */
static void types_of_memory(struct graph *graph)
{
	for (size_t i = 0; graph->has_memory && i < graph->parts.count; i++) {
		const struct part_place *place = &graph->parts.places[i];
		enum part_kind kind = place->part->kind;

		if (place->graph == graph->handle && place->node < graph->types_known &&
			(kind == PART_ALLOC || kind == PART_FREE))
			graph->types[place->node] = kind == PART_ALLOC
							    ? CU_GRAPH_NODE_TYPE_MEM_ALLOC
							    : CU_GRAPH_NODE_TYPE_MEM_FREE;
	}
}

void graph_listed(struct graph *graph, const unsigned char *list, size_t bytes, uint32_t types,
	uint32_t edges)
{
	size_t before = types * sizeof(*graph->types);
	struct graph_edge *all;

	if (!types || types != graph->count || before > bytes ||
		edges > (bytes - before) / sizeof(*all) || !types_room(graph, types))
		return;
	all = malloc(edges * sizeof(*all) + 1);
	if (!all)
		return;
	memcpy(graph->types, list, before);
	memcpy(all, list + before, edges * sizeof(*all));
	graph->types_known = types;
	types_of_memory(graph);
	free(graph->edges);
	graph->edges = all;
	graph->edge_count = edges;
	graph->edges_known = true;
}

static CUresult graph_know_types(struct graph *graph)
{
	uint32_t count, total;
	void *list;
	CUresult status;

	if (graph->types_known >= graph->count && !graph->capturing)
		return CUDA_SUCCESS;
	status = list_fetch(graph, GRAPH_TYPES, graph->types_known, sizeof(uint32_t), &list,
		&count, &total);
	if (status)
		return status;
	if (total > GRAPH_NODES_MAX || count > GRAPH_NODES_MAX - graph->types_known ||
		!types_room(graph, graph->types_known + count)) {
		free(list);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	memcpy(graph->types + graph->types_known, list, count * sizeof(uint32_t));
	graph->types_known += count;
	types_of_memory(graph);
	if (graph->count < graph->types_known)
		graph->count = graph->types_known;
	free(list);
	return CUDA_SUCCESS;
}

CUresult graph_recount(struct graph *graph)
{
	return graph->capturing ? graph_know_types(graph) : CUDA_SUCCESS;
}

/* The device's own launches cannot wait for memory that the program can page out. */
static bool parts_pageable(const struct parts *parts)
{
	struct host_range range;

	for (size_t i = 0; i < parts->count; i++) {
		const struct part *part = parts->places[i].part;

		if ((part->kind == PART_IN || part->kind == PART_OUT ||
			    part->kind == PART_WITHIN) &&
			!host_find((const void *)(uintptr_t)part->copy.host, &range))
			return true;
	}
	return false;
}

bool graph_for_device(struct graph *graph)
{
	bool some = false;

	if (graph_know_types(graph))
		return true;
	if (parts_pageable(&graph->parts))
		return false;
	for (uint32_t i = 0; i < graph->types_known; i++) {
		if (graph->types[i] == GRAPH_NO_NODE)
			continue;
		if (graph->types[i] != CU_GRAPH_NODE_TYPE_KERNEL &&
			graph->types[i] != CU_GRAPH_NODE_TYPE_MEMCPY &&
			graph->types[i] != CU_GRAPH_NODE_TYPE_MEMSET &&
			graph->types[i] != CU_GRAPH_NODE_TYPE_GRAPH)
			return false;
		some = true;
	}
	return some;
}

static CUresult graph_know_edges(struct graph *graph)
{
	uint32_t total;
	void *list;
	CUresult status;

	if (graph->edges_known && !graph->capturing)
		return CUDA_SUCCESS;
	if (graph->captured)
		captures.listed = true;
	status = graph_know_types(graph); /* which numbers everything that an edge can name */
	if (!status)
		status = list_fetch(graph, GRAPH_EDGES, 0, sizeof(struct graph_edge), &list,
			&graph->edge_count, &total);
	if (status)
		return status;
	free(graph->edges);
	graph->edges = list;
	graph->edges_known = true;
	return CUDA_SUCCESS;
}

CUresult graph_node_type(struct graph *graph, uint32_t number, uint32_t *type)
{
	CUresult status = graph_know_types(graph);

	if (status)
		return status;
	if (number >= graph->types_known)
		return CUDA_ERROR_INVALID_VALUE;
	*type = graph->types[number];
	return CUDA_SUCCESS;
}

void graph_clone_types(struct graph *clone, const struct graph *graph)
{
	if (!graph->types_known || !types_room(clone, graph->types_known))
		return;
	memcpy(clone->types, graph->types, graph->types_known * sizeof(*clone->types));
	clone->types_known = graph->types_known;
}

void graph_added(struct graph *graph, uint32_t type)
{
	if (graph->types_known == graph->count && types_room(graph, graph->count + 1))
		graph->types[graph->types_known++] = type;
	graph->count++;
	graph->edges_known = false;
}

/* ---- lists for the app ---- */

/* As all of these calls have it: the count alone, or as many as there is room for. */
struct app_list {
	CUgraphNode *nodes;
	CUgraphEdgeData *data;
	size_t room, count;
};

static bool list_put(struct app_list *list, struct graph *graph, uint32_t number,
	const struct graph_edge *edge)
{
	if (list->nodes && list->count < list->room) {
		list->nodes[list->count] = graph_node_name(graph, number);
		if (!list->nodes[list->count])
			return false;
		if (list->data && edge)
			memcpy(&list->data[list->count], edge->data, sizeof(*list->data));
	}
	list->count++;
	return true;
}

/* Edges that have more to say than before and behind need a list that says it. */
static bool edge_plain(const struct graph_edge *edge)
{
	static const uint8_t zeros[sizeof(edge->data)];

	return !memcmp(edge->data, zeros, sizeof(zeros));
}

static CUresult list_end(struct app_list *list, size_t *count, bool whole)
{
	if (!whole)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = list->count; list->nodes && i < list->room; i++)
		list->nodes[i] = NULL;
	*count = list->nodes && list->count > list->room ? list->room : list->count;
	return CUDA_SUCCESS;
}

CUresult hand_cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
{
	struct graph *graph = graph_find(hGraph);
	struct app_list list = {.nodes = nodes};
	bool whole = true;
	CUresult status;

	if (!graph || !numNodes || (nodes && !*numNodes))
		return CUDA_ERROR_INVALID_VALUE;
	/* How many there are is all that most programs ask. */
	if (!nodes && !graph->capturing && !graph->pruned) {
		*numNodes = graph->count;
		return CUDA_SUCCESS;
	}
	list.room = *numNodes;
	status = graph_know_types(graph);
	if (status)
		return status;
	for (uint32_t i = 0; i < graph->types_known && whole; i++)
		if (graph->types[i] != GRAPH_NO_NODE)
			whole = list_put(&list, graph, i, NULL);
	return list_end(&list, numNodes, whole);
}

CUresult hand_cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes)
{
	struct graph *graph = graph_find(hGraph);
	struct app_list list = {.nodes = rootNodes};
	unsigned char *behind;
	bool whole = true;
	CUresult status;

	if (!graph || !numRootNodes || (rootNodes && !*numRootNodes))
		return CUDA_ERROR_INVALID_VALUE;
	list.room = *numRootNodes;
	status = graph_know_edges(graph);
	if (!status)
		status = graph_know_types(graph);
	if (status)
		return status;
	behind = calloc(1, graph->types_known + 1);
	if (!behind)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < graph->edge_count; i++)
		if (graph->edges[i].to < graph->types_known)
			behind[graph->edges[i].to] = 1;
	/* The newest first, as natively. */
	for (uint32_t i = graph->types_known; i-- && whole;)
		if (graph->types[i] != GRAPH_NO_NODE && !behind[i])
			whole = list_put(&list, graph, i, NULL);
	free(behind);
	return list_end(&list, numRootNodes, whole);
}

CUresult hand_cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to,
	CUgraphEdgeData *edgeData, size_t *numEdges)
{
	struct graph *graph = graph_find(hGraph);
	size_t room;
	CUresult status;

	if (!graph || !numEdges || !from != !to || (edgeData && !from) || (from && !*numEdges))
		return CUDA_ERROR_INVALID_VALUE;
	status = graph_know_edges(graph);
	if (status)
		return status;
	room = *numEdges;
	for (uint32_t i = 0; from && i < graph->edge_count && i < room; i++) {
		const struct graph_edge *edge = &graph->edges[i];

		if (!edgeData && !edge_plain(edge))
			return CUDA_ERROR_LOSSY_QUERY;
		from[i] = graph_node_name(graph, edge->from);
		to[i] = graph_node_name(graph, edge->to);
		if (!from[i] || !to[i])
			return CUDA_ERROR_OUT_OF_MEMORY;
		if (edgeData)
			memcpy(&edgeData[i], edge->data, sizeof(*edgeData));
	}
	for (size_t i = graph->edge_count; from && i < room; i++) {
		from[i] = to[i] = NULL;
		if (edgeData)
			edgeData[i] = (CUgraphEdgeData){0};
	}
	if (!from || room > graph->edge_count)
		*numEdges = graph->edge_count;
	return CUDA_SUCCESS;
}

/* The nodes at the other end of a node's edges. LOSSLESS: there is room for edge data. */
CUresult graph_node_neighbours(CUgraphNode hNode, bool before, CUgraphNode *nodes,
	CUgraphEdgeData *data, bool lossless, size_t *count)
{
	struct graph_node *node = graph_node_find(hNode);
	struct app_list list = {.nodes = nodes, .data = data};
	bool whole = true;
	CUresult status;

	if (!node || !count || (data && !nodes) || (nodes && !*count))
		return CUDA_ERROR_INVALID_VALUE;
	list.room = *count;
	status = graph_know_edges(node->graph);
	if (status)
		return status;
	for (uint32_t i = 0; i < node->graph->edge_count && whole; i++) {
		const struct graph_edge *edge = &node->graph->edges[i];

		if ((before ? edge->to : edge->from) != node->number)
			continue;
		if (nodes && !lossless && !edge_plain(edge))
			return CUDA_ERROR_LOSSY_QUERY;
		whole = list_put(&list, node->graph, before ? edge->from : edge->to, edge);
	}
	return list_end(&list, count, whole);
}

CUresult hand_cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type)
{
	struct graph_node *node = graph_node_find(hNode);
	uint32_t found;
	CUresult status;

	if (!node || !type)
		return CUDA_ERROR_INVALID_VALUE;
	status = graph_node_type(node->graph, node->number, &found);
	if (!status)
		*type = (CUgraphNodeType)found;
	return status;
}

/* ---- changes ---- */

/* Awaited: whether there is such an edge already is for the driver to say. */
static CUresult edges_send(struct graph *graph, bool remove, const CUgraphNode *from,
	const CUgraphNode *to, const CUgraphEdgeData *data, size_t n)
{
	struct graph_edge edges[EDGES_A_FRAME];
	struct wire_vcudaGraphEdges *body;
	struct shim_call call;

	for (size_t i = 0; i < n; i++) {
		struct graph_node *a = graph_node_find(from[i]), *b = graph_node_find(to[i]);

		if (!a || !b || a->graph != graph || b->graph != graph || a == b)
			return CUDA_ERROR_INVALID_VALUE;
		edges[i] = (struct graph_edge){.from = a->number, .to = b->number};
		if (data)
			memcpy(edges[i].data, &data[i], sizeof(edges[i].data));
	}
	body = shim_begin(&call, OP_vcudaGraphEdges, sizeof(*body));
	body->graph = graph->handle;
	body->remove = remove;
	body->count = (uint32_t)n;
	shim_put(&call, &body->edges, edges, n * sizeof(*edges));
	shim_wait(&call, 0);
	return shim_end(&call);
}

CUresult graph_edges_change(CUgraph hGraph, bool remove, const CUgraphNode *from,
	const CUgraphNode *to, const CUgraphEdgeData *data, size_t count)
{
	struct graph *graph = graph_find(hGraph);
	CUresult status = CUDA_SUCCESS;

	if (!graph || (count && (!from || !to)))
		return CUDA_ERROR_INVALID_VALUE;
	if (remove && graph->has_memory)
		return CUDA_ERROR_NOT_SUPPORTED;
	for (size_t i = 0, n; i < count && !status; i += n) {
		n = count - i < EDGES_A_FRAME ? count - i : EDGES_A_FRAME;
		status = edges_send(graph, remove, from + i, to + i, data ? data + i : NULL, n);
	}
	graph->edges_known = false;
	if (remove)
		graph_lines_end(graph);
	return status;
}

CUresult hand_cuGraphDestroyNode(CUgraphNode hNode)
{
	struct graph_node *node = graph_node_find(hNode);
	struct graph *graph;
	uint32_t number;
	CUresult status;

	if (!node)
		return CUDA_ERROR_INVALID_VALUE;
	if (node->graph->capturing)
		return CUDA_ERROR_ILLEGAL_STATE;
	graph = node->graph;
	if (graph->has_memory)
		return CUDA_ERROR_NOT_SUPPORTED;
	number = node->number;
	status = graph_know_types(graph);
	if (status)
		return status;
	graph_child_gone(graph, number);
	parts_drop_child(&graph->parts, number);
	for (size_t i = 0; i < graph->parts.count; i++) {
		struct part_place *place = &graph->parts.places[i];

		if (place->graph != graph->handle || place->node != number)
			continue;
		parts_remove(&graph->parts, i--);
	}
	graph->types[number] = GRAPH_NO_NODE;
	graph->pruned = true;
	graph_lines_end(graph);
	graph->nodes[number] = NULL;
	graph->edges_known = false;
	graph_node_free(node);
	return send_vcudaGraphRemove(graph->handle, number);
}
