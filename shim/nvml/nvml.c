/* SPDX-License-Identifier: Apache-2.0
 *
 * What every function of the front stands on: see nvml.h.  Also nvmlInit and nvmlShutdown,
 * which count, as NVIDIA's do; the session stays when the count is 0, since CUDA may come next.
 */
#include "shim/nvml/nvml.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static struct {
	_Atomic unsigned references;
	/* Content without a GPU: nvmlInitWithFlags(NVML_INIT_FLAG_NO_GPUS). */
	_Atomic bool without;
	char slots[OPEN_DEVICES_MOST]; /* their addresses are the handles */
} nvml;

nvmlReturn_t nvml_status(CUresult status)
{
	switch (status) {
	case CUDA_SUCCESS: return NVML_SUCCESS;
	case CUDA_ERROR_NO_DEVICE:
	case CUDA_ERROR_SYSTEM_NOT_READY: return NVML_ERROR_DRIVER_NOT_LOADED;
	case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
	case CUDA_ERROR_NOT_PERMITTED: return NVML_ERROR_NO_PERMISSION;
	case CUDA_ERROR_NOT_SUPPORTED: return NVML_ERROR_NOT_SUPPORTED;
	case CUDA_ERROR_INVALID_DEVICE:
	case CUDA_ERROR_INVALID_VALUE: return NVML_ERROR_INVALID_ARGUMENT;
	case CUDA_ERROR_OUT_OF_MEMORY: return NVML_ERROR_MEMORY;
	/* A child of a process that uses CUDA: there is no session here. */
	case CUDA_ERROR_NOT_INITIALIZED:
	case CUDA_ERROR_DEINITIALIZED: return NVML_ERROR_INVALID_STATE;
	case CUDA_ERROR_EXTERNAL_DEVICE:
	case CUDA_ERROR_DEVICE_UNAVAILABLE: return NVML_ERROR_GPU_IS_LOST;
	default: return NVML_ERROR_UNKNOWN;
	}
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
	CUresult status;

	if (flags & ~(unsigned)(NVML_INIT_FLAG_NO_GPUS | NVML_INIT_FLAG_NO_ATTACH))
		return NVML_ERROR_INVALID_ARGUMENT;
	status = vcuda_nvml_join();
	/* Learned before the fork. */
	if ((status == CUDA_ERROR_NOT_INITIALIZED || status == CUDA_ERROR_DEINITIALIZED) &&
		vcuda_nvml_device(0))
		status = CUDA_SUCCESS;
	/* Nothing is configured: a machine without a GPU. An error would make PyTorch warn,
	 * which says nothing on a machine that has no NVML at all. */
	if (status == CUDA_ERROR_NO_DEVICE)
		atomic_store(&nvml.without, true);
	else if (status)
		return nvml_status(status);
	else
		atomic_store(&nvml.without, false);
	atomic_fetch_add(&nvml.references, 1);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlInit_v2(void)
{
	return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlInit(void)
{
	return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlShutdown(void)
{
	unsigned count = atomic_load(&nvml.references);

	do
		if (!count)
			return NVML_ERROR_UNINITIALIZED;
	while (!atomic_compare_exchange_weak(&nvml.references, &count, count - 1));
	return NVML_SUCCESS;
}

nvmlReturn_t nvml_enter(void)
{
	return atomic_load(&nvml.references) ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

unsigned nvml_count(void)
{
	return atomic_load(&nvml.without) ? 0 : vcuda_nvml_info()->device_count;
}

nvmlDevice_t nvml_handle(unsigned index)
{
	return (nvmlDevice_t)(void *)&nvml.slots[index];
}

nvmlReturn_t nvml_device(
	nvmlDevice_t handle, const struct open_device **device, unsigned *index)
{
	uintptr_t at = (uintptr_t)handle - (uintptr_t)nvml.slots;
	nvmlReturn_t status = nvml_enter();

	if (status)
		return status;
	if (!handle || at >= nvml_count())
		return NVML_ERROR_INVALID_ARGUMENT;
	*index = (unsigned)at;
	*device = vcuda_nvml_device(*index);
	return *device ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvml_facts(nvmlDevice_t handle, uint64_t mask, struct nvml_facts *facts)
{
	const struct open_device *device;
	unsigned index;
	nvmlReturn_t status = nvml_device(handle, &device, &index);

	if (!status)
		status = nvml_status(vcuda_nvml_facts((int)index, mask, facts));
	if (!status && (facts->known & mask) != mask)
		status = NVML_ERROR_NOT_SUPPORTED;
	return status;
}

nvmlReturn_t nvml_long_fact(nvmlDevice_t handle, enum nvml_fact fact, unsigned long long *value)
{
	struct nvml_facts facts;
	nvmlReturn_t status;

	if (!value)
		return nvml_enter() ? NVML_ERROR_UNINITIALIZED : NVML_ERROR_INVALID_ARGUMENT;
	status = nvml_facts(handle, FRONT_BIT(fact), &facts);
	if (!status)
		*value = (unsigned long long)facts.values[fact];
	return status;
}

nvmlReturn_t nvml_fact(nvmlDevice_t handle, enum nvml_fact fact, unsigned *value)
{
	unsigned long long wide;
	nvmlReturn_t status = nvml_long_fact(handle, fact, value ? &wide : NULL);

	if (!status && wide > UINT_MAX)
		return NVML_ERROR_UNKNOWN;
	if (!status)
		*value = (unsigned)wide;
	return status;
}

nvmlReturn_t nvml_copy(char *to, unsigned length, const char *from)
{
	size_t n = strlen(from) + 1;

	if (!to)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (length < n)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	memcpy(to, from, n);
	return NVML_SUCCESS;
}

nvmlReturn_t nvml_text(nvmlDevice_t handle, uint32_t which, char *to, unsigned length)
{
	const struct open_device *device;
	unsigned index;
	char text[NVML_TEXT_BYTES];
	nvmlReturn_t status = handle ? nvml_device(handle, &device, &index) : nvml_enter();

	if (!status)
		status = nvml_status(vcuda_nvml_text(handle ? (int)index : -1, which, text));
	return status ? status : nvml_copy(to, length, text);
}

void nvml_uuid(const struct open_device *device, char uuid[NVML_UUID_TEXT])
{
	size_t at = (size_t)snprintf(uuid, NVML_UUID_TEXT, "GPU-");

	for (int i = 0; i < 16; i++)
		at += (size_t)snprintf(uuid + at, NVML_UUID_TEXT - at, "%s%02x",
			i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", device->uuid[i]);
}
