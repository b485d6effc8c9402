/* SPDX-License-Identifier: Apache-2.0
 *
 * Updates of executable graphs: by a graph of the same shape, and of single nodes.
 */
#include <stdlib.h>

#include "softgpu/driver/graph/graph.h"

/* In the bodies of its conditional nodes, too. */
static struct step *exec_find(struct CUgraphExec_st *exec, const struct CUgraphNode_st *node)
{
	struct step *found = NULL;

	for (size_t i = 0; i < exec->count && !found; i++) {
		struct CUgraphExec_st *body;

		if (exec->steps[i].key == node)
			return &exec->steps[i];
		for (unsigned b = 0; !found && (body = branch_body(exec->steps[i].branch, b));
			b++)
			found = exec_find(body, node);
	}
	return found;
}

CUresult cuGraphExecUpdate_v2(
	CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo *resultInfo)
{
	CUgraphExecUpdateResultInfo info = {.result = CU_GRAPH_EXEC_UPDATE_ERROR};
	struct CUgraphExec_st *fresh = NULL;
	CUresult ret;

	if (!resultInfo)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&queue_lock);
	if (!object_is(hGraphExec, OBJECT_EXEC) || !object_is(hGraph, OBJECT_GRAPH))
		ret = CUDA_ERROR_INVALID_VALUE;
	else
		ret = exec_new(hGraph, hGraphExec->flags, &fresh);
	if (!ret && fresh->count != hGraphExec->count) {
		info.result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
		ret = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	}
	for (size_t i = 0; !ret && i < fresh->count; i++) {
		struct step *was = &hGraphExec->steps[i], *now = &fresh->steps[i];

		if (was->type != now->type)
			info.result = CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
		else if (was->shape != now->shape)
			info.result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
		else
			continue;
		info.errorNode = (CUgraphNode)(uintptr_t)now->key;
		ret = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	}
	for (size_t i = 0; !ret && i < fresh->count; i++) {
		struct step *was = &hGraphExec->steps[i], *now = &fresh->steps[i];
		struct step old = *was;

		/* The new one's operation under the old one's name. */
		was->op = now->op;
		was->event = now->event;
		was->branch = now->branch;
		now->op = old.op;
		now->event = old.event;
		now->branch = old.branch;
	}
	/* What its conditions are at the start of a launch is the new graph's, too. */
	if (!ret) {
		struct condition **conditions = hGraphExec->conditions;
		size_t count = hGraphExec->condition_count;

		hGraphExec->conditions = fresh->conditions;
		hGraphExec->condition_count = fresh->condition_count;
		fresh->conditions = conditions;
		fresh->condition_count = count;
	}
	/* A launch that is under way still has those of before. */
	if (!ret && hGraphExec->refs > 1)
		ret = graph_objects_copy(fresh->objects, fresh->object_count,
			&hGraphExec->objects, &hGraphExec->object_count);
	else if (!ret) {
		struct user_object_ref *objects = hGraphExec->objects;
		size_t count = hGraphExec->object_count;

		hGraphExec->objects = fresh->objects;
		hGraphExec->object_count = fresh->object_count;
		fresh->objects = objects;
		fresh->object_count = count;
	}
	if (!ret)
		info.result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
	if (fresh) {
		object_remove(fresh);
		exec_free(fresh);
	}
	pthread_mutex_unlock(&queue_lock);
	*resultInfo = info;
	return ret;
}

CUresult cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out,
	CUgraphExecUpdateResult *updateResult_out)
{
	CUgraphExecUpdateResultInfo info;
	CUresult ret;

	if (!hErrorNode_out || !updateResult_out)
		return CUDA_ERROR_INVALID_VALUE;
	ret = cuGraphExecUpdate_v2(hGraphExec, hGraph, &info);
	*hErrorNode_out = info.errorNode;
	*updateResult_out = info.result;
	return ret;
}

