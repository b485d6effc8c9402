/* SPDX-License-Identifier: Apache-2.0
 *
 * See wire.h.  These come before libc's functions, and before those of a sanitizer, in the
 * program and in its libraries; with a descriptor that is not ours they ask the kernel.
 */
#include "tests/fuzz/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define FIRST 1000000 /* no kernel gives such a number */
#define FILES 128u
#define SAID_MOST (256u * 1024) /* and nobody reads: as a socket, it takes no more */

enum kind { NONE, SOCKET, EPOLL, TIMER };

static struct file {
	enum kind kind;
	bool connected, accepted, watched;
	struct epoll_event event;
	uint64_t due; /* a timer's, ns; 0: never */
	unsigned char *said;
	size_t room, length, at;
} files[FILES];
static unsigned file_count, turn;
static bool on;

static struct file *of(int fd)
{
	struct file *f =
		fd >= FIRST && fd < FIRST + (int)file_count ? &files[fd - FIRST] : NULL;

	return f && f->kind ? f : NULL;
}

static int failed(int error)
{
	errno = error;
	return -1;
}

/* Numbers are not given twice in a conversation. */
static int new_file(enum kind kind)
{
	struct file *f = &files[file_count];
	unsigned char *said = f->said;
	size_t room = f->room;

	if (file_count == FILES)
		return failed(EMFILE);
	*f = (struct file){.kind = kind, .said = said, .room = room};
	return FIRST + (int)file_count++;
}

void wire_begin(void)
{
	file_count = turn = 0;
	on = true;
}

void wire_end(void)
{
	on = false;
	for (unsigned i = 0; i < file_count; i++)
		if (files[i].kind)
			abort();
}

int wire_accept(void)
{
	for (unsigned i = 0; i < file_count; i++)
		if (files[i].connected && !files[i].accepted) {
			files[i].accepted = true;
			return FIRST + (int)i;
		}
	return -1;
}

void wire_say(int peer, const void *bytes, size_t n)
{
	struct file *f = of(peer);

	if (!f || !n || n > SAID_MOST - f->length)
		return;
	if (f->length + n > f->room) {
		f->room = SAID_MOST;
		f->said = realloc(f->said, f->room);
		if (!f->said)
			abort();
	}
	memcpy(f->said + f->length, bytes, n);
	f->length += n;
}

/* ---- the calls of who talks ---- */

#pragma GCC visibility push(default) /* for libhiredis */

int socket(int domain, int type, int protocol)
{
	return on ? new_file(SOCKET) : (int)syscall(SYS_socket, domain, type, protocol);
}

int connect(int fd, const struct sockaddr *address, socklen_t n)
{
	struct file *f = of(fd);

	if (!f)
		return (int)syscall(SYS_connect, fd, address, n);
	f->connected = true;
	return 0;
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *n)
{
	if (!of(fd))
		return (int)syscall(SYS_getsockopt, fd, level, name, value, n);
	memset(value, 0, *n);
	return 0;
}

int fcntl(int fd, int command, ...)
{
	va_list arguments;
	long argument;

	va_start(arguments, command);
	argument = va_arg(arguments, long);
	va_end(arguments);
	return of(fd) ? 0 : (int)syscall(SYS_fcntl, fd, command, argument);
}

static ssize_t read_timer(struct file *f, void *bytes, size_t n)
{
	const uint64_t times = 1;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!f->due || f->due > (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec)
		return failed(EAGAIN);
	f->due = 0;
	memcpy(bytes, &times, n < sizeof(times) ? n : sizeof(times));
	return sizeof(times);
}

ssize_t read(int fd, void *bytes, size_t n)
{
	struct file *f = of(fd);

	if (!f)
		return syscall(SYS_read, fd, bytes, n);
	if (f->kind == TIMER)
		return read_timer(f, bytes, n);
	if (f->at == f->length)
		return failed(EAGAIN);
	if (n > f->length - f->at)
		n = f->length - f->at;
	memcpy(bytes, f->said + f->at, n);
	f->at += n;
	if (f->at == f->length)
		f->at = f->length = 0;
	return (ssize_t)n;
}

/* The peer does not look at it. */
ssize_t write(int fd, const void *bytes, size_t n)
{
	return of(fd) ? (ssize_t)n : syscall(SYS_write, fd, bytes, n);
}

int close(int fd)
{
	struct file *f = of(fd);

	if (!f)
		return (int)syscall(SYS_close, fd);
	f->kind = NONE;
	f->connected = f->watched = false;
	return 0;
}

int epoll_create1(int flags)
{
	return on ? new_file(EPOLL) : (int)syscall(SYS_epoll_create1, flags);
}

/* There is one epoll at a time. Processes, which are watched too, do not end. */
int epoll_ctl(int epoll, int what, int fd, struct epoll_event *event)
{
	struct file *f = of(fd);

	if (!of(epoll))
		return (int)syscall(SYS_epoll_ctl, epoll, what, fd, event);
	if (f && (what == EPOLL_CTL_ADD) == f->watched)
		return failed(f->watched ? EEXIST : ENOENT);
	if (f)
		f->watched = what != EPOLL_CTL_DEL;
	if (f && f->watched)
		f->event = *event;
	return 0;
}

static uint32_t ready(const struct file *f, uint64_t now)
{
	uint32_t mask = f->kind == SOCKET ? EPOLLOUT : 0;

	if (f->at < f->length || (f->due && f->due <= now))
		mask |= EPOLLIN;
	return f->watched ? mask & f->event.events : 0;
}

/* One of those that are ready, in turn. */
int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout)
{
	struct timespec t;

	if (!of(epoll))
		return (int)syscall(SYS_epoll_pwait, epoll, events, most, timeout, NULL, 8);
	clock_gettime(CLOCK_MONOTONIC, &t);
	for (unsigned i = 0; i < file_count; i++) {
		struct file *f = &files[(turn + i) % file_count];
		uint32_t mask =
			ready(f, (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec);

		if (!mask)
			continue;
		turn = (turn + i + 1) % file_count;
		events[0] = f->event;
		events[0].events = mask;
		return 1;
	}
	return 0;
}

int timerfd_create(int clock, int flags)
{
	return on ? new_file(TIMER) : (int)syscall(SYS_timerfd_create, clock, flags);
}

int timerfd_settime(int fd, int flags, const struct itimerspec *spec, struct itimerspec *before)
{
	struct file *f = of(fd);

	if (!f)
		return (int)syscall(SYS_timerfd_settime, fd, flags, spec, before);
	f->due = (uint64_t)spec->it_value.tv_sec * 1000000000u +
		 (uint64_t)spec->it_value.tv_nsec;
	return 0;
}

#pragma GCC visibility pop
