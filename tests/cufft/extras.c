/* SPDX-License-Identifier: Apache-2.0
 *
 * What travels with a plan in frames of its own, a work area's policy and callbacks, is known
 * to an agent or is not: both are answered alike, and plans without them transform before and
 * after. tests/skew runs it through the release before this one.
 */
#include "tests/cufft/check.h"

#define N 128

static struct numbers data;

static void transforms(cufftHandle plan)
{
	double complex from[N];
	const int n[3] = {1, 1, N}, at[3] = {0, 0, 5};

	numbers_fill(&data);
	for (int i = 0; i < N; i++)
		from[i] = complex_at(&data, (size_t)i);
	numbers_send(&data);
	FFT(cufftExecC2C(plan, data.device, data.device, CUFFT_FORWARD));
	numbers_fetch(&data);
	near("plain", 5, complex_at(&data, 5), transform_at(from, n, at, -1), N, false);
}

int main(void)
{
	static const char code[100000]; /* several frames */
	cufftHandle plan, other;
	cufftResult known;

	data = numbers_new(2 * N, false);
	FFT(cufftPlan1d(&plan, N, CUFFT_C2C, 1));
	transforms(plan);
	known = cufftXtSetWorkAreaPolicy(plan, CUFFT_WORKAREA_MINIMAL, NULL);
	if (known && known != CUFFT_NOT_SUPPORTED)
		DIE("a policy: %d", known);
	transforms(plan);
	FFT(cufftCreate(&other));
	FFT_IS(cufftXtSetJITCallback(
		       other, "load", code, sizeof(code), CUFFT_CB_LD_COMPLEX, NULL),
		known);
	FFT(cufftDestroy(other));
	FFT(cufftPlan1d(&other, N, CUFFT_C2C, 1));
	transforms(other);
	transforms(plan);
	FFT(cufftDestroy(other));
	FFT(cufftDestroy(plan));
	numbers_free(&data);
	puts(known ? "ok: the agent knows neither" : "ok");
	return 0;
}
