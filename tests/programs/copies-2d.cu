// SPDX-License-Identifier: Apache-2.0
/* Pitched memory and rectangles: every direction, rows longer than what is copied of them. */
#include "driver.h"

#include <vector>

__global__ void mark(unsigned char *data, size_t pitch, int width, int height)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;

	if (x < width && y < height)
		data[y * pitch + x] ^= (unsigned char)(x + 3 * y);
}

static unsigned char cell(size_t x, size_t y)
{
	return (unsigned char)(x * 5 + y * 17 + 1);
}

static void rectangle(size_t width, size_t height, cudaStream_t stream)
{
	size_t host_pitch = width + 9, pitch_a, pitch_b;
	std::vector<unsigned char> in(host_pitch * height), out(host_pitch * height, 0xee);
	unsigned char *a, *b;

	for (size_t y = 0; y < height; y++)
		for (size_t x = 0; x < host_pitch; x++)
			in[y * host_pitch + x] = cell(x, y);

	CUDA(cudaMallocPitch(&a, &pitch_a, width, height));
	CUDA(cudaMallocPitch(&b, &pitch_b, width + 100, height));
	CHECK(pitch_a >= width && pitch_a % 32 == 0);
	CHECK(pitch_b >= width + 100);

	CUDA(cudaMemcpy2DAsync(a, pitch_a, in.data(), host_pitch, width, height,
		cudaMemcpyHostToDevice, stream));
	dim3 block(32, 8), grid((unsigned)(width + 31) / 32, (unsigned)(height + 7) / 8);
	mark<<<grid, block, 0, stream>>>(a, pitch_a, (int)width, (int)height);
	LAUNCHED();
	CUDA(cudaMemcpy2DAsync(
		b + 1, pitch_b, a, pitch_a, width, height, cudaMemcpyDeviceToDevice, stream));
	CUDA(cudaMemcpy2DAsync(out.data(), host_pitch, b + 1, pitch_b, width, height,
		cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamSynchronize(stream));

	for (size_t y = 0; y < height; y++)
		for (size_t x = 0; x < host_pitch; x++)
			CHECK_EQ_AT((long long)(y * host_pitch + x), out[y * host_pitch + x],
				x < width ? (unsigned char)(cell(x, y) ^ (x + 3 * y)) : 0xee);
	CUDA(cudaFree(a));
	CUDA(cudaFree(b));
}

/* A window inside a larger picture, by blocking calls, and host to host. */
static void window()
{
	enum { W = 64, H = 48, X = 10, Y = 7, WIDE = 20, HIGH = 30 };
	std::vector<int> picture(W * H), back(W * H, -1), cut(WIDE * HIGH);
	int *device;

	for (int i = 0; i < W * H; i++)
		picture[i] = i;
	CUDA(cudaMalloc(&device, W * H * sizeof(int)));
	CUDA(cudaMemset(device, 0, W * H * sizeof(int)));
	CUDA(cudaMemcpy2D(device + Y * W + X, W * sizeof(int), &picture[Y * W + X],
		W * sizeof(int), WIDE * sizeof(int), HIGH, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy(back.data(), device, W * H * sizeof(int), cudaMemcpyDeviceToHost));
	for (int i = 0; i < W * H; i++) {
		int x = i % W, y = i / W;
		bool inside = x >= X && x < X + WIDE && y >= Y && y < Y + HIGH;
		CHECK_EQ_AT(i, back[i], inside ? i : 0);
	}
	CUDA(cudaMemcpy2D(cut.data(), WIDE * sizeof(int), device + Y * W + X, W * sizeof(int),
		WIDE * sizeof(int), HIGH, cudaMemcpyDefault));
	for (int i = 0; i < WIDE * HIGH; i++)
		CHECK_EQ_AT(i, cut[i], (Y + i / WIDE) * W + X + i % WIDE);
	CUDA(cudaMemcpy2D(&back[3], W * sizeof(int), cut.data(), WIDE * sizeof(int),
		WIDE * sizeof(int), HIGH, cudaMemcpyHostToHost));
	for (int i = 0; i < WIDE * HIGH; i++)
		CHECK_EQ_AT(i, back[3 + i / WIDE * W + i % WIDE], cut[i]);

	/* A row longer than its pitch is refused. */
	CUDA_IS(cudaErrorInvalidPitchValue,
		cudaMemcpy2D(device, 16, picture.data(), 16, 17, 2, cudaMemcpyHostToDevice));
	(void)cudaGetLastError();
	CUDA(cudaFree(device));
}

/* Rows that end in the next one: refused, but in a pool's memory, which has none. */
static void wrapped()
{
	enum { PITCH = 256, X = 52, HIGH = 6, BYTES = 4096 };
	std::vector<unsigned char> bytes(BYTES), out(PITCH * HIGH);
	ENTRY(cuGraphAddMemcpyNode);
	ENTRY(cuMemcpy2D);
	ENTRY(cuCtxGetCurrent);
	unsigned char *plain, *pooled;
	CUDA_MEMCPY3D node = {};
	CUDA_MEMCPY2D copy = {};
	cudaGraph_t graph;
	CUgraphNode made;
	CUcontext context;

	for (int i = 0; i < BYTES; i++)
		bytes[i] = (unsigned char)(i * 7 >> 3);
	CUDA(cudaMalloc(&plain, BYTES));
	CUDA(cudaMallocAsync(&pooled, BYTES, 0));
	CUDA(cudaMemcpy(plain, bytes.data(), BYTES, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy(pooled, bytes.data(), BYTES, cudaMemcpyHostToDevice));
	copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	copy.srcXInBytes = X;
	copy.srcPitch = PITCH;
	copy.dstMemoryType = CU_MEMORYTYPE_HOST;
	copy.dstHost = out.data();
	copy.WidthInBytes = PITCH;
	copy.Height = HIGH;
	copy.srcDevice = (CUdeviceptr)plain;
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuMemcpy2D(&copy));
	copy.srcDevice = (CUdeviceptr)pooled;
	DRIVER(p_cuMemcpy2D(&copy));
	for (int i = 0; i < PITCH * HIGH; i++)
		CHECK_EQ_AT(i, out[i], bytes[X + i]);
	copy.srcPitch = PITCH - 1;
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuMemcpy2D(&copy));

	CUDA(cudaGraphCreate(&graph, 0));
	DRIVER(p_cuCtxGetCurrent(&context));
	node.srcMemoryType = node.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	node.srcXInBytes = X;
	node.srcPitch = PITCH;
	node.dstDevice = (CUdeviceptr)plain;
	node.dstPitch = PITCH;
	node.WidthInBytes = PITCH;
	node.Height = HIGH;
	node.Depth = 1;
	node.srcDevice = (CUdeviceptr)plain;
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE,
		p_cuGraphAddMemcpyNode(&made, (CUgraph)graph, NULL, 0, &node, context));
	node.srcDevice = (CUdeviceptr)pooled;
	DRIVER(p_cuGraphAddMemcpyNode(&made, (CUgraph)graph, NULL, 0, &node, context));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaFree(pooled));
	CUDA(cudaFree(plain));
}

int main()
{
	cudaStream_t stream;

	CUDA(cudaStreamCreate(&stream));
	rectangle(1, 1, stream);
	rectangle(100, 37, stream);
	rectangle(513, 200, stream);
	CUDA(cudaStreamDestroy(stream));
	window();
	wrapped();
	printf("rectangles are right\n");
	return 0;
}
