// SPDX-License-Identifier: Apache-2.0
/*
 * Nodes that wait for and write values in memory: added, read back, changed in the graph and in
 * the executable graph, and captured from a stream.
 */
#include "driver.h"

static ENTRY(cuGraphAddBatchMemOpNode);
static ENTRY(cuGraphBatchMemOpNodeGetParams);
static ENTRY(cuGraphBatchMemOpNodeSetParams);
static ENTRY(cuGraphExecBatchMemOpNodeSetParams);
static ENTRY(cuGraphNodeGetType);
static ENTRY(cuStreamBatchMemOp);
static ENTRY(cuStreamWriteValue32);
static ENTRY(cuStreamWaitValue32);
static ENTRY(cuCtxGetCurrent);

static unsigned *data; /* device */
static cudaStream_t stream;
static CUcontext context;

static CUdeviceptr at(int word)
{
	return (CUdeviceptr)(data + word);
}

static unsigned word(int i)
{
	unsigned value;

	CUDA(cudaMemcpy(&value, data + i, sizeof(value), cudaMemcpyDeviceToHost));
	return value;
}

static CUstreamBatchMemOpParams write_op(int to, unsigned value)
{
	CUstreamBatchMemOpParams op = {};

	op.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	op.writeValue.address = at(to);
	op.writeValue.value = value;
	return op;
}

static CUstreamBatchMemOpParams wait_op(int on, unsigned value)
{
	CUstreamBatchMemOpParams op = {};

	op.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	op.waitValue.address = at(on);
	op.waitValue.value = value;
	op.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
	return op;
}

static CUDA_BATCH_MEM_OP_NODE_PARAMS params_of(CUstreamBatchMemOpParams *ops, unsigned n)
{
	CUDA_BATCH_MEM_OP_NODE_PARAMS params = {};

	params.ctx = context;
	params.count = n;
	params.paramArray = ops;
	return params;
}

static void run(cudaGraphExec_t exec)
{
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaStreamSynchronize(stream));
}

static void added()
{
	CUstreamBatchMemOpParams ops[] = {write_op(0, 7), wait_op(0, 7), write_op(1, 9)};
	CUDA_BATCH_MEM_OP_NODE_PARAMS params = params_of(ops, 3), got = {};
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	CUgraphNode node, refused;
	cudaGraphNodeType runtime_type;
	CUgraphNodeType type;

	CUDA(cudaMemset(data, 0, 16));
	CUDA(cudaDeviceSynchronize()); /* other streams do not wait for the fill */
	CUDA(cudaGraphCreate(&graph, 0));
	DRIVER(p_cuGraphAddBatchMemOpNode(&node, (CUgraph)graph, NULL, 0, &params));
	/* There are no flags, and the call itself says so. */
	params.flags = 1;
	CHECK(p_cuGraphAddBatchMemOpNode(&refused, (CUgraph)graph, NULL, 0, &params) != CUDA_SUCCESS);
	CHECK(p_cuGraphBatchMemOpNodeSetParams(node, &params) != CUDA_SUCCESS);
	params.flags = 0;
	/* The runtime has no name for it. */
	CUDA_IS(cudaErrorUnknown, cudaGraphNodeGetType((cudaGraphNode_t)node, &runtime_type));
	(void)cudaGetLastError();
	DRIVER(p_cuGraphNodeGetType(node, &type));
	CHECK_EQ((int)type, (int)CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
	DRIVER(p_cuGraphBatchMemOpNodeGetParams(node, &got));
	CHECK_EQ(got.count, 3u);
	CHECK_EQ((int)got.paramArray[1].operation, (int)CU_STREAM_MEM_OP_WAIT_VALUE_32);
	CHECK_EQ(got.paramArray[2].writeValue.address, at(1));
	CHECK_EQ(got.paramArray[2].writeValue.value, 9u);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	run(exec);
	CHECK_EQ(word(0), 7u);
	CHECK_EQ(word(1), 9u);

	ops[2] = write_op(1, 11);
	DRIVER(p_cuGraphExecBatchMemOpNodeSetParams((CUgraphExec)exec, node, &params));
	run(exec);
	CHECK_EQ(word(1), 11u);
	DRIVER(p_cuGraphBatchMemOpNodeGetParams(node, &got));
	CHECK_EQ(got.paramArray[2].writeValue.value, 9u);
	CUDA(cudaGraphExecDestroy(exec));

	ops[2] = write_op(1, 12);
	DRIVER(p_cuGraphBatchMemOpNodeSetParams(node, &params));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	run(exec);
	CHECK_EQ(word(1), 12u);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

/* The graph goes on when another stream has written what it waits for. */
static void waits()
{
	CUstreamBatchMemOpParams ops[] = {wait_op(2, 5), write_op(3, 6)};
	CUDA_BATCH_MEM_OP_NODE_PARAMS params = params_of(ops, 2);
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaStream_t other;
	CUgraphNode node;

	CUDA(cudaMemset(data, 0, 16));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	CUDA(cudaGraphCreate(&graph, 0));
	DRIVER(p_cuGraphAddBatchMemOpNode(&node, (CUgraph)graph, NULL, 0, &params));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA_IS(cudaErrorNotReady, cudaStreamQuery(stream));
	DRIVER(p_cuStreamWriteValue32((CUstream)other, at(2), 5, 0));
	CUDA(cudaStreamSynchronize(stream));
	CHECK_EQ(word(3), 6u);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaStreamDestroy(other));
	(void)cudaGetLastError();
}

static void captured()
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	size_t count = 0;

	CUDA(cudaMemset(data, 0, 16));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	DRIVER(p_cuStreamWriteValue32((CUstream)stream, at(0), 3, 0));
	DRIVER(p_cuStreamWaitValue32((CUstream)stream, at(0), 3, CU_STREAM_WAIT_VALUE_GEQ));
	DRIVER(p_cuStreamWriteValue32((CUstream)stream, at(1), 4, 0));
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphGetNodes(graph, NULL, &count));
	CHECK_EQ(count, (size_t)3);
	CHECK_EQ(word(1), 0u);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	run(exec);
	CHECK_EQ(word(0), 3u);
	CHECK_EQ(word(1), 4u);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

