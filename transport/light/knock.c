/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/light/knock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/crypto.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/descriptors.h"
#include "common/wait.h"
#include "transport/light/light.h"
#include "transport/light/pump.h"
#include "transport/light/udp.h"
#include "transport/tcp.h"

/* A client waits so long for an answer to all of its knocks, and then goes over TCP. */
#define KNOCK_PATIENCE_NS 600000000ull
#define KNOCK_FIRST_NS 60000000ull /* until the second; then twice as long each */

static const char label[] = "vcuda light 1";

void knock_key(const struct session_hello *hello, struct light_key *key)
{
	unsigned char text[sizeof(label) + sizeof(hello->session)];

	memcpy(text, label, sizeof(label));
	memcpy(text + sizeof(label), hello->session, sizeof(hello->session));
	/* It fails for unknown algorithms only. */
	gnutls_hmac_fast(GNUTLS_MAC_SHA256, hello->secret, sizeof(hello->secret), text,
		sizeof(text), key->bytes);
}

/* --- by descriptor ------------------------------------------------------------------------ */

struct kept {
	struct kept *next;
	int fd;
	struct session_hello hello;
};
static struct {
	pthread_mutex_t lock;
	struct kept *first;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

int knock_keep(int fd, const struct session_hello *hello)
{
	struct kept *kept = malloc(sizeof(*kept));

	if (!kept)
		return -ENOMEM;
	knock_forget(fd);
	pthread_mutex_lock(&table.lock);
	*kept = (struct kept){table.first, fd, *hello};
	table.first = kept;
	pthread_mutex_unlock(&table.lock);
	return 0;
}

static struct kept **find(int fd)
{
	struct kept **at = &table.first;

