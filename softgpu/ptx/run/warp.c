/* SPDX-License-Identifier: Apache-2.0
 *
 * How a warp diverges and comes together.  A warp is a set of fragments: lanes that stand at
 * the same instruction of the same call.  The one in the deepest call, and of those the one at
 * the lowest instruction, runs, so that in structured code lanes meet again where the paths
 * join. A fragment that branches back for too long lets the one that has waited longest have a
 * turn, so lanes may wait for each other (a lock held by another lane), as on a Volta or later.
 */
#include <stdlib.h>

#include "softgpu/ptx/internal.h"

/* Backward branches before other fragments, or other warps, get a turn. */
#define BUDGET_DIVERGED 256
#ifndef BUDGET_ALONE /* smaller where sanitizers make every instruction dear */
#define BUDGET_ALONE 20000
#endif
/* Turns of diverged fragments before other warps get theirs. */
#define TURNS 16

/* `stop` of a diverged fragment with none ahead: not null, and no instruction's address. */
#define NOWHERE ((const struct ptx_ins *)(uintptr_t)1)

struct ptx_frame *ptx_frame_new(
	struct ptx_warp *w, const struct ptx_function *function, struct ptx_frame *parent)
{
	struct ptx_frame *frame, **at;
	size_t head = (sizeof(*frame) + 63) & ~(size_t)63;

	for (at = &w->free_frames; (frame = *at); at = &frame->parent)
		if (frame->function == function)
			break;
	if (frame) {
		*at = frame->parent;
	} else {
		frame = aligned_alloc(64, head + function->reg_bytes);
		if (!frame)
			return NULL;
		frame->function = function;
		frame->regs = (unsigned char *)frame + head;
	}
	frame->parent = parent;
	frame->call = NULL;
	frame->back = NULL;
	frame->depth = parent ? parent->depth + 1 : 0;
	frame->fp = parent ? (parent->sp + 15) & ~15u : 0;
	frame->sp = frame->fp + function->frame_bytes;
	frame->lanes = 0;
	memset(frame->regs, 0, 64);
	return frame;
}

static void frame_release(struct ptx_warp *w, struct ptx_frame *frame)
{
	frame->parent = w->free_frames;
	w->free_frames = frame;
}

/* All of them: the warp's launch is over. */
void ptx_frames_free(struct ptx_warp *w)
{
	struct ptx_frame *frame, *next;

	for (frame = w->free_frames; frame; frame = next) {
		next = frame->parent;
		free(frame);
	}
	w->free_frames = NULL;
}

struct ptx_fragment *ptx_warp_split(
	struct ptx_warp *w, uint32_t lanes, const struct ptx_ins *pc)
{
	struct ptx_fragment *other = &w->fragments[w->nfragments++];

	*other = (struct ptx_fragment){
		.pc = pc, .frame = w->frame, .mask = lanes, .last_run = w->tick};
	w->cur->mask &= ~lanes;
	w->mask &= ~lanes;
	return other;
}

const struct ptx_ins *ptx_warp_branch(struct ptx_warp *w, const struct ptx_ins *i,
	const struct ptx_ins *target, uint32_t taken)
{
	if (taken == w->mask) {
		w->cur->pc = target;
	} else {
		w->cur->pc = i + 1;
		ptx_warp_split(w, taken, target);
	}
	return NULL;
}

void ptx_warp_exit(struct ptx_warp *w, uint32_t lanes)
{
	struct ptx_frame *frame = w->cur->frame, *next;

	w->live &= ~lanes;
	w->cur->mask &= ~lanes;
	w->cur->pc++;
	w->block->live_threads -= ptx_popcount(lanes);
	for (; frame; frame = next) {
		next = frame->parent;
		frame->lanes &= ~lanes;
		if (!frame->lanes)
			frame_release(w, frame);
	}
	if (!w->cur->mask)
		w->cur->frame = NULL;
	ptx_barriers_check(w->block);
	ptx_cluster_check(w->block->group);
}

static void copy_slots(struct ptx_warp *w, uint32_t to, uint32_t from, uint32_t size)
{
	for (uint32_t m = w->mask; m; m &= m - 1) {
		unsigned char *local = ptx_local(w, ptx_first(m));

		memcpy(local + to, local + from, size);
	}
}

/* The scheduler is needed only where other fragments wait. */
static const struct ptx_ins *go_on(
	struct ptx_warp *w, struct ptx_frame *frame, const struct ptx_ins *pc)
{
	w->cur->frame = frame;
	w->cur->pc = pc;
	w->budget--;
	if (w->stop || w->budget <= 0)
		return NULL;
	w->frame = frame;
	w->base[0] = frame->regs;
	w->part = w->mask != frame->lanes;
	return pc;
}

