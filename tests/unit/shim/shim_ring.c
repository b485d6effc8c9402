/* SPDX-License-Identifier: Apache-2.0
 *
 * The ring's producer: three threads send frames of every size, with and without blocks of the
 * arena, to a consumer that checks what a sidecar checks: numbers without a gap, every byte of
 * body and payload as it was written, no frame across the ring's end. Built with TSan.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "shim/engine/ring.h"

#define RING (512u * 1024)
#define ARENA (1u << 20)
#define FRAMES 4000 /* a thread */
#define PRODUCERS 3

static struct ring ring;
static struct channel_page *page;

static size_t segment_bytes(void)
{
	return 1u << 22;
}

static void segment_make(void)
{
	uint64_t at = 4096;

	page = aligned_alloc(4096, segment_bytes());
	assert_non_null(page);
	memset(page, 0, segment_bytes());
	page->magic = CHANNEL_MAGIC;
	page->version = CHANNEL_VERSION;
	page->size = segment_bytes();
	page->slots = at, at += CHANNEL_SLOTS * sizeof(struct channel_slot);
	page->counters = at, at += CHANNEL_COUNTERS * 8;
	page->upcalls = at, at += CHANNEL_UPCALLS * sizeof(struct channel_upcall);
	page->ring = at, page->ring_size = RING, at += RING;
	page->arena = at, page->arena_size = ARENA, at += ARENA;
	page->bounce = at, page->bounce_size = FRAME_CHUNK;
	assert_true(at + FRAME_CHUNK <= segment_bytes());
}

static unsigned char pattern(uint32_t key, size_t i)
{
	return (unsigned char)(key * 31 + i * 7);
}

static void *producer(void *seed)
{
	unsigned state = (unsigned)(uintptr_t)seed;

	for (int sent = 0; sent < FRAMES;) {
		uint32_t size =
			8 + (uint32_t)rand_r(&state) % (rand_r(&state) % 50 ? 600 : 60000);
		uint32_t payload =
			rand_r(&state) % 3 ? 0 : 1 + (uint32_t)rand_r(&state) % 100000;
		uint32_t key = (uint32_t)rand_r(&state), block = 0, body = size;
		struct frame_header *header;
		unsigned char *at, *bytes = NULL;
		uint64_t offset = 0;

		if (payload) {
			ring_lock(&ring);
			bytes = ring_arena(&ring, payload, &offset, &block);
			ring_unlock(&ring);
			if (!bytes) {
				sched_yield();
				continue;
			}
			for (uint32_t i = 0; i < payload; i++)
				bytes[i] = pattern(key, i);
		}
		ring_lock(&ring);
		while (!(header = ring_begin(&ring, &body, payload != 0))) {
			ring_unlock(&ring);
			sched_yield();
			ring_lock(&ring);
		}
		header->kind = FRAME_POST;
		header->length = body + payload;
		at = (unsigned char *)(header + 1);
		if (payload) {
			struct frame_bulk bulk = {.length = payload, .offset = offset};

			memcpy(at, &bulk, sizeof(bulk));
			at += sizeof(bulk);
			ring_arena_named(&ring, block);
		}
		memcpy(at, &key, 4);
		memcpy(at + 4, &size, 4);
		for (uint32_t i = 8; i < size; i++)
			at[i] = pattern(key, i);
		ring_publish(&ring);
		ring_unlock(&ring);
		sent++;
	}
	return NULL;
}

/* One frame. Returns the ring bytes it took. */
static uint64_t consume(uint64_t position, uint64_t *seq)
{
	const unsigned char *bytes = (unsigned char *)page + page->ring;
	struct frame_header header;
	struct frame_bulk bulk = {0};
	const unsigned char *body;
	uint64_t size = sizeof(header);
	uint32_t key, want;

	memcpy(&header, bytes + position, sizeof(header));
	assert_int_equal(header.magic, FRAME_MAGIC);
	if (header.kind == FRAME_PAD)
		return RING - position;
	assert_int_equal(header.kind, FRAME_POST);
	assert_int_equal(header.seq, ++*seq);
	body = bytes + position + size;
	if (header.flags & FRAME_BULK) {
		memcpy(&bulk, body, sizeof(bulk));
		body += sizeof(bulk);
		size += sizeof(bulk);
	}
	size += header.body;
	assert_true(position + size <= RING);
	assert_int_equal(header.length, header.body + bulk.length);
	memcpy(&key, body, 4);
	memcpy(&want, body + 4, 4);
	assert_true(want <= header.body && header.body - want < 32);
	for (uint32_t i = 8; i < want; i++)
		assert_int_equal(body[i], pattern(key, i));
	for (uint32_t i = want; i < header.body; i++)
		assert_int_equal(body[i], 0);
	if (bulk.length) {
		const unsigned char *payload = (unsigned char *)page + bulk.offset;

		assert_true(bulk.offset >= page->arena &&
			    bulk.offset + bulk.length <= page->arena + ARENA);
		for (uint32_t i = 0; i < bulk.length; i++)
			if (payload[i] != pattern(key, i))
				fail_msg(
					"payload byte %u of frame %lu", i, (unsigned long)*seq);
	}
	return (size + 15) & ~15ull;
}

