/* SPDX-License-Identifier: Apache-2.0
 *
 * A stripe's lane to agent-uploads: which payloads that has, and what it is to keep.  It reads
 * and writes the stripe's slots itself.  All functions are for the stripe's thread.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_STAGING_UPLOADS_H
#define VCUDA_GPU_AGENT_WORKER_STAGING_UPLOADS_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/wire/session.h"

struct uploads_lane_end {
	int ask, keep;	/* -1: none */
	uint64_t seed;	/* of names */
	uint32_t kept;	/* bits: slots that agent-uploads may still read */
	bool began;	/* the peer may be told that there is one */
	bool may_write; /* it may still write to a slot */
};

/* Memory for the stripe's slots that both processes have: its descriptor, or -errno. */
int uploads_memory(void **base);

/* It gets MEMORY. Without an answer there is no lane. */
void uploads_begin(struct uploads_lane_end *lane, int memory);

/* Which of the first COUNT it has, as bits: none where it is gone. */
uint64_t uploads_ask(
	struct uploads_lane_end *lane, const struct session_name *names, uint32_t count);

/* What it said to have, into SLOT. False: it is gone. */
bool uploads_get(struct uploads_lane_end *lane, const struct session_name *name, uint32_t slot);

/* N bytes in SLOT, which it may keep; before the slot is used again: uploads_drain. */
void uploads_keep(struct uploads_lane_end *lane, uint32_t slot, uint32_t n);
void uploads_drain(struct uploads_lane_end *lane, uint32_t slot);

void uploads_end(struct uploads_lane_end *lane);

#endif
