/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/front/health.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/wait.h"

#define HEALTH_ACCEPTS_A_TURN 16
#define HEALTH_ASK_NS (2000 * FRONT_MS)
#define HEALTH_AGAIN_US 10000

static const char health_word[] = "ok\n";

/* The path has room: settings_complete looked. */
static struct sockaddr_un address_of(const struct agent_config *config)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	memcpy(address.sun_path, config->health_socket,
		strnlen(config->health_socket, sizeof(address.sun_path) - 1));
	return address;
}

static void health_ready(struct watch *watch, uint32_t mask)
{
	(void)mask;
	for (int i = 0; i < HEALTH_ACCEPTS_A_TURN; i++) {
		cleanup_close int fd =
			accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			return;
		(void)!send(fd, health_word, sizeof(health_word) - 1, MSG_NOSIGNAL);
	}
}

/* A socket that nobody listens on is a front's that died. */
static int take_path(const struct sockaddr_un *address)
{
	cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (!connect(fd, (const struct sockaddr *)address, sizeof(*address)) || errno == EAGAIN)
		return -EADDRINUSE;
	if (errno == ECONNREFUSED)
		unlink(address->sun_path);
	return 0;
}

static int listen_at(const struct sockaddr_un *address)
{
	cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t old;
	int ret;

	if (fd < 0)
		return -errno;
	old = umask(0177);
	ret = bind(fd, (const struct sockaddr *)address, sizeof(*address)) ? -errno : 0;
	umask(old);
	if (!ret && listen(fd, SOMAXCONN))
		ret = -errno;
	return ret ? ret : take_fd(&fd);
}

void health_open(struct front *front)
{
	const struct sockaddr_un address = address_of(front->config);
	int ret, fd = -1;

	front->health.fd = -1;
	if (!address.sun_path[0])
		return;
	ret = take_path(&address);
	if (!ret)
		fd = ret = listen_at(&address);
	if (ret >= 0)
		ret = events_watch(&front->events, &front->health, fd, EPOLLIN, health_ready);
	if (!ret)
		return;
	log_warn("health.socket", "path=\"%s\" text=\"%s; gpu-agent --healthy finds nobody\"",
		address.sun_path, strerror(-ret));
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

static int connect_until(int fd, const struct sockaddr_un *address, uint64_t deadline)
{
	/* A queue that is full is that of a loop that does not turn, or of many who ask. */
	while (connect(fd, (const struct sockaddr *)address, sizeof(*address))) {
		if (errno != EAGAIN)
			return -errno;
		if (wait_now() > deadline)
			return -ETIMEDOUT;
		usleep(HEALTH_AGAIN_US);
	}
	return 0;
}

int health_ask(const struct agent_config *config, struct error *error)
{
	const struct sockaddr_un address = address_of(config);
	cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	uint64_t deadline = wait_now() + HEALTH_ASK_NS;
	struct ucred peer = {0};
	socklen_t size = sizeof(peer);
	char word[sizeof(health_word)] = "";
	ssize_t n;
	int ret;

	if (!address.sun_path[0])
		return error_set(error, 0,
			"health_socket: none, since the control port has no number; name one");
	if (fd < 0)
		return error_set(error, errno, "socket");
	ret = connect_until(fd, &address, deadline);
	if (ret)
		return error_set(error, -ret, "no agent answers at %s", address.sun_path);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) ||
		(peer.uid && peer.uid != geteuid()))
		return error_set(error, 0, "%s is another user's", address.sun_path);
	while ((n = recv(fd, word, sizeof(word) - 1, 0)) < 0 && errno == EAGAIN &&
		wait_now() < deadline)
		usleep(HEALTH_AGAIN_US);
	if (n != (ssize_t)sizeof(health_word) - 1 || strcmp(word, health_word))
		return error_set(error, 0, "the agent at %s does not answer within %llu ms",
			address.sun_path, HEALTH_ASK_NS / FRONT_MS);
	return 0;
}