	while (*at && (*at)->fd != fd)
		at = &(*at)->next;
	return at;
}

bool knock_kept(int fd, struct session_hello *hello)
{
	struct kept *kept;

	pthread_mutex_lock(&table.lock);
	kept = *find(fd);
	if (kept)
		*hello = kept->hello;
	pthread_mutex_unlock(&table.lock);
	return kept != NULL;
}

void knock_forget(int fd)
{
	struct kept **at, *kept;

	pthread_mutex_lock(&table.lock);
	at = find(fd);
	kept = *at;
	if (kept)
		*at = kept->next;
	pthread_mutex_unlock(&table.lock);
	if (kept)
		explicit_bzero(kept, sizeof(*kept));
	free(kept);
}

void light_forget(int fd)
{
	knock_forget(fd);
}

/* --- datagrams ---------------------------------------------------------------------------- */

bool knock_send(int fd, const struct session_hello *hello)
{
	union {
		struct session_hello hello;
		unsigned char bytes[KNOCK_BYTES];
	} knock = {0};

	_Static_assert(sizeof(*hello) <= KNOCK_BYTES, "a HELLO fits");
	knock.hello = *hello;
	knock.hello.magic = SESSION_MAGIC;
	knock.hello.version = SESSION_VERSION;
	knock.hello.role = SESSION_LIGHT;
	/* The secret says it all. */
	explicit_bzero(knock.hello.token, sizeof(knock.hello.token));
	return send(fd, &knock, sizeof(knock), MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

bool knock_is(const void *bytes, size_t n)
{
	struct session_hello hello;

	if (n != KNOCK_BYTES)
		return false;
	memcpy(&hello, bytes, sizeof(hello));
	return hello.magic == SESSION_MAGIC && hello.version == SESSION_VERSION &&
	       hello.role == SESSION_LIGHT;
}

void knock_again(int fd)
{
	const struct session_welcome welcome = {
		.magic = SESSION_MAGIC, .version = SESSION_VERSION};

	(void)!send(fd, &welcome, sizeof(welcome), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* --- the agent's end ---------------------------------------------------------------------- */

/* Where a knock came from and went to. */
struct where {
	struct sockaddr_in6 from, to; /* or a sockaddr_in */
};
_Static_assert(
	sizeof(struct where) <= sizeof(((struct transport_knock *)0)->where), "it has room");

static int bind_udp(const struct sockaddr *at, socklen_t size)
{
	cleanup_close int fd =
		socket(at->sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int yes = 1, no = 0;

	if (fd < 0)
		return -errno;
	if (at->sa_family == AF_INET6)
		(void)!setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof(yes)) || bind(fd, at, size))
		return -errno;
	return take_fd(&fd);
}

/* SO_REUSEPORT lets another agent of the same user have the port as well (and no other user),
 * so nobody may be there before. */
static bool port_is_free(const struct sockaddr *at, socklen_t size)
{
	cleanup_close int fd = socket(at->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int no = 0;

	if (fd >= 0 && at->sa_family == AF_INET6)
		(void)!setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	return fd < 0 || !bind(fd, at, size) || errno != EADDRINUSE;
}

int light_udp_listen(const char *host, uint16_t port, struct error *error)
{
	struct addrinfo hints = {
		.ai_socktype = SOCK_DGRAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	struct addrinfo *list;
	char service[8];
	int ret, fd = -EADDRNOTAVAIL, yes = 1;

	snprintf(service, sizeof(service), "%u", port);
	ret = getaddrinfo(*host ? host : NULL, service, &hints, &list);
	if (ret)
		return error_set(
			error, 0, "listen on %s: %s", *host ? host : "*", gai_strerror(ret));
	/* IPv6 first where every address is meant, since it takes IPv4 as well. */
	for (int pass = *host ? 1 : 0; pass < 2 && fd < 0; pass++)
		for (struct addrinfo *at = list; at && fd < 0; at = at->ai_next) {
			if (!pass && at->ai_family != AF_INET6)
				continue;
			fd = port_is_free(at->ai_addr, at->ai_addrlen)
				     ? bind_udp(at->ai_addr, at->ai_addrlen)
				     : -EADDRINUSE;
		}
	freeaddrinfo(list);
	if (fd == -EADDRINUSE)
		return error_set(error, EADDRINUSE,
			"UDP port %u on %s: another program has it; choose another port", port,
			*host ? host : "*");
	if (fd < 0)
		return error_set(
			error, -fd, "listen on UDP port %u of %s", port, *host ? host : "*");
	(void)!setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &yes, sizeof(yes));
	(void)!setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &yes, sizeof(yes));
	return fd;
}

/* The address that a datagram was sent to. */
static void note_target(struct msghdr *message, struct where *where)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO &&
			where->to.sin6_family == AF_INET6) {
			struct in6_pktinfo info;

			memcpy(&info, CMSG_DATA(c), sizeof(info));
			where->to.sin6_addr = info.ipi6_addr;
			if (IN6_IS_ADDR_LINKLOCAL(&info.ipi6_addr))
				where->to.sin6_scope_id = info.ipi6_ifindex;
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO &&
			   where->to.sin6_family == AF_INET) {
			struct in_pktinfo info;

			memcpy(&info, CMSG_DATA(c), sizeof(info));
			((struct sockaddr_in *)&where->to)->sin_addr = info.ipi_addr;
		}
	}
}

int light_knock(int listener, struct transport_knock *knock)
{
	unsigned char bytes[KNOCK_BYTES + 1];
	struct iovec iov = {bytes, sizeof(bytes)};
	struct where where = {0};
	struct sockaddr_storage from = {0};
	socklen_t size = sizeof(where.to);
	union {
		struct cmsghdr head;
		char room[256];
	} control;
	struct msghdr message = {
		.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(listener, &message, MSG_DONTWAIT);

	if (n < 0)
		return -errno;
	if (!knock_is(bytes, (size_t)n))
		return -EPROTO;
	memcpy(&knock->hello, bytes, sizeof(knock->hello));
	if (getsockname(listener, (struct sockaddr *)&where.to, &size))
		return -EPROTO;
	note_target(&message, &where);
	memcpy(&where.from, &from, sizeof(where.from));
	tcp_peer(&from, &knock->peer);
	memcpy(knock->where, &where, sizeof(where));
	return 0;
}

/* The new socket hears everybody between bind and connect: what came then is dropped, and is
 * sent again. */
static void drain(int fd)
{
	char byte;

	while (recv(fd, &byte, 1, MSG_DONTWAIT) >= 0)
		;
}

int light_admit(int listener, const struct transport_knock *knock)
{
	cleanup_close int fd = -1;
	struct where where;
	socklen_t size;
	int ret;

	(void)listener;
	memcpy(&where, knock->where, sizeof(where));
	size = where.to.sin6_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						: sizeof(struct sockaddr_in);
	fd = bind_udp((struct sockaddr *)&where.to, size);
	if (fd < 0)
		return fd;
	if (connect(fd, (struct sockaddr *)&where.from, size))
		return -errno;
	drain(fd);
	ret = knock_keep(fd, &knock->hello);
	return ret < 0 ? ret : take_fd(&fd);
}

/* --- the client's end --------------------------------------------------------------------- */

static int connect_udp(const struct dial *dial)
{
	struct sockaddr_storage to;
	socklen_t size;
	cleanup_close int fd = -1;

	memcpy(&to, dial->place.bytes, sizeof(to));
	if (to.ss_family == AF_INET6) {
		((struct sockaddr_in6 *)&to)->sin6_port = htons(dial->reply_port);
		size = sizeof(struct sockaddr_in6);
	} else {
		((struct sockaddr_in *)&to)->sin_port = htons(dial->reply_port);
		size = sizeof(struct sockaddr_in);
	}
	fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, size))
		return -errno;
	udp_tune(fd);
	return take_fd(&fd);
}

/* 0: the agent answered; -EAGAIN: not yet. */
static int answer(int fd)
{
	struct session_welcome welcome;
	ssize_t n = recv(fd, &welcome, sizeof(welcome), MSG_DONTWAIT);

	if (n < 0)
		return -errno;
	if (n != (ssize_t)sizeof(welcome) || welcome.magic != SESSION_MAGIC)
		return -EAGAIN;
	return welcome.status ? -ECONNREFUSED : 0;
}

int light_dial_last(struct dial *dial, const struct session_hello *hello)
{
	uint64_t until = wait_now() + KNOCK_PATIENCE_NS, pause = KNOCK_FIRST_NS;
	cleanup_close int fd = -1;
	int ret = -EAGAIN;

	if (light_shuns_udp() || !dial->reply_port)
		return -ETIMEDOUT;
	fd = connect_udp(dial);
	if (fd < 0)
		return fd;
	until = until < dial->deadline ? until : dial->deadline;
	while (ret == -EAGAIN && wait_now() < until) {
		uint64_t next = wait_now() + pause;

		knock_send(fd, hello);
		pause *= 2;
		next = next < until ? next : until;
		do
			if (!dial_wait(next, fd, POLLIN))
				ret = answer(fd);
		while (ret == -EAGAIN && wait_now() < next);
	}
	if (ret < 0) {
		pump_shun_udp();
		return ret;
	}
	ret = knock_keep(fd, hello);
	return ret < 0 ? ret : take_fd(&fd);
}
