/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of a tenant's quotas share: the quota of handles, and what the worker tells.
 */
#ifndef VCUDA_TESTS_UNIT_WORKER_QUOTAS_H
#define VCUDA_TESTS_UNIT_WORKER_QUOTAS_H

#include "gpu-agent/worker/limits/quotas.h"
#include "tests/unit/worker/worker_peer.h"

#define HANDLES 64 /* may be */

/* The worker's next STATS, or its last with ENDED. */
static inline void hear_stats(struct peer *p, struct handoff *h)
{
	do
		assert_int_equal(recv(p->handoff, h, sizeof(*h), 0), sizeof(*h));
	while (h->what != HANDOFF_STATS && h->what != HANDOFF_ENDED);
}

#endif
