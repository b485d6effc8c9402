/* SPDX-License-Identifier: Apache-2.0
 *
 * First-fit over a bitmap: see blocks.h.
 */
#include "shim/engine/blocks.h"

#include <stdbool.h>
#include <string.h>

void blocks_init(struct blocks *blocks, uint32_t count)
{
	memset(blocks, 0, sizeof(*blocks));
	blocks->count = count;
	blocks->free = count;
	blocks->longest = count;
}

void blocks_extend(struct blocks *blocks, uint32_t count)
{
	blocks->free += count - blocks->count;
	blocks->count = count;
	blocks->longest = blocks->free;
}

/* The first unit at or after FROM whose bit is `used`; count where there is none. */
static uint32_t next_unit(const struct blocks *blocks, uint32_t from, bool used)
{
	while (from < blocks->count) {
		uint64_t word = blocks->used[from / 64];

		if (!used)
			word = ~word;
		word >>= from % 64;
		if (word) {
			from += (uint32_t)__builtin_ctzll(word);
			return from < blocks->count ? from : blocks->count;
		}
		from = (from | 63) + 1;
	}
	return blocks->count;
}

static void mark(struct blocks *blocks, uint32_t first, uint32_t n, bool used)
{
	while (n) {
		uint32_t bit = first % 64;
		uint32_t here = n < 64 - bit ? n : 64 - bit;
		uint64_t mask = (here == 64 ? ~0ull : (1ull << here) - 1) << bit;

		if (used)
			blocks->used[first / 64] |= mask;
		else
			blocks->used[first / 64] &= ~mask;
		first += here;
		n -= here;
	}
}

uint32_t blocks_alloc(struct blocks *blocks, uint32_t n)
{
	uint32_t longest = 0;
	uint32_t at;

	if (!n || n > blocks->free || n > blocks->longest)
		return BLOCKS_NONE;
	at = next_unit(blocks, blocks->lowest, false);
	blocks->lowest = at;
	while (at < blocks->count) {
		uint32_t end = next_unit(blocks, at, true);

		if (end - at >= n) {
			mark(blocks, at, n, true);
			blocks->free -= n;
			if (at == blocks->lowest)
				blocks->lowest = at + n;
			return at;
		}
		if (end - at > longest)
			longest = end - at;
		at = next_unit(blocks, end, false);
	}
	blocks->longest = longest;
	return BLOCKS_NONE;
}

void blocks_free(struct blocks *blocks, uint32_t first, uint32_t n)
{
	mark(blocks, first, n, false);
	blocks->free += n;
	blocks->longest = blocks->free;
	if (first < blocks->lowest)
		blocks->lowest = first;
}
