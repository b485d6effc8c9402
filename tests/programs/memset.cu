// SPDX-License-Identifier: Apache-2.0
/* cudaMemset in one, two and three dimensions; nothing beside what was named may change. */
#include "check.h"

#include <vector>

static std::vector<unsigned char> fetch(const void *device, size_t n)
{
	std::vector<unsigned char> bytes(n);

	CUDA(cudaMemcpy(bytes.data(), device, n, cudaMemcpyDeviceToHost));
	return bytes;
}

int main()
{
	const size_t n = 100000;
	unsigned char *line, *plane;
	cudaPitchedPtr box;
	cudaStream_t stream;
	size_t pitch;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaMalloc(&line, n));
	CUDA(cudaMemset(line, 0x11, n));
	CUDA(cudaMemset(line + 7, 0x1ff22, 1001));
	CUDA(cudaMemset(line, 0x33, 0));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemsetAsync(line + 50001, 0x44, 3, stream));
	CUDA(cudaMemsetAsync(line + 50002, 0x55, 1, stream));
	CUDA(cudaStreamSynchronize(stream));
	std::vector<unsigned char> got = fetch(line, n);
	for (size_t i = 0; i < n; i++) {
		int want = i >= 7 && i < 1008 ? 0x22 : 0x11;
		if (i >= 50001 && i < 50004)
			want = i == 50002 ? 0x55 : 0x44;
		CHECK_EQ_AT((long long)i, got[i], want);
	}

	CUDA(cudaMallocPitch(&plane, &pitch, 100, 50));
	CUDA(cudaMemset(plane, 0, pitch * 50));
	CUDA(cudaMemset2D(plane + 2 * pitch + 3, pitch, 0x66, 90, 40));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemset2DAsync(plane, pitch, 0x77, 1, 50, stream));
	CUDA(cudaStreamSynchronize(stream));
	got = fetch(plane, pitch * 50);
	for (size_t i = 0; i < pitch * 50; i++) {
		size_t x = i % pitch, y = i / pitch;
		int want = x >= 3 && x < 93 && y >= 2 && y < 42 ? 0x66 : x == 0 ? 0x77 : 0;
		CHECK_EQ_AT((long long)i, got[i], want);
	}

	CUDA(cudaMalloc3D(&box, make_cudaExtent(30, 20, 10)));
	CUDA(cudaMemset(box.ptr, 0, box.pitch * 200));
	CUDA(cudaMemset3D(box, 0x88, make_cudaExtent(25, 15, 10)));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaMemset3DAsync(box, 0x99, make_cudaExtent(1, 2, 3), stream));
	CUDA(cudaStreamSynchronize(stream));
	got = fetch(box.ptr, box.pitch * 200);
	for (size_t i = 0; i < box.pitch * 200; i++) {
		size_t x = i % box.pitch, y = i / box.pitch % 20, z = i / box.pitch / 20;
		int want = x < 25 && y < 15 ? 0x88 : 0;
		if (x < 1 && y < 2 && z < 3)
			want = 0x99;
		CHECK_EQ_AT((long long)i, got[i], want);
	}

	CUDA(cudaStreamDestroy(stream));
	CUDA(cudaFree(line));
	CUDA(cudaFree(plane));
	CUDA(cudaFree(box.ptr));
	printf("memsets are right\n");
	return 0;
}