const struct ptx_ins *ptx_warp_call(struct ptx_warp *w, const struct ptx_ins *i,
	const struct ptx_function *callee, const struct ptx_call *call)
{
	struct ptx_frame *frame = w->frame, *inner;
	uint32_t n = call->nargs < callee->nparams ? call->nargs : callee->nparams;

	if (callee->builtin) {
		ptx_builtin_call(w, i, callee, call);
		return w->stop ? ptx_warp_branch(w, i, i + 1, w->mask) : i + 1;
	}
	if (!callee->is_defined)
		ptx_fault(w, i, PTX_ILLEGAL_ADDRESS, "a call of %s, which has no body",
			callee->name);
	if (frame->depth >= PTX_MAX_CALL_DEPTH)
		ptx_fault(w, i, PTX_STACK_ERROR, "calls nested %u deep in %s", frame->depth,
			callee->name);
	inner = ptx_frame_new(w, callee, frame);
	if (!inner)
		ptx_fault(w, i, PTX_NO_MEMORY, "no memory for a call of %s", callee->name);
	if (inner->sp > w->local_bytes) {
		frame_release(w, inner);
		ptx_fault(w, i, PTX_STACK_ERROR,
			"the stack of %u bytes is full in a call of %s", w->local_bytes,
			callee->name);
	}
	inner->call = call;
	inner->back = i + 1;
	inner->lanes = w->mask;
	for (uint32_t k = 0; k < n; k++) {
		uint32_t size = call->slots[k].size < callee->params[k].size
					? call->slots[k].size
					: callee->params[k].size;

		copy_slots(w, inner->fp + callee->params[k].offset,
			frame->fp + call->slots[k].offset, size);
	}
	return go_on(w, inner, w->block->run->module->code + callee->entry);
}

const struct ptx_ins *ptx_warp_ret(struct ptx_warp *w, const struct ptx_ins *i)
{
	struct ptx_frame *frame = w->frame, *parent = frame->parent;
	const struct ptx_call *call = frame->call;
	const struct ptx_function *callee = frame->function;
	const struct ptx_ins *back = frame->back;
	uint32_t n;

	(void)i;
	if (!parent) {
		ptx_warp_exit(w, w->mask);
		return NULL;
	}
	n = call->nrets < callee->nrets ? call->nrets : callee->nrets;
	for (uint32_t k = 0; k < n; k++) {
		const struct ptx_slot *to = &call->slots[call->nargs + k];
		const struct ptx_slot *from = &callee->rets[k];

		copy_slots(w, parent->fp + to->offset, frame->fp + from->offset,
			to->size < from->size ? to->size : from->size);
	}
	frame->lanes &= ~w->mask;
	if (!frame->lanes)
		frame_release(w, frame);
	return go_on(w, parent, back);
}

bool ptx_warp_gather(struct ptx_warp *w, const struct ptx_ins *i, uint32_t members)
{
	if (!(members & w->live & ~w->mask))
		return true;
	if (w->forced) {
		w->forced = false;
		return true;
	}
	w->cur->pc = i;
	w->cur->wait = PTX_AT_SYNC;
	w->cur->members = members;
	return false;
}

static void remove_fragment(struct ptx_warp *w, struct ptx_fragment *f)
{
	*f = w->fragments[--w->nfragments];
}

/* Lets go who has all that it waited for, joins who stands together. */
static void reconverge(struct ptx_warp *w)
{
	for (uint32_t k = 0; k < w->nfragments;) {
		struct ptx_fragment *f = &w->fragments[k];

		if (!f->mask) {
			remove_fragment(w, f);
			continue;
		}
		if (f->wait == PTX_AT_CLUSTER && f->phase != w->block->group->cluster_phase)
			f->wait = PTX_READY;
		k++;
	}
	if (w->nfragments == 1 && w->fragments[0].wait == PTX_READY)
		return;
	for (uint32_t k = 0; k < w->nfragments; k++) {
		struct ptx_fragment *f = &w->fragments[k];
		uint32_t there = 0;

		if (f->wait != PTX_AT_SYNC && f->wait != PTX_AT_WARP)
			continue;
		for (uint32_t n = 0; n < w->nfragments; n++) {
			struct ptx_fragment *g = &w->fragments[n];

			if (g->wait == f->wait && g->members == f->members &&
				(f->wait == PTX_AT_WARP ||
					(g->pc == f->pc && g->frame == f->frame)))
				there |= g->mask;
		}
		if (f->members & w->live & ~there)
			continue;
		for (uint32_t n = 0; n < w->nfragments; n++) {
			struct ptx_fragment *g = &w->fragments[n];

			if (n != k && g->wait == f->wait && g->members == f->members &&
				(f->wait == PTX_AT_WARP ||
					(g->pc == f->pc && g->frame == f->frame)))
				g->wait = PTX_READY;
		}
		f->wait = PTX_READY;
	}
	for (uint32_t k = 0; k < w->nfragments; k++) {
		struct ptx_fragment *f = &w->fragments[k];

		if (f->wait != PTX_READY)
			continue;
		for (uint32_t n = k + 1; n < w->nfragments;) {
			struct ptx_fragment *g = &w->fragments[n];

			if (g->wait == PTX_READY && g->pc == f->pc && g->frame == f->frame) {
				f->mask |= g->mask;
				remove_fragment(w, g);
			} else {
				n++;
			}
		}
	}
}

