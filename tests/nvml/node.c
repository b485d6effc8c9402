/* SPDX-License-Identifier: Apache-2.0
 *
 * A node's libnvidia-ml.so.1 as gpu-agent/worker/driver/nvml/nvml.c opens it: each figure is
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

/* The first that is asked for, and another one: they differ in what they are to each other. */
static char handles[2];
#define DEVICE ((nvmlDevice_t)(void *)&handles[0])
#define SECOND ((nvmlDevice_t)(void *)&handles[1])

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

nvmlReturn_t nvmlSystemGetDriverBranch(nvmlSystemDriverBranchInfo_t *info, unsigned int length)
{
	if (info->version != nvmlSystemDriverBranchInfo_v1 || length > sizeof(info->branch))
		return NVML_ERROR_INVALID_ARGUMENT;
	strncpy(info->branch, "r580_65", length);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
	static char first[41];

	if (!first[0])
		snprintf(first, sizeof(first), "%s", uuid);
	*device = strcmp(first, uuid) ? SECOND : DEVICE;
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

/* An XID for each number in the file VCUDA_SOFTGPU_NODE_XID, which goes with the last. */
nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
	*set = (nvmlEventSet_t)(void *)&handles[1];
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(
	nvmlDevice_t device, unsigned long long eventTypes, nvmlEventSet_t set)
{
	(void)set;
	return device == DEVICE && eventTypes == nvmlEventTypeXidCriticalError
		       ? NVML_SUCCESS
		       : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlEventSetWait_v2(
	nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeoutms)
{
	static unsigned told; /* the last that was told */
	const char *path = getenv("VCUDA_SOFTGPU_NODE_XID");
	FILE *file = path ? fopen(path, "r") : NULL;
	unsigned xid = 0;

	(void)set;
	(void)timeoutms;
	if (file) {
		if (fscanf(file, "%u", &xid) != 1)
			xid = 0;
		fclose(file);
	}
	if (!xid || xid == told)
		return NVML_ERROR_TIMEOUT;
	told = xid;
	*data = (nvmlEventData_t){
		.device = DEVICE, .eventType = nvmlEventTypeXidCriticalError, .eventData = xid};
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

/* ---- what two are to each other ---- */

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(
	nvmlDevice_t device1, nvmlDevice_t device2, nvmlGpuTopologyLevel_t *pathInfo)
{
	*pathInfo = device1 == device2 ? NVML_TOPOLOGY_INTERNAL : NVML_TOPOLOGY_NODE;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t device1, nvmlDevice_t device2, int *onSameBoard)
{
	*onSameBoard = device1 != device2;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device1, nvmlDevice_t device2,
	nvmlGpuP2PCapsIndex_t p2pIndex, nvmlGpuP2PStatus_t *p2pStatus)
{
	static const nvmlGpuP2PStatus_t told[] = {NVML_P2P_STATUS_OK,
		NVML_P2P_STATUS_GPU_NOT_SUPPORTED, NVML_P2P_STATUS_OK,
		NVML_P2P_STATUS_IOH_TOPOLOGY_NOT_SUPPORTED};

	if (device1 == device2 || p2pIndex >= NVML_P2P_CAPS_INDEX_PCI)
		return NVML_ERROR_INVALID_ARGUMENT;
	*p2pStatus = told[p2pIndex];
	return NVML_SUCCESS;
}

/* Four links: to a switch, to the other GPU, to a third one, and one that is down. */
#define LINKS 4

nvmlReturn_t nvmlDeviceGetNvLinkState(
	nvmlDevice_t device, unsigned int link, nvmlEnableState_t *isActive)
{
	(void)device;
	*isActive = link == 3 ? NVML_FEATURE_DISABLED : NVML_FEATURE_ENABLED;
	return link < LINKS ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetNvLinkVersion(
	nvmlDevice_t device, unsigned int link, unsigned int *version)
{
	(void)device;
	*version = 70 + link;
	return link < LINKS ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(
	nvmlDevice_t device, unsigned int link, nvmlIntNvLinkDeviceType_t *type)
{
	(void)device;
	*type = link ? NVML_NVLINK_DEVICE_TYPE_GPU : NVML_NVLINK_DEVICE_TYPE_SWITCH;
	return link < LINKS ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(
	nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci)
{
	memset(pci, 0, sizeof(*pci));
	pci->bus = link == 1 ? (device == DEVICE ? 2 : 1) : 0x40 + link;
	pci->pciDeviceId = 0x233510de;
	return link < LINKS ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}
