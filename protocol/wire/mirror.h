/* SPDX-License-Identifier: Apache-2.0
 *
 * Host memory that kernels reach: the program has the memory, the worker a mirror of it at the
 * same address, and each side a shadow, which says what the other one has. What differs from
 * the shadow travels, byte by byte, so that no side overwrites what the other one wrote:
 *
 *     vcudaMirrorWrite    program -> worker: runs, in the body
 *     vcudaMirrorFetch, vcudaMirrorWait    worker -> program: struct mirror_answer and runs
 *
 * A run is a struct mirror_run, its words, and a mask for each word (padded to 8 bytes): bit b
 * of it says that byte b has changed. A word is stored at once, since a kernel or a thread may
 * be waiting for it. Within a frame the order of runs is the order in which they are stored:
 * single words come last, for flags are such.
 */
#ifndef VCUDA_PROTOCOL_WIRE_MIRROR_H
#define VCUDA_PROTOCOL_WIRE_MIRROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MIRROR_PAGE 4096u
/* A call of the mirror's own (generated/vcuda_ops.h has their numbers). */
#define MIRROR_OP(op) ((op) >= OP_vcudaMirrorMap && (op) <= OP_vcudaMirrorWait)
#define MIRROR_WRITE_MAX (32u * 1024) /* runs in one vcudaMirrorWrite */
#define MIRROR_FETCH_MAX (64u * 1024) /* answer of a wait, and the first of a fetch … */
#define MIRROR_BULK_MAX (512u * 1024) /* … and of those that follow it */

struct mirror_run {
	uint64_t address; /* of the worker's memory, a multiple of 8 */
	uint32_t words;
	uint32_t reserved;
};

struct mirror_answer {
	uint64_t number; /* counts the answers that the worker has given, from 1 */
	uint32_t bytes;	 /* of runs behind it */
	uint16_t more;	 /* not all that has changed: ask again */
	uint16_t idle;	 /* nothing that the worker was given is running, and this is all */
};

/* A side of it: `bytes` (pages) of live memory, its shadow, and the address that travels. */
struct mirror_view {
	unsigned char *live;
	unsigned char *shadow;
	uint64_t address;
	uint64_t bytes;
};

/* Where runs are gathered. */
struct mirror_runs {
	unsigned char *to;
	uint32_t room, used;
	uint32_t singles, flags; /* where runs of single words, and of those flags, begin */
	bool full;		 /* something did not fit */
};

static inline size_t mirror_run_bytes(uint32_t words)
{
	return sizeof(struct mirror_run) + (size_t)words * 8 + (((size_t)words + 7) & ~7ul);
}

static inline uint64_t mirror_load(const unsigned char *at)
{
	return __atomic_load_n((const uint64_t *)(const void *)at, __ATOMIC_ACQUIRE);
}

/* Bit b: byte b differs. */
static inline uint8_t mirror_mask(uint64_t a, uint64_t b)
{
	uint64_t differ = a ^ b;
	uint8_t mask = 0;

	for (int i = 0; i < 8; i++)
		mask |= (uint8_t)(!!(differ >> 8 * i & 0xff) << i);
	return mask;
}

static inline uint64_t mirror_spread(uint8_t mask)
{
	uint64_t bytes = 0;

	for (int i = 0; i < 8; i++)
		bytes |= (uint64_t)(mask >> i & 1 ? 0xff : 0) << 8 * i;
	return bytes;
}

/* What a flag is set to, mostly: 0, 1, or one more than it was, in either half of the word. */
static inline bool mirror_flag_like(uint64_t value, uint64_t before)
{
	for (int half = 0; half < 2; half++) {
		uint32_t now = (uint32_t)(value >> 32 * half);
		uint32_t old = (uint32_t)(before >> 32 * half);

		if (now != old && now > 1 && now != old + 1)
			return false;
	}
	return true;
}

