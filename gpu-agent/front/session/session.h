/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions, from the HELLO that brought the token to the exit of the worker.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_SESSION_H
#define VCUDA_GPU_AGENT_FRONT_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "common/error.h"
#include "common/log.h"
#include "gpu-agent/front/events.h"
#include "gpu-agent/front/session/hello.h"
#include "gpu-agent/front/ledger/ledger.h"
#include "gpu-agent/front/session/resume.h"
#include "gpu-agent/front/ledger/timeshare.h"
#include "gpu-agent/handoff.h"
#include "protocol/wire/session.h"
#include "transport/transport.h"

struct front;
struct pod;
struct pool_worker;
struct tenant;

enum session_state {
	SESSION_FREE,
	SESSION_WAITING, /* for a worker */
	SESSION_JOINING, /* WELCOME sent; for the link's other connections */
	SESSION_RUNNING, /* the worker has all connections */
	SESSION_ENDING,	 /* for the worker's exit */
};
const char *session_state_name(enum session_state state);

struct session_stats {
	uint64_t frames_received, frames_sent, bytes_received, bytes_sent;
	uint64_t launches, copies_in_bytes, copies_out_bytes, errors;
	uint64_t saved_received,
		saved_sent;		   /* bytes that did not travel: payloads were coded */
	uint64_t peer_sent, peer_received; /* of copies to and from other agents' sessions */
	uint64_t used[HANDOFF_DEVICES];
};

/* Why a session ends, for its program. Its worker says so, if it can. */
struct session_end {
	uint32_t status; /* CUresult; 0: nobody has anything to say */
	char text[128];
};

/* What a session that is over was called: its last connections may still be on their way. */
struct session_late {
	uint8_t id[16], secret[16];
	struct session_end end;
};
#define SESSIONS_LATE 1024 /* the last ones that are remembered */

struct session {
	enum session_state state;
	uint8_t id[16], secret[16];
	struct watch commands; /* from the hand-over on: a copy, to see that the client goes */
	const struct transport *transport;
	int joined[TRANSPORT_FDS]; /* JOINING: the connections behind the first, … */
	unsigned joined_count;	   /* … and how many have come */
	uint32_t stripes;	   /* handed over */
	uint32_t peers; /* connections to other agents' sessions, as the worker says */
	uint64_t features;
	uint32_t grace_ms; /* how long it outlives its connections; 0: not at all */
	struct resume resume;
	uint64_t number; /* in the order of coming, never reused */
	struct log_subject subject;
	uint32_t pid, uid; /* as the client says */
	char program[64], pod[sizeof(((struct session_hello *)0)->pod)];
	struct transport_peer peer;
	struct tenant *tenant;
	time_t started;
	uint64_t begun;	       /* the same, for what is measured */
	uint64_t deadline;     /* WAITING, JOINING; RUNNING: its client is gone, 0: is there */
	uint64_t proven_until; /* CLOCK_MONOTONIC ns: what its client brought; 0: for good */
	struct pool_worker *worker;
	struct pod *limits; /* NULL: it said none */
	struct ledger_account account;
	struct session_stats stats;
	struct latency latency[LATENCY_CLASSES]; /* as its worker said last */
	struct timeshare_session timeshare;
	uint64_t quotas[QUOTAS], quotas_refused[QUOTAS]; /* in use, as its worker said last */
	enum agent_priority asked; /* a class below its tenant's; 0: that */
	uint64_t inflight; /* its own part of inflight_bytes, without stripes; 0: no quota */
	bool tallied;	   /* it has its slot in its tenant's tally: its place in the table */
	char last_error[64];
	uint64_t refused_calls; /* of the system's (refusals.h) */
	struct session_end end;
};

int session_open_table(struct front *front, struct error *error);
/* What each WELCOME to one of SESSION's connections says; its secret is the caller's to add. */
struct session_welcome session_greeting(
	const struct front *front, const struct session *session);
/* A client that brought the tenant's token, on the port for commands. Takes fd where it returns
 * 0; else a CUresult to refuse with, *refusal and text filled in. */
uint32_t session_begin(struct front *front, int fd, const struct hello_from *from,
	enum refusal *refusal, char text[192]);
/* The client's end of a RUNNING session is seen by this copy of its first connection; takes FD.
 */
void session_watch_client(struct front *front, struct session *session, int fd);
/* Why a connection with session and secret is none of a session's that takes it. */
uint32_t session_unknown(struct front *front, const struct hello_from *from,
	enum refusal *refusal, char text[192]);
/* SESSION ends, and its program is to be told that; what was said first stays. */
void session_set_end(struct session *session, uint32_t status, const char *text);
/* Whether FROM, by its secret, is a client of a session that is over or ends, and why it does
 * is known: *end. Who it is need not be proven, what proved it may be what has ended. */
bool session_told_end(
	struct front *front, const struct hello_from *from, struct session_end *end);
/* A further connection of it: the same rules. */
uint32_t session_join(struct front *front, int fd, const struct hello_from *from,
	enum refusal *refusal, char text[192]);
/* FD, which was answered, is the next connection of a session that lacks it. */
void session_joined(struct front *front, struct session *session, int fd);
/* All connections of its link have joined. */
bool session_is_whole(const struct session *session);
/* The next connection that it waits for has ROLE: REPLIES or LIGHT. */
bool session_lacks(const struct session *session, uint32_t role);
/* One more connection of a running session: the same rules. */
uint32_t session_stripe(struct front *front, int fd, const struct hello_from *from,
	enum refusal *refusal, char text[192]);
/* The session that FROM names by its secret, in that STATE, or NULL. Every session is compared
 * in full, so that the time tells nothing about how near one was. A secret that was offered
 * takes the place of the one before. No tenant: of any. */
struct session *session_find(
	struct front *front, const struct hello_from *from, enum session_state state);
/* How many sessions run, as far as TENANT is told: of others it hears no more than what memory
 * is free. */
uint32_t session_count_for(const struct front *front, const struct tenant *tenant);
/* Whether session_begin would refuse, whatever else has begun meanwhile. */
uint32_t session_may(const struct front *front, const struct hello_from *from,
	enum refusal *refusal, char text[192]);
/* For the log: who it is, once id and pod are known. */
void session_subject(struct session *session);
/* The longest-waiting session, or NULL. */
struct session *session_next_waiting(struct front *front);
/* Gives a READY worker to a waiting session. */
void session_assign(struct front *front, struct session *session, struct pool_worker *worker);
/* Every waiting session is refused with text. */
void session_refuse_waiting(struct front *front, const char *text);
/* The client went away, or was too slow, before the worker had anything from it. */
void session_give_up(struct front *front, struct session *session, const char *why);
/* The worker is reaped: its session is over, all it held is free. */
void session_ended(struct front *front, struct session *session);
void session_stats(struct front *front, struct session *session, const struct handoff *h);
uint64_t session_tick(struct front *front, uint64_t now);

#endif
