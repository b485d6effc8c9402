/* SPDX-License-Identifier: Apache-2.0
 *
 * The front's state, for the files that make it up: front.c (start, supervisor, drain), hello.c
 * (connections before they are anybody's), tenants.c (whose they are), session.c (sessions),
 * pool.c (workers as the front
 * sees them), lease.c (what they ask for), sharing.c (memory that sessions share), ledger.c
 * (device memory), quota.c (limits), http.c, metrics.c, status.c (what people and Prometheus
 * see), health.c (whether the loop turns).
 *
 * Everything belongs to one thread.  Tables are allocated once, at the start: a client costs no
 * allocation before it brought the token, and a bounded one after.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_FRONT_H
#define VCUDA_GPU_AGENT_FRONT_FRONT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "gpu-agent/agent.h"
#include "gpu-agent/control.h"
#include "gpu-agent/front/ledger.h"
#include "gpu-agent/front/events.h"
#include "protocol/wire/session.h"
#include "protocol/wire/status.h"

#define FRONT_MS 1000000ull

/* Pre-authentication limits: one fixed slot each, this many in all and from one address. Who
 * comes when they are taken takes the oldest's place. */
#define HELLO_SLOTS 256
#define HELLO_PER_ADDRESS 16
/* What a refused peer may still send while it reads why. */
#define HELLO_DRAIN_BYTES 16384

enum refusal {
	REFUSAL_MAGIC, /* not our protocol */
	REFUSAL_VERSION,
	REFUSAL_ROLE,
	REFUSAL_TOKEN,
	REFUSAL_SECRET, /* a further connection without a session */
	REFUSAL_LATE,	/* for a session that was there, and is over */
	REFUSAL_QUOTA,
	REFUSAL_DRAINING,
	REFUSAL_NOT_READY,
	REFUSAL_TIMEOUT, /* no whole HELLO in time */
	REFUSAL_FLOOD,	 /* too many half-open connections */
	REFUSALS
};
const char *refusal_name(enum refusal refusal);

/* A connection that has not said who it is. */
struct hello_slot {
	struct watch watch;
	uint32_t roles; /* TRANSPORT_ROLE: those that are served where it came in */
	bool lingering; /* refused: waiting for its end, so that it can read why */
	uint32_t got;	/* bytes of hello; lingering: bytes thrown away */
	uint64_t since, deadline;
	struct transport_peer peer;
	const struct transport *transport;
	struct session_hello hello;
};

/* A whole HELLO, and what is known about who says it. */
struct hello_from {
	const struct session_hello *hello;
	const struct transport_peer *peer;
	struct tenant *tenant;
	const struct transport *transport; /* that brought it */
};

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
	uint64_t used[HANDOFF_DEVICES];
};

/* What a session that is over was called: its last connections may still be on their way. */
struct session_late {
	uint8_t id[16], secret[16];
};
#define SESSIONS_LATE 1024 /* the last ones that are remembered */

struct pool_worker;
struct pod;
struct share;
struct tenant;
struct tenants;

struct session {
	enum session_state state;
	uint8_t id[16], secret[16];
	struct watch commands; /* from the hand-over on: a copy, to see that the client goes */
	const struct transport *transport;
	int joined[TRANSPORT_FDS]; /* JOINING: the connections behind the first, … */
	unsigned joined_count;	   /* … and how many have come */
	uint32_t lanes;		   /* handed over */
	uint64_t features;
	uint64_t number;   /* in the order of coming, never reused */
	uint32_t pid, uid; /* as the client says */
	char program[64], pod[sizeof(((struct session_hello *)0)->pod)];
	struct transport_peer peer;
	struct tenant *tenant;
	time_t started;
	uint64_t begun;	   /* the same, for what is measured */
	uint64_t deadline; /* WAITING, JOINING; RUNNING: its client is gone, 0: is there */
	struct pool_worker *worker;
	struct pod *limits; /* NULL: it said none */
	struct ledger_account account;
	struct session_stats stats;
};

enum worker_state {
	WORKER_FREE,
	WORKER_ASKED,	 /* the supervisor is starting it */
	WORKER_STARTING, /* it has a pid, and is not READY yet */
	WORKER_READY,
	WORKER_TAKEN,  /* READY, kept for a session that is joining */
	WORKER_BUSY,   /* serves a session */
	WORKER_ENDING, /* told to stop, or gone and not reaped yet */
	WORKER_STATES
};
const char *worker_state_name(enum worker_state state);

