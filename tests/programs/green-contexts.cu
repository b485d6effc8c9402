// SPDX-License-Identifier: Apache-2.0
/* Green contexts: a device's processors are split, kernels run in streams of the parts and with
 * a part's context current, on the same modules and memory as the primary context's. */
#include "driver.h"

enum { COUNT = 4096 };

__device__ int shared_by_all = 5;

__global__ void scale(const int *in, int *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = in[i] * shared_by_all;
}

static void expect(const int *device, int factor)
{
	static int host[COUNT];

	CUDA(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
	for (int i = 0; i < COUNT; i++)
		CHECK_EQ_AT(i, host[i], i * factor);
}

/* Events of parts: one stands for all that a part was given, another part's later work waits
 * for it. IN is i * 49, and OUT becomes that times 7. */
static void events(CUgreenCtx first, CUgreenCtx other, CUstream stream, int *in, int *out)
{
	ENTRY(cuGreenCtxRecordEvent);
	ENTRY(cuGreenCtxWaitEvent);
	ENTRY(cuGreenCtxStreamCreate);
	ENTRY(cuEventCreate);
	ENTRY(cuEventDestroy);
	ENTRY(cuEventSynchronize);
	ENTRY(cuStreamDestroy);
	CUstream behind;
	CUevent event;

	DRIVER(p_cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	DRIVER(p_cuGreenCtxStreamCreate(&behind, other, CU_STREAM_NON_BLOCKING, 0));
	for (int i = 0; i < 20; i++)
		scale<<<COUNT / 256, 256, 0, stream>>>(in, out, COUNT);
	LAUNCHED();
	DRIVER(p_cuGreenCtxRecordEvent(first, event));
	DRIVER(p_cuGreenCtxWaitEvent(other, event));
	scale<<<COUNT / 256, 256, 0, behind>>>(out, in, COUNT);
	LAUNCHED();
	DRIVER(p_cuGreenCtxRecordEvent(other, event));
	DRIVER(p_cuEventSynchronize(event));
	expect(in, 7 * 7 * 49);
	DRIVER_IS(CUDA_ERROR_INVALID_HANDLE, p_cuGreenCtxRecordEvent(first, NULL));
	DRIVER(p_cuEventDestroy(event));
	DRIVER(p_cuStreamDestroy(behind));
}

int main(void)
{
	static int host[COUNT];
	CUdevResource whole, parts[2], rest, told;
	CUdevResourceDesc descriptor[2];
	CUgreenCtx green[2], of;
	CUcontext primary, context, was;
	CUstream stream, second;
	CUdevice device;
	unsigned groups = 0;
	unsigned long long id[2];
	int *in, *out, factor;

	CUDA(cudaFree(0));
	ENTRY(cuCtxGetCurrent);
	ENTRY(cuCtxSetCurrent);
	ENTRY(cuCtxFromGreenCtx);
	ENTRY(cuCtxGetDevResource);
	ENTRY(cuCtxSynchronize);
	ENTRY(cuDevResourceGenerateDesc);
	ENTRY(cuDevSmResourceSplitByCount);
	ENTRY(cuDeviceGetDevResource);
	ENTRY(cuDevicePrimaryCtxReset);
	ENTRY(cuGreenCtxCreate);
	ENTRY(cuGreenCtxDestroy);
	ENTRY(cuGreenCtxGetDevResource);
	ENTRY(cuGreenCtxStreamCreate);
	ENTRY(cuStreamDestroy);
	ENTRY(cuStreamGetGreenCtx);
	DRIVER(p_cuCtxGetCurrent(&primary));
	device = 0;
	DRIVER(p_cuDeviceGetDevResource(device, &whole, CU_DEV_RESOURCE_TYPE_SM));
	CHECK_EQ((int)whole.sm.smCount, device_attribute(cudaDevAttrMultiProcessorCount));
	DRIVER(p_cuCtxGetDevResource(primary, &told, CU_DEV_RESOURCE_TYPE_SM));
	CHECK_EQ(told.sm.smCount, whole.sm.smCount);

	/* How many parts there would be, then two of them: 1 is rounded up to what can be. */
	DRIVER(p_cuDevSmResourceSplitByCount(NULL, &groups, &whole, NULL, 0, 1));
	if (groups < 2)
		SKIP("too few processors to split");
	groups = 2;
	DRIVER(p_cuDevSmResourceSplitByCount(parts, &groups, &whole, &rest, 0, 1));
	CHECK_EQ(groups, 2u);
	CHECK_EQ(parts[0].sm.smCount, parts[1].sm.smCount);
#if CUDART_VERSION >= 13000
	CHECK(parts[0].sm.smCount >= whole.sm.minSmPartitionSize);
#endif
	CHECK_EQ(parts[0].sm.smCount * 2 +
			 (rest.type == CU_DEV_RESOURCE_TYPE_SM ? rest.sm.smCount : 0),
		whole.sm.smCount);
	DRIVER_IS(CUDA_ERROR_INVALID_RESOURCE_TYPE,
		p_cuDeviceGetDevResource(device, &told, CU_DEV_RESOURCE_TYPE_INVALID));

	for (int i = 0; i < 2; i++) {
		DRIVER(p_cuDevResourceGenerateDesc(&descriptor[i], &parts[i], 1));
		DRIVER(p_cuGreenCtxCreate(
			&green[i], descriptor[i], device, CU_GREEN_CTX_DEFAULT_STREAM));
		DRIVER(p_cuGreenCtxGetDevResource(green[i], &told, CU_DEV_RESOURCE_TYPE_SM));
		CHECK_EQ(told.sm.smCount, parts[i].sm.smCount);
	}
	auto get_id = driver_entry<CUresult (*)(CUgreenCtx, unsigned long long *)>(
		"cuGreenCtxGetId", 12090);
	DRIVER(get_id(green[0], &id[0]));
	DRIVER(get_id(green[1], &id[1]));
	CHECK(id[0] != id[1]);
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuGreenCtxCreate(&of, descriptor[0], device, 0));
	/* A stream of a part does not wait for the default stream, and has to be told so. */
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE,
		p_cuGreenCtxStreamCreate(&stream, green[0], CU_STREAM_DEFAULT, 0));
	/* More processors to a part than there are. */
	groups = 1;
	CHECK(p_cuDevSmResourceSplitByCount(
		      &told, &groups, &whole, NULL, 0, whole.sm.smCount + 1) != CUDA_SUCCESS);

	/* A stream of a part, with the primary context current. */
	CUDA(cudaMalloc((void **)&in, sizeof(host)));
	CUDA(cudaMalloc((void **)&out, sizeof(host)));
	DRIVER(p_cuGreenCtxStreamCreate(&stream, green[0], CU_STREAM_NON_BLOCKING, 0));
	DRIVER(p_cuStreamGetGreenCtx(stream, &of));
	CHECK(of == green[0]);
	for (int i = 0; i < COUNT; i++)
		host[i] = i;
	CUDA(cudaMemcpy(in, host, sizeof(host), cudaMemcpyHostToDevice));
	scale<<<COUNT / 256, 256, 0, stream>>>(in, out, COUNT);
	LAUNCHED();
	CUDA(cudaStreamSynchronize(stream));
	expect(out, 5);

	/* The other part current: the same variables, memory and kernels. */
	DRIVER(p_cuCtxFromGreenCtx(&context, green[1]));
	DRIVER(p_cuCtxSetCurrent(context));
	DRIVER(p_cuCtxGetDevResource(context, &told, CU_DEV_RESOURCE_TYPE_SM));
	CHECK_EQ(told.sm.smCount, parts[1].sm.smCount);
	factor = 7;
	CUDA(cudaMemcpyToSymbol(shared_by_all, &factor, sizeof(factor)));
	CUDA(cudaStreamCreateWithFlags((cudaStream_t *)&second, cudaStreamNonBlocking));
	DRIVER(p_cuStreamGetGreenCtx(second, &of));
	CHECK(of == green[1]);
	scale<<<COUNT / 256, 256, 0, second>>>(in, out, COUNT);
	LAUNCHED();
	CUDA(cudaStreamSynchronize(second));
	expect(out, 7);
	DRIVER(p_cuStreamDestroy(second));
	DRIVER(p_cuCtxSetCurrent(primary));
	DRIVER(p_cuCtxGetCurrent(&was));
	CHECK(was == primary);
	scale<<<COUNT / 256, 256>>>(out, in, COUNT);
	LAUNCHED();
	expect(in, 49);
	DRIVER(p_cuStreamGetGreenCtx(NULL, &of));
	CHECK(!of);
	DRIVER(p_cuCtxSynchronize());
	expect(in, 49);
	events(green[0], green[1], stream, in, out);
	DRIVER(p_cuStreamDestroy(stream));
	/* A part has a legacy stream of its own, and no stream of the thread. */
	DRIVER(p_cuCtxFromGreenCtx(&was, green[0]));
	DRIVER(p_cuCtxSetCurrent(was));
	unsigned flags = 0;
	CUDA(cudaStreamGetFlags(cudaStreamLegacy, &flags));
	CHECK_EQ(flags, (unsigned)cudaStreamNonBlocking);
	CUDA_IS(cudaErrorInvalidResourceHandle, cudaStreamGetFlags(cudaStreamPerThread, &flags));
	(void)cudaGetLastError();
	DRIVER(p_cuCtxSetCurrent(primary));
	/* The primary context is not reset under its parts. */
	DRIVER_IS(CUDA_ERROR_NOT_PERMITTED, p_cuDevicePrimaryCtxReset(device));
	CUDA_IS(cudaErrorNotPermitted, cudaDeviceReset());
	(void)cudaGetLastError();
	DRIVER(p_cuGreenCtxDestroy(green[0]));
	DRIVER(p_cuGreenCtxDestroy(green[1]));

	/* What is left works on. */
	scale<<<COUNT / 256, 256>>>(in, out, COUNT);
	LAUNCHED();
	expect(out, 7 * 7 * 7 * 49);
	CUDA(cudaFree(in));
	CUDA(cudaFree(out));
	return 0;
}
