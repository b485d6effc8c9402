/* SPDX-License-Identifier: Apache-2.0
 *
 * How much memory is free.  Natively a program that has ended has given its memory back before
 * anybody learns of its end; here its worker may still be giving it back when the pod's next
 * program asks. So the front is asked first whether one is: it answers when that one is gone.
 */
#include <strings.h>
#include <sys/socket.h>

#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/driver/memory/memory.h"
#include "gpu-agent/worker/reply/reply.h"
#include "gpu-agent/worker/worker_state.h"
#include "protocol/generated/cuda_wire.h"

void memory_limited(
	const struct worker *w, uint32_t device, uint64_t *free_bytes, uint64_t *total)
{
	const struct worker_device *d = &w->devices[device];
	uint64_t left = w->vram_limit;

	if (!left)
		return;
	if (*total > left)
		*total = left;
	left -= left < d->others ? left : d->others;
	left -= left < d->used ? left : d->used;
	left -= left < d->extra ? left : d->extra;
	if (*free_bytes > left)
		*free_bytes = left;
}

/* Of the current context's device. */
static CUresult memory_info(struct worker *w, struct wire_cuMemGetInfo_v2_reply *answer)
{
	size_t free_bytes, total;
	CUdevice current;
	CUresult status = w->cuda.cuMemGetInfo_v2(&free_bytes, &total);

	if (!status)
		status = w->cuda.cuCtxGetDevice(&current);
	if (status)
		return status;
	answer->free = free_bytes;
	answer->total = total;
	for (uint32_t i = 0; i < w->device_count; i++)
		if (w->devices[i].device == current)
			memory_limited(w, i, &answer->free, &answer->total);
	return CUDA_SUCCESS;
}

/* false: the front cannot be reached. */
static bool memory_ask(struct worker *w, uint32_t questions)
{
	struct handoff *ask = &w->stats;

	ask->version = HANDOFF_VERSION;
	ask->what = HANDOFF_DRAIN;
	ask->device = questions;
	return send(w->handoff, ask, sizeof(*ask), MSG_NOSIGNAL) == sizeof(*ask);
}

CUresult serve_cuMemGetInfo_v2(struct worker *w, struct request *r)
{
	int n = ffs((int)~w->memory_info.open) - 1;

	if (n < 0 || r->header.kind != FRAME_CALL || !memory_ask(w, 1u << n))
		return memory_info(w, (void *)r->answer);
	w->memory_info.open |= 1u << n;
	w->memory_info.questions[n].tag = r->header.tag;
	w->memory_info.questions[n].context = w->current;
	r->later = true;
	return CUDA_SUCCESS;
}

void memory_drained(struct worker *w, uint32_t questions)
{
	for (uint32_t n = 0; n < 32; n++) {
		struct wire_cuMemGetInfo_v2_reply reply = {0};
		CUresult status;

		if (!(w->memory_info.open & questions & 1u << n))
			continue;
		w->memory_info.open &= ~(1u << n);
		status = worker_use(w, w->memory_info.questions[n].context);
		if (!status)
			status = memory_info(w, &reply);
		if (status)
			worker_note(w, status);
		reply_send(w, w->memory_info.questions[n].tag, status, &reply, sizeof(reply));
	}
}

void memory_ask_again(struct worker *w)
{
	if (w->memory_info.open)
		memory_ask(w, w->memory_info.open);
}
