// SPDX-License-Identifier: Apache-2.0
/* The driver's memsets: 8, 16 and 32 bits wide, one and two dimensions, with and without stream. */
#include "driver.h"

#include <vector>

enum { N = 4096 };

static std::vector<unsigned char> fetch(CUdeviceptr device, size_t n)
{
	std::vector<unsigned char> bytes(n);

	CUDA(cudaMemcpy(bytes.data(), (void *)device, n, cudaMemcpyDeviceToHost));
	return bytes;
}

/* Byte I of a field of VALUES that are WIDTH bytes wide. */
static int byte_of(unsigned value, size_t i, size_t width)
{
	return (int)(value >> (i % width * 8) & 0xff);
}

int main()
{
	ENTRY(cuMemAlloc);
	ENTRY(cuMemFree);
	ENTRY(cuMemAllocPitch);
	ENTRY(cuMemsetD8);
	ENTRY(cuMemsetD16);
	ENTRY(cuMemsetD32);
	ENTRY(cuMemsetD8Async);
	ENTRY(cuMemsetD16Async);
	ENTRY(cuMemsetD32Async);
	ENTRY(cuMemsetD2D8);
	ENTRY(cuMemsetD2D16);
	ENTRY(cuMemsetD2D32);
	ENTRY(cuMemsetD2D32Async);
	ENTRY(cuStreamSynchronize);
	CUdeviceptr line, plane;
	size_t pitch;

	CUDA(cudaFree(0)); /* the runtime's context is the current one from here */
	DRIVER(p_cuMemAlloc(&line, N));

	for (size_t width : {1, 2, 4}) {
		unsigned value = 0x12345678u + (unsigned)width;
		for (int async = 0; async < 2; async++) {
			DRIVER(p_cuMemsetD8(line, 0xff, N));
			CUdeviceptr at = line + 16 * width;
			size_t count = 100 + (size_t)async;
			if (width == 1 && async)
				DRIVER(p_cuMemsetD8Async(at, (unsigned char)value, count, 0));
			else if (width == 1)
				DRIVER(p_cuMemsetD8(at, (unsigned char)value, count));
			else if (width == 2 && async)
				DRIVER(p_cuMemsetD16Async(at, (unsigned short)value, count, 0));
			else if (width == 2)
				DRIVER(p_cuMemsetD16(at, (unsigned short)value, count));
			else if (async)
				DRIVER(p_cuMemsetD32Async(at, value, count, 0));
			else
				DRIVER(p_cuMemsetD32(at, value, count));
			DRIVER(p_cuStreamSynchronize(0));
			std::vector<unsigned char> got = fetch(line, N);
			for (size_t i = 0; i < N; i++) {
				bool inside = i >= 16 * width && i < (16 + count) * width;
				CHECK_EQ_AT((long long)i, got[i],
					inside ? byte_of(value, i, width) : 0xff);
			}
		}
	}

	DRIVER(p_cuMemAllocPitch(&plane, &pitch, 200, 30, 4));
	for (size_t width : {1, 2, 4}) {
		unsigned value = 0xabcdef01u;
		DRIVER(p_cuMemsetD8(plane, 0, pitch * 30));
		CUdeviceptr at = plane + 3 * pitch + 8;
		if (width == 1)
			DRIVER(p_cuMemsetD2D8(at, pitch, (unsigned char)value, 20, 10));
		else if (width == 2)
			DRIVER(p_cuMemsetD2D16(at, pitch, (unsigned short)value, 20, 10));
		else
			DRIVER(p_cuMemsetD2D32(at, pitch, value, 20, 10));
		DRIVER(p_cuMemsetD2D32Async(plane, pitch, 0x5a5a5a5au, 1, 2, 0));
		std::vector<unsigned char> got = fetch(plane, pitch * 30);
		for (size_t i = 0; i < pitch * 30; i++) {
			size_t x = i % pitch, y = i / pitch;
			int want = 0;
			if (x >= 8 && x < 8 + 20 * width && y >= 3 && y < 13)
				want = byte_of(value, x - 8, width);
			if (x < 4 && y < 2)
				want = 0x5a;
			CHECK_EQ_AT((long long)i, got[i], want);
		}
	}

	/* A 32-bit value needs a multiple of four. */
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuMemsetD32(line + 2, 1, 1));
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuMemsetD16(line + 1, 1, 1));
	DRIVER(p_cuMemFree(line));
	DRIVER(p_cuMemFree(plane));
	printf("driver memsets are right\n");
	return 0;
}
