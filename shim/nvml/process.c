/* SPDX-License-Identifier: Apache-2.0
 *
 * Who uses a device: of all processes, this one.  Others have sessions of their own, perhaps on
 * other machines, and their numbers would mean nothing here.  It is listed where it has a
 * context, as with NVIDIA's: by that Dask sees which device a worker took.
 */
#include <unistd.h>

#include "shim/nvml/nvml.h"

#define NO_INSTANCE 0xffffffffu

/* 0 or 1 process; its memory as the worker accounts for it. */
static nvmlReturn_t compute(
	nvmlDevice_t handle, unsigned *count, const void *infos, nvmlProcessInfo_t *self)
{
	const struct open_device *device;
	struct nvml_facts facts;
	unsigned index, room;
	nvmlReturn_t status = nvml_device(handle, &device, &index);

	if (status)
		return status;
	if (!count || (*count && !infos))
		return NVML_ERROR_INVALID_ARGUMENT;
	room = *count;
	*count = 0;
	if (!vcuda_nvml_cuda_used(index))
		return NVML_SUCCESS;
	status = nvml_facts(handle, FRONT_BIT(NVML_FACT_SESSION_USED), &facts);
	if (status)
		return status;
	*count = 1;
	if (!room)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	*self = (nvmlProcessInfo_t){.pid = (unsigned)getpid(),
		.usedGpuMemory = (unsigned long long)facts.values[NVML_FACT_SESSION_USED],
		.gpuInstanceId = NO_INSTANCE,
		.computeInstanceId = NO_INSTANCE};
	return NVML_SUCCESS;
}

/* The session does no graphics, and MPS is the agent's own affair. */
static nvmlReturn_t none(nvmlDevice_t handle, unsigned *count)
{
	const struct open_device *device;
	unsigned index;
	nvmlReturn_t status = nvml_device(handle, &device, &index);

	if (status)
		return status;
	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(
	nvmlDevice_t handle, unsigned int *infoCount, nvmlProcessInfo_t *infos)
{
	nvmlProcessInfo_t self;
	nvmlReturn_t status = compute(handle, infoCount, infos, &self);

	if (!status && *infoCount)
		infos[0] = self;
	return status;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(
	nvmlDevice_t handle, unsigned int *infoCount, nvmlProcessInfo_v2_t *infos)
{
	return nvmlDeviceGetComputeRunningProcesses_v3(handle, infoCount, infos);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(
	nvmlDevice_t handle, unsigned int *infoCount, nvmlProcessInfo_v1_t *infos)
{
	nvmlProcessInfo_t self;
	nvmlReturn_t status = compute(handle, infoCount, infos, &self);

	if (!status && *infoCount) {
		infos[0].pid = self.pid;
		infos[0].usedGpuMemory = self.usedGpuMemory;
	}
	return status;
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(
	nvmlDevice_t handle, unsigned int *infoCount, nvmlProcessInfo_t *infos)
{
	(void)infos;
	return none(handle, infoCount);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(
	nvmlDevice_t handle, unsigned int *infoCount, nvmlProcessInfo_v2_t *infos)
{
	(void)infos;
	return none(handle, infoCount);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(
	nvmlDevice_t handle, unsigned int *infoCount, nvmlProcessInfo_v1_t *infos)
{
	(void)infos;
	return none(handle, infoCount);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(
	nvmlDevice_t handle, unsigned int *infoCount, nvmlProcessInfo_t *infos)
{
	(void)infos;
	return none(handle, infoCount);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(
	nvmlDevice_t handle, unsigned int *infoCount, nvmlProcessInfo_v2_t *infos)
{
	(void)infos;
	return none(handle, infoCount);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(
	nvmlDevice_t handle, unsigned int *infoCount, nvmlProcessInfo_v1_t *infos)
{
	(void)infos;
	return none(handle, infoCount);
}
