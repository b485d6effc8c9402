/* SPDX-License-Identifier: Apache-2.0
 *
 * The session's side of the NVML front: see nvml.h.
 */
#include "shim/driver/nvml.h"

#include <string.h>

#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/context.h"
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

bool vcuda_nvml_cuda_used(void)
{
	return atomic_load(&session.phase) == SESSION_READY && !session_status();
}

CUresult vcuda_nvml_facts(int device, uint64_t wanted, struct nvml_facts *facts)
{
	struct shim_call call;
	struct wire_vcudaNvmlFacts *body;
	const struct wire_vcudaNvmlFacts_reply *reply;
	CUresult status = vcuda_nvml_join();

	if (status)
		return status;
	body = shim_begin(&call, OP_vcudaNvmlFacts, sizeof(*body));
	body->device = device;
	body->wanted = wanted;
	reply = shim_wait(&call, sizeof(*reply));
	if (reply)
		*facts = reply->facts;
	return shim_end(&call);
}

CUresult vcuda_nvml_text(int device, uint32_t which, char text[NVML_TEXT_BYTES])
{
	struct shim_call call;
	struct wire_vcudaNvmlText *body;
	const struct wire_vcudaNvmlText_reply *reply;
	CUresult status = vcuda_nvml_join();
	const char *bytes;
	size_t n;

	if (status)
		return status;
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
	return shim_end(&call);
}

CUresult vcuda_nvml_fields(int device, uint32_t count, const struct nvml_field *fields,
	struct nvml_field_value *values)
{
	struct shim_call call;
	struct wire_vcudaNvmlFields *body;
	const struct wire_vcudaNvmlFields_reply *reply;
	CUresult status = vcuda_nvml_join();
	const char *bytes = NULL;
	size_t n = 0;

	if (status)
		return status;
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
	return status || bytes ? status : CUDA_ERROR_UNKNOWN;
}
