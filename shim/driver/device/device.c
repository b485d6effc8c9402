/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices: everything that can be asked came with vcudaOpen, so nothing here asks.
 */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "shim/generated/cuda_hand.h"
#include "shim/driver/context/context.h"
#include "shim/engine/engine.h"
#include "shim/engine/session.h"
#include "shim/engine/status.h"
#include "shim/driver/memory/pages/page_fault.h"
#include "shim/driver/memory/pinned/host.h"
#include "shim/driver/memory/mirror/mirror.h"
#include "shim/driver/memory/sharing/share.h"
#include "shim/driver/memory/virtual/vmm_host.h"
#include "shim/driver/device/peer.h"
#include "shim/driver/device/pci.h"
#include "shim/driver/device/visible.h"

struct devices devices;

struct device *device_of(CUdevice device)
{
	return device >= 0 && device < devices.count ? &devices.at[device] : NULL;
}

int device_named(const uint8_t uuid[16], int wanted)
{
	if (!memcmp(uuid, devices.at[wanted].open.uuid, 16))
		return wanted;
	for (int i = 0; i < devices.count; i++)
		if (!memcmp(uuid, devices.at[i].open.uuid, 16))
			return i;
	return -1;
}

struct session_visit device_visit(int device)
{
	return session_visit(devices.at[device].session);
}

uint64_t device_windows_end(void)
{
	uint64_t end = OPEN_WINDOW_LOW;

	for (uint32_t i = 0; i < devices.info.device_count; i++)
		if (devices.all[i].window + devices.all[i].window_bytes > end)
			end = devices.all[i].window + devices.all[i].window_bytes;
	return end;
}

static bool info_good(const struct open_info *info, size_t bytes)
{
	return info->version == OPEN_VERSION &&
	       info->device_bytes == sizeof(struct open_device) && info->device_count &&
	       info->device_count <= OPEN_DEVICES &&
	       bytes - sizeof(*info) >= info->device_count * sizeof(struct open_device);
}

static CUresult unfit(const char *format, ...) __attribute__((format(printf, 1, 2)));
static CUresult unfit(const char *format, ...)
{
	va_list arguments;
	char text[256];

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	session_because(text);
	return status_of(CAUSE_FOREIGN);
}

/* Whether an agent goes with those before it. */
static CUresult info_fits(const struct open_info *info)
{
	const int most = sizeof(info->agent_version);
	const struct session *here = session_here();

	if (!here->index)
		return CUDA_SUCCESS;
	if (memcmp(info->agent_version, devices.info.agent_version, (size_t)most))
		return unfit("agent %.80s is of release %.*s, %.80s of %.*s: a process uses "
			     "several of one release",
			here->agent, most, info->agent_version, session_first.agent, most,
			devices.info.agent_version);
	if (devices.info.device_count + info->device_count > OPEN_DEVICES_MOST)
		return unfit("with agent %.80s there are %u GPUs; a process has %u at the most",
			here->agent, devices.info.device_count + info->device_count,
			OPEN_DEVICES_MOST);
	return CUDA_SUCCESS;
}

static bool windows_overlap(const struct open_device *a, const struct open_device *b)
{
	return a->window < b->window + b->window_bytes &&
	       b->window < a->window + a->window_bytes;
}

/* The next of all. */
static CUresult device_add(const struct open_device *from)
{
	uint32_t number = devices.info.device_count;
	struct open_device *open = &devices.all[number];

	*open = *from;
	open->name[sizeof(open->name) - 1] = 0;
	open->pci_bus_id[sizeof(open->pci_bus_id) - 1] = 0;
	devices.home[number] = session_here();
	for (uint32_t i = 0; i < number; i++)
		if (windows_overlap(&devices.all[i], open))
			return unfit("agent %.80s has its addresses where %.80s has: it cannot "
				     "be one of several",
				session_here()->agent, devices.home[i]->agent);
	devices.info.device_count++;
	return CUDA_SUCCESS;
}

CUresult device_fill(const void *answer, size_t bytes)
{
	const unsigned char *at = answer;
	struct open_device device;
	struct open_info info;
	CUresult status;

	if (bytes < sizeof(info))
		return unfit("the agent's answer is too short");
	memcpy(&info, at, sizeof(info));
	if (!info_good(&info, bytes))
		return unfit("the agent describes its GPUs in another way");
	status = info_fits(&info);
	if (status)
		return status;
	if (!session_here()->index) {
		devices.info = info;
		devices.info.device_count = 0;
	}
	if (info.driver_version < devices.info.driver_version)
		devices.info.driver_version = info.driver_version;
	session_here()->first = devices.info.device_count;
	at += sizeof(info);
	for (uint32_t i = 0; !status && i < info.device_count; i++) {
		memcpy(&device, at + i * sizeof(device), sizeof(device));
		status = device_add(&device);
	}
	if (!status && session_here()->index)
		session_here()->domain_moved =
			pci_part(devices.all, session_here()->first, devices.info.device_count);
	if (!status)
		peer_fill(&info, at + info.device_count * sizeof(device),
			bytes - sizeof(info) - info.device_count * sizeof(device));
	return status;
}

