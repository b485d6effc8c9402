// SPDX-License-Identifier: Apache-2.0
/* Does one thing N times, after having done it a few times: `steady THING N`.  What a thing costs
 * in round trips is the difference between two runs (roundtrips.py). */
#include "../programs/driver.h"

#include <unistd.h>

enum { BYTES = 4096, WARM = 20 };

__global__ void touch(int *data, int value)
{
	data[threadIdx.x] = value;
}

enum { PAGES = 1000, PAGE_WORDS = 1024 };
enum { SHARED = 1 << 20, WALKED = 16 << 20 };

/* What no coding makes shorter. */
__host__ __device__ static unsigned mixed(unsigned value)
{
	value = (value ^ value >> 16) * 0x7feb352du;
	value = (value ^ value >> 15) * 0x846ca68bu;
	return value ^ value >> 16;
}

__global__ void add_one(unsigned *words, size_t n)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		words[i]++;
}

/* Every page, but for the one that the host has written, which is as it says. */
__global__ void write_pages(unsigned *pages, int but, unsigned seed, unsigned *wrong)
{
	for (int page = blockIdx.x; page < PAGES; page += gridDim.x)
		for (int i = threadIdx.x; i < PAGE_WORDS; i += blockDim.x) {
			unsigned *word = &pages[page * PAGE_WORDS + i];

			if (page != but)
				*word = mixed(seed + page * PAGE_WORDS + i);
			else if (*word != mixed(~seed - i))
				*wrong = page + 1;
		}
}

struct state {
	cudaStream_t stream;
	unsigned *pages, *wrong;
	cudaEvent_t event, untimed, shared;
	int *device;
	int *pinned, *back, *mapped;
	cudaGraphExec_t graph;
	cudaArray_t array;
	int pageable[BYTES / 4];
};

static void launch(state *s, int i)
{
	touch<<<1, 32, 0, s->stream>>>(s->device, i);
	LAUNCHED();
}

static void malloc_free(state *, int)
{
	void *memory;

	CUDA(cudaMalloc(&memory, 10000));
	CUDA(cudaFree(memory));
}

static void malloc_async(state *s, int)
{
	void *memory;

	CUDA(cudaMallocAsync(&memory, 10000, s->stream));
	CUDA(cudaFreeAsync(memory, s->stream));
}

static void stream(state *, int)
{
	cudaStream_t created;

	CUDA(cudaStreamCreateWithFlags(&created, cudaStreamNonBlocking));
	CUDA(cudaStreamDestroy(created));
}

static void event(state *, int)
{
	cudaEvent_t created;

	CUDA(cudaEventCreateWithFlags(&created, cudaEventDisableTiming));
	CUDA(cudaEventDestroy(created));
}

static void record(state *s, int)
{
	CUDA(cudaEventRecord(s->event, s->stream));
	CUDA(cudaStreamWaitEvent(0, s->event, 0));
}

/* Of an event that another process may have: what it is told afterwards, by a pipe, holds. */
static void record_shared(state *s, int)
{
	CUDA(cudaEventRecord(s->shared, s->stream));
}

static void await_shared(state *s, int)
{
	CUDA(cudaStreamWaitEvent(s->stream, s->shared, 0));
}

static void query_shared(state *s, int)
{
	cudaError_t status = cudaEventQuery(s->shared);

	if (status != cudaErrorNotReady)
		CUDA(status);
}

static void record_context(state *s, int)
{
	static auto p_get = driver_entry<decltype(&cuCtxGetCurrent)>("cuCtxGetCurrent");
	static auto p_record = driver_entry<decltype(&cuCtxRecordEvent)>("cuCtxRecordEvent");
	static auto p_wait = driver_entry<decltype(&cuCtxWaitEvent)>("cuCtxWaitEvent");
	CUcontext context;

	DRIVER(p_get(&context));
	DRIVER(p_record(context, s->event));
	DRIVER(p_wait(context, s->event));
}

static void fill(state *s, int i)
{
	CUDA(cudaMemsetAsync(s->device, i, BYTES, s->stream));
}

static void copy_pageable(state *s, int i)
{
	s->pageable[0] = i;
	CUDA(cudaMemcpyAsync(s->device, s->pageable, BYTES, cudaMemcpyHostToDevice, s->stream));
}

static void copy_pinned(state *s, int)
{
	CUDA(cudaMemcpyAsync(s->device, s->pinned, BYTES, cudaMemcpyHostToDevice, s->stream));
}

