// SPDX-License-Identifier: Apache-2.0
/* What each call answers once a kernel has failed: a line `FAULT CALL STATUS` for each, in a
 * process of its own for each fault.  What asks nothing of the context goes on answering, or a
 * program could not even clean up; what needs the context gives the fault.  Expected is what an
 * H200 with driver 580 answered on 2026-11-22.  Rows marked OPEN are only told. */
#include "driver.h"

#include <assert.h>

enum expectation { GOES_ON, FAULT, OPEN };

static const char *fault_name;
static int fault, wrong;

__global__ void store(int *address)
{
	*address = 1;
}

__global__ void asserts(int number)
{
	assert(number == 5);
}

/* CALL as it is written: told are its name, and its number as a status. */
static void tell(const char *call, int status, expectation expected)
{
	char name[64];

	if (!strncmp(call, "p_", 2))
		call += 2;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(call, "("), call);
	call = name;
	printf("%s %s %d\n", fault_name, call, status);
	if ((expected == GOES_ON && status) || (expected == FAULT && status != fault)) {
		fprintf(stderr, "after %s: %s gave %d, not %d\n", fault_name, call, status,
			expected == FAULT ? fault : 0);
		wrong++;
	}
}

#define TELL(EXPECTED, CALL) tell(#CALL, (int)(CALL), EXPECTED)

/* Made before the fault. */
struct things {
	int *memory, *second, *pinned, *managed_by_pool;
	cudaStream_t stream, other;
	cudaEvent_t event, recorded;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
};

static things make()
{
	things t = {};

	CUDA(cudaMalloc(&t.memory, 4096));
	CUDA(cudaMalloc(&t.second, 4096));
	CUDA(cudaMallocHost(&t.pinned, 4096));
	CUDA(cudaStreamCreate(&t.stream));
	CUDA(cudaStreamCreate(&t.other));
	CUDA(cudaMallocAsync(&t.managed_by_pool, 4096, t.other));
	CUDA(cudaEventCreate(&t.event));
	CUDA(cudaEventCreate(&t.recorded));
	CUDA(cudaEventRecord(t.recorded, t.other));
	CUDA(cudaStreamBeginCapture(t.other, cudaStreamCaptureModeGlobal));
	CUDA(cudaMemsetAsync(t.memory, 0, 4096, t.other));
	CUDA(cudaStreamEndCapture(t.other, &t.graph));
	CUDA(cudaGraphInstantiateWithFlags(&t.exec, t.graph, 0));
	CUDA(cudaDeviceSynchronize());
	return t;
}

static void runtime_state()
{
	cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	cudaDeviceProp properties;
	cudaMemPool_t pool;
	unsigned flags;
	int device = -1, count = -1, value, high;
	char bus[32];

	TELL(FAULT, cudaPeekAtLastError());
	TELL(FAULT, cudaGetLastError());
	TELL(GOES_ON, cudaGetLastError()); /* it was taken */
	TELL(GOES_ON, cudaGetDevice(&device));
	CHECK_EQ(device, 0);
	TELL(GOES_ON, cudaGetDeviceCount(&count));
	CHECK(count > 0);
	TELL(GOES_ON, cudaSetDevice(0));
	TELL(GOES_ON, cudaDriverGetVersion(&value));
	TELL(GOES_ON, cudaRuntimeGetVersion(&value));
	TELL(GOES_ON, cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0));
	TELL(GOES_ON, cudaGetDeviceProperties(&properties, 0));
	TELL(GOES_ON, cudaDeviceGetPCIBusId(bus, sizeof(bus), 0));
	TELL(GOES_ON, cudaDeviceGetByPCIBusId(&device, bus));
	TELL(GOES_ON, cudaGetDeviceFlags(&flags));
	TELL(FAULT, cudaDeviceGetStreamPriorityRange(&value, &high));
	TELL(GOES_ON, cudaDeviceGetDefaultMemPool(&pool, 0));
	TELL(GOES_ON, cudaThreadExchangeStreamCaptureMode(&mode));
	TELL(GOES_ON, cudaThreadExchangeStreamCaptureMode(&mode));
	CHECK(!strcmp(cudaGetErrorName(cudaErrorAssert), "cudaErrorAssert"));
}

