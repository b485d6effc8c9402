/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes as the app described them: so they are told back, and an executable graph's keep to
 * some of it.  Of a captured node, or one in a graph inside of a node, nothing is known.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/driver/graph/graph_node.h"
#include "shim/driver/memory/pinned/host.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/mirror/mirror.h"

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

		if (fill && !mirror_reaches(fill->dst, (fill->height - 1) * fill->pitch +
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

static const struct graph_kept *kept_find(
	const struct graph_exec *exec, const struct graph_node *node)
{
	for (size_t i = 0; i < exec->kept_count; i++)
		if (exec->kept[i].graph == node->graph->handle &&
			exec->kept[i].node == node->number)
			return &exec->kept[i];
	return NULL;
}

/* Which memory a captured copy is between. Pinned memory that kernels reach is the device's in
 * a graph, and natively the program's. */
static CUmemorytype side_asked(CUmemorytype type, CUdeviceptr address)
{
	struct host_range range;

	if (type == CU_MEMORYTYPE_DEVICE && host_find((const void *)(uintptr_t)address, &range))
		return CU_MEMORYTYPE_UNIFIED;
	return type;
}

static bool kept_ask(
	struct graph_kept *kept, const struct graph_node *node, const struct node_params *p)
{
	CUDA_MEMCPY3D copy;
	struct graph_fill fill;
	size_t n;

	if (p->copy) {
		if (node_copy_ask(node, &copy))
			return false;
		kept->from = side_asked(copy.srcMemoryType, copy.srcDevice);
		kept->to = side_asked(copy.dstMemoryType, copy.dstDevice);
		return true;
	}
	if (node_get(node, CU_GRAPH_NODE_TYPE_MEMSET, &fill, sizeof(fill), &n))
		return false;
	kept->fill = (CUDA_MEMSET_NODE_PARAMS){.elementSize = fill.element,
		.pitch = fill.pitch,
		.width = fill.width,
		.height = fill.height};
	return true;
}

/* Of a node that was described in the graph since, what the executable one has is not known. */
void exec_ask_kept(
	struct graph_exec *exec, const struct graph_node *node, const struct node_params *p)
{
	struct graph_kept kept = {
		.graph = node->graph->handle, .node = node->number, .asked = true};
	struct graph_kept *all;

	if ((!p->copy && !p->fill.elementSize) || node->copy || node->fill ||
		kept_find(exec, node) || !kept_ask(&kept, node, p))
		return;
	all = realloc(exec->kept, (exec->kept_count + 1) * sizeof(*all));
	if (!all)
		return;
	all[exec->kept_count++] = kept;
	exec->kept = all;
}

static bool side_other(const struct graph_kept *kept, CUmemorytype had, CUmemorytype now)
{
	bool any = had == CU_MEMORYTYPE_UNIFIED || now == CU_MEMORYTYPE_UNIFIED;

	if (kept->asked && any)
		return had == CU_MEMORYTYPE_ARRAY || now == CU_MEMORYTYPE_ARRAY;
	return had != now;
}

bool exec_kept_other(const struct graph_exec *exec, const struct graph_node *node,
	const struct node_params *p)
{
	const struct graph_kept *kept =
		p->copy || p->fill.elementSize ? kept_find(exec, node) : NULL;

	if (!kept)
		return false;
	if (p->copy)
		return side_other(kept, kept->from, p->copy->srcMemoryType) ||
		       side_other(kept, kept->to, p->copy->dstMemoryType);
	return kept->fill.elementSize && fill_other(&kept->fill, &p->fill);
}
