/* SPDX-License-Identifier: Apache-2.0
 *
 * What keeps host memory and its mirror in step (protocol/wire/mirror.h): two sides in one
 * process, their runs carried by hand, also broken ones.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/wait.h"
#include "protocol/wire/mirror.h"

#define PAGES 8
#define BYTES ((size_t)PAGES * MIRROR_PAGE)
#define AT 0x480000000000ull

/* One side: two regions of the same memory, with a gap between. */
struct side {
	_Alignas(8) unsigned char live[BYTES], shadow[BYTES];
	struct mirror_view views[2];
};

static struct side host, device;
static _Alignas(8) unsigned char frame[MIRROR_WRITE_MAX], spare[MIRROR_WRITE_MAX];

static void side_init(struct side *side)
{
	size_t half = BYTES / 2;

	memset(side, 0, sizeof(*side));
	for (size_t i = 0; i < 2; i++)
		side->views[i] = (struct mirror_view){.live = side->live + i * half,
			.shadow = side->shadow + i * half,
			.address = AT + i * (half + MIRROR_PAGE),
			.bytes = half};
}

static int setup(void **state)
{
	(void)state;
	side_init(&host);
	side_init(&device);
	return 0;
}

/* All frames from one side to the other; how many. */
static unsigned carry(struct side *from, struct side *to, uint32_t room, bool keep)
{
	struct mirror_runs runs = {.to = frame, .room = room};
	struct mirror_cursor cursor = {0, 0};
	unsigned frames = 0;

	do {
		mirror_gather_stable(&runs, spare, from->views, 2, &cursor);
		mirror_sent(&runs, from->views, 2);
		assert_true(mirror_store_runs(frame, runs.used, to->views, 2, keep));
		assert_true(++frames < 10000);
	} while (runs.full);
	return frames;
}

static void in_step(void)
{
	assert_memory_equal(host.live, device.live, BYTES);
	assert_memory_equal(host.shadow, host.live, BYTES);
	assert_memory_equal(device.shadow, device.live, BYTES);
}

static void nothing_changed_sends_nothing(void **state)
{
	struct mirror_runs runs = {.to = frame, .room = sizeof(frame)};
	struct mirror_cursor cursor = {0, 0};

	(void)state;
	mirror_gather(&runs, host.views, 2, &cursor);
	assert_int_equal(runs.used, 0);
	assert_false(runs.full);
}

static void each_side_keeps_what_it_wrote(void **state)
{
	(void)state;
	srand(1);
	for (int round = 0; round < 200; round++) {
		unsigned char want[BYTES];

		memcpy(want, host.live, BYTES);
		/* Even bytes are the host's, odd ones the device's. */
		for (int i = rand() % 400; i >= 0; i--) {
			size_t at = (size_t)rand() % (BYTES / 2) * 2;

			want[at] = host.live[at] = (unsigned char)rand();
			want[at + 1] = device.live[at + 1] = (unsigned char)rand();
		}
		carry(&host, &device, sizeof(frame), false);
		carry(&device, &host, sizeof(frame), true);
		in_step();
		assert_memory_equal(host.live, want, BYTES);
	}
}

static void more_than_a_frame_takes_several(void **state)
{
	(void)state;
	for (size_t i = 0; i < BYTES; i++)
		host.live[i] = (unsigned char)(i * 7 + i / 256 + 1);
	assert_true(carry(&host, &device, 8192, false) > BYTES / 8192);
	in_step();
	/* Single words on every page. */
	for (size_t at = 0; at < BYTES; at += 64)
		device.live[at]++;
	carry(&device, &host, 8192, true);
	in_step();
}

/* What the host has changed and not sent yet is not lost to an answer that was on its way. */
static void what_is_not_sent_yet_stays(void **state)
{
	(void)state;
	device.live[100] = 1;
	device.live[101] = 2;
	host.live[100] = 9;
	carry(&device, &host, sizeof(frame), true);
	assert_int_equal(host.live[100], 9);
	assert_int_equal(host.live[101], 2);
	carry(&host, &device, sizeof(frame), false);
	in_step();
	assert_int_equal(device.live[100], 9);
}

/* The address of the last run. */
static uint64_t last_run(void)
{
	struct mirror_runs runs = {.to = frame, .room = sizeof(frame)};
	struct mirror_cursor cursor = {0, 0};
	const unsigned char *values;
	struct mirror_run run = {0};
	bool broken = false;
	size_t at = 0;

	mirror_gather(&runs, host.views, 2, &cursor);
	while (mirror_next(frame, runs.used, &at, &run, &values, &broken))
		;
	assert_false(broken);
	return run.address;
}

static void flags_come_last(void **state)
{
	uint64_t flag = 1, text = 0x1122334455667788;

	(void)state;
	memcpy(host.live + 64, &flag, 8);
	memset(host.live + 4096, 5, 3000);	 /* long */
	memcpy(host.live + BYTES - 8, &text, 8); /* a word that is none */
	assert_int_equal(last_run(), AT + 64);
	carry(&host, &device, sizeof(frame), false);
	flag++;
	memcpy(host.live + 64, &flag, 8);
	memset(host.live, 6, 16);
	assert_int_equal(last_run(), AT + 64);
}

