/* SPDX-License-Identifier: Apache-2.0
 *
 * What the front counts, and /metrics.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_HTTP_METRICS_H
#define VCUDA_GPU_AGENT_FRONT_HTTP_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu-agent/front/session/hello.h"
#include "gpu-agent/front/images.h"
#include "gpu-agent/front/http/latency.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/sandbox/sandbox.h"

struct front;
struct viewer;

/* Of times; the bounds are metrics.c's. */
#define HISTOGRAM_BOUNDS 9
struct histogram {
	uint64_t counts[HISTOGRAM_BOUNDS + 1]; /* each by itself; the last: beyond all bounds */
	uint64_t sum_ns;
};

struct counters {
	struct histogram waits;	    /* from HELLO to WELCOME */
	struct histogram durations; /* of sessions */
	struct latencies latencies;
	uint64_t refused[REFUSALS];
	uint64_t sessions, probes, worker_starts;
	uint64_t resumes, resumes_refused, resumes_expired;
	uint64_t exits_clean, exits_failed, exits_signal;
	uint64_t peer_faults; /* datagrams of workers that made no sense */
	uint64_t lease_refused;
	uint64_t knocks_taken, knocks_refused; /* datagrams that asked for a UDP socket */
	/* Connections to other agents' sessions (direct.h). */
	uint64_t peers_accepted, peers_dialed, peers_failed;
	uint64_t refused_calls[SANDBOX_CALLS_MOST];
	uint64_t images[IMAGE_FATES], image_bytes[IMAGE_FATES];
	uint64_t renewed, expired;   /* sessions whose client proved itself anew, or did not */
	uint64_t adopted;	     /* sessions that the front before had */
	uint64_t http_refused;	     /* requests without a token that is good */
	struct session_stats totals; /* of all sessions ever; `used` is not kept */
};

void metrics_wait(struct front *front, const char *session, uint64_t ns);
void metrics_duration(struct front *front, uint64_t ns);
/* Text of a page, to be freed by the caller; NULL without memory. OPENMETRICS: in that format,
 * with exemplars. Series of a tenant, and exemplars, which name sessions, are those that the
 * viewer sees. */
char *metrics_text(struct front *front, bool openmetrics, const struct viewer *viewer);

#endif
