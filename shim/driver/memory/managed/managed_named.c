/* SPDX-License-Identifier: Apache-2.0
 *
 * Managed memory that work names although it is attached to the host or to another stream. CUDA
 * leaves that undefined for devices without concurrent access, which we say we are; programs
 * that were only tried on devices that have it do so, and copies of what is attached to the
 * host are right everywhere.
 */
#include "shim/driver/memory/managed/managed.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "shim/driver/context/context.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/memory/managed/managed_part.h"
#include "shim/driver/stream/stream.h"
#include "shim/engine/driver.h"

static bool maybe_apart(uint64_t address)
{
	return managed_any && atomic_load(&managed.apart) && managed_near(address);
}

CUresult managed_name(CUstream stream, uint64_t address, struct managed_named *named)
{
	CUresult status = CUDA_SUCCESS;
	uint64_t number;
	struct region *r;

	*named = (struct managed_named){.address = address};
	/* What is wrong with a stream is told by who begins the work. */
	if (!maybe_apart(address) || stream_plain(stream, &number))
		return CUDA_SUCCESS;
	pthread_mutex_lock(&managed.lock);
	r = managed_region(address);
	if (r && !region_reached(r, number)) {
		named->apart = true;
		/* The work has no number yet: a fetch meanwhile waits for all. */
		r->worked = UINT64_MAX;
		status = managed_push_pages(
			r, 0, r->pages.count, capture_any() ? PUSH_AT_ONCE : PUSH_BEFORE_WORK);
	}
	pthread_mutex_unlock(&managed.lock);
	return status;
}

void managed_name_end(const struct managed_named *named)
{
	struct region *r;

	if (!named->apart)
		return;
	pthread_mutex_lock(&managed.lock);
	r = managed_region(named->address);
	if (r) {
		r->worked = atomic_load(&managed.worked);
		r->stream_synced = 0;
		managed_evict_clean(r);
	}
	pthread_mutex_unlock(&managed.lock);
}

/* The work's stream has been asked already, and what it waits for is done. So what is new
 * goes at once, on a stream that waits for nothing, behind all that came before: the zeroes
 * that the memory began with, for one. */
static CUresult attach_to_all(uint64_t address)
{
	CUresult status = CUDA_SUCCESS;
	struct region *r;
	bool host;

	pthread_mutex_lock(&managed.lock);
	r = managed_region(address);
	host = r && r->attach == CU_MEM_ATTACH_HOST;
	pthread_mutex_unlock(&managed.lock);
	if (host)
		status = managed_sync();
	if (!host || status)
		return status;
	pthread_mutex_lock(&managed.lock);
	r = managed_region(address);
	if (r && r->attach == CU_MEM_ATTACH_HOST) {
		r->attach = CU_MEM_ATTACH_GLOBAL;
		status = managed_push_pages(r, 0, r->pages.count, PUSH_AT_ONCE);
		atomic_store(&managed.touched, true);
	}
	pthread_mutex_unlock(&managed.lock);
	return status;
}

/* With the lock held. */
static bool region_has(const struct region *r, const struct context *context)
{
	const int owner = r->context->device;

	return owner == context->device || r->reached >> context->device & 1 ||
	       atomic_load(&context->reached) >> owner & 1;
}

bool managed_reached(const struct context *context, CUdeviceptr address)
{
	struct region *r;
	bool reached;

	if (!managed_any || !managed_near(address))
		return false;
	pthread_mutex_lock(&managed.lock);
	r = managed_region(address);
	reached = r && region_has(r, context);
	pthread_mutex_unlock(&managed.lock);
	return reached;
}

/* Managed memory that the current context's device has no way to. */
static bool out_of_reach(uint64_t address)
{
	const struct context *context = context_current();
	struct managed_range range;

	return atomic_load(&managed.apart_devices) && context &&
	       managed_find(address, &range) && !managed_reached(context, address);
}

CUresult managed_words(const void *words, size_t bytes)
{
	const unsigned char *at = words;
	CUresult status = CUDA_SUCCESS;

	if (!managed_any ||
		(!atomic_load(&managed.apart) && !atomic_load(&managed.apart_devices)))
		return CUDA_SUCCESS;
	for (size_t i = 0; i + 8 <= bytes && !status; i += 8) {
		uint64_t word;

		memcpy(&word, at + i, 8);
		if (!managed_near(word))
			continue;
		if (out_of_reach(word)) {
			logs_add("cuMemAllocManaged",
				"the device that works does not reach managed memory of the "
				"device that was current when it was allocated");
			return CUDA_ERROR_NOT_SUPPORTED;
		}
		status = attach_to_all(word);
	}
	return status;
}
