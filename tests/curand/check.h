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

#include "tests/check.h"

#define RAND_IS(CALL, WANT) ANSWERS(CALL, WANT)
#define RAND(CALL) RAND_IS(CALL, CURAND_STATUS_SUCCESS)

#endif
