// SPDX-License-Identifier: Apache-2.0
/*
 * Edges that say more than before and behind: a kernel that may begin while the one before it
 * runs.  What an edge says is told by the calls that have room for it, and the others refuse to
 * leave it out.  A capture may begin behind such an edge, or go on behind one.
 */
#include "check.h"

static int *data;

__global__ void first(int *at)
{
#if __CUDA_ARCH__ >= 900
	cudaTriggerProgrammaticLaunchCompletion();
#endif
	at[0] = 1;
}

/* Needs nothing of the first. */
__global__ void second(int *at)
{
	at[1] = 2;
}

static cudaGraphNode_t kernel(cudaGraph_t graph, void *function)
{
	void *args[] = {&data};
	cudaKernelNodeParams params = {};
	cudaGraphNode_t node;

	params.func = function;
	params.gridDim = params.blockDim = dim3(1);
	params.kernelParams = args;
	CUDA(cudaGraphAddKernelNode(&node, graph, NULL, 0, &params));
	return node;
}

/* The same calls have other names in CUDA 12, and what has these names there knows no data. */
#if CUDART_VERSION >= 13000
#define WITH_DATA(name) name
#else
#define WITH_DATA(name) name##_v2
#endif

static void check_data(const cudaGraphEdgeData &got)
{
	CHECK_EQ((int)got.from_port, (int)cudaGraphKernelNodePortProgrammatic);
	CHECK_EQ((int)got.to_port, 0);
	CHECK_EQ((int)got.type, (int)cudaGraphDependencyTypeProgrammatic);
}

#if CUDART_VERSION >= 13000
#define CAPTURE_INFO cudaStreamGetCaptureInfo
#else
#define CAPTURE_INFO cudaStreamGetCaptureInfo_v3
#endif

/* What the stream's next node waits for: A, by an edge that says EDGE. */
static void check_tail(cudaStream_t stream, cudaGraphNode_t a, const cudaGraphEdgeData &edge)
{
	static const cudaGraphEdgeData plain = {};
	cudaStreamCaptureStatus state;
	const cudaGraphNode_t *after;
	const cudaGraphEdgeData *data;
	unsigned long long id;
	size_t count = 0;

	CUDA(CAPTURE_INFO(stream, &state, &id, NULL, &after, &data, &count));
	CHECK(count == 1 && (!a || after[0] == a));
	CHECK(!memcmp(&data[0], &edge, sizeof(edge)));
	if (!memcmp(&edge, &plain, sizeof(edge)))
		return;
	CUDA_IS(cudaErrorLossyQuery,
		CAPTURE_INFO(stream, &state, &id, NULL, &after, NULL, &count));
	(void)cudaGetLastError();
}

/* The one edge of a graph of two kernels. */
static void check_edge(cudaGraph_t graph)
{
	cudaGraphNode_t from[4], to[4];
	cudaGraphEdgeData got[4] = {};
	size_t count = 4;

	CUDA(WITH_DATA(cudaGraphGetEdges)(graph, from, to, got, &count));
	CHECK_EQ(count, (size_t)1);
	check_data(got[0]);
}

static void check_runs(cudaGraph_t graph, cudaStream_t stream)
{
	cudaGraphExec_t exec;
	int host[2];

	CUDA(cudaMemset(data, 0, 2 * sizeof(int)));
	CUDA(cudaDeviceSynchronize()); /* other streams do not wait for the fill */
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaMemcpy(host, data, sizeof(host), cudaMemcpyDeviceToHost));
	CHECK_EQ(host[0], 1);
	CHECK_EQ(host[1], 2);
	CUDA(cudaGraphExecDestroy(exec));
}

