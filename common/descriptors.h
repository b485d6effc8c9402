/* SPDX-License-Identifier: Apache-2.0
 *
 * Datagrams over a Unix socket that carry file descriptors.  A peer may attach more than was
 * agreed: what is not asked for is closed here, so that nobody can fill our table of them.
 *
 * Any thread.
 */
#ifndef VCUDA_COMMON_DESCRIPTORS_H
#define VCUDA_COMMON_DESCRIPTORS_H

#include <sys/types.h>

#define DESCRIPTORS_MOST 8u

/* Sends N bytes with the COUNT descriptors at FDS, which stay the caller's; FLAGS as sendmsg's,
 * and no SIGPIPE.  Without MSG_DONTWAIT it waits a little where the kernel has no memory, too.
 * 0 or -errno. */
int descriptors_send(
	int socket, const void *bytes, size_t n, const int *fds, unsigned count, int flags);

/* Receives a datagram: its length, also where that is more than N and the rest is lost; 0 at
 * the end; -errno.  fds[0] to fds[COUNT - 1] are what came with it, close-on-exec and the
 * caller's, or -1. */
ssize_t descriptors_receive(
	int socket, void *bytes, size_t n, int *fds, unsigned count, int flags);

/* How many of the COUNT at FDS came. */
static inline unsigned descriptors_count(const int *fds, unsigned count)
{
	unsigned n = 0;

	while (n < count && fds[n] >= 0)
		n++;
	return n;
}

#endif
