// SPDX-License-Identifier: Apache-2.0
/* Loads and stores of every width: bytes to 16-byte vectors, through generic pointers, caches and
 * shared memory. */
#include "check.h"

#include <vector>

enum { N = 512 };

struct record {
	char a;
	short b;
	int c;
	double d;
	float e[3];
};

__global__ void move4(const float4 *in, float4 *out)
{
	int i = threadIdx.x;
	float4 v = in[i];

	out[i] = make_float4(v.w, v.z * 2, v.y + 1, v.x);
}

__global__ void move_others(const uchar4 *bytes, const short2 *shorts, const double2 *doubles,
	const longlong2 *longs, uchar4 *bytes_out, short2 *shorts_out, double2 *doubles_out,
	longlong2 *longs_out)
{
	int i = threadIdx.x;

	bytes_out[i] = make_uchar4(bytes[i].w, bytes[i].z, bytes[i].y, bytes[i].x);
	shorts_out[i] = make_short2(shorts[i].y, shorts[i].x);
	doubles_out[i] = make_double2(__ldg(&doubles[i]).y, doubles[i].x);
	longs_out[i] = make_longlong2(longs[i].y - 1, longs[i].x);
}

/* One pointer, to global, shared or local memory. */
__device__ __noinline__ int pick(const int *from, int i)
{
	return from[i];
}

__global__ void generic(const int *global, int *out)
{
	__shared__ int shared[N];
	int local[8], i = threadIdx.x;

	shared[i] = i * 2;
	for (int j = 0; j < 8; j++)
		local[j] = i + j * 1000;
	__syncthreads();
	const int *from = i % 3 == 0 ? global : i % 3 == 1 ? shared : local;
	out[i] = pick(from, i % 3 == 2 ? i % 8 : i);
}

__global__ void records(record *data)
{
	record r = data[threadIdx.x];

	r.a++;
	r.b = (short)(r.b - r.a);
	r.c += r.b;
	r.d *= 2;
	r.e[2] = r.e[0] + r.e[1];
	data[threadIdx.x] = r;
}

/* Half of the blocks leave a number twice in one vector, the others look whether both are the same: a
 * vector moves as a whole, on which CUB's scans rely. */
__global__ void whole_vectors(ulonglong2 *vector, unsigned long long *torn)
{
	for (unsigned long long i = 0; i < 100000; i++) {
		unsigned long long one = blockIdx.x / 2 << 20 | i, other = one;

		if (blockIdx.x % 2) {
			asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(vector),
				"l"(one), "l"(other)
				: "memory");
			continue;
		}
		asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
			     : "=l"(one), "=l"(other)
			     : "l"(vector)
			     : "memory");
		if (one != other)
			atomicAdd(torn, 1);
	}
}

int main()
{
	char *memory, *result;
	std::vector<char> host(64 * N), got(64 * N);
	uint32_t seed = 9;

	for (char &byte : host)
		byte = (char)next_random(&seed);
	float *numbers = (float *)host.data();
	for (int i = 0; i < 4 * N; i++)
		numbers[i] = (float)i;
	CUDA(cudaMalloc(&memory, host.size()));
	CUDA(cudaMalloc(&result, host.size()));
	CUDA(cudaMemcpy(memory, host.data(), host.size(), cudaMemcpyHostToDevice));
	move4<<<1, N>>>((float4 *)memory, (float4 *)result);
	LAUNCHED();
	CUDA(cudaMemcpy(got.data(), result, 16 * N, cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		const float *v = (const float *)got.data() + 4 * i, x = (float)(4 * i);
		CHECK(v[0] == x + 3 && v[1] == 2 * (x + 2) && v[2] == x + 2 && v[3] == x);
	}

	char *b = memory, *s = memory + 4 * N, *d = memory + 16 * N, *l = memory + 32 * N;
	move_others<<<1, N>>>((uchar4 *)b, (short2 *)s, (double2 *)d, (longlong2 *)l,
		(uchar4 *)result, (short2 *)(result + 4 * N), (double2 *)(result + 16 * N),
		(longlong2 *)(result + 32 * N));
	LAUNCHED();
	CUDA(cudaMemcpy(got.data(), result, got.size(), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		for (int j = 0; j < 4; j++)
			CHECK_EQ_AT(i, got[4 * i + j], host[4 * i + 3 - j]);
		CHECK(!memcmp(&got[4 * N + 4 * i], &host[4 * N + 4 * i + 2], 2));
		CHECK(!memcmp(&got[4 * N + 4 * i + 2], &host[4 * N + 4 * i], 2));
		CHECK(!memcmp(&got[16 * N + 16 * i], &host[16 * N + 16 * i + 8], 8));
		CHECK(!memcmp(&got[16 * N + 16 * i + 8], &host[16 * N + 16 * i], 8));
		uint64_t was, is;
		memcpy(&was, &host[32 * N + 16 * i + 8], 8);
		memcpy(&is, &got[32 * N + 16 * i], 8);
		CHECK_EQ_AT(i, is, was - 1);
		CHECK(!memcmp(&got[32 * N + 16 * i + 8], &host[32 * N + 16 * i], 8));
	}

	unsigned long long torn;
	CUDA(cudaMemset(memory, 0, 64));
	whole_vectors<<<16, 1>>>((ulonglong2 *)memory, (unsigned long long *)(memory + 32));
	LAUNCHED();
	CUDA(cudaMemcpy(&torn, memory + 32, sizeof(torn), cudaMemcpyDeviceToHost));
	CHECK_EQ(torn, 0ull);

	int *ints = (int *)host.data(), *got_ints = (int *)got.data();
	for (int i = 0; i < N; i++)
		ints[i] = i * 7;
	CUDA(cudaMemcpy(memory, ints, N * sizeof(int), cudaMemcpyHostToDevice));
	generic<<<1, N>>>((int *)memory, (int *)result);
	LAUNCHED();
	CUDA(cudaMemcpy(got_ints, result, N * sizeof(int), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, got_ints[i],
			i % 3 == 0 ? i * 7 : i % 3 == 1 ? i * 2 : i + i % 8 * 1000);

	std::vector<record> in(N), out(N);
	for (int i = 0; i < N; i++)
		in[i] = {(char)(i % 100), (short)(i * 50), i * 1000, i * 0.5, {1.0f * i, 2, 3}};
	CUDA(cudaMemcpy(memory, in.data(), N * sizeof(record), cudaMemcpyHostToDevice));
	records<<<1, N>>>((record *)memory);
	LAUNCHED();
	CUDA(cudaMemcpy(out.data(), memory, N * sizeof(record), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		CHECK_EQ_AT(i, out[i].a, i % 100 + 1);
		CHECK_EQ_AT(i, out[i].b, (short)(i * 50 - (i % 100 + 1)));
		CHECK_EQ_AT(i, out[i].c, i * 1000 + out[i].b);
		CHECK_EQ_AT(i, out[i].d, (double)i);
		CHECK_EQ_AT(i, out[i].e[2], i + 2.0f);
	}
	CUDA(cudaFree(memory));
	CUDA(cudaFree(result));
	printf("loads and stores are right\n");
	return 0;
}
