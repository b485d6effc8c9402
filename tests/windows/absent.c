/* SPDX-License-Identifier: Apache-2.0
 *
 * What there is not on Windows says so, by attribute and by status; and host memory that
 * kernels reach, which there is.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

static const char ptx[] = ".version 6.4\n"
			  ".target sm_50\n"
			  ".address_size 64\n"
			  ".visible .entry add5(.param .u64 at)\n"
			  "{\n"
			  "	.reg .b64 %rd1;\n"
			  "	.reg .b32 %r1;\n"
			  "	ld.param.u64 %rd1, [at];\n"
			  "	ld.global.u32 %r1, [%rd1];\n"
			  "	add.u32 %r1, %r1, 5;\n"
			  "	st.global.u32 [%rd1], %r1;\n"
			  "	ret;\n"
			  "}\n";

static void must(CUresult status, const char *what)
{
	if (!status)
		return;
	printf("%s: %d\n", what, (int)status);
	exit(1);
}
#define MUST(call) must(call, #call)

static int attribute(CUdevice_attribute which)
{
	int value = -1;

	MUST(cuDeviceGetAttribute(&value, which, 0));
	return value;
}

static void absent(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_WIN32};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;

	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	printf("managed memory: %d, %d\n", attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY),
		(int)cuMemAllocManaged(&at, 4096, CU_MEM_ATTACH_GLOBAL));
	printf("handles of Windows: %d, %d\n",
		attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_HANDLE_SUPPORTED),
		(int)cuMemCreate(&handle, 2 << 20, &prop, 0));
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	printf("descriptors: %d, %d\n",
		attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED),
		(int)cuMemCreate(&handle, 2 << 20, &prop, 0));
}

static void reached(volatile unsigned *host, const char *what)
{
	CUmodule module;
	CUfunction add5;
	CUdeviceptr at;
	void *arguments[] = {&at};

	MUST(cuModuleLoadData(&module, ptx));
	MUST(cuModuleGetFunction(&add5, module, "add5"));
	MUST(cuMemHostGetDevicePointer(&at, (void *)host, 0));
	*host = 37;
	MUST(cuLaunchKernel(add5, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
	MUST(cuCtxSynchronize());
	printf("%s: %u\n", what, *host);
	MUST(cuModuleUnload(module));
}

int main(void)
{
	static unsigned own[4096];
	CUcontext context;
	void *pinned;

	MUST(cuInit(0));
	MUST(cuDevicePrimaryCtxRetain(&context, 0));
	MUST(cuCtxSetCurrent(context));
	absent();
	MUST(cuMemHostAlloc(&pinned, 200000, CU_MEMHOSTALLOC_DEVICEMAP));
	reached(pinned, "pinned memory that a kernel reaches");
	MUST(cuMemFreeHost(pinned));
	MUST(cuMemHostRegister(own, sizeof(own), CU_MEMHOSTREGISTER_DEVICEMAP));
	reached(own, "the program's own memory that a kernel reaches");
	MUST(cuMemHostUnregister(own));
	return 0;
}
