/* SPDX-License-Identifier: Apache-2.0
 *
 * What a copy, a fill or a value in memory is checked for is what it touches: the memory behind
 * the first of two allocations stays as it is, whatever pitches and slices a client states.
 */
#include "protocol/generated/cuda_wire.h"
#include "protocol/wire/graph.h"
#include "tests/unit/worker/worker_peer.h"

#define FIRST 0x200000000000ull
#define BYTES (2ull << 20)
#define SECOND (FIRST + BYTES)
#define END (SECOND + BYTES)
/* Where the software GPU allocates: the worker's pinned memory is there. */
#define DRIVERS 0x110000000000ull
#define GRAPH handle_make(1, KIND_CUgraph, 1)

static void start(struct peer *p)
{
	peer_start(p);
	for (uint64_t at = FIRST; at < END; at += BYTES) {
		struct wire_vcudaMemMap map = {.address = at, .bytes = BYTES};

		assert_int_equal(CALL_OF(OP_vcudaMemMap, map), CUDA_SUCCESS);
	}
}

/* A side of a copy: ROWS of PITCH bytes a slice, SLICES of them. */
struct side {
	const char *what;
	uint64_t at, pitch, slice, width, height, depth;
	CUresult status;
};

/* A thousand bytes in each of a hundred slices, which states a pitch of one byte: written would
 * be 100 000 bytes, not the 1 099 between the first slice's start and the last one's end. */
#define SLICES 1000, 1, 100
static const struct side sides[] = {
	{"a row at the very end", END - 1000, 1000, 1000, 1000, 1, 1, CUDA_SUCCESS},
	{"a row that leaves", END - 999, 1000, 1000, 1000, 1, 1, CUDA_ERROR_INVALID_VALUE},
	{"slices of one row below its width", END - 1100, 1, 1, SLICES,
		CUDA_ERROR_INVALID_VALUE},
	{"slices that overlap", FIRST, 1, 999, SLICES, CUDA_ERROR_INVALID_VALUE},
	{"slices of one row without a pitch", FIRST, 0, 1000, SLICES, CUDA_SUCCESS},
	{"slices of one row, the pitch below its width", END - 99 * 1500 - 1000, 7, 1500,
		SLICES, CUDA_SUCCESS},
	{"and one byte on", END - 99 * 1500 - 999, 7, 1500, SLICES, CUDA_ERROR_INVALID_VALUE},
	{"slices of one row that the pitch does not divide", FIRST, 1000, 1500, SLICES,
		CUDA_SUCCESS},
	{"slices of rows that the pitch does not divide", FIRST, 1000, 2500, 1000, 2, 100,
		CUDA_ERROR_INVALID_VALUE},
	{"rows below their width", FIRST, 999, 0, 1000, 2, 1, CUDA_ERROR_INVALID_VALUE},
	{"rows to the end", END - 99 * 1024 - 1000, 1024, 0, 1000, 100, 1, CUDA_SUCCESS},
	{"and one byte on", END - 99 * 1024 - 999, 1024, 0, 1000, 100, 1,
		CUDA_ERROR_INVALID_VALUE},
	{"fewer rows a slice than are copied", FIRST, 1000, 1000, 1000, 2, 2,
		CUDA_ERROR_INVALID_VALUE},
	{"more slices than addresses", FIRST, 1ull << 40, 1ull << 40, 1000, 1, 1ull << 40,
		CUDA_ERROR_INVALID_VALUE},
	{"a pitch beyond all addresses", FIRST, UINT64_MAX, UINT64_MAX, 1000, 1, 2,
		CUDA_ERROR_INVALID_VALUE},
	{"no bytes", FIRST, 0, 0, 0, 1, 1, CUDA_ERROR_INVALID_VALUE},
	{"slices of no bytes", FIRST, 0, 0, 0, 1, 2, CUDA_ERROR_INVALID_VALUE},
	{"no rows", FIRST, 1000, 1000, 1000, 0, 1, CUDA_ERROR_INVALID_VALUE},
};

static void expect(const char *what, const struct side *s, CUresult status)
{
	if (status != s->status)
		fail_msg("%s, %s: status %d, not %d", what, s->what, (int)status,
			(int)s->status);
}

