/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known of the session: see session.h.
 */
#include "shim/engine/session.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/wait.h"
#include "shim/engine/attach/heartbeat.h"
#include "shim/engine/attach/rejoin.h"
#include "shim/engine/status.h"
#include "shim/engine/lock.h"

#define SESSION_GLANCE_NS 50000000u

struct session session_first = {.socket = -1,
	.doorbell = -1,
	.socket_lock = PTHREAD_MUTEX_INITIALIZER,
	.bounce.lock = PTHREAD_MUTEX_INITIALIZER,
	.completions.lock = PTHREAD_MUTEX_INITIALIZER};
struct session *sessions[CHANNEL_AGENTS] = {&session_first};
unsigned session_count = 1;
LOCK_RANK(socket, session_first.socket_lock, LOCK_SOCKET);
LOCK_RANK(bounce, session_first.bounce.lock, LOCK_BOUNCE);
LOCK_RANK(completion, session_first.completions.lock, LOCK_COMPLETION);
LOCK_RANK(ring, session_first.ring, LOCK_RING);

struct session *session_new(void)
{
	size_t size = (sizeof(struct session) + 63) / 64 * 64;
	struct session *new = session_count < CHANNEL_AGENTS ? aligned_alloc(64, size) : NULL;

	if (!new)
		return NULL;
	memset(new, 0, size);
	new->socket = new->doorbell = -1;
	pthread_mutex_init(&new->socket_lock, NULL);
	pthread_mutex_init(&new->bounce.lock, NULL);
	pthread_mutex_init(&new->completions.lock, NULL);
	lock_order_rank(&new->socket_lock, LOCK_SOCKET, "socket_lock");
	lock_order_rank(&new->bounce.lock, LOCK_BOUNCE, "bounce.lock");
	lock_order_rank(&new->completions.lock, LOCK_COMPLETION, "completions.lock");
	lock_order_rank(&new->ring, LOCK_RING, "ring");
	new->index = session_count;
	sessions[session_count++] = new;
	return new;
}

void session_debug(const char *format, ...)
{
	struct session *here = session_here();
	const char *debug = secure_getenv("VCUDA_DEBUG");
	int saved = errno;
	char line[512];
	va_list arguments;

	if (!debug || !*debug || !strcmp(debug, "0"))
		return;
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	dprintf(STDERR_FILENO, "vcuda: %s%s%s%s\n", here->name[0] ? "session=" : "", here->name,
		here->name[0] ? " " : "", line);
	errno = saved;
}

const char *session_reached(const struct session *session)
{
	const char *chosen = session->page->carry.address;

	return *chosen && memchr(chosen, 0, sizeof(session->page->carry.address))
		       ? chosen
		       : session->agent;
}

void session_because(const char *text)
{
	struct session *here = session_here();

	if (!here->text[0])
		snprintf(here->text, sizeof(here->text), "%s", text);
}

void session_complain(CUresult status)
{
	struct session *here = session_here();
	static _Atomic bool logged_once;
	int saved = errno;

	if (status == status_of(CAUSE_NOT_CONFIGURED) || !here->text[0] ||
		atomic_exchange(&logged_once, true))
		return;
	dprintf(STDERR_FILENO, "vcuda: no GPU (error %d): %s\n", (int)status, here->text);
	errno = saved;
}

void session_mark_lost(CUresult status, const char *text)
{
	struct session *here = session_here();
	uint32_t ready = SESSION_READY;

	if (atomic_load(&here->phase) == SESSION_READY) {
		atomic_store(&here->lost, (uint32_t)status);
		if (atomic_compare_exchange_strong(&here->phase, &ready, SESSION_LOST))
			session_debug("session lost: %s", text);
	}
	/* While attaching there is no READY yet: remember it all the same. */
	if (!atomic_load(&here->lost)) {
		session_because(text);
		atomic_store(&here->lost, (uint32_t)status);
	}
}

bool session_check(void)
{
	struct session *here = session_here();
	struct pollfd hangup = {.fd = here->socket, .events = POLLRDHUP};
	char text[sizeof(here->page->text)];

	if (atomic_load(&here->lost))
		return true;
	if (atomic_load_explicit(&here->page->state, memory_order_acquire) == CHANNEL_LOST) {
		memcpy(text, here->page->text, sizeof(text));
		text[sizeof(text) - 1] = 0;
		session_mark_lost(here->page->lost ? status_wire(here->page->lost)
						   : status_of(CAUSE_LOST),
			text);
		return true;
	}
	if (rejoin_away())
		return false;
	if (poll(&hangup, 1, 0) > 0 &&
		hangup.revents & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL)) {
		/* A sidecar that ended in order has left its reason in the page. */
		if (atomic_load(&here->page->state) == CHANNEL_LOST)
			return session_check();
		if (rejoin_possible())
			return false;
		session_mark_lost(status_of(CAUSE_LOST), "the sidecar is gone");
		return true;
	}
	if (!heartbeat_stopped())
		return false;
	/* Not "gone": it may run again, but nobody can say when. */
	snprintf(text, sizeof(text),
		"the sidecar does not run: no sign of life for %u s; was it stopped? "
		"(VCUDA_SIDECAR_TIMEOUT)",
		heartbeat_patience());
	session_mark_lost(status_of(CAUSE_LOST), text);
	return true;
}

void session_glance(void)
{
	_Atomic uint64_t *looked = &session_here()->glanced;
	struct timespec t;
	uint64_t now, last = atomic_load_explicit(looked, memory_order_relaxed);

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	if (now - last < SESSION_GLANCE_NS)
		return;
	if (atomic_compare_exchange_strong(looked, &last, now))
		session_check();
}

CUresult session_status(void)
{
	struct session *here = session_here();
	uint32_t phase = atomic_load_explicit(&here->phase, memory_order_acquire);

	switch (phase) {
	case SESSION_FORKED: return CUDA_ERROR_NOT_INITIALIZED;
	case SESSION_ENDED: return CUDA_ERROR_DEINITIALIZED;
	default: return (CUresult)atomic_load_explicit(&here->lost, memory_order_relaxed);
	}
}
