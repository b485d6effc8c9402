/* SPDX-License-Identifier: Apache-2.0
 *
 * Half precision: f16 and bf16, alone and in pairs.  Computed in double and rounded once: sums
 * that a double cannot hold are made odd where something was lost, so that the second rounding
 * cannot go wrong.
 */
#include "softgpu/ptx/ops/ops.h"
#include "softgpu/ptx/ops/round.h"

/* What the template needs to know of a format. */
INLINE double f16_read(uint16_t v)
{
	return (double)ptx_half_to_float(v);
}

INLINE uint16_t f16_write(double v)
{
	return ptx_half_from(v);
}

INLINE double bf16_read(uint16_t v)
{
	return (double)ptx_bf16_to_float(v);
}

INLINE uint16_t bf16_write(double v)
{
	return ptx_bf16_from(v);
}

/* The plain sums and products, in float where that is right: it has two bits more than twice
 * those of either format, so rounding a sum twice is rounding it once, and the product of two
 * f16 is exact. */
INLINE uint16_t f16_add(uint16_t xh, uint16_t yh)
{
	return ptx_half_of(ptx_float_bits(ptx_half_to_float(xh) + ptx_half_to_float(yh)));
}

INLINE uint16_t f16_mul(uint16_t xh, uint16_t yh)
{
	return ptx_half_of(ptx_float_bits(ptx_half_to_float(xh) * ptx_half_to_float(yh)));
}

INLINE uint16_t f16_fma(uint16_t xh, uint16_t yh, uint16_t zh)
{
	return ptx_half_of(ptx_float_bits(ptx_add_odd_float(
		ptx_half_to_float(xh) * ptx_half_to_float(yh), ptx_half_to_float(zh))));
}

INLINE uint16_t bf16_add(uint16_t xh, uint16_t yh)
{
	return ptx_bf16_of(ptx_float_bits(ptx_bf16_to_float(xh) + ptx_bf16_to_float(yh)));
}

INLINE uint16_t bf16_mul(uint16_t xh, uint16_t yh)
{
	return bf16_write(bf16_read(xh) * bf16_read(yh));
}

INLINE uint16_t bf16_fma(uint16_t xh, uint16_t yh, uint16_t zh)
{
	return bf16_write(ptx_add_odd(bf16_read(xh) * bf16_read(yh), bf16_read(zh)));
}

INLINE double least(double x, double y)
{
	if (x != x)
		return y;
	if (y != y)
		return x;
	if (x == y)
		return signbit(x) ? x : y;
	return x < y ? x : y;
}

INLINE double most(double x, double y)
{
	if (x != x)
		return y;
	if (y != y)
		return x;
	if (x == y)
		return signbit(x) ? y : x;
	return x > y ? x : y;
}

INLINE double both(double x, double y, double r)
{
	return x != x || y != y ? (double)NAN : r;
}

INLINE double positive(double v)
{
	return v > 0.0 || v != v ? v : 0.0;
}

INLINE double unit(double v)
{
	return v > 0.0 ? (v < 1.0 ? v : 1.0) : 0.0;
}

INLINE uint16_t flush_f16(uint16_t v)
{
	return v & 0x7c00 ? v : v & 0x8000;
}

INLINE uint16_t flush_bf16(uint16_t v)
{
	return v & 0x7f80 ? v : v & 0x8000;
}

/* .ftz of a result: what is below the least normal number before it is rounded, as on an H200
 * (2026-11-23); rounded first, 0x3bff * 0x0400 would be that number. */
INLINE double normal_f16(double v)
{
	return fabs(v) < 0x1p-14 ? copysign(0.0, v) : v;
}

INLINE double normal_bf16(double v)
{
	return fabs(v) < 0x1p-126 ? copysign(0.0, v) : v;
}

/* .oob makes 0 of a product with what lies outside of a tensor. */
INLINE bool outside(uint16_t xh, uint16_t yh)
{
	return xh == PTX_OOB_NAN || yh == PTX_OOB_NAN;
}

