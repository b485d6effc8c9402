// SPDX-License-Identifier: Apache-2.0
/* Kernels that copy boxes of a tensor, for a program that loads them as a module. */
#include <cuda.h>
#include <cuda_runtime.h>

#define BOX_BYTES 4096 /* 32 rows of 32 words */

static __device__ unsigned address_of(const void *shared)
{
	return (unsigned)__cvta_generic_to_shared(shared);
}

static __device__ void barrier_init(unsigned bar)
{
	if (threadIdx.x == 0)
		asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n"
			     "fence.mbarrier_init.release.cluster;\n"
			     "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 4096;"
			:
			: "r"(bar)
			: "memory");
	__syncthreads();
}

static __device__ void barrier_wait(unsigned bar)
{
	asm volatile("{ .reg .pred p;\n"
		     "WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n"
		     "@!p bra WAIT; }"
		:
		: "r"(bar)
		: "memory");
}

static __device__ void fetch_by(const CUtensorMap *map, int x, int y, unsigned *to)
{
	__shared__ alignas(1024) unsigned box[BOX_BYTES / 4];
	__shared__ alignas(8) unsigned long long barrier;
	unsigned bar = address_of(&barrier);

	barrier_init(bar);
	if (threadIdx.x == 0)
		asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::"
			     "complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
			:
			: "r"(address_of(box)), "l"(map), "r"(x), "r"(y), "r"(bar)
			: "memory");
	barrier_wait(bar);
	for (unsigned i = threadIdx.x; i < BOX_BYTES / 4; i += blockDim.x)
		to[i] = box[i];
}

extern "C" {

/* The box as it lies in shared memory; by a map that is an argument, or that lies in memory. */
__global__ void fetch(const __grid_constant__ CUtensorMap map, int x, int y, unsigned *to)
{
	fetch_by(&map, x, y, to);
}

__global__ void fetch_from(const CUtensorMap *map, int x, int y, unsigned *to)
{
	fetch_by(map, x, y, to);
}

/* A column of pixels of a tensor of four dimensions, at an offset in the filter. */
__global__ void fetch_column(const __grid_constant__ CUtensorMap map, int w, int h,
	unsigned short dw, unsigned short dh, unsigned *to)
{
	__shared__ alignas(1024) unsigned box[BOX_BYTES / 4];
	__shared__ alignas(8) unsigned long long barrier;
	unsigned bar = address_of(&barrier);

	barrier_init(bar);
	if (threadIdx.x == 0)
		asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::"
			     "complete_tx::bytes [%0], [%1, {%2, %3, %4, %2}], [%5], {%6, %7};"
			:
			: "r"(address_of(box)), "l"(&map), "r"(0), "r"(w), "r"(h), "r"(bar),
			"h"(dw), "h"(dh)
			: "memory");
	barrier_wait(bar);
	for (unsigned i = threadIdx.x; i < BOX_BYTES / 4; i += blockDim.x)
		to[i] = box[i];
}

/* Fills a box with its numbers, and stores it or adds it. */
__global__ void put(const __grid_constant__ CUtensorMap map, int x, int y, int add)
{
	__shared__ alignas(1024) unsigned box[BOX_BYTES / 4];

	for (unsigned i = threadIdx.x; i < BOX_BYTES / 4; i += blockDim.x)
		box[i] = i;
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
	__syncthreads();
	if (threadIdx.x == 0) {
		if (add)
			asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add."
				     "tile.bulk_group [%0, {%1, %2}], [%3];"
				:
				: "l"(&map), "r"(x), "r"(y), "r"(address_of(box))
				: "memory");
		else
			asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile."
				     "bulk_group [%0, {%1, %2}], [%3];"
				:
				: "l"(&map), "r"(x), "r"(y), "r"(address_of(box))
				: "memory");
		asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::
				: "memory");
	}
}

/* Block 0 of a cluster of two fetches for both. */
__global__ void __cluster_dims__(2, 1, 1)
	share(const __grid_constant__ CUtensorMap map, unsigned *to)
{
	__shared__ alignas(1024) unsigned box[BOX_BYTES / 4];
	__shared__ alignas(8) unsigned long long barrier;
	unsigned bar = address_of(&barrier), rank;

	asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
	barrier_init(bar);
	asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::
			: "memory");
	if (rank == 0 && threadIdx.x == 0)
		asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::"
			     "complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %2}], "
			     "[%3], %4;"
			:
			: "r"(address_of(box)), "l"(&map), "r"(0), "r"(bar), "h"((short)3)
			: "memory");
	barrier_wait(bar);
	for (unsigned i = threadIdx.x; i < BOX_BYTES / 4; i += blockDim.x)
		to[blockIdx.x * BOX_BYTES / 4 + i] = box[i];
	asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::
			: "memory");
}
}
