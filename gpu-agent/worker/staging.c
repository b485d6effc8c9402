/* SPDX-License-Identifier: Apache-2.0
 *
 * Pinned memory between socket and GPU: a ring, taken in order and released in order.  A range
 * is busy until nobody holds it or the event behind it is done.
 */
#include <stdlib.h>

#include "gpu-agent/worker/fence.h"
#include "gpu-agent/worker/staging.h"
#include "gpu-agent/worker/worker_state.h"

int staging_open(struct worker *w, struct staging *s)
{
	void *base = NULL;

	if (!w->cuda.cuMemHostAlloc ||
		w->cuda.cuMemHostAlloc(&base, STAGING_BYTES, CU_MEMHOSTALLOC_PORTABLE))
		return -1;
	s->base = base;
	s->size = STAGING_BYTES;
	s->ranges = calloc(STAGING_RANGES, sizeof(*s->ranges));
	return s->ranges ? 0 : -1;
}

struct staging_range *staging_alloc(
	struct worker *w, struct staging *s, uint32_t n, unsigned char **bytes)
{
	uint32_t need = (n + STAGING_ALIGN - 1) & ~(STAGING_ALIGN - 1);
	uint32_t skip = s->head + need > s->size ? s->size - s->head : 0;
	struct staging_range *range;

	if (s->count == STAGING_RANGES || need + skip > s->size - s->used) {
		staging_reap(w, s);
		if (s->count == STAGING_RANGES || need + skip > s->size - s->used)
			return NULL;
	}
	range = &s->ranges[(s->first + s->count++) % STAGING_RANGES];
	range->begin = s->head;
	if (skip)
		s->head = 0;
	range->bytes = need + skip;
	range->event = NULL;
	atomic_store_explicit(&range->held, STAGING_FRAME, memory_order_relaxed);
	*bytes = s->base + s->head;
	s->head = (s->head + need) % s->size;
	s->used += need + skip;
	return range;
}

void staging_done(struct staging_range *range)
{
	atomic_fetch_and_explicit(&range->held, ~STAGING_FRAME, memory_order_release);
}

bool staging_untake(struct staging *s, struct staging_range *range)
{
	if (!s->count || range != &s->ranges[(s->first + s->count - 1) % STAGING_RANGES])
		return false;
	s->head = range->begin;
	s->used -= range->bytes;
	s->count--;
	return true;
}

void staging_sending(struct staging_range *range)
{
	atomic_fetch_or_explicit(&range->held, STAGING_STRIPE, memory_order_relaxed);
}

void staging_sent(struct staging_range *range)
{
	atomic_fetch_and_explicit(&range->held, ~STAGING_STRIPE, memory_order_release);
}

CUresult staging_busy(
	struct worker *w, struct staging_range *range, uint16_t context, CUstream stream)
{
	CUevent event;
	CUresult status = fence_event_get(w, context, &event);

	if (status)
		return status;
	status = w->cuda.cuEventRecord(event, stream);
	if (status) {
		fence_event_put(w, context, event);
		return status;
	}
	range->event = event;
	range->context = context;
	return CUDA_SUCCESS;
}

void staging_range_forget(struct worker *w, struct staging_range *range, uint16_t context)
{
	if (!range->event || range->context != context)
		return;
	fence_event_put(w, context, range->event);
	range->event = NULL;
	staging_done(range);
}

void staging_forget(struct worker *w, struct staging *s, uint16_t context)
{
	for (uint32_t i = 0; i < s->count; i++)
		staging_range_forget(w, &s->ranges[(s->first + i) % STAGING_RANGES], context);
}

bool staging_idle(struct worker *w, struct staging_range *range)
{
	if (!atomic_load_explicit(&range->held, memory_order_acquire))
		return true;
	if (!range->event)
		return false;
	worker_use(w, range->context);
	if (w->cuda.cuEventQuery(range->event) == CUDA_ERROR_NOT_READY)
		return false;
	/* Done, or the context is broken: nobody reads it any more. */
	fence_event_put(w, range->context, range->event);
	range->event = NULL;
	return true;
}

void staging_reap(struct worker *w, struct staging *s)
{
	while (s->count) {
		struct staging_range *range = &s->ranges[s->first];

		if (!staging_idle(w, range))
			return;
		s->used -= range->bytes;
		s->first = (s->first + 1) % STAGING_RANGES;
		s->count--;
	}
	s->head = 0;
}
