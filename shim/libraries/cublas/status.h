/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLAS's statuses, which cuBLASLt shares.
 */
#ifndef VCUDA_SHIM_LIBRARIES_CUBLAS_STATUS_H
#define VCUDA_SHIM_LIBRARIES_CUBLAS_STATUS_H

#include <cuda.h>

#include "protocol/libraries/cublas.h"

/* What cuBLASLt's worker makes of them, and the session's own, turned back. */
cublasStatus_t cublas_status(CUresult status);
const char *cublas_status_name(cublasStatus_t status);
const char *cublas_status_text(cublasStatus_t status);

#endif
