/* SPDX-License-Identifier: Apache-2.0
 *
 * What a host function may ask. The agent keeps frames until the function has ended, and what
 * waits for their answers may have all slots: so the question is answered before what is kept,
 * and is not asked where there is no slot for it.
 */
#include "shim/driver/stream/host_function.h"

#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/context/context.h"
#include "shim/driver/memory/mirror/mirror.h"
#include "shim/driver/stream/stream.h"
#include "shim/engine/engine.h"

static CUresult query(const struct wire_vcudaQueryWithin *question, float *milliseconds)
{
	const struct wire_vcudaQueryWithin_reply *reply;
	struct wire_vcudaQueryWithin *body;
	struct shim_call call;

	if (!(devices.info.features & OPEN_FEATURE_WITHIN))
		return CUDA_ERROR_NOT_PERMITTED;
	body = shim_begin(&call, OP_vcudaQueryWithin, sizeof(*body));
	*body = *question;
	if (!shim_try_send(&call))
		return CUDA_ERROR_NOT_READY;
	reply = shim_wait_sent(&call, sizeof(*reply));
	if (reply)
		*milliseconds = reply->milliseconds;
	return shim_end(&call);
}

CUresult host_function_query(uint32_t scope, uint64_t handle, uint64_t behind)
{
	const struct wire_vcudaQueryWithin question = {
		.scope = scope, .handle = handle, .behind = behind};
	float none;
	CUresult status = query(&question, &none);

	return status ? status : mirror_after();
}

CUresult host_function_elapsed(
	const struct event *start, const struct event *end, float *milliseconds)
{
	const uint64_t from = atomic_load(&start->recorded), to = atomic_load(&end->recorded);
	const struct wire_vcudaQueryWithin question = {.scope = SYNC_EVENT,
		.handle = end->handle,
		.start = start->handle,
		.behind = from > to ? from : to};
	float time;
	CUresult status = query(&question, &time);

	if (!status)
		*milliseconds = time;
	return status;
}
