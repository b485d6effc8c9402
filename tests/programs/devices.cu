// SPDX-License-Identifier: Apache-2.0
/* Streams, events and threads of two devices, as the programming guide says under "Multi-device
 * system": what must be of the current device and what need not be, one device that waits for
 * the other, and a thread for each that works while the other one does. */
#include "driver.h"

#include <pthread.h>

static const int N = 1 << 16;

__global__ void count_up(int *values, int first)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	values[i] = first + i;
}

__global__ void add_one(int *values)
{
	values[blockIdx.x * blockDim.x + threadIdx.x]++;
}

struct side {
	int device;
	cudaStream_t stream;
	cudaEvent_t event, timed;
	int *values;
};

static void side_open(struct side *side, int device)
{
	side->device = device;
	CUDA(cudaSetDevice(device));
	CUDA(cudaStreamCreateWithFlags(&side->stream, cudaStreamNonBlocking));
	CUDA(cudaEventCreateWithFlags(&side->event, cudaEventDisableTiming));
	CUDA(cudaEventCreate(&side->timed));
	CUDA(cudaMalloc(&side->values, N * sizeof(int)));
}

static void side_close(struct side *side)
{
	CUDA(cudaSetDevice(side->device));
	CUDA(cudaFree(side->values));
	CUDA(cudaEventDestroy(side->timed));
	CUDA(cudaEventDestroy(side->event));
	CUDA(cudaStreamDestroy(side->stream));
}

static void check_values(const struct side *side, int first)
{
	static int got[N];

	CUDA(cudaMemcpy(got, side->values, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, got[i], first + i);
}

/* What is asked of another device's stream or event while this one is current. */
static void whose(const struct side *a, const struct side *b)
{
	int device = -1;
	float ms;

	CUDA(cudaSetDevice(a->device));
	count_up<<<N / 256, 256, 0, b->stream>>>(b->values, 1);
	/* CUDA 13's runtime takes the kernel of the stream's device. */
	CUDA_IS(CUDART_VERSION < 13000 ? cudaErrorInvalidResourceHandle : cudaSuccess, cudaGetLastError());
	CUDA_IS(cudaErrorInvalidResourceHandle, cudaEventRecord(b->event, a->stream));
	CUDA_IS(cudaErrorInvalidResourceHandle, cudaEventRecord(a->event, b->stream));
	cudaGetLastError();
	CUDA(cudaMemsetAsync(b->values, 0, N * sizeof(int), b->stream));
	CUDA(cudaEventRecord(b->event, b->stream));
	CUDA(cudaEventSynchronize(b->event));
	CUDA(cudaEventQuery(b->event));
	CUDA(cudaStreamQuery(b->stream));
	CUDA(cudaStreamSynchronize(b->stream));
	CUDA(cudaEventRecord(a->timed, a->stream));
	CUDA(cudaEventRecord(b->timed, b->stream));
	CUDA(cudaEventSynchronize(a->timed));
	CUDA(cudaEventSynchronize(b->timed));
	CUDA_IS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, a->timed, b->timed));
	cudaGetLastError();
	CUDA(cudaGetDevice(&device));
	CHECK_EQ(device, a->device);
}

/* The numbers go to and fro; only events of the other device keep the order. */
static void in_turn(const struct side *a, const struct side *b)
{
	const int rounds = 20;

	CUDA(cudaSetDevice(a->device));
	count_up<<<N / 256, 256, 0, a->stream>>>(a->values, 5);
	for (int i = 0; i < rounds; i++) {
		const struct side *from = i % 2 ? b : a, *to = i % 2 ? a : b;

		CUDA(cudaEventRecord(from->event, from->stream));
		CUDA(cudaSetDevice(to->device));
		CUDA(cudaStreamWaitEvent(to->stream, from->event, 0));
		CUDA(cudaMemcpyPeerAsync(to->values, to->device, from->values, from->device,
			N * sizeof(int), to->stream));
		add_one<<<N / 256, 256, 0, to->stream>>>(to->values);
		LAUNCHED();
		/* The next round's source is not written before it was read. */
		CUDA(cudaEventRecord(to->event, to->stream));
		CUDA(cudaStreamWaitEvent(from->stream, to->event, 0));
	}
	CUDA(cudaStreamSynchronize(a->stream));
	check_values(a, 5 + rounds);
	check_values(b, 5 + rounds - 1);
}

struct worker {
	pthread_t thread;
	struct side side;
	int first;
};