/* Into an array, and out of it to device memory. */
static void copy_array(state *s, int i)
{
	s->pageable[0] = i;
	CUDA(cudaMemcpy2DToArrayAsync(s->array, 0, 0, s->pageable, 64, 64, BYTES / 64,
		cudaMemcpyHostToDevice, s->stream));
	CUDA(cudaMemcpy2DFromArrayAsync(s->device, 64, s->array, 0, 0, 64, BYTES / 64,
		cudaMemcpyDeviceToDevice, s->stream));
}

static void copy_batch(state *s, int i)
{
	void *dsts[] = {s->device, s->device + BYTES / 8};
	void *srcs[] = {s->pageable, s->pinned};
	size_t sizes[] = {BYTES / 2, BYTES / 2}, first = 0;
	cudaMemcpyAttributes attributes = {};

	s->pageable[0] = i;
	attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
#if CUDART_VERSION >= 13000
	CUDA(cudaMemcpyBatchAsync(
		dsts, (const void *const *)srcs, sizes, 2, &attributes, &first, 1, s->stream));
#else
	CUDA(cudaMemcpyBatchAsync(
		dsts, srcs, sizes, 2, &attributes, &first, 1, NULL, s->stream));
#endif
}

static void CUDART_CB take_a_while(void *)
{
	usleep(300000);
}

/* From pinned memory, while a host function is outstanding that the stream is not behind. */
static void copy_beside_function(state *s, int i)
{
	static cudaStream_t other;

	if (!other)
		CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	if (!i)
		CUDA(cudaLaunchHostFunc(other, take_a_while, NULL));
	CUDA(cudaMemcpyAsync(s->device, s->pinned, 64, cudaMemcpyHostToDevice, s->stream));
}

static void copy_on_device(state *s, int)
{
	CUDA(cudaMemcpyAsync(s->device, s->device + BYTES / 8, BYTES / 2,
		cudaMemcpyDeviceToDevice, s->stream));
}

static void copy_back_pinned(state *s, int)
{
	CUDA(cudaMemcpyAsync(s->pinned, s->device, BYTES, cudaMemcpyDeviceToHost, s->stream));
}

/* No kernel uses memory of the flag Mapped yet: to copies it is pinned memory like other. */
static void copy_mapped(state *s, int i)
{
	launch(s, i);
	CUDA(cudaMemcpyAsync(s->mapped, s->device, BYTES, cudaMemcpyDeviceToHost, s->stream));
	CUDA(cudaMemcpyAsync(s->device, s->back, BYTES, cudaMemcpyHostToDevice, s->stream));
}

/* The host reads one page of a thousand that a kernel has written, and writes another one. */
static void page(state *s, int turn)
{
	const unsigned seed = 77u * (unsigned)turn;
	const int read = 7 + turn * 389 % (PAGES - 7), write = (read + 531) % PAGES;

	if (!s->pages) {
		CUDA(cudaMallocManaged(&s->pages, PAGES * PAGE_WORDS * sizeof(unsigned)));
		CUDA(cudaMalloc(&s->wrong, sizeof(unsigned)));
		CUDA(cudaMemset(s->wrong, 0, sizeof(unsigned)));
	}
	for (unsigned i = 0; i < PAGE_WORDS; i++)
		s->pages[write * PAGE_WORDS + i] = mixed(~seed - i);
	write_pages<<<32, 128, 0, s->stream>>>(s->pages, write, seed, s->wrong);
	LAUNCHED();
	CUDA(cudaDeviceSynchronize());
	for (unsigned i = 0; i < PAGE_WORDS; i++)
		CHECK_EQ(s->pages[read * PAGE_WORDS + i], mixed(seed + read * PAGE_WORDS + i));
}

/* 1 MiB there and back: several connections have a share of it at once. */
static void shares(state *s, int i)
{
	static int *memory, *host;

	if (!host) {
		CUDA(cudaMalloc(&memory, SHARED));
		CUDA(cudaMallocHost(&host, SHARED));
	}
	for (size_t at = 0; at < SHARED / 4; at += 1021)
		host[at] = i + (int)at;
	CUDA(cudaMemcpyAsync(memory, host, SHARED, cudaMemcpyHostToDevice, s->stream));
	CUDA(cudaStreamSynchronize(s->stream));
	for (size_t at = 0; at < SHARED / 4; at += 1021)
		host[at] = -1;
	CUDA(cudaMemcpyAsync(host, memory, SHARED, cudaMemcpyDeviceToHost, s->stream));
	CUDA(cudaStreamSynchronize(s->stream));
	for (size_t at = 0; at < SHARED / 4; at += 1021)
		CHECK_EQ(host[at], i + (int)at);
}

