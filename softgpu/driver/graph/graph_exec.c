/* SPDX-License-Identifier: Apache-2.0
 *
 * Executable graphs: the nodes in an order that keeps every dependency.  A launch puts copies
 * of their operations into the stream, one behind the other; that is one of the orders that the
 * graph allows.
 */
#include <stdlib.h>

#include "softgpu/driver/graph/graph.h"

static void step_end(struct step *step)
{
	if (step->op)
		step->op->drop(step->op);
	if (step->event)
		event_let(step->event);
	if (step->branch)
		branch_let(step->branch);
	*step = (struct step){0};
}

/* A launch has copies of the operations, but what they reach may be the graph's: its objects.
 */
struct hold_op {
	struct op op;
	struct CUgraphExec_st *exec;
};

void exec_free(struct CUgraphExec_st *exec)
{
	if (--exec->refs)
		return;
	for (size_t i = 0; i < exec->count; i++)
		step_end(&exec->steps[i]);
	if (exec->last)
		queue_unref(exec->last);
	graph_objects_drop(exec->objects, exec->object_count);
	conditions_drop(exec->conditions, exec->condition_count);
	if (exec->context)
		context_unref(exec->context);
	free(exec->steps);
	free(exec);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	return (hash ^ value) * 0x100000001b3u;
}

static CUresult exec_add(struct CUgraphExec_st *exec, const struct CUgraphNode_st *node)
{
	struct step *step;

	if (exec->count == exec->room) {
		size_t room = exec->room ? 2 * exec->room : 32;
		struct step *steps = realloc(exec->steps, room * sizeof(*steps));

		if (!steps)
			return CUDA_ERROR_OUT_OF_MEMORY;
		exec->steps = steps;
		exec->room = room;
	}
	step = &exec->steps[exec->count];
	*step = (struct step){.type = node->type,
		.key = node,
		.graph = exec->number,
		.index = (uint32_t)exec->count,
		.shape = mix(0xcbf29ce484222325u, (uint64_t)node->type)};
	if (node->op) {
		step->op = graph_op_copy(node->op);
		if (!step->op)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (node->condition) {
		CUresult ret = branch_new(node, &step->branch);

		if (ret) {
			step_end(step);
			return ret;
		}
		exec->branches = true;
	}
	step->event = node->event;
	if (step->event)
		event_hold(step->event);
	for (size_t i = 0; i < node->after.count; i++)
		step->shape = mix(step->shape, node->index - node->after.item[i]->index);
	exec->count++;
	return CUDA_SUCCESS;
}

/* All nodes of a graph, each behind those that it waits for; INVALID_VALUE: they wait in a
 * circle. */
static CUresult exec_flatten(struct CUgraphExec_st *exec, const struct CUgraph_st *graph)
{
	size_t *missing = calloc(graph->count + 1, sizeof(*missing)), done = 0, at;
	bool moved = true;
	CUresult ret = missing ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	for (size_t i = 0; missing && i < graph->count; i++)
		missing[i] = 1;
	/* Nodes mostly stand behind what they wait for already: one or two rounds. */
	while (!ret && moved && done < graph->count) {
		moved = false;
		for (size_t i = 0; !ret && i < graph->count; i++) {
			const struct CUgraphNode_st *node = graph->nodes[i];
			bool ready = missing[i];

			for (size_t d = 0; ready && d < node->after.count; d++)
				ready = !missing[node->after.item[d]->index];
			if (!ready)
				continue;
			at = exec->count;
			ret = exec_add(exec, node);
			if (!ret && node->child) {
				ret = exec_flatten(exec, node->child);
				exec->steps[at].inside = exec->count - at - 1;
			}
			missing[i] = 0;
			moved = true;
			done++;
		}
	}
	free(missing);
	if (!ret && done < graph->count)
		ret = CUDA_ERROR_INVALID_VALUE;
	if (!ret)
		ret = graph_objects_copy(graph->objects, graph->object_count, &exec->objects,
			&exec->object_count);
	if (!ret)
		ret = conditions_copy(graph->conditions, graph->condition_count,
			&exec->conditions, &exec->condition_count);
	return ret;
}

CUresult exec_flat(const struct CUgraph_st *graph, struct CUgraphExec_st **out)
{
	struct CUgraphExec_st *exec = calloc(1, sizeof(*exec));
	CUresult ret;

	if (!exec)
		return CUDA_ERROR_OUT_OF_MEMORY;
	exec->refs = 1;
	exec->number = work_graph_number();
	ret = exec_flatten(exec, graph);
	if (ret)
		exec_free(exec);
	else
		*out = exec;
	return ret;
}

CUresult exec_new(
	const struct CUgraph_st *graph, unsigned long long flags, struct CUgraphExec_st **out)
{
	struct CUgraphExec_st *exec = calloc(1, sizeof(*exec));
	CUresult ret;

	if (!exec || !object_add(exec, OBJECT_EXEC)) {
		free(exec);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	exec->refs = 1;
	exec->flags = flags;
	exec->number = work_graph_number();
	ret = exec_flatten(exec, graph);
	if (ret) {
		object_remove(exec);
		exec_free(exec);
	} else {
		*out = exec;
	}
	return ret;
}

/* As NVIDIA's driver: a context whose graphs have kernels keeps the memory that those need. */
static void context_keeps(const struct CUgraphExec_st *exec)
{
	struct CUctx_st *context;

	for (size_t i = 0; i < exec->count; i++)
		if (exec->steps[i].type == CU_GRAPH_NODE_TYPE_KERNEL &&
			!context_current_any(&context)) {
			atomic_fetch_or(&context->flags, CU_CTX_LMEM_RESIZE_TO_MAX);
			return;
		}
}

/* *RESULT is filled in. */
static CUresult instantiate(CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags,
	CUgraphInstantiateResult *result)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;

	*result = CUDA_GRAPH_INSTANTIATE_ERROR;
	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
		return CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&queue_lock);
	if (phGraphExec && object_is(hGraph, OBJECT_GRAPH)) {
		if (conditions_used(hGraph)) {
			ret = exec_new(hGraph, flags, phGraphExec);
			if (!ret)
				context_keeps(*phGraphExec);
			*result = ret == CUDA_ERROR_INVALID_VALUE
					  ? CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE
					  : CUDA_GRAPH_INSTANTIATE_ERROR;
		} else {
			*result = CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
		}
	}
	pthread_mutex_unlock(&queue_lock);
	if (!ret)
		*result = CUDA_GRAPH_INSTANTIATE_SUCCESS;
	return ret;
}

