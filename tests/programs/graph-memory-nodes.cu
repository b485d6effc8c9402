// SPDX-License-Identifier: Apache-2.0
/*
 * Memory that graphs own: allocated and freed by nodes and by captured calls, freed by a stream
 * or another graph, freed by a launch that comes again, and what such graphs do not allow.
 */
#include "check.h"

enum { N = 1000, BYTES = N * sizeof(int) };

static cudaStream_t stream;
static int *out;

__global__ void fill(int *data, int from)
{
	for (int i = (int)threadIdx.x; i < N; i += (int)blockDim.x)
		data[i] = from + i;
}

__global__ void add(int *to, const int *data)
{
	for (int i = (int)threadIdx.x; i < N; i += (int)blockDim.x)
		to[i] += data[i];
}

static void check_out(int times, int from)
{
	static int got[N];

	CUDA(cudaMemcpy(got, out, BYTES, cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, got[i], times * (from + i));
}

static void clear_out()
{
	CUDA(cudaMemset(out, 0, BYTES));
	CUDA(cudaDeviceSynchronize());
}

static void launch(cudaGraphExec_t exec)
{
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaStreamSynchronize(stream));
}

static cudaMemAllocNodeParams alloc_params(size_t bytes)
{
	cudaMemAllocNodeParams params = {};

	params.poolProps.allocType = cudaMemAllocationTypePinned;
	params.poolProps.location.type = cudaMemLocationTypeDevice;
	params.poolProps.location.id = 0;
	params.bytesize = bytes;
	return params;
}

static cudaGraphNode_t kernel_node(
	cudaGraph_t graph, cudaGraphNode_t after, void *function, void **args)
{
	cudaKernelNodeParams params = {};
	cudaGraphNode_t node;

	params.func = function;
	params.gridDim = dim3(1);
	params.blockDim = dim3(128);
	params.kernelParams = args;
	CUDA(cudaGraphAddKernelNode(&node, graph, &after, 1, &params));
	return node;
}

static cudaGraphNodeType type_of(cudaGraphNode_t node)
{
	cudaGraphNodeType type;

	CUDA(cudaGraphNodeGetType(node, &type));
	return type;
}

/* Allocated, filled, added to `out`; freed too where FREE. */
static cudaGraph_t with_nodes(bool free, int from, int **memory)
{
	cudaMemAllocNodeParams params = alloc_params(BYTES), got;
	cudaGraphNode_t alloc, last;
	cudaGraph_t graph;
	void *dptr;

	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params));
	CHECK(params.dptr != NULL);
	CHECK_EQ((int)type_of(alloc), (int)cudaGraphNodeTypeMemAlloc);
	CUDA(cudaGraphMemAllocNodeGetParams(alloc, &got));
	CHECK(got.dptr == params.dptr);
	CHECK_EQ(got.bytesize, (size_t)BYTES);
	CHECK_EQ(got.poolProps.location.id, 0);
	*memory = (int *)params.dptr;
	void *fill_args[] = {memory, &from}, *add_args[] = {&out, memory};
	last = kernel_node(graph, alloc, (void *)fill, fill_args);
	last = kernel_node(graph, last, (void *)add, add_args);
	if (free) {
		CUDA(cudaGraphAddMemFreeNode(&last, graph, &last, 1, params.dptr));
		CHECK_EQ((int)type_of(last), (int)cudaGraphNodeTypeMemFree);
		CUDA(cudaGraphMemFreeNodeGetParams(last, &dptr));
		CHECK(dptr == params.dptr);
	}
	return graph;
}

static unsigned long long in_use()
{
	unsigned long long value = ~0ull;

	CUDA(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &value));
	return value;
}

static void freed_by_itself()
{
	int *memory;
	cudaGraph_t graph = with_nodes(true, 5, &memory);
	cudaGraphExec_t exec;

	clear_out();
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 3; i++)
		launch(exec);
	check_out(3, 5);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

