/* SPDX-License-Identifier: Apache-2.0
 *
 * Versions, texts of statuses, and the log, which is the agent's.
 */
#include "shim/generated/cusparse_hand.h"
#include "shim/libraries/common/items.h"

/* What is told before a handle was made: CUDA 12.9's. */
#define VERSION 12510

static int version(void)
{
	uint32_t agents = *cusparse_front.version;

	return agents ? (int)agents : VERSION;
}

cusparseStatus_t hand_cusparseGetVersion(cusparseHandle_t handle, int *number)
{
	const struct library_handle *h = vcuda_library_find(&cusparse_front, handle);

	if (!h)
		return CUSPARSE_STATUS_INVALID_VALUE;
	if (!number)
		return CUSPARSE_STATUS_INVALID_VALUE;
	*number = h->version ? (int)h->version : version();
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t hand_cusparseGetProperty(libraryPropertyType type, int *value)
{
	int number = version();
	const int parts[] = {number / 1000, number / 100 % 10, number % 100};

	if ((unsigned)type > PATCH_LEVEL || !value)
		return CUSPARSE_STATUS_INVALID_VALUE;
	*value = parts[type];
	return CUSPARSE_STATUS_SUCCESS;
}

static const struct {
	const char *name, *text;
} statuses[] = {
	[CUSPARSE_STATUS_SUCCESS] = {"CUSPARSE_STATUS_SUCCESS", "success"},
	[CUSPARSE_STATUS_NOT_INITIALIZED] = {"CUSPARSE_STATUS_NOT_INITIALIZED",
		"initialization error"},
	[CUSPARSE_STATUS_ALLOC_FAILED] = {"CUSPARSE_STATUS_ALLOC_FAILED", "out of memory"},
	[CUSPARSE_STATUS_INVALID_VALUE] = {"CUSPARSE_STATUS_INVALID_VALUE", "invalid value"},
	[CUSPARSE_STATUS_ARCH_MISMATCH] = {"CUSPARSE_STATUS_ARCH_MISMATCH",
		"architecture mismatch"},
	[CUSPARSE_STATUS_MAPPING_ERROR] = {"CUSPARSE_STATUS_MAPPING_ERROR", "mapping error"},
	[CUSPARSE_STATUS_EXECUTION_FAILED] = {"CUSPARSE_STATUS_EXECUTION_FAILED",
		"kernel launch failure"},
	[CUSPARSE_STATUS_INTERNAL_ERROR] = {"CUSPARSE_STATUS_INTERNAL_ERROR", "internal error"},
	[CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED] =
		{"CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED", "matrix type not supported"},
	[CUSPARSE_STATUS_ZERO_PIVOT] = {"CUSPARSE_STATUS_ZERO_PIVOT", "zero pivot"},
	[CUSPARSE_STATUS_NOT_SUPPORTED] = {"CUSPARSE_STATUS_NOT_SUPPORTED",
		"operation not supported"},
	[CUSPARSE_STATUS_INSUFFICIENT_RESOURCES] = {"CUSPARSE_STATUS_INSUFFICIENT_RESOURCES",
		"insufficient resources"},
};
#define STATUSES (sizeof(statuses) / sizeof(statuses[0]))

const char *hand_cusparseGetErrorName(cusparseStatus_t status)
{
	return (unsigned)status < STATUSES ? statuses[status].name : "unrecognized error code";
}

const char *hand_cusparseGetErrorString(cusparseStatus_t status)
{
	return (unsigned)status < STATUSES ? statuses[status].text : "unrecognized error code";
}

/* What the library logs, it logs on the agent. */
cusparseStatus_t hand_cusparseLoggerSetCallback(cusparseLoggerCallback_t callback)
{
	(void)callback;
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t hand_cusparseLoggerSetFile(FILE *file)
{
	(void)file;
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t hand_cusparseLoggerOpenFile(const char *logFile)
{
	return vcuda_front_log_file(logFile) ? CUSPARSE_STATUS_SUCCESS
					     : CUSPARSE_STATUS_INVALID_VALUE;
}

cusparseStatus_t hand_cusparseLoggerSetLevel(int level)
{
	return level < 0 || level > 5 ? CUSPARSE_STATUS_INVALID_VALUE : CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t hand_cusparseLoggerSetMask(int mask)
{
	(void)mask;
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t hand_cusparseLoggerForceDisable(void)
{
	return CUSPARSE_STATUS_SUCCESS;
}
