/* SPDX-License-Identifier: Apache-2.0
 *
 * What the loader guard (libutilities.so) and the driver front tell each other where managed
 * memory is watched by SIGSEGV: the guard stands in for functions of the C library that have to
 * know of it.  NULL, as almost always: they go straight on to the C library's.
 */
#ifndef VCUDA_COMMON_GUARD_H
#define VCUDA_COMMON_GUARD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct vcuda_guard {
	/* What sigaction(SIGSEGV) sets and asks: the program's action, behind ours. */
	int (*_Atomic action)(const struct sigaction *set, struct sigaction *was);
	/* A system call will read from, or write to, these bytes: the kernel could not wait for
	 * them. */
	void (*_Atomic reach)(const void *at, size_t n, bool write);
};

#endif
