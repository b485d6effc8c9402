/* SPDX-License-Identifier: Apache-2.0
 *
 * Device memory: the shim chooses addresses in the device's window, the worker puts memory
 * there. Never more than the lease that the front granted.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "common/log.h"
#include "gpu-agent/worker/direct/direct.h"
#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/driver/ipc/ipc.h"
#include "gpu-agent/worker/driver/memory/memory.h"
#include "gpu-agent/worker/driver/memory/vmm.h"
#include "gpu-agent/worker/loop/fence.h"
#include "gpu-agent/worker/reply/reply.h"
#include "gpu-agent/worker/worker_state.h"
#include "protocol/generated/cuda_wire.h"

static struct worker_device *memory_device(struct worker *w, struct request *r, int device)
{
	if (device < 0 || (uint32_t)device >= w->device_count) {
		worker_refuse(r, CUDA_ERROR_INVALID_DEVICE);
		return NULL;
	}
	return &w->devices[device];
}

uint32_t memory_window_of(const struct worker *w, uint64_t address)
{
	uint32_t i = 0;

	while (i < w->device_count &&
		address - w->devices[i].window >= w->devices[i].window_bytes)
		i++;
	return i;
}

bool memory_granules(const struct worker_device *d, uint64_t address, uint64_t bytes,
	uint64_t *first, uint64_t *count)
{
	if (address < d->window || address - d->window >= d->window_bytes || !bytes ||
		bytes > d->window_bytes - (address - d->window) ||
		(address - d->window) % d->granularity || bytes % d->granularity)
		return false;
	*first = (address - d->window) / d->granularity;
	*count = bytes / d->granularity;
	return true;
}

bool memory_vacant(const struct worker_device *d, uint64_t address, uint64_t bytes)
{
	uint64_t first, count;

	if (!memory_granules(d, address, bytes, &first, &count))
		return false;
	for (uint64_t g = first; g < first + count; g++)
		if (d->mapped[g / 64] >> g % 64 & 1)
			return false;
	return true;
}

/* Who reads and writes what is mapped: its own device, and its peers (peer.c). How many. */
static size_t accesses(const struct worker *w, uint32_t device, const struct vmm *of,
	CUmemAccessDesc access[HANDOFF_DEVICES])
{
	const struct worker_device *d = &w->devices[device];
	size_t n = 0;

	for (uint32_t i = 0; i < w->device_count; i++)
		if (i == device || (!of && d->reached[i]))
			access[n++] = (CUmemAccessDesc){
				.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE,
					.id = w->devices[i].device},
				.flags = of && of->read_only
						 ? CU_MEM_ACCESS_FLAGS_PROT_READ
						 : CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	return n;
}

CUresult memory_put(struct worker *w, uint32_t device, uint64_t address, uint64_t bytes,
	CUmemGenericAllocationHandle memory, struct vmm *of)
{
	struct worker_device *d = &w->devices[device];
	CUmemAccessDesc access[HANDOFF_DEVICES];
	size_t n = accesses(w, device, of, access);
	uint64_t first, count;
	CUresult status;

	if (!memory_granules(d, address, bytes, &first, &count))
		return CUDA_ERROR_INVALID_VALUE;
	status = w->cuda.cuMemMap(address, bytes, 0, memory, 0);
	if (!status) {
		status = w->cuda.cuMemSetAccess(address, bytes, access, n);
		if (status)
			w->cuda.cuMemUnmap(address, bytes);
	}
	if (status)
		return status;
	for (uint64_t g = first; g < first + count; g++)
		d->mapped[g / 64] |= 1ull << g % 64;
	d->mappings[first] = (struct mapping){memory, (uint32_t)count, 0, of};
	return CUDA_SUCCESS;
}

