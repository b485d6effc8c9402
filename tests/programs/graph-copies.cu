// SPDX-License-Identifier: Apache-2.0
/*
 * What a graph does with the host: pinned memory is read anew at each launch and written by each,
 * host functions run in order, fills, copies of rows.
 */
#include "check.h"

static const int N = 1000;

__global__ void scale(int *data, int by)
{
	int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

	if (i < N)
		data[i] *= by;
}

struct Host {
	int *in, *out, *rows;
	int calls, seen;
};

static void CUDART_CB called(void *argument)
{
	((Host *)argument)->calls++;
}

static Host host_memory()
{
	Host h = {};

	CUDA(cudaMallocHost(&h.in, N * sizeof(int)));
	CUDA(cudaMallocHost(&h.out, N * sizeof(int)));
	CUDA(cudaMallocHost(&h.rows, 64 * sizeof(int)));
	return h;
}

static void fill_in(Host &h, int first)
{
	for (int i = 0; i < N; i++) {
		h.in[i] = first + i;
		h.out[i] = -1;
	}
}

static void check_out(const Host &h, int first, int by)
{
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, h.out[i], (first + i) * by);
}

static cudaGraphExec_t captured(Host &h, int *data, cudaStream_t stream, bool callback)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CUDA(cudaMemcpyAsync(data, h.in, N * sizeof(int), cudaMemcpyHostToDevice, stream));
	scale<<<4, 256, 0, stream>>>(data, 3);
	LAUNCHED();
	if (callback)
		CUDA(cudaLaunchHostFunc(stream, called, &h));
	CUDA(cudaMemcpyAsync(h.out, data, N * sizeof(int), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	CUDA(cudaGraphDestroy(graph));
	return exec;
}

static void round_trips(cudaStream_t stream)
{
	Host h = host_memory();
	cudaGraphExec_t exec;
	int *data;

	CUDA(cudaMalloc(&data, N * sizeof(int)));
	exec = captured(h, data, stream, false);
	for (int round = 0; round < 8; round++) {
		fill_in(h, 50 * round);
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		check_out(h, 50 * round, 3);
	}
	/* Two launches with nothing between them but the program's own wait. */
	fill_in(h, 7);
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaDeviceSynchronize());
	check_out(h, 7, 3);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaFree(data));
	CUDA(cudaFreeHost(h.in));
	CUDA(cudaFreeHost(h.out));
}

static void host_functions(cudaStream_t stream)
{
	Host h = host_memory();
	cudaGraphExec_t exec;
	int *data;

	CUDA(cudaMalloc(&data, N * sizeof(int)));
	exec = captured(h, data, stream, true);
	for (int round = 1; round <= 5; round++) {
		fill_in(h, round);
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		CHECK_EQ(h.calls, round);
		check_out(h, round, 3);
	}
	for (int round = 0; round < 20; round++)
		CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaStreamSynchronize(stream));
	CHECK_EQ(h.calls, 25);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaFree(data));
}

struct Middle {
	int *out, *in;
	int wrong;
};

/* Sees what the graph has copied before it, and what it writes is what the graph copies next. */
static void CUDART_CB between(void *argument)
{
	Middle *m = (Middle *)argument;

	for (int i = 0; i < N; i++) {
		if (m->out[i] % 3)
			m->wrong++;
		m->in[i] = m->out[i] + 1;
	}
}

