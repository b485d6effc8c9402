// SPDX-License-Identifier: Apache-2.0
/* What threads of a warp do together: votes, shuffles of every kind, matches, and branches that
 * part them, within a full warp and within part of one. */
#include "check.h"

enum { RESULTS = 16, THREADS = 64 };

__device__ int collatz(unsigned n)
{
	int steps = 0;

	while (n != 1) {
		n = n % 2 ? 3 * n + 1 : n / 2;
		steps++;
	}
	return steps;
}

__global__ void together(int *out, long long *wide)
{
	const unsigned all = 0xffffffffu;
	int i = threadIdx.x, lane = i % 32, *o = out + i * RESULTS;

	o[0] = __any_sync(all, i == 33);
	o[1] = __all_sync(all, i < 32);
	o[2] = (int)__ballot_sync(all, i % 5 == 2);
	o[3] = __shfl_sync(all, i * 10, 7);
	o[4] = __shfl_up_sync(all, i, 3);
	o[5] = __shfl_down_sync(all, i, 5, 8);
	o[6] = __shfl_xor_sync(all, i, 9);
	o[7] = (int)__match_any_sync(all, i % 7);
	int same = -1;
	o[8] = (int)__match_all_sync(all, i / 32, &same) + same;
	o[9] = collatz((unsigned)i + 1); /* each leaves the loop at its own time */
	o[10] = (int)__ballot_sync(all, o[9] % 2);

	/* Part of the warp by itself. */
	o[11] = 0;
	if (lane < 11) {
		const unsigned some = (1u << 11) - 1;
		o[11] = __shfl_sync(some, i + 1000, (lane + 1) % 11);
		o[11] += (int)__ballot_sync(some, lane & 1);
	}
	__syncwarp();
	switch (lane % 4) {
	case 0:
		o[12] = lane;
		break;
	case 1:
		o[12] = lane * 2;
		/* fall through */
	case 2:
		o[12] = lane * 3;
		break;
	default:
		for (o[12] = 0; o[12] < lane; o[12] += 4)
			if (o[12] > 20)
				break;
	}
	wide[i] = __shfl_sync(all, ((long long)i << 40) + i, 31 - lane);
	o[13] = (int)__shfl_sync(all, (float)i * 0.5f, 20) * 2;
	o[14] = (int)(__activemask() >> lane & 1);
	o[15] = (int)(__brev(__ballot_sync(all, lane == 1)));
}

int main()
{
	int *out, got[THREADS * RESULTS], odd[2] = {0, 0};
	long long *wide, got_wide[THREADS];

	CUDA(cudaMalloc(&out, sizeof(got)));
	CUDA(cudaMalloc(&wide, sizeof(got_wide)));
	together<<<1, THREADS>>>(out, wide);
	LAUNCHED();
	CUDA(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpy(got_wide, wide, sizeof(got_wide), cudaMemcpyDeviceToHost));

	int steps[THREADS];
	for (int i = 0; i < THREADS; i++) {
		steps[i] = 0;
		for (unsigned n = (unsigned)i + 1; n != 1; n = n % 2 ? 3 * n + 1 : n / 2)
			steps[i]++;
		odd[i / 32] |= (int)((unsigned)(steps[i] % 2) << i % 32);
	}
	for (int i = 0; i < THREADS; i++) {
		int lane = i % 32, warp = i - lane, *o = got + i * RESULTS;
		unsigned ballot = 0, match = 0, some = 0;
		for (int j = 0; j < 32; j++) {
			ballot |= (unsigned)((warp + j) % 5 == 2) << j;
			match |= (unsigned)((warp + j) % 7 == i % 7) << j;
			some |= (unsigned)(j < 11 && j & 1) << j;
		}
		CHECK_EQ_AT(i, o[0], warp == 32);
		CHECK_EQ_AT(i, o[1], warp == 0);
		CHECK_EQ_AT(i, (unsigned)o[2], ballot);
		CHECK_EQ_AT(i, o[3], (warp + 7) * 10);
		CHECK_EQ_AT(i, o[4], lane < 3 ? i : i - 3);
		CHECK_EQ_AT(i, o[5], lane % 8 + 5 < 8 ? i + 5 : i);
		CHECK_EQ_AT(i, o[6], warp + (lane ^ 9));
		CHECK_EQ_AT(i, (unsigned)o[7], match);
		CHECK_EQ_AT(i, o[8], 0); /* all bits and 1 */
		CHECK_EQ_AT(i, o[9], steps[i]);
		CHECK_EQ_AT(i, o[10], odd[i / 32]);
		CHECK_EQ_AT(i, o[11],
			lane < 11 ? 1000 + warp + (lane + 1) % 11 + (int)some : 0);
		int loop = 0;
		while (loop < lane && loop <= 20)
			loop += 4;
		CHECK_EQ_AT(i, o[12], lane % 4 == 0 ? lane : lane % 4 == 3 ? loop : lane * 3);
		CHECK_EQ_AT(i, got_wide[i],
			((long long)(warp + 31 - lane) << 40) + warp + 31 - lane);
		CHECK_EQ_AT(i, o[13], (warp + 20) / 2 * 2);
		CHECK_EQ_AT(i, o[14], 1);
		CHECK_EQ_AT(i, o[15], 1 << 30);
	}
	CUDA(cudaFree(out));
	CUDA(cudaFree(wide));
	printf("warps are right\n");
	return 0;
}
