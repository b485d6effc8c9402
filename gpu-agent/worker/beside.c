/* SPDX-License-Identifier: Apache-2.0
 *
 * See beside.h.
 */
#include "gpu-agent/worker/beside.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "gpu-agent/worker/reply.h"
#include "gpu-agent/worker/worker_state.h"

static struct beside_job *jobs;
static unsigned running;
static int wake = -1;

int beside_wake(void)
{
	return wake;
}

static void *beside_main(void *argument)
{
	struct beside_job *job = argument;
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	uint64_t one = 1;

	/* What another stream captures meanwhile is not this thread's. */
	if (job->w->cuda.cuThreadExchangeStreamCaptureMode)
		job->w->cuda.cuThreadExchangeStreamCaptureMode(&mode);
	job->w->cuda.cuCtxSetCurrent(job->current);
	job->run(job);
	atomic_store(&job->ended, true);
	(void)!write(wake, &one, sizeof(one)); /* full: the loop is awake anyway */
	return NULL;
}

bool beside_start(struct worker *w, struct beside_job *job, uint16_t context)
{
	sigset_t all, old;
	bool started;

	if (wake < 0)
		wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (wake < 0 || running == BESIDE_JOBS || context >= CONTEXT_MAX)
		return false;
	job->w = w;
	job->context = context;
	job->current = w->contexts[context];
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	started = !pthread_create(&job->thread, NULL, beside_main, job);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!started)
		return false;
	job->next = jobs;
	jobs = job;
	running++;
	return true;
}

static void beside_join(struct beside_job *job)
{
	if (job->dropped)
		return;
	pthread_join(job->thread, NULL);
	running--;
}

bool beside_poll(struct worker *w)
{
	struct beside_job **at = &jobs;
	bool told = false;
	uint64_t count;

	if (!jobs)
		return false;
	(void)!read(wake, &count, sizeof(count));
	while (*at && reply_room(w)) {
		struct beside_job *job = *at;

		if (!atomic_load(&job->ended)) {
			if (job->late && wait_now() >= job->until) {
				job->late(w, job);
				job->late = NULL;
				told = true;
			}
			at = &job->next;
			continue;
		}
		*at = job->next;
		beside_join(job);
		job->done(w, job);
		told = true;
	}
	return told;
}

void beside_forget(uint16_t context)
{
	for (struct beside_job *job = jobs; job; job = job->next) {
		if (job->context != context || job->dropped || job->lasting)
			continue;
		beside_join(job);
		job->drop(job);
		job->dropped = true;
	}
}
