/* SPDX-License-Identifier: Apache-2.0
 *
 * Barriers of a block and of a cluster.  A block is run by one thread, so they need no locks:
 * who arrives marks its lanes, the last one lets everybody go.
 */
#include "softgpu/ptx/internal.h"

/* Every live lane is there, or as many threads as were asked for; lanes that have left, or were
 * never born, count with their warp. */
static bool complete(const struct ptx_block *b, const struct ptx_barrier *bar)
{
	uint32_t threads = 0;

	for (uint32_t k = 0; k < b->nwarps; k++) {
		const struct ptx_warp *w = &b->warps[k];
		uint32_t there = bar->arrived[k];

		if (!bar->expected && w->live & ~there)
			return false;
		if (there)
			threads += ptx_popcount(there | ~w->live);
	}
	return !bar->expected || threads >= bar->expected;
}

static void release(struct ptx_block *b, uint32_t id)
{
	struct ptx_barrier *bar = &b->barriers[id];

	for (uint32_t k = 0; k < b->nwarps; k++) {
		struct ptx_warp *w = &b->warps[k];

		for (uint32_t n = 0; n < w->nfragments; n++) {
			struct ptx_fragment *f = &w->fragments[n];
			const struct ptx_ins *i = f->pc - 1;
			uint32_t *d;

			if (f->wait != PTX_AT_BARRIER || f->barrier != id)
				continue;
			f->wait = PTX_READY;
			if (i->f == PTX_RED_NONE)
				continue;
			d = (uint32_t *)(void *)(f->frame->regs + i->d);
			if (i->f == PTX_RED_POPC) {
				for (uint32_t m = f->mask; m; m &= m - 1)
					d[ptx_first(m)] = bar->popc;
			} else if (i->f == PTX_RED_AND ? !bar->all_not : bar->any) {
				*d |= f->mask;
			} else {
				*d &= ~f->mask;
			}
		}
	}
	memset(bar, 0, sizeof(*bar));
	b->passed = true;
	for (uint32_t n = 0; n < b->nwarps && b->nwarps > 1; n++)
		b->warps[n].fresh = true;
}

void ptx_barrier_arrive(struct ptx_warp *w, const struct ptx_ins *i, uint32_t barrier,
	uint32_t threads, bool wait, uint32_t predicate)
{
	struct ptx_barrier *bar = &w->block->barriers[barrier];

	bar->used = true;
	bar->arrived[w->index] |= w->mask;
	bar->expected = threads;
	bar->any |= (predicate & w->mask) != 0;
	bar->all_not |= (~predicate & w->mask) != 0;
	bar->popc += ptx_popcount(predicate & w->mask);
	if (wait) {
		w->cur->pc = i + 1;
		w->cur->wait = PTX_AT_BARRIER;
		w->cur->barrier = barrier;
	}
	if (complete(w->block, bar)) {
		release(w->block, barrier);
		w->released = true;
	}
}

/* After lanes have left: who waited for all may have them. */
void ptx_barriers_check(struct ptx_block *b)
{
	for (uint32_t id = 0; id < PTX_MAX_BARRIERS; id++)
		if (b->barriers[id].used && b->live_threads && complete(b, &b->barriers[id]))
			release(b, id);
}

void ptx_cluster_check(struct ptx_group *g)
{
	uint32_t live = 0;

	if (!g->cluster_arrived)
		return;
	for (uint32_t k = 0; k < g->nblocks; k++)
		live += g->blocks[k].live_threads;
	if (g->cluster_arrived >= live) {
		g->cluster_arrived = 0;
		g->cluster_phase++;
	}
}
