// SPDX-License-Identifier: Apache-2.0
/* Conditional nodes as applications mix them: launches one behind another without a wait, copies,
 * fills and child graphs in a body, conditions that a body sets for an inner one, and parameters
 * that change between launches. */
#include "check.h"

__global__ void begin(cudaGraphConditionalHandle loop, unsigned *left, unsigned turns)
{
	*left = turns;
	cudaGraphSetConditional(loop, turns != 0);
}

/* Odd turns take the inner branch. */
__global__ void turn(cudaGraphConditionalHandle loop, cudaGraphConditionalHandle odd,
	unsigned *left, unsigned *turns)
{
	unsigned now = *left;

	*turns += 1;
	*left = now - 1;
	cudaGraphSetConditional(odd, now & 1);
	cudaGraphSetConditional(loop, now > 1);
}

__global__ void bump(unsigned *at, unsigned by)
{
	*at += by;
}

static cudaGraphNode_t kernel(cudaGraph_t graph, cudaGraphNode_t *after, void *function, void **args)
{
	cudaKernelNodeParams params = {};
	cudaGraphNode_t node;

	params.func = function;
	params.gridDim = params.blockDim = dim3(1);
	params.kernelParams = args;
	CUDA(cudaGraphAddKernelNode(&node, graph, after, after ? 1 : 0, &params));
	return node;
}

/* A conditional node of TYPE; its only body in *BODY. */
static cudaGraphNode_t conditional(cudaGraph_t graph, cudaGraphNode_t *after,
	cudaGraphConditionalHandle handle, cudaGraphConditionalNodeType type, cudaGraph_t *body)
{
	cudaGraphNodeParams params = {};
	cudaGraphNode_t node;

	params.type = cudaGraphNodeTypeConditional;
	params.conditional.handle = handle;
	params.conditional.type = type;
	params.conditional.size = 1;
#if CUDART_VERSION >= 13000
	CUDA(cudaGraphAddNode(&node, graph, after, NULL, after ? 1 : 0, &params));
#else
	CUDA(cudaGraphAddNode(&node, graph, after, after ? 1 : 0, &params));
#endif
	*body = params.conditional.phGraph_out[0];
	return node;
}

struct numbers {
	unsigned left, turns, odd, copied, filled, child;
};

/* begin → WHILE { turn → copy, fill → child graph → IF { bump odd } } */
static void mixed(cudaStream_t stream)
{
	cudaGraph_t graph, body, inner, child;
	cudaGraphConditionalHandle loop, odd;
	cudaGraphNode_t first, node, copy, fill;
	cudaGraphExec_t exec;
	struct numbers *device, host;
	unsigned turns = 5, one = 1;

	CUDA(cudaMalloc((void **)&device, sizeof(*device)));
	CUDA(cudaMemset(device, 0, sizeof(*device)));
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphConditionalHandleCreate(&loop, graph, 0, cudaGraphCondAssignDefault));
	unsigned *left = &device->left, *made = &device->turns, *taken = &device->odd;
	void *begin_args[] = {&loop, &left, &turns};
	first = kernel(graph, NULL, (void *)begin, begin_args);
	node = conditional(graph, &first, loop, cudaGraphCondTypeWhile, &body);

	CUDA(cudaGraphConditionalHandleCreate(&odd, graph, 0, cudaGraphCondAssignDefault));
	void *turn_args[] = {&loop, &odd, &left, &made};
	node = kernel(body, NULL, (void *)turn, turn_args);
	CUDA(cudaGraphAddMemcpyNode1D(&copy, body, &node, 1, &device->copied, &device->turns,
		sizeof(unsigned), cudaMemcpyDeviceToDevice));
	cudaMemsetParams set = {};
	set.dst = &device->filled;
	set.value = 7;
	set.elementSize = 4;
	set.width = set.height = 1;
	CUDA(cudaGraphAddMemsetNode(&fill, body, &copy, 1, &set));
	CUDA(cudaGraphCreate(&child, 0));
	unsigned *in_child = &device->child;
	void *child_args[] = {&in_child, &one};
	kernel(child, NULL, (void *)bump, child_args);
	CUDA(cudaGraphAddChildGraphNode(&node, body, &fill, 1, child));
	conditional(body, &node, odd, cudaGraphCondTypeIf, &inner);
	void *odd_args[] = {&taken, &one};
	kernel(inner, NULL, (void *)bump, odd_args);

	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 3; i++)
		CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaMemcpy(&host, device, sizeof(host), cudaMemcpyDeviceToHost));
	CHECK_EQ(host.turns, 15u);
	CHECK_EQ(host.odd, 9u);
	CHECK_EQ(host.copied, 15u);
	CHECK_EQ(host.filled, 7u);
	CHECK_EQ(host.child, 15u);

	/* Fewer turns from now on, and none at all. */
	cudaKernelNodeParams params = {};
	params.func = (void *)begin;
	params.gridDim = params.blockDim = dim3(1);
	params.kernelParams = begin_args;
	turns = 2;
	CUDA(cudaGraphExecKernelNodeSetParams(exec, first, &params));
	CUDA(cudaGraphLaunch(exec, stream));
	turns = 0;
	CUDA(cudaGraphExecKernelNodeSetParams(exec, first, &params));
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaMemcpy(&host, device, sizeof(host), cudaMemcpyDeviceToHost));
	CHECK_EQ(host.turns, 17u);
	CHECK_EQ(host.odd, 10u);
	CHECK_EQ(host.child, 17u);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(child));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaFree(device));
}

