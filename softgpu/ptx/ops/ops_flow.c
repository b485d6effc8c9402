/* SPDX-License-Identifier: Apache-2.0
 *
 * Control flow, guards, barriers, special registers, address conversion.
 */
#include "softgpu/ptx/ops/ops.h"

#include <x86intrin.h>

/* Runs what a guard wraps for the lanes whose predicate holds. */
OP_FLOW(wrap, "wrap", "x")
{
	uint32_t p = *ptx_pred(w, i->guard), mask = w->mask, m = mask & (i->guard_not ? ~p : p);
	uint32_t part = w->part;

	if (m == mask)
		return i->inner[part](w, i);
	if (!m)
		return i + 1;
	w->mask = m;
	w->part = 1;
	i->inner[1](w, i);
	w->mask = mask;
	w->part = part;
	return i + 1;
}

/* The same under another rounding or flush mode. */
OP_FLOW(wrap_mode, "wrap.mode", "x")
{
	const struct ptx_ins *next;

	_mm_setcsr(i->mode);
	next = i->guard == PTX_NO_GUARD ? i->inner[w->part](w, i) : flow_wrap(w, i);
	_mm_setcsr(PTX_MXCSR_DEFAULT);
	return next;
}

OP_FLOW(missing, "missing", "!")
{
	ptx_fault(w, i, PTX_NOT_SUPPORTED, "an instruction that is not served");
}

#define TARGET ((const struct ptx_ins *)(uintptr_t)i->imm)

OP_FLOW(bra, "bra", "!")
{
	if (TARGET <= i && --w->budget <= 0)
		return ptx_warp_branch(w, i, TARGET, w->mask);
	return w->stop ? ptx_warp_branch(w, i, TARGET, w->mask) : TARGET;
}

OP_FLOW(bra_if, "bra.if", "!")
{
	uint32_t p = *ptx_pred(w, i->a), mask = w->mask, m = mask & (i->guard_not ? ~p : p);

	if (!m)
		return i + 1;
	if (TARGET <= i)
		w->budget--;
	if (m == mask && !w->stop && (TARGET > i || w->budget > 0))
		return TARGET;
	return ptx_warp_branch(w, i, TARGET, m);
}

OP_FLOW(exit, "exit", "!")
{
	ptx_warp_exit(w, w->mask);
	return NULL;
}

OP_FLOW(ret, "ret", "!")
{
	return ptx_warp_ret(w, i);
}

OP_FLOW(call, "call", "!")
{
	const struct ptx_module *module = w->block->run->module;

	return ptx_warp_call(w, i, &module->functions[i->imm], &module->calls[i->e]);
}

OP_FLOW(call_indirect, "call.indirect", "!")
{
	const struct ptx_module *module = w->block->run->module;
	const uint64_t *a = REG(const uint64_t, a);
	uint64_t target = a[ptx_first(w->mask)], index = (target - PTX_CODE_BASE) / 16;
	uint32_t others = 0;

	EACH(w->mask)
	if (a[l] != target)
		others |= 1u << l;
	if (target < PTX_CODE_BASE || target % 16 || index >= module->nfunctions)
		ptx_fault(w, i, PTX_ILLEGAL_ADDRESS, "a call to 0x%llx, which is no function",
			(unsigned long long)target);
	if (others)
		ptx_warp_split(w, others, i);
	return ptx_warp_call(w, i, &module->functions[index], &module->calls[i->e]);
}

OP_FLOW(trap, "trap", "!")
{
	ptx_fault(w, i, PTX_TRAP, "trap");
}

/* A breakpoint with no debugger ends the kernel, as on a GPU. */
OP_FLOW(brkpt, "brkpt", "!")
{
	ptx_fault(w, i, PTX_TRAP, "brkpt");
}

OP_FLOW(fence, "fence", "x")
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return i + 1;
}

/* After a volatile or atomic load: a loop around it probably waits for another thread. */
OP_FLOW(polled, "polled", "x")
{
	w->budget -= 64;
	return i + 1;
}

OP_FLOW(nanosleep, "nanosleep.u32", "-4")
{
	w->budget = 1;
	return i + 1;
}

