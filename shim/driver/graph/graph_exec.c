/* SPDX-License-Identifier: Apache-2.0
 *
 * Executable graphs.  A launch is a post; what it needs of the app's memory goes before it,
 * what it brings is asked for behind it, all in one stream.
 */
#include <stdlib.h>

#include "shim/generated/cuda_hand.h"
#include "protocol/generated/cuda_ops.h"
#include "protocol/generated/cuda_wire.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/generated/vcuda_send.h"
#include "shim/driver/context/context.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/graph/graph.h"
#include "shim/driver/graph/graph_node.h"
#include "shim/driver/graph/memory_node.h"
#include "shim/driver/memory/mirror/mirror.h"
#include "shim/driver/stream/stream.h"
#include "shim/engine/engine.h"
#include "shim/engine/handle.h"
#include "shim/engine/thread.h"
#include "shim/engine/status.h"

#define GRAPH_FLAGS                                                                            \
	(uint64_t)(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |                           \
		   CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |                                        \
		   CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH |                                 \
		   CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)

struct graph_exec *graph_exec_find(CUgraphExec exec)
{
	struct graph_exec *found = shim_object_of((uint64_t)(uintptr_t)exec, KIND_CUgraphExec);

	return found && !found->lost ? found : NULL;
}

bool exec_has_node(const struct graph_exec *exec, const struct graph_node *node)
{
	const struct graph *graph = node->graph;

	if (exec && node->graph->handle == exec->graph && node->number >= exec->count)
		return false; /* added since */
	while (graph->parent)
		graph = graph->parent;
	return exec && exec->graph == graph->handle;
}

static void exec_free(struct graph_exec *exec)
{
	handle_release(exec->handle);
	parts_free(&exec->parts);
	shapes_free(&exec->shapes);
	free(exec->off);
	free(exec->kept);
	free(exec);
}

static struct graph_exec *exec_new(const struct graph *graph, uint64_t flags)
{
	struct graph_exec *exec = calloc(1, sizeof(*exec));

	if (!exec)
		return NULL;
	exec->graph = graph->handle;
	exec->count = graph->count;
	exec->id = graph_id_new();
	exec->flags = flags;
	exec->context = thread_self.number;
	exec->within =
		context_current() ? (CUcontext)(uintptr_t)context_current()->handle : NULL;
	shapes_take(&exec->shapes, graph);
	exec->handle = shim_mint(KIND_CUgraphExec, exec);
	if (exec->handle && parts_copy_all(&exec->parts, graph) && exec_take_kept(exec, graph))
		return exec;
	exec_free(exec);
	return NULL;
}

/* It has memory nodes, of which one executable graph has the memory. */
static bool graph_taken(const struct graph *graph)
{
	return graph->has_memory && shim_object_of(graph->exec, KIND_CUgraphExec);
}