/* The other side is harmless: packed, at the start of the first allocation. */
static void copies_touch_what_is_checked(void **state)
{
	struct peer peer, *p = &peer;

	(void)state;
	start(p);
	for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
		const struct side *s = &sides[i];
		uint64_t slice = s->width * s->height;
		struct wire_vcudaCopy to = {.dst = s->at,
			.dstPitch = s->pitch,
			.dstSlice = s->slice,
			.src = FIRST,
			.srcPitch = s->width,
			.srcSlice = slice,
			.width = s->width,
			.height = s->height,
			.depth = s->depth};
		struct wire_vcudaCopy from = {.src = s->at,
			.srcPitch = s->pitch,
			.srcSlice = s->slice,
			.dst = FIRST,
			.dstPitch = s->width,
			.dstSlice = slice,
			.width = s->width,
			.height = s->height,
			.depth = s->depth};
		struct wire_vcudaCopyOut out = {.src = s->at,
			.pitch = s->pitch,
			.slice = s->slice,
			.width = s->width,
			.height = s->height,
			.depth = s->depth};

		expect("copy to", s, CALL_OF(OP_vcudaCopy, to));
		expect("copy from", s, CALL_OF(OP_vcudaCopy, from));
		expect("copy out", s, CALL_OF(OP_vcudaCopyOut, out));
	}
	expect_alive(p);
	peer_stop(p);
}

static void copies_in_touch_what_is_checked(void **state)
{
	struct peer peer, *p = &peer;

	(void)state;
	start(p);
	for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
		const struct side *s = &sides[i];
		uint64_t bytes = s->width * s->height * s->depth;
		struct wire_vcudaCopyIn body = {.dst = s->at,
			.pitch = s->pitch,
			.slice = s->slice,
			.width = s->width,
			.height = s->height,
			.depth = s->depth};
		struct frame_header h;
		static const unsigned char payload[400 << 10];
		bool lost;

		if (bytes > sizeof(payload))
			continue;
		h = call_header(p, OP_vcudaCopyIn, sizeof(body));
		h.length += (uint32_t)bytes;
		peer_send(p, &h, &body);
		for (uint64_t at = 0; at < bytes;) {
			ssize_t n = send(p->commands, payload + at, bytes - at, MSG_NOSIGNAL);

			assert_true(n > 0);
			at += (uint64_t)n;
		}
		assert_int_equal(peer_reply(p, &h, &lost), 0);
		expect("copy in", s, (CUresult)h.status);
	}
	expect_alive(p);
	peer_stop(p);
}

/* vcudaGraphAdd with the parameters of one node behind the struct. */
struct add_node {
	struct wire_vcudaGraphAdd add;
	union {
		struct graph_copy copy;
		struct graph_fill fill;
	};
};

static struct add_node add_node(uint32_t number, uint32_t type, uint32_t bytes)
{
	return (struct add_node){.add = {.graph = GRAPH,
					 .node = number,
					 .type = type,
					 .bytes = bytes,
					 .after = {offsetof(struct add_node, copy), 0},
					 .params = {offsetof(struct add_node, copy), bytes}}};
}

static CUresult call_node(struct peer *p, const struct add_node *node)
{
	return peer_status(
		p, OP_vcudaGraphAdd, node, offsetof(struct add_node, copy) + node->add.bytes);
}

static void nodes_touch_what_is_checked(void **state)
{
	struct wire_vcudaGraphMake make = {.graph = GRAPH, .what = GRAPH_NEW};
	struct peer peer, *p = &peer;
	uint32_t number = 0;

	(void)state;
	start(p);
	assert_int_equal(CALL_OF(OP_vcudaGraphMake, make), CUDA_SUCCESS);
	for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
		const struct side *s = &sides[i];
		struct add_node node =
			add_node(number, CU_GRAPH_NODE_TYPE_MEMCPY, sizeof(struct graph_copy));
		CUresult status;

		node.copy = (struct graph_copy){.dst = s->at,
			.dst_pitch = s->pitch,
			.dst_slice = s->slice,
			.src = FIRST,
			.src_pitch = s->width,
			.src_slice = s->width * s->height,
			.width = s->width,
			.height = s->height,
			.depth = s->depth};
		status = call_node(p, &node);
		expect("copy node", s, status);
		number += !status;
	}
	expect_alive(p);
	peer_stop(p);
}

struct fill {
	const char *what;
	uint64_t at, pitch;
	uint32_t element;
	uint64_t width, height;
	CUresult status;
};
static const struct fill fills[] = {
	{"to the end", END - 4000, 0, 4, 1000, 1, CUDA_SUCCESS},
	{"and on", END - 3996, 0, 4, 1000, 1, CUDA_ERROR_INVALID_VALUE},
	{"no element", END - 4, 0, 0, 1000, 1, CUDA_ERROR_INVALID_VALUE},
	{"an element of three bytes", FIRST, 0, 3, 1000, 1, CUDA_ERROR_INVALID_VALUE},
	{"an element of 2^31 bytes", FIRST, 0, 1u << 31, 1, 1, CUDA_ERROR_INVALID_VALUE},
	{"rows to the end", END - 99 * 4096 - 4000, 4096, 4, 1000, 100, CUDA_SUCCESS},
	{"rows and on", END - 99 * 4096 - 3996, 4096, 4, 1000, 100, CUDA_ERROR_INVALID_VALUE},
	{"rows below their width", FIRST, 2000, 4, 1000, 2, CUDA_ERROR_INVALID_VALUE},
	{"an overflow", FIRST, 0, 4, 1ull << 62, 1, CUDA_ERROR_INVALID_VALUE},
	{"no rows", FIRST, 0, 4, 1000, 0, CUDA_ERROR_INVALID_VALUE},
};

