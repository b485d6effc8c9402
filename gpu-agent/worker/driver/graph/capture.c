/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams that capture.  All captures are relaxed here, whatever the app asked for: the loop's
 * one thread serves all of the app's threads, and maps memory, asks events and loads modules
 * while a capture is open.  What the app's mode forbids, the shim refuses.
 *
 * Work that a stream had before it began to capture still has to be waited for, and nothing can
 * be recorded behind it any more: an event is left there first.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/driver/graph/capture.h"
#include "gpu-agent/worker/driver/graph/graph.h"
#include "gpu-agent/worker/loop/fence.h"
#include "gpu-agent/worker/handle.h"

/* The legacy stream and the streams that wait for it cannot be told apart while one of them
 * captures: the driver says IMPLICIT. */
bool capture_of(struct worker *w, const struct worker_stream *stream)
{
	CUstreamCaptureStatus state = CU_STREAM_CAPTURE_STATUS_NONE;

	if (!w->graphs.captures)
		return false;
	return w->cuda.cuStreamIsCapturing(stream->stream, &state) ==
		       CUDA_ERROR_STREAM_CAPTURE_IMPLICIT ||
	       state != CU_STREAM_CAPTURE_STATUS_NONE;
}

void capture_over(struct worker *w)
{
	if (!--w->graphs.captures)
		graph_modules_drop(w, &w->graphs.captured);
}

static void capture_mark(struct worker *w, struct worker_stream *stream)
{
	CUevent event;

	if (stream->before || stream->work == stream->clean || capture_of(w, stream) ||
		fence_event_get(w, stream->context, &event))
		return;
	if (w->cuda.cuEventRecord(event, stream->stream)) {
		fence_event_put(w, stream->context, event);
		return;
	}
	stream->before = event;
	stream->before_work = stream->work;
}

/* Before it can become part of a capture. */
static void capture_prepare(struct worker *w, struct worker_stream *stream)
{
	capture_mark(w, stream);
	if (!(stream->flags & CU_STREAM_NON_BLOCKING))
		capture_mark(w, &w->streams.legacy[stream->context]);
}

/* Streams that do not capture any more need no such event. */
static void capture_drop_events(struct worker *w)
{
	for (struct worker_stream *s = w->streams.list; s; s = s->next)
		if (s->before && !capture_of(w, s)) {
			if (!fence_adopt(w, s->before))
				fence_event_put(w, s->context, s->before);
			s->before = NULL;
		}
}

CUresult serve_cuStreamWaitEvent(struct worker *w, struct request *r)
{
	const struct wire_cuStreamWaitEvent *req = (const void *)r->body;
	struct worker_stream *stream = worker_stream_object(w, r, req->hStream);
	CUevent event = worker_handle(w, r, req->hEvent, KIND_CUevent);
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	if (w->graphs.captures)
		capture_prepare(w, stream);
	status = w->cuda.cuStreamWaitEvent(stream->stream, event, req->Flags);
	if (w->graphs.captures)
		capture_drop_events(w);
	return status;
}

/* What a stream captures into, as the driver knows it. */
struct captured {
	CUgraph graph;
	const CUgraphNode *after;
	const CUgraphEdgeData *edges; /* NULL: they say no more than before and behind */
	size_t count;
};

