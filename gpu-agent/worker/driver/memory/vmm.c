/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory with a name (shim/driver/memory/virtual/vmm.c): it counts against the lease from its
 * creation until it is released and mapped nowhere, as the driver keeps it.
 */
#include <stdlib.h>

#include "gpu-agent/worker/driver/ipc/ipc.h"
#include "gpu-agent/worker/driver/memory/memory.h"
#include "gpu-agent/worker/driver/memory/tensor.h"
#include "gpu-agent/worker/driver/memory/vmm.h"
#include "gpu-agent/worker/driver/memory/vmm_host.h"

static void vmm_done(struct worker *w, struct vmm *m)
{
	if (!m->released || m->mappings)
		return;
	if (m->is_tensor)
		tensor_closed(w, m);
	else if (m->host)
		vmm_host_closed(w, m);
	else
		w->devices[m->device].used -= m->bytes;
	if (m->named)
		ipc_unname(w, m->name);
	free(m);
}

void vmm_unmapped(struct worker *w, struct vmm *m)
{
	m->mappings--;
	vmm_done(w, m);
}

void vmm_protect(struct worker *w, struct vmm *m)
{
	m->read_only = true;
	for (uint32_t i = 0; m->mappings && i < w->device_count; i++) {
		struct worker_device *d = &w->devices[i];
		CUmemAccessDesc access[HANDOFF_DEVICES];
		size_t count = 0;

		for (uint32_t j = 0; j < w->device_count; j++)
			if (j == i || m->others >> j & 1)
				access[count++] = (CUmemAccessDesc){
					.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE,
						.id = w->devices[j].device},
					.flags = CU_MEM_ACCESS_FLAGS_PROT_READ};

		for (uint64_t g = 0; g < d->window_bytes / d->granularity; g++) {
			CUresult status;

			if (!d->mapped[g / 64]) {
				g |= 63;
				continue;
			}
			if (!d->mappings[g].granules || d->mappings[g].of != m)
				continue;
			status = w->cuda.cuMemSetAccess(d->window + g * d->granularity,
				d->mappings[g].granules * d->granularity, access, count);
			if (status)
				worker_end(w, status,
					"a sealed tensor could not be made read-only");
		}
	}
}

CUresult vmm_adopt(struct worker *w, struct request *r, uint64_t handle, uint32_t device,
	CUmemGenericAllocationHandle memory, uint64_t bytes)
{
	struct vmm *m = calloc(1, sizeof(*m));

	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	m->memory = memory;
	m->device = device;
	m->bytes = bytes;
	worker_bind(w, r, handle, KIND_CUmemGenericAllocationHandle, m);
	if (r->refused) {
		free(m);
		return r->refused;
	}
	w->devices[device].used += bytes;
	return CUDA_SUCCESS;
}

CUresult serve_vcudaVmmCreate(struct worker *w, struct request *r)
{
	const struct wire_vcudaVmmCreate *req = (const void *)r->body;
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location.type = CU_MEM_LOCATION_TYPE_DEVICE,
	};
	CUmemGenericAllocationHandle memory;
	struct worker_device *d;
	struct vmm *m;
	CUresult status;

	if (req->device < 0 || (uint32_t)req->device >= w->device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	d = &w->devices[req->device];
	if (!req->bytes || req->bytes % d->granularity)
		return CUDA_ERROR_INVALID_VALUE;
	if (req->bytes > d->lease - d->used)
		return CUDA_ERROR_OUT_OF_MEMORY;
	prop.location.id = d->device;
	if (req->shareable)
		prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	if (req->tile_pool)
		prop.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
	status = memory_create(w, &memory, req->bytes, &prop);
	if (status)
		return status;
	status = vmm_adopt(w, r, req->memory, (uint32_t)req->device, memory, req->bytes);
	if (status) {
		w->cuda.cuMemRelease(memory);
		return status;
	}
	m = worker_handle(w, r, req->memory, KIND_CUmemGenericAllocationHandle);
	m->shareable = req->shareable != 0;
	m->tile_pool = req->tile_pool != 0;
	return CUDA_SUCCESS;
}

/* In the window of whichever device, which is the one that has access: the driver refuses it
 * where that does not reach the memory's device. */
CUresult serve_vcudaVmmMap(struct worker *w, struct request *r)
{
	const struct wire_vcudaVmmMap *req = (const void *)r->body;
	struct vmm *m = worker_handle(w, r, req->memory, KIND_CUmemGenericAllocationHandle);
	uint32_t device = memory_window_of(w, req->address);
	CUresult status;

	if (!m)
		return r->refused;
	if (device == w->device_count || req->bytes > m->bytes ||
		!memory_vacant(&w->devices[device], req->address, req->bytes))
		return CUDA_ERROR_INVALID_VALUE;
	status = m->waits ? tensor_import(w, m) : CUDA_SUCCESS;
	if (!status)
		status = memory_put(w, device, req->address, req->bytes, m->memory, m);
	if (!status)
		m->mappings++;
	return status;
}

/* Whole mappings, side by side. */
CUresult serve_vcudaVmmUnmap(struct worker *w, struct request *r)
{
	const struct wire_vcudaVmmUnmap *req = (const void *)r->body;
	uint64_t first, count, n;
	struct worker_device *d;
	CUresult status;

	if (req->device < 0 || (uint32_t)req->device >= w->device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	d = &w->devices[req->device];
	if (!memory_granules(d, req->address, req->bytes, &first, &count))
		return CUDA_ERROR_INVALID_VALUE;
	for (uint64_t g = first; g < first + count; g += n) {
		n = d->mappings[g].granules;
		if (!n || !d->mappings[g].of || n > first + count - g)
			return CUDA_ERROR_INVALID_VALUE;
	}
	status = w->cuda.cuMemUnmap(req->address, req->bytes);
	for (uint64_t g = first; g < first + count;)
		g += memory_unmapped(w, (uint32_t)req->device, g);
	return status;
}

/* What is mapped still stays mapped. */
CUresult serve_vcudaVmmRelease(struct worker *w, struct request *r)
{
	const struct wire_vcudaVmmRelease *req = (const void *)r->body;
	struct vmm *m = worker_handle(w, r, req->memory, KIND_CUmemGenericAllocationHandle);
	CUresult status = CUDA_SUCCESS;

	if (!m)
		return r->refused;
	worker_unbind(w, r, req->memory, KIND_CUmemGenericAllocationHandle);
	if (m->waits)
		tensor_descriptor_close(m);
	else
		status = w->cuda.cuMemRelease(m->memory);
	m->released = true;
	vmm_done(w, m);
	return status;
}
