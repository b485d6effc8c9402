/* SPDX-License-Identifier: Apache-2.0
 *
 * What changes while a device works, and its settings: each function asks the worker for the
 * facts it tells.
 */
#include "shim/nvml/nvml.h"

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t handle, nvmlMemory_t *memory)
{
	struct nvml_facts facts;
	nvmlReturn_t status = nvml_facts(handle,
		FRONT_BIT(NVML_FACT_MEMORY_TOTAL) | FRONT_BIT(NVML_FACT_MEMORY_FREE), &facts);

	if (status)
		return status;
	if (!memory)
		return NVML_ERROR_INVALID_ARGUMENT;
	memory->total = (unsigned long long)facts.values[NVML_FACT_MEMORY_TOTAL];
	memory->free = (unsigned long long)facts.values[NVML_FACT_MEMORY_FREE];
	memory->used = memory->total - memory->free;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t handle, nvmlMemory_v2_t *memory)
{
	const uint64_t reserved = FRONT_BIT(NVML_FACT_MEMORY_RESERVED);
	struct nvml_facts facts = {0};
	nvmlReturn_t status = nvml_enter();

	if (status)
		return status;
	if (!memory)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (memory->version != nvmlMemory_v2)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	status = nvml_facts(handle,
		FRONT_BIT(NVML_FACT_MEMORY_TOTAL) | FRONT_BIT(NVML_FACT_MEMORY_FREE) |
			FRONT_BIT(NVML_FACT_MEMORY_USED) | reserved,
		&facts);
	/* What is reserved is counted as used where the agent cannot tell them apart. */
	if (status == NVML_ERROR_NOT_SUPPORTED && facts.known &&
		(facts.known | reserved) ==
			(FRONT_BIT(NVML_FACT_MEMORY_TOTAL) | FRONT_BIT(NVML_FACT_MEMORY_FREE) |
				FRONT_BIT(NVML_FACT_MEMORY_USED) | reserved))
		facts.values[NVML_FACT_MEMORY_RESERVED] = 0;
	else if (status)
		return status;
	memory->total = (unsigned long long)facts.values[NVML_FACT_MEMORY_TOTAL];
	memory->free = (unsigned long long)facts.values[NVML_FACT_MEMORY_FREE];
	memory->used = (unsigned long long)facts.values[NVML_FACT_MEMORY_USED];
	memory->reserved = (unsigned long long)facts.values[NVML_FACT_MEMORY_RESERVED];
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t handle, nvmlBAR1Memory_t *bar1Memory)
{
	struct nvml_facts facts;
	nvmlReturn_t status = nvml_facts(handle,
		FRONT_BIT(NVML_FACT_BAR1_TOTAL) | FRONT_BIT(NVML_FACT_BAR1_FREE) |
			FRONT_BIT(NVML_FACT_BAR1_USED),
		&facts);

	if (status)
		return status;
	if (!bar1Memory)
		return NVML_ERROR_INVALID_ARGUMENT;
	bar1Memory->bar1Total = (unsigned long long)facts.values[NVML_FACT_BAR1_TOTAL];
	bar1Memory->bar1Free = (unsigned long long)facts.values[NVML_FACT_BAR1_FREE];
	bar1Memory->bar1Used = (unsigned long long)facts.values[NVML_FACT_BAR1_USED];
	return NVML_SUCCESS;
}

/* The software GPU has no figure for its memory: 0 then, as NVIDIA's tells for a GPU at rest.
 */
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t handle, nvmlUtilization_t *utilization)
{
	const uint64_t gpu = FRONT_BIT(NVML_FACT_UTILIZATION_GPU);
	struct nvml_facts facts = {0};
	nvmlReturn_t status =
		nvml_facts(handle, gpu | FRONT_BIT(NVML_FACT_UTILIZATION_MEMORY), &facts);

	if (status && !(status == NVML_ERROR_NOT_SUPPORTED && facts.known & gpu))
		return status;
	if (!utilization)
		return NVML_ERROR_INVALID_ARGUMENT;
	utilization->gpu = (unsigned)facts.values[NVML_FACT_UTILIZATION_GPU];
	utilization->memory = (unsigned)facts.values[NVML_FACT_UTILIZATION_MEMORY];
	return NVML_SUCCESS;
}