static void fills_touch_what_is_checked(void **state)
{
	struct wire_vcudaGraphMake make = {.graph = GRAPH, .what = GRAPH_NEW};
	struct peer peer, *p = &peer;
	uint32_t number = 0;

	(void)state;
	start(p);
	assert_int_equal(CALL_OF(OP_vcudaGraphMake, make), CUDA_SUCCESS);
	for (size_t i = 0; i < sizeof(fills) / sizeof(fills[0]); i++) {
		const struct fill *f = &fills[i];
		struct wire_vcudaFill fill = {.dst = f->at,
			.pitch = f->pitch,
			.element = f->element,
			.width = f->width,
			.height = f->height};
		struct add_node node =
			add_node(number, CU_GRAPH_NODE_TYPE_MEMSET, sizeof(struct graph_fill));
		CUresult status = CALL_OF(OP_vcudaFill, fill);

		if (status != f->status)
			fail_msg("fill, %s: status %d", f->what, (int)status);
		node.fill = (struct graph_fill){.dst = f->at,
			.pitch = f->pitch,
			.element = f->element,
			.width = f->width,
			.height = f->height};
		status = call_node(p, &node);
		if (status != f->status)
			fail_msg("fill node, %s: status %d", f->what, (int)status);
		number += !status;
	}
	expect_alive(p);
	peer_stop(p);
}

/* ---- batches of values ---- */

struct batch {
	struct wire_cuStreamBatchMemOp_v2 call;
	CUstreamBatchMemOpParams ops[2];
};

static CUresult call_batch(
	struct peer *p, CUstreamBatchMemOpType operation, uint64_t first, uint64_t second)
{
	struct batch body = {
		.call = {.count = 2,
			.paramArray = {offsetof(struct batch, ops), sizeof(body.ops)}}};

	for (int i = 0; i < 2; i++) {
		body.ops[i].operation = operation;
		body.ops[i].writeValue.address = i ? second : first;
		if (operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
			operation == CU_STREAM_MEM_OP_WAIT_VALUE_64)
			body.ops[i].waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
	}
	return CALL_OF(OP_cuStreamBatchMemOp_v2, body);
}

static void batches_touch_what_is_checked(void **state)
{
	static const struct {
		CUstreamBatchMemOpType operation;
		uint64_t bytes;
	} kinds[] = {
		{CU_STREAM_MEM_OP_WAIT_VALUE_32, 4},
		{CU_STREAM_MEM_OP_WRITE_VALUE_32, 4},
		{CU_STREAM_MEM_OP_WAIT_VALUE_64, 8},
		{CU_STREAM_MEM_OP_WRITE_VALUE_64, 8},
	};
	struct peer peer, *p = &peer;

	(void)state;
	start(p);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		CUstreamBatchMemOpType operation = kinds[i].operation;

		assert_int_equal(
			call_batch(p, operation, FIRST, END - kinds[i].bytes), CUDA_SUCCESS);
		assert_int_equal(
			call_batch(p, operation, FIRST, END), CUDA_ERROR_INVALID_VALUE);
		assert_int_equal(call_batch(p, operation, FIRST, END - kinds[i].bytes / 2),
			CUDA_ERROR_INVALID_VALUE);
	}
	/* Memory that the driver knows and the session does not own. */
	for (uint64_t at = DRIVERS; at < DRIVERS + (64 << 20); at += 1 << 20)
		assert_int_equal(call_batch(p, CU_STREAM_MEM_OP_WRITE_VALUE_32, FIRST, at),
			CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(call_batch(p, 77, FIRST, FIRST), CUDA_ERROR_INVALID_VALUE);
	expect_alive(p);
	peer_stop(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_touch_what_is_checked),
		cmocka_unit_test(copies_in_touch_what_is_checked),
		cmocka_unit_test(nodes_touch_what_is_checked),
		cmocka_unit_test(fills_touch_what_is_checked),
		cmocka_unit_test(batches_touch_what_is_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
