/* SPDX-License-Identifier: Apache-2.0
 *
 * What the loader guard (libutilities.so) and the fronts tell each other.
 */
#ifndef VCUDA_COMMON_GUARD_H
#define VCUDA_COMMON_GUARD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vcuda_guard {
	/* The number of the object that ADDRESS is in, if it has a CUDA runtime of its own
	 * whose functions are now ours; no two ever have the same. 0: another object. Any
	 * thread. */
	unsigned (*linked)(const void *address);

	/* Set where managed memory is watched by SIGSEGV: the guard stands in for functions of
	 * the C library that have to know of it. NULL, as almost always: they go straight on to
	 * the C library's. */

	/* What sigaction(SIGSEGV) sets and asks: the program's action, behind ours. */
	int (*_Atomic action)(const struct sigaction *set, struct sigaction *was);
	/* A system call will read from, or write to, these bytes: the kernel could not wait for
	 * them.  The address is a number: to a compiler, a pointer to const is memory that is
	 * read. */
	void (*_Atomic reach)(uintptr_t at, size_t n, bool write);
};

#endif
