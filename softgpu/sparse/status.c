/* SPDX-License-Identifier: Apache-2.0
 *
 * What statuses are called.
 */
#include "softgpu/sparse/sparse.h"

static const struct {
	const char *name, *text;
} statuses[] = {
	{"CUSPARSE_STATUS_SUCCESS", "success"},
	{"CUSPARSE_STATUS_NOT_INITIALIZED", "initialization error"},
	{"CUSPARSE_STATUS_ALLOC_FAILED", "insufficient resources"},
	{"CUSPARSE_STATUS_INVALID_VALUE", "invalid value"},
	{"CUSPARSE_STATUS_ARCH_MISMATCH", "architecture mismatch"},
	{"CUSPARSE_STATUS_MAPPING_ERROR", "texture mapping error"},
	{"CUSPARSE_STATUS_EXECUTION_FAILED", "kernel launch failure"},
	{"CUSPARSE_STATUS_INTERNAL_ERROR", "internal error"},
	{"CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED", "matrix type not supported"},
	{"CUSPARSE_STATUS_ZERO_PIVOT", "zero pivot"},
	{"CUSPARSE_STATUS_NOT_SUPPORTED", "operation not supported"},
	{"CUSPARSE_STATUS_INSUFFICIENT_RESOURCES", "insufficient resources"},
};
#define STATUSES (int)(sizeof(statuses) / sizeof(*statuses))

const char *sparse_status_name(int status)
{
	return status >= 0 && status < STATUSES ? statuses[status].name
						: "unrecognized error code";
}

const char *sparse_status_text(int status)
{
	return status >= 0 && status < STATUSES ? statuses[status].text
						: "unrecognized error code";
}
