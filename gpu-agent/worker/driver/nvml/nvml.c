/* SPDX-License-Identifier: Apache-2.0
 *
 * What the app's NVML front asks (protocol/wire/nvml.h).  With NVIDIA's driver the answers come
 * from the node's libnvidia-ml.so.1, opened at the first question: most sessions never ask.
 * Where it is missing, and with the software GPU, memory comes from the driver itself; the
 * software GPU's load is this process's own, since it is the GPU.  Everything else is then not
 * known.
 */
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/log.h"
#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/driver/memory/memory.h"
#include "gpu-agent/worker/driver/nvml/nvml.h"
#include "gpu-agent/worker/worker_state.h"

typedef nvmlReturn_t (*nvml_number)(nvmlDevice_t device, unsigned int *value);
typedef nvmlReturn_t (*nvml_pair)(nvmlDevice_t device, unsigned int *one, unsigned int *two);
typedef nvmlReturn_t (*nvml_chosen)(nvmlDevice_t device, int which, unsigned int *value);
typedef nvmlReturn_t (*nvml_long)(nvmlDevice_t device, unsigned long long *value);
typedef nvmlReturn_t (*nvml_struct)(nvmlDevice_t device, void *value);
typedef nvmlReturn_t (*nvml_fields)(nvmlDevice_t device, int count, nvmlFieldValue_t *values);
typedef nvmlReturn_t (*nvml_string)(nvmlDevice_t device, char *text, unsigned int length);
typedef nvmlReturn_t (*nvml_system_string)(char *text, unsigned int length);
typedef nvmlReturn_t (*nvml_branch)(nvmlSystemDriverBranchInfo_t *info, unsigned int length);
typedef nvmlReturn_t (*nvml_find)(const char *name, nvmlDevice_t *device);

/* Device d -> NVML's handle. CUDA and NVML number devices differently. */
static struct {
	bool tried;
	void *library;
	nvmlDevice_t devices[HANDOFF_DEVICES];
} nvml;

/* The facts that one function tells as one number (an enum is one too). */
static const struct {
	enum nvml_fact fact;
	const char *name;
} numbers[] = {
	{NVML_FACT_POWER_USAGE, "nvmlDeviceGetPowerUsage"},
	{NVML_FACT_POWER_LIMIT, "nvmlDeviceGetPowerManagementLimit"},
	{NVML_FACT_POWER_LIMIT_DEFAULT, "nvmlDeviceGetPowerManagementDefaultLimit"},
	{NVML_FACT_POWER_LIMIT_ENFORCED, "nvmlDeviceGetEnforcedPowerLimit"},
	{NVML_FACT_FAN_SPEED, "nvmlDeviceGetFanSpeed"},
	{NVML_FACT_FANS, "nvmlDeviceGetNumFans"},
	{NVML_FACT_PERFORMANCE_STATE, "nvmlDeviceGetPerformanceState"},
	{NVML_FACT_PERSISTENCE, "nvmlDeviceGetPersistenceMode"},
	{NVML_FACT_COMPUTE_MODE, "nvmlDeviceGetComputeMode"},
	{NVML_FACT_MINOR_NUMBER, "nvmlDeviceGetMinorNumber"},
	{NVML_FACT_BRAND, "nvmlDeviceGetBrand"},
	{NVML_FACT_DISPLAY_MODE, "nvmlDeviceGetDisplayMode"},
	{NVML_FACT_DISPLAY_ACTIVE, "nvmlDeviceGetDisplayActive"},
	{NVML_FACT_PCIE_GENERATION, "nvmlDeviceGetCurrPcieLinkGeneration"},
	{NVML_FACT_PCIE_WIDTH, "nvmlDeviceGetCurrPcieLinkWidth"},
	{NVML_FACT_PCIE_GENERATION_MAX, "nvmlDeviceGetMaxPcieLinkGeneration"},
	{NVML_FACT_PCIE_WIDTH_MAX, "nvmlDeviceGetMaxPcieLinkWidth"},
	{NVML_FACT_CORES, "nvmlDeviceGetNumGpuCores"},
	{NVML_FACT_BUS_WIDTH, "nvmlDeviceGetMemoryBusWidth"},
	{NVML_FACT_MIG_DEVICES_MAX, "nvmlDeviceGetMaxMigDeviceCount"},
};

