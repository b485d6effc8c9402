/* SPDX-License-Identifier: Apache-2.0
 *
 * Does one thing with cuFFT many times, so that what each costs can be counted.
 *
 *	steady transform|real|stream|area|again|estimate|shape COUNT
 */
#include "tests/cufft/check.h"

#define N 256

static cufftHandle plan, forward, inverse, own;
static cudaStream_t streams[2];
static void *from, *to, *areas[2];

static void step(const char *thing, int i)
{
	size_t bytes;

	if (!strcmp(thing, "transform")) {
		FFT(cufftExecC2C(plan, from, to, CUFFT_FORWARD));
		FFT(cufftExecC2C(plan, to, from, CUFFT_INVERSE));
	} else if (!strcmp(thing, "real")) {
		FFT(cufftExecR2C(forward, from, to));
		FFT(cufftExecC2R(inverse, to, from));
	} else if (!strcmp(thing, "stream")) {
		FFT(cufftSetStream(plan, streams[i % 2]));
		FFT(cufftExecC2C(plan, from, from, CUFFT_FORWARD));
	} else if (!strcmp(thing, "area")) {
		FFT(cufftSetWorkArea(own, areas[i % 2]));
		FFT(cufftXtExec(own, from, to, CUFFT_FORWARD));
	} else if (!strcmp(thing, "again")) { /* a plan as there was one before */
		FFT(cufftPlan1d(&own, N, CUFFT_C2C, 3));
		FFT(cufftExecC2C(own, from, to, CUFFT_FORWARD));
		FFT(cufftDestroy(own));
	} else if (!strcmp(thing, "estimate")) {
		FFT(cufftEstimate1d(N, CUFFT_C2C, 3, &bytes));
		FFT(cufftGetSize1d(plan, N, CUFFT_C2C, 3, &bytes));
	} else if (!strcmp(thing, "shape")) { /* a plan as there was none */
		FFT(cufftPlan1d(&own, 2 + i, CUFFT_C2C, 1));
		FFT(cufftExecC2C(own, from, to, CUFFT_FORWARD));
		FFT(cufftDestroy(own));
	} else {
		DIE("unknown thing '%s'", thing);
	}
}

int main(int argc, char **argv)
{
	int count = argc > 2 ? atoi(argv[2]) : 0;
	size_t bytes;

	if (count < 1)
		DIE("usage: steady THING COUNT");
	CUDA(cudaMalloc(&from, 3 * N * sizeof(cufftComplex)));
	CUDA(cudaMalloc(&to, 3 * N * sizeof(cufftComplex)));
	CUDA(cudaMemset(from, 0, 3 * N * sizeof(cufftComplex)));
	FFT(cufftPlan1d(&plan, N, CUFFT_C2C, 1));
	FFT(cufftPlan1d(&forward, N, CUFFT_R2C, 1));
	FFT(cufftPlan1d(&inverse, N, CUFFT_C2R, 1));
	FFT(cufftCreate(&own));
	FFT(cufftSetAutoAllocation(own, 0));
	FFT(cufftMakePlan1d(own, N, CUFFT_C2C, 1, &bytes));
	for (int i = 0; i < 2; i++) {
		CUDA(cudaStreamCreate(&streams[i]));
		CUDA(cudaMalloc(&areas[i], bytes ? bytes : 1));
	}
	for (int i = 0; i < count; i++)
		step(argv[1], i);
	CUDA(cudaDeviceSynchronize());
	return 0;
}
