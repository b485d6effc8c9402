/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of the C library that give the program's buffers to system calls.  Where managed
 * memory is watched by SIGSEGV the kernel cannot wait for a page of it, and says EFAULT: so the
 * pages are fetched first.
 */
#undef _FORTIFY_SOURCE
/* glibc_2_17.h's name for it is for callers; here it is interposed. */
#undef getrandom

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/guard.h"
#include "shim/loader/linked.h"
#include "shim/loader/loader.h"

EXPORTED struct vcuda_guard vcuda_guard = {.linked = linked_number};

static inline void reach(const void *at, size_t n, bool write)
{
	void (*function)(uintptr_t, size_t, bool) =
		atomic_load_explicit(&vcuda_guard.reach, memory_order_acquire);

	if (__builtin_expect(function && n, 0))
		function((uintptr_t)at, n, write);
}

void loader_reach(const void *at, size_t n, bool write)
{
	reach(at, n, write);
}

/* It is read here as the system call is going to. */
void loader_reach_text(const char *text)
{
	if (__builtin_expect(
		    atomic_load_explicit(&vcuda_guard.reach, memory_order_relaxed) != NULL,
		    0) &&
		text)
		reach(text, strlen(text) + 1, false);
}

static void reach_all(const struct iovec *v, int count, bool write)
{
	if (!atomic_load_explicit(&vcuda_guard.reach, memory_order_relaxed))
		return;
	for (int i = 0; i < count; i++)
		reach(v[i].iov_base, v[i].iov_len, write);
}

static void reach_message(const struct msghdr *message, bool write)
{
	if (!message || !atomic_load_explicit(&vcuda_guard.reach, memory_order_relaxed))
		return;
	reach_all(message->msg_iov, (int)message->msg_iovlen, write);
	reach(message->msg_control, message->msg_controllen, write);
}

void *loader_next(const char *name, void *_Atomic *known)
{
	void *found = atomic_load_explicit(known, memory_order_acquire);

	if (__builtin_expect(!found, 0)) {
		found = dlsym(RTLD_NEXT, name);
		atomic_store_explicit(known, found, memory_order_release);
	}
	return found;
}

EXPORTED ssize_t read(int fd, void *buf, size_t n)
{
	reach(buf, n, true);
	return NEXT(read)(fd, buf, n);
}

EXPORTED ssize_t write(int fd, const void *buf, size_t n)
{
	reach(buf, n, false);
	return NEXT(write)(fd, buf, n);
}

EXPORTED ssize_t pread(int fd, void *buf, size_t n, off_t at)
{
	reach(buf, n, true);
	return NEXT(pread)(fd, buf, n, at);
}

EXPORTED ssize_t pread64(int fd, void *buf, size_t n, off64_t at)
{
	reach(buf, n, true);
	return NEXT(pread64)(fd, buf, n, at);
}

EXPORTED ssize_t pwrite(int fd, const void *buf, size_t n, off_t at)
{
	reach(buf, n, false);
	return NEXT(pwrite)(fd, buf, n, at);
}

EXPORTED ssize_t pwrite64(int fd, const void *buf, size_t n, off64_t at)
{
	reach(buf, n, false);
	return NEXT(pwrite64)(fd, buf, n, at);
}

EXPORTED ssize_t readv(int fd, const struct iovec *v, int count)
{
	reach_all(v, count, true);
	return NEXT(readv)(fd, v, count);
}

EXPORTED ssize_t writev(int fd, const struct iovec *v, int count)
{
	reach_all(v, count, false);
	return NEXT(writev)(fd, v, count);
}

EXPORTED ssize_t preadv(int fd, const struct iovec *v, int count, off_t at)
{
	reach_all(v, count, true);
	return NEXT(preadv)(fd, v, count, at);
}

EXPORTED ssize_t pwritev(int fd, const struct iovec *v, int count, off_t at)
{
	reach_all(v, count, false);
	return NEXT(pwritev)(fd, v, count, at);
}

EXPORTED ssize_t recv(int fd, void *buf, size_t n, int flags)
{
	reach(buf, n, true);
	return NEXT(recv)(fd, buf, n, flags);
}

EXPORTED ssize_t send(int fd, const void *buf, size_t n, int flags)
{
	reach(buf, n, false);
	return NEXT(send)(fd, buf, n, flags);
}

EXPORTED ssize_t recvfrom(
	int fd, void *buf, size_t n, int flags, struct sockaddr *from, socklen_t *length)
{
	reach(buf, n, true);
	return NEXT(recvfrom)(fd, buf, n, flags, from, length);
}

EXPORTED ssize_t sendto(int fd, const void *buf, size_t n, int flags, const struct sockaddr *to,
	socklen_t length)
{
	reach(buf, n, false);
	return NEXT(sendto)(fd, buf, n, flags, to, length);
}

EXPORTED ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	reach_message(message, true);
	return NEXT(recvmsg)(fd, message, flags);
}

EXPORTED ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	reach_message(message, false);
	return NEXT(sendmsg)(fd, message, flags);
}

/* Large ones go past the stream's own buffer. */
EXPORTED size_t fread(void *buf, size_t size, size_t n, FILE *stream)
{
	reach(buf, size * n, true);
	return NEXT(fread)(buf, size, n, stream);
}

EXPORTED size_t fwrite(const void *buf, size_t size, size_t n, FILE *stream)
{
	reach(buf, size * n, false);
	return NEXT(fwrite)(buf, size, n, stream);
}

EXPORTED ssize_t getrandom(void *buf, size_t n, unsigned flags)
{
	reach(buf, n, true);
	return NEXT(getrandom)(buf, n, flags);
}

/* What programs that are built with _FORTIFY_SOURCE call. */
EXPORTED ssize_t __read_chk(int fd, void *buf, size_t n, size_t room);
EXPORTED ssize_t __pread_chk(int fd, void *buf, size_t n, off_t at, size_t room);
EXPORTED ssize_t __pread64_chk(int fd, void *buf, size_t n, off64_t at, size_t room);
EXPORTED ssize_t __recv_chk(int fd, void *buf, size_t n, size_t room, int flags);
EXPORTED size_t __fread_chk(void *buf, size_t room, size_t size, size_t n, FILE *stream);

ssize_t __read_chk(int fd, void *buf, size_t n, size_t room)
{
	reach(buf, n, true);
	return NEXT(__read_chk)(fd, buf, n, room);
}

ssize_t __pread_chk(int fd, void *buf, size_t n, off_t at, size_t room)
{
	reach(buf, n, true);
	return NEXT(__pread_chk)(fd, buf, n, at, room);
}

ssize_t __pread64_chk(int fd, void *buf, size_t n, off64_t at, size_t room)
{
	reach(buf, n, true);
	return NEXT(__pread64_chk)(fd, buf, n, at, room);
}

ssize_t __recv_chk(int fd, void *buf, size_t n, size_t room, int flags)
{
	reach(buf, n, true);
	return NEXT(__recv_chk)(fd, buf, n, room, flags);
}

size_t __fread_chk(void *buf, size_t room, size_t size, size_t n, FILE *stream)
{
	reach(buf, size * n, true);
	return NEXT(__fread_chk)(buf, room, size, n, stream);
}
