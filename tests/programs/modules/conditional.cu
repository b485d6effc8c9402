// SPDX-License-Identifier: Apache-2.0
/* Kernels that decide what a conditional node does, for programs that load modules. */
#include <cuda_runtime.h>

extern "C" {

/* The condition is what stands at AT. */
__global__ void decide(cudaGraphConditionalHandle handle, const unsigned *at)
{
	cudaGraphSetConditional(handle, *at);
}

/* Counts down, and goes on until 0. */
__global__ void count_down(cudaGraphConditionalHandle handle, unsigned *left, unsigned *rounds)
{
	++*rounds;
	cudaGraphSetConditional(handle, --*left);
}

__global__ void add(unsigned *to, unsigned value)
{
	*to += value;
}
}
