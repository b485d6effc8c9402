// SPDX-License-Identifier: Apache-2.0
/* Every atomic operation, 32 and 64 bits wide, on global and on shared memory, from many threads
 * at once; the results do not depend on the order. */
#include "check.h"

enum { THREADS = 20 * 256 };

struct cells {
	int add, sub, min, max, exchange_sum;
	unsigned and_bits, or_bits, xor_bits, inc, dec, cas_count;
	unsigned long long add64, min64, max64, and64, or64, xor64, cas64, exchange64;
	long long signed_min64;
	float add_float;
	double add_double, cas_double;
	unsigned last_seen;
};

/* Adds to a double the old way, by compare and swap. */
__device__ void add_by_cas(double *cell, double value)
{
	unsigned long long *bits = (unsigned long long *)cell, old = *bits, seen;

	do {
		seen = old;
		old = atomicCAS(bits, seen,
			(unsigned long long)__double_as_longlong(
				__longlong_as_double((long long)seen) + value));
	} while (old != seen);
}

__device__ void operate(cells *c, unsigned i)
{
	atomicAdd(&c->add, (int)i - 1000);
	atomicSub(&c->sub, (int)i);
	atomicMin(&c->min, 7 - (int)i);
	atomicMax(&c->max, (int)i * 3);
	atomicAnd(&c->and_bits, ~(1u << i % 31));
	atomicOr(&c->or_bits, 1u << i % 29);
	atomicXor(&c->xor_bits, i * 2654435761u);
	atomicInc(&c->inc, 99);
	atomicDec(&c->dec, 99);
	atomicAdd(&c->add64, (unsigned long long)i << 33);
	atomicMin(&c->min64, (1ull << 50) - ((unsigned long long)i << 34));
	atomicMax(&c->max64, (unsigned long long)i << 40);
	atomicMin(&c->signed_min64, (long long)i * -(1ll << 35));
	atomicAnd(&c->and64, ~(1ull << i % 61));
	atomicOr(&c->or64, 1ull << i % 59);
	atomicXor(&c->xor64, i * 0x9e3779b97f4a7c15ull);
	atomicAdd(&c->add_float, 0.5f);
	atomicAdd(&c->add_double, 0.25 * i);
	add_by_cas(&c->cas_double, 0.125 * i);
	if (atomicCAS(&c->cas_count, i % 4, i % 4 + 1) > 4)
		c->last_seen = 1;
	/* What goes in by exchange comes out by exchange: the sums of both agree. */
	atomicAdd(&c->exchange_sum, atomicExch(&c->last_seen, i));
	atomicAdd(&c->cas64, atomicExch(&c->exchange64, (unsigned long long)i << 32));
}

__global__ void global(cells *c)
{
	operate(c, blockIdx.x * blockDim.x + threadIdx.x);
}

__global__ void shared(cells *out)
{
	__shared__ cells c;

	if (threadIdx.x == 0)
		c = *out;
	__syncthreads();
	for (unsigned i = threadIdx.x; i < THREADS; i += blockDim.x)
		operate(&c, i);
	__syncthreads();
	if (threadIdx.x == 0)
		*out = c;
}

static void check(const cells &c)
{
	long long sum = (long long)THREADS * (THREADS - 1) / 2;
	unsigned and_bits = ~0u, or_bits = 0, xor_bits = 0;
	unsigned long long and64 = ~0ull, or64 = 0, xor64 = 0;

	for (unsigned i = 0; i < THREADS; i++) {
		and_bits &= ~(1u << i % 31);
		or_bits |= 1u << i % 29;
		xor_bits ^= i * 2654435761u;
		and64 &= ~(1ull << i % 61);
		or64 |= 1ull << i % 59;
		xor64 ^= i * 0x9e3779b97f4a7c15ull;
	}
	CHECK_EQ(c.add, (int)(sum - 1000ll * THREADS));
	CHECK_EQ(c.sub, (int)-sum);
	CHECK_EQ(c.min, 7 - (THREADS - 1));
	CHECK_EQ(c.max, (THREADS - 1) * 3);
	CHECK_EQ(c.and_bits, and_bits);
	CHECK_EQ(c.or_bits, or_bits);
	CHECK_EQ(c.xor_bits, xor_bits);
	CHECK_EQ(c.inc, THREADS % 100u);
	CHECK_EQ(c.dec, (100u - THREADS % 100u) % 100u);
	CHECK_EQ(c.add64, (unsigned long long)sum << 33);
	CHECK_EQ(c.min64, (1ull << 50) - ((THREADS - 1ull) << 34));
	CHECK_EQ(c.max64, (THREADS - 1ull) << 40);
	CHECK_EQ(c.signed_min64, (THREADS - 1ll) * -(1ll << 35));
	CHECK_EQ(c.and64, and64);
	CHECK_EQ(c.or64, or64);
	CHECK_EQ(c.xor64, xor64);
	CHECK_EQ(c.add_float, 0.5f * THREADS);
	CHECK_EQ(c.add_double, 0.25 * sum);
	CHECK_EQ(c.cas_double, 0.125 * sum);
	CHECK_EQ(c.cas_count, 4u);
	CHECK_EQ(c.exchange_sum + (int)c.last_seen, (int)sum);
	CHECK_EQ(c.cas64 + c.exchange64, (unsigned long long)sum << 32);
}

int main()
{
	cells start = {}, got, *device;

	start.min = 1 << 20;
	start.max = -5;
	start.and_bits = ~0u;
	start.and64 = ~0ull;
	start.min64 = ~0ull;
	CUDA(cudaMalloc(&device, sizeof(cells)));
	for (int in_shared = 0; in_shared < 2; in_shared++) {
		CUDA(cudaMemcpy(device, &start, sizeof(start), cudaMemcpyHostToDevice));
		if (in_shared)
			shared<<<1, 512>>>(device);
		else
			global<<<THREADS / 256, 256>>>(device);
		LAUNCHED();
		CUDA(cudaMemcpy(&got, device, sizeof(got), cudaMemcpyDeviceToHost));
		check(got);
	}
	CUDA(cudaFree(device));
	printf("atomics are right\n");
	return 0;
}
