// SPDX-License-Identifier: Apache-2.0
/* A kernel and the host that wait for each other through mapped memory, both ways and in turn;
 * with arguments: how many turns (200). */
#include "check.h"

#include <time.h>

/* What a turn may take: far more than it does, far less than a test may. */
enum { PATIENCE_S = 30 };

struct box {
	volatile int to_kernel, from_kernel;
	int pad[14];
	volatile int question[16], answer[16];
};

static double now()
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void wait_for(volatile int *flag, int value)
{
	for (double until = now() + PATIENCE_S; *flag != value;)
		if (now() > until)
			FAIL("the kernel did not set the flag to %d: it is %d", value, *flag);
}

__global__ void wait_then_say(volatile int *flag, volatile int *said, int value)
{
	while (*flag != value)
		;
	*said = value;
}

__global__ void ping_pong(box *b, int turns)
{
	for (int turn = 1; turn <= turns; turn++) {
		while (b->to_kernel != turn)
			;
		__threadfence_system();
		for (int i = 0; i < 16; i++)
			b->answer[i] = b->question[i] * 3 + turn;
		__threadfence_system();
		b->from_kernel = turn;
	}
}

/* Many values, then the flag behind them. */
__global__ void fill_then_say(volatile int *data, int n, volatile int *flag)
{
	for (int i = threadIdx.x; i < n; i += blockDim.x)
		data[i] = 7 * i;
	__threadfence_system();
	__syncthreads();
	if (!threadIdx.x)
		*flag = 1;
}

static void host_sets_what_a_kernel_waits_for(cudaStream_t stream)
{
	volatile int *flags;

	CUDA(cudaHostAlloc((void **)&flags, 8192, cudaHostAllocMapped));
	flags[0] = flags[1024] = 0;
	wait_then_say<<<1, 1, 0, stream>>>(flags, flags + 1024, 5);
	LAUNCHED();
	usleep(20000);
	CHECK_EQ(flags[1024], 0);
	CUDA_IS(cudaErrorNotReady, cudaStreamQuery(stream));
	(void)cudaGetLastError();
	flags[0] = 5;
	wait_for(flags + 1024, 5); /* nobody synchronizes */
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaFreeHost((void *)flags));
}

static void in_turn(cudaStream_t stream, int turns)
{
	box *b;

	CUDA(cudaHostAlloc(&b, sizeof(*b), cudaHostAllocMapped));
	memset(b, 0, sizeof(*b));
	ping_pong<<<1, 1, 0, stream>>>(b, turns);
	LAUNCHED();
	double start = now();
	for (int turn = 1; turn <= turns; turn++) {
		for (int i = 0; i < 16; i++)
			b->question[i] = 1000 * turn + i * i + 2;
		__sync_synchronize();
		b->to_kernel = turn;
		wait_for(&b->from_kernel, turn);
		__sync_synchronize();
		for (int i = 0; i < 16; i++)
			CHECK_EQ_AT(i, b->answer[i], (1000 * turn + i * i + 2) * 3 + turn);
	}
	printf("%d turns, %.1f us each\n", turns, 1e6 * (now() - start) / turns);
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaFreeHost(b));
}

static void data_before_the_flag(cudaStream_t stream)
{
	const int n = 20000;
	volatile int *data, *flag;

	CUDA(cudaHostAlloc((void **)&flag, sizeof(*flag), cudaHostAllocMapped));
	CUDA(cudaHostAlloc((void **)&data, n * sizeof(*data), cudaHostAllocMapped));
	for (int round = 0; round < 5; round++) {
		*flag = 0;
		for (int i = 0; i < n; i++)
			data[i] = 0;
		fill_then_say<<<1, 128, 0, stream>>>(data, n, flag);
		LAUNCHED();
		wait_for(flag, 1);
		for (int i = 0; i < n; i++)
			CHECK_EQ_AT(i, data[i], 7 * i);
		CUDA(cudaStreamSynchronize(stream));
	}
	CUDA(cudaFreeHost((void *)data));
	CUDA(cudaFreeHost((void *)flag));
}

int main(int argc, char **argv)
{
	cudaDeviceProp properties;
	cudaStream_t stream;

	CUDA(cudaGetDeviceProperties(&properties, 0));
	if (!properties.canMapHostMemory)
		SKIP("the device maps no host memory");
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	host_sets_what_a_kernel_waits_for(stream);
	in_turn(stream, argc > 1 ? atoi(argv[1]) : 200);
	data_before_the_flag(stream);
	CUDA(cudaStreamDestroy(stream));
	printf("flags in mapped memory are right\n");
	return 0;
}
