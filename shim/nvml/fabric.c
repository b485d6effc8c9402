/* SPDX-License-Identifier: Apache-2.0
 *
 * The fabric of NVLink switches that a device belongs to, in the three forms of its struct;
 * field values, many in one call; what can be asked about MIG without an instance's handle.
 */
#include "shim/nvml/nvml.h"

#include <string.h>

/* The first form ends where the later ones go on. */
static void fabric_fill(const struct nvml_facts *facts, unsigned char *cluster,
	nvmlReturn_t *status, unsigned *clique, nvmlGpuFabricState_t *state)
{
	memcpy(cluster, &facts->values[NVML_FACT_FABRIC_CLUSTER], NVML_GPU_FABRIC_UUID_LEN);
	*status = (nvmlReturn_t)facts->values[NVML_FACT_FABRIC_STATUS];
	*clique = (unsigned)facts->values[NVML_FACT_FABRIC_CLIQUE];
	*state = (nvmlGpuFabricState_t)facts->values[NVML_FACT_FABRIC_STATE];
}

#define FABRIC_FACTS                                                                           \
	(FRONT_BIT(NVML_FACT_FABRIC_STATE) | FRONT_BIT(NVML_FACT_FABRIC_STATUS) |              \
		FRONT_BIT(NVML_FACT_FABRIC_CLIQUE) | FRONT_BIT(NVML_FACT_FABRIC_CLUSTER) |     \
		FRONT_BIT(NVML_FACT_FABRIC_CLUSTER + 1))

nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t handle, nvmlGpuFabricInfo_t *gpuFabricInfo)
{
	struct nvml_facts facts;
	nvmlReturn_t status = nvml_facts(handle, FABRIC_FACTS, &facts);

	if (status)
		return status;
	if (!gpuFabricInfo)
		return NVML_ERROR_INVALID_ARGUMENT;
	fabric_fill(&facts, gpuFabricInfo->clusterUuid, &gpuFabricInfo->status,
		&gpuFabricInfo->cliqueId, &gpuFabricInfo->state);
	return NVML_SUCCESS;
}

/* The caller's struct is of the second form or of the third, which is longer. */
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(
	nvmlDevice_t handle, nvmlGpuFabricInfoV_t *gpuFabricInfo)
{
	uint64_t wanted = FABRIC_FACTS | FRONT_BIT(NVML_FACT_FABRIC_HEALTH);
	struct nvml_facts facts;
	nvmlReturn_t status = nvml_enter();

	if (status)
		return status;
	if (!gpuFabricInfo)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (gpuFabricInfo->version == nvmlGpuFabricInfo_v3)
		wanted |= FRONT_BIT(NVML_FACT_FABRIC_HEALTH_SUMMARY);
	else if (gpuFabricInfo->version != nvmlGpuFabricInfo_v2)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	status = nvml_facts(handle, wanted, &facts);
	if (status)
		return status;
	fabric_fill(&facts, gpuFabricInfo->clusterUuid, &gpuFabricInfo->status,
		&gpuFabricInfo->cliqueId, &gpuFabricInfo->state);
	gpuFabricInfo->healthMask = (unsigned)facts.values[NVML_FACT_FABRIC_HEALTH];
	if (gpuFabricInfo->version == nvmlGpuFabricInfo_v3)
		gpuFabricInfo->healthSummary =
			(unsigned char)facts.values[NVML_FACT_FABRIC_HEALTH_SUMMARY];
	return NVML_SUCCESS;
}

/* ---- field values ---- */

static nvmlReturn_t fields_ask(unsigned index, unsigned count, nvmlFieldValue_t *values)
{
	struct nvml_field fields[NVML_FIELDS_MAX];
	struct nvml_field_value told[NVML_FIELDS_MAX];
	nvmlReturn_t status;

	for (unsigned i = 0; i < count; i++)
		fields[i] = (struct nvml_field){values[i].fieldId, values[i].scopeId};
	status = nvml_status(vcuda_nvml_fields((int)index, count, fields, told));
	for (unsigned i = 0; !status && i < count; i++) {
		values[i].timestamp = told[i].timestamp;
		values[i].latencyUsec = told[i].latency;
		values[i].valueType = (nvmlValueType_t)told[i].type;
		values[i].nvmlReturn = (nvmlReturn_t)told[i].status;
		values[i].value.ullVal = told[i].value;
	}
	return status;
}

nvmlReturn_t nvmlDeviceGetFieldValues(
	nvmlDevice_t handle, int valuesCount, nvmlFieldValue_t *values)
{
	const struct open_device *device;
	unsigned index, count, n;
	nvmlReturn_t status = nvml_device(handle, &device, &index);

	if (status)
		return status;
	if (!values || valuesCount <= 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	count = (unsigned)valuesCount;
	for (unsigned at = 0; !status && at < count; at += n) {
		n = count - at < NVML_FIELDS_MAX ? count - at : NVML_FIELDS_MAX;
		status = fields_ask(index, n, values + at);
	}
	return status;
}

/* ---- MIG ---- */

/* The handles of this front are GPUs, an instance that the agent was given included. */
nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t handle, unsigned int *isMigDevice)
{
	const struct open_device *device;
	unsigned index;
	nvmlReturn_t status = nvml_device(handle, &device, &index);

	if (status)
		return status;
	if (!isMigDevice)
		return NVML_ERROR_INVALID_ARGUMENT;
	*isMigDevice = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t handle, unsigned int *count)
{
	return nvml_fact(handle, NVML_FACT_MIG_DEVICES_MAX, count);
}
