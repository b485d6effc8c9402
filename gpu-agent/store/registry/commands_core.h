/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the commands share.
 *
 * A command that was taken is an entry here, until it has left this agent's list:
 *     NEW       its identity is to be asked for (commands_begin.lua)
 *     RUNNING   the store has it
 *     ANSWERED  its answer is to go out (commands_finish.lua)
 *     SENDING   it is to go to another agent (commands_forward.lua)
 * What of these steps Redis did not answer is done again when it is back.
 */
#ifndef VCUDA_GPU_AGENT_STORE_COMMANDS_CORE_H
#define VCUDA_GPU_AGENT_STORE_COMMANDS_CORE_H

#include "gpu-agent/store/registry/commands.h"
#include "gpu-agent/store/registry/commands_holders.h"
#include "gpu-agent/store/registry/commands_json.h"

#define LISTS 3
#define UNDER_WAY 64u	 /* more are not taken */
#define ANSWER_MS 10000u /* of BLMOVE, which waits 5 s itself */
#define WAIT_S "5"
#define LOOK_MS 3000u /* between looks for what was taken and never came */
#define AGAIN_MS 200u
#define TRIES 5

enum entry_state { ENTRY_NEW, ENTRY_RUNNING, ENTRY_ANSWERED, ENTRY_SENDING };

struct entry {
	struct entry *next;
	struct commands *commands;
	uint64_t ticket;
	enum entry_state state;
	bool asking;   /* a script of its is under way */
	bool repeated; /* somebody began it before */
	bool broken;   /* what its identity names is not known */
	unsigned tries;
	uint64_t again_at; /* ns; 0: not before Redis is back */
	struct command_text text;
	char holder[REGISTRY_HOLDER + 1];
	char other[REGISTRY_NODE + 1]; /* SENDING: "": who has the device */
	char *answer;		       /* ANSWERED; "": it is not ours to answer */
	char fault[REGISTRY_TEXT];     /* the error in it; "": none */
	size_t n;
	char raw[]; /* as it was taken, with a NUL behind */
};

struct intake {
	struct registry_link link;
	struct commands *commands;
	char list[REGISTRY_NODE + 16];
	bool waiting; /* BLMOVE is under way */
	uint64_t until;
};

struct commands {
	struct registry *registry;
	struct intake intakes[LISTS];
	struct entry *entries;
	unsigned count;
	uint64_t tickets;
	bool ready;   /* the index is filled */
	bool looked;  /* what an earlier life took is known */
	bool looking; /* LRANGE is under way */
	uint64_t look_at, connect_at;
	/* Taken, and nobody here has it, as the last look showed: again at the next, it is
	 * ours. */
	char **strays;
	size_t stray_count;
	struct holders holders;
};

/* commands.c: a command that was taken, NUL or not. */
void commands_arrive(struct commands *commands, const char *raw, size_t n);

/* commands_taking.c. */
void taking_init(struct commands *commands);
void taking_close(struct commands *commands);
/* There is room for more, or it may begin. */
void taking_go(struct commands *commands);
void taking_stop(struct commands *commands);
uint64_t taking_until(const struct commands *commands);
void taking_tick(struct commands *commands, uint64_t now);

/* The sooner of two moments, of which 0 is none. */
static inline uint64_t commands_sooner(uint64_t a, uint64_t b)
{
	return a && (!b || a < b) ? a : b;
}

#endif
