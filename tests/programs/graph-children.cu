// SPDX-License-Identifier: Apache-2.0
/* Executable graphs get other child graphs: one of the same nodes and edges is launched from then
 * on, another one is refused at once and changes nothing.  Graphs inside of others get nodes. */
#include "check.h"

__global__ void set(int *at, int value)
{
	*at = value;
}

__global__ void add(int *at, int value)
{
	*at += value;
}

static int *data;
static cudaStream_t stream, second;

static void begin()
{
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
}

static cudaGraph_t end()
{
	cudaGraph_t graph;
	size_t roots;

	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphGetRootNodes(graph, NULL, &roots));
	CHECK(roots > 0);
	return graph;
}

/* VALUE, then KERNELS - 1 times 1 more. */
static cudaGraph_t chain(int value, int kernels)
{
	begin();
	set<<<1, 1, 0, stream>>>(data, value);
	for (int i = 1; i < kernels; i++)
		add<<<1, 1, 0, stream>>>(data, 1);
	return end();
}

/* Three kernels, two of them side by side. */
static cudaGraph_t forked()
{
	cudaEvent_t begun, ended;

	CUDA(cudaEventCreate(&begun));
	CUDA(cudaEventCreate(&ended));
	begin();
	set<<<1, 1, 0, stream>>>(data, 5);
	CUDA(cudaEventRecord(begun, stream));
	CUDA(cudaStreamWaitEvent(second, begun));
	add<<<1, 1, 0, second>>>(data + 1, 1);
	CUDA(cudaEventRecord(ended, second));
	add<<<1, 1, 0, stream>>>(data, 1);
	CUDA(cudaStreamWaitEvent(stream, ended));
	CUDA(cudaEventDestroy(begun));
	CUDA(cudaEventDestroy(ended));
	return end();
}

static cudaGraph_t filled(int byte)
{
	begin();
	CUDA(cudaMemsetAsync(data, byte, 4, stream));
	add<<<1, 1, 0, stream>>>(data, 1);
	return end();
}

static cudaGraph_t copied(int *from)
{
	begin();
	CUDA(cudaMemcpyAsync(data, from, 4, cudaMemcpyDeviceToDevice, stream));
	add<<<1, 1, 0, stream>>>(data, 1);
	return end();
}

static void launch(cudaGraphExec_t exec, int value)
{
	int got = -1;

	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaMemcpyAsync(&got, data, 4, cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamSynchronize(stream));
	CHECK_EQ(got, value);
}

static void refused(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t child)
{
	CUDA_IS(cudaErrorGraphExecUpdateFailure,
		cudaGraphExecChildGraphNodeSetParams(exec, node, child));
	(void)cudaGetLastError();
}

static cudaGraphExec_t around(cudaGraph_t child, cudaGraph_t *graph, cudaGraphNode_t *node)
{
	cudaGraphExec_t exec;

	CUDA(cudaGraphCreate(graph, 0));
	CUDA(cudaGraphAddChildGraphNode(node, *graph, NULL, 0, child));
	CUDA(cudaGraphInstantiate(&exec, *graph, 0));
	return exec;
}

static void kernels()
{
	cudaGraph_t one = chain(10, 2), two = chain(20, 2), longer = chain(30, 3), wide = forked();
	cudaGraph_t graph;
	cudaGraphNode_t node;
	cudaGraphExec_t exec = around(one, &graph, &node);

	launch(exec, 11);
	for (int i = 0; i < 3; i++) {
		CUDA(cudaGraphExecChildGraphNodeSetParams(exec, node, two));
		launch(exec, 21);
		refused(exec, node, longer);
		launch(exec, 21);
		refused(exec, node, wide);
		CUDA(cudaGraphExecChildGraphNodeSetParams(exec, node, one));
		launch(exec, 11);
	}
	/* The one that is in there now may go. */
	CUDA(cudaGraphExecChildGraphNodeSetParams(exec, node, two));
	CUDA(cudaGraphDestroy(two));
	launch(exec, 21);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	/* As many nodes, other edges. */
	exec = around(longer, &graph, &node);
	launch(exec, 32);
	refused(exec, node, wide);
	launch(exec, 32);
	CUDA(cudaGraphExecDestroy(exec));
	for (cudaGraph_t each : {one, longer, wide, graph})
		CUDA(cudaGraphDestroy(each));
}

