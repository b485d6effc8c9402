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
#include "common/descriptors.h"
#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/agent.h"
#include "gpu-agent/cache/compiled.h"
#include "gpu-agent/control.h"
#include "gpu-agent/supervisor/handover.h"
#include "gpu-agent/supervisor/listening.h"
#include "gpu-agent/supervisor/spawn.h"
#include "gpu-agent/supervisor/ready.h"
#include "gpu-agent/supervisor/store_process.h"
#include "gpu-agent/supervisor/settings.h"
#include "gpu-agent/supervisor/supervisor.h"
#include "gpu-agent/supervisor/token.h"
#include "gpu-agent/supervisor/users.h"
#include "gpu-agent/sandbox/sandbox.h"

#define MS 1000000ull
/* A front that dies young again and again is started again after 50, 100 … 800 ms. */
#define FRONT_YOUNG_NS (5000 * MS)
#define FRONT_DELAY_MIN (50 * MS)
#define FRONT_DELAY_MAX (800 * MS)
/* After so many that died young in turn, and of themselves, what they were left with may be
 * why: the sessions end. */
#define FRONT_YOUNG_MOST 3
/* A front that does not read for so long is stuck. */
#define FRONT_READS_MS 5000
/* How soon a token file that was written again is noticed; SIGHUP says so at once. */
#define TOKENS_LOOK_NS (5000 * MS)
/* What the drain's end may take beyond drain_ms until everything is killed. */
#define DRAIN_SLACK_MS (CONTROL_STOP_MS + 3000u)
/* Processes that are on their way out still hold a place. */
#define CHILDREN_SLACK 128

static struct child *find_child(struct supervisor *s, pid_t pid)
{
	for (size_t i = 0; i < s->room; i++)
		if (s->children[i].pid == pid)
			return &s->children[i];
	return NULL;
}

/* A front that does not read is as good as dead: its end comes as SIGCHLD. */
static void tell(struct supervisor *s, const struct control *c, int fd)
{
	int ret;

	if (s->control < 0)
		return;
	/* Blocking for the rare full buffer: a lost EXITED would leave a lease behind.  The
	 * next front hears of all anew. */
	ret = descriptors_send(s->control, c, sizeof(*c), &fd, fd >= 0, 0);
	if (ret == -EAGAIN) {
		struct pollfd p = {.fd = s->control, .events = POLLOUT};

		if (poll(&p, 1, FRONT_READS_MS) == 1)
			ret = descriptors_send(s->control, c, sizeof(*c), &fd, fd >= 0, 0);
	}
	if (ret && ret != -EPIPE && s->front > 0) {
		log_error("front.stuck", "front=%d text=\"%s\"", s->front, strerror(-ret));
		kill(s->front, SIGKILL);
	}
}

static void tell_kept(struct supervisor *s, bool own)
{
	for (size_t i = 0; i < s->kept.count; i++) {
		const struct kept *kept = &s->kept.list[i];
		struct control c = {.what = CONTROL_KEPT, .pid = kept->pid};

		memcpy(c.text, kept->name, sizeof(kept->name));
		if (kept->pid != STORE_KEPT && own == !kept->pid)
			tell(s, &c, kept->fd);
	}
}

/* What the front before it knew. */
static void hand_on(struct supervisor *s)
{
	tell_kept(s, true);
	for (size_t i = 0; i < s->room; i++) {
		const struct child *child = &s->children[i];

		if (child->pid && child->tenant[0] && child->kill_at == UINT64_MAX)
			tell(s, &(struct control){.what = CONTROL_ADOPT, .pid = child->pid},
				child->handoff);
	}
	tell_kept(s, false);
	tell(s, &(struct control){.what = CONTROL_BEGIN}, -1);
}

void supervisor_join_store(struct supervisor *s)
{
	int fd = s->control < 0 ? -1 : store_process_pair(s);

	if (fd < 0)
		return;
	tell(s, &(struct control){.what = CONTROL_STORE}, fd);
	close(fd);
}

