/* SPDX-License-Identifier: Apache-2.0
 *
 * Staging: ranges never overlap, what is busy for long holds up nothing but itself, and all
 * room comes back.  The driver's events are bits of this program.
 */
#include "gpu-agent/worker/staging/staging.h"
#include "common/wait.h"
#include "gpu-agent/worker/worker_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>

#define CONTEXT 1
#define ROUNDS 20000
#define BUSY_MOST 64

static struct worker *w;

struct fake_event {
	bool pending;
};

static CUresult host_alloc(void **base, size_t bytes, unsigned flags)
{
	(void)flags;
	*base = malloc(bytes);
	return *base ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult event_create(CUevent *event, unsigned flags)
{
	(void)flags;
	*event = calloc(1, sizeof(struct fake_event));
	return *event ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult event_destroy(CUevent event)
{
	free(event);
	return CUDA_SUCCESS;
}

static CUresult event_record(CUevent event, CUstream stream)
{
	(void)stream;
	((struct fake_event *)event)->pending = true;
	return CUDA_SUCCESS;
}

static CUresult event_query(CUevent event)
{
	return ((struct fake_event *)event)->pending ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

static int begin(void **state)
{
	(void)state;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -1;
	w->cuda.cuMemHostAlloc = host_alloc;
	w->cuda.cuEventCreate = event_create;
	w->cuda.cuEventDestroy_v2 = event_destroy;
	w->cuda.cuEventRecord = event_record;
	w->cuda.cuEventQuery = event_query;
	w->current = CONTEXT;
	return staging_open(w, &w->in);
}

static int end(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < w->fences.event_count[CONTEXT]; i++)
		free(w->fences.event_pool[CONTEXT][i]);
	free(w->fences.event_pool[CONTEXT]);
	free(w->in.base);
	free(w->in.ranges);
	free(w);
	return 0;
}

/* All ranges are looked at now and then alone, so what is true then comes to be seen. */
static bool within(uint64_t began)
{
	return wait_now() - began < 5000000000u;
}

static struct staging_range *take(uint32_t n)
{
	uint64_t began = wait_now();
	unsigned char *bytes;
	struct staging_range *range;

	do
		range = staging_alloc(w, &w->in, n, &bytes);
	while (!range && within(began));
	if (range) {
		assert_ptr_equal(bytes, w->in.base + range->at);
		assert_true(range->bytes >= n);
	}
	return range;
}

/* A copy on a stream reads it: until the event returned is done. */
static struct fake_event *busy(struct staging_range *range)
{
	assert_int_equal(staging_busy(w, range, CONTEXT, NULL), CUDA_SUCCESS);
	return (struct fake_event *)range->event;
}

static void whole(void)
{
	struct staging_range *all = take(w->in.size);

	assert_non_null(all);
	staging_done(all);
	staging_reap(w, &w->in);
	assert_int_equal(w->in.used, 0);
	assert_int_equal(w->in.count, 0);
}

static void one_that_is_busy_holds_up_no_other(void **state)
{
	struct fake_event *event = busy(take(4096));
	uint64_t began;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		struct staging_range *range = take(512 * 1024);

		assert_non_null(range);
		staging_done(range);
	}
	began = wait_now();
	while (!staging_fits(w, &w->in, w->in.size - 4096))
		assert_true(within(began));
	event->pending = false;
	whole();
}

static void half_is_what_is_busy(void **state)
{
	struct fake_event *first = busy(take(4096)), *large;
	uint64_t began;

	(void)state;
	for (int i = 0; i < 100; i++)
		staging_done(take(256 * 1024));
	began = wait_now();
	while (staging_half_busy(w, &w->in))
		assert_true(within(began));
	large = busy(take(w->in.size / 2));
	assert_true(staging_half_busy(w, &w->in));
	first->pending = large->pending = false;
	whole();
}

static void what_is_given_back_is_there_at_once(void **state)
{
	struct staging_range outside = {.at = 0}, *first = take(w->in.size / 2),
			     *second = take(w->in.size / 2);
	unsigned char *bytes;

	(void)state;
	assert_null(staging_alloc(w, &w->in, 1, &bytes));
	assert_true(staging_free(&w->in, first));
	assert_false(staging_free(&w->in, &outside));
	first = staging_alloc(w, &w->in, w->in.size / 2, &bytes);
	assert_non_null(first);
	staging_done(first);
	staging_done(second);
	whole();
}

static void as_many_as_there_are_names_for(void **state)
{
	unsigned char *bytes;

	(void)state;
	for (int i = 0; i < STAGING_RANGES; i++)
		assert_non_null(staging_alloc(w, &w->in, 1, &bytes));
	assert_null(staging_alloc(w, &w->in, 1, &bytes));
	assert_false(staging_fits(w, &w->in, 1));
	for (struct staging_range *range = w->in.first; range; range = range->next)
		staging_done(range);
	whole();
}

static void a_contexts_end_frees_its_ranges(void **state)
{
	(void)state;
	for (int i = 0; i < 8; i++)
		busy(take(w->in.size / 8));
	assert_false(staging_fits(w, &w->in, 1));
	staging_forget(w, &w->in, CONTEXT);
	whole();
}

static void ranges_never_overlap(void **state)
{
	static unsigned char owner[STAGING_BYTES / STAGING_ALIGN];
	struct {
		struct staging_range *range;
		struct fake_event *event;
	} held[BUSY_MOST] = {0};
	unsigned seed = 1;

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		unsigned i = (unsigned)rand_r(&seed) % BUSY_MOST;
		struct staging_range *range = held[i].range;
		unsigned char *bytes;

		if (range) {
			memset(owner + range->at / STAGING_ALIGN, 0,
				range->bytes / STAGING_ALIGN);
			held[i].range = NULL;
			if (held[i].event)
				held[i].event->pending = false;
			else
				staging_done(range);
			continue;
		}
		range = staging_alloc(
			w, &w->in, 1 + (uint32_t)rand_r(&seed) % (1 << 20), &bytes);
		if (!range)
			continue;
		assert_true(range->at + range->bytes <= w->in.size);
		for (uint32_t at = range->at; at < range->at + range->bytes;
			at += STAGING_ALIGN) {
			assert_int_equal(owner[at / STAGING_ALIGN], 0);
			owner[at / STAGING_ALIGN] = 1;
		}
		held[i].range = range;
		held[i].event = rand_r(&seed) % 2 ? busy(range) : NULL;
	}
	for (unsigned i = 0; i < BUSY_MOST; i++)
		if (held[i].event)
			held[i].event->pending = false;
		else if (held[i].range)
			staging_done(held[i].range);
	whole();
}