struct pool_worker {
	enum worker_state state;
	struct watch handoff;
	uint32_t number;
	pid_t pid;
	uint64_t deadline; /* ASKED, STARTING: when to give up */
	uint64_t contexts[HANDOFF_DEVICES];
	bool counted; /* its contexts are in the ledger */
	bool failed;  /* it said FAILED: its exit is no news */
	/* LEASEs that wait for workers that are ending: bytes by device, 0 = none. */
	uint64_t wishes[HANDOFF_DEVICES];
	uint64_t wishes_until; /* 0: none */
	uint32_t silent;       /* looks since it said anything */
	struct session *session;
};

struct pool {
	struct pool_worker *workers;
	uint32_t room;
	uint32_t next_number;
	uint32_t count[WORKER_STATES];
	bool failing; /* the last start failed: text says why */
	char text[192];
	char logged[192];  /* said in the log already */
	uint64_t retry_at; /* not before, when failing */
	uint64_t retry_delay;
	uint64_t look_at; /* for workers that say nothing */
	uint32_t driver_version;
	char driver_release[32]; /* the driver's own version */
	char driver[192];	 /* what READY called it */
	uint32_t sandbox;	 /* what keeps the last one in (sandbox.h) */
	uint32_t libraries;	 /* that sessions used: new workers make them ready */
};

/* Of times; the bounds are metrics.c's. */
#define HISTOGRAM_BOUNDS 9
struct histogram {
	uint64_t counts[HISTOGRAM_BOUNDS + 1]; /* each by itself; the last: beyond all bounds */
	uint64_t sum_ns;
};

struct counters {
	struct histogram waits;	    /* from HELLO to WELCOME */
	struct histogram durations; /* of sessions */
	uint64_t refused[REFUSALS];
	uint64_t sessions, probes, worker_starts;
	uint64_t exits_clean, exits_failed, exits_signal;
	uint64_t peer_faults; /* datagrams of workers that made no sense */
	uint64_t lease_refused;
	struct session_stats totals; /* of all sessions ever; `used` is not kept */
};

struct front {
	const struct agent_config *config;
	struct events events;
	struct watch control; /* to the supervisor */
	struct watch listeners[TRANSPORT_LISTENERS];
	const struct transport *transports[TRANSPORT_LISTENERS]; /* of each */
	struct watch health;
	struct hello_slot *slots;
	uint32_t half_open;
	struct session *sessions;
	struct tenants *tenants;
	struct pod *pods;	   /* as many as sessions */
	struct share *shares;	   /* SHARES of them, made with the first */
	struct session_late *late; /* a ring of SESSIONS_LATE */
	uint64_t late_count;
	uint32_t session_count; /* not FREE */
	uint64_t next_session;
	struct pool pool;
	struct ledger ledger;
	struct counters counters;
	struct control libraries[CONTROL_LIBRARIES]; /* what the probe found */
	size_t library_count;
	struct control_gpu meters[HANDOFF_DEVICES];
	uint64_t metered_at[HANDOFF_DEVICES]; /* 0: never */
	bool draining;
	uint64_t drain_at;     /* when running sessions are stopped */
	bool stopped;	       /* they have been */
	bool told_ready, told; /* what the supervisor was told last */
	char told_text[192];
	time_t started;
	struct http *http;
	bool done;
};

/* front.c */
/* Whether a new session would be served; where not, *text says why (in memory that stays). */
bool front_is_ready(const struct front *front, const char **text);
/* Tells the supervisor; false where it is gone (the front ends then) or does not listen. */
bool front_tell(struct front *front, const struct control *control);
/* A peer's text: NUL-terminated, printable, in out. */
void front_clean(char *out, size_t n, const char *text, size_t text_size);

/* hello.c */
int hello_open(struct front *front, struct error *error);
void hello_close(struct front *front);
uint64_t hello_tick(struct front *front, uint64_t now); /* the next deadline */
/* Sends a WELCOME; false where the connection did not take it. */
bool hello_welcome(int fd, const struct session_welcome *welcome);

