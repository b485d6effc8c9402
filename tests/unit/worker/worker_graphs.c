/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker's graphs against a client that violates the protocol, and what must go on while a
 * stream captures.
 */
#include "protocol/generated/cuda_wire.h"
#include "protocol/wire/graph.h"
#include "tests/unit/worker/worker_peer.h"

#define MEMORY 0x200000000000ull
#define GRAPH handle_make(1, KIND_CUgraph, 1)
#define OTHER handle_make(1, KIND_CUgraph, 2)
#define CHILD handle_make(1, KIND_CUgraph, 3)
#define EXEC handle_make(1, KIND_CUgraphExec, 4)
#define STREAM handle_make(1, KIND_CUstream, 5)

static void call_is(struct peer *p, uint16_t op, const void *body, size_t n, CUresult want)
{
	CUresult status = peer_status(p, op, body, n);

	if (status != want)
		fail_msg("op %u: status %u, not %u", op, (unsigned)status, (unsigned)want);
}
#define CALL_IS(OP, BODY, WANT) call_is(&p, OP, &(BODY), sizeof(BODY), WANT)

static void map_memory(struct peer *p)
{
	struct wire_vcudaMemMap map = {.address = MEMORY, .bytes = 2 << 20};

	call_is(p, OP_vcudaMemMap, &map, sizeof(map), CUDA_SUCCESS);
}

/* vcudaGraphAdd of a fill, with its runs behind the struct. */
struct add_fill {
	struct wire_vcudaGraphAdd add;
	uint32_t after[2];
	struct graph_fill fill;
};

static struct add_fill add_fill(uint64_t graph, uint32_t node, uint32_t count, uint32_t after)
{
	struct add_fill body = {
		.add = {.graph = graph,
			.node = node,
			.type = CU_GRAPH_NODE_TYPE_MEMSET,
			.count = count,
			.after = {offsetof(struct add_fill, after), 4 * count},
			.bytes = sizeof(struct graph_fill),
			.params = {offsetof(struct add_fill, fill), sizeof(struct graph_fill)}},
		.after = {after, after},
		.fill = {.dst = MEMORY, .value = 7, .element = 1, .width = 64, .height = 1},
	};

	return body;
}

static void graphs_are_built_and_run(void **state)
{
	struct wire_vcudaGraphMake make = {.graph = GRAPH, .what = GRAPH_NEW};
	struct wire_vcudaGraphInstantiate instantiate = {.graph = GRAPH, .exec = EXEC};
	struct wire_vcudaGraphGone gone = {.handle = GRAPH};
	struct wire_vcudaGraphRemove removed = {.graph = GRAPH};
	struct wire_cuGraphLaunch launch = {.hGraph = EXEC};
	struct add_fill add;
	struct peer p;

	(void)state;
	peer_start(&p);
	map_memory(&p);
	CALL_IS(OP_vcudaGraphMake, make, CUDA_SUCCESS);
	CALL_IS(OP_vcudaGraphMake, make, CUDA_ERROR_INVALID_HANDLE); /* in use */
	add = add_fill(GRAPH, 0, 0, 0);
	CALL_IS(OP_vcudaGraphAdd, add, CUDA_SUCCESS);
	CALL_IS(OP_vcudaGraphAdd, add, CUDA_ERROR_INVALID_VALUE); /* the number is taken */
	add = add_fill(GRAPH, 1, 1, 0);
	CALL_IS(OP_vcudaGraphAdd, add, CUDA_SUCCESS);
	add = add_fill(GRAPH, 2, 1, 9); /* behind a node that is not there */
	CALL_IS(OP_vcudaGraphAdd, add, CUDA_ERROR_INVALID_VALUE);
	add = add_fill(GRAPH, 2, 0, 0);
	add.fill.dst = MEMORY + (4 << 20); /* not the session's */
	CALL_IS(OP_vcudaGraphAdd, add, CUDA_ERROR_INVALID_VALUE);
	add = add_fill(OTHER, 0, 0, 0);
	CALL_IS(OP_vcudaGraphAdd, add, CUDA_ERROR_INVALID_HANDLE);
	CALL_IS(OP_vcudaGraphInstantiate, instantiate, CUDA_SUCCESS);
	CALL_IS(OP_cuGraphLaunch, launch, CUDA_SUCCESS);
	launch.hGraph = GRAPH;
	CALL_IS(OP_cuGraphLaunch, launch, CUDA_ERROR_INVALID_HANDLE); /* another kind */
	CALL_IS(OP_vcudaGraphRemove, removed, CUDA_SUCCESS);
	CALL_IS(OP_vcudaGraphRemove, removed, CUDA_ERROR_INVALID_VALUE);
	CALL_IS(OP_vcudaGraphGone, gone, CUDA_SUCCESS);
	CALL_IS(OP_vcudaGraphGone, gone, CUDA_ERROR_INVALID_HANDLE);
	gone.handle = EXEC;
	CALL_IS(OP_vcudaGraphGone, gone, CUDA_SUCCESS);
	CALL_IS(OP_vcudaGraphGone, gone, CUDA_ERROR_INVALID_HANDLE);
	expect_alive(&p);
	peer_stop(&p);
}

