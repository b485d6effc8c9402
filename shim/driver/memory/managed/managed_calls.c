/* SPDX-License-Identifier: Apache-2.0
 *
 * Prefetching, advice, attachment, and what ranges of managed memory are.  Advice is kept and
 * told; pages go where they are needed whatever it says.
 */
#include <pthread.h>
#include <stdlib.h>

#include "shim/generated/cuda_hand.h"
#include "shim/driver/context/context.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/memory/pinned/host.h"
#include "shim/driver/memory/managed/managed.h"
#include "shim/driver/memory/managed/managed_part.h"
#include "shim/driver/stream/stream.h"
#include "shim/engine/driver.h"
#include "shim/engine/thread.h"

/* Pages of one region. */
struct span {
	struct region *region;
	size_t first, n;
};

/* With the lock held. INVALID_VALUE: not all of it is managed memory. */
static CUresult span_find(CUdeviceptr at, size_t count, struct span *span)
{
	struct region *r = count ? managed_region(at) : NULL;
	size_t last;

	if (!r || at - r->base > r->asked || count > r->base + r->asked - at)
		return CUDA_ERROR_INVALID_VALUE;
	span->region = r;
	span->first = (at - r->base) / PAGE_BYTES;
	last = (at + count - 1 - r->base) / PAGE_BYTES;
	span->n = last - span->first + 1;
	return CUDA_SUCCESS;
}

/* The advice about a span's pages, to be changed; NULL: no memory. */
static struct page_advice *span_advice(const struct span *span)
{
	struct region *r = span->region;

	if (!r->advice) {
		r->advice = calloc(r->pages.count, sizeof(*r->advice));
		for (size_t i = 0; r->advice && i < r->pages.count; i++)
			r->advice[i].preferred = r->advice[i].prefetched = CU_DEVICE_INVALID;
	}
	return r->advice ? r->advice + span->first : NULL;
}

