/* SPDX-License-Identifier: Apache-2.0 */
#include "sidecar/agents/agents.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/wait.h"
#include "protocol/wire/channel.h"
#include "protocol/wire/status.h"
#include "transport/local.h"

#define ASK_NS 1500000000ull /* for all of them to answer */
#define ASK_STACK (256u * 1024)
#define ASK_AGAIN 8	      /* times, of those that were overtaken */
#define FAULT_SCHEME "fault+" /* the one scheme with a + (transport.c) */

struct candidate {
	char address[AGENT_TEXT];
	const struct session_hello *hello;
	uint64_t deadline;
	struct session_welcome welcome;
	struct error error;
	int result;
	bool asked;
	pthread_t thread;
};

struct candidates {
	size_t count;
	struct candidate at[AGENTS_MAX];
};

/* The next of a list with commas between, or NULL; spaces around it do not count. */
static const char *next_entry(const char **list, char entry[AGENT_TEXT], struct error *error)
{
	const char *start = *list + strspn(*list, ", "), *end;
	size_t n = strcspn(start, ", ");

	if (!n)
		return NULL;
	end = start + n;
	*list = end;
	if (n >= AGENT_TEXT) {
		error_set(error, 0, "agent '%.40s…' is too long a name", start);
		entry[0] = 0;
		return entry;
	}
	memcpy(entry, start, n);
	entry[n] = 0;
	return entry;
}

/* The end of the part that begins at LIST: a + that belongs to no scheme. */
static const char *part_end(const char *list)
{
	for (const char *entry = list;; entry += strcspn(entry, ", ") + 1) {
		size_t scheme = strncmp(entry, FAULT_SCHEME, strlen(FAULT_SCHEME))
					? 0
					: strlen(FAULT_SCHEME);
		size_t n = strcspn(entry + scheme, "+, ") + scheme;

		if (entry[n] == '+' || !entry[n])
			return entry + n;
	}
}

unsigned agents_parts(const char *list)
{
	unsigned count = 1;

	for (list = part_end(list); *list; list = part_end(list + 1))
		count++;
	return count;
}

void agents_part(const char *list, unsigned number, char part[AGENTS_TEXT])
{
	const char *end;

	for (end = part_end(list); number; number--) {
		list = end + 1;
		end = part_end(list);
	}
	snprintf(part, AGENTS_TEXT, "%.*s", (int)(end - list), list);
}

static int part_check(const char *list, struct error *error)
{
	struct transport_description description;
	char entry[AGENT_TEXT];
	size_t n = 0;

	while (next_entry(&list, entry, error)) {
		if (!entry[0] || transport_describe(entry, 0, &description, error) < 0)
			return -EINVAL;
		n++;
	}
	if (!n || n > AGENTS_MAX)
		return error_set(error, 0, "1 to %d agents with commas between are expected",
			AGENTS_MAX);
	return 0;
}

int agents_check(const char *list, struct error *error)
{
	unsigned count = agents_parts(list);
	char part[AGENTS_TEXT], other[AGENTS_TEXT];
	int ret = 0;

	if (strlen(list) >= AGENTS_TEXT || count > CHANNEL_AGENTS)
		return error_set(error, 0,
			"%u agents with + between are too many; %u are the most", count,
			CHANNEL_AGENTS);
	for (unsigned i = 0; !ret && i < count; i++) {
		agents_part(list, i, part);
		if (count > 1 && !part[strspn(part, ", ")])
			return error_set(error, 0,
				"'%.200s' names no agent %s a +; a+b is both of them", list,
				i ? "behind" : "before");
		ret = part_check(part, error);
		for (unsigned j = 0; !ret && j < i; j++) {
			agents_part(list, j, other);
			if (!strcmp(part, other))
				return error_set(error, 0,
					"agent '%.200s' is named twice; a+b are two agents",
					part);
		}
	}
	return ret;
}

static void add(void *argument, const char *address)
{
	struct candidates *all = argument;

	for (size_t i = 0; i < all->count; i++)
		if (!strcmp(all->at[i].address, address))
			return;
	if (all->count < AGENTS_MAX)
		snprintf(all->at[all->count++].address, AGENT_TEXT, "%s", address);
}

