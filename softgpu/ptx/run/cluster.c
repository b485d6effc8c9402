/* SPDX-License-Identifier: Apache-2.0
 *
 * The blocks that run together, a cluster: their memory, their start, and each warp's turn.
 */
#include <stdlib.h>

#include "softgpu/ptx/internal.h"

void ptx_group_free(struct ptx_group *group)
{
	for (uint32_t k = 0; group && k < group->nblocks; k++) {
		struct ptx_block *b = &group->blocks[k];

		for (uint32_t n = 0; b->warps && n < b->nwarps; n++) {
			struct ptx_warp *w = &b->warps[n];

			for (uint32_t m = 0; w->live && m < w->nfragments; m++)
				while (w->fragments[m].frame) {
					struct ptx_frame *frame = w->fragments[m].frame;

					/* Fragments may share a frame: free it with the last.
					 */
					w->fragments[m].frame = frame->parent;
					frame->lanes &= ~w->fragments[m].mask;
					if (!frame->lanes) {
						frame->parent = w->free_frames;
						w->free_frames = frame;
					}
				}
			ptx_frames_free(w);
		}
		free(b->warps);
		free(b->shared);
		free(b->local);
	}
	if (group)
		free(group->blocks);
	free(group);
}

struct ptx_group *ptx_group_new(struct ptx_run_state *run)
{
	const struct ptx_launch *launch = run->launch;
	const struct ptx_function *f = run->function;
	uint32_t threads = launch->block[0] * launch->block[1] * launch->block[2];
	uint32_t blocks = launch->cluster[0] * launch->cluster[1] * launch->cluster[2];
	uint32_t local = (f->stack_bytes + 15) & ~15u;
	size_t stride = ((local + 63) & ~(size_t)63) | 64;
	struct ptx_group *group = calloc(1, sizeof(*group));

	if (!group)
		return NULL;
	group->blocks = calloc(blocks, sizeof(*group->blocks));
	group->nblocks = group->blocks ? blocks : 0;
	for (uint32_t k = 0; k < group->nblocks; k++) {
		struct ptx_block *b = &group->blocks[k];

		b->group = group;
		b->run = run;
		b->rank = k;
		b->nwarps = (threads + PTX_LANES - 1) / PTX_LANES;
		b->dynamic_offset = run->static_shared;
		b->warps = calloc(b->nwarps, sizeof(*b->warps));
		b->shared = calloc(1, run->shared_bytes + 64);
		b->local_bytes = stride * b->nwarps * PTX_LANES;
		b->local = malloc(b->local_bytes);
		if (!b->warps || !b->shared || !b->local) {
			ptx_group_free(group);
			return NULL;
		}
		for (uint32_t n = 0; n < b->nwarps; n++) {
			struct ptx_warp *w = &b->warps[n];

			w->block = b;
			w->index = n;
			w->base[1] = run->module->pool ? run->module->pool - 1 : NULL;
			w->shared = b->shared;
			w->shared_bytes = run->shared_bytes;
			w->local_bytes = local;
			w->local_stride = stride;
			w->local = (unsigned char *)b->local + n * PTX_LANES * stride;
			w->params = launch->params;
			w->param_bytes = f->param_bytes;
			w->window_base = ptx_device_window.base;
			w->window_span = ptx_device_window.span;
			w->denied = ptx_denied_map;
			w->device_bit = (unsigned char)(1u << launch->device);
			w->spoil = launch->spoil;
			for (uint32_t l = 0; l < PTX_LANES; l++) {
				uint32_t t = n * PTX_LANES + l;

				w->tid[0][l] = t % launch->block[0];
				w->tid[1][l] = t / launch->block[0] % launch->block[1];
				w->tid[2][l] = t / launch->block[0] / launch->block[1];
				if (t < threads)
					w->born |= 1u << l;
			}
		}
	}
	if (!group->nblocks) {
		ptx_group_free(group);
		return NULL;
	}
	return group;
}

