// SPDX-License-Identifier: Apache-2.0
/*
 * Conditional nodes: IF, IF with ELSE, WHILE and SWITCH, with what a kernel decides at each
 * launch, nested in one another, and with bodies that are added, captured, and of other nodes
 * than kernels.
 */
#include "driver.h"

extern "C" const unsigned char module_conditional[];

static ENTRY(cuModuleLoadData);
static ENTRY(cuModuleGetFunction);
static ENTRY(cuGraphAddKernelNode);
static ENTRY(cuLaunchKernel);

static CUfunction decide, count_down, add;
static unsigned *value, *count, *rounds; /* device */
static cudaStream_t stream;

static void set(unsigned *at, unsigned to)
{
	CUDA(cudaMemcpy(at, &to, sizeof(to), cudaMemcpyHostToDevice));
}

static unsigned get(const unsigned *at)
{
	unsigned got;

	CUDA(cudaMemcpy(&got, at, sizeof(got), cudaMemcpyDeviceToHost));
	return got;
}

static cudaGraphNode_t kernel(
	cudaGraph_t graph, const cudaGraphNode_t *after, CUfunction function, void **args)
{
	CUDA_KERNEL_NODE_PARAMS params = {};
	CUgraphNode node;

	params.func = function;
	params.gridDimX = params.gridDimY = params.gridDimZ = 1;
	params.blockDimX = params.blockDimY = params.blockDimZ = 1;
	params.kernelParams = args;
	DRIVER(p_cuGraphAddKernelNode(
		&node, (CUgraph)graph, (const CUgraphNode *)after, after ? 1 : 0, &params));
	return (cudaGraphNode_t)node;
}

static cudaGraphNode_t adds(cudaGraph_t graph, const cudaGraphNode_t *after, unsigned by)
{
	void *args[] = {&count, &by};

	return kernel(graph, after, add, args);
}

static cudaError_t add_node(cudaGraphNode_t *node, cudaGraph_t graph,
	const cudaGraphNode_t *after, cudaGraphNodeParams *params)
{
#if CUDART_VERSION >= 13000
	return cudaGraphAddNode(node, graph, after, NULL, after ? 1 : 0, params);
#else
	return cudaGraphAddNode(node, graph, after, after ? 1 : 0, params);
#endif
}

static cudaGraphNodeParams conditional_params(
	cudaGraphConditionalHandle handle, cudaGraphConditionalNodeType type, unsigned size)
{
	cudaGraphNodeParams params = {};

	params.type = cudaGraphNodeTypeConditional;
	params.conditional.handle = handle;
	params.conditional.type = type;
	params.conditional.size = size;
	return params;
}

/* A node behind AFTER; its bodies. */
static cudaGraph_t *conditional(cudaGraph_t graph, const cudaGraphNode_t *after,
	cudaGraphConditionalHandle handle, cudaGraphConditionalNodeType type, unsigned size)
{
	cudaGraphNodeParams params = conditional_params(handle, type, size);
	cudaGraphNode_t node;
	cudaGraphNodeType got;

	CUDA(add_node(&node, graph, after, &params));
#if CUDART_VERSION >= 13000
	CUDA(cudaGraphNodeGetType(node, &got));
	CHECK_EQ((int)got, (int)cudaGraphNodeTypeConditional);
#else
	CUDA_IS(cudaErrorUnknown, cudaGraphNodeGetType(node, &got));
	(void)cudaGetLastError();
#endif
	CHECK(params.conditional.phGraph_out != NULL);
	return params.conditional.phGraph_out;
}

static cudaGraphConditionalHandle handle_of(cudaGraph_t graph, unsigned preset, unsigned flags)
{
	cudaGraphConditionalHandle handle;

	CUDA(cudaGraphConditionalHandleCreate(&handle, graph, preset, flags));
	return handle;
}

/* A graph whose first node decides by `value`. */
static cudaGraph_t decided(cudaGraphConditionalHandle *handle, cudaGraphNode_t *first)
{
	cudaGraph_t graph;

	CUDA(cudaGraphCreate(&graph, 0));
	*handle = handle_of(graph, 0, 0);
	void *args[] = {handle, &value};
	*first = kernel(graph, NULL, decide, args);
	return graph;
}

static cudaGraphExec_t executable(cudaGraph_t graph)
{
	cudaGraphExec_t exec;

	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphDestroy(graph));
	return exec;
}

static unsigned run(cudaGraphExec_t exec, unsigned decision)
{
	set(value, decision);
	set(count, 0);
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaStreamSynchronize(stream));
	return get(count);
}

/* Of a node in a body; launches that were made before keep what they had. */
static void changed(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned by)
{
	ENTRY(cuGraphExecKernelNodeSetParams);
	CUDA_KERNEL_NODE_PARAMS params = {};
	void *args[] = {&count, &by};

	params.func = add;
	params.gridDimX = params.gridDimY = params.gridDimZ = 1;
	params.blockDimX = params.blockDimY = params.blockDimZ = 1;
	params.kernelParams = args;
	DRIVER(p_cuGraphExecKernelNodeSetParams((CUgraphExec)exec, (CUgraphNode)node, &params));
}