/* A node behind the one that frees gets the same address; what is beside it does not. */
static void again_in_one_graph()
{
	cudaMemAllocNodeParams first = alloc_params(BYTES), again = first, beside = first;
	int from[] = {3, 40};
	cudaGraphNode_t last, freed, other;
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddMemAllocNode(&last, graph, NULL, 0, &first));
	void *args[] = {&out, &first.dptr}, *fill_args[] = {&first.dptr, &from[0]};
	last = kernel_node(graph, last, (void *)fill, fill_args);
	last = kernel_node(graph, last, (void *)add, args);
	CUDA(cudaGraphAddMemFreeNode(&freed, graph, &last, 1, first.dptr));
	CUDA(cudaGraphAddMemAllocNode(&last, graph, &freed, 1, &again));
	CHECK(again.dptr == first.dptr);
	fill_args[1] = &from[1];
	last = kernel_node(graph, last, (void *)fill, fill_args);
	last = kernel_node(graph, last, (void *)add, args);
	CUDA(cudaGraphAddMemAllocNode(&other, graph, &freed, 1, &beside));
	CHECK(beside.dptr != first.dptr);
	CUDA(cudaGraphAddMemFreeNode(&last, graph, &last, 1, again.dptr));
	CUDA(cudaGraphAddMemFreeNode(&other, graph, &other, 1, beside.dptr));
	CUDA_IS(cudaErrorInvalidValue,
		cudaGraphAddMemFreeNode(&other, graph, &last, 1, again.dptr));
	(void)cudaGetLastError();
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	clear_out();
	for (int i = 0; i < 3; i++)
		launch(exec);
	static int got[N];
	CUDA(cudaMemcpy(got, out, BYTES, cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, got[i], 3 * (from[0] + from[1] + 2 * i));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

static void freed_by_a_stream()
{
	int *memory;
	cudaGraph_t graph = with_nodes(false, 9, &memory);
	cudaGraphExec_t exec;

	clear_out();
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 2; i++) {
		unsigned long long with;

		launch(exec);
		with = in_use();
		CHECK(with >= BYTES);
		/* It is there for others until it is freed. */
		add<<<1, 128, 0, stream>>>(out, memory);
		LAUNCHED();
		if (i == 0)
			CUDA_IS(cudaErrorInvalidValue, cudaGraphLaunch(exec, stream));
		(void)cudaGetLastError();
		CUDA(cudaFreeAsync(memory, stream));
		CUDA(cudaStreamSynchronize(stream));
		/* A driver may keep it for the next launch. */
		CHECK(in_use() <= with);
	}
	check_out(4, 9);
	/* Outlives the graph, and cudaFree frees it. */
	launch(exec);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	add<<<1, 128, 0, stream>>>(out, memory);
	LAUNCHED();
	CUDA(cudaStreamSynchronize(stream));
	check_out(6, 9);
	CUDA(cudaFree(memory));
}

static void freed_by_the_next_launch()
{
	int *memory;
	cudaGraph_t graph = with_nodes(false, 2, &memory);
	cudaGraphExec_t exec;

	clear_out();
	CUDA(cudaGraphInstantiateWithFlags(
		&exec, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
	for (int i = 0; i < 4; i++)
		launch(exec);
	check_out(4, 2);
	CUDA(cudaFreeAsync(memory, stream));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

static void freed_by_another_graph()
{
	int *memory;
	cudaGraph_t graph = with_nodes(false, 1, &memory), second;
	unsigned long long with;
	cudaGraphExec_t exec, freeing;
	cudaGraphNode_t node;
	void *args[] = {&out, &memory};

	clear_out();
	CUDA(cudaGraphCreate(&second, 0));
	CUDA(cudaGraphAddEmptyNode(&node, second, NULL, 0));
	node = kernel_node(second, node, (void *)add, args);
	CUDA(cudaGraphAddMemFreeNode(&node, second, &node, 1, memory));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphInstantiate(&freeing, second, 0));
	for (int i = 0; i < 2; i++) {
		launch(exec);
		with = in_use();
		CHECK(with >= BYTES);
		launch(freeing);
		CHECK(in_use() <= with);
	}
	check_out(4, 1);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphExecDestroy(freeing));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaGraphDestroy(second));
}

