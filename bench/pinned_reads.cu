/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast kernels read pointers out of pinned memory, as MAGMA's batched kernels do: 4,000 and
 * 8,000 blocks that each take a matrix' pointer and exchange its rows, and 1,000 that copy a
 * pointer.  Where the lines lie decides it (caches of one core, of all, memory), so natively
 * "written" says what the program's own writing gains, and through vcuda the difference between
 * "device" and the others what the worker's looks cost (gpu-agent/worker/driver/memory/mirror.c).
 *
 *     nvcc -O2 -o pinned_reads bench/pinned_reads.cu
 *     ./pinned_reads; vcuda run --agent HOST -- ./pinned_reads
 *
 * Prints a line for each kind of memory: microseconds of each kernel by the GPU's clock, the
 * median and the tenth and ninetieth hundredth.
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                \
	do {                                                                                       \
		cudaError_t e = (call);                                                            \
		if (e != cudaSuccess) {                                                            \
			fprintf(stderr, "pinned_reads: %s: %s\n", #call, cudaGetErrorString(e));   \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

enum { MATRICES = 1000, SIDE = 64, ROUNDS = 60, KERNELS = 3 };

__device__ unsigned long long spans[ROUNDS * KERNELS][2]; /* ns: first block, last block */

__device__ static unsigned long long device_now()
{
	unsigned long long t;

	asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
	return t;
}

__device__ static void begin(int span)
{
	if (!threadIdx.x)
		atomicMin(&spans[span][0], device_now());
}

__device__ static void end(int span)
{
	__syncthreads();
	if (!threadIdx.x)
		atomicMax(&spans[span][1], device_now());
}

__global__ static void exchange(float **matrices, int **orders, int span, int rows)
{
	__shared__ float part[32][33];

	begin(span);
	float *m = matrices[blockIdx.z];
	const int *order = orders[blockIdx.z];
	int column = blockIdx.x * 8 + (threadIdx.x & 7);

	for (int r = 0; r < rows; r++)
		part[r][threadIdx.x] = m[order[r] % SIDE + column * SIDE];
	__syncthreads();
	for (int r = 0; r < rows; r++)
		m[r + column * SIDE] = part[r][threadIdx.x];
	end(span);
}

__global__ static void displace(float **to, float **matrices, int span)
{
	begin(span);
	to[blockIdx.x] = matrices[blockIdx.x] + 4;
	end(span);
}

static void told(const char *what)
{
	static unsigned long long got[ROUNDS * KERNELS][2];

	CHECK(cudaMemcpyFromSymbol(got, spans, sizeof(got)));
	printf("%-32s", what);
	for (int kernel = 0; kernel < KERNELS; kernel++) {
		std::vector<double> us;
		for (int i = kernel; i < ROUNDS * KERNELS; i += KERNELS)
			us.push_back((got[i][1] - got[i][0]) * 1e-3);
		std::sort(us.begin(), us.end());
		printf("  %6.1f (%.1f-%.1f)", us[ROUNDS / 2], us[ROUNDS / 10], us[ROUNDS * 9 / 10]);
	}
	printf("\n");
}

int main()
{
	float *m, **device, **small, **large, **to, *matrices[MATRICES];
	int *order, **orders, *order_of[MATRICES];
	const size_t bytes = sizeof(matrices);

	CHECK(cudaMalloc(&m, MATRICES * SIDE * SIDE * sizeof(*m)));
	CHECK(cudaMemset(m, 0, MATRICES * SIDE * SIDE * sizeof(*m)));
	CHECK(cudaMalloc(&order, MATRICES * SIDE * sizeof(*order)));
	CHECK(cudaMemset(order, 0, MATRICES * SIDE * sizeof(*order)));
	CHECK(cudaMalloc(&device, bytes));
	CHECK(cudaMalloc(&orders, bytes));
	CHECK(cudaMalloc(&to, bytes));
	for (int i = 0; i < MATRICES; i++) {
		matrices[i] = m + i * SIDE * SIDE;
		order_of[i] = order + i * SIDE;
	}
	CHECK(cudaMemcpy(device, matrices, bytes, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(orders, order_of, bytes, cudaMemcpyHostToDevice));
	CHECK(cudaMallocHost(&small, bytes));
	CHECK(cudaMallocHost(&large, 4 << 20));
	memset(large, 0, 4 << 20);
	memcpy(small, matrices, bytes);
	memcpy(large, matrices, bytes);

	const struct {
		const char *name;
		float **at;
		bool waits, written;
	} kinds[] = {
		{"device", device, false, false},
		{"8 KiB pinned, each awaited", small, true, false},
		{"8 KiB pinned, one after another", small, false, false},
		{"8 KiB pinned, written before", small, true, true},
		{"in 4 MiB pinned, each awaited", large, true, false},
		{"in 4 MiB pinned, in a row", large, false, false},
	};
	for (const auto &kind : kinds) {
		static unsigned long long none[ROUNDS * KERNELS][2];

		for (auto &span : none)
			span[0] = ~0ull, span[1] = 0;
		CHECK(cudaMemcpyToSymbol(spans, none, sizeof(none)));
		for (int round = 0; round < ROUNDS; round++) {
			int span = round * KERNELS;

			if (kind.written)
				memcpy(kind.at, matrices, bytes);
			exchange<<<dim3(4, 1, MATRICES), 16>>>(kind.at, orders, span, 16);
			exchange<<<dim3(8, 1, MATRICES), 32>>>(kind.at, orders, span + 1, 32);
			displace<<<MATRICES, 1>>>(to, kind.at, span + 2);
			if (kind.waits)
				CHECK(cudaDeviceSynchronize());
		}
		CHECK(cudaDeviceSynchronize());
		told(kind.name);
	}
	return 0;
}