/* A single host is left to the transport: its texts then say the name that people gave. */
static int expand(const char *list, struct candidates *all, struct error *error)
{
	char entry[AGENT_TEXT], first[AGENT_TEXT] = "";
	size_t entries = 0;
	int ret = 0;

	while (next_entry(&list, entry, error)) {
		int one;

		if (!entries++)
			memcpy(first, entry, sizeof(first));
		one = transport_expand(entry, add, all, error);
		ret = one < 0 ? one : ret;
	}
	if (entries == 1 && all->count == 1)
		memcpy(all->at[0].address, first, sizeof(first));
	if (!all->count && ret < 0 && entries > 1)
		error_wrap(error, ret, "none of %zu names is found; the last", entries);
	return all->count ? 0 : ret < 0 ? ret : error_set(error, 0, "no agent is named");
}

/* --- the same machine ----------------------------------------------------------------------
 */

#define LOCAL_SCHEME "local://"

/* Who answers at ADDRESS. False: nobody, or one who does not say it. */
static bool agent_identity(const char *address, const struct session_hello *hello,
	uint64_t deadline, uint8_t identity[16])
{
	static const uint8_t none[16];
	struct session_hello probe = *hello;
	struct session_welcome welcome;
	struct link *link = NULL;
	struct error error;
	int ret;

	probe.role = SESSION_PROBE;
	ret = transport_dial(address, &probe, &welcome, deadline, &link, &error);
	link_close(link);
	explicit_bzero(probe.token, sizeof(probe.token));
	memcpy(identity, welcome.session, sizeof(none));
	return !ret && memcmp(identity, none, sizeof(none)) != 0;
}

/* The agent at ADDRESS is one that shares memory with this machine: at HERE. */
static bool agent_is_here(const struct agents *agents, const char *address,
	const struct session_hello *hello, uint64_t deadline, char here[AGENT_TEXT])
{
	char paths[LOCAL_SHARED_MOST][LOCAL_SHARED_SIZE];
	uint64_t until = wait_now() + ASK_NS;
	uint8_t there[16], identity[16];
	unsigned count = 0;

	if (hello->role || (strstr(address, "://") && strncmp(address, "native://", 9) &&
				   strncmp(address, "tls://", 6)))
		return false;
	if (agents->shared)
		count = local_shared(paths);
	else if (!agents->local[0] || access(agents->local + strlen(LOCAL_SCHEME), F_OK))
		return false;
	until = until < deadline ? until : deadline;
	if ((agents->shared && !count) || !agent_identity(address, hello, until, there))
		return false;
	if (!agents->shared) {
		memcpy(here, agents->local, sizeof(agents->local));
		return agent_identity(here, hello, until, identity) &&
		       !memcmp(identity, there, 16);
	}
	for (unsigned i = 0; i < count; i++) {
		snprintf(here, AGENT_TEXT, LOCAL_SCHEME "%.*s", (int)LOCAL_SHARED_SIZE - 1,
			paths[i]);
		if (agent_identity(here, hello, until, identity) &&
			!memcmp(identity, there, 16))
			return true;
	}
	return false;
}

/* A session at ADDRESS, by shared memory where that can be. As transport_dial. */
static int agents_open(const struct agents *agents, const char *address,
	const struct session_hello *hello, struct session_welcome *welcome, uint64_t deadline,
	struct link **link, struct error *error)
{
	char here[AGENT_TEXT];

	if (agent_is_here(agents, address, hello, deadline, here)) {
		if (!transport_dial(here, hello, welcome, deadline, link, error))
			return 0;
		log_info("agent.local", "agent=%s text=\"%s\"", address, error->text);
	}
	if (agents->only && !hello->role && strncmp(address, LOCAL_SCHEME, 8))
		return error_set(error, EHOSTUNREACH,
			"agent %s: protocol: local, and the agent at local_socket (%s) is not "
			"this one or does not answer",
			address, agents->local[0] ? agents->local : "none");
	return transport_dial(address, hello, welcome, deadline, link, error);
}

static void *ask_main(void *argument)
{
	struct candidate *candidate = argument;
	struct link *link = NULL;

	candidate->result = transport_dial(candidate->address, candidate->hello,
		&candidate->welcome, candidate->deadline, &link, &candidate->error);
	link_close(link);
	return NULL;
}

