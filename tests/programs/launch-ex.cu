// SPDX-License-Identifier: Apache-2.0
/* cudaLaunchKernelEx, cudaLaunchKernelExC and cudaLaunchKernel, with and without attributes. */
#include "driver.h"

#include <cooperative_groups.h>

#include <atomic>

__global__ void number(int *out, int base, double factor)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	out[i] = base + (int)(i * factor);
}

/* Every block adds, all wait, then every block sees the whole. */
__global__ void meet(int *sum, int *seen)
{
	if (threadIdx.x == 0)
		atomicAdd(sum, (int)blockIdx.x + 1);
	cooperative_groups::this_grid().sync();
	if (threadIdx.x == 0)
		seen[blockIdx.x] = *(volatile int *)sum;
}

static void check_and_clear(int *out, int base, double factor)
{
	int got[256];

	CUDA(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 256; i++)
		CHECK_EQ_AT(i, got[i], base + (int)(i * factor));
	CUDA(cudaMemset(out, 0xff, sizeof(got)));
}

/* CONFIG's stream is of another context than the current one: its kernel runs in that, and CUDA
 * 12's runtime refuses it. */
static void elsewhere(const cudaLaunchConfig_t *config, void **arguments)
{
	ENTRY(cuCtxDestroy);
	CUcontext other;

#if CUDA_VERSION >= 13000
	ENTRY(cuCtxCreate);
	DRIVER(p_cuCtxCreate(&other, NULL, 0, 0));
#else /* cuda.h has the version before the last one under the plain name */
	auto p_cuCtxCreate = driver_entry<decltype(&cuCtxCreate)>("cuCtxCreate", 3020);
	DRIVER(p_cuCtxCreate(&other, 0, 0));
#endif
	cudaError_t error = cudaLaunchKernelExC(config, (const void *)number, arguments);
	CHECK_EQ(error, CUDART_VERSION < 13000 ? cudaErrorInvalidResourceHandle : cudaSuccess);
	(void)cudaGetLastError();
	DRIVER(p_cuCtxDestroy(other));
}

static std::atomic<bool> open_gate;

static void CUDART_CB gate(void *)
{
	for (int i = 0; i < 20000 && !open_gate; i++)
		usleep(500);
}

/* Events that attributes ask for: not there before the kernel can begin, and there behind it. */
static void with_events(cudaLaunchConfig_t config, void **arguments)
{
	cudaEvent_t begun, triggered, timed;
	cudaLaunchAttribute attributes[2] = {};

	CUDA(cudaEventCreateWithFlags(&begun, cudaEventDisableTiming));
	CUDA(cudaEventCreateWithFlags(&triggered, cudaEventDisableTiming));
	CUDA(cudaEventCreate(&timed));
	attributes[0].id = cudaLaunchAttributeLaunchCompletionEvent;
	attributes[0].val.launchCompletionEvent.event = begun;
	attributes[1].id = cudaLaunchAttributeProgrammaticEvent;
	attributes[1].val.programmaticEvent.event = triggered;
	config.numAttrs = 1;
	for (int i = 0; i < 2; i++) {
		cudaEvent_t event = i ? triggered : begun;

		config.attrs = &attributes[i];
		open_gate = false;
		CUDA(cudaLaunchHostFunc(config.stream, gate, NULL));
		CUDA(cudaLaunchKernelExC(&config, (const void *)number, arguments));
		CUDA_IS(cudaErrorNotReady, cudaEventQuery(event));
		CUDA_IS(cudaErrorNotReady, cudaStreamQuery(config.stream));
		CUDA(cudaGetLastError()); /* an answer, no error */
		open_gate = true;
		CUDA(cudaEventSynchronize(event));
		CUDA(cudaStreamSynchronize(config.stream));
	}
	config.attrs = &attributes[0];
	attributes[0].val.launchCompletionEvent.event = timed;
	CHECK(cudaLaunchKernelExC(&config, (const void *)number, arguments) != cudaSuccess);
	cudaGetLastError();
	for (cudaEvent_t event : {begun, triggered, timed})
		CUDA(cudaEventDestroy(event));
}

