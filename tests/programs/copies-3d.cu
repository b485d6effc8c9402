// SPDX-License-Identifier: Apache-2.0
/* cudaMalloc3D and cudaMemcpy3D: boxes within boxes, in every direction. */
#include "check.h"

#include <algorithm>
#include <vector>

enum { W = 40, H = 12, D = 9 }; /* the whole volume, in ints */

__global__ void add(cudaPitchedPtr volume, int height, int depth)
{
	int x = threadIdx.x, y = blockIdx.x, z = blockIdx.y;
	char *row = (char *)volume.ptr + (z * volume.ysize + y) * volume.pitch;

	if (x < W && y < height && z < depth)
		((int *)row)[x] += 1000000;
}

static int cell(int x, int y, int z)
{
	return (z * H + y) * W + x;
}

int main()
{
	std::vector<int> in(W * H * D), out(W * H * D, -1);
	cudaExtent whole = make_cudaExtent(W * sizeof(int), H, D);
	cudaPitchedPtr a, b;
	cudaStream_t stream;

	for (int i = 0; i < W * H * D; i++)
		in[i] = i;
	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMalloc3D(&a, whole));
	CUDA(cudaMalloc3D(&b, whole));
	CHECK(a.pitch >= W * sizeof(int));
	CHECK_EQ(a.ysize, (size_t)H);
	CUDA(cudaMemset3D(b, 0, whole));

	cudaMemcpy3DParms copy = {};
	copy.srcPtr = make_cudaPitchedPtr(in.data(), W * sizeof(int), W, H);
	copy.dstPtr = a;
	copy.extent = whole;
	copy.kind = cudaMemcpyHostToDevice;
	CUDA(cudaMemcpy3D(&copy));
	add<<<dim3(H, D), 64>>>(a, H, D);
	LAUNCHED();

	/* A box of 10 x 5 x 4 ints from (3, 2, 1) to (20, 6, 5), on the device. */
	copy = {};
	copy.srcPtr = a;
	copy.srcPos = make_cudaPos(3 * sizeof(int), 2, 1);
	copy.dstPtr = b;
	copy.dstPos = make_cudaPos(20 * sizeof(int), 6, 5);
	copy.extent = make_cudaExtent(10 * sizeof(int), 5, 4);
	copy.kind = cudaMemcpyDeviceToDevice;
	CUDA(cudaMemcpy3DAsync(&copy, stream));

	copy = {};
	copy.srcPtr = b;
	copy.dstPtr = make_cudaPitchedPtr(out.data(), W * sizeof(int), W, H);
	copy.extent = whole;
	copy.kind = cudaMemcpyDefault;
	CUDA(cudaMemcpy3DAsync(&copy, stream));
	CUDA(cudaStreamSynchronize(stream));
	for (int z = 0; z < D; z++)
		for (int y = 0; y < H; y++)
			for (int x = 0; x < W; x++) {
				bool inside = x >= 20 && x < 30 && y >= 6 && y < 11 && z >= 5 && z < 9;
				int want = inside ? 1000000 + cell(x - 17, y - 4, z - 4) : 0;
				CHECK_EQ_AT(cell(x, y, z), out[cell(x, y, z)], want);
			}

	/* Part of a volume to the host, into part of a volume there. */
	std::fill(out.begin(), out.end(), -1);
	copy = {};
	copy.srcPtr = a;
	copy.srcPos = make_cudaPos(0, 1, 2);
	copy.dstPtr = make_cudaPitchedPtr(out.data(), W * sizeof(int), W, H);
	copy.dstPos = make_cudaPos(4, 3, 0);
	copy.extent = make_cudaExtent(8 * sizeof(int), 2, 3);
	copy.kind = cudaMemcpyDeviceToHost;
	CUDA(cudaMemcpy3D(&copy));
	for (int z = 0; z < D; z++)
		for (int y = 0; y < H; y++)
			for (int x = 0; x < W; x++) {
				bool inside = x >= 1 && x < 9 && y >= 3 && y < 5 && z < 3;
				int want = inside ? 1000000 + cell(x - 1, y - 2, z + 2) : -1;
				CHECK_EQ_AT(cell(x, y, z), out[cell(x, y, z)], want);
			}

	/* One row of each slice, on the device. */
	copy = {};
	copy.srcPtr = a;
	copy.srcPos = make_cudaPos(5 * sizeof(int), 7, 2);
	copy.dstPtr = b;
	copy.dstPos = make_cudaPos(1 * sizeof(int), 0, 0);
	copy.extent = make_cudaExtent(10 * sizeof(int), 1, 4);
	copy.kind = cudaMemcpyDeviceToDevice;
	CUDA(cudaMemset3D(b, 0, whole));
	CUDA(cudaMemcpy3D(&copy));
	copy = {};
	copy.srcPtr = b;
	copy.dstPtr = make_cudaPitchedPtr(out.data(), W * sizeof(int), W, H);
	copy.extent = whole;
	copy.kind = cudaMemcpyDeviceToHost;
	CUDA(cudaMemcpy3D(&copy));
	for (int z = 0; z < D; z++)
		for (int y = 0; y < H; y++)
			for (int x = 0; x < W; x++) {
				bool inside = x >= 1 && x < 11 && !y && z < 4;
				int want = inside ? 1000000 + cell(x + 4, 7, z + 2) : 0;
				CHECK_EQ_AT(cell(x, y, z), out[cell(x, y, z)], want);
			}

	/* Rows longer than the pitch are told apart from those that begin too late in it. */
	copy.srcPos = make_cudaPos(a.pitch - 4, 0, 0);
	CUDA_IS(cudaErrorInvalidValue, cudaMemcpy3D(&copy));
	copy.srcPtr.pitch = 8;
	CUDA_IS(cudaErrorInvalidPitchValue, cudaMemcpy3D(&copy));
	(void)cudaGetLastError();

	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaFree(a.ptr));
	CUDA(cudaFree(b.ptr));
	printf("boxes are right\n");
	return 0;
}
