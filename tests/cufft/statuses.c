/* SPDX-License-Identifier: Apache-2.0
 *
 * What cuFFT answers to wrong arguments, as far as NVIDIA's documentation fixes it; and that
 * what was refused harms nothing that comes after it.
 */
#include "tests/cufft/check.h"

#define N 128

int main(void)
{
	struct numbers data = numbers_new(2 * N, false);
	cufftHandle plan, other;
	long long value = 0;
	void *area = NULL;
	size_t bytes = 0, again = 0;
	int version = 0, major = 0;

	/* No plan has this number. */
	FFT_IS(cufftExecC2C(1 << 20, data.device, data.device, CUFFT_FORWARD),
		CUFFT_INVALID_PLAN);
	FFT_IS(cufftDestroy(1 << 20), CUFFT_INVALID_PLAN);
	FFT_IS(cufftSetStream(1 << 20, 0), CUFFT_INVALID_PLAN);
	/* A dimension of nothing: of one, for NVIDIA's library makes a plan of 8 by 0 (H200,
	 * 2026-11-23). */
	FFT_IS(cufftPlan1d(&plan, 0, CUFFT_C2C, 1), CUFFT_INVALID_SIZE);
	EXPECTED(cufftPlan1d(&plan, -1, CUFFT_C2C, 1), CUFFT_INVALID_SIZE);

	/* A plan with the program's work area, made once. */
	FFT(cufftCreate(&plan));
	FFT(cufftSetAutoAllocation(plan, 0));
	FFT(cufftMakePlan1d(plan, N, CUFFT_C2C, 1, &bytes));
	FFT(cufftGetSize(plan, &again));
	if (again != bytes)
		DIE("cufftGetSize gave %zu, not %zu", again, bytes);
	EXPECTED(cufftMakePlan1d(plan, N, CUFFT_C2C, 1, &bytes), CUFFT_INVALID_PLAN);
	CUDA(cudaMalloc(&area, bytes ? bytes : 1));
	FFT(cufftSetWorkArea(plan, area));
	numbers_fill(&data);
	numbers_send(&data);
	FFT(cufftExecC2C(plan, data.device, data.device, CUFFT_FORWARD));
	CUDA(cudaDeviceSynchronize());

	/* Properties are for a plan that is not made yet. */
	FFT(cufftCreate(&other));
	if (other == plan)
		DIE("two plans have the number %d", plan);
	FFT(cufftSetPlanPropertyInt64(other, NVFFT_PLAN_PROPERTY_INT64_PATIENT_JIT, 1));
	FFT(cufftGetPlanPropertyInt64(other, NVFFT_PLAN_PROPERTY_INT64_PATIENT_JIT, &value));
	if (value != 1)
		DIE("the property is %lld, not 1", value);
	FFT(cufftDestroy(other));
	EXPECTED(cufftDestroy(other), CUFFT_INVALID_PLAN);
	FFT(cufftDestroy(plan));

	FFT(cufftGetVersion(&version));
	FFT(cufftGetProperty(MAJOR_VERSION, &major));
	if (version / 1000 != major)
		DIE("version %d, major %d", version, major);
	CUDA(cudaFree(area));
	numbers_free(&data);
	puts("ok");
	return 0;
}
