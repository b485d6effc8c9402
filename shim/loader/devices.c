/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a machine has a GPU some programs decide by NVIDIA's control device: JAX asks for
 * /dev/nvidiactl before it opens CUDA, and stays on the CPU without it.  A pod without a GPU
 * has none, so it is there for those that ask; who opens it is told the truth.
 */
#undef _FORTIFY_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "shim/loader/loader.h"

/* Its numbers: Documentation/admin-guide/devices.txt of Linux has 195 for NVIDIA's. */
enum { NVIDIA_MAJOR = 195, CONTROL_MINOR = 255 };

/* After a call about PATH that gave STATUS. */
static bool stands_in(const char *path, int status)
{
	return __builtin_expect(status < 0, 0) && errno == ENOENT &&
	       !strcmp(path, "/dev/nvidiactl");
}

#define STAT_OF(suffix)                                                                        \
	EXPORTED int stat##suffix(                                                             \
		const char *restrict path, struct stat##suffix *restrict found)                \
	{                                                                                      \
		int status;                                                                    \
                                                                                               \
		loader_reach_text(path);                                                       \
		loader_reach(found, sizeof(*found), true);                                     \
		status = fstatat##suffix(AT_FDCWD, path, found, 0);                            \
		if (!stands_in(path, status))                                                  \
			return status;                                                         \
		*found = (struct stat##suffix){                                                \
			.st_mode = S_IFCHR | 0666,                                             \
			.st_nlink = 1,                                                         \
			.st_rdev = makedev(NVIDIA_MAJOR, CONTROL_MINOR),                       \
			.st_blksize = 4096,                                                    \
		};                                                                             \
		return 0;                                                                      \
	}                                                                                      \
	/* Of programs that were linked with a glibc before 2.33. */                           \
	int __xstat##suffix(int version, const char *path, struct stat##suffix *found);        \
	EXPORTED int __xstat##suffix(                                                          \
		int version, const char *path, struct stat##suffix *found)                     \
	{                                                                                      \
		(void)version;                                                                 \
		return stat##suffix(path, found);                                              \
	}

STAT_OF()
STAT_OF(64)

EXPORTED int access(const char *path, int mode)
{
	int status;

	loader_reach_text(path);
	status = faccessat(AT_FDCWD, path, mode, 0);
	return stands_in(path, status) && !(mode & X_OK) ? 0 : status;
}