static void start_front(struct supervisor *s)
{
	struct error error;
	pid_t pid = spawn_front(s->config, s->http, &s->control, &error);

	if (pid < 0) {
		log_error("front.start", "text=\"%s\"", error.text);
		s->start_at = wait_now() + FRONT_DELAY_MAX;
		return;
	}
	s->front = pid;
	s->front_started = wait_now();
	s->start_at = UINT64_MAX;
	for (size_t i = 0; i < s->library_count; i++)
		tell(s, &s->libraries[i], -1);
	hand_on(s);
	supervisor_join_store(s);
}

/* Without it nothing is missing but a few lines of /readyz?verbose. */
static void start_probe(struct supervisor *s)
{
	struct error error;

	s->probe_pid = spawn_probe(s->config, &s->probe, &error);
	if (s->probe_pid > 0)
		return;
	log_warn("probe.start", "text=\"%s\"", error.text);
	s->probe_pid = 0;
	s->probe = -1;
}

static void handle_probe(struct supervisor *s)
{
	struct control c;
	ssize_t n;

	while ((n = recv(s->probe, &c, sizeof(c), MSG_DONTWAIT)) == (ssize_t)sizeof(c)) {
		if (c.what == CONTROL_GPU)
			tell(s, &c, -1);
		c.text[sizeof(c.text) - 1] = 0;
		if (c.what != CONTROL_LIBRARY || s->library_count == CONTROL_LIBRARIES)
			continue;
		s->libraries[s->library_count++] = c;
		tell(s, &c, -1);
	}
	if (n == 0) {
		close(s->probe);
		s->probe = -1;
	}
}

static void start_worker(struct supervisor *s, uint32_t number, uint32_t libraries)
{
	struct control c = {.what = CONTROL_REFUSED, .number = number};
	struct child *child = find_child(s, 0);
	struct error error;
	int fd = -1;
	pid_t pid;

	if (!child) {
		snprintf(c.text, sizeof(c.text), "too many workers");
		tell(s, &c, -1);
		return;
	}
	s->config->warm_libraries = libraries;
	s->config->worker_user = users_pick(s);
	pid = s->config->user_first && !s->config->worker_user
		      ? error_set(&error, 0, "worker_users: all of them are taken")
		      : spawn_worker(s->config, &fd, &error);
	child->user = s->config->worker_user;
	s->config->worker_user = 0;
	if (pid < 0) {
		snprintf(c.text, sizeof(c.text), "%s", error.text);
		tell(s, &c, -1);
		return;
	}
	child->pid = pid;
	child->handoff = fd;
	child->kill_at = UINT64_MAX;
	child->tenant[0] = 0;
	c.what = CONTROL_STARTED;
	c.pid = pid;
	tell(s, &c, fd);
}

static void begin_session(struct supervisor *s, pid_t pid, const char *tenant)
{
	struct child *child = pid > 0 ? find_child(s, pid) : NULL;

	if (!child || child->tenant[0])
		return;
	snprintf(child->tenant, sizeof(child->tenant), "%.*s", (int)sizeof(child->tenant) - 1,
		tenant);
	compiled_begin(s->config, pid, child->tenant);
}

/* Takes FD. Of a worker that is gone nothing is kept. */
static void keep(struct supervisor *s, const struct control *c, int fd)
{
	uint8_t name[CONTROL_NAME];

	memcpy(name, c->text, sizeof(name));
	if (fd < 0 || c->pid < 0 || (c->pid && !find_child(s, c->pid))) {
		if (fd >= 0)
			close(fd);
	} else if (!kept_add(&s->kept, c->pid, name, fd)) {
		log_warn("front.keep",
			"worker=%d text=\"no room: it would not outlive the front\"", c->pid);
	}
}

static void drop(struct supervisor *s, const struct control *c)
{
	uint8_t name[CONTROL_NAME];

	memcpy(name, c->text, sizeof(name));
	kept_drop(&s->kept, c->pid, name);
}

