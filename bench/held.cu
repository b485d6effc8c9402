// SPDX-License-Identifier: Apache-2.0
/* Which of the driver's calls wait for an idle GPU: each is made while a stream waits for a value
 * that nobody writes for 300 ms.  What waits here must not be called by the worker's loop while it
 * holds a stream (docs/SEVERAL-GPUS.md): `idles` in the description, fence.c, direct.c.
 *
 *	nvcc -o held bench/held.cu -lcuda -lcublas && ./held
 *
 * A line a call: "waits" or "goes on", and its milliseconds.  Run natively on a GPU. */
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime.h>

#define DRIVER(call)                                                                           \
	do {                                                                                   \
		CUresult result = (call);                                                      \
		if (result) {                                                                  \
			fprintf(stderr, "%s:%d: %s gave %d\n", __FILE__, __LINE__, #call,      \
				result);                                                       \
			exit(1);                                                               \
		}                                                                              \
	} while (0)

static const size_t GRANULE = 2u << 20;
static CUstream held, other;
static uint64_t *word;
static CUdeviceptr word_at;

/* Makes the call while `held` waits. */
static void row(const char *name, std::function<void()> call)
{
	std::atomic<bool> done{false};
	double ms = 0;
	bool waits;

	DRIVER(cuCtxSynchronize());
	DRIVER(cuStreamWaitValue64(held, word_at, *word + 1, CU_STREAM_WAIT_VALUE_GEQ));
	std::thread caller([&] {
		cudaSetDevice(0);
		auto begun = std::chrono::steady_clock::now();
		call();
		ms = std::chrono::duration<double, std::milli>(
			std::chrono::steady_clock::now() - begun)
			     .count();
		done = true;
	});
	for (int i = 0; i < 300 && !done; i++)
		std::this_thread::sleep_for(std::chrono::milliseconds(1));
	waits = !done;
	__atomic_fetch_add(word, 1, __ATOMIC_RELEASE);
	caller.join();
	DRIVER(cuCtxSynchronize());
	printf("%-44s %-8s %8.2f ms\n", name, waits ? "WAITS" : "goes on", ms);
	fflush(stdout);
}

__global__ void plain(int *out) { *out = 1; }
__global__ void plain_again(int *out) { *out = 2; }

template <int WORDS>
__global__ void stacked(int *out, int n)
{
	volatile int memory[WORDS];

	for (int i = 0; i < WORDS; i++)
		memory[i] = i * n;
	*out = memory[n % WORDS];
}

__global__ void shared_memory(int *out)
{
	extern __shared__ int words[];

	words[threadIdx.x] = threadIdx.x;
	*out = words[0];
}

static CUmemGenericAllocationHandle memory_new(void)
{
	CUmemAllocationProp prop = {};
	CUmemGenericAllocationHandle memory;

	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	DRIVER(cuMemCreate(&memory, GRANULE, &prop, 0));
	return memory;
}

