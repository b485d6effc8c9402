/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/uploads/lanes.h"

#include <errno.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/log.h"

#define SERVE_MS 1000

/* The end of a pair. One thread at a time serves it (EPOLLONESHOT). */
struct end {
	struct lane *lane;
	int fd;
	bool keeps; /* the second pair: what is to be kept comes there */
};

struct lane {
	struct lane *next;
	struct lanes *lanes;
	struct end ends[2];
	unsigned open;	    /* ends; under the lock */
	_Atomic int memory; /* the worker's; -1: not said yet */
	uint64_t session;
	uint32_t stripe;
	uint32_t space;
	/* Pieces that the worker was told of, in that order: the first end's. */
	uint32_t told[SESSION_NAMES_AHEAD];
	uint32_t first, count;
};

struct lanes {
	pthread_mutex_t lock;
	struct payloads *cache;
	struct lane *list;
	uint32_t count;
	int events;
};

struct lanes *lanes_new(struct payloads *cache, struct error *error)
{
	struct lanes *all = calloc(1, sizeof(*all));

	if (!all) {
		error_set(error, ENOMEM, "lanes");
		return NULL;
	}
	all->cache = cache;
	pthread_mutex_init(&all->lock, NULL);
	all->events = epoll_create1(EPOLL_CLOEXEC);
	if (all->events >= 0)
		return all;
	error_set(error, errno, "epoll");
	free(all);
	return NULL;
}

uint32_t lanes_count(struct lanes *all)
{
	uint32_t count;

	pthread_mutex_lock(&all->lock);
	count = all->count;
	pthread_mutex_unlock(&all->lock);
	return count;
}

/* ---- life ---- */

static void lane_free(struct lane *lane)
{
	struct lanes *all = lane->lanes;
	struct lane **at = &all->list;
	int memory = atomic_load(&lane->memory);

	while (*at != lane)
		at = &(*at)->next;
	*at = lane->next;
	all->count--;
	payloads_leave(all->cache, lane->space);
	if (memory >= 0)
		close(memory);
	free(lane);
}

/* By who serves it. */
static void end_close(struct end *end)
{
	struct lane *lane = end->lane;
	struct lanes *all = lane->lanes;

	for (; !end->keeps && lane->count; lane->count--)
		payloads_put(all->cache, lane->told[lane->first++ % SESSION_NAMES_AHEAD]);
	pthread_mutex_lock(&all->lock);
	close(end->fd);
	end->fd = -1;
	if (!--lane->open)
		lane_free(lane);
	pthread_mutex_unlock(&all->lock);
}

/* Those who serve its ends see the end of both. Under the lock. */
static void lane_shut(struct lane *lane)
{
	for (int i = 0; i < 2; i++)
		if (lane->ends[i].fd >= 0)
			shutdown(lane->ends[i].fd, SHUT_RDWR);
}

/* False: it is as if it was never there. Under the lock. */
static bool lane_watch(struct lanes *all, struct lane *lane)
{
	for (unsigned i = 0; i < 2; i++) {
		struct epoll_event event = {
			.events = EPOLLIN | EPOLLONESHOT, .data.ptr = &lane->ends[i]};

		if (!epoll_ctl(all->events, EPOLL_CTL_ADD, lane->ends[i].fd, &event))
			continue;
		if (!i)
			return false;
		/* The first may be served already: it ends, and with it the lane. */
		close(lane->ends[1].fd);
		lane->ends[1].fd = -1;
		lane->open--;
		lane_shut(lane);
	}
	return true;
}

void lanes_open(struct lanes *all, const struct uploads_lane *about, const int fds[2])
{
	struct lane *lane = calloc(1, sizeof(*lane));
	uint32_t space = lane ? payloads_enter(all->cache, about->space) : CACHE_NONE;
	bool taken = false;

	pthread_mutex_lock(&all->lock);
	for (struct lane *old = all->list; old; old = old->next)
		if (old->session == about->session && old->stripe == about->stripe)
			lane_shut(old);
	if (space != CACHE_NONE && all->count < LANES_MOST) {
		*lane = (struct lane){.next = all->list,
			.lanes = all,
			.open = 2,
			.memory = -1,
			.session = about->session,
			.stripe = about->stripe,
			.space = space};
		lane->ends[0] = (struct end){.lane = lane, .fd = fds[0]};
		lane->ends[1] = (struct end){.lane = lane, .fd = fds[1], .keeps = true};
		all->list = lane;
		all->count++;
		taken = lane_watch(all, lane);
		if (!taken) {
			all->list = lane->next;
			all->count--;
		}
	}
	pthread_mutex_unlock(&all->lock);
	if (taken)
		return;
	log_warn("uploads.lane", "text=\"no room for another stripe\"");
	if (space != CACHE_NONE)
		payloads_leave(all->cache, space);
	close(fds[0]);
	close(fds[1]);
	free(lane);
}

/* ---- requests ---- */

/* Whether FD is what a read and a write of ours cannot wait at: memory. */
static bool is_memory(int fd)
{
	struct stat st;
	struct statfs fs;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size == UPLOADS_MEMORY &&
	       !fstatfs(fd, &fs) && fs.f_type == TMPFS_MAGIC;
}

