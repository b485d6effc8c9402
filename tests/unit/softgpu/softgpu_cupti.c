/* SPDX-License-Identifier: Apache-2.0
 *
 * CUPTI on the software GPU: what each record says of a kernel, a copy, a fill or a graph,
 * whose call it was, and how records come into the program's buffers.
 */
#include "tests/unit/softgpu/softgpu_cupti.h"

static unsigned char pageable[BYTES];

/* ---- records ---- */

static void times_are_within(uint64_t from, uint64_t start, uint64_t stop)
{
	uint64_t now;

	is(cuptiGetTimestamp(&now), CUPTI_SUCCESS);
	assert_true(from <= start && start < stop && stop <= now);
}

static void a_kernel_is_described(void **state)
{
	const CUpti_ActivityKernel10 *k;
	int value = 5, registers;
	void *params[] = {&gpu.memory, &value};
	uint64_t from;

	(void)state;
	is(cuptiGetTimestamp(&from), CUPTI_SUCCESS);
	ok(cuLaunchKernel(gpu.set, 2, 3, 4, 8, 4, 2, 1024, gpu.stream, params, NULL));
	ok(cuLaunchCooperativeKernel(gpu.set, 1, 1, 1, 32, 1, 1, 0, NULL, params));
	sync_and_flush();
	is(got.count, 2);
	k = &record_of(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 0)->kernel;
	assert_string_equal(k->name, "_Z3setPii");
	is(k->gridX, 2);
	is(k->gridY, 3);
	is(k->gridZ, 4);
	is(k->blockX, 8);
	is(k->blockY, 4);
	is(k->blockZ, 2);
	is(k->staticSharedMemory, 96);
	is(k->dynamicSharedMemory, 1024);
	ok(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, gpu.set));
	is(k->registersPerThread, registers);
	is(k->deviceId, 0);
	is(k->contextId, gpu.context_id);
	is(k->streamId, 13);
	is(k->launchType, CUPTI_ACTIVITY_LAUNCH_TYPE_REGULAR);
	is(k->clusterX, 0);
	is(k->graphId, 0);
	is(k->graphNodeId, 0);
	is(k->completed, k->end);
	times_are_within(from, k->start, k->end);
	k = &record_of(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 1)->kernel;
	is(k->streamId, 7);
	is(k->launchType, CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE);
	is(k->gridX, 1);
	is(k->blockX, 32);
	is(k->gridId, got.at[0].kernel.gridId + 1);
	is(k->correlationId, got.at[0].kernel.correlationId + 1);
}

static void clusters_are_described(void **state)
{
	CUlaunchAttribute cluster = {
		.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {2, 1, 1}};
	CUlaunchConfig config = {4, 1, 1, 64, 1, 1, 0, gpu.stream, &cluster, 1};
	const CUpti_ActivityKernel10 *k;
	int value = 5;
	void *params[] = {&gpu.memory, &value};

	(void)state;
	ok(cuLaunchKernelEx(&config, gpu.set, params, NULL));
	sync_and_flush();
	k = &record_of(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 0)->kernel;
	is(k->clusterX, 2);
	is(k->clusterY, 1);
	is(k->clusterZ, 1);
	is(k->maxPotentialClusterSize, 8);
}

static void copy_is(
	size_t n, int kind, int from, int to, int flags, uint64_t bytes, uint32_t stream)
{
	const CUpti_ActivityMemcpy6 *c = &record_of(CUPTI_ACTIVITY_KIND_MEMCPY, n)->copy;

	is(c->copyKind, kind);
	is(c->srcKind, from);
	is(c->dstKind, to);
	is(c->flags, flags);
	is(c->bytes, bytes);
	is(c->streamId, stream);
	is(c->contextId, gpu.context_id);
	is(c->deviceId, 0);
	is(c->copyCount, 1);
	is(c->graphId, 0);
	assert_true(c->start < c->end);
}

