/* SPDX-License-Identifier: Apache-2.0
 *
 * What the worker's core asks of the driver's subjects (worker/driver/), which implement these:
 * the core includes nothing of that room.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_DRIVER_H
#define VCUDA_GPU_AGENT_WORKER_DRIVER_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct handoff;
struct pending;
struct worker;
struct worker_stream;

/* Streams. */
/* Destroys it; nobody waits on it any more. */
CUresult stream_drop(struct worker *w, struct worker_stream *stream);
void context_stream_init(struct worker *w, uint16_t context);
/* Nothing can be recorded in it now: it is part of a capture, or would be drawn into one. */
bool capture_of(struct worker *w, const struct worker_stream *stream);

/* Memory. */
void memory_unmap(struct worker *w, struct pending *p);
void memory_granted(struct worker *w, uint32_t device, uint64_t lease, CUresult status);

/* Memory shared with other sessions: SHARED and GIVEN; FD is -1 or taken over. */
void ipc_answer(struct worker *w, const struct handoff *h, int fd);

/* Host functions. */
int callback_open(struct worker *w);
bool callback_poll(struct worker *w);
void callback_over(struct worker *w);

/* Looks at the software GPU's load; once a second. */
void nvml_sample(struct worker *w, uint64_t now);

#endif
