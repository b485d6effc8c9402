/* SPDX-License-Identifier: Apache-2.0 */
#include "common/descriptors.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A send that may wait, where the kernel has no memory for it. */
#define MEMORY_TRIES 100
#define MEMORY_PAUSE_MS 1

union control {
	struct cmsghdr header;
	char space[CMSG_SPACE(DESCRIPTORS_MOST * sizeof(int))];
};

int descriptors_send(
	int socket, const void *bytes, size_t n, const int *fds, unsigned count, int flags)
{
	union control control = {0};
	struct iovec iov = {.iov_base = (void *)bytes, .iov_len = n};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

	assert(count <= DESCRIPTORS_MOST);
	if (count) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
	}
	for (int i = 0;; i++) {
		if (sendmsg(socket, &message, flags | MSG_NOSIGNAL) >= 0)
			return 0;
		/* The kernel waits for the reader, but not for memory. */
		if ((errno != ENOBUFS && errno != ENOMEM) || flags & MSG_DONTWAIT ||
			i == MEMORY_TRIES)
			return -errno;
		poll(NULL, 0, MEMORY_PAUSE_MS);
	}
}

ssize_t descriptors_receive(
	int socket, void *bytes, size_t n, int *fds, unsigned count, int flags)
{
	union control control = {0};
	struct iovec iov = {.iov_base = bytes, .iov_len = n};
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	unsigned taken = 0;
	ssize_t got;

	for (unsigned i = 0; i < count; i++)
		fds[i] = -1;
	do
		got = recvmsg(socket, &message, flags | MSG_TRUNC | MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR); /* else it would read as the other's end */
	if (got < 0)
		return -errno;
	/* What has no room in `control` the kernel closes; but its space is rounded up, and one
	 * that was made for one descriptor has room for two. */
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = CMSG_LEN(0); at + sizeof(int) <= c->cmsg_len;
			at += sizeof(int)) {
			int fd;

			memcpy(&fd, (char *)c + at, sizeof(fd));
			if (taken < count)
				fds[taken++] = fd;
			else
				close(fd);
		}
	}
	return got;
}
