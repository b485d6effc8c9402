/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory between the program and its sidecar, which are one process here: sections, by
 * descriptors, as in sidecar/memory/segment.h.
 */
#include "sidecar/memory/segment.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"

#define GRAIN 65536ull /* addresses of mappings */

static uint64_t budget;
static _Atomic uint64_t spent;

void segment_configure(uint64_t bytes, const char *label)
{
	(void)label;
	budget = bytes;
}

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

static int segment_make(uint64_t size, struct segment **segment, struct error *error)
{
	cleanup_free struct segment *made = calloc(1, sizeof(*made));
	cleanup_close int fd = memfd_create("", 0);

	if (!made || fd < 0 || ftruncate(fd, size))
		return error_set(
			error, ENOMEM, "memory of %llu MiB", (unsigned long long)(size >> 20));
	made->base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (made->base == MAP_FAILED)
		return error_set(error, errno, "mapping memory of %llu MiB",
			(unsigned long long)(size >> 20));
	made->size = size;
	made->fd = take_fd(&fd);
	*segment = made;
	made = NULL;
	return 0;
}

int segment_create(enum channel_mode mode, uint64_t size, struct segment **segment,
	void (*between)(void *argument), void *argument, struct error *error)
{
	int ret;

	(void)mode, (void)between, (void)argument;
	if (__builtin_add_overflow(size, GRAIN - 1, &size) || size > INT64_MAX)
		return error_set(error, EINVAL, "shared memory");
	size &= ~(GRAIN - 1);
	ret = segment_spend(size, error);
	if (ret < 0)
		return ret;
	ret = segment_make(size, segment, error);
	if (ret < 0)
		atomic_fetch_sub(&spent, size);
	return ret;
}

int segment_fill(struct segment *segment, void (*between)(void *argument), void *argument,
	struct error *error)
{
	(void)segment, (void)between, (void)argument, (void)error;
	return 0; /* from the start */
}

/* Its pages go with its last mapping. */
void segment_empty(struct segment *segment)
{
	(void)segment;
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
		segment_free(segment);
	}
}

void segments_fini(struct segments *segments, bool empty)
{
	(void)empty;
	segments_reap(segments);
	for (int i = 0; i <= SEGMENTS_MAX; i++) {
		segment_free(segments->at[i]);
		segments->at[i] = NULL;
	}
}
