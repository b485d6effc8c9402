/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of calls beside the worker's loop share: libraries behind a gate, handles of
 * theirs, and calls that they prepare for long.
 */
#ifndef VCUDA_TESTS_UNIT_WORKER_BESIDE_H
#define VCUDA_TESTS_UNIT_WORKER_BESIDE_H

#include "protocol/generated/cudnn_ops.h"
#include "protocol/generated/cudnn_wire.h"
#include "protocol/generated/cusolver_ops.h"
#include "protocol/generated/cusolver_wire.h"
#include "protocol/libraries/cudnn_backend.h"
#include "protocol/libraries/cudnn_tree.h"
#include "protocol/libraries/items.h"
#include "tests/unit/worker/worker_peer.h"

static int gate, passed; /* the test's end of the pipe, and the library's */

/* Before the tests, to which it leaves the driver with the gated libraries. */
static inline bool gate_make(void)
{
	char number[16];
	int ends[2];

	if (pipe(ends))
		return false;
	gate = ends[1];
	passed = ends[0];
	snprintf(number, sizeof(number), "%d", ends[0]);
	setenv("VCUDA_SOFTGPU_GATE", number, 1);
	peer_driver = getenv("GATED_DRIVER");
	return true;
}

/* What a worker that ended left in the pipe would open it for the next one. */
static inline int gate_shut(void **state)
{
	struct pollfd end = {.fd = passed, .events = POLLIN};
	char byte;

	(void)state;
	while (poll(&end, 1, 0) == 1)
		assert_int_equal(read(passed, &byte, 1), 1);
	return 0;
}

static inline void gate_open(unsigned plans)
{
	while (plans--)
		assert_int_equal(write(gate, "", 1), 1);
}

static inline uint64_t handle_of(enum handle_kind kind, uint32_t number)
{
	return handle_make(1, kind, number);
}

/* The wire structs of what makes a handle are alike. */
static inline uint64_t open_handle(
	struct peer *p, uint16_t op, enum handle_kind kind, uint32_t major, uint32_t number)
{
	struct wire_cudnnCreate body = {
		.state.handle = handle_of(kind, number), .major = major};
	const struct library_reply *reply = (const void *)peer_body;

	assert_int_equal(CALL_OF(op, body), CUDA_SUCCESS);
	assert_int_equal(reply->status, 0);
	return body.state.handle;
}

static inline void send_call(
	struct peer *p, uint16_t op, uint16_t tag, const void *body, size_t n)
{
	struct frame_header h = call_header(p, op, (uint32_t)n);

	h.tag = tag;
	peer_send(p, &h, body);
}

/* The library's status, in the answer of the call with that tag. */
static inline uint32_t expect_answer(struct peer *p, uint16_t tag)
{
	const struct library_reply *reply = (const void *)peer_body;
	struct frame_header h;
	bool lost;

	assert_int_equal(peer_reply(p, &h, &lost), 0);
	assert_false(lost);
	assert_int_equal(h.tag, tag);
	assert_int_equal(h.status, CUDA_SUCCESS);
	return reply->status;
}

static inline void ask_solver(struct peer *p, uint16_t tag, uint64_t handle, uint64_t stream)
{
	LIBRARY_BODY(3, 1)
	body = {.head = {.state = {.handle = handle, .stream = stream}, .key_words = 3},
		.key = {tag, tag, tag}};

	send_call(p, OP_cusolverDnSgetrf_bufferSize, tag, &body, sizeof(body));
}

/* Is a tensor with that name any good? The library finalizes it. */
static inline void ask_dnn(struct peer *p, uint16_t tag, uint64_t handle)
{
	struct {
		struct wire_vcudaCudnnAsk fixed;
		uint32_t tree[6];
	} body = {.fixed = {.handle = handle,
			  .attribute = CUDNN_ASK_NOTHING,
			  .tree_bytes = sizeof(body.tree),
			  .tree = {sizeof(body.fixed), sizeof(body.tree)}},
		.tree = {1, CUDNN_BACKEND_TENSOR_DESCRIPTOR | 1u << 16,
			CUDNN_ATTR_TENSOR_UNIQUE_ID | CUDNN_TYPE_INT64 << 16, 1, tag, 0}};

	send_call(p, OP_vcudaCudnnAsk, tag, &body, sizeof(body));
}

#endif