/* A node may say where its values are later: until then its graph cannot be launched. */
static void nowhere()
{
	CUstreamBatchMemOpParams ops[] = {write_op(0, 7), write_op(1, 9)};
	CUDA_BATCH_MEM_OP_NODE_PARAMS params = params_of(ops, 2), got = {};
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	CUgraphNode node;

	ops[1].writeValue.address = 0;
	CUDA(cudaGraphCreate(&graph, 0));
	DRIVER(p_cuGraphAddBatchMemOpNode(&node, (CUgraph)graph, NULL, 0, &params));
	DRIVER(p_cuGraphBatchMemOpNodeGetParams(node, &got));
	CHECK(got.count == 2 && got.paramArray[0].writeValue.address == at(0));
	CHECK(!got.paramArray[1].writeValue.address);
	ops[0].writeValue.address = at(0) + 1;
	CHECK_EQ((int)p_cuGraphBatchMemOpNodeSetParams(node, &params), (int)CUDA_ERROR_INVALID_VALUE);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA_IS(cudaErrorInvalidValue, cudaGraphLaunch(exec, stream));
	(void)cudaGetLastError();
	ops[0] = write_op(0, 7);
	ops[1] = write_op(1, 9);
	params.count = 1; /* as many and the same as before */
	CHECK_EQ((int)p_cuGraphExecBatchMemOpNodeSetParams((CUgraphExec)exec, node, &params),
		(int)CUDA_ERROR_INVALID_VALUE);
	params.count = 2;
	DRIVER(p_cuGraphExecBatchMemOpNodeSetParams((CUgraphExec)exec, node, &params));
	run(exec);
	CHECK_EQ(word(1), 9u);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

/* What a device cannot do is told by the call that asks for it; the stream goes on. */
static void flushed()
{
	CUstreamBatchMemOpParams ops[] = {write_op(2, 5), {}};

	if (device_attribute(cudaDevAttrCanFlushRemoteWrites))
		return;
	ops[1].operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
	DRIVER_IS(CUDA_ERROR_NOT_SUPPORTED, p_cuStreamBatchMemOp((CUstream)stream, 2, ops, 0));
	CUDA(cudaStreamSynchronize(stream));
	DRIVER(p_cuStreamBatchMemOp((CUstream)stream, 1, ops, 0));
	CUDA(cudaStreamSynchronize(stream));
	CHECK_EQ(word(2), 5);
}

int main()
{
	CUDA(cudaMalloc(&data, 16));
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	DRIVER(p_cuCtxGetCurrent(&context));
	flushed();
	added();
	waits();
	captured();
	nowhere();
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaFree(data));
	return 0;
}
