// SPDX-License-Identifier: Apache-2.0
/* Calls within a kernel: functions that are not inlined, recursion, function pointers, virtual
 * functions of objects made on the device, and arrays of a thread's own. */
#include "check.h"

enum { THREADS = 96 };

__device__ __noinline__ int fibonacci(int n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__device__ __noinline__ long long mix(char a, double b, int3 c, const int *d)
{
	return a + (long long)(b * 4) + c.x + c.y * 10 + c.z * 100 + *d;
}

__device__ int add(int a, int b)
{
	return a + b;
}

__device__ int subtract(int a, int b)
{
	return a - b;
}

__device__ int multiply(int a, int b)
{
	return a * b;
}

typedef int (*operation)(int, int);
__device__ operation operations[3] = {add, subtract, multiply};

struct shape {
	__device__ virtual int area() const = 0;
};

struct square : shape {
	int side;
	__device__ square(int n) : side(n)
	{
	}
	__device__ int area() const override
	{
		return side * side;
	}
};

struct bar : shape {
	int width, height;
	__device__ bar(int w, int h) : width(w), height(h)
	{
	}
	__device__ int area() const override
	{
		return width * height;
	}
};

__global__ void calls(int *out, int count)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	out[i * 3] = fibonacci(i % 12);
	out[i * 3 + 1] = (int)mix((char)i, i * 0.25, make_int3(i, 2, 3), &count);
	int counts[32] = {};
	for (int j = 0; j < count; j++)
		counts[(i * j + j * j) % 32]++;
	out[i * 3 + 2] = counts[i % 32];
}

/* Neighbours call different functions. */
__global__ void pointers(int *out)
{
	int i = threadIdx.x;

	out[i] = operations[i % 3](i, 7);
}

__global__ void objects(int *out)
{
	int i = threadIdx.x;
	square a(i);
	bar b(i, 3);
	const shape *s = i % 2 ? (const shape *)&a : (const shape *)&b;

	out[i] = s->area();
}

static int fibonacci_here(int n)
{
	return n < 2 ? n : fibonacci_here(n - 1) + fibonacci_here(n - 2);
}

int main()
{
	int *out, got[THREADS * 3];

	CUDA(cudaMalloc(&out, sizeof(got)));
	calls<<<3, THREADS / 3>>>(out, 50);
	LAUNCHED();
	CUDA(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < THREADS; i++) {
		int counts[32] = {};
		for (int j = 0; j < 50; j++)
			counts[(i * j + j * j) % 32]++;
		CHECK_EQ_AT(i, got[i * 3], fibonacci_here(i % 12));
		CHECK_EQ_AT(i, got[i * 3 + 1], i + i + i + 20 + 300 + 50);
		CHECK_EQ_AT(i, got[i * 3 + 2], counts[i % 32]);
	}

	pointers<<<1, THREADS>>>(out);
	LAUNCHED();
	CUDA(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ_AT(i, got[i], i % 3 == 0 ? i + 7 : i % 3 == 1 ? i - 7 : i * 7);

	objects<<<1, THREADS>>>(out);
	LAUNCHED();
	CUDA(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ_AT(i, got[i], i % 2 ? i * i : i * 3);
	CUDA(cudaFree(out));
	printf("calls return\n");
	return 0;
}
