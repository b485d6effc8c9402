// SPDX-License-Identifier: Apache-2.0
/* What is given to two devices by one process: pinned memory that both reach, a graph whose
 * nodes run on both, a variable that each has its own of, and calls about one while the other
 * one is current. */
#include "driver.h"

static const int N = 1024;

__device__ int variable;

__global__ void add_one(int *values)
{
	values[blockIdx.x * blockDim.x + threadIdx.x]++;
}

__global__ void add(int *to, const int *from)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	to[i] += from[i];
}

__global__ void set_variable(int value)
{
	variable = value;
}

static int *zeroes(int device)
{
	int *values;

	CUDA(cudaSetDevice(device));
	CUDA(cudaMalloc(&values, N * sizeof(int)));
	CUDA(cudaMemset(values, 0, N * sizeof(int)));
	CUDA(cudaDeviceSynchronize());
	return values;
}

static void check_all(const int *values, int want)
{
	static int got[N];

	CUDA(cudaMemcpy(got, values, sizeof(got), cudaMemcpyDefault));
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, got[i], want);
}

static void pinned_for_both()
{
	int *host, *here = zeroes(1);

	CUDA(cudaSetDevice(0));
	CUDA(cudaHostAlloc(&host, N * sizeof(int), cudaHostAllocMapped | cudaHostAllocPortable));
	for (int i = 0; i < N; i++)
		host[i] = 7;
	CUDA(cudaSetDevice(1));
	add<<<N / 256, 256>>>(here, host);
	add_one<<<N / 256, 256>>>(host);
	CUDA(cudaDeviceSynchronize());
	check_all(here, 7);
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, host[i], 8);
	CUDA(cudaSetDevice(0));
	add_one<<<N / 256, 256>>>(host);
	CUDA(cudaDeviceSynchronize());
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, host[i], 9);
	CUDA(cudaFreeHost(host));
	CUDA(cudaFree(here));
}

/* One on device 0, one on device 1 after it, a copy back, and one on device 0 after that. */
static void graph_on_both()
{
	cudaStream_t first, second;
	cudaEvent_t there, back;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	int *b = zeroes(1), *a = zeroes(0);
	const int launches = 3;

	CUDA(cudaSetDevice(1));
	CUDA(cudaStreamCreate(&second));
	CUDA(cudaEventCreateWithFlags(&back, cudaEventDisableTiming));
	CUDA(cudaSetDevice(0));
	CUDA(cudaStreamCreate(&first));
	CUDA(cudaEventCreateWithFlags(&there, cudaEventDisableTiming));
	CUDA(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
	add_one<<<N / 256, 256, 0, first>>>(a);
	CUDA(cudaEventRecord(there, first));
	CUDA(cudaStreamWaitEvent(second, there, 0));
	CUDA(cudaSetDevice(1));
	add_one<<<N / 256, 256, 0, second>>>(b);
	CUDA(cudaMemcpyAsync(a, b, N * sizeof(int), cudaMemcpyDefault, second));
	CUDA(cudaEventRecord(back, second));
	CUDA(cudaSetDevice(0));
	CUDA(cudaStreamWaitEvent(first, back, 0));
	add_one<<<N / 256, 256, 0, first>>>(a);
	CUDA(cudaStreamEndCapture(first, &graph));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < launches; i++)
		CUDA(cudaGraphLaunch(exec, first));
	CUDA(cudaStreamSynchronize(first));
	check_all(b, launches);
	check_all(a, launches + 1);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaFree(a));
	CUDA(cudaFree(b));
}

enum peer_way { FLAT, BOX, DRIVER_BOX, PEER_WAYS };

/* One row of N numbers, from A on device 0 to B on device 1. */
static cudaError_t peer_copy(enum peer_way way, int *b, int *a, cudaStream_t stream)
{
	ENTRY(cuMemcpy3DPeerAsync);
	ENTRY(cuPointerGetAttribute);
	const size_t bytes = N * sizeof(int);
	cudaMemcpy3DPeerParms box = {};
	CUDA_MEMCPY3D_PEER driver = {};

	box.srcPtr = make_cudaPitchedPtr(a, bytes, bytes, 1);
	box.dstPtr = make_cudaPitchedPtr(b, bytes, bytes, 1);
	box.dstDevice = 1;
	box.extent = make_cudaExtent(bytes, 1, 1);
	driver.srcMemoryType = driver.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	driver.srcDevice = (CUdeviceptr)a;
	driver.dstDevice = (CUdeviceptr)b;
	DRIVER(p_cuPointerGetAttribute(
		&driver.srcContext, CU_POINTER_ATTRIBUTE_CONTEXT, driver.srcDevice));
	DRIVER(p_cuPointerGetAttribute(
		&driver.dstContext, CU_POINTER_ATTRIBUTE_CONTEXT, driver.dstDevice));
	driver.WidthInBytes = driver.srcPitch = driver.dstPitch = bytes;
	driver.Height = driver.Depth = driver.srcHeight = driver.dstHeight = 1;
	switch (way) {
	case FLAT: return cudaMemcpyPeerAsync(b, 1, a, 0, bytes, stream);
	case BOX: return cudaMemcpy3DPeerAsync(&box, stream);
	/* The numbers are the runtime's, too. */
	default: return (cudaError_t)p_cuMemcpy3DPeerAsync(&driver, stream);
	}
}

