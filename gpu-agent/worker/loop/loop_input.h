/* SPDX-License-Identifier: Apache-2.0
 *
 * What the loop reads: for loop.c.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LOOP_LOOP_INPUT_H
#define VCUDA_GPU_AGENT_WORKER_LOOP_LOOP_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu-agent/worker/worker.h"

/* Up to N bytes of the first connection, *got of them. false: the session is over. */
bool loop_read(struct worker *w, void *to, uint32_t n, uint32_t *got);
/* The frame's payload, from its stripe. false: not there yet, or the session is over. */
bool loop_stripe_receive(struct worker *w);
/* Gets header and body of the next frame out of the buffer. false: not there yet. */
bool loop_parse(struct worker *w);
/* Reads what the connection has into the buffer. false: nothing, or the session is over. */
bool loop_fill(struct worker *w);
/* The frame at hand cannot be served for want of room, which the client's count would make, and
 * that can be read yet. */
bool loop_awaits_count(const struct worker *w);
/* The frame cannot be served for want of room in the send window, and behind it may stand what
 * makes some: the client's count. True: it did. */
bool loop_look_ahead(struct worker *w);

#endif
