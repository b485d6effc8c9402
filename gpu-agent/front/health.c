/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/front/health.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/unix_socket.h"
#include "common/wait.h"

#define HEALTH_ACCEPTS_A_TURN 16
#define HEALTH_ASK_NS (2000 * FRONT_MS)
#define HEALTH_AGAIN_US 10000

static const char health_word[] = "ok\n";

static void health_ready(struct watch *watch, uint32_t mask)
{
	(void)mask;
	for (int i = 0; i < HEALTH_ACCEPTS_A_TURN; i++) {
		cleanup_close int fd = unix_accept(watch->fd, NULL);

		if (fd < 0)
			return;
		(void)!send(fd, health_word, sizeof(health_word) - 1, MSG_NOSIGNAL);
	}
}

void health_open(struct front *front)
{
	const char *path = front->config->health_socket;
	int ret, fd = -1;

	front->health.fd = -1;
	if (!path[0])
		return;
	fd = ret = unix_listen_alone(path, SOCK_STREAM, 0600);
	if (ret >= 0)
		ret = events_watch(&front->events, &front->health, fd, EPOLLIN, health_ready);
	if (!ret)
		return;
	log_warn("health.socket", "path=\"%s\" text=\"%s; gpu-agent --healthy finds nobody\"",
		path, strerror(-ret));
	if (fd >= 0)
		close(fd);
}

void health_close(struct front *front)
{
	int fd = events_forget(&front->events, &front->health);

	if (fd < 0)
		return;
	close(fd);
	unlink(front->config->health_socket);
}

/* --- the other end ------------------------------------------------------------------------ */

static int connect_until(const char *path, uint64_t deadline)
{
	/* A queue that is full is that of a loop that does not turn, or of many who ask. */
	for (;;) {
		int fd = unix_connect(path, SOCK_STREAM | SOCK_NONBLOCK, NULL);

		if (fd != -EAGAIN)
			return fd;
		if (wait_now() > deadline)
			return -ETIMEDOUT;
		usleep(HEALTH_AGAIN_US);
	}
}

int health_ask(const struct agent_config *config, struct error *error)
{
	const char *path = config->health_socket;
	uint64_t deadline = wait_now() + HEALTH_ASK_NS;
	struct unix_peer peer = {0};
	char word[sizeof(health_word)] = "";
	ssize_t n;

	if (!path[0])
		return error_set(error, 0,
			"health_socket: none, since the control port has no number; name one");
	cleanup_close int fd = connect_until(path, deadline);
	if (fd < 0)
		return error_set(error, -fd, "no agent answers at %s", path);
	if (unix_peer_of(fd, &peer) || (peer.uid && peer.uid != geteuid()))
		return error_set(error, 0, "%s is another user's", path);
	while ((n = recv(fd, word, sizeof(word) - 1, 0)) < 0 && errno == EAGAIN &&
		wait_now() < deadline)
		usleep(HEALTH_AGAIN_US);
	if (n != (ssize_t)sizeof(health_word) - 1 || strcmp(word, health_word))
		return error_set(error, 0, "the agent at %s does not answer within %llu ms",
			path, HEALTH_ASK_NS / FRONT_MS);
	return 0;
}