/* The same copies as on an H200, with its answers. */
static void copies_are_described(void **state)
{
	CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = pageable,
		.srcPitch = 64,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = gpu.memory,
		.dstPitch = 64,
		.WidthInBytes = 32,
		.Height = 8};
	CUdeviceptr pinned = (uintptr_t)gpu.pinned;

	(void)state;
	ok(cuMemcpyDtoH(pageable, gpu.memory, BYTES));
	ok(cuMemcpyHtoD(gpu.memory, pageable, BYTES));
	ok(cuMemcpyDtoD(gpu.other, gpu.memory, BYTES));
	ok(cuMemcpyHtoDAsync(gpu.memory, gpu.pinned, 1000, gpu.stream));
	ok(cuMemcpyDtoHAsync(gpu.pinned, gpu.memory, 1000, gpu.stream));
	ok(cuMemcpyAsync(pinned, pinned + 2000, 1000, gpu.stream));
	ok(cuMemcpyHtoDAsync(gpu.memory, pageable, 2000, gpu.stream));
	ok(cuMemcpyDtoHAsync(pageable, gpu.memory, 2000, gpu.stream));
	ok(cuMemcpy2D(&rows));
	sync_and_flush();
	is(got.count, 9);
	copy_is(0, 2, 3, 1, 0, BYTES, 7);
	copy_is(1, 1, 1, 3, 0, BYTES, 7);
	copy_is(2, 8, 3, 3, 0, BYTES, 7);
	copy_is(3, 1, 2, 3, 1, 1000, 13);
	copy_is(4, 2, 3, 2, 1, 1000, 13);
	copy_is(5, 9, 2, 2, 1, 1000, 13);
	copy_is(6, 1, 1, 3, 1, 2000, 13);
	copy_is(7, 2, 3, 1, 1, 2000, 13);
	copy_is(8, 1, 1, 3, 0, 256, 7);
}

static void arrays_and_batches_are_described(void **state)
{
	CUDA_ARRAY_DESCRIPTOR shape = {64, 4, CU_AD_FORMAT_FLOAT, 1};
	CUdeviceptr to[] = {gpu.memory, gpu.memory + 512};
	CUdeviceptr from[] = {gpu.other, gpu.other + 512};
	size_t sizes[] = {256, 128}, attribute_at = 0;
	CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
	CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = pageable,
		.dstMemoryType = CU_MEMORYTYPE_ARRAY,
		.WidthInBytes = 256,
		.Height = 1};
	CUarray array;

	(void)state;
	ok(cuArrayCreate(&array, &shape));
	rows.dstArray = array;
	ok(cuMemcpy2D(&rows));
	rows.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	rows.srcArray = array;
	rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	rows.dstDevice = gpu.memory;
	ok(cuMemcpy2D(&rows));
	rows.dstMemoryType = CU_MEMORYTYPE_HOST;
	rows.dstHost = pageable;
	ok(cuMemcpy2D(&rows));
	ok(cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &attribute_at, 1, gpu.stream));
	sync_and_flush();
	ok(cuArrayDestroy(array));
	is(got.count, 5);
	copy_is(0, 3, 1, 4, 0, 256, 7);
	copy_is(1, 6, 4, 3, 0, 256, 7);
	copy_is(2, 4, 4, 1, 0, 256, 7);
	copy_is(3, 8, 3, 3, 1, 256, 13);
	copy_is(4, 8, 3, 3, 1, 128, 13);
	is(got.at[3].copy.correlationId, got.at[4].copy.correlationId);
	assert_int_not_equal(got.at[2].copy.correlationId, got.at[3].copy.correlationId);
}

