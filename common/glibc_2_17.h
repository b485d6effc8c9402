/* SPDX-License-Identifier: Apache-2.0
 *
 * What glibc 2.17 does not have yet of what we call, as system calls. Included before
 * everything else
 * (-include) where we build against that glibc: what is preloaded, and the Python wheel. A
 * kernel that is too old answers ENOSYS, as it does to a newer glibc.
 */
#ifndef VCUDA_COMMON_GLIBC_2_17_H
#define VCUDA_COMMON_GLIBC_2_17_H

#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* Under names of our own, since headers may declare what the library lacks. The numbers are
 * those of x86-64; the kernel's headers may be older than the calls. */
#define memfd_create vcuda_memfd_create
#define getrandom vcuda_getrandom
#define close_range vcuda_close_range
#define renameat2 vcuda_renameat2
#define explicit_bzero vcuda_explicit_bzero

static inline int memfd_create(const char *name, unsigned flags)
{
	return (int)syscall(319, name, flags);
}

static inline ssize_t getrandom(void *buffer, size_t length, unsigned flags)
{
	return syscall(318, buffer, length, flags);
}

static inline int close_range(unsigned first, unsigned last, int flags)
{
	return (int)syscall(436, first, last, flags);
}

static inline int renameat2(
	int old_folder, const char *old, int new_folder, const char *new, unsigned flags)
{
	return (int)syscall(316, old_folder, old, new_folder, new, flags);
}

/* The compiler must not drop it as a write that nobody reads. */
static inline void explicit_bzero(void *secret, size_t length)
{
	memset(secret, 0, length);
	__asm__ volatile("" : : "r"(secret) : "memory");
}

#endif
