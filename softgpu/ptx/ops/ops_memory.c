/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads and stores.  One template: the addresses of all lanes are computed and checked
 * together, then lanes that lie side by side, or all on one spot, are moved at once, others one
 * by one.
 */
#include "softgpu/ptx/ops/ops.h"

_Noreturn __attribute__((noinline, cold)) static void bad_address(struct ptx_warp *w,
	const struct ptx_ins *i, uint64_t address, size_t size, const char *space)
{
	if (address % size)
		ptx_fault(w, i, PTX_MISALIGNED_ADDRESS, "misaligned %s address 0x%llx", space,
			(unsigned long long)address);
	ptx_fault(w, i, PTX_ILLEGAL_ADDRESS, "illegal %s address 0x%llx", space,
		(unsigned long long)address);
}

/* Finds the first lane that is at fault and ends the launch. */
_Noreturn __attribute__((noinline, cold)) static void blame(struct ptx_warp *w,
	const struct ptx_ins *i, const uint64_t *ad, uint64_t base, uint64_t span, size_t size,
	const char *space)
{
	EACH(w->mask)
	{
		uint64_t at = ad[l] - base;

		if (ad[l] % size || at >= span || span - at < size)
			bad_address(w, i, ad[l], size, space);
	}
	bad_address(w, i, ad[0], size, space);
}

/* Global addresses that are not all in the window: whether each is legal nevertheless. */
__attribute__((noinline, cold)) static bool outside(
	const struct ptx_warp *w, const uint64_t *ad, size_t size)
{
	EACH(w->mask)
	{
		uint64_t at = ad[l] - w->window_base;

		if (ad[l] % size || ((at >= w->window_span || w->window_span - at < size) &&
					    !ptx_outside(ad[l], size)))
			return false;
	}
	return true;
}

/* Several devices share the window: this one's access to what the lanes address. */
__attribute__((noinline, cold)) static void allowed(
	struct ptx_warp *w, const struct ptx_ins *i, const uint64_t *ad)
{
	EACH(w->mask)
	{
		if (ad[l] - w->window_base < w->window_span && ptx_denied(w, ad[l]))
			ptx_fault(w, i, PTX_ILLEGAL_ADDRESS,
				"address 0x%llx of another device, without access to it",
				(unsigned long long)ad[l]);
	}
}

/* The address of each lane as a host pointer, for `size` bytes; lanes not in the mask get that
 * of one that is.  True when the lanes lie side by side. */
