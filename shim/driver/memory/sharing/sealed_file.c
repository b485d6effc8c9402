/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/driver/memory/sharing/sealed_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool file_sized(int fd, uint64_t bytes, bool reserved)
{
	int error;

	if (!reserved)
		return !ftruncate(fd, (off_t)bytes);
	do
		error = posix_fallocate(fd, 0, (off_t)bytes);
	while (error == EINTR);
	return !error;
}

int sealed_file_make(const char *name, const void *head, size_t head_bytes, uint64_t bytes,
	bool reserved, unsigned seals)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || (file_sized(fd, bytes, reserved) &&
			      pwrite(fd, head, head_bytes, 0) == (ssize_t)head_bytes &&
			      !fcntl(fd, F_ADD_SEALS, (int)seals | F_SEAL_SHRINK)))
		return fd;
	close(fd);
	return -1;
}

bool sealed_file_read(int fd, const char magic[8], void *head, size_t head_bytes)
{
	int seals;

	if (pread(fd, head, head_bytes, 0) != (ssize_t)head_bytes ||
		memcmp(head, magic, 8) != 0)
		return false;
	seals = fcntl(fd, F_GET_SEALS);
	return seals >= 0 && seals & F_SEAL_SHRINK;
}
