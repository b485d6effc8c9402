/* SPDX-License-Identifier: Apache-2.0
 *
 * The runtime API, with the registration that nvcc writes into host code done by hand, so that
 * any compiler will do: kernels by their stubs' addresses, a constant by its name, streams,
 * events, 2D copies, memory of pools, errors, and a library that is loaded from the same bytes.
 * What it prints is the same wherever the GPU is.
 */
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h" /* fatbin[]: made of kernels.cu */

#define COUNT 50000u
#define BLOCKS ((COUNT + 255) / 256)

/* ---- what nvcc writes ---- */

struct wrapper {
	int magic, version;
	const void *data;
	void *unused;
};
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
	int limit, void *tid, void *bid, void *block, void *grid, int *warp);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
	size_t size, int constant, int global);

static struct wrapper wrapper = {0x466243b1, 1, fatbin, NULL};
static void **handle;
static char add_step, block_sums;
static unsigned step;

static void gone(void)
{
	__cudaUnregisterFatBinary(handle);
}

static void registered(void)
{
	handle = __cudaRegisterFatBinary(&wrapper);
	__cudaRegisterFunction(
		handle, &add_step, "add_step", "add_step", -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterFunction(handle, &block_sums, "block_sums", "block_sums", -1, NULL, NULL,
		NULL, NULL, NULL);
	__cudaRegisterVar(handle, (char *)&step, "step", "step", 0, sizeof(step), 1, 0);
	__cudaRegisterFatBinaryEnd(handle);
	atexit(gone);
}

/* ---- the program ---- */

static int failed;

static void must(cudaError_t status, const char *what)
{
	if (!status)
		return;
	printf("%s: %d %s\n", what, (int)status, cudaGetErrorName(status));
	fflush(stdout);
	exit(status > 255 ? 255 : (int)status);
}
#define MUST(call) must(call, #call)

static void holds(int it, const char *what)
{
	printf("%s: %s\n", what, it ? "right" : "WRONG");
	failed |= !it;
}

static void launch(
	const void *kernel, unsigned *at, unsigned n, void *third, cudaStream_t stream)
{
	void *arguments[] = {&at, &n, third};
	dim3 grid = {BLOCKS, 1, 1}, block = {256, 1, 1};

	MUST(cudaLaunchKernel(kernel, grid, block, arguments, 0, stream));
}

static void device(void)
{
	struct cudaDeviceProp properties;
	int count, runtime;

	MUST(cudaGetDeviceCount(&count));
	MUST(cudaGetDeviceProperties(&properties, 0));
	MUST(cudaRuntimeGetVersion(&runtime));
	printf("runtime %d, %d device(s): %s, %d.%d, %llu MiB\n", runtime / 1000, count,
		properties.name, properties.major, properties.minor,
		(unsigned long long)(properties.totalGlobalMem >> 20));
}

static uint64_t sum_of(const uint64_t *sums)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < BLOCKS; i++)
		sum += sums[i];
	return sum;
}

static void kernels(void)
{
	unsigned *numbers = malloc(COUNT * sizeof(*numbers)), *at, by = 7, times = 3;
	uint64_t *sums = malloc(BLOCKS * sizeof(*sums)), *there, expected = 0;
	cudaStream_t stream;
	cudaEvent_t done;

	for (unsigned i = 0; i < COUNT; i++) {
		numbers[i] = i ^ 0x55;
		expected += numbers[i] + by * times;
	}
	MUST(cudaMalloc((void **)&at, COUNT * sizeof(*at)));
	MUST(cudaMalloc((void **)&there, BLOCKS * sizeof(*there)));
	MUST(cudaStreamCreate(&stream));
	MUST(cudaEventCreate(&done));
	MUST(cudaMemcpyAsync(at, numbers, COUNT * sizeof(*at), cudaMemcpyHostToDevice, stream));
	MUST(cudaMemcpyToSymbol(&step, &by, sizeof(by), 0, cudaMemcpyHostToDevice));
	launch(&add_step, at, COUNT, &times, stream);
	launch(&block_sums, at, COUNT, &there, stream);
	MUST(cudaEventRecord(done, stream));
	MUST(cudaEventSynchronize(done));
	MUST(cudaMemcpy(sums, there, BLOCKS * sizeof(*sums), cudaMemcpyDeviceToHost));
	holds(sum_of(sums) == expected, "two kernels and a constant");
	MUST(cudaEventDestroy(done));
	MUST(cudaStreamDestroy(stream));
	MUST(cudaFree(at));
	MUST(cudaFree(there));
	free(numbers);
	free(sums);
}

static void rows(void)
{
	unsigned char from[64][100], to[64][100] = {{0}};
	size_t pitch;
	void *at;

	for (unsigned i = 0; i < sizeof(from); i++)
		from[i / 100][i % 100] = (unsigned char)(i * 7);
	MUST(cudaMallocPitch(&at, &pitch, 100, 64));
	MUST(cudaMemcpy2D(at, pitch, from, 100, 100, 64, cudaMemcpyHostToDevice));
	MUST(cudaMemcpy2D(to, 100, at, pitch, 100, 64, cudaMemcpyDeviceToHost));
	holds(!memcmp(from, to, sizeof(from)), "rows there and back");
	MUST(cudaFree(at));
}

static void pools(void)
{
	cudaStream_t stream;
	unsigned word = 0;
	void *at;

	MUST(cudaStreamCreate(&stream));
	MUST(cudaMallocAsync(&at, 1 << 20, stream));
	MUST(cudaMemsetAsync(at, 0x11, 1 << 20, stream));
	MUST(cudaMemcpyAsync(&word, (char *)at + 4096, 4, cudaMemcpyDeviceToHost, stream));
	MUST(cudaFreeAsync(at, stream));
	MUST(cudaStreamSynchronize(stream));
	holds(word == 0x11111111, "memory of a pool");
	MUST(cudaStreamDestroy(stream));
}

static void library(void)
{
	cudaLibrary_t loaded;
	cudaKernel_t kernel;
	unsigned count = 0;

	MUST(cudaLibraryLoadData(&loaded, fatbin, NULL, NULL, 0, NULL, NULL, 0));
	MUST(cudaLibraryGetKernelCount(&count, loaded));
	MUST(cudaLibraryGetKernel(&kernel, loaded, "block_sums"));
	printf("a library of %u kernels\n", count);
	MUST(cudaLibraryUnload(loaded));
}

static void mistakes(void)
{
	static char none;
	dim3 one = {1, 1, 1};
	void *at;

	printf("a launch of nothing says %s\n",
		cudaGetErrorName(cudaLaunchKernel(&none, one, one, NULL, 0, NULL)));
	printf("the last error is %s\n", cudaGetErrorName(cudaGetLastError()));
	printf("and now %s\n", cudaGetErrorName(cudaGetLastError()));
	printf("64 TiB say %s\n", cudaGetErrorName(cudaMalloc(&at, (size_t)1 << 46)));
}

int main(void)
{
	registered();
	device();
	kernels();
	rows();
	pools();
	library();
	mistakes();
	puts(failed ? "FAILED" : "done");
	return failed;
}
