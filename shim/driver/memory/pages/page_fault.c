/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses a way of watching, and hears of all touches: see page_fault.h.
 *
 * A touch may have to wait for the device, and the device for a host function, which may touch
 * managed memory itself: so one thread hears of touches and serves those of host functions, and
 * another serves all others, in their order.
 */
#include "shim/driver/memory/pages/page_fault.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>

#include "shim/driver/stream/host_function.h"
#include "shim/driver/memory/managed/managed_part.h"
#include "shim/engine/engine.h"
#include "shim/engine/lock.h"

struct waiting {
	struct waiting *next;
	struct fault fault;
};

/* Touches on their way from one thread to the other. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t some;
	struct waiting *first, **last;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER,
	.some = PTHREAD_COND_INITIALIZER,
	.last = &queue.first};
LOCK_RANK(fault, queue.lock, LOCK_FAULT);

static bool queue_put(const struct fault *fault)
{
	struct waiting *waiting = malloc(sizeof(*waiting));

	if (!waiting)
		return false;
	*waiting = (struct waiting){.fault = *fault};
	pthread_mutex_lock(&queue.lock);
	*queue.last = waiting;
	queue.last = &waiting->next;
	pthread_cond_signal(&queue.some);
	pthread_mutex_unlock(&queue.lock);
	return true;
}

static struct fault queue_get(void)
{
	struct waiting *waiting;
	struct fault fault;

	pthread_mutex_lock(&queue.lock);
	while (!queue.first)
		pthread_cond_wait(&queue.some, &queue.lock);
	waiting = queue.first;
	queue.first = waiting->next;
	if (!queue.first)
		queue.last = &queue.first;
	pthread_mutex_unlock(&queue.lock);
	fault = waiting->fault;
	free(waiting);
	return fault;
}

static void *serving_thread(void *unused)
{
	(void)unused;
	for (;;) {
		struct fault fault = queue_get();

		managed_touch(&fault);
	}
	return NULL;
}

static void *hearing_thread(void *argument)
{
	const struct fault_way *way = argument;
	struct fault fault;

	while (way->next(&fault)) {
		fault.in_callback |= fault.thread && fault.thread == host_function_thread_id();
		if (fault.in_callback || (!managed_touch_now(&fault) && !queue_put(&fault)))
			managed_touch(&fault);
	}
	return NULL;
}

/* The app's signals are not for these threads. */
static bool thread_start(void *(*run)(void *), const struct fault_way *way)
{
	sigset_t all, old;
	pthread_t thread;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&thread, NULL, run, (void *)way);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!ret)
		pthread_detach(thread);
	return !ret;
}

const struct fault_way *fault_open(void)
{
	const struct fault_way *way = &fault_userfaultfd;

	if (!(shim_perf & PERF_USERFAULTFD) || !way->open()) {
		way = &fault_signal;
		if (!way->open())
			return NULL;
	}
	return thread_start(serving_thread, way) && thread_start(hearing_thread, way) ? way
										      : NULL;
}
