/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VCUDA_COMPAT_PTHREAD_H
#define VCUDA_COMPAT_PTHREAD_H
#include <signal.h>
#include_next <pthread.h>

#undef pthread_sigmask
#undef pthread_atfork
static inline int pthread_sigmask(int how, const sigset_t *set, sigset_t *was)
{
	(void)how, (void)set;
	if (was)
		*was = 0;
	return 0;
}
/* No process is ever forked. */
static inline int pthread_atfork(
	void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
	(void)prepare, (void)parent, (void)child;
	return 0;
}
#endif
