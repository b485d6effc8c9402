/* SPDX-License-Identifier: Apache-2.0
 *
 * The ring's consumer: what honest producers write comes out in order and is released on
 * acknowledgement; what no honest producer writes is refused.  (The violations, one a test and
 * against the whole sidecar, are in tests/peer/app_violations.py.)
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/wait.h"
#include "transport/ring.h"

#define SIZE 4096u

struct bench {
	struct channel_page page;
	_Alignas(16) unsigned char bytes[SIZE];
	struct segments segments;
	struct segment own;
	unsigned char memory[256];
	struct ring ring;
	uint64_t tail, seq;
	unsigned char out[RING_ENTRY_MAX];
	struct ring_entry entry;
	struct error error;
};

static int setup(void **state)
{
	struct bench *b = aligned_alloc(_Alignof(struct bench), sizeof(*b));

	assert_non_null(b);
	memset(b, 0, sizeof(*b));
	b->own = (struct segment){.base = b->memory, .size = sizeof(b->memory)};
	b->segments.at[0] = &b->own;
	b->segments.arena = 64;
	b->segments.arena_size = 64;
	ring_consumer_init(&b->ring, &b->page, b->bytes, SIZE, &b->segments);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	ring_fini(&b->ring);
	free(b);
	return 0;
}

/* Writes as the shim does; false: no room. */
static bool put(struct bench *b, uint8_t kind, uint16_t tag, const void *body, uint32_t n)
{
	struct frame_header header = {
		.length = n,
		.body = n,
		.kind = kind,
		.tag = tag,
		.seq = b->seq + 1,
		.magic = FRAME_MAGIC,
	};
	uint64_t need = (sizeof(header) + n + 15) & ~15ull, at = b->tail & (SIZE - 1);
	uint64_t skip = at + need > SIZE ? SIZE - at : 0;
	uint64_t head = atomic_load_explicit(&b->page.head, memory_order_acquire);

	if (b->tail + skip + need - head > SIZE)
		return false;
	if (skip >= sizeof(header)) {
		struct frame_header pad = {.kind = FRAME_PAD, .magic = FRAME_MAGIC};

		memcpy(b->bytes + at, &pad, sizeof(pad));
	}
	b->tail += skip;
	at = b->tail & (SIZE - 1);
	memcpy(b->bytes + at, &header, sizeof(header));
	memcpy(b->bytes + at + sizeof(header), body, n);
	b->tail += need;
	b->seq++;
	atomic_store_explicit(&b->page.tail, b->tail, memory_order_release);
	return true;
}

static int take(struct bench *b)
{
	return ring_pop(&b->ring, b->out, &b->entry, &b->error);
}

static void test_in_order(void **state)
{
	struct bench *b = *state;

	assert_int_equal(take(b), 0);
	assert_true(put(b, FRAME_POST, 0, "one", 3));
	assert_true(put(b, FRAME_CALL, 5, "three", 5));
	assert_int_equal(take(b), 1);
	assert_int_equal(b->entry.bytes, 35);
	assert_memory_equal(b->out + 32, "one", 3);
	assert_false(ring_waits(&b->ring, 5));
	assert_int_equal(take(b), 1);
	assert_int_equal(b->entry.header.tag, 5);
	assert_true(ring_waits(&b->ring, 5));
	assert_int_equal(take(b), 0);
	assert_int_equal(ring_in_flight(&b->ring), 2);
}

static void test_released_when_acknowledged(void **state)
{
	struct bench *b = *state;
	char body[100] = "";

	for (int i = 0; i < 3; i++)
		assert_true(put(b, FRAME_POST, 0, body, sizeof(body)));
	for (int i = 0; i < 3; i++)
		assert_int_equal(take(b), 1);
	assert_int_equal(b->page.head, 0);
	assert_int_equal(ring_acknowledge(&b->ring, 2), 0);
	assert_int_equal(b->page.head, 2 * 144);
	assert_int_equal(ring_acknowledge(&b->ring, 2), 0);
	assert_int_equal(ring_acknowledge(&b->ring, 1), -EPROTO);
	assert_int_equal(ring_acknowledge(&b->ring, 4), -EPROTO);
	assert_int_equal(ring_acknowledge(&b->ring, 3), 0);
	assert_int_equal(b->page.head, b->tail);
	assert_int_equal(ring_in_flight(&b->ring), 0);
}

