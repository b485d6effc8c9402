/* SPDX-License-Identifier: Apache-2.0
 *
 * Links and stripes over a pump: each is one end of a socket pair.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/wait.h"
#include "transport/light/light.h"
#include "transport/light/pump_state.h"
#include "transport/light/udp.h"
#include "transport/socket_link.h"

#define OPEN_NS (800 * MILLISECOND) /* a handshake, whose end the pump sees */

struct light_end {
	struct link link;
	struct link *inner; /* over a socket pair */
	struct pump *pump;
	bool first; /* the link, and no stripe */
};

static ssize_t end_send(struct link *link, const struct iovec *iov, int count)
{
	return link_send(((struct light_end *)link)->inner, iov, count);
}

static ssize_t end_receive(struct link *link, void *buffer, size_t n)
{
	return link_receive(((struct light_end *)link)->inner, buffer, n);
}

static int end_receive_all(struct link *link, void *buffer, size_t n)
{
	return link_receive_all(((struct light_end *)link)->inner, buffer, n);
}

static void end_fds(struct link *link, struct pollfd fds[2], int want_send)
{
	link_fds(((struct light_end *)link)->inner, fds, want_send);
}

static uint64_t end_wake_at(struct link *link)
{
	return link_wake_at(((struct light_end *)link)->inner);
}

static void end_shut(struct link *link)
{
	link_shut(((struct light_end *)link)->inner);
}

static void end_close(struct link *link)
{
	struct light_end *end = (struct light_end *)link;

	link_close(end->inner);
	/* A worker may exit right behind it, and what it said last would be lost. */
	if (end->first && end->pump->wish.end == TRANSPORT_AGENT)
		pump_await(end->pump, PUMP_OPEN, 2 * PUMP_PARTING_NS);
	pump_put(end->pump);
	free(end);
}

static const struct link_ops end_ops = {
	.send = end_send,
	.receive = end_receive,
	.receive_all = end_receive_all,
	.fds = end_fds,
	.wake_at = end_wake_at,
	.shut = end_shut,
	.close = end_close,
};

/* A link over a new socket pair, whose other end is *FD. It has one of PUMP's users. */
static int end_open(struct pump *pump, struct link **link, int *fd, struct error *error)
{
	struct light_end *end = calloc(1, sizeof(*end));
	int fds[2], ret;

	if (!end || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds)) {
		ret = error_set(error, end ? errno : ENOMEM, "light link");
		free(end);
		return ret;
	}
	ret = stream_open(fds[0], fds[0], &end->inner, error);
	if (ret < 0) {
		close(fds[0]);
		close(fds[1]);
		free(end);
		return ret;
	}
	stream_tune(fds[1]);
	end->link.ops = &end_ops;
	end->pump = pump;
	*link = &end->link;
	*fd = fds[1];
	return 0;
}

int pump_open(const struct pump_wish *wish, struct link **link, struct error *error)
{
	struct pump *pump = pump_new(wish);
	int ret;

	*link = NULL;
	if (!pump)
		return error_set(error, ENOMEM, "light link");
	udp_tune(wish->udp);
	ret = quic_open(&pump->quic, wish->end, &wish->key, wish->udp, pump->flows, error);
	if (!ret)
		ret = end_open(pump, link, &pump->flows[0].fd, error);
	if (!ret)
		ret = pump_start(pump);
	if (ret && *link) {
		/* Without a thread nobody ends it. */
		atomic_store(&pump->state, PUMP_OVER);
		link_close(*link);
		*link = NULL;
		return error_set(error, -ret, "light link: a thread");
	}
	if (ret) {
		pump_put(pump);
		return ret;
	}
	((struct light_end *)*link)->first = true;
	if (wish->end == TRANSPORT_AGENT ||
		pump_await(pump, PUMP_OPENING, OPEN_NS) == PUMP_OPEN)
		return 0;
	pump_shun_udp();
	atomic_store(&pump->given_up, true);
	pump_ring(pump);
	while (pump_await(pump, PUMP_OPENING, WAIT_LOOK_NS) != PUMP_OVER)
		pump_await(pump, PUMP_OPEN, WAIT_LOOK_NS);
	link_close(*link);
	*link = NULL;
	error_set(error, 0, "light link: no QUIC connection");
	return -ETIMEDOUT;
}

uint64_t light_number(const struct link *link)
{
	return link->ops == &end_ops ? ((const struct light_end *)link)->pump->number : 0;
}

int light_stripe(uint64_t number, unsigned i, struct link **stripe, struct error *error)
{
	struct pump *pump = i && i < QUIC_FLOWS ? pump_get(number) : NULL;
	int fd, ret;

	*stripe = NULL;
	if (!pump)
		return error_set(error, ECONNRESET, "a stripe of a light link");
	ret = end_open(pump, stripe, &fd, error);
	if (ret < 0) {
		pump_put(pump);
		return ret;
	}
	fd = atomic_exchange(&pump->attach[i], fd);
	if (fd >= 0)
		close(fd);
	pump_ring(pump);
	return 0;
}

void pump_path(struct link *link, int fd)
{
	struct light_end *end = (struct light_end *)link;

	if (link->ops != &end_ops) {
		close(fd);
		return;
	}
	fd = atomic_exchange(&end->pump->path, fd);
	if (fd >= 0)
		close(fd);
	pump_ring(end->pump);
}