INLINE bool resolve(struct ptx_warp *w, const struct ptx_ins *i, char space, size_t size,
	uint64_t *ad, bool all)
{
	const uint32_t mask = w->mask;
	uint64_t bad = 0, apart = 0, base, span, host;

	w->at = i;
	if (space == 'S') {
		const uint32_t *a = REG(const uint32_t, a);
		const uint32_t imm = (uint32_t)i->imm;

		IVDEP LANES ad[l] = a[l] + imm;
		base = 0;
		span = w->shared_bytes;
		host = (uint64_t)(uintptr_t)w->shared;
	} else {
		const uint64_t *a = REG(const uint64_t, a);
		const uint64_t imm = i->imm;

		IVDEP LANES ad[l] = a[l] + imm;
		base = space == 'G' ? w->window_base : 0;
		span = space == 'G' ? w->window_span : w->local_bytes;
		host = space == 'G' ? w->window_base : (uint64_t)(uintptr_t)w->local;
	}
	if (!all) {
		const uint64_t one = ad[ptx_first(mask)];

		IVDEP LANES ad[l] = (mask >> l & 1) ? ad[l] : one;
	}
	if (space == 'A') {
		/* Mostly all global; else lane by lane. */
		const uint64_t wb = w->window_base, limit = w->window_span - size;

		LANES bad |= ((ad[l] & (size - 1)) != 0) | (ad[l] - wb > limit);
		if (bad)
			EACH(mask)
		ad[l] = (uint64_t)(uintptr_t)ptx_generic(w, i, l, ad[l], size);
		if (bad && !all) {
			const uint64_t one = ad[ptx_first(mask)];

			LANES ad[l] = (mask >> l & 1) ? ad[l] : one;
		}
	} else {
		if (span < size)
			blame(w, i, ad, base, span, size, space == 'S' ? "shared" : "local");
		const uint64_t limit = span - size;

		LANES bad |= ((ad[l] & (size - 1)) != 0) | (ad[l] - base > limit);
		if (bad) {
			if (space == 'S' && ad[ptx_first(mask)] >> PTX_RANK_SHIFT) {
				EACH(mask)
				ad[l] = (uint64_t)(uintptr_t)ptx_generic(
					w, i, l, PTX_SHARED_BASE + ad[l], size);
				return false;
			}
			if (space == 'G' && outside(w, ad, size)) {
				if (w->denied)
					allowed(w, i, ad);
				return false;
			}
			blame(w, i, ad, base, span, size,
				space == 'S'   ? "shared"
				: space == 'G' ? "global"
					       : "local");
		}
		if (space == 'L') {
			const uint64_t stride = w->local_stride;

			IVDEP LANES ad[l] += host + l * stride;
		} else if (space == 'S') {
			IVDEP LANES ad[l] += host;
		}
	}
	if ((space == 'G' || space == 'A') && w->denied)
		allowed(w, i, ad);
	LANES apart |= ad[l] ^ (ad[0] + l * size);
	return all && !apart;
}

/* Every lane at one place: fp + imm of its own local memory. */
INLINE void resolve_frame(
	struct ptx_warp *w, const struct ptx_ins *i, size_t size, uint64_t *ad)
{
	uint64_t at = w->frame->fp + i->imm, host = (uint64_t)(uintptr_t)w->local;
	const uint64_t stride = w->local_stride;

	w->at = i;
	if (at & (size - 1) || w->local_bytes < size || at > w->local_bytes - size)
		bad_address(w, i, at, size, "local");
	IVDEP LANES ad[l] = host + at + l * stride;
}

/* An injected fault: the launch's first store is wrong by one bit. */
__attribute__((noinline, cold)) static void spoil(const struct ptx_warp *w, const uint64_t *ad)
{
	if (w->mask && !atomic_exchange(w->spoil, true))
		*(unsigned char *)(uintptr_t)ad[ptx_first(w->mask)] ^= 1;
}

#define HOST(T, at) ((T *)(uintptr_t)(at))

/* A lane's vector moves as a whole, as on a GPU: the blocks of a scan leave a sum and whether
 * it is there in one vector of 16 bytes for the others, which would see half of it. */
typedef uint64_t whole16 __attribute__((vector_size(16), may_alias));
typedef uint64_t whole8 __attribute__((may_alias));
typedef uint32_t whole4 __attribute__((may_alias));
typedef uint16_t whole2 __attribute__((may_alias));

#define LOAD_WHOLE(n)                                                                          \
	if (size == n && !(at & (n - 1))) {                                                    \
		const whole##n v = *HOST(const volatile whole##n, at);                         \
		memcpy(to, &v, n);                                                             \
		return;                                                                        \
	}