/* vcudaGraphAdd of a batch of two operations on values. */
struct add_batch {
	struct wire_vcudaGraphAdd add;
	struct graph_batch batch;
	CUstreamBatchMemOpParams ops[2];
};

static struct add_batch add_batch(uint32_t node, uint64_t address)
{
	struct add_batch body = {
		.add = {.graph = GRAPH,
			.node = node,
			.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
			.bytes = sizeof(struct graph_batch) + sizeof(body.ops),
			.after = {offsetof(struct add_batch, batch), 0},
			.params = {offsetof(struct add_batch, batch),
				sizeof(struct graph_batch) + sizeof(body.ops)}},
		.batch = {.count = 2},
	};

	for (int i = 0; i < 2; i++) {
		body.ops[i].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
		body.ops[i].writeValue.address = i ? address : MEMORY;
	}
	return body;
}

static void batches_are_checked(void **state)
{
	struct wire_vcudaGraphMake make = {.graph = GRAPH, .what = GRAPH_NEW};
	struct add_batch add = add_batch(0, MEMORY + 4);
	struct {
		struct wire_vcudaGraphSet set;
		struct graph_attribute attribute;
	} set = {
		.set = {.graph = GRAPH,
			.type = GRAPH_SET_ATTRIBUTE,
			.bytes = sizeof(struct graph_attribute),
			.params = {sizeof(struct wire_vcudaGraphSet),
				sizeof(struct graph_attribute)}},
		.attribute = {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY},
	};
	struct peer p;

	(void)state;
	peer_start(&p);
	map_memory(&p);
	CALL_IS(OP_vcudaGraphMake, make, CUDA_SUCCESS);
	CALL_IS(OP_vcudaGraphAdd, add, CUDA_SUCCESS);
	add = add_batch(1, MEMORY + (2 << 20)); /* not the session's */
	CALL_IS(OP_vcudaGraphAdd, add, CUDA_ERROR_INVALID_VALUE);
	add = add_batch(2, MEMORY);
	add.batch.count = 3; /* more than there are */
	CALL_IS(OP_vcudaGraphAdd, add, CUDA_ERROR_INVALID_VALUE);
	add = add_batch(2, MEMORY);
	add.batch.count = 0x20000002; /* whose bytes overflow to those of two */
	CALL_IS(OP_vcudaGraphAdd, add, CUDA_ERROR_INVALID_VALUE);
	add = add_batch(2, MEMORY);
	add.ops[1].operation = (CUstreamBatchMemOpType)99;
	CALL_IS(OP_vcudaGraphAdd, add, CUDA_ERROR_INVALID_VALUE);
	/* Attributes are a kernel's; one that holds an event does not travel. */
	CALL_IS(OP_vcudaGraphSet, set, CUDA_ERROR_INVALID_VALUE);
	set.attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
	CALL_IS(OP_vcudaGraphSet, set, CUDA_ERROR_INVALID_VALUE);
	expect_alive(&p);
	peer_stop(&p);
}

