/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles, the library's version, and the texts of statuses.
 */
#include <stdio.h>
#include <stdlib.h>

#include "softgpu/sparse/sparse.h"

#define SPARSE_MAJOR 12
#define SPARSE_MINOR 9
#define SPARSE_PATCH 4

CALL(cusparseCreate, struct sparse_handle **handle)
{
	struct sparse_handle *h;
	CUcontext context;

	if (!handle)
		return SPARSE_INVALID_VALUE;
	if (cuCtxGetCurrent(&context) || !context)
		return SPARSE_NOT_INITIALIZED;
	h = calloc(1, sizeof(*h));
	if (!h)
		return SPARSE_ALLOC_FAILED;
	h->refs = 1;
	*handle = h;
	return SPARSE_SUCCESS;
}

CALL(cusparseDestroy, struct sparse_handle *handle)
{
	if (!handle)
		return SPARSE_NO_HANDLE;
	sparse_handle_drop(handle); /* tasks that remain keep it */
	return SPARSE_SUCCESS;
}

CALL(cusparseGetVersion, struct sparse_handle *handle, int *version)
{
	if (!handle)
		return SPARSE_NO_HANDLE;
	if (!version)
		return SPARSE_INVALID_VALUE;
	*version = SPARSE_MAJOR * 1000 + SPARSE_MINOR * 100 + SPARSE_PATCH;
	return SPARSE_SUCCESS;
}

CALL(cusparseGetProperty, int type, int *value)
{
	static const int parts[] = {SPARSE_MAJOR, SPARSE_MINOR, SPARSE_PATCH};

	if (type < 0 || type > 2 || !value)
		return SPARSE_INVALID_VALUE;
	*value = parts[type];
	return SPARSE_SUCCESS;
}

CALL(cusparseSetStream, struct sparse_handle *handle, CUstream stream)
{
	if (!handle)
		return SPARSE_NO_HANDLE;
	handle->stream = stream;
	return SPARSE_SUCCESS;
}

CALL(cusparseGetStream, struct sparse_handle *handle, CUstream *stream)
{
	if (!handle)
		return SPARSE_NO_HANDLE;
	if (!stream)
		return SPARSE_INVALID_VALUE;
	*stream = handle->stream;
	return SPARSE_SUCCESS;
}

CALL(cusparseSetPointerMode, struct sparse_handle *handle, int mode)
{
	if (!handle)
		return SPARSE_NO_HANDLE;
	if (mode != 0 && mode != 1)
		return SPARSE_INVALID_VALUE;
	handle->pointer_mode = mode;
	return SPARSE_SUCCESS;
}

CALL(cusparseGetPointerMode, struct sparse_handle *handle, int *mode)
{
	if (!handle)
		return SPARSE_NO_HANDLE;
	if (!mode)
		return SPARSE_INVALID_VALUE;
	*mode = handle->pointer_mode;
	return SPARSE_SUCCESS;
}

SPARSE_EXPORT const char *cusparseGetErrorName(int status);
SPARSE_EXPORT const char *cusparseGetErrorName(int status)
{
	return sparse_status_name(status);
}

SPARSE_EXPORT const char *cusparseGetErrorString(int status);
SPARSE_EXPORT const char *cusparseGetErrorString(int status)
{
	return sparse_status_text(status);
}

/* ---- logging: there is nothing to log, but a file that is named is there ---- */

CALL(cusparseLoggerSetCallback, void (*callback)(int level, const char *name, const char *text))
{
	(void)callback;
	return SPARSE_SUCCESS;
}

CALL(cusparseLoggerSetFile, FILE *file)
{
	(void)file;
	return SPARSE_SUCCESS;
}

CALL(cusparseLoggerOpenFile, const char *path)
{
	FILE *log = path ? fopen(path, "a") : NULL;

	if (!log)
		return SPARSE_INVALID_VALUE;
	fclose(log);
	return SPARSE_SUCCESS;
}

CALL(cusparseLoggerSetLevel, int level)
{
	return level >= 0 && level <= 5 ? SPARSE_SUCCESS : SPARSE_INVALID_VALUE;
}

CALL(cusparseLoggerSetMask, int mask)
{
	return mask >= 0 && mask <= 31 ? SPARSE_SUCCESS : SPARSE_INVALID_VALUE;
}

CALL(cusparseLoggerForceDisable, void)
{
	return SPARSE_SUCCESS;
}
