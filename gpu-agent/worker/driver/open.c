/* SPDX-License-Identifier: Apache-2.0
 *
 * vcudaOpen: everything about the devices that an app could ask, in one answer.
 */
#include <stdio.h>
#include <string.h>

#include "gpu-agent/worker/reply.h"
#include "gpu-agent/worker/staging.h"
#include "gpu-agent/worker/worker_state.h"

CUresult serve_vcudaOpen(struct worker *w, struct request *r)
{
	const struct wire_vcudaOpen *req = (const void *)r->body;
	uint64_t n = sizeof(struct open_info) + w->device_count * sizeof(struct open_device);
	struct staging_range *range;
	struct open_info *info;
	unsigned char *bytes;
	int version = 0;

	if (req->version != OPEN_VERSION)
		return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
	if (n > req->capacity)
		return CUDA_ERROR_INVALID_VALUE;
	range = staging_alloc(w, &w->out, (uint32_t)n, &bytes);
	if (!range)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memset(bytes, 0, n);
	info = (void *)bytes;
	w->cuda.cuDriverGetVersion(&version);
	info->version = OPEN_VERSION;
	info->driver_version = (uint32_t)version;
	info->device_count = w->device_count;
	info->device_bytes = sizeof(struct open_device);
	info->host_window = w->mirror.window;
	info->host_window_bytes = w->mirror.window_bytes;
	snprintf(info->agent_version, sizeof(info->agent_version), "%s", AGENT_VERSION);
	for (uint32_t i = 0; i < w->device_count; i++) {
		struct worker_device *d = &w->devices[i];

		d->open.lease = d->granted = d->lease;
		memcpy(bytes + sizeof(*info) + i * sizeof(d->open), &d->open, sizeof(d->open));
	}
	reply_payload(w, FRAME_REPLY, r->header.tag, CUDA_SUCCESS, &req->destination, bytes,
		(uint32_t)n, range);
	r->later = true;
	return CUDA_SUCCESS;
}