/* vcudaGraphAdd of a conditional node with one body. */
struct add_conditional {
	struct wire_vcudaGraphAdd add;
	struct graph_conditional conditional;
	uint64_t body;
};

static struct add_conditional add_conditional(uint64_t graph, uint32_t node, uint64_t handle)
{
	struct add_conditional body = {
		.add = {.graph = graph,
			.node = node,
			.type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
			.bytes = sizeof(body) - sizeof(body.add),
			.after = {sizeof(body.add), 0},
			.params = {sizeof(body.add), sizeof(body) - sizeof(body.add)}},
		.conditional = {.handle = handle, .type = CU_GRAPH_COND_TYPE_IF, .size = 1},
		.body = CHILD,
	};

	return body;
}

static uint64_t condition_of(struct peer *p, uint64_t graph)
{
	struct wire_vcudaConditionalCreate create = {.graph = graph};
	struct frame_header h = call_header(p, OP_vcudaConditionalCreate, sizeof(create));
	bool lost;

	peer_send(p, &h, &create);
	assert_int_equal(peer_reply(p, &h, &lost), 0);
	assert_int_equal(h.status, 0);
	return ((const struct wire_vcudaConditionalCreate_reply *)(const void *)peer_body)
		->handle;
}

/* A handle is taken in the graph that it was made for, and inside of it, and nowhere else. */
static void conditions_are_their_graphs(void **state)
{
	struct wire_vcudaGraphMake make = {.graph = GRAPH, .what = GRAPH_NEW};
	struct wire_vcudaGraphMake other = {.graph = OTHER, .what = GRAPH_NEW};
	struct wire_vcudaGraphInstantiate instantiate = {.graph = GRAPH, .exec = EXEC};
	struct wire_vcudaGraphGone gone = {.handle = GRAPH};
	struct wire_vcudaGraphList list = {.graph = CHILD, .what = GRAPH_TYPES};
	struct wire_cuGraphLaunch launch = {.hGraph = EXEC};
	struct add_conditional add;
	struct peer p;
	uint64_t handle;

	(void)state;
	peer_start(&p);
	CALL_IS(OP_vcudaGraphMake, make, CUDA_SUCCESS);
	CALL_IS(OP_vcudaGraphMake, other, CUDA_SUCCESS);
	handle = condition_of(&p, GRAPH);
	add = add_conditional(OTHER, 0, handle);
	CALL_IS(OP_vcudaGraphAdd, add, CUDA_ERROR_INVALID_VALUE);
	add = add_conditional(GRAPH, 0, handle + 8);
	CALL_IS(OP_vcudaGraphAdd, add, CUDA_ERROR_INVALID_VALUE);
	add = add_conditional(GRAPH, 1, handle);
	add.conditional.size = 2; /* more names than there are */
	CALL_IS(OP_vcudaGraphAdd, add, CUDA_ERROR_INVALID_VALUE);
	add.conditional.size = 0x20000001; /* whose bytes overflow to those of one */
	CALL_IS(OP_vcudaGraphAdd, add, CUDA_ERROR_INVALID_VALUE);
	add = add_conditional(GRAPH, 1, handle);
	add.conditional.type = 99;
	CALL_IS(OP_vcudaGraphAdd, add, CUDA_ERROR_INVALID_VALUE);
	add = add_conditional(GRAPH, 1, handle);
	add.body = OTHER; /* a name that is taken */
	CALL_IS(OP_vcudaGraphAdd, add, CUDA_ERROR_INVALID_HANDLE);
	add = add_conditional(GRAPH, 2, handle);
	CALL_IS(OP_vcudaGraphAdd, add, CUDA_SUCCESS);
	CALL_IS(OP_vcudaGraphList, list, CUDA_SUCCESS);
	CALL_IS(OP_vcudaGraphInstantiate, instantiate, CUDA_SUCCESS);
	CALL_IS(OP_cuGraphLaunch, launch, CUDA_SUCCESS);
	gone.handle = CHILD; /* its node's */
	CALL_IS(OP_vcudaGraphGone, gone, CUDA_ERROR_INVALID_VALUE);
	gone.handle = GRAPH;
	CALL_IS(OP_vcudaGraphGone, gone, CUDA_SUCCESS);
	CALL_IS(OP_vcudaGraphList, list, CUDA_ERROR_INVALID_HANDLE);
	expect_alive(&p);
	peer_stop(&p);
}

