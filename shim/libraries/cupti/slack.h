/* SPDX-License-Identifier: Apache-2.0
 *
 * By how much the times of one GPU's records are wrong, as the program's calls tell: nothing
 * runs before it was asked for, nor after it was seen to be done.  All records up to a wait for
 * the GPU are moved alike, so that they stay in their order and have their gaps.  The answers
 * that tell the agent's clock are exact to half a round trip, what CUPTI makes of a GPU's clock
 * is not: some 300 us off on an H200.
 */
#ifndef VCUDA_SHIM_LIBRARIES_CUPTI_SLACK_H
#define VCUDA_SHIM_LIBRARIES_CUPTI_SLACK_H

#include <stdint.h>

/* More is no fault of a clock's: such a record is left out of it. */
#define SLACK_MOST 10000000 /* ns */

struct slack {
	int64_t least; /* that all have to move, so that none begins before its call … */
	int64_t most;  /* … and that they may, so that none ends after it was done */
};
#define SLACK_NONE ((struct slack){INT64_MIN, INT64_MAX})

/* A record from START to END. CALL 0: its call is not known; DONE UINT64_MAX: nor when it was
 * done. */
static inline void slack_note(
	struct slack *slack, uint64_t start, uint64_t end, uint64_t call, uint64_t done)
{
	int64_t early = (int64_t)(call - start), room = (int64_t)(done - end);

	if (call && early > slack->least && early < SLACK_MOST)
		slack->least = early;
	if (done != UINT64_MAX && room < slack->most && room > -SLACK_MOST)
		slack->most = room;
}

/* What to add to their times. Where no number does, half of the records' wrong is left. */
static inline int64_t slack_move(const struct slack *slack)
{
	if (slack->least > slack->most)
		return slack->most + (slack->least - slack->most) / 2;
	if (slack->least > 0)
		return slack->least;
	return slack->most < 0 ? slack->most : 0;
}

#endif
