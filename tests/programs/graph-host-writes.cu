// SPDX-License-Identifier: Apache-2.0
/*
 * What a host function of a graph writes where the graph copied to before stays there: for the
 * graph's later nodes, for later host functions, and behind the launch.  Of much more than fits
 * on the way, and while another stream waits for a host function, too.
 */
#include "check.h"

#include <unistd.h>
#include <vector>

enum { LAUNCHES = 4, LARGE = 5 << 20 };

static cudaStream_t stream, other;

__global__ void add_one(int *data, int count)
{
	for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < count;
		i += blockDim.x * gridDim.x)
		data[i]++;
}

struct numbers {
	int *host;
	int count;
	int add;
	int seen, last; /* before the function wrote */
};

static void CUDART_CB add(void *argument)
{
	numbers *n = (numbers *)argument;

	n->seen = n->host[0];
	n->last = n->host[n->count - 1];
	n->host[0] += n->add;
	if (n->count > 1)
		n->host[n->count - 1] += n->add;
}

static void CUDART_CB slow(void *)
{
	usleep(50000);
}

static cudaGraphExec_t ended(cudaStream_t from)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CUDA(cudaStreamEndCapture(from, &graph));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphDestroy(graph));
	return exec;
}

/* Adds one on the device, and ten in a function; the last copy has both. A node that copies from
 * pageable memory may read it before a function that comes before the node: NVIDIA's driver does
 * with some of the bytes. */
static void round_trips(int *host, int count, bool busy, bool early)
{
	std::vector<int> got(count);
	numbers n = {host, count, 10, 0, 0};
	int *device, *pinned;
	cudaGraphExec_t exec;

	CUDA(cudaMalloc(&device, count * sizeof(int)));
	CUDA(cudaMallocHost(&pinned, count * sizeof(int)));
	memset(host, 0, count * sizeof(int));
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	CUDA(cudaMemcpyAsync(
		device, host, count * sizeof(int), cudaMemcpyHostToDevice, stream));
	add_one<<<8, 64, 0, stream>>>(device, count);
	LAUNCHED();
	CUDA(cudaMemcpyAsync(
		host, device, count * sizeof(int), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaLaunchHostFunc(stream, add, &n));
	CUDA(cudaMemcpyAsync(
		device, host, count * sizeof(int), cudaMemcpyHostToDevice, stream));
	exec = ended(stream);
	for (int r = 0; r < LAUNCHES; r++) {
		if (busy) {
			CUDA(cudaLaunchHostFunc(other, slow, NULL));
			CUDA(cudaMemcpyAsync(pinned, device, count * sizeof(int),
				cudaMemcpyDeviceToHost, other));
		}
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		CUDA(cudaStreamSynchronize(other));
		CHECK_EQ_AT(r, n.seen, 11 * r + 1);
		CHECK_EQ_AT(r, n.last, 11 * r + 1);
		CHECK_EQ_AT(r, host[0], 11 * (r + 1));
		CHECK_EQ_AT(r, host[count / 2], r + 1);
		CUDA(cudaMemcpy(
			got.data(), device, count * sizeof(int), cudaMemcpyDeviceToHost));
		if (!early)
			CHECK_EQ_AT(r, got[count - 1], 11 * (r + 1));
		CHECK_EQ_AT(r, got[count / 2], r + 1);
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaFreeHost(pinned));
	CUDA(cudaFree(device));
}

/* The second function has what the first one wrote, and what came between the two. */
static void two_functions(int *host)
{
	numbers first = {host, 1, 10, 0, 0}, second = {host, 1, 100, 0, 0};
	int *device;
	cudaGraphExec_t exec;

	host[0] = host[1] = 0;
	CUDA(cudaMalloc(&device, 2 * sizeof(int)));
	CUDA(cudaMemset(device, 0, 2 * sizeof(int)));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	add_one<<<1, 1, 0, stream>>>(device, 2);
	LAUNCHED();
	CUDA(cudaMemcpyAsync(host, device, sizeof(int), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaLaunchHostFunc(stream, add, &first));
	CUDA(cudaMemcpyAsync(host + 1, device + 1, sizeof(int), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaLaunchHostFunc(stream, add, &second));
	exec = ended(stream);
	for (int r = 0; r < LAUNCHES; r++) {
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		CHECK_EQ_AT(r, first.seen, r + 1);
		CHECK_EQ_AT(r, second.seen, r + 11);
		CHECK_EQ_AT(r, host[0], r + 111);
		CHECK_EQ_AT(r, host[1], r + 1);
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaFree(device));
}

/* A function on a branch of its own sees what was copied before the branch began. */
static void on_a_branch(int *host)
{
	numbers here = {host, 1, 0, 0, 0}, there = {host, 1, 0, 0, 0};
	int *device;
	cudaEvent_t fork, join;
	cudaGraphExec_t exec;

	CUDA(cudaEventCreate(&fork));
	CUDA(cudaEventCreate(&join));
	CUDA(cudaMalloc(&device, sizeof(int)));
	CUDA(cudaMemset(device, 0, sizeof(int)));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	add_one<<<1, 1, 0, stream>>>(device, 1);
	LAUNCHED();
	CUDA(cudaMemcpyAsync(host, device, sizeof(int), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaEventRecord(fork, stream));
	CUDA(cudaLaunchHostFunc(stream, add, &here));
	CUDA(cudaStreamWaitEvent(other, fork, 0));
	CUDA(cudaLaunchHostFunc(other, add, &there));
	CUDA(cudaEventRecord(join, other));
	CUDA(cudaStreamWaitEvent(stream, join, 0));
	exec = ended(stream);
	for (int r = 0; r < LAUNCHES; r++) {
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		CHECK_EQ_AT(r, here.seen, r + 1);
		CHECK_EQ_AT(r, there.seen, r + 1);
		CHECK_EQ_AT(r, host[0], r + 1);
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaFree(device));
	CUDA(cudaEventDestroy(fork));
	CUDA(cudaEventDestroy(join));
}

/* Nodes, each behind the one before it. */
static void with_nodes(int *host)
{
	numbers n = {host, 1, 10, 0, 0};
	cudaHostNodeParams function = {add, &n};
	cudaKernelNodeParams kernel = {};
	cudaGraphNode_t first, out, call;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	int *device, count = 1;
	void *args[] = {&device, &count};

	CUDA(cudaMalloc(&device, sizeof(int)));
	CUDA(cudaMemset(device, 0, sizeof(int)));
	CUDA(cudaDeviceSynchronize()); /* other streams do not wait for the fill */
	kernel.func = (void *)add_one;
	kernel.gridDim = kernel.blockDim = dim3(1);
	kernel.kernelParams = args;
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddKernelNode(&first, graph, NULL, 0, &kernel));
	CUDA(cudaGraphAddMemcpyNode1D(
		&out, graph, &first, 1, host, device, sizeof(int), cudaMemcpyDeviceToHost));
	CUDA(cudaGraphAddHostNode(&call, graph, &out, 1, &function));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int r = 0; r < LAUNCHES; r++) {
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		CHECK_EQ_AT(r, n.seen, r + 1);
		CHECK_EQ_AT(r, host[0], r + 11);
	}
	/* Without the kernel there is the same number. */
	CUDA(cudaGraphNodeSetEnabled(exec, first, 0));
	host[0] = 0;
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaStreamSynchronize(stream));
	CHECK_EQ(host[0], LAUNCHES + 10);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaFree(device));
}

