/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VCUDA_COMPAT_FCNTL_H
#define VCUDA_COMPAT_FCNTL_H
#include_next <fcntl.h>
#include <errno.h>

#include "windows/os/os.h"

#define O_CLOEXEC 0
#define O_NONBLOCK 0x800
#define FD_CLOEXEC 1
#define F_SETFD 2
#define F_GETFL 3
#define F_SETFL 4
#define F_ADD_SEALS 1033
#define F_GET_SEALS 1034
#define F_SEAL_SEAL 1
#define F_SEAL_SHRINK 2
#define F_SEAL_GROW 4
#define F_SEAL_WRITE 8

/* Within the process nobody is kept from anything: sealing succeeds. */
static inline int fcntl_one(int fd, int command, int value)
{
	switch (command) {
	case F_GETFL: return os_get_flags(fd);
	case F_SETFL: return os_set_flags(fd, value);
	case F_SETFD:
	case F_ADD_SEALS: return 0;
	default: errno = EINVAL; return -1;
	}
}
#define fcntl_choose(fd, command, value, ...) fcntl_one(fd, command, value)
#define fcntl(...) fcntl_choose(__VA_ARGS__, 0)
int open(const char *path, int flags, ...) __asm__("os_open");
#endif
