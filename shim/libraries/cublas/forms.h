/* SPDX-License-Identifier: Apache-2.0
 *
 * What shim/generated/cublas_forms.c may name: functions that many of cuBLAS's functions are a
 * form of, as their as() in cublas.api says.
 */
#ifndef VCUDA_SHIM_CUBLAS_FORMS_H
#define VCUDA_SHIM_CUBLAS_FORMS_H

#include <stdbool.h>

#include "shim/generated/cublas_hand.h"
#include "protocol/libraries/cublas_status.h"

enum cublas_direction { TO_DEVICE, TO_HOST };
/* Steps are in elements of `size` bytes. */
cublasStatus_t cublas_copy_vector(enum cublas_direction direction, int64_t n, int64_t size,
	const void *from, int64_t from_step, void *to, int64_t to_step, bool async,
	CUstream stream);
cublasStatus_t cublas_copy_matrix(enum cublas_direction direction, int64_t rows, int64_t cols,
	int64_t size, const void *from, int64_t from_step, void *to, int64_t to_step,
	bool async, CUstream stream);

#endif