/* One graph twice in another one, the second behind the first: the function comes before the copy
 * to what it reads, so that it sees what the one before it copied. */
static void as_children(int *host)
{
	numbers n = {host, 1, 10, 0, 0};
	cudaHostNodeParams function = {add, &n};
	cudaGraphNode_t call, out, first, second;
	cudaGraph_t child, graph;
	cudaGraphExec_t exec;
	int *device;

	CUDA(cudaMalloc(&device, sizeof(int)));
	CUDA(cudaMemset(device, 0, sizeof(int)));
	CUDA(cudaDeviceSynchronize()); /* other streams do not wait for the fill */
	CUDA(cudaGraphCreate(&child, 0));
	CUDA(cudaGraphAddHostNode(&call, child, NULL, 0, &function));
	CUDA(cudaGraphAddMemcpyNode1D(
		&out, child, &call, 1, host, device, sizeof(int), cudaMemcpyDeviceToHost));
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddChildGraphNode(&first, graph, NULL, 0, child));
	CUDA(cudaGraphAddChildGraphNode(&second, graph, &first, 1, child));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int r = 0; r < LAUNCHES; r++) {
		host[0] = -100;
		CUDA(cudaMemset(device, r, 1));
		CUDA(cudaDeviceSynchronize());
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		CHECK_EQ_AT(r, n.seen, r);
		CHECK_EQ_AT(r, host[0], r);
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaGraphDestroy(child));
	CUDA(cudaFree(device));
}

int main()
{
	std::vector<int> pageable(LARGE);
	int *pinned;
	const bool native = getenv("VCUDA_TEST_NATIVE");

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	CUDA(cudaMallocHost(&pinned, LARGE * sizeof(int)));
	for (int *host : {pageable.data(), pinned}) {
		const bool early = native && host == pageable.data();

		for (bool busy : {false, true}) {
			round_trips(host, 1000, busy, early);
			round_trips(host, LARGE, busy, early);
		}
		two_functions(host);
		on_a_branch(host);
		with_nodes(host);
		as_children(host);
	}
	CUDA(cudaFreeHost(pinned));
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaStreamDestroy(other));
	printf("what host functions wrote stayed\n");
	return 0;
}
