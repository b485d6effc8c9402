/* SPDX-License-Identifier: Apache-2.0
 *
 * f32 and f64 arithmetic.  Directed rounding and flushing come from MXCSR, set around the
 * handler by wrap.mode; a NaN result of f32 is PTX's canonical one.
 */
#include <math.h>

#include "softgpu/ptx/ops/ops.h"

INLINE float canon(float v)
{
	uint32_t bits = 0x7fffffffu;
	float nan;

	memcpy(&nan, &bits, sizeof(nan));
	return v != v ? nan : v;
}

INLINE uint32_t bits32(float v)
{
	uint32_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

INLINE float float32(uint32_t bits)
{
	float v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

INLINE uint64_t bits64(double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

BINARY(add_f32, "add.f32", "444", float, float, canon(a[l] + b[l]))
BINARY(sub_f32, "sub.f32", "444", float, float, canon(a[l] - b[l]))
BINARY(mul_f32, "mul.f32", "444", float, float, canon(a[l] * b[l]))
BINARY(div_f32, "div.f32", "444", float, float, canon(a[l] / b[l]))
UNARY(rcp_f32, "rcp.f32", "44", float, float, canon(1.0f / a[l]))
BINARY(add_f64, "add.f64", "888", double, double, a[l] + b[l])
BINARY(sub_f64, "sub.f64", "888", double, double, a[l] - b[l])
BINARY(mul_f64, "mul.f64", "888", double, double, a[l] * b[l])
BINARY(div_f64, "div.f64", "888", double, double, a[l] / b[l])
UNARY(rcp_f64, "rcp.f64", "88", double, double, 1.0 / a[l])

#ifdef __FMA__
TERNARY(fma_f32, "fma.f32", "4444", float, float, float,
	canon(__builtin_fmaf(a[l], b[l], c[l])))
TERNARY(fma_f64, "fma.f64", "8888", double, double, double, __builtin_fma(a[l], b[l], c[l]))
#else
/* libm's: correct, and slow where the processor has no FMA. */
OP(fma_f32, "fma.f32", "4444")
{
	DST(float);
	SRC_A(float);
	SRC_B(float);
	SRC_C(float);

	EACH(m) d[l] = canon(fmaf(a[l], b[l], c[l]));
}
OP(fma_f64, "fma.f64", "8888")
{
	DST(double);
	SRC_A(double);
	SRC_B(double);
	SRC_C(double);

	EACH(m) d[l] = fma(a[l], b[l], c[l]);
}
#endif

UNARY(neg_f32, "neg.f32", "44", uint32_t, uint32_t, a[l] ^ 0x80000000u)
UNARY(abs_f32, "abs.f32", "44", uint32_t, uint32_t, a[l] & 0x7fffffffu)
UNARY(neg_f64, "neg.f64", "88", uint64_t, uint64_t, a[l] ^ UINT64_C(1) << 63)
UNARY(abs_f64, "abs.f64", "88", uint64_t, uint64_t, a[l] & ~(UINT64_C(1) << 63))

/* min and max: a NaN gives the other operand, -0 is less than +0. */
#define MINMAX(t, form, T, BITS, NAN_OUT)                                                      \
	INLINE T least_##t(T x, T y)                                                           \
	{                                                                                      \
		T r = x < y ? x : y;                                                           \
		if (x == y)                                                                    \
			r = BITS(x) >> (8 * sizeof(T) - 1) ? x : y;                            \
		r = x != x ? y : r;                                                            \
		return y != y ? x : r;                                                         \
	}                                                                                      \
	INLINE T most_##t(T x, T y)                                                            \
	{                                                                                      \
		T r = x > y ? x : y;                                                           \
		if (x == y)                                                                    \
			r = BITS(x) >> (8 * sizeof(T) - 1) ? y : x;                            \
		r = x != x ? y : r;                                                            \
		return y != y ? x : r;                                                         \
	}                                                                                      \
	BINARY(min_##t, "min." #t, form, T, T, NAN_OUT(least_##t(a[l], b[l])))                 \
	BINARY(max_##t, "max." #t, form, T, T, NAN_OUT(most_##t(a[l], b[l])))
MINMAX(f32, "444", float, bits32, canon)
MINMAX(f64, "888", double, bits64, )

#define EITHER_NAN(x, y) ((x) != (x) || (y) != (y))
BINARY(min_nan_f32, "min.NaN.f32", "444", float, float,
	EITHER_NAN(a[l], b[l]) ? float32(0x7fffffffu) : least_f32(a[l], b[l]))
BINARY(max_nan_f32, "max.NaN.f32", "444", float, float,
	EITHER_NAN(a[l], b[l]) ? float32(0x7fffffffu) : most_f32(a[l], b[l]))

/* .xorsign.abs: of the absolute values, with the product's sign. */
#define XORSIGN(r) float32(bits32(r) | ((bits32(a[l]) ^ bits32(b[l])) & 0x80000000u))
#define ABS(v) float32(bits32(v) & 0x7fffffffu)
BINARY(min_xorsign_f32, "min.xorsign.abs.f32", "444", float, float,
	XORSIGN(canon(least_f32(ABS(a[l]), ABS(b[l])))))
BINARY(max_xorsign_f32, "max.xorsign.abs.f32", "444", float, float,
	XORSIGN(canon(most_f32(ABS(a[l]), ABS(b[l])))))
BINARY(min_nan_xorsign_f32, "min.NaN.xorsign.abs.f32", "444", float, float,
	EITHER_NAN(a[l], b[l]) ? float32(0x7fffffffu)
			       : XORSIGN(least_f32(ABS(a[l]), ABS(b[l]))))
BINARY(max_nan_xorsign_f32, "max.NaN.xorsign.abs.f32", "444", float, float,
	EITHER_NAN(a[l], b[l]) ? float32(0x7fffffffu) : XORSIGN(most_f32(ABS(a[l]), ABS(b[l]))))

/* .sat: to [0, 1], NaN to 0.  .ftz of what is no arithmetic: a subnormal becomes 0. */
UNARY(sat_f32, "sat.f32", "44", float, float, a[l] > 0.0f ? (a[l] < 1.0f ? a[l] : 1.0f) : 0.0f)
UNARY(sat_f64, "sat.f64", "88", double, double, a[l] > 0.0 ? (a[l] < 1.0 ? a[l] : 1.0) : 0.0)
UNARY(flush_f32, "flush.f32", "44", uint32_t, uint32_t,
	(a[l] & 0x7f800000u) ? a[l] : a[l] & 0x80000000u)
UNARY(flush_f64, "flush.f64", "88", uint64_t, uint64_t, a[l])

/* Roots through the C library are the processor's own instruction: rounded as MXCSR says. */
#define EACH_UNARY(id, name, form, T, ...)                                                     \
	OP(id, name, form)                                                                     \
	{                                                                                      \
		DST(T);                                                                        \
		SRC_A(T);                                                                      \
		EACH(m) d[l] = (T)(__VA_ARGS__);                                               \
	}
UNARY(sqrt_f32, "sqrt.f32", "44", float, float, canon(__builtin_sqrtf(a[l])))
UNARY(sqrt_f64, "sqrt.f64", "88", double, double, __builtin_sqrt(a[l]))
EACH_UNARY(rsqrt_f32, "rsqrt.f32", "44", float, canon((float)(1.0 / sqrt((double)a[l]))))
EACH_UNARY(rsqrt_f64, "rsqrt.f64", "88", double, 1.0 / sqrt(a[l]))
/* The approximations of the hardware: here the C library's, which are closer. */
EACH_UNARY(sin_f32, "sin.f32", "44", float, canon(sinf(a[l])))
EACH_UNARY(cos_f32, "cos.f32", "44", float, canon(cosf(a[l])))
EACH_UNARY(ex2_f32, "ex2.f32", "44", float, canon(exp2f(a[l])))
EACH_UNARY(lg2_f32, "lg2.f32", "44", float, canon(log2f(a[l])))
EACH_UNARY(tanh_f32, "tanh.f32", "44", float, canon(tanhf(a[l])))

BINARY(copysign_f32, "copysign.f32", "444", uint32_t, uint32_t,
	(a[l] & 0x80000000u) | (b[l] & 0x7fffffffu))
BINARY(copysign_f64, "copysign.f64", "888", uint64_t, uint64_t,
	(a[l] & UINT64_C(1) << 63) | (b[l] & ~(UINT64_C(1) << 63)))

/* testp, on the bits: no exception, no flushing.  Zero is normal, as on an H200 (2026-11-23);
 * PTX does not say. */
#define TESTP(what, t, form, T, ...)                                                           \
	OP(testp_##what##_##t, "testp." #what "." #t, form)                                    \
	{                                                                                      \
		SRC_A(T);                                                                      \
		const unsigned mantissa = sizeof(T) == 4 ? 23 : 52;                            \
		const T top = (T)1 << (8 * sizeof(T) - 1);                                     \
		const T inf = (T)(top - ((T)1 << mantissa)), least = (T)1 << mantissa;         \
		(void)inf, (void)least;                                                        \
		LANES                                                                          \
		{                                                                              \
			const T v = a[l] & (T)(top - 1);                                       \
			const bool is = (__VA_ARGS__);                                         \
			uint32_t *d = ptx_pred(w, i->d);                                       \
			if (m >> l & 1)                                                        \
				*d = (*d & ~(1u << l)) | (uint32_t)is << l;                    \
		}                                                                              \
	}
#define TESTPS(t, form, T)                                                                     \
	TESTP(finite, t, form, T, v < inf)                                                     \
	TESTP(infinite, t, form, T, v == inf)                                                  \
	TESTP(number, t, form, T, v <= inf)                                                    \
	TESTP(notanumber, t, form, T, v > inf)                                                 \
	TESTP(normal, t, form, T, v == 0 || (v >= least && v < inf))                           \
	TESTP(subnormal, t, form, T, v != 0 && v < least)
TESTPS(f32, "14", uint32_t)
TESTPS(f64, "18", uint64_t)

/* Comparison: the plain forms are false with a NaN, the ...u forms true. */
#define SETP(cmp, t, form, T, ...)                                                             \
	OP(setp_##cmp##_##t, "setp." #cmp "." #t, form)                                        \
	{                                                                                      \
		SRC_A(T);                                                                      \
		SRC_B(T);                                                                      \
		PUT_PRED(d, __VA_ARGS__);                                                      \
	}
#define SETPS(t, form, T)                                                                      \
	SETP(eq, t, form, T, a[l] == b[l])                                                     \
	SETP(ne, t, form, T, a[l]<b[l] || a[l]> b[l])                                          \
	SETP(lt, t, form, T, a[l] < b[l])                                                      \
	SETP(le, t, form, T, a[l] <= b[l])                                                     \
	SETP(gt, t, form, T, a[l] > b[l])                                                      \
	SETP(ge, t, form, T, a[l] >= b[l])                                                     \
	SETP(equ, t, form, T, !(a[l] < b[l] || a[l] > b[l]))                                   \
	SETP(neu, t, form, T, a[l] != b[l])                                                    \
	SETP(ltu, t, form, T, !(a[l] >= b[l]))                                                 \
	SETP(leu, t, form, T, !(a[l] > b[l]))                                                  \
	SETP(gtu, t, form, T, !(a[l] <= b[l]))                                                 \
	SETP(geu, t, form, T, !(a[l] < b[l]))                                                  \
	SETP(num, t, form, T, a[l] == a[l] && b[l] == b[l])                                    \
	SETP(nan, t, form, T, a[l] != a[l] || b[l] != b[l])
SETPS(f32, "144", float)
SETPS(f64, "188", double)
