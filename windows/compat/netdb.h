/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VCUDA_COMPAT_NETDB_H
#define VCUDA_COMPAT_NETDB_H
#include <netinet/in.h>

struct addrinfo {
	int ai_flags, ai_family, ai_socktype, ai_protocol;
	size_t ai_addrlen_;
	char *ai_canonname;
	struct sockaddr *ai_addr;
	struct addrinfo *ai_next;
};
#define ai_addrlen ai_addrlen_
#define AI_PASSIVE 0x1
#define AI_NUMERICSERV 0x8
#define NI_NUMERICHOST 0x2
#define NI_NUMERICSERV 0x8
#define NI_MAXHOST 1025
#define EAI_AGAIN 11002
#define EAI_NONAME 11001
#define EAI_NODATA 11004
static inline int getaddrinfo(const char *host, const char *service,
	const struct addrinfo *hints, struct addrinfo **list)
{
	return os_getaddrinfo(host, service, hints, (void **)list);
}
#define freeaddrinfo(list) os_freeaddrinfo(list)
#define gai_strerror(code) os_gai_strerror(code)
#define getnameinfo(at, size, host, h, service, s, flags)                                      \
	os_getnameinfo(at, size, host, h, service, s, flags)
#endif
