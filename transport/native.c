/* SPDX-License-Identifier: Apache-2.0
 *
 * An agent's name may stand for several addresses, and each of those for an agent: the first
 * connection of a session tries them in turn, all others go to the one that it reached.
 */
#include "transport/native.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/wait.h"
#include "transport/dial.h"
#include "transport/resolve.h"
#include "transport/socket_link.h"
#include "transport/tcp.h"

/* An address that swallows packets must leave time for the others of a list.  A SYN that got
 * lost is sent again after 1, 3 and 7 s. */
#define CONNECT_NS 8000000000ull

/* TCP_DEFER_ACCEPT keeps a connection without bytes in the kernel for so long: a well-behaved
 * client does not make the agent wait for its HELLO. */
#define DEFER_SECONDS 1

static struct sockaddr_storage native_address(
	const struct transport_place *place, socklen_t *size)
{
	struct sockaddr_storage address;

	memcpy(&address, place->bytes, sizeof(address));
	*size = address.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					      : sizeof(struct sockaddr_in);
	return address;
}

/* --- the agent's end ---------------------------------------------------------------------- */

/* At the port of the address before, where that had to find one. */
static int listen_port(const struct transport *transport, const char *host, const char *key,
	uint16_t wanted, uint16_t *taken, uint32_t roles, struct transport_listening *listening,
	struct error *error)
{
	int defer = DEFER_SECONDS;
	int fd = tcp_listen(host, *taken ? *taken : wanted, taken, error);

	if (fd < 0)
		return error_wrap(error, fd, "%s", key);
	setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &defer, sizeof(defer));
	return transport_listening_add(listening, transport, fd, roles, NULL, error);
}

int native_listen_as(const struct transport *transport, const char *address,
	struct transport_listening *listening, struct error *error)
{
	const uint32_t probe = TRANSPORT_ROLE(SESSION_PROBE);
	unsigned before = listening->count;
	char host[256] = ""; /* every address */
	uint16_t port = 0;
	int ret = *address ? tcp_parse_host(address, 0, host, &port, error) : 0;

	if (!ret && port)
		ret = error_set(
			error, 0, "'%.100s': the ports are ports.send and ports.recv", address);
	if (ret < 0)
		return error_wrap(error, ret, "listen");
	ret = listen_port(transport, host, "ports.send", listening->wanted.replies,
		&listening->taken.replies, probe | TRANSPORT_ROLE(SESSION_REPLIES), listening,
		error);
	if (!ret)
		ret = listen_port(transport, host, "ports.recv", listening->wanted.commands,
			&listening->taken.commands,
			probe | TRANSPORT_ROLE(SESSION_COMMANDS) |
				TRANSPORT_ROLE(SESSION_STRIPE) |
				TRANSPORT_ROLE(SESSION_RESUME) | TRANSPORT_ROLE(SESSION_END),
			listening, error);
	while (ret < 0 && listening->count > before)
		close(listening->at[--listening->count].fd);
	return ret;
}

static int native_listen(
	const char *address, struct transport_listening *listening, struct error *error)
{
	return native_listen_as(&transport_native, address, listening, error);
}

static int native_accept(int listener, struct transport_peer *peer)
{
	struct sockaddr_storage from = {0};
	socklen_t size = sizeof(from);
	int one = 1;
	int fd = accept4(
		listener, (struct sockaddr *)&from, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return -errno;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	tcp_peer(&from, peer);
	return fd;
}

/* --- the client's end --------------------------------------------------------------------- */

static int connect_one(struct dial *dial, const struct sockaddr *to, socklen_t size)
{
	cleanup_close int fd =
		socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t code_size = sizeof(int);
	uint64_t until = wait_now() + CONNECT_NS;
	int code = 0, ret;

	if (fd < 0)
		return -errno;
	stream_tune(fd);
	if (!connect(fd, to, size))
		return take_fd(&fd);
	if (errno != EINPROGRESS)
		return -errno;
	ret = dial_wait(until < dial->deadline ? until : dial->deadline, fd, POLLOUT);
	if (ret < 0)
		return ret;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &code_size) || code)
		return code ? -code : -errno;
	return take_fd(&fd);
}

/* RET, an error of connecting, which the text explains. */
static int connect_failed(struct dial *dial, int ret, const char *which)
{
	if (ret != -ETIMEDOUT)
		return error_set(dial->error, -ret, "agent %s%s: connect", dial->where, which);
	error_set(dial->error, 0,
		"agent %s%s: no answer: that machine is down, or a network policy or "
		"firewall keeps this one out",
		dial->where, which);
	return ret;
}

