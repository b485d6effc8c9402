/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames from the agent: cut at every length, flipped in every bit, in pieces of every size.
 * They are parsed whole or not at all, and nothing is written outside the destination place.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "sidecar/replies.h"
#include "sidecar/stripes.h"
#include "transport/stream.h"

#define RING 4096u
#define LAND 256u

struct bench {
	struct channel_page page;
	struct channel_slot slots[CHANNEL_SLOTS];
	_Atomic uint64_t counters[CHANNEL_COUNTERS];
	struct channel_upcall upcalls[CHANNEL_UPCALLS];
	unsigned char bytes[RING];
	unsigned char memory[3 * LAND]; /* guard, destination, guard */
	struct segment own;
	struct segments segments;
	struct ring ring;
	struct replies replies;
	struct link *link;
	int agent;
	struct error error;
};

static int setup(void **state)
{
	struct bench *b = aligned_alloc(_Alignof(struct bench), sizeof(*b));
	int in[2], out[2];

	assert_non_null(b);
	memset(b, 0, sizeof(*b));
	b->own = (struct segment){.base = b->memory, .size = sizeof(b->memory)};
	b->segments.at[0] = &b->own;
	b->segments.bounce = LAND;
	b->segments.bounce_size = LAND;
	ring_consumer_init(&b->ring, &b->page, b->bytes, RING, &b->segments);
	b->ring.last = 9;
	b->ring.waiting[0] = 1 << 3;
	b->replies.page = &b->page;
	b->replies.slots = b->slots;
	b->replies.counters = b->counters;
	b->replies.upcalls = b->upcalls;
	b->replies.ring = &b->ring;
	b->replies.segments = &b->segments;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, in) ||
		socketpair(AF_UNIX, SOCK_STREAM, 0, out) ||
		stream_open(in[0], out[0], &b->link, &b->error))
		return -1;
	b->agent = in[1];
	close(out[1]);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	link_close(b->link);
	close(b->agent);
	ring_fini(&b->ring);
	free(b);
	return 0;
}

/* REPLY to tag 3 with a destination, a reply struct and 100 bytes of payload. */
static size_t make_reply(unsigned char *frame)
{
	struct frame_header header = {
		.length = 16 + 8 + 100,
		.body = 16 + 8,
		.kind = FRAME_REPLY,
		.tag = 3,
		.seq = 9,
		.status = 2,
		.deferred = 5,
		.magic = FRAME_MAGIC,
	};
	struct frame_destination destination = {.offset = LAND + 10};

	memcpy(frame, &header, sizeof(header));
	memcpy(frame + 32, &destination, sizeof(destination));
	memcpy(frame + 48, "12345678", 8);
	memset(frame + 56, 'p', 100);
	return 156;
}

static void deliver(struct bench *b, const void *bytes, size_t n)
{
	assert_int_equal(send(b->agent, bytes, n, 0), (ssize_t)n);
}

static ssize_t receive(struct bench *b)
{
	return replies_receive(&b->replies, b->link, 1 << 20, &b->error);
}

static void assert_guards(const struct bench *b)
{
	for (size_t i = 0; i < LAND; i++) {
		assert_int_equal(b->memory[i], 0);
		assert_int_equal(b->memory[2 * LAND + i], 0);
	}
}

static void assert_answered(const struct bench *b)
{
	const struct channel_slot *slot = &b->slots[3];

	assert_int_equal(slot->answered, 1);
	assert_int_equal(slot->status, 2);
	assert_int_equal(slot->deferred, 5);
	assert_int_equal(slot->seq, 9);
	assert_int_equal(slot->body, 8);
	assert_memory_equal(slot->data, "12345678", 8);
	assert_int_equal(slot->payload, 100);
	for (size_t i = 0; i < LAND; i++)
		assert_int_equal(b->memory[LAND + i], i >= 10 && i < 110 ? 'p' : 0);
	assert_guards(b);
	assert_false(ring_waits(&b->ring, 3));
}

static void test_reply_in_two_pieces_of_every_size(void **state)
{
	unsigned char frame[256];
	size_t n = make_reply(frame);

	for (size_t cut = 0; cut <= n; cut++) {
		struct bench *b;

		teardown(state);
		assert_int_equal(setup(state), 0);
		b = *state;
		deliver(b, frame, cut);
		assert_int_equal(receive(b), (ssize_t)cut);
		assert_int_equal(b->slots[3].answered, cut == n);
		deliver(b, frame + cut, n - cut);
		receive(b);
		assert_answered(b);
	}
}

