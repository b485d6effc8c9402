/* SPDX-License-Identifier: Apache-2.0
 *
 * What every link can do by its transport's functions: send all of something, and end.
 */
#include <errno.h>
#include <poll.h>

#include "common/wait.h"
#include "transport/transport.h"

/* Until FD, which link_fds filled in for sending, may be sent to; a second at the most. */
static void link_pause(struct link *link, struct pollfd *fd)
{
	enum { LOOK_NS = 999999999 };
	uint64_t now = wait_now(), ns = LOOK_NS;

	/* No descriptor will say it: the link knows when. */
	if (fd->fd < 0 || !(fd->events & POLLOUT)) {
		ns = link_wake_at(link);
		ns = ns <= now ? 0 : ns - now < LOOK_NS ? ns - now : LOOK_NS;
	}
	ppoll(fd, 1, &(struct timespec){.tv_nsec = (long)ns}, NULL);
}

int link_send_all(struct link *link, struct iovec *iov, int count, const _Atomic bool *stop,
	struct link_flow *flow)
{
	while (count) {
		ssize_t sent = link_send(link, iov, count);
		struct pollfd fds[2];

		if (sent < 0 && sent != -EAGAIN)
			return (int)sent;
		if (flow && sent > 0)
			flow->sent += (uint64_t)sent;
		else if (flow && sent == -EAGAIN)
			flow->full(flow);
		for (; sent > 0 && (size_t)sent >= iov->iov_len; count--)
			sent -= (ssize_t)iov++->iov_len;
		if (sent > 0) {
			iov->iov_base = (char *)iov->iov_base + sent;
			iov->iov_len -= (size_t)sent;
		} else if (sent == -EAGAIN) {
			link_fds(link, fds, 1);
			link_pause(link, fds + 1);
		}
		if (atomic_load_explicit(stop, memory_order_relaxed))
			return -ECANCELED;
	}
	return 0;
}

void link_close(struct link *link)
{
	if (link)
		link->ops->close(link);
}
