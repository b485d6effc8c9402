/* SPDX-License-Identifier: Apache-2.0
 *
 * How a handler is written.  OP(id, "name", "form") { body } makes two functions of one body:
 * one that may write all 32 lanes and one that keeps the lanes outside `m`; and enters them in
 * the table that the decoder searches by name.  The files that use it are compiled once for any
 * x86-64 and once for x86-64-v3; op.c picks at start.
 */
#ifndef VCUDA_SOFTGPU_PTX_OPS_OPS_H
#define VCUDA_SOFTGPU_PTX_OPS_OPS_H

#include "softgpu/ptx/internal.h"

#ifndef PTX_ISA
#define PTX_ISA any
#endif
#define PTX_STR2(x) #x
#define PTX_STR(x) PTX_STR2(x)
#define PTX_SECTION "ptx_ops_" PTX_STR(PTX_ISA)

#if defined(__clang__)
#define IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define IVDEP _Pragma("GCC ivdep")
#endif

#define MAYBE_UNUSED __attribute__((unused))
/* Sanitizers and fuzzers say -DINLINE='static inline' (ptx.mk): checked twice in each handler,
 * a body would take compilers minutes. */
#ifndef INLINE
#define INLINE static inline __attribute__((always_inline))
#endif

#define ENTER(id, opname, opform, fullfn, partfn)                                              \
	static const struct ptx_op op_##id __attribute__((                                     \
		used, section(PTX_SECTION), aligned(32))) = {opname, opform, fullfn, partfn}

#define MOST(x, y) ((x) > (y) ? (x) : (y))
#define LEAST(x, y) ((x) < (y) ? (x) : (y))

/* m: lanes to write; full: every lane may be written. */
#define OP(id, opname, opform)                                                                 \
	INLINE void body_##id(struct ptx_warp *w MAYBE_UNUSED,                                 \
		const struct ptx_ins *i MAYBE_UNUSED, uint32_t m MAYBE_UNUSED,                 \
		bool full MAYBE_UNUSED);                                                       \
	static const struct ptx_ins *full_##id(struct ptx_warp *w, const struct ptx_ins *i)    \
	{                                                                                      \
		body_##id(w, i, UINT32_MAX, true);                                             \
		return i + 1;                                                                  \
	}                                                                                      \
	static const struct ptx_ins *part_##id(struct ptx_warp *w, const struct ptx_ins *i)    \
	{                                                                                      \
		body_##id(w, i, w->mask, false);                                               \
		return i + 1;                                                                  \
	}                                                                                      \
	ENTER(id, opname, opform, full_##id, part_##id);                                       \
	INLINE void body_##id(struct ptx_warp *w MAYBE_UNUSED,                                 \
		const struct ptx_ins *i MAYBE_UNUSED, uint32_t m MAYBE_UNUSED,                 \
		bool full MAYBE_UNUSED)

/* One function that sees exactly the running lanes and says what is next. */
#define OP_FLOW(id, opname, opform)                                                            \
	static const struct ptx_ins *flow_##id(struct ptx_warp *w, const struct ptx_ins *i);   \
	ENTER(id, opname, opform, flow_##id, flow_##id);                                       \
	static const struct ptx_ins *flow_##id(                                                \
		struct ptx_warp *w MAYBE_UNUSED, const struct ptx_ins *i MAYBE_UNUSED)

#define REG(T, field) ((T *)(void *)ptx_reg(w, i->field))
#define DST(T) T *d = REG(T, d)
#define SRC_A(T) const T *a = REG(const T, a)
#define SRC_B(T) const T *b = REG(const T, b)
#define SRC_C(T) const T *c = REG(const T, c)

#define LANES for (unsigned l = 0; l < PTX_LANES; l++)
/* For what is dear or must not run for other lanes. */
#define EACH(mask)                                                                             \
	for (uint32_t m_ = (mask), l = 0; m_ && (l = ptx_first(m_), true); m_ &= m_ - 1)

#define PUT(T, ...)                                                                            \
	do {                                                                                   \
		IVDEP LANES                                                                    \
		{                                                                              \
			T r_ = (T)(__VA_ARGS__);                                               \
			d[l] = full || (m >> l & 1) ? r_ : d[l];                               \
		}                                                                              \
	} while (0)

#define PUT_PRED(field, ...)                                                                   \
	do {                                                                                   \
		uint32_t r_ = 0;                                                               \
		LANES r_ |= (uint32_t)(__VA_ARGS__) << l;                                      \
		uint32_t *p_ = ptx_pred(w, i->field);                                          \
		*p_ = full ? r_ : ((r_ & m) | (*p_ & ~m));                                     \
	} while (0)

#define UNARY(id, name, form, T, S, ...)                                                       \
	OP(id, name, form)                                                                     \
	{                                                                                      \
		DST(T);                                                                        \
		SRC_A(S);                                                                      \
		PUT(T, __VA_ARGS__);                                                           \
	}
#define BINARY(id, name, form, T, S, ...)                                                      \
	OP(id, name, form)                                                                     \
	{                                                                                      \
		DST(T);                                                                        \
		SRC_A(S);                                                                      \
		SRC_B(S);                                                                      \
		PUT(T, __VA_ARGS__);                                                           \
	}
#define TERNARY(id, name, form, T, S, U, ...)                                                  \
	OP(id, name, form)                                                                     \
	{                                                                                      \
		DST(T);                                                                        \
		SRC_A(S);                                                                      \
		SRC_B(S);                                                                      \
		SRC_C(U);                                                                      \
		PUT(T, __VA_ARGS__);                                                           \
	}

#endif
