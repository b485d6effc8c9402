/* SPDX-License-Identifier: Apache-2.0
 *
 * cublasXt's handles: which devices take part, how large tiles are.  See xt.h.
 */
#include "shim/libraries/cublas/xt.h"

#include <stdlib.h>

#include "shim/generated/cublas_hand.h"

cublasStatus_t hand_cublasXtCreate(cublasXtHandle_t *handle)
{
	struct cublasXtContext *xt;

	if (!handle)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (cuInit(0))
		return CUBLAS_STATUS_NOT_INITIALIZED;
	xt = calloc(1, sizeof(*xt));
	if (!xt)
		return CUBLAS_STATUS_ALLOC_FAILED;
	xt->tile = XT_TILE;
	*handle = xt;
	return CUBLAS_STATUS_SUCCESS;
}

static void device_close(struct xt_device *d)
{
	CUcontext was;

	if (!cuCtxPushCurrent(d->context)) {
		if (d->blas)
			cublasDestroy_v2(d->blas);
		for (int i = 0; i < 2; i++)
			if (d->done[i])
				cuEventDestroy(d->done[i]);
		if (d->work)
			cuStreamDestroy(d->work);
		if (d->back)
			cuStreamDestroy(d->back);
		cuCtxPopCurrent(&was);
	}
	cuDevicePrimaryCtxRelease(d->device);
}

static cublasStatus_t device_open(struct xt_device *d, int number)
{
	CUcontext was;
	cublasStatus_t status = CUBLAS_STATUS_SUCCESS;

	*d = (struct xt_device){0};
	if (cuDeviceGet(&d->device, number) || cuDevicePrimaryCtxRetain(&d->context, d->device))
		return CUBLAS_STATUS_INVALID_VALUE;
	if (cuCtxPushCurrent(d->context)) {
		cuDevicePrimaryCtxRelease(d->device);
		return CUBLAS_STATUS_INVALID_VALUE;
	}
	if (cuStreamCreate(&d->work, CU_STREAM_NON_BLOCKING) ||
		cuStreamCreate(&d->back, CU_STREAM_NON_BLOCKING) ||
		cuEventCreate(&d->done[0], CU_EVENT_DISABLE_TIMING) ||
		cuEventCreate(&d->done[1], CU_EVENT_DISABLE_TIMING))
		status = CUBLAS_STATUS_ALLOC_FAILED;
	if (!status)
		status = cublasCreate_v2(&d->blas);
	if (!status)
		status = cublasSetStream_v2(d->blas, d->work);
	cuCtxPopCurrent(&was);
	if (status)
		device_close(d);
	return status;
}

cublasStatus_t hand_cublasXtDestroy(cublasXtHandle_t handle)
{
	if (!handle)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	for (int i = 0; i < handle->devices; i++)
		device_close(&handle->device[i]);
	free(handle);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t hand_cublasXtDeviceSelect(cublasXtHandle_t handle, int nbDevices, int deviceId[])
{
	cublasStatus_t status = CUBLAS_STATUS_SUCCESS;

	if (!handle)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	/* What takes part is said once. */
	if (nbDevices <= 0 || nbDevices > XT_DEVICES || !deviceId || handle->devices)
		return CUBLAS_STATUS_INVALID_VALUE;
	for (int i = 0; !status && i < nbDevices; i++) {
		status = device_open(&handle->device[i], deviceId[i]);
		if (!status)
			handle->devices = i + 1;
	}
	for (; status && handle->devices; handle->devices--)
		device_close(&handle->device[handle->devices - 1]);
	return status;
}

/* Each GPU is a board of its own. */
cublasStatus_t hand_cublasXtGetNumBoards(int nbDevices, int deviceId[], int *nbBoards)
{
	int boards = 0;

	if (nbDevices <= 0 || !deviceId || !nbBoards)
		return CUBLAS_STATUS_INVALID_VALUE;
	for (int i = 0; i < nbDevices; i++) {
		CUdevice device;
		bool again = false;

		if (cuInit(0) || cuDeviceGet(&device, deviceId[i]))
			return CUBLAS_STATUS_INVALID_VALUE;
		for (int j = 0; j < i; j++)
			again |= deviceId[j] == deviceId[i];
		boards += !again;
	}
	*nbBoards = boards;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t hand_cublasXtMaxBoards(int *nbGpuBoards)
{
	if (!nbGpuBoards)
		return CUBLAS_STATUS_INVALID_VALUE;
	*nbGpuBoards = XT_DEVICES;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t hand_cublasXtSetBlockDim(cublasXtHandle_t handle, int blockDim)
{
	if (!handle)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	/* Beyond that a tile is larger than any memory. */
	if (blockDim <= 0 || blockDim > 1 << 15)
		return CUBLAS_STATUS_INVALID_VALUE;
	handle->tile = blockDim;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t hand_cublasXtGetBlockDim(cublasXtHandle_t handle, int *blockDim)
{
	if (!handle)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!blockDim)
		return CUBLAS_STATUS_INVALID_VALUE;
	*blockDim = handle->tile;
	return CUBLAS_STATUS_SUCCESS;
}

/* Copies pass through pinned memory of ours: pinning the program's gains nothing here. */
cublasStatus_t hand_cublasXtSetPinningMemMode(
	cublasXtHandle_t handle, cublasXtPinnedMemMode_t mode)
{
	if (!handle)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (mode != CUBLASXT_PINNING_DISABLED && mode != CUBLASXT_PINNING_ENABLED)
		return CUBLAS_STATUS_INVALID_VALUE;
	handle->pinning = mode;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t hand_cublasXtGetPinningMemMode(
	cublasXtHandle_t handle, cublasXtPinnedMemMode_t *mode)
{
	if (!handle)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!mode)
		return CUBLAS_STATUS_INVALID_VALUE;
	*mode = handle->pinning;
	return CUBLAS_STATUS_SUCCESS;
}

/* The work of which the CPU may do a share is done on the devices whatever is said: the result
 * is the same, so routine and share are looked at and left. */
static cublasStatus_t share(cublasXtHandle_t handle, int operation, int type)
{
	if (!handle)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (operation < 0 || operation >= CUBLASXT_ROUTINE_MAX || type < CUBLASXT_FLOAT ||
		type > CUBLASXT_DOUBLECOMPLEX)
		return CUBLAS_STATUS_INVALID_VALUE;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t hand_cublasXtSetCpuRoutine(cublasXtHandle_t handle, cublasXtBlasOp_t blasOp,
	cublasXtOpType_t type, void *blasFunctor)
{
	(void)blasFunctor;
	return share(handle, blasOp, type);
}

cublasStatus_t hand_cublasXtSetCpuRatio(
	cublasXtHandle_t handle, cublasXtBlasOp_t blasOp, cublasXtOpType_t type, float ratio)
{
	if (!(ratio >= 0 && ratio <= 1) && handle)
		return CUBLAS_STATUS_INVALID_VALUE;
	return share(handle, blasOp, type);
}
