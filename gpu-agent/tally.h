/* SPDX-License-Identifier: Apache-2.0
 *
 * What the sessions of one tenant have of each quota together (quotas.h): memory that the front
 * and the workers of that tenant share.  Each session has a slot, which its worker alone writes
 * while it lives, and which the front clears once the worker is reaped.  There is no total that
 * could be wrong after a death: it is the sum of the slots.
 *
 * Who takes N announces it in its slot first and adds up then.  Of all whose sum fitted the one
 * that announced last saw what the others have: so they never have more than the limit.  Two at
 * once may both see too much, and both take it back: they try again (worker/limits/quotas.c).
 *
 * A worker taken over can write into every slot of its tenant, and of nobody else.  The front
 * reads it for what it shows, and bounds what it reads.
 */
#ifndef VCUDA_GPU_AGENT_TALLY_H
#define VCUDA_GPU_AGENT_TALLY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu-agent/quotas.h"

#define TALLY_SLOTS 4096 /* sessions of an agent (AGENT_SESSIONS_MAX) */

struct tally {
	_Atomic uint64_t log;	/* common/log.h: lines of this second */
	_Atomic uint32_t slots; /* those from here on were never used */
	_Atomic uint64_t used[QUOTAS][TALLY_SLOTS];
};

/* Of all slots; UINT64_MAX where that is more than fits. */
static inline uint64_t tally_sum(const struct tally *tally, enum quota quota)
{
	uint32_t slots = atomic_load(&tally->slots);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < slots && i < TALLY_SLOTS; i++)
		if (__builtin_add_overflow(sum, atomic_load(&tally->used[quota][i]), &sum))
			return UINT64_MAX;
	return sum;
}

/* Whether no other slot has more than SLOT, or as much and a lower number. */
static inline bool tally_is_most(const struct tally *tally, enum quota quota, uint32_t slot)
{
	uint32_t slots = atomic_load(&tally->slots);
	uint64_t own = atomic_load(&tally->used[quota][slot]);

	for (uint32_t i = 0; i < slots && i < TALLY_SLOTS; i++) {
		uint64_t other = atomic_load(&tally->used[quota][i]);

		if (other > own || (other == own && i < slot))
			return false;
	}
	return true;
}

#endif