/* The first connection: whoever of HOST's addresses takes it. */
static int connect_host(struct dial *dial, const char *host, uint16_t port)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	struct addrinfo *list, *to;
	char service[8];
	int ret, fd = -EHOSTUNREACH;

	snprintf(service, sizeof(service), "%u", port);
	ret = resolve_host(host, service, &hints, &list, dial->error);
	if (ret < 0)
		return ret;
	for (to = list; to; to = to->ai_next) {
		fd = connect_one(dial, to->ai_addr, to->ai_addrlen);
		if (fd >= 0)
			break;
	}
	if (fd >= 0) {
		dial->place.transport = dial->transport;
		memcpy(dial->place.bytes, to->ai_addr, to->ai_addrlen);
	}
	freeaddrinfo(list);
	if (fd == -ECONNREFUSED) {
		error_set(dial->error, 0,
			"agent %s: connection refused: is gpu-agent running there, and is "
			"that its receive port?",
			dial->where);
		return fd;
	}
	return fd < 0 ? connect_failed(dial, fd, "") : fd;
}

/* To the same address: a name may stand for several agents. */
static int connect_replies(struct dial *dial, const char *host)
{
	socklen_t size;
	struct sockaddr_storage to = native_address(&dial->place, &size);
	int fd;

	snprintf(dial->where, sizeof(dial->where), "%s:%u", host, dial->reply_port);
	if (to.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&to)->sin6_port = htons(dial->reply_port);
	else
		((struct sockaddr_in *)&to)->sin_port = htons(dial->reply_port);
	fd = connect_one(dial, (struct sockaddr *)&to, size);
	return fd < 0 ? connect_failed(dial, fd, " (replies)") : fd;
}

static int connect_stripe(struct dial *dial)
{
	socklen_t size;
	struct sockaddr_storage to = native_address(&dial->place, &size);
	char host[256], port[8];
	int fd;

	if (getnameinfo((struct sockaddr *)&to, size, host, sizeof(host), port, sizeof(port),
		    NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(dial->where, sizeof(dial->where), "?");
	else
		snprintf(dial->where, sizeof(dial->where), "%s:%s", host, port);
	fd = connect_one(dial, (struct sockaddr *)&to, size);
	return fd < 0 ? connect_failed(dial, fd, " (stripe)") : fd;
}

int native_connect(struct dial *dial, enum session_role role)
{
	char host[256];
	uint16_t port;
	int ret;

	if (role == SESSION_STRIPE || role == SESSION_RENEW)
		return connect_stripe(dial);
	ret = tcp_parse_host(dial->address, SESSION_PORT_RECV, host, &port, dial->error);
	if (ret < 0)
		return ret;
	if (role != SESSION_REPLIES) {
		snprintf(dial->where, sizeof(dial->where), "%s:%u", host, port);
		return connect_host(dial, host, port);
	}
	if (!dial->reply_port)
		return error_set(dial->error, 0, "agent %s: named no reply port", dial->where);
	return connect_replies(dial, host);
}

static int native_dial(const char *address, const struct session_hello *hello,
	struct session_welcome *welcome, uint64_t deadline, struct link **link,
	struct error *error)
{
	struct dial dial = {
		.connect = native_connect,
		.transport = &transport_native,
		.address = address,
		.hint = "the port to name is its receive port (9998)",
		.deadline = deadline,
		.error = error,
	};

	_Static_assert(SESSION_PORT_RECV == 9998, "the hint says so");
	return dial_session(&dial, hello, welcome, link);
}

static int native_open_stripe(const struct transport_place *place,
	const struct session_hello *hello, uint64_t deadline, unsigned *number,
	struct link **stripe, struct error *error)
{
	struct dial dial = {
		.connect = native_connect,
		.transport = &transport_native,
		.place = *place,
		.deadline = deadline,
		.error = error,
	};

	return dial_stripe(&dial, hello, number, stripe);
}

static int native_join(const char *address, const struct session_hello *hello,
	uint64_t deadline, struct error *error)
{
	struct dial dial = {
		.connect = native_connect,
		.transport = &transport_native,
		.address = address,
		.deadline = deadline,
		.error = error,
	};

	return dial_peer(&dial, hello);
}

static int native_describe(
	const char *address, struct transport_description *description, struct error *error)
{
	return tcp_parse_host(
		address, description->port, description->host, &description->port, error);
}

int native_expand(const char *address, void (*add)(void *argument, const char *address),
	void *argument, struct error *error)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
	char host[256], number[NI_MAXHOST], text[272];
	uint16_t port;
	int ret = tcp_parse_host(address, SESSION_PORT_RECV, host, &port, error);

	if (ret < 0)
		return ret;
	ret = resolve_host(host, NULL, &hints, &list, error);
	if (ret < 0)
		return ret;
	for (const struct addrinfo *to = list; to; to = to->ai_next) {
		if (getnameinfo(to->ai_addr, to->ai_addrlen, number, sizeof(number), NULL, 0,
			    NI_NUMERICHOST))
			continue;
		snprintf(text, sizeof(text),
			to->ai_family == AF_INET6 ? "[%.240s]:%u" : "%.240s:%u", number, port);
		add(argument, text);
	}
	freeaddrinfo(list);
	return 0;
}

const struct transport transport_native = {
	.name = "native",
	.clear = true,
	.connections = 2,
	.listen = native_listen,
	.accept = native_accept,
	.dial = native_dial,
	.link = stream_link,
	.handoff = stream_handoff,
	.open_stripe = native_open_stripe,
	.join = native_join,
	.describe = native_describe,
};
