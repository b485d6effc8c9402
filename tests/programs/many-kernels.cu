// SPDX-License-Identifier: Apache-2.0
/* A module with very many kernels, made by templates, each launched by its own name. */
#include "check.h"

#include <utility>

enum { KERNELS = 96 };

template <int N, typename T> __global__ void kernel(T *out, T add)
{
	out[N] = (T)(N * N) + add;
}

template <typename T, int... N>
static void launch_all(T *out, T add, std::integer_sequence<int, N...>)
{
	((kernel<N, T><<<1, 1>>>(out, add)), ...);
}

template <typename T> static void check_type(T add)
{
	T *out, got[KERNELS];

	CUDA(cudaMalloc(&out, sizeof(got)));
	CUDA(cudaMemset(out, 0, sizeof(got)));
	launch_all<T>(out, add, std::make_integer_sequence<int, KERNELS>());
	LAUNCHED();
	CUDA(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < KERNELS; i++)
		CHECK_EQ_AT(i, got[i], (T)(i * i) + add);
	CUDA(cudaFree(out));
}

int main()
{
	check_type<int>(-5);
	check_type<double>(0.125);
	printf("%d kernels found\n", 2 * KERNELS);
	return 0;
}
