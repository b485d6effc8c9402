/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver API: devices, memory, copies of every size that goes another way, a PTX module,
 * launches in order of two streams, events, a graph, host functions, pinned memory, errors.
 * What it prints is the same wherever the GPU is.
 */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 100000u
#define LARGE (24u << 20)

static const char ptx[] =
	".version 6.4\n"
	".target sm_50\n"
	".address_size 64\n"
	".visible .global .align 4 .u32 factor = 3;\n"
	".visible .entry scale(.param .u64 at, .param .u32 n, .param .u32 by)\n"
	"{\n"
	"	.reg .pred %p;\n"
	"	.reg .b32 %r<9>;\n"
	"	.reg .b64 %rd<4>;\n"
	"	ld.param.u64 %rd1, [at];\n"
	"	ld.param.u32 %r1, [n];\n"
	"	ld.param.u32 %r2, [by];\n"
	"	mov.u32 %r3, %ctaid.x;\n"
	"	mov.u32 %r4, %ntid.x;\n"
	"	mov.u32 %r5, %tid.x;\n"
	"	mad.lo.s32 %r6, %r3, %r4, %r5;\n"
	"	setp.ge.u32 %p, %r6, %r1;\n"
	"	@%p bra done;\n"
	"	mul.wide.u32 %rd2, %r6, 4;\n"
	"	add.s64 %rd3, %rd1, %rd2;\n"
	"	ld.global.u32 %r7, [%rd3];\n"
	"	ld.global.u32 %r8, [factor];\n"
	"	mad.lo.u32 %r7, %r7, %r8, %r2;\n"
	"	st.global.u32 [%rd3], %r7;\n"
	"done:\n"
	"	ret;\n"
	"}\n";

static int failed;

static void must(CUresult status, const char *what)
{
	const char *name = "?";

	if (!status)
		return;
	cuGetErrorName(status, &name);
	printf("%s: %d %s\n", what, (int)status, name);
	fflush(stdout);
	exit(status > 255 ? 255 : (int)status);
}
#define MUST(call) must(call, #call)

static void says(CUresult status, const char *what)
{
	const char *name = "?";

	cuGetErrorName(status, &name);
	printf("%s says %d %s\n", what, (int)status, name);
}

static void holds(int it, const char *what)
{
	printf("%s: %s\n", what, it ? "right" : "WRONG");
	failed |= !it;
}

static void device(void)
{
	CUdevice first;
	char name[128];
	size_t bytes;
	int count, version, warp;

	MUST(cuInit(0));
	MUST(cuDriverGetVersion(&version));
	MUST(cuDeviceGetCount(&count));
	MUST(cuDeviceGet(&first, 0));
	MUST(cuDeviceGetName(name, sizeof(name), first));
	MUST(cuDeviceTotalMem(&bytes, first));
	MUST(cuDeviceGetAttribute(&warp, CU_DEVICE_ATTRIBUTE_WARP_SIZE, first));
	printf("CUDA %d, %d device(s): %s, %llu MiB, warps of %d\n", version, count, name,
		(unsigned long long)(bytes >> 20), warp);
}

static void copies(void)
{
	static const size_t sizes[] = {1, 4096, 70001, 1 << 20, LARGE};
	unsigned char *from = malloc(LARGE), *to = malloc(LARGE);
	CUdeviceptr at;

	MUST(cuMemAlloc(&at, LARGE));
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		char what[64];

		for (size_t i = 0; i < sizes[s]; i++)
			from[i] = (unsigned char)(i * 2654435761u >> 13 ^ s);
		memset(to, 0, sizes[s]);
		MUST(cuMemcpyHtoD(at, from, sizes[s]));
		MUST(cuMemcpyDtoH(to, at, sizes[s]));
		snprintf(what, sizeof(what), "%u bytes there and back", (unsigned)sizes[s]);
		holds(!memcmp(from, to, sizes[s]), what);
	}
	MUST(cuMemsetD32(at, 0x01020304, 1000));
	MUST(cuMemcpyDtoH(to, at, 4000));
	holds(to[0] == 4 && to[3999] == 1, "memset");
	MUST(cuMemFree(at));
	free(from);
	free(to);
}

