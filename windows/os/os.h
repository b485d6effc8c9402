/* SPDX-License-Identifier: Apache-2.0
 *
 * What the client's code asks of Linux, done by Windows.  The headers of windows/compat/ give
 * these functions their POSIX names; neither side sees the other's headers.  Results and errno
 * are as on Linux.  Any thread.
 *
 * Descriptors of this table begin at OS_FIRST: sockets, counters (eventfd), memory (memfd), and
 * the ends of pairs, over which messages and descriptors pass within the process.  Smaller
 * numbers are the C library's files.
 */
#ifndef VCUDA_WINDOWS_OS_OS_H
#define VCUDA_WINDOWS_OS_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OS_FIRST 0x10000
#define OS_PAIR_FDS 4 /* descriptors that a message over a pair may carry */

struct os_iovec {
	void *iov_base;
	size_t iov_len;
};

struct os_msghdr {
	void *msg_name;
	unsigned msg_namelen;
	struct os_iovec *msg_iov;
	size_t msg_iovlen;
	void *msg_control;
	size_t msg_controllen;
	int msg_flags;
};

struct os_cmsghdr {
	size_t cmsg_len;
	int cmsg_level;
	int cmsg_type;
};

struct os_pollfd {
	int fd;
	short events;
	short revents;
};

#define OS_POLLIN 0x001
#define OS_POLLOUT 0x004
#define OS_POLLERR 0x008
#define OS_POLLHUP 0x010
#define OS_POLLNVAL 0x020
#define OS_POLLRDHUP 0x2000

#define OS_MSG_PEEK 0x2
#define OS_MSG_WAITALL 0x100
#define OS_MSG_TRUNC 0x20
#define OS_MSG_DONTWAIT 0x40
#define OS_MSG_NOSIGNAL 0x4000
#define OS_MSG_CMSG_CLOEXEC 0x40000000

/* descriptors.c; files go to the C library. */
int os_close(int fd);
int os_read(int fd, void *bytes, unsigned n);
int os_write(int fd, const void *bytes, unsigned n);
int os_dup(int fd);
int os_get_flags(int fd); /* O_NONBLOCK: 0x800 */
int os_set_flags(int fd, int flags);
/* Until one is ready, NS at the most (UINT64_MAX: for ever). */
int os_poll(struct os_pollfd *fds, unsigned long count, uint64_t ns);
int os_eventfd(unsigned count, bool nonblocking);
/* What connects by AF_UNIX, whatever the path, gets one end of a pair; by then ACCEPT has the
 * other one. Nobody serves, or ACCEPT says false: ENOENT. */
void os_serve(bool (*accept)(int fd));

/* socket.c */
int os_socket(int family, int type, bool nonblocking);
int os_connect(int fd, const void *address, int size);
long long os_send(int fd, const void *bytes, size_t n, int flags);
long long os_recv(int fd, void *bytes, size_t n, int flags);
long long os_sendmsg(int fd, const struct os_msghdr *message, int flags);
long long os_recvmsg(int fd, struct os_msghdr *message, int flags);
int os_setsockopt(int fd, int level, int name, const void *value, int size);
int os_getsockopt(int fd, int level, int name, void *value, int *size);
int os_getsockname(int fd, void *address, int *size);
int os_shutdown(int fd, int how);
int os_getaddrinfo(const char *host, const char *service, const void *hints, void **list);
void os_freeaddrinfo(void *list);
const char *os_gai_strerror(int code);
int os_getnameinfo(const void *address, int size, char *host, unsigned host_size, char *service,
	unsigned service_size, int flags);
int os_inet_pton(int family, const char *text, void *address);
const char *os_inet_ntop(int family, const void *address, char *text, size_t size);
/* An errno of Winsock's, as Linux has it. */
int os_socket_errno(void);

/* mapping.c */
int os_memory_create(void);
int os_memory_resize(int fd, uint64_t size);
int64_t os_memory_size(int fd); /* -1: it is none */
long long os_memory_transfer(int fd, void *bytes, size_t n, uint64_t at, bool write);
/* ADDRESS NULL: anywhere; else there or not at all. FD -1: private memory. ACCESS: 0 reserves
 * only, 1 read, 3 read and write. NULL: errno. */
void *os_map(void *address, uint64_t size, unsigned access, int fd);
int os_unmap(void *address, uint64_t size);
bool os_usable(uint64_t from, uint64_t to, bool write);

/* os.c */
void os_futex_wait(volatile uint32_t *word, uint32_t value, uint64_t ns);
void os_futex_wake(volatile uint32_t *word);
uint32_t os_thread_id(void);
unsigned os_cores(void);
const char *os_program(void); /* its file's name without folder and .exe */
int os_module_of(const void *address, char *path, size_t size); /* 0: its file is PATH */
int os_hostname(char *name, size_t size);
const char *os_strerror(int code);
/* The agent that a vcuda.exe -role client of this user names (agent_address.h). */
bool os_place(char *agent, size_t size);
/* FUNCTION is called by exit(), of whichever C library the program has, if anything has
 * connected by then. */
void os_at_exit(void (*function)(void));
void os_exit_arm(void);
int os_open(const char *path, int flags, int mode);
/* A file's, or a descriptor's where PATH is NULL. 0, or -1: errno. */
struct os_stat {
	unsigned st_mode, st_uid;
	uint64_t st_dev, st_ino;
	int64_t st_size;
	struct {
		int64_t tv_sec, tv_nsec;
	} st_mtim;
};
int os_status(const char *path, int fd, struct os_stat *status);

#endif
