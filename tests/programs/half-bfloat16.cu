// SPDX-License-Identifier: Apache-2.0
/* 16-bit floats: every value to float and back, rounding of floats, and arithmetic, bit for bit
 * as computed here from the definition. */
#include "check.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>
#include <vector>

enum { ALL = 65536, OPERATIONS = 6 };

/* Rounds to FRACTION bits (10: half, 7: bfloat16) to nearest, ties to even; the 16-bit pattern. */
static unsigned short rounded(double value, int fraction, int least_exponent, double largest)
{
	int sign = signbit(value) != 0, exponent;
	double size = fabs(value);

	if (isnan(value))
		return 0x7fff;
	if (size == 0)
		return (unsigned short)(sign << 15);
	frexp(size, &exponent);
	exponent = exponent - 1 < least_exponent ? least_exponent : exponent - 1;
	double unit = ldexp(1.0, exponent - fraction), result = nearbyint(size / unit) * unit;
	if (result > largest)
		return (unsigned short)(sign << 15 | ((1 << (15 - fraction)) - 1) << fraction);
	long long units = (long long)(result / ldexp(1.0, exponent - fraction));
	int biased = exponent - least_exponent;
	return (unsigned short)(sign << 15 | ((biased << fraction) + (int)units));
}

static unsigned short to_half(double value)
{
	return rounded(value, 10, -14, 65504.0);
}

static unsigned short to_bfloat16(double value)
{
	return rounded(value, 7, -126, 3.3895313892515355e38);
}

static float from_half(unsigned short bits)
{
	int exponent = bits >> 10 & 31, fraction = bits & 1023;
	float size = exponent == 31 ? (fraction ? NAN : INFINITY)
		: exponent ? ldexpf((float)(1024 + fraction), exponent - 25)
			   : ldexpf((float)fraction, -24);

	return bits >> 15 ? -size : size;
}

static float from_bfloat16(unsigned short bits)
{
	uint32_t wide = (uint32_t)bits << 16;
	float value;

	memcpy(&value, &wide, sizeof(value));
	return value;
}

__global__ void widen(float *halves, float *bfloats)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	halves[i] = __half2float(__ushort_as_half((unsigned short)i));
	bfloats[i] = __bfloat162float(__ushort_as_bfloat16((unsigned short)i));
}

__global__ void narrow(const float *in, unsigned short *halves, unsigned short *bfloats)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	halves[i] = __half_as_ushort(__float2half_rn(in[i]));
	bfloats[i] = __bfloat16_as_ushort(__float2bfloat16_rn(in[i]));
}

__global__ void arithmetic(const unsigned short *in, unsigned short *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	__half a = __ushort_as_half(in[i]), b = __ushort_as_half(in[(i + 7) % ALL]);
	__half2 pair = __hmul2(__halves2half2(a, b), __halves2half2(b, b));
	unsigned short *o = out + i * OPERATIONS;

	o[0] = __half_as_ushort(__hadd(a, b));
	o[1] = __half_as_ushort(__hmul(a, b));
	o[2] = __half_as_ushort(__hfma(a, b, a));
	o[3] = __half_as_ushort(__high2half(pair));
	o[4] = __hlt(a, b);
	o[5] = __bfloat16_as_ushort(__hadd(__float2bfloat16(__half2float(a)),
		__float2bfloat16(__half2float(b))));
}

static void check_16(const char *what, int i, unsigned short got, unsigned short want, float nan)
{
	if (isnan(nan))
		return;
	if (got != want)
		FAIL("%s of element %d is 0x%04x, not 0x%04x", what, i, got, want);
}

