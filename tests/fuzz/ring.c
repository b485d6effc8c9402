/* SPDX-License-Identifier: Apache-2.0
 *
 * The ring's consumer on any bytes.  The input is a program: 0 writes bytes into the ring, 1
 * moves the tail, 2 takes, 3 acknowledges, 4 publishes the header of a frame that would be
 * next, 5 one that lies in a field, 6 writes one to the ring's start.  What must hold whatever
 * comes: the reader stays within what was published, hands out only memory of the arena, and
 * never releases what was not taken.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "transport/ring.h"

#define SIZE 1024u
#define ARENA 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct bench {
	struct channel_page page;
	unsigned char *bytes; /* of their own: a read beyond them is seen */
	unsigned char memory[3 * ARENA];
	struct segment own;
	struct segments segments;
	struct ring ring;
	uint64_t seq; /* of the last frame that was published by its header */
	unsigned char out[RING_ENTRY_MAX];
};

static void must(int truth)
{
	if (!truth)
		abort();
}

static int take(struct bench *b)
{
	uint64_t tail = atomic_load(&b->page.tail);
	struct ring_entry entry;
	int ret = ring_pop(&b->ring, b->out, &entry, NULL);

	must(tail - b->ring.taken <= SIZE || ret < 0);
	must(b->ring.taken - b->ring.released <= SIZE);
	must(b->page.head == b->ring.released);
	if (ret > 0) {
		const unsigned char *bulk = entry.bulk;

		must(entry.bytes <= RING_ENTRY_MAX);
		must(!entry.header.flags);
		must(entry.bytes + entry.bulk_bytes == 32 + (uint64_t)entry.header.length);
		must(!bulk || (bulk >= b->memory + ARENA &&
				      bulk + entry.bulk_bytes <= b->memory + 2 * ARENA));
	}
	return ret;
}

/* VALUE: a body of so many bytes, and of which kind the frame is; in LIES each bit is a field.
 * HERE: at the tail, which moves; else at the ring's start. */
static void publish(struct bench *b, uint16_t value, uint8_t lies, bool here)
{
	static const uint8_t kinds[] = {FRAME_POST, FRAME_CALL, FRAME_PAD, FRAME_BYE};
	uint64_t tail = atomic_load(&b->page.tail), at = here ? tail % SIZE : 0, need;
	struct frame_header header = {.body = value & 1023,
		.length = (value & 1023u) + (lies & 1 ? 512 : 0),
		.kind = kinds[value >> 10 & 3],
		.flags = value >> 12 & FRAME_BULK,
		.seq = ++b->seq + (lies >> 1 & 1),
		.tag = value >> 13 | (lies & 4 ? 0x8000 : 0),
		.magic = FRAME_MAGIC + (lies >> 3 & 1)};
	struct frame_bulk bulk = {
		.offset = ARENA + (lies & 16 ? 31 : 0), .length = lies & 16 ? 40 : 8};

	if (header.flags)
		header.length += bulk.length;
	need = sizeof(header) + header.body + (header.flags ? sizeof(bulk) : 0);
	if (header.kind == FRAME_PAD && !(lies & 1))
		need = SIZE - at;
	if (at + sizeof(header) <= SIZE)
		memcpy(b->bytes + at, &header, sizeof(header));
	if (header.flags && at + sizeof(header) + sizeof(bulk) <= SIZE)
		memcpy(b->bytes + at + sizeof(header), &bulk, sizeof(bulk));
	if (here)
		atomic_store(&b->page.tail, tail + ((need + 15) & ~15ull));
}

static void run(struct bench *b, const uint8_t *data, size_t n)
{
	while (n >= 3) {
		uint8_t what = data[0] & 7, lies = data[0] >> 3;
		uint16_t value = (uint16_t)(data[1] | data[2] << 8);

		data += 3;
		n -= 3;
		if (what == 0) { /* value: where; one byte says how many */
			size_t at = value % SIZE, length = n ? data[0] : 0;

			if (n)
				data++, n--;
			if (length > n)
				length = n;
			if (length > SIZE - at)
				length = SIZE - at;
			memcpy(b->bytes + at, data, length);
			data += length;
			n -= length;
		} else if (what == 1) {
			atomic_fetch_add(&b->page.tail, (uint64_t)(int16_t)value);
		} else if (what == 4) {
			publish(b, value, 0, true);
		} else if (what == 5) {
			publish(b, value, lies, true);
		} else if (what == 6) {
			publish(b, value, lies, false);
		} else if (what == 2) {
			if (take(b) < 0)
				return;
		} else if (what == 3 && ring_acknowledge(&b->ring, value) < 0) {
			return;
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct bench b;

	b.bytes = calloc(1, SIZE);
	b.own = (struct segment){.base = b.memory, .size = sizeof(b.memory)};
	b.segments.at[0] = &b.own;
	b.segments.arena = b.segments.arena_size = ARENA;
	b.seq = 0;
	memset(&b.page, 0, sizeof(b.page));
	if (b.bytes && !ring_consumer_init(&b.ring, &b.page, b.bytes, SIZE, &b.segments))
		run(&b, data, n);
	ring_fini(&b.ring);
	free(b.bytes);
	return 0;
}
