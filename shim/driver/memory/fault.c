/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses a way of watching, and hears of all touches: see fault.h.
 */
#include "shim/driver/memory/fault.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

#include "shim/driver/memory/managed_part.h"

static void *fault_thread(void *way)
{
	struct fault fault;

	while (((const struct fault_way *)way)->next(&fault))
		managed_touch(&fault);
	return NULL;
}

/* The app's signals are not for this thread. */
static bool fault_start(const struct fault_way *way)
{
	sigset_t all, old;
	pthread_t thread;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&thread, NULL, fault_thread, (void *)way);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!ret)
		pthread_detach(thread);
	return !ret;
}

const struct fault_way *fault_open(void)
{
	const struct fault_way *way = &fault_userfaultfd;

	return way->open() && fault_start(way) ? way : NULL;
}