CUresult device_show(void)
{
	const char *list = secure_getenv("CUDA_VISIBLE_DEVICES");
	const char *order = secure_getenv("CUDA_DEVICE_ORDER");
	int chosen[OPEN_DEVICES_MOST], count;

	count = visible_choose(
		order, list, devices.all, (int)devices.info.device_count, chosen);
	if (count <= 0) {
		session_debug("CUDA_VISIBLE_DEVICES=%s%s%s leaves none of %u GPUs",
			list ? list : "(not set)", order ? " CUDA_DEVICE_ORDER=" : "",
			order ? order : "", devices.info.device_count);
		return count < 0 ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_NO_DEVICE;
	}
	for (int i = 0; i < count; i++) {
		devices.at[i].place = chosen[i];
		devices.at[i].session = devices.home[chosen[i]];
		devices.at[i].primary.session = devices.at[i].session;
		devices.at[i].agent = devices.at[i].session->index;
		devices.at[i].number = chosen[i] - (int)devices.at[i].session->first;
		devices.at[i].open = devices.all[chosen[i]];
		devices.at[i].primary_flags = devices.at[i].open.primary_flags;
	}
	devices.count = count;
	return CUDA_SUCCESS;
}

int device_of_primary(uint16_t number)
{
	for (int i = 0; i < devices.count; i++)
		if (device_primary(i) == number)
			return i;
	return 0;
}

int shim_device(struct shim_call *call, CUdevice device)
{
	if (device_of(device))
		return device_wire(device);
	if (!call->status)
		call->status = CUDA_ERROR_INVALID_DEVICE;
	return 0;
}

static CUresult attribute(const struct device *device, int which, int *value)
{
	if (which <= 0 || which >= OPEN_ATTRIBUTES ||
		!(device->open.attribute_known[which / 8] >> which % 8 & 1))
		return CUDA_ERROR_INVALID_VALUE;
	*value = device->open.attributes[which];
	return CUDA_SUCCESS;
}

/* What the device has but this library does not serve yet must not be announced. */
static bool attribute_not_served(int which)
{
	switch (which) {
	case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
	case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS:
	case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES:
	case CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST:
	case CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK:
	case CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH:
	case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED: return true;
	case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
	case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
		return !mirror_served();
	default: return false;
	}
}

CUresult hand_cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
	struct device *device = device_of(dev);
	CUresult status;

	if (!pi)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	status = attribute(device, (int)attrib, pi);
	if (!status && attribute_not_served((int)attrib))
		*pi = 0;
	if (!status && attrib == CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES)
		*pi &= (int)share_handles;
	if (!status &&
		attrib == CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED)
		*pi = *pi && share_handles;
	if (!status && (attrib == CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED ||
			       attrib == CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED))
		*pi = mirror_served(); /* the agent's driver knows nothing of them */
	if (!status &&
		(attrib == CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED ||
			attrib ==
				CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED))
		*pi = vmm_host_served();
	/* Of the program's machine, whose nodes are as near as one another. */
	if (!status && attrib == CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID && !host_numa(*pi))
		*pi = 0;
	/* hand_cuFlushGPUDirectRDMAWrites answers for every device. */
	if (!status && attrib == CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS)
		*pi |= CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST;
	if (!status && attrib == CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY)
		/* managed.h: device memory, and pages of the program's */
		*pi = session_count == 1 && fault_seen;
	return status;
}

CUresult hand_cuDriverGetVersion(int *driverVersion)
{
	CUresult status = CUDA_SUCCESS;

	if (!driverVersion)
		return CUDA_ERROR_INVALID_VALUE;
	/* Allowed before cuInit; the answer is the agent's, so this may be what attaches, where
	 * NVML has not. Where no device is visible there is a driver all the same. */
	if (!devices.info.device_count)
		status = hand_cuInit(0);
	if (devices.info.device_count)
		status = CUDA_SUCCESS;
	*driverVersion = status ? 0 : (int)devices.info.driver_version;
	return status;
}

CUresult hand_cuDeviceGet(CUdevice *device, int ordinal)
{
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_of(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*device = ordinal;
	return CUDA_SUCCESS;
}

CUresult hand_cuDeviceGetCount(int *count)
{
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = devices.count;
	return CUDA_SUCCESS;
}

CUresult hand_cuDeviceGetName(char *name, int len, CUdevice dev)
{
	struct device *device = device_of(dev);

	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!name || len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	/* To the end, as natively. */
	memset(name, 0, (size_t)len);
	snprintf(name, (size_t)len, "%s", device->open.name);
	return CUDA_SUCCESS;
}

CUresult hand_cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	struct device *device = device_of(dev);

	if (!uuid)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	memcpy(uuid, device->open.uuid, sizeof(device->open.uuid));
	return CUDA_SUCCESS;
}