static void once()
{
	cudaGraphConditionalHandle handle;
	cudaGraphNode_t first;
	cudaGraph_t graph = decided(&handle, &first), *body;
	cudaGraphExec_t exec;

	body = conditional(graph, &first, handle, cudaGraphCondTypeIf, 1);
	first = adds(body[0], NULL, 3);
	adds(body[0], &first, 4);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CHECK_EQ(run(exec, 1), 7u);
	CHECK_EQ(run(exec, 0), 0u);
	CHECK_EQ(run(exec, 99), 7u);
	set(value, 1);
	set(count, 0);
	CUDA(cudaGraphLaunch(exec, stream));
	changed(exec, first, 30);
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaStreamSynchronize(stream));
	CHECK_EQ(get(count), 41u);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

static void either()
{
	cudaGraphConditionalHandle handle;
	cudaGraphNode_t first;
	cudaGraph_t graph = decided(&handle, &first), *body;
	cudaGraphExec_t exec;

	body = conditional(graph, &first, handle, cudaGraphCondTypeIf, 2);
	adds(body[0], NULL, 10);
	adds(body[1], NULL, 20);
	exec = executable(graph);
	CHECK_EQ(run(exec, 1), 10u);
	CHECK_EQ(run(exec, 0), 20u);
	CUDA(cudaGraphExecDestroy(exec));
}

static void one_of_many()
{
	cudaGraphConditionalHandle handle;
	cudaGraphNode_t first;
	cudaGraph_t graph = decided(&handle, &first), *body;
	cudaGraphExec_t exec;

	body = conditional(graph, &first, handle, cudaGraphCondTypeSwitch, 3);
	for (unsigned i = 0; i < 3; i++)
		adds(body[i], NULL, 100 + i);
	exec = executable(graph);
	for (unsigned i = 0; i < 3; i++)
		CHECK_EQ_AT(i, run(exec, i), 100 + i);
	CHECK_EQ(run(exec, 3), 0u);
	CUDA(cudaGraphExecDestroy(exec));
}

/* The value that a launch begins with is the handle's; a node behind the loop runs after it. */
static void loop()
{
	cudaGraphConditionalHandle handle;
	cudaGraph_t graph, *body;
	cudaGraphNodeParams params = {};
	cudaGraphNode_t node;
	cudaGraphExec_t exec;

	CUDA(cudaGraphCreate(&graph, 0));
	handle = handle_of(graph, 1, cudaGraphCondAssignDefault);
	params = conditional_params(handle, cudaGraphCondTypeWhile, 2);
	CUDA_IS(cudaErrorInvalidValue, add_node(&node, graph, NULL, &params));
	(void)cudaGetLastError();
	params = conditional_params(handle, cudaGraphCondTypeWhile, 1);
	CUDA(add_node(&node, graph, NULL, &params));
	body = params.conditional.phGraph_out;
	void *args[] = {&handle, &value, &rounds};
	kernel(body[0], NULL, count_down, args);
	adds(graph, &node, 5);
	exec = executable(graph);
	for (unsigned n = 1; n < 40; n += 13) {
		set(rounds, 0);
		CHECK_EQ(run(exec, n), 5u);
		CHECK_EQ(get(rounds), n);
	}
	CUDA(cudaGraphExecDestroy(exec));
}

/* In each round of a loop another condition is looked at; copies and fills are in its body. */
static void nested()
{
	cudaGraphConditionalHandle outer, inner;
	cudaGraph_t graph, *body, *within;
	cudaGraphNode_t node;
	cudaGraphExec_t exec;
	cudaMemsetParams fill = {};

	CUDA(cudaGraphCreate(&graph, 0));
	outer = handle_of(graph, 1, cudaGraphCondAssignDefault);
	body = conditional(graph, NULL, outer, cudaGraphCondTypeWhile, 1);
	inner = handle_of(body[0], 0, 0);
	void *args[] = {&outer, &value, &rounds}, *inner_args[] = {&inner, &value};
	node = kernel(body[0], NULL, count_down, args);
	node = kernel(body[0], &node, decide, inner_args);
	within = conditional(body[0], &node, inner, cudaGraphCondTypeIf, 2);
	adds(within[0], NULL, 1);
	fill.dst = rounds;
	fill.elementSize = 4;
	fill.value = 1000;
	fill.width = fill.height = 1;
	CUDA(cudaGraphAddMemsetNode(&node, within[1], NULL, 0, &fill));
	CUDA(cudaGraphAddMemcpyNode1D(&node, within[1], &node, 1, count, rounds,
		sizeof(unsigned), cudaMemcpyDeviceToDevice));
	exec = executable(graph);
	/* Six rounds, in the last of which nothing is left: the fill runs then. */
	CHECK_EQ(run(exec, 6), 1000u);
	CHECK_EQ(get(rounds), 1000u);
	CUDA(cudaGraphExecDestroy(exec));
}

