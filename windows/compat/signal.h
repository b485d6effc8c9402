/* SPDX-License-Identifier: Apache-2.0
 *
 * There are no signals: blocking them succeeds, and nothing is ever caught.
 */
#ifndef VCUDA_COMPAT_SIGNAL_H
#define VCUDA_COMPAT_SIGNAL_H
#include_next <signal.h>
#include <sys/types.h>

#define SIGBUS 7
#define SIG_SETMASK 2
#define SIG_BLOCK 0
#define SIG_UNBLOCK 1
#define SA_SIGINFO 4
typedef unsigned long long os_sigset;
#define sigset_t os_sigset
typedef struct {
	void *si_addr;
} siginfo_t;
struct sigaction {
	void (*sa_sigaction)(int number, siginfo_t *info, void *context);
	int sa_flags;
};
static inline int sigaction(int number, const struct sigaction *set, struct sigaction *was)
{
	(void)number, (void)set, (void)was;
	return 0;
}
static inline int sigfillset(sigset_t *set)
{
	*set = ~(sigset_t)0;
	return 0;
}
static inline int sigemptyset(sigset_t *set)
{
	*set = 0;
	return 0;
}
static inline int sigaddset(sigset_t *set, int number)
{
	*set |= (sigset_t)1 << number;
	return 0;
}
static inline int sigdelset(sigset_t *set, int number)
{
	*set &= ~((sigset_t)1 << number);
	return 0;
}
#endif