/* More than a frame, and the flag in the last page: while the frames are on their way, what is
 * behind the flag may change in pages that have been looked at. */
static void a_flag_waits_for_the_look_that_is_all(void **state)
{
	struct mirror_runs runs = {.to = frame, .room = 8192};
	struct mirror_cursor cursor = {0, 0};

	(void)state;
	memset(host.live, 1, BYTES - MIRROR_PAGE);
	do {
		mirror_gather_stable(&runs, spare, host.views, 2, &cursor);
		mirror_sent(&runs, host.views, 2);
		assert_true(mirror_store_runs(frame, runs.used, device.views, 2, false));
		if (cursor.view == 1 && !host.live[BYTES - 8]) {
			memset(host.live, 2, 4000);
			host.live[BYTES - 8] = 1;
		}
		if (device.live[BYTES - 8])
			assert_memory_equal(host.live, device.live, 4000);
	} while (runs.full);
	assert_int_equal(device.live[BYTES - 8], 1);
	in_step();
}

/* The device fills words, one after the other at about the pace of a look, so that no two looks
 * see the same, and then sets its flag. */
enum { WORDS = 16, TURNS = 2000, SINGLE_AT = 8192, FLAG_AT = 12288 };
static _Atomic uint64_t look_ns;

static void device_put(size_t at, uint64_t value)
{
	__atomic_store_n((uint64_t *)(void *)(device.live + at), value, __ATOMIC_RELEASE);
}

static void *device_writes(void *turns)
{
	for (uint64_t turn = 1; turn <= TURNS; turn++) {
		for (size_t i = 0; i < WORDS; i++) {
			uint64_t until = wait_now() + atomic_load(&look_ns) / 2 +
					 (turn * 7 + i) % 32 * atomic_load(&look_ns) / 32;

			while (wait_now() < until)
				;
			device_put(i * 8, turn * 1000);
		}
		device_put(SINGLE_AT, turn * 1000);
		device_put(FLAG_AT, turn);
		while (atomic_load((_Atomic uint64_t *)turns) != turn)
			sched_yield();
	}
	return NULL;
}

static void data_that_never_rests_comes_before_its_flag(void **state)
{
	struct mirror_runs runs = {.to = frame, .room = sizeof(frame)};
	struct mirror_cursor cursor = {0, 0};
	_Atomic uint64_t turns = 0;
	pthread_t writer;
	uint64_t from = wait_now();

	(void)state;
	for (int i = 0; i < 1000; i++) {
		device.live[i % 128] ^= 1;
		mirror_gather(&runs, device.views, 2, &cursor);
	}
	memset(device.live, 0, 128);
	atomic_store(&look_ns, (wait_now() - from) / 1000);
	assert_int_equal(pthread_create(&writer, NULL, device_writes, &turns), 0);
	while (atomic_load(&turns) != TURNS) {
		uint64_t flag, word;

		carry(&device, &host, sizeof(frame), true);
		memcpy(&flag, host.live + FLAG_AT, 8);
		memcpy(&word, host.live + SINGLE_AT, 8);
		assert_true(word >= flag * 1000);
		for (size_t i = 0; i < WORDS; i++) {
			uint64_t data;

			memcpy(&data, host.live + i * 8, 8);
			assert_true(data >= flag * 1000);
		}
		atomic_store(&turns, flag);
	}
	pthread_join(writer, NULL);
	in_step();
}

static void broken_runs_are_refused(void **state)
{
	struct mirror_runs runs = {.to = frame, .room = sizeof(frame)};
	struct mirror_cursor cursor = {0, 0};
	unsigned char copy[256];

	(void)state;
	host.live[8] = 1;
	mirror_gather(&runs, host.views, 2, &cursor);
	assert_int_equal(runs.used, mirror_run_bytes(1));
	for (size_t n = 1; n < runs.used; n++)
		assert_false(mirror_store_runs(frame, n, device.views, 2, false));
	for (int which = 0; which < 6; which++) {
		struct mirror_run run = {.address = AT, .words = 1};

		switch (which) {
		case 0: run.address = AT + 1; break;	     /* not a word's */
		case 1: run.address = AT + BYTES / 2; break; /* the gap */
		case 2: run.address = AT - 8; break;
		case 3: run.words = 0; break;
		case 4: run.words = UINT32_MAX; break;
		default: /* beyond the end */ run.address = AT + BYTES + MIRROR_PAGE; break;
		}
		memcpy(copy, frame, runs.used);
		memcpy(copy, &run, sizeof(run));
		assert_false(mirror_store_runs(copy, runs.used, device.views, 2, false));
	}
	for (size_t i = 0; i < BYTES; i++)
		assert_int_equal(device.live[i], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nothing_changed_sends_nothing, setup),
		cmocka_unit_test_setup(each_side_keeps_what_it_wrote, setup),
		cmocka_unit_test_setup(more_than_a_frame_takes_several, setup),
		cmocka_unit_test_setup(what_is_not_sent_yet_stays, setup),
		cmocka_unit_test_setup(flags_come_last, setup),
		cmocka_unit_test_setup(a_flag_waits_for_the_look_that_is_all, setup),
		cmocka_unit_test_setup(data_that_never_rests_comes_before_its_flag, setup),
		cmocka_unit_test_setup(broken_runs_are_refused, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
