/* SPDX-License-Identifier: Apache-2.0
 *
 * Which CUDA the runtime in a stripped file is of.  The runtime keeps the names of its
 * functions as strings, for profilers: those that came and went tell the major version.  The
 * compiler of the device code signs it with its release, which is the runtime's if the major is
 * the same.
 */
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "shim/driver/static_runtime.h"

/* Of a larger file the beginning, where the strings are. */
#define READ_MOST ((size_t)256 << 20)
#define MINORS 100

/* TEXT with its NUL: a whole name. */
static bool has(const char *bytes, size_t size, const char *text)
{
	return memmem(bytes, size, text, strlen(text) + 1);
}

static unsigned major_of(const char *bytes, size_t size)
{
	if (!has(bytes, size, "cudaMalloc"))
		return 0;
	if (has(bytes, size, "cudaGetDeviceProperties_v2"))
		return 12;
	/* New with CUDA 13. */
	return has(bytes, size, "cudaLogsRegisterCallback") ? 13 : 11;
}

static unsigned number(const char **at, const char *end)
{
	unsigned value = 0;

	for (; *at < end && **at >= '0' && **at <= '9' && value < MINORS; ++*at)
		value = 10 * value + (unsigned)(**at - '0');
	return value;
}

/* The highest release of that major that compiled something in it. */
static void find_minor(const char *bytes, size_t size, struct static_runtime *runtime)
{
	static const char words[] = "Cuda compilation tools, release ";
	const char *at = bytes, *end = bytes + size;

	while ((at = memmem(at, (size_t)(end - at), words, sizeof(words) - 1))) {
		unsigned major, minor;

		at += sizeof(words) - 1;
		major = number(&at, end);
		if (at == end || *at++ != '.')
			continue;
		minor = number(&at, end);
		if (major != runtime->major || minor >= MINORS ||
			(runtime->minor_known && minor < runtime->minor))
			continue;
		runtime->minor = minor;
		runtime->minor_known = true;
	}
}

bool static_runtime_read(const char *path, struct static_runtime *runtime)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;
	size_t size;
	char *bytes;

	*runtime = (struct static_runtime){0};
	if (fd < 0 || fstat(fd, &status) || !S_ISREG(status.st_mode) || status.st_size <= 0)
		return false;
	size = (size_t)status.st_size < READ_MOST ? (size_t)status.st_size : READ_MOST;
	bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return false;
	runtime->major = major_of(bytes, size);
	if (runtime->major)
		find_minor(bytes, size, runtime);
	munmap(bytes, size);
	return runtime->major;
}
