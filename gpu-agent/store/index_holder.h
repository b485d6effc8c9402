/* SPDX-License-Identifier: Apache-2.0
 *
 * Holders as numbers of the table and as texts of the index (index.h).
 */
#ifndef VCUDA_GPU_AGENT_STORE_INDEX_HOLDER_H
#define VCUDA_GPU_AGENT_STORE_INDEX_HOLDER_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#define INDEX_HOLDER 48 /* bytes of a text, with its NUL */

/* 1 0 PID(22) START(40), 1 1 UNTIL(34) NUMBER(28); PID 0: what a command made for nobody. */
#define INDEX_MADE (1ull << 63)
#define INDEX_TTL (1ull << 62)
#define INDEX_NOBODY INDEX_MADE

static inline uint64_t index_holder_number(const char *text)
{
	uint64_t a, b;

	if (sscanf(text, "pid:%" SCNu64 ":%" SCNu64, &a, &b) == 2)
		return INDEX_MADE | (a & 0x3fffff) << 40 | (b & 0xffffffffff);
	if (sscanf(text, "ttl:%" SCNu64 ":%" SCNu64, &a, &b) == 2)
		return INDEX_MADE | INDEX_TTL | (a & 0x3ffffffff) << 28 | (b & 0xfffffff);
	return INDEX_NOBODY;
}

/* "" for nobody. */
static inline void index_holder_text(char out[INDEX_HOLDER], uint64_t number)
{
	out[0] = 0;
	if (!(number & INDEX_MADE))
		snprintf(out, INDEX_HOLDER, "s:%" PRIu64, number);
	else if (number & INDEX_TTL)
		snprintf(out, INDEX_HOLDER, "ttl:%" PRIu64 ":%" PRIu64,
			number >> 28 & 0x3ffffffff, number & 0xfffffff);
	else if (number != INDEX_NOBODY)
		snprintf(out, INDEX_HOLDER, "pid:%" PRIu64 ":%" PRIu64, number >> 40 & 0x3fffff,
			number & 0xffffffffff);
}

/* 0: none. */
static inline int32_t index_holder_pid(uint64_t number)
{
	return number & INDEX_MADE && !(number & INDEX_TTL) ? (int32_t)(number >> 40 & 0x3fffff)
							    : 0;
}

#endif
