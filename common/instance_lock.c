/* SPDX-License-Identifier: Apache-2.0 */
#include "common/instance_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/unix_socket.h"
#include "common/wait.h"

#define START_NS 5000000000ull /* for another one that holds the lock to serve */

static int make_folders(const char *path, struct error *error)
{
	char folder[UNIX_PATH];

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
static int lock_acquire(const char *path, struct error *error)
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

static int held(
	struct instance_lock *instance, const struct instance_kind *kind, struct error *error)
{
	error_set(error, 0,
		"socket %s: another %s (pid %d) serves there; stop it or name another %s",
		instance->socket, kind->who, (int)instance->holder, kind->setting);
	return -EEXIST;
}

/* Somebody serves there. */
static bool is_served(struct instance_lock *instance, const struct instance_kind *kind)
{
	struct unix_peer peer = {0};
	int fd = unix_connect(instance->socket, kind->type | SOCK_NONBLOCK, NULL);

	if (fd < 0)
		return fd == -EAGAIN; /* its queue is full */
	if (!unix_peer_of(fd, &peer))
		instance->holder = peer.pid;
	close(fd);
	return true;
}

/* Another one has the lock: it serves, is about to, or ends. */
static int lock_wait(
	struct instance_lock *instance, const struct instance_kind *kind, struct error *error)
{
	uint64_t deadline = wait_now() + START_NS;
	int fd;

	for (;;) {
		fd = lock_acquire(instance->lock, error);
		if (fd != -EWOULDBLOCK)
			return fd;
		if (is_served(instance, kind))
			return held(instance, kind, error);
		if (wait_now() > deadline)
			return error_set(error, 0,
				"socket %s: another %s holds %s but does not serve",
				instance->socket, kind->who, instance->lock);
		usleep(10000);
	}
}

int instance_lock_acquire(struct instance_lock *instance, const char *path,
	const struct instance_kind *kind, struct error *error)
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
	lock = lock_wait(instance, kind, error);
	if (lock < 0)
		return lock;
	if (is_served(instance, kind))
		return held(instance, kind, error);
	instance->listen_fd = unix_listen(path, kind->type, kind->mode, error);
	if (instance->listen_fd < 0) {
		unlink(instance->lock);
		return instance->listen_fd;
	}
	instance->lock_fd = take_fd(&lock);
	return 0;
}

void instance_lock_release(struct instance_lock *instance)
{
	unlink(instance->socket);
	close(instance->listen_fd);
	unlink(instance->lock);
	close(instance->lock_fd);
	instance->listen_fd = instance->lock_fd = -1;
}
