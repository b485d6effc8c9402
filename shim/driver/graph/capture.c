/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams that capture, from the beginning to the end: see capture.h.
 */
#include "shim/driver/forms.h"
#include "shim/driver/graph/capture_state.h"

#include <stdlib.h>
#include <string.h>

#include "shim/generated/cuda_hand.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/engine/engine.h"
#include "shim/engine/handle.h"
#include "shim/driver/stream/order.h"
#include "shim/engine/session.h"
#include "shim/engine/lock.h"

struct captures captures = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(capture, captures.lock, LOCK_CAPTURE);

static struct capture *capture_find(uint64_t id)
{
	struct capture *c = captures.first;

	while (c && c->id != id)
		c = c->next;
	return c;
}

struct capture *capture_of_stream(const struct stream *stream)
{
	return stream && stream->capture ? capture_find(stream->capture) : NULL;
}

struct capture *capture_of_number(uint64_t number)
{
	return number ? capture_of_stream(shim_object_of(number, KIND_CUstream)) : NULL;
}

struct graph *capture_graph(uint64_t stream)
{
	struct graph *graph = NULL;
	struct capture *c;

	if (!capture_any())
		return NULL;
	pthread_mutex_lock(&captures.lock);
	c = capture_of_number(stream);
	if (c)
		graph = c->graph;
	pthread_mutex_unlock(&captures.lock);
	return graph;
}

/* ---- events ---- */

/* Of an event's capture: it has come to nothing. */
#define CAPTURE_FAILED (1ull << 63)

static void event_failed(void *object, void *argument)
{
	struct event *event = object;
	uint64_t id = *(const uint64_t *)argument;

	if (event)
		(void)atomic_compare_exchange_strong(&event->capture, &id, id | CAPTURE_FAILED);
}

bool capture_record(struct event *event, uint64_t stream, bool external)
{
	struct capture *c;
	struct part *part;
	uint64_t id = 0;

	if (capture_any()) {
		pthread_mutex_lock(&captures.lock);
		c = capture_of_number(stream);
		if (c && external) {
			part = part_new(PART_RECORD);
			if (part)
				part->number = event->handle;
			if (!part || !parts_add(&c->graph->parts, part, c->graph->handle,
					     GRAPH_NO_NODE)) {
				part_put(part);
				c->invalid = true;
			}
		} else if (c) {
			id = c->id;
		}
		pthread_mutex_unlock(&captures.lock);
		if (c && external)
			return true;
	}
	atomic_store(&event->capture, id);
	return id != 0;
}

/* With the lock held: the stream becomes part of it. */
static void capture_join(struct capture *c, struct stream *stream)
{
	if (stream->capture != c->id)
		stream->line = ++captures.last_line;
	stream->capture = c->id;
}

uint64_t capture_line_new(void)
{
	uint64_t line;

	pthread_mutex_lock(&captures.lock);
	line = ++captures.last_line;
	pthread_mutex_unlock(&captures.lock);
	return line;
}

/* With the lock held: the stream of that number, if it captures. */
static struct stream *stream_that_captures(uint64_t number)
{
	struct stream *stream = number ? shim_object_of(number, KIND_CUstream) : NULL;

	return capture_of_stream(stream) ? stream : NULL;
}

uint64_t capture_line(uint64_t stream)
{
	const struct stream *found;
	uint64_t line;

	pthread_mutex_lock(&captures.lock);
	found = stream_that_captures(stream);
	line = found ? found->line : 0;
	pthread_mutex_unlock(&captures.lock);
	return line;
}

void capture_line_ends(uint64_t stream)
{
	struct stream *found;

	pthread_mutex_lock(&captures.lock);
	found = stream_that_captures(stream);
	if (found)
		found->line = ++captures.last_line;
	pthread_mutex_unlock(&captures.lock);
}

CUresult capture_wait(struct event *event, uint64_t number, bool external)
{
	uint64_t id = atomic_load(&event->capture);
	struct stream *stream = number ? shim_object_of(number, KIND_CUstream) : NULL;
	struct capture *theirs, *ours;
	CUresult status = CUDA_SUCCESS;

	if (!id && !capture_any())
		return CUDA_SUCCESS;
	pthread_mutex_lock(&captures.lock);
	theirs = id ? capture_find(id) : NULL;
	ours = capture_of_stream(stream);
	if (ours && external) {
		/* A node that waits for the event whenever the graph runs. */
	} else if (!id) {
		if (ours && atomic_load(&event->recorded)) {
			ours->invalid = true;
			status = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
		}
	} else if (!theirs) {
		status = CUDA_ERROR_CAPTURED_EVENT;
	} else if (theirs->invalid) {
		status = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	} else if (!stream) {
		theirs->invalid = true;
		status = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	} else if (ours && ours != theirs) {
		ours->invalid = theirs->invalid = true;
		status = CUDA_ERROR_STREAM_CAPTURE_MERGE;
	} else {
		capture_join(theirs, stream);
	}
	pthread_mutex_unlock(&captures.lock);
	return status;
}