static void access(CUdeviceptr at, size_t size)
{
	CUmemAccessDesc desc = {{CU_MEM_LOCATION_TYPE_DEVICE, {0}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

	DRIVER(cuMemSetAccess(at, size, &desc, 1));
}

static CUdeviceptr mapped(size_t pieces)
{
	CUdeviceptr at;

	DRIVER(cuMemAddressReserve(&at, pieces * GRANULE, 0, 0, 0));
	for (size_t i = 0; i < pieces; i++) {
		CUmemGenericAllocationHandle memory = memory_new();

		DRIVER(cuMemMap(at + i * GRANULE, GRANULE, 0, memory, 0));
		DRIVER(cuMemRelease(memory));
	}
	access(at, pieces * GRANULE);
	return at;
}

static void memory_rows(void)
{
	CUdeviceptr at[4], room;
	CUmemGenericAllocationHandle memory = memory_new(), made;
	void *host = aligned_alloc(1 << 21, 1 << 22), *pinned;

	for (auto &one : at)
		one = mapped(8);
	DRIVER(cuMemAddressReserve(&room, GRANULE, 0, 0, 0));
	row("cuMemCreate", [&] { made = memory_new(); });
	row("cuMemMap", [&] { DRIVER(cuMemMap(room, GRANULE, 0, memory, 0)); });
	row("cuMemSetAccess", [&] { access(room, GRANULE); });
	row("cuMemUnmap", [&] { DRIVER(cuMemUnmap(room, GRANULE)); });
	row("cuMemRelease", [&] { DRIVER(cuMemRelease(memory)); });
	row("cuMemRelease, never mapped", [&] { DRIVER(cuMemRelease(made)); });
	row("cuMemUnmap of 8 whose last it is", [&] { DRIVER(cuMemUnmap(at[0], 8 * GRANULE)); });
	row("cuMemUnmap of 1 of 8", [&] { DRIVER(cuMemUnmap(at[1], GRANULE)); });
	row("cuMemHostAlloc", [&] { DRIVER(cuMemHostAlloc(&pinned, 1 << 22, CU_MEMHOSTALLOC_DEVICEMAP)); });
	row("cuMemFreeHost", [&] { DRIVER(cuMemFreeHost(pinned)); });
	row("cuMemHostRegister", [&] { DRIVER(cuMemHostRegister(host, 1 << 22, CU_MEMHOSTREGISTER_DEVICEMAP)); });
	row("cuMemHostUnregister", [&] { DRIVER(cuMemHostUnregister(host)); });
	row("cuMemGetInfo", [&] { size_t a, b; DRIVER(cuMemGetInfo(&a, &b)); });
	row("cuMemcpyHtoDAsync, pageable, 4 KiB", [&] { DRIVER(cuMemcpyHtoDAsync(at[2], host, 4096, other)); });
	row("cuMemcpyHtoDAsync, pageable, 2 MiB", [&] { DRIVER(cuMemcpyHtoDAsync(at[2], host, 2 << 20, other)); });
	row("cuMemcpyDtoDAsync", [&] { DRIVER(cuMemcpyDtoDAsync(at[2], at[3], 4 << 20, other)); });
	row("cuMemsetD8Async", [&] { DRIVER(cuMemsetD8Async(at[2], 1, 4 << 20, other)); });
	row("cuMemsetD2D32Async", [&] { DRIVER(cuMemsetD2D32Async(at[2], 4096, 1, 100, 100, other)); });
	free(host);
}

static void stream_rows(void)
{
	static CUevent events[40000];
	CUstream stream, worked;
	CUdeviceptr some = mapped(1), pooled;

	DRIVER(cuStreamCreateWithPriority(&worked, CU_STREAM_NON_BLOCKING, 0));
	DRIVER(cuMemsetD8Async(some, 1, 4096, worked));
	row("cuEventCreate, the first", [&] { DRIVER(cuEventCreate(&events[0], CU_EVENT_DISABLE_TIMING)); });
	row("cuEventCreate, 39,999 more", [&] {
		for (int i = 1; i < 40000; i++)
			DRIVER(cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING));
	});
	row("cuEventRecord, 40,000", [&] {
		for (auto event : events)
			DRIVER(cuEventRecord(event, other));
	});
	row("cuStreamWaitEvent, 900", [&] {
		for (int i = 0; i < 900; i++)
			DRIVER(cuStreamWaitEvent(other, events[i], 0));
	});
	row("cuEventDestroy, 40,000", [&] {
		for (auto event : events)
			DRIVER(cuEventDestroy(event));
	});
	row("cuStreamCreateWithPriority", [&] { DRIVER(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0)); });
	row("cuStreamDestroy, idle", [&] { DRIVER(cuStreamDestroy(stream)); });
	row("cuStreamDestroy, its work done", [&] { DRIVER(cuStreamDestroy(worked)); });
	row("cuMemAllocAsync, the first", [&] { DRIVER(cuMemAllocAsync(&pooled, 64 << 20, other)); });
	row("cuMemFreeAsync", [&] { DRIVER(cuMemFreeAsync(pooled, other)); });
	row("cuMemAllocAsync, more", [&] { DRIVER(cuMemAllocAsync(&pooled, 256 << 20, other)); });
	row("cuStreamWriteValue64", [&] { DRIVER(cuStreamWriteValue64(other, some, 1, 0)); });
	row("cuLaunchHostFunc", [&] { DRIVER(cuLaunchHostFunc(other, [](void *) {}, NULL)); });
}

