/* SPDX-License-Identifier: Apache-2.0 */
#include "sidecar/channel/replies.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "sidecar/stripes/stripes.h"
#include "transport/answer.h"

void replies_answer(struct replies *replies, const struct frame_header *header,
	const void *data, uint32_t bytes, uint32_t payload)
{
	ring_answered(replies->ring, header->tag);
	answer_slot(&replies->slots[header->tag], header, data, bytes, payload);
}

static int violation(struct error *error, const struct frame_header *header, const char *text)
{
	return error_set(error, EPROTO,
		"agent: %s (kind %u, tag %u, length %u, body %u, seq %llu)", text, header->kind,
		header->tag, header->length, header->body, (unsigned long long)header->seq);
}

/* What can be told from the header alone. */
static int replies_check(
	const struct replies *replies, const struct frame_header *header, struct error *error)
{
	uint32_t body = header->body;
	uint32_t payload = header->length - body;
	uint32_t least = 0, most = 0;

	if (header->magic != FRAME_MAGIC)
		return violation(error, header, "wrong magic");
	if (header->flags & ~FRAME_STRIPE_MASK || (header->flags && !payload))
		return violation(error, header, "flags");
	if (header->length < body || payload > FRAME_PAYLOAD_MAX)
		return violation(error, header, "forged length");
	switch (header->kind) {
	case FRAME_REPLY:
		if (!ring_waits(replies->ring, header->tag) &&
			!(replies->again && header->tag < CHANNEL_SLOTS))
			return violation(error, header, "a reply that nobody waits for");
		least = payload ? sizeof(struct frame_destination) : 0;
		most = payload ? REPLIES_BODY_MAX : CHANNEL_SLOT_BODY;
		break;
	case FRAME_DATA: least = most = sizeof(struct frame_destination); break;
	case FRAME_UPDATE: least = most = sizeof(struct frame_update); break;
	case FRAME_UPCALL: least = most = sizeof(struct frame_upcall); break;
	case FRAME_LOST: most = CHANNEL_SLOT_BODY; break;
	case FRAME_ACK:
	case FRAME_PING:
	case FRAME_PONG: break;
	default: return violation(error, header, "unknown kind");
	}
	if (body < least || body > most)
		return violation(error, header, "body of a wrong size");
	if (payload && header->kind != FRAME_REPLY && header->kind != FRAME_DATA)
		return violation(error, header, "a payload where none belongs");
	if (header->seq < replies->ring->acknowledged || header->seq > replies->ring->last)
		return violation(error, header, "acknowledges what it cannot have");
	return 0;
}

/* 1: there was no room, the frame stays. */
static int take_upcall(
	struct replies *replies, const struct replies_frame *frame, struct error *error)
{
	uint32_t number = (uint32_t)replies->numbered + 1;
	struct frame_upcall upcall;
	int ret;

	if (replies->again && replies->upcall_tail &&
		replies->upcalls[(replies->upcall_tail - 1) % CHANNEL_UPCALLS].frame == number)
		return 0;
	memcpy(&upcall, frame->body, sizeof(upcall));
	ret = answer_upcall(
		replies->page, replies->upcalls, &replies->upcall_tail, number, &upcall, error);
	replies->upcalls_full = ret == 1;
	return ret;
}

static int take_update(
	struct replies *replies, const struct replies_frame *frame, struct error *error)
{
	struct frame_update update;

	memcpy(&update, frame->body, sizeof(update));
	return answer_update(replies->page, replies->counters, &update, error);
}