CUresult capture_event(struct event *event)
{
	uint64_t id = atomic_load(&event->capture);
	bool was_invalid;
	struct capture *c;

	if (!id)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&captures.lock);
	c = capture_find(id);
	was_invalid = c ? c->invalid : (id & CAPTURE_FAILED) != 0;
	if (c)
		c->invalid = true;
	pthread_mutex_unlock(&captures.lock);
	/* Natively one of a capture that something has spoilt is no event at all. */
	return was_invalid ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_CAPTURED_EVENT;
}

/* ---- the end of one ---- */

static void capture_leave(void *object, void *argument)
{
	struct stream *stream = object;
	const struct capture *c = argument;

	if (stream && stream->capture == c->id)
		stream->capture = 0;
}

/* With the lock held. Its streams are free again, and the graph is the caller's. */
static void capture_close(struct capture *c)
{
	struct capture **at = &captures.first;

	handle_each(KIND_CUstream, capture_leave, c);
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	atomic_fetch_sub(&captures.open, 1);
	c->graph->capturing = false;
	c->graph->edges_known = false; /* those of before, where it was there before */
	if (captures.ended) {
		free(captures.ended->tail);
		free(captures.ended->edges);
		free(captures.ended);
	}
	captures.ended = c;
}

void capture_stream_gone(struct stream *stream)
{
	struct graph *graph = NULL;
	struct capture *c;

	if (!capture_any())
		return;
	pthread_mutex_lock(&captures.lock);
	c = capture_of_stream(stream);
	/* Another of its streams may go, as natively: whether its work was joined, the agent's
	 * driver says at the end. */
	if (c && c->origin == stream) {
		/* One that was there before goes too, as natively; a node's stays. */
		graph = c->existing && c->graph->parent ? NULL : c->graph;
		capture_close(c);
	}
	pthread_mutex_unlock(&captures.lock);
	if (graph)
		graph_free(graph);
}

void capture_reset(struct context *context)
{
	struct graph *graph;

	if (!capture_any())
		return;
	pthread_mutex_lock(&captures.lock);
	for (struct capture *c = captures.first, *next; c; c = next) {
		next = c->next;
		if (c->context != context)
			continue;
		graph = c->existing ? NULL : c->graph;
		capture_close(c);
		if (graph)
			graph_free(graph);
	}
	pthread_mutex_unlock(&captures.lock);
}

/* ---- the calls ---- */

static CUresult capture_may_begin(CUstream hStream, uint64_t *number)
{
	CUresult status = stream_plain(hStream, number);
	bool captures_already;

	if (status)
		return status;
	if (!*number)
		return capture_node(CU_STREAM_LEGACY) ?: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	pthread_mutex_lock(&captures.lock);
	captures_already = capture_of_number(*number) != NULL;
	pthread_mutex_unlock(&captures.lock);
	return captures_already ? CUDA_ERROR_ILLEGAL_STATE : stream_number(hStream, number);
}

