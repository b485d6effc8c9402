/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/front/http/latency.h"

#include <time.h>

/* A worker's `last` may be anything; only what belongs into the bucket is told. */
static void point_to(
	struct latency_exemplar *exemplar, const char *session, unsigned bucket, uint64_t ns)
{
	struct timespec now;

	if (latency_bucket(ns) != bucket)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(exemplar->session, sizeof(exemplar->session), "%s", session);
	exemplar->ns = ns;
	exemplar->at_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void take_class(struct latency *total, struct latency_exemplar *exemplars,
	const char *session, struct latency *seen, const struct latency *now)
{
	for (unsigned i = 0; i < LATENCY_BUCKETS; i++) {
		if (now->counts[i] <= seen->counts[i])
			continue;
		total->counts[i] += now->counts[i] - seen->counts[i];
		seen->counts[i] = now->counts[i];
		seen->last[i] = now->last[i];
		point_to(&exemplars[i], session, i, now->last[i]);
	}
	if (now->sum_ns > seen->sum_ns) {
		total->sum_ns += now->sum_ns - seen->sum_ns;
		seen->sum_ns = now->sum_ns;
	}
}

void latencies_take(struct latencies *latencies, const char *session,
	struct latency seen[LATENCY_CLASSES], const struct latency now[LATENCY_CLASSES])
{
	for (int class = 0; class < LATENCY_CLASSES; class ++)
		if (class != LATENCY_ATTACH) /* the front's own */
			take_class(&latencies->classes[class], latencies->exemplars[class],
				session, &seen[class], &now[class]);
}

void latencies_observe(
	struct latencies *latencies, enum latency_class class, const char *session, uint64_t ns)
{
	unsigned bucket = latency_bucket(ns);

	latency_observe(&latencies->classes[class], ns, 1);
	point_to(&latencies->exemplars[class][bucket], session, bucket, ns);
}

void latencies_print(FILE *out, struct latencies *latencies, bool exemplars)
{
	latency_print(out, "vcuda_agent_call_seconds",
		"What a worker needed to serve one, without waiting for the GPU; attach: until "
		"a "
		"worker is there.",
		latencies->classes, exemplars ? latencies->exemplars : NULL);
}