static void *work(void *argument)
{
	struct worker *worker = (struct worker *)argument;
	int device = -1, *got = (int *)malloc(N * sizeof(int));

	/* A new thread begins on device 0, whatever others have set. */
	CUDA(cudaGetDevice(&device));
	CHECK_EQ(device, 0);
	side_open(&worker->side, worker->side.device);
	count_up<<<N / 256, 256, 0, worker->side.stream>>>(worker->side.values, worker->first);
	for (int i = 0; i < 50; i++) {
		add_one<<<N / 256, 256, 0, worker->side.stream>>>(worker->side.values);
		LAUNCHED();
		if (i % 10 == 0)
			CUDA(cudaStreamSynchronize(worker->side.stream));
	}
	CUDA(cudaMemcpyAsync(got, worker->side.values, N * sizeof(int), cudaMemcpyDeviceToHost,
		worker->side.stream));
	CUDA(cudaStreamSynchronize(worker->side.stream));
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, got[i], worker->first + 50 + i);
	CUDA(cudaGetDevice(&device));
	CHECK_EQ(device, worker->side.device);
	side_close(&worker->side);
	free(got);
	return NULL;
}

static void at_once(int count)
{
	struct worker workers[8] = {};

	CUDA(cudaSetDevice(1));
	for (int i = 0; i < 8; i++) {
		workers[i].side.device = i % count;
		workers[i].first = 1000 * i;
		CHECK(!pthread_create(&workers[i].thread, NULL, work, &workers[i]));
	}
	for (int i = 0; i < 8; i++)
		CHECK(!pthread_join(workers[i].thread, NULL));
}

/* A reset takes what the one device has, and nothing of the other's. */
static void reset_one(const struct side *kept)
{
	int *values;

	CUDA(cudaSetDevice(1 - kept->device));
	CUDA(cudaMalloc(&values, 4096));
	CUDA(cudaDeviceReset());
	CUDA(cudaSetDevice(kept->device));
	count_up<<<N / 256, 256, 0, kept->stream>>>(kept->values, 77);
	LAUNCHED();
	CUDA(cudaStreamSynchronize(kept->stream));
	check_values(kept, 77);
}

static const char library_text[] = R"(
.version 7.0
.target sm_52
.address_size 64
.visible .entry set_it(.param .u64 at, .param .u32 value)
{
	.reg .u64 %a;
	.reg .u32 %v;
	ld.param.u64 %a, [at];
	ld.param.u32 %v, [value];
	st.global.u32 [%a], %v;
	ret;
}
)";

/* A library's kernel is launched on the device of the stream, whichever is current; a function
 * belongs to its context. */
static void kernel_of_no_device(const struct side *side)
{
	ENTRY(cuLibraryLoadData);
	ENTRY(cuLibraryGetKernel);
	ENTRY(cuLibraryUnload);
	ENTRY(cuKernelGetFunction);
	ENTRY(cuLaunchKernel);
	ENTRY(cuLaunchKernelEx);
	ENTRY(cuLaunchCooperativeKernel);
	ENTRY(cuCtxGetDevice);
	int *there = side->values, value;
	cudaStream_t stream = side->stream;
	void *parameters[] = {&there, &value};
	CUlaunchConfig config = {};
	CUfunction function;
	CUlibrary library;
	CUdevice current;
	CUkernel kernel;

	CUDA(cudaSetDevice(0));
	DRIVER(p_cuLibraryLoadData(&library, library_text, NULL, NULL, 0, NULL, NULL, 0));
	DRIVER(p_cuLibraryGetKernel(&kernel, library, "set_it"));
	for (value = 1; value <= 3; value++) {
		int got = 0;

		config.gridDimX = config.gridDimY = config.gridDimZ = 1;
		config.blockDimX = config.blockDimY = config.blockDimZ = 1;
		config.hStream = stream;
		switch (value) {
		case 1:
			DRIVER(p_cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, stream,
				parameters, NULL));
			break;
		case 2:
			DRIVER(p_cuLaunchKernelEx(
				&config, (CUfunction)kernel, parameters, NULL));
			break;
		default:
			DRIVER(p_cuLaunchCooperativeKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1,
				0, stream, parameters));
		}
		DRIVER(p_cuCtxGetDevice(&current));
		CHECK_EQ(current, 0);
		CUDA(cudaStreamSynchronize(stream));
		CUDA(cudaMemcpy(&got, there, sizeof(got), cudaMemcpyDefault));
		CHECK_EQ(got, value);
	}
	DRIVER(p_cuKernelGetFunction(&function, kernel));
	DRIVER_IS(CUDA_ERROR_INVALID_HANDLE,
		p_cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
	DRIVER_IS(CUDA_ERROR_INVALID_HANDLE,
		p_cuLaunchKernelEx(&config, function, parameters, NULL));
	DRIVER_IS(CUDA_ERROR_INVALID_HANDLE,
		p_cuLaunchCooperativeKernel(
			function, 1, 1, 1, 1, 1, 1, 0, stream, parameters));
	DRIVER(p_cuLibraryUnload(library));
}

int main()
{
	struct side a, b;
	int count;

	CUDA(cudaGetDeviceCount(&count));
	if (count < 2)
		SKIP("one device only");
	side_open(&a, 0);
	side_open(&b, 1);
	whose(&a, &b);
	whose(&b, &a);
	in_turn(&a, &b);
	at_once(count);
	kernel_of_no_device(&b);
	side_close(&b);
	reset_one(&a);
	side_close(&a);
	return 0;
}
