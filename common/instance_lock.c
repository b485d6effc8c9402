/* SPDX-License-Identifier: Apache-2.0 */
#include "common/instance_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/wait.h"

#define START_NS 5000000000ull /* for another one that holds the lock to serve */

static int address_of(const char *path, struct sockaddr_un *address, struct error *error)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(address->sun_path))
		return error_set(error, ENAMETOOLONG, "socket %s", path);
	strcpy(address->sun_path, path);
	return 0;
}

int instance_connect(const char *path, pid_t *holder, struct error *error)
{
	cleanup_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un address;
	struct ucred peer = {0};
	socklen_t size = sizeof(peer);
	int ret;

	if (fd < 0)
		return error_set(error, errno, "socket");
	ret = address_of(path, &address, error);
	if (ret < 0)
		return ret;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return error_set(error, errno, "socket %s", path);
	if (holder)
		*holder = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) ? 0 : peer.pid;
	return take_fd(&fd);
}

static int make_folders(const char *path, struct error *error)
{
	char folder[108];

	snprintf(folder, sizeof(folder), "%s", path);
	for (char *slash = folder; (slash = strchr(slash + 1, '/'));) {
		*slash = 0;
		if (mkdir(folder, 0755) && errno != EEXIST)
			return error_set(error, errno, "folder %s of the socket", folder);
		*slash = '/';
	}
	return 0;
}

/* The lock, of the file that stands there now (not one that its last owner removed). fd or
 * -EWOULDBLOCK: another one has it. */
static int lock_take(const char *path, struct error *error)
{
	for (;;) {
		cleanup_close int fd =
			open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		struct stat ours, there;

		if (fd < 0)
			return error_set(error, errno, "lock %s", path);
		if (flock(fd, LOCK_EX | LOCK_NB))
			return errno == EWOULDBLOCK ? -EWOULDBLOCK
						    : error_set(error, errno, "lock %s", path);
		if (!fstat(fd, &ours) && !stat(path, &there) && ours.st_ino == there.st_ino &&
			ours.st_dev == there.st_dev)
			return take_fd(&fd);
	}
}

static int held(struct instance_lock *instance, struct error *error)
{
	error_set(error, 0,
		"socket %s: another sidecar (pid %d) serves there; stop it or name another "
		"--socket",
		instance->socket, (int)instance->holder);
	return -EEXIST;
}

/* Another one has the lock: it serves, is about to, or ends. */
static int lock_wait(struct instance_lock *instance, struct error *error)
{
	uint64_t deadline = wait_now() + START_NS;
	int fd;

	for (;;) {
		fd = lock_take(instance->lock, error);
		if (fd != -EWOULDBLOCK)
			return fd;
		fd = instance_connect(instance->socket, &instance->holder, NULL);
		if (fd >= 0) {
			close(fd);
			return held(instance, error);
		}
		if (wait_now() > deadline)
			return error_set(error, 0,
				"socket %s: another sidecar holds %s but does not serve",
				instance->socket, instance->lock);
		usleep(10000);
	}
}

static int instance_listen(
	const struct instance_lock *instance, unsigned mode, struct error *error)
{
	cleanup_close int fd =
		socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address;
	char path[sizeof(instance->socket) + 8];
	struct stat st;
	mode_t mask;
	int ret;

	if (fd < 0)
		return error_set(error, errno, "socket");
	snprintf(path, sizeof(path), "%s.new", instance->socket);
	ret = address_of(path, &address, error);
	if (ret < 0)
		return ret;
	if (!lstat(instance->socket, &st)) {
		if (!S_ISSOCK(st.st_mode))
			return error_set(error, EEXIST, "%s is not a socket", instance->socket);
		if (unlink(instance->socket))
			return error_set(error, errno, "stale socket %s", instance->socket);
	}
	/* It appears under its name once it listens: who finds it can connect. */
	unlink(address.sun_path);
	mask = umask(0177);
	ret = bind(fd, (struct sockaddr *)&address, sizeof(address));
	umask(mask);
	if (ret || chmod(address.sun_path, mode) || listen(fd, 256) ||
		rename(address.sun_path, instance->socket)) {
		ret = error_set(error, errno, "socket %s", instance->socket);
		unlink(address.sun_path);
		return ret;
	}
	return take_fd(&fd);
}

int instance_lock_acquire(
	struct instance_lock *instance, const char *path, unsigned mode, struct error *error)
{
	cleanup_close int lock = -1;
	int fd;

	*instance = (struct instance_lock){.listen_fd = -1, .lock_fd = -1};
	if (strlen(path) >= sizeof(instance->socket))
		return error_set(error, ENAMETOOLONG, "socket %s", path);
	snprintf(instance->socket, sizeof(instance->socket), "%s", path);
	snprintf(instance->lock, sizeof(instance->lock), "%s.lock", path);
	fd = make_folders(path, error);
	if (fd < 0)
		return fd;
	lock = lock_wait(instance, error);
	if (lock < 0)
		return lock;
	fd = instance_connect(path, &instance->holder, NULL);
	if (fd >= 0) {
		close(fd);
		return held(instance, error);
	}
	instance->listen_fd = instance_listen(instance, mode, error);
	if (instance->listen_fd < 0) {
		unlink(instance->lock);
		return instance->listen_fd;
	}
	instance->lock_fd = take_fd(&lock);
	return 0;
}

int instance_announce(const struct instance_lock *instance, struct error *error)
{
	cleanup_close int fd =
		socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t n = strlen(instance->socket);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);

	if (fd < 0)
		return error_set(error, errno, "socket");
	if (n >= sizeof(address.sun_path))
		return error_set(error, ENAMETOOLONG, "socket @%s", instance->socket);
	memcpy(address.sun_path + 1, instance->socket, n);
	if (bind(fd, (struct sockaddr *)&address, size) || listen(fd, 256))
		return error_set(error, errno, "socket @%s", instance->socket);
	return take_fd(&fd);
}

void instance_lock_release(struct instance_lock *instance)
{
	unlink(instance->socket);
	close(instance->listen_fd);
	unlink(instance->lock);
	close(instance->lock_fd);
	instance->listen_fd = instance->lock_fd = -1;
}
