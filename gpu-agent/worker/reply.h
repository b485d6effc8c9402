/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames to the app: headers and bodies are copied into a ring, payloads go as they lie.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_REPLY_H
#define VCUDA_GPU_AGENT_WORKER_REPLY_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "protocol/wire/frame.h"

struct staging_range;
struct worker;

bool reply_room(const struct worker *w);
void reply_send(struct worker *w, uint16_t tag, CUresult status, const void *body, uint32_t n);
void reply_payload(struct worker *w, enum frame_kind kind, uint16_t tag, CUresult status,
	const struct frame_destination *destination, const void *bytes, uint32_t n,
	struct staging_range *range);
void reply_update(struct worker *w, uint32_t counter, uint64_t value);
void reply_upcall(struct worker *w, uint32_t what, uint64_t value);
void reply_plain(struct worker *w, enum frame_kind kind, CUresult status, const char *text);
bool reply_flush(struct worker *w);	  /* true: something went out */
bool reply_waits(const struct worker *w); /* something has not gone out yet */
/* For another thread than the loop's: sends what waits, or where nothing does and `pong`, a
 * PONG. 0 or -errno: the link is dead. */
int reply_flush_beside(struct worker *w, bool pong);

#endif
