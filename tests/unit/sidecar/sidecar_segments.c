/* SPDX-License-Identifier: Apache-2.0
 *
 * Segments: sizes and bounds, names that come and go, memory that the app takes away.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "sidecar/memory/segment.h"

static struct segment *make(enum channel_mode mode, uint64_t size)
{
	struct segment *segment = NULL;
	struct error error;

	if (segment_create(mode, size, &segment, NULL, NULL, &error) < 0)
		fail_msg("%s", error.text);
	return segment;
}

static void test_sealed(void **state)
{
	struct segment *segment = make(CHANNEL_POD, 5000);
	struct stat st;

	(void)state;
	assert_int_equal(segment->size, 8192);
	assert_int_equal(fstat(segment->fd, &st), 0);
	assert_int_equal(st.st_size, 8192);
	assert_int_equal(st.st_blocks * 512, 8192);
	assert_int_equal(ftruncate(segment->fd, 4096), -1);
	assert_int_equal(ftruncate(segment->fd, 16384), -1);
	assert_int_equal(
		fcntl(segment->fd, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	segment_free(segment);
}

static void test_posix(void **state)
{
	struct segment *segment = make(CHANNEL_HOST, 4096);
	struct stat st, shm;

	(void)state;
	assert_int_equal(fstat(segment->fd, &st), 0);
	assert_int_equal(stat("/dev/shm", &shm), 0);
	assert_int_equal(st.st_dev, shm.st_dev);
	assert_int_equal(st.st_nlink, 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	segment_free(segment);
}

static uint64_t in_memory(const struct segment *segment)
{
	struct stat st;

	assert_int_equal(fstat(segment->fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* A channel's own segment: what every program uses, and the rest where it is asked for. */
static void test_first_part(void **state)
{
	struct channel_page layout = {0};
	uint64_t size = segments_layout(&layout, CHANNEL_RING, CHANNEL_ARENA, CHANNEL_BOUNCE);

	(void)state;
	for (enum channel_mode mode = CHANNEL_HOST; mode <= CHANNEL_POD; mode++) {
		struct segment *segment;
		struct error error;

		assert_int_equal(segment_create_own(mode, &layout, &segment, &error), 0);
		assert_int_equal(segment->size, size);
		assert_int_equal(in_memory(segment), layout.arena + 2 * CHANNEL_FIRST);
		memset(segment->base, 1, layout.arena + CHANNEL_FIRST);
		memset(segment->base + layout.bounce, 1, CHANNEL_FIRST);
		assert_int_equal(in_memory(segment), layout.arena + 2 * CHANNEL_FIRST);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(segment_fill(segment, NULL, NULL, &error), 0);
			assert_int_equal(in_memory(segment), size);
		}
		assert_int_equal(segment->base[layout.bounce], 1);
		segment_free(segment);
	}
}

static void test_bounds(void **state)
{
	struct segments segments = {
		.arena = 4096, .arena_size = 100, .bounce = 5000, .bounce_size = 50};
	struct segment *pinned = make(CHANNEL_POD, 4096);
	int number;

	(void)state;
	segments.at[0] = make(CHANNEL_POD, 8192);
	number = segments_add(&segments, pinned);
	assert_int_equal(number, 1);
	assert_ptr_equal(segments_out(&segments, 0, 4096, 100), segments.at[0]->base + 4096);
	assert_non_null(segments_out(&segments, 0, 4196, 0));
	assert_null(segments_out(&segments, 0, 4096, 101));
	assert_null(segments_out(&segments, 0, 4197, 0));
	assert_null(segments_out(&segments, 0, 4095, 1));
	assert_null(segments_out(&segments, 0, 5000, 1));
	assert_null(segments_out(&segments, 0, 4100, UINT64_MAX));
	assert_null(segments_in(&segments, 0, 4096, 1));
	assert_non_null(segments_in(&segments, 0, 5000, 50));
	assert_null(segments_in(&segments, 0, 5001, 50));
	assert_non_null(segments_in(&segments, 1, 0, 4096));
	assert_null(segments_in(&segments, 1, 1, 4096));
	assert_null(segments_in(&segments, 1, UINT64_MAX, 2));
	assert_null(segments_in(&segments, 2, 0, 0));
	assert_null(segments_in(&segments, SEGMENTS_MAX + 1, 0, 0));
	assert_null(segments_in(&segments, UINT32_MAX, 0, 0));

	assert_int_equal(segments_remove(&segments, 0), -ENOENT);
	assert_int_equal(segments_remove(&segments, 2), -ENOENT);
	assert_int_equal(segments_remove(&segments, UINT32_MAX), -ENOENT);
	assert_int_equal(segments_remove(&segments, 1), 0);
	assert_null(segments_in(&segments, 1, 0, 1));
	assert_int_equal(segments.pinned, 0);
	assert_int_equal(segments.pinned_bytes, 0);
	pinned->base[0] = 1; /* still there until it is reaped */
	segments_reap(&segments);
	segments_fini(&segments, true);
}

static void test_more_than_there_is(void **state)
{
	struct segment *segment;
	struct error error;

	(void)state;
	assert_int_equal(
		segment_create(CHANNEL_POD, 1ull << 50, &segment, NULL, NULL, &error), -ENOMEM);
	assert_non_null(strstr(error.text, "are free"));
	assert_int_equal(
		segment_create(CHANNEL_POD, UINT64_MAX, &segment, NULL, NULL, &error), -EINVAL);
}

static void test_taken_away(void **state)
{
	struct segments segments = {0};
	volatile unsigned char *at;

	(void)state;
	segments.at[0] = make(CHANNEL_HOST, 16384);
	segment_guard_install();
	segment_guard(&segments);
	assert_int_equal(ftruncate(segments.at[0]->fd, 4096), 0);
	at = segments.at[0]->base + 8192;
	assert_false(segment_broken());
	*at = 7;
	assert_true(segment_broken());
	assert_int_equal(*at, 7);
	segment_guard(NULL);
	segments_fini(&segments, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sealed),
		cmocka_unit_test(test_posix),
		cmocka_unit_test(test_first_part),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_more_than_there_is),
		cmocka_unit_test(test_taken_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