/* The host reads all of 16 MiB that a kernel has written, page by page. */
static void walk(state *s, int turn)
{
	static unsigned *memory;

	if (!memory)
		CUDA(cudaMallocManaged(&memory, WALKED));
	for (size_t at = 0; at < WALKED / 4; at += PAGE_WORDS)
		memory[at] = (unsigned)(turn + at);
	add_one<<<64, 256, 0, s->stream>>>(memory, WALKED / 4);
	LAUNCHED();
	CUDA(cudaDeviceSynchronize());
	for (size_t at = 0; at < WALKED / 4; at += PAGE_WORDS)
		CHECK_EQ(memory[at], (unsigned)(turn + at) + 1);
}

static void ask(state *, int)
{
	int value;

	CUDA(cudaGetDevice(&value));
	CUDA(cudaSetDevice(value));
	CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
	CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&value, touch, 64, 0));
	CUDA(cudaGetLastError());
}

/* One of a few tensor maps, which a library makes anew for each launch. */
static void encode(state *s, int i)
{
	static ENTRY(cuTensorMapEncodeTiled);
	alignas(64) CUtensorMap map;
	cuuint64_t size[] = {16, 16}, pitch[] = {64};
	cuuint32_t side[] = {8, 8}, step[] = {1, 1};

	DRIVER(p_cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 2,
		s->device + i % 4 * 64, size, pitch, side, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
		CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
		CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
}

/* A setter that can be refused: awaited until the driver has taken it once. */
static void setting(state *, int i)
{
	CUDA(cudaDeviceSetCacheConfig(
		i % 2 ? cudaFuncCachePreferL1 : cudaFuncCachePreferShared));
}

static void synchronize(state *s, int i)
{
	launch(s, i);
	CUDA(cudaStreamSynchronize(s->stream));
}

static void wait_event(state *s, int i)
{
	launch(s, i);
	CUDA(cudaEventRecord(s->untimed, s->stream));
	CUDA(cudaEventSynchronize(s->untimed));
}

static void copy_back(state *s, int)
{
	CUDA(cudaMemcpy(s->pageable, s->device, BYTES, cudaMemcpyDeviceToHost));
}

/* As PyTorch's .item() does it: the copy to pageable memory has waited for the stream already.
 */
static void item(state *s, int i)
{
	launch(s, i);
	CUDA(cudaMemcpyAsync(s->pageable, s->device, 4, cudaMemcpyDeviceToHost, s->stream));
	CUDA(cudaStreamSynchronize(s->stream));
	CHECK_EQ(s->pageable[0], i);
}

/* A training step in small: copy in, launches, one number out. */
static void step(state *s, int i)
{
	copy_pinned(s, i);
	for (int j = 0; j < 5; j++)
		launch(s, i + j);
	CUDA(cudaMemcpyAsync(s->pinned, s->device, 4, cudaMemcpyDeviceToHost, s->stream));
	CUDA(cudaStreamSynchronize(s->stream));
	CHECK_EQ(s->pinned[0], i + 4);
}

static cudaGraphExec_t capture_once(state *s, bool copies)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CUDA(cudaStreamBeginCapture(s->stream, cudaStreamCaptureModeGlobal));
	if (copies)
		copy_pinned(s, 0);
	for (int i = 0; i < 5; i++)
		launch(s, i);
	if (copies)
		CUDA(cudaMemcpyAsync(s->back, s->device, 4, cudaMemcpyDeviceToHost, s->stream));
	CUDA(cudaStreamEndCapture(s->stream, &graph));
	CUDA(cudaGraphInstantiateWithFlags(
		&exec, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
	CUDA(cudaGraphDestroy(graph));
	return exec;
}

static void capture(state *s, int)
{
	CUDA(cudaGraphExecDestroy(capture_once(s, false)));
}

/* As XLA does where it captures a library's work: is there anything in it? */
static void capture_looked(state *s, int i)
{
	cudaGraph_t graph;
	size_t roots;

	CUDA(cudaStreamBeginCapture(s->stream, cudaStreamCaptureModeGlobal));
	launch(s, i);
	CUDA(cudaStreamEndCapture(s->stream, &graph));
	CUDA(cudaGraphGetRootNodes(graph, NULL, &roots));
	CHECK_EQ(roots, (size_t)1);
	CUDA(cudaGraphDestroy(graph));
}

/* As XLA does with a command buffer whose library calls were captured once for each set of
 * addresses: another child graph, then a launch. */
static void replay_child(state *s, int i)
{
	static cudaGraph_t children[2], graph;
	static cudaGraphNode_t node;

	for (int j = 0; j < 2 && !s->graph; j++) {
		size_t roots;

		CUDA(cudaStreamBeginCapture(s->stream, cudaStreamCaptureModeGlobal));
		for (int k = 0; k < 3; k++)
			launch(s, j);
		CUDA(cudaStreamEndCapture(s->stream, &children[j]));
		CUDA(cudaGraphGetRootNodes(children[j], NULL, &roots));
	}
	if (!s->graph) {
		CUDA(cudaGraphCreate(&graph, 0));
		CUDA(cudaGraphAddChildGraphNode(&node, graph, NULL, 0, children[0]));
		CUDA(cudaGraphInstantiate(&s->graph, graph, 0));
	}
	CUDA(cudaGraphExecChildGraphNodeSetParams(s->graph, node, children[i % 2]));
	CUDA(cudaGraphLaunch(s->graph, s->stream));
}

static void replay(state *s, int)
{
	if (!s->graph)
		s->graph = capture_once(s, false);
	CUDA(cudaGraphLaunch(s->graph, s->stream));
}

static void replay_copies(state *s, int)
{
	if (!s->graph)
		s->graph = capture_once(s, true);
	CUDA(cudaGraphLaunch(s->graph, s->stream));
}

/* A graph of 1 000 nodes. */
static void replay_large(state *s, int)
{
	cudaGraph_t graph;

	if (!s->graph) {
		CUDA(cudaStreamBeginCapture(s->stream, cudaStreamCaptureModeGlobal));
		for (int i = 0; i < 1000; i++)
			CUDA(cudaMemsetAsync(s->device, i, 4, s->stream));
		CUDA(cudaStreamEndCapture(s->stream, &graph));
		CUDA(cudaGraphInstantiateWithFlags(&s->graph, graph, 0));
		CUDA(cudaGraphDestroy(graph));
	}
	CUDA(cudaGraphLaunch(s->graph, s->stream));
}

/* 50 nodes of its own: adding them costs nothing, nor do memory and values in it. */
static void build(state *s, int)
{
	cudaMemsetParams fill = {};
	cudaGraphNode_t node, before;
	cudaGraph_t graph;
	void *memory;

	fill.dst = s->device;
	fill.elementSize = fill.width = fill.height = 1;
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddMemsetNode(&before, graph, NULL, 0, &fill));
	for (int i = 0; i < 50; i++, before = node)
		CUDA(cudaGraphAddMemsetNode(&node, graph, &before, 1, &fill));
	CUDA(cudaGraphDestroy(graph));
	/* Its end is the one round trip. */
	CUDA(cudaStreamBeginCapture(s->stream, cudaStreamCaptureModeGlobal));
	for (int i = 0; i < 20; i++) {
		CUDA(cudaMallocAsync(&memory, 1000, s->stream));
		CUDA(cudaMemsetAsync(memory, 0, 1000, s->stream));
		CUDA(cudaFreeAsync(memory, s->stream));
	}
	CUDA(cudaStreamEndCapture(s->stream, &graph));
	CUDA(cudaGraphDestroy(graph));
}

/* How much of the multiprocessor's memory a kernel prefers changes how many of its blocks run. */
static void ask_configured(state *, int i)
{
	int blocks;

	CUDA(cudaFuncSetCacheConfig(
		touch, i % 2 ? cudaFuncCachePreferL1 : cudaFuncCachePreferShared));
	CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, touch, 32, 0));
}

