// SPDX-License-Identifier: Apache-2.0
/* A copy from the host that CUDA calls synchronous is done when it returns, for another process
 * that has the memory, too: what one process is told by the other, through a pipe, is there,
 * though the GPU was busy when the copy was asked for. */
#include "check.h"

enum { N = 1 << 14, ROUNDS = 4, BUSY = 2000000 };

__global__ void busy(int *out, int turns)
{
	unsigned x = 1;

	for (int i = 0; i < turns; i++)
		x = x * 1664525 + i;
	*out = (int)x;
}

static int *junk, got[N], sent[N];

/* What TO then has is VALUE; the GPU has something to do before. */
static void put(int *to, int value, const int *source)
{
	for (int i = 0; i < N; i++)
		((int *)source)[i] = value + i;
	busy<<<1, 1>>>(junk, BUSY);
	CUDA(cudaMemcpy(to, source, N * sizeof(int), cudaMemcpyHostToDevice));
	copied();
}

static void expect(const int *from, int value, cudaStream_t stream)
{
	CUDA(cudaMemcpyAsync(got, from, N * sizeof(int), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamSynchronize(stream));
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, got[i], value + i);
}

static int child(cudaStream_t stream)
{
	cudaIpcMemHandle_t handle;
	int *there;
	char turn;

	CHECK(read(0, &handle, sizeof(handle)) == (ssize_t)sizeof(handle));
	CUDA(cudaIpcOpenMemHandle((void **)&there, handle, cudaIpcMemLazyEnablePeerAccess));
	/* What was copied before the memory was given away. */
	expect(there, 1000, stream);
	for (int round = 0; round < ROUNDS; round++) {
		CHECK(write(1, "r", 1) == 1);
		CHECK(read(0, &turn, 1) == 1);
		expect(there, round, stream);
		put(there, -round, sent);
	}
	CHECK(write(1, "r", 1) == 1);
	CHECK(read(0, &turn, 1) == 1);
	return 0;
}

int main(int argc, char **argv)
{
	int *values, *pinned;
	cudaIpcMemHandle_t handle;
	cudaStream_t stream;
	int in[2], out[2];
	char turn;
	pid_t pid;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaMalloc(&junk, sizeof(int)));
	busy<<<1, 1>>>(junk, 1);
	CUDA(cudaDeviceSynchronize());
	if (argc > 1)
		return child(stream);
	CUDA(cudaMallocHost(&pinned, N * sizeof(int)));
	CUDA(cudaMalloc(&values, N * sizeof(int)));
	CHECK(pipe(in) == 0 && pipe(out) == 0);
	pid = fork();
	if (!pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		close(out[0]);
		execl("/proc/self/exe", argv[0], "child", (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	put(values, 1000, sent);
	CUDA(cudaIpcGetMemHandle(&handle, values));
	CHECK(write(in[1], &handle, sizeof(handle)) == (ssize_t)sizeof(handle));
	CHECK(read(out[0], &turn, 1) == 1);
	for (int round = 0; round < ROUNDS; round++) {
		put(values, round, round & 1 ? pinned : sent);
		CHECK(write(in[1], "r", 1) == 1);
		CHECK(read(out[0], &turn, 1) == 1);
		expect(values, -round, stream);
	}
	CHECK(write(in[1], "r", 1) == 1);
	CHECK_EQ(wait_exit(pid), 0);
	CUDA(cudaFree(values));
	return 0;
}
