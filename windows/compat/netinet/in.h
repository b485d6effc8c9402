/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VCUDA_COMPAT_NETINET_IN_H
#define VCUDA_COMPAT_NETINET_IN_H
#include <stdint.h>
#include <sys/socket.h>

struct in_addr {
	uint32_t s_addr;
};
struct in6_addr {
	uint8_t s6_addr[16];
};
struct sockaddr_in {
	sa_family_t sin_family;
	uint16_t sin_port;
	struct in_addr sin_addr;
	char sin_zero[8];
};
struct sockaddr_in6 {
	sa_family_t sin6_family;
	uint16_t sin6_port;
	uint32_t sin6_flowinfo;
	struct in6_addr sin6_addr;
	uint32_t sin6_scope_id;
};
#define INET6_ADDRSTRLEN 65 /* Microsoft's: with a scope and a port */
#define IPPROTO_TCP 6
#define IPPROTO_IPV6 41
#define IPV6_V6ONLY 27
static inline int in6_is_v4mapped(const struct in6_addr *a)
{
	for (int i = 0; i < 10; i++)
		if (a->s6_addr[i])
			return 0;
	return a->s6_addr[10] == 0xff && a->s6_addr[11] == 0xff;
}
#define IN6_IS_ADDR_V4MAPPED(a) in6_is_v4mapped(a)
static inline uint16_t htons(uint16_t n)
{
	return __builtin_bswap16(n);
}
static inline uint16_t ntohs(uint16_t n)
{
	return __builtin_bswap16(n);
}
#endif