/* The step gets another operation of its type. */
static CUresult exec_set(CUgraphExec exec, CUgraphNode node, struct op *op)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;
	struct step *step;

	pthread_mutex_lock(&queue_lock);
	/* A launch takes its steps when it is made, those of bodies only when it comes to them.
	 */
	if (object_is(exec, OBJECT_EXEC) && exec->branches && exec->last)
		queue_wait_locked(exec->last, exec->last_seq);
	if (object_is(exec, OBJECT_EXEC)) {
		step = exec_find(exec, node);
		if (step && step->op && step->type == op->node &&
			(step->type != CU_GRAPH_NODE_TYPE_BATCH_MEM_OP ||
				memop_batch_like(step->op, op))) {
			if (step->type == CU_GRAPH_NODE_TYPE_KERNEL)
				launch_op_keep_attributes(op, step->op);
			step->op->drop(step->op);
			step->op = op;
			op = NULL;
			ret = CUDA_SUCCESS;
		}
	}
	if (op)
		op->drop(op);
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuGraphExecKernelNodeSetParams_v2(
	CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	struct op *op;
	CUresult ret = launch_op_new(nodeParams, &op);

	return ret ? ret : exec_set(hGraphExec, hNode, op);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
	const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
	struct op *op;
	CUresult ret = copy_op_new(copyParams, &op);

	(void)ctx;
	return ret ? ret : exec_set(hGraphExec, hNode, op);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
	const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
	struct op *op;
	CUresult ret = fill_op_new(memsetParams, &op);

	(void)ctx;
	return ret ? ret : exec_set(hGraphExec, hNode, op);
}

CUresult cuGraphExecHostNodeSetParams(
	CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	struct op *op;
	CUresult ret = host_op_new(nodeParams, &op);

	return ret ? ret : exec_set(hGraphExec, hNode, op);
}

CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
	const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
	struct op *op;
	CUresult ret = memop_batch_new(nodeParams, true, &op);

	return ret ? ret : exec_set(hGraphExec, hNode, op);
}

static CUresult exec_set_event(
	CUgraphExec exec, CUgraphNode node, CUgraphNodeType type, CUevent event)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;
	struct step *step;

	pthread_mutex_lock(&queue_lock);
	if (object_is(exec, OBJECT_EXEC) && object_is(event, OBJECT_EVENT)) {
		step = exec_find(exec, node);
		if (step && step->type == type) {
			event_hold(event);
			event_let(step->event);
			step->event = event;
			ret = CUDA_SUCCESS;
		}
	}
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuGraphExecEventRecordNodeSetEvent(
	CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event)
{
	return exec_set_event(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult cuGraphExecEventWaitNodeSetEvent(
	CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event)
{
	return exec_set_event(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

/* The child graph's steps follow its node's. */
CUresult cuGraphExecChildGraphNodeSetParams(
	CUgraphExec hGraphExec, CUgraphNode hNode, CUgraph childGraph)
{
	struct CUgraphExec_st *fresh = NULL;
	struct step *step = NULL;
	CUresult ret = CUDA_ERROR_INVALID_VALUE;
	size_t at = 0;

	pthread_mutex_lock(&queue_lock);
	if (object_is(hGraphExec, OBJECT_EXEC) && object_is(childGraph, OBJECT_GRAPH))
		step = exec_find(hGraphExec, hNode);
	if (step && step->type == CU_GRAPH_NODE_TYPE_GRAPH)
		ret = exec_new(childGraph, 0, &fresh);
	if (!ret) {
		at = (size_t)(step - hGraphExec->steps) + 1;
		if (fresh->count != step->inside)
			ret = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	}
	for (size_t i = 0; !ret && i < fresh->count; i++)
		if (hGraphExec->steps[at + i].type != fresh->steps[i].type ||
			hGraphExec->steps[at + i].shape != fresh->steps[i].shape)
			ret = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	for (size_t i = 0; !ret && i < fresh->count; i++) {
		struct step *was = &hGraphExec->steps[at + i], *now = &fresh->steps[i];
		struct step old = *was;

		was->op = now->op;
		was->event = now->event;
		was->branch = now->branch;
		now->op = old.op;
		now->event = old.event;
		now->branch = old.branch;
	}
	if (fresh) {
		object_remove(fresh);
		exec_free(fresh);
	}
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuGraphNodeSetEnabled(
	CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;
	struct step *step;

	pthread_mutex_lock(&queue_lock);
	if (object_is(hGraphExec, OBJECT_EXEC)) {
		step = exec_find(hGraphExec, hNode);
		if (step && (step->type == CU_GRAPH_NODE_TYPE_KERNEL ||
				    step->type == CU_GRAPH_NODE_TYPE_MEMCPY ||
				    step->type == CU_GRAPH_NODE_TYPE_MEMSET)) {
			step->disabled = !isEnabled;
			ret = CUDA_SUCCESS;
		}
	}
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuGraphNodeGetEnabled(
	CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int *isEnabled)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;
	struct step *step;

	pthread_mutex_lock(&queue_lock);
	if (isEnabled && object_is(hGraphExec, OBJECT_EXEC)) {
		step = exec_find(hGraphExec, hNode);
		if (step) {
			*isEnabled = !step->disabled;
			ret = CUDA_SUCCESS;
		}
	}
	pthread_mutex_unlock(&queue_lock);
	return ret;
}