static void host_function_between(cudaStream_t stream)
{
	Host h = host_memory();
	static int pageable[N];
	Middle m = {};
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	int *data;

	CUDA(cudaMalloc(&data, N * sizeof(int)));
	CUDA(cudaMallocHost(&m.out, N * sizeof(int)));
	CUDA(cudaMallocHost(&m.in, N * sizeof(int)));
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CUDA(cudaMemcpyAsync(data, h.in, N * sizeof(int), cudaMemcpyHostToDevice, stream));
	scale<<<4, 256, 0, stream>>>(data, 3);
	LAUNCHED();
	CUDA(cudaMemcpyAsync(m.out, data, N * sizeof(int), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaLaunchHostFunc(stream, between, &m));
	CUDA(cudaMemcpyAsync(data, m.in, N * sizeof(int), cudaMemcpyHostToDevice, stream));
	CUDA(cudaMemcpyAsync(h.out, data, N * sizeof(int), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (int round = 0; round < 5; round++) {
		fill_in(h, 10 * round);
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		CHECK_EQ(m.wrong, 0);
		for (int i = 0; i < N; i++)
			CHECK_EQ_AT(i, h.out[i], 3 * (10 * round + i) + 1);
	}
	/* The same with much queued behind it. */
	fill_in(h, 7);
	CUDA(cudaGraphLaunch(exec, stream));
	for (int i = 0; i < 600; i++)
		CUDA(cudaMemcpyAsync(
			data, pageable, sizeof(pageable), cudaMemcpyHostToDevice, stream));
	CUDA(cudaStreamSynchronize(stream));
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, h.out[i], 3 * (7 + i) + 1);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaFree(data));
}

static void rows_and_fills(cudaStream_t stream)
{
	Host h = host_memory();
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	char *data;
	size_t pitch;
	unsigned char back[8][32];

	CUDA(cudaMallocPitch((void **)&data, &pitch, 32, 8));
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CUDA(cudaMemset2DAsync(data, pitch, 0x11, 32, 8, stream));
	CUDA(cudaMemcpy2DAsync(
		data + 8, pitch, h.rows, 16, 16, 4, cudaMemcpyHostToDevice, stream));
	CUDA(cudaMemsetAsync(data + 7 * pitch, 0x22, 32, stream));
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (int round = 0; round < 3; round++) {
		memset(h.rows, 0x40 + round, 64);
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		CUDA(cudaMemcpy2D(back, 32, data, pitch, 32, 8, cudaMemcpyDeviceToHost));
		for (int y = 0; y < 8; y++)
			for (int x = 0; x < 32; x++) {
				int want = y == 7                           ? 0x22
					   : y < 4 && x >= 8 && x < 24 ? 0x40 + round
									: 0x11;

				CHECK_EQ_AT(y * 32 + x, (int)back[y][x], want);
			}
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaFree(data));
}

/* The program's own memory, pinned or not: read and written at each launch. */
static void pageable(cudaStream_t stream)
{
	static int in[N], out[N];
	int *data, rows[4][8], back[4][4];
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	size_t nodes = 0;
	Host h = {};

	h.in = in;
	h.out = out;
	CUDA(cudaMalloc(&data, N * sizeof(int)));
	exec = captured(h, data, stream, false);
	for (int round = 0; round < 5; round++) {
		fill_in(h, 50 * round);
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		check_out(h, 50 * round, 3);
	}
	CUDA(cudaGraphExecDestroy(exec));

	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CUDA(cudaMemcpy2DAsync(
		data, 16, rows[0] + 2, 32, 16, 4, cudaMemcpyHostToDevice, stream));
	CUDA(cudaMemcpyAsync(back, data, sizeof(back), cudaMemcpyDefault, stream));
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphGetNodes(graph, NULL, &nodes));
	CHECK_EQ(nodes, 2);
	CUDA(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 32; i++)
			rows[i / 8][i % 8] = 100 * round + i;
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		for (int i = 0; i < 16; i++)
			CHECK_EQ_AT(i, back[i / 4][i % 4], 100 * round + i / 4 * 8 + i % 4 + 2);
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaFree(data));
}

struct Within {
	int *seen, *next;
};

static void CUDART_CB plus_one(void *argument)
{
	Within *w = (Within *)argument;

	for (int i = 0; i < N; i++)
		w->next[i] = w->seen[i] + 1;
}

/* From one place of the program's memory to another, pinned or not: read and written at each
 * launch, between the copies that come before and behind. */
static void within_the_program(cudaStream_t stream)
{
	static int in[N], seen[N], next[N], got[N], out[N];
	Host h = host_memory();
	Within w = {seen, next};
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaGraphNode_t nodes[8];
	size_t count = 8;
	int *data, memcpys = 0;

	CUDA(cudaMalloc(&data, N * sizeof(int)));
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CUDA(cudaMemcpyAsync(h.in, in, sizeof(in), cudaMemcpyHostToHost, stream));
	CUDA(cudaMemcpyAsync(data, h.in, sizeof(in), cudaMemcpyHostToDevice, stream));
	scale<<<4, 256, 0, stream>>>(data, 3);
	LAUNCHED();
	CUDA(cudaMemcpyAsync(h.out, data, sizeof(in), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaMemcpyAsync(seen, h.out, sizeof(in), cudaMemcpyHostToHost, stream));
	CUDA(cudaLaunchHostFunc(stream, plus_one, &w));
	CUDA(cudaMemcpy2DAsync(got, 40, next, 40, 40, N / 10, cudaMemcpyDefault, stream));
	CUDA(cudaMemcpyAsync(out, got, sizeof(in), cudaMemcpyHostToHost, stream));
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphGetNodes(graph, nodes, &count));
	CHECK_EQ(count, 8);
	for (size_t i = 0; i < count; i++) {
		cudaGraphNodeType type;

		CUDA(cudaGraphNodeGetType(nodes[i], &type));
		memcpys += type == cudaGraphNodeTypeMemcpy;
	}
	CHECK_EQ(memcpys, 6);
	CUDA(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < N; i++)
			in[i] = 10 * round + i;
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		for (int i = 0; i < N; i++)
			CHECK_EQ_AT(i, out[i], 3 * (10 * round + i) + 1);
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaFree(data));
}

