/* SPDX-License-Identifier: Apache-2.0
 *
 * An open capture, for capture.c (how it begins, what it forbids, how it ends) and
 * capture_info.c (what can be asked of it).
 */
#ifndef VCUDA_SHIM_DRIVER_GRAPH_CAPTURE_STATE_H
#define VCUDA_SHIM_DRIVER_GRAPH_CAPTURE_STATE_H

#include <pthread.h>

#include "shim/driver/graph/capture.h"
#include "shim/driver/graph/graph.h"

struct capture {
	struct capture *next;
	struct graph *graph;
	struct stream *origin;
	struct context *context;
	CUstreamCaptureMode mode;
	pthread_t thread;
	uint64_t id;
	bool existing; /* the graph was there before */
	bool invalid;
	/* What GetCaptureInfo handed out last. */
	CUgraphNode *tail;
	CUgraphEdgeData *edges;
	size_t room; /* of both */
};

/* With the lock held. NULL: it does not capture. */
struct capture *capture_of_stream(const struct stream *stream);
/* With the lock held. The capture that the stream of that number is part of; NULL: none. */
struct capture *capture_of_number(uint64_t number);
/* Checks what edges from COUNT nodes of the graph to a stream's next node say. Where that is no
 * more than before and behind, *DATA becomes NULL. */
CUresult capture_edges(
	struct graph *graph, const uint32_t *from, const CUgraphEdgeData **data, size_t count);

#endif