/* Before a store to shared memory: many programs store there, after a barrier, what others have
 * yet to read, and a GPU, whose warps go on side by side, lets them. The first time each warp
 * lets all others come as far. */
OP_FLOW(others_first, "others.first", "!")
{
	if (!w->fresh)
		return i + 1;
	w->fresh = false;
	w->cur->frame = w->frame;
	w->cur->pc = i + 1;
	w->released = true;
	return NULL;
}

/* Barriers: lanes may name different ones. */
INLINE const struct ptx_ins *barrier(
	struct ptx_warp *w, const struct ptx_ins *i, bool wait, uint32_t predicate)
{
	const uint32_t *a = REG(const uint32_t, a), *b = REG(const uint32_t, b);
	uint32_t id = a[ptx_first(w->mask)], others = 0;

	EACH(w->mask)
	if (a[l] != id)
		others |= 1u << l;
	if (id >= PTX_MAX_BARRIERS)
		ptx_fault(w, i, PTX_TRAP, "barrier %u: there are 16", id);
	if (others)
		ptx_warp_split(w, others, i);
	ptx_barrier_arrive(w, i, id, b[ptx_first(w->mask)], wait, predicate);
	return wait ? NULL : i + 1;
}

OP_FLOW(bar_sync, "bar.sync", "-44!")
{
	return barrier(w, i, true, 0);
}

OP_FLOW(bar_arrive, "bar.arrive", "-44!")
{
	return barrier(w, i, false, 0);
}

OP_FLOW(bar_red_and, "bar.red.and", "1441!")
{
	return barrier(w, i, true, *ptx_pred(w, i->c));
}

OP_FLOW(bar_red_or, "bar.red.or", "1441!")
{
	return barrier(w, i, true, *ptx_pred(w, i->c));
}

OP_FLOW(bar_red_popc, "bar.red.popc", "4441!")
{
	return barrier(w, i, true, *ptx_pred(w, i->c));
}

OP_FLOW(cluster_arrive, "cluster.arrive", "!")
{
	w->block->group->cluster_arrived += ptx_popcount(w->mask);
	/* Which phase each lane waits for is the one it arrived in. */
	w->cluster_phase = w->block->group->cluster_phase;
	ptx_cluster_check(w->block->group);
	return i + 1;
}

OP_FLOW(cluster_wait, "cluster.wait", "!")
{
	if (w->block->group->cluster_phase != w->cluster_phase)
		return i + 1;
	w->cur->pc = i;
	w->cur->wait = PTX_AT_CLUSTER;
	w->cur->phase = w->cluster_phase;
	return NULL;
}

/* Special registers; the order is that of `sregs` in parse/operand.c. */
enum ptx_sreg {
	TID_X,
	TID_Y,
	TID_Z,
	NTID_X,
	NTID_Y,
	NTID_Z,
	CTAID_X,
	CTAID_Y,
	CTAID_Z,
	NCTAID_X,
	NCTAID_Y,
	NCTAID_Z,
	LANEID,
	WARPID,
	NWARPID,
	SMID,
	NSMID,
	GRIDID,
	MASK_EQ,
	MASK_LE,
	MASK_LT,
	MASK_GE,
	MASK_GT,
	CLOCK,
	CLOCK_HI,
	CLOCK64,
	TIMER,
	TIMER_LO,
	TIMER_HI,
	DYNAMIC_SMEM,
	TOTAL_SMEM,
	CLUSTERID_X,
	CLUSTERID_Y,
	CLUSTERID_Z,
	NCLUSTERID_X,
	NCLUSTERID_Y,
	NCLUSTERID_Z,
	CTAID_IN_X,
	CTAID_IN_Y,
	CTAID_IN_Z,
	NCTAID_IN_X,
	NCTAID_IN_Y,
	NCTAID_IN_Z,
	CTARANK,
	NCTARANK,
	EXPLICIT_CLUSTER,
	AGGR_SMEM,
	RESERVED_BEGIN,
	RESERVED_END,
	GRAPH_EXEC,
	ENVREG1,
	ENVREG2,
};