/* The same as a node of the program's own. */
static void node_within_the_program(cudaStream_t stream)
{
	static int from[N], to[N];
	cudaMemcpy3DParms params;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaGraphNode_t node;

	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddMemcpyNode1D(
		&node, graph, NULL, 0, to, from, sizeof(to), cudaMemcpyHostToHost));
	CUDA(cudaGraphMemcpyNodeGetParams(node, &params));
	CHECK(params.srcPtr.ptr == from);
	CHECK(params.dstPtr.ptr == to);
	CHECK_EQ(params.extent.width, sizeof(to));
	CUDA(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < N; i++)
			from[i] = round + i;
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		for (int i = 0; i < N; i++)
			CHECK_EQ_AT(i, to[i], round + i);
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

/* A node tells its copy as it was described, and an executable graph's keeps to the kinds of
 * memory that it was described with. */
static void as_described()
{
	static int host[N];
	cudaMemcpy3DParms params = {}, zero = {};
	cudaGraph_t graph, clone;
	cudaGraphExec_t exec;
	cudaGraphNode_t node, other;
	int *data;

	CUDA(cudaMalloc(&data, N * sizeof(int)));
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddMemcpyNode1D(
		&node, graph, NULL, 0, data, host, sizeof(host), cudaMemcpyDefault));
	CUDA(cudaGraphClone(&clone, graph));
	CUDA(cudaGraphNodeFindInClone(&other, node, clone));
	for (int i = 0; i < 2; i++) {
		CUDA(cudaGraphMemcpyNodeGetParams(i ? other : node, &params));
		CHECK_EQ(params.kind, cudaMemcpyDefault);
		CHECK(params.srcPtr.ptr == host && params.dstPtr.ptr == data);
		CHECK(!params.srcPtr.pitch && !params.srcPtr.xsize && !params.srcPtr.ysize);
		CHECK(params.extent.width == sizeof(host) && params.extent.height == 1);
	}
	CUDA(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK_EQ(cudaGraphExecMemcpyNodeSetParams1D(
			 exec, node, data, host, sizeof(host), cudaMemcpyHostToDevice),
		cudaErrorInvalidValue);
	CUDA(cudaGraphExecMemcpyNodeSetParams1D(
		exec, node, data + 1, host, sizeof(int), cudaMemcpyDefault));
	CUDA(cudaGraphMemcpyNodeSetParams1D(
		node, data, host, sizeof(int), cudaMemcpyHostToDevice));
	CUDA(cudaGraphMemcpyNodeGetParams(node, &params));
	CHECK_EQ(params.kind, cudaMemcpyHostToDevice);
	/* Nothing that is copied nowhere. */
	zero.kind = (cudaMemcpyKind)77;
	CHECK_EQ(cudaGraphMemcpyNodeSetParams(node, &zero), cudaErrorInvalidValue);
	CHECK_EQ(cudaGraphMemcpyNodeSetParams1D(node, data, host, 4, zero.kind),
		cudaErrorInvalidMemcpyDirection);
	cudaGetLastError();
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(clone));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaFree(data));
}

/* A fill of one row stays one, and of several none of their sizes changes. */
static void fills_keep_rows()
{
	cudaMemsetParams fill = {};
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaGraphNode_t one, two;
	char *data;

	CUDA(cudaMalloc(&data, 256));
	fill.dst = data;
	fill.elementSize = 1;
	fill.width = fill.pitch = 16;
	fill.height = 1;
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddMemsetNode(&one, graph, NULL, 0, &fill));
	fill.height = 2;
	CUDA(cudaGraphAddMemsetNode(&two, graph, NULL, 0, &fill));
	CUDA(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	CUDA_IS(cudaErrorInvalidValue, cudaGraphExecMemsetNodeSetParams(exec, one, &fill));
	fill.value = 7;
	CUDA(cudaGraphExecMemsetNodeSetParams(exec, two, &fill));
	fill.width = 8;
	CUDA_IS(cudaErrorInvalidValue, cudaGraphExecMemsetNodeSetParams(exec, two, &fill));
	(void)cudaGetLastError();
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaFree(data));
}

/* The same executable graph on two streams: the second launch waits for the first. */
static void two_streams()
{
	Host h = host_memory();
	cudaStream_t one, two;
	cudaGraphExec_t exec;
	int *data;

	CUDA(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
	CUDA(cudaMalloc(&data, N * sizeof(int)));
	exec = captured(h, data, one, false);
	fill_in(h, 11);
	for (int round = 0; round < 20; round++)
		CUDA(cudaGraphLaunch(exec, round % 2 ? one : two));
	CUDA(cudaDeviceSynchronize());
	check_out(h, 11, 3);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaStreamDestroy(one));
	CUDA(cudaStreamDestroy(two));
}

int main()
{
	cudaStream_t stream;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	round_trips(stream);
	host_functions(stream);
	host_function_between(stream);
	rows_and_fills(stream);
	pageable(stream);
	within_the_program(stream);
	node_within_the_program(stream);
	as_described();
	fills_keep_rows();
	two_streams();
	CUDA(cudaStreamDestroy(stream));
	return 0;
}
