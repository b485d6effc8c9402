/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VCUDA_COMPAT_SYS_MMAN_H
#define VCUDA_COMPAT_SYS_MMAN_H
#include <errno.h>
#include <sys/types.h>

#include "windows/os/os.h"

#define PROT_NONE 0
#define PROT_READ 1
#define PROT_WRITE 2
#define MAP_SHARED 1
#define MAP_PRIVATE 2
#define MAP_FIXED 0x10
#define MAP_ANONYMOUS 0x20
#define MAP_NORESERVE 0x4000
#define MAP_FIXED_NOREPLACE 0x100000
#define MAP_FAILED ((void *)-1)
#define MFD_CLOEXEC 1
#define MFD_ALLOW_SEALING 2

/* What lies at a fixed address is replaced where MAP_FIXED says so; between the two somebody
 * else may take it, which fails. */
static inline void *mmap(void *at, size_t size, int access, int flags, int fd, long long offset)
{
	void *mapped;

	if (offset) {
		errno = EINVAL;
		return MAP_FAILED;
	}
	if (flags & MAP_FIXED)
		os_unmap(at, size);
	mapped = os_map(flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) ? at : NULL, size,
		(unsigned)access, flags & MAP_ANONYMOUS ? -1 : fd);
	return mapped ? mapped : MAP_FAILED;
}
#define munmap(at, size) os_unmap(at, size)
static inline int memfd_create(const char *name, unsigned flags)
{
	(void)name, (void)flags;
	return os_memory_create();
}
#endif
