// SPDX-License-Identifier: Apache-2.0
/* A whole program on the driver API, linked with -lcuda: the device, a module of PTX, memory,
 * streams, events and launches, with no call of the runtime. */
#include "driver.h"

#include <vector>

extern "C" const char module_ptx[];

struct pair {
	short factor;
	double add;
};

static void errors(CUdeviceptr in)
{
	const char *text = NULL;
	int value;
	CUdevice device;

	DRIVER(cuGetErrorName(CUDA_ERROR_INVALID_VALUE, &text));
	CHECK(!strcmp(text, "CUDA_ERROR_INVALID_VALUE"));
	DRIVER(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
	CHECK(!strcmp(text, "out of memory"));
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, cuGetErrorName((CUresult)4321, &text));
	DRIVER_IS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, 4096));
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(&value, in - 4096, 0x7fffffffffff));
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, cuMemFree(in + 4));
}

int main()
{
	const int n = 5000;
	std::vector<float> host(n), got(n);
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction scale;
	CUdeviceptr in, out, base, calls;
	CUstream stream, other;
	CUevent start, end;
	int version = 0, count = 0, number, type;
	size_t total = 0, free = 0, all = 0, size = 0;
	float elapsed = -1;
	char name[100] = "";
	CUuuid uuid = {};

	DRIVER(cuInit(0));
	DRIVER(cuDriverGetVersion(&version));
	CHECK(version >= 12000);
	DRIVER(cuDeviceGetCount(&count));
	CHECK(count >= 1);
	DRIVER(cuDeviceGet(&device, 0));
	DRIVER(cuDeviceGetName(name, sizeof(name), device));
	CHECK(strlen(name) > 0);
	DRIVER(cuDeviceTotalMem(&total, device));
	DRIVER(cuDeviceGetUuid(&uuid, device));
	number = 0;
	for (char byte : uuid.bytes)
		number |= byte;
	CHECK(number != 0);
	DRIVER(cuDeviceGetAttribute(&number, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
	CHECK_EQ(number, 32);

	DRIVER(cuDevicePrimaryCtxRetain(&context, device));
	DRIVER(cuCtxSetCurrent(context));
	DRIVER(cuMemGetInfo(&free, &all));
	CHECK(free <= all && all <= total);

	DRIVER(cuModuleLoadData(&module, module_ptx));
	DRIVER(cuModuleGetFunction(&scale, module, "scale"));
	DRIVER(cuMemAlloc(&in, n * sizeof(float)));
	DRIVER(cuMemAlloc(&out, n * sizeof(float)));
	DRIVER(cuMemGetAddressRange(&base, &size, out + 100));
	CHECK_EQ(base, out);
	CHECK_EQ(size, n * sizeof(float));
	DRIVER(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, out + 8));
	CHECK_EQ(type, (int)CU_MEMORYTYPE_DEVICE);

	DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	DRIVER(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	DRIVER(cuEventCreate(&start, CU_EVENT_DEFAULT));
	DRIVER(cuEventCreate(&end, CU_EVENT_DEFAULT));
	for (int i = 0; i < n; i++)
		host[i] = (float)i;
	DRIVER(cuMemcpyHtoDAsync(in, host.data(), n * sizeof(float), stream));
	pair by = {3, 0.5};
	void *arguments[] = {&in, &out, (void *)&n, &by};
	DRIVER(cuEventRecord(start, stream));
	DRIVER(cuLaunchKernel(scale, (n + 127) / 128, 1, 1, 128, 1, 1, 0, stream, arguments, NULL));
	DRIVER(cuEventRecord(end, stream));
	DRIVER(cuStreamWaitEvent(other, end, 0));
	DRIVER(cuMemcpyDtoHAsync(got.data(), out, n * sizeof(float), other));
	DRIVER(cuStreamSynchronize(other));
	for (int i = 0; i < n; i++)
		CHECK_EQ_AT(i, got[i], (float)i * 3 + 0.5f + (float)(i % 8 + 1));
	DRIVER(cuEventSynchronize(end));
	DRIVER(cuEventElapsedTime(&elapsed, start, end));
	CHECK(elapsed >= 0.0f && elapsed < 10000.0f);

	DRIVER(cuModuleGetGlobal(&calls, &size, module, "calls"));
	CHECK_EQ(size, sizeof(int));
	DRIVER(cuMemcpyDtoH(&number, calls, sizeof(number)));
	CHECK_EQ(number, 8);
	DRIVER(cuMemcpyDtoD(in, out, n * sizeof(float)));
	DRIVER(cuMemsetD32(out, 0, n));
	DRIVER(cuMemcpyDtoH(host.data(), in, n * sizeof(float)));
	CHECK(host == got);
	errors(in);

	DRIVER(cuEventDestroy(start));
	DRIVER(cuEventDestroy(end));
	DRIVER(cuStreamDestroy(stream));
	DRIVER(cuStreamDestroy(other));
	DRIVER(cuMemFree(in));
	DRIVER(cuMemFree(out));
	DRIVER(cuModuleUnload(module));
	DRIVER(cuDevicePrimaryCtxRelease(device));
	printf("the driver's calls are right on %s\n", name);
	return 0;
}
