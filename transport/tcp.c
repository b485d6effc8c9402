/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "transport/resolve.h"

static int parse_fail(const char *text, struct error *error)
{
	return error_set(error, 0, "'%.100s' is not HOST, HOST:PORT or [ADDRESS]:PORT", text);
}

int tcp_parse_host(const char *text, uint16_t default_port, char *host, uint16_t *port,
	struct error *error)
{
	const char *start = text, *end, *colon, *after;
	unsigned long n;
	char *rest;

	if (*text == '[') {
		start = text + 1;
		end = strchr(start, ']');
		if (!end)
			return parse_fail(text, error);
		after = end + 1;
	} else {
		colon = strrchr(text, ':');
		/* Two colons without brackets: an IPv6 address and no port. */
		if (colon && strchr(text, ':') != colon)
			colon = NULL;
		end = colon ? colon : text + strlen(text);
		after = end;
	}
	/* What no name and no address has, in brackets or not, would only fail to be found. */
	if (end == start || (size_t)(end - start) >= 256 ||
		strspn(start, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			      "-._:%") < (size_t)(end - start))
		return parse_fail(text, error);
	*port = default_port;
	if (*after) {
		errno = 0;
		n = *after == ':' ? strtoul(after + 1, &rest, 10) : 0;
		if (errno || !n || n > 65535 || *rest || after[1] < '0' || after[1] > '9')
			return parse_fail(text, error);
		*port = (uint16_t)n;
	}
	memcpy(host, start, (size_t)(end - start));
	host[end - start] = 0;
	return 0;
}

#define BACKLOG 1024

static int listen_one(const struct addrinfo *at)
{
	cleanup_close int fd =
		socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int yes = 1, no = 0;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)))
		return -errno;
	if (at->ai_family == AF_INET6)
		(void)!setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	if (bind(fd, at->ai_addr, at->ai_addrlen) || listen(fd, BACKLOG))
		return -errno;
	return take_fd(&fd);
}

int tcp_listen(const char *host, uint16_t port, uint16_t *bound, struct error *error)
{
	struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	struct addrinfo *list, *at;
	struct sockaddr_storage name;
	socklen_t size = sizeof(name);
	char service[8];
	int ret, fd = -EADDRNOTAVAIL;

	if (host && !*host)
		host = NULL;
	snprintf(service, sizeof(service), "%u", port);
	ret = getaddrinfo(host, service, &hints, &list);
	if (ret)
		return error_set(
			error, 0, "listen on %s: %s", host ? host : "*", gai_strerror(ret));
	/* Every address: IPv6 first where there is one, since it takes IPv4 as well. */
	for (at = list; at && fd < 0; at = at->ai_next)
		if (host || at->ai_family == AF_INET6)
			fd = listen_one(at);
	for (at = list; at && fd < 0 && fd != -EADDRINUSE; at = at->ai_next)
		fd = listen_one(at);
	freeaddrinfo(list);
	if (fd == -EADDRINUSE)
		return error_set(error, EADDRINUSE,
			"port %u on %s: another program listens there; choose another port",
			port, host ? host : "*");
	if (fd < 0)
		return error_set(error, -fd, "listen on %s:%u", host ? host : "*", port);
	if (getsockname(fd, (struct sockaddr *)&name, &size)) {
		ret = error_set(error, errno, "listen on port %u", port);
		close(fd);
		return ret;
	}
	*bound = ntohs(name.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&name)->sin6_port
						  : ((struct sockaddr_in *)&name)->sin_port);
	return fd;
}

void tcp_peer(const struct sockaddr_storage *from, struct transport_peer *peer)
{
	const struct sockaddr_in *v4 = (const void *)from;
	const struct sockaddr_in6 *v6 = (const void *)from;
	struct in6_addr address = {0};

	if (from->ss_family == AF_INET6) {
		address = v6->sin6_addr;
	} else if (from->ss_family == AF_INET) {
		address.s6_addr[10] = address.s6_addr[11] = 0xff;
		memcpy(&address.s6_addr[12], &v4->sin_addr, 4);
	}
	_Static_assert(sizeof(address) == sizeof(peer->key), "an address is a key");
	memcpy(peer->key, &address, sizeof(peer->key));
	if (IN6_IS_ADDR_V4MAPPED(&address))
		inet_ntop(AF_INET, &address.s6_addr[12], peer->text, sizeof(peer->text));
	else
		inet_ntop(AF_INET6, &address, peer->text, sizeof(peer->text));
}

int tcp_connect(const char *host, uint16_t port, unsigned seconds, struct error *error)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
	struct timeval patience = {.tv_sec = seconds};
	char service[8];
	int fd = -1, cause = 0, ret;

	snprintf(service, sizeof(service), "%u", port);
	ret = resolve_host(host, service, &hints, &list, error);
	if (ret)
		return ret;
	for (const struct addrinfo *at = list; at && fd < 0; at = at->ai_next) {
		fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		/* The limit on sending holds for connecting too. */
		if (fd >= 0 &&
			(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) ||
				setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience,
					sizeof(patience)) ||
				connect(fd, at->ai_addr, at->ai_addrlen))) {
			cause = errno == EINPROGRESS ? ETIMEDOUT : errno;
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(list);
	return fd >= 0 ? fd : error_set(error, cause, "%s:%u", host, port);
}

int transport_own_address(int fd, char host[64])
{
	struct sockaddr_storage own = {0};
	socklen_t size = sizeof(own);
	char text[INET6_ADDRSTRLEN];

	if (getsockname(fd, (struct sockaddr *)&own, &size))
		return -errno;
	if ((own.ss_family != AF_INET && own.ss_family != AF_INET6) ||
		getnameinfo((struct sockaddr *)&own, size, text, sizeof(text), NULL, 0,
			NI_NUMERICHOST))
		return -EAFNOSUPPORT;
	snprintf(host, 64, own.ss_family == AF_INET ? "%s" : "[%s]", text);
	return 0;
}
