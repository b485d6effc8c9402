/* SPDX-License-Identifier: Apache-2.0
 *
 * What the next front must know, should this one die: its sessions, what they have of the GPUs,
 * and the memory that they share.  A memfd that the supervisor keeps (control.h: KEEP); the
 * front writes each change there before anybody hears of it, so what it says of a session is at
 * least what the session has.  adopt.c reads it.  Counters are written before /metrics tells
 * them, so that none is ever seen to go back.
 *
 * A front without a journal (none could be made) loses its sessions with its death, nothing
 * else: every function here does nothing then.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_JOURNAL_H
#define VCUDA_GPU_AGENT_FRONT_JOURNAL_H

#include <stdint.h>
#include <sys/types.h>

#include "gpu-agent/control.h"
#include "gpu-agent/front/ledger/ledger.h"
#include "gpu-agent/front/http/metrics.h"
#include "gpu-agent/front/ledger/quota.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/front/tenants.h"

#define JOURNAL_SHARES 2048 /* names of shared memory */

/* A RUNNING session. */
struct journal_session {
	pid_t worker; /* 0: none here. Written last, and taken away first */
	uint32_t pid, uid, stripes;
	uint8_t id[16], secret[16];
	uint8_t next[16]; /* the secret after it, where it was offered (resume.h) */
	bool offered;
	uint32_t grace_ms;
	uint64_t number, features, begun, proven_until;
	int64_t started;
	char transport[TRANSPORT_NAME];
	struct transport_peer peer;
	char program[sizeof(((struct session *)0)->program)];
	char pod[sizeof(((struct session *)0)->pod)];
	char tenant[sizeof(((struct agent_tenant *)0)->name)];
	bool limited;	   /* the rest of this line's kind counts: its struct pod */
	struct pod limits; /* without what is a pointer */
	struct ledger_account account;
	uint64_t contexts[HANDOFF_DEVICES]; /* of its worker */
	/* What its worker's counters were when they were added to those below. */
	struct session_stats stats;
	struct latency latency[LATENCY_CLASSES];
	uint64_t quotas_refused[QUOTAS];
	uint64_t gpu_used[HANDOFF_DEVICES], gpu_own;
	uint64_t inflight;
	bool tallied;
	enum agent_priority asked;
};

/* A tenant's counters, which outlive its sessions. */
struct journal_tenant {
	char name[sizeof(((struct tenant *)0)->name)];
	struct session_stats totals;
	uint64_t gpu_used, gpu_waited, gpu_held, quotas_refused[QUOTAS];
};

struct journal_share {
	uint32_t session; /* its place in the table + 1; 0: free. Written last */
	uint32_t gpu;
	uint64_t bytes;
	uint8_t name[CONTROL_NAME];
};

struct journal {
	uint64_t magic;	 /* JOURNAL_MAGIC: a version of this layout */
	uint64_t length; /* of the file */
	uint64_t next_session;
	uint32_t libraries;		  /* struct pool's */
	uint32_t device_count;		  /* the ledger's */
	uint32_t driver_version, sandbox; /* struct pool's, as the texts */
	char driver[sizeof(((struct pool *)0)->driver)];
	char driver_release[sizeof(((struct pool *)0)->driver_release)];
	struct ledger_device devices[HANDOFF_DEVICES];
	struct journal_share shares[JOURNAL_SHARES];
	struct counters counters;
	uint32_t tenant_count;
	struct journal_tenant tenants[TENANTS];
	struct journal_session sessions[]; /* as many as front->sessions, in the same places */
};
#define JOURNAL_MAGIC (0x314c4e524a4d4756ull ^ sizeof(struct journal_session))

/* Under these names (and 0 as pid), and under the worker's pid. */
#define JOURNAL_NAME ((const uint8_t[CONTROL_NAME]){'j'})
#define JOURNAL_CLIENT                                                                         \
	((const uint8_t[CONTROL_NAME]){'c'}) /* the session's first connection                 \
					      */

/* And, of those whose tenant has one, its tally. */
#define JOURNAL_TALLY ((const uint8_t[CONTROL_NAME]){'q'})

#define JOURNAL_REFUSALS ((const uint8_t[CONTROL_NAME]){'s'}) /* refusals.h */

/* A new one, where adopt.c found none; kept by the supervisor from here on. */
void journal_open(struct front *front);
/* Takes FD, which the supervisor kept: 0, or -errno where it is no journal of this front's. */
int journal_take(struct front *front, int fd);
void journal_close(struct front *front);

/* The session as it is now; it must be RUNNING. */
void journal_session(struct front *front, const struct session *session);
/* What its worker's STATS made of its counters and its tenant's. */
void journal_stats(struct front *front, const struct session *session);
/* All other counters: before they are told. */
void journal_counters(struct front *front);
/* What its account holds changed. */
void journal_account(struct front *front, const struct session *session);
void journal_forget(struct front *front, const struct session *session);
/* The ledger's devices, and what the pool knows of the driver and of warm libraries. */
void journal_devices(struct front *front);
/* The share in place INDEX; FD is kept too. */
void journal_share(struct front *front, uint32_t index, const struct session *session,
	const struct journal_share *share, int fd);
void journal_unshare(struct front *front, uint32_t index, const struct session *session);
/* The connection by whose end a session's client is seen to be gone. */
void journal_client(struct front *front, const struct session *session, int fd);

/* The tally of a session's tenant. */
void journal_tally(struct front *front, const struct session *session, int fd);
/* Where its worker's refused calls come from. */
void journal_refusals(struct front *front, const struct session *session, int fd);

#endif
