/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory with a name that is the machine's (shim/driver/memory/virtual/vmm_host.c): the
 * driver's, so that it can lie at any address of a device's window, and at several. The worker
 * has it mapped for itself too, at an address of its own, where it is a mirror of what the
 * program has (mirror.c).
 */
#include "gpu-agent/worker/driver/memory/vmm_host.h"

#include <stdlib.h>

#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/driver/memory/vmm.h"
#include "protocol/wire/open.h"

/* Where it is wanted: above the window of pinned memory, where few programs have anything, for
 * what they register keeps its address here. */
#define HOST_BASE 0x4a0000000000ull

static int attribute(const struct worker *w, uint32_t device, CUdevice_attribute which)
{
	const struct open_device *o = &w->devices[device].open;

	return o->attribute_known[which / 8] >> which % 8 & 1 ? o->attributes[which] : -1;
}

uint64_t vmm_host_feature(const struct worker *w)
{
	for (uint32_t i = 0; i < w->device_count; i++)
		if (attribute(w, i,
			    CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) <=
			0)
			return 0;
	return w->mirror.window_bytes ? OPEN_FEATURE_HOST_MEMORY : 0;
}

bool vmm_host_at(const struct worker *w, uint64_t address)
{
	for (const struct vmm *m = w->hosts.first; m; m = m->next_host)
		if (m->host == address)
			return true;
	return false;
}

static CUmemLocation host_location(const struct worker *w)
{
	int node = attribute(w, 0, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);

	return (CUmemLocation){
		.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = node < 0 ? 0 : node};
}

/* Where the worker reads and writes it. */
static CUresult host_map(struct worker *w, struct vmm *m)
{
	const CUmemAccessDesc access = {
		.location = host_location(w), .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUdeviceptr at;
	CUresult status = w->cuda.cuMemAddressReserve(
		&at, m->bytes, w->devices[0].granularity, HOST_BASE + w->hosts.next, 0);

	if (status)
		return status;
	status = w->cuda.cuMemMap(at, m->bytes, 0, m->memory, 0);
	if (!status) {
		status = w->cuda.cuMemSetAccess(at, m->bytes, &access, 1);
		if (!status)
			status = mirror_adopt(w, at, m->bytes);
		if (status)
			w->cuda.cuMemUnmap(at, m->bytes);
	}
	if (status) {
		w->cuda.cuMemAddressFree(at, m->bytes);
		return status;
	}
	w->hosts.next += m->bytes;
	m->host = at;
	m->next_host = w->hosts.first;
	w->hosts.first = m;
	return CUDA_SUCCESS;
}

void vmm_host_closed(struct worker *w, struct vmm *m)
{
	struct vmm **at = &w->hosts.first;

	while (*at != m)
		at = &(*at)->next_host;
	*at = m->next_host;
	mirror_leave(w, m->host);
	w->cuda.cuMemUnmap(m->host, m->bytes);
	w->cuda.cuMemAddressFree(m->host, m->bytes);
}

CUresult serve_vcudaVmmCreateHost(struct worker *w, struct request *r)
{
	const struct wire_vcudaVmmCreateHost *req = (const void *)r->body;
	struct wire_vcudaVmmCreateHost_reply *reply = (void *)r->answer;
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = host_location(w)};
	struct vmm *m;
	CUresult status;

	if (!vmm_host_feature(w))
		return CUDA_ERROR_NOT_SUPPORTED;
	/* No more than a mirror may be, before the driver is asked for it. */
	if (!req->bytes || req->bytes % w->devices[0].granularity || req->bytes > 1ull << 46)
		return CUDA_ERROR_INVALID_VALUE;
	m = calloc(1, sizeof(*m));
	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	m->bytes = req->bytes;
	status = mirror_room_for(w, m->bytes);
	if (!status)
		status = w->cuda.cuMemCreate(&m->memory, m->bytes, &prop, 0);
	if (status) {
		free(m);
		return status;
	}
	status = host_map(w, m);
	if (!status) {
		worker_bind(w, r, req->memory, KIND_CUmemGenericAllocationHandle, m);
		status = r->refused;
		if (status)
			vmm_host_closed(w, m);
	}
	if (status) {
		w->cuda.cuMemRelease(m->memory);
		free(m);
		return status;
	}
	reply->address = m->host;
	return CUDA_SUCCESS;
}
