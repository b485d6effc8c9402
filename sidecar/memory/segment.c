/* SPDX-License-Identifier: Apache-2.0 */
#include "sidecar/memory/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/cleanup.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define TMPFS 0x01021994 /* f_type */
#define SHM_FOLDER "/dev/shm"
#define SEGMENT_SMALL (64u << 20) /* below: not worth reading what is free */
#define SEGMENT_STEP (256u << 20) /* reserved at a time: 0.1 s */

/* All segments together; one process, one budget. */
static uint64_t budget;
static _Atomic uint64_t spent;
static char memfd_name[32] = "vcuda";

void segment_configure(uint64_t bytes, const char *label)
{
	budget = bytes;
	snprintf(memfd_name, sizeof(memfd_name), "vcuda-%.16s", label);
}

/* Takes SIZE bytes out of the budget. */
static int segment_spend(uint64_t size, struct error *error)
{
	uint64_t before = atomic_fetch_add(&spent, size);

	if (!budget || (before <= budget && size <= budget - before))
		return 0;
	atomic_fetch_sub(&spent, size);
	return error_set(error, ENOMEM,
		"shared memory of %llu KiB: %llu of %llu KiB are in use (shm_size)",
		(unsigned long long)(size >> 10), (unsigned long long)(before >> 10),
		(unsigned long long)(budget >> 10));
}

static int segment_file(enum channel_mode mode, struct error *error)
{
	int fd = mode == CHANNEL_POD ? memfd_create(memfd_name, MFD_CLOEXEC | MFD_ALLOW_SEALING)
				     : open(SHM_FOLDER, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		return error_set(error, errno, "shared memory (%s)",
			mode == CHANNEL_POD ? "memfd" : SHM_FOLDER);
	return fd;
}

static uint64_t number_in(const char *path, const char *label, uint64_t otherwise)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[2048];
	const char *at = text;
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return otherwise;
	text[n] = 0;
	if (*label)
		at = strstr(text, label);
	if (!at)
		return otherwise;
	at += strlen(label);
	at += strspn(at, " ");
	return *at >= '0' && *at <= '9' ? strtoull(at, NULL, 10) : otherwise;
}

/* Nothing limits a memfd but the machine: asking for more than there is would end in the
 * out-of-memory killer, so large pieces are held against what is free here and in our cgroup.
 */
static int segment_affordable(uint64_t size, struct error *error)
{
	uint64_t available, limit, current;

	if (size < SEGMENT_SMALL)
		return 0;
	available = number_in("/proc/meminfo", "MemAvailable:", UINT64_MAX >> 10) << 10;
	limit = number_in("/sys/fs/cgroup/memory.max", "", UINT64_MAX);
	current = number_in("/sys/fs/cgroup/memory.current", "", 0);
	limit = limit > current ? limit - current : 0;
	if (limit < available)
		available = limit;
	if (size <= available - available / 8)
		return 0;
	return error_set(error, ENOMEM, "shared memory of %llu MiB where %llu MiB are free",
		(unsigned long long)(size >> 20), (unsigned long long)(available >> 20));
}

struct range {
	uint64_t from, to;
};

static int segment_reserve(
	int fd, struct range range, void (*between)(void *argument), void *argument)
{
	uint64_t at = range.from, n;
	int ret = 0;

	for (; !ret && at < range.to; at += n) {
		if (at > range.from && between)
			between(argument);
		n = range.to - at < SEGMENT_STEP ? range.to - at : SEGMENT_STEP;
		ret = posix_fallocate(fd, (off_t)at, (off_t)n);
	}
	return ret;
}

/* Takes *fd. 0, or -errno with *error. */
static int segment_map(int *fd, uint64_t size, struct segment **segment, struct error *error)
{
	cleanup_free struct segment *made = calloc(1, sizeof(*made));

	if (!made)
		return error_set(error, ENOMEM, "shared memory");
	made->base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (made->base == MAP_FAILED)
		return error_set(error, errno, "mapping shared memory of %llu MiB",
			(unsigned long long)(size >> 20));
	made->size = size;
	made->fd = take_fd(fd);
	*segment = made;
	made = NULL;
	return 0;
}

static int segment_unreserved(struct error *error, int code, uint64_t size)
{
	return error_set(
		error, code, "shared memory of %llu MiB", (unsigned long long)(size >> 20));
}

