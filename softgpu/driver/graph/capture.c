/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams that capture: what is put on them becomes nodes of a graph.  A stream joins a capture
 * by waiting for an event that was recorded in it, and all of them leave it when the stream
 * that began ends it.
 */
#include <stdlib.h>

#include "softgpu/driver/graph/graph.h"

static struct capture *captures;
static unsigned long long last_id;
static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

/* ---- what a capture forbids ---- */

static struct capture *capture_find(unsigned long long id)
{
	struct capture *c = captures;

	while (c && c->id != id)
		c = c->next;
	return c;
}

/* A global one, of whatever thread, forbids it; a thread's own does unless it is relaxed. */
static bool capture_forbids(const struct capture *c)
{
	if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return false;
	if (pthread_equal(c->thread, pthread_self()))
		return c->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
	return thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
	       c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult capture_unsafe(void)
{
	CUresult ret = CUDA_SUCCESS;

	pthread_mutex_lock(&queue_lock);
	for (struct capture *c = captures; c; c = c->next)
		if (capture_forbids(c)) {
			c->invalid = true;
			ret = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult capture_context(const struct CUctx_st *context)
{
	CUresult ret = CUDA_SUCCESS;

	pthread_mutex_lock(&queue_lock);
	for (struct capture *c = captures; c; c = c->next)
		if (c->context == context) {
			c->invalid = true;
			ret = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

/* Is a stream that waits for the legacy stream, and the other way round, captured? */
static struct capture *capture_blocking(const struct CUctx_st *context)
{
	for (struct CUstream_st *s = captures ? context->streams : NULL; s; s = s->next)
		if (s->capture && !(s->flags & CU_STREAM_NON_BLOCKING))
			return s->capture;
	return NULL;
}

CUresult soft_capture_use(struct CUstream_st *stream)
{
	struct capture *c;

	if (stream->capture)
		return stream->capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
						: CUDA_SUCCESS;
	c = stream->legacy ? capture_blocking(stream->context) : NULL;
	if (c)
		c->invalid = true;
	return c ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
}

CUresult soft_capture_refuse(struct CUstream_st *stream)
{
	if (!stream->capture)
		return CUDA_SUCCESS;
	stream->capture->invalid = true;
	return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

/* ---- what becomes part of it ---- */

void capture_tail(struct CUstream_st *stream, struct CUgraphNode_st *node)
{
	stream->tail.count = 0;
	if (!node_set_add(&stream->tail, node))
		stream->capture->invalid = true;
}

/* Whether such a node may come next: some edges are between kernels only. */
static bool tail_takes(const struct CUstream_st *stream, CUgraphNodeType type)
{
	const struct node_set *tail = &stream->tail;

	for (size_t i = 0; i < tail->count; i++)
		if (!graph_edge_valid(tail->item[i], type, &tail->data[i]))
			return false;
	return true;
}

bool capture_op(struct CUstream_st *stream, struct op *op)
{
	struct CUgraphNode_st *node = NULL;

	if (op->bytes && !op->dep_count && tail_takes(stream, op->node))
		node = graph_add(stream->capture->graph, op->node, &stream->tail, op, NULL);
	if (!node) {
		stream->capture->invalid = true;
		op->drop(op);
		return false;
	}
	capture_tail(stream, node);
	return true;
}

CUresult soft_capture_record(
	struct CUstream_st *stream, CUevent event, struct event_capture *at, bool external)
{
	struct CUgraphNode_st *node;

	if (!external) {
		at->id = stream->capture->id;
		return node_set_copy(&at->tail, &stream->tail) ? CUDA_SUCCESS
							       : CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!tail_takes(stream, CU_GRAPH_NODE_TYPE_EVENT_RECORD))
		return CUDA_ERROR_INVALID_VALUE;
	node = graph_add(stream->capture->graph, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &stream->tail,
		NULL, event);
	if (!node)
		return CUDA_ERROR_OUT_OF_MEMORY;
	capture_tail(stream, node);
	return CUDA_SUCCESS;
}

static CUresult capture_wait_outside(struct CUstream_st *stream, CUevent event)
{
	struct CUgraphNode_st *node;

	if (!tail_takes(stream, CU_GRAPH_NODE_TYPE_WAIT_EVENT))
		return CUDA_ERROR_INVALID_VALUE;
	node = graph_add(stream->capture->graph, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &stream->tail,
		NULL, event);
	if (!node)
		return CUDA_ERROR_OUT_OF_MEMORY;
	capture_tail(stream, node);
	return CUDA_SUCCESS;
}

static void capture_enter(struct capture *c, struct CUstream_st *stream)
{
	stream->capture = c;
	stream->captured = c->streams;
	c->streams = stream;
}

static void capture_leave(struct CUstream_st *stream)
{
	struct CUstream_st **at = &stream->capture->streams;

	while (*at != stream)
		at = &(*at)->captured;
	*at = stream->captured;
	stream->captured = NULL;
	stream->capture = NULL;
}

CUresult soft_capture_wait(struct CUstream_st *stream, CUevent event,
	const struct event_capture *at, bool recorded, bool external, bool *handled)
{
	struct capture *theirs = at->id ? capture_find(at->id) : NULL;

	*handled = stream->capture || at->id;
	if (stream->capture && external)
		return capture_wait_outside(stream, event);
	if (!at->id) {
		if (!stream->capture || !recorded)
			return CUDA_SUCCESS;
		stream->capture->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	}
	if (!theirs)
		return CUDA_ERROR_CAPTURED_EVENT;
	if (theirs->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (stream->legacy) {
		theirs->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	if (stream->capture && stream->capture != theirs) {
		stream->capture->invalid = theirs->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_MERGE;
	}
	if (!stream->capture) {
		capture_enter(theirs, stream);
		stream->tail.count = 0;
	}
	for (size_t i = 0; i < at->tail.count; i++)
		if (!node_set_add_edge(&stream->tail, at->tail.item[i], &at->tail.data[i]))
			return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

void capture_forget_node(const struct CUgraphNode_st *node)
{
	struct capture *c = node->graph->capture;

	for (struct CUstream_st *s = c ? c->streams : NULL; s; s = s->captured)
		node_set_remove(&s->tail, node);
	if (c)
		node_set_remove(&c->left, node);
}

/* All its streams leave it.  What becomes of the graph is the caller's matter. */
static void capture_over(struct capture *c)
{
	struct capture **at = &captures;

	while (c->streams) {
		c->streams->tail.count = 0;
		capture_leave(c->streams);
	}
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	c->graph->capture = NULL;
	node_set_free(&c->left);
	free(c);
}

void soft_capture_stream_gone(struct CUstream_st *stream)
{
	struct capture *c = stream->capture;
	struct CUgraph_st *graph;

	if (!c)
		return;
	if (c->origin != stream) {
		for (size_t i = 0; i < stream->tail.count; i++)
			if (!node_set_add(&c->left, stream->tail.item[i]))
				c->invalid = true;
		capture_leave(stream);
		return;
	}
	/* One that was there before goes too, as with NVIDIA's driver; a node's stays with it.
	 */
	graph = c->to_graph && c->graph->parent ? NULL : c->graph;
	capture_over(c);
	if (graph)
		soft_graph_free(graph);
}

void capture_context_gone(const struct CUctx_st *context)
{
	pthread_mutex_lock(&queue_lock);
	for (struct capture *c = captures, *next; c; c = next) {
		next = c->next;
		if (c->context == context) {
			struct CUgraph_st *graph = c->to_graph ? NULL : c->graph;

			capture_over(c);
			if (graph)
				soft_graph_free(graph);
		}
	}
	pthread_mutex_unlock(&queue_lock);
}

/* ---- the calls ---- */

/* With the lock held: nodes of GRAPH that the stream's next node waits for too. */
static CUresult tail_add(struct CUstream_st *stream, const struct CUgraph_st *graph,
	const CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!object_is(nodes[i], OBJECT_NODE) || nodes[i]->graph != graph ||
			(data && !graph_edge_valid(
					 nodes[i], CU_GRAPH_NODE_TYPE_KERNEL, &data[i])))
			return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++)
		if (!node_set_add_edge(&stream->tail, nodes[i], data ? &data[i] : NULL))
			return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

static CUresult capture_begin(CUstream handle, CUgraph graph, const CUgraphNode *dependencies,
	const CUgraphEdgeData *data, size_t count, CUstreamCaptureMode mode)
{
	struct CUstream_st *stream;
	struct capture *c;
	CUresult ret = stream_use(handle, &stream);

	if (ret)
		return ret;
	pthread_mutex_lock(&queue_lock);
	c = calloc(1, sizeof(*c));
	if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED || (count && !dependencies))
		ret = CUDA_ERROR_INVALID_VALUE;
	else if (stream->legacy)
		ret = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	else if (stream->capture || (graph && graph->capture))
		ret = CUDA_ERROR_ILLEGAL_STATE;
	else if (!c)
		ret = CUDA_ERROR_OUT_OF_MEMORY;
	stream->tail.count = 0;
	if (!ret)
		ret = tail_add(stream, graph, dependencies, data, count);
	if (!ret) {
		c->graph = graph ? graph : soft_graph_new();
		if (!c->graph)
			ret = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!ret) {
		c->to_graph = graph != NULL;
		c->origin = stream;
		c->context = stream->context;
		c->mode = mode;
		c->thread = pthread_self();
		c->id = ++last_id;
		c->next = captures;
		captures = c;
		c->graph->capture = c;
		capture_enter(c, stream);
	} else {
		stream->tail.count = 0;
		free(c);
	}
	queue_unref(stream);
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode)
{
	return capture_begin(hStream, NULL, NULL, NULL, 0, mode);
}

CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph,
	const CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
	size_t numDependencies, CUstreamCaptureMode mode)
{
	if (!object_is(hGraph, OBJECT_GRAPH))
		return CUDA_ERROR_INVALID_VALUE;
	return capture_begin(
		hStream, hGraph, dependencies, dependencyData, numDependencies, mode);
}

/* Everything that was captured must come back to the stream that began it. */
static bool capture_joined(const struct capture *c)
{
	unsigned mark = graph_mark(&c->origin->tail);

	for (size_t i = 0; i < c->left.count; i++)
		if (c->left.item[i]->mark != mark)
			return false;
	for (struct CUstream_st *s = c->streams; s; s = s->captured)
		for (size_t i = 0; i < s->tail.count; i++)
			if (s->tail.item[i]->mark != mark)
				return false;
	return true;
}

CUresult cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
	struct CUstream_st *stream;
	struct capture *c;
	CUresult ret;

	if (phGraph)
		*phGraph = NULL;
	ret = soft_stream_find(hStream, &stream);
	if (ret)
		return ret;
	pthread_mutex_lock(&queue_lock);
	c = stream->capture;
	if (!c) {
		ret = CUDA_ERROR_ILLEGAL_STATE;
	} else if (!phGraph && !c->to_graph) {
		ret = CUDA_ERROR_INVALID_VALUE;
	} else if (c->origin != stream) {
		c->invalid = true;
		ret = CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	} else {
		struct CUgraph_st *graph = c->graph;
		bool kept = c->to_graph && graph->parent;

		if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
			!pthread_equal(c->thread, pthread_self()))
			ret = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
		else if (c->invalid)
			ret = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
		else if (!capture_joined(c))
			ret = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
		capture_over(c);
		if (!ret && phGraph)
			*phGraph = graph;
		else if (ret && !kept)
			soft_graph_free(graph);
	}
	queue_unref(stream);
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
	struct CUstream_st *stream;
	CUresult ret = soft_stream_find(hStream, &stream);

	if (ret)
		return ret;
	pthread_mutex_lock(&queue_lock);
	if (!captureStatus)
		ret = CUDA_ERROR_INVALID_VALUE;
	else if (stream->legacy && capture_blocking(stream->context))
		ret = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	else if (!stream->capture)
		*captureStatus = CU_STREAM_CAPTURE_STATUS_NONE;
	else
		*captureStatus = stream->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
							  : CU_STREAM_CAPTURE_STATUS_ACTIVE;
	queue_unref(stream);
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode *dependencies,
	const CUgraphEdgeData *dependencyData, size_t numDependencies, unsigned int flags)
{
	struct CUstream_st *stream;
	CUresult ret;

	if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (numDependencies && !dependencies))
		return CUDA_ERROR_INVALID_VALUE;
	ret = stream_use(hStream, &stream);
	if (ret)
		return ret;
	pthread_mutex_lock(&queue_lock);
	if (!stream->capture) {
		ret = CUDA_ERROR_ILLEGAL_STATE;
	} else {
		size_t before = stream->tail.count;

		if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
			stream->tail.count = 0;
		ret = tail_add(stream, stream->capture->graph, dependencies, dependencyData,
			numDependencies);
		if (ret == CUDA_ERROR_INVALID_VALUE)
			stream->tail.count = before;
	}
	queue_unref(stream);
	pthread_mutex_unlock(&queue_lock);
	return ret;
}

CUresult cuStreamUpdateCaptureDependencies(
	CUstream hStream, CUgraphNode *dependencies, size_t numDependencies, unsigned int flags)
{
	return cuStreamUpdateCaptureDependencies_v2(
		hStream, dependencies, NULL, numDependencies, flags);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	CUstreamCaptureMode old = thread_mode;

	if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	thread_mode = *mode;
	*mode = old;
	return CUDA_SUCCESS;
}
