/* SPDX-License-Identifier: Apache-2.0
 *
 * Where managed memory is watched by SIGSEGV, the program's own action for that signal stands
 * behind ours, whichever was set first; and no thread blocks it, since a fault that is blocked
 * ends the process.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

#include "common/guard.h"
#include "shim/loader/loader.h"

extern struct vcuda_guard vcuda_guard;

#define NEXT(name)                                                                             \
	({                                                                                     \
		static void *_Atomic known;                                                    \
		(__typeof__(&(name)))loader_next(#name, &known);                               \
	})

EXPORTED int sigaction(int sig, const struct sigaction *set, struct sigaction *was)
{
	int (*action)(const struct sigaction *, struct sigaction *) =
		atomic_load_explicit(&vcuda_guard.action, memory_order_acquire);

	if (__builtin_expect(action && sig == SIGSEGV, 0))
		return action(set, was);
	return NEXT(sigaction)(sig, set, was);
}

EXPORTED sighandler_t signal(int sig, sighandler_t handler)
{
	struct sigaction set = {.sa_handler = handler, .sa_flags = SA_RESTART}, was;

	if (sig != SIGSEGV || !atomic_load(&vcuda_guard.action))
		return NEXT(signal)(sig, handler);
	sigemptyset(&set.sa_mask);
	sigaddset(&set.sa_mask, sig);
	return sigaction(sig, &set, &was) ? SIG_ERR : was.sa_handler;
}

/* What is to be blocked, without SIGSEGV. */
static const sigset_t *unblocked(int how, const sigset_t *set, sigset_t *own)
{
	if (!set || how == SIG_UNBLOCK || !atomic_load(&vcuda_guard.action) ||
		sigismember(set, SIGSEGV) != 1)
		return set;
	*own = *set;
	sigdelset(own, SIGSEGV);
	return own;
}

EXPORTED int sigprocmask(int how, const sigset_t *set, sigset_t *was)
{
	sigset_t own;

	return NEXT(sigprocmask)(how, unblocked(how, set, &own), was);
}

EXPORTED int pthread_sigmask(int how, const sigset_t *set, sigset_t *was)
{
	sigset_t own;

	return NEXT(pthread_sigmask)(how, unblocked(how, set, &own), was);
}