/* What was used is used again before what has no memory yet: a session that copies little at
 * once has few of the 4096. */
static void few_ranges_are_written(void **state)
{
	(void)state;
	for (int i = 0; i < 1000; i++) {
		struct staging_range *one = take(100), *two = take(100);

		assert_non_null(one);
		assert_non_null(two);
		assert_true(staging_free(&w->in, one));
		assert_true(staging_free(&w->in, two));
	}
	for (uint32_t i = 2; i < STAGING_RANGES; i++)
		assert_null(w->in.ranges[i].next);
	assert_int_equal(w->in.ranges[STAGING_RANGES - 1].bytes, 0);
	assert_int_equal(w->in.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(few_ranges_are_written, begin, end),
		cmocka_unit_test_setup_teardown(one_that_is_busy_holds_up_no_other, begin, end),
		cmocka_unit_test_setup_teardown(half_is_what_is_busy, begin, end),
		cmocka_unit_test_setup_teardown(
			what_is_given_back_is_there_at_once, begin, end),
		cmocka_unit_test_setup_teardown(as_many_as_there_are_names_for, begin, end),
		cmocka_unit_test_setup_teardown(a_contexts_end_frees_its_ranges, begin, end),
		cmocka_unit_test_setup_teardown(ranges_never_overlap, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
