/* SPDX-License-Identifier: Apache-2.0
 *
 * What a library uses while it prepares something for long stays: a context or stream that goes
 * waits for what is being prepared in it, a handle that is destroyed ends behind it.
 */
#include "gpu-agent/worker/loop/closing.h"
#include "tests/unit/worker/worker_beside.h"

static void a_destroyed_handle_ends_behind_its_call(void **state)
{
	struct wire_cusolverDnDestroy destroy = {0};
	struct peer p;

	(void)state;
	peer_start(&p);
	destroy.state.handle =
		open_handle(&p, OP_cusolverDnCreate, KIND_cusolverDnHandle, 12, 1);
	ask_solver(&p, 1, destroy.state.handle, 0);
	send_post(&p, OP_cusolverDnDestroy, &destroy, sizeof(destroy));
	expect_alive(&p);
	ask_solver(&p, 2, destroy.state.handle, 0); /* its name is gone at once */
	{
		struct frame_header h;
		bool lost;

		assert_int_equal(peer_reply(&p, &h, &lost), 0);
		assert_int_equal(h.tag, 2);
		assert_int_equal(h.status, CUDA_ERROR_INVALID_HANDLE);
	}
	gate_open(1);
	assert_int_equal(expect_answer(&p, 1), 0);
	expect_alive(&p);
	peer_stop(&p);
}

/* Calls that overlap without end would keep open for good what is destroyed meanwhile. */
static void what_waits_to_be_closed_has_an_end(void **state)
{
	struct wire_cusolverDnDestroy destroy = {0};
	uint64_t first, second;
	struct frame_header h;
	struct peer p;
	bool lost;

	(void)state;
	peer_start(&p);
	first = open_handle(&p, OP_cusolverDnCreate, KIND_cusolverDnHandle, 12, 1);
	second = open_handle(&p, OP_cusolverDnCreate, KIND_cusolverDnHandle, 12, 2);
	ask_solver(&p, 1, first, 0);
	for (uint32_t i = 0; i < CLOSINGS_MOST; i++) {
		destroy.state.handle =
			open_handle(&p, OP_cusolverDnCreate, KIND_cusolverDnHandle, 12, 3 + i);
		send_post(&p, OP_cusolverDnDestroy, &destroy, sizeof(destroy));
	}
	/* It is served by the loop: what comes behind it is answered behind it. */
	ask_solver(&p, 2, second, 0);
	gate_open(2);
	assert_int_equal(peer_reply(&p, &h, &lost), 0);
	assert_int_equal(h.tag, 2);
	assert_int_equal(expect_answer(&p, 1), 0);
	expect_alive(&p);
	/* All of them are closed now, and calls overlap again. */
	ask_solver(&p, 1, first, 0);
	expect_alive(&p);
	gate_open(1);
	assert_int_equal(expect_answer(&p, 1), 0);
	peer_stop(&p);
}

static void a_stream_that_goes_waits(void **state)
{
	struct wire_vcudaStreamCreate create = {.stream = handle_of(KIND_CUstream, 7)};
	struct wire_vcudaStreamDestroy destroy = {.stream = create.stream};
	struct peer p;
	uint64_t solver;

	(void)state;
	peer_start(&p);
	solver = open_handle(&p, OP_cusolverDnCreate, KIND_cusolverDnHandle, 12, 1);
	send_post(&p, OP_vcudaStreamCreate, &create, sizeof(create));
	ask_solver(&p, 1, solver, create.stream);
	expect_alive(&p);
	send_post(&p, OP_vcudaStreamDestroy, &destroy, sizeof(destroy));
	gate_open(1);
	assert_int_equal(expect_answer(&p, 1), 0);
	expect_alive(&p);
	peer_stop(&p);
}

/* All that was made in it goes, and what asked is answered. */
static void a_context_that_goes_waits(void **state)
{
	struct wire_vcudaPrimaryReset reset = {.device = 0};
	struct peer p;
	uint64_t dnn;

	(void)state;
	peer_start(&p);
	dnn = open_handle(&p, OP_cudnnCreate, KIND_cudnnHandle, 9, 1);
	ask_dnn(&p, 1, dnn);
	ask_dnn(&p, 2, dnn);
	expect_alive(&p);
	send_call(&p, OP_vcudaPrimaryReset, 3, &reset, sizeof(reset));
	gate_open(2);
	for (int i = 0; i < 3; i++) {
		struct frame_header h;
		bool lost;

		assert_int_equal(peer_reply(&p, &h, &lost), 0);
		assert_false(lost);
		assert_int_equal(h.status, CUDA_SUCCESS);
	}
	expect_alive(&p);
	peer_stop(&p);
}

/* A handle of a context, which a call in another one keeps from ending, ends before it. */
static void a_handle_that_waits_goes_with_its_context(void **state)
{
	struct wire_vcudaContextCreate create = {.number = CONTEXT_CREATED};
	struct wire_vcudaContextDestroy gone = {.number = CONTEXT_CREATED};
	struct wire_cusolverDnCreate open = {
		.state.handle = handle_of(KIND_cusolverDnHandle, 2), .major = 12};
	struct wire_cusolverDnDestroy destroy = {.state.handle = open.state.handle};
	struct frame_header h;
	struct peer p;
	uint64_t solver;
	bool lost;

	(void)state;
	peer_start(&p);
	solver = open_handle(&p, OP_cusolverDnCreate, KIND_cusolverDnHandle, 12, 1);
	assert_int_equal(peer_status(&p, OP_vcudaContextCreate, &create, sizeof(create)), 0);
	h = call_header(&p, OP_cusolverDnCreate, sizeof(open));
	h.context = CONTEXT_CREATED;
	peer_send(&p, &h, &open);
	assert_int_equal(peer_reply(&p, &h, &lost), 0);
	assert_int_equal(h.status, CUDA_SUCCESS);
	ask_solver(&p, 1, solver, 0);
	expect_alive(&p);
	h = call_header(&p, OP_cusolverDnDestroy, sizeof(destroy));
	h.kind = FRAME_POST;
	h.context = CONTEXT_CREATED;
	peer_send(&p, &h, &destroy);
	expect_alive(&p);
	send_post(&p, OP_vcudaContextDestroy, &gone, sizeof(gone));
	usleep(200000); /* the gate opens behind it */
	gate_open(1);
	assert_int_equal(expect_answer(&p, 1), 0);
	for (int i = 0; i < 2; i++) {
		struct wire_vcudaSync body = {.scope = SYNC_CONTEXT};

		h = call_header(&p, OP_vcudaSync, sizeof(body));
		peer_send(&p, &h, &body);
		assert_int_equal(peer_reply(&p, &h, &lost), 0);
		assert_int_equal(h.status, CUDA_SUCCESS);
		assert_int_equal(h.deferred, CUDA_SUCCESS);
	}
	peer_stop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_destroyed_handle_ends_behind_its_call, gate_shut),
		cmocka_unit_test_setup(what_waits_to_be_closed_has_an_end, gate_shut),
		cmocka_unit_test_setup(a_stream_that_goes_waits, gate_shut),
		cmocka_unit_test_setup(a_context_that_goes_waits, gate_shut),
		cmocka_unit_test_setup(a_handle_that_waits_goes_with_its_context, gate_shut),
	};

	return gate_make() ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
