/* SPDX-License-Identifier: Apache-2.0
 *
 * Which agents a process gets, and how many GPUs of each.  Without `gpu_spread` the parts of
 * `agent:` (agents.h), with `gpu_count` GPUs each.  With it, `gpu_count` GPUs in all, of as few
 * or as many of the agents of the list as it says: the freest when the first process joins.
 * They stay while any process is joined, so that all of a pod have the same GPUs in the same
 * order; who comes after a time without any has them chosen anew.
 */
#ifndef VCUDA_SIDECAR_AGENTS_SPREAD_H
#define VCUDA_SIDECAR_AGENTS_SPREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "protocol/wire/channel.h"
#include "sidecar/agents/agents.h"

enum spread_kind {
	SPREAD_NEVER,	  /* an agent that has so many, or none */
	SPREAD_IF_NEEDED, /* that one; without it the freest, each with all that it has */
	SPREAD_ALWAYS,	  /* one of each, in turn */
};

/* What was asked for, as the options say it. */
struct spread_wish {
	const char *agent; /* the whole list; stays while the wish is used */
	uint32_t gpus;	   /* 0: all */
	enum spread_kind kind;
};

/* 0, or -EINVAL: TEXT is none. */
int spread_parse(const char *text, enum spread_kind *kind);

struct spread_part {
	char agents[AGENTS_TEXT]; /* one, or a list of which one is taken */
	uint32_t gpus;		  /* 0: all */
};

struct spread {
	pthread_mutex_t lock;	  /* of the parts; nothing blocks under it */
	pthread_mutex_t choosing; /* held while agents are asked; before `lock` */
	bool chosen;
	unsigned count;
	struct spread_part parts[CHANNEL_AGENTS];
};

/* The parts of WISH, which stay unless gpu_spread says otherwise. */
void spread_init(struct spread *spread, const struct spread_wish *wish);

/* Before a process joins: chooses where that is due, which is where ALONE (no other process is
 * joined) or nothing was chosen yet, and then *ANEW. HELLO: without a role. 0; or -errno with
 * *error: -EPERM where all agents together have too few GPUs. Any thread. */
int spread_choose(struct spread *spread, const struct spread_wish *wish,
	const struct session_hello *hello, bool alone, uint64_t deadline, bool *anew,
	struct error *error);

unsigned spread_count(struct spread *spread);
/* Part NUMBER, which is below spread_count. Any thread. */
void spread_part(struct spread *spread, unsigned number, struct spread_part *part);

/* What is chosen of COUNT agents, the freest first, with GPUS[i] each: *PARTS of them, `took`
 * GPUs of agent `who` each. How many there are; 0: they have too few. (For tests.) */
struct spread_share {
	unsigned who;
	uint32_t took;
};
unsigned spread_shares(enum spread_kind kind, uint32_t wanted, const uint32_t *gpus,
	unsigned count, struct spread_share shares[CHANNEL_AGENTS]);

#endif
