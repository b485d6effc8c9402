/* SPDX-License-Identifier: Apache-2.0
 *
 * What VCUDA_STATS counts.  Off: one predicted branch a call.
 */
#ifndef VCUDA_SHIM_ENGINE_STATISTICS_H
#define VCUDA_SHIM_ENGINE_STATISTICS_H

#include <stdint.h>

enum stats_copy {
	STATS_HOST_TO_DEVICE,
	STATS_DEVICE_TO_HOST,
	STATS_DEVICE_TO_DEVICE,
	STATS_COPIES
};

enum stats_event {
	STATS_ROUND_TRIPS,	 /* an app call waited for an answer of the agent */
	STATS_LOCAL_ROUND_TRIPS, /* … of the sidecar alone */
	STATS_STALLS,		 /* … for room or for memory that is being unmapped */
	STATS_ERRORS,		 /* calls that returned an error that is not NOT_READY */
	STATS_ANSWER_NS,	 /* time that calls waited for answers */
	STATS_STALL_NS,		 /* … and in stalls */
	STATS_MIRROR_OUT,	 /* bytes that kept memory which kernels reach in step … */
	STATS_MIRROR_IN,	 /* … towards the program */
	STATS_OWN_WAITS,	 /* answers that threads of the shim waited for */
	STATS_EVENTS
};

/* Reads VCUDA_STATS. */
void stats_open(void);
void stats_event(enum stats_event event);
void stats_mirrored(enum stats_event direction, uint64_t bytes);
/* When a wait began, as wait_now says; 0 where nothing is counted. */
uint64_t stats_start(void);
/* Adds what has passed since. */
void stats_time(enum stats_event event, uint64_t start);
void stats_copy(enum stats_copy direction, uint64_t bytes);
/* Prints once, at exit. */
void stats_close(void);

#endif
