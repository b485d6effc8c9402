/* SPDX-License-Identifier: Apache-2.0
 *
 * Versions, names of processes, what no machine here has, and the texts of errors.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "shim/nvml/nvml.h"

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
	return nvml_text(NULL, NVML_TEXT_DRIVER_VERSION, version, length);
}

nvmlReturn_t nvmlSystemGetDriverBranch(
	nvmlSystemDriverBranchInfo_t *branchInfo, unsigned int length)
{
	char branch[sizeof(branchInfo->branch)];
	nvmlReturn_t status;

	if (branchInfo && branchInfo->version != nvmlSystemDriverBranchInfo_v1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	status = nvml_text(NULL, NVML_TEXT_DRIVER_BRANCH, branch, sizeof(branch));
	if (status || !branchInfo)
		return status ? status : NVML_ERROR_INVALID_ARGUMENT;
	return nvml_copy(
		branchInfo->branch, length < sizeof(branch) ? length : sizeof(branch), branch);
}

/* The agent's NVML; where it has none, this one. */
nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
	nvmlReturn_t status = nvml_text(NULL, NVML_TEXT_NVML_VERSION, version, length);
	char own[48];

	if (status != NVML_ERROR_NOT_SUPPORTED)
		return status;
	snprintf(own, sizeof(own), "%d.%.32s", NVML_API_VERSION,
		vcuda_nvml_info()->agent_version);
	return nvml_copy(version, length, own);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *cudaDriverVersion)
{
	nvmlReturn_t status = nvml_enter();

	if (status)
		return status;
	if (!cudaDriverVersion)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!nvml_count())
		return NVML_ERROR_DRIVER_NOT_LOADED;
	*cudaDriverVersion = (int)vcuda_nvml_info()->driver_version;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *cudaDriverVersion)
{
	return nvmlSystemGetCudaDriverVersion_v2(cudaDriverVersion);
}

/* Processes are this container's: nvmlDeviceGetComputeRunningProcesses tells no others. */
nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length)
{
	nvmlReturn_t status = nvml_enter();
	cleanup_close int fd = -1;
	char path[40];
	ssize_t n;

	if (status)
		return status;
	if (!name || !length)
		return NVML_ERROR_INVALID_ARGUMENT;
	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, name, length - 1);
	if (n < 0)
		return NVML_ERROR_NOT_FOUND;
	name[n] = 0;
	return NVML_SUCCESS;
}

/* ---- What this machine has none of ---- */

static nvmlReturn_t none(unsigned *count)
{
	nvmlReturn_t status = nvml_enter();

	if (status)
		return status;
	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlUnitGetCount(unsigned int *unitCount)
{
	return none(unitCount);
}

nvmlReturn_t nvmlSystemGetHicVersion(unsigned int *hwbcCount, nvmlHwbcEntry_t *hwbcEntries)
{
	(void)hwbcEntries;
	return none(hwbcCount);
}

/* What the agent keeps for itself is none of the program's devices. */
nvmlReturn_t nvmlGetExcludedDeviceCount(unsigned int *deviceCount)
{
	return none(deviceCount);
}

const char *nvmlErrorString(nvmlReturn_t result)
{
	switch (result) {
	case NVML_SUCCESS: return "Success";
	case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
	case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
	case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
	case NVML_ERROR_NO_PERMISSION: return "Insufficient Permissions";
	case NVML_ERROR_ALREADY_INITIALIZED: return "Already Initialized";
	case NVML_ERROR_NOT_FOUND: return "Not Found";
	case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
	case NVML_ERROR_INSUFFICIENT_POWER: return "Insufficient External Power";
	case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
	case NVML_ERROR_TIMEOUT: return "Timeout";
	case NVML_ERROR_IRQ_ISSUE: return "Interrupt Request Issue";
	case NVML_ERROR_LIBRARY_NOT_FOUND: return "NVML Shared Library Not Found";
	case NVML_ERROR_FUNCTION_NOT_FOUND: return "Function Not Found";
	case NVML_ERROR_CORRUPTED_INFOROM: return "Corrupted infoROM";
	case NVML_ERROR_GPU_IS_LOST: return "GPU is lost";
	case NVML_ERROR_RESET_REQUIRED: return "GPU requires restart";
	case NVML_ERROR_OPERATING_SYSTEM:
		return "The operating system has blocked the request.";
	case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
		return "RM has detected an NVML/RM version mismatch.";
	case NVML_ERROR_IN_USE: return "GPU is currently in use";
	case NVML_ERROR_MEMORY: return "Insufficient Memory";
	case NVML_ERROR_NO_DATA: return "No data";
	case NVML_ERROR_VGPU_ECC_NOT_SUPPORTED:
		return "vGPU operation not available with ECC on";
	case NVML_ERROR_INSUFFICIENT_RESOURCES: return "Insufficient Resources";
	case NVML_ERROR_FREQ_NOT_SUPPORTED: return "Frequency Not Supported";
	case NVML_ERROR_ARGUMENT_VERSION_MISMATCH: return "Argument Version Mismatch";
	case NVML_ERROR_DEPRECATED: return "Deprecated";
	case NVML_ERROR_NOT_READY: return "Not Ready";
	case NVML_ERROR_GPU_NOT_FOUND: return "GPU Not Found";
	case NVML_ERROR_INVALID_STATE: return "Invalid State";
	case NVML_ERROR_RESET_TYPE_NOT_SUPPORTED: return "Reset Type Not Supported";
	case NVML_ERROR_UNKNOWN: break;
	}
	return "Unknown Error";
}
