/* SPDX-License-Identifier: Apache-2.0
 *
 * The turn: take frames, serve them, look at the GPU, answer.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LOOP_LOOP_H
#define VCUDA_GPU_AGENT_WORKER_LOOP_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu-agent/worker/worker.h"

void loop_run(struct worker *w);
/* Whether the frame's call has the mark SERVE_SLOW, SERVE_WAITS or SERVE_IDLES. */
bool loop_marked(const struct serve_entry *entry, const struct frame_header *h, uint16_t mark);
/* There is staging for what the frame at hand answers; and whether it takes some. */
bool loop_has_staging(struct worker *w);
bool loop_stages(const struct worker *w);
/* Serves it and answers; loop_range_done: its payload is done with then. */
void loop_serve_frame(struct worker *w);
void loop_range_done(struct worker *w);
/* Writes a payload that is one byte over and over, where that is not done. */
void loop_fill_payload(struct worker *w);
/* What was read and not taken over is as if it had never come. */
void loop_drop_input(struct worker *w);

#endif
