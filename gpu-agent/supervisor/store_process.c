/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/supervisor/store_process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/supervisor/spawn.h"
#include "gpu-agent/tensor_table.h"

#define MS 1000000ull
#define YOUNG_NS (5000 * MS)
#define DELAY_MIN (50 * MS)
#define DELAY_MAX (800 * MS)
/* It reads at once; one that does not is stuck. */
#define READS_MS 5000
/* A process that was killed is gone by then. */
#define STOP_MS 5000
/* Where front and store lost each other: a front that died is replaced by then. */
#define JOIN_NS (50 * MS)

static bool tell(struct supervisor *s, const struct control *c, int fd)
{
	struct pollfd p = {.fd = s->store, .events = POLLOUT};
	int ret = descriptors_send(p.fd, c, sizeof(*c), &fd, fd >= 0, MSG_DONTWAIT);

	if (ret == -EAGAIN && poll(&p, 1, READS_MS) == 1)
		ret = descriptors_send(p.fd, c, sizeof(*c), &fd, fd >= 0, MSG_DONTWAIT);
	if (!ret)
		return true;
	/* Its end comes as SIGCHLD. */
	log_error("store.stuck", "store=%d text=\"%s\"", s->store_pid, strerror(-ret));
	if (s->store_pid > 0)
		kill(s->store_pid, SIGKILL);
	return false;
}

static bool is_table(const struct kept *kept)
{
	return !memcmp(kept->name, TENSOR_TABLE_NAME, CONTROL_NAME);
}

/* What the one before it had, the table first. */
static bool hand_on(struct supervisor *s, bool table)
{
	for (size_t i = 0; i < s->kept.count; i++) {
		const struct kept *kept = &s->kept.list[i];
		struct control c = {.what = CONTROL_KEPT};

		memcpy(c.text, kept->name, sizeof(kept->name));
		if (kept->pid == STORE_KEPT && is_table(kept) == table &&
			!tell(s, &c, kept->fd))
			return false;
	}
	return true;
}

/* The front's end of a new pair, of which the store has the other one; -1: there is no store.
 */
static int store_end(struct supervisor *s)
{
	int pair[2];
	bool sent;

	s->store_join_at = UINT64_MAX;
	if (s->store < 0 ||
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		return -1;
	sent = tell(s, &(struct control){.what = CONTROL_STORE}, pair[0]);
	close(pair[0]);
	if (sent)
		return pair[1];
	close(pair[1]);
	return -1;
}

void store_process_join(struct supervisor *s)
{
	int fd = s->control < 0 ? -1 : store_end(s);

	if (fd < 0)
		return;
	supervisor_tell(s, &(struct control){.what = CONTROL_STORE}, fd);
	close(fd);
}

static void start(struct supervisor *s, uint64_t now)
{
	struct error error;
	pid_t pid = spawn_store(s->config, &s->store, &error);

	if (pid < 0) {
		log_error("store.start", "text=\"%s\"", error.text);
		s->store_at = now + DELAY_MAX;
		return;
	}
	s->store_pid = pid;
	s->store_started = now;
	s->store_at = UINT64_MAX;
	if (hand_on(s, true) && hand_on(s, false) &&
		tell(s, &(struct control){.what = CONTROL_BEGIN}, -1))
		store_process_join(s);
}

void store_process_init(struct supervisor *s)
{
	s->store = -1;
	s->store_join_at = UINT64_MAX;
	s->store_at = s->config->store.bytes ? 0 : UINT64_MAX;
}

uint64_t store_process_tick(struct supervisor *s, uint64_t now)
{
	if (s->store_at <= now && !s->draining)
		start(s, now);
	if (s->store_join_at <= now && !s->draining)
		store_process_join(s);
	if (s->draining)
		return UINT64_MAX;
	return s->store_at < s->store_join_at ? s->store_at : s->store_join_at;
}

void store_process_hear(struct supervisor *s)
{
	struct control c;
	uint8_t name[CONTROL_NAME];
	int fd, ret;

	while ((ret = control_hear(s->store, &c, &fd)) > 0 || ret == -ECONNRESET ||
		ret == -EPROTO) {
		if (ret < 0)
			continue;
		memcpy(name, c.text, sizeof(name));
		if (c.what == CONTROL_KEEP && fd >= 0) {
			if (!kept_add(&s->kept, STORE_KEPT, name, fd))
				log_warn("store.keep",
					"text=\"no room: it would not outlive the store\"");
			continue;
		}
		if (fd >= 0)
			close(fd);
		if (c.what == CONTROL_DROP)
			kept_drop(&s->kept, STORE_KEPT, name);
		else if (c.what == CONTROL_STORE && s->store_join_at == UINT64_MAX)
			s->store_join_at = wait_now() + JOIN_NS;
	}
	if (ret == -EPIPE) {
		close(s->store);
		s->store = -1;
	}
}

void store_process_ended(struct supervisor *s, int status)
{
	uint64_t now = wait_now();

	s->store_pid = 0;
	if (s->store >= 0)
		store_process_hear(s);
	if (s->store >= 0)
		close(s->store);
	s->store = -1;
	if (s->draining || s->reloading)
		return;
	if (now - s->store_started > YOUNG_NS)
		s->store_delay = 0;
	log_error("store.died", "status=%d signal=%d restart_ms=%lu", WEXITSTATUS(status),
		WIFSIGNALED(status) ? WTERMSIG(status) : 0,
		(unsigned long)(s->store_delay / MS));
	s->store_at = now + s->store_delay;
	s->store_delay = s->store_delay ? s->store_delay * 2 : DELAY_MIN;
	if (s->store_delay > DELAY_MAX)
		s->store_delay = DELAY_MAX;
}

void store_process_stop(struct supervisor *s)
{
	uint64_t until = wait_now() + STOP_MS * MS;

	if (s->store_pid)
		kill(s->store_pid, SIGKILL);
	for (uint64_t now = wait_now(); s->store >= 0 && now < until; now = wait_now()) {
		struct pollfd p = {.fd = s->store, .events = POLLIN};

		poll(&p, 1, (int)((until - now) / MS) + 1);
		store_process_hear(s);
	}
}