CUresult cuGraphInstantiateWithFlags(
	CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags)
{
	CUgraphInstantiateResult result;

	return instantiate(phGraphExec, hGraph, flags, &result);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph,
	CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize)
{
	if (phErrorNode)
		*phErrorNode = NULL;
	if (logBuffer && bufferSize)
		*logBuffer = 0;
	return cuGraphInstantiateWithFlags(phGraphExec, hGraph, 0);
}

CUresult cuGraphInstantiateWithParams(
	CUgraphExec *phGraphExec, CUgraph hGraph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	params->hErrNode_out = NULL;
	return instantiate(phGraphExec, hGraph, params->flags, &params->result_out);
}

CUresult cuGraphExecDestroy(CUgraphExec hGraphExec)
{
	CUresult ret = CUDA_SUCCESS;

	pthread_mutex_lock(&queue_lock);
	if (object_is(hGraphExec, OBJECT_EXEC)) {
		object_remove(hGraphExec);
		exec_free(hGraphExec);
	} else {
		ret = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags)
{
	CUresult ret = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&queue_lock);
	if (flags && object_is(hGraphExec, OBJECT_EXEC)) {
		*flags = hGraphExec->flags;
		ret = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

/* ---- launches ---- */

bool exec_step_op(const struct step *step, struct op **op)
{
	*op = NULL;
	if (step->disabled || (!step->op && !step->branch))
		return true;
	*op = step->branch ? branch_op_new(step->branch) : graph_op_copy(step->op);
	if (!*op)
		return false;
	if (work_ever()) {
		(*op)->profile.graph = step->graph;
		(*op)->profile.index = step->index;
	}
	return true;
}

static CUresult launch_submit(
	struct CUgraphExec_st *exec, struct op *op, struct CUstream_st *stream, bool *first)
{
	/* Two launches of one executable graph never overlap. */
	if (*first && exec->last && exec->last != stream &&
		!queue_depend(op, exec->last, exec->last_seq)) {
		op->drop(op);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*first = false;
	return queue_submit_locked(stream, op, false) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult step_launch(struct CUgraphExec_st *exec, const struct step *step,
	struct CUstream_st *stream, bool *first)
{
	struct op *op;

	if (!step->disabled && step->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
		return event_record_locked(step->event, stream);
	if (!step->disabled && step->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT)
		return event_wait_locked(stream, step->event);
	if (!exec_step_op(step, &op))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return op ? launch_submit(exec, op, stream, first) : CUDA_SUCCESS;
}

static void hold_drop(struct op *op)
{
	exec_free(((struct hold_op *)op)->exec);
	free(op);
}

/* Behind a launch: until then the graph's objects stay, and what conditional nodes insert
 * before it has run. */
static CUresult exec_hold(struct CUgraphExec_st *exec, struct CUstream_st *stream)
{
	struct hold_op *op;

	if (!exec->object_count && !exec->branches)
		return CUDA_SUCCESS;
	op = calloc(1, sizeof(*op));
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op->op.kind = OP_MARK;
	op->op.drop = hold_drop;
	op->exec = exec;
	exec->refs++;
	return queue_submit_locked(stream, &op->op, false) ? CUDA_SUCCESS
							   : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Launched into a stream that captures: a child graph of the same steps. */
static CUresult exec_capture(struct CUgraphExec_st *exec, struct CUstream_st *stream)
{
	struct CUgraphNode_st *node = graph_add(
		stream->capture->graph, CU_GRAPH_NODE_TYPE_GRAPH, &stream->tail, NULL, NULL);
	struct node_set before = {0};

	if (!node)
		return CUDA_ERROR_OUT_OF_MEMORY;
	capture_tail(stream, node);
	node->child = soft_graph_new();
	if (!node->child)
		return CUDA_ERROR_OUT_OF_MEMORY;
	node->child->parent = node;
	if (graph_objects_copy(exec->objects, exec->object_count, &node->child->objects,
		    &node->child->object_count))
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < exec->count; i++) {
		const struct step *step = &exec->steps[i];
		struct op *op = step->op ? graph_op_copy(step->op) : NULL;
		struct CUgraphNode_st *inner = NULL;

		if (step->disabled || (step->type == CU_GRAPH_NODE_TYPE_GRAPH && !step->op)) {
			if (op)
				op->drop(op);
			continue;
		}
		if (op || !step->op)
			inner = graph_add(node->child, step->type, &before, op, step->event);
		if (!inner && op)
			op->drop(op);
		before.count = 0;
		if (!inner || !node_set_add(&before, inner)) {
			node_set_free(&before);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	node_set_free(&before);
	return CUDA_SUCCESS;
}

/* Its operations, as of one call to who profiles. */
static CUresult exec_launch(struct CUgraphExec_st *exec, struct CUstream_st *stream)
{
	struct op *defaults, *begin = NULL, *end = NULL;
	bool first = true, profiled = work_on();
	CUresult ret = CUDA_SUCCESS;

	if (profiled)
		work_call_begin();
	if (profiled && !work_graph(stream->context, exec->number, &begin, &end))
		ret = CUDA_ERROR_OUT_OF_MEMORY;
	if (begin)
		ret = launch_submit(exec, begin, stream, &first);
	if (!ret && !defaults_op_new(exec, &defaults))
		ret = CUDA_ERROR_OUT_OF_MEMORY;
	else if (!ret && defaults)
		ret = launch_submit(exec, defaults, stream, &first);
	for (size_t i = 0; i < exec->count && !ret; i++)
		ret = step_launch(exec, &exec->steps[i], stream, &first);
	if (end && ret)
		end->drop(end);
	else if (end)
		ret = launch_submit(exec, end, stream, &first);
	if (profiled)
		work_call_end();
	if (!ret)
		ret = exec_hold(exec, stream);
	queue_ref(stream);
	if (exec->last)
		queue_unref(exec->last);
	exec->last = stream;
	exec->last_seq = stream->submitted;
	return ret;
}

CUresult cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream)
{
	struct CUstream_st *stream;
	CUresult ret = stream_use(hStream, &stream);

	if (ret)
		return ret;
	pthread_mutex_lock(&queue_lock);
	if (!object_is(hGraphExec, OBJECT_EXEC)) {
		ret = CUDA_ERROR_INVALID_VALUE;
	} else if (stream->capture) {
		ret = hGraphExec->branches ? CUDA_ERROR_NOT_SUPPORTED
					   : exec_capture(hGraphExec, stream);
	} else {
		ret = exec_launch(hGraphExec, stream);
	}
	queue_unref(stream);
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream)
{
	struct CUstream_st *stream;
	CUresult ret = stream_use(hStream, &stream);

	if (ret)
		return ret;
	stream_done(stream);
	return object_is(hGraphExec, OBJECT_EXEC) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
