/* SPDX-License-Identifier: Apache-2.0
 *
 * CUPTI's numbers of calls and their names (shim/libraries/cupti/callbacks.h) are those of
 * NVIDIA's headers, in the CUPTI of each ABI.
 */
#include <cupti_driver_cbid.h>
#include <cupti_runtime_cbid.h>
#include <stdio.h>
#include <string.h>

#include "shim/generated/cuda_calls.h"
#include "shim/libraries/cupti/callbacks.h"
#include "tests/die.h"

static void number(unsigned call, unsigned domain, unsigned want, const char *name)
{
	const struct callback got = callback_of(call);
	const char *called = callback_name(domain, want);

	if (got.domain != domain || got.number != want)
		DIE("%s is %u of %u, not %u of %u", name, got.number, got.domain, want, domain);
	if (!called || strcmp(called, name))
		DIE("%u of %u is called %s, not %s", want, domain, called ? called : "nothing",
			name);
}
#define DRIVER(call) number(CALL_##call, CALLBACK_DRIVER, CUPTI_DRIVER_TRACE_CBID_##call, #call)
#define RUNTIME(call, version)                                                                 \
	number(CALL_##call, CALLBACK_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_##call##version,        \
		#call #version)

static void none(unsigned call)
{
	if (callback_of(call).domain || callback_of(call).number)
		DIE("call %u has a number", call);
}

static void unnamed(unsigned domain, uint32_t number)
{
	if (callback_name(domain, number))
		DIE("%u of %u is called %s", number, domain, callback_name(domain, number));
}

static void both(void)
{
	DRIVER(cuInit);
	DRIVER(cuLaunchKernel);
	DRIVER(cuLaunchKernel_ptsz);
	DRIVER(cuMemcpyHtoDAsync_v2);
	DRIVER(cuMemcpy);
	DRIVER(cuStreamGetDevice);
	RUNTIME(cudaDriverGetVersion, _v3020);
	RUNTIME(cudaLaunchKernel, _v7000);
	RUNTIME(cudaLaunchKernel_ptsz, _v7000);
	RUNTIME(cudaMemcpyAsync, _v3020);
	/* The newest of several. */
	RUNTIME(cudaStreamDestroy, _v5050);
	RUNTIME(cudaGraphInstantiate, _v12000);
	none(CALL_cublasCreate_v2);
	none(CALL_LAST);
	unnamed(CALLBACK_NONE, 0);
	unnamed(CALLBACK_RUNTIME + 1, 1);
	unnamed(CALLBACK_DRIVER, CUPTI_DRIVER_TRACE_CBID_SIZE);
	unnamed(CALLBACK_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_SIZE);
	unnamed(CALLBACK_RUNTIME, UINT32_MAX);
	if (callback_numbers(CALLBACK_DRIVER) != CUPTI_DRIVER_TRACE_CBID_SIZE ||
		callback_numbers(CALLBACK_RUNTIME) != CUPTI_RUNTIME_TRACE_CBID_SIZE)
		DIE("there are other numbers");
	/* As NVIDIA's says. */
	if (strcmp(callback_name(CALLBACK_DRIVER, 0), "INVALID") ||
		strcmp(callback_name(CALLBACK_RUNTIME, 0), "INVALID"))
		DIE("0 has another name");
}

int main(void)
{
	both();
#if VCUDA_ABI == 12
	RUNTIME(cudaGetDeviceProperties, _v3020);
	RUNTIME(cudaGetDeviceProperties_v2, _v12000);
	RUNTIME(cudaStreamGetCaptureInfo_v3_ptsz, _v12030);
	none(CALL___cudaLaunchKernel);
#else
	RUNTIME(cudaGetDeviceProperties, _v12000);
	RUNTIME(cudaStreamGetCaptureInfo_ptsz, _v12030);
	RUNTIME(__cudaLaunchKernel, _v13000);
	none(CALL_cudaGetDeviceProperties_v2);
#endif
	printf("numbers are NVIDIA's\n");
	return 0;
}
