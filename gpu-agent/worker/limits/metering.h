/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPU time of the session.  With the software GPU it is what its threads computed.  With
 * another driver it is the time in which the device had work of the session's.
 *
 * Where its tenant has a share the front says how far it may go; beyond that the worker takes
 * no frames that make work, and looks with each turn of the loop (`on`).  Any other session is
 * counted only: a device works from the first piece of work on a stream that had none until the
 * streams are known to be done, which an answer to a wait says for nothing, and otherwise an
 * event that is looked at each METERING_LOOK_NS.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LIMITS_METERING_H
#define VCUDA_GPU_AGENT_WORKER_LIMITS_METERING_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu-agent/handoff.h"

#define METERING_NAP_NS 100000	 /* how long work may be done and not known to be: `on`; */
#define METERING_LOOK_NS 2000000 /* counted */

struct worker;
struct worker_stream;

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
	bool reported_works, reported_waits, again;
	bool asked; /* told, and there was no MORE since */
	/* Counted: streams that may have work, and since when one has that `used` lacks. */
	uint32_t busy[HANDOFF_DEVICES], busy_streams;
	uint64_t busy_since[HANDOFF_DEVICES];
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

/* For a session that is counted only, not by the software GPU.  A stream that was not `busy`
 * has work; `clean` of one that is rose; it is gone. */
void metering_work(struct worker *w, struct worker_stream *stream);
void metering_clean(struct worker *w, struct worker_stream *stream);
void metering_gone(struct worker *w, struct worker_stream *stream);
/* Looks whether busy streams are done, where that is due. */
void metering_look(struct worker *w, uint64_t now);
/* The time used so far into the STATS. */
void metering_stats(struct worker *w);

#endif