/* NVIDIA's driver looks into a module that is gone: what its kernel's node was given is known here,
 * and so is that it is no other node. */
static void read_unloaded(state *, int)
{
	ENTRY(cuGraphAddKernelNode);
	ENTRY(cuGraphClone);
	ENTRY(cuGraphCreate);
	ENTRY(cuGraphKernelNodeGetParams);
	ENTRY(cuGraphMemsetNodeGetParams);
	ENTRY(cuGraphNodeFindInClone);
	ENTRY(cuModuleGetFunction);
	ENTRY(cuModuleLoadData);
	ENTRY(cuModuleUnload);
	static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				   ".visible .entry gone()\n{ ret; }\n";
	static CUgraphNode node;
	CUDA_KERNEL_NODE_PARAMS read = {};
	CUDA_MEMSET_NODE_PARAMS fill;

	if (!node) {
		CUgraph graph, clone;
		CUmodule module;

		DRIVER(p_cuModuleLoadData(&module, text));
		DRIVER(p_cuModuleGetFunction(&read.func, module, "gone"));
		read.gridDimX = 3;
		read.gridDimY = read.gridDimZ = 1;
		read.blockDimX = read.blockDimY = read.blockDimZ = 1;
		DRIVER(p_cuGraphCreate(&graph, 0));
		DRIVER(p_cuGraphAddKernelNode(&node, graph, NULL, 0, &read));
		DRIVER(p_cuGraphClone(&clone, graph));
		DRIVER(p_cuGraphNodeFindInClone(&node, node, clone));
		DRIVER(p_cuModuleUnload(module));
	}
	DRIVER(p_cuGraphKernelNodeGetParams(node, &read));
	CHECK(!read.func && read.gridDimX == 3);
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuGraphMemsetNodeGetParams(node, &fill));
}

