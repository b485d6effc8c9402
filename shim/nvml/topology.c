/* SPDX-License-Identifier: Apache-2.0
 *
 * What devices are to each other: the way between two, whether they reach each other's memory,
 * and NVLinks.  All of it is the agent's machine's; what it does not know is not supported.
 */
#include "shim/nvml/nvml.h"

#include <stdio.h>
#include <string.h>

static nvmlReturn_t pair_ask(
	nvmlDevice_t device1, nvmlDevice_t device2, uint32_t bit, struct nvml_pair *pair)
{
	const struct open_device *device;
	unsigned one, other;
	nvmlReturn_t status = nvml_device(device1, &device, &one);

	if (!status)
		status = nvml_device(device2, &device, &other);
	if (!status)
		status = nvml_status(vcuda_nvml_pair((int)one, (int)other, pair));
	return status || pair->known & bit ? status : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(
	nvmlDevice_t device1, nvmlDevice_t device2, nvmlGpuTopologyLevel_t *pathInfo)
{
	struct nvml_pair pair;
	nvmlReturn_t status = pathInfo ? pair_ask(device1, device2, NVML_PAIR_LEVEL, &pair)
			      : nvml_enter() ? NVML_ERROR_UNINITIALIZED
					     : NVML_ERROR_INVALID_ARGUMENT;

	if (!status)
		*pathInfo = (nvmlGpuTopologyLevel_t)pair.level;
	return status;
}

static bool level_known(nvmlGpuTopologyLevel_t level)
{
	return level == NVML_TOPOLOGY_INTERNAL || level == NVML_TOPOLOGY_SINGLE ||
	       level == NVML_TOPOLOGY_MULTIPLE || level == NVML_TOPOLOGY_HOSTBRIDGE ||
	       level == NVML_TOPOLOGY_NODE || level == NVML_TOPOLOGY_SYSTEM;
}

/* Of the session's devices. */
nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t handle, nvmlGpuTopologyLevel_t level,
	unsigned int *count, nvmlDevice_t *deviceArray)
{
	const struct open_device *device;
	nvmlDevice_t found[OPEN_DEVICES_MOST];
	struct nvml_pair pair;
	unsigned index, n = 0;
	nvmlReturn_t status = nvml_device(handle, &device, &index);

	if (status)
		return status;
	if (!count || !level_known(level) || (*count && !deviceArray))
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned i = 0; i < nvml_count(); i++) {
		if (i == index)
			continue;
		status = pair_ask(handle, nvml_handle(i), NVML_PAIR_LEVEL, &pair);
		if (status)
			return status;
		if (pair.level == level)
			found[n++] = nvml_handle(i);
	}
	if (!*count) {
		*count = n;
		return NVML_SUCCESS;
	}
	if (*count > n)
		*count = n;
	memcpy(deviceArray, found, *count * sizeof(*found));
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device1, nvmlDevice_t device2,
	nvmlGpuP2PCapsIndex_t p2pIndex, nvmlGpuP2PStatus_t *p2pStatus)
{
	struct nvml_pair pair;
	nvmlReturn_t status = nvml_enter();

	if (status)
		return status;
	if (!p2pStatus || (unsigned)p2pIndex >= NVML_PAIR_P2PS)
		return NVML_ERROR_INVALID_ARGUMENT;
	status = pair_ask(device1, device2, (uint32_t)NVML_PAIR_P2P << p2pIndex, &pair);
	if (!status)
		*p2pStatus = (nvmlGpuP2PStatus_t)pair.p2p[p2pIndex];
	return status;
}

nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t device1, nvmlDevice_t device2, int *onSameBoard)
{
	struct nvml_pair pair;
	nvmlReturn_t status = onSameBoard
				      ? pair_ask(device1, device2, NVML_PAIR_SAME_BOARD, &pair)
			      : nvml_enter() ? NVML_ERROR_UNINITIALIZED
					     : NVML_ERROR_INVALID_ARGUMENT;

	if (!status)
		*onSameBoard = (int)pair.same_board;
	return status;
}

/* ---- NVLinks ---- */

static nvmlReturn_t link_ask(nvmlDevice_t handle, unsigned link, uint32_t bit, const void *to,
	struct nvml_link *told)
{
	const struct open_device *device;
	unsigned index;
	nvmlReturn_t status = nvml_device(handle, &device, &index);

	if (status)
		return status;
	if (!to || link >= NVML_NVLINK_MAX_LINKS)
		return NVML_ERROR_INVALID_ARGUMENT;
	status = nvml_status(vcuda_nvml_link((int)index, link, told));
	return status || told->known & bit ? status : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetNvLinkState(
	nvmlDevice_t device, unsigned int link, nvmlEnableState_t *isActive)
{
	struct nvml_link told;
	nvmlReturn_t status = link_ask(device, link, NVML_LINK_STATE, isActive, &told);

	if (!status)
		*isActive = (nvmlEnableState_t)told.active;
	return status;
}

nvmlReturn_t nvmlDeviceGetNvLinkVersion(
	nvmlDevice_t device, unsigned int link, unsigned int *version)
{
	struct nvml_link told;
	nvmlReturn_t status = link_ask(device, link, NVML_LINK_VERSION, version, &told);

	if (!status)
		*version = told.version;
	return status;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(
	nvmlDevice_t device, unsigned int link, nvmlIntNvLinkDeviceType_t *pNvLinkDeviceType)
{
	struct nvml_link told;
	nvmlReturn_t status =
		link_ask(device, link, NVML_LINK_REMOTE_TYPE, pNvLinkDeviceType, &told);

	if (!status)
		*pNvLinkDeviceType = (nvmlIntNvLinkDeviceType_t)told.remote;
	return status;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(
	nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci)
{
	struct nvml_link told;
	nvmlReturn_t status = link_ask(device, link, NVML_LINK_REMOTE_PLACE, pci, &told);

	if (status)
		return status;
	memset(pci, 0, sizeof(*pci));
	pci->domain = told.domain;
	pci->bus = told.bus;
	pci->device = told.device;
	pci->pciDeviceId = told.device_id;
	pci->pciSubSystemId = told.subsystem_id;
	snprintf(pci->busId, sizeof(pci->busId), "%08X:%02X:%02X.0", told.domain, told.bus,
		told.device);
	snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "%04X:%02X:%02X.0",
		told.domain & 0xffff, told.bus & 0xff, told.device & 0xff);
	return NVML_SUCCESS;
}

/* The one before it has the same arguments; its struct's new field lies at the end. */
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(
	nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci)
{
	return nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, pci);
}