/* What the node has is changed before it is made executable. */
static void grown()
{
	cudaGraph_t one = chain(10, 2), longer = chain(30, 3), graph, inside;
	cudaGraphNode_t node, last[2], more;
	cudaGraphExec_t exec;
	cudaKernelNodeParams params = {};
	int value = 7;
	void *arguments[] = {&data, &value};
	size_t n = 2;

	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, one));
	CUDA(cudaGraphChildGraphNodeGetGraph(node, &inside));
	CUDA(cudaGraphGetNodes(inside, last, &n));
	CHECK_EQ(n, (size_t)2);
	params.func = (void *)add;
	params.gridDim = params.blockDim = dim3(1);
	params.kernelParams = arguments;
	CUDA(cudaGraphAddKernelNode(&more, inside, &last[1], 1, &params));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	launch(exec, 18);
	refused(exec, node, one);
	launch(exec, 18);
	CUDA(cudaGraphExecChildGraphNodeSetParams(exec, node, longer));
	launch(exec, 32);
	CUDA(cudaGraphExecDestroy(exec));
	for (cudaGraph_t each : {one, longer, graph})
		CUDA(cudaGraphDestroy(each));
}

static void fills_and_copies()
{
	cudaGraph_t one = filled(1), two = filled(2), graph;
	cudaGraphNode_t node;
	cudaGraphExec_t exec = around(one, &graph, &node);
	int values[2] = {100, 200}, *from;

	launch(exec, 0x01010102);
	CUDA(cudaGraphExecChildGraphNodeSetParams(exec, node, two));
	launch(exec, 0x02020203);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));

	CUDA(cudaMalloc(&from, sizeof(values)));
	CUDA(cudaMemcpy(from, values, sizeof(values), cudaMemcpyHostToDevice));
	cudaGraph_t first = copied(from), other = copied(from + 1);
	exec = around(first, &graph, &node);
	launch(exec, 101);
	CUDA(cudaGraphExecChildGraphNodeSetParams(exec, node, other));
	launch(exec, 201);
	refused(exec, node, one);
	launch(exec, 201);
	CUDA(cudaGraphExecDestroy(exec));
	for (cudaGraph_t each : {one, two, first, other, graph})
		CUDA(cudaGraphDestroy(each));
	CUDA(cudaFree(from));
}

/* FROM, 1 more, and what that is to TO: memory of the program's. */
static cudaGraph_t through(const int *from, int *to)
{
	begin();
	CUDA(cudaMemcpyAsync(data, from, 4, cudaMemcpyHostToDevice, stream));
	add<<<1, 1, 0, stream>>>(data, 1);
	CUDA(cudaMemcpyAsync(to, data, 4, cudaMemcpyDeviceToHost, stream));
	return end();
}

static void put(cudaGraphNode_t node, cudaGraph_t graph)
{
	cudaGraphNodeParams params = {};

	params.type = cudaGraphNodeTypeGraph;
	params.graph.graph = graph;
	CUDA(cudaGraphNodeSetParams(node, &params));
}

static void instantiated(cudaGraph_t graph, int value)
{
	cudaGraphExec_t exec;

	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	launch(exec, value);
	CUDA(cudaGraphExecDestroy(exec));
}

/* The node of a graph that is not executable may have any other graph: a clone of what that is by
 * then, and its copies of the program's memory come and go with it. */