enum mirror_pass { MIRROR_LONG, MIRROR_SINGLE, MIRROR_FLAGS, MIRROR_PASSES };

static inline void mirror_add(struct mirror_runs *runs, const struct mirror_view *view,
	size_t from, uint32_t words, enum mirror_pass pass)
{
	struct mirror_run run = {.address = view->address + from, .words = words};
	unsigned char *to = runs->to + runs->used;
	unsigned char *masks = to + sizeof(run) + (size_t)words * 8;
	size_t size = mirror_run_bytes(words);
	bool flag;

	if (words == 1) {
		uint64_t before;

		memcpy(&before, view->shadow + from, 8);
		flag = mirror_flag_like(mirror_load(view->live + from), before);
		if (pass != (flag ? MIRROR_FLAGS : MIRROR_SINGLE))
			return;
	} else if (pass != MIRROR_LONG) {
		return;
	}
	if (runs->room - runs->used < size) {
		runs->full = true;
		return;
	}
	memcpy(to, &run, sizeof(run));
	memset(masks, 0, ((size_t)words + 7) & ~7ul);
	for (uint32_t i = 0; i < words; i++) {
		uint64_t value = mirror_load(view->live + from + (size_t)i * 8), known;

		memcpy(&known, view->shadow + from + (size_t)i * 8, 8);
		memcpy(to + sizeof(run) + (size_t)i * 8, &value, 8);
		masks[i] = mirror_mask(value, known);
	}
	runs->used += (uint32_t)size;
}

/* Appends what differs in the page at `from` and belongs to the pass. */
static inline void mirror_page(struct mirror_runs *runs, const struct mirror_view *view,
	size_t from, enum mirror_pass pass)
{
	size_t end = from + MIRROR_PAGE, start = 0;
	uint32_t words = 0;

	for (size_t at = from; at < end && !runs->full; at += 8) {
		uint64_t known;

		memcpy(&known, view->shadow + at, 8);
		if (mirror_load(view->live + at) != known) {
			if (!words++)
				start = at;
			continue;
		}
		if (words)
			mirror_add(runs, view, start, words, pass);
		words = 0;
	}
	if (words && !runs->full)
		mirror_add(runs, view, start, words, pass);
}

static inline bool mirror_page_same(const struct mirror_view *view, size_t from)
{
	return !memcmp(view->live + from, view->shadow + from, MIRROR_PAGE);
}

/* Takes the next run of `bytes` at *at. False: at the end, or it is none (*broken). */
static inline bool mirror_next(const unsigned char *runs, size_t bytes, size_t *at,
	struct mirror_run *run, const unsigned char **values, bool *broken)
{
	if (*at == bytes)
		return false;
	if (bytes - *at >= sizeof(*run))
		memcpy(run, runs + *at, sizeof(*run));
	if (bytes - *at < sizeof(*run) || !run->words || run->words > MIRROR_PAGE / 8 ||
		run->address % 8 || bytes - *at < mirror_run_bytes(run->words)) {
		*broken = true;
		return false;
	}
	*values = runs + *at + sizeof(*run);
	*at += mirror_run_bytes(run->words);
	return true;
}

/* Stores the bytes of a word that the mask names, at once. With KEEP, bytes that differ from
 * the shadow stay as they are: this side has changed them, and says so later. */
