/* SPDX-License-Identifier: Apache-2.0
 *
 * Which agent a process gets.  `agent:` may name several, and a name may stand for several (a
 * headless Service): each is asked whether it would grant a session and how much it has left,
 * all at once, and the one with most goes first.  Then the sidecar stays with it, so that the
 * processes of a pod share its GPUs and limits, until it does not serve any more.
 *
 * `agent: a+b` is both: a list in two parts.  A process gets one agent of each part, and all
 * else here is about one part.
 */
#ifndef VCUDA_SIDECAR_AGENTS_AGENTS_H
#define VCUDA_SIDECAR_AGENTS_AGENTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "protocol/wire/session.h"
#include "transport/transport.h"

#define AGENTS_MAX 64
#define AGENT_TEXT 272	 /* "[HOST]:PORT" or "SCHEME://…" */
#define AGENTS_TEXT 4096 /* a list of them */

/* Whether LIST is parts with + between, each of them agents with commas between; 0, or -EINVAL
 * with *error. */
int agents_check(const char *list, struct error *error);
/* How many parts a list has, and the one of that number, which must be there. */
unsigned agents_parts(const char *list);
void agents_part(const char *list, unsigned number, char part[AGENTS_TEXT]);

struct agents {
	pthread_mutex_t lock;	  /* guards `chosen`; nothing blocks under it */
	pthread_mutex_t choosing; /* held while one chooses */
	char chosen[AGENT_TEXT];  /* who granted the last session; "" = nobody yet */
	/* Before the first session: local://PATH, which is tried before an address that the
	 * same agent answers; "" = none. ONLY: a session over another way is an error. */
	char local[AGENT_TEXT];
	bool shared; /* any of local_shared() instead, where this process has hostIPC */
	bool only;
};
#define AGENTS_INIT {.lock = PTHREAD_MUTEX_INITIALIZER, .choosing = PTHREAD_MUTEX_INITIALIZER}

/* LIST, here and below, is one part.  Opens a session (or, with role SESSION_PROBE, asks for
 * one; *link is NULL then) at one of LIST.  0 and *link; or -errno with *error saying what the
 * last one tried answered, and its words in *welcome. Blocks until DEADLINE (CLOCK_MONOTONIC
 * ns) at most, but for the system's own patience with names. Thread-safe. */
int agents_dial(struct agents *agents, const char *list, const struct session_hello *hello,
	struct session_welcome *welcome, uint64_t deadline, struct link **link,
	struct error *error);

/* An agent of a list, as it answered. */
struct agents_offer {
	char address[AGENT_TEXT];
	uint32_t gpus; /* that it has */
};

/* Those of LIST that would grant a session like HELLO, which asks for no number of GPUs: the
 * one with most to give first, and each agent once, whatever names it has there. How many; or
 * -errno with *error where there is none, -EPERM for a wrong token or quota. Blocks as
 * agents_dial does. */
int agents_ask(const char *list, const struct session_hello *hello, uint64_t deadline,
	struct agents_offer offers[AGENTS_MAX], struct error *error);

/* Whoever granted the last session is not stayed with. */
void agents_forget(struct agents *agents);

/* ADDRESS granted a session to another sidecar: 0 where it is one of LIST, which is then stayed
 * with; else -errno with *error. Waits for names as agents_dial does. */
int agents_keep(
	struct agents *agents, const char *list, const char *address, struct error *error);

/* Who serves the session behind LINK: as agents_chosen, or its socket on this machine. */
void agents_shared(struct agents *agents, const struct link *link, char address[AGENT_TEXT]);

/* Who that was; "" = nobody yet. */
void agents_chosen(struct agents *agents, char chosen[AGENT_TEXT]);

#endif