static void launch_rows(void)
{
	int *out = (int *)(uintptr_t)mapped(1);
	cudaStream_t stream = other;
	cudaFuncAttributes attributes;

	row("a kernel's first launch", [&] { plain<<<1, 1, 0, stream>>>(out); });
	row("its second", [&] { plain<<<1, 1, 0, stream>>>(out); });
	row("900 of it", [&] {
		for (int i = 0; i < 900; i++)
			plain<<<1, 1, 0, stream>>>(out);
	});
	row("cudaFuncGetAttributes (loads)", [&] { cudaFuncGetAttributes(&attributes, plain_again); });
	cudaFuncGetAttributes(&attributes, stacked<64>);
	cudaFuncGetAttributes(&attributes, stacked<4096>);
	cudaFuncGetAttributes(&attributes, stacked<16384>);
	cudaFuncGetAttributes(&attributes, shared_memory);
	row("loaded, 256 bytes of stack a thread", [&] { stacked<64><<<1, 32, 0, stream>>>(out, 3); });
	row("loaded, 16 KiB of stack a thread", [&] { stacked<4096><<<1, 32, 0, stream>>>(out, 3); });
	row("the same again", [&] { stacked<4096><<<1, 32, 0, stream>>>(out, 3); });
	row("loaded, 64 KiB of stack a thread", [&] { stacked<16384><<<1, 32, 0, stream>>>(out, 3); });
	row("cuFuncSetAttribute, 100 KiB shared", [&] {
		cudaFuncSetAttribute(shared_memory, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10);
	});
	row("a launch with 100 KiB shared", [&] { shared_memory<<<1, 32, 100 << 10, stream>>>(out); });
}

static void library_rows(void)
{
	const int n = 512;
	float one = 1, zero = 0;
	float *a = (float *)(uintptr_t)mapped(8), *b = a + n * n, *c = b + n * n;
	cublasHandle_t handle;

	cublasCreate(&handle);
	cublasSetStream(handle, other);
	auto gemm = [&](int m, cudaDataType_t type) {
		cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, m, m, &one, a, type, m, b, type, m,
			&zero, c, CUDA_R_32F, m, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
	};
	row("cublasGemmEx f32, the first", [&] { gemm(n, CUDA_R_32F); });
	row("the same again", [&] { gemm(n, CUDA_R_32F); });
	row("bf16, the first", [&] { gemm(n, CUDA_R_16BF); });
	row("bf16, another shape", [&] { gemm(96, CUDA_R_16BF); });
	row("cublasSetStream", [&] { cublasSetStream(handle, held); cublasSetStream(handle, other); });
	row("cublasSetWorkspace", [&] { cublasSetWorkspace(handle, c, 4 << 20); });
	row("the first shape with it", [&] { gemm(n, CUDA_R_16BF); });
}

int main()
{
	void *base;

	cudaFree(0);
	DRIVER(cuStreamCreate(&held, CU_STREAM_NON_BLOCKING));
	DRIVER(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	DRIVER(cuMemHostAlloc(&base, 4096, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
	word = (uint64_t *)base;
	*word = 0;
	DRIVER(cuMemHostGetDevicePointer(&word_at, base, 0));
	memory_rows();
	stream_rows();
	launch_rows();
	library_rows();
	return 0;
}
