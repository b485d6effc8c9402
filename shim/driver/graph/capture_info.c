/* SPDX-License-Identifier: Apache-2.0
 *
 * What can be asked of a stream that captures, and what its next node waits for.  All but the
 * nodes is known here.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/generated/cuda_hand.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "protocol/wire/graph.h"
#include "shim/driver/graph/capture_state.h"
#include "shim/engine/engine.h"

CUresult hand_cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
	uint64_t number;
	struct capture *c;
	CUresult status = stream_plain(hStream, &number);

	if (!captureStatus)
		return CUDA_ERROR_INVALID_VALUE;
	if (!status && !number)
		status = capture_asked(context_current());
	if (status)
		return status;
	*captureStatus = CU_STREAM_CAPTURE_STATUS_NONE;
	if (!capture_any())
		return CUDA_SUCCESS;
	pthread_mutex_lock(&captures.lock);
	c = capture_of_number(number);
	if (c)
		*captureStatus = c->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
					    : CU_STREAM_CAPTURE_STATUS_ACTIVE;
	pthread_mutex_unlock(&captures.lock);
	return CUDA_SUCCESS;
}

static bool edge_plain(const CUgraphEdgeData *data)
{
	static const CUgraphEdgeData none;

	return !memcmp(data, &none, sizeof(none));
}

/* From a kernel's port, which only another kernel's node can take. */
static bool edge_valid(struct graph *graph, uint32_t from, const CUgraphEdgeData *data)
{
	CUgraphEdgeData plain = {.from_port = data->from_port, .type = data->type};
	uint32_t type;

	return !memcmp(data, &plain, sizeof(plain)) &&
	       data->type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC &&
	       (data->from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC ||
		       data->from_port == CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER) &&
	       !graph_node_type(graph, from, &type) && type == CU_GRAPH_NODE_TYPE_KERNEL;
}

CUresult capture_edges(
	struct graph *graph, const uint32_t *from, const CUgraphEdgeData **data, size_t count)
{
	bool plain = true;

	for (size_t i = 0; *data && i < count; i++) {
		if (edge_plain(&(*data)[i]))
			continue;
		if (!edge_valid(graph, from[i], &(*data)[i]))
			return CUDA_ERROR_INVALID_VALUE;
		plain = false;
	}
	if (plain)
		*data = NULL;
	return CUDA_SUCCESS;
}

/* What the stream's next node waits for, as far as one answer tells it, behind *HAVE others.
 * EACH: bytes of a struct graph_tail that OP tells of each. */
static CUresult tail_ask(struct capture *c, uint64_t stream, uint16_t op, size_t each,
	size_t *have, size_t *total)
{
	const struct wire_vcudaCaptureTail_reply *reply;
	struct wire_vcudaCaptureTail *body;
	const unsigned char *list;
	struct shim_call call;
	size_t bytes;

	body = shim_begin(&call, op, sizeof(*body));
	body->stream = stream;
	body->graph = c->graph->handle;
	body->first = (uint32_t)*have;
	reply = shim_wait(&call, sizeof(*reply));
	if (!reply)
		return shim_end(&call);
	list = shim_run(&call, &reply->list, &bytes);
	*total = reply->total < GRAPH_NODES_MAX ? reply->total : 0;
	c->graph->count = reply->nodes < GRAPH_NODES_MAX ? reply->nodes : 0;
	if (!*have) {
		free(c->tail);
		free(c->edges);
		c->tail = calloc(*total + 1, sizeof(*c->tail));
		c->edges = calloc(*total + 1, sizeof(*c->edges));
		c->room = c->tail && c->edges ? *total : 0;
	}
	if (!c->tail || !c->edges || (*have < *total && (!list || bytes < each)))
		call.status = CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; !call.status && i < bytes / each && *have < c->room; i++) {
		struct graph_tail tail = {0};

		memcpy(&tail, list + i * each, each);
		c->tail[*have] = graph_node_name(c->graph, tail.from);
		memcpy(&c->edges[(*have)++], tail.data, sizeof(*c->edges));
	}
	return shim_end(&call);
}

/* Asks for all of it; kept with the capture until it is asked again. */
static CUresult capture_tail(struct capture *c, uint64_t stream, size_t *total)
{
	uint16_t op = OP_vcudaCaptureTailEdges;
	size_t have = 0, each = sizeof(struct graph_tail);
	CUresult status;

	*total = 0;
	do {
		status = tail_ask(c, stream, op, each, &have, total);
		if (status == CUDA_ERROR_NOT_SUPPORTED && op != OP_vcudaCaptureTail) {
			/* An older agent, where edges say nothing. */
			op = OP_vcudaCaptureTail;
			each = sizeof(uint32_t);
			status = tail_ask(c, stream, op, each, &have, total);
		}
	} while (!status && have < *total && have < c->room);
	*total = have;
	return status;
}

CUresult hand_cuStreamGetCaptureInfo_v3(CUstream hStream,
	CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out, CUgraph *graph_out,
	const CUgraphNode **dependencies_out, const CUgraphEdgeData **edgeData_out,
	size_t *numDependencies_out)
{
	uint64_t number;
	struct capture *c;
	size_t total = 0;
	CUresult status = hand_cuStreamIsCapturing(hStream, captureStatus_out);

	if (status || *captureStatus_out != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return status;
	stream_plain(hStream, &number);
	pthread_mutex_lock(&captures.lock);
	c = capture_of_number(number);
	if (c && id_out)
		*id_out = c->id;
	if (c && graph_out)
		*graph_out = (CUgraph)(uintptr_t)c->graph->handle;
	pthread_mutex_unlock(&captures.lock);
	if (!c || (!dependencies_out && !numDependencies_out))
		return CUDA_SUCCESS;
	status = capture_tail(c, number, &total);
	if (status)
		return status;
	for (size_t i = 0; dependencies_out && !edgeData_out && i < total; i++)
		if (!edge_plain(&c->edges[i]))
			return CUDA_ERROR_LOSSY_QUERY;
	if (dependencies_out)
		*dependencies_out = c->tail;
	if (edgeData_out)
		*edgeData_out = c->edges;
	if (numDependencies_out)
		*numDependencies_out = total;
	return CUDA_SUCCESS;
}

CUresult hand_cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode *dependencies,
	const CUgraphEdgeData *dependencyData, size_t numDependencies, unsigned int flags)
{
	struct wire_vcudaCaptureUpdateEdges *body;
	struct shim_call call;
	struct graph *graph;
	uint64_t stream;
	uint32_t *after;
	CUresult status;

	status = stream_number(hStream, &stream);
	if (status)
		return status;
	graph = capture_graph(stream);
	if (!graph)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES)
		return CUDA_ERROR_INVALID_VALUE;
	status = graph_numbers(graph, dependencies, numDependencies, &after);
	if (!status)
		status = capture_edges(graph, after, &dependencyData, numDependencies);
	if (status) {
		free(after);
		return status;
	}
	body = dependencyData ? shim_begin(&call, OP_vcudaCaptureUpdateEdges, sizeof(*body))
			      : shim_begin(&call, OP_vcudaCaptureUpdate,
					sizeof(struct wire_vcudaCaptureUpdate));
	if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
		capture_line_ends(stream);
	body->stream = stream;
	body->graph = graph->handle;
	body->flags = flags;
	body->count = (uint32_t)numDependencies;
	shim_put(&call, &body->after, after, numDependencies * sizeof(*after));
	if (dependencyData)
		shim_put(&call, &body->data, dependencyData,
			numDependencies * sizeof(*dependencyData));
	free(after);
	return shim_post(&call);
}