static void test_cut_at_every_length(void **state)
{
	unsigned char frame[256];
	size_t n = make_reply(frame);

	for (size_t cut = 0; cut < n; cut++) {
		struct bench *b;

		teardown(state);
		assert_int_equal(setup(state), 0);
		b = *state;
		deliver(b, frame, cut);
		shutdown(b->agent, SHUT_WR);
		while (receive(b) > 0)
			;
		assert_int_equal(receive(b), -ECONNRESET);
		assert_int_equal(b->slots[3].answered, 0);
		assert_guards(b);
	}
}

static void test_every_bit_flipped(void **state)
{
	unsigned char frame[256];
	size_t n = make_reply(frame);

	for (size_t bit = 0; bit < 8 * 56; bit++) {
		struct bench *b;

		teardown(state);
		assert_int_equal(setup(state), 0);
		b = *state;
		make_reply(frame);
		frame[bit / 8] ^= (unsigned char)(1u << bit % 8);
		deliver(b, frame, n);
		receive(b);
		assert_guards(b);
		for (int tag = 0; tag < CHANNEL_SLOTS; tag++)
			assert_true(tag == 3 || !b->slots[tag].answered);
	}
}

/* A DATA whose 100 bytes stripe 2 brings, an update, and the answer behind both. */
static size_t make_striped(unsigned char *bytes)
{
	struct frame_header data = {.length = 16 + 100,
		.body = 16,
		.kind = FRAME_DATA,
		.flags = 2 << FRAME_STRIPE_SHIFT,
		.seq = 7,
		.magic = FRAME_MAGIC};
	struct frame_header header = {
		.length = 16, .body = 16, .kind = FRAME_UPDATE, .seq = 8, .magic = FRAME_MAGIC};
	struct frame_destination destination = {.offset = LAND + 120};
	struct frame_update update = {.index = 100, .value = 42};

	memcpy(bytes, &data, 32);
	memcpy(bytes + 32, &destination, 16);
	memcpy(bytes + 48, &header, 32);
	memcpy(bytes + 80, &update, 16);
	return 96 + make_reply(bytes + 96);
}

static struct stripes *open_stripe(struct bench *b)
{
	struct stripes *stripes = calloc(1, sizeof(*stripes));

	assert_non_null(stripes);
	stripes->both = true;
	stripes->at[0].number = 2;
	stripes->at[0].state = STRIPE_OPEN;
	b->replies.stripes = stripes;
	return stripes;
}

static void test_what_stands_behind_a_stripes_payload_waits_for_it(void **state)
{
	struct bench *b = *state;
	struct stripes *stripes = open_stripe(b);
	struct stripe_receiver *receiver = &stripes->at[0].receiver;
	unsigned char bytes[512];
	size_t n = make_striped(bytes);

	deliver(b, bytes, n);
	assert_int_equal(receive(b), (ssize_t)n);
	assert_true(replies_wait(&b->replies));
	assert_false(replies_ready(&b->replies));
	assert_int_equal(receiver->awaited, 1);
	assert_ptr_equal(receiver->places[0].to, b->memory + LAND + 120);
	assert_int_equal(receiver->places[0].n, 100);
	assert_int_equal(b->counters[100], 0);
	assert_int_equal(b->slots[3].answered, 0);
	assert_int_equal(b->replies.numbered, 0);
	assert_int_equal(b->ring.acknowledged, 0);
	receiver->landed = 1;
	assert_int_equal(receive(b), 100);
	assert_false(replies_wait(&b->replies));
	assert_int_equal(b->counters[100], 42);
	assert_answered(b);
	assert_int_equal(b->replies.numbered, 3);
	free(stripes);
}

/* The connection is cut meanwhile: none of it ever came. */
static void test_what_waits_for_a_stripe_is_dropped_with_the_connection(void **state)
{
	struct bench *b = *state;
	struct stripes *stripes = open_stripe(b);
	unsigned char bytes[512];
	size_t n = make_striped(bytes);

	deliver(b, bytes, n);
	assert_int_equal(receive(b), (ssize_t)n);
	replies_drop_input(&b->replies);
	stripes->at[0].receiver.landed = 1;
	assert_int_equal(receive(b), 0);
	assert_int_equal(b->replies.numbered, 0);
	assert_int_equal(b->counters[100], 0);
	assert_int_equal(b->slots[3].answered, 0);
	free(stripes);
}

