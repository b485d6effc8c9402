/* SPDX-License-Identifier: Apache-2.0
 *
 * Waiting for descriptors: see os.h.
 */
#include <winsock2.h>
#include <errno.h>

#include "windows/os/descriptor_object.h"

#define POLL_MOST 160

/* What is known without asking Winsock. */
static short ready_now(struct os_object *object, short events)
{
	short ready = 0;
	bool closed;

	if (object->kind == OS_COUNTER) {
		os_lock(object);
		if (object->count)
			ready = events & OS_POLLIN;
		os_unlock(object);
	} else if (object->kind == OS_END) {
		closed = os_end_closed(object);
		os_lock(object);
		if (object->first || closed)
			ready = events & OS_POLLIN;
		os_unlock(object);
		if (closed)
			ready |= OS_POLLHUP | (events & OS_POLLRDHUP);
		ready |= events & OS_POLLOUT;
	}
	return ready;
}

static short to_winsock(short events)
{
	return (short)((events & OS_POLLIN ? POLLRDNORM : 0) |
		       (events & OS_POLLOUT ? POLLWRNORM : 0));
}

static short from_winsock(short got, short events)
{
	return (short)((got & POLLRDNORM ? events & OS_POLLIN : 0) |
		       (got & POLLWRNORM ? events & OS_POLLOUT : 0) |
		       (got & POLLERR ? OS_POLLERR : 0) |
		       (got & POLLHUP ? OS_POLLHUP | (events & OS_POLLIN) : 0) |
		       (got & POLLNVAL ? OS_POLLNVAL : 0));
}

/* A byte came late, when what it told of was read already. */
static void quiet(struct os_object *object)
{
	char byte;

	os_lock(object);
	if (!object->awake)
		recv(object->socket, &byte, 1, 0);
	os_unlock(object);
}

struct waiting {
	struct os_object *objects[POLL_MOST];
	WSAPOLLFD sockets[POLL_MOST];
	unsigned long from[POLL_MOST]; /* which of the caller's */
	unsigned long count;
};

/* How many of FDS are ready; WAITING gets what Winsock is to be asked for. */
static int look(struct os_pollfd *fds, unsigned long count, struct waiting *waiting)
{
	int ready = 0;

	waiting->count = 0;
	for (unsigned long i = 0; i < count; i++) {
		struct os_object *object;
		unsigned long at = waiting->count;

		fds[i].revents = 0;
		if (fds[i].fd < 0)
			continue;
		object = os_get(fds[i].fd);
		if (!object) {
			fds[i].revents = OS_POLLNVAL;
			ready++;
			continue;
		}
		fds[i].revents = ready_now(object, fds[i].events);
		ready += fds[i].revents != 0;
		if (object->socket == INVALID_SOCKET) {
			os_put(object);
			continue;
		}
		waiting->objects[at] = object;
		waiting->from[at] = i;
		waiting->sockets[at] = (WSAPOLLFD){.fd = object->socket,
			.events = object->kind == OS_SOCKET ? to_winsock(fds[i].events)
							    : POLLRDNORM};
		waiting->count++;
	}
	return ready;
}

static void wait_for(struct waiting *waiting, uint64_t ns)
{
	uint64_t ms = ns / 1000000 + (ns % 1000000 != 0);

	if (waiting->count)
		WSAPoll(waiting->sockets, waiting->count, ms > 60000 ? 60000 : (int)ms);
	else
		Sleep(ms > 60000 ? 60000 : (DWORD)ms);
}

/* What Winsock said. How many are ready that were not. */
static int take(struct os_pollfd *fds, struct waiting *waiting)
{
	int ready = 0;

	for (unsigned long i = 0; i < waiting->count; i++) {
		struct os_object *object = waiting->objects[i];
		struct os_pollfd *fd = &fds[waiting->from[i]];
		short before = fd->revents;

		if (object->kind == OS_SOCKET)
			fd->revents |= from_winsock(waiting->sockets[i].revents, fd->events);
		else if (waiting->sockets[i].revents) {
			fd->revents |= ready_now(object, fd->events);
			if (!fd->revents)
				quiet(object);
		}
		ready += !before && fd->revents;
		os_put(object);
	}
	return ready;
}

static uint64_t now(void)
{
	static LARGE_INTEGER frequency;
	LARGE_INTEGER ticks;

	if (!frequency.QuadPart)
		QueryPerformanceFrequency(&frequency);
	QueryPerformanceCounter(&ticks);
	return (uint64_t)((double)ticks.QuadPart * 1e9 / (double)frequency.QuadPart);
}

int os_poll(struct os_pollfd *fds, unsigned long count, uint64_t ns)
{
	uint64_t since = now(), passed = 0;
	struct waiting waiting;

	if (count > POLL_MOST) {
		errno = EINVAL;
		return -1;
	}
	for (;;) {
		int ready = look(fds, count, &waiting);

		wait_for(&waiting, ready || passed >= ns ? 0 : ns - passed);
		ready += take(fds, &waiting);
		if (ready)
			return ready;
		passed = now() - since;
		if (passed >= ns)
			return 0;
	}
}
