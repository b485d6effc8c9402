/* SPDX-License-Identifier: Apache-2.0
 *
 * See rejoin.h.
 */
#include "shim/engine/attach/rejoin.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/wait.h"
#include "protocol/wire/status.h"
#include "shim/engine/attach/heartbeat.h"
#include "shim/engine/attach/own_sidecar.h"
#include "shim/engine/session.h"
#include "shim/engine/status.h"

#define MS 1000000ull
#define WATCH_MS 60000 /* between looks at a socket that says nothing */
#define STACK (256u * 1024)
#define PAUSE_LEAST_NS (10 * MS)
#define PAUSE_MOST_NS (250 * MS)
#define START_NS (2000 * MS) /* between two sidecars that are started */
#define WAIT_NS (50 * MS)
#define HOLD_PART 4 /* of the descriptors that the program may have */
#define PATH_MOST 160

/* Where sidecars listen: the same for all sessions. */
static struct {
	char path[PATH_MOST], agent[4096], client[640];
} place;

static struct rejoin *rejoin_here(void)
{
	return &session_here()->rejoin;
}

enum outcome { BACK, AGAIN, OVER };

void rejoin_at(const char *path, const char *agent)
{
	snprintf(place.path, sizeof(place.path), "%s", path);
	place.agent[0] = 0;
	if (!agent || strlen(agent) >= sizeof(place.agent) ||
		!own_sidecar_find(place.client, sizeof(place.client)))
		return;
	snprintf(place.agent, sizeof(place.agent), "%s", agent);
	own_sidecar_keep();
}

bool rejoin_possible(void)
{
	return atomic_load_explicit(&rejoin_here()->possible, memory_order_relaxed);
}

bool rejoin_away(void)
{
	return atomic_load_explicit(&rejoin_here()->away, memory_order_relaxed);
}

uint32_t rejoin_count(void)
{
	return atomic_load(&rejoin_here()->count);
}

bool rejoin_wait(uint32_t count)
{
	while (rejoin_possible()) {
		struct pollfd hangup = {.fd = session_here()->socket, .events = POLLRDHUP};

		if (rejoin_count() != count)
			return true;
		if (!rejoin_away() && (poll(&hangup, 1, 0) <= 0 || !hangup.revents))
			return rejoin_count() != count;
		wait_sleep(&rejoin_here()->count, count, WAIT_NS);
	}
	return false;
}

/* ---- what is held ---- */

static struct held held_of(int fd, uint64_t size)
{
	struct held held = {.fd = fd, .size = size};
	struct stat status;

	if (!fstat(fd, &status)) {
		held.device = status.st_dev;
		held.inode = status.st_ino;
	}
	return held;
}

static bool held_still(const struct held *held)
{
	struct stat status;

	return held->fd >= 0 && !fstat(held->fd, &status) && status.st_dev == held->device &&
	       status.st_ino == held->inode;
}

static void held_close(struct held *held)
{
	if (held_still(held))
		close(held->fd);
	held->fd = -1;
}

static void let_go(void)
{
	for (uint32_t i = 0; i < rejoin_here()->room; i++)
		held_close(&rejoin_here()->held[i]);
	rejoin_here()->used = 0;
}

static bool make_room(uint32_t number)
{
	uint32_t room = number < 64 ? 64 : 2 * number;
	struct held *held;

	if (number < rejoin_here()->room)
		return true;
	held = realloc(rejoin_here()->held, room * sizeof(*held));
	if (!held)
		return false;
	for (uint32_t i = rejoin_here()->room; i < room; i++)
		held[i].fd = -1;
	rejoin_here()->held = held;
	rejoin_here()->room = room;
	return true;
}