/* session.c */
int session_open_table(struct front *front, struct error *error);
/* A client that brought the tenant's token, on the port for commands. Takes fd where it returns
 * 0; else a CUresult to refuse with, *refusal and text filled in. */
uint32_t session_begin(struct front *front, int fd, const struct hello_from *from,
	enum refusal *refusal, char text[192]);
/* A further connection of it: the same rules. */
uint32_t session_join(struct front *front, int fd, const struct hello_from *from,
	enum refusal *refusal, char text[192]);
/* One more connection of a running session: the same rules. */
uint32_t session_lane(struct front *front, int fd, const struct hello_from *from,
	enum refusal *refusal, char text[192]);
/* Whether session_begin would refuse. */
uint32_t session_may(const struct front *front, const struct hello_from *from,
	enum refusal *refusal, char text[192]);
/* The longest-waiting session, or NULL. */
struct session *session_next_waiting(struct front *front);
/* Gives a READY worker to a waiting session. */
void session_assign(struct front *front, struct session *session, struct pool_worker *worker);
/* Every waiting session is refused with text. */
void session_refuse_waiting(struct front *front, const char *text);
/* The worker is reaped: its session is over, all it held is free. */
void session_ended(struct front *front, struct session *session);
void session_stats(struct front *front, struct session *session, const struct handoff *h);
uint64_t session_tick(struct front *front, uint64_t now);

/* pool.c */
int pool_open(struct front *front, struct error *error);
/* Starts what is wanted, and gives ready workers to waiting sessions. */
void pool_balance(struct front *front, uint64_t now);
void pool_started(struct front *front, const struct control *control, int fd);
void pool_refused(struct front *front, const struct control *control);
void pool_exited(struct front *front, const struct control *control);
/* Hands the session's connections, in the order in which they were made, to its worker; the
 * caller still owns them. -errno where the worker does not take them. */
int pool_hand_over(
	struct front *front, struct session *session, const int *fds, unsigned count);
int pool_hand_over_lane(struct session *session, uint32_t lane, int fd);
/* A TAKEN worker whose session did not come about is READY again. */
void pool_untake(struct front *front, struct pool_worker *worker);
/* Tells a worker to end, and the supervisor to kill it if it does not. */
void pool_stop(
	struct front *front, struct pool_worker *worker, uint32_t status, const char *text);
uint64_t pool_tick(struct front *front, uint64_t now);
/* A datagram to a worker; 0 or -errno. */
int pool_say(struct pool_worker *worker, const struct handoff *h);
int pool_say_with(struct pool_worker *worker, const struct handoff *h, int fd);
/* What it says makes no sense: it is killed. */
void pool_fault(struct front *front, struct pool_worker *worker, const char *text);

/* lease.c */
/* A worker that has a session asks for memory. */
void lease_wanted(struct front *front, struct pool_worker *worker, const struct handoff *h);
/* Memory came back, or time passed: wishes that wait are looked at again. */
void lease_retry(struct front *front, struct pool_worker *worker, uint64_t now);

/* sharing.c */
/* SHARE (takes *fd, then -1), UNSHARE and WANT of a worker that has a session. */
void sharing_said(
	struct front *front, struct pool_worker *worker, const struct handoff *h, int *fd);
/* The session is over, and with it what it gave. */
void sharing_forget(struct front *front, const struct session *session);

/* http.c, metrics.c, status.c */
int http_open(struct front *front, int listener, struct error *error);
void http_close(struct front *front);
uint64_t http_tick(struct front *front);
void metrics_wait(struct front *front, uint64_t ns);
void metrics_duration(struct front *front, uint64_t ns);
/* Text of a page, to be freed by the caller; NULL without memory. */
char *metrics_text(const struct front *front);
/* What sessions use of a device, by their workers' word. */
uint64_t status_used(const struct front *front, uint32_t device);
/* As nvidia-smi writes it. */
void status_uuid(FILE *out, const uint8_t uuid[16]);
void status_uuid_text(char *out, size_t n, const uint8_t uuid[16]);
char *status_gpus(const struct front *front);
char *status_sessions(const struct front *front);
char *status_ready(const struct front *front, bool verbose, bool *ready);
char *status_page(const struct front *front);

#endif