#define STORE_WHOLE(n)                                                                         \
	if (size == n && !(at & (n - 1))) {                                                    \
		whole##n v;                                                                    \
		memcpy(&v, from, n);                                                           \
		*HOST(volatile whole##n, at) = v;                                              \
		return;                                                                        \
	}

INLINE void load_whole(void *to, uint64_t at, size_t size)
{
	LOAD_WHOLE(16)
	LOAD_WHOLE(8)
	LOAD_WHOLE(4)
	LOAD_WHOLE(2)
	memcpy(to, HOST(const void, at), size);
}

INLINE void store_whole(uint64_t at, const void *from, size_t size)
{
	STORE_WHOLE(16)
	STORE_WHOLE(8)
	STORE_WHOLE(4)
	STORE_WHOLE(2)
	memcpy(HOST(void, at), from, size);
}

#define LOAD(space, t, r, M, R)                                                                \
	OP(ld_##space##_##t##_##r, "ld." #space "." #t "." #r, "x")                            \
	{                                                                                      \
		const uint32_t n = i->f, to[4] = {i->d, i->b, i->c, i->e};                     \
		uint64_t ad[PTX_LANES];                                                        \
		const bool all = full && w->mask == UINT32_MAX;                                \
		bool side;                                                                     \
		if ((#space)[0] == 'F') {                                                      \
			resolve_frame(w, i, sizeof(M) * n, ad);                                \
			side = false;                                                          \
		} else if (__builtin_expect(n == 1, 1)) {                                      \
			side = resolve(w, i, (#space)[0], sizeof(M), ad, all);                 \
		} else {                                                                       \
			side = false;                                                          \
			(void)resolve(w, i, (#space)[0], sizeof(M) * n, ad, all);              \
		}                                                                              \
		if (n == 1) {                                                                  \
			R *d = REG(R, d);                                                      \
			if (side) {                                                            \
				const M *p = HOST(M, ad[0]);                                   \
				IVDEP LANES d[l] = (R)p[l];                                    \
			} else if (all) {                                                      \
				LANES d[l] = (R) * HOST(const M, ad[l]);                       \
			} else {                                                               \
				EACH(w->mask) d[l] = (R) * HOST(const M, ad[l]);               \
			}                                                                      \
			return;                                                                \
		}                                                                              \
		EACH(w->mask)                                                                  \
		{                                                                              \
			M v[32 / sizeof(M)] = {0};                                             \
			load_whole(v, ad[l], sizeof(M) * n);                                   \
			for (uint32_t k = 0; k < n; k++)                                       \
				((R *)(void *)ptx_reg(w, to[k]))[l] = (R)v[k];                 \
		}                                                                              \
	}
#define STORE(space, t, r, M, R)                                                               \
	OP(st_##space##_##t##_##r, "st." #space "." #t "." #r, "x")                            \
	{                                                                                      \
		const uint32_t n = i->f, from[4] = {i->d, i->b, i->c, i->e};                   \
		uint64_t ad[PTX_LANES];                                                        \
		const bool all = full && w->mask == UINT32_MAX;                                \
		bool side;                                                                     \
		if ((#space)[0] == 'F') {                                                      \
			resolve_frame(w, i, sizeof(M) * n, ad);                                \
			side = false;                                                          \
		} else if (__builtin_expect(n == 1, 1)) {                                      \
			side = resolve(w, i, (#space)[0], sizeof(M), ad, all);                 \
		} else {                                                                       \
			side = false;                                                          \
			(void)resolve(w, i, (#space)[0], sizeof(M) * n, ad, all);              \
		}                                                                              \
		if (n == 1) {                                                                  \
			const R *d = REG(const R, d);                                          \
			if (side) {                                                            \
				M *p = HOST(M, ad[0]);                                         \
				IVDEP LANES p[l] = (M)d[l];                                    \
			} else {                                                               \
				EACH(w->mask) * HOST(M, ad[l]) = (M)d[l];                      \
			}                                                                      \
		}                                                                              \
		if (n > 1)                                                                     \
			EACH(w->mask)                                                          \
			{                                                                      \
				M v[32 / sizeof(M)] = {0};                                     \
				for (uint32_t k = 0; k < n; k++)                               \
					v[k] = (M)((const R *)(const void *)ptx_reg(           \
						w, from[k]))[l];                               \
				store_whole(ad[l], v, sizeof(M) * n);                          \
			}                                                                      \
		if (((#space)[0] == 'G' || (#space)[0] == 'A') && w->spoil)                    \
			spoil(w, ad);                                                          \
	}

#define LOADS(space)                                                                           \
	LOAD(space, u8, u16, uint8_t, uint16_t)                                                \
	LOAD(space, s8, u16, int8_t, uint16_t)                                                 \
	LOAD(space, u16, u16, uint16_t, uint16_t)                                              \
	LOAD(space, u8, u32, uint8_t, uint32_t)                                                \
	LOAD(space, s8, u32, int8_t, uint32_t)                                                 \
	LOAD(space, u16, u32, uint16_t, uint32_t)                                              \
	LOAD(space, s16, u32, int16_t, uint32_t)                                               \
	LOAD(space, u32, u32, uint32_t, uint32_t)                                              \
	LOAD(space, u8, u64, uint8_t, uint64_t)                                                \
	LOAD(space, s8, u64, int8_t, uint64_t)                                                 \
	LOAD(space, u16, u64, uint16_t, uint64_t)                                              \
	LOAD(space, s16, u64, int16_t, uint64_t)                                               \
	LOAD(space, u32, u64, uint32_t, uint64_t)                                              \
	LOAD(space, s32, u64, int32_t, uint64_t)                                               \
	LOAD(space, u64, u64, uint64_t, uint64_t)
#define STORES(space)                                                                          \
	STORE(space, u8, u16, uint8_t, uint16_t)                                               \
	STORE(space, u16, u16, uint16_t, uint16_t)                                             \
	STORE(space, u8, u32, uint8_t, uint32_t)                                               \
	STORE(space, u16, u32, uint16_t, uint32_t)                                             \
	STORE(space, u32, u32, uint32_t, uint32_t)                                             \
	STORE(space, u8, u64, uint8_t, uint64_t)                                               \
	STORE(space, u16, u64, uint16_t, uint64_t)                                             \
	STORE(space, u32, u64, uint32_t, uint64_t)                                             \
	STORE(space, u64, u64, uint64_t, uint64_t)

/* Kernel parameters: the same for every lane. */
#define LOAD_PARAM(t, r, M, R)                                                                 \
	OP(ld_P_##t##_##r, "ld.P." #t "." #r, "x")                                             \
	{                                                                                      \
		const uint32_t to[4] = {i->d, i->b, i->c, i->e};                               \
		if (i->imm > w->param_bytes || w->param_bytes - i->imm < i->f * sizeof(M))     \
			bad_address(w, i, i->imm, 1, "parameter");                             \
		for (uint32_t k = 0; k < i->f; k++) {                                          \
			R *d = (R *)(void *)ptx_reg(w, to[k]);                                 \
			M v;                                                                   \
			memcpy(&v, w->params + i->imm + k * sizeof(M), sizeof(M));             \
			PUT(R, v);                                                             \
		}                                                                              \
	}

LOAD_PARAM(u8, u16, uint8_t, uint16_t)
LOAD_PARAM(s8, u16, int8_t, uint16_t)
LOAD_PARAM(u16, u16, uint16_t, uint16_t)
LOAD_PARAM(u8, u32, uint8_t, uint32_t)
LOAD_PARAM(s8, u32, int8_t, uint32_t)
LOAD_PARAM(u16, u32, uint16_t, uint32_t)
LOAD_PARAM(s16, u32, int16_t, uint32_t)
LOAD_PARAM(u32, u32, uint32_t, uint32_t)
LOAD_PARAM(u8, u64, uint8_t, uint64_t)
LOAD_PARAM(s8, u64, int8_t, uint64_t)
LOAD_PARAM(u16, u64, uint16_t, uint64_t)
LOAD_PARAM(s16, u64, int16_t, uint64_t)
LOAD_PARAM(u32, u64, uint32_t, uint64_t)
LOAD_PARAM(s32, u64, int32_t, uint64_t)
LOAD_PARAM(u64, u64, uint64_t, uint64_t)

LOADS(G)
LOADS(S)
LOADS(L)
LOADS(F)
LOADS(A)
STORES(G)
STORES(S)
STORES(L)
STORES(F)
STORES(A)
