/* SPDX-License-Identifier: Apache-2.0
 *
 * What a pool says that it has reserved and used: the numbers of an H200 (driver 580, CUDA 13.0).  A pool takes
 * memory in units of 32 MiB, lays allocations out in them first-fit, and a synchronisation gives back the
 * units that nothing lies in, down to the release threshold.
 */
#include "check.h"

#define MIB (1ull << 20)

static cudaMemPool_t pool;
static cudaStream_t stream;

static unsigned long long attribute(cudaMemPoolAttr which)
{
	unsigned long long value = 0;

	CUDA(cudaMemPoolGetAttribute(pool, which, &value));
	return value;
}

static void reserves(unsigned long long units)
{
	CHECK_EQ(attribute(cudaMemPoolAttrReservedMemCurrent), units * 32 * MIB);
}

static void *get(size_t bytes, unsigned long long units)
{
	void *p = NULL;

	CUDA(cudaMallocFromPoolAsync(&p, bytes, pool, stream));
	reserves(units);
	return p;
}

static void give(void *p)
{
	CUDA(cudaFreeAsync(p, stream));
}

static void synced(unsigned long long units)
{
	CUDA(cudaStreamSynchronize(stream));
	reserves(units);
}

static void grows_and_shrinks(unsigned long long threshold)
{
	void *one, *thousand, *mib, *small[2], *p33, *p100, *p200, *last, *p90, *p9;
	const bool keeps_all = threshold > 600 * MIB, keeps_two = threshold > 0;

	CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
	one = get(1, 1);
	CHECK_EQ(attribute(cudaMemPoolAttrUsedMemCurrent), 1ull);
	thousand = get(1000, 1);
	CHECK_EQ(attribute(cudaMemPoolAttrUsedMemCurrent), 1001ull);
	mib = get(MIB, 1);
	small[0] = get(20 * MIB, 1);
	small[1] = get(20 * MIB, 2);
	p33 = get(33 * MIB, 3);
	p100 = get(100 * MIB, 6);
	p200 = get(200 * MIB, 12);
	last = get(200 * MIB + 1, 18);
	CHECK_EQ(attribute(cudaMemPoolAttrUsedMemCurrent), 601883626ull);
	/* What is freed is used no longer at once, and its place is another's. */
	give(p100);
	reserves(18);
	CHECK_EQ(attribute(cudaMemPoolAttrUsedMemCurrent), 497026026ull);
	p90 = get(90 * MIB, 18);
	p9 = get(9 * MIB, 18);
	give(p200);
	synced(keeps_all ? 18 : 13);
	give(last);
	synced(keeps_all ? 18 : 6);
	give(p90);
	give(p33);
	synced(keeps_all ? 18 : 3);
	CUDA(cudaMemPoolTrimTo(pool, 64 * MIB));
	reserves(3);
	CUDA(cudaMemPoolTrimTo(pool, 0));
	reserves(3);
	give(small[0]);
	give(small[1]);
	give(p9);
	synced(keeps_all ? 3 : keeps_two ? 2 : 1);
	give(one);
	give(thousand);
	give(mib);
	CHECK_EQ(attribute(cudaMemPoolAttrUsedMemCurrent), 0ull);
	synced(keeps_all ? 3 : keeps_two ? 2 : 0);
	CUDA(cudaMemPoolTrimTo(pool, 0));
	reserves(0);
	CHECK_EQ(attribute(cudaMemPoolAttrReservedMemHigh), 18 * 32 * MIB);
	CHECK_EQ(attribute(cudaMemPoolAttrUsedMemHigh), 601883626ull);
}

/* A small allocation in the place of larger ones counts as what was asked for. */
static void used_is_what_was_asked(void)
{
	void *a = get(512, 1), *b = get(1024, 1);

	give(a);
	give(b);
	a = get(700, 1);
	CHECK_EQ(attribute(cudaMemPoolAttrUsedMemCurrent), 700ull);
	give(a);
	synced(0);
}

/* Trimming leaves no less than it was told to keep: a unit that would be missing then stays
 * (CCCL's test of cuda::device_memory_pool says so of NVIDIA's). */
static void keeps_no_less(void)
{
	void *a = get(20 * MIB, 1), *b = get(20 * MIB, 2);

	give(a);
	give(b);
	synced(2);
	CUDA(cudaMemPoolTrimTo(pool, 33 * MIB));
	reserves(2);
	CUDA(cudaMemPoolTrimTo(pool, 32 * MIB));
	reserves(1);
	CUDA(cudaMemPoolTrimTo(pool, 1));
	reserves(1);
	CUDA(cudaMemPoolTrimTo(pool, 0));
	reserves(0);
}

static void own(unsigned long long threshold)
{
	cudaMemPoolProps props = {};

	props.allocType = cudaMemAllocationTypePinned;
	props.location.type = cudaMemLocationTypeDevice;
	CUDA(cudaMemPoolCreate(&pool, &props));
	grows_and_shrinks(threshold);
	if (threshold == ~0ull)
		keeps_no_less();
	CUDA(cudaMemPoolDestroy(pool));
}

int main(void)
{
	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
	grows_and_shrinks(0);
	used_is_what_was_asked();
	own(0);
	own(64 * MIB);
	own(~0ull);
	CUDA(cudaStreamDestroy(stream));
	return 0;
}