static CUresult capture_graph(struct worker *w, CUstream stream, struct captured *c)
{
	CUstreamCaptureStatus state;
	CUresult status;

	*c = (struct captured){0};
	if (w->cuda.cuStreamGetCaptureInfo_v3)
		status = w->cuda.cuStreamGetCaptureInfo_v3(
			stream, &state, NULL, &c->graph, &c->after, &c->edges, &c->count);
	else
		status = w->cuda.cuStreamGetCaptureInfo_v2(
			stream, &state, NULL, &c->graph, &c->after, &c->count);
	if (!status && state == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	return !status && state == CU_STREAM_CAPTURE_STATUS_NONE ? CUDA_ERROR_ILLEGAL_STATE
								 : status;
}

/* Nothing of a new capture is left. */
static void capture_drop(struct worker *w, struct worker_stream *stream)
{
	CUgraph graph = NULL;

	w->cuda.cuStreamEndCapture(stream->stream, &graph);
	if (graph)
		w->cuda.cuGraphDestroy(graph);
}

static CUresult capture_new(
	struct worker *w, struct request *r, struct worker_stream *stream, uint64_t handle)
{
	struct worker_graph *object;
	struct captured captured;
	CUresult status;

	status =
		w->cuda.cuStreamBeginCapture_v2(stream->stream, CU_STREAM_CAPTURE_MODE_RELAXED);
	if (status)
		return status;
	status = capture_graph(w, stream->stream, &captured);
	object = status ? NULL : graph_new_object(captured.graph, handle);
	if (!status && !object)
		status = CUDA_ERROR_OUT_OF_MEMORY;
	if (object) {
		worker_bind(w, r, handle, KIND_CUgraph, object);
		status = r->refused;
		object->origin = stream;
	}
	if (status) {
		if (object)
			graph_discharge(1);
		free(object);
		capture_drop(w, stream);
		return status;
	}
	stream->capture = object;
	return CUDA_SUCCESS;
}

static CUresult capture_into(struct worker *w, struct request *r, struct worker_stream *stream,
	struct worker_graph *graph, const CUgraphEdgeData *data)
{
	const struct wire_vcudaCaptureBegin *req = (const void *)r->body;
	const uint32_t *after = worker_in(r, &req->after, 4ull * req->count);
	CUgraphNode *nodes = graph_nodes_in(r, graph, after, req->count);
	CUresult status;

	if (worker_refused(r)) {
		free(nodes);
		return r->refused;
	}
	if (!w->cuda.cuStreamBeginCaptureToGraph) {
		free(nodes);
		return worker_lacks(w, "cuStreamBeginCaptureToGraph");
	}
	status = graph->origin
			 ? CUDA_ERROR_ILLEGAL_STATE
			 : w->cuda.cuStreamBeginCaptureToGraph(stream->stream, graph->graph,
				   nodes, data, req->count, CU_STREAM_CAPTURE_MODE_RELAXED);
	free(nodes);
	if (status)
		return status;
	graph->origin = stream;
	graph->kept = true;
	stream->capture = graph;
	return CUDA_SUCCESS;
}

/* DATA: what the edges from the nodes say; NULL: no more than before and behind. */
static CUresult capture_begin(struct worker *w, struct request *r, const CUgraphEdgeData *data)
{
	const struct wire_vcudaCaptureBegin *req = (const void *)r->body;
	struct worker_stream *stream = worker_stream_object(w, r, req->stream);
	struct worker_graph *graph = req->existing ? graph_of(w, r, req->graph) : NULL;
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	if (!w->cuda.cuStreamBeginCapture_v2 || !w->cuda.cuStreamEndCapture ||
		!w->cuda.cuStreamIsCapturing ||
		(!w->cuda.cuStreamGetCaptureInfo_v3 && !w->cuda.cuStreamGetCaptureInfo_v2))
		return worker_lacks(w, "cuStreamBeginCapture");
	if (stream->capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	capture_prepare(w, stream);
	status = req->existing ? capture_into(w, r, stream, graph, data)
			       : capture_new(w, r, stream, req->graph);
	if (!status)
		w->graphs.captures++;
	else
		capture_drop_events(w);
	return status;
}

CUresult serve_vcudaCaptureBegin(struct worker *w, struct request *r)
{
	return capture_begin(w, r, NULL);
}

/* The form without data is what this one's body begins with. */
CUresult serve_vcudaCaptureBeginEdges(struct worker *w, struct request *r)
{
	const struct wire_vcudaCaptureBeginEdges *req = (const void *)r->body;

	return capture_begin(
		w, r, worker_in(r, &req->data, sizeof(CUgraphEdgeData) * (uint64_t)req->count));
}
_Static_assert(offsetof(struct wire_vcudaCaptureBeginEdges, data) ==
		       sizeof(struct wire_vcudaCaptureBegin),
	"");

static CUresult capture_end(struct worker *w, struct request *r, struct worker_stream *stream,
	struct worker_graph *graph)
{
	CUgraph ended = NULL;
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	if (stream->capture != graph)
		return CUDA_ERROR_ILLEGAL_STATE;
	status = w->cuda.cuStreamEndCapture(stream->stream, &ended);
	stream->capture = NULL;
	graph->origin = NULL;
	if (!status && !graph_modules_add_all(&graph->modules, &w->graphs.captured))
		status = CUDA_ERROR_OUT_OF_MEMORY;
	capture_over(w);
	capture_drop_events(w);
	if (!status)
		status = graph_refresh(w, graph);
	else if (!graph->kept || !graph->parent)
		graph_drop_object(w, graph); /* the driver has destroyed it */
	return status;
}

CUresult serve_vcudaCaptureEnd(struct worker *w, struct request *r)
{
	const struct wire_vcudaCaptureEnd *req = (const void *)r->body;
	struct wire_vcudaCaptureEnd_reply *answer = (void *)r->answer;
	struct worker_stream *stream = worker_stream_object(w, r, req->stream);
	struct worker_graph *graph = graph_of(w, r, req->graph);
	CUresult status = capture_end(w, r, stream, graph);

	if (!status)
		answer->nodes = graph->count;
	return status;
}

CUresult serve_vcudaCaptureEndListed(struct worker *w, struct request *r)
{
	const struct wire_vcudaCaptureEndListed *req = (const void *)r->body;
	struct wire_vcudaCaptureEndListed_reply *answer = (void *)r->answer;
	struct worker_stream *stream = worker_stream_object(w, r, req->stream);
	struct worker_graph *graph = graph_of(w, r, req->graph);
	unsigned char list[GRAPH_LIST_BYTES];
	CUresult status = capture_end(w, r, stream, graph);
	size_t bytes;

	if (status)
		return status;
	answer->nodes = graph->count;
	bytes = graph_list_whole(w, graph, list, &answer->types, &answer->edges);
	if (bytes)
		memcpy(worker_out(r, &answer->list, bytes), list, bytes);
	return r->refused;
}

void worker_capture_stream_gone(struct worker *w, struct worker_stream *stream)
{
	struct worker_graph *graph = stream->capture;

	if (!graph)
		return;
	stream->capture = NULL;
	graph->origin = NULL;
	capture_over(w);
	/* The driver ends the capture with the stream, and destroys its graph, one that was
	 * there before too. A node's graph goes with the node. */
	if (!graph->kept || !graph->parent)
		graph_drop_object(w, graph);
}

/* EACH: bytes of a struct graph_tail that are told of each node. */
static CUresult capture_tail(struct worker *w, struct request *r, size_t each)
{
	const struct wire_vcudaCaptureTail *req = (const void *)r->body;
	struct wire_vcudaCaptureTail_reply *answer = (void *)r->answer;
	CUstream stream = worker_stream(w, r, req->stream);
	struct worker_graph *graph = graph_of(w, r, req->graph);
	unsigned char list[1900];
	struct captured captured;
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	if (!w->graphs.captures)
		return CUDA_ERROR_ILLEGAL_STATE;
	status = capture_graph(w, stream, &captured);
	if (!status && captured.graph != graph->graph)
		status = CUDA_ERROR_INVALID_VALUE;
	if (!status)
		status = graph_refresh(w, graph);
	if (status)
		return status;
	answer->nodes = graph->count;
	answer->total = (uint32_t)captured.count;
	for (size_t i = req->first;
		i < captured.count && (answer->count + 1) * each <= sizeof(list); i++) {
		struct graph_tail tail = {graph_number_of(graph, captured.after[i]), {0}};

		if (captured.edges)
			memcpy(tail.data, &captured.edges[i], sizeof(tail.data));
		memcpy(list + answer->count++ * each, &tail, each);
	}
	if (answer->count)
		memcpy(worker_out(r, &answer->list, answer->count * each), list,
			answer->count * each);
	return r->refused;
}

CUresult serve_vcudaCaptureTail(struct worker *w, struct request *r)
{
	return capture_tail(w, r, sizeof(uint32_t));
}

CUresult serve_vcudaCaptureTailEdges(struct worker *w, struct request *r)
{
	return capture_tail(w, r, sizeof(struct graph_tail));
}
_Static_assert(sizeof(struct wire_vcudaCaptureTailEdges_reply) ==
		       sizeof(struct wire_vcudaCaptureTail_reply),
	"");

static CUresult capture_update(struct worker *w, struct request *r, const CUgraphEdgeData *data)
{
	const struct wire_vcudaCaptureUpdate *req = (const void *)r->body;
	CUstream stream = worker_stream(w, r, req->stream);
	struct worker_graph *graph = graph_of(w, r, req->graph);
	const uint32_t *after = worker_in(r, &req->after, 4ull * req->count);
	CUgraphNode *nodes = graph_nodes_in(r, graph, after, req->count);
	CUresult status;

	if (worker_refused(r)) {
		free(nodes);
		return r->refused;
	}
	status = w->cuda.cuStreamUpdateCaptureDependencies_v2
			 ? w->cuda.cuStreamUpdateCaptureDependencies_v2(
				   stream, nodes, data, req->count, req->flags)
			 : worker_lacks(w, "cuStreamUpdateCaptureDependencies");
	free(nodes);
	return status;
}

CUresult serve_vcudaCaptureUpdate(struct worker *w, struct request *r)
{
	return capture_update(w, r, NULL);
}

CUresult serve_vcudaCaptureUpdateEdges(struct worker *w, struct request *r)
{
	const struct wire_vcudaCaptureUpdateEdges *req = (const void *)r->body;

	return capture_update(
		w, r, worker_in(r, &req->data, sizeof(CUgraphEdgeData) * (uint64_t)req->count));
}
_Static_assert(offsetof(struct wire_vcudaCaptureUpdateEdges, data) ==
		       sizeof(struct wire_vcudaCaptureUpdate),
	"");

CUresult serve_vcudaCaptureEmpty(struct worker *w, struct request *r)
{
	const struct wire_vcudaCaptureEmpty *req = (const void *)r->body;
	CUstream stream = worker_stream(w, r, req->stream);
	struct worker_graph *graph = graph_of(w, r, req->graph);
	struct captured captured;
	CUgraphNode node = NULL;
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	if (!w->graphs.captures || req->node != graph->count)
		return CUDA_ERROR_INVALID_VALUE;
	if (!w->cuda.cuStreamUpdateCaptureDependencies_v2)
		return worker_lacks(w, "cuStreamUpdateCaptureDependencies");
	status = capture_graph(w, stream, &captured);
	if (!status && captured.graph != graph->graph)
		status = CUDA_ERROR_INVALID_VALUE;
	if (!status)
		status = w->cuda.cuGraphAddEmptyNode(
			&node, captured.graph, captured.after, captured.count);
	if (!status)
		status = w->cuda.cuStreamUpdateCaptureDependencies_v2(
			stream, &node, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
	/* The number is taken all the same: the app counts on. */
	return graph_add_number(graph, node) ? status : CUDA_ERROR_OUT_OF_MEMORY;
}