/* The name of a child graph goes with the graph that the child is part of. */
static void children_go_with_their_parent(void **state)
{
	struct wire_vcudaGraphMake make = {.graph = GRAPH, .what = GRAPH_NEW};
	struct {
		struct wire_vcudaGraphAdd add;
		struct graph_child child;
	} nested = {
		.add = {.graph = OTHER,
			.type = CU_GRAPH_NODE_TYPE_GRAPH,
			.bytes = sizeof(struct graph_child),
			.after = {sizeof(struct wire_vcudaGraphAdd), 0},
			.params = {sizeof(struct wire_vcudaGraphAdd),
				sizeof(struct graph_child)}},
		.child = {.graph = GRAPH},
	};
	struct wire_vcudaGraphGone gone = {.handle = CHILD};
	struct wire_vcudaGraphList list = {.graph = CHILD, .what = GRAPH_TYPES};
	struct add_fill add = add_fill(GRAPH, 0, 0, 0);
	struct peer p;

	(void)state;
	peer_start(&p);
	map_memory(&p);
	CALL_IS(OP_vcudaGraphMake, make, CUDA_SUCCESS);
	CALL_IS(OP_vcudaGraphAdd, add, CUDA_SUCCESS);
	make.graph = OTHER;
	CALL_IS(OP_vcudaGraphMake, make, CUDA_SUCCESS);
	CALL_IS(OP_vcudaGraphAdd, nested, CUDA_SUCCESS);
	make = (struct wire_vcudaGraphMake){.graph = CHILD, .what = GRAPH_CHILD, .of = OTHER};
	CALL_IS(OP_vcudaGraphMake, make, CUDA_SUCCESS);
	CALL_IS(OP_vcudaGraphList, list, CUDA_SUCCESS);
	CALL_IS(OP_vcudaGraphGone, gone, CUDA_ERROR_INVALID_VALUE); /* not the app's own */
	gone.handle = OTHER;
	CALL_IS(OP_vcudaGraphGone, gone, CUDA_SUCCESS);
	CALL_IS(OP_vcudaGraphList, list, CUDA_ERROR_INVALID_HANDLE);
	expect_alive(&p);
	peer_stop(&p);
}

static void wait_for_ticket(struct peer *p, uint64_t ticket)
{
	struct frame_update update;
	struct frame_header h;

	for (;;) {
		assert_int_equal(read_all(p->replies, &h, sizeof(h)), 0);
		assert_true(h.length <= sizeof(update));
		assert_int_equal(read_all(p->replies, &update, h.length), 0);
		if (h.kind == FRAME_UPDATE && update.index == COUNTER_UNMAPPED) {
			assert_int_equal(update.value, ticket);
			return;
		}
	}
}

/* A stream that the legacy one waits for captures: neither can be asked when it is done, and
 * memory is taken away all the same, behind what they had to do before. */
