/* SPDX-License-Identifier: Apache-2.0
 *
 * Structs and numbers as Winsock has them.
 */
#ifndef VCUDA_COMPAT_SYS_SOCKET_H
#define VCUDA_COMPAT_SYS_SOCKET_H
#include <errno.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "windows/os/os.h"

typedef int socklen_t;
typedef unsigned short sa_family_t;
struct sockaddr {
	sa_family_t sa_family;
	char sa_data[14];
};
struct sockaddr_storage {
	sa_family_t ss_family;
	char pad[6];
	_Alignas(8) char bytes[120];
};
struct linger {
	unsigned short l_onoff, l_linger;
};
struct ucred {
	int pid;
	unsigned uid, gid;
};
#define msghdr os_msghdr
#define cmsghdr os_cmsghdr
#define CMSG_ALIGN(n) (((n) + sizeof(size_t) - 1) & ~(sizeof(size_t) - 1))
#define CMSG_SPACE(n) (CMSG_ALIGN(n) + CMSG_ALIGN(sizeof(struct cmsghdr)))
#define CMSG_LEN(n) (CMSG_ALIGN(sizeof(struct cmsghdr)) + (n))
#define CMSG_DATA(c) ((unsigned char *)((struct cmsghdr *)(c) + 1))
#define CMSG_FIRSTHDR(m)                                                                       \
	((m)->msg_controllen >= sizeof(struct cmsghdr) ? (struct cmsghdr *)(m)->msg_control    \
						       : (struct cmsghdr *)0)
static inline struct cmsghdr *CMSG_NXTHDR(const struct msghdr *m, const struct cmsghdr *c)
{
	const char *next = (const char *)c + CMSG_ALIGN(c->cmsg_len);

	return next + sizeof(*c) > (const char *)m->msg_control + m->msg_controllen
		       ? NULL
		       : (struct cmsghdr *)next;
}

#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 23
#define SOCK_STREAM 1
#define SOCK_DGRAM 2
#define SOCK_SEQPACKET 5
#define SOCK_CLOEXEC 0x80000
#define SOCK_NONBLOCK 0x800
#define SOL_SOCKET 0xffff
#define SCM_RIGHTS 1
#define SO_REUSEADDR 0x0004
#define SO_KEEPALIVE 0x0008
#define SO_LINGER 0x0080
#define SO_SNDBUF 0x1001
#define SO_RCVBUF 0x1002
#define SO_SNDTIMEO 0x1005
#define SO_RCVTIMEO 0x1006
#define SO_ERROR 0x1007
#define SO_SNDBUFFORCE SO_SNDBUF
#define SO_RCVBUFFORCE SO_RCVBUF
#define SO_PEERCRED 0x7fff
#define SHUT_WR 1
#define SHUT_RDWR 2
#define MSG_PEEK OS_MSG_PEEK
#define MSG_WAITALL OS_MSG_WAITALL
#define MSG_TRUNC OS_MSG_TRUNC
#define MSG_DONTWAIT OS_MSG_DONTWAIT
#define MSG_NOSIGNAL OS_MSG_NOSIGNAL
#define MSG_CMSG_CLOEXEC OS_MSG_CMSG_CLOEXEC

static inline int socket(int family, int type, int protocol)
{
	(void)protocol;
	return os_socket(family, type & 0xf, type & SOCK_NONBLOCK);
}
static inline int accept4(int fd, struct sockaddr *from, socklen_t *size, int flags)
{
	(void)fd, (void)from, (void)size, (void)flags;
	errno = EOPNOTSUPP; /* nobody connects to a client */
	return -1;
}
static inline int bind(int fd, const struct sockaddr *at, socklen_t size)
{
	(void)fd, (void)at, (void)size;
	errno = EOPNOTSUPP;
	return -1;
}
static inline int listen(int fd, int backlog)
{
	(void)fd, (void)backlog;
	errno = EOPNOTSUPP;
	return -1;
}
int connect(int fd, const void *to, socklen_t size) __asm__("os_connect");
long long send(int fd, const void *bytes, size_t n, int flags) __asm__("os_send");
long long recv(int fd, void *bytes, size_t n, int flags) __asm__("os_recv");
long long sendmsg(int fd, const struct msghdr *message, int flags) __asm__("os_sendmsg");
long long recvmsg(int fd, struct msghdr *message, int flags) __asm__("os_recvmsg");
int setsockopt(int fd, int level, int name, const void *value, socklen_t size) __asm__(
	"os_setsockopt");
int getsockopt(int fd, int level, int name, void *value, socklen_t *size) __asm__(
	"os_getsockopt");
int getsockname(int fd, void *at, socklen_t *size) __asm__("os_getsockname");
int shutdown(int fd, int how) __asm__("os_shutdown");
#endif
