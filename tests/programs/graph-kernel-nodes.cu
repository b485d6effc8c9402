// SPDX-License-Identifier: Apache-2.0
/*
 * What a kernel's node says that it runs: its function, and beside it the kernel where the
 * function is a library's, as the runtime's are. A module's function has no kernel.
 */
#include "driver.h"

static const char image[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry nothing() { ret; }\n";

__global__ void set(int *out)
{
	*out = 4711;
}

static int *number;
static cudaStream_t stream;

static CUDA_KERNEL_NODE_PARAMS said_of(cudaGraphNode_t node)
{
	ENTRY(cuGraphKernelNodeGetParams);
	CUDA_KERNEL_NODE_PARAMS said;

	memset(&said, 0xa5, sizeof(said));
	DRIVER(p_cuGraphKernelNodeGetParams(node, &said));
	CHECK(said.func);
	return said;
}

/* A node of KERNEL is of it and no other. */
static void expect_kernel(cudaGraphNode_t node)
{
	ENTRY(cuKernelGetName);
	ENTRY(cuFuncGetName);
	CUDA_KERNEL_NODE_PARAMS said = said_of(node);
	const char *kernel, *function;

	CHECK(said.kern);
	DRIVER(p_cuKernelGetName(&kernel, said.kern));
	DRIVER(p_cuFuncGetName(&function, said.func));
	CHECK(!strcmp(kernel, function));
	CHECK(strstr(kernel, "set"));
}

/* What it says makes the same node. */
static void expect_same(cudaGraph_t graph, cudaGraphNode_t node)
{
	ENTRY(cuGraphAddKernelNode);
	CUDA_KERNEL_NODE_PARAMS said = said_of(node);
	cudaGraphExec_t exec;
	CUgraphNode same;
	int got = 0;

	DRIVER(p_cuGraphAddKernelNode(&same, graph, NULL, 0, &said));
	expect_kernel(same);
	CUDA(cudaGraphDestroyNode(node));
	CUDA(cudaMemset(number, 0, sizeof(*number)));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaMemcpy(&got, number, sizeof(got), cudaMemcpyDeviceToHost));
	CHECK_EQ(got, 4711);
	CUDA(cudaGraphExecDestroy(exec));
}

static void a_captured_launch()
{
	cudaGraph_t graph;
	cudaGraphNode_t node;
	size_t count = 1;

	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	set<<<1, 1, 0, stream>>>(number);
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphGetNodes(graph, &node, &count));
	CHECK_EQ(count, 1u);
	expect_kernel(node);
	expect_same(graph, node);
	CUDA(cudaGraphDestroy(graph));
}

static void a_node_of_the_runtime()
{
	cudaKernelNodeParams params = {};
	cudaGraph_t graph;
	cudaGraphNode_t node;
	void *arguments[] = {&number};

	params.func = (void *)set;
	params.gridDim = params.blockDim = dim3(1);
	params.kernelParams = arguments;
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddKernelNode(&node, graph, NULL, 0, &params));
	expect_kernel(node);
	expect_same(graph, node);
	CUDA(cudaGraphDestroy(graph));
}

static void a_modules_function()
{
	ENTRY(cuModuleLoadData);
	ENTRY(cuModuleGetFunction);
	ENTRY(cuModuleUnload);
	ENTRY(cuGraphAddKernelNode);
	CUDA_KERNEL_NODE_PARAMS params = {}, said;
	cudaGraph_t graph;
	CUgraphNode node;
	CUmodule module;

	DRIVER(p_cuModuleLoadData(&module, image));
	DRIVER(p_cuModuleGetFunction(&params.func, module, "nothing"));
	params.gridDimX = params.gridDimY = params.gridDimZ = 1;
	params.blockDimX = params.blockDimY = params.blockDimZ = 1;
	CUDA(cudaGraphCreate(&graph, 0));
	DRIVER(p_cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
	said = said_of(node);
	CHECK(said.func == params.func);
	CHECK(!said.kern);
	CUDA(cudaGraphDestroy(graph));
	DRIVER(p_cuModuleUnload(module));
}

int main()
{
	CUDA(cudaMalloc(&number, sizeof(*number)));
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	a_captured_launch();
	a_node_of_the_runtime();
	a_modules_function();
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaFree(number));
	printf("kernels' nodes said what they run\n");
	return 0;
}
