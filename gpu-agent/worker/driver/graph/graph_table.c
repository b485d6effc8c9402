/* SPDX-License-Identifier: Apache-2.0
 *
 * Which node of a graph has which number.
 */
#include "gpu-agent/worker/loop/closing.h"
#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/driver/graph/graph.h"
#include "gpu-agent/worker/loop/fence.h"
#include "gpu-agent/worker/handle.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GRAPH_SESSION_NODES (1u << 20)

static uint32_t graph_held; /* this process's: one session */

bool graph_charge(uint32_t count)
{
	if (count > GRAPH_SESSION_NODES - graph_held)
		return false;
	graph_held += count;
	return true;
}

void graph_discharge(uint32_t count)
{
	graph_held -= count;
}

static uint32_t graph_slot(const struct worker_graph *graph, CUgraphNode node)
{
	uint64_t hash = (uint64_t)(uintptr_t)node * 0x9e3779b97f4a7c15u;

	return (uint32_t)(hash >> 32) & (graph->slot_count - 1);
}

uint32_t graph_number_of(const struct worker_graph *graph, CUgraphNode node)
{
	if (!graph->slot_count || !node)
		return GRAPH_NO_NODE;
	for (uint32_t at = graph_slot(graph, node);; at = (at + 1) & (graph->slot_count - 1)) {
		uint32_t found = graph->slots[at];

		if (!found)
			return GRAPH_NO_NODE;
		if (graph->nodes[found - 1] == node)
			return found - 1;
	}
}

static void graph_fill_slots(struct worker_graph *graph)
{
	memset(graph->slots, 0, graph->slot_count * sizeof(*graph->slots));
	for (uint32_t i = 0; i < graph->count; i++) {
		uint32_t at = graph_slot(graph, graph->nodes[i]);

		if (!graph->nodes[i])
			continue;
		while (graph->slots[at])
			at = (at + 1) & (graph->slot_count - 1);
		graph->slots[at] = i + 1;
	}
}

void graph_remove_number(struct worker_graph *graph, uint32_t number)
{
	graph->nodes[number] = NULL;
	graph_fill_slots(graph);
}

static bool graph_grow(struct worker_graph *graph)
{
	uint32_t room = graph->room ? 2 * graph->room : 32;
	CUgraphNode *nodes;
	uint32_t *slots;

	if (graph->count == GRAPH_NODES_MAX)
		return false;
	nodes = realloc(graph->nodes, room * sizeof(CUgraphNode));
	if (!nodes)
		return false;
	graph->nodes = nodes;
	slots = calloc(2 * room, sizeof(*slots));
	if (!slots)
		return false;
	free(graph->slots);
	graph->slots = slots;
	graph->slot_count = 2 * room;
	graph->room = room;
	graph_fill_slots(graph);
	return true;
}

bool graph_add_number(struct worker_graph *graph, CUgraphNode node)
{
	uint32_t at;

	if ((graph->count == graph->room && !graph_grow(graph)) || !graph_charge(1))
		return false;
	graph->nodes[graph->count++] = node;
	if (!node)
		return true; /* a number that stays empty */
	at = graph_slot(graph, node);
	while (graph->slots[at])
		at = (at + 1) & (graph->slot_count - 1);
	graph->slots[at] = graph->count;
	return true;
}

CUresult graph_nodes_read(struct worker *w, CUgraph graph, CUgraphNode **nodes, size_t *count)
{
	CUresult status;

	*nodes = NULL;
	*count = 0;
	if (!w->cuda.cuGraphGetNodes)
		return worker_lacks(w, "cuGraphGetNodes");
	status = w->cuda.cuGraphGetNodes(graph, NULL, count);
	if (status || !*count)
		return status;
	if (*count > GRAPH_NODES_MAX)
		return CUDA_ERROR_NOT_SUPPORTED;
	*nodes = calloc(*count, sizeof(CUgraphNode));
	if (!*nodes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return w->cuda.cuGraphGetNodes(graph, *nodes, count);
}

CUresult graph_refresh(struct worker *w, struct worker_graph *graph)
{
	CUgraphNode *nodes;
	size_t count;
	CUresult status = graph_nodes_read(w, graph->graph, &nodes, &count);

	for (size_t i = 0; i < count && !status; i++)
		if (graph_number_of(graph, nodes[i]) == GRAPH_NO_NODE &&
			!graph_add_number(graph, nodes[i]))
			status = CUDA_ERROR_OUT_OF_MEMORY;
	free(nodes);
	return status;
}

struct worker_graph *graph_of(struct worker *w, struct request *r, uint64_t handle)
{
	return worker_handle(w, r, handle, KIND_CUgraph);
}

CUgraph graph_object(struct worker *w, struct request *r, uint64_t handle)
{
	const struct worker_graph *graph = graph_of(w, r, handle);

	return graph ? graph->graph : NULL;
}

CUgraphExec graph_exec_object(struct worker *w, struct request *r, uint64_t handle)
{
	const struct worker_exec *exec = worker_handle(w, r, handle, KIND_CUgraphExec);

	return exec ? exec->exec : NULL;
}

CUgraphNode graph_node(struct request *r, struct worker_graph *graph, uint32_t number)
{
	if (!graph || number >= graph->count || !graph->nodes[number]) {
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
		return NULL;
	}
	return graph->nodes[number];
}

CUgraphNode *graph_nodes_in(
	struct request *r, struct worker_graph *graph, const uint32_t *numbers, uint32_t count)
{
	CUgraphNode *nodes;

	if (!count || r->refused)
		return NULL;
	nodes = calloc(count, sizeof(CUgraphNode));
	if (!nodes)
		worker_refuse(r, CUDA_ERROR_OUT_OF_MEMORY);
	for (uint32_t i = 0; nodes && i < count; i++)
		nodes[i] = graph_node(r, graph, numbers[i]);
	if (r->refused) {
		free(nodes);
		return NULL;
	}
	return nodes;
}
