/* SPDX-License-Identifier: Apache-2.0
 *
 * Integer arithmetic, logic, selection and comparison; ops_bits.c has shifts and bit fields.
 */
#include "softgpu/ptx/ops/ops.h"

#define ALL_SIZES(X) X(16, "222", uint16_t) X(32, "444", uint32_t) X(64, "888", uint64_t)
#define ALL_TYPES(X)                                                                           \
	X(u16, "222", uint16_t)                                                                \
	X(s16, "222", int16_t)                                                                 \
	X(u32, "444", uint32_t)                                                                \
	X(s32, "444", int32_t)                                                                 \
	X(u64, "888", uint64_t)                                                                \
	X(s64, "888", int64_t)

/* Sum, difference, product and logic of one size; the sign does not matter. */
#define SIZED(n, form, T)                                                                      \
	BINARY(add_b##n, "add.b" #n, form, T, T, a[l] + b[l])                                  \
	BINARY(sub_b##n, "sub.b" #n, form, T, T, a[l] - b[l])                                  \
	BINARY(mul_b##n, "mul.lo.b" #n, form, T, T, (uint64_t)a[l] * b[l])                     \
	BINARY(and_b##n, "and.b" #n, form, T, T, a[l] & b[l])                                  \
	BINARY(or_b##n, "or.b" #n, form, T, T, a[l] | b[l])                                    \
	BINARY(xor_b##n, "xor.b" #n, form, T, T, a[l] ^ b[l])
ALL_SIZES(SIZED)

#define UNARIES(n, form, T)                                                                    \
	UNARY(not_b##n, "not.b" #n, form, T, T, ~a[l])                                         \
	UNARY(cnot_b##n, "cnot.b" #n, form, T, T, a[l] == 0)                                   \
	UNARY(mov_b##n, "mov.b" #n, form, T, T, a[l])
UNARIES(16, "22", uint16_t)
UNARIES(32, "44", uint32_t)
UNARIES(64, "88", uint64_t)

#define TERNARIES(n, form, T)                                                                  \
	TERNARY(mad_b##n, "mad.lo.b" #n, form, T, T, T, (uint64_t)a[l] * b[l] + c[l])
TERNARIES(16, "2222", uint16_t)
TERNARIES(32, "4444", uint32_t)
TERNARIES(64, "8888", uint64_t)

OP(mov_b128, "mov.b128", "xx")
{
	EACH(m)
	memcpy(ptx_reg(w, i->d) + 16 * l, ptx_reg(w, i->a) + 16 * l, 16);
}

#define MINMAX(t, form, T)                                                                     \
	BINARY(min_##t, "min." #t, form, T, T, a[l] < b[l] ? a[l] : b[l])                      \
	BINARY(max_##t, "max." #t, form, T, T, a[l] > b[l] ? a[l] : b[l])
ALL_TYPES(MINMAX)

/* Two halves of a word, each on its own. */
#define HALVES(id, name, T, ...)                                                               \
	OP(id, name, "444")                                                                    \
	{                                                                                      \
		DST(uint32_t);                                                                 \
		SRC_A(uint32_t);                                                               \
		SRC_B(uint32_t);                                                               \
		LANES                                                                          \
		{                                                                              \
			uint32_t r = 0;                                                        \
			for (unsigned at = 0; at < 32; at += 16) {                             \
				const int x = (T)(a[l] >> at), y = (T)(b[l] >> at);            \
				r |= (uint32_t)(uint16_t)(__VA_ARGS__) << at;                  \
			}                                                                      \
			d[l] = full || (m >> l & 1) ? r : d[l];                                \
		}                                                                              \
	}
HALVES(add_u16x2, "add.u16x2", uint16_t, x + y)
HALVES(add_s16x2, "add.s16x2", int16_t, x + y)
HALVES(min_u16x2, "min.u16x2", uint16_t, LEAST(x, y))
HALVES(max_u16x2, "max.u16x2", uint16_t, MOST(x, y))
HALVES(min_s16x2, "min.s16x2", int16_t, LEAST(x, y))
HALVES(max_s16x2, "max.s16x2", int16_t, MOST(x, y))
HALVES(min_relu_s16x2, "min.relu.s16x2", int16_t, MOST(LEAST(x, y), 0))
HALVES(max_relu_s16x2, "max.relu.s16x2", int16_t, MOST(MOST(x, y), 0))
BINARY(min_relu_s32, "min.relu.s32", "444", int32_t, int32_t, MOST(LEAST(a[l], b[l]), 0))
BINARY(max_relu_s32, "max.relu.s32", "444", int32_t, int32_t, MOST(MOST(a[l], b[l]), 0))

#define SIGNED(t, form, T, U)                                                                  \
	UNARY(neg_##t, "neg." #t, form, U, U, 0 - a[l])                                        \
	UNARY(abs_##t, "abs." #t, form, U, U, (T)a[l] < 0 ? 0 - a[l] : a[l])
SIGNED(s16, "22", int16_t, uint16_t)
SIGNED(s32, "44", int32_t, uint32_t)
SIGNED(s64, "88", int64_t, uint64_t)

/* Division by zero gives all ones and the remainder the dividend; so did every GPU seen. */
#define DIVIDE(t, form, T, least)                                                              \
	OP(div_##t, "div." #t, form)                                                           \
	{                                                                                      \
		DST(T);                                                                        \
		SRC_A(T);                                                                      \
		SRC_B(T);                                                                      \
		EACH(m)                                                                        \
		d[l] = (T)(b[l] == 0					      ? (T) - 1        \
			   : (least) && a[l] == (T)(least) && b[l] == (T) - 1 ? a[l]           \
									      : a[l] / b[l]);  \
	}                                                                                      \
	OP(rem_##t, "rem." #t, form)                                                           \
	{                                                                                      \
		DST(T);                                                                        \
		SRC_A(T);                                                                      \
		SRC_B(T);                                                                      \
		EACH(m)                                                                        \
		d[l] = (T)(b[l] == 0 ? a[l] : (least) && b[l] == (T) - 1 ? 0 : a[l] % b[l]);   \
	}
DIVIDE(u16, "222", uint16_t, 0)
DIVIDE(s16, "222", int16_t, INT16_MIN)
DIVIDE(u32, "444", uint32_t, 0)
DIVIDE(s32, "444", int32_t, INT32_MIN)
DIVIDE(u64, "888", uint64_t, 0)
DIVIDE(s64, "888", int64_t, INT64_MIN)

/* High half and full product. */
#define HIGH(t, form, form3, T, W, bits)                                                       \
	BINARY(mul_hi_##t, "mul.hi." #t, form, T, T, (W)((W)a[l] * (W)b[l]) >> bits)           \
	TERNARY(mad_hi_##t, "mad.hi." #t, form3, T, T, T,                                      \
		(uint64_t)((W)((W)a[l] * (W)b[l]) >> bits) + (uint64_t)c[l])
HIGH(u16, "222", "2222", uint16_t, uint32_t, 16)
HIGH(s16, "222", "2222", int16_t, int32_t, 16)
HIGH(u32, "444", "4444", uint32_t, uint64_t, 32)
HIGH(s32, "444", "4444", int32_t, int64_t, 32)
HIGH(u64, "888", "8888", uint64_t, unsigned __int128, 64)
HIGH(s64, "888", "8888", int64_t, __int128, 64)

#define WIDE(t, form, form3, T, W, U)                                                          \
	BINARY(mul_wide_##t, "mul.wide." #t, form, W, T, (W)a[l] * (W)b[l])                    \
	TERNARY(mad_wide_##t, "mad.wide." #t, form3, U, T, U, (U)((W)a[l] * (W)b[l]) + c[l])
WIDE(u16, "422", "4224", uint16_t, uint32_t, uint32_t)
WIDE(s16, "422", "4224", int16_t, int32_t, uint32_t)
WIDE(u32, "844", "8448", uint32_t, uint64_t, uint64_t)
WIDE(s32, "844", "8448", int32_t, int64_t, uint64_t)

INLINE int32_t saturate(int64_t v)
{
	return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;
}

BINARY(add_sat_s32, "add.sat.s32", "444", int32_t, int32_t, saturate((int64_t)a[l] + b[l]))
BINARY(sub_sat_s32, "sub.sat.s32", "444", int32_t, int32_t, saturate((int64_t)a[l] - b[l]))
TERNARY(mad_hi_sat_s32, "mad.hi.sat.s32", "4444", int32_t, int32_t, int32_t,
	saturate((((int64_t)a[l] * b[l]) >> 32) + c[l]))

INLINE int64_t low24s(int32_t v)
{
	return (int32_t)((uint32_t)v << 8) >> 8;
}
#define LOW24U(v) ((uint64_t)((v) & 0xffffffu))

BINARY(mul24_lo_u32, "mul24.lo.u32", "444", uint32_t, uint32_t, LOW24U(a[l]) * LOW24U(b[l]))
BINARY(mul24_hi_u32, "mul24.hi.u32", "444", uint32_t, uint32_t,
	(LOW24U(a[l]) * LOW24U(b[l])) >> 16)
BINARY(mul24_lo_s32, "mul24.lo.s32", "444", int32_t, int32_t, low24s(a[l]) * low24s(b[l]))
BINARY(mul24_hi_s32, "mul24.hi.s32", "444", int32_t, int32_t,
	(low24s(a[l]) * low24s(b[l])) >> 16)
TERNARY(mad24_lo_u32, "mad24.lo.u32", "4444", uint32_t, uint32_t, uint32_t,
	LOW24U(a[l]) * LOW24U(b[l]) + c[l])
TERNARY(mad24_hi_u32, "mad24.hi.u32", "4444", uint32_t, uint32_t, uint32_t,
	((LOW24U(a[l]) * LOW24U(b[l])) >> 16) + c[l])
TERNARY(mad24_lo_s32, "mad24.lo.s32", "4444", int32_t, int32_t, int32_t,
	low24s(a[l]) * low24s(b[l]) + c[l])
TERNARY(mad24_hi_s32, "mad24.hi.s32", "4444", int32_t, int32_t, int32_t,
	((low24s(a[l]) * low24s(b[l])) >> 16) + c[l])

TERNARY(mad24_hi_sat_s32, "mad24.hi.sat.s32", "4444", int32_t, int32_t, int32_t,
	saturate(((low24s(a[l]) * low24s(b[l])) >> 16) + c[l]))

#define SAD(t, form, T, U)                                                                     \
	TERNARY(sad_##t, "sad." #t, form, U, T, U,                                             \
		c[l] + (a[l] < b[l] ? (U)b[l] - (U)a[l] : (U)a[l] - (U)b[l]))
SAD(u16, "2222", uint16_t, uint16_t)
SAD(s16, "2222", int16_t, uint16_t)
SAD(u32, "4444", uint32_t, uint32_t)
SAD(s32, "4444", int32_t, uint32_t)
SAD(u64, "8888", uint64_t, uint64_t)
SAD(s64, "8888", int64_t, uint64_t)

/* Carries: one bit a lane, at the start of the frame's registers. A subtraction is a + ~b + 1,
 * so that its carry says that nothing was borrowed: NVIDIA's division of 128 bits adds it (addc
 * behind subc.cc), though PTX calls it a borrow. */
#define CARRY ((uint32_t *)(void *)w->base[0])
#define SET_CARRY(carry) (*CARRY = full ? (carry) : (((carry) & m) | (*CARRY & ~m)))

#define CARRIES(n, form, form3, T)                                                             \
	OP(add_cc_b##n, "add.cc.b" #n, form)                                                   \
	{                                                                                      \
		DST(T);                                                                        \
		SRC_A(T);                                                                      \
		SRC_B(T);                                                                      \
		uint32_t out = 0;                                                              \
		LANES out |= (uint32_t)((T)(a[l] + b[l]) < a[l]) << l;                         \
		PUT(T, a[l] + b[l]);                                                           \
		SET_CARRY(out);                                                                \
	}                                                                                      \
	OP(addc_b##n, "addc.b" #n, form)                                                       \
	{                                                                                      \
		DST(T);                                                                        \
		SRC_A(T);                                                                      \
		SRC_B(T);                                                                      \
		const uint32_t in = *CARRY;                                                    \
		PUT(T, a[l] + b[l] + (in >> l & 1));                                           \
	}                                                                                      \
	OP(addc_cc_b##n, "addc.cc.b" #n, form)                                                 \
	{                                                                                      \
		DST(T);                                                                        \
		SRC_A(T);                                                                      \
		SRC_B(T);                                                                      \
		const uint32_t in = *CARRY;                                                    \
		uint32_t out = 0;                                                              \
		LANES out |= (uint32_t)((in >> l & 1) ? (T)(a[l] + b[l] + 1) <= a[l]           \
						      : (T)(a[l] + b[l]) < a[l])               \
			     << l;                                                             \
		PUT(T, a[l] + b[l] + (in >> l & 1));                                           \
		SET_CARRY(out);                                                                \
	}                                                                                      \
	OP(sub_cc_b##n, "sub.cc.b" #n, form)                                                   \
	{                                                                                      \
		DST(T);                                                                        \
		SRC_A(T);                                                                      \
		SRC_B(T);                                                                      \
		uint32_t out = 0;                                                              \
		LANES out |= (uint32_t)(a[l] >= b[l]) << l;                                    \
		PUT(T, a[l] - b[l]);                                                           \
		SET_CARRY(out);                                                                \
	}                                                                                      \
	OP(subc_b##n, "subc.b" #n, form)                                                       \
	{                                                                                      \
		DST(T);                                                                        \
		SRC_A(T);                                                                      \
		SRC_B(T);                                                                      \
		const uint32_t in = *CARRY;                                                    \
		PUT(T, a[l] - b[l] - (~in >> l & 1));                                          \
	}                                                                                      \
	OP(subc_cc_b##n, "subc.cc.b" #n, form)                                                 \
	{                                                                                      \
		DST(T);                                                                        \
		SRC_A(T);                                                                      \
		SRC_B(T);                                                                      \
		const uint32_t in = *CARRY;                                                    \
		uint32_t out = 0;                                                              \
		LANES out |= (uint32_t)((in >> l & 1) ? a[l] >= b[l] : a[l] > b[l]) << l;      \
		PUT(T, a[l] - b[l] - (~in >> l & 1));                                          \
		SET_CARRY(out);                                                                \
	}
CARRIES(32, "444", "4444", uint32_t)
CARRIES(64, "888", "8888", uint64_t)

#define MAD_CARRY(half, t, form, T, takes, gives, name, product)                               \
	OP(mad_##half##_##t##_##takes##gives, name, form)                                      \
	{                                                                                      \
		DST(T);                                                                        \
		SRC_A(T);                                                                      \
		SRC_B(T);                                                                      \
		SRC_C(T);                                                                      \
		const uint32_t in = (takes) ? *CARRY : 0;                                      \
		uint32_t out = 0;                                                              \
		EACH(m)                                                                        \
		{                                                                              \
			T p = (T)(product), k = (T)(in >> l & 1);                              \
			T s = (T)((uint64_t)p + (uint64_t)c[l] + (uint64_t)k);                 \
			unsigned __int128 mask = (sizeof(T) == 8) ? UINT64_MAX : UINT32_MAX;   \
			out |= (uint32_t)((((unsigned __int128)p & mask) +                     \
						  ((unsigned __int128)c[l] & mask) +           \
						  (unsigned __int128)k) >>                     \
						  (8 * sizeof(T)) &                            \
					  1)                                                   \
			       << l;                                                           \
			d[l] = s;                                                              \
		}                                                                              \
		if (gives)                                                                     \
			*CARRY = (out & m) | (*CARRY & ~m);                                    \
	}
#define MAD_CARRIES(half, t, form, T, suffix, product)                                         \
	MAD_CARRY(half, t, form, T, 0, 1, "mad." #half ".cc." suffix, product)                 \
	MAD_CARRY(half, t, form, T, 1, 0, "madc." #half "." suffix, product)                   \
	MAD_CARRY(half, t, form, T, 1, 1, "madc." #half ".cc." suffix, product)
MAD_CARRIES(lo, b32, "4444", uint32_t, "b32", (uint64_t)a[l] * b[l])
MAD_CARRIES(lo, b64, "8888", uint64_t, "b64", a[l] * b[l])
MAD_CARRIES(hi, u32, "4444", uint32_t, "u32", ((uint64_t)a[l] * b[l]) >> 32)
MAD_CARRIES(hi, s32, "4444", int32_t, "s32", ((int64_t)a[l] * b[l]) >> 32)
MAD_CARRIES(hi, u64, "8888", uint64_t, "u64", ((unsigned __int128)a[l] * b[l]) >> 64)
MAD_CARRIES(hi, s64, "8888", int64_t, "s64", ((__int128)a[l] * b[l]) >> 64)

/* Dot products of bytes. */
#define BYTE_u32(v, k) ((int32_t)((v) >> (8 * (k)) & 255))
#define BYTE_s32(v, k) ((int32_t)(int8_t)((v) >> (8 * (k)) & 255))
#define HALF_u32(v, k) ((int32_t)((v) >> (16 * (k)) & 0xffff))
#define HALF_s32(v, k) ((int32_t)(int16_t)((v) >> (16 * (k)) & 0xffff))
#define DOT(ta, tb)                                                                            \
	TERNARY(dp4a_##ta##_##tb, "dp4a." #ta "." #tb, "4444", uint32_t, uint32_t, uint32_t,   \
		c[l] + (uint32_t)(BYTE_##ta(a[l], 0) * BYTE_##tb(b[l], 0)) +                   \
			(uint32_t)(BYTE_##ta(a[l], 1) * BYTE_##tb(b[l], 1)) +                  \
			(uint32_t)(BYTE_##ta(a[l], 2) * BYTE_##tb(b[l], 2)) +                  \
			(uint32_t)(BYTE_##ta(a[l], 3) * BYTE_##tb(b[l], 3)))                   \
	TERNARY(dp2a_lo_##ta##_##tb, "dp2a.lo." #ta "." #tb, "4444", uint32_t, uint32_t,       \
		uint32_t,                                                                      \
		c[l] + (uint32_t)HALF_##ta(a[l], 0) * (uint32_t)BYTE_##tb(b[l], 0) +           \
			(uint32_t)HALF_##ta(a[l], 1) * (uint32_t)BYTE_##tb(b[l], 1))           \
	TERNARY(dp2a_hi_##ta##_##tb, "dp2a.hi." #ta "." #tb, "4444", uint32_t, uint32_t,       \
		uint32_t,                                                                      \
		c[l] + (uint32_t)HALF_##ta(a[l], 0) * (uint32_t)BYTE_##tb(b[l], 2) +           \
			(uint32_t)HALF_##ta(a[l], 1) * (uint32_t)BYTE_##tb(b[l], 3))
DOT(u32, u32)
DOT(u32, s32)
DOT(s32, u32)
DOT(s32, s32)

/* Predicates are masks. */
#define PRED(id, name, form, ...)                                                              \
	OP(id, name, form)                                                                     \
	{                                                                                      \
		uint32_t a = *ptx_pred(w, i->a), b MAYBE_UNUSED = *ptx_pred(w, i->b);          \
		uint32_t *d = ptx_pred(w, i->d), r = (__VA_ARGS__);                            \
		*d = full ? r : ((r & m) | (*d & ~m));                                         \
	}
PRED(mov_pred, "mov.pred", "11", a)
PRED(not_pred, "not.pred", "11", ~a)
PRED(and_pred, "and.pred", "111", a &b)
PRED(or_pred, "or.pred", "111", a | b)
PRED(xor_pred, "xor.pred", "111", a ^ b)

#define SELECT(n, form, T)                                                                     \
	OP(selp_b##n, "selp.b" #n, form)                                                       \
	{                                                                                      \
		DST(T);                                                                        \
		SRC_A(T);                                                                      \
		SRC_B(T);                                                                      \
		const uint32_t p = *ptx_pred(w, i->c);                                         \
		PUT(T, (p >> l & 1) ? a[l] : b[l]);                                            \
	}
SELECT(16, "2221", uint16_t)
SELECT(32, "4441", uint32_t)
SELECT(64, "8881", uint64_t)

#define SLCT(n, t, form, T)                                                                    \
	TERNARY(slct_##t##_s32, "slct." #t ".s32", form, T, T, int32_t,                        \
		c[l] >= 0 ? a[l] : b[l])                                                       \
	TERNARY(slct_##t##_f32, "slct." #t ".f32", form, T, T, float, c[l] >= 0 ? a[l] : b[l])
#define SLCTS(n, form, T) SLCT(n, b##n, form, T) SLCT(n, u##n, form, T) SLCT(n, s##n, form, T)
SLCTS(16, "2224", uint16_t)
SLCTS(32, "4444", uint32_t)
SLCTS(64, "8884", uint64_t)
SLCT(32, f32, "4444", uint32_t)
SLCT(64, f64, "8884", uint64_t)

#define SETP(cmp, op, t, form, T)                                                              \
	OP(setp_##cmp##_##t, "setp." #cmp "." #t, form)                                        \
	{                                                                                      \
		SRC_A(T);                                                                      \
		SRC_B(T);                                                                      \
		PUT_PRED(d, a[l] op b[l]);                                                     \
	}
#define SETPS(t, form, T)                                                                      \
	SETP(eq, ==, t, form, T)                                                               \
	SETP(ne, !=, t, form, T)                                                               \
	SETP(lt, <, t, form, T)                                                                \
	SETP(le, <=, t, form, T)                                                               \
	SETP(gt, >, t, form, T)                                                                \
	SETP(ge, >=, t, form, T)
#define SETPS_UNSIGNED(t, form, T)                                                             \
	SETP(lo, <, t, form, T)                                                                \
	SETP(ls, <=, t, form, T)                                                               \
	SETP(hi, >, t, form, T)                                                                \
	SETP(hs, >=, t, form, T)
SETPS(u16, "122", uint16_t)
SETPS(s16, "122", int16_t)
SETPS(u32, "144", uint32_t)
SETPS(s32, "144", int32_t)
SETPS(u64, "188", uint64_t)
SETPS(s64, "188", int64_t)
SETPS_UNSIGNED(u16, "122", uint16_t)
SETPS_UNSIGNED(u32, "144", uint32_t)
SETPS_UNSIGNED(u64, "188", uint64_t)

/* mov with { }: the parts in d, b, c, e (unpack) or a, b, c, e (pack). */
INLINE void unpack_lane(unsigned char *d, const uint64_t *source, uint32_t l, size_t k,
	size_t whole, size_t part, size_t lane)
{
	uint64_t v = 0;

	memcpy(&v, (const unsigned char *)source + l * whole + k * part, part);
	memcpy(d + l * lane, &v, lane);
}

INLINE void unpack(struct ptx_warp *w, const struct ptx_ins *i, uint32_t m, bool full,
	size_t whole, size_t part, size_t lane)
{
	const uint32_t to[4] = {i->d, i->b, i->c, i->e};
	uint64_t source[PTX_LANES * 2];

	memcpy(source, ptx_reg(w, i->a), PTX_LANES * whole);
	for (size_t k = 0; k < whole / part; k++) {
		unsigned char *d = ptx_reg(w, to[k]);

		if (full)
			LANES unpack_lane(d, source, l, k, whole, part, lane);
		else
			EACH(m) unpack_lane(d, source, l, k, whole, part, lane);
	}
}

INLINE void pack(struct ptx_warp *w, const struct ptx_ins *i, uint32_t m, bool full,
	size_t whole, size_t part, size_t lane)
{
	const uint32_t from[4] = {i->a, i->b, i->c, i->e};
	unsigned char *d = ptx_reg(w, i->d);
	unsigned char result[16 * PTX_LANES];

	for (size_t k = 0; k < whole / part; k++) {
		const unsigned char *a = ptx_reg(w, from[k]);

		LANES memcpy(result + l * whole + k * part, a + l * lane, part);
	}
	if (full)
		memcpy(d, result, PTX_LANES * whole);
	else
		EACH(m) memcpy(d + l * whole, result + l * whole, whole);
}

#define PACK(big, small, whole, part, lane)                                                    \
	OP(pack_b##big##_b##small, "pack.b" #big ".b" #small, "x")                             \
	{                                                                                      \
		pack(w, i, m, full, whole, part, lane);                                        \
	}                                                                                      \
	OP(unpack_b##big##_b##small, "unpack.b" #big ".b" #small, "x")                         \
	{                                                                                      \
		unpack(w, i, m, full, whole, part, lane);                                      \
	}
PACK(16, 8, 2, 1, 2)
PACK(32, 8, 4, 1, 2)
PACK(32, 16, 4, 2, 2)
PACK(64, 16, 8, 2, 2)
PACK(64, 32, 8, 4, 4)
PACK(128, 32, 16, 4, 4)
PACK(128, 64, 16, 8, 8)
PACK(16, 16, 2, 2, 2)
PACK(32, 32, 4, 4, 4)
PACK(64, 64, 8, 8, 8)