int main()
{
	std::vector<float> halves(ALL), bfloats(ALL), in(ALL);
	std::vector<unsigned short> h(ALL), b(ALL), operands(ALL), results(ALL * OPERATIONS);
	float *dh, *db;
	unsigned short *sh, *sb, *results_device;
	uint32_t seed = 5;

	CUDA(cudaMalloc(&dh, ALL * sizeof(float)));
	CUDA(cudaMalloc(&db, ALL * sizeof(float)));
	CUDA(cudaMalloc(&sh, ALL * sizeof(short)));
	CUDA(cudaMalloc(&sb, ALL * sizeof(short)));
	CUDA(cudaMalloc(&results_device, ALL * OPERATIONS * sizeof(short)));

	widen<<<ALL / 256, 256>>>(dh, db);
	LAUNCHED();
	CUDA(cudaMemcpy(halves.data(), dh, ALL * sizeof(float), cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpy(bfloats.data(), db, ALL * sizeof(float), cudaMemcpyDeviceToHost));
	for (int i = 0; i < ALL; i++) {
		float half = from_half((unsigned short)i), bfloat = from_bfloat16((unsigned short)i);
		if (isnan(half) ? !isnan(halves[i]) : memcmp(&half, &halves[i], 4) != 0)
			FAIL("half 0x%04x is %a, not %a", i, halves[i], half);
		if (isnan(bfloat) ? !isnan(bfloats[i]) : memcmp(&bfloat, &bfloats[i], 4) != 0)
			FAIL("bfloat16 0x%04x is %a, not %a", i, bfloats[i], bfloat);
	}

	/* Ties, neighbours of ties, values below and beyond the range. */
	for (int i = 0; i < ALL; i++) {
		uint32_t bits = i % 4 == 0 ? next_random(&seed)
			: (0x31000000u + (next_random(&seed) % 0x17000000u)) & 0xfffff000u;
		if (i % 4 == 2)
			bits = (uint32_t)(i << 16) | 0x8000u | (i >> 8 & 1);
		memcpy(&in[i], &bits, sizeof(bits));
	}
	CUDA(cudaMemcpy(dh, in.data(), ALL * sizeof(float), cudaMemcpyHostToDevice));
	narrow<<<ALL / 256, 256>>>(dh, sh, sb);
	LAUNCHED();
	CUDA(cudaMemcpy(h.data(), sh, ALL * sizeof(short), cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpy(b.data(), sb, ALL * sizeof(short), cudaMemcpyDeviceToHost));
	for (int i = 0; i < ALL; i++) {
		check_16("half", i, h[i], to_half(in[i]), in[i]);
		check_16("bfloat16", i, b[i], to_bfloat16(in[i]), in[i]);
	}

	for (int i = 0; i < ALL; i++)
		operands[i] = i % 2 ? (unsigned short)i
			: to_half(ldexp((double)(next_random(&seed) % 4096) - 2048, -6));
	CUDA(cudaMemcpy(sh, operands.data(), ALL * sizeof(short), cudaMemcpyHostToDevice));
	arithmetic<<<ALL / 256, 256>>>(sh, results_device);
	LAUNCHED();
	CUDA(cudaMemcpy(results.data(), results_device, results.size() * sizeof(short),
		cudaMemcpyDeviceToHost));
	for (int i = 0; i < ALL; i++) {
		/* Sums and products of two halves are exact in double, and so is the fma. */
		double x = from_half(operands[i]), y = from_half(operands[(i + 7) % ALL]);
		double bx = from_bfloat16(to_bfloat16(x)), by = from_bfloat16(to_bfloat16(y));
		const unsigned short *mine = &results[(size_t)i * OPERATIONS];
		check_16("sum", i, mine[0], to_half(x + y), (float)(x + y));
		check_16("product", i, mine[1], to_half(x * y), (float)(x * y));
		check_16("fma", i, mine[2], to_half(fma(x, y, x)), (float)fma(x, y, x));
		check_16("square", i, mine[3], to_half(y * y), (float)(y * y));
		check_16("less", i, mine[4], x < y, 0);
		check_16("bfloat16 sum", i, mine[5], to_bfloat16(bx + by), (float)(bx + by));
	}
	CUDA(cudaDeviceReset());
	printf("16-bit floats are right\n");
	return 0;
}
