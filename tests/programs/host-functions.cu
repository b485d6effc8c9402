// SPDX-License-Identifier: Apache-2.0
/*
 * Host functions in a stream: they run in order, see what was copied before them, and what
 * they write in pinned memory is what a later copy sends.
 */
#include "check.h"

#include <atomic>

enum { N = 1024, ROUNDS = 20 };

__global__ void twice(int *data)
{
	data[threadIdx.x + blockIdx.x * blockDim.x] *= 2;
}

struct round_state {
	int *host; /* pinned */
	int round;
	int wrong;
};

static std::atomic<int> turn;

/* Between the copy out and the copy back in: checks and changes the numbers. */
static void CUDART_CB check_and_change(void *argument)
{
	round_state *state = (round_state *)argument;

	if (turn.fetch_add(1) != state->round)
		state->wrong++;
	for (int i = 0; i < N; i++) {
		if (state->host[i] != 2 * (i + state->round))
			state->wrong++;
		state->host[i] = i + state->round + 1;
	}
}

struct callback_state {
	cudaStream_t stream;
	std::atomic<int> calls;
	int wrong;
};

static void CUDART_CB called_back(cudaStream_t stream, cudaError_t status, void *argument)
{
	callback_state *state = (callback_state *)argument;

	if (stream != state->stream || status != cudaSuccess)
		state->wrong++;
	state->calls++;
}

int main()
{
	cudaStream_t stream;
	round_state rounds[ROUNDS] = {};
	int *host, *device;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaMallocHost(&host, N * sizeof(int)));
	CUDA(cudaMalloc(&device, N * sizeof(int)));
	for (int i = 0; i < N; i++)
		host[i] = i;

	/* All queued at once: the host functions alone carry the numbers from round to round. */
	for (int i = 0; i < ROUNDS; i++) {
		rounds[i].host = host;
		rounds[i].round = i;
		CUDA(cudaMemcpyAsync(
			device, host, N * sizeof(int), cudaMemcpyHostToDevice, stream));
		twice<<<N / 256, 256, 0, stream>>>(device);
		CUDA(cudaMemcpyAsync(
			host, device, N * sizeof(int), cudaMemcpyDeviceToHost, stream));
		CUDA(cudaLaunchHostFunc(stream, check_and_change, &rounds[i]));
	}
	CUDA(cudaStreamSynchronize(stream));
	CHECK_EQ(turn.load(), (int)ROUNDS);
	for (int i = 0; i < ROUNDS; i++)
		CHECK_EQ_AT(i, rounds[i].wrong, 0);
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, host[i], i + ROUNDS);

	callback_state state = {stream, {0}, 0};
	for (int i = 0; i < 5; i++)
		CUDA(cudaStreamAddCallback(stream, called_back, &state, 0));
	CUDA(cudaDeviceSynchronize());
	CHECK_EQ(state.calls.load(), 5);
	CHECK_EQ(state.wrong, 0);

	/* The default stream too. */
	state.stream = 0;
	CUDA(cudaStreamAddCallback(0, called_back, &state, 0));
	CUDA(cudaStreamSynchronize(0));
	CHECK_EQ(state.calls.load(), 6);
	CHECK_EQ(state.wrong, 0);

	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaFreeHost(host));
	CUDA(cudaFree(device));
	printf("host functions ran in order\n");
	return 0;
}
