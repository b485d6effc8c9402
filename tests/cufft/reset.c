/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan is the first that a program makes after cudaDeviceReset, of each device: it has a work
 * area, and transforms.
 */
#include "tests/cufft/check.h"

#define N 256

static void transforms(void)
{
	cufftHandle plan;
	struct numbers data;

	FFT(cufftPlan1d(&plan, N, CUFFT_C2C, 1));
	data = numbers_new(2 * N, false);
	real_put(&data, 0, 1);
	numbers_send(&data);
	FFT(cufftExecC2C(plan, data.device, data.device, CUFFT_FORWARD));
	numbers_fetch(&data);
	for (size_t i = 0; i < N; i++)
		near("of an impulse", i, complex_at(&data, i), 1, N, false);
	FFT(cufftDestroy(plan));
	numbers_free(&data);
}

int main(void)
{
	int count, now;

	CUDA(cudaGetDeviceCount(&count));
	for (int device = count - 1; device >= 0; device--) {
		CUDA(cudaSetDevice(device));
		for (int i = 0; i < 3; i++) {
			transforms();
			CUDA(cudaDeviceReset());
		}
		transforms();
		CUDA(cudaGetDevice(&now));
		if (now != device)
			DIE("device %d is current, not %d", now, device);
	}
	puts("ok");
	return 0;
}
