/* SPDX-License-Identifier: Apache-2.0
 *
 * A stream waits on the device for a value in pinned memory, which the loop writes: nobody's
 * thread waits.  The value of a hold only grows and the device waits for at least as much, so
 * it is used again as soon as it was let go.
 */
#include <stdlib.h>

#include "gpu-agent/worker/direct/direct.h"
#include "gpu-agent/worker/limits/limits.h"
#include "gpu-agent/worker/worker_state.h"

#define BLOCK_HOLDS 512u /* a page of them */
#define BLOCKS_MOST 256u /* so many streams wait at once at the most: 131072 */
/* Pieces of work behind a stream that waits: the drivers of GPUs block at 1024 launches, and
 * the work of one frame may be several. */
#define WORK_BEHIND 256u

/* Another page of holds. */
static CUresult hold_block(struct worker *w, struct direct *d)
{
	struct direct_hold *holds;
	CUdeviceptr address = 0;
	void *base = NULL;
	CUresult status;

	if (d->blocks == BLOCKS_MOST)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!w->cuda.cuMemHostAlloc || !w->cuda.cuMemHostGetDevicePointer ||
		!w->cuda.cuMemFreeHost)
		return worker_lacks(w, "cuMemHostGetDevicePointer");
	/* Holds are used again by streams of any context: they are of one that stays. */
	status = worker_use(w, CONTEXT_PRIMARY(0));
	if (status)
		return status;
	holds = realloc(d->holds, (d->hold_room + BLOCK_HOLDS) * sizeof(*holds));
	if (!holds)
		return CUDA_ERROR_OUT_OF_MEMORY;
	d->holds = holds;
	status = w->cuda.cuMemHostAlloc(&base, BLOCK_HOLDS * sizeof(uint64_t),
		CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
	if (status)
		return status;
	status = w->cuda.cuMemHostGetDevicePointer(&address, base, 0);
	if (status) {
		w->cuda.cuMemFreeHost(base);
		return status;
	}
	d->hold_room += BLOCK_HOLDS;
	d->blocks++;
	for (uint32_t i = 0; i < BLOCK_HOLDS; i++) {
		uint64_t *at = (uint64_t *)base + i;

		__atomic_store_n(at, 0, __ATOMIC_RELEASE);
		d->holds[d->hold_count++] =
			(struct direct_hold){.at = at, .address = address + i * sizeof(*at)};
	}
	return CUDA_SUCCESS;
}

CUresult direct_hold_prepare(struct worker *w)
{
	struct direct *d = direct_get(w);

	if (!d)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return d->hold_count ? CUDA_SUCCESS : hold_block(w, d);
}

CUresult direct_hold(struct worker *w, struct worker_stream *stream, struct direct_hold *hold)
{
	struct direct *d = direct_get(w);
	CUresult status;

	if (!w->cuda.cuStreamWaitValue64)
		return worker_lacks(w, "cuStreamWaitValue64");
	status = direct_hold_prepare(w);
	if (!status)
		status = worker_use(w, stream->context);
	if (status)
		return status;
	*hold = d->holds[--d->hold_count];
	/* A piece of work of its own, behind what the stream's fences have seen. */
	limits_work(w, stream);
	hold->stream = stream;
	hold->work = stream->work;
	status = w->cuda.cuStreamWaitValue64(stream->stream, hold->address,
		__atomic_load_n(hold->at, __ATOMIC_RELAXED) + 1, CU_STREAM_WAIT_VALUE_GEQ);
	if (status) {
		d->holds[d->hold_count++] = *hold;
		hold->at = NULL;
	}
	return status;
}

void direct_release(struct worker *w, struct direct_hold *hold)
{
	struct direct *d = w->direct;

	if (!hold->at)
		return;
	__atomic_fetch_add(hold->at, 1, __ATOMIC_RELEASE);
	d->holds[d->hold_count++] = *hold;
	hold->at = NULL;
}

bool direct_hold_deep(const struct direct_hold *hold)
{
	return hold->at && hold->stream && hold->stream->work - hold->work >= WORK_BEHIND;
}