CUresult serve_vcudaMemMap(struct worker *w, struct request *r)
{
	const struct wire_vcudaMemMap *req = (const void *)r->body;
	struct worker_device *d = memory_device(w, r, req->device);
	CUmemGenericAllocationHandle memory;
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location.type = CU_MEM_LOCATION_TYPE_DEVICE,
	};
	CUresult status;

	if (!d)
		return r->refused;
	if (!memory_vacant(d, req->address, req->bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (req->bytes > d->lease - d->used)
		return CUDA_ERROR_OUT_OF_MEMORY;
	prop.location.id = d->device;
	status = memory_create(w, &memory, req->bytes, &prop);
	if (status)
		return status;
	status = memory_put(w, (uint32_t)req->device, req->address, req->bytes, memory, NULL);
	if (status)
		w->cuda.cuMemRelease(memory);
	else
		d->used += req->bytes;
	return status;
}

CUresult worker_drain(struct worker *w)
{
	CUresult status = CUDA_SUCCESS;

	for (uint16_t c = 1; c < CONTEXT_MAX && !status; c++) {
		if (!w->contexts[c])
			continue;
		status = worker_use(w, c);
		if (!status)
			status = w->cuda.cuCtxSynchronize();
	}
	return status;
}

/* The mapping that begins at granule FIRST is gone. Its granules; 0: none begins there. */
uint32_t memory_unmapped(struct worker *w, uint32_t device, uint64_t first)
{
	struct worker_device *d = &w->devices[device];
	struct mapping *m = &d->mappings[first];
	uint32_t n = m->granules;

	for (uint64_t i = first; i < first + n; i++)
		d->mapped[i / 64] &= ~(1ull << i % 64);
	m->granules = 0;
	if (n && m->of) {
		vmm_unmapped(w, m->of);
	} else if (n) {
		if (w->share_count)
			ipc_forget(w, device, d->window + first * d->granularity);
		w->cuda.cuMemRelease(m->memory);
		d->used -= n * d->granularity;
	}
	return n;
}

/* bytes = 0: only a ticket, which says that everything before it is done. */
CUresult serve_vcudaMemUnmap(struct worker *w, struct request *r)
{
	const struct wire_vcudaMemUnmap *req = (const void *)r->body;
	struct worker_device *d = memory_device(w, r, req->device);
	uint64_t first, count;
	struct pending *p;
	CUresult status;

	if (!d)
		return r->refused;
	if (req->bytes) {
		if (!memory_granules(d, req->address, req->bytes, &first, &count))
			return CUDA_ERROR_INVALID_VALUE;
		/* Whole mappings only, as the driver wants it. */
		for (uint64_t g = first; g < first + count; g += d->mappings[g].granules)
			if (!d->mappings[g].granules ||
				d->mappings[g].granules > first + count - g)
				return CUDA_ERROR_INVALID_VALUE;
	}
	p = fence_new(w, PENDING_UNMAP, r->header.context);
	if (!p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	p->device = (uint32_t)req->device;
	p->address = req->address;
	p->size = req->bytes;
	p->value = req->ticket;
	p->serial = w->direct ? w->direct->serial : 0;
	status = fence_context(w, p, 0);
	/* A broken context runs nothing any more: the memory can go. */
	if (status && !worker_is_sticky(status))
		worker_end(w, status, "no memory for what waits for the GPU");
	else if (status)
		worker_note(w, status);
	fence_push(w, p);
	return CUDA_SUCCESS;
}

void memory_unmap(struct worker *w, struct pending *p)
{
	struct worker_device *d = &w->devices[p->device];
	uint64_t first, count;

	if (p->size && memory_granules(d, p->address, p->size, &first, &count)) {
		CUresult status = w->cuda.cuMemUnmap(p->address, p->size);

		for (uint64_t g = first, n; g < first + count; g += n) {
			n = memory_unmapped(w, p->device, g);
			if (!n)
				break; /* named twice: the first one did it */
		}
		if (status)
			worker_note(w, status);
	}
	reply_update(w, COUNTER_UNMAPPED, p->value);
}

/* The ledger is the front's; its answer comes as a datagram (memory_granted). */
CUresult serve_vcudaLease(struct worker *w, struct request *r)
{
	const struct wire_vcudaLease *req = (const void *)r->body;
	struct worker_device *d = memory_device(w, r, req->device);
	uint64_t there;

	if (!d)
		return r->refused;
	if (w->lease.tag[req->device] >= 0)
		return CUDA_ERROR_NOT_READY; /* the shim asks one at a time */
	there = memory_there(w, (uint32_t)req->device, d->lease);
	if (there > d->granted && there - d->granted >= req->bytes && req->bytes) {
		/* What a context gave back, or the front gave beyond a wish. */
		((struct wire_vcudaLease_reply *)(void *)r->answer)->granted = d->granted =
			there;
		return CUDA_SUCCESS;
	}
	if (worker_ask_lease(w, (uint32_t)req->device, req->bytes, r->header.tag))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r->later = true;
	return CUDA_SUCCESS;
}

void memory_granted(struct worker *w, uint32_t device, uint64_t lease, CUresult status)
{
	struct wire_vcudaLease_reply reply = {0};
	int tag;

	if (device >= w->device_count || w->lease.tag[device] < 0)
		return;
	tag = w->lease.tag[device];
	w->lease.tag[device] = -1;
	lease -= lease < w->devices[device].extra ? lease : w->devices[device].extra;
	if (!status)
		lease = memory_there(w, device, lease);
	if (!status && lease > w->devices[device].lease)
		w->devices[device].lease = lease;
	if (tag == LEASE_TAG_EXTRA)
		return;
	reply.granted = w->devices[device].granted = w->devices[device].lease;
	reply_send(w, (uint16_t)tag, status, &reply, sizeof(reply));
}