/* Every size, so that the end of the ring is met in each way that there is. */
static void test_around_the_end(void **state)
{
	struct bench *b = *state;
	unsigned char body[1000];

	for (uint32_t n = 0; n < 1000; n++) {
		memset(body, (int)n, sizeof(body));
		assert_true(put(b, FRAME_POST, 0, body, n));
		assert_int_equal(take(b), 1);
		assert_int_equal(b->entry.header.body, n);
		assert_memory_equal(b->out + 32, body, n);
		assert_int_equal(ring_acknowledge(&b->ring, b->seq), 0);
		assert_int_equal(b->page.head, b->tail);
	}
}

static void test_full_ring(void **state)
{
	struct bench *b = *state;
	int n = 0;

	while (put(b, FRAME_POST, 0, "", 0))
		n++;
	assert_int_equal(n, SIZE / 32);
	for (int i = 0; i < n; i++)
		assert_int_equal(take(b), 1);
	assert_int_equal(take(b), 0);
	assert_false(put(b, FRAME_POST, 0, "", 0));
	for (int i = 1; i <= n; i++) {
		assert_int_equal(ring_acknowledge(&b->ring, (uint64_t)i), 0);
		assert_int_equal(b->page.head, 32 * i);
	}
}

static void test_bulk(void **state)
{
	struct bench *b = *state;
	struct {
		struct frame_header header;
		struct frame_bulk bulk;
	} entry = {
		{.length = 40, .kind = FRAME_POST, .flags = FRAME_BULK, .magic = FRAME_MAGIC},
		{.length = 40},
	};
	const struct {
		uint64_t offset;
		bool good;
	} cases[] = {{64, true}, {88, true}, {89, false}, {63, false}, {0, false},
		{UINT64_MAX - 10, false}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		entry.header.seq = b->ring.last + 1;
		entry.bulk.offset = cases[i].offset;
		memcpy(b->bytes + (b->ring.taken & (SIZE - 1)), &entry, sizeof(entry));
		atomic_store(&b->page.tail, b->ring.taken + sizeof(entry));
		assert_int_equal(take(b), cases[i].good ? 1 : -EPROTO);
		if (!cases[i].good)
			continue;
		assert_ptr_equal(b->entry.bulk, b->memory + cases[i].offset);
		assert_int_equal(b->entry.bulk_bytes, 40);
		assert_int_equal(b->entry.header.flags, 0);
	}
}

/* Only pinned memory has payloads beyond FRAME_PAYLOAD_MAX, and only where the consumer says
 * so. */
static void test_size_of_bulk(void **state)
{
	struct bench *b = *state;
	struct segment pinned = {.base = b->memory, .size = FRAME_LENT_MAX + 1};
	struct {
		struct frame_header header;
		struct frame_bulk bulk;
	} entry = {{.kind = FRAME_POST, .flags = FRAME_BULK, .magic = FRAME_MAGIC}, {0}};
	const struct {
		uint32_t segment, most, length;
		bool good;
	} cases[] = {{1, FRAME_PAYLOAD_MAX, FRAME_PAYLOAD_MAX, true},
		{1, FRAME_PAYLOAD_MAX, FRAME_PAYLOAD_MAX + 1, false},
		{1, FRAME_LENT_MAX, FRAME_LENT_MAX, true},
		{1, FRAME_LENT_MAX, FRAME_LENT_MAX + 1, false},
		{0, FRAME_LENT_MAX, FRAME_PAYLOAD_MAX + 1, false}};

	b->segments.at[1] = &pinned;
	b->own.size = b->segments.arena_size = FRAME_LENT_MAX;
	b->segments.arena = 0;
	assert_int_equal(b->ring.pinned_most, FRAME_PAYLOAD_MAX);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		b->ring.pinned_most = cases[i].most;
		entry.header.seq = b->ring.last + 1;
		entry.header.length = entry.bulk.length = cases[i].length;
		entry.bulk.segment = cases[i].segment;
		memcpy(b->bytes + (b->ring.taken & (SIZE - 1)), &entry, sizeof(entry));
		atomic_store(&b->page.tail, b->ring.taken + sizeof(entry));
		assert_int_equal(take(b), cases[i].good ? 1 : -EPROTO);
	}
	b->segments.at[1] = NULL;
}

