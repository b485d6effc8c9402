/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPUs' time: what each session and tenant used of it, and shares.
 *
 * The worker of every session counts what it uses (metering.h).  One whose tenant has no share
 * tells it with its STATS.  Where those sessions had more of a GPU together than there is,
 * which is what each sees while the GPU takes turns between them, what each had is made smaller
 * by so much: over all of them it is never more than the time that passed.
 *
 * A tenant with a share has, for each GPU, a bucket that fills with
 * that part of the time that passes and holds BURST of it.  The workers of its sessions measure
 * what they use and tell, as they go; what they used is taken out, and they may go on while
 * there is something in it.  A kernel cannot be stopped, so a bucket may be overdrawn: its
 * tenant then waits until it is filled again, and over time has what it should, no more.
 *
 * Where a GPU takes turns between the sessions of several tenants, each of them sees work of
 * its own under way all the time.  Such time is divided by how many sessions had work.  (The
 * software GPU measures what it computed, which is its own.)
 *
 * Times in ns. A worker's figures are a tenant's word: they must grow, and not faster than a
 * machine can compute.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_LEDGER_TIMESHARE_H
#define VCUDA_GPU_AGENT_FRONT_LEDGER_TIMESHARE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gpu-agent/front/ledger/priority.h"
#include "gpu-agent/handoff.h"

#define TIMESHARE_BURST_NS 100000000  /* of a whole GPU */
#define TIMESHARE_DEBT_NS 60000000000 /* at most: one kernel must not shut out for hours */
#define TIMESHARE_QUANTUM_NS 20000000 /* given at once */
#define TIMESHARE_RESUME_NS 2000000   /* in the bucket, before who waits goes on */
#define TIMESHARE_ALL_NS 1000000u /* the whole of a GPU, as a part of the time that passes */

struct front;
struct pool_worker;
struct session;
struct viewer;

struct timeshare_bucket {
	int64_t tokens;
	uint64_t at; /* when it was filled last */
};

/* A tenant's. */
struct timeshare {
	uint32_t share; /* thousandths of each GPU's time; 0 = not limited */
	struct timeshare_bucket buckets[HANDOFF_DEVICES];
	enum agent_priority priority;
	uint64_t used, waited; /* by its sessions so far, those that are over too */
	uint64_t held;	       /* how often one waited for a higher class */
};

/* A session's; by GPU as the front numbers them. */
struct timeshare_session {
	bool works, waits;
	bool tells; /* TIME, as it goes: not with STATS */
	enum agent_priority priority;
	uint64_t given_at[HANDOFF_DEVICES]; /* when it was allowed something last */
	uint64_t reported_at;		    /* 0: another front heard it */
	uint64_t used[HANDOFF_DEVICES], allowed[HANDOFF_DEVICES], alone[HANDOFF_DEVICES];
	uint32_t part[HANDOFF_DEVICES]; /* without a share: of TIMESHARE_ALL_NS, when it told */
	uint64_t own;			/* of `used`, over all GPUs, what is counted as its */
};

/* A GPU's time as one of those that use it sees it: `alone` grows by a second each second while
 * at most one session has work, by half while two have. */
struct timeshare_gpu {
	uint64_t alone, at;
	uint32_t working;
	struct priority_gpu classes;
	uint64_t parts; /* sum of the sessions' */
};

/* What passed since the last call goes into the bucket. */
void timeshare_fill(struct timeshare_bucket *bucket, uint32_t share, uint64_t now);
void timeshare_charge(struct timeshare_bucket *bucket, uint64_t ns);
/* When the bucket has TIMESHARE_RESUME_NS. */
uint64_t timeshare_resumes(const struct timeshare_bucket *bucket, uint32_t share);
/* Brings the GPU's clock up to now. */
void timeshare_turn(struct timeshare_gpu *gpu, uint64_t now);

/* A session begins: its first allowance goes into h, the SESSION to its worker. */
void timeshare_begin(struct front *front, struct session *session, struct handoff *h);
void timeshare_end(struct front *front, struct session *session);
/* What the session used when it told it last: PART is its own of it, in the place of what it
 * had before; what counts of USED. */
uint64_t timeshare_divide(
	struct timeshare_gpu *gpu, uint32_t *part, uint64_t used, uint64_t passed);
/* Of the time that a session TOLD of, what is counted beyond USED, which follows: nothing where
 * it fell, and at most MOST where it grew as it cannot. */
uint64_t timeshare_grown(uint64_t *used, uint64_t told, uint64_t most);
/* STATS of a session; who tells TIME is charged by that. */
void timeshare_stats(struct front *front, struct session *session, const struct handoff *h);
/* TIME of a worker that has a session. */
void timeshare_report(struct front *front, struct pool_worker *worker, const struct handoff *h);
/* Lets go on who waited; when to look again. */
uint64_t timeshare_tick(struct front *front, uint64_t now);
/* Of the tenants that the viewer sees. */
void timeshare_metrics(FILE *out, const struct front *front, const struct viewer *viewer);

#endif
