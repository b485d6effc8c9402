/* SPDX-License-Identifier: Apache-2.0
 *
 * Dialing an agent: the first connection says HELLO for the commands and is told session,
 * secret and reply port; the second joins with them.  Both against one deadline.  Nothing that
 * the agent says is used before it is checked, and its text is made printable before it reaches
 * a log.
 */
#include "transport/native.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/wait.h"
#include "transport/resolve.h"
#include "transport/stream.h"
#include "transport/tcp.h"

/* An address that swallows packets must leave time for the others of a list.  A SYN that got
 * lost is sent again after 1, 3 and 7 s. */
#define CONNECT_NS 8000000000ull
#define STATUS_MISMATCH 803 /* CUDA_ERROR_SYSTEM_DRIVER_MISMATCH */

struct dial {
	char host[256];
	uint16_t port;
	uint64_t deadline;
	struct error *error;
};

/* 0 when fd is ready, -ETIMEDOUT at the deadline. */
static int dial_wait(uint64_t deadline, int fd, short events)
{
	for (;;) {
		struct pollfd pollfd = {.fd = fd, .events = events};
		uint64_t now = wait_now();
		int n;

		if (now >= deadline)
			return -ETIMEDOUT;
		n = poll(&pollfd, 1, (int)((deadline - now) / 1000000) + 1);
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
}

static int dial_connect_one(struct dial *dial, const struct addrinfo *to)
{
	cleanup_close int fd =
		socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t size = sizeof(int);
	uint64_t until = wait_now() + CONNECT_NS;
	int code = 0, ret;

	if (fd < 0)
		return -errno;
	stream_tune(fd);
	if (!connect(fd, to->ai_addr, to->ai_addrlen))
		return take_fd(&fd);
	if (errno != EINPROGRESS)
		return -errno;
	ret = dial_wait(until < dial->deadline ? until : dial->deadline, fd, POLLOUT);
	if (ret < 0)
		return ret;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size) || code)
		return code ? -code : -errno;
	return take_fd(&fd);
}

/* RET, an error of connecting, which the text explains. */
static int dial_failed(struct dial *dial, int ret, uint16_t port, const char *which)
{
	if (ret != -ETIMEDOUT)
		return error_set(
			dial->error, -ret, "agent %s:%u%s: connect", dial->host, port, which);
	error_set(dial->error, 0,
		"agent %s:%u%s: no answer: that machine is down, or a network policy or "
		"firewall keeps this one out",
		dial->host, port, which);
	return ret;
}

static int dial_connect(struct dial *dial, uint16_t port)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	struct addrinfo *list, *to;
	char service[8];
	int ret, fd = -EHOSTUNREACH;

	snprintf(service, sizeof(service), "%u", port);
	ret = resolve_host(dial->host, service, &hints, &list, dial->error);
	if (ret < 0)
		return ret;
	for (to = list; to; to = to->ai_next) {
		fd = dial_connect_one(dial, to);
		if (fd >= 0)
			break;
	}
	freeaddrinfo(list);
	if (fd == -ECONNREFUSED) {
		error_set(dial->error, 0,
			"agent %s:%u: connection refused: is gpu-agent running there, and is "
			"that its receive port?",
			dial->host, port);
		return fd;
	}
	return fd < 0 ? dial_failed(dial, fd, port, "") : fd;
}

/* To the same address that answered FIRST: a name may stand for several agents. */
static int dial_connect_again(struct dial *dial, int first, uint16_t port)
{
	struct sockaddr_storage peer = {0};
	struct addrinfo to = {.ai_addr = (struct sockaddr *)&peer, .ai_addrlen = sizeof(peer)};
	int fd;

	if (getpeername(first, to.ai_addr, &to.ai_addrlen))
		return error_set(dial->error, errno, "agent %s", dial->host);
	to.ai_family = peer.ss_family;
	if (peer.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&peer)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)&peer)->sin_port = htons(port);
	fd = dial_connect_one(dial, &to);
	return fd < 0 ? dial_failed(dial, fd, port, " (replies)") : fd;
}

