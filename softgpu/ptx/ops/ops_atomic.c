/* SPDX-License-Identifier: Apache-2.0
 *
 * Atomics, on any space through generic addresses; asynchronous copies and mbarriers, which are
 * done when the instruction is.
 */
#include <math.h>

#include "softgpu/ptx/ops/barrier.h"
#include "softgpu/ptx/ops/ops.h"
#include "softgpu/ptx/ops/round.h"

#define AT(size) ptx_generic(w, i, l, REG(const uint64_t, a)[l] + i->imm, size)

/* Lanes one after the other: each sees what the one before left. */
#define ATOM(op, t, T, ...)                                                                    \
	OP(atom_##op##_##t, "atom." #op "." #t, "x")                                           \
	{                                                                                      \
		DST(T);                                                                        \
		const T *b = REG(const T, b), *c = REG(const T, c);                            \
		(void)c;                                                                       \
		EACH(w->mask)                                                                  \
		{                                                                              \
			T *p = AT(sizeof(T)), v = b[l];                                        \
			d[l] = (__VA_ARGS__);                                                  \
		}                                                                              \
	}
#define SEQ __ATOMIC_SEQ_CST

/* By compare and swap: `next` of `old` and v. */
#define SWAP(op, t, T, ...)                                                                    \
	OP(atom_##op##_##t, "atom." #op "." #t, "x")                                           \
	{                                                                                      \
		DST(T);                                                                        \
		const T *b = REG(const T, b);                                                  \
		EACH(w->mask)                                                                  \
		{                                                                              \
			T *p = AT(sizeof(T)), v = b[l], old = __atomic_load_n(p, SEQ), next;   \
			do {                                                                   \
				next = (T)(__VA_ARGS__);                                       \
			} while (!__atomic_compare_exchange_n(p, &old, next, true, SEQ, SEQ)); \
			d[l] = old;                                                            \
		}                                                                              \
	}

INLINE bool swap_in(void *p, size_t size, uint64_t *old, uint64_t next)
{
	uint16_t o16 = (uint16_t)*old;
	uint32_t o32 = (uint32_t)*old;
	bool ok;

	if (size == 2) {
		ok = __atomic_compare_exchange_n(
			(uint16_t *)p, &o16, (uint16_t)next, false, SEQ, SEQ);
		*old = o16;
	} else if (size == 4) {
		ok = __atomic_compare_exchange_n(
			(uint32_t *)p, &o32, (uint32_t)next, false, SEQ, SEQ);
		*old = o32;
	} else {
		ok = __atomic_compare_exchange_n((uint64_t *)p, old, next, false, SEQ, SEQ);
	}
	return ok;
}

#define INTEGER(n, T)                                                                          \
	ATOM(add, b##n, T, __atomic_fetch_add(p, v, SEQ))                                      \
	ATOM(and, b##n, T, __atomic_fetch_and(p, v, SEQ))                                      \
	ATOM(or, b##n, T, __atomic_fetch_or(p, v, SEQ))                                        \
	ATOM(xor, b##n, T, __atomic_fetch_xor(p, v, SEQ))                                      \
	ATOM(exch, b##n, T, __atomic_exchange_n(p, v, SEQ))                                    \
	OP(atom_cas_b##n, "atom.cas.b" #n, "x")                                                \
	{                                                                                      \
		DST(T);                                                                        \
		const T *b = REG(const T, b), *c = REG(const T, c);                            \
		EACH(w->mask)                                                                  \
		{                                                                              \
			T *p = AT(sizeof(T)), old = b[l], next = c[l];                         \
			__atomic_compare_exchange_n(p, &old, next, false, SEQ, SEQ);           \
			d[l] = old;                                                            \
		}                                                                              \
	}
INTEGER(16, uint16_t)
INTEGER(32, uint32_t)
INTEGER(64, uint64_t)

/* 128 bits: compilers leave these to a library. */
static bool swap_128(unsigned __int128 *p, unsigned __int128 *old, unsigned __int128 next)
{
	uint64_t low = (uint64_t)*old, high = (uint64_t)(*old >> 64);
	bool same;

	__asm__ volatile("lock cmpxchg16b %1"
		: "=@ccz"(same), "+m"(*p), "+a"(low), "+d"(high)
		: "b"((uint64_t)next), "c"((uint64_t)(next >> 64))
		: "memory");
	*old = (unsigned __int128)high << 64 | low;
	return same;
}

OP(atom_exch_b128, "atom.exch.b128", "x")
{
	DST(unsigned __int128);
	SRC_B(unsigned __int128);

	EACH(w->mask)
	{
		unsigned __int128 *p = AT(16), old = *p;

		while (!swap_128(p, &old, b[l]))
			;
		d[l] = old;
	}
}

OP(atom_cas_b128, "atom.cas.b128", "x")
{
	DST(unsigned __int128);
	SRC_B(unsigned __int128);
	SRC_C(unsigned __int128);

	EACH(w->mask)
	{
		unsigned __int128 *p = AT(16), old = b[l];

		(void)swap_128(p, &old, c[l]);
		d[l] = old;
	}
}

#define ORDERED(t, T)                                                                          \
	SWAP(min, t, T, v < old ? v : old)                                                     \
	SWAP(max, t, T, v > old ? v : old)
ORDERED(u32, uint32_t)
ORDERED(s32, int32_t)
ORDERED(u64, uint64_t)
ORDERED(s64, int64_t)
SWAP(inc, u32, uint32_t, old >= v ? 0 : old + 1)
SWAP(dec, u32, uint32_t, old == 0 || old > v ? v : old - 1)

/* Floats: on their bits. */
INLINE uint64_t add_f32(uint64_t x, uint64_t y)
{
	uint32_t xb = (uint32_t)x, yb = (uint32_t)y;
	float a, b;

	memcpy(&a, &xb, sizeof(a));
	memcpy(&b, &yb, sizeof(b));
	a += b;
	if (a != a)
		return 0x7fffffffu;
	memcpy(&xb, &a, sizeof(xb));
	return xb;
}

INLINE uint64_t add_f64(uint64_t x, uint64_t y)
{
	double a, b;

	memcpy(&a, &x, sizeof(a));
	memcpy(&b, &y, sizeof(b));
	a += b;
	memcpy(&x, &a, sizeof(x));
	return x;
}

enum half_op { HALF_ADD, HALF_MIN, HALF_MAX };

INLINE uint64_t half_step(uint64_t x, uint64_t y, bool bf, enum half_op op)
{
	float a = bf ? ptx_bf16_to_float((uint16_t)x) : ptx_half_to_float((uint16_t)x);
	float b = bf ? ptx_bf16_to_float((uint16_t)y) : ptx_half_to_float((uint16_t)y);
	double r = op == HALF_ADD ? (double)a + (double)b
		   : isnan(a)	  ? (double)b
		   : isnan(b)	  ? (double)a
		   : (a < b || (a == b && signbit(a))) == (op == HALF_MIN) ? (double)a
									   : (double)b;

	return bf ? ptx_bf16_from(r) : ptx_half_from(r);
}

INLINE uint64_t half_pair(uint64_t x, uint64_t y, bool bf, enum half_op op)
{
	return half_step(x >> 16, y >> 16, bf, op) << 16 |
	       half_step(x & 0xffff, y & 0xffff, bf, op);
}

#define FLOATING(op, t, T, size, ...)                                                          \
	OP(atom_##op##_##t, "atom." #op "." #t, "x")                                           \
	{                                                                                      \
		DST(T);                                                                        \
		const T *b = REG(const T, b);                                                  \
		EACH(w->mask)                                                                  \
		{                                                                              \
			void *p = AT(size);                                                    \
			uint64_t old = 0, v = b[l];                                            \
			memcpy(&old, p, size);                                                 \
			while (!swap_in(p, size, &old, (__VA_ARGS__)))                         \
				;                                                              \
			d[l] = (T)old;                                                         \
		}                                                                              \
	}
FLOATING(add, f32, uint32_t, 4, add_f32(old, v))
FLOATING(add, f64, uint64_t, 8, add_f64(old, v))
FLOATING(add, f16, uint16_t, 2, half_step(old, v, false, HALF_ADD))
FLOATING(add, bf16, uint16_t, 2, half_step(old, v, true, HALF_ADD))
FLOATING(add, f16x2, uint32_t, 4, half_pair(old, v, false, HALF_ADD))
FLOATING(add, bf16x2, uint32_t, 4, half_pair(old, v, true, HALF_ADD))
FLOATING(min, f16, uint16_t, 2, half_step(old, v, false, HALF_MIN))
FLOATING(max, f16, uint16_t, 2, half_step(old, v, false, HALF_MAX))
FLOATING(min, bf16, uint16_t, 2, half_step(old, v, true, HALF_MIN))
FLOATING(max, bf16, uint16_t, 2, half_step(old, v, true, HALF_MAX))
FLOATING(min, f16x2, uint32_t, 4, half_pair(old, v, false, HALF_MIN))
FLOATING(max, f16x2, uint32_t, 4, half_pair(old, v, false, HALF_MAX))
FLOATING(min, bf16x2, uint32_t, 4, half_pair(old, v, true, HALF_MIN))
FLOATING(max, bf16x2, uint32_t, 4, half_pair(old, v, true, HALF_MAX))

/* ---- Copies ---- */

/* b bytes of e from [a] to [d]; the rest is zero. */
OP(cp_async, "cp.async", "x")
{
	const uint64_t *d = REG(const uint64_t, d), *a = REG(const uint64_t, a);
	const uint32_t *b = REG(const uint32_t, b), size = i->e;

	EACH(w->mask)
	{
		unsigned char *to = ptx_generic(w, i, l, d[l] + (uint64_t)(int32_t)i->f, size);
		uint32_t n = b[l] < size ? b[l] : size;
		unsigned char held[16] = {0};

		if (n)
			memcpy(held, ptx_generic(w, i, l, a[l] + i->imm, size), n);
		memcpy(to, held, size);
	}
}

/* ---- mbarrier ---- */

#define MBARRIER(id, name, ...)                                                                \
	OP(mbarrier_##id, "mbarrier." name, "x")                                               \
	{                                                                                      \
		EACH(w->mask)                                                                  \
		{                                                                              \
			uint64_t *p = AT(8);                                                   \
			struct mbarrier bar = mbarrier_read(p);                                \
			(void)bar;                                                             \
			__VA_ARGS__                                                            \
		}                                                                              \
	}
#define COUNT (REG(const uint32_t, b)[l])
MBARRIER(init, "init", {
	*p = COUNT | (uint64_t)COUNT << 20;
	if (!COUNT || COUNT > MBARRIER_COUNT_BITS)
		ptx_fault(w, i, PTX_TRAP, "mbarrier.init with a count of %u", COUNT);
})
/* A warp here may be far behind the thread that invalidates (libcu++'s pipelines do so at their
 * end, without waiting): what it still arrives at and waits for is there until it is
 * overwritten. */
OP(mbarrier_inval, "mbarrier.inval", "x")
{
	EACH(w->mask)
	(void)AT(8);
}
/* The state that arrive gives is the phase that it arrived in. */
MBARRIER(arrive, "arrive", {
	REG(uint64_t, d)[l] = *p;
	if (bar.pending < COUNT)
		ptx_fault(w, i, PTX_TRAP, "mbarrier.arrive: more arrivals than expected");
	bar.pending -= COUNT;
	mbarrier_write(p, bar);
})
MBARRIER(arrive_drop, "arrive_drop", {
	REG(uint64_t, d)[l] = *p;
	if (bar.pending < COUNT)
		ptx_fault(w, i, PTX_TRAP, "mbarrier.arrive_drop: more arrivals than expected");
	bar.pending -= COUNT;
	bar.expected -= COUNT;
	mbarrier_write(p, bar);
})
MBARRIER(arrive_expect_tx, "arrive.expect_tx", {
	REG(uint64_t, d)[l] = *p;
	if (!bar.pending)
		ptx_fault(w, i, PTX_TRAP, "mbarrier.arrive: more arrivals than expected");
	bar.bytes += (int32_t)COUNT;
	bar.pending--;
	mbarrier_write(p, bar);
})
MBARRIER(arrive_drop_expect_tx, "arrive_drop.expect_tx", {
	REG(uint64_t, d)[l] = *p;
	if (!bar.pending)
		ptx_fault(w, i, PTX_TRAP, "mbarrier.arrive_drop: more arrivals than expected");
	bar.bytes += (int32_t)COUNT;
	bar.pending--;
	bar.expected--;
	mbarrier_write(p, bar);
})
MBARRIER(expect_tx, "expect_tx", {
	bar.bytes += (int32_t)COUNT;
	mbarrier_write(p, bar);
})
MBARRIER(complete_tx, "complete_tx", {
	bar.bytes -= (int32_t)COUNT;
	mbarrier_write(p, bar);
})
/* Copies are complete by now: the arrival counts at once. */
MBARRIER(cp_async, "cp_async", {
	if (!i->b)
		continue; /* it would add one pending arrival and then take it */
	if (bar.pending)
		bar.pending--;
	mbarrier_write(p, bar);
})
#define PUT_LANE(is)                                                                           \
	(*ptx_pred(w, i->d) = (*ptx_pred(w, i->d) & ~(1u << l)) | (uint32_t)(is) << l)
MBARRIER(wait, "wait", { PUT_LANE((REG(const uint64_t, b)[l] ^ *p) >> 63); })
MBARRIER(wait_parity, "wait.parity", { PUT_LANE((COUNT & 1) != bar.phase); })

OP(mbarrier_pending_count, "mbarrier.pending_count", "x")
{
	EACH(m) REG(uint32_t, d)[l] = (uint32_t)REG(const uint64_t, a)[l] & MBARRIER_COUNT_BITS;
}
