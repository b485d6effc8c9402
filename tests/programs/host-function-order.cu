// SPDX-License-Identifier: Apache-2.0
/*
 * A copy from pinned memory takes what host functions wrote that come before it, in whatever way
 * they do: on its stream, by events, by graphs, or because the program has waited.  The legacy
 * stream orders no functions: it takes a stream to be idle while a function is all it waits for.
 */
#include "check.h"

#include <unistd.h>

enum { COUNT = 1000 };

static int *host, *device, turn;

static void CUDART_CB write(void *)
{
	usleep(20000);
	for (int i = 0; i < COUNT; i++)
		host[i] = turn * 10000 + i;
}

struct streams {
	cudaStream_t one, two, three; /* which wait for no other */
	cudaEvent_t event, other;
};

static void copy(cudaStream_t stream)
{
	CUDA(cudaMemcpyAsync(
		device, host, COUNT * sizeof(int), cudaMemcpyHostToDevice, stream));
}

static void wait(cudaStream_t stream, cudaStream_t before, cudaEvent_t event)
{
	CUDA(cudaEventRecord(event, before));
	CUDA(cudaStreamWaitEvent(stream, event, 0));
}

static void launch(cudaGraph_t graph, cudaStream_t stream)
{
	cudaGraphExec_t exec;

	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaGraphExecDestroy(exec));
}

static void on_one_stream(const streams &s)
{
	CUDA(cudaLaunchHostFunc(s.one, write, NULL));
	copy(s.one);
}

static void over_three(const streams &s)
{
	CUDA(cudaLaunchHostFunc(s.one, write, NULL));
	wait(s.two, s.one, s.event);
	wait(s.three, s.two, s.other);
	copy(s.three);
}

/* The copy that waits is on the function's stream; the next one on another. */
static void after_a_copy_that_waits(const streams &s)
{
	static int value;

	CUDA(cudaLaunchHostFunc(cudaStreamLegacy, write, NULL));
	CUDA(cudaMemcpy(device + COUNT, &value, sizeof(value), cudaMemcpyHostToDevice));
	copy(s.two);
}

static void in_a_graph(const streams &s)
{
	cudaHostNodeParams function = {write, NULL};
	cudaGraphNode_t node;
	cudaGraph_t graph;

	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddHostNode(&node, graph, NULL, 0, &function));
	launch(graph, s.one);
	wait(s.two, s.one, s.event);
	copy(s.two);
}

static void recorded_by_a_graph(const streams &s)
{
	cudaGraphNode_t node;
	cudaGraph_t graph;

	CUDA(cudaLaunchHostFunc(s.one, write, NULL));
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddEventRecordNode(&node, graph, NULL, 0, s.event));
	launch(graph, s.one);
	CUDA(cudaStreamWaitEvent(s.two, s.event, 0));
	copy(s.two);
}

static void awaited_by_a_graph(const streams &s)
{
	cudaGraphNode_t node;
	cudaGraph_t graph;

	CUDA(cudaLaunchHostFunc(s.one, write, NULL));
	CUDA(cudaEventRecord(s.event, s.one));
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddEventWaitNode(&node, graph, NULL, 0, s.event));
	launch(graph, s.two);
	copy(s.two);
}

static void check(void (*issue)(const streams &), const streams &s)
{
	int got[COUNT];

	turn++;
	for (int i = 0; i < COUNT; i++)
		host[i] = -1;
	issue(s);
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemcpy(got, device, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < COUNT; i++)
		CHECK_EQ_AT(turn, got[i], turn * 10000 + i);
}

int main()
{
	streams s;

	for (cudaStream_t *stream : {&s.one, &s.two, &s.three})
		CUDA(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
	for (cudaEvent_t *event : {&s.event, &s.other})
		CUDA(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
	CUDA(cudaMalloc(&device, (COUNT + 1) * sizeof(int)));
	CUDA(cudaMallocHost(&host, COUNT * sizeof(int)));
	for (auto issue : {on_one_stream, over_three,
		     after_a_copy_that_waits, in_a_graph, recorded_by_a_graph, awaited_by_a_graph})
		for (int times = 0; times < 2; times++)
			check(issue, s);
	CUDA(cudaFreeHost(host));
	CUDA(cudaFree(device));
	printf("copies came behind the functions before them\n");
	return 0;
}
