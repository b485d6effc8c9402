// SPDX-License-Identifier: Apache-2.0
/* Memory and events between processes: a child opens what its parent gave away, reads it and
 * writes to it, and the parent sees that; what nobody gave is not opened. */
#include "check.h"
#include "driver.h"

#include <vector>

enum { SMALL = 1000, LARGE = 3 << 20 };

struct gift {
	cudaIpcMemHandle_t small, beside, large, again;
	cudaIpcEventHandle_t event;
};

__global__ void add(int *data, int n, int by)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		data[i] += by;
}

static void expect(const int *device, int n, int by)
{
	std::vector<int> host(n);

	CUDA(cudaMemcpy(host.data(), device, n * sizeof(int), cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++)
		CHECK_EQ(host[i], i + by);
}

static int child()
{
	struct gift gift;
	cudaIpcMemHandle_t forged;
	int *small, *beside, *large, *again;
	cudaEvent_t event;
	CUcontext context;
	ENTRY(cuCtxGetCurrent);
	ENTRY(cuCtxRecordEvent);

	CHECK(read(0, &gift, sizeof(gift)) == (ssize_t)sizeof(gift));
	CUDA(cudaIpcOpenEventHandle(&event, gift.event));
	CUDA(cudaStreamWaitEvent(0, event, 0));
	CUDA(cudaIpcOpenMemHandle((void **)&small, gift.small, cudaIpcMemLazyEnablePeerAccess));
	CUDA(cudaIpcOpenMemHandle((void **)&beside, gift.beside, cudaIpcMemLazyEnablePeerAccess));
	CUDA(cudaIpcOpenMemHandle((void **)&large, gift.large, cudaIpcMemLazyEnablePeerAccess));
	CUDA(cudaIpcOpenMemHandle((void **)&again, gift.again, cudaIpcMemLazyEnablePeerAccess));
	CHECK(again == large);
	expect(small, SMALL, 1);
	expect(large, LARGE, 1);
	add<<<(SMALL + 255) / 256, 256>>>(small, SMALL, 10);
	add<<<(LARGE + 255) / 256, 256>>>(large, LARGE, 20);
	/* The parent waits for this recording, on its device, when it hears of it. */
	DRIVER(p_cuCtxGetCurrent(&context));
	DRIVER(p_cuCtxRecordEvent(context, event));
	CHECK(write(1, "r", 1) == 1);
	CHECK(read(0, &forged, 1) == 1);

	/* A name that nobody gave. */
	memset(&forged, 0x5a, sizeof(forged));
	CHECK(cudaIpcOpenMemHandle((void **)&again, forged, cudaIpcMemLazyEnablePeerAccess) !=
		cudaSuccess);
	(void)cudaGetLastError();

	/* What is opened is closed, not freed, as often as it was opened, and nothing beside it. */
	CUDA_IS(cudaErrorInvalidValue, cudaFree(large));
	CUDA_IS(cudaErrorInvalidValue, cudaFree(small));
	CUDA(cudaIpcCloseMemHandle(small));
	CUDA_IS(cudaErrorInvalidValue, cudaIpcCloseMemHandle(small));
	(void)cudaGetLastError();
	expect(beside, SMALL, 3);
	CUDA(cudaIpcCloseMemHandle(beside));
	CUDA(cudaIpcCloseMemHandle(large));
	CUDA(cudaIpcCloseMemHandle(large));
	CHECK(cudaIpcCloseMemHandle(large) != cudaSuccess);
	(void)cudaGetLastError();
	CUDA(cudaEventDestroy(event));
	return 0;
}

int main(int argc, char **argv)
{
	int to[2], from[2], status, *before, *small, *beside, *large, *own;
	const char *const command[] = {argv[0], "--child", NULL};
	struct gift gift;
	posix_spawn_file_actions_t actions;
	cudaEvent_t event;
	pid_t pid;
	char said;

	if (argc > 1)
		return child();
	CUDA(cudaMalloc((void **)&before, 4096)); /* so that the small one is not at a start */
	CUDA(cudaMalloc((void **)&small, SMALL * sizeof(int)));
	CUDA(cudaMalloc((void **)&beside, SMALL * sizeof(int)));
	CUDA(cudaMalloc((void **)&large, LARGE * sizeof(int)));
	std::vector<int> host(LARGE);
	for (int i = 0; i < LARGE; i++)
		host[i] = i;
	CUDA(cudaMemcpy(small, host.data(), SMALL * sizeof(int), cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy(beside, host.data(), SMALL * sizeof(int), cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy(large, host.data(), LARGE * sizeof(int), cudaMemcpyHostToDevice));
	CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess));
	CUDA(cudaEventRecord(event, 0)); /* as often as one likes before it is shared, and after */
	CUDA(cudaIpcGetEventHandle(&gift.event, event));
	add<<<(SMALL + 255) / 256, 256>>>(small, SMALL, 1);
	add<<<(SMALL + 255) / 256, 256>>>(beside, SMALL, 3);
	add<<<(LARGE + 255) / 256, 256>>>(large, LARGE, 1);
	CUDA(cudaEventRecord(event, 0));
	CUDA(cudaIpcGetMemHandle(&gift.small, small));
	CUDA(cudaIpcGetMemHandle(&gift.beside, beside));
	CUDA(cudaIpcGetMemHandle(&gift.large, large));
	CUDA_IS(cudaErrorDeviceUninitialized, cudaIpcOpenMemHandle((void **)&own, gift.small,
		cudaIpcMemLazyEnablePeerAccess));
	(void)cudaGetLastError();
	CUDA(cudaIpcGetMemHandle(&gift.again, large + 5));
	/* What was there is there. */
	expect(small, SMALL, 1);
	expect(large, LARGE, 1);

	CHECK(pipe(to) == 0 && pipe(from) == 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, to[0], 0);
	posix_spawn_file_actions_addclose(&actions, to[1]);
	posix_spawn_file_actions_adddup2(&actions, from[1], 1);
	posix_spawn_file_actions_addclose(&actions, from[0]);
	CHECK(posix_spawn(&pid, "/proc/self/exe", &actions, NULL, (char **)command, environ) ==
		0);
	close(to[0]);
	close(from[1]);
	CHECK(write(to[1], &gift, sizeof(gift)) == (ssize_t)sizeof(gift));
	CHECK(read(from[0], &said, 1) == 1);
	CUDA(cudaStreamWaitEvent(0, event, 0));
	CUDA(cudaMemcpyAsync(host.data(), large, LARGE * sizeof(int), cudaMemcpyDeviceToHost, 0));
	CUDA(cudaStreamSynchronize(0));
	for (int i = 0; i < LARGE; i++)
		CHECK_EQ(host[i], i + 21);
	CHECK(write(to[1], "d", 1) == 1);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
	expect(small, SMALL, 11);
	expect(large, LARGE, 21);
	CUDA(cudaFree(large));
	CUDA(cudaFree(small));
	CUDA(cudaFree(beside));
	CUDA(cudaFree(before));
	CUDA(cudaEventDestroy(event));
	return 0;
}
