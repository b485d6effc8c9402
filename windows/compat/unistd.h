/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of functions that structs of ours have for their members, too, are no macros: the
 * compiler is told under which name the linker finds them.
 */
#ifndef VCUDA_COMPAT_UNISTD_H
#define VCUDA_COMPAT_UNISTD_H
#include_next <unistd.h>
#include <fcntl.h>

#include "windows/os/os.h"

int close(int fd) __asm__("os_close");
int read(int fd, void *bytes, unsigned n) __asm__("os_read");
int write(int fd, const void *bytes, unsigned n) __asm__("os_write");
int dup(int fd) __asm__("os_dup");

#define _SC_PAGESIZE 30
static inline long sysconf(int name)
{
	(void)name;
	return 4096;
}
static inline unsigned geteuid(void)
{
	return 0;
}
static inline long long pread(int fd, void *bytes, size_t n, long long at)
{
	return os_memory_transfer(fd, bytes, n, (uint64_t)at, false);
}
static inline long long pwrite(int fd, const void *bytes, size_t n, long long at)
{
	return os_memory_transfer(fd, (void *)bytes, n, (uint64_t)at, true);
}
#undef ftruncate
#define ftruncate(fd, size) os_memory_resize(fd, (uint64_t)(size))
#define gethostname(name, size) os_hostname(name, size)
#define HOST_NAME_MAX 64
#endif
