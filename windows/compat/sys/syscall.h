/* SPDX-License-Identifier: Apache-2.0
 *
 * The two system calls that the client makes by number.
 */
#ifndef VCUDA_COMPAT_SYS_SYSCALL_H
#define VCUDA_COMPAT_SYS_SYSCALL_H
#include <stdarg.h>
#include <time.h>

#include "windows/os/os.h"

#define SYS_futex 202
#define SYS_gettid 186

static inline long syscall(long number, ...)
{
	volatile uint32_t *word;
	const struct timespec *t;
	uint32_t value;
	va_list arguments;
	int op;

	if (number == SYS_gettid)
		return (long)os_thread_id();
	va_start(arguments, number);
	word = va_arg(arguments, void *);
	op = va_arg(arguments, int);
	value = va_arg(arguments, uint32_t);
	t = va_arg(arguments, const struct timespec *);
	va_end(arguments);
	if (op)
		os_futex_wake(word);
	else
		os_futex_wait(
			word, value, (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec);
	return 0;
}
#endif
