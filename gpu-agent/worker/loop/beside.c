/* SPDX-License-Identifier: Apache-2.0
 *
 * See beside.h.
 */
#include "gpu-agent/worker/loop/beside.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "gpu-agent/worker/loop/beside_call.h"
#include "gpu-agent/worker/profiler.h"
#include "gpu-agent/worker/reply/reply.h"
#include "gpu-agent/worker/worker_state.h"

/* Threads stay for the next job: what starts and ends with one, the driver's state of it among
 * that, costs more than many a job. */
struct beside_thread {
	struct beside_job *job;
	sem_t next_job;
	struct beside_thread *next; /* of those without a job */
};

static struct beside_job *jobs;
static struct beside_thread *idle;
static unsigned running;
static int wake = -1;

int beside_wake(void)
{
	return wake;
}

void beside_awake(void)
{
	uint64_t one = 1;

	(void)!write(wake, &one, sizeof(one)); /* full: the loop is awake anyway */
}

/* A job may be seen to have ended, and be gone, before its thread wakes the loop. */
void beside_heard(void)
{
	uint64_t count;

	(void)!read(wake, &count, sizeof(count));
}

static void *beside_main(void *argument)
{
	struct beside_thread *thread = argument;
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	const struct worker *w = thread->job->w;

	/* What another stream captures meanwhile is not this thread's. */
	if (w->cuda.cuThreadExchangeStreamCaptureMode)
		w->cuda.cuThreadExchangeStreamCaptureMode(&mode);
	for (;;) {
		struct beside_job *job = thread->job;

		w->cuda.cuCtxSetCurrent(job->current);
		profiler_begin(job->profiler, job->seq);
		job->run(job);
		profiler_end(job->profiler);
		atomic_store(&job->ended, true); /* and is not touched any more */
		beside_awake();
		while (sem_wait(&thread->next_job))
			; /* EINTR */
	}
	return NULL;
}

/* Signals are the loop's. Faults are whoever's they happen to: a blocked one ends the process
 * before its handler is asked, and the software GPU, which runs kernels on whatever thread
 * waits for them, has one. */
static bool thread_start(struct beside_thread *thread)
{
	sigset_t all, old;
	pthread_t id;
	bool made;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	made = !pthread_create(&id, NULL, beside_main, thread);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (made)
		pthread_detach(id);
	return made;
}

/* One with JOB as its first. */
static struct beside_thread *thread_new(struct beside_job *job)
{
	struct beside_thread *thread = calloc(1, sizeof(*thread));

	if (!thread)
		return NULL;
	thread->job = job;
	sem_init(&thread->next_job, 0, 0);
	if (thread_start(thread))
		return thread;
	sem_destroy(&thread->next_job);
	free(thread);
	return NULL;
}

bool beside_start(struct worker *w, struct beside_job *job, uint16_t context)
{
	if (wake < 0)
		wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (wake < 0 || running == BESIDE_JOBS || context >= CONTEXT_MAX)
		return false;
	job->w = w;
	job->profiler = w->profiler;
	job->context = context;
	job->current = w->contexts[context];
	if (idle) {
		job->thread = idle;
		idle = idle->next;
		job->thread->job = job;
		sem_post(&job->thread->next_job);
	} else {
		job->thread = thread_new(job);
	}
	if (!job->thread)
		return false;
	job->next = jobs;
	jobs = job;
	running++;
	return true;
}

/* It has ended: its thread is for the next. */
static void beside_join(struct beside_job *job)
{
	if (job->dropped)
		return;
	job->thread->next = idle;
	idle = job->thread;
	running--;
}

bool beside_poll(struct worker *w)
{
	struct beside_job **at = &jobs;
	bool turned;

	if (!jobs)
		return false;
	beside_heard();
	turned = beside_turns(w);
	while (*at && reply_room(w)) {
		struct beside_job *job = *at;

		if (!atomic_load(&job->ended)) {
			if (job->late && wait_now() >= job->until) {
				job->late(w, job);
				job->late = NULL;
				turned = true;
			}
			at = &job->next;
			continue;
		}
		*at = job->next;
		beside_join(job);
		job->done(w, job);
		turned = true;
	}
	return turned;
}

void beside_forget(struct worker *w, uint16_t context)
{
	for (struct beside_job *job = jobs; job; job = job->next) {
		if (job->context != context || job->dropped || job->lasting)
			continue;
		while (!atomic_load(&job->ended))
			beside_pause(w);
		beside_join(job);
		if (job->drop)
			job->drop(job);
		job->dropped = true;
	}
}
