/* SPDX-License-Identifier: Apache-2.0
 *
 * A node that is there: asking for its parameters, and changing them in the graph or in an
 * executable one.
 */
#include <stdlib.h>
#include <string.h>

#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/graph/graph_node.h"
#include "shim/driver/memory/mirror/mirror.h"
#include "shim/engine/driver.h"
#include "shim/generated/cuda_hand.h"
#include "shim/engine/engine.h"

static CUresult set_send(const struct graph_node *node, const struct graph_exec *exec,
	const struct node_params *p)
{
	struct wire_vcudaGraphSet *body;
	struct shim_call call;
	CUresult status = pinned_before(p->bytes, p->size);

	if (status)
		return status;
	body = shim_begin(&call, OP_vcudaGraphSet, sizeof(*body));
	body->graph = node->graph->handle;
	body->node = node->number;
	body->exec = exec ? exec->handle : 0;
	body->type = p->type;
	body->bytes = (uint32_t)p->size;
	shim_put(&call, &body->params, p->bytes, p->size);
	if (!p->awaited)
		return shim_post(&call);
	shim_wait(&call, 0);
	return shim_end(&call);
}

CUresult node_get_all(
	const struct graph_node *node, uint32_t type, unsigned char **params, size_t *bytes)
{
	size_t total = 0, have = 0, n;
	unsigned char *to = NULL;
	CUresult status;

	if (node->number < node->graph->types_known && node->graph->types[node->number] != type)
		return CUDA_ERROR_INVALID_VALUE;
	do {
		const struct wire_vcudaGraphGet_reply *reply;
		struct wire_vcudaGraphGet *body;
		struct shim_call call;
		const void *run;

		n = 0;
		body = shim_begin(&call, OP_vcudaGraphGet, sizeof(*body));
		body->graph = node->graph->handle;
		body->node = node->number;
		body->first = (uint32_t)have;
		reply = shim_wait(&call, sizeof(*reply));
		if (reply) {
			run = shim_run(&call, &reply->params, &n);
			if (!to) {
				total = reply->total;
				to = malloc(total + 1);
			}
			if (!to)
				call.status = CUDA_ERROR_OUT_OF_MEMORY;
			else if (reply->type != type || n > total - have)
				call.status = CUDA_ERROR_INVALID_VALUE;
			else if (n)
				memcpy(to + have, run, n);
		}
		status = shim_end(&call);
		have += n;
	} while (!status && n && have < total);
	if (!status && have < total)
		status = CUDA_ERROR_UNKNOWN;
	if (status) {
		free(to);
		return status;
	}
	*params = to;
	*bytes = total;
	return CUDA_SUCCESS;
}

CUresult node_get(
	const struct graph_node *node, uint32_t type, void *to, size_t room, size_t *bytes)
{
	unsigned char *params;
	CUresult status = node_get_all(node, type, &params, bytes);

	if (status)
		return status;
	if (*bytes > room)
		status = CUDA_ERROR_INVALID_VALUE;
	else
		memcpy(to, params, *bytes);
	free(params);
	return status;
}

/* A captured one is found by its stand-in, its ticket or its event, which the worker names. */
static struct part_place *node_place_captured(
	const struct graph_node *node, uint32_t type, struct parts *parts)
{
	union {
		struct graph_copy copy;
		struct graph_number number;
	} params;
	size_t bytes;

	if ((type != CU_GRAPH_NODE_TYPE_MEMCPY && type != CU_GRAPH_NODE_TYPE_HOST &&
		    type != CU_GRAPH_NODE_TYPE_EVENT_RECORD) ||
		node_get(node, type, &params, sizeof(params), &bytes))
		return NULL;
	for (size_t i = 0; i < parts->count; i++) {
		struct part_place *place = &parts->places[i];
		const struct part *part = place->part;
		bool same;

		if (type == CU_GRAPH_NODE_TYPE_MEMCPY)
			same = part_is(part, &params.copy);
		else
			same = part->number && part->number == params.number.number;
		if (!same)
			continue;
		place->graph = node->graph->handle;
		place->node = node->number;
		return place;
	}
	return NULL;
}

