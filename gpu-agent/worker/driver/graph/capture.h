/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams that capture.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_DRIVER_GRAPH_CAPTURE_H
#define VCUDA_GPU_AGENT_WORKER_DRIVER_GRAPH_CAPTURE_H

#include <stdbool.h>

struct worker;
struct worker_stream;

/* One that was open is not any more. */
void capture_over(struct worker *w);
void worker_capture_stream_gone(struct worker *w, struct worker_stream *stream);

#endif