static void driver_state()
{
	ENTRY(cuDriverGetVersion);
	ENTRY(cuDeviceGet);
	ENTRY(cuDeviceGetCount);
	ENTRY(cuDeviceGetName);
	ENTRY(cuDeviceTotalMem);
	ENTRY(cuDeviceGetAttribute);
	ENTRY(cuDevicePrimaryCtxGetState);
	ENTRY(cuDevicePrimaryCtxRetain);
	ENTRY(cuDevicePrimaryCtxRelease);
	ENTRY(cuCtxGetCurrent);
	ENTRY(cuCtxSetCurrent);
	ENTRY(cuCtxPushCurrent);
	ENTRY(cuCtxPopCurrent);
	ENTRY(cuCtxGetFlags);
	ENTRY(cuCtxGetApiVersion);
	ENTRY(cuCtxGetLimit);
	ENTRY(cuCtxGetStreamPriorityRange);
	ENTRY(cuGetErrorString);
	/* By this version: CUDA 13 has other forms of them, which take a context. */
	auto p_cuCtxGetDevice = driver_entry<CUresult (*)(CUdevice *)>("cuCtxGetDevice", 12000);
	auto p_cuCtxSynchronize = driver_entry<CUresult (*)()>("cuCtxSynchronize", 12000);
	CUcontext context = NULL, again;
	const char *text;
	CUdevice device;
	char name[128];
	unsigned flags, version;
	size_t size;
	int value, high, active = 0;

	TELL(GOES_ON, p_cuDriverGetVersion(&value));
	TELL(GOES_ON, p_cuDeviceGetCount(&value));
	TELL(GOES_ON, p_cuDeviceGet(&device, 0));
	TELL(GOES_ON, p_cuDeviceGetName(name, sizeof(name), device));
	TELL(GOES_ON, p_cuDeviceTotalMem(&size, device));
	TELL(GOES_ON, p_cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
	TELL(GOES_ON, p_cuDevicePrimaryCtxGetState(device, &flags, &active));
	CHECK_EQ(active, 1);
	TELL(GOES_ON, p_cuCtxGetCurrent(&context));
	CHECK(context != NULL);
	TELL(GOES_ON, p_cuCtxGetDevice(&device));
	TELL(GOES_ON, p_cuCtxSetCurrent(context));
	TELL(GOES_ON, p_cuGetErrorString(CUDA_ERROR_ASSERT, &text));
	TELL(GOES_ON, p_cuCtxPushCurrent(context));
	TELL(GOES_ON, p_cuCtxPopCurrent(&again));
	TELL(GOES_ON, p_cuDevicePrimaryCtxRetain(&again, device));
	TELL(GOES_ON, p_cuDevicePrimaryCtxRelease(device));
	TELL(GOES_ON, p_cuCtxGetFlags(&flags));
	TELL(GOES_ON, p_cuCtxGetApiVersion(context, &version));
	TELL(FAULT, p_cuCtxGetLimit(&size, CU_LIMIT_STACK_SIZE));
	TELL(FAULT, p_cuCtxGetStreamPriorityRange(&value, &high));
	TELL(FAULT, p_cuCtxSynchronize());
}

static void asked(const things &t)
{
	ENTRY(cuPointerGetAttribute);
	ENTRY(cuMemGetAddressRange);
	cudaStreamCaptureStatus capturing;
	cudaPointerAttributes pointer;
	cudaFuncAttributes function;
	CUmemorytype type;
	CUdeviceptr base;
	unsigned flags;
	size_t size, total;
	float ms;
	int blocks;

	TELL(GOES_ON, cudaPointerGetAttributes(&pointer, t.memory));
	TELL(GOES_ON, p_cuPointerGetAttribute(
			   &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)t.memory));
	TELL(FAULT, p_cuMemGetAddressRange(&base, &size, (CUdeviceptr)t.memory));
	TELL(FAULT, cudaFuncGetAttributes(&function, (const void *)store));
	TELL(FAULT, cudaOccupancyMaxActiveBlocksPerMultiprocessor(
			   &blocks, (const void *)store, 64, 0));
	TELL(FAULT, cudaStreamIsCapturing(t.other, &capturing));
	TELL(FAULT, cudaStreamGetFlags(t.other, &flags));
	TELL(FAULT, cudaStreamGetPriority(t.other, &blocks));
	TELL(FAULT, cudaHostGetFlags(&flags, t.pinned));
	TELL(FAULT, cudaEventElapsedTime(&ms, t.recorded, t.recorded));
	TELL(FAULT, cudaMemGetInfo(&size, &total));
	TELL(FAULT, cudaStreamQuery(t.other));
	TELL(FAULT, cudaEventQuery(t.recorded));
	TELL(FAULT, cudaStreamSynchronize(t.other));
	TELL(FAULT, cudaEventSynchronize(t.recorded));
	TELL(FAULT, cudaDeviceSynchronize());
}

