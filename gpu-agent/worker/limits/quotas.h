/* SPDX-License-Identifier: Apache-2.0
 *
 * The quotas of the session's tenant (gpu-agent/quotas.h), which hold for all its sessions
 * together (gpu-agent/tally.h).  What is in use, and how often more was refused, goes to the
 * front with each STATS.  The loop's thread alone.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LIMITS_QUOTAS_H
#define VCUDA_GPU_AGENT_WORKER_LIMITS_QUOTAS_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu-agent/quotas.h"

struct handoff;
struct worker;

/* The tally that came with TALLY, in which the session has SLOT; takes FD. */
void quotas_tally(struct worker *w, int fd, uint32_t slot);
/* Those of SESSION, before its first frame. 0, or -1: there are some, and no tally. */
int quotas_begin(struct worker *w, const struct handoff *session);
/* N more of it. False: that is more than the tenant may have, and nothing is taken; the program
 * is told once on its stderr, and the log has it. */
bool quotas_charge(struct worker *w, enum quota quota, uint64_t n);
void quotas_uncharge(struct worker *w, enum quota quota, uint64_t n);
/* Says how much memory the worker has. False: the tenant's have too much, and none of them more
 * than this one. */
bool quotas_host_memory(struct worker *w, uint64_t bytes);

#endif