static void captured(const cudaGraphEdgeData &edge)
{
	static const cudaGraphEdgeData plain = {};
	const cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	cudaGraphEdgeData wrong = edge;
	const cudaGraphNode_t *after;
	cudaStreamCaptureStatus state;
	cudaGraphNode_t a;
	cudaStream_t stream;
	cudaGraph_t graph;
	size_t count;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	/* Into a graph that is there, behind an edge that says something. */
	CUDA(cudaGraphCreate(&graph, 0));
	a = kernel(graph, (void *)first);
	wrong.from_port = 77;
	CUDA_IS(cudaErrorInvalidValue,
		cudaStreamBeginCaptureToGraph(stream, graph, &a, &wrong, 1, mode));
	(void)cudaGetLastError();
	CUDA(cudaStreamBeginCaptureToGraph(stream, graph, &a, &edge, 1, mode));
	check_tail(stream, a, edge);
	second<<<1, 1, 0, stream>>>(data);
	LAUNCHED();
	check_tail(stream, NULL, plain);
	CUDA(cudaStreamEndCapture(stream, NULL)); /* whose graph the program has already */
	check_edge(graph);
	check_runs(graph, stream);
	CUDA(cudaGraphDestroy(graph));
	/* In a capture that is under way. */
	CUDA(cudaStreamBeginCapture(stream, mode));
	first<<<1, 1, 0, stream>>>(data);
	LAUNCHED();
	CUDA(CAPTURE_INFO(stream, &state, NULL, NULL, &after, NULL, &count));
	CHECK_EQ(count, (size_t)1);
	a = after[0];
	CUDA(WITH_DATA(cudaStreamUpdateCaptureDependencies)(
		stream, &a, &edge, 1, cudaStreamSetCaptureDependencies));
	check_tail(stream, a, edge);
	second<<<1, 1, 0, stream>>>(data);
	LAUNCHED();
	CUDA(cudaStreamEndCapture(stream, &graph));
	check_edge(graph);
	check_runs(graph, stream);
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaStreamDestroy(stream));
}

/* Behind what is no kernel there is no such edge, and then no node either. */
static void refused(const cudaGraphEdgeData &edge)
{
	cudaGraphNodeParams params = {};
	cudaGraphNode_t empty, node = NULL;
	cudaGraph_t graph;
	size_t count;

	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddEmptyNode(&empty, graph, NULL, 0));
	params.type = cudaGraphNodeTypeHost;
	params.host.fn = [](void *) {};
	CUDA_IS(cudaErrorInvalidValue,
		WITH_DATA(cudaGraphAddNode)(&node, graph, &empty, &edge, 1, &params));
	(void)cudaGetLastError();
	CHECK(!node);
	CUDA(cudaGraphGetNodes(graph, NULL, &count));
	CHECK_EQ(count, (size_t)1);
	CUDA(cudaGraphDestroy(graph));
}

int main()
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaGraphNode_t a, b, from[4], to[4];
	cudaGraphEdgeData edge = {}, got[4] = {};
	size_t count = 4;
	int host[2];

	if (device_attribute(cudaDevAttrComputeCapabilityMajor) < 8)
		SKIP("no such edges here");
	CUDA(cudaMalloc(&data, 2 * sizeof(int)));
	CUDA(cudaMemset(data, 0, 2 * sizeof(int)));
	CUDA(cudaDeviceSynchronize()); /* other streams do not wait for the fill */
	CUDA(cudaGraphCreate(&graph, 0));
	a = kernel(graph, (void *)first);
	b = kernel(graph, (void *)second);
	edge.from_port = cudaGraphKernelNodePortProgrammatic;
	edge.type = cudaGraphDependencyTypeProgrammatic;
	CUDA(WITH_DATA(cudaGraphAddDependencies)(graph, &a, &b, &edge, 1));
	CUDA(WITH_DATA(cudaGraphGetEdges)(graph, from, to, got, &count));
	CHECK_EQ(count, (size_t)1);
	CHECK(from[0] == a && to[0] == b);
	check_data(got[0]);
	memset(got, 0, sizeof(got));
	count = 4;
	CUDA(WITH_DATA(cudaGraphNodeGetDependencies)(b, from, got, &count));
	CHECK(count == 1 && from[0] == a);
	check_data(got[0]);
	count = 4;
	CUDA_IS(cudaErrorLossyQuery,
		WITH_DATA(cudaGraphGetEdges)(graph, from, to, NULL, &count));
	(void)cudaGetLastError();
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, 0));
	CUDA(cudaMemcpy(host, data, sizeof(host), cudaMemcpyDeviceToHost));
	CHECK_EQ(host[0], 1);
	CHECK_EQ(host[1], 2);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	captured(edge);
	refused(edge);
	CUDA(cudaFree(data));
	return 0;
}
