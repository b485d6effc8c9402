// SPDX-License-Identifier: Apache-2.0
/* Memory that graphs allocate of other kinds than the device's own: managed memory, by nodes and captured from pools, is
 * used by kernels and copies between the nodes; each other kind is refused as an H200's driver refuses it. */
#include "driver.h"

#include <vector>

enum { COUNT = 5000 };

__global__ void put(int *p, int n, int value)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		p[i] = i + value;
}

__global__ void add(int *to, const int *from, int n)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		to[i] += from[i];
}

#if CUDA_VERSION >= 13000
static CUDA_MEM_ALLOC_NODE_PARAMS managed_params()
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {};

	params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
	params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	params.bytesize = COUNT * sizeof(int);
	return params;
}

static CUgraphNode kernel_node(cudaGraph_t graph, CUgraphNode after, void *kernel, void **args)
{
	cudaKernelNodeParams params = {};
	cudaGraphNode_t node;

	params.func = kernel;
	params.gridDim = dim3(8);
	params.blockDim = dim3(128);
	params.kernelParams = args;
	CUDA(cudaGraphAddKernelNode(&node, graph, (cudaGraphNode_t *)&after, after ? 1 : 0, &params));
	return node;
}

/* It is the graph's until it is freed outside of it, and kernels and copies use it until then. The
 * host does not read it: an H200's driver gives the host no access to it (SIGSEGV). */
static void is_a_nodes()
{
	ENTRY(cuGraphAddMemAllocNode);
	ENTRY(cuGraphMemAllocNodeGetParams);
	ENTRY(cuMemFreeAsync);
	CUDA_MEM_ALLOC_NODE_PARAMS params = managed_params(), told = {};
	std::vector<int> back(COUNT);
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	CUgraphNode alloc;
	int n = COUNT, value = 7, *p;
	void *args[] = {&p, &n, &value};

	CUDA(cudaGraphCreate(&graph, 0));
	DRIVER(p_cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params));
	CHECK(params.dptr != 0);
	DRIVER(p_cuGraphMemAllocNodeGetParams(alloc, &told));
	CHECK_EQ((int)told.poolProps.allocType, (int)CU_MEM_ALLOCATION_TYPE_MANAGED);
	CHECK(told.dptr == params.dptr && told.bytesize == params.bytesize);
	p = (int *)params.dptr;
	kernel_node(graph, alloc, (void *)put, args);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int turn = 0; turn < 3; turn++) {
		CUDA(cudaGraphLaunch(exec, 0));
		CUDA(cudaDeviceSynchronize());
		CUDA(cudaMemcpy(back.data(), p, COUNT * sizeof(int), cudaMemcpyDefault));
		for (int i = 0; i < COUNT; i++) {
			CHECK_EQ_AT(i, back[i], i + 7);
			back[i] = 3 * i;
		}
		CUDA(cudaMemcpy(p, back.data(), COUNT * sizeof(int), cudaMemcpyDefault));
		put<<<8, 128>>>(p, 1, 5);
		LAUNCHED();
		CUDA(cudaMemcpy(back.data(), p, COUNT * sizeof(int), cudaMemcpyDefault));
		CHECK_EQ(back[0], 5);
		for (int i = 1; i < COUNT; i++)
			CHECK_EQ_AT(i, back[i], 3 * i);
		/* Allocated still. */
		CUDA_IS(cudaErrorInvalidValue, cudaGraphLaunch(exec, 0));
		(void)cudaGetLastError();
		DRIVER(p_cuMemFreeAsync((CUdeviceptr)p, 0));
	}
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

/* From a pool, and freed in the graph. */
static void is_captured()
{
	cudaMemPoolProps props = {};
	cudaStream_t stream;
	cudaGraphExec_t exec;
	cudaMemPool_t pool;
	cudaGraph_t graph;
	std::vector<int> back(COUNT);
	int *sum, *p, *q;

	props.allocType = cudaMemAllocationTypeManaged;
	props.location.type = cudaMemLocationTypeDevice;
	CUDA(cudaMemPoolCreate(&pool, &props));
	CUDA(cudaMallocManaged(&sum, COUNT * sizeof(int)));
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CUDA(cudaMallocFromPoolAsync((void **)&p, COUNT * sizeof(int), pool, stream));
	put<<<8, 128, 0, stream>>>(p, COUNT, 1);
	add<<<8, 128, 0, stream>>>(sum, p, COUNT);
	CUDA(cudaFreeAsync(p, stream));
	CUDA(cudaMallocFromPoolAsync((void **)&q, COUNT * sizeof(int), pool, stream));
	put<<<8, 128, 0, stream>>>(q, COUNT, 2);
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < COUNT; i++)
		sum[i] = 0;
	for (int turn = 1; turn < 4; turn++) {
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		CUDA(cudaMemcpy(back.data(), q, COUNT * sizeof(int), cudaMemcpyDefault));
		for (int i = 0; i < COUNT; i++) {
			CHECK_EQ_AT(i, sum[i], turn * (i + 1));
			CHECK_EQ_AT(i, back[i], i + 2);
		}
		CUDA(cudaFree(q));
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaFree(sum));
	CUDA(cudaMemPoolDestroy(pool));
}
#endif

