/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan whose work area is limited (cufftXtSetWorkAreaPolicy) transforms as before, with an
 * area of the program's and with one of its own; callbacks of a program that is linked with
 * NVIDIA's dynamic library are answered as by that.
 */
#include "tests/cufft/check.h"

#define N 256

static struct numbers data;

static void transforms(cufftHandle plan)
{
	double complex from[N];
	const int n[3] = {1, 1, N}, at[3] = {0, 0, 17};

	numbers_fill(&data);
	for (int i = 0; i < N; i++)
		from[i] = complex_at(&data, (size_t)i);
	numbers_send(&data);
	FFT(cufftExecC2C(plan, data.device, data.device, CUFFT_FORWARD));
	numbers_fetch(&data);
	near("limited", 17, complex_at(&data, 17), transform_at(from, n, at, -1), N, false);
}

/* Another plan of the same sizes has the area that it always had. */
static void shrinks(bool own)
{
	size_t full = 0, bytes = 0, limit = 64, now = 0;
	void *area = NULL;
	cufftHandle plan, other;

	FFT(cufftCreate(&plan));
	FFT(cufftSetAutoAllocation(plan, own));
	FFT(cufftMakePlan1d(plan, N, CUFFT_C2C, 1, &full));
	FFT(cufftXtSetWorkAreaPolicy(plan, CUFFT_WORKAREA_MINIMAL, NULL));
	FFT(cufftGetSize(plan, &bytes));
	if (bytes > full || (full && bytes == full))
		DIE("%zu bytes of work area, %zu before", bytes, full);
	if (!own && bytes) {
		CUDA(cudaMalloc(&area, bytes));
		FFT(cufftSetWorkArea(plan, area));
	}
	transforms(plan);
	FFT(cufftCreate(&other));
	FFT(cufftMakePlan1d(other, N, CUFFT_C2C, 1, &bytes));
	if (bytes != full)
		DIE("another plan needs %zu bytes, not %zu", bytes, full);
	transforms(other);
	if (cufftXtSetWorkAreaPolicy(other, CUFFT_WORKAREA_USER, &limit) == CUFFT_SUCCESS) {
		FFT(cufftGetSize(other, &now));
		if (now > 64)
			DIE("%zu bytes of work area, 64 are allowed", now);
	}
	transforms(other);
	FFT_IS(cufftXtSetWorkAreaPolicy(plan, CUFFT_WORKAREA_PERFORMANCE, &limit),
		CUFFT_INVALID_PLAN);
	FFT(cufftDestroy(other));
	FFT(cufftDestroy(plan));
	CUDA(cudaFree(area));
}

#define MANY 64
#define LARGE (1 << 21)

/* Where there is no memory for a larger work area, the plan keeps what it has. */
static void full(void)
{
	void *held[MANY];
	size_t bytes, now = 1, want = (size_t)1 << 40;
	cufftHandle plan;
	cufftResult least;
	int count = 0;

	FFT(cufftPlan1d(&plan, LARGE, CUFFT_C2C, 1));
	FFT(cufftGetSize(plan, &bytes));
	least = cufftXtSetWorkAreaPolicy(plan, CUFFT_WORKAREA_MINIMAL, NULL);
	EXPECTED(least, CUFFT_SUCCESS); /* cuFFT 12 has no smaller plan of that size */
	if (least) {
		FFT(cufftDestroy(plan));
		return;
	}
	FFT(cufftGetSize(plan, &now));
	while (count < MANY && want > (size_t)1 << 21) {
		if (cudaMalloc(&held[count], want) == cudaSuccess)
			count++;
		else
			want /= 2;
	}
	(void)cudaGetLastError();
	if (now < bytes)
		EXPECTED(cufftXtSetWorkAreaPolicy(plan, CUFFT_WORKAREA_USER, &bytes),
			CUFFT_ALLOC_FAILED);
	FFT(cufftGetSize(plan, &bytes));
	if (bytes != now)
		DIE("%zu bytes of work area, not %zu", bytes, now);
	while (count)
		CUDA(cudaFree(held[--count]));
	FFT(cufftXtSetWorkAreaPolicy(plan, CUFFT_WORKAREA_MINIMAL, NULL));
	FFT(cufftDestroy(plan));
}

int main(void)
{
	cufftHandle plan;
	void *nothing = NULL;

	data = numbers_new(2 * N, false);
	shrinks(true);
	shrinks(false);
	full();
	FFT(cufftCreate(&plan));
	FFT_IS(cufftXtSetWorkAreaPolicy(plan, CUFFT_WORKAREA_MINIMAL, NULL),
		CUFFT_INVALID_PLAN);
	FFT_IS(cufftXtSetCallback(plan, &nothing, CUFFT_CB_LD_COMPLEX, NULL),
		CUFFT_NOT_IMPLEMENTED);
	FFT_IS(cufftXtClearCallback(plan, CUFFT_CB_LD_COMPLEX), CUFFT_NOT_IMPLEMENTED);
	FFT_IS(cufftXtSetCallbackSharedSize(1 << 20, CUFFT_CB_LD_COMPLEX, 16),
		CUFFT_INVALID_PLAN);
	FFT(cufftDestroy(plan));
	numbers_free(&data);
	puts("ok");
	return 0;
}
