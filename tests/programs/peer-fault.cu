// SPDX-License-Identifier: Apache-2.0
/* A kernel that reads another GPU's memory without access to it ends as one that reads no memory
 * at all: before access is enabled and after it was disabled, of plain memory and of a pool. Each
 * in a process of its own. */
#include "check.h"

__global__ void read(int *to, const int *from)
{
	*to = *from;
}

static void pool_let(cudaMemAccessFlags flags)
{
	cudaMemAccessDesc desc = {{cudaMemLocationTypeDevice, 1}, flags};
	cudaMemPool_t pool;

	CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
	CUDA(cudaMemPoolSetAccess(pool, &desc, 1));
}

/* Device 1 has access to what device 0 has THERE, and has it no more. */
static void once(int *there, int *here, bool pool)
{
	if (pool)
		pool_let(cudaMemAccessFlagsProtReadWrite);
	else
		CUDA(cudaDeviceEnablePeerAccess(0, 0));
	read<<<1, 1>>>(here, there);
	CUDA(cudaDeviceSynchronize());
	if (pool)
		pool_let(cudaMemAccessFlagsProtNone);
	else
		CUDA(cudaDeviceDisablePeerAccess(0));
}

static int reads(bool enabled, bool pool)
{
	int *there, *here;

	CUDA(cudaSetDevice(0));
	if (pool)
		CUDA(cudaMallocAsync((void **)&there, 4096, 0));
	else
		CUDA(cudaMalloc(&there, 4096));
	CUDA(cudaMemset(there, 0, 4096));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaSetDevice(1));
	CUDA(cudaMalloc(&here, 4096));
	if (enabled)
		once(there, here, pool);
	read<<<1, 1>>>(here, there);
	CUDA_IS(cudaErrorIllegalAddress, cudaDeviceSynchronize());
	CUDA_IS(cudaErrorIllegalAddress, cudaDeviceSynchronize());
	return 0;
}

int main(int argc, char **argv)
{
	static const char *const ways[] = {"never", "disabled", "never a pool", "disabled a pool"};
	int count, can = 0;

	if (argc > 1)
		return reads(!strncmp(argv[1], "disabled", 8), strstr(argv[1], "pool"));
	CUDA(cudaGetDeviceCount(&count));
	if (count > 1)
		CUDA(cudaDeviceCanAccessPeer(&can, 1, 0));
	if (!can)
		SKIP("no two GPUs that reach each other's memory");
	for (int i = 0; i < 4; i++)
		CHECK_EQ_AT(i, wait_exit(start_self(ways[i])), 0);
	return 0;
}