/* What names devices is none of a graph's. */
static void peer_copy_captured(enum peer_way way)
{
	int *a = zeroes(0), *b = zeroes(1);
	cudaStream_t stream;
	cudaGraph_t graph;

	CUDA(cudaSetDevice(0));
	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	CUDA_IS(cudaErrorStreamCaptureUnsupported, peer_copy(way, b, a, stream));
	CUDA_IS(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
	cudaGetLastError();
	add_one<<<N / 256, 256, 0, stream>>>(a);
	CUDA(peer_copy(way, b, a, stream));
	CUDA(cudaStreamSynchronize(stream));
	check_all(b, 1);
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaFree(a));
	CUDA(cudaFree(b));
}

static void variable_of_each()
{
	int got;

	for (int device = 0; device < 2; device++) {
		CUDA(cudaSetDevice(device));
		set_variable<<<1, 1>>>(10 + device);
		CUDA(cudaDeviceSynchronize());
	}
	for (int device = 0; device < 2; device++) {
		CUDA(cudaSetDevice(device));
		CUDA(cudaMemcpyFromSymbol(&got, variable, sizeof(got)));
		CHECK_EQ(got, 10 + device);
	}
}

static void count(void *number)
{
	++*(int *)number;
}

/* Within the memory of a device that is not the current one, and to which it has no access. */
static void copies_within_the_other()
{
	int *from = zeroes(0), *to = zeroes(0);
	cudaStream_t stream;

	CUDA(cudaSetDevice(1));
	CUDA(cudaStreamCreate(&stream));
	for (int turn = 1; turn < 4; turn++) {
		CUDA(cudaSetDevice(0));
		CUDA(cudaMemset(from, turn, N * sizeof(int)));
		CUDA(cudaDeviceSynchronize());
		CUDA(cudaSetDevice(1));
		if (turn == 1)
			CUDA(cudaMemcpy(to, from, N * sizeof(int), cudaMemcpyDeviceToDevice));
		else if (turn == 2)
			CUDA(cudaMemcpyAsync(
				to, from, N * sizeof(int), cudaMemcpyDefault, stream));
		else
			CUDA(cudaMemcpy2DAsync(to, 64, from, 64, 64, N / 16,
				cudaMemcpyDeviceToDevice, stream));
		CUDA(cudaStreamSynchronize(stream));
		CUDA(cudaDeviceSynchronize());
		CUDA(cudaSetDevice(0));
		CUDA(cudaDeviceSynchronize());
		check_all(to, turn * 0x01010101);
	}
	CUDA(cudaSetDevice(1));
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaFree(from));
	CUDA(cudaFree(to));
}

static void about_the_other()
{
	int called = 0, *values = zeroes(1), *pooled;
	cudaStream_t stream;

	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMallocAsync((void **)&pooled, N * sizeof(int), stream));
	CUDA(cudaSetDevice(0));
	CUDA(cudaLaunchHostFunc(stream, count, &called));
	CUDA(cudaMemsetAsync(values, 1, N * sizeof(int), stream));
	CUDA(cudaStreamSynchronize(stream));
	CHECK_EQ(called, 1);
	check_all(values, 0x01010101);
	CUDA(cudaFreeAsync(pooled, stream));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaFree(values));
	CUDA(cudaStreamDestroy(stream));
}

int main()
{
	int devices;

	CUDA(cudaGetDeviceCount(&devices));
	if (devices < 2)
		SKIP("one device only");
	pinned_for_both();
	graph_on_both();
	for (int way = 0; way < PEER_WAYS; way++)
		peer_copy_captured((enum peer_way)way);
	variable_of_each();
	copies_within_the_other();
	about_the_other();
	return 0;
}
