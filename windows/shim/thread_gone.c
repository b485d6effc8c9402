/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread ends while Windows tells every DLL of it, under a lock of the loader's: whoever
 * waits there keeps others from loading what the wait may need.  So a thread of ours ends the
 * streams of the one that went; it is started with the first one that has any.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/wait.h"
#include "shim/engine/thread.h"

#define LOOK_NS 60000000000ull

static struct {
	_Atomic(struct thread_rest *) rests; /* linked by thread_rest_next() */
	_Atomic uint32_t count;		     /* futex word */
	_Atomic bool started;
} gone;

static void *gone_main(void *unused)
{
	(void)unused;
	for (;;) {
		uint32_t count = atomic_load(&gone.count);
		struct thread_rest *rest = atomic_exchange(&gone.rests, NULL), *next;

		for (; rest; rest = next) {
			next = *thread_rest_next(rest);
			thread_rest_end(rest);
		}
		wait_sleep(&gone.count, count, LOOK_NS);
	}
	return NULL;
}

static void gone_start(void)
{
	pthread_t thread;

	if (atomic_exchange(&gone.started, true))
		return;
	if (pthread_create(&thread, NULL, gone_main, NULL))
		atomic_store(&gone.started, false); /* the next one tries again */
	else
		pthread_detach(thread);
}

void thread_gone(struct thread_rest *rest)
{
	struct thread_rest **next = thread_rest_next(rest);

	*next = atomic_load(&gone.rests);
	while (!atomic_compare_exchange_weak(&gone.rests, next, rest))
		;
	atomic_fetch_add(&gone.count, 1);
	wait_wake(&gone.count);
	gone_start();
}
