/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans that are made, run and destroyed while a host function is outstanding, which may last
 * as long as they wait inside: the function runs, and so does what comes after them.
 */
#include <stdatomic.h>
#include <unistd.h>

#include "tests/cufft/check.h"

#define N 64
#define ROUNDS 4

static atomic_int ran;

static void CUDART_CB slowly(void *argument)
{
	(void)argument;
	usleep(50000);
	ran++;
}

int main(void)
{
	struct numbers data = numbers_new(2 * (N + ROUNDS), false);
	cudaStream_t busy, stream;

	CUDA(cudaStreamCreateWithFlags(&busy, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (int round = 0; round < ROUNDS; round++) {
		size_t n = N + (size_t)round;
		cufftHandle plan;

		memset(data.host, 0, data.bytes);
		real_put(&data, 0, 1);
		numbers_send(&data);
		CUDA(cudaLaunchHostFunc(busy, slowly, NULL));
		FFT(cufftPlan1d(&plan, (int)n, CUFFT_C2C, 1));
		FFT(cufftSetStream(plan, stream));
		FFT(cufftExecC2C(plan, data.device, data.device, CUFFT_FORWARD));
		FFT(cufftDestroy(plan));
		numbers_fetch(&data);
		for (size_t i = 0; i < n; i++)
			near("of an impulse", i, complex_at(&data, i), 1, n, false);
		if (ran != round + 1)
			DIE("the function ran %d times, not %d", ran, round + 1);
	}
	numbers_free(&data);
	puts("ok");
	return 0;
}
