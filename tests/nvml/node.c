/* SPDX-License-Identifier: Apache-2.0
 *
 * A node's libnvidia-ml.so.1 as gpu-agent/worker/driver/nvml.c opens it: each figure is
 * another, so that one that comes out in the wrong place shows (tests/nvml/node.py).  What is
 * left out here (fans, the encoder) the agent must take as not known.
 */
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#pragma GCC visibility push(default)
#include <nvml.h>
#pragma GCC visibility pop

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char only;
#define DEVICE ((nvmlDevice_t)(void *)&only)

nvmlReturn_t nvmlInit_v2(void)
{
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
	strncpy(version, "580.65.06", length);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
	strncpy(version, "13.580.65.06", length);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
	*device = DEVICE;
	return strlen(uuid) == 40 && !strncmp(uuid, "GPU-", 4) ? NVML_SUCCESS
							       : NVML_ERROR_NOT_FOUND;
}

/* What the agent's meter asks (gpu-agent/probe/meter.c): the one GPU by its number. */
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
	*count = 1;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
	*device = DEVICE;
	return index ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
	const char *told = getenv("VCUDA_SOFTGPU_NODE_UUID");

	(void)device;
	snprintf(uuid, length, "%s", told ? told : "GPU-unknown");
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	(void)device;
	*memory = (nvmlMemory_t){1000ull << 30, 600ull << 30, 400ull << 30};
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	if (device != DEVICE || memory->version != nvmlMemory_v2)
		return NVML_ERROR_INVALID_ARGUMENT;
	*memory = (nvmlMemory_v2_t){nvmlMemory_v2, 1000ull << 30, 100ull << 20, 600ull << 30,
		(400ull << 30) - (100ull << 20)};
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
	(void)device;
	*utilization = (nvmlUtilization_t){61, 62};
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	(void)device;
	memset(pci, 0, sizeof(*pci));
	pci->pciDeviceId = 0x233510de;
	pci->pciSubSystemId = 0x18be10de;
	return NVML_SUCCESS;
}

/* A function that tells one number. */
#define ONE(name, type, value)                                                                 \
	nvmlReturn_t name(nvmlDevice_t device, type *out)                                      \
	{                                                                                      \
		*out = (type)(value);                                                          \
		return device == DEVICE ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;          \
	}

ONE(nvmlDeviceGetPowerUsage, unsigned, 301000)
ONE(nvmlDeviceGetPowerManagementLimit, unsigned, 302000)
ONE(nvmlDeviceGetPowerManagementDefaultLimit, unsigned, 303000)
ONE(nvmlDeviceGetEnforcedPowerLimit, unsigned, 304000)
ONE(nvmlDeviceGetPerformanceState, nvmlPstates_t, NVML_PSTATE_2)
ONE(nvmlDeviceGetPersistenceMode, nvmlEnableState_t, NVML_FEATURE_ENABLED)
ONE(nvmlDeviceGetComputeMode, nvmlComputeMode_t, NVML_COMPUTEMODE_EXCLUSIVE_PROCESS)
ONE(nvmlDeviceGetMinorNumber, unsigned, 5)
ONE(nvmlDeviceGetBrand, nvmlBrandType_t, NVML_BRAND_NVIDIA)
ONE(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, 5000000000000ull)
ONE(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, 4)
ONE(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, 6)
ONE(nvmlDeviceGetCurrPcieLinkWidth, unsigned, 8)
ONE(nvmlDeviceGetMaxPcieLinkWidth, unsigned, 16)

nvmlReturn_t nvmlDeviceGetEccMode(
	nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending)
{
	(void)device;
	*current = NVML_FEATURE_ENABLED;
	*pending = NVML_FEATURE_DISABLED;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigMode(
	nvmlDevice_t device, unsigned int *currentMode, unsigned int *pendingMode)
{
	(void)device;
	*currentMode = 0;
	*pendingMode = 1;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperature(
	nvmlDevice_t device, nvmlTemperatureSensors_t sensorType, unsigned int *temp)
{
	(void)device;
	*temp = 41;
	return sensorType == NVML_TEMPERATURE_GPU ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(
	nvmlDevice_t device, nvmlTemperatureThresholds_t thresholdType, unsigned int *temp)
{
	(void)device;
	*temp = 90 + (unsigned)thresholdType;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetClockInfo(
	nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock)
{
	(void)device;
	*clock = 1000 + (unsigned)type;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(
	nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock)
{
	(void)device;
	*clock = 2000 + (unsigned)type;
	return NVML_SUCCESS;
}

ONE(nvmlDeviceGetMaxMigDeviceCount, unsigned, 7)

nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfoV_t *info)
{
	const unsigned version = info->version;

	if (device != DEVICE)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (version != nvmlGpuFabricInfo_v2 && version != nvmlGpuFabricInfo_v3)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	for (unsigned i = 0; i < NVML_GPU_FABRIC_UUID_LEN; i++)
		info->clusterUuid[i] = (unsigned char)(200 + i);
	info->status = NVML_ERROR_NO_DATA;
	info->cliqueId = 4000000001u;
	info->state = NVML_GPU_FABRIC_STATE_COMPLETED;
	info->healthMask = 0x2a1u;
	if (version == nvmlGpuFabricInfo_v3)
		info->healthSummary = NVML_GPU_FABRIC_HEALTH_SUMMARY_LIMITED_CAPACITY;
	return NVML_SUCCESS;
}

/* Each field's value is made of its number and its scope; one is not supported, one a double.
 */
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
	for (int i = 0; i < count; i++) {
		nvmlFieldValue_t *v = &values[i];

		v->timestamp = 1700000000000000ll + i;
		v->latencyUsec = 70 + i;
		v->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
		v->nvmlReturn = NVML_SUCCESS;
		v->value.ullVal = (unsigned long long)v->fieldId << 32 | v->scopeId;
		if (v->fieldId == NVML_FI_DEV_NVLINK_LINK_COUNT) {
			v->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
		} else if (v->fieldId == NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION) {
			v->valueType = NVML_VALUE_TYPE_DOUBLE;
			v->value.dVal = 2.5;
		}
	}
	return device == DEVICE ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char *version, unsigned int length)
{
	(void)device;
	strncpy(version, "96.00.99.00.01", length);
	return NVML_SUCCESS;
}