void rejoin_hold(uint32_t number, int fd, uint64_t size)
{
	if (rejoin_possible() && rejoin_here()->used < rejoin_here()->most &&
		make_room(number)) {
		held_close(&rejoin_here()->held[number]);
		rejoin_here()->held[number] = held_of(fd, size);
		rejoin_here()->used++;
		return;
	}
	close(fd);
	if (!rejoin_possible())
		return;
	session_debug("%u pinned segments take too many descriptors: the session would end "
		      "with its sidecar",
		rejoin_here()->used);
	atomic_store(&rejoin_here()->possible, false);
	let_go();
}

void rejoin_release(uint32_t number)
{
	if (number >= rejoin_here()->room || rejoin_here()->held[number].fd < 0)
		return;
	held_close(&rejoin_here()->held[number]);
	rejoin_here()->used--;
}

/* ---- coming back ---- */

static bool tell(int socket, struct channel_request *request, const struct held *held)
{
	request->size = held->size;
	errno = EBADF;
	return held_still(held) && attach_tell_to(socket, request, held->fd);
}

/* All memory, to the sidecar behind SOCKET. */
static bool bring(int socket, uint64_t since)
{
	struct channel_request request = {.op = CHANNEL_ADOPT,
		.features =
			CHANNEL_FEATURE_ADOPT | CHANNEL_FEATURE_RELAY | CHANNEL_FEATURE_RESERVE,
		.segment = rejoin_here()->used - 1,
		.away_ms = (uint32_t)((wait_now() - since) / MS)};

	if (!tell(socket, &request, &rejoin_here()->held[0]))
		return false;
	request.op = CHANNEL_HOLD;
	for (uint32_t i = 1; i < rejoin_here()->room; i++) {
		request.segment = i;
		if (rejoin_here()->held[i].fd >= 0 &&
			!tell(socket, &request, &rejoin_here()->held[i]))
			return false;
	}
	return true;
}

/* What the session was reached by leads to the other sidecar from now on, under the same
 * numbers: others use them meanwhile. */
static bool change_over(int socket, int doorbell, int heartbeat)
{
	struct session *here = session_here();
	uint64_t one = 1;

	if (!held_still(&rejoin_here()->socket) ||
		dup3(doorbell, here->doorbell, O_CLOEXEC) != here->doorbell ||
		dup3(socket, here->socket, O_CLOEXEC) != here->socket)
		return false;
	rejoin_here()->socket = held_of(here->socket, 0);
	here->overdue = 0;
	heartbeat_open(heartbeat);
	/* What was rung for at the one before. */
	(void)!write(here->doorbell, &one, sizeof(one));
	return true;
}

/* With the lock of the socket held. */
static enum outcome ask(int socket, uint64_t since, uint64_t until)
{
	struct channel_answer answer;
	cleanup_close int heartbeat = -1, doorbell = -1, none = -1;
	int fds[2];

	if (!bring(socket, since))
		return errno == EBADF ? OVER : AGAIN;
	if (!attach_receive(socket, &answer, fds, until, false))
		return AGAIN;
	if (answer.op == CHANNEL_HEARTBEAT) {
		heartbeat = fds[0];
		if (fds[1] >= 0)
			close(fds[1]);
		if (!attach_receive(socket, &answer, fds, until, false))
			return AGAIN;
	}
	doorbell = fds[0];
	none = fds[1];
	session_debug("another sidecar: %s", answer.status ? answer.text : "it goes on");
	if (answer.status == STATUS_NOT_PERMITTED) {
		session_because(answer.text);
		return OVER;
	}
	if (answer.status || answer.op != CHANNEL_ADOPT || doorbell < 0)
		return AGAIN;
	session_here()->relays = answer.features & CHANNEL_FEATURE_RELAY;
	session_here()->reserve.possible = answer.features & CHANNEL_FEATURE_RESERVE;
	return change_over(socket, doorbell, heartbeat) ? BACK : OVER;
}

static void start_own(uint64_t *started)
{
	uint64_t now = wait_now();

	if (!place.agent[0] || (*started && now - *started < START_NS))
		return;
	*started = now;
	if (!own_sidecar_start(place.client, place.agent, place.path))
		session_debug("cannot start %s: %s", place.client, strerror(errno));
}

