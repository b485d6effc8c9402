/* SPDX-License-Identifier: Apache-2.0 */
#include "common/unix_socket.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cleanup.h"

#define UNIX_BACKLOG 256

_Static_assert(UNIX_PATH == sizeof(((struct sockaddr_un *)0)->sun_path), "the kernel's limit");

static int address_of(const char *path, struct sockaddr_un *address, struct error *error)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(address->sun_path))
		return error_set(error, ENAMETOOLONG, "socket %s", path);
	strcpy(address->sun_path, path);
	return 0;
}

int unix_connect(const char *path, int type, struct error *error)
{
	cleanup_close int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	struct sockaddr_un address;
	int ret;

	if (fd < 0)
		return error_set(error, errno, "socket");
	ret = address_of(path, &address, error);
	if (ret < 0)
		return ret;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return error_set(error, errno, "socket %s", path);
	return take_fd(&fd);
}

int unix_listen(const char *path, int type, unsigned mode, struct error *error)
{
	cleanup_close int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address;
	char new[UNIX_PATH + 8];
	struct stat st;
	mode_t mask;
	int ret;

	if (fd < 0)
		return error_set(error, errno, "socket");
	snprintf(new, sizeof(new), "%s.new", path);
	ret = address_of(new, &address, error);
	if (ret < 0)
		return ret;
	if (!lstat(path, &st) && !S_ISSOCK(st.st_mode))
		return error_set(error, EEXIST, "%s is not a socket", path);
	/* It appears under its name once it listens, in the stead of one that is there: at no
	 * time is the name without a socket, which says that there is no agent here. */
	unlink(new);
	mask = umask(0177);
	ret = bind(fd, (struct sockaddr *)&address, sizeof(address));
	umask(mask);
	if (ret || chmod(new, mode) || listen(fd, UNIX_BACKLOG) || rename(new, path)) {
		ret = error_set(error, errno, "socket %s", path);
		unlink(new);
		return ret;
	}
	return take_fd(&fd);
}

int unix_listen_alone(const char *path, int type, unsigned mode)
{
	int fd = unix_connect(path, type | SOCK_NONBLOCK, NULL);

	if (fd >= 0)
		close(fd);
	if (fd >= 0 || fd == -EAGAIN)
		return -EADDRINUSE;
	if (fd != -ENOENT && fd != -ECONNREFUSED)
		return fd;
	return unix_listen(path, type, mode, NULL);
}

int unix_announce(const char *path, int type, struct error *error)
{
	cleanup_close int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t n = strlen(path);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);

	if (fd < 0)
		return error_set(error, errno, "socket");
	if (n >= sizeof(address.sun_path))
		return error_set(error, ENAMETOOLONG, "socket @%s", path);
	memcpy(address.sun_path + 1, path, n);
	if (bind(fd, (struct sockaddr *)&address, size) || listen(fd, UNIX_BACKLOG))
		return error_set(error, errno, "socket @%s", path);
	return take_fd(&fd);
}

int unix_accept(int listener, struct unix_peer *peer)
{
	cleanup_close int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	int ret = fd < 0 ? -errno : 0;

	if (!ret && peer)
		ret = unix_peer_of(fd, peer);
	return ret < 0 ? ret : take_fd(&fd);
}

int unix_peer_of(int fd, struct unix_peer *peer)
{
	struct ucred who = {0};
	socklen_t size = sizeof(who);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size))
		return -errno;
	*peer = (struct unix_peer){.pid = who.pid, .uid = who.uid};
	return 0;
}
