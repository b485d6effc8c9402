/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/wait.h"

#define ENTRY_LEAST sizeof(struct frame_header)

int ring_consumer_init(struct ring *ring, struct channel_page *page, const void *bytes,
	uint64_t size, const struct segments *segments)
{
	*ring = (struct ring){.page = page,
		.bytes = bytes,
		.size = size,
		.segments = segments,
		.pinned_most = FRAME_PAYLOAD_MAX};
	ring->ends = calloc(size / ENTRY_LEAST, sizeof(*ring->ends));
	return ring->ends ? 0 : -ENOMEM;
}

void ring_fini(struct ring *ring)
{
	free(ring->ends);
	ring->ends = NULL;
}

bool ring_waiting(const struct ring *ring)
{
	return atomic_load_explicit(&ring->page->tail, memory_order_acquire) != ring->taken;
}

/* One pass over shared memory; the compiler may not look there again. */
static void ring_copy(void *to, const void *from, size_t n)
{
	memcpy(to, from, n);
	__asm__ volatile("" ::: "memory");
}

/* Skips what stands between `taken` and the next entry. 1: an entry is at *at with *n bytes
 * published from there on; 0: none; -EPROTO. */
static int ring_next(
	struct ring *ring, struct frame_header *header, uint64_t *n, struct error *error)
{
	uint64_t tail = atomic_load_explicit(&ring->page->tail, memory_order_acquire);
	uint64_t published = tail - ring->taken;

	if (!published)
		return 0;
	if (published > ring->size - (ring->taken - ring->released) || tail % 16)
		return error_set(
			error, EPROTO, "ring: tail %llu cannot be", (unsigned long long)tail);

	for (int pads = 0;; pads++) {
		uint64_t position = ring->taken & (ring->size - 1);
		uint64_t to_end = ring->size - position;

		if (to_end >= ENTRY_LEAST) {
			if (published < ENTRY_LEAST)
				return error_set(error, EPROTO, "ring: half a header");
			ring_copy(header, ring->bytes + position, sizeof(*header));
			if (header->magic != FRAME_MAGIC)
				return error_set(
					error, EPROTO, "ring: magic 0x%x", header->magic);
			if (header->kind != FRAME_PAD) {
				*n = published;
				return 1;
			}
		}
		if (published < to_end || pads)
			return error_set(error, EPROTO, "ring: padding past the tail");
		ring->taken += to_end;
		published -= to_end;
		if (!published)
			return 0;
	}
}

/* What can be told from the header alone. */
static int ring_check(
	const struct ring *ring, const struct frame_header *header, struct error *error)
{
	if (ring->bye)
		return error_set(error, EPROTO, "ring: a frame behind the end of the session");
	if (header->kind != FRAME_POST && header->kind != FRAME_CALL &&
		header->kind != FRAME_BYE)
		return error_set(error, EPROTO, "ring: kind %u", header->kind);
	if (header->flags & ~FRAME_BULK)
		return error_set(error, EPROTO, "ring: flags 0x%x", header->flags);
	if (header->seq != ring->last + 1)
		return error_set(error, EPROTO, "ring: seq %llu where %llu is next",
			(unsigned long long)header->seq, (unsigned long long)ring->last + 1);
	if (header->body > FRAME_BODY_MAX || header->length < header->body)
		return error_set(error, EPROTO, "ring: body of %u in a frame of %u",
			header->body, header->length);
	if (!(header->flags & FRAME_BULK) && header->length > FRAME_BODY_MAX)
		return error_set(
			error, EPROTO, "ring: inline frame of %u bytes", header->length);
	if (header->length - header->body > ring->pinned_most)
		return error_set(error, EPROTO, "ring: payload of %u bytes",
			header->length - header->body);
	if (header->kind == FRAME_CALL && header->tag >= CHANNEL_SLOTS)
		return error_set(error, EPROTO, "ring: tag %u", header->tag);
	if (header->kind == FRAME_CALL && header->seq > ring->highest &&
		ring_waits(ring, header->tag))
		return error_set(error, EPROTO, "ring: tag %u twice", header->tag);
	return 0;
}

int ring_pop(
	struct ring *ring, unsigned char *buffer, struct ring_entry *entry, struct error *error)
{
	struct frame_header *header = &entry->header;
	uint64_t published = 0, need, inline_bytes;
	const unsigned char *at;
	struct frame_bulk bulk;
	int ret;

	ret = ring_next(ring, header, &published, error);
	/* Only padding came, and no acknowledgement will: it goes at once. */
	if (!ret && ring->taken != ring->released && !ring_in_flight(ring))
		return ring_acknowledge(ring, ring->last);
	if (ret <= 0)
		return ret;
	ret = ring_check(ring, header, error);
	if (ret < 0)
		return ret;

	at = ring->bytes + (ring->taken & (ring->size - 1)) + sizeof(*header);
	inline_bytes = header->flags & FRAME_BULK ? header->body : header->length;
	need = sizeof(*header) + inline_bytes;
	if (header->flags & FRAME_BULK)
		need += sizeof(bulk);
	need = (need + 15) & ~15ull;
	if (need > published || need > ring->size - (ring->taken & (ring->size - 1)))
		return error_set(error, EPROTO, "ring: an entry of %llu bytes, %llu are there",
			(unsigned long long)need, (unsigned long long)published);