static CUresult location_check(const CUmemLocation *location)
{
	switch (location->type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return device_of(location->id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: return CUDA_SUCCESS;
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
		return host_numa(location->id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

/* Whether it may be one: looked at before a capture and the device are. */
static bool location_named(const CUmemLocation *location)
{
	return location->type >= CU_MEM_LOCATION_TYPE_DEVICE &&
	       location->type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

/* As the older functions name it, and as attributes tell it. */
static CUmemLocation location_of(CUdevice device)
{
	return (CUmemLocation){.type = device == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST
							       : CU_MEM_LOCATION_TYPE_DEVICE,
		.id = device};
}

/* The host has the number of the older functions, whichever it is named with. (A batch keeps
 * what it was given, as natively.) */
static CUmemLocation location_single(CUmemLocation location)
{
	if (location.type == CU_MEM_LOCATION_TYPE_HOST)
		location.id = CU_DEVICE_CPU;
	return location;
}

/* ---- prefetching ---- */

/* Towards the device the pages are posted now. Towards the program nothing moves before it
 * touches them, then they come in large pieces: their stream may have much to do before. */
static CUresult prefetch(CUdeviceptr at, size_t count, const CUmemLocation *location)
{
	bool device = location->type == CU_MEM_LOCATION_TYPE_DEVICE;
	struct page_advice *advice;
	struct span span;
	CUresult status = span_find(at, count, &span);

	if (status)
		return status;
	advice = span_advice(&span);
	if (!advice)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < span.n; i++) {
		advice[i].prefetched_type = (uint8_t)location->type;
		advice[i].prefetched = location->id;
	}
	if (device)
		return managed_push_pages(span.region, span.first, span.n,
			capture_any() ? PUSH_AT_ONCE : PUSH_BEFORE_WORK);
	pages_expect(&span.region->pages, span.first, span.n);
	return CUDA_SUCCESS;
}

static CUresult prefetch_async(
	CUdeviceptr devPtr, size_t count, CUmemLocation location, CUstream hStream)
{
	CUresult status;
	uint64_t stream;

	if (!location_named(&location))
		return CUDA_ERROR_INVALID_VALUE;
	status = capture_never(hStream);
	if (!status && (!devPtr || !count))
		status = CUDA_ERROR_INVALID_VALUE;
	if (!status)
		status = location_check(&location);
	if (!status)
		status = stream_waited(hStream, &stream);
	if (status)
		return status;
	pthread_mutex_lock(&managed.lock);
	status = prefetch(devPtr, count, &location);
	pthread_mutex_unlock(&managed.lock);
	return status;
}

CUresult hand_cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location,
	unsigned int flags, CUstream hStream)
{
	return flags ? CUDA_ERROR_INVALID_VALUE
		     : prefetch_async(devPtr, count, location_single(location), hStream);
}

CUresult hand_cuMemPrefetchAsync(
	CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream)
{
	return hand_cuMemPrefetchAsync_v2(devPtr, count, location_of(dstDevice), 0, hStream);
}

/* In the order that NVIDIA's driver looks at them in: CUDA has no such batches in the legacy
 * stream, and no stream captures one. */
static CUresult batch_check(const CUdeviceptr *at, const size_t *sizes, size_t count,
	unsigned long long flags, CUstream stream)
{
	CUresult status;

	if (!at || !sizes || flags || !stream || stream == CU_STREAM_LEGACY)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context_current())
		return context_missing();
	status = capture_never(stream);
	return !status && !count ? CUDA_ERROR_INVALID_VALUE : status;
}

/* Each of them is managed memory. */
static CUresult batch_spans(const CUdeviceptr *at, const size_t *sizes, size_t count)
{
	CUresult status = CUDA_SUCCESS;

	for (size_t i = 0; !status && i < count; i++) {
		uint64_t first = at[i], bytes = sizes[i];
		struct span span;

		pthread_mutex_lock(&managed.lock);
		status = span_find(first, bytes, &span);
		pthread_mutex_unlock(&managed.lock);
	}
	return status;
}

/* What stands before a range that is none is prefetched, as natively. */
CUresult hand_cuMemPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
	CUmemLocation *prefetchLocs, size_t *prefetchLocIdxs, size_t numPrefetchLocs,
	unsigned long long flags, CUstream hStream)
{
	CUresult status = batch_check(dptrs, sizes, count, flags, hStream);
	size_t at = 0;

	if (status)
		return status;
	if (!prefetchLocs || !prefetchLocIdxs || !numPrefetchLocs || numPrefetchLocs > count ||
		prefetchLocIdxs[0])
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 1; i < numPrefetchLocs; i++)
		if (prefetchLocIdxs[i] <= prefetchLocIdxs[i - 1] || prefetchLocIdxs[i] >= count)
			return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < numPrefetchLocs; i++)
		if (location_check(&prefetchLocs[i]))
			return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; !status && i < count; i++) {
		while (at + 1 < numPrefetchLocs && prefetchLocIdxs[at + 1] <= i)
			at++;
		status = prefetch_async(dptrs[i], sizes[i], prefetchLocs[at], hStream);
	}
	return status;
}

/* What is discarded may be anything: also what it was. */
CUresult hand_cuMemDiscardBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
	unsigned long long flags, CUstream hStream)
{
	uint64_t stream;
	CUresult status = batch_check(dptrs, sizes, count, flags, hStream);

	if (!status)
		status = batch_spans(dptrs, sizes, count);
	return status ? status : stream_waited(hStream, &stream);
}

CUresult hand_cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
	CUmemLocation *prefetchLocs, size_t *prefetchLocIdxs, size_t numPrefetchLocs,
	unsigned long long flags, CUstream hStream)
{
	return hand_cuMemPrefetchBatchAsync(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs,
		numPrefetchLocs, flags, hStream);
}

/* ---- advice ---- */