/* SIZE: whole pages, spent already. LAYOUT: only its first parts get memory; or NULL. */
static int segment_make(enum channel_mode mode, uint64_t size,
	const struct channel_page *layout, struct segment **segment,
	void (*between)(void *argument), void *argument, struct error *error)
{
	cleanup_close int fd = segment_file(mode, error);
	struct range first = {0, size}, second = {size, size};
	int ret;

	if (fd < 0)
		return fd;
	if (layout) {
		first.to = layout->arena + CHANNEL_FIRST;
		second = (struct range){layout->bounce, layout->bounce + CHANNEL_FIRST};
		if (ftruncate(fd, (off_t)size))
			return segment_unreserved(error, errno, size);
	}
	ret = segment_reserve(fd, first, between, argument);
	if (!ret)
		ret = segment_reserve(fd, second, between, argument);
	if (ret)
		return segment_unreserved(error, ret, size);
	if (mode == CHANNEL_POD && fcntl(fd, F_ADD_SEALS, SEALS))
		return error_set(error, errno, "sealing shared memory");
	return segment_map(&fd, size, segment, error);
}

static int segment_new(enum channel_mode mode, uint64_t size, const struct channel_page *layout,
	struct segment **segment, void (*between)(void *argument), void *argument,
	struct error *error)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	int ret;

	if (__builtin_add_overflow(size, page - 1, &size) || size > INT64_MAX)
		return error_set(error, EINVAL, "shared memory");
	size &= ~(page - 1);
	ret = segment_affordable(size, error);
	if (!ret)
		ret = segment_spend(size, error);
	if (ret < 0)
		return ret;
	ret = segment_make(mode, size, layout, segment, between, argument, error);
	if (ret < 0)
		atomic_fetch_sub(&spent, size);
	return ret;
}

int segment_create(enum channel_mode mode, uint64_t size, struct segment **segment,
	void (*between)(void *argument), void *argument, struct error *error)
{
	return segment_new(mode, size, NULL, segment, between, argument, error);
}

int segment_create_own(enum channel_mode mode, const struct channel_page *layout,
	struct segment **segment, struct error *error)
{
	return segment_new(mode, layout->size, layout, segment, NULL, NULL, error);
}

int segment_fill(struct segment *segment, void (*between)(void *argument), void *argument,
	struct error *error)
{
	int ret = segment_reserve(
		segment->fd, (struct range){0, segment->size}, between, argument);

	return ret ? segment_unreserved(error, ret, segment->size) : 0;
}

/* Memory and not a disk, of this user, that nobody can make smaller. */
static int segment_ours(enum channel_mode mode, int fd, uint64_t size, struct error *error)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct statfs files;
	struct stat status;
	int seals;

	if (fd < 0)
		return error_set(error, EPERM, "shared memory: no descriptor came");
	if (fstat(fd, &status) || fstatfs(fd, &files))
		return error_set(error, errno, "shared memory");
	if (!S_ISREG(status.st_mode) || files.f_type != TMPFS)
		return error_set(error, EPERM, "shared memory: not a file of memory");
	if (status.st_uid != geteuid())
		return error_set(error, EPERM, "shared memory: made by user %u, not %u",
			status.st_uid, geteuid());
	if (!size || size % page || (uint64_t)status.st_size != size)
		return error_set(error, EPERM, "shared memory: %llu bytes, said to be %llu",
			(unsigned long long)status.st_size, (unsigned long long)size);
	seals = mode == CHANNEL_POD ? fcntl(fd, F_GET_SEALS) : SEALS;
	if (seals < 0 || (seals & SEALS) != SEALS)
		return error_set(error, EPERM, "shared memory: other seals than ours");
	return 0;
}

int segment_adopt(enum channel_mode mode, int fd, uint64_t size, struct segment **segment,
	struct error *error)
{
	int ret = segment_ours(mode, fd, size, error);

	if (!ret)
		ret = segment_spend(size, error);
	if (ret < 0)
		return ret;
	ret = segment_map(&fd, size, segment, error);
	if (ret < 0)
		atomic_fetch_sub(&spent, size);
	return ret;
}

void segment_empty(struct segment *segment)
{
	if (segment)
		fallocate(segment->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			(off_t)segment->size);
}

void segment_free(struct segment *segment)
{
	if (!segment)
		return;
	atomic_fetch_sub(&spent, segment->size);
	munmap(segment->base, segment->size);
	close(segment->fd);
	free(segment);
}

void segments_reap(struct segments *segments)
{
	struct segment *segment;

	while ((segment = segments->closing)) {
		segments->closing = segment->next;
		segment_empty(segment);
		segment_free(segment);
	}
}

void segments_fini(struct segments *segments, bool empty)
{
	segments_reap(segments);
	for (int i = 0; i <= SEGMENTS_MAX; i++) {
		if (empty)
			segment_empty(segments->at[i]);
		segment_free(segments->at[i]);
		segments->at[i] = NULL;
	}
}