static void captured()
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaGraphNode_t nodes[8];
	size_t count = 8;
	int *a, *b, seen[2] = {0, 0};

	clear_out();
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CUDA(cudaMallocAsync(&a, BYTES, stream));
	CUDA(cudaMallocAsync(&b, 3 << 20, stream));
	CHECK(a && b && a != b);
	fill<<<1, 128, 0, stream>>>(a, 4);
	CUDA(cudaMemcpyAsync(b, a, BYTES, cudaMemcpyDeviceToDevice, stream));
	CUDA(cudaFreeAsync(a, stream));
	add<<<1, 128, 0, stream>>>(out, b);
	LAUNCHED();
	CUDA(cudaFreeAsync(b, stream));
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphGetNodes(graph, nodes, &count));
	CHECK_EQ(count, (size_t)7);
	for (size_t i = 0; i < count; i++) {
		seen[0] += type_of(nodes[i]) == cudaGraphNodeTypeMemAlloc;
		seen[1] += type_of(nodes[i]) == cudaGraphNodeTypeMemFree;
	}
	CHECK_EQ(seen[0], 2);
	CHECK_EQ(seen[1], 2);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 5; i++)
		launch(exec);
	check_out(5, 4);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

/* Any error will do: CUDA names none. */
static void not_allowed()
{
	cudaMemAllocNodeParams params = alloc_params(0);
	int *memory;
	cudaGraph_t graph = with_nodes(true, 0, &memory), other;
	cudaGraphExec_t exec, second;
	cudaGraphNode_t nodes[8], node;
	size_t count = 8;

	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphInstantiate(&second, graph, 0) != cudaSuccess);
	CHECK(cudaGraphClone(&other, graph) != cudaSuccess);
	CUDA(cudaGraphCreate(&other, 0));
	CHECK(cudaGraphAddChildGraphNode(&node, other, NULL, 0, graph) != cudaSuccess);
	CUDA_IS(cudaErrorInvalidValue,
		cudaGraphAddMemAllocNode(&node, other, NULL, 0, &params));
	params = alloc_params(64);
	params.poolProps.handleTypes = cudaMemHandleTypePosixFileDescriptor;
	CHECK(cudaGraphAddMemAllocNode(&node, other, NULL, 0, &params) != cudaSuccess);
	CHECK(cudaGraphAddMemFreeNode(&node, other, NULL, 0, out) != cudaSuccess);
	CUDA(cudaGraphGetNodes(graph, nodes, &count));
	CHECK(cudaGraphDestroyNode(nodes[0]) != cudaSuccess);
	CHECK(cudaGraphAddMemFreeNode(&node, graph, NULL, 0, memory) != cudaSuccess);
	(void)cudaGetLastError();
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphInstantiate(&exec, graph, 0)); /* one again */
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(other));
	CUDA(cudaGraphDestroy(graph));
}

static unsigned long long reserved()
{
	unsigned long long value = ~0ull;

	CUDA(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemCurrent, &value));
	return value;
}

/* Graphs that free what they allocate have the same memory, one after another on a stream; it stays
 * until it is trimmed. Units are of 32 MiB, as an H200 has them. */
