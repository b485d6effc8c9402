// SPDX-License-Identifier: Apache-2.0
/* Products of a sparse matrix and a dense one by a warp (mma.sp): of four numbers two are
 * there, of two tf32 one, and metadata of some lanes says which.  Fragments and metadata are
 * built here as PTX describes them. */
#include "check.h"

/* What a lane gives, in words: A, B, metadata; and its four sums. */
struct lane {
	unsigned a[4], b[4], meta;
};

template <int FORM> __global__ void multiply(const lane *lanes, unsigned *sums)
{
#if __CUDA_ARCH__ >= 800
	const lane l = lanes[threadIdx.x];
	unsigned c[4];

	for (int i = 0; i < 4; i++)
		c[i] = FORM == 3 ? 7 : __float_as_uint(7.0f);
	if (FORM == 0)
		asm("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
		    "{%4,%5}, {%6,%7}, "
		    "{%0,%1,%2,%3}, %8, 0x3;"
			: "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
			: "r"(l.a[0]), "r"(l.a[1]), "r"(l.b[0]), "r"(l.b[1]), "r"(l.meta));
	if (FORM == 1)
		asm("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
		    "{%4,%5,%6,%7}, "
		    "{%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x1;"
			: "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
			: "r"(l.a[0]), "r"(l.a[1]), "r"(l.a[2]), "r"(l.a[3]), "r"(l.b[0]),
			"r"(l.b[1]), "r"(l.b[2]), "r"(l.b[3]), "r"(l.meta));
	if (FORM == 2)
		asm("mma.sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, "
		    "{%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;"
			: "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
			: "r"(l.a[0]), "r"(l.a[1]), "r"(l.a[2]), "r"(l.a[3]), "r"(l.b[0]),
			"r"(l.b[1]), "r"(l.b[2]), "r"(l.b[3]), "r"(l.meta));
	if (FORM == 3)
		asm("mma.sp.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, "
		    "{%4,%5,%6,%7}, "
		    "{%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;"
			: "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
			: "r"(l.a[0]), "r"(l.a[1]), "r"(l.a[2]), "r"(l.a[3]), "r"(l.b[0]),
			"r"(l.b[1]), "r"(l.b[2]), "r"(l.b[3]), "r"(l.meta));
	for (int i = 0; i < 4; i++)
		sums[threadIdx.x * 4 + i] = c[i];
#endif
}

struct shape {
	unsigned k, bits, selector;
	unsigned sharp[4]; /* the bits of 0, 1, 2 and 3 */
};

static unsigned a_at(unsigned row, unsigned n)
{
	return (row * 3 + n + row * n) % 4;
}

static unsigned b_at(unsigned k, unsigned column)
{
	return (k * 5 + column + k / 3) % 4;
}

/* Where in its chunk number N is; a pair's numbers stand in order. */
static unsigned place(const shape &s, unsigned row, unsigned chunk, unsigned n)
{
	static const unsigned pairs[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};

	return s.bits == 32 ? (row + chunk) % 2 : pairs[(row * 5 + chunk) % 6][n];
}

static void fill(const shape &s, lane *lanes)
{
	const unsigned run = 32 / s.bits, each = s.bits == 32 ? 1 : 2,
		       givers = s.k / 2 / each / 4;

	memset(lanes, 0, 32 * sizeof(*lanes));
	for (unsigned l = 0; l < 32; l++) {
		for (unsigned n = 0; n < s.k / 4; n++) {
			unsigned part = n / run,
				 at = l % 4 * run + n % run + part / 2 * 4 * run;
			unsigned k = l % 4 * run + n % run + part * 4 * run;

			lanes[l].a[part] |= s.sharp[a_at(l / 4 + part % 2 * 8, at)]
					    << n % run * s.bits;
			lanes[l].b[part] |= s.sharp[b_at(k, l / 4)] << n % run * s.bits;
		}
		if (l % 4 / givers != s.selector)
			continue;
		for (unsigned n = 0; n < 8; n++) {
			unsigned row = l / 4 + n / 4 * 8, chunk = l % 4 % givers * 4 + n % 4;
			unsigned first = place(s, row, chunk, 0), bits = first ? 0xe : 0x4;

			if (each == 2)
				bits = first | place(s, row, chunk, 1) << 2;
			lanes[l].meta |= bits << n * 4;
		}
	}
}

static void check(const shape &s, void (*kernel)(const lane *, unsigned *))
{
	const unsigned each = s.bits == 32 ? 1 : 2;
	lane lanes[32], *given;
	unsigned got[128], *sums;

	fill(s, lanes);
	CUDA(cudaMalloc(&given, sizeof(lanes)));
	CUDA(cudaMalloc(&sums, sizeof(got)));
	CUDA(cudaMemcpy(given, lanes, sizeof(lanes), cudaMemcpyHostToDevice));
	kernel<<<1, 32>>>(given, sums);
	LAUNCHED();
	CUDA(cudaMemcpy(got, sums, sizeof(got), cudaMemcpyDeviceToHost));
	for (unsigned n = 0; n < 128; n++) {
		unsigned row = n / 16 + n / 2 % 2 * 8, column = n / 4 % 4 * 2 + n % 2, want = 7;
		float value;

		for (unsigned at = 0; at < s.k / 2; at++) {
			unsigned chunk = at / each;

			want += a_at(row, at) *
				b_at(chunk * 2 * each + place(s, row, chunk, at % each),
					column);
		}
		memcpy(&value, &got[n], sizeof(value));
		CHECK_EQ_AT(n, s.bits == 8 ? (float)got[n] : value, (float)want);
	}
	CUDA(cudaFree(given));
	CUDA(cudaFree(sums));
}

int main()
{
	cudaFuncAttributes built;

	CUDA(cudaFuncGetAttributes(&built, multiply<0>));
	if (built.ptxVersion < 80 || device_attribute(cudaDevAttrComputeCapabilityMajor) < 8)
		SKIP("no sparse products here");
	check({16, 16, 3, {0, 0x3c00, 0x4000, 0x4200}}, multiply<0>);
	check({32, 16, 1, {0, 0x3c00, 0x4000, 0x4200}}, multiply<1>);
	check({16, 32, 0, {0, 0x3f800000, 0x40000000, 0x40400000}}, multiply<2>);
	check({64, 8, 0, {0, 1, 2, 3}}, multiply<3>);
	printf("sparse products are as the full ones\n");
	return 0;
}
