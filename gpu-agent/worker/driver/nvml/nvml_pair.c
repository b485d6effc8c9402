/* SPDX-License-Identifier: Apache-2.0
 *
 * What the session's GPUs are to each other, as NVML tells it: the way between two, whether
 * they reach each other's memory, and NVLinks.  Where there is no NVML, the driver knows of
 * access and of nothing else.
 */
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include "gpu-agent/worker/driver/nvml/nvml.h"

#include "gpu-agent/worker/worker_state.h"

typedef nvmlReturn_t (*nvml_two)(nvmlDevice_t device, nvmlDevice_t other, int *value);
typedef nvmlReturn_t (*nvml_access)(
	nvmlDevice_t device, nvmlDevice_t other, int which, int *status);
typedef nvmlReturn_t (*nvml_link_number)(nvmlDevice_t device, unsigned link, int *value);
typedef nvmlReturn_t (*nvml_link_place)(nvmlDevice_t device, unsigned link, nvmlPciInfo_t *at);

static void two_ask(nvmlDevice_t device, nvmlDevice_t other, const char *name,
	struct nvml_pair *pair, uint32_t bit, uint32_t *to)
{
	nvml_two ask = (nvml_two)nvml_function(name);
	int value = 0;

	if (!ask || ask(device, other, &value))
		return;
	pair->known |= bit;
	*to = (uint32_t)value;
}

static void pair_ask(nvmlDevice_t device, nvmlDevice_t other, struct nvml_pair *pair)
{
	nvml_access access = (nvml_access)nvml_function("nvmlDeviceGetP2PStatus");

	two_ask(device, other, "nvmlDeviceGetTopologyCommonAncestor", pair, NVML_PAIR_LEVEL,
		&pair->level);
	two_ask(device, other, "nvmlDeviceOnSameBoard", pair, NVML_PAIR_SAME_BOARD,
		&pair->same_board);
	for (int i = 0; access && i < NVML_PAIR_P2PS; i++) {
		int status = 0;

		if (access(device, other, i, &status))
			continue;
		pair->known |= (uint32_t)NVML_PAIR_P2P << i;
		pair->p2p[i] = (uint32_t)status;
	}
}

static void pair_driver(struct worker *w, uint32_t one, uint32_t other, struct nvml_pair *pair)
{
	static const struct {
		int index;
		CUdevice_P2PAttribute attribute;
	} access[] = {
		{NVML_P2P_CAPS_INDEX_READ, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED},
		{NVML_P2P_CAPS_INDEX_WRITE, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED},
		{NVML_P2P_CAPS_INDEX_ATOMICS, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED},
	};

	for (size_t i = 0; one != other && w->cuda.cuDeviceGetP2PAttribute &&
			   i < sizeof(access) / sizeof(*access);
		i++) {
		int can = 0;

		if (w->cuda.cuDeviceGetP2PAttribute(&can, access[i].attribute,
			    w->devices[one].device, w->devices[other].device))
			continue;
		pair->known |= (uint32_t)NVML_PAIR_P2P << access[i].index;
		pair->p2p[access[i].index] =
			can ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
	}
}

CUresult serve_vcudaNvmlPair(struct worker *w, struct request *r)
{
	const struct wire_vcudaNvmlPair *req = (const void *)r->body;
	struct wire_vcudaNvmlPair_reply *answer = (void *)r->answer;
	uint32_t one = (uint32_t)req->device, other = (uint32_t)req->other;
	nvmlDevice_t device, second;

	if (one >= w->device_count || other >= w->device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	device = nvml_device(w, one);
	second = nvml_device(w, other);
	if (device && second)
		pair_ask(device, second, &answer->pair);
	else
		pair_driver(w, one, other, &answer->pair);
	return CUDA_SUCCESS;
}

static void link_ask(nvmlDevice_t device, uint32_t link, struct nvml_link *told)
{
	const struct {
		const char *name;
		uint32_t bit, *to;
	} numbers[] = {
		{"nvmlDeviceGetNvLinkState", NVML_LINK_STATE, &told->active},
		{"nvmlDeviceGetNvLinkVersion", NVML_LINK_VERSION, &told->version},
		{"nvmlDeviceGetNvLinkRemoteDeviceType", NVML_LINK_REMOTE_TYPE, &told->remote},
	};
	nvml_link_place place =
		(nvml_link_place)nvml_function("nvmlDeviceGetNvLinkRemotePciInfo_v2");
	nvmlPciInfo_t at = {0};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		nvml_link_number ask = (nvml_link_number)nvml_function(numbers[i].name);
		int value = 0;

		if (!ask || ask(device, link, &value))
			continue;
		told->known |= numbers[i].bit;
		*numbers[i].to = (uint32_t)value;
	}
	if (!place || place(device, link, &at))
		return;
	told->known |= NVML_LINK_REMOTE_PLACE;
	told->domain = at.domain;
	told->bus = at.bus;
	told->device = at.device;
	told->device_id = at.pciDeviceId;
	told->subsystem_id = at.pciSubSystemId;
}

CUresult serve_vcudaNvmlLink(struct worker *w, struct request *r)
{
	const struct wire_vcudaNvmlLink *req = (const void *)r->body;
	struct wire_vcudaNvmlLink_reply *answer = (void *)r->answer;
	nvmlDevice_t device;

	if ((uint32_t)req->device >= w->device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	if (req->link >= NVML_NVLINK_MAX_LINKS)
		return CUDA_ERROR_INVALID_VALUE;
	device = nvml_device(w, (uint32_t)req->device);
	if (device)
		link_ask(device, req->link, &answer->told);
	return CUDA_SUCCESS;
}
