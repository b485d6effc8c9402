// SPDX-License-Identifier: Apache-2.0
/* Integer arithmetic of every width: the same expressions run here and there. */
#include "check.h"

#include <vector>

enum { N = 2048, RESULTS = 26, WIDE_RESULTS = 8, THREADS = 128 };

struct operands {
	uint64_t a, b;
};

/* Plain C: what the compilers make of it is the test. */
__host__ __device__ void plain(operands in, uint64_t *o)
{
	uint64_t a = in.a, b = in.b | 1;
	int64_t sa = (int64_t)a, sb = (int64_t)b;
	uint32_t x = (uint32_t)a, y = (uint32_t)b;
	int32_t sx = (int32_t)x, sy = (int32_t)(y | 2);
	int16_t hx = (int16_t)a, hy = (int16_t)(b >> 16);
	int8_t bx = (int8_t)a, by = (int8_t)(b >> 8);

	o[0] = a + b;
	o[1] = a * b;
	o[2] = a / b;
	o[3] = a % b;
	o[4] = sb == -1 ? 0 : (uint64_t)(sa / sb);
	o[5] = sb == -1 ? 0 : (uint64_t)(sa % sb);
	o[6] = x / y + (uint64_t)(x % y) * 3;
	o[7] = sy == -1 ? 0 : (uint64_t)(int64_t)(sx / sy) ^ (uint64_t)(int64_t)(sx % sy);
	o[8] = a << (b & 63) ^ a >> (b & 63);
	o[9] = (uint64_t)(sa >> (b & 63));
	o[10] = (uint64_t)(int64_t)(int32_t)(hx * hy);
	o[11] = (uint64_t)(int64_t)(int16_t)(hx + hy) ^ (uint16_t)(hx >> 3);
	o[12] = (uint64_t)(int64_t)(int8_t)(bx - by) + (uint8_t)(bx * by);
	o[13] = (uint64_t)(sa < sb) | (uint64_t)(a < b) << 1 | (uint64_t)(sx <= sy) << 2 |
		(uint64_t)(hx > hy) << 3 | (uint64_t)(bx == by) << 4;
	o[14] = (a & b) ^ (a | ~b);
	o[15] = x / 10 + x % 1000 + (uint64_t)(int64_t)(sx / 7);
}

/* Products and quotients of 128 bits; of divisors of every length. clang has no division of 128 bits
 * for the device. */
#ifdef __NVCC__
__host__ __device__ void wide(operands in, uint64_t *o)
{
	__int128 x = (__int128)(int64_t)in.a * (int64_t)(in.b | 1);
	unsigned __int128 u = (unsigned __int128)x;
	unsigned __int128 y = ((unsigned __int128)in.b << 64 | in.a | 1) >> in.b % 127;

	y |= !y;
	for (int i = 0; i < WIDE_RESULTS / 4; i++) {
		unsigned __int128 q = i ? u % y : u / y;
		__int128 s = i ? x % (__int128)1000000007 : x / (__int128)(in.a | 1);

		o[4 * i] = (uint64_t)q;
		o[4 * i + 1] = (uint64_t)(q >> 64);
		o[4 * i + 2] = (uint64_t)s;
		o[4 * i + 3] = (uint64_t)((unsigned __int128)s >> 64);
	}
}

__global__ void compute_wide(const operands *in, uint64_t *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	wide(in[i], out + i * WIDE_RESULTS);
}

