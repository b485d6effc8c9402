/* SPDX-License-Identifier: Apache-2.0
 *
 * What a descriptor of os.h stands for: for the files of this folder only, after <winsock2.h>.
 */
#ifndef VCUDA_WINDOWS_OS_DESCRIPTOR_OBJECT_H
#define VCUDA_WINDOWS_OS_DESCRIPTOR_OBJECT_H

#include <stdatomic.h>

#include "windows/os/os.h"

enum os_kind { OS_SOCKET, OS_COUNTER, OS_MEMORY, OS_END };

struct os_message {
	struct os_message *next;
	size_t size;
	unsigned count;
	struct os_object *objects[OS_PAIR_FDS];
	unsigned char bytes[];
};

struct os_object {
	enum os_kind kind;
	_Atomic int references;
	SRWLOCK lock;
	uintptr_t socket; /* OS_SOCKET; else of the pair by which others wake poll() */
	bool nonblocking, awake;
	uint32_t receive_ms, send_ms; /* SO_RCVTIMEO, SO_SNDTIMEO; 0: for ever */
	uint64_t count;		      /* OS_COUNTER */
	void *section;		      /* OS_MEMORY */
	uint64_t size;
	struct os_object *peer; /* OS_END; NULL: the other end is closed */
	struct os_message *first, **last;
};

struct os_object *os_object_new(enum os_kind kind);
/* Holds it until os_put; NULL and EBADF: no such descriptor. */
struct os_object *os_get(int fd);
void os_put(struct os_object *object);
/* A number for OBJECT, whose reference it takes; -1: errno. */
int os_install(struct os_object *object);
int os_end_connect(struct os_object *end);
long long os_end_send(struct os_object *end, const struct os_iovec *parts, size_t count,
	const int *fds, unsigned n);
/* The next message; *fds gets up to OS_PAIR_FDS new descriptors. 0: the other end is closed. */
long long os_end_receive(
	struct os_object *end, void *bytes, size_t n, int *fds, unsigned *count, bool peek);

/* With OBJECT's lock held: there is something to read, or is not any more. */
void os_wake(struct os_object *object, bool readable);
/* Its other end is gone. */
bool os_end_closed(struct os_object *end);
/* Its last reference goes. */
void os_end_close(struct os_object *end);

static inline void os_lock(struct os_object *object)
{
	AcquireSRWLockExclusive(&object->lock);
}

static inline void os_unlock(struct os_object *object)
{
	ReleaseSRWLockExclusive(&object->lock);
}

#endif
