/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of networks, see network_table.h: what comes of itself, by time and by what others
 * say.
 */
#include "gpu-agent/supervisor/network_table.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/folder.h"
#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/control.h"
#include "gpu-agent/supervisor/settings/network_settings.h"
#include "gpu-agent/supervisor/supervisor.h"
#include "gpu-agent/supervisor/settings/token.h"

#define MS 1000000ull
/* Should inotify not be there, or say nothing: a folder of another machine's. */
#define LOOK_NS (5000 * MS)
#define TOKENS_LOOK_NS (5000 * MS)
/* What the end of a network's sessions may take beyond its time. */
#define LEAVE_SLACK_NS ((CONTROL_STOP_MS + 3000) * MS)
/* At the agent's end, for all of them. */
#define CLOSE_NS (1500 * MS)
/* networks_end: who starts such an agent gives it its first network by then. */
#define FIRST_NS (10000 * MS)

int network_table_find(const struct agent_config *config, const char *name)
{
	for (uint32_t i = 0; i < config->network_count; i++)
		if (!strcmp(config->networks[i].is.name, name))
			return (int)i;
	return -1;
}

struct network_place network_table_place(void)
{
	return (struct network_place){.fd = -1};
}

/* Its sessions are over. */
static void forget(struct supervisor *s, uint32_t index)
{
	struct agent_config *config = s->config;
	uint32_t behind = --config->network_count - index;

	log_info("network.left", "network=%s", config->networks[index].is.name);
	network_process_end(s, index);
	memmove(&config->networks[index], &config->networks[index + 1],
		behind * sizeof(config->networks[0]));
	memset(&config->networks[config->network_count], 0, sizeof(config->networks[0]));
	memmove(&s->networks.at[index], &s->networks.at[index + 1],
		behind * sizeof(s->networks.at[0]));
	s->networks.at[config->network_count] = network_table_place();
	s->networks.changed = true;
	s->networks.seen = s->networks.look_at =
		0; /* one that could not be beside it may now */
	supervisor_tell_config(s);
}

void network_table_report(struct supervisor *s, int fd)
{
	struct network_report report;
	bool good = network_report_read(fd, &report);
	int i = good ? network_table_find(s->config, report.name) : -1;

	if (fd >= 0)
		close(fd);
	if (i < 0)
		return; /* the front has not heard yet that it is gone */
	s->networks.at[i].report = report;
	s->networks.changed = true;
	if (s->config->networks[i].leaving_until && report.state == NETWORK_LEAVING &&
		!report.sessions)
		forget(s, (uint32_t)i);
	else
		network_process_tell(s, (uint32_t)i);
}

/* --- time --------------------------------------------------------------------------------- */

/* A token file that was written again; a bad one leaves the tokens as they are. */
static void look_at_tokens(struct supervisor *s)
{
	static struct agent_config others;
	bool changed = false;

	for (uint32_t i = 0; i < s->config->network_count; i++) {
		struct network_place *at = &s->networks.at[i];
		struct agent_network network = s->config->networks[i];
		struct error error;
		struct stat st;

		if (stat(network.is.token_file, &st) || supervisor_same_file(&st, &at->token))
			continue;
		at->token = st;
		others = *s->config;
		others.networks[i] = others.networks[--others.network_count];
		if (token_read_network(&network, &error) ||
			network_settings_fits(
				&others, others.network_count, &network, &error)) {
			log_error("tokens.bad",
				"network=%s text=\"%s; those of before stay good\"",
				network.is.name, error.text);
			continue;
		}
		changed |= memcmp(&network, &s->config->networks[i], sizeof(network)) != 0;
		s->config->networks[i] = network;
	}
	if (changed)
		supervisor_tell_config(s);
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t tick_places(struct supervisor *s, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t i = 0; i < s->config->network_count; i++) {
		struct network_place *at = &s->networks.at[i];
		uint64_t leaving = s->config->networks[i].leaving_until;

		if (leaving && leaving + LEAVE_SLACK_NS <= now) {
			forget(s, i--);
			continue;
		}
		if (leaving)
			next = sooner(next, leaving + LEAVE_SLACK_NS);
		if (at->start_at <= now && !s->draining && !leaving)
			network_process_start(s, i, now);
		if (!leaving && !s->draining)
			next = sooner(next, at->start_at);
	}
	for (uint32_t i = 0; i < AGENT_NETWORKS; i++) {
		struct network_ending *ending = &s->networks.ending[i];

		if (!ending->pid)
			continue;
		if (ending->kill_at <= now) {
			kill(ending->pid, SIGKILL);
			ending->kill_at = UINT64_MAX;
		}
		next = sooner(next, ending->kill_at);
	}
	return next;
}

/* `vcuda peer join` started it for its networks. */
static void end_without(struct supervisor *s, uint64_t now)
{
	static uint64_t first_until;
	static bool met;

	if (!first_until)
		first_until = now + FIRST_NS;
	met |= s->config->network_count || s->networks.refused_count;
	if (s->config->network_count || s->networks.refused_count || s->draining ||
		(!met && now < first_until))
		return;
	log_info("networks.none", "text=\"the agent is in no network any more and ends\"");
	supervisor_drain(s);
}

