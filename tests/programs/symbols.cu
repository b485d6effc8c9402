// SPDX-License-Identifier: Apache-2.0
/* __constant__ and __device__ variables: initial values, copies both ways, address and size. */
#include "check.h"

__constant__ float coefficients[64];
__constant__ int weights[4] = {1, 10, 100, 1000};
__device__ int counter = 40;
__device__ double table[3][5];
static __device__ unsigned char flags[7] = {1, 2, 3, 4, 5, 6, 7};

struct settings {
	char name[6];
	short level;
	double factor;
};
__device__ settings configured = {{'s', 'e', 't'}, -3, 2.5};
__device__ int pointed = 99;
__device__ int *pointer = &pointed;

__global__ void use(float *out, int *summary)
{
	int i = threadIdx.x;

	out[i] = coefficients[i] * 2.0f + weights[i % 4];
	if (i == 0) {
		counter += 2;
		summary[0] = counter;
		summary[1] = flags[0] + flags[6];
		summary[2] = configured.level;
		summary[3] = configured.factor == 2.5 && configured.name[2] == 't';
		summary[4] = *pointer;
		table[2][4] = 6.5;
	}
}

int main()
{
	float values[64], results[64], *out;
	int *summary, got[5], number = 0;
	double cells[3][5];
	size_t size = 0;
	void *address = NULL;

	for (int i = 0; i < 64; i++)
		values[i] = (float)i;
	CUDA(cudaMemcpyToSymbol(coefficients, values, sizeof(values)));
	CUDA(cudaMalloc(&out, sizeof(results)));
	CUDA(cudaMalloc(&summary, sizeof(got)));

	use<<<1, 64>>>(out, summary);
	LAUNCHED();
	CUDA(cudaMemcpy(results, out, sizeof(results), cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpy(got, summary, sizeof(got), cudaMemcpyDeviceToHost));
	const int tens[4] = {1, 10, 100, 1000};
	for (int i = 0; i < 64; i++)
		CHECK_EQ_AT(i, results[i], (float)(2 * i + tens[i % 4]));
	CHECK_EQ(got[0], 42);
	CHECK_EQ(got[1], 8);
	CHECK_EQ(got[2], -3);
	CHECK_EQ(got[3], 1);
	CHECK_EQ(got[4], 99);

	CUDA(cudaMemcpyFromSymbol(&number, counter, sizeof(number)));
	CHECK_EQ(number, 42);
	CUDA(cudaMemcpyFromSymbol(cells, table, sizeof(cells)));
	CHECK_EQ(cells[2][4], 6.5);
	CHECK_EQ(cells[0][0], 0.0);

	/* An offset into the symbol, asynchronously, from the device. */
	cudaStream_t stream;
	float changed[2] = {500.0f, 600.0f}, *from;
	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMalloc(&from, sizeof(changed)));
	CUDA(cudaMemcpyAsync(from, changed, sizeof(changed), cudaMemcpyHostToDevice, stream));
	CUDA(cudaMemcpyToSymbolAsync(coefficients, from, sizeof(changed), 10 * sizeof(float),
		cudaMemcpyDeviceToDevice, stream));
	use<<<1, 64, 0, stream>>>(out, summary);
	CUDA(cudaMemcpyFromSymbolAsync(
		&number, counter, sizeof(number), 0, cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamSynchronize(stream));
	CHECK_EQ(number, 44);
	CUDA(cudaMemcpy(results, out, sizeof(results), cudaMemcpyDeviceToHost));
	CHECK_EQ(results[9], 28.0f);
	CHECK_EQ(results[10], 1100.0f);
	CHECK_EQ(results[11], 2200.0f);

	CUDA(cudaGetSymbolSize(&size, table));
	CHECK_EQ(size, sizeof(cells));
	CUDA(cudaGetSymbolSize(&size, flags));
	CHECK_EQ(size, 7u);
	CUDA(cudaGetSymbolAddress(&address, counter));
	number = 1000;
	CUDA(cudaMemcpy(address, &number, sizeof(number), cudaMemcpyHostToDevice));
	use<<<1, 64>>>(out, summary);
	LAUNCHED();
	CUDA(cudaMemcpyFromSymbol(&number, counter, sizeof(number)));
	CHECK_EQ(number, 1002);

	/* Beyond the end, and no symbol at all. */
	CUDA_IS(cudaErrorInvalidValue,
		cudaMemcpyToSymbol(coefficients, values, sizeof(values), sizeof(float)));
	CUDA_IS(cudaErrorInvalidSymbol,
		cudaGetSymbolAddress(&address, (const void *)&number));
	CUDA_IS(cudaErrorInvalidSymbol, cudaGetSymbolAddress(NULL, (const void *)&number));
	CUDA_IS(cudaErrorInvalidSymbol, cudaGetSymbolSize(NULL, (const void *)&number));
	/* A direction that there is not comes after the bounds where the copy waits, else before. */
	CUDA_IS(cudaErrorInvalidValue,
		cudaMemcpyToSymbol(counter, values, 8, 0, (cudaMemcpyKind)77));
	CUDA_IS(cudaErrorInvalidMemcpyDirection,
		cudaMemcpyToSymbolAsync(counter, values, 8, 0, (cudaMemcpyKind)77, stream));
	CUDA_IS(cudaErrorInvalidValue,
		cudaMemcpyToSymbolAsync(counter, values, 8, 0, cudaMemcpyDefault, stream));
	(void)cudaGetLastError();
	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaFree(from));
	CUDA(cudaFree(out));
	CUDA(cudaFree(summary));
	printf("symbols are right\n");
	return 0;
}