/* The body of a loop is captured from two streams. */
static void captured(cudaStream_t stream)
{
	cudaGraph_t graph, body, ended;
	cudaGraphConditionalHandle loop;
	cudaGraphNode_t first;
	cudaGraphExec_t exec;
	cudaStream_t side;
	cudaEvent_t fork, join;
	struct numbers *device, host;
	unsigned turns = 4;

	CUDA(cudaMalloc((void **)&device, sizeof(*device)));
	CUDA(cudaMemset(device, 0, sizeof(*device)));
	CUDA(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
	CUDA(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
	CUDA(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphConditionalHandleCreate(&loop, graph, 0, 0));
	unsigned *left = &device->left;
	void *begin_args[] = {&loop, &left, &turns};
	first = kernel(graph, NULL, (void *)begin, begin_args);
	conditional(graph, &first, loop, cudaGraphCondTypeWhile, &body);
	CUDA(cudaStreamBeginCaptureToGraph(
		stream, body, NULL, NULL, 0, cudaStreamCaptureModeThreadLocal));
	CUDA(cudaEventRecord(fork, stream));
	CUDA(cudaStreamWaitEvent(side, fork, 0));
	bump<<<1, 1, 0, side>>>(&device->child, 3);
	CUDA(cudaEventRecord(join, side));
	/* No handle without a node: NVIDIA's driver does not instantiate such a graph. */
	turn<<<1, 1, 0, stream>>>(loop, loop, left, &device->turns);
	CUDA(cudaStreamWaitEvent(stream, join, 0));
	CUDA(cudaMemcpyAsync(&device->copied, &device->child, sizeof(unsigned),
		cudaMemcpyDeviceToDevice, stream));
	CUDA(cudaStreamEndCapture(stream, &ended));
	CHECK(ended == body);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaGraphLaunch(exec, side));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemcpy(&host, device, sizeof(host), cudaMemcpyDeviceToHost));
	CHECK_EQ(host.turns, 8u);
	CHECK_EQ(host.child, 24u);
	CHECK_EQ(host.copied, 24u);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaStreamDestroy(side));
	CUDA(cudaFree(device));
}

/* A handle that no node decides by: the graph cannot be instantiated, and can once a node does. */
static void unused(cudaStream_t stream)
{
	cudaGraphInstantiateParams params = {};
	cudaGraphConditionalHandle handle;
	cudaGraph_t graph, body;
	cudaGraphExec_t exec;

	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphConditionalHandleCreate(&handle, graph, 0, cudaGraphCondAssignDefault));
	CHECK(cudaGraphInstantiateWithParams(&exec, graph, &params) != cudaSuccess);
#if CUDART_VERSION >= 12080
	CHECK_EQ((int)params.result_out, (int)cudaGraphInstantiateConditionalHandleUnused);
#endif
	CHECK(cudaGraphInstantiate(&exec, graph, 0) != cudaSuccess);
	/* Without a graph there is no node to blame. */
	params.errNode_out = NULL;
	CHECK(cudaGraphInstantiateWithParams(&exec, NULL, &params) != cudaSuccess);
	CHECK(!params.errNode_out);
	(void)cudaGetLastError();
	conditional(graph, NULL, handle, cudaGraphCondTypeIf, &body);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

/* A graph with a conditional node is not cloned, and the call itself says so. */
static void clones(void)
{
	cudaGraphConditionalHandle handle;
	cudaGraph_t graph, body, clone;

	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphConditionalHandleCreate(&handle, graph, 0, cudaGraphCondAssignDefault));
	conditional(graph, NULL, handle, cudaGraphCondTypeIf, &body);
	CUDA_IS(cudaErrorNotSupported, cudaGraphClone(&clone, graph));
	(void)cudaGetLastError();
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaGraphDestroy(graph));
}

int main()
{
	cudaStream_t stream;

	CUDA(cudaStreamCreate(&stream));
	mixed(stream);
	captured(stream);
	unused(stream);
	clones();
	CUDA(cudaStreamDestroy(stream));
	return 0;
}
