/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VCUDA_COMPAT_SYS_STAT_H
#define VCUDA_COMPAT_SYS_STAT_H
#include_next <sys/stat.h>

#include "windows/os/os.h"

#undef stat
#undef fstat
#undef lstat
#define stat os_stat
static inline int os_stat(const char *path, struct os_stat *status)
{
	return os_status(path, -1, status);
}
static inline int os_fstat(int fd, struct os_stat *status)
{
	return os_status(NULL, fd, status);
}
#define fstat os_fstat
#define lstat os_stat
#endif
