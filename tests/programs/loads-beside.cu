// SPDX-License-Identifier: Apache-2.0
/*
 * A module is loaded while a kernel waits for one on another GPU that another thread has yet to
 * launch, as barriers between GPUs do: the driver may wait for the kernel in there, and the other
 * thread goes on.
 */
#include "driver.h"

#include <string>
#include <thread>
#include <unistd.h>

enum { SECONDS = 60 };

static __global__ void wait_for(volatile int *flag, int *came)
{
	while (!*flag)
		;
	*came = 1;
}

static __global__ void raise(volatile int *flag)
{
	*flag = 1;
}

static void load(CUmodule *module, const std::string &text)
{
	ENTRY(cuModuleLoadData);

	CUDA(cudaSetDevice(0));
	DRIVER(p_cuModuleLoadData(module, text.c_str()));
}

/* With NVIDIA's own driver calls of other threads may wait while a load waits. */
static bool would_hang()
{
	const char *preload = getenv("LD_PRELOAD");

	return !(preload && strstr(preload, "vcuda"));
}

int main()
{
	ENTRY(cuModuleUnload);
	const std::string text = ".version 7.0\n.target sm_70\n.address_size 64\n"
				 "// " + std::to_string(getpid()) + "\n"
				 ".visible .entry nothing() { ret; }\n";
	cudaStream_t waits, raises;
	CUmodule module;
	int *flag, *came, got = 0, devices;

	if (would_hang()) {
		printf("not done: natively other threads' calls may wait for the load\n");
		return 0;
	}
	CUDA(cudaGetDeviceCount(&devices));
	if (devices < 2) {
		printf("needs two devices\n");
		return 77;
	}
	alarm(SECONDS); /* where it hangs */
	CUDA(cudaSetDevice(1));
	CUDA(cudaDeviceEnablePeerAccess(0, 0));
	CUDA(cudaStreamCreateWithFlags(&raises, cudaStreamNonBlocking));
	CUDA(cudaSetDevice(0));
	CUDA(cudaStreamCreateWithFlags(&waits, cudaStreamNonBlocking));
	CUDA(cudaMalloc(&flag, sizeof(*flag)));
	CUDA(cudaMalloc(&came, sizeof(*came)));
	/* Both kernels are loaded before one waits. */
	CUDA(cudaSetDevice(1));
	raise<<<1, 1, 0, raises>>>(flag);
	CUDA(cudaStreamSynchronize(raises));
	CUDA(cudaSetDevice(0));
	wait_for<<<1, 1, 0, waits>>>(flag, came);
	CUDA(cudaMemsetAsync(flag, 0, sizeof(*flag), waits));
	CUDA(cudaMemsetAsync(came, 0, sizeof(*came), waits));
	CUDA(cudaStreamSynchronize(waits));
	wait_for<<<1, 1, 0, waits>>>(flag, came);
	std::thread loading([&] { load(&module, text); });
	usleep(300000); /* the load is on its way behind the kernel */
	CUDA(cudaSetDevice(1));
	raise<<<1, 1, 0, raises>>>(flag);
	CUDA(cudaSetDevice(0));
	loading.join();
	CUDA(cudaMemcpyAsync(&got, came, sizeof(got), cudaMemcpyDeviceToHost, waits));
	CUDA(cudaStreamSynchronize(waits));
	CHECK_EQ(got, 1);
	DRIVER(p_cuModuleUnload(module));
	CUDA(cudaFree(came));
	CUDA(cudaFree(flag));
	CUDA(cudaStreamDestroy(raises));
	CUDA(cudaStreamDestroy(waits));
	printf("a module was loaded while a kernel waited for another GPU's\n");
	return 0;
}
