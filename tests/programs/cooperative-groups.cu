// SPDX-License-Identifier: Apache-2.0
/* Cooperative groups within a block: tiles of several sizes, votes, shuffles, and the group of
 * those threads that took a branch. */
#include "check.h"

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

enum { THREADS = 96 };

struct report {
	int tile_sum, tile_rank, any, all, ballot, taken, taken_rank, from_first, block_rank;
};

template <int SIZE> __global__ void tiles(report *out)
{
	cg::thread_block block = cg::this_thread_block();
	cg::thread_block_tile<SIZE> tile = cg::tiled_partition<SIZE>(block);
	int me = (int)block.thread_rank(), sum = me;
	report r = {};

	for (int distance = SIZE / 2; distance > 0; distance /= 2)
		sum += tile.shfl_xor(sum, distance);
	r.tile_sum = sum;
	r.tile_rank = (int)tile.thread_rank();
	r.any = tile.any(me == 5);
	r.all = tile.all(me < 40);
	r.ballot = (int)tile.ballot(me % 3 == 0);
	r.block_rank = me;
	__syncwarp();
	if (me % 3 == 1) {
		cg::coalesced_group active = cg::coalesced_threads();
		r.taken = (int)active.size();
		r.taken_rank = (int)active.thread_rank();
		r.from_first = active.shfl(me, 0);
	}
	tile.sync();
	out[me] = r;
	block.sync();
}

template <int SIZE> static void check(report *device)
{
	report got[THREADS];

	tiles<SIZE><<<1, THREADS>>>(device);
	LAUNCHED();
	CUDA(cudaMemcpy(got, device, sizeof(got), cudaMemcpyDeviceToHost));
	for (int me = 0; me < THREADS; me++) {
		int first = me / SIZE * SIZE, sum = 0, any = 0, all = 1, ballot = 0;
		int warp = me / 32 * 32, taken = 0, rank = 0, leader = -1;
		for (int i = first; i < first + SIZE; i++) {
			sum += i;
			any |= i == 5;
			all &= i < 40;
			ballot |= (int)((unsigned)(i % 3 == 0) << (i - first));
		}
		for (int i = warp; i < warp + 32; i++)
			if (i % 3 == 1) {
				leader = leader < 0 ? i : leader;
				rank += i < me;
				taken++;
			}
		CHECK_EQ_AT(me, got[me].tile_sum, sum);
		CHECK_EQ_AT(me, got[me].tile_rank, me - first);
		CHECK_EQ_AT(me, got[me].any != 0, any);
		CHECK_EQ_AT(me, got[me].all != 0, all);
		CHECK_EQ_AT(me, got[me].ballot, ballot);
		CHECK_EQ_AT(me, got[me].block_rank, me);
		CHECK_EQ_AT(me, got[me].taken, me % 3 == 1 ? taken : 0);
		CHECK_EQ_AT(me, got[me].taken_rank, me % 3 == 1 ? rank : 0);
		CHECK_EQ_AT(me, got[me].from_first, me % 3 == 1 ? leader : 0);
	}
}

int main()
{
	report *device;

	CUDA(cudaMalloc(&device, THREADS * sizeof(report)));
	check<32>(device);
	check<16>(device);
	check<4>(device);
	CUDA(cudaFree(device));
	printf("groups are right\n");
	return 0;
}