static void handle_front(struct supervisor *s)
{
	struct control c;
	struct child *child;
	ssize_t n;
	int fd;

	/* A front that died with something unread leaves ECONNRESET before what it said last.
	 */
	while ((n = descriptors_receive(s->control, &c, sizeof(c), &fd, 1, MSG_DONTWAIT)) ==
			(ssize_t)sizeof(c) ||
		n == -ECONNRESET) {
		if (n < 0)
			continue;
		if (c.what == CONTROL_KEEP) {
			keep(s, &c, fd);
			continue;
		}
		if (fd >= 0)
			close(fd);
		switch (c.what) {
		case CONTROL_DROP: drop(s, &c); break;
		case CONTROL_START:
			if (s->front)
				start_worker(s, c.number, c.libraries);
			break;
		case CONTROL_KILL:
			child = c.pid > 0 ? find_child(s, c.pid) : NULL;
			if (child)
				child->kill_at = wait_now() + c.ms * MS;
			break;
		case CONTROL_TENANT:
			c.text[sizeof(c.text) - 1] = 0;
			begin_session(s, c.pid, c.text);
			break;
		case CONTROL_STATE:
			c.text[sizeof(c.text) - 1] = 0;
			ready_write(s->config, c.status == 0, c.text);
			break;
		default: log_error("front.nonsense", "what=%u", c.what); break;
		}
	}
	if (n == 0) { /* it closed: the rest comes as SIGCHLD */
		close(s->control);
		s->control = -1;
	}
}

/* A worker with a session waits for the next front; what else there is, nobody knows of. */
static void end_workers(struct supervisor *s, bool all)
{
	uint64_t at = wait_now() + CONTROL_STOP_MS * MS;

	for (size_t i = 0; i < s->room; i++)
		if (s->children[i].pid && (all || !s->children[i].tenant[0]))
			s->children[i].kill_at = at;
}

static void front_ended(struct supervisor *s, int status)
{
	uint64_t now = wait_now();

	s->front = 0;
	if (s->control >= 0) /* what it journaled last: a secret may have been shown since */
		handle_front(s);
	if (s->control >= 0)
		close(s->control);
	s->control = -1;
	if (s->draining ||
		(WIFEXITED(status) && WEXITSTATUS(status) <= 1 &&
			(!s->config->front_restarts || s->front_young >= FRONT_YOUNG_MOST))) {
		/* It drained, or it said why it cannot run at all.  One that is to take
		 * sessions over is tried again. */
		s->status = s->draining ? 0 : 1;
		return;
	}
	if (s->reloading) {
		handover_leave(s);
		s->front_delay = 0;
	}
	if (now - s->front_started > FRONT_YOUNG_NS) {
		s->front_delay = 0;
		s->front_young = 0;
	} else if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
		s->front_young++;
	}
	log_error("front.died", "status=%d signal=%d restart_ms=%lu", WEXITSTATUS(status),
		WIFSIGNALED(status) ? WTERMSIG(status) : 0,
		(unsigned long)(s->front_delay / MS));
	s->start_at = now + s->front_delay;
	s->front_delay = s->front_delay ? s->front_delay * 2 : FRONT_DELAY_MIN;
	if (s->front_delay > FRONT_DELAY_MAX)
		s->front_delay = FRONT_DELAY_MAX;
	s->config->front_restarts++;
	end_workers(s, s->front_young >= FRONT_YOUNG_MOST);
	if (s->front_young >= FRONT_YOUNG_MOST) {
		log_error("front.fails", "text=\"its sessions end\"");
		kept_forget_but(&s->kept, STORE_KEPT);
		s->front_young = 0;
	}
}

/* The sessions run on in their workers, and the next front takes them over. */
static void answered(struct supervisor *s, int status)
{
	if (!handover_answered(s, status))
		return;
	log_info("agent.reload", "text=\"another front takes the sessions over\"");
	if (s->front)
		kill(s->front, SIGKILL);
	else
		handover_leave(s);
}

static void reap(struct supervisor *s)
{
	struct child *child;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == s->probe_pid) {
			s->probe_pid = 0;
			continue;
		}
		if (pid == s->store_pid) {
			store_process_ended(s, status);
			continue;
		}
		if (pid == s->asked) {
			answered(s, status);
			continue;
		}
		if (pid == s->front) {
			front_ended(s, status);
			continue;
		}
		child = find_child(s, pid);
		if (!child)
			continue; /* an orphan that init is asked to reap */
		child->pid = 0;
		close(child->handoff);
		kept_forget(&s->kept, pid);
		compiled_end(s->config, pid, child->tenant);
		tell(s, &(struct control){.what = CONTROL_EXITED, .pid = pid, .status = status},
			-1);
	}
}

