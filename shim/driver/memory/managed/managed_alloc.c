/* SPDX-License-Identifier: Apache-2.0
 *
 * Managed allocations: pages of the program's own at the address that the device memory has.
 * Small ones are cut from chunks, in whole pages, so that no two share one.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/context/context.h"
#include "shim/driver/device/peer.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/memory/managed/managed.h"
#include "shim/driver/memory/managed/managed_part.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/stream/order.h"
#include "shim/driver/stream/stream.h"
#include "shim/engine/blocks.h"
#include "shim/engine/driver.h"
#include "shim/engine/engine.h"
#include "shim/engine/thread.h"

/* A granule of NVIDIA's devices. What is larger than half of it gets memory of its own. */
#define CHUNK_BYTES (2u << 20)

struct chunk {
	struct chunk *next;
	uint64_t base;
	struct context *context;
	uint64_t reached; /* region.reached of all that is cut from it */
	bool ours;
	struct blocks pages;
};

static bool region_insert(struct region *r)
{
	size_t at = managed.count;

	if (managed.count == managed.room) {
		size_t room = managed.room ? 2 * managed.room : 16;
		struct region **list = realloc(managed.regions, room * sizeof(struct region *));

		if (!list)
			return false;
		managed.regions = list;
		managed.room = room;
	}
	for (; at && managed.regions[at - 1]->base > r->base; at--)
		managed.regions[at] = managed.regions[at - 1];
	managed.regions[at] = r;
	managed.count++;
	if (!managed_any || r->base < atomic_load(&managed.low))
		atomic_store(&managed.low, r->base);
	if (r->base + r->bytes > atomic_load(&managed.high))
		atomic_store(&managed.high, r->base + r->bytes);
	return true;
}

static void region_remove(const struct region *r)
{
	size_t at = 0;

	while (managed.regions[at] != r)
		at++;
	for (managed.count--; at < managed.count; at++)
		managed.regions[at] = managed.regions[at + 1];
}

void managed_region_free(struct region *r)
{
	struct piece *piece, *next;

	if (!r)
		return;
	for (piece = r->pieces; piece; piece = next) {
		next = piece->next;
		free(piece);
	}
	pages_fini(&r->pages);
	free(r->advice);
	free(r);
}