static void test_two_answers_to_one_call_behind_a_stripe(void **state)
{
	struct bench *b = *state;
	struct stripes *stripes = open_stripe(b);
	unsigned char bytes[512];
	size_t n = make_striped(bytes);

	n += make_reply(bytes + n);
	deliver(b, bytes, n);
	assert_int_equal(receive(b), (ssize_t)n);
	stripes->at[0].receiver.landed = 1;
	assert_int_equal(receive(b), -EPROTO);
	assert_non_null(strstr(b->error.text, "nobody waits for"));
	free(stripes);
}

static void test_a_stripe_that_is_not_open(void **state)
{
	struct bench *b = *state;
	struct stripes *stripes = open_stripe(b);
	unsigned char bytes[512];
	size_t n = make_striped(bytes);

	stripes->at[0].number = 1;
	deliver(b, bytes, n);
	assert_int_equal(receive(b), -EPROTO);
	assert_non_null(strstr(b->error.text, "not open"));
	free(stripes);
}

static void test_words_and_progress(void **state)
{
	struct bench *b = *state;
	struct {
		struct frame_header header;
		struct frame_update update;
	} frame = {{.length = 16, .body = 16, .kind = FRAME_UPDATE, .magic = FRAME_MAGIC},
		{.index = 100, .value = 42}};

	deliver(b, &frame, sizeof(frame));
	assert_int_equal(receive(b), sizeof(frame));
	assert_int_equal(b->counters[100], 42);
	assert_int_equal(b->page.progress, 1);
	frame.update.index = CHANNEL_COUNTERS;
	deliver(b, &frame, sizeof(frame));
	assert_int_equal(receive(b), -EPROTO);
	assert_non_null(strstr(b->error.text, "counter 8192"));
}

static void test_upcalls_pause_and_go_on(void **state)
{
	struct bench *b = *state;
	struct {
		struct frame_header header;
		struct frame_upcall upcall;
	} frame = {{.length = 16, .body = 16, .kind = FRAME_UPCALL, .magic = FRAME_MAGIC},
		{.what = 1}};

	for (uint64_t i = 0; i < CHANNEL_UPCALLS + 2; i++) {
		frame.upcall.value = i;
		deliver(b, &frame, sizeof(frame));
		assert_true(receive(b) >= 0);
	}
	assert_true(b->replies.upcalls_full);
	assert_int_equal(b->page.upcall_tail, CHANNEL_UPCALLS);
	b->page.upcall_head = 1;
	assert_true(receive(b) >= 0);
	assert_int_equal(b->page.upcall_tail, CHANNEL_UPCALLS + 1);
	assert_int_equal(b->upcalls[0].value, CHANNEL_UPCALLS);
	assert_true(b->replies.upcalls_full);
	b->page.upcall_head = CHANNEL_UPCALLS + 50; /* the app cannot have taken those */
	assert_int_equal(receive(b), -EPROTO);
}

/* One that stands behind a stripe's payload and finds no room: nobody is to be awake for it. */
static void test_an_upcall_without_room_behind_a_stripe(void **state)
{
	struct bench *b = *state;
	struct stripes *stripes = open_stripe(b);
	struct {
		struct frame_header header;
		struct frame_upcall upcall;
	} frame = {{.length = 16,
			   .body = 16,
			   .kind = FRAME_UPCALL,
			   .seq = 9,
			   .magic = FRAME_MAGIC},
		{.what = 1, .value = 5}};
	unsigned char bytes[512];
	size_t n = make_striped(bytes);

	b->replies.upcall_tail = b->page.upcall_tail = CHANNEL_UPCALLS;
	deliver(b, bytes, n);
	deliver(b, &frame, sizeof(frame));
	assert_true(receive(b) > 0);
	stripes->at[0].receiver.landed = 1;
	assert_true(replies_ready(&b->replies));
	assert_int_equal(receive(b), 100);
	assert_answered(b);
	assert_true(replies_wait(&b->replies));
	assert_true(replies_paused(&b->replies));
	assert_false(replies_ready(&b->replies));
	b->page.upcall_head = 1;
	assert_int_equal(receive(b), 0);
	assert_false(replies_wait(&b->replies));
	assert_int_equal(b->page.upcall_tail, CHANNEL_UPCALLS + 1);
	assert_int_equal(b->upcalls[0].value, 5);
	free(stripes);
}

/* A sidecar before this one counted 4 frames; CALL is to whom it was giving the fifth. */
static void adopt(struct bench *b, uint64_t call)
{
	b->page.carry.counted = 4;
	b->page.carry.giving = 5;
	b->page.carry.giving_call = call;
	assert_int_equal(replies_adopt(&b->replies, &b->page.carry), 0);
}

