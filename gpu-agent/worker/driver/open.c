/* SPDX-License-Identifier: Apache-2.0
 *
 * vcudaOpen: everything about the devices that an app could ask, in one answer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/driver/memory/memory.h"
#include "gpu-agent/worker/driver/memory/peer.h"
#include "gpu-agent/worker/driver/memory/vmm_host.h"
#include "gpu-agent/worker/reply/reply.h"
#include "gpu-agent/worker/staging/staging.h"
#include "gpu-agent/worker/worker_state.h"

/* Nothing is mapped yet. */
static CUresult window_free(struct worker *w, struct worker_device *d)
{
	CUresult status = w->cuda.cuMemAddressFree(d->window, d->window_bytes);

	free(d->mapped);
	free(d->mappings);
	d->mapped = NULL;
	d->mappings = NULL;
	d->window_bytes = d->open.window_bytes = 0;
	return status;
}

/* There, or not at all. */
static CUresult window_reserve(
	struct worker *w, struct worker_device *d, uint64_t wanted, uint64_t bytes)
{
	CUdeviceptr at = 0;
	CUresult status = w->cuda.cuMemAddressReserve(&at, bytes, d->granularity, wanted, 0);

	if (status)
		return status;
	if (at != wanted) {
		w->cuda.cuMemAddressFree(at, bytes);
		return CUDA_ERROR_MAP_FAILED;
	}
	d->mapped = calloc(bytes / d->granularity / 64 + 1, sizeof(*d->mapped));
	d->mappings = calloc(bytes / d->granularity + 1, sizeof(*d->mappings));
	if (!d->mapped || !d->mappings)
		return CUDA_ERROR_OUT_OF_MEMORY;
	d->window = d->open.window = at;
	d->window_bytes = d->open.window_bytes = bytes;
	return CUDA_SUCCESS;
}

/* The windows go to where the client wants them: protocol/wire/open.h. */
static CUresult windows_move(struct worker *w, uint64_t wish)
{
	uint64_t from = (wish >> OPEN_WINDOW_FROM_SHIFT & 0xffff) * OPEN_WINDOW_UNIT;
	uint64_t span = (wish >> OPEN_WINDOW_SPAN_SHIFT) * OPEN_WINDOW_UNIT;
	uint64_t bytes = OPEN_WINDOW_MOST;
	CUresult status = CUDA_SUCCESS;

	while (bytes > span / w->device_count)
		bytes /= 2;
	if (from < OPEN_WINDOW_LOW || span > OPEN_WINDOW_HIGH - OPEN_WINDOW_LOW ||
		from + span > OPEN_WINDOW_HIGH || bytes < OPEN_WINDOW_UNIT)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; !status && i < w->device_count; i++)
		status = window_free(w, &w->devices[i]);
	for (uint32_t i = 0; !status && i < w->device_count; i++)
		status = window_reserve(w, &w->devices[i], from + i * bytes, bytes);
	if (status)
		worker_end(w, status, "the windows cannot be where the client wants them");
	return status;
}

CUresult serve_vcudaOpen(struct worker *w, struct request *r)
{
	const struct wire_vcudaOpen *req = (const void *)r->body;
	uint64_t n = sizeof(struct open_info) + w->device_count * sizeof(struct open_device);
	uint64_t devices_end = n;
	bool peers = req->features & OPEN_FEATURE_PEERS;
	struct staging_range *range;
	struct open_info *info;
	unsigned char *bytes;
	int version = 0;

	if (req->version != OPEN_VERSION)
		return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
	if (peers)
		n += (uint64_t)w->device_count * w->device_count * sizeof(struct open_peer);
	if (n > req->capacity)
		return CUDA_ERROR_INVALID_VALUE;
	if (req->features >> OPEN_WINDOW_FROM_SHIFT) {
		CUresult status = r->header.seq == 1 ? windows_move(w, req->features)
						     : CUDA_ERROR_INVALID_VALUE;

		if (status)
			return status;
	}
	range = staging_alloc(w, &w->out, (uint32_t)n, &bytes);
	if (!range)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memset(bytes, 0, n);
	info = (void *)bytes;
	w->cuda.cuDriverGetVersion(&version);
	info->version = OPEN_VERSION;
	info->features =
		req->features &
		(OPEN_FEATURE_PEERS | OPEN_FEATURE_SYMBOLS | OPEN_FEATURE_TENSORS |
			OPEN_FEATURE_KERNELS | OPEN_FEATURE_ACCESS | OPEN_FEATURE_UNNAMED |
			OPEN_FEATURE_LINKED | OPEN_FEATURE_WITHIN | vmm_host_feature(w));
	w->graphs.tells_kernels = info->features & OPEN_FEATURE_KERNELS;
	info->driver_version = (uint32_t)version;
	info->device_count = w->device_count;
	info->device_bytes = sizeof(struct open_device);
	info->host_window = w->mirror.window;
	info->host_window_bytes = w->mirror.window_bytes;
	snprintf(info->agent_version, sizeof(info->agent_version), "%s", AGENT_VERSION);
	for (uint32_t i = 0; i < w->device_count; i++) {
		struct worker_device *d = &w->devices[i];

		/* The front knows what others had when no session was. */
		d->lease = memory_there(w, i, d->lease);
		d->open.lease = d->granted = d->lease;
		memcpy(bytes + sizeof(*info) + i * sizeof(d->open), &d->open, sizeof(d->open));
	}
	for (uint32_t i = 0; peers && i < w->device_count * w->device_count; i++) {
		struct open_peer peer;

		peer_describe(w, i / w->device_count, i % w->device_count, &peer);
		memcpy(bytes + devices_end + i * sizeof(peer), &peer, sizeof(peer));
	}
	reply_payload(w, FRAME_REPLY, r->header.tag, CUDA_SUCCESS, &req->destination, bytes,
		(uint32_t)n, range);
	r->later = true;
	worker_opened(w);
	return CUDA_SUCCESS;
}
