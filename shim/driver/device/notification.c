/* SPDX-License-Identifier: Apache-2.0
 *
 * Notifications of a device. CUDA has one kind, "over its budget", which a driver sends where
 * the operating system takes memory back from processes; on Linux it never comes, nor here: a
 * lease says how much there is, and an allocation beyond it fails.
 */
#include <stdatomic.h>

#include "shim/driver/context/context.h"
#include "shim/generated/cuda_hand.h"

#define REGISTERED_MAX 64

static struct registered {
	_Atomic int device;   /* of what is registered, + 1; 0: a free place */
} registered[REGISTERED_MAX]; /* a handle is the address of one */

CUresult hand_cuDeviceRegisterAsyncNotification(CUdevice device, CUasyncCallback callbackFunc,
	void *userData, CUasyncCallbackHandle *callback)
{
	(void)userData;
	if (!callbackFunc || !callback)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_of(device))
		return CUDA_ERROR_INVALID_DEVICE;
	for (int i = 0; i < REGISTERED_MAX; i++) {
		int none = 0;

		if (atomic_compare_exchange_strong(&registered[i].device, &none, device + 1)) {
			*callback = (CUasyncCallbackHandle)&registered[i];
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult hand_cuDeviceUnregisterAsyncNotification(
	CUdevice device, CUasyncCallbackHandle callback)
{
	if (!device_of(device))
		return CUDA_ERROR_INVALID_DEVICE;
	for (int i = 0; i < REGISTERED_MAX; i++) {
		int held = device + 1;

		if ((CUasyncCallbackHandle)&registered[i] == callback &&
			atomic_compare_exchange_strong(&registered[i].device, &held, 0))
			return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}
