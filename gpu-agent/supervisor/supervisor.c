/* SPDX-License-Identifier: Apache-2.0
 *
 * The supervisor: starts and reaps, and parses nothing that came over the network.  It binds
 * the ports once and keeps them, so that a front that crashed is replaced under the same ports,
 * with connections waiting in the backlog and not refused.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/agent.h"
#include "gpu-agent/cache/compiled.h"
#include "gpu-agent/control.h"
#include "gpu-agent/supervisor/children.h"
#include "gpu-agent/supervisor/handover.h"
#include "gpu-agent/supervisor/listening.h"
#include "gpu-agent/supervisor/settings/network_settings.h"
#include "gpu-agent/supervisor/spawn.h"
#include "gpu-agent/supervisor/ready.h"
#include "gpu-agent/supervisor/store_process.h"
#include "gpu-agent/supervisor/settings/settings.h"
#include "gpu-agent/supervisor/supervisor.h"
#include "gpu-agent/supervisor/settings/token.h"
#include "gpu-agent/supervisor/uploads_process.h"
#include "gpu-agent/supervisor/settings/users.h"
#include "gpu-agent/sandbox/sandbox.h"

#define MS 1000000ull
/* How soon a token file that was written again is noticed; SIGHUP says so at once. */
#define TOKENS_LOOK_NS (5000 * MS)
/* Processes that are on their way out still hold a place. */
#define CHILDREN_SLACK 128

/* A bad file is said once, and the tokens stay as they are. */
static void read_tokens(struct supervisor *s, struct agent_tokens *tokens)
{
	static struct agent_tokens before;
	char path[AGENT_PATH];
	struct error error;
	int ret;

	memcpy(path, tokens->file, sizeof(path));
	before = *tokens;
	ret = tokens == &s->config->http_tokens ? token_read_http(tokens, path, &error)
						: token_read(tokens, path, &error);
	if (!ret && network_settings_check(s->config, &error)) {
		*tokens = before;
		ret = -EINVAL;
	}
	if (ret) {
		log_error("tokens.bad", "text=\"%s; the tokens of before stay good\"",
			error.text);
		return;
	}
	log_info("tokens.read", "file=\"%s\" tokens=%u", path, tokens->count);
	supervisor_tell_config(s);
}

/* Reads the file where it is another than SEEN, or where `anyway`. */
static void look_at_file(
	struct supervisor *s, struct agent_tokens *tokens, struct stat *seen, bool anyway)
{
	struct stat st = *seen;
	bool there = tokens->file[0] && !stat(tokens->file, &st);

	if (!tokens->file[0] || (!anyway && (!there || supervisor_same_file(&st, seen))))
		return;
	*seen = st;
	read_tokens(s, tokens);
}

/* Kubernetes writes a mounted secret anew, and nobody there sends a signal. */
static void look_at_tokens(struct supervisor *s, uint64_t now)
{
	if (s->tokens_at > now)
		return;
	s->tokens_at = now + TOKENS_LOOK_NS;
	look_at_file(s, &s->config->tokens, &s->tokens, false);
	look_at_file(s, &s->config->http_tokens, &s->http_tokens, false);
}

/* A terminal that is gone takes an agent along that was only started there. */
static void hang_up(struct supervisor *s)
{
	if (s->self->terminal && !s->config->tokens.file[0] &&
		!s->config->http_tokens.file[0] && !s->config->networks_folder[0]) {
		supervisor_drain(s);
		return;
	}
	look_at_file(s, &s->config->tokens, &s->tokens, true);
	look_at_file(s, &s->config->http_tokens, &s->http_tokens, true);
	network_table_look_again(s);
	network_table_tick(s, wait_now());
	handover_ask(s);
}

static void handle_signals(struct supervisor *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			children_reap(s);
		else if (info.ssi_signo == SIGHUP)
			hang_up(s);
		else
			supervisor_drain(s);
	}
}

/* Does what is due; the time of what comes next. */
static uint64_t tick(struct supervisor *s)
{
	uint64_t now = wait_now(), next = s->start_at, asked, store, networks, uploads;
	uint64_t ready = ready_tick(s->config, now);

	if (s->start_at <= now && !s->draining) {
		children_start_front(s);
		next = s->start_at;
	}
	store = store_process_tick(s, now);
	if (store < next)
		next = store;
	uploads = uploads_process_tick(s, now);
	if (uploads < next)
		next = uploads;
	asked = handover_tick(s, now);
	if (asked < next)
		next = asked;
	networks = network_table_tick(s, now);
	if (networks < next)
		next = networks;
	look_at_tokens(s, now);
	if (s->tokens_at < next)
		next = s->tokens_at;
	if (ready < next)
		next = ready;
	if (s->draining && s->end_at <= now)
		s->status = 0;
	if (s->draining && s->end_at < next)
		next = s->end_at;
	for (size_t i = 0; i < s->room; i++) {
		struct child *child = &s->children[i];

		if (!child->pid)
			continue;
		if (child->kill_at <= now) {
			log_warn("worker.kill", "worker=%d", child->pid);
			kill(child->pid, SIGKILL);
			child->kill_at = UINT64_MAX;
		}
		if (child->kill_at < next)
			next = child->kill_at;
	}
	return next;
}