static void advise(struct page_advice *page, CUmem_advise advice, const CUmemLocation *location)
{
	uint32_t who =
		location->type == CU_MEM_LOCATION_TYPE_DEVICE ? 1u << location->id : ADVICE_CPU;

	switch (advice) {
	case CU_MEM_ADVISE_SET_READ_MOSTLY: page->read_mostly = true; break;
	case CU_MEM_ADVISE_UNSET_READ_MOSTLY: page->read_mostly = false; break;
	case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
		/* Where this thread runs is told as the host, natively. */
		page->preferred_type = location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT
					       ? CU_MEM_LOCATION_TYPE_HOST
					       : (uint8_t)location->type;
		page->preferred = location->id;
		break;
	case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
		page->preferred_type = 0;
		page->preferred = CU_DEVICE_INVALID;
		break;
	case CU_MEM_ADVISE_SET_ACCESSED_BY: page->accessed_by |= who; break;
	case CU_MEM_ADVISE_UNSET_ACCESSED_BY: page->accessed_by &= ~who; break;
	}
}

static bool advice_known(CUmem_advise advice)
{
	return advice >= CU_MEM_ADVISE_SET_READ_MOSTLY &&
	       advice <= CU_MEM_ADVISE_UNSET_ACCESSED_BY;
}

/* Who accesses it is a device, or the host as a whole. */
static bool advice_access(CUmem_advise advice)
{
	return advice == CU_MEM_ADVISE_SET_ACCESSED_BY ||
	       advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
}

/* Whether it is about a place. */
static bool advice_where(CUmem_advise advice)
{
	return advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION || advice_access(advice);
}

static bool location_numa(const CUmemLocation *location)
{
	return location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
	       location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

static CUresult advise_range(
	CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location)
{
	struct page_advice *pages;
	struct span span;
	CUresult status;

	if (!context_current())
		return context_missing();
	status = capture_unsafe();
	if (!status && advice_where(advice))
		status = location_check(&location);
	if (!advice_known(advice))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&managed.lock);
	if (!status)
		status = span_find(devPtr, count, &span);
	pages = status ? NULL : span_advice(&span);
	for (size_t i = 0; pages && i < span.n; i++)
		advise(&pages[i], advice, &location);
	pthread_mutex_unlock(&managed.lock);
	return status ? status : pages ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* No device is an invalid value here, and an invalid device to the older function. */
CUresult hand_cuMemAdvise_v2(
	CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location)
{
	if (!advice_known(advice) || !location_named(&location) ||
		(advice_where(advice) && location_check(&location)) ||
		(advice_access(advice) && location_numa(&location)))
		return CUDA_ERROR_INVALID_VALUE;
	return advise_range(devPtr, count, advice, location_single(location));
}

CUresult hand_cuMemAdvise(
	CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device)
{
	return advise_range(devPtr, count, advice, location_of(device));
}

/* ---- attributes ---- */

/* A location as one number: CU_DEVICE_CPU, a device, or that there is none. */
static int32_t location_number(uint8_t type, int32_t id)
{
	return !type				     ? CU_DEVICE_INVALID
	       : type == CU_MEM_LOCATION_TYPE_DEVICE ? id
						     : CU_DEVICE_CPU;
}

/* Who accesses all of the pages: bits as of page_advice. */
static uint32_t accessed_by(const struct page_advice *pages, size_t n)
{
	uint32_t all = pages ? ~0u : 0;

	for (size_t i = 0; pages && i < n; i++)
		all &= pages[i].accessed_by;
	return all;
}

static void accessed_list(uint32_t who, int32_t *list, size_t room)
{
	size_t at = 0;

	for (int d = 0; d < devices.count && at < room; d++)
		if (who >> d & 1)
			list[at++] = d;
	if (who & ADVICE_CPU && at < room)
		list[at++] = CU_DEVICE_CPU;
	while (at < room)
		list[at++] = CU_DEVICE_INVALID;
}

/* Of one page. */
static int32_t page_attribute(const struct page_advice *page, CUmem_range_attribute which)
{
	switch (which) {
	case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY: return page->read_mostly;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
		return location_number(page->preferred_type, page->preferred);
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
		return location_number(page->prefetched_type, page->prefetched);
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE: return page->preferred_type;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID: return page->preferred;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE: return page->prefetched_type;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID: return page->prefetched;
	default: return 0;
	}
}

/* What all pages have in common, else what a page has of which nothing was said. */
static int32_t span_attribute(CUmem_range_attribute which, const struct span *span)
{
	static const struct page_advice none = {
		.preferred = CU_DEVICE_INVALID, .prefetched = CU_DEVICE_INVALID};
	const struct page_advice *pages =
		span->region->advice ? span->region->advice + span->first : NULL;
	int32_t value = page_attribute(pages ? pages : &none, which);

	if (which == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY)
		return (int32_t)accessed_by(pages, span->n);
	for (size_t i = 1; pages && i < span->n; i++)
		if (page_attribute(&pages[i], which) != value)
			return page_attribute(&none, which);
	return value;
}

static bool range_askable(const void *data, size_t bytes, CUmem_range_attribute attribute)
{
	return data && attribute >= CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY &&
	       attribute <= CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID &&
	       (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY
			       ? bytes && bytes % sizeof(int32_t) == 0
			       : bytes == sizeof(int32_t));
}

/* The program's own memory is not touched under the lock: it may be managed. */
CUresult hand_cuMemRangeGetAttribute(void *data, size_t dataSize,
	CUmem_range_attribute attribute, CUdeviceptr devPtr, size_t count)
{
	bool list = attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY;
	struct span span;
	int32_t value = 0;
	CUresult status;

	if (!range_askable(data, dataSize, attribute))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&managed.lock);
	status = span_find(devPtr, count, &span);
	if (!status)
		value = span_attribute(attribute, &span);
	pthread_mutex_unlock(&managed.lock);
	if (!status && list)
		accessed_list((uint32_t)value, data, dataSize / sizeof(value));
	else if (!status)
		*(int32_t *)data = value;
	return status;
}

