/* SPDX-License-Identifier: Apache-2.0
 *
 * The page by which programs see that this process runs: one for all of them, which they can
 * only read.  The main thread counts it up each second, whatever the channels are busy with; a
 * program that waits for an answer and sees it stand still stops waiting (shim/pulse.c).
 */
#ifndef VCUDA_SIDECAR_PULSE_H
#define VCUDA_SIDECAR_PULSE_H

#include <stdint.h>

#include "common/error.h"

#define PULSE_BEAT_NS 1000000000ull

struct channel_pulse;

struct pulse {
	struct channel_pulse *page;
	int fd;
	uint64_t beat_at; /* the next one; ns */
};

/* 0, or -errno with *error. */
int pulse_open(struct pulse *pulse, struct error *error);
/* Main thread: beats if it is time. */
void pulse_beat(struct pulse *pulse, uint64_t now);

#endif