static enum outcome attempt(uint64_t since, uint64_t until, uint64_t *started)
{
	struct session *here = session_here();
	cleanup_close int socket = attach_dial(place.path);
	enum outcome outcome;

	if (socket < 0) {
		start_own(started);
		return AGAIN;
	}
	pthread_mutex_lock(&here->socket_lock);
	outcome = rejoin_possible() ? ask(socket, since, until) : OVER;
	pthread_mutex_unlock(&here->socket_lock);
	return outcome;
}

static enum outcome come_back(uint64_t since)
{
	uint64_t until = since + rejoin_here()->grace, pause = PAUSE_LEAST_NS, started = 0;
	enum outcome outcome;
	uint64_t now;

	for (;;) {
		outcome = attempt(since, until, &started);
		now = wait_now();
		if (outcome != AGAIN || now >= until || atomic_load(&session_here()->lost))
			return outcome;
		if (pause > until - now)
			pause = until - now;
		nanosleep(&(struct timespec){.tv_nsec = (long)pause}, NULL);
		pause = 2 * pause < PAUSE_MOST_NS ? 2 * pause : PAUSE_MOST_NS;
	}
}

static bool follow(void)
{
	uint64_t since = wait_now();
	enum outcome outcome;

	atomic_store(&rejoin_here()->away, true);
	session_debug("the sidecar is gone; waiting for another one");
	outcome = come_back(since);
	if (outcome != BACK)
		session_mark_lost(status_of(CAUSE_LOST),
			"the sidecar is gone, and no other one took the session over");
	atomic_store(&rejoin_here()->possible, outcome == BACK);
	atomic_fetch_add(&rejoin_here()->count, outcome == BACK);
	atomic_store(&rejoin_here()->away, false);
	wait_wake(&rejoin_here()->count);
	return outcome == BACK;
}

static void watch_lost(void)
{
	atomic_store(&rejoin_here()->possible, false);
	pthread_mutex_lock(&session_here()->socket_lock);
	let_go();
	pthread_mutex_unlock(&session_here()->socket_lock);
	session_check();
}

static void *watch(void *of)
{
	thread_self.session = of;
	while (rejoin_possible()) {
		struct pollfd hangup = {.fd = session_here()->socket, .events = POLLRDHUP};

		if (poll(&hangup, 1, WATCH_MS) <= 0)
			continue;
		if (!rejoin_possible())
			break;
		if (hangup.revents & POLLNVAL ||
			atomic_load(&session_here()->page->state) == CHANNEL_LOST ||
			!follow()) {
			watch_lost();
			break;
		}
	}
	return NULL; /* or rejoin_drop() has let go, and the page may be gone */
}

/* The app's signals are not for this thread. */
static bool watch_start(void)
{
	pthread_attr_t attributes;
	sigset_t all, old;
	pthread_t thread;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK);
	ret = pthread_create(&thread, &attributes, watch, session_here());
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return !ret;
}

void rejoin_open(int segment)
{
	struct session *here = session_here();
	struct rlimit limit = {0};

	rejoin_here()->grace = here->page->carry.grace_ms * MS;
	getrlimit(RLIMIT_NOFILE, &limit);
	rejoin_here()->most = limit.rlim_cur / HOLD_PART < UINT32_MAX
				      ? (uint32_t)(limit.rlim_cur / HOLD_PART)
				      : UINT32_MAX;
	rejoin_here()->socket = held_of(here->socket, 0);
	atomic_store(&rejoin_here()->possible, rejoin_here()->grace != 0);
	rejoin_hold(0, segment, here->bytes);
}

void rejoin_watch(void)
{
	if (rejoin_possible() && !watch_start())
		rejoin_drop();
}

void rejoin_drop(void)
{
	atomic_store(&rejoin_here()->possible, false);
	atomic_store(&rejoin_here()->away, false);
	let_go();
}