static int dial_send(struct dial *dial, int fd, const void *bytes, size_t n)
{
	const char *at = bytes;

	while (n) {
		ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);
		int ret;

		if (sent >= 0) {
			at += sent;
			n -= (size_t)sent;
			continue;
		}
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		ret = dial_wait(dial->deadline, fd, POLLOUT);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static int dial_receive(struct dial *dial, int fd, void *bytes, size_t n)
{
	char *at = bytes;

	while (n) {
		ssize_t got = recv(fd, at, n, 0);
		int ret;

		if (got > 0) {
			at += got;
			n -= (size_t)got;
			continue;
		}
		if (!got)
			return -ECONNRESET;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		ret = dial_wait(dial->deadline, fd, POLLIN);
		if (ret < 0)
			return ret;
	}
	return 0;
}

/* The text is the agent's: one printable line of it. */
static void welcome_clean(struct session_welcome *welcome)
{
	welcome->text[sizeof(welcome->text) - 1] = 0;
	for (char *c = welcome->text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			*c = '?';
}

/* Says HELLO on fd and checks what comes back. */
static int dial_greet(struct dial *dial, int fd, uint16_t port,
	const struct session_hello *hello, struct session_welcome *welcome)
{
	size_t head = sizeof(welcome->magic);
	int ret = dial_send(dial, fd, hello, sizeof(*hello));

	memset(welcome, 0, sizeof(*welcome));
	if (!ret)
		ret = dial_receive(dial, fd, welcome, head);
	if (!ret && welcome->magic != SESSION_MAGIC)
		return error_set(dial->error, 0,
			"agent %s:%u: what answers there is not a vcuda agent; the port to "
			"name is "
			"its receive port (%u)",
			dial->host, port, SESSION_PORT_RECV);
	if (!ret)
		ret = dial_receive(dial, fd, (char *)welcome + head, sizeof(*welcome) - head);
	if (ret == -ECONNRESET)
		return error_set(dial->error, ECONNRESET,
			"agent %s:%u: closed the connection during the handshake", dial->host,
			port);
	if (ret < 0)
		return error_set(dial->error, -ret, "agent %s:%u: handshake", dial->host, port);
	welcome_clean(welcome);
	if (welcome->version != SESSION_VERSION) {
		if (!welcome->status)
			welcome->status = STATUS_MISMATCH;
		error_set(dial->error, 0,
			"agent %s:%u speaks protocol version %u, this side %u: install the "
			"same "
			"release on both",
			dial->host, port, welcome->version, SESSION_VERSION);
		return -ECONNREFUSED;
	}
	if (welcome->status) {
		error_set(dial->error, 0, "agent %s:%u refused: %.190s (status %u)", dial->host,
			port, welcome->text[0] ? welcome->text : "no reason given",
			welcome->status);
		return -ECONNREFUSED;
	}
	if (welcome->features & ~hello->features)
		return error_set(dial->error, 0,
			"agent %s:%u: granted features that were not asked for", dial->host,
			port);
	return 0;
}

static int native_dial(const char *address, const struct session_hello *wanted,
	struct session_welcome *welcome, uint64_t deadline, struct link **link,
	struct error *error)
{
	struct dial dial = {.deadline = deadline, .error = error};
	struct session_hello hello = *wanted;
	struct session_welcome second;
	cleanup_close int commands = -1;
	cleanup_close int replies = -1;
	int ret;

	memset(welcome, 0, sizeof(*welcome));
	ret = tcp_parse_host(address, SESSION_PORT_RECV, dial.host, &dial.port, error);
	if (ret < 0)
		return ret;
	hello.magic = SESSION_MAGIC;
	if (!hello.version)
		hello.version = SESSION_VERSION;
	if (hello.role != SESSION_PROBE)
		hello.role = SESSION_COMMANDS;

	commands = dial_connect(&dial, dial.port);
	if (commands < 0)
		return commands;
	ret = dial_greet(&dial, commands, dial.port, &hello, welcome);
	if (ret < 0)
		return ret;
	if (hello.role == SESSION_PROBE) {
		*link = NULL;
		return 0;
	}
	if (!welcome->reply_port)
		return error_set(
			error, 0, "agent %s:%u: named no reply port", dial.host, dial.port);

	hello.role = SESSION_REPLIES;
	memcpy(hello.session, welcome->session, sizeof(hello.session));
	memcpy(hello.secret, welcome->secret, sizeof(hello.secret));
	replies = dial_connect_again(&dial, commands, welcome->reply_port);
	if (replies < 0)
		return replies;
	ret = dial_greet(&dial, replies, welcome->reply_port, &hello, &second);
	if (ret < 0) {
		welcome->status = second.status;
		memcpy(welcome->text, second.text, sizeof(welcome->text));
		return ret;
	}

	ret = stream_open(replies, commands, link, error);
	if (ret < 0)
		return ret;
	take_fd(&commands);
	take_fd(&replies);
	return 0;
}

int native_dial_lane(const struct sockaddr_storage *peer, const struct session_hello *wanted,
	uint64_t deadline, unsigned *lane, struct error *error)
{
	struct sockaddr_storage address = *peer;
	bool v6 = peer->ss_family == AF_INET6;
	struct addrinfo to = {
		.ai_family = peer->ss_family,
		.ai_addr = (struct sockaddr *)&address,
		.ai_addrlen = v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in),
	};
	uint16_t port = ntohs(v6 ? ((const struct sockaddr_in6 *)peer)->sin6_port
				 : ((const struct sockaddr_in *)peer)->sin_port);
	struct dial dial = {.port = port, .deadline = deadline, .error = error};
	struct session_hello hello = *wanted;
	struct session_welcome welcome;
	cleanup_close int fd = -1;
	int ret;

	if (getnameinfo(to.ai_addr, to.ai_addrlen, dial.host, sizeof(dial.host), NULL, 0,
		    NI_NUMERICHOST))
		snprintf(dial.host, sizeof(dial.host), "?");
	hello.magic = SESSION_MAGIC;
	hello.version = SESSION_VERSION;
	hello.role = SESSION_LANE;
	fd = dial_connect_one(&dial, &to);
	if (fd < 0)
		return dial_failed(&dial, fd, port, " (lane)");
	ret = dial_greet(&dial, fd, port, &hello, &welcome);
	explicit_bzero(&hello, sizeof(hello));
	if (ret < 0)
		return ret;
	if (!welcome.lane || welcome.lane > SESSION_LANES)
		return error_set(error, 0, "agent %s:%u: a lane with the number %u", dial.host,
			port, welcome.lane);
	*lane = welcome.lane;
	return take_fd(&fd);
}

const struct transport transport_native = {
	.name = "native",
	.dial = native_dial,
	.adopt = stream_adopt,
};
