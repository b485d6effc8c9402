/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes as the app described them: so they are told back, and an executable graph's keep to
 * some of it.  Of a captured node, or one in a graph inside of a node, nothing is known.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/driver/graph/graph_node.h"
#include "shim/driver/memory/memory.h"

static void describe_batch(struct graph_node *node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *batch)
{
	size_t bytes = batch ? batch->count * sizeof(*batch->paramArray) : 0;
	CUDA_BATCH_MEM_OP_NODE_PARAMS *kept = batch ? malloc(sizeof(*kept) + bytes) : NULL;

	if (!batch)
		return;
	if (kept) {
		*kept = *batch;
		kept->paramArray = (CUstreamBatchMemOpParams *)(void *)(kept + 1);
		if (bytes)
			memcpy(kept->paramArray, batch->paramArray, bytes);
	}
	free(node->batch);
	node->batch = kept;
}

/* *TO becomes a copy, of what was described before or of NULL. */
static void describe(void **to, const void *said, size_t bytes)
{
	if (!said)
		return;
	if (!*to)
		*to = malloc(bytes);
	if (*to)
		memcpy(*to, said, bytes);
}

void node_describe(struct graph_node *node, const struct node_params *said)
{
	void *copy = node->copy, *fill = node->fill;

	describe(&copy, said->copy, sizeof(*said->copy));
	describe(&fill, said->fill.elementSize ? &said->fill : NULL, sizeof(said->fill));
	node->copy = copy;
	node->fill = fill;
	describe_batch(node, said->batch);
	if (said->kernel.function)
		node->kernel = said->kernel;
}

void graph_clone_described(struct graph *clone, const struct graph *graph)
{
	for (uint32_t i = 0; i < graph->room; i++) {
		const struct graph_node *node = graph->nodes[i];
		struct node_params said = {0};

		if (!node ||
			(!node->copy && !node->fill && !node->batch &&
				!node->kernel.function) ||
			!graph_node_name(clone, i))
			continue;
		said.copy = node->copy;
		said.batch = node->batch;
		said.kernel = node->kernel;
		if (node->fill)
			said.fill = *node->fill;
		node_describe(clone->nodes[i], &said);
	}
}

/* ---- what an executable graph keeps ---- */

static size_t kept_count(const struct graph *graph)
{
	size_t n = 0;

	for (uint32_t i = 0; i < graph->room; i++)
		n += graph->nodes[i] && (graph->nodes[i]->copy || graph->nodes[i]->fill);
	for (const struct graph *child = graph->children; child; child = child->sibling)
		n += kept_count(child);
	return n;
}

static void kept_take(struct graph_exec *exec, const struct graph *graph)
{
	for (uint32_t i = 0; i < graph->room; i++) {
		const struct graph_node *node = graph->nodes[i];
		struct graph_kept kept = {.graph = graph->handle, .node = i};

		if (!node || (!node->copy && !node->fill))
			continue;
		if (node->copy) {
			kept.from = node->copy->srcMemoryType;
			kept.to = node->copy->dstMemoryType;
		}
		if (node->fill)
			kept.fill = *node->fill;
		exec->kept[exec->kept_count++] = kept;
	}
	for (const struct graph *child = graph->children; child; child = child->sibling)
		kept_take(exec, child);
}

bool exec_take_kept(struct graph_exec *exec, const struct graph *graph)
{
	size_t n = kept_count(graph);

	exec->kept = n ? malloc(n * sizeof(*exec->kept)) : NULL;
	if (exec->kept)
		kept_take(exec, graph);
	return exec->kept || !n;
}

/* Memory may have been freed since: natively no graph is made executable that fills it. */
bool graph_fills_good(const struct graph *graph)
{
	for (uint32_t i = 0; i < graph->room; i++) {
		const struct graph_node *node = graph->nodes[i];
		const CUDA_MEMSET_NODE_PARAMS *fill = node ? node->fill : NULL;

		if (fill && !memory_inside(fill->dst, (fill->height - 1) * fill->pitch +
							      fill->width * fill->elementSize))
			return false;
	}
	for (const struct graph *child = graph->children; child; child = child->sibling)
		if (!graph_fills_good(child))
			return false;
	return true;
}

/* As cuda.h says: a single row stays one, of several nothing changes. */
static bool fill_other(const CUDA_MEMSET_NODE_PARAMS *had, const CUDA_MEMSET_NODE_PARAMS *now)
{
	if (had->height != now->height)
		return true;
	return had->height > 1 && (had->width != now->width || had->pitch != now->pitch ||
					  had->elementSize != now->elementSize);
}

bool exec_kept_other(const struct graph_exec *exec, const struct graph_node *node,
	const struct node_params *p)
{
	for (size_t i = 0; (p->copy || p->fill.elementSize) && i < exec->kept_count; i++) {
		const struct graph_kept *kept = &exec->kept[i];

		if (kept->graph != node->graph->handle || kept->node != node->number)
			continue;
		if (p->copy)
			return kept->from != p->copy->srcMemoryType ||
			       kept->to != p->copy->dstMemoryType;
		return kept->fill.elementSize && fill_other(&kept->fill, &p->fill);
	}
	return false;
}