static void done(const things &t)
{
	cudaStream_t stream;
	cudaEvent_t event;
	int *memory, value = 0;

	store<<<1, 1>>>(t.memory);
	tell("launch", cudaGetLastError(), FAULT);
	TELL(FAULT, cudaMalloc(&memory, 16));
	TELL(FAULT, cudaMallocAsync(&memory, 16, t.other));
	TELL(FAULT, cudaMallocHost(&memory, 16));
	TELL(FAULT, cudaMemcpy(&value, t.memory, sizeof(value), cudaMemcpyDeviceToHost));
	TELL(FAULT, cudaMemcpy(t.memory, &value, sizeof(value), cudaMemcpyHostToDevice));
	TELL(FAULT, cudaMemcpyAsync(t.memory, t.second, 16, cudaMemcpyDeviceToDevice, t.other));
	TELL(FAULT, cudaMemset(t.memory, 0, 16));
	TELL(FAULT, cudaStreamCreate(&stream));
	TELL(FAULT, cudaEventCreate(&event));
	TELL(FAULT, cudaEventRecord(t.event, t.other));
	TELL(FAULT, cudaStreamWaitEvent(t.stream, t.recorded, 0));
	TELL(FAULT, cudaGraphLaunch(t.exec, t.other));
}

static void given_back(const things &t)
{
	int *memory;

	TELL(GOES_ON, cudaGraphExecDestroy(t.exec));
	TELL(GOES_ON, cudaGraphDestroy(t.graph));
	TELL(FAULT, cudaEventDestroy(t.event));
	TELL(FAULT, cudaEventDestroy(t.recorded));
	TELL(FAULT, cudaFreeAsync(t.managed_by_pool, t.other));
	TELL(FAULT, cudaStreamDestroy(t.stream));
	TELL(FAULT, cudaStreamDestroy(t.other));
	TELL(FAULT, cudaFree(t.memory));
	TELL(FAULT, cudaFreeHost(t.pinned));
	TELL(FAULT, cudaPeekAtLastError());
	TELL(GOES_ON, cudaDeviceReset());
	tell("cudaGetLastError-after-reset", cudaGetLastError(), FAULT);
	tell("cudaMalloc-after-reset", cudaMalloc(&memory, 16) != cudaErrorDevicesUnavailable,
		GOES_ON);
}

static int child(const char *name)
{
	things t = make();

	fault_name = name;
	if (!strcmp(name, "assert"))
		asserts<<<1, 32>>>(6);
	else
		store<<<1, 1>>>((int *)0x500000000000ull);
	LAUNCHED();
	fault = cudaDeviceSynchronize();
	tell("cudaDeviceSynchronize-at-first", fault, OPEN);
	CHECK_EQ(fault, !strcmp(name, "assert") ? cudaErrorAssert : cudaErrorIllegalAddress);
	runtime_state();
	driver_state();
	asked(t);
	done(t);
	given_back(t);
	fflush(stdout);
	return wrong != 0;
}

int main(int argc, char **argv)
{
	int failed = 0;

	if (argc > 1)
		return child(argv[1]);
	failed += wait_exit(start_self("assert")) != 0;
	failed += wait_exit(start_self("illegal-address")) != 0;
	return failed != 0;
}
