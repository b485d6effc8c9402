/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans of two devices: each is for the device that was current when it was made, and may be
 * destroyed while another one is. Where there is one device, plans of that one.
 */
#include "tests/cufft/check.h"

#define N 16
#define ROUNDS 3

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

int main(void)
{
	struct numbers data[2];
	cufftHandle plan[2];
	int count;

	CUDA(cudaGetDeviceCount(&count));
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