static void captured()
{
	cudaGraphConditionalHandle handle;
	cudaGraphNode_t first;
	cudaGraph_t graph = decided(&handle, &first), *body, ended;
	cudaGraphExec_t exec;
	unsigned by = 8;
	void *args[] = {&count, &by};

	body = conditional(graph, &first, handle, cudaGraphCondTypeIf, 1);
	CUDA(cudaStreamBeginCaptureToGraph(
		stream, body[0], NULL, NULL, 0, cudaStreamCaptureModeGlobal));
	for (int i = 0; i < 2; i++)
		DRIVER(p_cuLaunchKernel(
			add, 1, 1, 1, 1, 1, 1, 0, (CUstream)stream, args, NULL));
	CUDA(cudaStreamEndCapture(stream, &ended));
	CHECK(ended == body[0]);
	exec = executable(graph);
	CHECK_EQ(run(exec, 1), 16u);
	CHECK_EQ(run(exec, 0), 0u);
	CUDA(cudaGraphExecDestroy(exec));
}

/* What has a condition is neither cloned nor another's child, node or not, and its node stays as it
 * is. */
static void only_once()
{
	cudaGraphConditionalHandle handle;
	cudaGraphNodeParams params = {};
	cudaGraphNode_t node, last;
	cudaGraph_t graph, other, clone;
	cudaGraphExec_t exec;

	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphCreate(&other, 0));
	CUDA(cudaGraphClone(&clone, graph));
	CUDA(cudaGraphDestroy(clone));
	handle = handle_of(graph, 1, 0);
	CUDA_IS(cudaErrorNotSupported, cudaGraphClone(&clone, graph));
	CUDA_IS(cudaErrorNotSupported, cudaGraphAddChildGraphNode(&node, other, NULL, 0, graph));
	params = conditional_params(handle, cudaGraphCondTypeIf, 1);
	CUDA(add_node(&node, graph, NULL, &params));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphAddEmptyNode(&last, graph, &node, 1));
	CUDA_IS(cudaErrorNotSupported, cudaGraphExecNodeSetParams(exec, node, &params));
	CUDA_IS(cudaErrorInvalidValue, cudaGraphExecNodeSetParams(exec, last, &params));
	CUDA_IS(cudaErrorInvalidValue, cudaGraphExecNodeSetParams(exec, NULL, &params));
	(void)cudaGetLastError();
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaGraphDestroy(other));
}

/* Decided by the value that its condition has at the start of a launch. */
static cudaGraph_t preset(unsigned decision)
{
	cudaGraphConditionalHandle handle;
	cudaGraph_t graph, *body;

	CUDA(cudaGraphCreate(&graph, 0));
	handle = handle_of(graph, decision, cudaGraphCondAssignDefault);
	body = conditional(graph, NULL, handle, cudaGraphCondTypeSwitch, 3);
	for (unsigned i = 0; i < 3; i++)
		adds(body[i], NULL, 100 + i);
	return graph;
}

/* An update brings that value along. */
static void updated()
{
	cudaGraph_t graph = preset(0);
	cudaGraphExecUpdateResultInfo info;
	cudaGraphExec_t exec;

	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CHECK_EQ(run(exec, 0), 100u);
	CUDA(cudaGraphDestroy(graph));
	for (unsigned i = 1; i < 3; i++) {
		graph = preset(i);
		CUDA(cudaGraphExecUpdate(exec, graph, &info));
		CUDA(cudaGraphDestroy(graph));
		for (int round = 0; round < 2; round++)
			CHECK_EQ_AT(i, run(exec, 0), 100 + i);
	}
	CUDA(cudaGraphExecDestroy(exec));
}

int main()
{
	CUmodule module;

	CUDA(cudaMalloc(&value, sizeof(unsigned)));
	CUDA(cudaMalloc(&count, sizeof(unsigned)));
	CUDA(cudaMalloc(&rounds, sizeof(unsigned)));
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUresult loaded = p_cuModuleLoadData(&module, module_conditional);
	if (loaded == CUDA_ERROR_NO_BINARY_FOR_GPU)
		SKIP("its kernels are for compute capability 9.0, and for the software GPU");
	DRIVER(loaded);
	DRIVER(p_cuModuleGetFunction(&decide, module, "decide"));
	DRIVER(p_cuModuleGetFunction(&count_down, module, "count_down"));
	DRIVER(p_cuModuleGetFunction(&add, module, "add"));
	once();
	either();
	one_of_many();
	loop();
	nested();
	captured();
	only_once();
	updated();
	CUDA(cudaStreamDestroy(stream));
	return 0;
}