/* Of those that are the same for all lanes. */
static uint64_t uniform(struct ptx_warp *w, enum ptx_sreg reg)
{
	const struct ptx_block *block = w->block;
	const struct ptx_launch *launch = block->run->launch;
	unsigned axis;

	switch (reg) {
	case NTID_X:
	case NTID_Y:
	case NTID_Z: return launch->block[reg - NTID_X];
	case CTAID_X:
	case CTAID_Y:
	case CTAID_Z: return block->ctaid[reg - CTAID_X];
	case NCTAID_X:
	case NCTAID_Y:
	case NCTAID_Z: return launch->grid[reg - NCTAID_X];
	case WARPID: return w->index;
	case NWARPID: return PTX_MAX_WARPS * 2;
	case SMID: return block->ctaid[0] % 108;
	case NSMID: return 108;
	case GRIDID: return block->run->grid_id;
	case CLOCK:
	case CLOCK64: return __rdtsc();
	case CLOCK_HI: return __rdtsc() >> 32;
	case TIMER:
	case TIMER_LO: return ptx_now_ns();
	case TIMER_HI: return ptx_now_ns() >> 32;
	case DYNAMIC_SMEM: return launch->dynamic_shared;
	case TOTAL_SMEM:
	case AGGR_SMEM: return w->shared_bytes;
	case CLUSTERID_X:
	case CLUSTERID_Y:
	case CLUSTERID_Z:
		axis = reg - CLUSTERID_X;
		return block->ctaid[axis] / launch->cluster[axis];
	case NCLUSTERID_X:
	case NCLUSTERID_Y:
	case NCLUSTERID_Z:
		axis = reg - NCLUSTERID_X;
		return launch->grid[axis] / launch->cluster[axis];
	case CTAID_IN_X:
	case CTAID_IN_Y:
	case CTAID_IN_Z:
		axis = reg - CTAID_IN_X;
		return block->ctaid[axis] % launch->cluster[axis];
	case NCTAID_IN_X:
	case NCTAID_IN_Y:
	case NCTAID_IN_Z: return launch->cluster[reg - NCTAID_IN_X];
	case CTARANK: return block->rank;
	case NCTARANK: return block->group->nblocks;
	case ENVREG1: return block->run->workspace >> 32;
	case ENVREG2: return block->run->workspace;
	default: return 0;
	}
}

OP(mov_sreg_b32, "mov.sreg.b32", "x")
{
	DST(uint32_t);
	uint32_t v;

	switch (i->imm) {
	case TID_X:
	case TID_Y:
	case TID_Z: PUT(uint32_t, w->tid[i->imm][l]); return;
	case LANEID: PUT(uint32_t, l); return;
	case MASK_EQ: PUT(uint32_t, 1u << l); return;
	case MASK_LE: PUT(uint32_t, (2u << l) - 1); return;
	case MASK_LT: PUT(uint32_t, (1u << l) - 1); return;
	case MASK_GE: PUT(uint32_t, ~((1u << l) - 1)); return;
	case MASK_GT: PUT(uint32_t, ~((2u << l) - 1)); return;
	default: v = (uint32_t)uniform(w, (enum ptx_sreg)i->imm); PUT(uint32_t, v);
	}
}

OP(mov_sreg_b64, "mov.sreg.b64", "x")
{
	DST(uint64_t);
	uint64_t v = uniform(w, (enum ptx_sreg)i->imm);

	PUT(uint64_t, v);
}

OP(mov_sreg_pred, "mov.sreg.pred", "x")
{
	*ptx_pred(w, i->d) = w->block->group->nblocks > 1 ? UINT32_MAX : 0;
}

OP(activemask, "activemask.b32", "4")
{
	DST(uint32_t);
	uint32_t v = w->mask;

	PUT(uint32_t, v);
}

/* Addresses. */
OP(mov_frame, "mov.frame", "x")
{
	DST(uint64_t);
	uint64_t v = w->frame->fp + i->imm;

	PUT(uint64_t, v);
}

OP(mov_dynamic, "mov.dynamic", "x")
{
	DST(uint64_t);
	uint64_t v = w->block->dynamic_offset + i->imm;

	PUT(uint64_t, v);
}

OP(cvta_add, "cvta.add.b64", "x")
{
	DST(uint64_t);
	SRC_A(uint64_t);
	const uint64_t imm = i->imm;

	PUT(uint64_t, a[l] + imm);
}