/* Whether A should be tried before B: it would grant a session, and has more to give. */
static int compare(const void *one, const void *two)
{
	const struct candidate *a = one, *b = two;

	if (!a->result != !b->result)
		return a->result ? 1 : -1;
	if (a->welcome.free_memory != b->welcome.free_memory)
		return a->welcome.free_memory < b->welcome.free_memory ? 1 : -1;
	if (a->welcome.sessions != b->welcome.sessions)
		return a->welcome.sessions > b->welcome.sessions ? 1 : -1;
	return strcmp(a->address, b->address);
}

/* Asks all at once and puts the best first. */
static void rank(struct candidates *all, const struct session_hello *hello, uint64_t deadline)
{
	struct session_hello probe = *hello;
	uint64_t until = wait_now() + ASK_NS;
	pthread_attr_t attributes;

	probe.role = SESSION_PROBE;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, ASK_STACK);
	for (size_t i = 0; i < all->count; i++) {
		struct candidate *candidate = &all->at[i];

		candidate->hello = &probe;
		candidate->deadline = until < deadline ? until : deadline;
		candidate->result = -EAGAIN;
		candidate->asked =
			!pthread_create(&candidate->thread, &attributes, ask_main, candidate);
	}
	for (size_t i = 0; i < all->count; i++)
		if (all->at[i].asked)
			pthread_join(all->at[i].thread, NULL);
	pthread_attr_destroy(&attributes);
	qsort(all->at, all->count, sizeof(all->at[0]), compare);
	explicit_bzero(probe.token, sizeof(probe.token));
}

static void remember(struct agents *agents, const char *address)
{
	pthread_mutex_lock(&agents->lock);
	snprintf(agents->chosen, sizeof(agents->chosen), "%s", address);
	pthread_mutex_unlock(&agents->lock);
}

/* All that the list stands for, to be freed. 0, or -errno with *error. */
static int candidates_of(const char *list, struct candidates **all, struct error *error)
{
	*all = calloc(1, sizeof(**all));
	return *all ? expand(list, *all, error) : error_set(error, ENOMEM, "a list of agents");
}

int agents_keep(
	struct agents *agents, const char *list, const char *address, struct error *error)
{
	cleanup_free struct candidates *all = NULL;
	int ret;

	if (agents->local[0] && !strcmp(agents->local, address))
		return 0;
	if (agents->shared && !strncmp(address, LOCAL_SCHEME, strlen(LOCAL_SCHEME)) &&
		local_is_shared(address + strlen(LOCAL_SCHEME)))
		return 0;
	ret = candidates_of(list, &all, error);
	if (ret < 0)
		return ret;
	for (size_t i = 0; i < all->count; i++) {
		char now[AGENT_TEXT];

		if (strcmp(all->at[i].address, address))
			continue;
		agents_chosen(agents, now);
		if (!now[0])
			remember(agents, address);
		return 0;
	}
	return error_set(error, ENOENT, "the session's agent is none of '%s'", list);
}

void agents_forget(struct agents *agents)
{
	remember(agents, "");
}

/* The same agent answered under another name already. One that does not say who it is counts as
 * another. */
static bool twice(const struct candidates *all, size_t n)
{
	static const uint8_t none[16];

	for (size_t i = 0; i < n; i++)
		if (memcmp(all->at[n].welcome.session, none, sizeof(none)) &&
			!memcmp(all->at[i].welcome.session, all->at[n].welcome.session,
				sizeof(none)))
			return true;
	return false;
}

int agents_ask(const char *list, const struct session_hello *hello, uint64_t deadline,
	struct agents_offer offers[AGENTS_MAX], struct error *error)
{
	cleanup_free struct candidates *all = NULL;
	int ret = candidates_of(list, &all, error), count = 0;

	if (ret < 0)
		return ret;
	rank(all, hello, deadline);
	for (size_t i = 0; i < all->count && !all->at[i].result; i++) {
		const struct candidate *one = &all->at[i];

		if (twice(all, i))
			continue;
		memcpy(offers[count].address, one->address, AGENT_TEXT);
		offers[count++].gpus = one->welcome.gpus;
	}
	if (!count) {
		*error = all->at[0].error;
		return all->at[0].welcome.status == STATUS_NOT_PERMITTED ? -EPERM
									 : all->at[0].result;
	}
	return count;
}

