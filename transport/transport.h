/* SPDX-License-Identifier: Apache-2.0
 *
 * How bytes get from the sidecar to the worker and back.  A link is one session's pair of byte
 * streams, commands one way and replies the other, seen from one end: what this end sends and
 * what it receives.  A transport makes links; `fault` wraps another and breaks it by a plan.
 *
 * Addresses are strings: `native://HOST:PORT`, `loop://NAME`, and for fault plans
 * `fault+native://HOST:PORT?delay=200us&cut-after=3&truncate=40&stall-after=100`.
 *
 * Links never block after they are made.  A caller sleeps in poll() on link_fds() until
 * link_wake_at() at the latest (a delaying link has bytes that no descriptor announces).
 * A link belongs to one thread at a time.
 */
#ifndef VCUDA_TRANSPORT_TRANSPORT_H
#define VCUDA_TRANSPORT_TRANSPORT_H

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "common/error.h"
#include "protocol/wire/session.h"

struct link;

struct link_ops {
	/* Bytes taken (may be fewer), -EAGAIN, or -errno: the link is dead. */
	ssize_t (*send)(struct link *link, const struct iovec *iov, int count);
	/* Bytes got, 0 = the peer closed, -EAGAIN, or -errno. */
	ssize_t (*receive)(struct link *link, void *buffer, size_t n);
	/* Fills two entries: [0] for receiving (POLLIN), [1] for sending (POLLOUT where
	 * want_send). Either fd may be -1. */
	void (*fds)(struct link *link, struct pollfd fds[2], int want_send);
	/* CLOCK_MONOTONIC ns at which the caller should look again, or UINT64_MAX. */
	uint64_t (*wake_at)(struct link *link);
	void (*close)(struct link *link);
	/* Where `send` goes, for more connections to the same place: 0 or -errno. NULL: this
	 * kind of link has none. */
	int (*peer)(struct link *link, struct sockaddr_storage *address);
};

struct link {
	const struct link_ops *ops;
};

static inline ssize_t link_send(struct link *link, const struct iovec *iov, int count)
{
	return link->ops->send(link, iov, count);
}
static inline ssize_t link_receive(struct link *link, void *buffer, size_t n)
{
	return link->ops->receive(link, buffer, n);
}
static inline void link_fds(struct link *link, struct pollfd fds[2], int want_send)
{
	link->ops->fds(link, fds, want_send);
}
static inline uint64_t link_wake_at(struct link *link)
{
	return link->ops->wake_at(link);
}
static inline int link_peer(struct link *link, struct sockaddr_storage *address)
{
	return link->ops->peer ? link->ops->peer(link, address) : -EOPNOTSUPP;
}
void link_close(struct link *link); /* NULL is fine */

struct transport {
	const char *name;
	/* Client side: dials, says HELLO (roles and, for the second connection, session and
	 * secret are filled in by the transport), checks WELCOME.  0 and *link; or -errno with
	 * *error; a polite refusal is -ECONNREFUSED with welcome->status and text filled in.
	 * deadline: CLOCK_MONOTONIC ns. */
	int (*dial)(const char *address, const struct session_hello *hello,
		struct session_welcome *welcome, uint64_t deadline, struct link **link,
		struct error *error);
	/* A link over descriptors that the front accepted and handed over (the worker's end):
	 * fds[0] brings commands, fds[1] takes replies. Owns them from then on. */
	int (*adopt)(const int fds[2], struct link **link, struct error *error);
};

/* By the address's scheme (none: native); NULL with *error naming what is known. */
const struct transport *transport_find(const char *address, struct error *error);

/* transport_find and dial in one. */
int transport_dial(const char *address, const struct session_hello *hello,
	struct session_welcome *welcome, uint64_t deadline, struct link **link,
	struct error *error);

#endif
