/* SPDX-License-Identifier: Apache-2.0
 *
 * What the cuRAND programs share. They are ordinary programs: natively they check NVIDIA's.
 */
#ifndef TESTS_CURAND_CHECK_H
#define TESTS_CURAND_CHECK_H

#include <cuda_runtime_api.h>
#include <curand.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/die.h"

#define CUDA(CALL)                                                                             \
	do {                                                                                   \
		cudaError_t cuda_ = (CALL);                                                    \
		if (cuda_)                                                                     \
			DIE("%s gave %d (%s)", #CALL, (int)cuda_, cudaGetErrorName(cuda_));    \
	} while (0)
#define RAND_IS(CALL, WANT)                                                                    \
	do {                                                                                   \
		int rand_ = (int)(CALL);                                                       \
		if (rand_ != (int)(WANT))                                                      \
			DIE("%s gave %d, not %d", #CALL, rand_, (int)(WANT));                  \
	} while (0)
#define RAND(CALL) RAND_IS(CALL, CURAND_STATUS_SUCCESS)

#endif
