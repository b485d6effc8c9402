/* SPDX-License-Identifier: Apache-2.0
 *
 * The stripes that workers ask for: each has the ends of two pairs and the worker's memory.
 */
#ifndef VCUDA_GPU_AGENT_UPLOADS_LANES_H
#define VCUDA_GPU_AGENT_UPLOADS_LANES_H

#include "gpu-agent/uploads/payloads.h"

#define LANES_MOST 16384 /* 4096 sessions with 4 stripes */

struct lanes;

/* NULL with *error. */
struct lanes *lanes_new(struct payloads *cache, struct error *error);

/* A lane that the front made; takes both descriptors. The one that this stripe of the session
 * had before is closed. The thread that hears the front. */
void lanes_open(struct lanes *lanes, const struct uploads_lane *about, const int fds[2]);
uint32_t lanes_count(struct lanes *lanes);

/* Waits a second for requests, and serves one. Any number of threads. */
void lanes_serve(struct lanes *lanes);

#endif