static struct ptx_fragment *choose(struct ptx_warp *w)
{
	struct ptx_fragment *best = NULL;

	for (uint32_t k = 0; k < w->nfragments; k++) {
		struct ptx_fragment *f = &w->fragments[k];

		if (f->wait != PTX_READY)
			continue;
		if (!best || (w->rotate ? f->last_run < best->last_run
					: f->frame->depth > best->frame->depth ||
						     (f->frame->depth == best->frame->depth &&
							     f->pc < best->pc)))
			best = f;
	}
	w->rotate = false;
	return best;
}

bool ptx_warp_ready(struct ptx_warp *w)
{
	for (uint32_t k = 0; k < w->nfragments; k++) {
		const struct ptx_fragment *f = &w->fragments[k];

		if (f->wait == PTX_READY || f->wait == PTX_AT_SYNC || f->wait == PTX_AT_WARP ||
			(f->wait == PTX_AT_CLUSTER &&
				f->phase != w->block->group->cluster_phase))
			return true;
	}
	return false;
}

/* Nobody in the block can go on: the lanes that a .sync names will not come. */
bool ptx_warp_force(struct ptx_warp *w)
{
	for (uint32_t k = 0; k < w->nfragments; k++) {
		struct ptx_fragment *f = &w->fragments[k];

		if (f->wait == PTX_AT_SYNC || f->wait == PTX_AT_WARP) {
			w->forced = f->wait == PTX_AT_SYNC;
			f->wait = PTX_READY;
			return true;
		}
	}
	return false;
}

static const struct ptx_ins *next_stop(const struct ptx_warp *w, const struct ptx_fragment *cur)
{
	const struct ptx_ins *stop = NOWHERE;

	for (uint32_t k = 0; k < w->nfragments; k++) {
		const struct ptx_fragment *f = &w->fragments[k];

		if (f != cur && f->wait == PTX_READY && f->frame == cur->frame &&
			f->pc > cur->pc && (stop == NOWHERE || f->pc < stop))
			stop = f->pc;
	}
	return stop;
}

/* Runs the warp until it ends, waits, lets others go from a barrier, or has had its turn
 * (w->yielded). */
void ptx_warp_run(struct ptx_warp *w)
{
	int turns = TURNS;

	w->yielded = w->released = false;
	w->budget = BUDGET_ALONE;
	while (w->live) {
		struct ptx_fragment *f;
		const struct ptx_ins *i, *stop;
		uint64_t n = 0;

		reconverge(w);
		f = choose(w);
		if (!f)
			return;
		f->last_run = ++w->tick;
		w->cur = f;
		w->frame = f->frame;
		w->mask = f->mask;
		w->base[0] = f->frame->regs;
		w->part = f->mask != f->frame->lanes;
		w->stop = stop = w->nfragments > 1 ? next_stop(w, f) : NULL;
		if (stop && w->budget > BUDGET_DIVERGED)
			w->budget = BUDGET_DIVERGED;

		i = f->pc;
		if (stop) {
			do {
				i = i->run[w->part](w, i);
				n++;
			} while (i && i != stop);
			if (i)
				f->pc = i;
		} else {
			do {
				i = i->run[w->part](w, i);
				n++;
			} while (i);
		}
		w->count += n * ptx_popcount(w->mask);
		if (w->released)
			return;
		if (w->budget <= 0) {
			w->rotate = true;
			if (!stop || --turns <= 0) {
				w->yielded = true;
				return;
			}
			w->budget = BUDGET_DIVERGED;
		}
	}
}