/* Each bit of a header that is checked: flipped, it is refused or it changes what comes out; it
 * never changes how far the reader goes beyond what was published. */
static void test_bit_flips(void **state)
{
	struct bench *b = *state;

	for (unsigned bit = 0; bit < 256; bit++) {
		ring_fini(&b->ring);
		memset(&b->page, 0, sizeof(b->page));
		ring_consumer_init(&b->ring, &b->page, b->bytes, SIZE, &b->segments);
		b->tail = b->seq = 0;
		assert_true(put(b, FRAME_CALL, 3, "12345678", 8));
		b->bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
		take(b);
		assert_true(b->ring.taken <= b->tail);
		assert_true(b->ring.last <= 1);
	}
}

/* Random bytes and random tails: no crash, nothing read beyond the ring (ASan), positions sane.
 */
static void test_noise(void **state)
{
	struct bench *b = *state;
	unsigned seed = 1;

	for (int round = 0; round < 20000; round++) {
		ring_fini(&b->ring);
		memset(&b->page, 0, sizeof(b->page));
		ring_consumer_init(&b->ring, &b->page, b->bytes, SIZE, &b->segments);
		for (size_t i = 0; i < 96; i++)
			b->bytes[i] = (unsigned char)(rand_r(&seed) >> 8);
		b->bytes[28] = FRAME_MAGIC & 0xff;
		b->bytes[29] = FRAME_MAGIC >> 8;
		if (round % 2) {
			memset(b->bytes + 2, 0, 18);
			b->bytes[6] = FRAME_POST;
			b->bytes[7] = (unsigned char)(round & 1);
			b->bytes[8] = 1;
		}
		atomic_store(&b->page.tail, (uint64_t)rand_r(&seed) % (2 * SIZE));
		while (take(b) > 0)
			assert_true(b->ring.taken <= atomic_load(&b->page.tail));
	}
}

#define THROUGH 20000u

static void *produce(void *argument)
{
	struct bench *b = argument;
	unsigned char body[64];

	for (uint32_t i = 0; i < THROUGH;) {
		memset(body, (int)i, sizeof(body));
		if (put(b, FRAME_POST, 0, body, i % 64))
			i++;
		else
			sched_yield();
	}
	return NULL;
}

/* Both ends at once: for ThreadSanitizer. */
static void test_two_threads(void **state)
{
	struct bench *b = *state;
	unsigned char body[64];
	pthread_t thread;
	uint32_t i = 0;

	assert_int_equal(pthread_create(&thread, NULL, produce, b), 0);
	while (i < THROUGH) {
		int ret = take(b);

		assert_true(ret >= 0);
		if (!ret) {
			sched_yield();
			continue;
		}
		memset(body, (int)i, sizeof(body));
		assert_int_equal(b->entry.header.body, i % 64);
		assert_memory_equal(b->out + 32, body, i % 64);
		i++;
		if (i % 5 == 0)
			assert_int_equal(ring_acknowledge(&b->ring, i), 0);
	}
	pthread_join(thread, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_released_when_acknowledged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_around_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full_ring, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bulk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_size_of_bulk, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bit_flips, setup, teardown),
		cmocka_unit_test_setup_teardown(test_noise, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_threads, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
