/* SPDX-License-Identifier: Apache-2.0
 *
 * The frame of an instruction that the lanes of a warp do together (.sync): who has come waits
 * until the other members stand at the same instruction.
 */
#ifndef VCUDA_SOFTGPU_PTX_OPS_OPS_SYNC_H
#define VCUDA_SOFTGPU_PTX_OPS_OPS_SYNC_H

#include "softgpu/ptx/ops/ops.h"

/* Brings the members together.  Lanes may name different sets (each its own tile): every set is
 * served on its own, as a fragment.  False: wait, and return NULL. */
static inline bool gather(struct ptx_warp *w, const struct ptx_ins *i)
{
	const uint32_t *e = REG(const uint32_t, e);
	uint32_t members = e[ptx_first(w->mask)], others = 0, differ = 0;

	LANES differ |= e[l] ^ members; /* as a rule none does: a constant */
	if (differ)
		EACH(w->mask) others |= (uint32_t)(e[l] != members) << l;
	if (others) {
		struct ptx_fragment *rest;

		if (!(members & w->live & ~(w->mask & ~others))) {
			/* Complete without the others; they run it after us. */
			rest = ptx_warp_split(w, others, i);
			(void)rest;
			w->part = 1;
			return true;
		}
		ptx_warp_split(w, others, i);
	}
	return ptx_warp_gather(w, i, members);
}

/* The next instruction: through the scheduler where the fragment was split on the way. */
#define NEXT(before) ((before) == w->mask ? i + 1 : ptx_warp_branch(w, i, i + 1, w->mask))

#define SYNC_OP(id, name, ...)                                                                 \
	OP_FLOW(id, name, "x!")                                                                \
	{                                                                                      \
		const uint32_t before = w->mask;                                               \
		if (!gather(w, i))                                                             \
			return NULL;                                                           \
		const uint32_t mask = w->mask;                                                 \
		__VA_ARGS__                                                                    \
		return NEXT(before);                                                           \
	}

#endif
