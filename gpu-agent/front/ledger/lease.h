/* SPDX-License-Identifier: Apache-2.0
 *
 * What workers ask for: more device memory for their sessions, and word of when that of others
 * is back.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_LEDGER_LEASE_H
#define VCUDA_GPU_AGENT_FRONT_LEDGER_LEASE_H

#include <stdint.h>

#include "gpu-agent/handoff.h"

struct front;
struct pool_worker;

/* A worker that has a session asks for memory. */
void lease_wanted(struct front *front, struct pool_worker *worker, const struct handoff *h);
/* Memory came back, or time passed: wishes that wait are looked at again. */
void lease_retry(struct front *front, struct pool_worker *worker, uint64_t now);
/* When the next of them has waited long enough; UINT64_MAX: none waits. */
uint64_t lease_due(const struct pool_worker *worker);
/* A worker that has a session asks when the memory of those before it is back (DRAIN). */
void lease_drain(struct front *front, struct pool_worker *worker, const struct handoff *h);

#endif
