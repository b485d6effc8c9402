/* SPDX-License-Identifier: Apache-2.0
 *
 * The words of mbarriers: read, and written back with the phase's end where nothing is missing.
 */
#ifndef VCUDA_SOFTGPU_PTX_OPS_BARRIER_H
#define VCUDA_SOFTGPU_PTX_OPS_BARRIER_H

#include <stdint.h>

/* Its 64 bits: pending arrivals 0-19, expected arrivals 20-39, pending bytes 40-62 (biased by
 * being signed), phase 63. */

struct mbarrier {
	uint32_t pending, expected;
	int32_t bytes;
	uint32_t phase;
};

#define MBARRIER_COUNT_BITS 0xfffffu

static inline struct mbarrier mbarrier_read(const uint64_t *p)
{
	uint64_t v = *p;

	return (struct mbarrier){(uint32_t)v & MBARRIER_COUNT_BITS,
		(uint32_t)(v >> 20) & MBARRIER_COUNT_BITS,
		(int32_t)((uint32_t)(v >> 40) << 9) >> 9, (uint32_t)(v >> 63)};
}

static inline uint64_t mbarrier_write(uint64_t *p, struct mbarrier bar)
{
	if (!bar.pending && !bar.bytes) {
		bar.phase ^= 1;
		bar.pending = bar.expected;
	}
	*p = bar.pending | (uint64_t)bar.expected << 20 |
	     (uint64_t)((uint32_t)bar.bytes & 0x7fffffu) << 40 | (uint64_t)bar.phase << 63;
	return *p;
}

#endif