bool ptx_group_start(struct ptx_group *group, uint64_t index)
{
	struct ptx_run_state *run = group->blocks[0].run;
	const struct ptx_launch *launch = run->launch;
	uint32_t origin[3];

	for (int axis = 0; axis < 3; axis++) {
		uint32_t n = launch->grid[axis] / launch->cluster[axis];

		origin[axis] = (uint32_t)(index % n) * launch->cluster[axis];
		index /= n;
	}
	group->cluster_arrived = 0;
	group->cluster_phase = 1;
	for (uint32_t k = 0; k < group->nblocks; k++) {
		struct ptx_block *b = &group->blocks[k];

		b->ctaid[0] = origin[0] + k % launch->cluster[0];
		b->ctaid[1] = origin[1] + k / launch->cluster[0] % launch->cluster[1];
		b->ctaid[2] = origin[2] + k / launch->cluster[0] / launch->cluster[1];
		b->live_threads = 0;
		memset(b->barriers, 0, sizeof(b->barriers));
		b->passed = false;
		for (uint32_t n = 0; n < b->nwarps; n++) {
			struct ptx_warp *w = &b->warps[n];
			struct ptx_frame *frame = ptx_frame_new(w, run->function, NULL);

			if (!frame)
				return false;
			frame->lanes = w->live = w->born;
			b->live_threads += ptx_popcount(w->born);
			w->nfragments = 1;
			w->forced = w->rotate = w->fresh = false;
			w->cluster_phase = 0;
			memset(w->last_error, 0, sizeof(w->last_error));
			w->fragments[0] = (struct ptx_fragment){
				.pc = run->module->code + run->function->entry,
				.frame = frame,
				.mask = w->born,
			};
		}
	}
	return true;
}

enum ptx_turn ptx_group_turn(struct ptx_worker *worker, struct ptx_group *group, unsigned turns)
{
	struct ptx_run_state *run = worker->run;

	while (turns) {
		bool ran = false, live = false, yielded = false;

		for (uint32_t k = 0; k < group->nblocks; k++) {
			struct ptx_block *b = &group->blocks[k];
			bool down = b->passed;

			for (uint32_t n = 0; n < b->nwarps; n++) {
				/* Many programs read after a barrier what their first warp
				 * soon writes again, and a GPU lets them: it comes last. */
				struct ptx_warp *w = &b->warps[down ? b->nwarps - 1 - n : n];

				if (!w->live || !ptx_warp_ready(w))
					continue;
				worker->warp = w;
				ptx_warp_run(w);
				/* A warp whose lanes all wait at a .sync has not moved. */
				ran |= w->yielded || w->count != 0;
				yielded |= w->yielded;
				worker->count += w->count;
				w->count = 0;
			}
			live |= b->live_threads > 0;
		}
		if (!live)
			return PTX_TURN_DONE;
		if (atomic_load_explicit(&run->status, memory_order_relaxed))
			return PTX_TURN_MORE;
		if (!ran) {
			bool forced = false;

			for (uint32_t k = 0; k < group->nblocks && !forced; k++)
				for (uint32_t n = 0; n < group->blocks[k].nwarps && !forced;
					n++)
					forced = ptx_warp_force(&group->blocks[k].warps[n]);
			if (!forced) {
				worker->warp = &group->blocks[0].warps[0];
				ptx_fault(worker->warp, NULL, PTX_TIMEOUT,
					"deadlock: every thread of block %u,%u,%u waits at a "
					"barrier that the others never reach",
					group->blocks[0].ctaid[0], group->blocks[0].ctaid[1],
					group->blocks[0].ctaid[2]);
			}
		}
		if (run->launch->cancel && atomic_load(run->launch->cancel))
			ptx_fault(worker->warp, NULL, PTX_TIMEOUT, "the launch was cancelled");
		if (run->deadline_ns && ptx_now_ns() > run->deadline_ns)
			ptx_fault(worker->warp, NULL, PTX_TIMEOUT,
				"the kernel ran longer than %llu ms",
				(unsigned long long)(run->launch->timeout_ns / 1000000));
		if (yielded)
			turns--;
	}
	return PTX_TURN_MORE;
}
