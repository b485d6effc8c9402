// SPDX-License-Identifier: Apache-2.0
/* A kernel of more than 200 parameters, each at its place: launched, asked for, and as a graph's node. */
#include "driver.h"

/* Ten parameters, and what each adds: itself times its number. */
#define TEN(p, f)                                                                              \
	f(p, 0) f(p, 1) f(p, 2) f(p, 3) f(p, 4) f(p, 5) f(p, 6) f(p, 7) f(p, 8) f(p, 9)
#define HUNDRED(p, f)                                                                          \
	TEN(p##0, f) TEN(p##1, f) TEN(p##2, f) TEN(p##3, f) TEN(p##4, f) TEN(p##5, f)          \
	TEN(p##6, f) TEN(p##7, f) TEN(p##8, f) TEN(p##9, f)
#define ALL(f) HUNDRED(1, f) HUNDRED(2, f) HUNDRED(3, f) HUNDRED(4, f)
#define PARAMETER(p, n) , int a##p##n
#define ADDS(p, n) +(unsigned)a##p##n * p##n##u

enum { FIRST = 100, LAST = 499, COUNT = LAST - FIRST + 1 };

__global__ void many(unsigned *out ALL(PARAMETER))
{
	*out = 0 ALL(ADDS);
}

static int values[COUNT];
static unsigned *out;
static void *arguments[COUNT + 1] = {&out};

static unsigned expected()
{
	unsigned sum = 0;

	for (int i = 0; i < COUNT; i++)
		sum += (unsigned)values[i] * (FIRST + i);
	return sum;
}

static void check()
{
	unsigned got = 0;

	CUDA(cudaMemcpy(&got, out, sizeof(got), cudaMemcpyDeviceToHost));
	CHECK_EQ(got, expected());
	CUDA(cudaMemset(out, 0, sizeof(got)));
}

static void asked()
{
	ENTRY(cuFuncGetParamInfo);
	cudaFunction_t function;
	size_t offset, size;

	CUDA(cudaGetFuncBySymbol(&function, (const void *)many));
	for (size_t i = 0; i <= COUNT; i++) {
		DRIVER(p_cuFuncGetParamInfo((CUfunction)function, i, &offset, &size));
		CHECK_EQ_AT(i, offset, i ? 4 + 4 * i : 0);
		CHECK_EQ_AT(i, size, i ? 4u : 8u);
	}
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE,
		p_cuFuncGetParamInfo((CUfunction)function, COUNT + 1, &offset, &size));
}

static void node()
{
	cudaKernelNodeParams params = {};
	cudaGraphExec_t exec;
	cudaGraphNode_t node;
	cudaGraph_t graph;

	params.func = (void *)many;
	params.gridDim = params.blockDim = dim3(1);
	params.kernelParams = arguments;
	CUDA(cudaGraphCreate(&graph, 0));
	CUDA(cudaGraphAddKernelNode(&node, graph, NULL, 0, &params));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, 0));
	check();
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
}

int main()
{
	CUDA(cudaMalloc(&out, sizeof(*out)));
	for (int i = 0; i < COUNT; i++) {
		values[i] = i * i - 77 * i + 5;
		arguments[i + 1] = &values[i];
	}
	CUDA(cudaLaunchKernel((const void *)many, dim3(1), dim3(1), arguments, 0, 0));
	check();
	asked();
	node();
	CUDA(cudaFree(out));
	return 0;
}