static void kernels(void)
{
	uint32_t *numbers = malloc(COUNT * 4), n = COUNT, factor = 5;
	CUmodule module;
	CUfunction scale;
	CUdeviceptr at, global;
	CUstream one, two;
	CUevent between;
	size_t bytes;
	int right = 1;
	void *arguments[] = {&at, &n, &factor};

	MUST(cuModuleLoadData(&module, ptx));
	MUST(cuModuleGetFunction(&scale, module, "scale"));
	MUST(cuModuleGetGlobal(&global, &bytes, module, "factor"));
	printf("a global of %u bytes\n", (unsigned)bytes);
	MUST(cuMemAlloc(&at, COUNT * 4));
	for (uint32_t i = 0; i < COUNT; i++)
		numbers[i] = i;
	MUST(cuMemcpyHtoD(at, numbers, COUNT * 4));
	MUST(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
	MUST(cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
	MUST(cuEventCreate(&between, CU_EVENT_DISABLE_TIMING));
	MUST(cuLaunchKernel(
		scale, (COUNT + 255) / 256, 1, 1, 256, 1, 1, 0, one, arguments, NULL));
	MUST(cuEventRecord(between, one));
	MUST(cuStreamWaitEvent(two, between, 0));
	factor = 7;
	MUST(cuLaunchKernel(
		scale, (COUNT + 255) / 256, 1, 1, 256, 1, 1, 0, two, arguments, NULL));
	MUST(cuStreamSynchronize(two));
	MUST(cuMemcpyDtoH(numbers, at, COUNT * 4));
	for (uint32_t i = 0; i < COUNT; i++)
		right &= numbers[i] == (i * 3 + 5) * 3 + 7;
	holds(right, "two launches in order of their streams");
	says(cuModuleGetFunction(&scale, module, "none"), "a function that is not there");
	says(cuModuleLoadData(&module, "nonsense"), "a module that is none");
	MUST(cuEventDestroy(between));
	MUST(cuStreamDestroy(one));
	MUST(cuStreamDestroy(two));
	MUST(cuMemFree(at));
	free(numbers);
}

static void CUDA_CB host(void *argument)
{
	*(volatile int *)argument += 1;
}

static void functions(void)
{
	volatile int called = 0;
	CUstream stream;
	uint32_t *pinned;
	CUdeviceptr at;
	int right = 1;

	MUST(cuStreamCreate(&stream, 0));
	MUST(cuMemAllocHost((void **)&pinned, 3 << 20));
	MUST(cuMemAlloc(&at, 3 << 20));
	for (uint32_t i = 0; i < 3 << 18; i++)
		pinned[i] = ~i;
	MUST(cuMemcpyHtoDAsync(at, pinned, 3 << 20, stream));
	MUST(cuLaunchHostFunc(stream, host, (void *)&called));
	MUST(cuStreamSynchronize(stream));
	memset(pinned, 0, 3 << 20);
	MUST(cuMemcpyDtoHAsync(pinned, at, 3 << 20, stream));
	MUST(cuStreamSynchronize(stream));
	for (uint32_t i = 0; i < 3 << 18; i++)
		right &= pinned[i] == ~i;
	holds(right, "pinned memory");
	holds(called == 1, "a host function");
	MUST(cuMemFree(at));
	MUST(cuMemFreeHost(pinned));
	MUST(cuStreamDestroy(stream));
}

static void graph(void)
{
	CUgraph made;
	CUgraphExec exec;
	CUstream stream;
	CUdeviceptr at;
	uint32_t word = 0;

	MUST(cuMemAlloc(&at, 4096));
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	MUST(cuMemsetD32Async(at, 77, 1024, stream));
	MUST(cuStreamEndCapture(stream, &made));
	MUST(cuGraphInstantiateWithFlags(&exec, made, 0));
	MUST(cuGraphLaunch(exec, stream));
	MUST(cuStreamSynchronize(stream));
	MUST(cuMemcpyDtoH(&word, at + 4092, 4));
	holds(word == 77, "a graph");
	MUST(cuGraphExecDestroy(exec));
	MUST(cuGraphDestroy(made));
	MUST(cuStreamDestroy(stream));
	MUST(cuMemFree(at));
}

static void mistakes(void)
{
	CUdevice none;
	CUdeviceptr at;

	says(cuDeviceGet(&none, 99), "device 99");
	says(cuMemAlloc(&at, 0), "an allocation of nothing");
	says(cuMemFree(12345), "freeing what was not allocated");
	says(cuMemAlloc(&at, (size_t)1 << 46), "an allocation of 64 TiB");
}

int main(void)
{
	CUcontext context;
	CUdevice first;

	device();
	MUST(cuDeviceGet(&first, 0));
	MUST(cuDevicePrimaryCtxRetain(&context, first));
	MUST(cuCtxSetCurrent(context));
	copies();
	kernels();
	functions();
	graph();
	mistakes();
	MUST(cuDevicePrimaryCtxRelease(first));
	puts(failed ? "FAILED" : "done");
	return failed;
}
