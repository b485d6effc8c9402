// SPDX-License-Identifier: Apache-2.0
/* Contexts by the driver API: created, pushed, popped, current by thread, primary ones counted. */
#include "driver.h"

#include <dlfcn.h>

#include <thread>

static CUcontext create(CUdevice device, unsigned flags)
{
	CUcontext context = NULL;

#if CUDA_VERSION >= 13000
	DRIVER(cuCtxCreate(&context, NULL, flags, device));
#else
	DRIVER(cuCtxCreate(&context, flags, device));
#endif
	CHECK(context != NULL);
	return context;
}

static CUcontext current()
{
	CUcontext context = NULL;

	DRIVER(cuCtxGetCurrent(&context));
	return context;
}

static void write_and_read(int value)
{
	CUdeviceptr memory;
	int got[64];

	DRIVER(cuMemAlloc(&memory, sizeof(got)));
	DRIVER(cuMemsetD32(memory, (unsigned)value, 64));
	DRIVER(cuMemcpyDtoH(got, memory, sizeof(got)));
	for (int i = 0; i < 64; i++)
		CHECK_EQ_AT(i, got[i], value);
	DRIVER(cuMemFree(memory));
}

static void primary(CUdevice device)
{
	CUcontext context, again;
	unsigned flags;
	int active = -1;

	DRIVER(cuDevicePrimaryCtxGetState(device, &flags, &active));
	CHECK_EQ(active, 0);
	DRIVER(cuDevicePrimaryCtxRetain(&context, device));
	DRIVER(cuDevicePrimaryCtxRetain(&again, device));
	CHECK(context == again);
	DRIVER(cuDevicePrimaryCtxGetState(device, &flags, &active));
	CHECK_EQ(active, 1);
	DRIVER(cuDevicePrimaryCtxRelease(device));
	DRIVER(cuCtxSetCurrent(context));
	write_and_read(5);

	/* The runtime uses this very context. */
	CUDA(cudaFree(0));
	CHECK(current() == context);
	DRIVER(cuCtxSetCurrent(NULL));
	CUDA(cudaSetDevice(0));
	CUDA(cudaFree(0));
	CHECK(current() == context);

	/* A context's flags are its own, and the device's those that its next one begins with. */
	ENTRY(cuCtxSetFlags);
	DRIVER(p_cuCtxSetFlags(CU_CTX_SCHED_SPIN));
	DRIVER(cuCtxGetFlags(&flags));
	CHECK_EQ(flags & CU_CTX_SCHED_MASK, (unsigned)CU_CTX_SCHED_SPIN);
	DRIVER(cuDevicePrimaryCtxGetState(device, &flags, &active));
	CHECK_EQ(flags & CU_CTX_SCHED_MASK, 0u);
	CUDA(cudaSetDeviceFlags(cudaDeviceScheduleYield));
	DRIVER(cuCtxGetFlags(&flags));
	CHECK_EQ(flags & CU_CTX_SCHED_MASK, (unsigned)CU_CTX_SCHED_YIELD);

	/* What is about primary contexts, with another one current. */
	again = create(device, 0);
	CUDA_IS(cudaErrorIncompatibleDriverContext, cudaSetDeviceFlags(0));
	CUDA_IS(cudaErrorIncompatibleDriverContext, cudaDeviceEnablePeerAccess(99, 1));
	CUDA_IS(cudaErrorIncompatibleDriverContext, cudaDeviceDisablePeerAccess(0));
	(void)cudaGetLastError();
	DRIVER(cuCtxDestroy(again));
	DRIVER(cuDevicePrimaryCtxRelease(device));
}

/* The first version of push takes back what that of pop gave, once, if the thread has it no more. */
static void given_back(CUdevice device)
{
	auto push = (decltype(&cuCtxPushCurrent))dlsym(RTLD_DEFAULT, "cuCtxPushCurrent");
	auto pop = (decltype(&cuCtxPopCurrent))dlsym(RTLD_DEFAULT, "cuCtxPopCurrent");
	CUcontext context = create(device, 0), popped = NULL;

	CHECK(push && pop);
	DRIVER(cuCtxPushCurrent(context));
	DRIVER_IS(CUDA_ERROR_INVALID_CONTEXT, push(context));
	DRIVER(pop(&popped));
	CHECK(popped == context);
	DRIVER_IS(CUDA_ERROR_INVALID_CONTEXT, push(context));
	DRIVER(pop(&popped));
	CHECK(popped == context);
	DRIVER(push(context));
	DRIVER_IS(CUDA_ERROR_INVALID_CONTEXT, push(context));
	DRIVER(cuCtxPopCurrent(&popped));
	DRIVER(cuCtxDestroy(context));
}

int main()
{
	CUdevice device, got_device;
	CUcontext a, b, popped;
	CUdeviceptr memory;
	unsigned flags = 0, version = 0;

	CUcontext none = (CUcontext)&device;
	DRIVER_IS(CUDA_ERROR_NOT_INITIALIZED, cuCtxGetCurrent(&none));
	DRIVER_IS(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGet(&device, 0));
	/* Some look at what they are given first. */
	CUmodule module;
	auto module_of = (decltype(&cuLibraryGetModule))dlsym(RTLD_DEFAULT, "cuLibraryGetModule");
	CHECK(module_of != NULL);
	DRIVER_IS(CUDA_ERROR_INVALID_HANDLE, module_of(&module, NULL));
	CUipcEventHandle shared;
	auto share = (decltype(&cuIpcGetEventHandle))dlsym(RTLD_DEFAULT, "cuIpcGetEventHandle");
	CHECK(share != NULL);
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, share(&shared, NULL));
	DRIVER(cuInit(0));
	DRIVER(cuDeviceGet(&device, 0));
	CHECK(current() == NULL);
	DRIVER_IS(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&memory, 16));
	DRIVER_IS(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetDevice(&got_device));

	/* The newest is on top of the stack. */
	a = create(device, CU_CTX_SCHED_BLOCKING_SYNC);
	CHECK(current() == a);
	b = create(device, 0);
	CHECK(current() == b && a != b);
	write_and_read(1);
	DRIVER(cuCtxPopCurrent(&popped));
	CHECK(popped == b && current() == a);
	DRIVER(cuCtxGetDevice(&got_device));
	CHECK_EQ(got_device, device);
	DRIVER(cuCtxGetFlags(&flags));
	CHECK(flags & CU_CTX_SCHED_BLOCKING_SYNC);
	DRIVER(cuCtxGetApiVersion(a, &version));
	CHECK(version >= 3020);
	write_and_read(2);
	DRIVER(cuCtxPushCurrent(b));
	CHECK(current() == b);

	/* Another thread starts with none and does not change ours. */
	std::thread([&] {
		CHECK(current() == NULL);
		DRIVER(cuCtxSetCurrent(a));
		write_and_read(3);
		CHECK(current() == a);
	}).join();
	CHECK(current() == b);

	/* Setting replaces the top; setting none removes it. */
	DRIVER(cuCtxSetCurrent(a));
	CHECK(current() == a);
	DRIVER(cuCtxPopCurrent(&popped));
	CHECK(popped == a && current() == a);
	DRIVER(cuCtxPopCurrent(&popped));
	CHECK(current() == NULL);
	DRIVER_IS(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent(&popped));

	DRIVER(cuCtxPushCurrent(a));
	DRIVER(cuCtxSynchronize());
	DRIVER(cuCtxDestroy(a));
	CHECK(current() == NULL);
	DRIVER(cuCtxDestroy(b));

	given_back(device);
	primary(device);
	printf("contexts are right\n");
	return 0;
}
