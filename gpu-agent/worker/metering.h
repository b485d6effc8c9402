/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPU time of a session whose tenant has a share.  The front says how far it may go; beyond
 * that the worker takes no frames that make work.  A session without a share pays nothing: no
 * event, no clock.
 *
 * With the software GPU the time is what its threads computed.  With another driver it is the
 * time in which the device had work of the session's, as events in its streams show.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_METERING_H
#define VCUDA_GPU_AGENT_WORKER_METERING_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu-agent/handoff.h"

#define METERING_NAP_NS 100000 /* how long work may be done and not known to be */

struct worker;

/* By device of the session; times in ns. */
struct metering {
	bool on;
	bool stopped;	/* it has used what it may */
	uint32_t works; /* bit d: device d has work of the session's */
	uint64_t used[HANDOFF_DEVICES], allowed[HANDOFF_DEVICES], told[HANDOFF_DEVICES];
	uint64_t looked_at; /* when `used` was up to date */
	uint64_t worked_at; /* when there was work last */
	uint64_t stopped_at;
	uint64_t computed; /* by the software GPU, when it was looked at */
	uint64_t marked;   /* all of `used` when a stream was marked last */
	bool told_works, told_waits, again;
};

/* The session's first allowance. */
void metering_open(struct worker *w, const struct handoff *session);
/* MORE of the front's. */
void metering_more(struct worker *w, const struct handoff *h);
/* Another front has the session: it is told anew. */
void metering_again(struct worker *w);
/* Looks what was used, tells the front, stops or goes on. Each turn of the loop. True: frames
 * are served again. */
bool metering_poll(struct worker *w);
/* A stream got a mark: how much work lies between two of them follows how long it lasts. */
void metering_marked(struct worker *w);
/* No frame that makes work is to be served now. */
bool metering_stops(const struct worker *w);
/* The loop has to look again soon. */
bool metering_watches(const struct worker *w);

#endif
