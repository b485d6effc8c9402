/* SPDX-License-Identifier: Apache-2.0
 *
 * Pairs: messages and descriptors within the process, as over a SOCK_SEQPACKET of Unix.
 */
#include <winsock2.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "windows/os/descriptor_object.h"

static void message_free(struct os_message *message)
{
	for (unsigned i = 0; i < message->count; i++)
		os_put(message->objects[i]);
	free(message);
}

/* The last descriptor of an end went: the other one reads what there is, then the end. */
static SRWLOCK pair_lock = SRWLOCK_INIT;

void os_end_close(struct os_object *end)
{
	struct os_message *message, *next;
	struct os_object *peer;

	AcquireSRWLockExclusive(&pair_lock);
	peer = end->peer;
	end->peer = NULL;
	if (peer) {
		peer->peer = NULL;
		os_lock(peer);
		os_wake(peer, true);
		os_unlock(peer);
	}
	ReleaseSRWLockExclusive(&pair_lock);
	for (message = end->first; message; message = next) {
		next = message->next;
		message_free(message);
	}
}

bool os_end_closed(struct os_object *end)
{
	bool closed;

	AcquireSRWLockExclusive(&pair_lock);
	closed = !end->peer;
	ReleaseSRWLockExclusive(&pair_lock);
	return closed;
}

static bool (*served)(int fd);

void os_serve(bool (*accept)(int fd))
{
	served = accept;
}

int os_end_connect(struct os_object *end)
{
	struct os_object *peer = served ? os_object_new(OS_END) : NULL;
	int fd;

	if (!peer) {
		errno = served ? errno : ENOENT;
		return -1;
	}
	os_exit_arm();
	AcquireSRWLockExclusive(&pair_lock);
	peer->peer = end;
	end->peer = peer;
	ReleaseSRWLockExclusive(&pair_lock);
	fd = os_install(peer);
	if (fd < 0)
		return -1;
	if (served(fd))
		return 0;
	os_close(fd);
	errno = ENOENT;
	return -1;
}

static struct os_message *message_new(
	const struct os_iovec *parts, size_t count, const int *fds, unsigned n)
{
	struct os_message *made;
	size_t size = 0;

	for (size_t i = 0; i < count; i++)
		size += parts[i].iov_len;
	made = n > OS_PAIR_FDS ? NULL : calloc(1, sizeof(*made) + size);
	if (!made) {
		errno = ENOMEM;
		return NULL;
	}
	for (size_t i = 0; i < count; made->size += parts[i++].iov_len)
		memcpy(made->bytes + made->size, parts[i].iov_base, parts[i].iov_len);
	for (; made->count < n; made->count++) {
		made->objects[made->count] = os_get(fds[made->count]);
		if (!made->objects[made->count]) {
			message_free(made);
			return NULL;
		}
	}
	return made;
}

long long os_end_send(struct os_object *end, const struct os_iovec *parts, size_t count,
	const int *fds, unsigned n)
{
	struct os_message *message = message_new(parts, count, fds, n);
	long long size = message ? (long long)message->size : -1;
	struct os_object *peer;

	if (!message)
		return -1;
	AcquireSRWLockExclusive(&pair_lock);
	peer = end->peer;
	if (peer) {
		os_lock(peer);
		*peer->last = message;
		peer->last = &message->next;
		os_wake(peer, true);
		os_unlock(peer);
	}
	ReleaseSRWLockExclusive(&pair_lock);
	if (peer)
		return size;
	message_free(message);
	errno = EPIPE;
	return -1;
}

long long os_end_receive(
	struct os_object *end, void *bytes, size_t n, int *fds, unsigned *count, bool peek)
{
	struct os_message *message;
	long long size;
	bool closed = os_end_closed(end);

	os_lock(end);
	message = end->first;
	if (message && !peek) {
		end->first = message->next;
		if (!end->first)
			end->last = &end->first;
	}
	/* A byte is left in the socket of an end whose peer is closed. */
	if (!closed)
		os_wake(end, end->first != NULL);
	if (message) {
		size = (long long)message->size;
		memcpy(bytes, message->bytes, message->size < n ? message->size : n);
	}
	os_unlock(end);
	if (!message) {
		errno = EAGAIN;
		return closed ? 0 : -1;
	}
	if (peek)
		return size;
	*count = 0;
	for (unsigned i = 0; i < message->count; i++) {
		int fd = os_install(message->objects[i]);

		if (fd >= 0)
			fds[(*count)++] = fd;
	}
	message->count = 0;
	message_free(message);
	return size;
}
