/* SPDX-License-Identifier: Apache-2.0
 *
 * Pinned memory between socket and GPU.  A range is busy until nobody holds it or the event
 * behind it is done.
 */
#include <stdlib.h>

#include "gpu-agent/worker/loop/fence.h"
#include "gpu-agent/worker/staging/staging.h"
#include "gpu-agent/worker/worker_state.h"

/* Between two looks at all ranges while there is no room; and so many times what one takes, as
 * the driver is asked about each. */
#define SWEEP_NS 100000u
#define SWEEP_SHARE 10u

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

/* Room behind a range, or (NULL) before the first. */
struct gap {
	struct staging_range *behind;
	uint32_t at;
};

static bool gap_behind(
	const struct staging *s, struct staging_range *range, uint32_t need, struct gap *gap)
{
	const struct staging_range *next = range ? range->next : s->first;

	gap->behind = range;
	gap->at = range ? range->at + range->bytes : 0;
	return (s->free || s->fresh < STAGING_RANGES) &&
	       (next ? next->at : s->size) - gap->at >= need;
}

static bool gap_in_turn(const struct staging *s, uint32_t need, struct gap *gap)
{
	return gap_behind(s, s->last, need, gap) || (s->last && gap_behind(s, NULL, need, gap));
}

static bool gap_anywhere(const struct staging *s, uint32_t need, struct gap *gap)
{
	struct staging_range *range = NULL;

	while (!gap_behind(s, range, need, gap)) {
		range = range ? range->next : s->first;
		if (!range)
			return false;
	}
	return true;
}

static void range_remove(struct staging *s, struct staging_range *range)
{
	if (range->previous)
		range->previous->next = range->next;
	else
		s->first = range->next;
	if (range->next)
		range->next->previous = range->previous;
	if (s->last == range)
		s->last = range->previous;
	s->used -= range->bytes;
	s->count--;
	range->next = s->free;
	s->free = range;
}

static void range_insert(
	struct staging *s, struct staging_range *range, const struct gap *gap, uint32_t bytes)
{
	range->at = gap->at;
	range->bytes = bytes;
	range->previous = gap->behind;
	range->next = gap->behind ? gap->behind->next : s->first;
	if (range->next)
		range->next->previous = range;
	if (range->previous)
		range->previous->next = range;
	else
		s->first = range;
	s->last = range;
	s->used += bytes;
	s->count++;
}

/* Gives back all that is done; no more often than it can matter. */
static void staging_sweep(struct worker *w, struct staging *s)
{
	uint64_t began = wait_now(), ended;
	struct staging_range *next;

	if (began < s->sweep_at)
		return;
	for (struct staging_range *range = s->first; range; range = next) {
		next = range->next;
		if (staging_idle(w, range))
			range_remove(s, range);
	}
	ended = wait_now();
	s->sweep_at = ended + SWEEP_NS + (ended - began) * SWEEP_SHARE;
}

static bool gap_find(struct worker *w, struct staging *s, uint32_t need, struct gap *gap)
{
	if (gap_in_turn(s, need, gap))
		return true;
	staging_reap(w, s);
	if (gap_in_turn(s, need, gap) || gap_anywhere(s, need, gap))
		return true;
	staging_sweep(w, s);
	return gap_anywhere(s, need, gap);
}

static uint32_t staging_need(uint32_t n)
{
	return (n + STAGING_ALIGN - 1) & ~(STAGING_ALIGN - 1);
}

bool staging_fits(struct worker *w, struct staging *s, uint32_t n)
{
	struct gap gap;

	staging_reap(w, s);
	return gap_behind(s, s->last, staging_need(n), &gap) ||
	       gap_find(w, s, staging_need(n), &gap);
}

bool staging_half_busy(struct worker *w, struct staging *s)
{
	staging_reap(w, s);
	if (s->used > s->size / 2)
		staging_sweep(w, s);
	return s->used > s->size / 2;
}

struct staging_range *staging_alloc(
	struct worker *w, struct staging *s, uint32_t n, unsigned char **bytes)
{
	struct staging_range *range;
	struct gap gap;

	/* Nearly always there is room behind the last one. */
	if (!gap_behind(s, s->last, staging_need(n), &gap) &&
		!gap_find(w, s, staging_need(n), &gap))
		return NULL;
	range = s->free ? s->free : &s->ranges[s->fresh++];
	if (range == s->free)
		s->free = range->next;
	range_insert(s, range, &gap, staging_need(n));
	range->event = NULL;
	atomic_store_explicit(&range->held, STAGING_FRAME, memory_order_relaxed);
	*bytes = s->base + range->at;
	return range;
}

void staging_done(struct staging_range *range)
{
	atomic_fetch_and_explicit(&range->held, ~STAGING_FRAME, memory_order_release);
}

bool staging_free(struct staging *s, struct staging_range *range)
{
	if (range < s->ranges || range >= s->ranges + STAGING_RANGES)
		return false;
	range_remove(s, range);
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
	for (struct staging_range *range = s->first; range; range = range->next)
		staging_range_forget(w, range, context);
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
	for (;;) {
		struct staging_range *oldest =
			s->last && s->last->next ? s->last->next : s->first;

		if (!oldest || !staging_idle(w, oldest))
			return;
		range_remove(s, oldest);
	}
}