CUresult hand_cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
	CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams, CUstream null_stream)
{
	const struct wire_vcudaGraphInstantiate_reply *reply;
	struct graph *graph = graph_find(hGraph);
	struct wire_vcudaGraphInstantiate *body;
	struct graph_exec *exec;
	struct shim_call call;
	CUresult status, failed = CUDA_SUCCESS;
	CUstream upload;
	bool made = false;

	if (!instantiateParams)
		return CUDA_ERROR_INVALID_VALUE;
	instantiateParams->hErrNode_out = NULL;
	instantiateParams->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
	if (instantiateParams->flags & ~GRAPH_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	/* An upload is work of its stream, which is what a capture may forbid then. */
	upload = instantiateParams->hUploadStream ? instantiateParams->hUploadStream
						  : null_stream;
	status = context_missing()
			 ?: instantiateParams->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD
			    ? capture_never(upload)
			    : capture_unsafe();
	if (status)
		return status;
	if (!phGraphExec || !graph || graph->body)
		return CUDA_ERROR_INVALID_VALUE;
	status = graph_recount(graph) ?: graph_reach(graph);
	if (!status && !graph_fills_good(graph))
		status = CUDA_ERROR_INVALID_VALUE;
	if (status)
		return status;
	if (instantiateParams->flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH &&
		!graph_for_device(graph))
		return CUDA_ERROR_INVALID_VALUE;
	/* That a condition is no node's is told before, by the driver. */
	if (instantiateParams->flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH ||
		(graph_taken(graph) && (graph->has_conditional || !graph->has_handle)))
		return CUDA_ERROR_NOT_SUPPORTED;
	exec = exec_new(graph, instantiateParams->flags);
	if (!exec)
		return CUDA_ERROR_OUT_OF_MEMORY;
	body = shim_begin(&call, OP_vcudaGraphInstantiate, sizeof(*body));
	body->graph = graph->handle;
	body->exec = exec->handle;
	body->flags = instantiateParams->flags &
		      ~(uint64_t)(CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
				  CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
	reply = shim_wait(&call, sizeof(*reply));
	if (reply) {
		instantiateParams->result_out =
			(CUgraphInstantiateResult)(reply->result & ~GRAPH_RESULT_KERNELS);
		if (reply->result & GRAPH_RESULT_KERNELS)
			context_keeps();
		if (reply->node != GRAPH_NO_NODE)
			instantiateParams->hErrNode_out = graph_node_name(graph, reply->node);
		failed = status_wire(reply->status);
		made = !failed;
	}
	status = shim_end(&call);
	if (!status)
		status = failed;
	if (status) {
		uint64_t handle = exec->handle;

		exec_free(exec);
		if (made)
			graph_gone(handle);
		return status;
	}
	if (instantiateParams->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) {
		status = cuGraphUpload((CUgraphExec)(uintptr_t)exec->handle, upload);
		if (status) {
			instantiateParams->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
			(void)hand_cuGraphExecDestroy((CUgraphExec)(uintptr_t)exec->handle);
			return status;
		}
	}
	*phGraphExec = (CUgraphExec)(uintptr_t)exec->handle;
	if (graph->has_memory)
		graph->exec = exec->handle;
	return CUDA_SUCCESS;
}

CUresult hand_cuGraphInstantiateWithFlags(
	CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = flags};
	CUresult status;

	/* An upload has no stream here. */
	if (flags & ~GRAPH_FLAGS || flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
		return CUDA_ERROR_INVALID_VALUE;
	status = shim_ready();
	return status ? status
		      : hand_cuGraphInstantiateWithParams(
				phGraphExec, hGraph, &params, CU_STREAM_LEGACY);
}

CUresult hand_cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph,
	CUgraphNode *phErrorNode, char *logBuffer, size_t bufferSize)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
	CUresult status = hand_cuGraphInstantiateWithParams(
		phGraphExec, hGraph, &params, CU_STREAM_LEGACY);

	if (phErrorNode)
		*phErrorNode = params.hErrNode_out;
	if (logBuffer && bufferSize)
		*logBuffer = 0;
	return status;
}

/* ---- launches ---- */

/* The executable graph's event is recorded behind its last launch. */
static CUresult exec_mark(struct graph_exec *exec)
{
	struct wire_vcudaEventCreate *create;
	struct wire_cuEventRecord *record;
	struct shim_call call;
	CUresult status = CUDA_SUCCESS;

	if (!exec->event) {
		exec->event = shim_mint(KIND_CUevent, NULL);
		if (!exec->event)
			return CUDA_ERROR_OUT_OF_MEMORY;
		create = shim_begin(&call, OP_vcudaEventCreate, sizeof(*create));
		create->event = exec->event;
		create->flags = CU_EVENT_DISABLE_TIMING;
		status = shim_post(&call);
	}
	if (!status) {
		record = shim_begin(&call, OP_cuEventRecord, sizeof(*record));
		record->hEvent = exec->event;
		record->hStream = exec->stream;
		status = shim_post(&call);
	}
	exec->marked = !status;
	return status;
}

static CUresult exec_wait(const struct graph_exec *exec, uint64_t stream)
{
	struct wire_cuStreamWaitEvent *wait;
	struct shim_call call;

	wait = shim_begin(&call, OP_cuStreamWaitEvent, sizeof(*wait));
	wait->hStream = stream;
	wait->hEvent = exec->event;
	return shim_post(&call);
}

/* The stand-ins are shared by all launches: one on another stream waits for the one before. */
static CUresult exec_order(const struct graph_exec *exec, uint64_t stream)
{
	if (exec->stream == stream || !exec->marked)
		return CUDA_SUCCESS;
	return exec_wait(exec, stream);
}

