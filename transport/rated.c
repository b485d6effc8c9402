/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/rated.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/wait.h"

#define SECOND 1000000000ull
/* What a sender may have on the wire before it is told to wait: a card's queue. */
#define AHEAD_NS 2000000ull
/* What a wire that was idle may make up for: whoever is to use it may be woken late. */
#define CREDIT_NS 20000000ull
#define PIECE (64u * 1024) /* received at once, at most … */
#define PIECE_NS 10000000u /* … and for so long */

enum direction { SENDING, RECEIVING };

struct wire {
	char name[600];
	uint64_t rate;	     /* bytes/s */
	uint64_t free_at[2]; /* CLOCK_MONOTONIC ns at which all that was taken has gone by */
};

static struct {
	pthread_mutex_t lock;
	unsigned count;
	struct wire at[RATED_WIRES];
} wires = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct rated {
	struct link link;
	struct link *inner;
	struct wire *wire;
	_Atomic uint64_t again[2]; /* when the wire was full: look again then; 0: it was not */
};

unsigned rated_wire(const char *name, uint64_t bytes_s)
{
	unsigned i;

	pthread_mutex_lock(&wires.lock);
	for (i = 0; i < wires.count && strcmp(wires.at[i].name, name); i++)
		;
	if (i == RATED_WIRES)
		i--;
	else if (i == wires.count) {
		strncpy(wires.at[i].name, name, sizeof(wires.at[i].name) - 1);
		wires.at[i].rate = bytes_s;
		wires.count++;
	}
	pthread_mutex_unlock(&wires.lock);
	return i;
}

static uint64_t wire_ns(const struct wire *wire, uint64_t n)
{
	return (uint64_t)((unsigned __int128)n * SECOND / wire->rate);
}

/* How many of N bytes the wire has room for. 0: not before *again. */
static size_t wire_room(
	const struct wire *wire, enum direction direction, size_t n, uint64_t *again)
{
	uint64_t now = wait_now(), room, free_at;

	pthread_mutex_lock(&wires.lock);
	free_at = wire->free_at[direction];
	pthread_mutex_unlock(&wires.lock);
	/* Half of it, or who is told to wait would be let in for each few bytes. */
	if (free_at > now + AHEAD_NS / 2) {
		*again = free_at - AHEAD_NS / 2;
		return 0;
	}
	if (free_at + CREDIT_NS < now)
		free_at = now - CREDIT_NS;
	room = (uint64_t)((unsigned __int128)(now + AHEAD_NS - free_at) * wire->rate / SECOND);
	if (!room)
		room = 1;
	return n < room ? n : (size_t)room;
}

/* N bytes went. Returns when the last of them will have gone by. */
static uint64_t wire_take(struct wire *wire, enum direction direction, size_t n)
{
	uint64_t now = wait_now(), *free_at = &wire->free_at[direction], at;

	pthread_mutex_lock(&wires.lock);
	if (*free_at + CREDIT_NS < now)
		*free_at = now - CREDIT_NS;
	at = *free_at += wire_ns(wire, n);
	pthread_mutex_unlock(&wires.lock);
	return at;
}

static ssize_t rated_send(struct link *link, const struct iovec *iov, int count)
{
	struct rated *rated = (struct rated *)link;
	ssize_t total = 0;

	atomic_store(&rated->again[SENDING], 0);
	for (int i = 0; i < count; i++) {
		uint64_t again = 0;
		struct iovec one = iov[i];
		ssize_t sent;

		if (!one.iov_len)
			continue;
		one.iov_len = wire_room(rated->wire, SENDING, one.iov_len, &again);
		if (!one.iov_len) {
			atomic_store(&rated->again[SENDING], again);
			return total ? total : -EAGAIN;
		}
		sent = link_send(rated->inner, &one, 1);
		if (sent < 0)
			return total ? total : sent;
		wire_take(rated->wire, SENDING, (size_t)sent);
		total += sent;
		if ((size_t)sent < iov[i].iov_len)
			break;
	}
	return total;
}

static ssize_t rated_receive(struct link *link, void *buffer, size_t n)
{
	struct rated *rated = (struct rated *)link;
	uint64_t again = 0;
	ssize_t got;

	n = wire_room(rated->wire, RECEIVING, n, &again);
	atomic_store(&rated->again[RECEIVING], again);
	if (!n)
		return -EAGAIN;
	got = link_receive(rated->inner, buffer, n);
	if (got > 0)
		wire_take(rated->wire, RECEIVING, (size_t)got);
	return got;
}

static int rated_receive_all(struct link *link, void *buffer, size_t n)
{
	struct rated *rated = (struct rated *)link;
	uint64_t most = rated->wire->rate / (SECOND / PIECE_NS);
	unsigned char *at = buffer;

	most = most < 1 ? 1 : most > PIECE ? PIECE : most;
	while (n) {
		size_t piece = n < most ? n : (size_t)most;
		int ret = link_receive_all(rated->inner, at, piece);
		uint64_t until, now;

		if (ret)
			return ret;
		until = wire_take(rated->wire, RECEIVING, piece);
		for (now = wait_now(); now + AHEAD_NS < until; now = wait_now()) {
			uint64_t ns = until - AHEAD_NS - now;

			nanosleep(
				&(struct timespec){(time_t)(ns / SECOND), (long)(ns % SECOND)},
				NULL);
		}
		at += piece;
		n -= piece;
	}
	return 0;
}

static void rated_fds(struct link *link, struct pollfd fds[2], int want_send)
{
	struct rated *rated = (struct rated *)link;

	link_fds(rated->inner, fds, want_send);
	if (!want_send)
		atomic_store(&rated->again[SENDING], 0);
	if (atomic_load(&rated->again[SENDING]))
		fds[1].events = 0;
	if (atomic_load(&rated->again[RECEIVING]))
		fds[0].fd = -1;
}

static uint64_t rated_wake_at(struct link *link)
{
	struct rated *rated = (struct rated *)link;
	uint64_t at = link_wake_at(rated->inner);

	for (int i = 0; i < 2; i++) {
		uint64_t again = atomic_load(&rated->again[i]);

		if (again && again < at)
			at = again;
	}
	return at;
}

static void rated_shut(struct link *link)
{
	link_shut(((struct rated *)link)->inner);
}

static void rated_close(struct link *link)
{
	link_close(((struct rated *)link)->inner);
	free(link);
}

static const struct link_ops rated_ops = {
	.send = rated_send,
	.receive = rated_receive,
	.receive_all = rated_receive_all,
	.fds = rated_fds,
	.wake_at = rated_wake_at,
	.shut = rated_shut,
	.close = rated_close,
};

int rated_wrap(struct link *inner, unsigned wire, struct link **link, struct error *error)
{
	struct rated *rated = calloc(1, sizeof(*rated));

	if (!rated) {
		link_close(inner);
		return error_set(error, ENOMEM, "rated link");
	}
	rated->link.ops = &rated_ops;
	rated->inner = inner;
	rated->wire = &wires.at[wire];
	*link = &rated->link;
	return 0;
}
