/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/supervisor/handover.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/cache/compiled.h"
#include "gpu-agent/supervisor/listening.h"
#include "gpu-agent/supervisor/store_process.h"
#include "gpu-agent/supervisor/uploads_process.h"

/* It reads a configuration, and says something. */
#define ANSWER_NS (10000 * 1000000ull)

_Static_assert(
	sizeof(((struct reload_entry *)0)->text) >= sizeof(((struct child *)0)->tenant) &&
		sizeof(((struct reload_entry *)0)->text) >= CONTROL_NAME,
	"a tenant and a name fit");

/* All that goes along; to be freed. NULL without memory. */
static struct reload_entry *pack(const struct supervisor *s, struct reload_state *state)
{
	struct reload_entry *entries = calloc(s->room + s->kept.count, sizeof(*entries));
	struct reload_entry *at = entries;

	memset(state, 0, sizeof(*state)); /* its padding is compared too */
	state->config = *s->config;
	state->http = s->http;
	state->compiled_lock = compiled_lock();
	for (size_t i = 0; entries && i < s->room; i++) {
		const struct child *child = &s->children[i];

		if (!child->pid)
			continue;
		*at = (struct reload_entry){.pid = child->pid,
			.fd = child->handoff,
			.kill_at = child->kill_at,
			.user = child->user};
		memcpy(at++->text, child->tenant, sizeof(child->tenant));
		state->children++;
	}
	for (size_t i = 0; entries && i < s->kept.count; i++) {
		*at = (struct reload_entry){
			.pid = s->kept.list[i].pid, .fd = s->kept.list[i].fd};
		memcpy(at++->text, s->kept.list[i].name, CONTROL_NAME);
		state->kept++;
	}
	return entries;
}

void handover_ask(struct supervisor *s)
{
	static struct reload_state state;
	cleanup_free struct reload_entry *entries = NULL;
	struct error error = {0};

	if (s->asked || s->reloading || s->draining) {
		log_warn("reload.refused", "text=\"%s\"",
			s->draining ? "the agent ends" : "one is under way");
		return;
	}
	entries = pack(s, &state);
	cleanup_close int memory =
		entries ? reload_write(s->self, &state, entries, &error) : -ENOMEM;
	s->asked = memory < 0 ? memory : reload_check(s->self, memory, &error);
	if (s->asked < 0) {
		log_error("reload.refused", "text=\"%s\"", error.text);
		s->asked = 0;
		return;
	}
	s->asked_until = wait_now() + ANSWER_NS;
}

uint64_t handover_tick(struct supervisor *s, uint64_t now)
{
	if (!s->asked)
		return UINT64_MAX;
	if (s->asked_until <= now) {
		kill(s->asked, SIGKILL); /* its end comes as SIGCHLD */
		s->asked_until = UINT64_MAX;
	}
	return s->asked_until;
}

static bool other_binary(const struct reload *self)
{
	struct stat now;

	return stat(self->binary, &now) || now.st_ino != self->is.st_ino ||
	       now.st_dev != self->is.st_dev || now.st_mtim.tv_sec != self->is.st_mtim.tv_sec ||
	       now.st_mtim.tv_nsec != self->is.st_mtim.tv_nsec;
}

bool handover_answered(struct supervisor *s, int status)
{
	int answer = WIFEXITED(status) ? WEXITSTATUS(status) : -1;

	s->asked = 0;
	if (s->draining)
		return false;
	if (answer == RELOAD_SAME && !other_binary(s->self)) {
		log_info("reload.same", "text=\"binary and configuration are as they were\"");
		return false;
	}
	if (answer && answer != RELOAD_SAME) {
		log_error("reload.refused",
			"status=%d signal=%d text=\"the agent goes on as it was; what stands "
			"above "
			"says why\"",
			answer, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
		return false;
	}
	s->reloading = true;
	return true;
}

void handover_leave(struct supervisor *s)
{
	static struct reload_state state;
	cleanup_free struct reload_entry *entries = NULL;
	struct error error = {0};
	uint64_t now = wait_now();

	s->reloading = false;
	if (s->probe_pid)
		kill(s->probe_pid, SIGKILL);
	store_process_stop(s);
	network_table_kill(s);
	uploads_process_stop(s);
	/* Those without a session were made by the old binary and configuration. */
	for (size_t i = 0; i < s->room; i++)
		if (s->children[i].pid && !s->children[i].tenant[0])
			s->children[i].kill_at = now;
	entries = pack(s, &state);
	cleanup_close int memory =
		entries ? reload_write(s->self, &state, entries, &error) : -ENOMEM;
	if (memory >= 0)
		reload_exec(s->self, memory, &state, entries, &error);
	store_process_init(s);
	uploads_process_init(s);
	log_error("reload.failed", "text=\"%s; the agent goes on as it was\"", error.text);
}

int handover_enter(struct supervisor *s, struct error *error)
{
	static struct reload_state state;
	struct reload_entry *entries;
	int ret = reload_take(s->self, s->config, &state, &entries, error);

	if (ret)
		return ret;
	s->http = state.http;
	compiled_take(state.compiled_lock);
	s->config->front_restarts++;
	s->config->reloads++;
	for (uint32_t i = 0; i < state.children; i++) {
		struct child *child = &s->children[i];

		if (i == s->room) {
			free(entries);
			return error_set(
				error, 0, "a reload with more workers than there may be");
		}
		*child = (struct child){.pid = entries[i].pid,
			.handoff = entries[i].fd,
			.kill_at = entries[i].kill_at,
			.user = entries[i].user};
		memcpy(child->tenant, entries[i].text, sizeof(child->tenant));
	}
	for (uint32_t i = state.children; i < state.children + state.kept; i++)
		kept_add(&s->kept, entries[i].pid, (const uint8_t *)entries[i].text,
			entries[i].fd);
	free(entries);
	return listening_secure(s->config, error);
}
