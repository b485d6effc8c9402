/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/segments.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>

uint64_t segments_layout(
	struct channel_page *page, uint64_t ring, uint64_t arena, uint64_t bounce)
{
	uint64_t at = 4096;

	page->slots = at;
	at += CHANNEL_SLOTS * sizeof(struct channel_slot);
	page->counters = at;
	at += CHANNEL_COUNTERS * sizeof(uint64_t);
	page->upcalls = at;
	at += CHANNEL_UPCALLS * sizeof(struct channel_upcall);
	page->ring = at;
	page->ring_size = ring;
	at += ring;
	page->arena = at;
	page->arena_size = arena;
	at += arena;
	page->bounce = at;
	page->bounce_size = bounce;
	at += bounce;
	page->size = at;
	return at;
}

static void *segments_find(const struct segments *segments, uint32_t number, uint64_t start,
	uint64_t size, uint64_t offset, uint64_t length)
{
	const struct segment *segment;

	if (number > SEGMENTS_MAX)
		return NULL;
	segment = segments->at[number];
	if (!segment)
		return NULL;
	if (number) {
		start = 0;
		size = segment->size;
	}
	if (offset < start || offset - start > size || length > size - (offset - start))
		return NULL;
	return segment->base + offset;
}

void *segments_out(
	const struct segments *segments, uint32_t number, uint64_t offset, uint64_t length)
{
	return segments_find(
		segments, number, segments->arena, segments->arena_size, offset, length);
}

void *segments_in(
	const struct segments *segments, uint32_t number, uint64_t offset, uint64_t length)
{
	return segments_find(
		segments, number, segments->bounce, segments->bounce_size, offset, length);
}

int segments_put(struct segments *segments, uint32_t number, struct segment *segment)
{
	if (!number || number > SEGMENTS_MAX || segments->at[number])
		return -EINVAL;
	segments->at[number] = segment;
	segments->pinned++;
	segments->pinned_bytes += segment->size;
	return 0;
}

int segments_add(struct segments *segments, struct segment *segment)
{
	for (int i = 1; i <= SEGMENTS_MAX; i++) {
		if (segments->at[i])
			continue;
		segments_put(segments, (uint32_t)i, segment);
		return i;
	}
	return -ENOSPC;
}

int segments_remove(struct segments *segments, uint32_t number)
{
	struct segment *segment;

	if (!number || number > SEGMENTS_MAX || !segments->at[number])
		return -ENOENT;
	segment = segments->at[number];
	segment->next = segments->closing;
	segments->closing = segment;
	/* The guard of a stripe's thread must find it here or there at any moment. */
	__atomic_store_n(&segments->at[number], NULL, __ATOMIC_RELEASE);
	segments->pinned--;
	segments->pinned_bytes -= segment->size;
	return 0;
}

/* --- the guard --- */

static __thread const struct segments *guarded;
static __thread volatile sig_atomic_t broken;

static bool guard_holds(const struct segment *segment, const unsigned char *address)
{
	return segment && address >= segment->base && address < segment->base + segment->size;
}

static bool guard_knows(const unsigned char *address)
{
	if (!guarded)
		return false;
	for (int i = 0; i <= SEGMENTS_MAX; i++)
		if (guard_holds(guarded->at[i], address))
			return true;
	for (const struct segment *at = guarded->closing; at; at = at->next)
		if (guard_holds(at, address))
			return true;
	return false;
}

static void guard_caught(int signal_number, siginfo_t *info, void *context)
{
	uintptr_t page = (uintptr_t)info->si_addr & ~(uintptr_t)4095;

	(void)context;
	if (guard_knows(info->si_addr) &&
		mmap((void *)page, 4096, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) {
		broken = 1;
		return;
	}
	signal(signal_number, SIG_DFL); /* ours: die of it when the instruction runs again */
}

void segment_guard_install(void)
{
	struct sigaction action = {.sa_sigaction = guard_caught, .sa_flags = SA_SIGINFO};

	sigaction(SIGBUS, &action, NULL);
}

void segment_guard(const struct segments *segments)
{
	guarded = segments;
	broken = 0;
}

bool segment_broken(void)
{
	return broken;
}