static void footprint()
{
	enum { GRAPHS = 3 };
	const unsigned long long unit = 32 << 20;
	unsigned long long value, zero = 0;
	cudaGraphExec_t execs[GRAPHS];
	cudaGraph_t graphs[GRAPHS];
	int *memory;

	CUDA(cudaDeviceGraphMemTrim(0));
	CHECK_EQ(reserved(), 0ull);
	for (int i = 0; i < GRAPHS; i++) {
		graphs[i] = with_nodes(true, i, &memory);
		CUDA(cudaGraphInstantiate(&execs[i], graphs[i], 0));
	}
	CHECK_EQ(reserved(), 0ull);
	clear_out();
	for (int i = 0; i < GRAPHS; i++) {
		launch(execs[i]);
		CHECK_EQ_AT(i, reserved(), unit);
		launch(execs[i]);
		CHECK_EQ_AT(i, reserved(), unit);
	}
	CHECK(in_use() >= BYTES && in_use() <= reserved());
	for (int i = 0; i < GRAPHS; i++) {
		CUDA(cudaGraphExecDestroy(execs[i]));
		CUDA(cudaGraphDestroy(graphs[i]));
	}
	CUDA(cudaDeviceGraphMemTrim(0));
	CHECK_EQ(reserved(), 0ull);
	CUDA(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemHigh, &value));
	CHECK(value >= unit && value % unit == 0);
	CUDA(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrReservedMemHigh, &zero));
	CUDA(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemHigh, &value));
	CHECK_EQ(value, 0ull);
}

static void attributes()
{
	unsigned long long value = 1, zero = 0;
	cudaMemAllocNodeParams params = alloc_params(64);
	cudaGraphNode_t node;
	cudaGraph_t graph;

	CUDA(cudaDeviceGraphMemTrim(0));
	/* Nothing is reserved for what was never launched. */
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
	CUDA(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemCurrent, &value));
	CHECK_EQ(value, 0ull);
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemCurrent, &value));
	CHECK_EQ(value, 0ull);
	CUDA(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &value));
	CHECK(value >= BYTES);
	CUDA(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &zero));
	CUDA(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &value));
	CHECK_EQ(value, 0ull);
	CUDA_IS(cudaErrorInvalidValue,
		cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &zero));
	(void)cudaGetLastError();
}

/* Another device that the node names reaches the memory, while the graph has it. */
static void reached_by_another_device()
{
	cudaMemAllocNodeParams params = alloc_params(BYTES), got;
	cudaMemAccessDesc access = {};
	cudaStream_t beside;
	cudaGraphNode_t node;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	int devices, can = 0, value = 4, *memory;
	void *args[] = {&memory, &value};

	CUDA(cudaGetDeviceCount(&devices));
	if (devices > 1)
		CUDA(cudaDeviceCanAccessPeer(&can, 1, 0));
	if (!can)
		return;
	access.location.type = cudaMemLocationTypeDevice;
	access.location.id = 1;
	access.flags = cudaMemAccessFlagsProtReadWrite;
	params.accessDescs = &access;
	params.accessDescCount = 1;
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
	memory = (int *)params.dptr;
	kernel_node(graph, node, (void *)fill, args);
	CUDA(cudaGraphMemAllocNodeGetParams(node, &got));
	CHECK_EQ(got.accessDescCount, (size_t)1);
	CHECK_EQ(got.accessDescs[0].location.id, 1);
	CHECK_EQ((int)got.accessDescs[0].flags, (int)cudaMemAccessFlagsProtReadWrite);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	clear_out();
	launch(exec);
	CUDA(cudaSetDevice(1));
	CUDA(cudaStreamCreate(&beside));
	add<<<1, 128, 0, beside>>>(memory, memory); /* each number doubled, there */
	LAUNCHED();
	CUDA(cudaStreamSynchronize(beside));
	CUDA(cudaStreamDestroy(beside));
	CUDA(cudaSetDevice(0));
	add<<<1, 128, 0, stream>>>(out, memory);
	LAUNCHED();
	CUDA(cudaStreamSynchronize(stream));
	check_out(2, 4);
	CUDA(cudaFreeAsync(memory, stream));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

int main()
{
	if (!device_attribute(cudaDevAttrMemoryPoolsSupported))
		SKIP("no stream-ordered memory here");
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaMalloc(&out, BYTES));
	freed_by_itself();
	again_in_one_graph();
	freed_by_a_stream();
	freed_by_the_next_launch();
	freed_by_another_graph();
	captured();
	not_allowed();
	reached_by_another_device();
	CUDA(cudaDeviceSynchronize());
	attributes();
	footprint();
	CUDA(cudaFree(out));
	CUDA(cudaStreamDestroy(stream));
	return 0;
}
