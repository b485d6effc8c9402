/* SPDX-License-Identifier: Apache-2.0
 *
 * The quotas of the session's tenant (gpu-agent/quotas.h).  What is in use, and how often more
 * was refused, goes to the front with each STATS.  The loop's thread alone.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_QUOTAS_H
#define VCUDA_GPU_AGENT_WORKER_QUOTAS_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu-agent/quotas.h"

struct handoff;
struct worker;

/* Those of SESSION, before its first frame. */
void quotas_begin(struct worker *w, const struct handoff *session);
/* N more of it. False: that is more than the tenant may have, and nothing is taken; the program
 * is told once on its stderr, and the log has it. */
bool quotas_take(struct worker *w, enum quota quota, uint64_t n);
void quotas_give(struct worker *w, enum quota quota, uint64_t n);

#endif
