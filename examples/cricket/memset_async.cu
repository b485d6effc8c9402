// SPDX-License-Identifier: Apache-2.0
/*
 * Memory that is filled in stream order: cudaMemsetAsync, the call that a remote CUDA which
 * serves its calls one by one most easily lacks.  It is posted: the program does not wait for it
 * until it asks for the bytes.
 */
#include <cuda_runtime.h>

#include <stdio.h>

int main()
{
	const int n = 1024;
	int *memory = NULL, host[n], wrong = 0;
	cudaError_t status = cudaMalloc(&memory, sizeof(host));

	if (status == cudaSuccess)
		status = cudaMemsetAsync(memory, 0, sizeof(host));
	if (status == cudaSuccess)
		status = cudaMemsetAsync(memory + n / 2, 0x5a, sizeof(host) / 2);
	if (status == cudaSuccess)
		status = cudaDeviceSynchronize();
	if (status == cudaSuccess)
		status = cudaMemcpy(host, memory, sizeof(host), cudaMemcpyDeviceToHost);
	if (status != cudaSuccess) {
		fprintf(stderr, "%s: %s\n", cudaGetErrorName(status), cudaGetErrorString(status));
		return 1;
	}
	for (int i = 0; i < n; i++)
		wrong += host[i] != (i < n / 2 ? 0 : 0x5a5a5a5a);
	cudaFree(memory);
	printf("%d of %d words are as they were set\n", n - wrong, n);
	return wrong != 0;
}
