/* SPDX-License-Identifier: Apache-2.0
 *
 * How long workers needed to serve, of all sessions together, with a session to look at for
 * each bucket.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_HTTP_LATENCY_H
#define VCUDA_GPU_AGENT_FRONT_HTTP_LATENCY_H

#include <stdbool.h>

#include "common/latency.h"

struct latencies {
	struct latency classes[LATENCY_CLASSES];
	struct latency_exemplar exemplars[LATENCY_CLASSES][LATENCY_BUCKETS];
};

/* What a worker said of that session; SEEN is what it had said before. Numbers that do not grow
 * are wrong and are left out. */
void latencies_take(struct latencies *latencies, const char *session,
	struct latency seen[LATENCY_CLASSES], const struct latency now[LATENCY_CLASSES]);
/* One thing of the front's own. */
void latencies_observe(struct latencies *latencies, enum latency_class class,
	const char *session, uint64_t ns);
void latencies_print(FILE *out, struct latencies *latencies, bool exemplars);

#endif