static void set_in_the_graph()
{
	int from[2] = {40, 50}, to[2] = {-1, -1};
	cudaGraph_t one = chain(10, 2), longer = chain(30, 3), first = through(&from[0], &to[0]),
		    other = through(&from[1], &to[1]), graph, inside, memory;
	cudaGraphNode_t node, more, allocated;
	cudaGraphNodeParams params = {};
	cudaMemAllocNodeParams alloc = {};
	size_t n;

	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, one));
	instantiated(graph, 11);
	put(node, longer);
	instantiated(graph, 32);
	CUDA(cudaGraphChildGraphNodeGetGraph(node, &inside));
	CUDA(cudaGraphGetNodes(inside, NULL, &n));
	CHECK_EQ(n, (size_t)3);
	put(node, first);
	instantiated(graph, 41);
	CHECK_EQ(to[0], 41);
	put(node, other);
	to[0] = -2;
	instantiated(graph, 51);
	CHECK_EQ(to[0], -2);
	CHECK_EQ(to[1], 51);
	put(node, one);
	to[1] = -2;
	instantiated(graph, 11);
	CHECK_EQ(to[1], -2);
	CUDA(cudaGraphChildGraphNodeGetGraph(node, &inside));
	CUDA(cudaGraphGetNodes(inside, NULL, &n));
	CHECK_EQ(n, (size_t)2);

	/* Itself, as it is now. */
	put(node, graph);
	CUDA(cudaGraphChildGraphNodeGetGraph(node, &inside));
	CUDA(cudaGraphGetNodes(inside, NULL, &n));
	CHECK_EQ(n, (size_t)1);
	instantiated(graph, 11);

	/* Of another type, none, and one that allocates. */
	CUDA(cudaGraphAddEmptyNode(&more, graph, NULL, 0));
	params.type = cudaGraphNodeTypeGraph;
	params.graph.graph = one;
	CUDA_IS(cudaErrorInvalidValue, cudaGraphNodeSetParams(more, &params));
	params.graph.graph = NULL;
	CUDA_IS(cudaErrorInvalidValue, cudaGraphNodeSetParams(node, &params));
	CUDA(cudaGraphCreate(&memory, 0));
	alloc.poolProps.allocType = cudaMemAllocationTypePinned;
	alloc.poolProps.location.type = cudaMemLocationTypeDevice;
	alloc.bytesize = 64;
	CUDA(cudaGraphAddMemAllocNode(&allocated, memory, NULL, 0, &alloc));
	params.graph.graph = memory;
	CUDA_IS(cudaErrorNotSupported, cudaGraphNodeSetParams(node, &params));
	(void)cudaGetLastError();
	instantiated(graph, 11);
	for (cudaGraph_t each : {one, longer, first, other, graph, memory})
		CUDA(cudaGraphDestroy(each));
}

/* In an executable graph and in a destroyed node they go, too. */
static void copies_go_and_come()
{
	int from[2] = {60, 70}, to[2] = {-1, -1};
	cudaGraph_t first = through(&from[0], &to[0]), other = through(&from[1], &to[1]), graph;
	cudaGraphNode_t node;
	cudaGraphExec_t exec = around(first, &graph, &node);

	launch(exec, 61);
	CHECK_EQ(to[0], 61);
	CUDA(cudaGraphExecChildGraphNodeSetParams(exec, node, other));
	to[0] = -2;
	launch(exec, 71);
	CHECK_EQ(to[0], -2);
	CHECK_EQ(to[1], 71);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroyNode(node));
	instantiated(graph, 71);
	CHECK_EQ(to[0], -2);
	for (cudaGraph_t each : {first, other, graph})
		CUDA(cudaGraphDestroy(each));
}

static bool among(cudaGraphNode_t node, cudaGraph_t graph)
{
	cudaGraphNode_t nodes[2];
	size_t count = 2;

	CUDA(cudaGraphGetNodes(graph, nodes, &count));
	CHECK_EQ(count, (size_t)2);
	return node == nodes[0] || node == nodes[1];
}

/* What is inside of NODE was made of FROM's nodes, one of each. */
static void found_inside(cudaGraphNode_t node, const cudaGraphNode_t *from, cudaGraphNode_t *found)
{
	cudaGraph_t inside;

	CUDA(cudaGraphChildGraphNodeGetGraph(node, &inside));
	for (int i = 0; i < 2; i++) {
		cudaKernelNodeParams was, is;

		CUDA(cudaGraphNodeFindInClone(&found[i], from[i], inside));
		CHECK(among(found[i], inside) && found[i] != from[i]);
		CUDA(cudaGraphKernelNodeGetParams(from[i], &was));
		CUDA(cudaGraphKernelNodeGetParams(found[i], &is));
		CHECK(was.func == is.func);
	}
	CHECK(found[0] != found[1]);
	CUDA_IS(cudaErrorInvalidValue, cudaGraphNodeFindInClone(&found[0], node, inside));
	(void)cudaGetLastError();
	CUDA(cudaGraphNodeFindInClone(&found[0], from[0], inside));
}

