/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of the sidecar's reader share: a program's memory, with guards about the place
 * that a reply may go to, and a link whose other end is the test.
 */
#ifndef VCUDA_TESTS_UNIT_SIDECAR_REPLIES_H
#define VCUDA_TESTS_UNIT_SIDECAR_REPLIES_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "sidecar/channel/replies.h"
#include "sidecar/stripes/stripes.h"
#include "transport/socket_link.h"

#define RING 4096u
#define LAND 256u

struct bench {
	struct channel_page page;
	struct channel_slot slots[CHANNEL_SLOTS];
	_Atomic uint64_t counters[CHANNEL_COUNTERS];
	struct channel_upcall upcalls[CHANNEL_UPCALLS];
	unsigned char bytes[RING];
	unsigned char memory[3 * LAND]; /* guard, destination, guard */
	struct segment own;
	struct segments segments;
	struct ring ring;
	struct replies replies;
	struct link *link;
	int agent;
	struct error error;
};

static inline int setup(void **state)
{
	struct bench *b = aligned_alloc(_Alignof(struct bench), sizeof(*b));
	int in[2], out[2];

	assert_non_null(b);
	memset(b, 0, sizeof(*b));
	b->own = (struct segment){.base = b->memory, .size = sizeof(b->memory)};
	b->segments.at[0] = &b->own;
	b->segments.bounce = LAND;
	b->segments.bounce_size = LAND;
	ring_consumer_init(&b->ring, &b->page, b->bytes, RING, &b->segments);
	b->ring.last = 9;
	b->ring.waiting[0] = 1 << 3;
	b->replies.page = &b->page;
	b->replies.slots = b->slots;
	b->replies.counters = b->counters;
	b->replies.upcalls = b->upcalls;
	b->replies.ring = &b->ring;
	b->replies.segments = &b->segments;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, in) ||
		socketpair(AF_UNIX, SOCK_STREAM, 0, out) ||
		stream_open(in[0], out[0], &b->link, &b->error))
		return -1;
	b->agent = in[1];
	close(out[1]);
	*state = b;
	return 0;
}

static inline int teardown(void **state)
{
	struct bench *b = *state;

	link_close(b->link);
	close(b->agent);
	ring_fini(&b->ring);
	free(b);
	return 0;
}

/* REPLY to tag 3 with a destination, a reply struct and 100 bytes of payload. */
static inline size_t make_reply(unsigned char *frame)
{
	struct frame_header header = {
		.length = 16 + 8 + 100,
		.body = 16 + 8,
		.kind = FRAME_REPLY,
		.tag = 3,
		.seq = 9,
		.status = 2,
		.deferred = 5,
		.magic = FRAME_MAGIC,
	};
	struct frame_destination destination = {.offset = LAND + 10};

	memcpy(frame, &header, sizeof(header));
	memcpy(frame + 32, &destination, sizeof(destination));
	memcpy(frame + 48, "12345678", 8);
	memset(frame + 56, 'p', 100);
	return 156;
}

static inline void deliver(struct bench *b, const void *bytes, size_t n)
{
	assert_int_equal(send(b->agent, bytes, n, 0), (ssize_t)n);
}

static inline ssize_t receive(struct bench *b)
{
	return replies_receive(&b->replies, b->link, 1 << 20, &b->error);
}

static inline void assert_guards(const struct bench *b)
{
	for (size_t i = 0; i < LAND; i++) {
		assert_int_equal(b->memory[i], 0);
		assert_int_equal(b->memory[2 * LAND + i], 0);
	}
}

static inline void assert_answered(const struct bench *b)
{
	const struct channel_slot *slot = &b->slots[3];

	assert_int_equal(slot->answered, 1);
	assert_int_equal(slot->status, 2);
	assert_int_equal(slot->deferred, 5);
	assert_int_equal(slot->seq, 9);
	assert_int_equal(slot->body, 8);
	assert_memory_equal(slot->data, "12345678", 8);
	assert_int_equal(slot->payload, 100);
	for (size_t i = 0; i < LAND; i++)
		assert_int_equal(b->memory[LAND + i], i >= 10 && i < 110 ? 'p' : 0);
	assert_guards(b);
	assert_false(ring_waits(&b->ring, 3));
}

#endif