/* Two by one function; a second of -1 is of no interest (a sampling period). */
static const struct {
	int one, two;
	const char *name;
} pairs[] = {
	{NVML_FACT_ECC, NVML_FACT_ECC_PENDING, "nvmlDeviceGetEccMode"},
	{NVML_FACT_MIG, NVML_FACT_MIG_PENDING, "nvmlDeviceGetMigMode"},
	{NVML_FACT_POWER_LIMIT_MIN, NVML_FACT_POWER_LIMIT_MAX,
		"nvmlDeviceGetPowerManagementLimitConstraints"},
	{NVML_FACT_ENCODER, -1, "nvmlDeviceGetEncoderUtilization"},
	{NVML_FACT_DECODER, -1, "nvmlDeviceGetDecoderUtilization"},
};

/* One number, of which the argument says. */
static const struct {
	int fact, which;
	const char *name;
} chosen[] = {
	{NVML_FACT_TEMPERATURE, NVML_TEMPERATURE_GPU, "nvmlDeviceGetTemperature"},
	{NVML_FACT_SHUTDOWN, NVML_TEMPERATURE_THRESHOLD_SHUTDOWN,
		"nvmlDeviceGetTemperatureThreshold"},
	{NVML_FACT_SLOWDOWN, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN,
		"nvmlDeviceGetTemperatureThreshold"},
	{(int)NVML_FACT_CLOCK + NVML_CLOCK_GRAPHICS, NVML_CLOCK_GRAPHICS,
		"nvmlDeviceGetClockInfo"},
	{(int)NVML_FACT_CLOCK + NVML_CLOCK_SM, NVML_CLOCK_SM, "nvmlDeviceGetClockInfo"},
	{(int)NVML_FACT_CLOCK + NVML_CLOCK_MEM, NVML_CLOCK_MEM, "nvmlDeviceGetClockInfo"},
	{(int)NVML_FACT_CLOCK + NVML_CLOCK_VIDEO, NVML_CLOCK_VIDEO, "nvmlDeviceGetClockInfo"},
	{(int)NVML_FACT_MAX_CLOCK + NVML_CLOCK_GRAPHICS, NVML_CLOCK_GRAPHICS,
		"nvmlDeviceGetMaxClockInfo"},
	{(int)NVML_FACT_MAX_CLOCK + NVML_CLOCK_SM, NVML_CLOCK_SM, "nvmlDeviceGetMaxClockInfo"},
	{(int)NVML_FACT_MAX_CLOCK + NVML_CLOCK_MEM, NVML_CLOCK_MEM,
		"nvmlDeviceGetMaxClockInfo"},
	{(int)NVML_FACT_MAX_CLOCK + NVML_CLOCK_VIDEO, NVML_CLOCK_VIDEO,
		"nvmlDeviceGetMaxClockInfo"},
};

static const struct {
	enum nvml_fact fact;
	const char *name;
} longs[] = {
	{NVML_FACT_ENERGY, "nvmlDeviceGetTotalEnergyConsumption"},
	{NVML_FACT_CLOCK_REASONS, "nvmlDeviceGetCurrentClocksThrottleReasons"},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void nvml_open(struct worker *w)
{
	nvmlReturn_t (*init)(void);
	nvmlReturn_t status;

	if (nvml.tried)
		return;
	nvml.tried = true;
	if (w->config->driver == DRIVER_SOFTWARE)
		return;
	nvml.library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!nvml.library) {
		log_info("nvml.missing", "error=\"%s\"", dlerror());
		return;
	}
	init = (nvmlReturn_t(*)(void))dlsym(nvml.library, "nvmlInit_v2");
	status = init ? init() : NVML_ERROR_FUNCTION_NOT_FOUND;
	if (status) {
		log_info("nvml.missing", "error=\"nvmlInit_v2 failed: %d\"", (int)status);
		dlclose(nvml.library);
		nvml.library = NULL;
	}
}

