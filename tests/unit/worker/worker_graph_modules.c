/* SPDX-License-Identifier: Apache-2.0
 *
 * A module that is unloaded stays for the graphs and executable graphs that have kernels of it,
 * and goes with the last of them: a launch runs, and the session may have as many modules as
 * before. Programs do not show it: natively such a launch may end them.
 */
#include "protocol/generated/cuda_wire.h"
#include "protocol/wire/graph.h"
#include "tests/unit/worker/worker_image.h"
#include "tests/unit/worker/worker_quotas.h"

#define GRAPH handle_make(1, KIND_CUgraph, 1)
#define CLONE handle_make(1, KIND_CUgraph, 2)
#define EXEC handle_make(1, KIND_CUgraphExec, 4)
#define STREAM handle_make(1, KIND_CUstream, 5)
#define FUNCTION handle_make(1, KIND_CUfunction, 6)
#define MODULE(GENERATION) handle_make(GENERATION, KIND_CUmodule, 7)

/* The variable's memory is the module's: who runs it behind an unload faults. */
static const char counting[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
			       ".visible .global .u32 number;\n"
			       ".visible .entry count()\n{\n"
			       "	.reg .b32 %r<3>;\n"
			       "	ld.global.u32 %r1, [number];\n"
			       "	add.u32 %r2, %r1, 1;\n"
			       "	st.global.u32 [number], %r2;\n"
			       "	ret;\n}\n";

static CUresult load(struct peer *p, uint32_t generation)
{
	return image_load(p, counting, MODULE(generation));
}

static void get_kernel(struct peer *p)
{
	struct {
		struct wire_vcudaFunctionGet get;
		char name[8];
	} get = {.get = {.module = MODULE(1),
			 .function = FUNCTION,
			 .name = {sizeof(get.get), 6}},
		.name = "count"};

	assert_int_equal(CALL_OF(OP_vcudaFunctionGet, get), CUDA_SUCCESS);
}

static void unload(struct peer *p)
{
	struct wire_vcudaModuleUnload unload = {.module = MODULE(1)};

	assert_int_equal(CALL_OF(OP_vcudaModuleUnload, unload), CUDA_SUCCESS);
}

static void start(struct peer *p)
{
	peer_quotas[QUOTA_MODULES] = 1;
	peer_start(p);
	assert_int_equal(load(p, 1), CUDA_SUCCESS);
	get_kernel(p);
}

static void stop(struct peer *p)
{
	expect_alive(p);
	peer_stop(p);
	memset(peer_quotas, 0, sizeof(peer_quotas));
}

static void make_graph(struct peer *p)
{
	struct wire_vcudaGraphMake make = {.graph = GRAPH, .what = GRAPH_NEW};

	assert_int_equal(CALL_OF(OP_vcudaGraphMake, make), CUDA_SUCCESS);
}

static void add_kernel(struct peer *p)
{
	struct {
		struct wire_vcudaGraphAdd add;
		struct graph_kernel kernel;
	} add = {.add = {.graph = GRAPH,
			 .type = CU_GRAPH_NODE_TYPE_KERNEL,
			 .after = {sizeof(add.add), 0},
			 .bytes = sizeof(add.kernel),
			 .params = {sizeof(add.add), sizeof(add.kernel)}},
		.kernel = {.function = FUNCTION, .grid = {1, 1, 1}, .block = {1, 1, 1}}};

	assert_int_equal(CALL_OF(OP_vcudaGraphAdd, add), CUDA_SUCCESS);
}

static void instantiate(struct peer *p, uint64_t graph)
{
	struct wire_vcudaGraphInstantiate instantiate = {.graph = graph, .exec = EXEC};

	assert_int_equal(CALL_OF(OP_vcudaGraphInstantiate, instantiate), CUDA_SUCCESS);
}

static void launch(struct peer *p)
{
	struct wire_cuGraphLaunch launch = {.hGraph = EXEC};
	struct wire_vcudaSync sync = {.scope = SYNC_CONTEXT};

	assert_int_equal(CALL_OF(OP_cuGraphLaunch, launch), CUDA_SUCCESS);
	assert_int_equal(CALL_OF(OP_vcudaSync, sync), CUDA_SUCCESS);
}

static void end(struct peer *p, uint64_t handle)
{
	struct wire_vcudaGraphGone gone = {.handle = handle};

	assert_int_equal(CALL_OF(OP_vcudaGraphGone, gone), CUDA_SUCCESS);
}

static void an_executable_graph_keeps_its_kernels(void **state)
{
	struct peer peer, *p = &peer;

	(void)state;
	start(p);
	make_graph(p);
	add_kernel(p);
	instantiate(p, GRAPH);
	unload(p);
	launch(p);
	end(p, GRAPH);
	launch(p);
	assert_int_equal(load(p, 2), CUDA_ERROR_OUT_OF_MEMORY); /* it is still there */
	end(p, EXEC);
	assert_int_equal(load(p, 2), CUDA_SUCCESS);
	stop(p);
}

static void a_clone_keeps_them_too(void **state)
{
	struct wire_vcudaGraphMake clone = {.graph = CLONE, .what = GRAPH_CLONE, .of = GRAPH};
	struct peer peer, *p = &peer;

	(void)state;
	start(p);
	make_graph(p);
	add_kernel(p);
	assert_int_equal(CALL_OF(OP_vcudaGraphMake, clone), CUDA_SUCCESS);
	end(p, GRAPH);
	unload(p);
	instantiate(p, CLONE);
	launch(p);
	end(p, CLONE);
	assert_int_equal(load(p, 2), CUDA_ERROR_OUT_OF_MEMORY);
	end(p, EXEC);
	assert_int_equal(load(p, 2), CUDA_SUCCESS);
	stop(p);
}

static void a_child_keeps_them_too(void **state)
{
	struct wire_vcudaGraphMake make = {.graph = CLONE, .what = GRAPH_NEW};
	struct {
		struct wire_vcudaGraphAdd add;
		struct graph_child child;
	} add = {.add = {.graph = CLONE,
			 .type = CU_GRAPH_NODE_TYPE_GRAPH,
			 .after = {sizeof(add.add), 0},
			 .bytes = sizeof(add.child),
			 .params = {sizeof(add.add), sizeof(add.child)}},
		.child = {.graph = GRAPH}};
	struct peer peer, *p = &peer;

	(void)state;
	start(p);
	make_graph(p);
	add_kernel(p);
	assert_int_equal(CALL_OF(OP_vcudaGraphMake, make), CUDA_SUCCESS);
	assert_int_equal(CALL_OF(OP_vcudaGraphAdd, add), CUDA_SUCCESS);
	end(p, GRAPH);
	unload(p);
	instantiate(p, CLONE);
	launch(p);
	end(p, EXEC);
	assert_int_equal(load(p, 2), CUDA_ERROR_OUT_OF_MEMORY);
	end(p, CLONE);
	assert_int_equal(load(p, 2), CUDA_SUCCESS);
	stop(p);
}

static void a_capture_keeps_them_too(void **state)
{
	struct wire_vcudaStreamCreate create = {.stream = STREAM};
	struct wire_vcudaCaptureBegin begin = {.stream = STREAM,
		.graph = GRAPH,
		.after = {sizeof(struct wire_vcudaCaptureBegin), 0}};
	struct wire_vcudaCaptureEnd ended = {.stream = STREAM, .graph = GRAPH};
	struct wire_vcudaLaunch kernel = {.function = FUNCTION,
		.stream = STREAM,
		.gridX = 1,
		.gridY = 1,
		.gridZ = 1,
		.blockX = 1,
		.blockY = 1,
		.blockZ = 1};
	struct peer peer, *p = &peer;

	(void)state;
	start(p);
	assert_int_equal(CALL_OF(OP_vcudaStreamCreate, create), CUDA_SUCCESS);
	assert_int_equal(CALL_OF(OP_vcudaCaptureBegin, begin), CUDA_SUCCESS);
	assert_int_equal(CALL_OF(OP_vcudaLaunch, kernel), CUDA_SUCCESS);
	unload(p);
	assert_int_equal(CALL_OF(OP_vcudaCaptureEnd, ended), CUDA_SUCCESS);
	instantiate(p, GRAPH);
	launch(p);
	end(p, GRAPH);
	assert_int_equal(load(p, 2), CUDA_ERROR_OUT_OF_MEMORY);
	end(p, EXEC);
	assert_int_equal(load(p, 2), CUDA_SUCCESS);
	stop(p);
}

/* With a context its graphs go, and what only they kept. */
static void a_context_takes_them_along(void **state)
{
	struct wire_vcudaPrimaryReset reset = {0};
	struct peer peer, *p = &peer;

	(void)state;
	for (int unloaded = 0; unloaded < 2; unloaded++) {
		start(p);
		make_graph(p);
		add_kernel(p);
		instantiate(p, GRAPH);
		launch(p);
		if (unloaded)
			unload(p);
		assert_int_equal(CALL_OF(OP_vcudaPrimaryReset, reset), CUDA_SUCCESS);
		for (uint32_t i = 2; i < 4; i++) {
			struct wire_vcudaModuleUnload gone = {.module = MODULE(i)};

			assert_int_equal(load(p, i), CUDA_SUCCESS);
			assert_int_equal(CALL_OF(OP_vcudaModuleUnload, gone), CUDA_SUCCESS);
		}
		stop(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_executable_graph_keeps_its_kernels),
		cmocka_unit_test(a_clone_keeps_them_too),
		cmocka_unit_test(a_child_keeps_them_too),
		cmocka_unit_test(a_capture_keeps_them_too),
		cmocka_unit_test(a_context_takes_them_along),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
