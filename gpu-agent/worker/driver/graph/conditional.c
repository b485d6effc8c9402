/* SPDX-License-Identifier: Apache-2.0
 *
 * Conditional nodes.  A handle of the driver's is given away, since it travels inside of kernel
 * arguments; a node is only made with one that the session was given.
 */
#include "gpu-agent/worker/driver/graph/conditional.h"

#include <stdlib.h>
#include <string.h>

CUresult serve_vcudaConditionalCreate(struct worker *w, struct request *r)
{
	const struct wire_vcudaConditionalCreate *req = (const void *)r->body;
	struct wire_vcudaConditionalCreate_reply *answer = (void *)r->answer;
	struct worker_graph *graph = graph_of(w, r, req->graph);
	CUgraphConditionalHandle handle;
	uint64_t *conditions;
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	if (!w->cuda.cuGraphConditionalHandleCreate)
		return worker_lacks(w, "cuGraphConditionalHandleCreate");
	if (!graph_charge(1))
		return CUDA_ERROR_OUT_OF_MEMORY;
	conditions =
		realloc(graph->conditions, (graph->condition_count + 1) * sizeof(*conditions));
	if (!conditions) {
		graph_discharge(1);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	graph->conditions = conditions;
	status = w->cuda.cuGraphConditionalHandleCreate(
		&handle, graph->graph, w->contexts[r->header.context], req->value, req->flags);
	if (status) {
		graph_discharge(1);
		return status;
	}
	graph->conditions[graph->condition_count++] = handle;
	answer->handle = handle;
	return CUDA_SUCCESS;
}

/* Of the graph, or one that it is inside of. */
static bool condition_known(const struct worker_graph *graph, uint64_t handle)
{
	for (; graph; graph = graph->parent)
		for (uint32_t i = 0; i < graph->condition_count; i++)
			if (graph->conditions[i] == handle)
				return true;
	return false;
}

void conditional_read(struct request *r, const unsigned char *bytes, uint32_t n)
{
	const struct graph_conditional *c = (const void *)bytes;

	if (n < sizeof(*c) || !c->size || c->size > GRAPH_BODIES_MAX ||
		n != sizeof(*c) + c->size * sizeof(uint64_t) ||
		c->type > CU_GRAPH_COND_TYPE_SWITCH)
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
}

CUresult conditional_add(struct worker *w, struct worker_graph *graph, const CUgraphNode *after,
	size_t count, const struct graph_conditional *c, CUcontext context, CUgraphNode *node,
	CUgraph **bodies)
{
	CUgraphNodeParams params;
	CUresult status;

	if (!w->cuda.cuGraphAddNode_v2)
		return worker_lacks(w, "cuGraphAddNode");
	if (!condition_known(graph, c->handle))
		return CUDA_ERROR_INVALID_VALUE;
	memset(&params, 0, sizeof(params));
	params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
	params.conditional.handle = c->handle;
	params.conditional.type = (CUgraphConditionalNodeType)c->type;
	params.conditional.size = c->size;
	params.conditional.ctx = context;
	status = w->cuda.cuGraphAddNode_v2(node, graph->graph, after, NULL, count, &params);
	*bodies = status ? NULL : params.conditional.phGraph_out;
	return status;
}

CUresult conditional_bind(struct worker *w, struct request *r, struct worker_graph *graph,
	uint32_t number, const struct graph_conditional *c, CUgraph *bodies)
{
	const uint64_t *handles = (const void *)(c + 1);
	CUresult status = CUDA_SUCCESS;

	for (uint32_t i = 0; bodies && i < c->size && !status; i++)
		status = graph_bind_inside(w, r, graph, number, bodies[i], handles[i]);
	return status;
}
