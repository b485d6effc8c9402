// SPDX-License-Identifier: Apache-2.0
/* Two GPUs: what is said of access between them is what enabling it does, and copies between them
 * are right either way.  With one GPU there is no other to have access to. */
#include "check.h"

static const int N = 1 << 20;

static void promises_are_kept(int from, int to)
{
	int can = -1, attribute = -1;
	cudaError_t status;

	CUDA(cudaDeviceCanAccessPeer(&can, from, to));
	CUDA(cudaDeviceGetP2PAttribute(&attribute, cudaDevP2PAttrAccessSupported, from, to));
	CHECK(can == attribute);
	CUDA(cudaSetDevice(from));
	status = cudaDeviceEnablePeerAccess(to, 0);
	CHECK(status == (can ? cudaSuccess : cudaErrorPeerAccessUnsupported));
	CHECK(cudaGetLastError() == status);
	status = cudaDeviceDisablePeerAccess(to);
	CHECK(status == (can ? cudaSuccess : cudaErrorPeerAccessNotEnabled));
	cudaGetLastError();
}

__global__ void count_up(int *values, int first)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	values[i] = first + i;
}

static void copies_are_right(int from, int to)
{
	int *there, *here;
	static int got[N];

	CUDA(cudaSetDevice(to));
	CUDA(cudaMalloc(&there, sizeof(got)));
	CUDA(cudaMemset(there, 0, sizeof(got)));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaSetDevice(from));
	CUDA(cudaMalloc(&here, sizeof(got)));
	/* What comes first on one is done before the copy to the other, and the next use after it. */
	count_up<<<N / 256, 256>>>(here, 7);
	CUDA(cudaMemcpyPeerAsync(there, to, here, from, sizeof(got), 0));
	CUDA(cudaMemsetAsync(here, 0, sizeof(got)));
	CUDA(cudaDeviceSynchronize());
	/* The host reaches either, whichever is current, in order with the stream that is named. */
	CUDA(cudaMemcpy(got, there, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, got[i], 7 + i);
	for (int i = 0; i < N; i++)
		got[i] = 3 * i;
	CUDA(cudaMemcpyAsync(there, got, sizeof(got), cudaMemcpyHostToDevice, 0));
	CUDA(cudaMemcpyPeerAsync(here, from, there, to, sizeof(got), 0));
	CUDA(cudaMemcpyPeerAsync(there, to, here, from, sizeof(got), 0));
	memset(got, 0, sizeof(got));
	CUDA(cudaMemcpyAsync(got, there, sizeof(got), cudaMemcpyDeviceToHost, 0));
	CUDA(cudaDeviceSynchronize());
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, got[i], 3 * i);
	count_up<<<N / 256, 256>>>(here, 7);
	CUDA(cudaMemcpyPeerAsync(there, to, here, from, sizeof(got), 0));
	CUDA(cudaMemsetAsync(here, 0, sizeof(got)));
	/* Back, by a copy that is told no device. */
	CUDA(cudaMemcpy(here, there, sizeof(got), cudaMemcpyDefault));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemcpy(got, here, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		CHECK_EQ_AT(i, got[i], 7 + i);
	CUDA(cudaFree(here));
	CUDA(cudaFree(there));
}

int main()
{
	int count, can = -1;

	CUDA(cudaGetDeviceCount(&count));
	CUDA(cudaDeviceCanAccessPeer(&can, 0, 0));
	CHECK(can == 0);
	CHECK(cudaDeviceCanAccessPeer(&can, 0, count) == cudaErrorInvalidDevice);
	CHECK(cudaDeviceEnablePeerAccess(0, 0) == cudaErrorPeerAccessUnsupported);
	CHECK(cudaDeviceEnablePeerAccess(count, 0) == cudaErrorInvalidDevice);
	cudaGetLastError();
	for (int from = 0; from < count && from < 2; from++)
		for (int to = 0; to < count && to < 2; to++)
			if (from != to) {
				promises_are_kept(from, to);
				copies_are_right(from, to);
			}
	return 0;
}
