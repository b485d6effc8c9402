/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes that the supervisor starts, what the front asks of it, and their ends.
 */
#include "gpu-agent/supervisor/children.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/agent.h"
#include "gpu-agent/cache/compiled.h"
#include "gpu-agent/control.h"
#include "gpu-agent/supervisor/handover.h"
#include "gpu-agent/supervisor/spawn.h"
#include "gpu-agent/supervisor/ready.h"
#include "gpu-agent/supervisor/store_process.h"
#include "gpu-agent/supervisor/supervisor.h"
#include "gpu-agent/supervisor/uploads_process.h"
#include "gpu-agent/supervisor/settings/users.h"

#define MS 1000000ull
/* A front that dies young again and again is started again after 50, 100 … ms. The most leaves
 * it the time to begin and to take the sessions over within a second. */
#define FRONT_YOUNG_NS (5000 * MS)
#define FRONT_DELAY_MIN (50 * MS)
#define FRONT_DELAY_MAX (200 * MS)
#define FRONT_NO_PROCESS (800 * MS) /* where the system has none to give */
/* After so many that died young in turn, and of themselves, what they were left with may be
 * why: the sessions end. */
#define FRONT_YOUNG_MOST 3

static struct child *find_child(struct supervisor *s, pid_t pid)
{
	for (size_t i = 0; i < s->room; i++)
		if (s->children[i].pid == pid)
			return &s->children[i];
	return NULL;
}

static void tell_kept(struct supervisor *s, bool own)
{
	for (size_t i = 0; i < s->kept.count; i++) {
		const struct kept *kept = &s->kept.list[i];
		struct control c = {.what = CONTROL_KEPT, .pid = kept->pid};

		memcpy(c.text, kept->name, sizeof(kept->name));
		if (kept->pid != STORE_KEPT && own == !kept->pid)
			supervisor_tell(s, &c, kept->fd);
	}
}

/* What the front before it knew. */
static void hand_on(struct supervisor *s)
{
	tell_kept(s, true);
	for (size_t i = 0; i < s->room; i++) {
		const struct child *child = &s->children[i];

		if (child->pid && child->tenant[0] && child->kill_at == UINT64_MAX)
			supervisor_tell(s,
				&(struct control){.what = CONTROL_ADOPT, .pid = child->pid},
				child->handoff);
	}
	tell_kept(s, false);
	supervisor_tell(s, &(struct control){.what = CONTROL_BEGIN}, -1);
}

void children_start_front(struct supervisor *s)
{
	struct error error;
	pid_t pid = spawn_front(s->config, s->http, &s->control, &error);

	if (pid < 0) {
		log_error("front.start", "text=\"%s\"", error.text);
		s->start_at = wait_now() + FRONT_NO_PROCESS;
		return;
	}
	s->front = pid;
	s->front_started = wait_now();
	s->start_at = UINT64_MAX;
	for (size_t i = 0; i < s->library_count; i++)
		supervisor_tell(s, &s->libraries[i], -1);
	hand_on(s);
	store_process_join(s);
	uploads_process_join(s);
}

void children_start_probe(struct supervisor *s)
{
	struct error error;

	s->probe_pid = spawn_probe(s->config, &s->probe, &error);
	if (s->probe_pid > 0)
		return;
	log_warn("probe.start", "text=\"%s\"", error.text);
	s->probe_pid = 0;
	s->probe = -1;
}

void children_hear_probe(struct supervisor *s)
{
	struct control c;
	ssize_t n;

	while ((n = recv(s->probe, &c, sizeof(c), MSG_DONTWAIT)) == (ssize_t)sizeof(c)) {
		if (c.what == CONTROL_GPU)
			supervisor_tell(s, &c, -1);
		c.text[sizeof(c.text) - 1] = 0;
		if (c.what != CONTROL_LIBRARY || s->library_count == CONTROL_LIBRARIES)
			continue;
		s->libraries[s->library_count++] = c;
		supervisor_tell(s, &c, -1);
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
		supervisor_tell(s, &c, -1);
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
		supervisor_tell(s, &c, -1);
		return;
	}
	child->pid = pid;
	child->handoff = fd;
	child->kill_at = UINT64_MAX;
	child->tenant[0] = 0;
	c.what = CONTROL_STARTED;
	c.pid = pid;
	supervisor_tell(s, &c, fd);
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

void children_hear_front(struct supervisor *s)
{
	struct control c;
	struct child *child;
	int fd, ret;

	/* A front that died with something unread leaves ECONNRESET before what it said last.
	 */
	while ((ret = control_hear(s->control, &c, &fd)) > 0 || ret == -ECONNRESET) {
		if (ret < 0)
			continue;
		if (c.what == CONTROL_KEEP) {
			keep(s, &c, fd);
			continue;
		}
		if (c.what == CONTROL_NETWORK) {
			network_table_report(s, fd);
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
	if (ret == -EPIPE) { /* it closed: the rest comes as SIGCHLD */
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
		children_hear_front(s);
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

void children_reap(struct supervisor *s)
{
	struct child *child;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == s->probe_pid) {
			s->probe_pid = 0;
			continue;
		}
		if (network_table_reaped(s, pid))
			continue;
		if (pid == s->store_pid) {
			store_process_ended(s, status);
			continue;
		}
		if (pid == s->uploads.pid) {
			uploads_process_ended(s, status);
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
		supervisor_tell(s,
			&(struct control){.what = CONTROL_EXITED, .pid = pid, .status = status},
			-1);
	}
}
