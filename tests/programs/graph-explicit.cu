// SPDX-License-Identifier: Apache-2.0
/*
 * Graphs built node by node: kernels, copies, fills, host functions, events, child graphs; what
 * can be asked of them; edges that come and go; a clone.
 */
#include "check.h"

#include <algorithm>
#include <vector>

static const int N = 512;

__global__ void add(int *to, const int *from, int by)
{
	to[blockIdx.x * blockDim.x + threadIdx.x] =
		from[blockIdx.x * blockDim.x + threadIdx.x] + by;
}

typedef std::vector<cudaGraphNode_t> Nodes;

#if CUDART_VERSION >= 13000
#define EDGE_DATA NULL,
#else
#define EDGE_DATA
#endif

static int *a, *b;
static int host_in[N], host_out[N]; /* pageable: allowed in a node */
static int calls;

static void CUDART_CB called(void *argument)
{
	calls += *(int *)argument;
}

static cudaGraphNode_t kernel(cudaGraph_t graph, const Nodes &after, int *to, int *from, int by)
{
	void *args[] = {&to, &from, &by};
	cudaKernelNodeParams params = {};
	cudaGraphNode_t node;

	params.func = (void *)add;
	params.gridDim = dim3(N / 128);
	params.blockDim = dim3(128);
	params.kernelParams = args;
	CUDA(cudaGraphAddKernelNode(&node, graph, after.data(), after.size(), &params));
	return node;
}

static cudaGraphNodeType type_of(cudaGraphNode_t node)
{
	cudaGraphNodeType type;

	CUDA(cudaGraphNodeGetType(node, &type));
	return type;
}

static Nodes before(cudaGraphNode_t node)
{
	size_t n = 0;

	CUDA(cudaGraphNodeGetDependencies(node, NULL, EDGE_DATA & n));
	Nodes nodes(n);
	if (n)
		CUDA(cudaGraphNodeGetDependencies(node, nodes.data(), EDGE_DATA & n));
	return nodes;
}

static Nodes all(cudaGraph_t graph)
{
	size_t n = 0;

	CUDA(cudaGraphGetNodes(graph, NULL, &n));
	Nodes nodes(n);
	if (n)
		CUDA(cudaGraphGetNodes(graph, nodes.data(), &n));
	return nodes;
}

static void run(cudaGraph_t graph, cudaStream_t stream)
{
	cudaGraphExec_t exec;

	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaGraphExecDestroy(exec));
}

static void expect(int by)
{
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, host_out[i], i + by);
}

