/* SPDX-License-Identifier: Apache-2.0
 *
 * The session's side of the NVML front: see nvml.h.
 */
#include "shim/driver/device/nvml.h"

#include <string.h>

#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/generated/vcuda_send.h"
#include "shim/driver/context/context.h"
#include "shim/driver/context/context_state.h"
#include "shim/driver/device/pci.h"
#include "shim/engine/engine.h"
#include "shim/engine/session.h"

const struct open_info *vcuda_nvml_info(void)
{
	return &devices.info;
}

const struct open_device *vcuda_nvml_device(unsigned index)
{
	return index < devices.info.device_count ? &devices.all[index] : NULL;
}

const char *vcuda_nvml_agent(unsigned index)
{
	return index < devices.info.device_count ? session_reached(devices.home[index]) : NULL;
}

int vcuda_nvml_index(CUdevice device)
{
	return device >= 0 && device < devices.count ? devices.at[device].place : -1;
}

bool vcuda_nvml_cuda_used(unsigned index)
{
	if (atomic_load(&session_here()->phase) != SESSION_READY || session_status())
		return false;
	for (int i = 0; i < devices.count; i++)
		if (devices.at[i].place == (int)index)
			return atomic_load(&devices.at[i].primary.live) ||
			       context_others(i).any;
	return false;
}

/* Frames go to the agent of the device, which becomes that agent's own number; -1, which is the
 * machine, is the first agent's. */
static struct session_visit nvml_visit(int *device)
{
	struct session *home = &session_first;

	if (*device >= 0 && *device < (int)devices.info.device_count) {
		home = devices.home[*device];
		*device -= (int)home->first;
	}
	return session_visit(home);
}

CUresult vcuda_nvml_facts(int device, uint64_t wanted, struct nvml_facts *facts)
{
	struct session_visit visit;
	CUresult status = vcuda_nvml_join();

	if (status)
		return status;
	visit = nvml_visit(&device);
	status = send_vcudaNvmlFacts(device, wanted, facts);
	session_leave(visit);
	return status;
}

CUresult vcuda_nvml_text(int device, uint32_t which, char text[NVML_TEXT_BYTES])
{
	struct session_visit visit;
	struct shim_call call;
	struct wire_vcudaNvmlText *body;
	const struct wire_vcudaNvmlText_reply *reply;
	CUresult status = vcuda_nvml_join();
	const char *bytes;
	size_t n;

	if (status)
		return status;
	visit = nvml_visit(&device);
	body = shim_begin(&call, OP_vcudaNvmlText, sizeof(*body));
	body->device = device;
	body->which = which;
	reply = shim_wait(&call, sizeof(*reply));
	if (reply) {
		memset(text, 0, NVML_TEXT_BYTES);
		bytes = shim_run(&call, &reply->text, &n);
		if (bytes)
			memcpy(text, bytes,
				n < NVML_TEXT_BYTES ? n : (size_t)NVML_TEXT_BYTES - 1);
		text[NVML_TEXT_BYTES - 1] = 0;
	}
	status = shim_end(&call);
	session_leave(visit);
	return status;
}

CUresult vcuda_nvml_fields(int device, uint32_t count, const struct nvml_field *fields,
	struct nvml_field_value *values)
{
	struct session_visit visit;
	struct shim_call call;
	struct wire_vcudaNvmlFields *body;
	const struct wire_vcudaNvmlFields_reply *reply;
	CUresult status = vcuda_nvml_join();
	const char *bytes = NULL;
	size_t n = 0;

	if (status)
		return status;
	visit = nvml_visit(&device);
	body = shim_begin(&call, OP_vcudaNvmlFields, sizeof(*body));
	body->device = device;
	body->count = count;
	shim_put(&call, &body->fields, fields, count * sizeof(*fields));
	reply = shim_wait(&call, sizeof(*reply));
	if (reply)
		bytes = shim_run(&call, &reply->values, &n);
	if (bytes && n == count * sizeof(*values))
		memcpy(values, bytes, n);
	else
		bytes = NULL;
	status = shim_end(&call);
	session_leave(visit);
	return status || bytes ? status : CUDA_ERROR_UNKNOWN;
}

static bool agent_knows(void)
{
	return devices.info.features & OPEN_FEATURE_PEERS;
}

CUresult vcuda_nvml_pair(int device, int other, struct nvml_pair *pair)
{
	struct session_visit visit;
	CUresult status = vcuda_nvml_join();

	*pair = (struct nvml_pair){0};
	if (status || !agent_knows())
		return status;
	/* GPUs of two agents are as far from each other as two can be. */
	if (devices.home[device] != devices.home[other]) {
		pair->known = NVML_PAIR_LEVEL | NVML_PAIR_SAME_BOARD;
		pair->level = NVML_PAIR_FARTHEST;
		return CUDA_SUCCESS;
	}
	other -= (int)devices.home[other]->first;
	visit = nvml_visit(&device);
	status = send_vcudaNvmlPair(device, other, pair);
	session_leave(visit);
	return status;
}

CUresult vcuda_nvml_link(int device, unsigned link, struct nvml_link *told)
{
	struct session_visit visit;
	CUresult status = vcuda_nvml_join();

	*told = (struct nvml_link){0};
	if (status || !agent_knows())
		return status;
	visit = nvml_visit(&device);
	status = send_vcudaNvmlLink(device, link, told);
	if (told->known & NVML_LINK_REMOTE_PLACE)
		told->domain = pci_domain(told->domain, session_here()->domain_moved);
	session_leave(visit);
	return status;
}
