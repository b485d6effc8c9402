/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose work goes first at a GPU: classes of sessions.  A tenant's sessions have its class, or
 * a lower one that the client asks for.  While a session of a higher class has work at a GPU,
 * the others get no more of its time but for a short turn now and then, so that none stands
 * still for good.  What a session was given before it may use up: at most QUANTUM, since who
 * may have to wait gets no more at once; and what the GPU has begun is not stopped.
 *
 * Classes count where the configuration gives one to anybody (`tenants.NAME.priority`): the
 * time of every session is told as it goes then (timeshare.h), and a
 * session that is not told of as working holds nobody up.  Times in ns.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_LEDGER_PRIORITY_H
#define VCUDA_GPU_AGENT_FRONT_LEDGER_PRIORITY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gpu-agent/agent.h"

#define PRIORITY_QUANTUM_NS 3000000  /* given at once to who is not of the highest class */
#define PRIORITY_TURN_NS 2000000     /* given to who is held up, … */
#define PRIORITY_EVERY_NS 500000000u /* … so long after it was given something */

struct front;
struct session;
struct session_hello;
struct viewer;

/* Of a GPU: sessions that have work there. */
struct priority_gpu {
	uint32_t working[PRIORITIES];
};

const char *priority_name(enum agent_priority priority);
/* Whether the configuration gives anybody a class. */
bool priority_configured(const struct agent_config *config);
/* The class that a HELLO asks for; 0: its tenant's. */
enum agent_priority priority_asked(const struct session_hello *hello);
/* The session's: its tenant's, or the lower one that it asks for. */
enum agent_priority priority_of(const struct session *session);
/* Whether somebody of a higher class works there. */
bool priority_is_behind(const struct priority_gpu *gpu, enum agent_priority priority);
/* What who is of that class may have at once, where it was given something at GIVEN_AT last; 0:
 * nothing, it is held up. UINT64_MAX: whatever it wants. */
uint64_t priority_quantum(const struct priority_gpu *gpu, enum agent_priority priority,
	uint64_t given_at, uint64_t now);
/* Of the tenants that the viewer sees. */
void priority_metrics(FILE *out, const struct front *front, const struct viewer *viewer);

#endif
