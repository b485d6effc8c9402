// SPDX-License-Identifier: Apache-2.0
/*
 * Between processes that use different GPUs: memory of the one, and an event of the other, which
 * the one asks for and has its streams wait for.
 */
#include "check.h"

static int in, out;


template <typename T> static void give(const T &value)
{
	CHECK(write(out, &value, sizeof(value)) == (ssize_t)sizeof(value));
}

template <typename T> static T take()
{
	T value;

	CHECK(read(in, &value, sizeof(value)) == (ssize_t)sizeof(value));
	return value;
}

__global__ void await_flag(volatile int *flag, int turn, int *data, int value)
{
	while (*flag < turn)
		;
	*data = value;
}

__global__ void step(int *data, int by, int more)
{
	*data = *data * by + more;
}

/* On GPU 1: writes to the other's memory when the other one says so, and records its event. */
static void child()
{
	int *data, *flag, *flag_there;
	cudaStream_t stream;
	cudaEvent_t event;
	cudaIpcEventHandle_t handle;

	CUDA(cudaSetDevice(1));
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaHostAlloc(&flag, sizeof(int), cudaHostAllocMapped));
	CUDA(cudaHostGetDevicePointer(&flag_there, flag, 0));
	*(volatile int *)flag = 0;
	cudaIpcMemHandle_t given = take<cudaIpcMemHandle_t>();
	CUDA(cudaIpcOpenMemHandle((void **)&data, given, cudaIpcMemLazyEnablePeerAccess));
	await_flag<<<1, 1, 0, stream>>>(flag_there, 0, data, 5);
	LAUNCHED();
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess));
	CUDA(cudaIpcGetEventHandle(&handle, event));
	for (int turn = 1; turn < 4; turn++) {
		await_flag<<<1, 1, 0, stream>>>(flag_there, turn, data, 10 * turn);
		LAUNCHED();
		CUDA(cudaEventRecord(event, stream));
		if (turn == 1)
			give(handle);
		else
			give('r');
		CHECK_EQ(take<char>(), 'g');
		*(volatile int *)flag = turn;
		CHECK_EQ(take<char>(), 'd');
		CUDA(cudaEventQuery(event));
	}
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaIpcCloseMemHandle(data));
	CUDA(cudaEventDestroy(event));
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaFreeHost(flag));
}

/* On GPU 0. */
static void parent()
{
	cudaStream_t stream;
	cudaEvent_t event;
	cudaIpcMemHandle_t handle;
	int *data, value;

	CUDA(cudaSetDevice(0));
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaMalloc(&data, sizeof(*data)));
	CUDA(cudaMemset(data, 0, sizeof(*data)));
	step<<<1, 1, 0, stream>>>(data, 1, 0); /* its first launch waits for an idle GPU */
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaIpcGetMemHandle(&handle, data));
	give(handle);
	CUDA(cudaIpcOpenEventHandle(&event, take<cudaIpcEventHandle_t>()));
	for (int turn = 1; turn < 4; turn++) {
		if (turn > 1)
			CHECK_EQ(take<char>(), 'r');
		CUDA_IS(cudaErrorNotReady, cudaEventQuery(event));
		CUDA(cudaStreamWaitEvent(stream, event, 0));
		step<<<1, 1, 0, stream>>>(data, 2, turn);
		LAUNCHED();
		CUDA_IS(cudaErrorNotReady, cudaStreamQuery(stream));
		give('g');
		CUDA(cudaEventSynchronize(event));
		CUDA(cudaEventQuery(event));
		CUDA(cudaMemcpyAsync(&value, data, sizeof(value), cudaMemcpyDeviceToHost, stream));
		CUDA(cudaStreamSynchronize(stream));
		CHECK_EQ(value, 20 * turn + turn);
		give('d');
	}
	CUDA(cudaEventDestroy(event));
	CUDA(cudaStreamDestroy(stream));
}

int main(int argc, char **argv)
{
	int there[2], back[2], devices = 0, can = 0;
	char argument[32];
	pid_t pid;

	if (argc > 1) {
		CHECK(sscanf(argv[1], "%d,%d", &in, &out) == 2);
		child();
		return 0;
	}
	CUDA(cudaGetDeviceCount(&devices));
	if (devices < 2)
		SKIP("needs two devices");
	CUDA(cudaDeviceCanAccessPeer(&can, 1, 0));
	if (!can)
		SKIP("device 1 does not reach device 0");
	alarm(50);
	CHECK(!pipe(there) && !pipe(back));
	snprintf(argument, sizeof(argument), "%d,%d", there[0], back[1]);
	pid = start_self(argument);
	in = back[0];
	out = there[1];
	parent();
	CHECK_EQ(wait_exit(pid), 0);
	printf("an event of another GPU was waited for\n");
	return 0;
}
