/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of the software GPU's driver share: they are programs linked with it, and call
 * it as any program calls libcuda.
 */
#ifndef VCUDA_TESTS_SOFTGPU_TEST_H
#define VCUDA_TESTS_SOFTGPU_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda.h>

#define is(call, expected) assert_int_equal(call, expected)
#define ok(call) is(call, CUDA_SUCCESS)

/* Under TSan the driver's window is elsewhere, so there a fixed address cannot be asked for. */
static inline CUdeviceptr fixed_address(CUdeviceptr wish)
{
#ifdef __SANITIZE_THREAD__
	(void)wish;
	return 0;
#else
	return wish;
#endif
}

static inline int context_setup(void **state)
{
	CUcontext context;

	(void)state;
	return cuInit(0) || cuCtxCreate(&context, NULL, 0, 0);
}

static inline int context_teardown(void **state)
{
	CUcontext context;

	(void)state;
	return cuCtxGetCurrent(&context) || cuCtxDestroy(context);
}

#endif