static void memory_goes_while_a_stream_captures(void **state)
{
	struct wire_vcudaStreamCreate create = {.stream = STREAM};
	struct wire_vcudaFill fill = {
		.dst = MEMORY, .element = 1, .width = 1 << 20, .height = 1};
	struct wire_vcudaCaptureBegin begin = {.stream = STREAM,
		.graph = GRAPH,
		.after = {sizeof(struct wire_vcudaCaptureBegin), 0}};
	struct wire_vcudaCaptureEnd end = {.stream = STREAM, .graph = GRAPH};
	struct wire_vcudaMemUnmap unmap = {.address = MEMORY, .bytes = 2 << 20, .ticket = 33};
	struct wire_vcudaGraphGone gone = {.handle = GRAPH};
	struct frame_header h;
	struct peer p;

	(void)state;
	peer_start(&p);
	map_memory(&p);
	CALL_IS(OP_vcudaStreamCreate, create, CUDA_SUCCESS);
	CALL_IS(OP_vcudaFill, fill, CUDA_SUCCESS);
	fill.stream = STREAM;
	CALL_IS(OP_vcudaFill, fill, CUDA_SUCCESS);
	CALL_IS(OP_vcudaCaptureBegin, begin, CUDA_SUCCESS);
	CALL_IS(OP_vcudaCaptureBegin, begin, CUDA_ERROR_ILLEGAL_STATE);
	CALL_IS(OP_vcudaFill, fill, CUDA_SUCCESS); /* a node */
	h = call_header(&p, OP_vcudaMemUnmap, sizeof(unmap));
	h.kind = FRAME_POST;
	peer_send(&p, &h, &unmap);
	wait_for_ticket(&p, 33);
	CALL_IS(OP_vcudaGraphGone, gone, CUDA_ERROR_INVALID_VALUE); /* captured into */
	CALL_IS(OP_vcudaCaptureEnd, end, CUDA_SUCCESS); /* none of that spoiled it */
	CALL_IS(OP_vcudaCaptureEnd, end, CUDA_ERROR_ILLEGAL_STATE);
	CALL_IS(OP_vcudaGraphGone, gone, CUDA_SUCCESS);
	expect_alive(&p);
	peer_stop(&p);
}

static void a_capture_ends_with_its_stream(void **state)
{
	struct wire_vcudaStreamCreate create = {.stream = STREAM};
	struct wire_vcudaFill fill = {
		.dst = MEMORY, .element = 1, .width = 1 << 20, .height = 1, .stream = STREAM};
	struct wire_vcudaCaptureBegin begin = {.stream = STREAM,
		.graph = GRAPH,
		.after = {sizeof(struct wire_vcudaCaptureBegin), 0}};
	struct wire_vcudaStreamDestroy gone = {.stream = STREAM};
	struct wire_vcudaGraphList list = {.graph = GRAPH, .what = GRAPH_TYPES};
	struct peer p;

	(void)state;
	peer_start(&p);
	map_memory(&p);
	CALL_IS(OP_vcudaStreamCreate, create, CUDA_SUCCESS);
	CALL_IS(OP_vcudaFill, fill, CUDA_SUCCESS);
	CALL_IS(OP_vcudaCaptureBegin, begin, CUDA_SUCCESS);
	CALL_IS(OP_vcudaGraphList, list, CUDA_SUCCESS);
	CALL_IS(OP_vcudaFill, fill, CUDA_SUCCESS); /* a node */
	CALL_IS(OP_vcudaStreamDestroy, gone, CUDA_SUCCESS);
	CALL_IS(OP_vcudaGraphList, list, CUDA_ERROR_INVALID_HANDLE);
	fill.stream = 0;
	CALL_IS(OP_vcudaFill, fill, CUDA_SUCCESS); /* the legacy stream is free again */
	expect_alive(&p);
	peer_stop(&p);
}

