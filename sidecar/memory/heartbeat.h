/* SPDX-License-Identifier: Apache-2.0
 *
 * The page by which programs see that this process runs: one for all of them, which they can
 * only read.  A thread counts it up each second while somebody is there, whatever the others
 * are busy with: memory that is hard to get, a log that nobody reads.  A program that waits for
 * an answer and sees it stand still stops waiting (shim/engine/attach/heartbeat.c).
 */
#ifndef VCUDA_SIDECAR_MEMORY_HEARTBEAT_H
#define VCUDA_SIDECAR_MEMORY_HEARTBEAT_H

#include <stdatomic.h>
#include <stdint.h>

#include "common/error.h"

struct channel_heartbeat;

struct heartbeat {
	struct channel_heartbeat *page;
	int fd;
	_Atomic uint32_t watched; /* futex word: how many look; 0: it need not beat */
};

/* Once a process. 0, or -errno with *error. */
int heartbeat_start(struct heartbeat *heartbeat, struct error *error);
/* So many may look from now on. */
void heartbeat_watched(struct heartbeat *heartbeat, uint32_t count);

#endif
