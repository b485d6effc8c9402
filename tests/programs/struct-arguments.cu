// SPDX-License-Identifier: Apache-2.0
/* Arguments by value: structs as large as a launch may carry, mixed types, odd alignments. */
#include "check.h"

struct large {
	int values[1000];
	double factor;
	char tag;
};

struct small {
	char a;
	short b;
	char c[3];
};

struct alignas(16) aligned {
	float x, y, z;
	unsigned char tail;
};

struct empty {
};

__global__ void sum_large(large in, int *out, char last)
{
	int i = threadIdx.x;

	for (int at = i; at < 1000; at += blockDim.x)
		atomicAdd(out, in.values[at]);
	if (i == 0)
		out[1] = (int)(in.factor * 4) + in.tag + last;
}

__global__ void mixed(char a, double b, short c, float3 d, small e, long long f, aligned g, bool h,
	int *out, empty, unsigned char i)
{
	out[0] = a;
	out[1] = (int)(b * 8);
	out[2] = c;
	out[3] = (int)(d.x + 10 * d.y + 100 * d.z);
	out[4] = e.a + 10 * e.b + 100 * e.c[0] + 1000 * e.c[1] + 10000 * e.c[2];
	out[5] = (int)(f >> 32);
	out[6] = (int)(g.x + 10 * g.y + 100 * g.z) + g.tail;
	out[7] = h;
	out[8] = i;
}

/* Each launch carries its own copy, however many are under way. */
__global__ void keep(large in, int *out)
{
	*out = in.values[999];
}

int main()
{
	large big = {};
	int *out, got[64], want = 0;

	for (int i = 0; i < 1000; i++) {
		big.values[i] = i * 3 - 500;
		want += big.values[i];
	}
	big.factor = 2.5;
	big.tag = 'x';
	CUDA(cudaMalloc(&out, sizeof(got)));
	CUDA(cudaMemset(out, 0, sizeof(got)));
	sum_large<<<1, 128>>>(big, out, 7);
	LAUNCHED();
	CUDA(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	CHECK_EQ(got[0], want);
	CHECK_EQ(got[1], 10 + 'x' + 7);

	small e = {1, 2, {3, 4, 5}};
	aligned g = {1, 2, 3, 40};
	mixed<<<1, 1>>>(-7, 1.125, -300, make_float3(1, 2, 3), e, 0x123456789abcdefll, g, true, out,
		empty(), 250);
	LAUNCHED();
	CUDA(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	const int wanted[] = {-7, 9, -300, 321, 54321, 0x1234567, 361, 1, 250};
	for (int i = 0; i < 9; i++)
		CHECK_EQ_AT(i, got[i], wanted[i]);

	for (int i = 0; i < 64; i++) {
		big.values[999] = i * i;
		keep<<<1, 1>>>(big, out + i);
	}
	LAUNCHED();
	CUDA(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 64; i++)
		CHECK_EQ_AT(i, got[i], i * i);
	CUDA(cudaFree(out));
	printf("arguments arrive whole\n");
	return 0;
}
