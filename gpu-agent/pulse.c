/* SPDX-License-Identifier: Apache-2.0
 *
 * A sign of life while the loop is in a long call of the driver (a module that is compiled,
 * say): a thread sends a PONG nobody asked for, each second.  So the sidecar need not guess
 * whether a silent worker is busy or gone: silence is death.
 *
 * The loop owns the link but for the time of such a call, when it lends it: no lock on the way,
 * two exchanges of a word a frame.  It lends only at the end of a frame; the sidecar is patient
 * with a worker that stopped in the middle of one.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "common/log.h"
#include "gpu-agent/worker_state.h"

#define PULSE_SECONDS 1
/* A frame of which a part went out must be finished: so long, then the link is given up. */
#define PULSE_FINISH_MS 5000

enum pulse_owner { PULSE_LOOP, PULSE_LENT, PULSE_SENDING };

void pulse_lend(struct worker *w)
{
	if (w->segment_count)
		return;
	atomic_fetch_add_explicit(&w->pulse.lent, 1, memory_order_relaxed);
	atomic_store_explicit(&w->pulse.owner, PULSE_LENT, memory_order_release);
}

void pulse_take_back(struct worker *w)
{
	uint32_t lent = PULSE_LENT;

	if (atomic_load_explicit(&w->pulse.owner, memory_order_relaxed) == PULSE_LOOP)
		return;
	while (!atomic_compare_exchange_weak_explicit(&w->pulse.owner, &lent, PULSE_LOOP,
		memory_order_acquire, memory_order_relaxed)) {
		if (lent == PULSE_SENDING)
			nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
		lent = PULSE_LENT;
	}
	if (w->pulse.broken)
		worker_end(w, CUDA_ERROR_EXTERNAL_DEVICE, "the link broke while sending");
}

static void pulse_send(struct worker *w)
{
	struct frame_header h = {.kind = FRAME_PONG, .magic = FRAME_MAGIC, .seq = w->taken};
	uint64_t end = wait_now() + PULSE_FINISH_MS * 1000000ull;
	size_t at = 0;

	while (at < sizeof(h)) {
		struct iovec iov = {(unsigned char *)&h + at, sizeof(h) - at};
		struct pollfd fds[2];
		ssize_t n = link_send(w->link, &iov, 1);

		if (n == -EAGAIN && !at)
			return; /* what is on its way is sign enough */
		if ((n < 0 && n != -EAGAIN) || wait_now() >= end) {
			w->pulse.broken = true;
			return;
		}
		at += n > 0 ? (size_t)n : 0;
		if (at < sizeof(h)) {
			link_fds(w->link, fds, true);
			poll(fds + 1, 1, 10);
		}
	}
}

static void *pulse_run(void *argument)
{
	struct worker *w = argument;
	uint64_t seen = 0;

	for (;;) {
		uint64_t lent = atomic_load_explicit(&w->pulse.lent, memory_order_relaxed);
		uint32_t owner = PULSE_LENT;

		if (lent == seen && atomic_compare_exchange_strong(
					    &w->pulse.owner, &owner, PULSE_SENDING)) {
			/* The loop has had its time to see it and is still in the driver, maybe
			 * for good (a kernel without end): nobody is left to serve. */
			if (w->pulse.broken) {
				worker_end(
					w, CUDA_SUCCESS, "the client is gone, during a call");
				worker_leave(w);
			}
			pulse_send(w);
			atomic_store(&w->pulse.owner, PULSE_LENT);
		}
		seen = lent;
		nanosleep(&(struct timespec){.tv_sec = PULSE_SECONDS}, NULL);
	}
	return NULL;
}

void pulse_start(struct worker *w)
{
	sigset_t all, old;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&thread, NULL, pulse_run, w))
		log_warn(
			"worker.pulse", "text=\"no thread: long calls may look like silence\"");
	else
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}
