// SPDX-License-Identifier: Apache-2.0
/*
 * Nodes by the calls that take any type: child graphs whose ownership moves to the node, memory
 * and values by cuGraphAddNode, and, where the driver has it, the parameters of each node back.
 */
#include "driver.h"

static auto p_cuGraphAddNode =
	driver_entry<decltype(&cuGraphAddNode_v2)>("cuGraphAddNode", 12030);
static ENTRY(cuCtxGetCurrent);

static int *data; /* device, 4 of them */
static cudaStream_t stream;
static CUcontext context;

static int word(int i)
{
	int value;

	CUDA(cudaMemcpy(&value, data + i, sizeof(value), cudaMemcpyDeviceToHost));
	return value;
}

static CUgraphNode added(cudaGraph_t graph, const CUgraphNode *after, CUgraphNodeParams *params)
{
	CUgraphNode node;

	DRIVER(p_cuGraphAddNode(&node, (CUgraph)graph, after, NULL, after ? 1 : 0, params));
	return node;
}

static CUgraphNode fills(cudaGraph_t graph, const CUgraphNode *after, void *at, int value)
{
	CUgraphNodeParams params = {};

	params.type = CU_GRAPH_NODE_TYPE_MEMSET;
	params.memset.dst = (CUdeviceptr)at;
	params.memset.value = value;
	params.memset.elementSize = 4;
	params.memset.width = params.memset.height = 1;
	params.memset.ctx = context;
	return added(graph, after, &params);
}

static CUgraphNodeParams moved_params(cudaGraph_t child)
{
	CUgraphNodeParams params = {};

	params.type = CU_GRAPH_NODE_TYPE_GRAPH;
	params.graph.graph = (CUgraph)child;
	params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
	return params;
}

static void run_once(cudaGraph_t graph)
{
	cudaGraphExec_t exec;

	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaGraphExecDestroy(exec));
}

static void moved()
{
	static int host[2] = {41, 0};
	cudaGraph_t graph, child, got;
	CUgraphNodeParams params;
	CUgraphNode first, node;
	cudaGraphExec_t exec;
	cudaGraphNode_t copy;

	CUDA(cudaMemset(data, 0, 16));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphCreate(&child, 0));
	CUDA(cudaGraphAddMemcpyNode1D(&copy, child, NULL, 0, data + 1, &host[0], sizeof(int),
		cudaMemcpyHostToDevice));
	CUDA(cudaGraphAddMemcpyNode1D(&copy, child, &copy, 1, &host[1], data + 1, sizeof(int),
		cudaMemcpyDeviceToHost));
	first = fills(graph, NULL, data, 7);
	params = moved_params(child);
	node = added(graph, &first, &params);
	CUDA(cudaGraphChildGraphNodeGetGraph((cudaGraphNode_t)node, &got));
	CHECK(got == child);
	/* It is the node's, and can still be added to. */
	fills(child, NULL, data + 2, 9);
	CHECK(cudaGraphDestroy(child) != cudaSuccess);
	CHECK(cudaGraphInstantiate(&exec, child, 0) != cudaSuccess);
	(void)cudaGetLastError();
	for (int i = 0; i < 2; i++) {
		host[0] = 41 + i;
		run_once(graph);
		CHECK_EQ(word(0), 7);
		CHECK_EQ(word(1), 41 + i);
		CHECK_EQ(word(2), 9);
		CHECK_EQ(host[1], 41 + i);
	}
	CUDA(cudaGraphDestroy(graph));
}

/* A graph that allocates can be a child graph only so. */
static void moved_with_memory()
{
	CUgraphNodeParams alloc = {}, copy = {}, free = {}, child_params;
	CUgraphNode node;
	cudaGraph_t graph, child;

	CUDA(cudaMemset(data, 0, 16));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphCreate(&child, 0));
	alloc.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
	alloc.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	alloc.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	alloc.alloc.bytesize = 4096;
	node = added(child, NULL, &alloc);
	CHECK(alloc.alloc.dptr != 0);
	node = fills(child, &node, (void *)alloc.alloc.dptr, 77);
	copy.type = CU_GRAPH_NODE_TYPE_MEMCPY;
	copy.memcpy.copyCtx = context;
	copy.memcpy.copyParams.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	copy.memcpy.copyParams.srcDevice = alloc.alloc.dptr;
	copy.memcpy.copyParams.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	copy.memcpy.copyParams.dstDevice = (CUdeviceptr)(data + 3);
	copy.memcpy.copyParams.WidthInBytes = 4;
	copy.memcpy.copyParams.Height = copy.memcpy.copyParams.Depth = 1;
	node = added(child, &node, &copy);
	free.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
	free.free.dptr = alloc.alloc.dptr;
	added(child, &node, &free);
	child_params = moved_params(child);
	added(graph, NULL, &child_params);
	run_once(graph);
	CHECK_EQ(word(3), 77);
	CUDA(cudaGraphDestroy(graph));
}

typedef CUresult (*get_params)(CUgraphNode, CUgraphNodeParams *);

/* Drivers before CUDA 13.2 do not have it. */
static get_params get_params_entry()
{
	cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
	void *entry = NULL;

	if (cudaGetDriverEntryPointByVersion("cuGraphNodeGetParams", &entry, 13020,
		    cudaEnableDefault, &found) != cudaSuccess ||
		found != cudaDriverEntryPointSuccess)
		entry = NULL;
	(void)cudaGetLastError();
	return (get_params)entry;
}

static void asked_back()
{
	get_params get = get_params_entry();
	CUgraphNodeParams params = {}, got = {};
	CUstreamBatchMemOpParams op = {};
	cudaGraph_t graph;
	CUgraphNode node;

	if (!get)
		return;
	CUDA(cudaGraphCreate(&graph, 0));
	node = fills(graph, NULL, data, 3);
	DRIVER(get(node, &got));
	CHECK_EQ((int)got.type, (int)CU_GRAPH_NODE_TYPE_MEMSET);
	CHECK_EQ(got.memset.dst, (CUdeviceptr)data);
	CHECK_EQ(got.memset.value, 3u);
	op.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	op.writeValue.address = (CUdeviceptr)data;
	op.writeValue.value = 5;
	params.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
	params.memOp.ctx = context;
	params.memOp.count = 1;
	params.memOp.paramArray = &op;
	node = added(graph, NULL, &params);
	DRIVER(get(node, &got));
	CHECK_EQ((int)got.type, (int)CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
	CHECK_EQ(got.memOp.paramArray[0].writeValue.value, 5u);
	CUDA(cudaGraphDestroy(graph));
}

int main()
{
	CUDA(cudaMalloc(&data, 16));
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	DRIVER(p_cuCtxGetCurrent(&context));
	moved();
	moved_with_memory();
	asked_back();
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaFree(data));
	return 0;
}
