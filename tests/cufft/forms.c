/* SPDX-License-Identifier: Apache-2.0
 *
 * The same transform by each form of plan: by 32 and 64 bits, by cufftXtMakePlanMany, in half
 * and bfloat16, with sizes that are asked for before; all results are alike, as far as their
 * type goes.
 */
#include "tests/cufft/check.h"

#define N 32
#define BATCH 3

static double complex expected[N * BATCH];

static void compare(const char *what, struct numbers *data)
{
	numbers_fetch(data);
	for (size_t i = 0; i < N * BATCH; i++)
		near(what, i, complex_at(data, i), expected[i], N, data->wide);
	numbers_fill(data);
	numbers_send(data);
}

static void by_many(struct numbers *data)
{
	int n[1] = {N};
	size_t said, needed;
	cufftHandle plan;

	FFT(cufftPlanMany(&plan, 1, n, NULL, 1, 0, NULL, 1, 0, CUFFT_C2C, BATCH));
	FFT(cufftExecC2C(plan, data->device, data->device, CUFFT_FORWARD));
	compare("cufftPlanMany", data);
	FFT(cufftDestroy(plan));
	FFT(cufftCreate(&plan));
	FFT(cufftGetSizeMany(plan, 1, n, NULL, 1, 0, NULL, 1, 0, CUFFT_C2C, BATCH, &said));
	FFT(cufftMakePlanMany(plan, 1, n, NULL, 1, 0, NULL, 1, 0, CUFFT_C2C, BATCH, &needed));
	FFT(cufftXtExec(plan, data->device, data->device, CUFFT_FORWARD));
	compare("cufftMakePlanMany", data);
	FFT(cufftDestroy(plan));
}

static void by_many64(struct numbers *data)
{
	long long n[1] = {N};
	size_t said, needed;
	cufftHandle plan;

	FFT(cufftCreate(&plan));
	FFT(cufftGetSizeMany64(plan, 1, n, n, 1, N, n, 1, N, CUFFT_C2C, BATCH, &said));
	FFT(cufftMakePlanMany64(plan, 1, n, n, 1, N, n, 1, N, CUFFT_C2C, BATCH, &needed));
	FFT(cufftExecC2C(plan, data->device, data->device, CUFFT_FORWARD));
	compare("cufftMakePlanMany64", data);
	FFT(cufftDestroy(plan));
}

static void by_xt(struct numbers *data)
{
	long long n[1] = {N};
	size_t said, needed;
	cufftHandle plan;
	void *area;

	FFT(cufftCreate(&plan));
	FFT(cufftSetAutoAllocation(plan, 0));
	FFT(cufftXtGetSizeMany(plan, 1, n, NULL, 1, 1, CUDA_C_32F, NULL, 1, 1, CUDA_C_32F,
		BATCH, &said, CUDA_C_32F));
	FFT(cufftXtMakePlanMany(plan, 1, n, NULL, 1, 1, CUDA_C_32F, NULL, 1, 1, CUDA_C_32F,
		BATCH, &needed, CUDA_C_32F));
	CUDA(cudaMalloc(&area, needed ? needed : 1));
	FFT(cufftXtSetWorkArea(plan, &area));
	FFT(cufftXtExec(plan, data->device, data->device, CUFFT_FORWARD));
	compare("cufftXtMakePlanMany", data);
	CUDA(cudaFree(area));
	FFT(cufftDestroy(plan));
}

/* An impulse is one everywhere, which is exact in every type. ONE: 1 in that type. */
static void by_half(cudaDataType type, uint16_t one)
{
	uint16_t host[2 * N] = {one};
	long long n[1] = {N};
	cufftHandle plan;
	size_t bytes;
	void *device;

	CUDA(cudaMalloc(&device, sizeof(host)));
	CUDA(cudaMemcpy(device, host, sizeof(host), cudaMemcpyHostToDevice));
	FFT(cufftCreate(&plan));
	FFT(cufftXtMakePlanMany(
		plan, 1, n, NULL, 1, 1, type, NULL, 1, 1, type, 1, &bytes, type));
	FFT(cufftXtExec(plan, device, device, CUFFT_FORWARD));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 2 * N; i++)
		if ((host[i] & 0x7fff) != (i % 2 ? 0 : one))
			DIE("type %d: number %d is %#x", (int)type, i, host[i]);
	FFT(cufftDestroy(plan));
	CUDA(cudaFree(device));
}

/* From real numbers the type to compute in is the complex one, or the input's: nvmath says the
 * latter, PyTorch the former. */
static void by_real(cudaDataType run)
{
	float host[2 * (N / 2 + 1)] = {1};
	long long n[1] = {N};
	cufftHandle plan;
	size_t bytes;
	void *device;

	CUDA(cudaMalloc(&device, sizeof(host)));
	CUDA(cudaMemcpy(device, host, sizeof(host), cudaMemcpyHostToDevice));
	FFT(cufftCreate(&plan));
	FFT(cufftXtMakePlanMany(
		plan, 1, n, NULL, 1, 1, CUDA_R_32F, NULL, 1, 1, CUDA_C_32F, 1, &bytes, run));
	FFT(cufftXtExec(plan, device, device, CUFFT_FORWARD));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N / 2 + 1; i++)
		if (fabsf(host[2 * i] - 1) > 1e-6f || fabsf(host[2 * i + 1]) > 1e-6f)
			DIE("computed in %d: number %d is %g, %g", (int)run, i, host[2 * i],
				host[2 * i + 1]);
	FFT(cufftDestroy(plan));
	CUDA(cudaFree(device));
}

static void estimates(void)
{
	int n[1] = {N};
	size_t bytes;

	FFT(cufftEstimate1d(N, CUFFT_C2C, BATCH, &bytes));
	FFT(cufftEstimateMany(1, n, NULL, 1, 0, NULL, 1, 0, CUFFT_C2C, BATCH, &bytes));
	FFT(cufftEstimate2d(N, N, CUFFT_Z2Z, &bytes));
	FFT(cufftEstimate3d(N, N, N, CUFFT_R2C, &bytes));
}

int main(void)
{
	struct numbers data = numbers_new(2 * N * BATCH, false);
	static double complex input[N * BATCH];

	numbers_fill(&data);
	numbers_send(&data);
	for (size_t i = 0; i < N * BATCH; i++)
		input[i] = complex_at(&data, i);
	for (int i = 0; i < N * BATCH; i++)
		expected[i] = transform_at(input + i / N * N, (int[]){1, 1, N},
			(int[]){0, 0, i % N}, CUFFT_FORWARD);
	by_many(&data);
	by_many64(&data);
	by_xt(&data);
	by_half(CUDA_C_16F, 0x3c00);
	by_half(CUDA_C_16BF, 0x3f80);
	by_real(CUDA_C_32F);
	by_real(CUDA_R_32F);
	estimates();
	numbers_free(&data);
	puts("ok");
	return 0;
}