static void fill_is(size_t n, uint32_t value, uint64_t bytes, int flags, uint32_t stream)
{
	const CUpti_ActivityMemset4 *f = &record_of(CUPTI_ACTIVITY_KIND_MEMSET, n)->fill;

	is(f->value, value);
	is(f->bytes, bytes);
	is(f->flags, flags);
	is(f->streamId, stream);
	is(f->memoryKind, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
	is(f->contextId, gpu.context_id);
	assert_true(f->start < f->end);
}

static void fills_are_described(void **state)
{
	(void)state;
	ok(cuMemsetD8(gpu.memory, 7, 4096));
	ok(cuMemsetD8Async(gpu.memory, 0, 512, gpu.stream));
	ok(cuMemsetD32(gpu.memory, 0x12345678, 16));
	ok(cuMemsetD2D8(gpu.memory, 64, 1, 32, 4));
	sync_and_flush();
	is(got.count, 4);
	fill_is(0, 7, 4096, 0, 7);
	fill_is(1, 0, 512, 1, 13);
	fill_is(2, 0x12345678, 64, 0, 7);
	fill_is(3, 1, 128, 0, 7);
}

static void copies_between_devices_are_of_their_own_kind(void **state)
{
	const CUpti_ActivityMemcpyPtoP4 *p;
	CUcontext second;
	CUdeviceptr there;
	uint32_t id, stream;

	(void)state;
	ok(cuCtxCreate(&second, NULL, 0, 1));
	ok(cuMemAlloc(&there, BYTES));
	is(cuptiGetContextId(second, &id), CUPTI_SUCCESS);
	is(id, gpu.context_id + 1);
	is(cuptiGetDeviceId(second, &id), CUPTI_SUCCESS);
	is(id, 1);
	is(cuptiGetContextId(second, &id), CUPTI_SUCCESS);
	ok(cuMemsetD8(there, 3, BYTES));
	ok(cuCtxSynchronize());
	ok(cuCtxPopCurrent(&second));
	ok(cuMemcpyPeerAsync(gpu.memory, gpu.context, there, second, 800, gpu.stream));
	sync_and_flush();
	is(got.count, 2);
	is(got.at[0].fill.deviceId, 1);
	is(got.at[0].fill.contextId, id);
	is(cuptiGetStreamId(second, NULL, &stream), CUPTI_SUCCESS);
	is(got.at[0].fill.streamId, stream);
	p = &record_of(CUPTI_ACTIVITY_KIND_MEMCPY2, 0)->peer;
	is(p->copyKind, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
	is(p->bytes, 800);
	is(p->deviceId, 0);
	is(p->streamId, 13);
	is(p->srcDeviceId, 1);
	is(p->srcContextId, id);
	is(p->dstDeviceId, 0);
	is(p->dstContextId, gpu.context_id);
	is(p->flags, 1);
	ok(cuCtxDestroy(second));
}

/* ---- calls ---- */

static void external_is(size_t n, int kind, uint64_t id, uint32_t call)
{
	const CUpti_ActivityExternalCorrelation *e = &got.at[n].external;

	is(e->kind, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
	is(e->externalKind, kind);
	is(e->externalId, id);
	is(e->correlationId, call);
}

static void ids_that_are_pushed_go_before_each_call(void **state)
{
	uint64_t last = 5;
	uint32_t call;

	(void)state;
	push(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 1001);
	push(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, 2001);
	push(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 1002);
	launch(gpu.stream, 1);
	ok(cuStreamSynchronize(gpu.stream));
	pop(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 1002);
	ok(cuMemsetD8Async(gpu.memory, 0, 64, gpu.stream));
	ok(cuStreamSynchronize(gpu.stream));
	pop(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, 2001);
	pop(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 1001);
	ok(cuMemcpyDtoH(pageable, gpu.memory, 64));
	sync_and_flush();
	is(got.count, 7);
	call = got.at[2].kernel.correlationId;
	external_is(0, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 1002, call);
	external_is(1, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, 2001, call);
	is(got.at[2].any.kind, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	external_is(3, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 1001, call + 1);
	external_is(4, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, 2001, call + 1);
	is(got.at[5].fill.correlationId, call + 1);
	is(got.at[6].copy.correlationId, call + 2);
	is(cuptiActivityPopExternalCorrelationId(
		   CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last),
		CUPTI_ERROR_QUEUE_EMPTY);
	is(last, 5);
	is(cuptiActivityPushExternalCorrelationId(99, 1), CUPTI_ERROR_INVALID_PARAMETER);
	is(cuptiActivityPushExternalCorrelationId(0, 1), CUPTI_ERROR_INVALID_PARAMETER);
}

static CUgraphExec graph_of(uint32_t *graph_id)
{
	CUgraph graph;
	CUgraphExec exec;

	ok(cuStreamBeginCapture(gpu.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	launch(gpu.stream, 2);
	ok(cuMemsetD8Async(gpu.memory, 9, 256, gpu.stream));
	ok(cuMemcpyDtoDAsync(gpu.other, gpu.memory, 256, gpu.stream));
	launch(gpu.stream, 3);
	ok(cuStreamEndCapture(gpu.stream, &graph));
	is(cuptiGetGraphId(graph, graph_id), CUPTI_SUCCESS);
	ok(cuGraphInstantiate(&exec, graph, 0));
	ok(cuGraphDestroy(graph));
	return exec;
}

static void replay_is(size_t at, uint32_t call, uint32_t graph)
{
	uint64_t node = (uint64_t)graph << 32;

	is(got.at[at].kernel.kind, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	is(got.at[at].kernel.correlationId, call);
	is(got.at[at].kernel.graphId, graph);
	assert_true(got.at[at].kernel.graphNodeId == node);
	is(got.at[at + 1].fill.kind, CUPTI_ACTIVITY_KIND_MEMSET);
	is(got.at[at + 1].fill.correlationId, call);
	is(got.at[at + 1].fill.value, 9);
	assert_true(got.at[at + 1].fill.graphNodeId == node + 1);
	is(got.at[at + 2].copy.kind, CUPTI_ACTIVITY_KIND_MEMCPY);
	is(got.at[at + 2].copy.correlationId, call);
	is(got.at[at + 2].copy.flags, 1);
	assert_true(got.at[at + 2].copy.graphNodeId == node + 2);
	is(got.at[at + 3].kernel.correlationId, call);
	is(got.at[at + 3].kernel.streamId, 13);
	assert_true(got.at[at + 3].kernel.graphNodeId == node + 3);
}

static void a_replay_is_of_one_call(void **state)
{
	uint32_t graph, id, call;
	CUgraphExec exec = graph_of(&graph);

	(void)state;
	is(cuptiGetGraphExecId(exec, &id), CUPTI_SUCCESS);
	is(id, graph + 1);
	push(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 77);
	ok(cuGraphLaunch(exec, gpu.stream));
	ok(cuStreamSynchronize(gpu.stream));
	ok(cuGraphLaunch(exec, gpu.stream));
	ok(cuStreamSynchronize(gpu.stream));
	pop(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 77);
	ok(cuGraphExecDestroy(exec));
	sync_and_flush();
	is(got.count, 10);
	call = got.at[0].external.correlationId;
	external_is(0, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 77, call);
	replay_is(1, call, id);
	external_is(5, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 77, call + 1);
	replay_is(6, call + 1, id);
}

static void graphs_as_a_whole(void **state)
{
	const CUpti_ActivityGraphTrace2 *g;
	uint32_t graph;
	CUgraphExec exec = graph_of(&graph);

	(void)state;
	is(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE), CUPTI_SUCCESS);
	is(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_KERNEL), CUPTI_ERROR_NOT_COMPATIBLE);
	ok(cuGraphLaunch(exec, gpu.stream));
	launch(gpu.stream, 1);
	ok(cuGraphLaunch(exec, NULL));
	sync_and_flush();
	is(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE), CUPTI_SUCCESS);
	ok(cuGraphExecDestroy(exec));
	is(got.count, 3);
	g = &got.at[0].graph;
	is(g->kind, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
	is(g->graphId, graph + 1);
	is(g->streamId, 13);
	is(g->contextId, gpu.context_id);
	is(g->endContextId, gpu.context_id);
	assert_true(g->start < g->end);
	is(got.at[1].kernel.graphId, 0);
	is(got.at[1].kernel.correlationId, g->correlationId + 1);
	assert_true(got.at[1].kernel.start >= g->end);
	is(got.at[2].graph.streamId, 7);
	is(got.at[2].graph.correlationId, g->correlationId + 2);
}

/* The nodes of a graph inside are counted on, behind the node that it is the inside of. */
static void nodes_of_a_child_graph_are_counted_on(void **state)
{
	CUDA_MEMSET_NODE_PARAMS fill = {
		.dst = gpu.memory, .value = 4, .elementSize = 1, .width = 32, .height = 1};
	CUgraph inner, outer;
	CUgraphExec exec;
	CUgraphNode node, child;
	uint32_t id;

	(void)state;
	ok(cuGraphCreate(&inner, 0));
	ok(cuGraphAddMemsetNode(&node, inner, NULL, 0, &fill, gpu.context));
	ok(cuGraphCreate(&outer, 0));
	ok(cuGraphAddChildGraphNode(&child, outer, NULL, 0, inner));
	ok(cuGraphAddMemsetNode(&node, outer, &child, 1, &fill, gpu.context));
	ok(cuGraphInstantiate(&exec, outer, 0));
	is(cuptiGetGraphExecId(exec, &id), CUPTI_SUCCESS);
	ok(cuGraphLaunch(exec, gpu.stream));
	sync_and_flush();
	ok(cuGraphExecDestroy(exec));
	ok(cuGraphDestroy(outer));
	ok(cuGraphDestroy(inner));
	is(got.count, 2);
	for (unsigned i = 0; i < 2; i++) {
		is(got.at[i].fill.graphId, id);
		assert_true(got.at[i].fill.graphNodeId == ((uint64_t)id << 32 | (i + 1)));
		is(got.at[i].fill.flags, 1);
		is(got.at[i].fill.correlationId, got.at[0].fill.correlationId);
	}
}

/* What a condition inserts while the graph runs is of the same launch. */
static void the_body_of_a_condition_is_of_the_launch(void **state)
{
	CUDA_MEMSET_NODE_PARAMS fill = {
		.dst = gpu.memory, .value = 6, .elementSize = 4, .width = 8, .height = 1};
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
	CUgraphConditionalHandle handle;
	CUgraph graph;
	CUgraphExec exec;
	CUgraphNode node;
	uint32_t id;

	(void)state;
	ok(cuGraphCreate(&graph, 0));
	ok(cuGraphConditionalHandleCreate(
		&handle, graph, gpu.context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
	params.conditional.handle = handle;
	params.conditional.type = CU_GRAPH_COND_TYPE_IF;
	params.conditional.size = 1;
	params.conditional.ctx = gpu.context;
	ok(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params));
	ok(cuGraphAddMemsetNode(
		&node, params.conditional.phGraph_out[0], NULL, 0, &fill, gpu.context));
	ok(cuGraphInstantiate(&exec, graph, 0));
	is(cuptiGetGraphExecId(exec, &id), CUPTI_SUCCESS);
	push(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 31);
	ok(cuGraphLaunch(exec, gpu.stream));
	pop(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 31);
	launch(gpu.stream, 1);
	sync_and_flush();
	ok(cuGraphExecDestroy(exec));
	ok(cuGraphDestroy(graph));
	is(got.count, 3);
	external_is(
		0, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 31, got.at[1].fill.correlationId);
	is(got.at[1].fill.value, 6);
	is(got.at[1].fill.graphId, id);
	is(got.at[2].kernel.graphId, 0);
	is(got.at[2].kernel.correlationId, got.at[1].fill.correlationId + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_kernel_is_described),
		TEST(clusters_are_described),
		TEST(copies_are_described),
		TEST(arrays_and_batches_are_described),
		TEST(fills_are_described),
		TEST(copies_between_devices_are_of_their_own_kind),
		TEST(ids_that_are_pushed_go_before_each_call),
		TEST(a_replay_is_of_one_call),
		TEST(graphs_as_a_whole),
		TEST(nodes_of_a_child_graph_are_counted_on),
		TEST(the_body_of_a_condition_is_of_the_launch),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