/* Parts of either kind. */
static bool exec_has(const struct graph_exec *exec, enum part_kind a, enum part_kind b)
{
	for (size_t i = 0; i < exec->parts.count; i++)
		if (exec->parts.places[i].part->kind == a ||
			exec->parts.places[i].part->kind == b)
			return true;
	return false;
}

static CUresult exec_post(const struct graph_exec *exec, uint64_t stream, uint64_t *seq)
{
	struct wire_cuGraphLaunch *body;
	struct shim_call call;
	CUresult status = mirror_before();

	if (status)
		return status;
	body = shim_begin(&call, OP_cuGraphLaunch, sizeof(*body));
	body->hGraph = exec->handle;
	body->hStream = stream;
	status = shim_post(&call);
	*seq = call.seq;
	return status;
}

CUresult hand_cuGraphUpload(CUgraphExec hGraph, CUstream hStream)
{
	const struct graph_exec *exec = graph_exec_find(hGraph);
	struct wire_cuGraphUpload *body;
	struct shim_call call;
	uint64_t stream;
	CUresult status = stream_number(hStream, &stream);

	if (status)
		return status;
	if (!exec)
		return CUDA_ERROR_INVALID_VALUE;
	body = shim_begin(&call, OP_cuGraphUpload, sizeof(*body));
	body->hGraph = exec->handle;
	body->hStream = stream;
	return shim_post(&call);
}

CUresult hand_cuGraphLaunch(CUgraphExec hGraph, CUstream hStream)
{
	struct graph_exec *exec = graph_exec_find(hGraph);
	struct graph *into;
	uint64_t stream, seq;
	CUresult status;

	status = stream_number(hStream, &stream);
	if (status)
		return status;
	if (!exec)
		return CUDA_ERROR_INVALID_VALUE;
	into = capture_graph(stream);
	if (into && exec_has(exec, PART_ALLOC, PART_FREE))
		return CUDA_ERROR_NOT_SUPPORTED; /* as a child graph */
	if (into) {
		/* It becomes a child graph there, and its parts are that graph's too. */
		if (!parts_copy_as_child(&into->parts, &exec->parts, GRAPH_NO_NODE))
			return CUDA_ERROR_OUT_OF_MEMORY;
		return exec_post(exec, stream, &seq);
	}
	if (!exec->parts.count)
		return exec_post(exec, stream, &seq);
	if (exec_has(exec, PART_NOWHERE, PART_NOWHERE))
		return CUDA_ERROR_INVALID_VALUE;
	status = memory_nodes_launch(&exec->parts,
		exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH, stream);
	if (status)
		return status;
	status = exec_order(exec, stream);
	if (!status)
		status = parts_fill(&exec->parts, hStream);
	if (!status)
		status = exec_post(exec, stream, &seq);
	if (!status)
		status = parts_fetch(&exec->parts, hStream, seq);
	exec->stream = stream;
	exec->marked = false;
	/* By the next launch the stream may be gone, or capture. */
	return status ? status : exec_mark(exec);
}

/* ---- user objects outlive the launches ---- */

static void CUDA_CB users_drop(void *argument)
{
	struct parts *users = argument;

	parts_free(users);
	free(users);
}

/* On a stream of its own, behind the last launch. The thread may have no context, or another.
 */
static CUresult users_drop_behind(const struct graph_exec *exec, struct parts *users)
{
	CUcontext within = exec->within;
	CUstream stream;
	CUresult status = hand_cuCtxPushCurrent_v2(within);

	if (status)
		return status;
	status = hand_cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
	if (!status) {
		status = exec_wait(exec, (uint64_t)(uintptr_t)stream);
		if (!status)
			status = hand_cuLaunchHostFunc(stream, users_drop, users);
		hand_cuStreamDestroy_v2(stream);
	}
	hand_cuCtxPopCurrent_v2(&within);
	return status;
}

/* The user objects of PARTS are let go once no launch of EXEC runs any more. */
static void exec_drop_users(const struct graph_exec *exec, struct parts *parts)
{
	struct parts *users = calloc(1, sizeof(*users));

	for (size_t i = 0; users && i < parts->count; i++) {
		struct part *part = parts->places[i].part;

		if (!part->user || !parts_add(users, part, 0, 0))
			continue;
		part_get(part);
	}
	if (users && (!users->count || !exec->marked || users_drop_behind(exec, users)))
		users_drop(users);
}

