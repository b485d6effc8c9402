/* SPDX-License-Identifier: Apache-2.0
 *
 * What the lanes of a warp do together: shuffle, vote, match, reduce, elect, bar.warp.  Each
 * names its members; lanes that have come wait until the others stand at the same instruction.
 */
#include "softgpu/ptx/ops/ops_sync.h"

static void put_mask(struct ptx_warp *w, uint32_t operand, uint32_t value)
{
	uint32_t *p = ptx_pred(w, operand);

	*p = (*p & ~w->mask) | (value & w->mask);
}

/* c: clamp in bits 0-4, segment mask in bits 8-12. Whence is reckoned for all lanes at once. */
#define SHFL(mode, reach, inside)                                                              \
	SYNC_OP(shfl_##mode, "shfl." #mode, {                                                  \
		uint32_t *d = REG(uint32_t, d);                                                \
		const uint32_t *a = REG(const uint32_t, a), *b = REG(const uint32_t, b);       \
		const uint32_t *c = REG(const uint32_t, c);                                    \
		uint32_t from[PTX_LANES], in[PTX_LANES], ok = 0;                               \
		int whence[PTX_LANES];                                                         \
		memcpy(from, a, sizeof(from));                                                 \
		IVDEP LANES                                                                    \
		{                                                                              \
			int lane = (int)l, by = (int)(b[l] & 31), clamp = (int)(c[l] & 31);    \
			int segment = (int)(c[l] >> 8 & 31);                                   \
			int most = (lane & segment) | (clamp & ~segment);                      \
			int least = lane & segment;                                            \
			int j = (reach);                                                       \
			(void)least, (void)most;                                               \
			in[l] = (inside);                                                      \
			whence[l] = (in[l] ? j : lane) & 31;                                   \
		}                                                                              \
		LANES ok |= in[l] << l;                                                        \
		if (mask == UINT32_MAX)                                                        \
			LANES d[l] = from[whence[l]];                                          \
		else                                                                           \
			EACH(mask) d[l] = from[whence[l]];                                     \
		put_mask(w, i->f, ok);                                                         \
	})
SHFL(up, lane - by, j >= most)
SHFL(down, lane + by, j <= most)
SHFL(bfly, lane ^ by, j <= most)
SHFL(idx, least | (by & ~segment), j <= most)

SYNC_OP(vote_ballot, "vote.ballot", {
	uint32_t p = *ptx_pred(w, i->a) & mask, *d = REG(uint32_t, d);
	EACH(mask) d[l] = p;
})
SYNC_OP(vote_all, "vote.all",
	{ put_mask(w, i->d, (~*ptx_pred(w, i->a) & mask) ? 0 : UINT32_MAX); })
SYNC_OP(vote_any, "vote.any",
	{ put_mask(w, i->d, (*ptx_pred(w, i->a) & mask) ? UINT32_MAX : 0); })
SYNC_OP(vote_uni, "vote.uni", {
	uint32_t p = *ptx_pred(w, i->a) & mask;
	put_mask(w, i->d, p == 0 || p == mask ? UINT32_MAX : 0);
})

#define MATCH(n, T)                                                                            \
	SYNC_OP(match_any_b##n, "match.any.b" #n, {                                            \
		uint32_t *d = REG(uint32_t, d);                                                \
		const T *a = REG(const T, a);                                                  \
		uint32_t result[PTX_LANES] = {0};                                              \
		EACH(mask)                                                                     \
		for (unsigned k = 0; k < PTX_LANES; k++)                                       \
			result[l] |= (uint32_t)(a[k] == a[l]) << k;                            \
		EACH(mask) d[l] = result[l] & mask;                                            \
	})                                                                                     \
	SYNC_OP(match_all_b##n, "match.all.b" #n, {                                            \
		uint32_t *d = REG(uint32_t, d);                                                \
		const T *a = REG(const T, a), first = a[ptx_first(mask)];                      \
		bool same = true;                                                              \
		EACH(mask) same &= a[l] == first;                                              \
		EACH(mask) d[l] = same ? mask : 0;                                             \
		put_mask(w, i->f, same ? UINT32_MAX : 0);                                      \
	})
MATCH(32, uint32_t)
MATCH(64, uint64_t)

#define REDUX(op, t, T, ...)                                                                   \
	SYNC_OP(redux_##op##_##t, "redux." #op "." #t, {                                       \
		uint32_t *d = REG(uint32_t, d);                                                \
		const T *a = REG(const T, a);                                                  \
		T r = a[ptx_first(mask)];                                                      \
		EACH(mask &(mask - 1)) r = (T)(__VA_ARGS__);                                   \
		EACH(mask) d[l] = (uint32_t)r;                                                 \
	})
REDUX(add, b32, uint32_t, r + a[l])
REDUX(and, b32, uint32_t, r &a[l])
REDUX(or, b32, uint32_t, r | a[l])
REDUX(xor, b32, uint32_t, r ^ a[l])
REDUX(min, u32, uint32_t, r < a[l] ? r : a[l])
REDUX(max, u32, uint32_t, r > a[l] ? r : a[l])
REDUX(min, s32, int32_t, r < a[l] ? r : a[l])
REDUX(max, s32, int32_t, r > a[l] ? r : a[l])

SYNC_OP(elect, "elect", {
	uint32_t *d = REG(uint32_t, d);
	const uint32_t leader = ptx_first(mask);
	EACH(mask) d[l] = leader;
	put_mask(w, i->f, 1u << leader);
})

/* __syncwarp: who has come waits behind the instruction, wherever the others come. */
OP_FLOW(bar_warp, "bar.warp", "x!")
{
	const uint32_t *c = REG(const uint32_t, c);
	uint32_t members = c[ptx_first(w->mask)], others = 0;

	EACH(w->mask)
	if (c[l] != members)
		others |= 1u << l;
	if (!others && !(members & w->live & ~w->mask))
		return i + 1;
	if (others)
		ptx_warp_split(w, others, i);
	w->cur->pc = i + 1;
	w->cur->wait = PTX_AT_WARP;
	w->cur->members = members;
	return NULL;
}