static void whole(cudaStream_t stream)
{
	cudaGraph_t graph, clone, child;
	cudaGraphNode_t in, k1, k2, out, host, empty, nested, found;
	cudaHostNodeParams callback = {};
	int one = 1;

	for (int i = 0; i < N; i++)
		host_in[i] = i;
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddMemcpyNode1D(
		&in, graph, NULL, 0, a, host_in, sizeof(host_in), cudaMemcpyHostToDevice));
	k1 = kernel(graph, {in}, b, a, 5);
	CUDA(cudaGraphAddEmptyNode(&empty, graph, &k1, 1));
	k2 = kernel(graph, {empty}, a, b, 7);
	callback.fn = called;
	callback.userData = &one;
	CUDA(cudaGraphAddHostNode(&host, graph, &k2, 1, &callback));
	CUDA(cudaGraphAddMemcpyNode1D(
		&out, graph, &host, 1, host_out, a, sizeof(host_out), cudaMemcpyDeviceToHost));

	CHECK_EQ(all(graph).size(), 6u);
	CHECK(type_of(in) == cudaGraphNodeTypeMemcpy);
	CHECK(type_of(k1) == cudaGraphNodeTypeKernel);
	CHECK(type_of(empty) == cudaGraphNodeTypeEmpty);
	CHECK(type_of(host) == cudaGraphNodeTypeHost);
	CHECK(before(in).empty());
	CHECK(before(k2) == Nodes{empty});
	size_t edges = 0, roots = 1;
	cudaGraphNode_t root;
	CUDA(cudaGraphGetEdges(graph, NULL, NULL, EDGE_DATA & edges));
	CHECK_EQ(edges, 5u);
	CUDA(cudaGraphGetRootNodes(graph, &root, &roots));
	CHECK(roots == 1 && root == in);

	run(graph, stream);
	expect(12);
	CHECK_EQ(calls, 1);
	host_in[3] = 1000; /* read again */
	run(graph, stream);
	CHECK_EQ(host_out[3], 1012);
	host_in[3] = 3;

	/* A clone does not change with what it was made from. */
	CUDA(cudaGraphClone(&clone, graph));
	CUDA(cudaGraphNodeFindInClone(&found, k2, clone));
	CHECK(found != k2 && type_of(found) == cudaGraphNodeTypeKernel);
	CUDA(cudaGraphDestroyNode(host));
	CHECK_EQ(all(graph).size(), 5u);
	CHECK(before(out).empty());
	CUDA(cudaGraphAddDependencies(graph, &k2, &out, EDGE_DATA 1));
	CHECK(before(out) == Nodes{k2});
	run(graph, stream);
	expect(12);
	CHECK_EQ(calls, 2);
	run(clone, stream);
	CHECK_EQ(calls, 3);

	/* A graph as a node of another, behind a fill. */
	cudaMemsetParams fill = {};
	cudaGraphNode_t zero;
	fill.dst = b;
	fill.elementSize = 4;
	fill.width = N;
	fill.height = 1;
	CUDA(cudaGraphCreate(&child, 0));
	CUDA(cudaGraphAddMemsetNode(&zero, child, NULL, 0, &fill));
	CUDA(cudaGraphAddChildGraphNode(&nested, child, &zero, 1, graph));
	CHECK(type_of(nested) == cudaGraphNodeTypeGraph);
	cudaGraph_t inside;
	CUDA(cudaGraphChildGraphNodeGetGraph(nested, &inside));
	CHECK_EQ(all(inside).size(), 5u);
	memset(host_out, 0, sizeof(host_out));
	run(child, stream);
	expect(12);
	CUDA(cudaGraphDestroy(child));
	CUDA(cudaGraphDestroy(clone));
	CUDA(cudaGraphDestroy(graph));
}

static void parameters()
{
	cudaKernelNodeParams params = {};
	cudaMemsetParams fill = {}, told;
	cudaGraphNode_t k, f;
	cudaGraph_t graph;

	CUDA(cudaGraphCreate(&graph, 0));
	k = kernel(graph, {}, b, a, 42);
	CUDA(cudaGraphKernelNodeGetParams(k, &params));
	CHECK(params.func == (void *)add);
	CHECK(params.gridDim.x == N / 128 && params.blockDim.x == 128);
	CHECK_EQ(*(int *)params.kernelParams[2], 42);
	CHECK(*(int **)params.kernelParams[0] == b);
	fill.dst = a;
	fill.value = 9;
	fill.elementSize = 2;
	fill.width = 10;
	fill.height = 1;
	CUDA(cudaGraphAddMemsetNode(&f, graph, &k, 1, &fill));
	fill.value = 11;
	CUDA(cudaGraphMemsetNodeSetParams(f, &fill));
	CUDA(cudaGraphMemsetNodeGetParams(f, &told));
	CHECK(told.dst == a && told.value == 11 && told.elementSize == 2 && told.width == 10);
	CUDA(cudaGraphDestroy(graph));
}

static void events(cudaStream_t stream)
{
	cudaGraphNode_t record, k;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaEvent_t event;

	CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	CUDA(cudaGraphCreate(&graph, 0));
	k = kernel(graph, {}, b, a, 1);
	CUDA(cudaGraphAddEventRecordNode(&record, graph, &k, 1, event));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int round = 0; round < 3; round++) {
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaEventSynchronize(event));
		CUDA(cudaEventQuery(event));
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaEventDestroy(event));
}

int main()
{
	cudaStream_t stream;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaMalloc(&a, N * sizeof(int)));
	CUDA(cudaMalloc(&b, N * sizeof(int)));
	whole(stream);
	parameters();
	events(stream);
	CUDA(cudaStreamDestroy(stream));
	return 0;
}
