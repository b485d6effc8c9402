/* SPDX-License-Identifier: Apache-2.0
 *
 * The page by which programs see that this process runs: one for all of them, which they can
 * only read.  A thread counts it up each second while somebody is there, whatever the others
 * are busy with: memory that is hard to get, a log that nobody reads.  A program that waits for
 * an answer and sees it stand still stops waiting (shim/engine/heartbeat.c).
 */
#ifndef VCUDA_SIDECAR_PULSE_H
#define VCUDA_SIDECAR_PULSE_H

#include <stdatomic.h>
#include <stdint.h>

#include "common/error.h"

struct channel_pulse;

struct pulse {
	struct channel_pulse *page;
	int fd;
	_Atomic uint32_t watched; /* futex word: how many look; 0: it need not beat */
};

/* Once a process. 0, or -errno with *error. */
int pulse_open(struct pulse *pulse, struct error *error);
/* So many may look from now on. */
void pulse_watched(struct pulse *pulse, uint32_t count);

#endif