static void run(struct supervisor *s)
{
	while (s->status < 0) {
		/* First: it may start a front, whose socket is then to be waited for. */
		uint64_t next = tick(s), now = wait_now();
		struct pollfd p[4 + NETWORK_TABLE_POLL] = {
			{.fd = s->signals, .events = POLLIN},
			{.fd = s->control, .events = POLLIN},
			{.fd = s->probe, .events = POLLIN},
			{.fd = s->store, .events = POLLIN},
		};
		nfds_t count = network_table_poll(s, p + 4);
		int timeout = -1;

		if (s->status >= 0)
			break;
		if (next != UINT64_MAX)
			timeout = next <= now ? 0 : (int)((next - now) / MS) + 1;
		if (poll(p, 4 + count, timeout) < 0 && errno != EINTR) {
			log_error("agent.poll", "text=\"%s\"", strerror(errno));
			s->status = 1;
		}
		if (p[1].revents)
			children_hear_front(s);
		if (p[2].revents)
			children_hear_probe(s);
		if (p[3].revents)
			store_process_hear(s);
		network_table_hear(s, p + 4, count);
		if (p[0].revents)
			handle_signals(s);
	}
}

static int open_signals(struct error *error)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? error_set(error, errno, "signalfd") : fd;
}

/* Nothing outlives the supervisor. */
static void end_all(struct supervisor *s)
{
	ready_remove(s->config);
	network_table_close(s);
	if (s->front)
		kill(s->front, SIGKILL);
	if (s->probe_pid)
		kill(s->probe_pid, SIGKILL);
	if (s->store_pid)
		kill(s->store_pid, SIGKILL);
	uploads_process_stop(s);
	for (size_t i = 0; i < s->room; i++)
		if (s->children[i].pid)
			kill(s->children[i].pid, SIGKILL);
	while (wait(NULL) > 0)
		;
	kept_clear(&s->kept);
	compiled_close(s->config);
	listening_close(s->config, s->http);
}

/* What this process is to listen on and has to look after. */
static int begin(struct supervisor *s, struct error *error)
{
	struct agent_config *config = s->config;

	s->signals = open_signals(error);
	if (s->signals < 0)
		return s->signals;
	if (s->self->taken >= 0)
		return handover_enter(s, error);
	compiled_open(config);
	return listening_open(config, &s->http, error);
}

static void say_start(const struct supervisor *s)
{
	const struct agent_config *config = s->config;

	log_info(s->self->taken < 0 ? "agent.start" : "agent.reloaded",
		"version=%s address=\"%s\" send=%u recv=%u control=%u driver=\"%s\"",
		AGENT_VERSION, config->address[0] ? config->address : "*",
		config->bound[LISTEN_SEND], config->bound[LISTEN_RECV],
		config->bound[LISTEN_CONTROL], config->driver_path);
	if (config->tokens.made)
		log_warn("token.made",
			"file=\"%s\" text=\"no token is configured; clients must bring this "
			"file's (--token-file), --insecure serves everybody\"",
			config->tokens.file);
	if (config->insecure)
		log_warn("agent.insecure",
			"text=\"no token is asked for: everybody who reaches the ports has the "
			"GPUs, and may say to be any pod\"");
	if (config->sandbox_off)
		log_warn("sandbox.off", "text=\"a tenant's code in a worker reaches all that "
					"the agent reaches\"");
}

int supervisor_main(struct agent_config *config, const struct reload *reload)
{
	struct supervisor s = {
		.config = config, .control = -1, .probe = -1, .status = -1, .self = reload};
	struct error error;

	s.kept.most = spawn_limit_files(SPAWN_FILES_MOST) / 2;
	sandbox_device_files(config);
	s.tokens_at = UINT64_MAX;
	if (config->tokens.file[0] && !stat(config->tokens.file, &s.tokens))
		s.tokens_at = 0;
	if (config->http_tokens.file[0] && !stat(config->http_tokens.file, &s.http_tokens))
		s.tokens_at = 0;
	s.room = config->max_sessions + config->warm_workers + CHILDREN_SLACK;
	cleanup_free struct child *children = calloc(s.room, sizeof(*children));
	s.children = children;
	if (!children) {
		fprintf(stderr, "gpu-agent: no memory for the table of workers\n");
		return 1;
	}
	if (begin(&s, &error)) {
		fprintf(stderr, "gpu-agent: %s\n", error.text);
		return 1;
	}
	if (network_table_open(&s, &error)) {
		fprintf(stderr, "gpu-agent: %s\n", error.text);
		end_all(&s);
		return 1;
	}
	say_start(&s);
	store_process_init(&s);
	uploads_process_init(&s);
	children_start_front(&s);
	children_start_probe(&s);
	run(&s);
	end_all(&s);
	log_info("agent.end", "status=%d", s.status);
	return s.status;
}