/* One handler for the single format and one for the pair: `expr` of the halves xh, yh, zh.
 * `put` goes through lanes, `put_pairs` through the halves of lanes. */
#define HALF_BY(put, put_pairs, id, name, t, count, ...)                                       \
	INLINE uint16_t one_##id##_##t(uint16_t xh, uint16_t yh, uint16_t zh)                  \
	{                                                                                      \
		(void)xh, (void)yh, (void)zh;                                                  \
		return (uint16_t)(__VA_ARGS__);                                                \
	}                                                                                      \
	OP(id##_##t, name "." #t, count == 1 ? "22" : count == 2 ? "222" : "2222")             \
	{                                                                                      \
		HALVES(count);                                                                 \
		put(uint16_t, one_##id##_##t(a[l], b[l], c[l]));                               \
	}                                                                                      \
	OP(id##_##t##x2, name "." #t "x2", count == 1 ? "44" : count == 2 ? "444" : "4444")    \
	{                                                                                      \
		HALVES(count);                                                                 \
		put_pairs(one_##id##_##t(a[l], b[l], c[l]));                                   \
	}

#define HALVES(count)                                                                          \
	DST(uint16_t);                                                                         \
	SRC_A(uint16_t);                                                                       \
	const uint16_t *b = count > 1 ? REG(const uint16_t, b) : a;                            \
	const uint16_t *c = count > 2 ? REG(const uint16_t, c) : a

#define PUT_PAIRS(...)                                                                         \
	IVDEP for (unsigned l = 0; l < 2 * PTX_LANES; l++)                                     \
	{                                                                                      \
		uint16_t r_ = (__VA_ARGS__);                                                   \
		d[l] = full || (m >> l / 2 & 1) ? r_ : d[l];                                   \
	}
#define HALF(...) HALF_BY(PUT, PUT_PAIRS, __VA_ARGS__)

/* What calls a function of libm. */
#define PUT_EACH(T, ...) EACH(w->mask) d[l] = (__VA_ARGS__)
#define PUT_EACH_PAIR(...)                                                                     \
	for (unsigned l = 0; l < 2 * PTX_LANES; l++)                                           \
		if (m >> l / 2 & 1)                                                            \
			d[l] = (__VA_ARGS__);
#define HALF_DEAR(...) HALF_BY(PUT_EACH, PUT_EACH_PAIR, __VA_ARGS__)

#define HALF_FORMAT(t)                                                                         \
	HALF(add, "add", t, 2, t##_add(xh, yh))                                                \
	HALF(sub, "sub", t, 2, t##_add(xh, yh ^ 0x8000))                                       \
	HALF(mul, "mul", t, 2, t##_mul(xh, yh))                                                \
	HALF(fma, "fma", t, 3, t##_fma(xh, yh, zh))                                            \
	HALF(add_ftz, "add.ftz", t, 2, t##_write(normal_##t(ptx_add_odd(XF(t), YF(t)))))       \
	HALF(sub_ftz, "sub.ftz", t, 2, t##_write(normal_##t(ptx_add_odd(XF(t), -YF(t)))))      \
	HALF(mul_ftz, "mul.ftz", t, 2, t##_write(normal_##t(XF(t) * YF(t))))                   \
	HALF(fma_ftz, "fma.ftz", t, 3,                                                         \
		t##_write(normal_##t(ptx_add_odd(XF(t) * YF(t), ZF(t)))))                      \
	HALF(fma_relu, "fma.relu", t, 3, t##_write(positive(ptx_add_odd(X(t) * Y(t), Z(t)))))  \
	HALF(fma_ftz_relu, "fma.ftz.relu", t, 3,                                               \
		t##_write(normal_##t(positive(ptx_add_odd(XF(t) * YF(t), ZF(t))))))            \
	HALF(fma_oob, "fma.oob", t, 3,                                                         \
		outside(xh, yh) ? 0 : t##_write(ptx_add_odd(X(t) * Y(t), Z(t))))               \
	HALF(fma_oob_relu, "fma.oob.relu", t, 3,                                               \
		outside(xh, yh) ? 0 : t##_write(positive(ptx_add_odd(X(t) * Y(t), Z(t)))))     \
	HALF(flush, "flush", t, 1, flush_##t(xh))                                              \
	HALF(neg, "neg", t, 1, xh ^ 0x8000)                                                    \
	HALF(neg_ftz, "neg.ftz", t, 1, flush_##t(xh) ^ 0x8000)                                 \
	HALF(abs, "abs", t, 1, xh & 0x7fff)                                                    \
	HALF(abs_ftz, "abs.ftz", t, 1, flush_##t(xh) & 0x7fff)                                 \
	HALF(sat, "sat", t, 1, t##_write(unit(X(t))))                                          \
	HALF(min, "min", t, 2, t##_write(least(X(t), Y(t))))                                   \
	HALF(max, "max", t, 2, t##_write(most(X(t), Y(t))))                                    \
	HALF(min_ftz, "min.ftz", t, 2, t##_write(least(XF(t), YF(t))))                         \
	HALF(max_ftz, "max.ftz", t, 2, t##_write(most(XF(t), YF(t))))                          \
	HALF(min_nan, "min.NaN", t, 2, t##_write(both(X(t), Y(t), least(X(t), Y(t)))))         \
	HALF(max_nan, "max.NaN", t, 2, t##_write(both(X(t), Y(t), most(X(t), Y(t)))))          \
	HALF(min_xorsign, "min.xorsign.abs", t, 2,                                             \
		t##_write(least(fabs(X(t)), fabs(Y(t)))) | ((xh ^ yh) & 0x8000))               \
	HALF(max_xorsign, "max.xorsign.abs", t, 2,                                             \
		t##_write(most(fabs(X(t)), fabs(Y(t)))) | ((xh ^ yh) & 0x8000))                \
	HALF(min_nan_xorsign, "min.NaN.xorsign.abs", t, 2,                                     \
		t##_write(both(X(t), Y(t), least(fabs(X(t)), fabs(Y(t))))) |                   \
			((xh ^ yh) & 0x8000))                                                  \
	HALF(min_ftz_nan, "min.ftz.NaN", t, 2,                                                 \
		t##_write(both(XF(t), YF(t), least(XF(t), YF(t)))))                            \
	HALF(min_ftz_xorsign, "min.ftz.xorsign.abs", t, 2,                                     \
		t##_write(least(fabs(XF(t)), fabs(YF(t)))) | ((xh ^ yh) & 0x8000))             \
	HALF(min_ftz_nan_xorsign, "min.ftz.NaN.xorsign.abs", t, 2,                             \
		t##_write(both(XF(t), YF(t), least(fabs(XF(t)), fabs(YF(t))))) |               \
			((xh ^ yh) & 0x8000))                                                  \
	HALF(max_nan_xorsign, "max.NaN.xorsign.abs", t, 2,                                     \
		t##_write(both(X(t), Y(t), most(fabs(X(t)), fabs(Y(t))))) |                    \
			((xh ^ yh) & 0x8000))                                                  \
	HALF(max_ftz_nan, "max.ftz.NaN", t, 2,                                                 \
		t##_write(both(XF(t), YF(t), most(XF(t), YF(t)))))                             \
	HALF(max_ftz_xorsign, "max.ftz.xorsign.abs", t, 2,                                     \
		t##_write(most(fabs(XF(t)), fabs(YF(t)))) | ((xh ^ yh) & 0x8000))              \
	HALF(max_ftz_nan_xorsign, "max.ftz.NaN.xorsign.abs", t, 2,                             \
		t##_write(both(XF(t), YF(t), most(fabs(XF(t)), fabs(YF(t))))) |                \
			((xh ^ yh) & 0x8000))                                                  \
	HALF_DEAR(ex2, "ex2", t, 1, t##_write(exp2(X(t))))                                     \
	HALF_DEAR(ex2_ftz, "ex2.ftz", t, 1, flush_##t(t##_write(exp2(XF(t)))))                 \
	HALF_DEAR(tanh, "tanh", t, 1, t##_write(tanh(X(t))))

#define X(t) t##_read(xh)
#define Y(t) t##_read(yh)
#define Z(t) t##_read(zh)
#define XF(t) t##_read(flush_##t(xh))
#define YF(t) t##_read(flush_##t(yh))
#define ZF(t) t##_read(flush_##t(zh))

HALF_FORMAT(f16)
HALF_FORMAT(bf16)

/* ---- Comparison: the plain forms are false with a NaN, the ...u forms true ---- */

#define COMPARE(cmp, t, one, ...)                                                              \
	INLINE bool is_##cmp##_##t(uint16_t xh, uint16_t yh)                                   \
	{                                                                                      \
		const double x = X(t), y = Y(t);                                               \
		return (__VA_ARGS__);                                                          \
	}                                                                                      \
	OP(setp_##cmp##_##t, "setp." #cmp "." #t, "122")                                       \
	{                                                                                      \
		SRC_A(uint16_t);                                                               \
		SRC_B(uint16_t);                                                               \
		PUT_PRED(d, is_##cmp##_##t(a[l], b[l]));                                       \
	}                                                                                      \
	/* p of the low halves, q of the high ones. */                                         \
	OP(setp_##cmp##_##t##x2, "setp." #cmp "." #t "x2", "x")                                \
	{                                                                                      \
		SRC_A(uint32_t);                                                               \
		SRC_B(uint32_t);                                                               \
		uint32_t low = 0, high = 0, *p = ptx_pred(w, i->d), *q = ptx_pred(w, i->c);    \
		EACH(w->mask)                                                                  \
		{                                                                              \
			low |= (uint32_t)is_##cmp##_##t((uint16_t)a[l], (uint16_t)b[l]) << l;  \
			high |= (uint32_t)is_##cmp##_##t(                                      \
					(uint16_t)(a[l] >> 16), (uint16_t)(b[l] >> 16))        \
				<< l;                                                          \
		}                                                                              \
		*p = (*p & ~w->mask) | low;                                                    \
		*q = (*q & ~w->mask) | high;                                                   \
	}                                                                                      \
	SET_PAIR(cmp, t, t##x2, one)                                                           \
	SET_PAIR(cmp, t, u32, 0xffffu)                                                         \
	SET_PAIR(cmp, t, s32, 0xffffu)

#define SET_PAIR(cmp, t, to, one)                                                              \
	OP(set_##cmp##_##to##_##t##x2, "set." #cmp "." #to "." #t "x2", "x")                   \
	{                                                                                      \
		DST(uint32_t);                                                                 \
		SRC_A(uint32_t);                                                               \
		SRC_B(uint32_t);                                                               \
		EACH(w->mask)                                                                  \
		d[l] = (is_##cmp##_##t((uint16_t)a[l], (uint16_t)b[l]) ? one : 0u) |           \
		       (is_##cmp##_##t((uint16_t)(a[l] >> 16), (uint16_t)(b[l] >> 16))         \
				       ? (one) << 16                                           \
				       : 0u);                                                  \
	}

#define COMPARES(t, one)                                                                       \
	COMPARE(eq, t, one, x == y)                                                            \
	COMPARE(ne, t, one, x<y || x> y)                                                       \
	COMPARE(lt, t, one, x < y)                                                             \
	COMPARE(le, t, one, x <= y)                                                            \
	COMPARE(gt, t, one, x > y)                                                             \
	COMPARE(ge, t, one, x >= y)                                                            \
	COMPARE(equ, t, one, !(x < y || x > y))                                                \
	COMPARE(neu, t, one, x != y)                                                           \
	COMPARE(ltu, t, one, !(x >= y))                                                        \
	COMPARE(leu, t, one, !(x > y))                                                         \
	COMPARE(gtu, t, one, !(x <= y))                                                        \
	COMPARE(geu, t, one, !(x < y))                                                         \
	COMPARE(num, t, one, x == x && y == y)                                                 \
	COMPARE(nan, t, one, x != x || y != y)
COMPARES(f16, 0x3c00u)
COMPARES(bf16, 0x3f80u)
