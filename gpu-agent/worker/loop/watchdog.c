/* SPDX-License-Identifier: Apache-2.0
 *
 * Who looks after the session while the loop is in a call of the driver or of a library, which
 * may last (a module that is compiled) or never return (a kernel without end).  A thread that
 * makes no such call:
 *
 * - sends the answers that are ready, and each second a PONG nobody asked for: the sidecar need
 *   not guess whether a silent worker is busy or gone, silence is death;
 * - keeps what kernels print within its limit;
 * - tells the front each second that this process lives, where the loop cannot;
 * - ends the process where the client is gone and the loop does not notice, where the client
 *   takes nothing, or where the front ended the session.  The kernel takes the GPU's memory
 * back with the process.
 *
 * The loop does nothing for it but count (`beat`, odd while it is in a call): no system call
 * and no lock.  So what lasts is known by having lasted: up to WATCHDOG_BUSY_MS in a session
 * that works, up to WATCHDOG_IDLE_MS in one that was idle.  Calls that are known to last
 * (SERVE_SLOW) have what is ready sent before them.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "common/log.h"
#include "gpu-agent/worker/reply/output.h"
#include "gpu-agent/worker/reply/park.h"
#include "gpu-agent/worker/reply/reply.h"
#include "gpu-agent/worker/loop/watchdog.h"
#include "gpu-agent/worker/worker_state.h"

#define MS 1000000ull
#define WATCHDOG_IDLE_MS 1000 /* between looks, and between signs of life */
#define WATCHDOG_BUSY_MS 100
/* How long the loop may go on behind a client that closed its connections, where it cannot come
 * back. */
#define WATCHDOG_GONE_MS 2000
/* A client that takes nothing for so long is as good as gone; so does the kernel's timeout
 * (STREAM_GONE_MS in transport/socket_link.c) where it knows. */
#define WATCHDOG_UNREAD_MS 60000

struct watchdog {
	uint64_t beat;
	uint64_t gone_at;     /* first seen; 0: the client is there */
	uint64_t sent;	      /* bytes, when they were looked at last */
	uint64_t sent_at;     /* when that last changed, or nothing waited */
	uint64_t reported_at; /* to the front */
};

static _Noreturn void watchdog_end(struct worker *w, CUresult status, const char *text)
{
	worker_end(w, status, "%s", text);
	worker_leave(w);
}

/* Is anybody there, and does he listen? */
static void watchdog_watch(struct worker *w, struct watchdog *p, uint64_t now)
{
	uint64_t sent = atomic_load_explicit(&w->sender.sent_bytes, memory_order_relaxed);
	uint64_t most = w->park.grace ? park_most(w) : WATCHDOG_GONE_MS * MS;

	if (!reply_hung_up(w))
		p->gone_at = 0;
	else if (!p->gone_at)
		p->gone_at = now;
	else if (now - p->gone_at >= most)
		watchdog_end(w, CUDA_SUCCESS, "the client is gone, during a call");
	if (sent != p->sent || !reply_waits(w) || park_is(w)) {
		p->sent = sent;
		p->sent_at = now;
	} else if (now - p->sent_at >= WATCHDOG_UNREAD_MS * MS) {
		watchdog_end(w, CUDA_ERROR_EXTERNAL_DEVICE, "the client takes no answers");
	}
}

/* What ends the session the loop need not hear first. */
static void watchdog_hear(struct worker *w)
{
	if (!worker_stopped(w))
		return;
	reply_end_beside(w);
	worker_leave(w);
}

/* Instead of the loop. */
static void watchdog_speak(struct worker *w, struct watchdog *p, uint64_t now)
{
	static struct handoff alive = {.version = HANDOFF_VERSION, .what = HANDOFF_ALIVE};
	bool due = now - p->reported_at >= WATCHDOG_IDLE_MS * MS;

	output_limit(w);
	if (reply_flush_beside(w, due) && !w->park.grace)
		watchdog_end(w, CUDA_SUCCESS, "the client is gone, during a call");
	if (!due)
		return;
	p->reported_at = now;
	/* A front that does not read hears the next one. */
	(void)!send(w->handoff, &alive, sizeof(alive), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void *watchdog_run(void *argument)
{
	struct worker *w = argument;
	struct watchdog p = {.sent_at = wait_now(), .reported_at = wait_now()};
	bool idle = false;

	for (;;) {
		uint64_t beat, now;
		bool same;

		/* Before the first look too, whose lock the session's first answer would meet.
		 */
		nanosleep(&(struct timespec){.tv_sec = idle,
				  .tv_nsec = idle ? 0 : WATCHDOG_BUSY_MS * MS},
			NULL);
		beat = atomic_load_explicit(&w->liveness.beat, memory_order_acquire);
		same = beat == p.beat;
		idle = same && !(beat & 1);
		now = wait_now();
		watchdog_watch(w, &p, now);
		if (same && !idle) {
			watchdog_hear(w);
			watchdog_speak(w, &p, now);
		}
		p.beat = beat;
	}
	return NULL;
}

void watchdog_start(struct worker *w)
{
	sigset_t all, old;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&thread, NULL, watchdog_run, w))
		worker_end(w, CUDA_ERROR_OUT_OF_MEMORY,
			"no thread to look after the session's calls");
	else
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}