CUresult hand_cuDeviceGetLuid(char *luid, unsigned int *deviceNodeMask, CUdevice dev)
{
	if (!luid || !deviceNodeMask)
		return CUDA_ERROR_INVALID_VALUE;
	/* Windows only. */
	return device_of(dev) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_DEVICE;
}

CUresult hand_cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	struct device *device = device_of(dev);

	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	*bytes = 0;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	*bytes = device->open.total_memory;
	return CUDA_SUCCESS;
}

/* What does not fit is told as the most that does. */
CUresult hand_cuDeviceTotalMem(unsigned int *bytes, CUdevice dev)
{
	size_t all;
	CUresult status;

	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	*bytes = 0;
	status = hand_cuDeviceTotalMem_v2(&all, dev);
	if (!status)
		*bytes = all > UINT_MAX ? UINT_MAX : (unsigned)all;
	return status;
}

CUresult hand_cuDeviceGetExecAffinitySupport(int *pi, CUexecAffinityType type, CUdevice dev)
{
	(void)type;
	if (!pi)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_of(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	*pi = 0;
	return CUDA_SUCCESS;
}

/* The program's memory is not the GPU's machine's: nothing is atomic across. */
CUresult hand_cuDeviceGetHostAtomicCapabilities(unsigned int *capabilities,
	const CUatomicOperation *operations, unsigned int count, CUdevice dev)
{
	if (!capabilities || !operations || !count)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_of(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	memset(capabilities, 0, count * sizeof(*capabilities));
	return CUDA_SUCCESS;
}

CUresult hand_cuFlushGPUDirectRDMAWrites(
	CUflushGPUDirectRDMAWritesTarget target, CUflushGPUDirectRDMAWritesScope scope)
{
	bool known = target == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX &&
		     (scope == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER ||
			     scope == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES);

	/* No device of the program's machine writes to the GPU's memory by itself: there is
	 * nothing that could be outstanding. */
	return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult hand_cuDeviceGetProperties(CUdevprop *prop, CUdevice dev)
{
	struct device *device = device_of(dev);
	int *const fields[] = {&prop->maxThreadsPerBlock, &prop->maxThreadsDim[0],
		&prop->maxThreadsDim[1], &prop->maxThreadsDim[2], &prop->maxGridSize[0],
		&prop->maxGridSize[1], &prop->maxGridSize[2], &prop->sharedMemPerBlock,
		&prop->totalConstantMemory, &prop->SIMDWidth, &prop->memPitch,
		&prop->regsPerBlock, &prop->clockRate, &prop->textureAlign};
	static const CUdevice_attribute which[] = {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
		CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
		CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,
		CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,
		CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,
		CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, CU_DEVICE_ATTRIBUTE_WARP_SIZE,
		CU_DEVICE_ATTRIBUTE_MAX_PITCH, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK,
		CU_DEVICE_ATTRIBUTE_CLOCK_RATE, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT};

	if (!prop)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	memset(prop, 0, sizeof(*prop));
	for (size_t i = 0; i < sizeof(which) / sizeof(which[0]); i++)
		attribute(device, (int)which[i], fields[i]);
	return CUDA_SUCCESS;
}

CUresult hand_cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
	struct device *device = device_of(dev);
	CUresult status;

	if (!major || !minor)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	status = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, major);
	return status ? status
		      : attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, minor);
}

CUresult hand_cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
	struct device *device = device_of(dev);

	if (!pciBusId)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	if (len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	/* What there is room for is told all the same. */
	snprintf(pciBusId, (size_t)len, "%s", device->open.pci_bus_id);
	return (size_t)len > strlen(device->open.pci_bus_id) ? CUDA_SUCCESS
							     : CUDA_ERROR_INVALID_VALUE;
}

CUresult hand_cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId)
{
	struct pci_place own;
	unsigned want[4] = {0, 0, 0, 0};

	if (!dev || !pciBusId)
		return CUDA_ERROR_INVALID_VALUE;
	/* domain:bus:device.function, where domain and function may be left out. */
	if (sscanf(pciBusId, "%x:%x:%x.%x", &want[0], &want[1], &want[2], &want[3]) < 3) {
		want[0] = 0;
		if (sscanf(pciBusId, "%x:%x.%x", &want[1], &want[2], &want[3]) < 2)
			return CUDA_ERROR_INVALID_VALUE;
	}
	for (int i = 0; i < devices.count; i++) {
		if (!pci_parse(devices.at[i].open.pci_bus_id, &own))
			continue;
		if (own.domain == want[0] && own.bus == want[1] && own.device == want[2] &&
			own.function == want[3]) {
			*dev = i;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_DEVICE;
}