static inline void mirror_store(
	unsigned char *live, uint64_t value, uint8_t mask, const unsigned char *keep)
{
	uint64_t *word = (void *)live;
	uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED), now, known = 0;

	do {
		uint8_t take = mask;

		if (keep) {
			memcpy(&known, keep, 8);
			take &= (uint8_t)~mirror_mask(old, known);
		}
		now = (old & ~mirror_spread(take)) | (value & mirror_spread(take));
		if (now == old)
			return;
	} while (!__atomic_compare_exchange_n(
		word, &old, now, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

/* Puts the words of a run at LIVE, and into the shadow. LIVE NULL: only that. */
static inline void mirror_apply(unsigned char *live, unsigned char *shadow, uint32_t words,
	const unsigned char *values, bool keep)
{
	const unsigned char *masks = values + (size_t)words * 8;

	for (uint32_t i = 0; i < words; i++) {
		uint64_t value, known, spread = mirror_spread(masks[i]);

		memcpy(&value, values + (size_t)i * 8, 8);
		memcpy(&known, shadow + (size_t)i * 8, 8);
		if (live)
			mirror_store(live + (size_t)i * 8, value, masks[i],
				keep ? shadow + (size_t)i * 8 : NULL);
		known = (known & ~spread) | (value & spread);
		memcpy(shadow + (size_t)i * 8, &known, 8);
	}
}

/* The view that holds all of it; NULL: none does. By address, disjoint. */
static inline const struct mirror_view *mirror_find(
	const struct mirror_view *views, size_t count, uint64_t address, uint64_t bytes)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (views[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address - views[low - 1].address >= views[low - 1].bytes ||
		bytes > views[low - 1].bytes - (address - views[low - 1].address))
		return NULL;
	return &views[low - 1];
}

/* Where the next look begins: what did not fit is sent first. */
struct mirror_cursor {
	size_t view;
	uint64_t from;
};

/* Gathers what differs: long runs, then single words, then what may be flags. `full`: look
 * again; never after a look from the start that fitted. Flags come along only if nothing that
 * they may announce is left for a later look. */
static inline void mirror_gather(struct mirror_runs *runs, const struct mirror_view *views,
	size_t count, struct mirror_cursor *cursor)
{
	enum { PAGES = 1024 };
	struct {
		uint32_t view, page;
	} changed[PAGES];
	struct mirror_cursor at = *cursor;
	bool whole = !at.view && !at.from, enough = false;
	size_t pages = 0;

	runs->used = 0;
	runs->full = false;
	*cursor = (struct mirror_cursor){0, 0};
	for (; at.view < count && !enough; at.view++, at.from = 0)
		for (; at.from < views[at.view].bytes && !enough; at.from += MIRROR_PAGE) {
			if (mirror_page_same(&views[at.view], at.from))
				continue;
			if (pages < PAGES) {
				changed[pages].view = (uint32_t)at.view;
				changed[pages++].page = (uint32_t)(at.from / MIRROR_PAGE);
				mirror_page(runs, &views[at.view], at.from, MIRROR_LONG);
			}
			enough = runs->full || pages == PAGES;
			if (enough)
				*cursor = at;
		}
	runs->singles = runs->used;
	for (size_t i = 0; i < pages && !runs->full; i++)
		mirror_page(runs, &views[changed[i].view],
			(size_t)changed[i].page * MIRROR_PAGE, MIRROR_SINGLE);
	runs->flags = runs->used;
	if (whole && enough && !runs->used)
		*cursor = (struct mirror_cursor){0, 0}; /* there are but flags so far */
	else if (!whole || enough)
		pages = 0;
	for (size_t i = 0; i < pages && !runs->full; i++)
		mirror_page(runs, &views[changed[i].view],
			(size_t)changed[i].page * MIRROR_PAGE, MIRROR_FLAGS);
	runs->full = runs->full || enough || !whole;
}

/* Looks for a word in the runs in [*at, end), by address, where the last one left off. False:
 * it is not there; else its value and mask are put behind the head of the run SINGLE. */
static inline bool mirror_seen(
	const unsigned char *runs, uint32_t *at, uint32_t end, unsigned char *single)
{
	struct mirror_run want, run;

	memcpy(&want, single, sizeof(want));
	for (; *at < end; *at += (uint32_t)mirror_run_bytes(run.words)) {
		const unsigned char *values = runs + *at + sizeof(run);
		uint64_t word;

		memcpy(&run, runs + *at, sizeof(run));
		if (run.address > want.address)
			return false;
		word = (want.address - run.address) / 8;
		if (word >= run.words)
			continue;
		memcpy(single + sizeof(want), values + word * 8, 8);
		single[sizeof(want) + 8] = values[(size_t)run.words * 8 + word];
		return true;
	}
	return false;
}

/* Of the single words of NOW in [from, end), only those that the look BEFORE saw, and as they
 * were then; they move to *to. */
static inline void mirror_hold_back(struct mirror_runs *now, uint32_t from, uint32_t end,
	uint32_t *to, const struct mirror_runs *before)
{
	const uint32_t size = (uint32_t)mirror_run_bytes(1);
	uint32_t at[MIRROR_PASSES] = {0, before->singles, before->flags};

	for (; from < end; from += size) {
		unsigned char *single = now->to + from;

		if (!mirror_seen(before->to, &at[0], before->singles, single) &&
			!mirror_seen(before->to, &at[1], before->flags, single) &&
			!mirror_seen(before->to, &at[2], before->used, single))
			continue;
		memmove(now->to + *to, single, size);
		*to += size;
	}
}

/* The same for memory that somebody writes meanwhile: until two looks see the same. Then what
 * was written before a word that is in it is in it too. A writer that never rests is not waited
 * for: of the last three looks the first says what the flags are, the second the single words,
 * and the third the rest, so that what was written before any of them has been seen. What was
 * there before the call is in it in any case. SPARE: as much room as RUNS has. */
static inline void mirror_gather_stable(struct mirror_runs *runs, unsigned char *spare,
	const struct mirror_view *views, size_t count, struct mirror_cursor *cursor)
{
	enum { LOOKS = 8 };
	struct mirror_runs again = {.to = spare, .room = runs->room};
	const struct mirror_cursor start = *cursor;

	mirror_gather(runs, views, count, cursor);
	for (int look = 1; look <= LOOKS; look++) {
		if (!runs->used || (runs->full && runs->flags == runs->used))
			return;
		*cursor = start;
		mirror_gather(&again, views, count, cursor);
		if (again.used == runs->used && !memcmp(again.to, runs->to, again.used))
			return;
		if (look >= LOOKS - 1) {
			uint32_t flags = again.flags, to = flags;

			if (look == LOOKS) {
				to = again.singles;
				mirror_hold_back(&again, again.singles, flags, &to, runs);
				again.flags = to;
			}
			mirror_hold_back(&again, flags, again.used, &to, runs);
			again.used = to;
		}
		memcpy(runs->to, again.to, again.used);
		runs->used = again.used;
		runs->singles = again.singles;
		runs->flags = again.flags;
		runs->full = again.full;
	}
}

/* The other side will have what was gathered. */
static inline void mirror_sent(
	const struct mirror_runs *runs, const struct mirror_view *views, size_t count)
{
	const unsigned char *values;
	struct mirror_run run;
	bool broken = false;
	size_t at = 0;

	while (mirror_next(runs->to, runs->used, &at, &run, &values, &broken)) {
		const struct mirror_view *view =
			mirror_find(views, count, run.address, (uint64_t)run.words * 8);

		mirror_apply(NULL, view->shadow + (run.address - view->address), run.words,
			values, false);
	}
}

/* Stores runs that the other side gathered. False: some lie in no view, or what follows is no
 * run; the others are stored. */
static inline bool mirror_store_runs(const unsigned char *runs, size_t bytes,
	const struct mirror_view *views, size_t count, bool keep)
{
	const unsigned char *values;
	struct mirror_run run;
	bool broken = false, strays = false;
	size_t at = 0;

	while (mirror_next(runs, bytes, &at, &run, &values, &broken)) {
		const struct mirror_view *view =
			mirror_find(views, count, run.address, (uint64_t)run.words * 8);
		size_t from;

		strays = strays || !view;
		if (!view)
			continue;
		from = run.address - view->address;
		mirror_apply(view->live + from, view->shadow + from, run.words, values, keep);
	}
	return !broken && !strays;
}

#endif