static void drain(struct supervisor *s)
{
	struct control c = {.what = CONTROL_DRAIN, .ms = s->config->drain_ms};

	if (s->draining) { /* asked twice: at once */
		s->status = 0;
		return;
	}
	s->draining = true;
	s->end_at = wait_now() + ((uint64_t)s->config->drain_ms + DRAIN_SLACK_MS) * MS;
	log_info("agent.drain", "seconds=%u", s->config->drain_ms / 1000);
	if (s->control < 0)
		s->status = 0;
	tell(s, &c, -1);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* A bad file is said once, and the tokens stay as they are. */
static void read_tokens(struct supervisor *s, struct agent_tokens *tokens)
{
	char path[AGENT_PATH];
	struct error error;

	memcpy(path, tokens->file, sizeof(path));
	if (tokens == &s->config->http_tokens ? token_read_http(tokens, path, &error)
					      : token_read(tokens, path, &error)) {
		log_error("tokens.bad", "text=\"%s; the tokens of before stay good\"",
			error.text);
		return;
	}
	log_info("tokens.read", "file=\"%s\" tokens=%u", path, tokens->count);
	cleanup_close int fd = settings_to_fd(s->config, &error);
	if (fd < 0)
		log_error("tokens.lost", "text=\"%s\"", error.text);
	else
		tell(s, &(struct control){.what = CONTROL_TOKENS}, fd);
}

/* Reads the file where it is another than SEEN, or where `anyway`. */
static void look_at_file(
	struct supervisor *s, struct agent_tokens *tokens, struct stat *seen, bool anyway)
{
	struct stat st = *seen;
	bool there = tokens->file[0] && !stat(tokens->file, &st);

	if (!tokens->file[0] || (!anyway && (!there || same_file(&st, seen))))
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
		!s->config->http_tokens.file[0]) {
		drain(s);
		return;
	}
	look_at_file(s, &s->config->tokens, &s->tokens, true);
	look_at_file(s, &s->config->http_tokens, &s->http_tokens, true);
	handover_ask(s);
}

static void handle_signals(struct supervisor *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			reap(s);
		else if (info.ssi_signo == SIGHUP)
			hang_up(s);
		else
			drain(s);
	}
}

/* Does what is due; the time of what comes next. */
static uint64_t tick(struct supervisor *s)
{
	uint64_t now = wait_now(), next = s->start_at, asked, store;
	uint64_t ready = ready_tick(s->config, now);

	if (s->start_at <= now && !s->draining) {
		start_front(s);
		next = s->start_at;
	}
	store = store_process_tick(s, now);
	if (store < next)
		next = store;
	asked = handover_tick(s, now);
	if (asked < next)
		next = asked;
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
		struct pollfd p[4] = {
			{.fd = s->signals, .events = POLLIN},
			{.fd = s->control, .events = POLLIN},
			{.fd = s->probe, .events = POLLIN},
			{.fd = s->store, .events = POLLIN},
		};
		int timeout = -1;

		if (s->status >= 0)
			break;
		if (next != UINT64_MAX)
			timeout = next <= now ? 0 : (int)((next - now) / MS) + 1;
		if (poll(p, 4, timeout) < 0 && errno != EINTR) {
			log_error("agent.poll", "text=\"%s\"", strerror(errno));
			s->status = 1;
		}
		if (p[1].revents)
			handle_front(s);
		if (p[2].revents)
			handle_probe(s);
		if (p[3].revents)
			store_process_hear(s);
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
	if (s->front)
		kill(s->front, SIGKILL);
	if (s->probe_pid)
		kill(s->probe_pid, SIGKILL);
	if (s->store_pid)
		kill(s->store_pid, SIGKILL);
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
	say_start(&s);
	store_process_init(&s);
	start_front(&s);
	start_probe(&s);
	run(&s);
	end_all(&s);
	log_info("agent.end", "status=%d", s.status);
	return s.status;
}
