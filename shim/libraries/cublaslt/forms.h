/* SPDX-License-Identifier: Apache-2.0
 *
 * What the stubs of shim/generated/ may name: functions that many of cuBLASLt's functions
 * are a form of, as their as() in cublaslt.api says.
 */
#ifndef VCUDA_SHIM_CUBLASLT_FORMS_H
#define VCUDA_SHIM_CUBLASLT_FORMS_H

#include <stdlib.h>

#include "protocol/generated/cublaslt_ops.h"
#include "shim/generated/cublaslt_hand.h"
#include "protocol/libraries/cublas_status.h"
#include "shim/libraries/cublaslt/cublaslt.h"

static inline cublasStatus_t cublaslt_descriptor_free(void *desc)
{
	free(desc);
	return CUBLAS_STATUS_SUCCESS;
}

/* A descriptor of that kind. */
cublasStatus_t cublaslt_attribute_set(
	void *desc, enum cublaslt_kind kind, int number, const void *from, size_t from_bytes);
cublasStatus_t cublaslt_attribute_get(const void *desc, enum cublaslt_kind kind, int number,
	void *to, size_t to_bytes, size_t *written);

/* Lists may be longer than an answer: they come in slices. */
cublasStatus_t cublaslt_algo_attribute(uint16_t op, const cublasLtMatmulAlgo_t *algo, int attr,
	void *buf, size_t room, size_t *written);

#endif
