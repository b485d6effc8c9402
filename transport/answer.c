/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/answer.h"

#include <errno.h>
#include <string.h>

#include "common/wait.h"

void answer_progress(struct channel_page *page)
{
	atomic_fetch_add(&page->progress, 1);
	wait_changed(&page->progress, &page->want_progress);
}

void answer_slot(struct channel_slot *slot, const struct frame_header *header, const void *data,
	uint32_t bytes, uint32_t payload)
{
	slot->status = header->status;
	slot->deferred = header->deferred;
	slot->body = bytes;
	slot->payload = payload;
	slot->seq = header->seq;
	if (bytes)
		memcpy(slot->data, data, bytes);
	atomic_store_explicit(&slot->answered, 1, memory_order_release);
	wait_changed(&slot->answered, &slot->sleeping);
}

int answer_update(struct channel_page *page, _Atomic uint64_t *counters,
	const struct frame_update *update, struct error *error)
{
	if (update->index >= CHANNEL_COUNTERS)
		return error_set(
			error, EPROTO, "agent: an update of counter %u", update->index);
	atomic_store_explicit(&counters[update->index], update->value, memory_order_release);
	answer_progress(page);
	return 0;
}

int answer_upcall(struct channel_page *page, struct channel_upcall *upcalls, uint64_t *tail,
	uint32_t frame, const struct frame_upcall *upcall, struct error *error)
{
	uint64_t head = atomic_load_explicit(&page->upcall_head, memory_order_acquire);

	if (*tail - head > CHANNEL_UPCALLS)
		return error_set(error, EPROTO, "upcalls: head %llu cannot be",
			(unsigned long long)head);
	if (*tail - head == CHANNEL_UPCALLS)
		return 1;
	upcalls[*tail % CHANNEL_UPCALLS] = (struct channel_upcall){
		.what = upcall->what, .frame = frame, .value = upcall->value};
	atomic_store_explicit(&page->upcall_tail, ++*tail, memory_order_release);
	answer_progress(page);
	return 0;
}
