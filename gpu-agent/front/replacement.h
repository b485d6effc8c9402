/* SPDX-License-Identifier: Apache-2.0
 *
 * When the worker that a session took is replaced.  A worker that starts makes contexts for a
 * second, and the driver lets one process at a time do much of that: the session's first calls,
 * which somebody waits for, would stand behind it.  So the next one is started a moment later,
 * as long as another is ready for who comes meanwhile.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_REPLACEMENT_H
#define VCUDA_GPU_AGENT_FRONT_REPLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

/* Of a process's first call it is some 3 ms natively and here, of loading its first modules
 * some 10 more. */
#define REPLACEMENT_NS 50000000ull

struct replacement {
	uint64_t due; /* 0: no session came since the last one was due */
};

/* A session has got a worker. Further ones meanwhile do not put it off. */
void replacement_begin(struct replacement *r, uint64_t now);

/* READY workers are there for who comes, WAITING sessions have none: is no worker to be started
 * yet? */
bool replacement_waits(struct replacement *r, uint32_t ready, uint32_t waiting, uint64_t now);

#endif
