/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames of a hostile agent, in pieces: the first byte of the input is the size of a piece.
 * What must hold: only the bounce buffer, the slot that waits, counters and upcalls are
 * written.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sidecar/channel/replies.h"

#define RING 1024u
#define LAND 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct bench {
	struct channel_page page;
	struct channel_slot slots[CHANNEL_SLOTS];
	_Atomic uint64_t counters[CHANNEL_COUNTERS];
	struct channel_upcall upcalls[CHANNEL_UPCALLS];
	unsigned char memory[3 * LAND];
	struct segment own;
	struct segments segments;
	struct ring ring;
	struct replies replies;
	unsigned char bytes[RING];
	/* the link */
	struct link link;
	const uint8_t *data;
	size_t n, piece;
};

static void must(int truth)
{
	if (!truth)
		abort();
}

static ssize_t give(struct link *link, void *buffer, size_t size)
{
	struct bench *b = (struct bench *)((char *)link - offsetof(struct bench, link));

	if (size > b->piece)
		size = b->piece;
	if (size > b->n)
		size = b->n;
	memcpy(buffer, b->data, size);
	b->data += size;
	b->n -= size;
	return (ssize_t)size;
}

static const struct link_ops ops = {.receive = give};

/* As new, but for what is large and written before it is read (bodies, the buffer) or never
 * read (counters, upcalls, other slots than the one that waits): clearing all of it took 95 %
 * of the time. */
static void renew(struct bench *b)
{
	struct replies *r = &b->replies;

	memset(&b->page, 0, sizeof(b->page));
	memset(&b->slots[3], 0, sizeof(b->slots[3]));
	memset(b->memory, 0, sizeof(b->memory));
	memset(b->bytes, 0, sizeof(b->bytes));
	memset(r, 0, offsetof(struct replies, ahead));
	for (unsigned i = 0; i < REPLIES_AHEAD; i++)
		memset(&r->ahead[i], 0, offsetof(struct replies_frame, body));
	memset(&r->frame, 0, offsetof(struct replies_frame, body));
	r->in_payload = false;
	r->land = NULL;
	r->left = 0;
	r->at = r->n = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct bench *b; /* on the heap: what is written beside it is seen */

	if (!b) {
		b = aligned_alloc(_Alignof(struct bench), sizeof(*b));
		must(b != NULL);
		memset(b, 0, sizeof(*b));
	}
	if (n < 2)
		return 0;
	renew(b);
	b->link.ops = &ops;
	b->piece = data[0] ? data[0] : 4096;
	b->data = data + 1;
	b->n = n - 1;
	b->own = (struct segment){.base = b->memory, .size = sizeof(b->memory)};
	b->segments.at[0] = &b->own;
	b->segments.bounce = b->segments.bounce_size = LAND;
	must(!ring_consumer_init(&b->ring, &b->page, b->bytes, RING, &b->segments));
	b->ring.last = 5;
	b->ring.waiting[0] = 1 << 3;
	b->replies.page = &b->page;
	b->replies.slots = b->slots;
	b->replies.counters = b->counters;
	b->replies.upcalls = b->upcalls;
	b->replies.ring = &b->ring;
	b->replies.segments = &b->segments;
	while (replies_receive(&b->replies, &b->link, 4096, NULL) > 0)
		;
	for (size_t i = 0; i < LAND; i++)
		must(!b->memory[i] && !b->memory[2 * LAND + i]);
	for (int tag = 0; tag < CHANNEL_SLOTS; tag++)
		must(tag == 3 || !b->slots[tag].answered);
	must(b->ring.acknowledged <= 5);
	ring_fini(&b->ring);
	return 0;
}
