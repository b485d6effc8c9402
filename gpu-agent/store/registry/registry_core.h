/* SPDX-License-Identifier: Apache-2.0
 *
 * What the registry's own files share: its state, from one connection to the next.
 *
 * away -> connecting -> loading (scripts) -> entering (node:ID) -> filling -> ready; and from
 * there back to entering where the index turns out not to be what was filled.
 */
#ifndef VCUDA_GPU_AGENT_STORE_REGISTRY_CORE_H
#define VCUDA_GPU_AGENT_STORE_REGISTRY_CORE_H

#include "gpu-agent/store/registry/registry.h"
#include "gpu-agent/store/registry/registry_link.h"
#include "gpu-agent/store/registry/registry_scripts.h"

#define REGISTRY_RENEW_MS 3000
#define REGISTRY_ALIVE_MS 10000 /* that node:ID lives (registry_common.lua) */
#define REGISTRY_LOOK_MS 50	/* behind a key's end */
#define REGISTRY_STEP_MS 5000	/* a part of a filling that takes longer is none */
#define REGISTRY_REQUESTS 65536u

enum registry_phase {
	PHASE_AWAY,
	PHASE_CONNECTING,
	PHASE_LOADING,
	PHASE_ENTERING,
	PHASE_FILLING,
	PHASE_READY
};

struct request {
	struct request *next;
	struct registry *registry;
	uint64_t deadline; /* ns */
	enum script script;
	bool edited; /* the index was filled again for it already */
	bool refuse;
	registry_done done; /* NULL: nobody asks */
	void *argument;
	struct registry_tensor tensor;	  /* the name, or all of it */
	char holder[REGISTRY_HOLDER + 1]; /* or a ticket */
	char text[REGISTRY_TEXT + 1];	  /* a namespace, or why */
};

struct request_list {
	struct request *first, **last;
	unsigned count;
};

struct commands;

struct registry {
	struct registry_config config;
	const struct registry_store *store;
	void *owner;
	const struct script_text *scripts;
	int epoll, timer;
	struct registry_watch timer_watch;
	struct registry_link link;
	enum registry_phase phase;
	char token[33];				 /* of the last entering */
	uint64_t retry_at, renew_at, step_until; /* ns */
	unsigned retry_ms;
	char why[REGISTRY_TEXT]; /* it is away */
	bool said_away;		 /* in the log */
	bool stale;		 /* something could not be said: fill once more */
	bool closing;
	bool leaving, left; /* registry_leave */
	/* What waits to be sent, what was sent, and what goes before the waiting after a
	 * filling. */
	struct request_list waiting, sent, back;
	/* A filling. */
	uint64_t cursor, puts;
	bool walked;
	uint64_t waits_since; /* what replicas are of is not there yet; 0: none waits */
	bool waits;
	unsigned outstanding;
	unsigned
		round; /* of loading and filling: what is left of an older one is not counted */
	struct commands *commands; /* NULL: none are taken */
};

/* EVALSHA with what every script has. */
void registry_script(
	const struct registry *registry, struct link_arguments *arguments, enum script script);

/* The word that a script's answer begins with; NULL: it is none of ours. */
const char *registry_word(const redisReply *reply);
/* The hash or list behind it; NULL. */
const redisReply *registry_fields(const redisReply *reply);

/* registry_fill.c: the phases. */
void fill_connect(struct registry *registry);
void fill_opened(struct registry_link *link);
/* The index is strange: enters and fills. RELOAD: it has not the scripts either. */
void fill_again(struct registry *registry, bool reload);
void fill_renew(struct registry *registry);
void fill_leave(struct registry *registry);
/* registry_requests.c. All filled: what waits can go. */
void requests_go(struct registry *registry);
/* A filling begins, which says of itself who holds what. */
void requests_forget_drops(struct registry *registry);
/* The first deadline, 0: there is none; and the end of what is past it (UINT64_MAX: of all). */
uint64_t requests_until(const struct registry *registry);
void requests_tick(struct registry *registry, uint64_t now);

uint64_t registry_ns(unsigned ms); /* so many ms from now */

/* For commands.c: is called again at UNTIL at the latest. */
void registry_arm(struct registry *registry);

#endif
