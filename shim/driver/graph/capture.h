/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams that capture.  The worker's streams capture for real; the shim keeps what makes every
 * question local (who captures, into what, by which thread in which mode) and refuses what CUDA
 * refuses meanwhile.  The worker itself always captures relaxed
 * (gpu-agent/worker/driver/graph/capture.c).
 */
#ifndef VCUDA_SHIM_DRIVER_GRAPH_CAPTURE_H
#define VCUDA_SHIM_DRIVER_GRAPH_CAPTURE_H

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/driver/stream/stream.h"

struct graph;

struct capture;
extern struct captures {
	pthread_mutex_t lock;
	/* 0, as almost always: none of what follows need be asked. */
	_Atomic uint32_t open;
	struct capture *first;
	struct capture *ended; /* the last one, for its lists, which programs read then too */
	uint64_t last_id, last_line;
	/* The program looks at what it captured: the end of a capture brings it along. */
	atomic_bool listed;
} captures;
static inline bool capture_any(void)
{
	return __builtin_expect(
		atomic_load_explicit(&captures.open, memory_order_acquire) != 0, 0);
}

/* Before work on a stream (NULL or its handle 0: the context's legacy one): INVALIDATED where
 * its capture is, IMPLICIT on the legacy stream while one that waits for it captures. */
CUresult capture_use(const struct context *context, const struct stream *stream);
/* The same of the legacy stream, for who only asks whether it captures: no capture ends. */
CUresult capture_asked(const struct context *context);
/* What a stub asks first (captured() in cuda.api). node: as capture_use(); never: UNSUPPORTED
 * where the stream captures, even if its capture is invalid already. */
CUresult capture_node(CUstream stream);
CUresult capture_never(CUstream stream);
/* capture_unsafe() where that stream does not capture. */
CUresult capture_elsewhere(CUstream stream);
/* The graph that the stream captures into; NULL: it does not. */
struct graph *capture_graph(uint64_t stream);
/* A new line (struct part_place). */
uint64_t capture_line_new(void);
/* The stream's; 0: it does not capture. It ends where the program says what the stream's next
 * node comes behind. */
uint64_t capture_line(uint64_t stream);
void capture_line_ends(uint64_t stream);
/* A call that a stream cannot capture: UNSUPPORTED, and the capture is invalid; SUCCESS where
 * the stream does not capture. */
CUresult capture_refuse(uint64_t stream);
/* For calls that wait for a whole context. */
CUresult capture_refuse_context(const struct context *context);
/* For calls that CUDA calls unsafe: whether a capture's mode forbids them to this thread. */
CUresult capture_unsafe_slow(void);
static inline CUresult capture_unsafe(void)
{
	return capture_any() ? capture_unsafe_slow() : CUDA_SUCCESS;
}

/* The event is recorded on that stream. True: it belongs to a capture now, and is no event to
 * wait for. EXTERNAL: the recording itself is captured. */
bool capture_record(struct event *event, uint64_t stream, bool external);
/* The stream is about to wait for the event: it may join a capture by that. */
CUresult capture_wait(struct event *event, uint64_t stream, bool external);
/* A query or a wait for an event that was recorded in a capture last. */
CUresult capture_event(struct event *event);

/* The stream, or all of a context, goes. */
void capture_stream_gone(struct stream *stream);
void capture_reset(struct context *context);

#endif
