/* SPDX-License-Identifier: Apache-2.0
 *
 * The NVML front as a program meets it: opened by SONAME, on the software GPU through the whole
 * stack.  With the argument "alone": what it says where no GPU is configured.
 */
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <cuda.h>
#include <dlfcn.h>
#include <nvml.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static int failures;
static void *nvml, *cuda;

#define is(got, want)                                                                          \
	do {                                                                                   \
		long long got_ = (long long)(got), want_ = (long long)(want);                  \
		if (got_ != want_) {                                                           \
			printf("%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #got,      \
				got_, want_);                                                  \
			failures++;                                                            \
		}                                                                              \
	} while (0)

/* The functions, as a program that opens the library finds them. */
#define TEXT(name) #name
#define NVML(name) ((__typeof__(&name))find(nvml, TEXT(name)))
#define CUDA(name) ((__typeof__(&name))find(cuda, TEXT(name)))

static void *find(void *library, const char *name)
{
	void *function = dlsym(library, name);

	if (!function) {
		printf("%s is not there\n", name);
		exit(1);
	}
	return function;
}

static void before_init(void)
{
	unsigned count;
	nvmlDevice_t device;

	is(NVML(nvmlDeviceGetCount_v2)(&count), NVML_ERROR_UNINITIALIZED);
	is(NVML(nvmlDeviceGetHandleByIndex_v2)(0, &device), NVML_ERROR_UNINITIALIZED);
	is(NVML(nvmlShutdown)(), NVML_ERROR_UNINITIALIZED);
	is(NVML(nvmlInitWithFlags)(64), NVML_ERROR_INVALID_ARGUMENT);
	is(strcmp(NVML(nvmlErrorString)(NVML_ERROR_NOT_SUPPORTED), "Not Supported"), 0);
}

static nvmlDevice_t finding(void)
{
	nvmlDevice_t device = NULL, other = NULL;
	unsigned count = 0, index = 9;
	char name[96], uuid[96], small[4];
	nvmlPciInfo_t pci, old;

	is(NVML(nvmlDeviceGetCount_v2)(&count), NVML_SUCCESS);
	is(count, 1);
	is(NVML(nvmlDeviceGetHandleByIndex_v2)(count, &device), NVML_ERROR_INVALID_ARGUMENT);
	is(NVML(nvmlDeviceGetHandleByIndex_v2)(0, &device), NVML_SUCCESS);
	is(NVML(nvmlDeviceGetIndex)(device, &index), NVML_SUCCESS);
	is(index, 0);
	is(NVML(nvmlDeviceGetName)(device, name, sizeof(name)), NVML_SUCCESS);
	is(strcmp(name, "vcuda software GPU"), 0);
	is(NVML(nvmlDeviceGetName)(device, small, sizeof(small)), NVML_ERROR_INSUFFICIENT_SIZE);
	is(NVML(nvmlDeviceGetUUID)(device, uuid, sizeof(uuid)), NVML_SUCCESS);
	is(strlen(uuid), 40);
	is(NVML(nvmlDeviceGetHandleByUUID)(uuid, &other), NVML_SUCCESS);
	is(other == device, 1);
	other = NULL;
	is(NVML(nvmlDeviceGetHandleByUUID)(uuid + 4, &other), NVML_SUCCESS);
	is(other == device, 1);
	uuid[39] ^= 1;
	is(NVML(nvmlDeviceGetHandleByUUID)(uuid, &other), NVML_ERROR_NOT_FOUND);
	is(NVML(nvmlDeviceGetPciInfo_v3)(device, &pci), NVML_SUCCESS);
	other = NULL;
	is(NVML(nvmlDeviceGetHandleByPciBusId_v2)(pci.busId, &other), NVML_SUCCESS);
	is(other == device, 1);
	is(NVML(nvmlDeviceGetHandleByPciBusId_v2)("7777:77:17.0", &other),
		NVML_ERROR_NOT_FOUND);
	/* The older form must not write behind its own, shorter struct. */
	memset(&old, 0x5a, sizeof(old));
	is(NVML(nvmlDeviceGetPciInfo)(device, &old), NVML_SUCCESS);
	is(strcmp(old.busIdLegacy, pci.busIdLegacy), 0);
	is(old.busId[0], 0x5a);
	/* No handle of ours. */
	is(NVML(nvmlDeviceGetIndex)((nvmlDevice_t)(void *)name, &index),
		NVML_ERROR_INVALID_ARGUMENT);
	is(NVML(nvmlDeviceGetIndex)(NULL, &index), NVML_ERROR_INVALID_ARGUMENT);
	return device;
}

static void versions(nvmlDevice_t device)
{
	char text[96];
	nvmlSystemDriverBranchInfo_t branch = {.version = nvmlSystemDriverBranchInfo_v1};
	int nvml_says = 0, cuda_says = 1, major = 0, minor = 0, patch = 0, end = 0;

	is(NVML(nvmlSystemGetDriverVersion)(text, sizeof(text)), NVML_SUCCESS);
	is(sscanf(text, "%d.%d.%d%n", &major, &minor, &patch, &end), 3);
	is(text[end], 0);
	is(NVML(nvmlSystemGetDriverBranch)(&branch, sizeof(branch.branch)), NVML_SUCCESS);
	is(strstr(branch.branch, "software") != NULL, 1);
	is(NVML(nvmlSystemGetDriverBranch)(&branch, 4), NVML_ERROR_INSUFFICIENT_SIZE);
	is(NVML(nvmlSystemGetDriverBranch)(NULL, 80), NVML_ERROR_INVALID_ARGUMENT);
	branch.version++;
	is(NVML(nvmlSystemGetDriverBranch)(&branch, 80), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	is(NVML(nvmlSystemGetNVMLVersion)(text, sizeof(text)), NVML_SUCCESS);
	is(NVML(nvmlSystemGetCudaDriverVersion_v2)(&nvml_says), NVML_SUCCESS);
	is(CUDA(cuDriverGetVersion)(&cuda_says), CUDA_SUCCESS);
	is(nvml_says, cuda_says);
	is(NVML(nvmlDeviceGetCudaComputeCapability)(device, &major, &minor), NVML_SUCCESS);
	is(major, 8);
}

/* What nobody can know of a software GPU, and what is not served at all. */
static void refusals(nvmlDevice_t device)
{
	nvmlFieldValue_t field = {.fieldId = NVML_FI_DEV_NVLINK_LINK_COUNT};
	nvmlGpuFabricInfo_t fabric;
	nvmlGpuFabricInfoV_t newer;
	nvmlMemory_v2_t memory = {.version = 1};
	unsigned value;

	is(NVML(nvmlDeviceGetTemperature)(device, NVML_TEMPERATURE_GPU, &value),
		NVML_ERROR_NOT_SUPPORTED);
	is(NVML(nvmlDeviceGetPowerUsage)(device, &value), NVML_ERROR_NOT_SUPPORTED);
	is(NVML(nvmlDeviceGetPowerUsage)(device, NULL), NVML_ERROR_INVALID_ARGUMENT);
	is(NVML(nvmlDeviceGetMigMode)(device, &value, &value), NVML_ERROR_NOT_SUPPORTED);
	is(NVML(nvmlDeviceGetClockInfo)(device, (nvmlClockType_t)9, &value),
		NVML_ERROR_INVALID_ARGUMENT);
	is(NVML(nvmlDeviceSetFanSpeed_v2)(device, 0, 50), NVML_ERROR_NOT_SUPPORTED);
	is(NVML(nvmlDeviceGetGpuFabricInfo)(device, &fabric), NVML_ERROR_NOT_SUPPORTED);
	newer.version = nvmlGpuFabricInfo_v3 + 1;
	is(NVML(nvmlDeviceGetGpuFabricInfoV)(device, &newer),
		NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	is(NVML(nvmlDeviceGetFieldValues)(device, 0, &field), NVML_ERROR_INVALID_ARGUMENT);
	is(NVML(nvmlDeviceGetFieldValues)(device, 1, NULL), NVML_ERROR_INVALID_ARGUMENT);
	is(NVML(nvmlDeviceGetFieldValues)(NULL, 1, &field), NVML_ERROR_INVALID_ARGUMENT);
	is(NVML(nvmlDeviceGetFieldValues)(device, 1, &field), NVML_SUCCESS);
	is(field.nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
	is(NVML(nvmlDeviceGetMemoryInfo_v2)(device, &memory),
		NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
}

/* What a machine has none of is 0 of it, and nothing happens in a set of events, which a device
 * that registers none leaves usable. */
static void nothing_there(nvmlDevice_t device)
{
	nvmlDeviceAddressingMode_t mode = {.version = nvmlDeviceAddressingMode_v1, .value = 9};
	unsigned units = 9, cards = 9, excluded = 9;
	nvmlEventSet_t set = NULL, other = NULL;
	nvmlEventData_t data;
	nvmlHwbcEntry_t card;

	is(NVML(nvmlUnitGetCount)(&units), NVML_SUCCESS);
	is(units, 0);
	is(NVML(nvmlUnitGetCount)(NULL), NVML_ERROR_INVALID_ARGUMENT);
	is(NVML(nvmlSystemGetHicVersion)(&cards, &card), NVML_SUCCESS);
	is(cards, 0);
	is(NVML(nvmlGetExcludedDeviceCount)(&excluded), NVML_SUCCESS);
	is(excluded, 0);
	is(NVML(nvmlEventSetCreate)(NULL), NVML_ERROR_INVALID_ARGUMENT);
	is(NVML(nvmlEventSetCreate)(&set), NVML_SUCCESS);
	is(NVML(nvmlEventSetCreate)(&other), NVML_SUCCESS);
	is(set != NULL && set != other, 1);
	is(NVML(nvmlDeviceRegisterEvents)(device, nvmlEventTypeXidCriticalError, set),
		NVML_ERROR_NOT_SUPPORTED);
	is(NVML(nvmlEventSetWait_v2)(set, &data, 0), NVML_ERROR_TIMEOUT);
	is(NVML(nvmlEventSetWait)(set, &data, 20), NVML_ERROR_TIMEOUT);
	is(NVML(nvmlEventSetWait_v2)(NULL, &data, 0), NVML_ERROR_INVALID_ARGUMENT);
	is(NVML(nvmlEventSetFree)(set), NVML_SUCCESS);
	is(NVML(nvmlEventSetFree)(other), NVML_SUCCESS);
	is(NVML(nvmlDeviceGetAddressingMode)(device, &mode), NVML_SUCCESS);
	is(mode.value, NVML_DEVICE_ADDRESSING_MODE_NONE);
	mode.version++;
	is(NVML(nvmlDeviceGetAddressingMode)(device, &mode),
		NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
}

static unsigned long long used(nvmlDevice_t device)
{
	nvmlMemory_t memory = {0};
	nvmlMemory_v2_t precise = {.version = nvmlMemory_v2};

	is(NVML(nvmlDeviceGetMemoryInfo)(device, &memory), NVML_SUCCESS);
	is(memory.total, memory.free + memory.used);
	is(memory.total > 64 * MIB, 1);
	is(NVML(nvmlDeviceGetMemoryInfo_v2)(device, &precise), NVML_SUCCESS);
	is(precise.used, memory.used);
	return memory.used;
}

static unsigned processes(nvmlDevice_t device, unsigned long long *bytes)
{
	nvmlProcessInfo_t infos[4];
	nvmlProcessInfo_v1_t old[4];
	unsigned count = 4, again = 4, none = 0, graphics = 4;

	is(NVML(nvmlDeviceGetComputeRunningProcesses_v3)(device, &count, infos), NVML_SUCCESS);
	is(NVML(nvmlDeviceGetComputeRunningProcesses)(device, &again, old), NVML_SUCCESS);
	is(again, count);
	is(NVML(nvmlDeviceGetComputeRunningProcesses_v3)(device, &none, NULL),
		count ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS);
	is(none, count);
	is(NVML(nvmlDeviceGetGraphicsRunningProcesses_v3)(device, &graphics, infos + 1),
		NVML_SUCCESS);
	is(graphics, 0);
	if (!count)
		return 0;
	is(infos[0].pid, getpid());
	is(old[0].usedGpuMemory, infos[0].usedGpuMemory);
	*bytes = infos[0].usedGpuMemory;
	return count;
}

/* A kernel keeps the software GPU busy; its load is a sample a second. On a machine with much
 * else to do it gets few percent of a CPU; at rest it has none. */
static void load(nvmlDevice_t device)
{
	static const char text[] =
		".version 7.0\n.target sm_70\n.address_size 64\n"
		".visible .entry spin()\n{\n.reg .u32 %r;\n.reg .pred %p;\nmov.u32 %r, 0;\n"
		"again:\nadd.u32 %r, %r, 1;\nsetp.lt.u32 %p, %r, 2000000;\n@%p bra again;\n"
		"ret;\n}\n";
	nvmlUtilization_t now = {0};
	CUfunction function;
	CUmodule module;
	time_t deadline = time(NULL) + 10;

	is(CUDA(cuModuleLoadData)(&module, text), CUDA_SUCCESS);
	is(CUDA(cuModuleGetFunction)(&function, module, "spin"), CUDA_SUCCESS);
	while (now.gpu < 3 && time(NULL) < deadline && !failures) {
		is(CUDA(cuLaunchKernel)(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL),
			CUDA_SUCCESS);
		is(CUDA(cuCtxSynchronize)(), CUDA_SUCCESS);
		is(NVML(nvmlDeviceGetUtilizationRates)(device, &now), NVML_SUCCESS);
	}
	is(now.gpu >= 3 && now.gpu <= 100, 1);
}

/* A process is listed on the devices on which it has a context, and while it has one. */
static void listed(nvmlDevice_t device)
{
	unsigned long long bytes;
	CUcontext context;

	is(processes(device, &bytes), 0);
	is(CUDA(cuCtxCreate_v4)(&context, NULL, 0, 0), CUDA_SUCCESS);
	is(processes(device, &bytes), 1);
	is(CUDA(cuCtxDestroy)(context), CUDA_SUCCESS);
	is(processes(device, &bytes), 0);
}

/* NVML alone, then memory of CUDA's in the same process. */
static void memory(nvmlDevice_t device, bool with_load)
{
	unsigned long long before = used(device), bytes = 0;
	CUcontext context;
	CUdeviceptr at;
	int count;

	is(processes(device, &bytes), 0);
	is(CUDA(cuDeviceGetCount)(&count), CUDA_ERROR_NOT_INITIALIZED);
	is(CUDA(cuInit)(0), CUDA_SUCCESS);
	is(CUDA(cuDeviceGetCount)(&count), CUDA_SUCCESS);
	listed(device);
	is(CUDA(cuDevicePrimaryCtxRetain)(&context, 0), CUDA_SUCCESS);
	is(CUDA(cuCtxSetCurrent)(context), CUDA_SUCCESS);
	is(CUDA(cuMemAlloc)(&at, 64 * MIB), CUDA_SUCCESS);
	is(used(device) - before, 64 * MIB);
	is(processes(device, &bytes), 1);
	is(bytes, 64 * MIB);
	if (with_load)
		load(device);
	is(CUDA(cuMemFree)(at), CUDA_SUCCESS);
	is(CUDA(cuCtxSynchronize)(), CUDA_SUCCESS);
}

/* NVML is asked between a kernel that fails and the call that is told so: it must neither fail
 * itself nor carry the error off. */
static void fault(nvmlDevice_t device)
{
	static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				   ".visible .entry fault()\n{\n.reg .u64 %a;\n"
				   "mov.u64 %a, 8;\nst.global.u32 [%a], 1;\nret;\n}\n";
	unsigned long long bytes;
	CUfunction function;
	CUmodule module;

	is(CUDA(cuModuleLoadData)(&module, text), CUDA_SUCCESS);
	is(CUDA(cuModuleGetFunction)(&function, module, "fault"), CUDA_SUCCESS);
	is(CUDA(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_SUCCESS);
	for (int i = 0; i < 20; i++)
		is(processes(device, &bytes), 1);
	is(CUDA(cuCtxSynchronize)(), CUDA_ERROR_ILLEGAL_ADDRESS);
	is(processes(device, &bytes), 1);
}

static int ended(pid_t child)
{
	int status = -1;

	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status)
									: 99;
}

/* PyTorch counts devices by NVML and forks: the child must be able to use CUDA, and NVML. */
static void child_uses_cuda(nvmlDevice_t device)
{
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		memory(device, false);
		fflush(stdout);
		_exit(failures != 0);
	}
	is(ended(child), 0);
}

/* After cuInit it cannot, as with NVIDIA's, and says so; what was learned is still told. */
static void child_without_session(nvmlDevice_t device)
{
	nvmlMemory_t now;
	char name[96];
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		failures = 0;
		is(CUDA(cuInit)(0), CUDA_ERROR_NOT_INITIALIZED);
		is(NVML(nvmlInit_v2)(), NVML_SUCCESS);
		is(NVML(nvmlDeviceGetName)(device, name, sizeof(name)), NVML_SUCCESS);
		is(NVML(nvmlDeviceGetMemoryInfo)(device, &now), NVML_ERROR_INVALID_STATE);
		fflush(stdout);
		_exit(failures != 0);
	}
	is(ended(child), 0);
}

static void alone(void)
{
	unsigned count = 9;

	is(NVML(nvmlDeviceGetCount_v2)(&count), NVML_ERROR_UNINITIALIZED);
	is(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	is(NVML(nvmlDeviceGetCount_v2)(&count), NVML_SUCCESS);
	is(count, 0);
	is(NVML(nvmlShutdown)(), NVML_SUCCESS);
	is(NVML(nvmlInitWithFlags)(NVML_INIT_FLAG_NO_GPUS), NVML_SUCCESS);
	is(NVML(nvmlDeviceGetCount_v2)(&count), NVML_SUCCESS);
	is(count, 0);
	is(NVML(nvmlShutdown)(), NVML_SUCCESS);
	is(CUDA(cuInit)(0), CUDA_ERROR_NO_DEVICE);
}

int main(int argc, char **argv)
{
	nvmlDevice_t device;

	nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	cuda = dlopen("libcuda.so.1", RTLD_NOW);
	if (!nvml || !cuda) {
		printf("dlopen: %s\n", dlerror());
		return 1;
	}
	before_init();
	if (argc > 1 && !strcmp(argv[1], "alone")) {
		alone();
	} else {
		is(NVML(nvmlInit_v2)(), NVML_SUCCESS);
		is(NVML(nvmlInit)(), NVML_SUCCESS);
		is(NVML(nvmlShutdown)(), NVML_SUCCESS);
		device = finding();
		versions(device);
		refusals(device);
		nothing_there(device);
		child_uses_cuda(device);
		memory(device, true);
		child_without_session(device);
		fault(device);
		is(NVML(nvmlShutdown)(), NVML_SUCCESS);
		is(NVML(nvmlShutdown)(), NVML_ERROR_UNINITIALIZED);
	}
	printf("nvml: %s\n", failures ? "FAILED" : "as it should be");
	return failures != 0;
}
