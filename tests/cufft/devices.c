/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans of two devices: each is for the device that was current when it was made, and may be
 * destroyed while another one is; a transform behind a copy to the other device is right. Where
 * there is one device, plans of that one.
 */
#include "tests/cufft/check.h"

#define N 16
#define ROUNDS 3

#define LARGE (1 << 20)

static void check(cufftHandle plan, struct numbers *data)
{
	memset(data->host, 0, data->bytes);
	real_put(data, 0, 1);
	numbers_send(data);
	FFT(cufftExecC2C(plan, data->device, data->device, CUFFT_FORWARD));
	numbers_fetch(data);
	for (size_t i = 0; i < N; i++)
		near("of an impulse", i, complex_at(data, i), 1, N, false);
}

/* The copy may still be under way when the transform is asked for. */
static void behind_a_copy(int count)
{
	struct numbers one = numbers_new(2 * N, false), other;
	cufftHandle plan;

	FFT(cufftPlan1d(&plan, N, CUFFT_C2C, 1));
	check(plan, &one);
	CUDA(cudaSetDevice(1 % count));
	other = numbers_new(LARGE, false);
	for (int round = 0; round < ROUNDS; round++) {
		CUDA(cudaSetDevice(1 % count));
		numbers_send(&other);
		CUDA(cudaSetDevice(0));
		FFT(cufftExecC2C(plan, one.device, one.device, CUFFT_FORWARD));
	}
	/* Of an impulse: ones, an impulse of N, ones of N. */
	numbers_fetch(&one);
	for (size_t i = 0; i < N; i++)
		near("behind a copy", i, complex_at(&one, i), i ? 0 : N * N, N * N, false);
	FFT(cufftDestroy(plan));
	numbers_free(&one);
	numbers_free(&other);
}

int main(void)
{
	struct numbers data[2];
	cufftHandle plan[2];
	int count;

	CUDA(cudaGetDeviceCount(&count));
	behind_a_copy(count);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < 2; i++) {
			CUDA(cudaSetDevice(i % count));
			data[i] = numbers_new(2 * N, false);
			FFT(cufftPlan1d(&plan[i], N, CUFFT_C2C, 1));
		}
		for (int i = 0; i < 2; i++) {
			CUDA(cudaSetDevice(i % count));
			check(plan[i], &data[i]);
			numbers_free(&data[i]);
		}
		FFT(cufftDestroy(plan[0])); /* the other device is current */
		FFT(cufftDestroy(plan[1]));
	}
	puts("ok");
	return 0;
}
