/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/socket_link.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/log.h"

/* One chunk of a copy is 512 KiB; eight of them in flight keep a 25 Gb/s wire busy for 1 ms.
 * A size that is set ends the kernel's own tuning, so where it would be capped below that
 * (net.core.[rw]mem_max, 208 KiB by default) the kernel's tuning is the better one. */
#define STREAM_BUFFER (4 << 20)
/* Of it so much at the most waits to be sent: all that a program has outstanding would fit into
 * the buffers, and a sender that codes where the wire is slow (transport/codec/controller.h)
 * would never see one full. */
#define STREAM_UNSENT (1 << 20)

/* A client that takes nothing for so long is gone. */
#define STREAM_GONE_MS 60000

struct stream {
	struct link link;
	int receive_fd;
	int send_fd;
};

static ssize_t stream_send(struct link *link, const struct iovec *iov, int count)
{
	struct stream *stream = (struct stream *)link;
	struct msghdr message = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)count};
	ssize_t n;

	do
		n = sendmsg(stream->send_fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return n;
	return errno == EWOULDBLOCK ? -EAGAIN : -errno;
}

static ssize_t stream_receive(struct link *link, void *buffer, size_t size)
{
	struct stream *stream = (struct stream *)link;
	ssize_t n;

	do
		n = recv(stream->receive_fd, buffer, size, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return n;
	return errno == EWOULDBLOCK ? -EAGAIN : -errno;
}

static void stream_fds(struct link *link, struct pollfd fds[2], int want_send)
{
	struct stream *stream = (struct stream *)link;

	fds[0] = (struct pollfd){.fd = stream->receive_fd, .events = POLLIN};
	/* Even with nothing to send: a reset of that connection shows as POLLERR or POLLHUP. */
	fds[1] = (struct pollfd){
		.fd = stream->send_fd, .events = (short)(want_send ? POLLOUT : 0)};
}

static uint64_t stream_wake_at(struct link *link)
{
	(void)link;
	return UINT64_MAX;
}

static void stream_close(struct link *link)
{
	struct stream *stream = (struct stream *)link;

	close(stream->receive_fd);
	if (stream->send_fd != stream->receive_fd)
		close(stream->send_fd);
	free(stream);
}

static int stream_receive_all(struct link *link, void *buffer, size_t n)
{
	struct stream *stream = (struct stream *)link;
	unsigned char *at = buffer;

	while (n) {
		ssize_t got = recv(stream->receive_fd, at, n, MSG_WAITALL);

		if (got > 0) {
			at += got;
			n -= (size_t)got;
		} else if (!got) {
			return -ECONNRESET;
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

static void stream_shut(struct link *link)
{
	struct stream *stream = (struct stream *)link;

	shutdown(stream->receive_fd, SHUT_RDWR);
	shutdown(stream->send_fd, SHUT_RDWR);
}

static const struct link_ops stream_ops = {
	.send = stream_send,
	.receive = stream_receive,
	.receive_all = stream_receive_all,
	.fds = stream_fds,
	.wake_at = stream_wake_at,
	.shut = stream_shut,
	.close = stream_close,
};

static void stream_set(int fd, int level, int option, int value)
{
	/* A socket that is not TCP refuses: nothing is lost then. */
	(void)!setsockopt(fd, level, option, &value, sizeof(value));
}

static long stream_cap(const char *path)
{
	char text[32] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = 0;
	close(fd);
	return strtol(text, NULL, 10);
}

/* FORCE needs CAP_NET_ADMIN and knows no cap. */
static void stream_buffer(int fd, int force, int option, const char *cap)
{
	int size = STREAM_BUFFER;

	if (setsockopt(fd, SOL_SOCKET, force, &size, sizeof(size)) && stream_cap(cap) >= size)
		stream_set(fd, SOL_SOCKET, option, size);
}

static char congestion[STREAM_CONGESTION];

void stream_congestion(const char *name)
{
	snprintf(congestion, sizeof(congestion), "%s", name);
}

static void choose_congestion(int fd)
{
	static atomic_bool logged_once;

	if (!congestion[0] ||
		!setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion,
			(socklen_t)strlen(congestion)) ||
		(errno != ENOENT && errno != EPERM) || atomic_exchange(&logged_once, true))
		return;
	log_warn("tcp.congestion", "name=%s text=\"%s\"", congestion,
		errno == ENOENT
			? "the kernel has no such congestion control: its default is used"
			: "not in net.ipv4.tcp_allowed_congestion_control: the default is "
			  "used");
}

void stream_tune(int fd)
{
	choose_congestion(fd);
	stream_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, "/proc/sys/net/core/wmem_max");
	stream_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, "/proc/sys/net/core/rmem_max");
#ifdef TCP_NOTSENT_LOWAT
	stream_set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, STREAM_UNSENT);
#endif
	stream_set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	stream_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	/* A dead peer is noticed within 5 s where the wire is idle; where it is not, by PINGs.
	 * Not by a user timeout: it also ends a connection whose peer lives and does not read,
	 * as a worker does that waits for a long kernel. */
	stream_set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 2);
	stream_set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
	stream_set(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

int stream_open(int receive_fd, int send_fd, struct link **link, struct error *error)
{
	const int fds[2] = {receive_fd, send_fd};
	struct stream *stream;

	for (int i = 0; i < 2; i++) {
		int flags = fcntl(fds[i], F_GETFL);

		/* Who must not wait says so with each call; link_receive_all does wait. */
		if (flags < 0 || fcntl(fds[i], F_SETFL, flags & ~O_NONBLOCK) < 0 ||
			fcntl(fds[i], F_SETFD, FD_CLOEXEC) < 0)
			return error_set(error, errno, "link descriptor %d", fds[i]);
		stream_tune(fds[i]);
	}
	stream = malloc(sizeof(*stream));
	if (!stream)
		return error_set(error, ENOMEM, "link");
	*stream = (struct stream){{.ops = &stream_ops}, receive_fd, send_fd};
	*link = &stream->link;
	return 0;
}

int stream_link(const int *fds, unsigned count, enum transport_end end, struct link **link,
	struct error *error)
{
	int commands, replies, ret;

	if (!count || count > 2)
		return error_set(error, 0, "a link over %u streams", count);
	commands = fds[0];
	replies = fds[count - 1];
	if (end == TRANSPORT_CLIENT)
		return stream_open(replies, commands, link, error);
	ret = stream_open(commands, replies, link, error);
	/* A worker sends no PINGs, and a sidecar always reads. A stripe ends with
	 * its link. */
	if (!ret && commands != replies)
		stream_set(replies, IPPROTO_TCP, TCP_USER_TIMEOUT, STREAM_GONE_MS);
	return ret;
}

int stream_handoff(int socket, const void *message, size_t n, const int *fds, unsigned count)
{
	_Static_assert(
		TRANSPORT_FDS <= DESCRIPTORS_MOST, "a link's connections in one message");
	return descriptors_send(socket, message, n, fds, count, MSG_DONTWAIT);
}

ssize_t stream_read(int fd, void *bytes, size_t n)
{
	ssize_t got = recv(fd, bytes, n, MSG_DONTWAIT);

	return got < 0 ? -errno : got;
}

int stream_write(int fd, const void *bytes, size_t n)
{
	ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);

	return sent == (ssize_t)n ? 0 : sent < 0 ? -errno : -EAGAIN;
}

void stream_finish(int fd)
{
	shutdown(fd, SHUT_WR);
}

void tcp_stream_reset(int fd)
{
	struct linger hard = {.l_onoff = 1};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
}

ssize_t transport_read(const struct transport *transport, int fd, void *bytes, size_t n)
{
	return transport->read ? transport->read(fd, bytes, n) : stream_read(fd, bytes, n);
}

int transport_write(const struct transport *transport, int fd, const void *bytes, size_t n)
{
	return transport->write ? transport->write(fd, bytes, n) : stream_write(fd, bytes, n);
}

void transport_drop(const struct transport *transport, int fd)
{
	if (transport->forget)
		transport->forget(fd);
	close(fd);
}