CUresult hand_cuMemRangeGetAttributes(void **data, size_t *dataSizes,
	CUmem_range_attribute *attributes, size_t numAttributes, CUdeviceptr devPtr,
	size_t count)
{
	CUresult status = data && dataSizes && attributes && numAttributes
				  ? CUDA_SUCCESS
				  : CUDA_ERROR_INVALID_VALUE;

	/* All or none. */
	for (size_t i = 0; !status && i < numAttributes; i++)
		if (!range_askable(data[i], dataSizes[i], attributes[i]))
			status = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; !status && i < numAttributes; i++)
		status = hand_cuMemRangeGetAttribute(
			data[i], dataSizes[i], attributes[i], devPtr, count);
	return status;
}

/* ---- attachment ---- */

CUresult hand_cuStreamAttachMemAsync(
	CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags)
{
	bool single = flags == CU_MEM_ATTACH_SINGLE;
	struct region *r;
	uint64_t stream;
	CUresult status;

	if ((!single && flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) ||
		(single && !hStream))
		return CUDA_ERROR_INVALID_VALUE;
	status = stream_waited(hStream, &stream);
	if (status)
		return status;
	pthread_mutex_lock(&managed.lock);
	r = managed_region(dptr);
	if (!r || r->base != dptr || (length && length != r->asked)) {
		status = CUDA_ERROR_INVALID_VALUE;
	} else {
		/* What was under way before may still write to it. */
		r->worked = atomic_load(&managed.worked);
		r->stream_synced = 0;
		r->attach = flags;
		r->stream = stream;
		atomic_store(&managed.touched, true);
		if (flags != CU_MEM_ATTACH_GLOBAL)
			atomic_store(&managed.apart, true);
	}
	pthread_mutex_unlock(&managed.lock);
	return status;
}