static void check_wide(const std::vector<operands> &in, const operands *device_in)
{
	std::vector<uint64_t> got(N * WIDE_RESULTS);
	uint64_t want[WIDE_RESULTS], *out;

	CUDA(cudaMalloc(&out, got.size() * sizeof(uint64_t)));
	compute_wide<<<N / THREADS, THREADS>>>(device_in, out);
	LAUNCHED();
	CUDA(cudaMemcpy(got.data(), out, got.size() * sizeof(uint64_t), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		wide(in[i], want);
		for (int j = 0; j < WIDE_RESULTS; j++)
			CHECK_EQ_AT(i, got[i * WIDE_RESULTS + j], want[j]);
	}
	CUDA(cudaFree(out));
}
#endif

/* The device's own functions; their meaning is spelt out in special_here(). */
__global__ void compute(const operands *in, uint64_t *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	uint64_t *o = out + i * RESULTS, a = in[i].a, b = in[i].b;
	uint32_t x = (uint32_t)a, y = (uint32_t)b;

	plain(in[i], o);
	o[16] = __umul64hi(a, b);
	o[17] = (uint64_t)__mul64hi((long long)a, (long long)b);
	o[18] = __umulhi(x, y) + ((uint64_t)(uint32_t)__mulhi((int)x, (int)y) << 32);
	o[19] = (uint64_t)(__popcll(a) + 100 * __clzll((long long)a) + 10000 * __ffsll((long long)b));
	o[20] = (uint64_t)__popc(x) + 100ull * __clz((int)y) + 10000ull * __ffs((int)x);
	o[21] = __brev(x) + ((uint64_t)__byte_perm(x, y, 0x5216) << 32);
	o[22] = __brevll(a);
	o[23] = __funnelshift_l(x, y, a >> 40) + ((uint64_t)__funnelshift_r(x, y, b >> 40) << 32);
	o[24] = (uint64_t)(int64_t)__dp4a((int)x, (int)y, 1000) ^ (uint64_t)__dp4a(x, y, 7u) << 32;
	o[25] = __sad((int)x, (int)y, 5u) + ((uint64_t)__usad(x, y, 9u) << 32);
}

static uint32_t reversed(uint32_t x)
{
	uint32_t r = 0;

	for (int i = 0; i < 32; i++)
		r |= (x >> i & 1) << (31 - i);
	return r;
}

static void special_here(operands in, uint64_t *o)
{
	uint64_t a = in.a, b = in.b;
	uint32_t x = (uint32_t)a, y = (uint32_t)b;
	uint64_t both = (uint64_t)y << 32 | x;
	int signed_dot = 1000;
	uint32_t dot = 7;

	o[16] = (uint64_t)((unsigned __int128)a * b >> 64);
	o[17] = (uint64_t)((__int128)(int64_t)a * (int64_t)b >> 64);
	o[18] = ((uint64_t)x * y >> 32) +
		((uint64_t)(uint32_t)((int64_t)(int32_t)x * (int32_t)y >> 32) << 32);
	o[19] = (uint64_t)(__builtin_popcountll(a) + 100 * (a ? __builtin_clzll(a) : 64) +
		10000 * __builtin_ffsll((long long)b));
	o[20] = (uint64_t)(__builtin_popcount(x) + 100 * (y ? __builtin_clz(y) : 32) +
		10000 * __builtin_ffs((int)x));
	uint32_t permuted = 0;
	for (int i = 0; i < 4; i++)
		permuted |= (uint32_t)(both >> 8 * (0x5216 >> 4 * i & 7) & 0xff) << 8 * i;
	o[21] = reversed(x) + ((uint64_t)permuted << 32);
	o[22] = (uint64_t)reversed(x) << 32 | reversed((uint32_t)(a >> 32));
	o[23] = (uint32_t)(both << (a >> 40 & 31) >> 32) + (both >> (b >> 40 & 31) << 32);
	for (int i = 0; i < 32; i += 8) {
		signed_dot += (int8_t)(x >> i) * (int8_t)(y >> i);
		dot += (x >> i & 0xff) * (y >> i & 0xff);
	}
	o[24] = (uint64_t)(int64_t)signed_dot ^ (uint64_t)dot << 32;
	int64_t apart = (int64_t)(int32_t)x - (int32_t)y;
	o[25] = (uint32_t)((apart < 0 ? -apart : apart) + 5) +
		((uint64_t)(uint32_t)((x > y ? x - y : y - x) + 9) << 32);
}

int main()
{
	std::vector<operands> in(N);
	std::vector<uint64_t> got(N * RESULTS);
	operands *device_in;
	uint64_t *device_out;
	uint32_t seed = 77;
	const uint64_t edges[] = {0, 1, ~0ull, 1ull << 63, 0x7fffffffull, 0x80000000ull, 255, 1ull << 32};

	for (int i = 0; i < N; i++) {
		in[i].a = ((uint64_t)next_random(&seed) << 32 | next_random(&seed)) >> i % 64;
		in[i].b = ((uint64_t)next_random(&seed) << 32 | next_random(&seed)) >> i / 64 * 2;
		if (i < 64)
			in[i] = {edges[i / 8], edges[i % 8]};
	}
	CUDA(cudaMalloc(&device_in, N * sizeof(operands)));
	CUDA(cudaMalloc(&device_out, got.size() * sizeof(uint64_t)));
	CUDA(cudaMemcpy(device_in, in.data(), N * sizeof(operands), cudaMemcpyHostToDevice));
	compute<<<N / THREADS, THREADS>>>(device_in, device_out);
	LAUNCHED();
	CUDA(cudaMemcpy(got.data(), device_out, got.size() * sizeof(uint64_t),
		cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		uint64_t want[RESULTS];
		plain(in[i], want);
		special_here(in[i], want);
		for (int j = 0; j < RESULTS; j++)
			if (got[i * RESULTS + j] != want[j])
				FAIL("result %d of %llx and %llx is %llx, not %llx", j,
					(unsigned long long)in[i].a, (unsigned long long)in[i].b,
					(unsigned long long)got[i * RESULTS + j],
					(unsigned long long)want[j]);
	}
#ifdef __NVCC__
	check_wide(in, device_in);
#endif
	CUDA(cudaFree(device_in));
	CUDA(cudaFree(device_out));
	printf("integers are right\n");
	return 0;
}