static const struct {
	const char *name;
	void (*run)(state *, int);
} things[] = {
	{"launch", launch},
	{"malloc_free", malloc_free},
	{"malloc_async", malloc_async},
	{"stream", stream},
	{"event", event},
	{"record", record},
	{"record_shared", record_shared},
	{"await_shared", await_shared},
	{"query_shared", query_shared},
	{"record_context", record_context},
	{"fill", fill},
	{"copy_pageable", copy_pageable},
	{"copy_pinned", copy_pinned},
	{"copy_array", copy_array},
	{"copy_batch", copy_batch},
	{"copy_beside_function", copy_beside_function},
	{"copy_on_device", copy_on_device},
	{"copy_back_pinned", copy_back_pinned},
	{"copy_mapped", copy_mapped},
	{"page", page},
	{"shares", shares},
	{"walk", walk},
	{"ask", ask},
	{"ask_configured", ask_configured},
	{"encode", encode},
	{"setting", setting},
	{"synchronize", synchronize},
	{"wait_event", wait_event},
	{"copy_back", copy_back},
	{"item", item},
	{"step", step},
	{"capture", capture},
	{"capture_looked", capture_looked},
	{"replay_child", replay_child},
	{"replay", replay},
	{"replay_copies", replay_copies},
	{"replay_large", replay_large},
	{"build", build},
	{"read_unloaded", read_unloaded},
};

int main(int argc, char **argv)
{
	cudaIpcEventHandle_t shared;
	state s = {};

	if (argc != 3)
		FAIL("usage: steady THING N");
	CUDA(cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking));
	CUDA(cudaEventCreate(&s.event));
	CUDA(cudaEventCreateWithFlags(&s.untimed, cudaEventDisableTiming));
	CUDA(cudaEventCreateWithFlags(
		&s.shared, cudaEventDisableTiming | cudaEventInterprocess));
	CUDA(cudaIpcGetEventHandle(&shared, s.shared));
	CUDA(cudaMalloc(&s.device, BYTES));
	CUDA(cudaMallocHost(&s.pinned, BYTES));
	CUDA(cudaMallocHost(&s.back, BYTES));
	CUDA(cudaHostAlloc((void **)&s.mapped, BYTES, cudaHostAllocMapped));
	cudaChannelFormatDesc ints = {32, 0, 0, 0, cudaChannelFormatKindSigned};
	CUDA(cudaMallocArray(&s.array, &ints, 16, BYTES / 64));
	for (const auto &thing : things) {
		if (strcmp(thing.name, argv[1]))
			continue;
		for (int i = 0; i < WARM; i++)
			thing.run(&s, i);
		CUDA(cudaDeviceSynchronize());
		for (int i = 0; i < atoi(argv[2]); i++)
			thing.run(&s, i);
		CUDA(cudaDeviceSynchronize());
		unsigned wrong = 0;
		if (s.wrong)
			CUDA(cudaMemcpy(&wrong, s.wrong, sizeof(wrong), cudaMemcpyDefault));
		CHECK_EQ(wrong, 0u);
		return 0;
	}
	FAIL("no thing '%s'", argv[1]);
}