struct part_place *node_place(const struct graph_node *node, struct parts *parts)
{
	bool unknown = false;
	uint32_t type;

	for (size_t i = 0; i < parts->count; i++) {
		struct part_place *place = &parts->places[i];

		if (place->graph == node->graph->handle && place->node == node->number)
			return place;
		unknown |= place->node == GRAPH_NO_NODE;
	}
	if (!unknown || graph_node_type(node->graph, node->number, &type))
		return NULL;
	return node_place_captured(node, type, parts);
}

static CUresult node_is(const struct graph_node *node, uint32_t type)
{
	uint32_t found;
	CUresult status = graph_node_type(node->graph, node->number, &found);

	return status || found == type ? status : CUDA_ERROR_INVALID_VALUE;
}

CUresult node_set(
	CUgraphNode hNode, const CUgraphExec *hExec, struct node_params *p, CUresult status)
{
	struct graph_exec *exec = hExec ? graph_exec_find(*hExec) : NULL;
	struct graph_node *node = graph_node_find(hNode);
	struct part_place *place;
	struct parts *parts = NULL;

	/* The node before its new parameters, as natively. Of captured ones the type may not be
	 * known here. */
	if (!node || (hExec && !exec) ||
		(exec && p->type != CU_GRAPH_NODE_TYPE_EMPTY && !exec_has_node(exec, node)) ||
		(node->number < node->graph->types_known &&
			node->graph->types[node->number] != p->type))
		status = CUDA_ERROR_INVALID_VALUE;
	else if (exec && !status)
		exec_ask_kept(exec, node, p);
	if (exec && node && exec_kept_other(exec, node, p))
		status = CUDA_ERROR_INVALID_VALUE;
	if (!status) {
		parts = exec ? &exec->parts : &node->graph->parts;
		place = node_place(node, parts);
		/* Drivers have no call that sets an empty node. */
		status = p->type == CU_GRAPH_NODE_TYPE_EMPTY ? node_is(node, p->type)
							     : set_send(node, exec, p);
	}
	if (!status && place) {
		if (p->part) {
			part_put(place->part);
			place->part = p->part;
		} else {
			parts_remove(parts, (size_t)(place - parts->places));
		}
		p->part = NULL;
	} else if (!status && p->part) {
		if (parts_add(parts, p->part, node->graph->handle, node->number))
			p->part = NULL;
		else
			status = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!status && !exec)
		node_describe(node, p);
	node_params_free(p);
	return status;
}

/* A copy with memory that kernels reach. */
static bool part_reached(const struct part *part)
{
	return (part->kind == PART_IN || part->kind == PART_OUT ||
		       part->kind == PART_THROUGH) &&
	       mirror_inside(part->copy.host, 1);
}

CUresult graph_reach(struct graph *graph)
{
	CUresult status = CUDA_SUCCESS;
	CUDA_MEMCPY3D copy;
	bool some = false;

	if (!mirror_any())
		return CUDA_SUCCESS;
	for (size_t i = 0; i < graph->parts.count; i++)
		some |= part_reached(graph->parts.places[i].part);
	for (uint32_t i = 0; some && i < graph->count && !status; i++) {
		CUgraphNode name;
		const struct part_place *place;
		uint32_t type;

		if (graph_node_type(graph, i, &type) || type != CU_GRAPH_NODE_TYPE_MEMCPY)
			continue;
		name = graph_node_name(graph, i);
		if (!name)
			return CUDA_ERROR_OUT_OF_MEMORY;
		place = node_place(graph_node_find(name), &graph->parts);
		if (!place || !part_reached(place->part))
			continue;
		status = hand_cuGraphMemcpyNodeGetParams(name, &copy);
		if (!status)
			status = hand_cuGraphMemcpyNodeSetParams(name, &copy);
	}
	for (struct graph *body = graph->children; body && !status; body = body->sibling)
		if (body->body)
			status = graph_recount(body) ?: graph_reach(body);
	return status;
}