void *nvml_function(const char *name)
{
	return dlsym(nvml.library, name);
}

/* By UUID, or where that is an instance's, by its place. */
nvmlDevice_t nvml_device(struct worker *w, uint32_t index)
{
	const struct open_device *open = &w->devices[index].open;
	nvml_find find;
	char uuid[48];
	int n = snprintf(uuid, sizeof(uuid), "GPU-");

	nvml_open(w);
	if (!nvml.library || nvml.devices[index])
		return nvml.library ? nvml.devices[index] : NULL;
	for (int i = 0; i < 16; i++)
		n += snprintf(uuid + n, sizeof(uuid) - (size_t)n, "%s%02x",
			i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", open->uuid[i]);
	find = (nvml_find)dlsym(nvml.library, "nvmlDeviceGetHandleByUUID");
	if (find && !find(uuid, &nvml.devices[index]))
		return nvml.devices[index];
	find = (nvml_find)dlsym(nvml.library, "nvmlDeviceGetHandleByPciBusId_v2");
	if (find && !find(open->pci_bus_id, &nvml.devices[index]))
		return nvml.devices[index];
	nvml.devices[index] = NULL;
	return NULL;
}

/* ---- answers under construction ---- */

struct wish {
	uint64_t wanted;
	struct nvml_facts *facts;
};

static bool wants(const struct wish *wish, int fact)
{
	return fact >= 0 && wish->wanted >> fact & 1;
}

/* Any of FIRST to LAST. */
static bool wants_some(const struct wish *wish, int first, int last)
{
	return wish->wanted >> first & ((2ull << (last - first)) - 1);
}

static void tell(struct wish *wish, int fact, uint64_t value)
{
	if (!wants(wish, fact))
		return;
	wish->facts->known |= 1ull << fact;
	wish->facts->values[fact] = (int64_t)value;
}

static void tell_structs(nvmlDevice_t device, struct wish *wish)
{
	nvml_struct ask;
	nvmlMemory_t memory;
	nvmlMemory_v2_t precise = {.version = nvmlMemory_v2};
	nvmlUtilization_t load;
	nvmlPciInfo_t pci;
	nvmlBAR1Memory_t bar;

	if (wants_some(wish, NVML_FACT_MEMORY_TOTAL, NVML_FACT_MEMORY_RESERVED)) {
		ask = (nvml_struct)dlsym(nvml.library, "nvmlDeviceGetMemoryInfo_v2");
		if (ask && !ask(device, &precise)) {
			tell(wish, NVML_FACT_MEMORY_TOTAL, precise.total);
			tell(wish, NVML_FACT_MEMORY_FREE, precise.free);
			tell(wish, NVML_FACT_MEMORY_USED, precise.used);
			tell(wish, NVML_FACT_MEMORY_RESERVED, precise.reserved);
		} else {
			ask = (nvml_struct)dlsym(nvml.library, "nvmlDeviceGetMemoryInfo");
			if (ask && !ask(device, &memory)) {
				tell(wish, NVML_FACT_MEMORY_TOTAL, memory.total);
				tell(wish, NVML_FACT_MEMORY_FREE, memory.free);
				tell(wish, NVML_FACT_MEMORY_USED, memory.used);
			}
		}
	}
	if (wants_some(wish, NVML_FACT_UTILIZATION_GPU, NVML_FACT_UTILIZATION_MEMORY)) {
		ask = (nvml_struct)dlsym(nvml.library, "nvmlDeviceGetUtilizationRates");
		if (ask && !ask(device, &load)) {
			tell(wish, NVML_FACT_UTILIZATION_GPU, load.gpu);
			tell(wish, NVML_FACT_UTILIZATION_MEMORY, load.memory);
		}
	}
	if (wants_some(wish, NVML_FACT_PCI_DEVICE_ID, NVML_FACT_PCI_SUBSYSTEM_ID)) {
		ask = (nvml_struct)dlsym(nvml.library, "nvmlDeviceGetPciInfo_v3");
		if (ask && !ask(device, &pci)) {
			tell(wish, NVML_FACT_PCI_DEVICE_ID, pci.pciDeviceId);
			tell(wish, NVML_FACT_PCI_SUBSYSTEM_ID, pci.pciSubSystemId);
		}
	}
	if (wants_some(wish, NVML_FACT_BAR1_TOTAL, NVML_FACT_BAR1_USED)) {
		ask = (nvml_struct)dlsym(nvml.library, "nvmlDeviceGetBAR1MemoryInfo");
		if (ask && !ask(device, &bar)) {
			tell(wish, NVML_FACT_BAR1_TOTAL, bar.bar1Total);
			tell(wish, NVML_FACT_BAR1_FREE, bar.bar1Free);
			tell(wish, NVML_FACT_BAR1_USED, bar.bar1Used);
		}
	}
}

/* The newest form that the node's NVML knows. */
static void tell_fabric(nvmlDevice_t device, struct wish *wish)
{
	nvml_struct ask = (nvml_struct)dlsym(nvml.library, "nvmlDeviceGetGpuFabricInfoV");
	nvmlGpuFabricInfo_v3_t fabric = {.version = nvmlGpuFabricInfo_v3};
	uint64_t cluster[2];

	if (!ask)
		return;
	if (ask(device, &fabric)) {
		fabric.version = nvmlGpuFabricInfo_v2;
		if (ask(device, &fabric))
			return;
	} else {
		tell(wish, NVML_FACT_FABRIC_HEALTH_SUMMARY, fabric.healthSummary);
	}
	memcpy(cluster, fabric.clusterUuid, sizeof(cluster));
	tell(wish, NVML_FACT_FABRIC_STATE, fabric.state);
	tell(wish, NVML_FACT_FABRIC_STATUS, fabric.status);
	tell(wish, NVML_FACT_FABRIC_CLIQUE, fabric.cliqueId);
	tell(wish, NVML_FACT_FABRIC_CLUSTER, cluster[0]);
	tell(wish, NVML_FACT_FABRIC_CLUSTER + 1, cluster[1]);
	tell(wish, NVML_FACT_FABRIC_HEALTH, fabric.healthMask);
}

static void tell_nvml(nvmlDevice_t device, struct wish *wish)
{
	unsigned int one, two;
	unsigned long long many;

	for (size_t i = 0; i < COUNT(numbers); i++) {
		nvml_number ask = wants(wish, (int)numbers[i].fact)
					  ? (nvml_number)dlsym(nvml.library, numbers[i].name)
					  : NULL;

		if (ask && !ask(device, &one))
			tell(wish, (int)numbers[i].fact, one);
	}
	for (size_t i = 0; i < COUNT(pairs); i++) {
		nvml_pair ask = wants(wish, pairs[i].one) || wants(wish, pairs[i].two)
					? (nvml_pair)dlsym(nvml.library, pairs[i].name)
					: NULL;

		if (ask && !ask(device, &one, &two)) {
			tell(wish, pairs[i].one, one);
			tell(wish, pairs[i].two, two);
		}
	}
	for (size_t i = 0; i < COUNT(chosen); i++) {
		nvml_chosen ask = wants(wish, chosen[i].fact)
					  ? (nvml_chosen)dlsym(nvml.library, chosen[i].name)
					  : NULL;

		if (ask && !ask(device, chosen[i].which, &one))
			tell(wish, chosen[i].fact, one);
	}
	for (size_t i = 0; i < COUNT(longs); i++) {
		nvml_long ask = wants(wish, (int)longs[i].fact)
					? (nvml_long)dlsym(nvml.library, longs[i].name)
					: NULL;

		if (ask && !ask(device, &many))
			tell(wish, (int)longs[i].fact, many);
	}
	tell_structs(device, wish);
	if (wants_some(wish, NVML_FACT_FABRIC_STATE, NVML_FACT_FABRIC_HEALTH_SUMMARY))
		tell_fabric(device, wish);
}

/* The software GPU is this process. Percent of one CPU over the last full sample: the
 * interpreter is busy or it is not, however many CPUs it has. */
static unsigned own_load;

void nvml_sample(struct worker *w, uint64_t now)
{
	static uint64_t sampled_at, used_then;
	struct timespec used;
	uint64_t cpu;

	if (w->config->driver != DRIVER_SOFTWARE ||
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used))
		return;
	cpu = (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
	if (sampled_at && now > sampled_at) {
		uint64_t percent = (cpu - used_then) * 100 / (now - sampled_at);

		own_load = percent > 100 ? 100 : (unsigned)percent;
	}
	sampled_at = now;
	used_then = cpu;
}

/* What the driver itself knows. */
static void tell_driver(struct worker *w, uint32_t index, struct wish *wish)
{
	size_t free_bytes, total;

	if (wants_some(wish, NVML_FACT_MEMORY_TOTAL, NVML_FACT_MEMORY_RESERVED) &&
		!worker_use(w, (uint16_t)CONTEXT_PRIMARY(index)) &&
		!w->cuda.cuMemGetInfo_v2(&free_bytes, &total) && free_bytes <= total) {
		tell(wish, NVML_FACT_MEMORY_TOTAL, total);
		tell(wish, NVML_FACT_MEMORY_FREE, free_bytes);
		tell(wish, NVML_FACT_MEMORY_USED, total - free_bytes);
	}
	if (w->config->driver == DRIVER_SOFTWARE && wants(wish, NVML_FACT_UTILIZATION_GPU))
		tell(wish, NVML_FACT_UTILIZATION_GPU, own_load);
}

/* A pod with a limit has a GPU of that size. */
static void tell_limit(struct worker *w, uint32_t index, struct wish *wish)
{
	int64_t *values = wish->facts->values;
	uint64_t free_bytes = (uint64_t)values[NVML_FACT_MEMORY_FREE];
	uint64_t total = (uint64_t)values[NVML_FACT_MEMORY_TOTAL];
	const uint64_t all = 1ull << NVML_FACT_MEMORY_TOTAL | 1ull << NVML_FACT_MEMORY_FREE;

	if (!w->vram_limit || (wish->facts->known & all) != all)
		return;
	memory_limited(w, index, &free_bytes, &total);
	tell(wish, NVML_FACT_MEMORY_TOTAL, total);
	tell(wish, NVML_FACT_MEMORY_FREE, free_bytes);
	tell(wish, NVML_FACT_MEMORY_USED, total - free_bytes);
	tell(wish, NVML_FACT_MEMORY_RESERVED, 0);
}

CUresult serve_vcudaNvmlFacts(struct worker *w, struct request *r)
{
	const struct wire_vcudaNvmlFacts *req = (const void *)r->body;
	struct wire_vcudaNvmlFacts_reply *answer = (void *)r->answer;
	struct wish wish = {.wanted = req->wanted, .facts = &answer->facts};
	nvmlDevice_t device;
	uint32_t index = (uint32_t)req->device;

	if (req->device < 0 || index >= w->device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	tell(&wish, NVML_FACT_SESSION_USED, w->devices[index].used);
	device = nvml_device(w, index);
	if (device)
		tell_nvml(device, &wish);
	else
		tell_driver(w, index, &wish);
	tell_limit(w, index, &wish);
	return CUDA_SUCCESS;
}

/* Where there is no NVML, no field is supported. */
CUresult serve_vcudaNvmlFields(struct worker *w, struct request *r)
{
	const struct wire_vcudaNvmlFields *req = (const void *)r->body;
	struct wire_vcudaNvmlFields_reply *answer = (void *)r->answer;
	uint32_t index = (uint32_t)req->device, count = req->count;
	nvmlFieldValue_t values[NVML_FIELDS_MAX] = {0};
	nvmlReturn_t status = NVML_ERROR_NOT_SUPPORTED;
	const struct nvml_field *fields;
	struct nvml_field_value *told;
	nvmlDevice_t device;
	nvml_fields ask;

	if (req->device < 0 || index >= w->device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!count || count > NVML_FIELDS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	fields = worker_in(r, &req->fields, count * sizeof(*fields));
	told = worker_out(r, &answer->values, count * sizeof(*told));
	if (worker_refused(r))
		return r->refused;
	for (uint32_t i = 0; i < count; i++) {
		values[i].fieldId = fields[i].field;
		values[i].scopeId = fields[i].scope;
	}
	device = nvml_device(w, index);
	ask = device ? (nvml_fields)dlsym(nvml.library, "nvmlDeviceGetFieldValues") : NULL;
	if (ask)
		status = ask(device, (int)count, values);
	for (uint32_t i = 0; i < count; i++) {
		told[i] = (struct nvml_field_value){.timestamp = values[i].timestamp,
			.latency = values[i].latencyUsec,
			.type = (uint32_t)values[i].valueType,
			.status = (int32_t)(status ? status : values[i].nvmlReturn),
			.value = values[i].value.ullVal};
	}
	return CUDA_SUCCESS;
}

/* The driver's own version, and its branch, where there is no NVML: what its CUDA is; the
 * version in the form that NVIDIA's has, three numbers, which XLA and others take apart. */
static CUresult driver_version(struct worker *w, const char *kind, char *text, size_t n)
{
	int version = 0;

	if (w->config->driver != DRIVER_SOFTWARE || w->cuda.cuDriverGetVersion(&version))
		return CUDA_ERROR_NOT_SUPPORTED;
	snprintf(text, n, "%d.%d%s", version / 1000, version % 1000 / 10, kind);
	return CUDA_SUCCESS;
}

static bool text_of_machine(uint32_t which)
{
	return which <= NVML_TEXT_NVML_VERSION || which == NVML_TEXT_DRIVER_BRANCH;
}

CUresult serve_vcudaNvmlText(struct worker *w, struct request *r)
{
	static const char *const names[] = {
		[NVML_TEXT_DRIVER_VERSION] = "nvmlSystemGetDriverVersion",
		[NVML_TEXT_NVML_VERSION] = "nvmlSystemGetNVMLVersion",
		[NVML_TEXT_VBIOS] = "nvmlDeviceGetVbiosVersion",
		[NVML_TEXT_SERIAL] = "nvmlDeviceGetSerial",
		[NVML_TEXT_PART_NUMBER] = "nvmlDeviceGetBoardPartNumber",
		[NVML_TEXT_DRIVER_BRANCH] = "nvmlSystemGetDriverBranch",
	};
	const struct wire_vcudaNvmlText *req = (const void *)r->body;
	struct wire_vcudaNvmlText_reply *answer = (void *)r->answer;
	uint32_t which = req->which, index = (uint32_t)req->device;
	nvmlReturn_t status = NVML_ERROR_NOT_SUPPORTED;
	nvmlDevice_t device;
	char *text;

	if (!which || which >= COUNT(names) || req->device < -1 ||
		(req->device >= 0 && index >= w->device_count) ||
		(req->device < 0) != text_of_machine(which))
		return CUDA_ERROR_INVALID_VALUE;
	text = worker_out(r, &answer->text, NVML_TEXT_BYTES);
	memset(text, 0, NVML_TEXT_BYTES);
	nvml_open(w);
	if (!nvml.library)
		return which == NVML_TEXT_DRIVER_VERSION
			       ? driver_version(w, ".0", text, NVML_TEXT_BYTES)
		       : which == NVML_TEXT_DRIVER_BRANCH
			       ? driver_version(w, " software", text, NVML_TEXT_BYTES)
			       : CUDA_ERROR_NOT_SUPPORTED;
	if (which == NVML_TEXT_DRIVER_BRANCH) {
		nvmlSystemDriverBranchInfo_t info = {.version = nvmlSystemDriverBranchInfo_v1};
		nvml_branch ask = (nvml_branch)dlsym(nvml.library, names[which]);

		if (ask)
			status = ask(&info, sizeof(info.branch));
		if (!status)
			memcpy(text, info.branch, sizeof(info.branch));
	} else if (req->device < 0) {
		nvml_system_string ask = (nvml_system_string)dlsym(nvml.library, names[which]);

		if (ask)
			status = ask(text, NVML_TEXT_BYTES);
	} else {
		nvml_string ask = (nvml_string)dlsym(nvml.library, names[which]);

		device = nvml_device(w, index);
		if (ask && device)
			status = ask(device, text, NVML_TEXT_BYTES);
	}
	text[NVML_TEXT_BYTES - 1] = 0;
	return status ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}