/* A graph inside of a node is a clone of the one that was put there. */
static void clones()
{
	cudaGraph_t one = chain(10, 2), graph, copy;
	cudaGraphNode_t node, in_copy, nodes[2], found[2], again[2];
	cudaGraphExec_t exec = around(one, &graph, &node);
	size_t count = 2;

	CUDA(cudaGraphGetNodes(one, nodes, &count));
	found_inside(node, nodes, found);
	CUDA(cudaGraphClone(&copy, graph));
	CUDA(cudaGraphNodeFindInClone(&in_copy, node, copy));
	found_inside(in_copy, found, again);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(copy));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaGraphDestroy(one));
}

static void CUDART_CB one_more(void *at)
{
	++*(int *)at;
}

/* Of an empty child graph: a copy to the host, a function there, a copy back. */
static void fill_child(cudaGraph_t inside, int *host, int *word)
{
	cudaGraphNode_t out, function, in;
	cudaHostNodeParams params = {one_more, host};

	CUDA(cudaGraphAddMemcpyNode1D(&out, inside, NULL, 0, host, word, sizeof(int), cudaMemcpyDeviceToHost));
	CUDA(cudaGraphAddHostNode(&function, inside, &out, 1, &params));
	CUDA(cudaGraphAddMemcpyNode1D(&in, inside, &function, 1, word, host, sizeof(int), cudaMemcpyHostToDevice));
}

/* As CCCL's stackable contexts: nodes of a graph inside of another one that come when it is in
 * there, which host and device have to do with; the whole as a child graph, too. The words lie in
 * pinned memory: what a node copies to the device from pageable memory NVIDIA's driver reads once,
 * before the host function has written (H200, driver 580.159). */
static void inside_later()
{
	cudaGraph_t graph, empty, inside, deeper, outer;
	cudaGraphNode_t node, next, last;
	cudaGraphExec_t exec;
	int *host, got[2] = {0};

	CUDA(cudaMallocHost(&host, 2 * sizeof(int)));
	host[0] = host[1] = 0;
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphCreate(&empty, 0));
	CUDA(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, empty));
	CUDA(cudaGraphChildGraphNodeGetGraph(node, &inside));
	fill_child(inside, host, data);
	CUDA(cudaGraphAddChildGraphNode(&next, graph, &node, 1, empty));
	CUDA(cudaGraphChildGraphNodeGetGraph(next, &inside));
	CUDA(cudaGraphAddChildGraphNode(&last, inside, NULL, 0, empty));
	CUDA(cudaGraphChildGraphNodeGetGraph(last, &deeper));
	fill_child(deeper, host + 1, data + 1);
	CUDA(cudaGraphDestroy(empty));
	CUDA(cudaMemset(data, 0, 2 * sizeof(int)));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int turn = 1; turn <= 3; turn++) {
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		CHECK_EQ(host[0], turn);
		CHECK_EQ(host[1], turn);
	}
	CUDA(cudaGraphExecDestroy(exec));

	CUDA(cudaGraphCreate(&outer, 0));
	CUDA(cudaGraphAddChildGraphNode(&node, outer, NULL, 0, graph));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaGraphInstantiate(&exec, outer, 0));
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaMemcpy(got, data, sizeof(got), cudaMemcpyDeviceToHost));
	CHECK_EQ(got[0], 4);
	CHECK_EQ(got[1], 4);
	CHECK_EQ(host[0], 4);
	CHECK_EQ(host[1], 4);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(outer));
	CUDA(cudaFreeHost(host));
}

int main()
{
	CUDA(cudaMalloc(&data, 2 * sizeof(int)));
	CUDA(cudaMemset(data, 0, 2 * sizeof(int)));
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
	CUDA(cudaDeviceSynchronize());
	kernels();
	grown();
	fills_and_copies();
	set_in_the_graph();
	copies_go_and_come();
	clones();
	inside_later();
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaStreamDestroy(second));
	CUDA(cudaFree(data));
	return 0;
}