static void take_lost(struct replies *replies, const struct replies_frame *frame)
{
	size_t n = frame->header.body;

	if (n >= sizeof(replies->text))
		n = sizeof(replies->text) - 1;
	memcpy(replies->text, frame->body, n);
	replies->text[n] = 0;
	for (char *c = replies->text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			*c = '?';
	replies->status = frame->header.status;
	replies->lost = true;
}

/* The frame's work is done: a sidecar that comes after us begins behind it. */
static void replies_count(struct replies *replies, uint8_t kind)
{
	if (kind == FRAME_PING || kind == FRAME_PONG)
		return;
	replies->numbered++;
	replies->again = false;
	atomic_store_explicit(
		&replies->page->carry.counted, replies->numbered, memory_order_release);
}

/* Before the program can see it: once it does, slot and place are its own. */
static void replies_put(struct replies *replies, uint16_t tag)
{
	struct channel_carry *carry = &replies->page->carry;

	atomic_store_explicit(
		&carry->giving_call, replies->ring->calls[tag], memory_order_relaxed);
	atomic_store_explicit(&carry->giving, replies->numbered + 1, memory_order_release);
}

/* Header and body are here, and the payload has landed. 1: no room, the frame stays. */
static int replies_finish(
	struct replies *replies, const struct replies_frame *frame, struct error *error)
{
	const struct frame_header *header = &frame->header;
	uint32_t payload = header->length - header->body;
	uint32_t skip = payload ? (uint32_t)sizeof(struct frame_destination) : 0;
	int ret = 0;

	switch (header->kind) {
	case FRAME_REPLY:
		if (frame->done)
			break;
		if (replies->timing)
			timing_answered(replies->timing, header->tag);
		replies_put(replies, header->tag);
		replies_answer(
			replies, header, frame->body + skip, header->body - skip, payload);
		break;
	case FRAME_UPDATE: ret = take_update(replies, frame, error); break;
	case FRAME_UPCALL: ret = take_upcall(replies, frame, error); break;
	case FRAME_LOST: take_lost(replies, frame); break;
	case FRAME_PING: replies->ping = true; break;
	default: break;
	}
	if (ret)
		return ret;
	replies->frames++;
	if (replies->timing)
		timing_acknowledged(replies->timing, header->seq);
	replies->landed += payload;
	if (ring_acknowledge(replies->ring, header->seq))
		return violation(error, header, "acknowledges what it cannot have");
	replies_count(replies, header->kind);
	if (payload && replies->stripes && !frame->stripe)
		stripes_came(replies->stripes, payload);
	return 0;
}

int replies_adopt(struct replies *replies, const struct channel_carry *carry)
{
	const struct channel_page *page = replies->page;
	uint64_t head = atomic_load_explicit(&page->upcall_head, memory_order_relaxed);

	replies->upcall_tail = atomic_load_explicit(&page->upcall_tail, memory_order_relaxed);
	replies->numbered = atomic_load_explicit(&carry->counted, memory_order_relaxed);
	replies->given = atomic_load_explicit(&carry->giving, memory_order_relaxed);
	replies->given_call = atomic_load_explicit(&carry->giving_call, memory_order_relaxed);
	replies->again = true;
	return replies->upcall_tail - head > CHANNEL_UPCALLS ? -EPROTO : 0;
}

void replies_drop_input(struct replies *replies)
{
	replies->at = replies->n = 0;
	replies->first = replies->count = 0;
	replies->in_payload = replies->upcalls_full = replies->ping = replies->losing = false;
	replies->overlaps = false;
}

/* An answer that came before, though nobody could count it any more: the program has it, and
 * may have used slot and place again since, for a call that this answer does not know. */
static bool replies_had(const struct replies *replies, const struct frame_header *header)
{
	if (!replies->again || header->kind != FRAME_REPLY)
		return false;
	return !ring_waits(replies->ring, header->tag) ||
	       (replies->given == replies->numbered + 1 &&
		       replies->given_call != replies->ring->calls[header->tag]);
}

/* Whether another stripe is still to bring bytes to the same place: of copies to one place the
 * last stays. What comes by one stripe lands in its order. */
static bool replies_overlap(
	const struct replies *replies, const struct frame_destination *destination, uint32_t n)
{
	for (uint32_t i = 0; i < replies->count; i++) {
		const struct replies_frame *ahead =
			&replies->ahead[(replies->first + i) % REPLIES_AHEAD];
		struct frame_destination theirs;

		if (!ahead->stripe || ahead->done || ahead->stripe == replies->frame.stripe)
			continue;
		memcpy(&theirs, ahead->body, sizeof(theirs));
		if (theirs.segment == destination->segment &&
			theirs.offset < destination->offset + n &&
			destination->offset <
				theirs.offset + (ahead->header.length - ahead->header.body) &&
			!stripes_landed(replies->stripes, ahead->stripe, ahead->ticket))
			return true;
	}
	return false;
}

/* 1: it has to wait, and stays. */
static int replies_land(struct replies *replies, struct error *error)
{
	struct replies_frame *frame = &replies->frame;
	struct frame_destination destination;
	uint32_t payload = frame->header.length - frame->header.body;

	memcpy(&destination, frame->body, sizeof(destination));
	replies->land = frame->done ? NULL
				    : segments_in(replies->segments, destination.segment,
					      destination.offset, payload);
	if (!replies->land && !frame->done)
		return error_set(error, EPROTO,
			"agent: %u bytes for %llu of segment %u, which is no bounce buffer",
			payload, (unsigned long long)destination.offset, destination.segment);
	replies->overlaps = replies->land && replies_overlap(replies, &destination, payload);
	if (replies->overlaps)
		return 1;
	if (!frame->stripe) {
		replies->left = payload;
		replies->in_payload = true;
	} else if (!replies->stripes || stripes_await(replies->stripes, frame->stripe,
						replies->land, payload, &frame->ticket)) {
		return violation(error, &frame->header, "a stripe that is not open");
	}
	return 0;
}

/* The frame is here, but for what a stripe brings. 1: no room, it stays. */
static int replies_deliver(struct replies *replies, struct error *error)
{
	struct replies_frame *frame = &replies->frame, *to;

	if (!replies->count && !frame->stripe)
		return replies_finish(replies, frame, error);
	switch (frame->header.kind) {
	case FRAME_PING: replies->ping = true; return 0;
	case FRAME_PONG: return 0;
	case FRAME_LOST: replies->losing = true; break;
	default: break;
	}
	to = &replies->ahead[(replies->first + replies->count++) % REPLIES_AHEAD];
	memcpy(to, frame, offsetof(struct replies_frame, body) + frame->header.body);
	return 0;
}

bool replies_ready(const struct replies *replies)
{
	const struct replies_frame *frame = &replies->ahead[replies->first % REPLIES_AHEAD];

	return replies->count && !replies->upcalls_full &&
	       (!frame->stripe ||
		       stripes_landed(replies->stripes, frame->stripe, frame->ticket));
}

bool replies_paused(const struct replies *replies)
{
	return replies->upcalls_full || replies->overlaps || replies->lost || replies->losing ||
	       replies->count == REPLIES_AHEAD || (replies->count && replies->again);
}

/* The frames ahead whose payloads are here, in their order. Bytes that stripes brought for
 * them, or -EPROTO. */
static ssize_t replies_finish_ready(struct replies *replies, struct error *error)
{
	ssize_t landed = 0;

	while (replies_ready(replies) && !replies->lost) {
		const struct replies_frame *frame =
			&replies->ahead[replies->first % REPLIES_AHEAD];
		const struct frame_header *header = &frame->header;
		int ret;

		if (header->kind == FRAME_REPLY && !frame->done &&
			!ring_waits(replies->ring, header->tag))
			return violation(error, header, "a reply that nobody waits for");
		ret = replies_finish(replies, frame, error);
		if (ret)
			return ret < 0 ? ret : landed;
		if (frame->stripe)
			landed += header->length - header->body;
		replies->first++;
		replies->count--;
	}
	/* A worker that ends waits for its stripes, but not for ever. */
	if (replies->losing && !replies->lost && stripes_broken(replies->stripes))
		take_lost(replies,
			&replies->ahead[(replies->first + replies->count - 1) % REPLIES_AHEAD]);
	return landed;
}

static void replies_drink(struct replies *replies)
{
	size_t n = replies->n - replies->at;

	if (n > replies->left)
		n = replies->left;
	if (replies->land) {
		memcpy(replies->land, replies->buffer + replies->at, n);
		replies->land += n;
	}
	replies->at += n;
	replies->left -= (uint32_t)n;
}

/* Parses what is in the buffer. 0 or -EPROTO. */
static int replies_parse(struct replies *replies, struct error *error)
{
	struct replies_frame *frame = &replies->frame;

	for (;;) {
		struct frame_header header;
		size_t have;
		int ret = 0;

		if (replies->in_payload) {
			replies_drink(replies);
			if (replies->left)
				return 0;
			replies->in_payload = false;
			ret = replies_deliver(replies, error);
			if (ret < 0)
				return ret;
		}
		have = replies->n - replies->at;
		if (have < sizeof(header) || replies_paused(replies))
			return 0;
		memcpy(&header, replies->buffer + replies->at, sizeof(header));
		ret = replies_check(replies, &header, error);
		if (ret < 0)
			return ret;
		if (have < sizeof(header) + header.body)
			return 0;
		frame->header = header;
		frame->stripe = (header.flags & FRAME_STRIPE_MASK) >> FRAME_STRIPE_SHIFT;
		frame->done = replies_had(replies, &header);
		memcpy(frame->body, replies->buffer + replies->at + sizeof(header),
			header.body);
		if (header.length > header.body)
			ret = replies_land(replies, error);
		if (!ret && !replies->in_payload)
			ret = replies_deliver(replies, error);
		if (ret)
			return ret < 0 ? ret : 0;
		replies->at += sizeof(header) + header.body;
	}
}

/* Where the next bytes go: the payload's destination while a payload is on its way, else the
 * buffer. */
static ssize_t replies_read(struct replies *replies, struct link *link)
{
	ssize_t got;

	if (replies->in_payload && replies->land && replies->at == replies->n) {
		got = link_receive(link, replies->land, replies->left);
		if (got > 0) {
			replies->land += got;
			replies->left -= (uint32_t)got;
		}
		return got;
	}
	memmove(replies->buffer, replies->buffer + replies->at, replies->n - replies->at);
	replies->n -= replies->at;
	replies->at = 0;
	got = link_receive(
		link, replies->buffer + replies->n, sizeof(replies->buffer) - replies->n);
	if (got > 0)
		replies->n += (size_t)got;
	return got;
}

ssize_t replies_receive(
	struct replies *replies, struct link *link, size_t budget, struct error *error)
{
	size_t total = 0;
	ssize_t ret;

	if (replies->upcalls_full || replies->count) {
		replies->upcalls_full = replies->overlaps = false;
		ret = replies_finish_ready(replies, error);
		if (ret < 0)
			return ret;
		total = (size_t)ret;
		ret = replies_parse(replies, error);
		if (ret < 0)
			return ret;
	}
	while (total < budget && !replies_paused(replies)) {
		ssize_t got = replies_read(replies, link);

		if (got == -EAGAIN)
			break;
		replies->closed = !got;
		if (!got)
			return error_set(error, ECONNRESET, "the agent closed the connection");
		if (got < 0)
			return error_set(error, (int)-got, "the connection to the agent broke");
		total += (size_t)got;
		replies->bytes += (size_t)got;
		ret = replies_parse(replies, error);
		if (ret < 0)
			return ret;
		/* Less than was asked for: the socket is empty, spare the call that says so. */
		if (!replies->in_payload && replies->n < sizeof(replies->buffer) / 2)
			break;
	}
	return (ssize_t)total;
}