CUresult capture_begin(CUstream hStream, CUstreamCaptureMode mode, struct graph *existing,
	const uint32_t *after, const CUgraphEdgeData *data, size_t count)
{
	struct context *context = context_current();
	struct wire_vcudaCaptureBeginEdges *body;
	struct shim_call call;
	struct stream *stream;
	struct capture *c;
	uint64_t number;
	CUresult status;

	if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	status = capture_may_begin(hStream, &number);
	if (!status)
		status = order_drain(number);
	if (status)
		return status;
	stream = shim_object_of(number, KIND_CUstream);
	c = calloc(1, sizeof(*c));
	if (!stream || !c) {
		free(c);
		return stream ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_HANDLE;
	}
	c->graph = existing ? existing : graph_new();
	if (!c->graph) {
		free(c);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	c->origin = stream;
	c->context = context;
	c->mode = mode;
	c->thread = pthread_self();
	c->existing = existing != NULL;
	pthread_mutex_lock(&captures.lock);
	if (capture_of_stream(stream) || c->graph->capturing) {
		pthread_mutex_unlock(&captures.lock);
		if (!existing)
			graph_free(c->graph);
		free(c);
		return CUDA_ERROR_ILLEGAL_STATE;
	}
	c->id = ++captures.last_id;
	c->graph->capturing = true;
	c->next = captures.first;
	captures.first = c;
	capture_join(c, stream);
	atomic_fetch_add(&captures.open, 1);
	pthread_mutex_unlock(&captures.lock);

	body = data ? shim_begin(&call, OP_vcudaCaptureBeginEdges, sizeof(*body))
		    : shim_begin(&call, OP_vcudaCaptureBegin,
			      sizeof(struct wire_vcudaCaptureBegin));
	body->stream = number;
	body->graph = c->graph->handle;
	body->existing = existing != NULL;
	body->count = (uint32_t)count;
	shim_put(&call, &body->after, after, count * sizeof(*after));
	if (data)
		shim_put(&call, &body->data, data, count * sizeof(*data));
	status = shim_post(&call);
	if (status) {
		struct graph *graph = existing ? NULL : c->graph;

		pthread_mutex_lock(&captures.lock);
		capture_close(c);
		pthread_mutex_unlock(&captures.lock);
		if (graph)
			graph_free(graph);
	}
	return status;
}

CUresult hand_cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
	size_t numDependencies, CUstreamCaptureMode mode)
{
	struct graph *graph = graph_find(hGraph);
	uint64_t number;
	uint32_t *after;
	CUresult status;

	if (!hGraph || (unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	status = capture_may_begin(hStream, &number);
	if (!status && !graph)
		status = CUDA_ERROR_INVALID_VALUE;
	if (status)
		return status;
	status = graph_numbers(graph, dependencies, numDependencies, &after);
	if (!status)
		status = capture_edges(graph, after, &dependencyData, numDependencies);
	if (!status)
		status = capture_begin(
			hStream, mode, graph, after, dependencyData, numDependencies);
	free(after);
	return status;
}

/* The app's own mistakes; what is wrong with the captured work only the worker knows. */
static CUresult capture_may_end(struct capture *c, const struct stream *stream)
{
	if (!c)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (c->origin != stream) {
		c->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	}
	if (c->invalid)
		return CUDA_SUCCESS;
	/* Over all the same, as natively (an H200, driver 580). */
	if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
		!pthread_equal(c->thread, pthread_self()))
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	return CUDA_SUCCESS;
}

static CUresult capture_end(uint64_t stream, struct graph *graph, bool *ended)
{
	const struct wire_vcudaCaptureEnd_reply *reply;
	struct wire_vcudaCaptureEnd *body;
	struct shim_call call;

	body = shim_begin(&call, OP_vcudaCaptureEnd, sizeof(*body));
	body->stream = stream;
	body->graph = graph->handle;
	reply = shim_wait(&call, sizeof(*reply));
	*ended = reply != NULL;
	if (reply)
		graph->count = reply->nodes;
	return shim_end(&call);
}

/* NOT_SUPPORTED: the agent is older, and nothing was done. */
static CUresult capture_end_listed(uint64_t stream, struct graph *graph, bool *ended)
{
	const struct wire_vcudaCaptureEndListed_reply *reply;
	struct wire_vcudaCaptureEndListed *body;
	struct shim_call call;

	body = shim_begin(&call, OP_vcudaCaptureEndListed, sizeof(*body));
	body->stream = stream;
	body->graph = graph->handle;
	reply = shim_wait(&call, sizeof(*reply));
	*ended = reply != NULL;
	if (reply) {
		size_t bytes;
		const void *list = shim_run(&call, &reply->list, &bytes);

		graph->count = reply->nodes;
		graph_listed(graph, list, bytes, reply->types, reply->edges);
	}
	return shim_end(&call);
}

CUresult hand_cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
	bool ended, existing;
	struct stream *stream;
	struct graph *graph;
	struct capture *c;
	uint64_t number, id;
	CUresult status, fault;

	if (phGraph)
		*phGraph = NULL;
	status = stream_plain(hStream, &number);
	if (!status && !number)
		status = capture_node(CU_STREAM_LEGACY);
	if (status)
		return status;
	stream = number ? shim_object_of(number, KIND_CUstream) : NULL;
	pthread_mutex_lock(&captures.lock);
	c = capture_of_stream(stream);
	status = capture_may_end(c, stream);
	/* Of a capture into a graph that was there nobody need hear which that is. */
	if (!status && !phGraph && !c->existing && !c->invalid)
		status = CUDA_ERROR_INVALID_VALUE;
	if (status && status != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD) {
		pthread_mutex_unlock(&captures.lock);
		return status;
	}
	fault = status;
	id = c->id;
	graph = c->graph;
	existing = c->existing && graph->parent;
	if (!fault && c->invalid)
		fault = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	capture_close(c);
	pthread_mutex_unlock(&captures.lock);

	graph->captured = true;
	status = captures.listed ? capture_end_listed(number, graph, &ended)
				 : CUDA_ERROR_NOT_SUPPORTED;
	if (status == CUDA_ERROR_NOT_SUPPORTED)
		status = capture_end(number, graph, &ended);
	/* The first thing that went wrong is what the app is told. */
	if (fault)
		status = fault;
	if (status && status != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
		handle_each(KIND_CUevent, event_failed, &id);
	if (!status && phGraph)
		*phGraph = (CUgraph)(uintptr_t)graph->handle;
	else if (status && !existing && ended)
		hand_cuGraphDestroy((CUgraph)(uintptr_t)graph->handle);
	else if (status && !existing)
		graph_free(graph); /* the worker's is gone too */
	return status;
}