/* The program has made another call in the same slot since. */
static void test_answer_that_came_before_is_only_counted(void **state)
{
	struct bench *b = *state;
	unsigned char frame[256];
	size_t n = make_reply(frame);

	adopt(b, 7);
	b->ring.calls[3] = 9;
	deliver(b, frame, n);
	assert_int_equal(receive(b), (ssize_t)n);
	assert_int_equal(b->slots[3].answered, 0);
	for (size_t i = 0; i < sizeof(b->memory); i++)
		assert_int_equal(b->memory[i], 0);
	assert_int_equal(b->page.carry.counted, 5);
	deliver(b, frame, n);
	assert_int_equal(receive(b), (ssize_t)n);
	assert_answered(b);
	assert_int_equal(b->page.carry.counted, 6);
	assert_int_equal(b->page.carry.giving, 6);
	assert_int_equal(b->page.carry.giving_call, 9);
}

/* The sidecar died before the program could see it. */
static void test_answer_that_was_not_given_is_given(void **state)
{
	struct bench *b = *state;
	unsigned char frame[256];
	size_t n = make_reply(frame);

	adopt(b, 7);
	b->ring.calls[3] = 7;
	deliver(b, frame, n);
	assert_int_equal(receive(b), (ssize_t)n);
	assert_answered(b);
}

static void test_answer_that_nobody_took_yet_is_only_counted(void **state)
{
	struct bench *b = *state;
	unsigned char frame[256];
	size_t n = make_reply(frame);

	adopt(b, 7);
	b->ring.waiting[0] = 0;
	deliver(b, frame, n);
	assert_int_equal(receive(b), (ssize_t)n);
	assert_int_equal(b->slots[3].answered, 0);
	assert_int_equal(b->page.carry.counted, 5);
	deliver(b, frame, n);
	assert_int_equal(receive(b), -EPROTO);
}

static void test_upcall_that_came_before_is_only_counted(void **state)
{
	struct frame_header header = {.length = sizeof(struct frame_upcall),
		.body = sizeof(struct frame_upcall),
		.kind = FRAME_UPCALL,
		.seq = 9,
		.magic = FRAME_MAGIC};
	struct frame_upcall upcall = {.what = 1, .value = 44};
	unsigned char frame[sizeof(header) + sizeof(upcall)];
	struct bench *b = *state;

	memcpy(frame, &header, sizeof(header));
	memcpy(frame + sizeof(header), &upcall, sizeof(upcall));
	b->page.upcall_tail = 1;
	b->upcalls[0] = (struct channel_upcall){.what = 1, .frame = 5, .value = 44};
	adopt(b, 0);
	deliver(b, frame, sizeof(frame));
	assert_int_equal(receive(b), sizeof(frame));
	assert_int_equal(b->page.upcall_tail, 1);
	deliver(b, frame, sizeof(frame));
	assert_int_equal(receive(b), sizeof(frame));
	assert_int_equal(b->page.upcall_tail, 2);
	assert_int_equal(b->upcalls[1].frame, 6);
}

static void test_lost_ends_reading(void **state)
{
	struct bench *b = *state;
	struct frame_header header = {.length = 4,
		.body = 4,
		.kind = FRAME_LOST,
		.status = 719,
		.magic = FRAME_MAGIC};

	deliver(b, &header, sizeof(header));
	deliver(b, "gone", 4);
	receive(b);
	assert_true(b->replies.lost);
	assert_int_equal(b->replies.status, 719);
	assert_string_equal(b->replies.text, "gone");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_reply_in_two_pieces_of_every_size, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut_at_every_length, setup, teardown),
		cmocka_unit_test_setup_teardown(test_every_bit_flipped, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_what_stands_behind_a_stripes_payload_waits_for_it, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			test_what_waits_for_a_stripe_is_dropped_with_the_connection, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			test_two_answers_to_one_call_behind_a_stripe, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_a_stripe_that_is_not_open, setup, teardown),
		cmocka_unit_test_setup_teardown(test_words_and_progress, setup, teardown),
		cmocka_unit_test_setup_teardown(test_upcalls_pause_and_go_on, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_an_upcall_without_room_behind_a_stripe, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost_ends_reading, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_answer_that_came_before_is_only_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_answer_that_was_not_given_is_given, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_answer_that_nobody_took_yet_is_only_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_upcall_that_came_before_is_only_counted, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