/* As an H200's driver answered on 2026-11-30. What was given has to work. */
static void asked(const char *what, int type, int location, int id, int expected)
{
	ENTRY(cuGraphAddMemAllocNode);
	CUDA_MEM_ALLOC_NODE_PARAMS params = {};
	cudaGraph_t graph;
	CUgraphNode node;
	CUresult status;

	params.poolProps.allocType = (CUmemAllocationType)type;
	params.poolProps.location.type = (CUmemLocationType)location;
	params.poolProps.location.id = id;
	params.bytesize = 4096;
	CUDA(cudaGraphCreate(&graph, 0));
	status = p_cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params);
	if (status != expected)
		FAIL("node that allocates %s: %d, not %d", what, (int)status, expected);
	CHECK(status || params.dptr);
	CUDA(cudaGraphDestroy(graph));
}

static void asked_captured(const char *what, int type, int location, int expected)
{
	ENTRY(cuMemPoolCreate);
	ENTRY(cuMemAllocFromPoolAsync);
	CUmemPoolProps props = {};
	CUmemoryPool pool;
	CUdeviceptr p = 0;
	cudaStream_t stream;
	cudaGraph_t graph = NULL;
	CUresult status;

	props.allocType = (CUmemAllocationType)type;
	props.location.type = (CUmemLocationType)location;
	status = p_cuMemPoolCreate(&pool, &props);
	DRIVER(status);
	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	status = p_cuMemAllocFromPoolAsync(&p, 4096, pool, stream);
	if (status != expected)
		FAIL("captured from a pool of %s: %d, not %d", what, (int)status, expected);
	CHECK(!status == !!p);
	if (p)
		put<<<1, 32, 0, stream>>>((int *)p, 32, 9);
	if (p)
		CUDA(cudaFreeAsync((void *)p, stream));
	CUDA(cudaStreamEndCapture(stream, &graph));
	if (p && graph) {
		cudaGraphExec_t exec;

		CUDA(cudaGraphInstantiate(&exec, graph, 0));
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		CUDA(cudaGraphExecDestroy(exec));
	}
	if (graph)
		CUDA(cudaGraphDestroy(graph));
	(void)cudaGetLastError();
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaMemPoolDestroy((cudaMemPool_t)pool));
}

int main()
{
	const int pinned = 1, managed = 2, none = 0, device = 1, host = 2, numa = 3, current = 4;

	int served = 0;

	CUDA(cudaFree(0));
	CUDA(cudaDeviceGetAttribute(&served, cudaDevAttrManagedMemory, 0));
	asked("pinned memory, HOST", pinned, host, 0, 801);
	asked("pinned memory, HOST_NUMA", pinned, numa, 0, 801);
	asked("pinned memory, HOST_NUMA_CURRENT", pinned, current, 0, 1);
	asked("memory of device 99", pinned, device, 99, 1);
	asked("memory of no type", 0, device, 0, 1);
	asked_captured("pinned memory, HOST", pinned, host, 801);
	asked_captured("pinned memory, HOST_NUMA", pinned, numa, 801);
	if (!served)
		return 0;
	asked("managed memory, no location", managed, none, 0, 801);
	asked("managed memory, DEVICE", managed, device, 0, 0);
	asked("managed memory, HOST", managed, host, 0, 801);
	asked("managed memory, HOST_NUMA", managed, numa, 0, 801);
	asked_captured("managed memory, no location", managed, none, 1);
	asked_captured("managed memory, HOST", managed, host, 801);
	asked_captured("managed memory, DEVICE", managed, device, 0);
#if CUDA_VERSION >= 13000
	is_a_nodes();
	is_captured();
#endif
	return 0;
}
