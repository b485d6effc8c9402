/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VCUDA_COMPAT_POLL_H
#define VCUDA_COMPAT_POLL_H
#include <signal.h>
#include <time.h>

#include "windows/os/os.h"

#define pollfd os_pollfd
typedef unsigned long nfds_t;
#define POLLIN OS_POLLIN
#define POLLOUT OS_POLLOUT
#define POLLERR OS_POLLERR
#define POLLHUP OS_POLLHUP
#define POLLNVAL OS_POLLNVAL
#define POLLRDHUP OS_POLLRDHUP

static inline int poll(struct pollfd *fds, nfds_t count, int ms)
{
	return os_poll(fds, count, ms < 0 ? UINT64_MAX : (uint64_t)ms * 1000000u);
}

static inline int ppoll(
	struct pollfd *fds, nfds_t count, const struct timespec *timeout, const void *mask)
{
	(void)mask;
	return os_poll(fds, count,
		timeout ? (uint64_t)timeout->tv_sec * 1000000000u + (uint64_t)timeout->tv_nsec
			: UINT64_MAX);
}
#endif