OP(cvta_shared, "cvta.shared.b32", "x")
{
	DST(uint64_t);
	SRC_A(uint32_t);

	PUT(uint64_t, a[l] + PTX_SHARED_BASE);
}

OP(isspacep, "isspacep", "x")
{
	SRC_A(uint64_t);
	const uint64_t wb = w->window_base, ws = w->window_span;
	const struct ptx_module *module = w->block->run->module;

	switch (i->imm) {
	case 'G': PUT_PRED(d, a[l] - wb < ws || ptx_outside(a[l], 1)); break;
	case 'C':
		PUT_PRED(d, module->const_bytes && a[l] - module->block < module->block_bytes);
		break;
	case 'S': PUT_PRED(d, a[l] - PTX_SHARED_BASE < (1u << PTX_RANK_SHIFT)); break;
	case 's': PUT_PRED(d, a[l] - PTX_SHARED_BASE < UINT32_MAX); break;
	case 'L': PUT_PRED(d, a[l] - PTX_LOCAL_BASE < UINT32_MAX); break;
	default: PUT_PRED(d, a[l] - PTX_PARAM_BASE < UINT32_MAX); break;
	}
}

#define RANK_OF(v) ((uint32_t)((v) >> PTX_RANK_SHIFT & 0xff))
#define MAPA(n, T)                                                                             \
	OP(mapa_b##n, "mapa.b" #n, "x")                                                        \
	{                                                                                      \
		DST(T);                                                                        \
		SRC_A(T);                                                                      \
		SRC_B(uint32_t);                                                               \
		PUT(T, (a[l] & ~((T)0xff << PTX_RANK_SHIFT)) | (T)(b[l] + 1)                   \
								       << PTX_RANK_SHIFT);     \
	}                                                                                      \
	OP(getctarank_b##n, "getctarank.b" #n, "x")                                            \
	{                                                                                      \
		DST(uint32_t);                                                                 \
		SRC_A(T);                                                                      \
		const uint32_t own = w->block->rank;                                           \
		PUT(uint32_t, RANK_OF(a[l]) ? RANK_OF(a[l]) - 1 : own);                        \
	}
MAPA(32, uint32_t)
MAPA(64, uint64_t)

/* Grows the frame for all its lanes alike, by the most that one wants. */
#define ALLOCA(n, form, T)                                                                     \
	OP(alloca_u##n, "alloca.u" #n, form)                                                   \
	{                                                                                      \
		DST(T);                                                                        \
		SRC_A(T);                                                                      \
		struct ptx_frame *frame = w->frame;                                            \
		uint64_t most = 0, at = (frame->sp + 15u) & ~15u;                              \
		EACH(m & w->mask)                                                              \
		most = a[l] > most ? a[l] : most;                                              \
		if (most > w->local_bytes || at + most > w->local_bytes)                       \
			ptx_fault(w, i, PTX_STACK_ERROR, "alloca of %llu bytes",               \
				(unsigned long long)most);                                     \
		frame->sp = (uint32_t)(at + most);                                             \
		PUT(T, at);                                                                    \
	}
ALLOCA(32, "44", uint32_t)
ALLOCA(64, "88", uint64_t)

/* Where the frame ends, and back to there; while some of its lanes are elsewhere, what they
 * have taken since stays. */
#define STACK(n, T)                                                                            \
	OP(stacksave_u##n, "stacksave.u" #n, PTX_STR(STACK_FORM_##n))                          \
	{                                                                                      \
		DST(T);                                                                        \
		const T at = w->frame->sp;                                                     \
		PUT(T, at);                                                                    \
	}                                                                                      \
	OP(stackrestore_u##n, "stackrestore.u" #n, "-" PTX_STR(STACK_FORM_##n))                \
	{                                                                                      \
		struct ptx_frame *frame = w->frame;                                            \
		const uint64_t at = REG(const T, a)[ptx_first(w->mask)];                       \
		if (w->mask == frame->lanes && at <= frame->sp &&                              \
			at >= frame->fp + frame->function->frame_bytes)                        \
			frame->sp = (uint32_t)at;                                              \
	}
#define STACK_FORM_32 4
#define STACK_FORM_64 8
STACK(32, uint32_t)
STACK(64, uint64_t)