	entry->bulk = NULL;
	entry->bulk_bytes = 0;
	if (header->flags & FRAME_BULK) {
		ring_copy(&bulk, at, sizeof(bulk));
		at += sizeof(bulk);
		if (bulk.length != header->length - header->body)
			return error_set(error, EPROTO,
				"ring: %u bulk bytes for a payload of %u", bulk.length,
				header->length - header->body);
		if (!bulk.segment && bulk.length > FRAME_PAYLOAD_MAX)
			return error_set(
				error, EPROTO, "ring: payload of %u bytes", bulk.length);
		entry->bulk =
			segments_out(ring->segments, bulk.segment, bulk.offset, bulk.length);
		if (!entry->bulk)
			return error_set(error, EPROTO,
				"ring: bulk of %u bytes at %llu of segment %u lies outside",
				bulk.length, (unsigned long long)bulk.offset, bulk.segment);
		entry->bulk_bytes = bulk.length;
		entry->segment = bulk.segment;
		header->flags = 0;
	}
	if (ring->counts)
		header->status = ring->counted;
	memcpy(buffer, header, sizeof(*header));
	ring_copy(buffer + sizeof(*header), at, inline_bytes);
	entry->bytes = (uint32_t)(sizeof(*header) + inline_bytes);

	ring->taken += need;
	ring->last = header->seq;
	ring->ends[header->seq & (ring->size / ENTRY_LEAST - 1)] = ring->taken;
	if (header->kind == FRAME_CALL) {
		ring->waiting[header->tag / 64] |= 1ull << header->tag % 64;
		ring->calls[header->tag] = header->seq;
	}
	ring->bye = header->kind == FRAME_BYE;
	return 1;
}

int ring_rewind(struct ring *ring, uint64_t taken)
{
	if (taken < ring->acknowledged || taken > ring->last)
		return -EPROTO;
	if (taken == ring->last)
		return 0;
	if (ring->highest < ring->last)
		ring->highest = ring->last;
	ring->taken = taken == ring->acknowledged
			      ? ring->released
			      : ring->ends[taken & (ring->size / ENTRY_LEAST - 1)];
	ring->last = taken;
	return 0;
}

/* A slot that is used again says 0 before it says that it is not answered. */
static void ring_adopt_waiting(
	struct ring *ring, uint64_t taken, const struct channel_slot *slots)
{
	memset(ring->waiting, 0, sizeof(ring->waiting));
	for (uint16_t tag = 0; tag < CHANNEL_SLOTS; tag++) {
		bool answered =
			atomic_load_explicit(&slots[tag].answered, memory_order_acquire);
		uint64_t call =
			atomic_load_explicit(&ring->page->calls[tag], memory_order_relaxed);

		if (answered || !call || call > taken)
			continue;
		ring->waiting[tag / 64] |= 1ull << tag % 64;
		ring->calls[tag] = call;
	}
}

int ring_adopt(struct ring *ring, uint64_t taken, const struct channel_slot *slots,
	unsigned char *buffer, struct error *error)
{
	struct frame_header first;
	struct ring_entry entry;
	uint64_t published;
	int ret = ring_next(ring, &first, &published, error);

	if (ret < 0)
		return ret;
	/* Everything was released, hence taken over. */
	ring->last = ring->acknowledged = ret ? first.seq - 1 : taken;
	if (ring->last > taken)
		return error_set(error, EPROTO, "ring: begins with %llu, the agent has %llu",
			(unsigned long long)first.seq, (unsigned long long)taken);
	ring->highest = taken;
	while (ring->last < taken) {
		ret = ring_pop(ring, buffer, &entry, error);
		if (ret < 0)
			return ret;
		if (!ret)
			return error_set(error, EPROTO,
				"ring: ends with %llu, the agent has %llu",
				(unsigned long long)ring->last, (unsigned long long)taken);
	}
	ring_adopt_waiting(ring, taken, slots);
	return 0;
}

int ring_acknowledge(struct ring *ring, uint64_t seq)
{
	uint64_t released;

	if (seq < ring->acknowledged || seq > ring->last)
		return -EPROTO;
	if (seq == ring->acknowledged && seq != ring->last)
		return 0;
	ring->acknowledged = seq;
	/* With nothing in flight padding that was taken goes too. */
	released = seq == ring->last ? ring->taken
				     : ring->ends[seq & (ring->size / ENTRY_LEAST - 1)];
	if (released != ring->released) {
		ring->released = released;
		atomic_store_explicit(&ring->page->head, released, memory_order_release);
		wait_fence();
		if (atomic_load_explicit(&ring->page->want_progress, memory_order_relaxed)) {
			atomic_fetch_add(&ring->page->progress, 1);
			wait_wake(&ring->page->progress);
		}
	}
	return 0;
}
