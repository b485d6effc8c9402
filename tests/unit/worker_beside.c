/* SPDX-License-Identifier: Apache-2.0
 *
 * While a library prepares something for long (here a plan of cuFFT, behind a gate), the worker
 * serves the session's other calls; each gets its answer, and a context that goes waits for
 * what is being prepared in it.
 */
#include "protocol/generated/cufft_ops.h"
#include "protocol/libraries/cufft.h"
#include "tests/unit/worker_peer.h"

#include <fcntl.h>

static int gate; /* the test's end of the pipe */

static void gate_open(unsigned plans)
{
	while (plans--)
		assert_int_equal(write(gate, "", 1), 1);
}

static struct cufft_content content(int64_t n)
{
	return (struct cufft_content){.major = 12,
		.form = CUFFT_FORM_1D,
		.rank = 1,
		.n = {n},
		.in_type = CUFFT_C2C,
		.batch = 1};
}

static void ask(struct peer *p, uint16_t tag, int64_t n)
{
	struct wire_cufftXtGetSizeMany body = {.content = content(n)};
	struct frame_header h = call_header(p, OP_cufftXtGetSizeMany, sizeof(body));

	h.tag = tag;
	peer_send(p, &h, &body);
}

static void expect_size(struct peer *p, uint16_t tag)
{
	const struct wire_cufftXtGetSizeMany_reply *reply = (const void *)peer_body;
	struct frame_header h;
	bool lost;

	assert_int_equal(peer_reply(p, &h, &lost), 0);
	assert_int_equal(h.tag, tag);
	assert_int_equal(h.status, CUDA_SUCCESS);
	assert_int_equal(reply->plain.status, CUFFT_SUCCESS);
}

static void others_are_served_meanwhile(void **state)
{
	struct peer p;

	(void)state;
	peer_start(&p);
	ask(&p, 1, 100);
	expect_alive(&p); /* its own answer comes first */
	expect_alive(&p);
	gate_open(1);
	expect_size(&p, 1);
	ask(&p, 2, 100); /* there is one now: no gate */
	expect_size(&p, 2);
	peer_stop(&p);
}

/* More than have a thread: those wait in the loop, and all are answered. */
static void many_are_all_answered(void **state)
{
	enum { MANY = 20 };
	uint32_t answered = 0;
	struct peer p;

	(void)state;
	peer_start(&p);
	gate_open(MANY);
	for (uint16_t i = 0; i < MANY; i++)
		ask(&p, i, 200 + i);
	for (int i = 0; i < MANY; i++) {
		struct frame_header h;
		bool lost;

		assert_int_equal(peer_reply(&p, &h, &lost), 0);
		assert_int_equal(h.status, CUDA_SUCCESS);
		assert_in_range(h.tag, 0, MANY - 1);
		assert_false(answered & 1u << h.tag);
		answered |= 1u << h.tag;
	}
	peer_stop(&p);
}

/* Two of the same content at a time: one is kept, both are answered. */
static void two_alike_are_one(void **state)
{
	struct peer p;
	struct frame_header h;
	bool lost;

	(void)state;
	peer_start(&p);
	ask(&p, 1, 300);
	ask(&p, 2, 300);
	expect_alive(&p);
	gate_open(2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(peer_reply(&p, &h, &lost), 0);
	ask(&p, 3, 300);
	expect_size(&p, 3);
	peer_stop(&p);
}

/* The client goes while a plan is made: the worker ends with it. */
static void a_client_that_goes_is_not_waited_for(void **state)
{
	struct peer p;

	(void)state;
	peer_start(&p);
	ask(&p, 1, 400);
	expect_alive(&p);
	gate_open(1);
	peer_stop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(others_are_served_meanwhile),
		cmocka_unit_test(many_are_all_answered),
		cmocka_unit_test(two_alike_are_one),
		cmocka_unit_test(a_client_that_goes_is_not_waited_for),
	};
	char number[16];
	int ends[2];

	if (pipe(ends))
		return 1;
	gate = ends[1];
	snprintf(number, sizeof(number), "%d", ends[0]);
	setenv("VCUDA_SOFTGPU_GATE", number, 1);
	peer_driver = getenv("GATE_CUFFT_DRIVER");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
