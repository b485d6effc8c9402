/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames from the agent behind a payload that a stripe brings: they wait for it, in their
 * order, and go with the connection.
 */
#include "tests/unit/sidecar/sidecar_replies.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
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
		cmocka_unit_test_setup_teardown(
			test_an_upcall_without_room_behind_a_stripe, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
