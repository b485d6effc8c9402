/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of descriptors, and counters: see os.h.  WSAPoll waits for sockets only, so
 * what is none of them has one of its own, a datagram socket that is connected to itself: a
 * byte lies in it while there is something to read.
 */
#include <winsock2.h>
#include <ws2tcpip.h>
#include <errno.h>
#include <io.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "windows/os/descriptor_object.h"

#define ROOM 16384 /* descriptors of a process */
#define NONBLOCK 0x800

static SRWLOCK table_lock = SRWLOCK_INIT;
static struct os_object *table[ROOM];
static int lowest; /* no number below it is free */

/* ---- objects ---- */

static BOOL CALLBACK winsock_open(INIT_ONCE *once, void *argument, void **context)
{
	WSADATA data;

	(void)once, (void)argument, (void)context;
	return !WSAStartup(MAKEWORD(2, 2), &data);
}

/* A socket that reads what it sends. */
static SOCKET self_socket(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	int size = sizeof(at);
	u_long one = 1;
	SOCKET made = socket(AF_INET, SOCK_DGRAM, 0);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (made != INVALID_SOCKET && !bind(made, (struct sockaddr *)&at, sizeof(at)) &&
		!getsockname(made, (struct sockaddr *)&at, &size) &&
		!connect(made, (struct sockaddr *)&at, size) &&
		!ioctlsocket(made, FIONBIO, &one))
		return made;
	if (made != INVALID_SOCKET)
		closesocket(made);
	return INVALID_SOCKET;
}

struct os_object *os_object_new(enum os_kind kind)
{
	static INIT_ONCE once = INIT_ONCE_STATIC_INIT;
	struct os_object *made = calloc(1, sizeof(*made));

	if (!made) {
		errno = ENOMEM;
		return NULL;
	}
	made->kind = kind;
	made->references = 1;
	made->last = &made->first;
	made->socket = INVALID_SOCKET;
	InitializeSRWLock(&made->lock);
	if (kind != OS_MEMORY && !InitOnceExecuteOnce(&once, winsock_open, NULL, NULL)) {
		free(made);
		errno = ENETDOWN;
		return NULL;
	}
	if (kind != OS_COUNTER && kind != OS_END)
		return made;
	made->socket = self_socket();
	if (made->socket == INVALID_SOCKET) {
		os_socket_errno();
		free(made);
		return NULL;
	}
	return made;
}

void os_wake(struct os_object *object, bool readable)
{
	char byte = 0;

	if (readable == object->awake)
		return;
	object->awake = readable;
	if (readable)
		send(object->socket, &byte, 1, 0);
	else
		recv(object->socket, &byte, 1, 0);
}

void os_put(struct os_object *object)
{
	if (atomic_fetch_sub(&object->references, 1) != 1)
		return;
	if (object->kind == OS_END)
		os_end_close(object);
	if (object->socket != INVALID_SOCKET)
		closesocket(object->socket);
	if (object->section)
		CloseHandle(object->section);
	free(object);
}

/* ---- the table ---- */

struct os_object *os_get(int fd)
{
	struct os_object *object = NULL;

	AcquireSRWLockShared(&table_lock);
	if (fd >= OS_FIRST && fd < OS_FIRST + ROOM)
		object = table[fd - OS_FIRST];
	if (object)
		atomic_fetch_add(&object->references, 1);
	ReleaseSRWLockShared(&table_lock);
	if (!object)
		errno = EBADF;
	return object;
}

int os_install(struct os_object *object)
{
	int at;

	AcquireSRWLockExclusive(&table_lock);
	for (at = lowest; at < ROOM && table[at]; at++)
		;
	lowest = at < ROOM ? at + 1 : ROOM;
	if (at < ROOM)
		table[at] = object;
	ReleaseSRWLockExclusive(&table_lock);
	if (at < ROOM)
		return OS_FIRST + at;
	os_put(object);
	errno = EMFILE;
	return -1;
}

/* The C library ends the process where it is asked about such a number. */
static int no_file(void)
{
	errno = EBADF;
	return -1;
}

int os_close(int fd)
{
	struct os_object *object = NULL;

	if (fd < OS_FIRST)
		return fd < 0 ? no_file() : _close(fd);
	AcquireSRWLockExclusive(&table_lock);
	if (fd < OS_FIRST + ROOM) {
		object = table[fd - OS_FIRST];
		table[fd - OS_FIRST] = NULL;
		if (object && fd - OS_FIRST < lowest)
			lowest = fd - OS_FIRST;
	}
	ReleaseSRWLockExclusive(&table_lock);
	if (!object) {
		errno = EBADF;
		return -1;
	}
	os_put(object);
	return 0;
}

int os_dup(int fd)
{
	struct os_object *object = fd < OS_FIRST ? NULL : os_get(fd);

	if (fd < OS_FIRST)
		return _dup(fd);
	return object ? os_install(object) : -1;
}

int os_get_flags(int fd)
{
	struct os_object *object = os_get(fd);
	int flags = object && object->nonblocking ? NONBLOCK : 0;

	if (!object)
		return -1;
	os_put(object);
	return flags;
}

int os_set_flags(int fd, int flags)
{
	struct os_object *object = os_get(fd);

	if (!object)
		return -1;
	object->nonblocking = flags & NONBLOCK;
	os_put(object);
	return 0;
}

/* ---- counters ---- */

int os_eventfd(unsigned count, bool nonblocking)
{
	struct os_object *object = os_object_new(OS_COUNTER);

	if (!object)
		return -1;
	object->nonblocking = nonblocking;
	object->count = count;
	os_wake(object, count > 0);
	return os_install(object);
}

int os_write(int fd, const void *bytes, unsigned n)
{
	struct os_object *object = fd < OS_FIRST ? NULL : os_get(fd);
	uint64_t more;

	if (fd < OS_FIRST)
		return fd < 0 ? no_file() : _write(fd, bytes, n);
	if (!object)
		return -1;
	if (object->kind != OS_COUNTER || n != sizeof(more)) {
		os_put(object);
		errno = EINVAL;
		return -1;
	}
	memcpy(&more, bytes, sizeof(more));
	os_lock(object);
	object->count += more;
	os_wake(object, object->count > 0);
	os_unlock(object);
	os_put(object);
	return (int)n;
}

int os_read(int fd, void *bytes, unsigned n)
{
	struct os_object *object = fd < OS_FIRST ? NULL : os_get(fd);
	uint64_t count = 0;

	if (fd < OS_FIRST)
		return fd < 0 ? no_file() : _read(fd, bytes, n);
	if (!object)
		return -1;
	if (object->kind == OS_COUNTER && n == sizeof(count)) {
		os_lock(object);
		count = object->count;
		object->count = 0;
		os_wake(object, false);
		os_unlock(object);
		memcpy(bytes, &count, sizeof(count));
	}
	os_put(object);
	if (count)
		return (int)n;
	errno = n == sizeof(count) ? EAGAIN : EINVAL;
	return -1;
}