void agents_chosen(struct agents *agents, char chosen[AGENT_TEXT])
{
	pthread_mutex_lock(&agents->lock);
	memcpy(chosen, agents->chosen, AGENT_TEXT);
	pthread_mutex_unlock(&agents->lock);
}

void agents_shared(struct agents *agents, const struct link *link, char address[AGENT_TEXT])
{
	const struct transport_place *place = &link->place;

	agents_chosen(agents, address);
	if (place->transport && place->transport->shares &&
		(agents->local[0] || agents->shared))
		snprintf(
			address, AGENT_TEXT, LOCAL_SCHEME "%.120s", (const char *)place->bytes);
}

/* A session at the best of them, or at the next that grants one. SEEN: only where no other
 * session has begun since they were asked; *overtaken then says that one has. */
static int open_best(struct agents *agents, struct candidates *all, const char *failed,
	const struct session_hello *hello, bool seen, bool *overtaken,
	struct session_welcome *welcome, uint64_t deadline, struct link **link,
	struct error *error)
{
	struct session_hello mine = *hello;
	int ret = -EAGAIN;

	*overtaken = false;
	for (size_t i = 0; i < all->count && !*overtaken; i++) {
		struct candidate *candidate = &all->at[i];

		if (all->count > 1 && !strcmp(candidate->address, failed))
			continue;
		mine.features = hello->features;
		if (seen && !candidate->result) {
			mine.features |= SESSION_FEATURE_SEEN;
			memcpy(mine.seen, &candidate->welcome.sessions, sizeof(mine.seen));
		}
		*welcome = (struct session_welcome){0}; /* it may not come to one */
		ret = agents_open(
			agents, candidate->address, &mine, welcome, deadline, link, error);
		if (!ret) {
			remember(agents, candidate->address);
			break;
		}
		*overtaken = seen && welcome->status == STATUS_PENDING;
		if (all->count > 1 && !*overtaken)
			log_info("agent.passed", "agent=%s text=\"%s\"", candidate->address,
				error->text);
	}
	explicit_bzero(mine.token, sizeof(mine.token));
	return ret;
}

/* Of all that the list stands for, but for FAILED, which was tried just now. */
static int choose(struct agents *agents, const char *list, const char *failed,
	const struct session_hello *hello, struct session_welcome *welcome, uint64_t deadline,
	struct link **link, struct error *error)
{
	cleanup_free struct candidates *all = NULL;
	int ret = candidates_of(list, &all, error);

	if (ret < 0)
		return ret;
	/* Other sidecars ask at the same time. Among many that never stop to, it gets what
	 * there is in the end. */
	for (int left = ASK_AGAIN;; left--) {
		bool overtaken, several = all->count > 1;

		if (several)
			rank(all, hello, deadline);
		ret = open_best(agents, all, failed, hello, several && left, &overtaken,
			welcome, deadline, link, error);
		if (!overtaken)
			return ret;
	}
}

int agents_dial(struct agents *agents, const char *list, const struct session_hello *hello,
	struct session_welcome *welcome, uint64_t deadline, struct link **link,
	struct error *error)
{
	char first[AGENT_TEXT], now[AGENT_TEXT];
	bool answered;
	int ret;

	agents_chosen(agents, first);
	if (first[0]) {
		ret = agents_open(agents, first, hello, welcome, deadline, link, error);
		/* One agent, and it answered no or nothing: it need not do so twice. */
		answered = ret == -ETIMEDOUT || (ret == -ECONNREFUSED && welcome->status);
		if (!ret || (answered && !strchr(list, ',') && !strcmp(first, list)))
			return ret;
	}
	/* One chooses; who comes meanwhile gets the same. */
	pthread_mutex_lock(&agents->choosing);
	agents_chosen(agents, now);
	ret = -EAGAIN;
	if (strcmp(first, now))
		ret = agents_open(agents, now, hello, welcome, deadline, link, error);
	if (ret)
		ret = choose(agents, list, now, hello, welcome, deadline, link, error);
	pthread_mutex_unlock(&agents->choosing);
	return ret;
}
