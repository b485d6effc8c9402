/* SPDX-License-Identifier: Apache-2.0
 *
 * A fault on a thread beside the loop reaches its handler: the software GPU runs the kernels
 * that a library waits for there, and a kernel's bad address is the session's error 700, not
 * the worker's end.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/wait.h"
#include "gpu-agent/worker/loop/beside.h"
#include "gpu-agent/worker/worker_state.h"

static _Thread_local sigjmp_buf behind;
static int caught, terminations_blocked;

static CUresult current(CUcontext context)
{
	(void)context;
	return CUDA_SUCCESS;
}

static void on_fault(int number)
{
	caught |= 1 << number;
	siglongjmp(behind, 1);
}

static void fault(struct beside_job *job)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
	sigset_t blocked;

	(void)job;
	for (unsigned i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (!sigsetjmp(behind, 1))
			pthread_kill(pthread_self(), faults[i]);
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	terminations_blocked = sigismember(&blocked, SIGTERM);
}

static void faults_are_caught_other_signals_are_the_loops(void **state)
{
	const struct sigaction action = {.sa_handler = on_fault};
	const uint64_t until = wait_now() + 10000000000ull;
	static struct beside_job job = {.run = fault};
	struct worker *w = calloc(1, sizeof(*w));

	(void)state;
	w->cuda.cuCtxSetCurrent = current;
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	sigaction(SIGFPE, &action, NULL);
	sigaction(SIGILL, &action, NULL);
	assert_true(beside_start(w, &job, CONTEXT_PRIMARY(0)));
	while (!atomic_load(&job.ended) && wait_now() < until)
		sched_yield();
	assert_true(atomic_load(&job.ended));
	assert_int_equal(caught, 1 << SIGSEGV | 1 << SIGBUS | 1 << SIGFPE | 1 << SIGILL);
	assert_int_equal(terminations_blocked, 1);
	free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(faults_are_caught_other_signals_are_the_loops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
