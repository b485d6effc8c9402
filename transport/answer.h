/* SPDX-License-Identifier: Apache-2.0
 *
 * What the agent says, put where the program looks for it: answers into slots, counters,
 * upcalls.  The memory is shared with the program, which may write there too: nothing in it is
 * read back but who sleeps, and how many upcalls were taken.  One thread at a time.
 */
#ifndef VCUDA_TRANSPORT_ANSWER_H
#define VCUDA_TRANSPORT_ANSWER_H

#include <stdint.h>

#include "common/error.h"
#include "protocol/wire/channel.h"
#include "protocol/wire/frame.h"

/* Header's status, deferred and seq with BYTES of data, at most CHANNEL_SLOT_BODY, and how many
 * bytes of PAYLOAD have landed. Wakes the thread that waits. */
void answer_slot(struct channel_slot *slot, const struct frame_header *header, const void *data,
	uint32_t bytes, uint32_t payload);

/* -EPROTO with *error: there is no such counter. Wakes who waits for progress. */
int answer_update(struct channel_page *page, _Atomic uint64_t *counters,
	const struct frame_update *update, struct error *error);

/* Appends to the ring of upcalls behind *tail, which it moves; FRAME: the low half of the
 * number of the agent's frame. 0; 1: there is no room now; -EPROTO with *error: the program's
 * count cannot be. */
int answer_upcall(struct channel_page *page, struct channel_upcall *upcalls, uint64_t *tail,
	uint32_t frame, const struct frame_upcall *upcall, struct error *error);

/* Bumps `progress`, and wakes who sleeps on it. */
void answer_progress(struct channel_page *page);

#endif
