/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames from the agent: cut at every length, flipped in every bit, in pieces of every size.
 * They are parsed whole or not at all, and nothing is written outside the destination place.
 */
#include "tests/unit/sidecar/sidecar_replies.h"

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
		cmocka_unit_test_setup_teardown(test_words_and_progress, setup, teardown),
		cmocka_unit_test_setup_teardown(test_upcalls_pause_and_go_on, setup, teardown),
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