CUresult hand_cuGraphExecDestroy(CUgraphExec hGraphExec)
{
	struct graph_exec *exec =
		shim_object_of((uint64_t)(uintptr_t)hGraphExec, KIND_CUgraphExec);
	uint64_t handle;
	bool lost;

	if (!exec)
		return CUDA_ERROR_INVALID_VALUE;
	exec_drop_users(exec, &exec->parts);
	lost = exec->lost;
	if (exec->event && !lost) {
		send_vcudaEventDestroy(exec->event);
	}
	if (exec->event)
		handle_release(exec->event);
	handle = exec->handle;
	exec_free(exec);
	if (!lost)
		(void)graph_gone(handle);
	return CUDA_SUCCESS;
}

/* ---- updates ---- */

static void exec_take_parts(struct graph_exec *exec, const struct graph *graph)
{
	struct parts parts = {0};

	if (!parts_copy_all(&parts, graph)) {
		parts_free(&parts);
		return;
	}
	/* The nodes by which they can be set stay those of the first graph. */
	for (size_t i = 0; parts.count == exec->parts.count && i < parts.count; i++) {
		parts.places[i].graph = exec->parts.places[i].graph;
		parts.places[i].node = exec->parts.places[i].node;
	}
	exec_drop_users(exec, &exec->parts);
	parts_free(&exec->parts);
	exec->parts = parts;
}

/* Has it memory nodes, and not only been asked for one that it did not get (has_memory)? */
static bool graph_allocates(const struct graph *graph)
{
	for (size_t i = 0; graph->has_memory && i < graph->parts.count; i++) {
		enum part_kind kind = graph->parts.places[i].part->kind;

		if (kind == PART_ALLOC || kind == PART_FREE)
			return true;
	}
	return false;
}

CUresult hand_cuGraphExecUpdate_v2(
	CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo *resultInfo)
{
	const struct wire_vcudaGraphUpdate_reply *reply;
	struct graph_exec *exec = graph_exec_find(hGraphExec);
	struct graph *graph = graph_find(hGraph);
	CUresult status, failed = CUDA_SUCCESS;
	struct wire_vcudaGraphUpdate *body;
	CUgraphExecUpdateResultInfo unasked;
	struct shim_call call;

	if (!resultInfo)
		resultInfo = &unasked;
	resultInfo->result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
	resultInfo->errorNode = resultInfo->errorFromNode = NULL;
	status = shim_ready();
	if (status)
		return status;
	if (!exec || !graph)
		return CUDA_ERROR_INVALID_VALUE;
	status = graph_recount(graph) ?: graph_reach(graph);
	if (status)
		return status;
	if (!graph_allocates(graph) && graph->exec != exec->handle && graph_taken(graph))
		return CUDA_ERROR_NOT_SUPPORTED; /* as to instantiate it once more */
	resultInfo->result = CU_GRAPH_EXEC_UPDATE_ERROR;
	if (graph_allocates(graph)) {
		resultInfo->result = CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
		return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	}
	body = shim_begin(&call, OP_vcudaGraphUpdate, sizeof(*body));
	body->exec = exec->handle;
	body->graph = graph->handle;
	reply = shim_wait(&call, sizeof(*reply));
	if (reply) {
		failed = status_wire(reply->status);
		resultInfo->result = (CUgraphExecUpdateResult)reply->result;
		resultInfo->errorNode = graph_node_name(graph, reply->node);
		resultInfo->errorFromNode = graph_node_name(graph, reply->from);
		if (!failed)
			exec_take_parts(exec, graph);
	}
	status = shim_end(&call);
	return status ? status : failed;
}

CUresult hand_cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph,
	CUgraphNode *hErrorNode_out, CUgraphExecUpdateResult *updateResult_out)
{
	CUgraphExecUpdateResultInfo info;
	CUresult status;

	status = hand_cuGraphExecUpdate_v2(hGraphExec, hGraph, &info);
	if (hErrorNode_out)
		*hErrorNode_out = info.errorNode;
	if (updateResult_out)
		*updateResult_out = info.result;
	return status;
}
