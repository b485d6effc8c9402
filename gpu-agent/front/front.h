/* SPDX-License-Identifier: Apache-2.0
 *
 * The front's state.  Each of its files has a header of its own: hello (connections before they
 * are anybody's), identity (whose they are), tenants (what those may have), networks (of
 * people), session (sessions), pool (workers as the front sees them), lease (what they ask
 * for), sharing (memory that sessions share), direct (connections to other agents), copies
 * (tensors by those), journal and adopt (what the next front must know, and how it takes over),
 * ledger (device memory), images (their cache), quota (limits), http, viewer, metrics and
 * status (what people and Prometheus see), fallen (GPUs that are lost), health (whether the
 * loop turns); front.c has start, supervisor and drain.
 *
 * Everything belongs to one thread.  Tables are allocated once, at the start: a client costs no
 * allocation before it brought the token, and a bounded one after.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_FRONT_H
#define VCUDA_GPU_AGENT_FRONT_FRONT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "gpu-agent/agent.h"
#include "gpu-agent/control.h"
#include "gpu-agent/front/events.h"
#include "gpu-agent/front/ledger/ledger.h"
#include "gpu-agent/front/http/metrics.h"
#include "gpu-agent/front/worker_pool.h"
#include "gpu-agent/front/ledger/timeshare.h"
#include "gpu-agent/uploads.h"

#define FRONT_MS 1000000ull
#define METER_STALE_NS (20000 * FRONT_MS) /* the meter speaks every 5 s */

struct budgets;
struct tensor_copies;
struct direct;
struct http;
struct images;
struct journal;
struct key_set;
struct networks;
struct pod;
struct share;
struct tenants;
struct tensor_table;
struct tensor_socket;
struct tensor_outbound;
struct tensors_ask;

struct front {
	uint8_t identity[16]; /* at random: what its listeners have in common (PROBE) */
	const struct agent_config *config;
	struct events events;
	struct watch control; /* to the supervisor */
	struct watch listeners[TRANSPORT_LISTENERS];
	const struct transport *transports[TRANSPORT_LISTENERS]; /* of each */
	struct watch health;
	struct hello_slot *slots;
	struct budgets *budgets; /* of addresses */
	uint64_t pressed_until;	 /* more connections came at once than can be looked at */
	uint32_t half_open;
	struct session *sessions;
	struct tenants *tenants;
	struct networks *networks;	 /* NULL: it is in none, and never was */
	struct agent_tokens http_tokens; /* of who may see every tenant (http/viewer.h) */
	struct key_set *keys;		 /* of ServiceAccounts; NULL: none are configured */
	struct pod *pods;		 /* as many as sessions */
	struct share *shares;		 /* SHARES of them, made with the first */
	struct session_late *late;	 /* a ring of SESSIONS_LATE */
	uint64_t late_count;
	uint32_t session_count; /* not FREE */
	uint64_t next_session;
	/* tensor/tensors.h */
	struct {
		struct watch store;
		bool ready;	     /* it has read what the store before it left */
		bool introduce;	     /* it is to be told which sessions run: */
		uint32_t introduced; /* as many; 0: it does not know that it is told */
		struct tensor_outbound *outbound; /* to sessions that read slowly */
		struct tensor_socket *socket;	  /* for processes of the node; NULL: none */
		struct tensors_ask *asks;	  /* not answered, in the order of coming */
		struct tensor_writer *writers;	  /* of what is sealed (tensor/sealing.h) */
		const struct tensor_table *table; /* NULL: none yet */
	} tensors;
	/* uploads.h */
	struct {
		struct watch process;
		struct uploads_counts counts; /* as it said last, with those before it */
		struct uploads_counts before; /* totals of the processes that are gone */
	} uploads;
	struct pool pool;
	struct ledger ledger;
	struct journal *journal; /* NULL: none */
	bool begun;		 /* what the front before left is taken over */
	struct timeshare_gpu timeshares[HANDOFF_DEVICES];
	bool priorities;	    /* some tenants' work goes before others' */
	uint32_t timeshare_waiting; /* sessions that used what they may */
	struct counters counters;
	struct control libraries[CONTROL_LIBRARIES]; /* what the probe found */
	size_t library_count;
	struct control_gpu meters[HANDOFF_DEVICES];
	uint64_t metered_at[HANDOFF_DEVICES]; /* 0: never */
	struct {
		char why[96];	   /* "": it has not */
	} fallen[HANDOFF_DEVICES]; /* tensor/fallen.h */
	uint64_t fallen_look_at;
	uint64_t doubted_at;
	bool doubts;	   /* a new worker is to look at the GPUs */
	bool doubts_later; /* another one, at its time: an error that came too soon */
	bool draining;
	uint64_t drain_at;	     /* when running sessions are stopped */
	bool stopped;		     /* they have been */
	bool sent_ready, state_sent; /* what the supervisor knows */
	char sent_text[192];
	time_t started;
	struct http *http;
	struct images *images;	      /* NULL: no cache */
	struct direct *direct;	      /* connections to and from other agents */
	struct tensor_copies *copies; /* of tensors, by those */
	bool done;
};

/* Whether a new session would be served; where not, *text says why (in memory that stays). */
bool front_is_ready(const struct front *front, const char **text);
/* Tells the supervisor; false where it is gone (the front ends then) or does not listen. */
bool front_tell(struct front *front, const struct control *control);
bool front_tell_with(struct front *front, const struct control *control, int fd);
/* A peer's text: NUL-terminated, printable, in out. */
void front_clean(char *out, size_t n, const char *text, size_t text_size);

#endif