/* Attributes that no launch has, and values that none has: told at once. */
static void wrong_attributes(cudaLaunchConfig_t config, void **arguments)
{
	cudaLaunchAttribute wrong[4] = {};

	wrong[0].id = cudaLaunchAttributeAccessPolicyWindow;
	wrong[0].val.accessPolicyWindow.hitRatio = 2;
	wrong[1].id = cudaLaunchAttributeMemSyncDomain;
	wrong[1].val.memSyncDomain = (cudaLaunchMemSyncDomain)9;
	wrong[2].id = cudaLaunchAttributeSynchronizationPolicy;
	wrong[2].val.syncPolicy = cudaSyncPolicySpin;
	wrong[3].id = (cudaLaunchAttributeID)70;
	config.numAttrs = 1;
	for (cudaLaunchAttribute &attribute : wrong) {
		config.attrs = &attribute;
		CUDA_IS(cudaErrorInvalidValue,
			cudaLaunchKernelExC(&config, (const void *)number, arguments));
		CUDA_IS(cudaErrorInvalidValue, cudaGetLastError());
	}
	CUDA(cudaStreamSynchronize(config.stream));
}

int main()
{
	int *out, base = 40, least, greatest;
	double factor = 1.5;
	cudaStream_t stream;
	cudaLaunchAttribute attributes[2] = {};
	cudaLaunchConfig_t config = {};

	CUDA(cudaMalloc(&out, 256 * sizeof(int)));
	CUDA(cudaStreamCreate(&stream));
	config.gridDim = dim3(4);
	config.blockDim = dim3(64);
	config.stream = stream;

	CUDA(cudaLaunchKernelEx(&config, number, out, 10, 2.0));
	CUDA(cudaStreamSynchronize(stream));
	check_and_clear(out, 10, 2.0);

	CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	attributes[0].id = cudaLaunchAttributePriority;
	attributes[0].val.priority = greatest;
	config.attrs = attributes;
	config.numAttrs = 1;
	void *arguments[] = {&out, &base, &factor};
	CUDA(cudaLaunchKernelExC(&config, (const void *)number, arguments));
	CUDA(cudaStreamSynchronize(stream));
	check_and_clear(out, 40, 1.5);

	wrong_attributes(config, arguments);
	with_events(config, arguments);
	check_and_clear(out, 40, 1.5);

	CUDA(cudaLaunchKernel((const void *)number, dim3(2), dim3(128), arguments, 0, stream));
	CUDA(cudaStreamSynchronize(stream));
	check_and_clear(out, 40, 1.5);

	if (device_attribute(cudaDevAttrCooperativeLaunch)) {
		int *sum = out, *seen = out + 1, got[5];
		CUDA(cudaMemset(out, 0, sizeof(got)));
		attributes[0].id = cudaLaunchAttributeCooperative;
		attributes[0].val.cooperative = 1;
		CUDA(cudaLaunchKernelEx(&config, meet, sum, seen));
		CUDA(cudaStreamSynchronize(stream));
		CUDA(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
		for (int i = 0; i < 5; i++)
			CHECK_EQ_AT(i, got[i], 10);
	}

	config.numAttrs = 0;
	CUDA(cudaMemset(out, 0, 256 * sizeof(int)));
	elsewhere(&config, arguments);
	CUDA(cudaStreamSynchronize(stream));
	if (CUDART_VERSION >= 13000)
		check_and_clear(out, 40, 1.5);

	config.blockDim = dim3(2048);
	CHECK(cudaLaunchKernelEx(&config, number, out, 10, 2.0) != cudaSuccess);
	(void)cudaGetLastError();
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaFree(out));
	printf("launches are right\n");
	return 0;
}
