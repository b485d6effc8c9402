/* SPDX-License-Identifier: Apache-2.0
 *
 * Names and texts of cuBLAS's statuses, which cuBLASLt shares.
 */
#ifndef VCUDA_SHIM_LIBRARIES_CUBLAS_STATUS_H
#define VCUDA_SHIM_LIBRARIES_CUBLAS_STATUS_H

#include "protocol/libraries/cublas.h"

const char *cublas_status_name(cublasStatus_t status);
const char *cublas_status_text(cublasStatus_t status);

#endif
