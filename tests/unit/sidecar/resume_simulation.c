/* SPDX-License-Identifier: Apache-2.0
 *
 * Both ends of a resumed session without a wire: the ring and the replies of the sidecar, the
 * window of a worker, and between them bytes that arrive in pieces or, after a cut at any byte,
 * not at all.  A seed is a schedule.  What must hold in each: a command is executed once and in
 * order, each call gets its own answer, a payload is what was sent when it lands, and after the
 * last cut everything comes to an end.  Where the window was made to let go of answers, a cut
 * may end the session, and that is told.
 *
 *     resume_simulation [SEEDS [FIRST]]        FIRST is printed where a seed fails
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu-agent/worker/staging/staging.h"
#include "gpu-agent/worker/reply/send_window.h"
#include "sidecar/channel/replies.h"
#include "transport/ring.h"

#define RING (16u * 1024)
#define LAND (64u * 1024)
#define WIRE (1u << 20)
#define OPERATIONS 300 /* a seed */
#define INPUT (64u * 1024)
#define RANGES 64

#define MUST(condition)                                                                        \
	do {                                                                                   \
		if (!(condition)) {                                                            \
			fprintf(stderr, "seed %llu: line %d: %s\n", (unsigned long long)seed,  \
				__LINE__, #condition);                                         \
			exit(1);                                                               \
		}                                                                              \
	} while (0)

static uint64_t seed, state;

static uint32_t chance(uint32_t n)
{
	state += 0x9e3779b97f4a7c15ull;
	uint64_t z = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ull;

	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (uint32_t)((z ^ (z >> 31)) >> 16) % n;
}

struct wire {
	size_t at, n;
	unsigned char bytes[WIRE];
};

static struct wire commands, answers;

static void wire_put(struct wire *wire, const void *bytes, size_t n)
{
	if (wire->at == wire->n)
		wire->at = wire->n = 0;
	MUST(wire->n + n <= WIRE);
	memcpy(wire->bytes + wire->n, bytes, n);
	wire->n += n;
}

static size_t wire_get(struct wire *wire, void *bytes, size_t n)
{
	if (n > wire->n - wire->at)
		n = wire->n - wire->at;
	memcpy(bytes, wire->bytes + wire->at, n);
	wire->at += n;
	return n;
}

/* --- the sidecar, and the program before it ----------------------------------------------- */

static _Alignas(64) struct channel_page page;
static _Alignas(64) struct channel_slot slots[CHANNEL_SLOTS];
static _Atomic uint64_t counters[CHANNEL_COUNTERS];
static struct channel_upcall upcalls[CHANNEL_UPCALLS];
static unsigned char ring_bytes[RING], land[LAND];
static struct segment own = {.base = land, .size = sizeof(land)};
static struct segments segments;
static struct ring ring;
static struct replies replies;
static struct error error;
static uint32_t made;			   /* frames by the program, numbered from 1 */
static uint32_t slot_of[CHANNEL_SLOTS];	   /* which waits there; 0: none */
static uint32_t answered, calls, upcalled; /* upcalls in order */
static bool cut;

static ssize_t pieces(struct link *link, void *buffer, size_t n)
{
	size_t got = wire_get(&answers, buffer, 1 + chance((uint32_t)(n < 3000 ? n : 3000)));

	(void)link;
	return got ? (ssize_t)got : -EAGAIN;
}

static const struct link_ops pieces_ops = {.receive = pieces};
static struct link sidecar_link = {.ops = &pieces_ops};

static unsigned char byte_of(uint32_t number, uint32_t at)
{
	return (unsigned char)(number * 31 + at * 7);
}

/* A post, or a call of which some want a payload. */
static void program_makes(void)
{
	uint64_t tail = atomic_load(&page.tail), head = atomic_load(&page.head);
	uint32_t body = 8 + chance(200), tag = chance(CHANNEL_SLOTS);
	uint64_t need = (sizeof(struct frame_header) + body + 15) & ~15ull;
	uint64_t to_end = RING - tail % RING, skip = to_end < need ? to_end : 0;
	struct frame_header header = {
		.kind = chance(2) && !slot_of[tag] ? FRAME_CALL : FRAME_POST,
		.magic = FRAME_MAGIC,
		.length = body,
		.body = body,
		.seq = made + 1,
	};

	if (made == OPERATIONS || tail - head + skip + need > RING)
		return;
	if (skip) {
		struct frame_header pad = {.kind = FRAME_PAD, .magic = FRAME_MAGIC};

		if (to_end >= sizeof(pad))
			memcpy(ring_bytes + tail % RING, &pad, sizeof(pad));
		tail += skip;
	}
	made++;
	if (header.kind == FRAME_CALL) {
		header.tag = (uint16_t)tag;
		slot_of[tag] = made;
		calls++;
		atomic_store(&slots[tag].answered, 0);
	}
	memcpy(ring_bytes + tail % RING, &header, sizeof(header));
	memset(ring_bytes + tail % RING + sizeof(header), (int)(made & 0xff), body);
	atomic_store(&page.tail, tail + need);
}

/* What came is what was asked for. */
static void program_looks(void)
{
	uint64_t head = atomic_load(&page.upcall_head);

	for (uint32_t tag = 0; tag < CHANNEL_SLOTS; tag++) {
		const struct channel_slot *slot = &slots[tag];

		if (!slot_of[tag] || !atomic_load(&slot->answered))
			continue;
		MUST(slot->status == slot_of[tag]);
		for (uint32_t i = 0; i < slot->payload; i++)
			MUST(land[tag * 512 + i] == byte_of(slot_of[tag], i));
		slot_of[tag] = 0;
		answered++;
	}
	for (; head != atomic_load(&page.upcall_tail); head++)
		MUST(upcalls[head % CHANNEL_UPCALLS].value == ++upcalled);
	atomic_store(&page.upcall_head, head);
}

static void sidecar_sends(void)
{
	static unsigned char buffer[RING_ENTRY_MAX];
	struct ring_entry entry;
	int ret;

	ring.counted = (uint32_t)replies.numbered;
	ret = ring_pop(&ring, buffer, &entry, &error);
	MUST(ret >= 0);
	if (ret)
		wire_put(&commands, buffer, entry.bytes);
}

static void sidecar_tells(void)
{
	struct frame_header taken = {
		.kind = FRAME_TAKEN, .magic = FRAME_MAGIC, .seq = replies.numbered};

	wire_put(&commands, &taken, sizeof(taken));
}

static void sidecar_receives(void)
{
	MUST(replies_receive(&replies, &sidecar_link, 1 + chance(4000), &error) >= 0);
}

/* --- the worker --------------------------------------------------------------------------- */

static struct send_window window;
static uint64_t taken, raised; /* commands; upcalls made */
static uint32_t executed[OPERATIONS + 1];
static unsigned char input[INPUT];
static size_t have;
static unsigned char staging[RANGES][512];
static struct staging_range ranges[RANGES];
static bool busy[RANGES];

void staging_done(struct staging_range *range)
{
	MUST(busy[range - ranges]);
	busy[range - ranges] = false;
	memset(staging[range - ranges], 0xee, sizeof(staging[0])); /* nobody may send it now */
}

static void worker_answers(const struct frame_header *command)
{
	struct frame_header h = {
		.kind = FRAME_REPLY,
		.magic = FRAME_MAGIC,
		.tag = command->tag,
		.status = (uint32_t)command->seq,
		.seq = taken,
	};
	uint32_t range = chance(RANGES), n = 1 + chance(512);
	struct frame_destination destination = {.offset = command->tag * 512u};

	if (busy[range] || chance(2)) {
		send_window_add(&window, &h, NULL);
		return;
	}
	busy[range] = true;
	for (uint32_t i = 0; i < n; i++)
		staging[range][i] = byte_of((uint32_t)command->seq, i);
	h.body = sizeof(destination);
	h.length = h.body + n;
	send_window_add(&window, &h, &destination);
	send_window_payload(&window, staging[range], n, &ranges[range], false);
}

static void worker_says(uint8_t kind)
{
	struct frame_header h = {.kind = kind, .magic = FRAME_MAGIC, .seq = taken};
	struct frame_update update = {.index = 7, .value = taken};
	struct frame_upcall upcall = {.what = 1};

	if (!send_window_room(&window) || raised - upcalled > CHANNEL_UPCALLS / 2)
		return;
	if (kind == FRAME_UPCALL)
		upcall.value = ++raised;
	h.body = h.length = kind == FRAME_UPDATE   ? sizeof(update)
			    : kind == FRAME_UPCALL ? sizeof(upcall)
						   : 0;
	send_window_add(&window, &h, kind == FRAME_UPDATE ? (void *)&update : (void *)&upcall);
}

static void worker_takes(const struct frame_header *h)
{
	uint32_t count = h->kind == FRAME_TAKEN ? (uint32_t)h->seq : h->status;

	MUST(!send_window_counted(&window, count));
	if (h->kind == FRAME_TAKEN)
		return;
	MUST(h->seq == taken + 1);
	taken = h->seq;
	executed[taken]++;
	if (h->kind == FRAME_CALL)
		worker_answers(h);
	else if (!chance(4))
		worker_says(FRAME_ACK);
}

static void worker_receives(void)
{
	struct frame_header h;
	size_t at = 0;

	if (!send_window_room(&window))
		return;
	have += wire_get(&commands, input + have, 1 + chance(2000));
	while (have - at >= sizeof(h) && send_window_room(&window)) {
		memcpy(&h, input + at, sizeof(h));
		if (have - at < sizeof(h) + h.length)
			break;
		at += sizeof(h) + h.length;
		worker_takes(&h);
	}
	memmove(input, input + at, have - at);
	have -= at;
}

static void worker_sends(void)
{
	struct iovec iov[8];
	int count = send_window_next(&window, iov, 8);
	size_t all = 0, n, left;

	for (int i = 0; i < count; i++)
		all += iov[i].iov_len;
	if (!all)
		return;
	left = n = 1 + chance((uint32_t)all);
	for (int i = 0; left; i++) {
		size_t one = left < iov[i].iov_len ? left : iov[i].iov_len;

		wire_put(&answers, iov[i].iov_base, one);
		left -= one;
	}
	send_window_sent(&window, n);
}

/* --- cuts --------------------------------------------------------------------------------- */

/* What is on its way arrives up to some byte. */
static void the_wire_breaks(void)
{
	for (uint32_t i = chance(4); i; i--)
		chance(2) ? worker_receives() : sidecar_receives();
	commands.at = commands.n = answers.at = answers.n = 0;
	have = 0;
	replies_drop_input(&replies);
	cut = true;
}

/* False: the session is over, since answers are gone. */
static bool the_client_comes_back(void)
{
	/* An attempt may come to nothing at any point: after the worker was told, too. */
	int ret = send_window_rewind(&window, (uint32_t)replies.numbered);

	if (ret == -ENODATA && window.drops)
		return false;
	MUST(!ret);
	if (!chance(3))
		return true;
	MUST(!ring_rewind(&ring, taken));
	cut = false;
	return true;
}

/* --- a seed ------------------------------------------------------------------------------- */

static void begin(void)
{
	struct send_window fresh = {
		.bytes = window.bytes, .segments = window.segments, .keeps = true};

	state = seed * 0x2545f4914f6cdd1dull + 1;
	memset(&page, 0, sizeof(page));
	memset(slots, 0, sizeof(slots));
	memset(slot_of, 0, sizeof(slot_of));
	memset(executed, 0, sizeof(executed));
	memset(busy, 0, sizeof(busy));
	commands.at = commands.n = answers.at = answers.n = have = 0;
	made = answered = calls = upcalled = 0;
	taken = raised = 0;
	cut = false;
	segments = (struct segments){.bounce = 0, .bounce_size = LAND};
	segments.at[0] = &own;
	ring_fini(&ring);
	MUST(!ring_consumer_init(&ring, &page, ring_bytes, RING, &segments));
	ring.counts = true;
	memset(&replies, 0, sizeof(replies));
	replies.page = &page;
	replies.slots = slots;
	replies.counters = counters;
	replies.upcalls = upcalls;
	replies.ring = &ring;
	replies.segments = &segments;
	/* Near the end of 32 bits in some, where numbers begin anew. */
	if (!chance(4)) {
		replies.numbered = UINT32_MAX - chance(200);
		fresh.numbered = fresh.counted = (uint32_t)replies.numbered;
	}
	window = fresh;
}

static bool step(bool breaks, bool drops)
{
	uint32_t what = chance(100);

	if (cut)
		return the_client_comes_back();
	if (what < 25)
		program_makes();
	else if (what < 45)
		sidecar_sends();
	else if (what < 62)
		worker_receives();
	else if (what < 77)
		worker_sends();
	else if (what < 92)
		sidecar_receives();
	else if (what < 94)
		sidecar_tells();
	else if (what < 98)
		worker_says((const uint8_t[]){
			FRAME_ACK, FRAME_PING, FRAME_UPDATE, FRAME_UPCALL}[chance(4)]);
	else if (what < 99 && drops)
		send_window_drop(&window);
	else if (breaks)
		the_wire_breaks();
	program_looks();
	return true;
}

static bool all_done(void)
{
	return made == OPERATIONS && taken == OPERATIONS && answered == calls &&
	       !send_window_waits(&window) && upcalled == raised &&
	       (uint32_t)replies.numbered == window.numbered;
}

/* 1: the session went to its end; 0: it was lost where that may be. */
static int run_seed(void)
{
	bool drops;
	uint32_t steps;

	begin();
	drops = !chance(8);
	for (steps = 0; steps < 3000; steps++)
		if (!step(true, drops))
			return 0;
	for (; !all_done(); steps++) {
		MUST(steps < 100000);
		if (!step(false, false))
			return 0;
	}
	for (uint32_t i = 1; i <= OPERATIONS; i++)
		MUST(executed[i] == 1);
	/* Nothing is kept that the sidecar has counted. */
	MUST(!send_window_counted(&window, (uint32_t)replies.numbered));
	MUST(!send_window_count(&window));
	for (uint32_t i = 0; i < RANGES; i++)
		MUST(!busy[i]);
	return 1;
}

int main(int argc, char **argv)
{
	uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000, whole = 0;
	uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;

	if (send_window_open(&window))
		return 1;
	for (seed = first; seed < first + seeds; seed++)
		whole += (uint64_t)run_seed();
	printf("%llu schedules, %llu to their end\n", (unsigned long long)seeds,
		(unsigned long long)whole);
	return whole * 10 < seeds * 8; /* a few are lost, as they must be */
}