/* Each bit of the bodies: an error or a success, never the worker's end. */
static void flipped_bodies_are_answered(void **state)
{
	struct wire_vcudaGraphMake make = {.graph = GRAPH, .what = GRAPH_NEW};
	struct wire_vcudaStreamCreate create = {.stream = STREAM};
	struct add_fill add = add_fill(GRAPH, 1, 1, 0);
	struct {
		struct wire_vcudaGraphSet set;
		struct graph_fill fill;
	} set = {
		.set = {.graph = GRAPH,
			.type = CU_GRAPH_NODE_TYPE_MEMSET,
			.bytes = sizeof(struct graph_fill),
			.params = {sizeof(struct wire_vcudaGraphSet),
				sizeof(struct graph_fill)}},
		.fill = {.dst = MEMORY, .element = 4, .width = 8, .height = 1},
	};
	struct {
		struct wire_vcudaGraphAdd add;
		struct graph_kernel kernel;
	} kernel = {
		.add = {.graph = GRAPH,
			.node = 2,
			.type = CU_GRAPH_NODE_TYPE_KERNEL,
			.bytes = sizeof(struct graph_kernel),
			.after = {sizeof(struct wire_vcudaGraphAdd), 0},
			.params = {sizeof(struct wire_vcudaGraphAdd),
				sizeof(struct graph_kernel)}},
		.kernel = {.grid = {1, 1, 1}, .block = {1, 1, 1}},
	};
	struct {
		struct wire_vcudaGraphEdges edges;
		struct graph_edge edge;
	} edges = {
		.edges = {.graph = GRAPH,
			.count = 1,
			.edges = {sizeof(struct wire_vcudaGraphEdges),
				sizeof(struct graph_edge)}},
		.edge = {.from = 0, .to = 1},
	};
	struct wire_vcudaGraphMake clone = {.graph = OTHER, .what = GRAPH_CLONE, .of = GRAPH};
	struct wire_vcudaGraphInstantiate instantiate = {.graph = GRAPH, .exec = EXEC};
	struct wire_vcudaGraphUpdate update = {.graph = GRAPH, .exec = EXEC};
	struct wire_vcudaGraphGet get = {.graph = GRAPH};
	struct wire_vcudaGraphList list = {.graph = GRAPH, .what = GRAPH_EDGES};
	struct wire_vcudaGraphDot dot = {.graph = GRAPH};
	struct wire_vcudaCaptureTail tail = {.graph = GRAPH, .stream = STREAM};
	struct wire_vcudaCaptureBegin begin = {.stream = STREAM,
		.graph = CHILD,
		.after = {sizeof(struct wire_vcudaCaptureBegin), 0}};
	struct wire_vcudaCaptureEnd end = {.stream = STREAM, .graph = CHILD};
	struct {
		uint16_t op;
		const void *body;
		uint32_t n;
	} frames[] = {
		{OP_vcudaGraphAdd, &add, sizeof(add)},
		{OP_vcudaGraphAdd, &kernel, sizeof(kernel)},
		{OP_vcudaGraphSet, &set, sizeof(set)},
		{OP_vcudaGraphEdges, &edges, sizeof(edges)},
		{OP_vcudaGraphMake, &clone, sizeof(clone)},
		{OP_vcudaGraphInstantiate, &instantiate, sizeof(instantiate)},
		{OP_vcudaGraphUpdate, &update, sizeof(update)},
		{OP_vcudaGraphGet, &get, sizeof(get)},
		{OP_vcudaGraphList, &list, sizeof(list)},
		{OP_vcudaGraphDot, &dot, sizeof(dot)},
		{OP_vcudaCaptureTail, &tail, sizeof(tail)},
		{OP_vcudaCaptureBegin, &begin, sizeof(begin)},
		{OP_vcudaCaptureEnd, &end, sizeof(end)},
	};
	struct add_fill first = add_fill(GRAPH, 0, 0, 0);
	struct peer p;

	(void)state;
	peer_start(&p);
	map_memory(&p);
	CALL_IS(OP_vcudaStreamCreate, create, CUDA_SUCCESS);
	CALL_IS(OP_vcudaGraphMake, make, CUDA_SUCCESS);
	CALL_IS(OP_vcudaGraphAdd, first, CUDA_SUCCESS);
	for (size_t f = 0; f < sizeof(frames) / sizeof(frames[0]); f++)
		for (uint32_t bit = 0; bit < 8 * frames[f].n; bit++) {
			struct frame_header h = call_header(&p, frames[f].op, frames[f].n);
			unsigned char body[512];
			bool lost;

			assert_true(frames[f].n <= sizeof(body));
			memcpy(body, frames[f].body, frames[f].n);
			body[bit / 8] ^= (unsigned char)(1u << bit % 8);
			peer_send(&p, &h, body);
			assert_int_equal(peer_reply(&p, &h, &lost), 0);
			assert_false(lost);
		}
	peer_stop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(graphs_are_built_and_run),
		cmocka_unit_test(batches_are_checked),
		cmocka_unit_test(conditions_are_their_graphs),
		cmocka_unit_test(children_go_with_their_parent),
		cmocka_unit_test(memory_goes_while_a_stream_captures),
		cmocka_unit_test(a_capture_ends_with_its_stream),
		cmocka_unit_test(flipped_bodies_are_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