static void test_producers_and_a_consumer(void **state)
{
	pthread_t threads[PRODUCERS];
	uint64_t head = 0, seq = 0;

	(void)state;
	segment_make();
	assert_true(ring_init(&ring, page, segment_bytes()));
	for (uintptr_t i = 0; i < PRODUCERS; i++)
		pthread_create(&threads[i], NULL, producer, (void *)(i + 1));
	while (seq < PRODUCERS * FRAMES) {
		uint64_t tail = atomic_load_explicit(&page->tail, memory_order_acquire);

		assert_true(tail - head <= RING);
		if (head == tail)
			sched_yield();
		while (head != tail) {
			head += consume(head & (RING - 1), &seq);
			assert_true(tail - head <= RING);
		}
		atomic_store_explicit(&page->head, head, memory_order_release);
	}
	for (int i = 0; i < PRODUCERS; i++)
		pthread_join(threads[i], NULL);
	free(page);
}

static void test_full_ring_and_arena(void **state)
{
	uint32_t body = 60000, block;
	uint64_t offset;
	int frames = 0;

	(void)state;
	segment_make();
	assert_true(ring_init(&ring, page, segment_bytes()));
	while (ring_begin(&ring, &body, false)) {
		frames++;
		body = 60000;
	}
	assert_int_equal(frames, RING / 60032);
	assert_int_equal(body, 60000);
	/* Refused without a trace: the next one that fits gets the next number. */
	assert_int_equal(ring.seq, frames);
	ring_publish(&ring);
	assert_non_null(ring_arena(&ring, ARENA / 2, &offset, &block));
	ring_arena_named(&ring, block);
	assert_non_null(ring_arena(&ring, ARENA / 2, &offset, &block));
	ring_arena_abandon(&ring, block);
	assert_null(ring_arena(&ring, 1, &offset, &block));
	atomic_store(&page->head, ring.tail);
	assert_non_null(ring_arena(&ring, ARENA / 2, &offset, &block));
	free(page);
}

/* Most programs never have a thousandth of them: what nobody wrote takes no memory. */
static void test_blocks_are_not_touched_before(void **state)
{
	(void)state;
	segment_make();
	memset(ring.blocks, 0x5a, sizeof(ring.blocks));
	assert_true(ring_init(&ring, page, segment_bytes()));
	for (uint32_t i = 0; i < RING_BLOCKS; i++)
		assert_int_equal(ring.blocks[i].end, 0x5a5a5a5a5a5a5a5aull);
	free(page);
}

/* While only its first part has memory, the arena begins there anew once all of it is back, and
 * is full where a block is still out; with all of its memory it goes on behind that block. */
static void test_arena_with_its_first_part(void **state)
{
	uint64_t start, offset, ready = ARENA / 2;
	uint32_t block, body = 64;

	(void)state;
	segment_make();
	assert_true(ring_init(&ring, page, segment_bytes()));
	start = ring.arena_offset;
	ring.arena_ready = ready;
	for (int i = 0; i < 40; i++) {
		assert_non_null(ring_arena(&ring, (uint32_t)ready / 4 * 3, &offset, &block));
		assert_int_equal(offset, start);
		assert_null(ring_arena(&ring, (uint32_t)ready / 2, &offset, &block));
		body = 64;
		assert_non_null(ring_begin(&ring, &body, true));
		ring_arena_named(&ring, block);
		atomic_store(&page->head, ring.tail);
	}
	assert_non_null(ring_arena(&ring, (uint32_t)ready, &offset, &block));
	assert_int_equal(offset, start);
	assert_null(ring_arena(&ring, 1, &offset, &block));
	ring.arena_ready = ARENA;
	assert_non_null(ring_arena(&ring, (uint32_t)ready, &offset, &block));
	assert_int_equal(offset, start + ready);
	assert_null(ring_arena(&ring, 1, &offset, &block));
	free(page);
}

/* A consumer that claims to have released what was never sent gets no one's memory overwritten.
 */
static void test_lying_head(void **state)
{
	uint32_t body = 60000;
	int frames = 0;

	(void)state;
	segment_make();
	assert_true(ring_init(&ring, page, segment_bytes()));
	atomic_store(&page->head, 1ull << 40);
	while (frames < 100 && ring_begin(&ring, &body, false))
		frames++;
	assert_true(frames < 10);
	free(page);
}

static void test_bad_pages(void **state)
{
	(void)state;
	segment_make();
#define BAD(field, value)                                                                      \
	do {                                                                                   \
		__typeof__(page->field) good = page->field;                                    \
		page->field = (__typeof__(good))(value);                                       \
		assert_false(ring_init(&ring, page, segment_bytes()));                         \
		page->field = good;                                                            \
	} while (0)
	assert_true(ring_init(&ring, page, segment_bytes()));
	BAD(magic, 1);
	BAD(version, 99);
	BAD(size, segment_bytes() + 1);
	BAD(ring, segment_bytes());
	BAD(ring, UINT64_MAX - 63);
	BAD(ring_size, RING - 1);
	BAD(ring_size, 4096);
	BAD(ring_size, 1ull << 63);
	BAD(arena, segment_bytes() - 64);
	BAD(arena_size, 0);
	BAD(bounce, segment_bytes());
	BAD(slots, segment_bytes());
	BAD(counters, segment_bytes() - 8);
	BAD(upcalls, segment_bytes());
	BAD(counters, page->counters + 1);
#undef BAD
	free(page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_producers_and_a_consumer),
		cmocka_unit_test(test_full_ring_and_arena),
		cmocka_unit_test(test_blocks_are_not_touched_before),
		cmocka_unit_test(test_arena_with_its_first_part),
		cmocka_unit_test(test_lying_head),
		cmocka_unit_test(test_bad_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