/* The period is not told: NVML's own sampling, at most a second. */
static nvmlReturn_t codec(
	nvmlDevice_t handle, enum nvml_fact fact, unsigned *utilization, unsigned *period)
{
	nvmlReturn_t status = nvml_fact(handle, fact, period ? utilization : NULL);

	if (!status)
		*period = 1000000;
	return status;
}

nvmlReturn_t nvmlDeviceGetEncoderUtilization(
	nvmlDevice_t handle, unsigned int *utilization, unsigned int *samplingPeriodUs)
{
	return codec(handle, NVML_FACT_ENCODER, utilization, samplingPeriodUs);
}

nvmlReturn_t nvmlDeviceGetDecoderUtilization(
	nvmlDevice_t handle, unsigned int *utilization, unsigned int *samplingPeriodUs)
{
	return codec(handle, NVML_FACT_DECODER, utilization, samplingPeriodUs);
}

/* ---- warmth, power, clocks ---- */

nvmlReturn_t nvmlDeviceGetTemperature(
	nvmlDevice_t handle, nvmlTemperatureSensors_t sensorType, unsigned int *temp)
{
	return nvml_fact(handle, NVML_FACT_TEMPERATURE,
		sensorType == NVML_TEMPERATURE_GPU ? temp : NULL);
}

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t handle, nvmlTemperature_t *temperature)
{
	unsigned degrees;
	nvmlReturn_t status = nvml_enter();

	if (status)
		return status;
	if (!temperature)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (temperature->version != nvmlTemperature_v1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (temperature->sensorType != NVML_TEMPERATURE_GPU)
		return NVML_ERROR_INVALID_ARGUMENT;
	status = nvml_fact(handle, NVML_FACT_TEMPERATURE, &degrees);
	if (!status)
		temperature->temperature = (int)degrees;
	return status;
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(
	nvmlDevice_t handle, nvmlTemperatureThresholds_t thresholdType, unsigned int *temp)
{
	const struct open_device *device;
	unsigned index;
	nvmlReturn_t status;

	if (thresholdType == NVML_TEMPERATURE_THRESHOLD_SHUTDOWN)
		return nvml_fact(handle, NVML_FACT_SHUTDOWN, temp);
	if (thresholdType == NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)
		return nvml_fact(handle, NVML_FACT_SLOWDOWN, temp);
	status = nvml_device(handle, &device, &index);
	if (!status && (!temp || (unsigned)thresholdType >= NVML_TEMPERATURE_THRESHOLD_COUNT))
		return NVML_ERROR_INVALID_ARGUMENT;
	return status ? status : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t handle, unsigned int *speed)
{
	return nvml_fact(handle, NVML_FACT_FAN_SPEED, speed);
}

/* One figure is asked of the agent: the first fan's. */
nvmlReturn_t nvmlDeviceGetFanSpeed_v2(
	nvmlDevice_t handle, unsigned int fan, unsigned int *speed)
{
	const struct open_device *device;
	unsigned index;
	nvmlReturn_t status = nvml_device(handle, &device, &index);

	if (status)
		return status;
	return fan ? NVML_ERROR_NOT_SUPPORTED : nvml_fact(handle, NVML_FACT_FAN_SPEED, speed);
}

nvmlReturn_t nvmlDeviceGetNumFans(nvmlDevice_t handle, unsigned int *numFans)
{
	return nvml_fact(handle, NVML_FACT_FANS, numFans);
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t handle, unsigned int *power)
{
	return nvml_fact(handle, NVML_FACT_POWER_USAGE, power);
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t handle, unsigned int *limit)
{
	return nvml_fact(handle, NVML_FACT_POWER_LIMIT, limit);
}

nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(
	nvmlDevice_t handle, unsigned int *defaultLimit)
{
	return nvml_fact(handle, NVML_FACT_POWER_LIMIT_DEFAULT, defaultLimit);
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t handle, unsigned int *limit)
{
	return nvml_fact(handle, NVML_FACT_POWER_LIMIT_ENFORCED, limit);
}

static nvmlReturn_t two(nvmlDevice_t handle, enum nvml_fact first, enum nvml_fact second,
	unsigned *one, unsigned *other)
{
	struct nvml_facts facts;
	nvmlReturn_t status = nvml_facts(handle, FRONT_BIT(first) | FRONT_BIT(second), &facts);

	if (status)
		return status;
	if (!one || !other)
		return NVML_ERROR_INVALID_ARGUMENT;
	*one = (unsigned)facts.values[first];
	*other = (unsigned)facts.values[second];
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(
	nvmlDevice_t handle, unsigned int *minLimit, unsigned int *maxLimit)
{
	return two(handle, NVML_FACT_POWER_LIMIT_MIN, NVML_FACT_POWER_LIMIT_MAX, minLimit,
		maxLimit);
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(
	nvmlDevice_t handle, unsigned long long *energy)
{
	return nvml_long_fact(handle, NVML_FACT_ENERGY, energy);
}

static nvmlReturn_t clock_of(
	nvmlDevice_t handle, enum nvml_fact first, nvmlClockType_t type, unsigned *mhz)
{
	return nvml_fact(handle, first + (enum nvml_fact)(type & 3),
		(unsigned)type < NVML_CLOCK_COUNT ? mhz : NULL);
}

nvmlReturn_t nvmlDeviceGetClockInfo(
	nvmlDevice_t handle, nvmlClockType_t type, unsigned int *clock)
{
	return clock_of(handle, NVML_FACT_CLOCK, type, clock);
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(
	nvmlDevice_t handle, nvmlClockType_t type, unsigned int *clock)
{
	return clock_of(handle, NVML_FACT_MAX_CLOCK, type, clock);
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(
	nvmlDevice_t handle, unsigned long long *clocksEventReasons)
{
	return nvml_long_fact(handle, NVML_FACT_CLOCK_REASONS, clocksEventReasons);
}

nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(
	nvmlDevice_t handle, unsigned long long *clocksThrottleReasons)
{
	return nvml_long_fact(handle, NVML_FACT_CLOCK_REASONS, clocksThrottleReasons);
}

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t handle, nvmlPstates_t *pState)
{
	return nvml_fact(handle, NVML_FACT_PERFORMANCE_STATE, (unsigned *)pState);
}

nvmlReturn_t nvmlDeviceGetPowerState(nvmlDevice_t handle, nvmlPstates_t *pState)
{
	return nvmlDeviceGetPerformanceState(handle, pState);
}

/* ---- settings ---- */

nvmlReturn_t nvmlDeviceGetEccMode(
	nvmlDevice_t handle, nvmlEnableState_t *current, nvmlEnableState_t *pending)
{
	return two(handle, NVML_FACT_ECC, NVML_FACT_ECC_PENDING, (unsigned *)current,
		(unsigned *)pending);
}

nvmlReturn_t nvmlDeviceGetMigMode(
	nvmlDevice_t handle, unsigned int *currentMode, unsigned int *pendingMode)
{
	return two(handle, NVML_FACT_MIG, NVML_FACT_MIG_PENDING, currentMode, pendingMode);
}

nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t handle, nvmlEnableState_t *mode)
{
	return nvml_fact(handle, NVML_FACT_PERSISTENCE, (unsigned *)mode);
}

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t handle, nvmlComputeMode_t *mode)
{
	return nvml_fact(handle, NVML_FACT_COMPUTE_MODE, (unsigned *)mode);
}

nvmlReturn_t nvmlDeviceGetDisplayMode(nvmlDevice_t handle, nvmlEnableState_t *display)
{
	return nvml_fact(handle, NVML_FACT_DISPLAY_MODE, (unsigned *)display);
}

nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_t handle, nvmlEnableState_t *isActive)
{
	return nvml_fact(handle, NVML_FACT_DISPLAY_ACTIVE, (unsigned *)isActive);
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t handle, unsigned int *currLinkGen)
{
	return nvml_fact(handle, NVML_FACT_PCIE_GENERATION, currLinkGen);
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t handle, unsigned int *currLinkWidth)
{
	return nvml_fact(handle, NVML_FACT_PCIE_WIDTH, currLinkWidth);
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t handle, unsigned int *maxLinkGen)
{
	return nvml_fact(handle, NVML_FACT_PCIE_GENERATION_MAX, maxLinkGen);
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t handle, unsigned int *maxLinkWidth)
{
	return nvml_fact(handle, NVML_FACT_PCIE_WIDTH_MAX, maxLinkWidth);
}