struct region *managed_region_new(struct context *context, size_t bytes, unsigned attach)
{
	struct region *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->asked = bytes;
	r->bytes = (bytes + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
	r->context = context;
	r->attach = attach;
	if (pages_init(&r->pages, r->bytes / PAGE_BYTES))
		return r;
	managed_region_free(r);
	return NULL;
}

/* ---- device memory ---- */

/* Memory of its own for managed memory, which all devices have that reach the device's;
 * *REACHED: which. */
static CUresult device_memory(
	int device, size_t bytes, CUdeviceptr *base, bool *ours, uint64_t *reached)
{
	const uint64_t granule = devices.at[device].open.granularity;
	const size_t whole = (bytes + granule - 1) / granule * granule;
	CUresult status = memory_alloc_whole(device, bytes, base, ours);

	*reached = 0;
	for (int by = 0; by < devices.count && !status; by++) {
		if (by == device)
			continue;
		if (!(devices.info.features & OPEN_FEATURE_UNNAMED) || !peer_can(by, device)) {
			atomic_store(&managed.apart_devices, true);
			continue;
		}
		*reached |= 1ull << by;
		status = peer_mapping(
			device, *base, whole, by, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
		if (status)
			memory_free(*base);
	}
	return status;
}

/* Without the lock: memory may have to be waited for. */
static CUresult chunk_new(struct context *context)
{
	struct chunk *chunk = calloc(1, sizeof(*chunk));
	CUdeviceptr base = 0;
	CUresult status;

	if (!chunk)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = device_memory(
		context->device, CHUNK_BYTES, &base, &chunk->ours, &chunk->reached);
	if (status) {
		free(chunk);
		return status;
	}
	chunk->base = base;
	chunk->context = context;
	blocks_init(&chunk->pages, CHUNK_BYTES / PAGE_BYTES);
	pthread_mutex_lock(&managed.lock);
	chunk->next = managed.chunks;
	managed.chunks = chunk;
	pthread_mutex_unlock(&managed.lock);
	return CUDA_SUCCESS;
}

static void chunk_free(struct chunk *chunk)
{
	struct chunk **at = &managed.chunks;

	while (*at != chunk)
		at = &(*at)->next;
	*at = chunk->next;
	free(chunk);
}

/* With the lock held. False: no chunk has room. */
static bool region_cut(struct region *r)
{
	uint32_t page = BLOCKS_NONE;

	for (struct chunk *chunk = managed.chunks; chunk; chunk = chunk->next) {
		if (chunk->context == r->context)
			page = blocks_alloc(&chunk->pages, (uint32_t)r->pages.count);
		if (page == BLOCKS_NONE)
			continue;
		r->chunk = chunk;
		r->ours = chunk->ours;
		r->reached = chunk->reached;
		r->base = chunk->base + (uint64_t)page * PAGE_BYTES;
		return true;
	}
	return false;
}

/* Without the lock: device memory for the region, and an address. */
static CUresult region_place(struct region *r)
{
	CUdeviceptr base = 0;
	CUresult status = CUDA_SUCCESS;

	if (r->bytes > CHUNK_BYTES / 2) {
		status = device_memory(
			r->context->device, r->bytes, &base, &r->ours, &r->reached);
		r->base = base;
		return status;
	}
	while (!status) {
		bool cut;

		pthread_mutex_lock(&managed.lock);
		cut = region_cut(r);
		pthread_mutex_unlock(&managed.lock);
		if (cut)
			break;
		status = chunk_new(r->context);
	}
	return status;
}

/* With the lock held; its work is done. */
static void region_unplace(struct region *r)
{
	struct chunk *chunk = r->chunk;

	if (!chunk) {
		memory_free(r->base);
		return;
	}
	blocks_free(&chunk->pages, (uint32_t)((r->base - chunk->base) / PAGE_BYTES),
		(uint32_t)r->pages.count);
	if (chunk->pages.free < chunk->pages.count)
		return;
	memory_free(chunk->base);
	chunk_free(chunk);
}

/* Managed memory begins as zeroes, as natively. */
static CUresult post_zeroes(const struct region *r)
{
	struct shim_call call;
	struct wire_vcudaFill *body = shim_begin(&call, OP_vcudaFill, sizeof(*body));
	/* The legacy stream must not be used while one that waits for it captures. */
	const uint64_t stream = capture_any() ? r->context->ahead : 0;
	CUresult status;

	call.context = r->context->number;
	body->stream = stream;
	body->dst = r->base;
	body->pitch = r->bytes;
	body->element = 4;
	body->width = r->bytes / 4;
	body->height = 1;
	status = shim_post(&call);
	return status ? status : order_copied(r->context, stream, call.seq);
}

/* ---- the interface ---- */

bool managed_region_map(struct region *r)
{
	r->view = managed.way->map(r->base, r->bytes, r->ours);
	if (!r->view)
		return false;
	if (!region_insert(r)) {
		managed.way->unmap(r->base, r->view, r->bytes, r->ours);
		return false;
	}
	r->id = ++managed.last_id;
	managed_any = true;
	atomic_store(&managed.touched, true);
	return true;
}

static void region_unmap(struct region *r)
{
	region_remove(r);
	managed.way->unmap(r->base, r->view, r->bytes, r->ours);
}

void managed_region_drop(struct region *r)
{
	region_unmap(r);
	managed_region_free(r);
}

/* With the lock held. */
static CUresult region_open(struct region *r)
{
	CUresult status;

	if (!managed_region_map(r))
		return CUDA_ERROR_OUT_OF_MEMORY;
	thread_self.in_managed = true;
	status = post_zeroes(r);
	thread_self.in_managed = false;
	if (status)
		region_unmap(r);
	return status;
}

bool managed_way_known(void)
{
	/* Its pages would have to be of several agents. */
	if (session_count > 1)
		return false;
	pthread_mutex_lock(&managed.lock);
	if (!managed.way)
		managed.way = fault_open();
	pthread_mutex_unlock(&managed.lock);
	return managed.way != NULL;
}

static CUresult region_alloc(struct context *context, size_t bytes, unsigned attach,
	bool pooled, CUdeviceptr *address, uint64_t *id)
{
	struct region *r;
	CUstream ahead;
	CUresult status;

	/* More than an address space is no size that its page table could be made for. */
	if (bytes > (1ull << 47))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!managed_way_known())
		return CUDA_ERROR_NOT_SUPPORTED;
	status = stream_ahead(context, &ahead); /* made now, while nothing holds it */
	if (status)
		return status;
	r = managed_region_new(context, bytes, attach);
	if (!r)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r->pooled = pooled;
	status = region_place(r);
	if (!status) {
		pthread_mutex_lock(&managed.lock);
		if (attach != CU_MEM_ATTACH_GLOBAL)
			atomic_store(&managed.apart, true);
		status = region_open(r);
		if (status) {
			region_unplace(r);
		} else {
			*address = r->base;
			*id = r->id;
		}
		pthread_mutex_unlock(&managed.lock);
	}
	if (status)
		managed_region_free(r);
	return status;
}

CUresult managed_alloc(
	struct context *context, size_t bytes, unsigned attach, CUdeviceptr *address)
{
	uint64_t id;

	return region_alloc(context, bytes, attach, false, address, &id);
}

CUresult managed_pool_alloc(
	struct context *context, size_t bytes, CUdeviceptr *address, uint64_t *id)
{
	return region_alloc(context, bytes, CU_MEM_ATTACH_GLOBAL, true, address, id);
}

/* ID 0: whichever. */
static CUresult range_free(CUdeviceptr address, bool pooled, uint64_t id, bool wait)
{
	CUresult status = CUDA_SUCCESS;
	struct managed_range range;
	struct region *r;

	if (!managed_find(address, &range) || range.base != address || range.variable ||
		range.pooled != pooled || (id && range.id != id))
		return CUDA_ERROR_INVALID_VALUE;
	/* Its pages may be the next one's at once. */
	if (wait)
		status = managed_sync();
	if (status)
		return status;
	pthread_mutex_lock(&managed.lock);
	r = managed_region(address);
	if (r && r->id == range.id) {
		region_unmap(r);
		region_unplace(r);
		managed_region_free(r);
	}
	pthread_mutex_unlock(&managed.lock);
	return r ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult managed_free(CUdeviceptr address)
{
	return range_free(address, false, 0, true);
}

CUresult managed_pool_free(CUdeviceptr address, uint64_t id, bool wait)
{
	return range_free(address, true, id, wait);
}

void managed_context_gone(const struct context *context)
{
	pthread_mutex_lock(&managed.lock);
	for (size_t i = managed.count; i-- > 0;) {
		struct region *r = managed.regions[i];

		if (r->context != context)
			continue;
		region_unmap(r);
		if (!r->pieces)
			region_unplace(r);
		managed_region_free(r);
	}
	pthread_mutex_unlock(&managed.lock);
}