uint64_t network_table_tick(struct supervisor *s, uint64_t now)
{
	struct network_table *n = &s->networks;
	uint64_t next = UINT64_MAX;

	if (s->config->networks_folder[0] && !s->draining) {
		if (n->look_at <= now) {
			n->look_at = now + LOOK_NS;
			network_folder_look(s);
		}
		next = n->look_at;
		if (s->config->networks_end)
			end_without(s, now);
	}
	if (s->config->network_count && n->tokens_at <= now) {
		n->tokens_at = now + TOKENS_LOOK_NS;
		look_at_tokens(s);
	}
	if (s->config->network_count)
		next = sooner(next, n->tokens_at);
	next = sooner(next, tick_places(s, now));
	network_state_write(s);
	return next;
}

nfds_t network_table_poll(const struct supervisor *s, struct pollfd *p)
{
	p[0] = (struct pollfd){.fd = s->networks.watch, .events = POLLIN};
	for (uint32_t i = 0; i < s->config->network_count; i++)
		p[1 + i] = (struct pollfd){.fd = s->networks.at[i].fd, .events = POLLIN};
	return 1 + s->config->network_count;
}

void network_table_hear(struct supervisor *s, const struct pollfd *p, nfds_t count)
{
	char events[4096];

	for (uint32_t i = 0; i < s->config->network_count && 1 + i < count; i++)
		if (p[1 + i].revents && p[1 + i].fd == s->networks.at[i].fd)
			network_process_hear(s, i);
	if (!p[0].revents)
		return;
	while (read(s->networks.watch, events, sizeof(events)) > 0)
		; /* whatever it was, the folder is looked at */
	s->networks.look_at = 0;
}

/* --- begin and end ------------------------------------------------------------------------ */

/* One agent has the folder. The lock goes with the process; a child has none of it. */
static int lock_folder(struct supervisor *s, struct error *error)
{
	const char *folder = s->config->networks_folder;
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char path[AGENT_PATH * 2];
	struct stat st;
	int ret = folder_own(folder, &st, error);

	if (ret)
		return error_wrap(error, ret, "networks_folder");
	if (st.st_uid && st.st_uid != geteuid())
		return error_set(error, 0, "networks_folder: %s is another user's", folder);
	network_folder_path(s, "agent.lock", path);
	s->networks.lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (s->networks.lock < 0)
		return error_set(error, errno, "networks_folder: %s", path);
	if (!fcntl(s->networks.lock, F_SETLK, &lock))
		return 0;
	if (fcntl(s->networks.lock, F_GETLK, &lock) || lock.l_type == F_UNLCK)
		lock.l_pid = 0;
	close(s->networks.lock);
	s->networks.lock = -1;
	return error_set(error, 0, "networks_folder: %s is that of another agent (pid %d)",
		folder, lock.l_pid);
}

static void watch_folder(struct supervisor *s)
{
	if (!s->config->networks_folder[0])
		return;
	s->networks.watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (s->networks.watch < 0 ||
		inotify_add_watch(s->networks.watch, s->config->networks_folder,
			IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVE | IN_DELETE) < 0)
		log_warn("networks.watch", "text=\"%s\"", strerror(errno));
}

int network_table_open(struct supervisor *s, struct error *error)
{
	int ret = 0;

	s->networks.lock = s->networks.watch = -1;
	for (uint32_t i = 0; i < AGENT_NETWORKS; i++)
		s->networks.at[i] = network_table_place();
	for (uint32_t i = 0; i < s->config->network_count; i++)
		stat(s->config->networks[i].is.token_file, &s->networks.at[i].token);
	if (s->config->networks_folder[0])
		ret = lock_folder(s, error);
	if (ret)
		return ret;
	watch_folder(s);
	network_folder_look(s);
	return ret;
}

void network_table_kill(struct supervisor *s)
{
	for (uint32_t i = 0; i < AGENT_NETWORKS; i++) {
		struct network_place *at = &s->networks.at[i];

		if (at->pid)
			kill(at->pid, SIGKILL);
		if (at->fd >= 0)
			close(at->fd);
		*at = (struct network_place){.fd = -1, .report = at->report};
		if (s->networks.ending[i].pid)
			kill(s->networks.ending[i].pid, SIGKILL);
		s->networks.ending[i].pid = 0;
	}
}

/* Whether there are some left. */
static bool reap_ending(struct supervisor *s)
{
	bool left = false;

	for (uint32_t i = 0; i < AGENT_NETWORKS; i++) {
		struct network_ending *ending = &s->networks.ending[i];

		if (ending->pid && waitpid(ending->pid, NULL, WNOHANG))
			ending->pid = 0;
		left |= ending->pid != 0;
	}
	return left;
}

void network_table_close(struct supervisor *s)
{
	uint64_t until = wait_now() + CLOSE_NS;

	for (uint32_t i = 0; i < s->config->network_count; i++)
		network_process_end(s, i);
	while (reap_ending(s) && wait_now() < until)
		poll(NULL, 0, 5);
	network_table_kill(s);
	if (s->networks.lock >= 0) {
		network_state_remove(s->config);
		close(s->networks.lock);
	}
	if (s->networks.watch >= 0)
		close(s->networks.watch);
}
