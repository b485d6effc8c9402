/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables of modules that are managed (__managed__): the worker's driver has placed them, so
 * the program's pages are made where they lie.  Variables share pages, with one another and
 * with variables that are none of the program's: so only their own bytes travel to the device.
 */
#include <pthread.h>
#include <stdlib.h>

#include "shim/driver/context/context.h"
#include "shim/driver/memory/managed/managed.h"
#include "shim/driver/memory/managed/managed_part.h"
#include "shim/driver/stream/stream.h"
#include "shim/engine/driver.h"

static uint64_t page_of(uint64_t address)
{
	return address & ~(uint64_t)(PAGE_BYTES - 1);
}

/* With the lock held: the region at AT, or a new one up to END at most; NULL: none can be. */
static struct region *region_at(struct context *context, uint64_t at, uint64_t end)
{
	struct region *r = managed_region(at), *next;

	if (r)
		return r;
	for (uint64_t page = at + PAGE_BYTES; page < end; page += PAGE_BYTES) {
		next = managed_region(page);
		if (next)
			end = next->base;
	}
	r = managed_region_new(context, end - at, CU_MEM_ATTACH_GLOBAL);
	if (!r)
		return NULL;
	r->base = at;
	r->reached = ~0ull; /* the worker's driver sees to it */
	pages_set(&r->pages, 0, r->pages.count, PAGE_ABSENT); /* it has a value */
	if (!managed_region_map(r)) {
		managed_region_free(r);
		return NULL;
	}
	return r;
}

/* With the lock held. */
static CUresult piece_add(struct region *r, uint64_t first, uint64_t end, uint64_t module)
{
	size_t page = (page_of(first) - r->base) / PAGE_BYTES;
	size_t last = (end - 1 - r->base) / PAGE_BYTES;
	struct piece *piece;
	CUresult status;

	for (piece = r->pieces; piece; piece = piece->next)
		if (piece->first == first && piece->end == end && piece->module == module)
			return CUDA_SUCCESS;
	/* What the program has of these pages is without it. */
	status = managed_push_pages(r, page, last - page + 1, PUSH_AT_ONCE);
	piece = status ? NULL : malloc(sizeof(*piece));
	if (!piece)
		return status ? status : CUDA_ERROR_OUT_OF_MEMORY;
	*piece =
		(struct piece){.next = r->pieces, .first = first, .end = end, .module = module};
	r->pieces = piece;
	return CUDA_SUCCESS;
}

CUresult managed_variable(
	struct context *context, CUdeviceptr address, size_t bytes, uint64_t module)
{
	uint64_t at = address, end = address + bytes;
	CUresult status = CUDA_SUCCESS;
	CUstream ahead;

	if (!bytes || end < at || end > 1ull << 47)
		return CUDA_ERROR_INVALID_VALUE;
	if (!managed_way_known())
		return CUDA_ERROR_NOT_SUPPORTED;
	status = stream_ahead(context, &ahead);
	pthread_mutex_lock(&managed.lock);
	while (!status && at < end) {
		struct region *r =
			region_at(context, page_of(at), page_of(end + PAGE_BYTES - 1));
		uint64_t behind = r ? r->base + r->bytes : 0;

		if (!r) {
			status = CUDA_ERROR_OUT_OF_MEMORY; /* the program has something there */
			break;
		}
		status = piece_add(r, at, end < behind ? end : behind, module);
		at = behind;
	}
	pthread_mutex_unlock(&managed.lock);
	return status;
}

/* With the lock held: true if nothing is left of it. */
static bool pieces_drop(struct region *r, uint64_t module)
{
	struct piece **at = &r->pieces;
	bool dropped = false;

	while (*at) {
		struct piece *piece = *at;

		if (piece->module != module) {
			at = &piece->next;
			continue;
		}
		*at = piece->next;
		free(piece);
		dropped = true;
	}
	return dropped && !r->pieces;
}

void managed_module_gone(uint64_t module)
{
	if (!managed_any)
		return;
	pthread_mutex_lock(&managed.lock);
	for (size_t i = managed.count; i-- > 0;)
		if (pieces_drop(managed.regions[i], module))
			managed_region_drop(managed.regions[i]);
	pthread_mutex_unlock(&managed.lock);
}
