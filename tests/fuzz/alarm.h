/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer's timer interrupts system calls of a target that waits.
 */
#ifndef VCUDA_TESTS_FUZZ_ALARM_H
#define VCUDA_TESTS_FUZZ_ALARM_H

#include <signal.h>

/* Lets the kernel go on with what the timer interrupts; poll, which ends all the same, is the
 * caller's. */
static inline void alarm_restarts(void)
{
	struct sigaction action;

	if (sigaction(SIGALRM, NULL, &action))
		return;
	action.sa_flags |= SA_RESTART;
	sigaction(SIGALRM, &action, NULL);
}

#endif
