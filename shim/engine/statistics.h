/* SPDX-License-Identifier: Apache-2.0
 *
 * What VCUDA_STATS counts.  Off: one predicted branch a call.
 */
#ifndef VCUDA_SHIM_ENGINE_STATISTICS_H
#define VCUDA_SHIM_ENGINE_STATISTICS_H

#include <stdint.h>

enum statistics_copy {
	STATISTICS_HOST_TO_DEVICE,
	STATISTICS_DEVICE_TO_HOST,
	STATISTICS_DEVICE_TO_DEVICE,
	STATISTICS_COPIES
};

enum statistics_event {
	STATISTICS_ROUND_TRIPS,	      /* an app call waited for an answer of the agent */
	STATISTICS_LOCAL_ROUND_TRIPS, /* … of the sidecar alone */
	STATISTICS_STALLS,	      /* … for room or for memory that is being unmapped */
	STATISTICS_ERRORS,	      /* calls that returned an error that is not NOT_READY */
	STATISTICS_ANSWER_NS,	      /* time that calls waited for answers */
	STATISTICS_STALL_NS,	      /* … and in stalls */
	STATISTICS_MIRROR_OUT,	      /* bytes that kept memory which kernels reach in step … */
	STATISTICS_MIRROR_IN,	      /* … towards the program */
	STATISTICS_OWN_WAITS,	      /* answers that threads of the shim waited for */
	STATISTICS_EVENTS
};

/* Reads VCUDA_STATS. */
void statistics_open(void);
void statistics_event(enum statistics_event event);
void statistics_mirrored(enum statistics_event direction, uint64_t bytes);
/* When a wait began, as wait_now says; 0 where nothing is counted. */
uint64_t statistics_start(void);
/* Adds what has passed since. */
void statistics_time(enum statistics_event event, uint64_t start);
void statistics_copy(enum statistics_copy direction, uint64_t bytes);
/* Prints once, at exit. */
void statistics_close(void);

#endif
