/* SPDX-License-Identifier: Apache-2.0
 *
 * NVIDIA's control device, seen through the preloaded guard on a machine that has none: it is
 * there for who asks, as stat, stat64, access and what old programs were linked with; nothing
 * else is.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#undef NDEBUG

int old_stat(int version, const char *path, struct stat *found);
__asm__(".symver old_stat,__xstat@GLIBC_2.2.5");

int main(void)
{
	static const char control[] = "/dev/nvidiactl";
	struct stat found;
	struct stat64 found64;

	if (open(control, O_RDONLY) >= 0) {
		puts("skip: this machine has NVIDIA's driver");
		return 0;
	}
	assert(errno == ENOENT);
	assert(!stat(control, &found));
	assert(S_ISCHR(found.st_mode) && found.st_rdev == makedev(195, 255));
	assert(!stat64(control, &found64) && S_ISCHR(found64.st_mode));
	found.st_mode = 0;
	assert(!old_stat(1, control, &found) && S_ISCHR(found.st_mode));
	assert(!access(control, F_OK) && !access(control, R_OK | W_OK));
	assert(access(control, X_OK) && errno == ENOENT);

	assert(stat("/dev/nvidia", &found) && errno == ENOENT);
	assert(access("/dev/nvidiactl2", F_OK) && errno == ENOENT);
	assert(stat("", &found) && errno == ENOENT);
	assert(!stat("/dev/null", &found) && found.st_rdev == makedev(1, 3));
	assert(!access("/dev/null", R_OK));
	assert(old_stat(1, "/nowhere", &found) && errno == ENOENT);
	return 0;
}
