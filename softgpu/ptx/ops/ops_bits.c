/* SPDX-License-Identifier: Apache-2.0
 *
 * Bits: shifts, bit fields, counts, permutations of bytes, any function of three words.
 */
#include "softgpu/ptx/ops/ops.h"

/* Shifts clamp at the width. */
#define SHIFT(id, name, form, T, far, near)                                                    \
	OP(id, name, form)                                                                     \
	{                                                                                      \
		DST(T);                                                                        \
		SRC_A(T);                                                                      \
		SRC_B(uint32_t);                                                               \
		PUT(T, b[l] >= 8 * sizeof(T) ? (far) : (near));                                \
	}
#define SHIFTS(n, form, U, S)                                                                  \
	SHIFT(shl_b##n, "shl.b" #n, form, U, 0, a[l] << (b[l] & (n - 1)))                      \
	SHIFT(shr_u##n, "shr.u" #n, form, U, 0, a[l] >> (b[l] & (n - 1)))                      \
	SHIFT(shr_b##n, "shr.b" #n, form, U, 0, a[l] >> (b[l] & (n - 1)))                      \
	SHIFT(shr_s##n, "shr.s" #n, form, S, a[l] < 0 ? -1 : 0, a[l] >> (b[l] & (n - 1)))
SHIFTS(16, "224", uint16_t, int16_t)
SHIFTS(32, "444", uint32_t, int32_t)
SHIFTS(64, "884", uint64_t, int64_t)

#define PAIR64 ((uint64_t)b[l] << 32 | a[l])
TERNARY(shf_l_wrap, "shf.l.wrap.b32", "4444", uint32_t, uint32_t, uint32_t,
	(PAIR64 << (c[l] & 31)) >> 32)
TERNARY(shf_r_wrap, "shf.r.wrap.b32", "4444", uint32_t, uint32_t, uint32_t,
	PAIR64 >> (c[l] & 31))
TERNARY(shf_l_clamp, "shf.l.clamp.b32", "4444", uint32_t, uint32_t, uint32_t,
	(PAIR64 << (c[l] < 32 ? c[l] : 32)) >> 32)
TERNARY(shf_r_clamp, "shf.r.clamp.b32", "4444", uint32_t, uint32_t, uint32_t,
	PAIR64 >> (c[l] < 32 ? c[l] : 32))

/* Bit fields.  Position and length: their low eight bits, as PTX says, for a field in 32 bits;
 * for one in 64 bits all their bits, as on an H200 (2026-11-23). */
#define FIELD_32(v) ((v) & 255)
#define FIELD_64(v) LEAST(v, 255)

#define BFE(size, t, form, T, U, is_signed)                                                    \
	OP(bfe_##t, "bfe." #t, form)                                                           \
	{                                                                                      \
		DST(U);                                                                        \
		SRC_A(U);                                                                      \
		SRC_B(uint32_t);                                                               \
		SRC_C(uint32_t);                                                               \
		EACH(m)                                                                        \
		{                                                                              \
			const unsigned bits = 8 * sizeof(U);                                   \
			unsigned at = FIELD_##size(b[l]), n = FIELD_##size(c[l]);              \
			unsigned top = at + n > bits ? bits - 1 : at + n - 1;                  \
			U v = at < bits ? (U)(a[l] >> at) : 0;                                 \
			if (n < bits)                                                          \
				v &= (U)(((U)1 << n) - 1);                                     \
			if ((is_signed) && n && (a[l] >> top & 1)) {                           \
				unsigned have = at >= bits	? 0                            \
						: at + n > bits ? bits - at                    \
								: n;                           \
				if (have < bits)                                               \
					v |= (U)(~(U)0 << have);                               \
			}                                                                      \
			d[l] = n ? v : 0;                                                      \
		}                                                                              \
	}
BFE(32, u32, "4444", uint32_t, uint32_t, false)
BFE(32, s32, "4444", int32_t, uint32_t, true)
BFE(64, u64, "8844", uint64_t, uint64_t, false)
BFE(64, s64, "8844", int64_t, uint64_t, true)

#define BFI(n, form, U)                                                                        \
	OP(bfi_b##n, "bfi.b" #n, form)                                                         \
	{                                                                                      \
		DST(U);                                                                        \
		SRC_A(U);                                                                      \
		SRC_B(U);                                                                      \
		SRC_C(uint32_t);                                                               \
		const uint32_t *e = REG(const uint32_t, e);                                    \
		EACH(m)                                                                        \
		{                                                                              \
			unsigned at = FIELD_##n(c[l]), len = FIELD_##n(e[l]);                  \
			U mask = len >= n ? ~(U)0 : (U)(((U)1 << len) - 1);                    \
			if (at >= n)                                                           \
				mask = 0, at = 0;                                              \
			d[l] = (U)((b[l] & ~(U)(mask << at)) | ((a[l] & mask) << at));         \
		}                                                                              \
	}
BFI(32, "44444", uint32_t)
BFI(64, "88844", uint64_t)

#define BFIND(t, form, T, U, lead, flip)                                                       \
	UNARY(bfind_##t, "bfind." #t, form, uint32_t, U,                                       \
		(flip) == 0 ? UINT32_MAX                                                       \
			    : (uint32_t)(8 * sizeof(U) - 1) - (uint32_t)lead(flip))            \
	UNARY(bfind_shift_##t, "bfind.shiftamt." #t, form, uint32_t, U,                        \
		(flip) == 0 ? UINT32_MAX : (uint32_t)lead(flip))
BFIND(u32, "44", uint32_t, uint32_t, __builtin_clz, a[l])
BFIND(s32, "44", int32_t, uint32_t, __builtin_clz, ((int32_t)a[l] < 0 ? ~a[l] : a[l]))
BFIND(u64, "48", uint64_t, uint64_t, __builtin_clzll, a[l])
BFIND(s64, "48", int64_t, uint64_t, __builtin_clzll, ((int64_t)a[l] < 0 ? ~a[l] : a[l]))

INLINE uint32_t reverse32(uint32_t v)
{
	v = (v >> 1 & 0x55555555u) | (v & 0x55555555u) << 1;
	v = (v >> 2 & 0x33333333u) | (v & 0x33333333u) << 2;
	v = (v >> 4 & 0x0f0f0f0fu) | (v & 0x0f0f0f0fu) << 4;
	return __builtin_bswap32(v);
}

UNARY(brev_b32, "brev.b32", "44", uint32_t, uint32_t, reverse32(a[l]))
UNARY(brev_b64, "brev.b64", "88", uint64_t, uint64_t,
	(uint64_t)reverse32((uint32_t)a[l]) << 32 | reverse32((uint32_t)(a[l] >> 32)))
UNARY(popc_b32, "popc.b32", "44", uint32_t, uint32_t, __builtin_popcount(a[l]))
UNARY(popc_b64, "popc.b64", "48", uint32_t, uint64_t, __builtin_popcountll(a[l]))
UNARY(clz_b32, "clz.b32", "44", uint32_t, uint32_t, a[l] ? __builtin_clz(a[l]) : 32)
UNARY(clz_b64, "clz.b64", "48", uint32_t, uint64_t, a[l] ? __builtin_clzll(a[l]) : 64)

/* The c-th set bit from b on, upwards, or downwards where c is negative. */
OP(fns_b32, "fns.b32", "4444")
{
	DST(uint32_t);
	SRC_A(uint32_t);
	SRC_B(uint32_t);
	SRC_C(int32_t);

	EACH(m)
	{
		uint32_t bits = a[l], base = b[l], found = UINT32_MAX;
		int32_t k = c[l];

		if (k == 0) {
			if (base < 32 && bits >> base & 1)
				found = base;
		} else {
			int step = k > 0 ? 1 : -1;
			int32_t left = k > 0 ? k : -k;

			for (int64_t at = base; at >= 0 && at < 32; at += step)
				if (bits >> at & 1 && --left == 0) {
					found = (uint32_t)at;
					break;
				}
		}
		d[l] = found;
	}
}

INLINE uint32_t permute(uint32_t a, uint32_t b, uint32_t c, bool sign)
{
	uint64_t both = (uint64_t)b << 32 | a;
	uint32_t r = 0;

	for (unsigned k = 0; k < 4; k++) {
		uint32_t sel = c >> (4 * k) & 15;
		uint32_t byte = (uint32_t)(both >> (8 * (sel & 7))) & 255;

		if (sign && sel & 8)
			byte = byte & 128 ? 255 : 0;
		r |= byte << (8 * k);
	}
	return r;
}

#define PRMT(id, name, ...)                                                                    \
	OP(id, name, "4444")                                                                   \
	{                                                                                      \
		DST(uint32_t);                                                                 \
		SRC_A(uint32_t);                                                               \
		SRC_B(uint32_t);                                                               \
		SRC_C(uint32_t);                                                               \
		EACH(m) d[l] = permute(a[l], b[l], __VA_ARGS__);                               \
	}
/* The named modes as selectors, by c & 3. */
INLINE uint32_t pick(const uint16_t table[4], uint32_t c)
{
	return table[c & 3];
}
static const uint16_t f4e[] = {0x3210, 0x4321, 0x5432, 0x6543};
static const uint16_t b4e[] = {0x5670, 0x6701, 0x7012, 0x0123};
static const uint16_t rc8[] = {0x0000, 0x1111, 0x2222, 0x3333};
static const uint16_t ecl[] = {0x3210, 0x3211, 0x3222, 0x3333};
static const uint16_t ecr[] = {0x0000, 0x1110, 0x2210, 0x3210};
static const uint16_t rc16[] = {0x1010, 0x3232, 0x1010, 0x3232};
PRMT(prmt, "prmt.b32", c[l], true)
PRMT(prmt_f4e, "prmt.f4e.b32", pick(f4e, c[l]), false)
PRMT(prmt_b4e, "prmt.b4e.b32", pick(b4e, c[l]), false)
PRMT(prmt_rc8, "prmt.rc8.b32", pick(rc8, c[l]), false)
PRMT(prmt_ecl, "prmt.ecl.b32", pick(ecl, c[l]), false)
PRMT(prmt_ecr, "prmt.ecr.b32", pick(ecr, c[l]), false)
PRMT(prmt_rc16, "prmt.rc16.b32", pick(rc16, c[l]), false)

OP(lop3, "lop3.b32", "44444")
{
	DST(uint32_t);
	SRC_A(uint32_t);
	SRC_B(uint32_t);
	SRC_C(uint32_t);
	const uint32_t lut = *REG(const uint32_t, e);
	const uint32_t k0 = 0 - (lut & 1), k1 = 0 - (lut >> 1 & 1), k2 = 0 - (lut >> 2 & 1),
		       k3 = 0 - (lut >> 3 & 1), k4 = 0 - (lut >> 4 & 1),
		       k5 = 0 - (lut >> 5 & 1), k6 = 0 - (lut >> 6 & 1),
		       k7 = 0 - (lut >> 7 & 1);

	PUT(uint32_t, (~a[l] & ((~b[l] & ((~c[l] & k0) | (c[l] & k1))) |
				       (b[l] & ((~c[l] & k2) | (c[l] & k3))))) |
			      (a[l] & ((~b[l] & ((~c[l] & k4) | (c[l] & k5))) |
					      (b[l] & ((~c[l] & k6) | (c[l] & k7))))));
}

#define SZEXT(t, T, mode, wraps, is_signed)                                                    \
	OP(szext_##mode##_##t, "szext." #mode "." #t, "444")                                   \
	{                                                                                      \
		DST(uint32_t);                                                                 \
		SRC_A(uint32_t);                                                               \
		SRC_B(uint32_t);                                                               \
		EACH(m)                                                                        \
		{                                                                              \
			uint32_t n = (wraps) ? b[l] & 31 : b[l], v = a[l];                     \
			if (n == 0)                                                            \
				v = 0;                                                         \
			else if (n < 32)                                                       \
				v = (is_signed)                                                \
					    ? (uint32_t)((int32_t)(v << (32 - n)) >> (32 - n)) \
					    : v & ((1u << n) - 1);                             \
			d[l] = v;                                                              \
		}                                                                              \
	}
SZEXT(u32, uint32_t, wrap, true, false)
SZEXT(s32, int32_t, wrap, true, true)
SZEXT(u32, uint32_t, clamp, false, false)
SZEXT(s32, int32_t, clamp, false, true)

INLINE uint32_t bit_mask(uint32_t at, uint32_t n)
{
	uint64_t ones = n >= 32 ? UINT32_MAX : (UINT64_C(1) << n) - 1;

	return at >= 32 ? 0 : (uint32_t)(ones << at);
}
BINARY(bmsk_clamp, "bmsk.clamp.b32", "444", uint32_t, uint32_t, bit_mask(a[l], b[l]))
BINARY(bmsk_wrap, "bmsk.wrap.b32", "444", uint32_t, uint32_t, bit_mask(a[l] & 31, b[l] & 31))