/* Takes FD. */
static bool lane_begin(struct lane *lane, int fd, struct uploads_answer *answer)
{
	if (fd < 0 || atomic_load(&lane->memory) >= 0 || !is_memory(fd)) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	atomic_store(&lane->memory, fd);
	answer->seed = payloads_seed(lane->lanes->cache, lane->space);
	return true;
}

static bool lane_ask(struct lane *lane, const struct uploads_request *r, size_t n,
	struct uploads_answer *answer)
{
	struct payloads *cache = lane->lanes->cache;

	if (!r->count || r->count > SESSION_NAMES_ASK ||
		n != offsetof(struct uploads_request, names) + r->count * sizeof(r->names[0]))
		return false;
	for (uint32_t i = 0; i < r->count; i++) {
		uint32_t piece = lane->count < SESSION_NAMES_AHEAD
					 ? payloads_get(cache, lane->space, &r->names[i])
					 : CACHE_NONE;

		if (piece == CACHE_NONE)
			continue;
		lane->told[(lane->first + lane->count++) % SESSION_NAMES_AHEAD] = piece;
		answer->have |= 1ull << i;
	}
	return true;
}

/* Names come in the order in which they were told of; what was skipped is not wanted any more.
 */
static bool lane_get(
	struct lane *lane, const struct uploads_request *r, struct uploads_answer *answer)
{
	struct payloads *cache = lane->lanes->cache;
	bool found = false;

	answer->status = ENOENT;
	if (r->slot >= UPLOADS_SLOTS || atomic_load(&lane->memory) < 0)
		return false;
	while (lane->count && !found) {
		uint32_t piece = lane->told[lane->first++ % SESSION_NAMES_AHEAD];

		lane->count--;
		found = payloads_is(cache, piece, &r->names[0]);
		if (found && pwrite(atomic_load(&lane->memory), payloads_bytes(cache, piece),
				     r->names[0].length, (off_t)r->slot * UPLOADS_SLOT_BYTES) ==
				     (ssize_t)r->names[0].length) {
			answer->status = 0;
			payloads_count_hit(cache, piece);
		}
		payloads_put(cache, piece);
	}
	return true;
}

static bool lane_put(
	struct lane *lane, const struct uploads_request *r, struct uploads_answer *answer)
{
	struct payloads *cache = lane->lanes->cache;
	unsigned char *bytes;
	uint32_t piece;

	(void)answer;
	if (r->slot >= UPLOADS_SLOTS || !r->length || r->length > FRAME_CHUNK ||
		atomic_load(&lane->memory) < 0)
		return false;
	piece = payloads_room(cache, lane->space, &bytes);
	if (piece == CACHE_NONE)
		return true;
	if (pread(atomic_load(&lane->memory), bytes, r->length,
		    (off_t)r->slot * UPLOADS_SLOT_BYTES) == (ssize_t)r->length)
		payloads_keep(cache, lane->space, piece, r->length);
	else
		payloads_discard(cache, piece);
	return true;
}

/* False: it says what it may not, or is not there for an answer. Takes FD. */
static bool end_answer(struct end *end, const struct uploads_request *r, size_t n, int fd)
{
	struct uploads_answer answer = {.what = r->what, .slot = r->slot};
	bool good = false;

	if (r->what == UPLOADS_BEGIN && !end->keeps) {
		good = lane_begin(end->lane, fd, &answer);
		fd = -1;
	} else if (r->what == UPLOADS_ASK && !end->keeps) {
		good = lane_ask(end->lane, r, n, &answer);
	} else if (r->what == UPLOADS_GET && !end->keeps) {
		good = n >= offsetof(struct uploads_request, names[1]) &&
		       lane_get(end->lane, r, &answer);
	} else if (r->what == UPLOADS_PUT && end->keeps) {
		good = lane_put(end->lane, r, &answer);
	}
	if (fd >= 0)
		close(fd);
	/* Of a worker that ended there may be more to keep. */
	return good && (send(end->fd, &answer, sizeof(answer), MSG_DONTWAIT | MSG_NOSIGNAL) ==
				       (ssize_t)sizeof(answer) ||
			       (end->keeps && (errno == EPIPE || errno == ECONNRESET)));
}

void lanes_serve(struct lanes *all)
{
	struct epoll_event event;
	struct uploads_request r = {0};
	struct end *end;
	bool good;
	ssize_t n;
	int fd;

	if (epoll_wait(all->events, &event, 1, SERVE_MS) < 1)
		return;
	end = event.data.ptr;
	n = descriptors_receive(end->fd, &r, sizeof(r), &fd, 1, MSG_DONTWAIT);
	good = n >= (ssize_t)offsetof(struct uploads_request, names) && n <= (ssize_t)sizeof(r);
	if (good)
		good = end_answer(end, &r, (size_t)n, fd);
	else if (fd >= 0)
		close(fd);
	event.events = EPOLLIN | EPOLLONESHOT;
	/* A peer that ended with something unread: what it said comes behind that. */
	good |= n == -EAGAIN || n == -ECONNRESET;
	if (!good || epoll_ctl(all->events, EPOLL_CTL_MOD, end->fd, &event))
		end_close(end);
}
