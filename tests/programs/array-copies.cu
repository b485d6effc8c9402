// SPDX-License-Identifier: Apache-2.0
/* Copies between arrays, device memory and host memory: bytes, rows, boxes, levels, in
 * streams, captured and as nodes of a graph; what does not fit is refused.
 */
#include "driver.h"

#include <vector>

enum { W = 40, H = 24, D = 6 };

static const cudaChannelFormatDesc ints = {32, 0, 0, 0, cudaChannelFormatKindSigned};

static std::vector<int> numbers(size_t n, int first)
{
	std::vector<int> v(n);

	for (size_t i = 0; i < n; i++)
		v[i] = first + (int)i;
	return v;
}

static std::vector<int> contents(cudaArray_t array, size_t w, size_t h, size_t d)
{
	std::vector<int> out(w * h * d, -1);
	cudaMemcpy3DParms p = {};

	p.srcArray = array;
	p.dstPtr = make_cudaPitchedPtr(out.data(), w * 4, w, h);
	p.extent = make_cudaExtent(w, h, d);
	p.kind = cudaMemcpyDeviceToHost;
	CUDA(cudaMemcpy3D(&p));
	return out;
}

static void same(const std::vector<int> &got, const std::vector<int> &want)
{
	CHECK_EQ(got.size(), want.size());
	for (size_t i = 0; i < want.size(); i++)
		CHECK_EQ_AT((long long)i, got[i], want[i]);
}

/* Bytes of one-dimensional arrays. */
static void bytes(cudaArray_t plane)
{
	std::vector<int> base = numbers(W, 0), in = numbers(17, 5000), want = base;
	std::vector<int> out(in.size(), -1), wide = numbers(3 * W + 7, 5000);
	size_t at = 11, n = in.size() * 4;
	cudaArray_t array, other;
	CUarray a, b;
	CUdeviceptr device;
	ENTRY(cuMemcpyHtoA);
	ENTRY(cuMemcpyAtoH);
	ENTRY(cuMemcpyAtoD);
	ENTRY(cuMemcpyDtoA);
	ENTRY(cuMemcpyAtoA);

	CUDA(cudaMallocArray(&array, &ints, W));
	CUDA(cudaMallocArray(&other, &ints, W));
	a = (CUarray)array;
	b = (CUarray)other;
	DRIVER(p_cuMemcpyHtoA(a, 0, base.data(), W * 4));
	for (size_t i = 0; i < in.size(); i++)
		want[at + i] = in[i];
	DRIVER(p_cuMemcpyHtoA(a, at * 4, in.data(), n));
	same(contents(array, W, 1, 1), want);
	DRIVER(p_cuMemcpyAtoH(out.data(), a, at * 4, n));
	same(out, in);

	CUDA(cudaMalloc((void **)&device, n));
	DRIVER(p_cuMemcpyAtoD(device, a, at * 4, n));
	CUDA(cudaMemcpy(out.data(), (void *)device, n, cudaMemcpyDeviceToHost));
	same(out, in);
	DRIVER(p_cuMemcpyHtoA(b, 0, base.data(), W * 4));
	DRIVER(p_cuMemcpyDtoA(b, at * 4, device, n));
	same(contents(other, W, 1, 1), want);
	CUDA(cudaFree((void *)device));

	/* From another place than it goes to. */
	want = base;
	for (size_t i = 0; i < in.size(); i++)
		want[5 + i] = in[i];
	DRIVER(p_cuMemcpyHtoA(b, 0, base.data(), W * 4));
	DRIVER(p_cuMemcpyAtoA(b, 5 * 4, a, at * 4, n));
	same(contents(other, W, 1, 1), want);

	/* Nothing, wherever that is. */
	DRIVER(p_cuMemcpyHtoA(a, 2 * W * 4, in.data(), 0));
	/* Past the end; from row to row of a plane, which has room for it. */
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE, p_cuMemcpyHtoA(a, W * 4 - 4, in.data(), 8));
	DRIVER_IS(CUDA_ERROR_INVALID_VALUE,
		p_cuMemcpyHtoA((CUarray)plane, (2 * W + 11) * 4, wide.data(), wide.size() * 4));
	CUDA(cudaFreeArray(array));
	CUDA(cudaFreeArray(other));
}

static void rectangles(cudaArray_t array, cudaArray_t other, cudaStream_t stream)
{
	std::vector<int> in = numbers(W * H, 0), want(W * H, 7), fill(W * H, 7), out(W * H, -1);
	int *device;
	size_t pitch;

	CUDA(cudaMemcpy2DToArrayAsync(
		array, 0, 0, in.data(), W * 4, W * 4, H, cudaMemcpyHostToDevice, stream));
	CUDA(cudaMemcpy2DToArrayAsync(
		other, 0, 0, fill.data(), W * 4, W * 4, H, cudaMemcpyHostToDevice, stream));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaMemcpy2DArrayToArray(other, 8, 3, array, 20, 4, 10 * 4, 6));
	for (int y = 0; y < 6; y++)
		for (int x = 0; x < 10; x++)
			want[(y + 3) * W + x + 2] = in[(y + 4) * W + x + 5];
	same(contents(other, W, H, 1), want);

	CUDA(cudaMallocPitch(&device, &pitch, W * 4, H));
	CUDA(cudaMemcpy2DFromArrayAsync(
		device, pitch, array, 0, 0, W * 4, H, cudaMemcpyDeviceToDevice, stream));
	CUDA(cudaMemcpy2DToArrayAsync(
		other, 0, 0, device, pitch, W * 4, H, cudaMemcpyDeviceToDevice, stream));
	CUDA(cudaMemcpy2DFromArrayAsync(
		out.data(), W * 4, other, 0, 0, W * 4, H, cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamSynchronize(stream));
	same(out, in);
	CUDA(cudaFree(device));

	CUDA_IS(cudaErrorInvalidValue, cudaMemcpy2DToArray(array, 4, 0, in.data(), W * 4, W * 4,
					       1, cudaMemcpyHostToDevice));
	CUDA_IS(cudaErrorInvalidValue, cudaMemcpy2DToArray(array, 0, 1, in.data(), W * 4, W * 4,
					       H, cudaMemcpyHostToDevice));
	(void)cudaGetLastError();
}

/* What is wrong, in NVIDIA's order. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void refused(cudaArray_t array)
{
	std::vector<int> in = numbers(W * H, 1);
	cudaMemcpy3DParms box = {};

	/* An offset may be at the end of its row, not beyond it. */
	CUDA(cudaMemcpyToArray(array, W * 4, 0, in.data(), 4, cudaMemcpyHostToDevice));
	CUDA_IS(cudaErrorInvalidValue,
		cudaMemcpyToArray(array, W * 4 + 4, 0, in.data(), 4, cudaMemcpyHostToDevice));
	/* No array to copy from is another mistake than none to copy to. */
	CUDA_IS(cudaErrorInvalidResourceHandle,
		cudaMemcpy2DArrayToArray(array, 0, 0, NULL, 0, 0, W * 4, 1));
	CUDA_IS(cudaErrorInvalidValue,
		cudaMemcpy2DArrayToArray(NULL, 0, 0, array, 0, 0, W * 4, 1));
	/* A direction that there is not, before the bounds. */
	box.srcPtr = make_cudaPitchedPtr(in.data(), W * 4, W, H);
	box.dstArray = array;
	box.extent = make_cudaExtent(W + 1, H, 1);
	box.kind = (cudaMemcpyKind)77;
	CUDA_IS(cudaErrorInvalidMemcpyDirection, cudaMemcpy3D(&box));
	(void)cudaGetLastError();
}
#pragma GCC diagnostic pop

/* Boxes: places in an array are elements, in memory bytes. */
static void boxes()
{
	std::vector<int> in = numbers(W * H * D, 0), want(W * H * D, 0), out(4 * 3 * 2, -1);
	cudaMemcpy3DParms p = {};
	cudaArray_t array, other;
	cudaExtent extent = make_cudaExtent(W, H, D);

	CUDA(cudaMalloc3DArray(&array, &ints, extent));
	CUDA(cudaMalloc3DArray(&other, &ints, extent, cudaArrayLayered));
	p.srcPtr = make_cudaPitchedPtr(in.data(), W * 4, W, H);
	p.dstArray = array;
	p.extent = extent;
	p.kind = cudaMemcpyHostToDevice;
	CUDA(cudaMemcpy3D(&p));
	p.srcPtr.ptr = want.data();
	p.dstArray = other;
	CUDA(cudaMemcpy3D(&p));

	p = {};
	p.srcArray = array;
	p.srcPos = make_cudaPos(3, 2, 1);
	p.dstArray = other;
	p.dstPos = make_cudaPos(10, 11, 2);
	p.extent = make_cudaExtent(20, 10, 4);
	p.kind = cudaMemcpyDeviceToDevice;
	CUDA(cudaMemcpy3DAsync(&p));
	for (int z = 0; z < 4; z++)
		for (int y = 0; y < 10; y++)
			for (int x = 0; x < 20; x++)
				want[((z + 2) * H + y + 11) * W + x + 10] =
					in[((z + 1) * H + y + 2) * W + x + 3];
	same(contents(other, W, H, D), want);

	p = {};
	p.srcArray = array;
	p.srcPos = make_cudaPos(7, 8, 3);
	p.dstPtr = make_cudaPitchedPtr(out.data(), 16, 4, 3);
	p.extent = make_cudaExtent(4, 3, 2);
	p.kind = cudaMemcpyDeviceToHost;
	CUDA(cudaMemcpy3D(&p));
	for (int z = 0; z < 2; z++)
		for (int y = 0; y < 3; y++)
			for (int x = 0; x < 4; x++)
				CHECK_EQ_AT(x, out[(z * 3 + y) * 4 + x],
					in[((z + 3) * H + y + 8) * W + x + 7]);
	p.extent.depth = D;
	CUDA_IS(cudaErrorInvalidValue, cudaMemcpy3D(&p));
	(void)cudaGetLastError();
	CUDA(cudaFreeArray(array));
	CUDA(cudaFreeArray(other));
}

/* More than travels in one piece, from pageable and from pinned memory. */
static void large(cudaStream_t stream)
{
	enum { WIDE = 2048, HIGH = 700 };
	std::vector<int> in = numbers((size_t)WIDE * HIGH * 4, 1), out(in.size(), -1);
	cudaChannelFormatDesc four = {32, 32, 32, 32, cudaChannelFormatKindSigned};
	size_t row = WIDE * 16;
	cudaArray_t array;
	int *pinned;

	CUDA(cudaMallocArray(&array, &four, WIDE, HIGH));
	CUDA(cudaMemcpy2DToArray(
		array, 0, 0, in.data(), row, row, HIGH, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy2DFromArray(
		out.data(), row, array, 0, 0, row, HIGH, cudaMemcpyDeviceToHost));
	same(out, in);
	CUDA(cudaMallocHost(&pinned, in.size() * 4));
	for (size_t i = 0; i < in.size(); i++)
		pinned[i] = -in[i];
	CUDA(cudaMemcpy2DToArrayAsync(
		array, 0, 0, pinned, row, row, HIGH, cudaMemcpyHostToDevice, stream));
	CUDA(cudaStreamSynchronize(stream));
	memset(pinned, 0, in.size() * 4);
	CUDA(cudaMemcpy2DFromArrayAsync(
		pinned, row, array, 0, 0, row, HIGH, cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamSynchronize(stream));
	for (size_t i = 0; i < in.size(); i++)
		CHECK_EQ_AT((long long)i, pinned[i], -in[i]);
	CUDA(cudaFreeHost(pinned));
	CUDA(cudaFreeArray(array));
}

static void levels()
{
	cudaMipmappedArray_t whole;
	cudaArray_t level;
	cudaExtent extent;

	CUDA(cudaMallocMipmappedArray(&whole, &ints, make_cudaExtent(32, 16, 0), 6));
	for (unsigned i = 0; i < 6; i++) {
		size_t w = 32 >> i, h = 16 >> i ? 16 >> i : 1;
		std::vector<int> in = numbers(w * h, 1000 * (int)i);

		CUDA(cudaGetMipmappedArrayLevel(&level, whole, i));
		CUDA(cudaArrayGetInfo(NULL, &extent, NULL, level));
		CHECK(extent.width == w && extent.height == h);
		CUDA(cudaMemcpy2DToArray(
			level, 0, 0, in.data(), w * 4, w * 4, h, cudaMemcpyHostToDevice));
	}
	for (unsigned i = 0; i < 6; i++) {
		size_t w = 32 >> i, h = 16 >> i ? 16 >> i : 1;

		CUDA(cudaGetMipmappedArrayLevel(&level, whole, i));
		same(contents(level, w, h, 1), numbers(w * h, 1000 * (int)i));
	}
	CUDA_IS(cudaErrorInvalidValue, cudaGetMipmappedArrayLevel(&level, whole, 6));
	(void)cudaGetLastError();
	CUDA(cudaFreeMipmappedArray(whole));
}

/* Captured, and as a node: each launch copies anew. */
static void graphs(cudaArray_t array, cudaArray_t other, cudaStream_t stream)
{
	std::vector<int> zero(W * H, 0);
	cudaMemcpy3DParms p = {}, back = {};
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaGraphNode_t node;
	int *in, *out;

	CUDA(cudaMallocHost(&in, W * H * 4));
	CUDA(cudaMallocHost(&out, W * H * 4));
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CUDA(cudaMemcpy2DToArrayAsync(
		array, 0, 0, in, W * 4, W * 4, H, cudaMemcpyHostToDevice, stream));
	p.srcArray = array;
	p.dstArray = other;
	p.extent = make_cudaExtent(W, H, 1);
	p.kind = cudaMemcpyDeviceToDevice;
	CUDA(cudaMemcpy3DAsync(&p, stream));
	CUDA(cudaMemcpy2DFromArrayAsync(
		out, W * 4, other, 0, 0, W * 4, H, cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < W * H; i++)
			in[i] = i + 10000 * round;
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		for (int i = 0; i < W * H; i++)
			CHECK_EQ_AT(i, out[i], i + 10000 * round);
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));

	CUDA(cudaMemcpy2DToArray(
		other, 0, 0, zero.data(), W * 4, W * 4, H, cudaMemcpyHostToDevice));
	CUDA(cudaGraphCreate(&graph, 0));
	p.srcPos = make_cudaPos(1, 0, 0);
	p.extent = make_cudaExtent(W - 1, H, 1);
	CUDA(cudaGraphAddMemcpyNode(&node, graph, NULL, 0, &p));
	CUDA(cudaGraphMemcpyNodeGetParams(node, &back));
	CHECK(back.srcArray == array && back.dstArray == other && back.srcPos.x == 1);
	CHECK(back.extent.width == W - 1 && back.extent.height == H && back.extent.depth == 1);
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaMemcpy2DFromArrayAsync(
		out, W * 4, other, 0, 0, W * 4, H, cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamSynchronize(stream));
	for (int i = 0; i < W * H; i++)
		CHECK_EQ_AT(i, out[i], i % W == W - 1 ? 0 : i + 10001);
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaFreeHost(in));
	CUDA(cudaFreeHost(out));
}

/* An array is memory of the device's like any other. What is freed can be had again: an eighth
 * of the memory, more often than eight times. When free memory is seen to grow by it is the
 * driver's affair; and other programs may use the device meanwhile. */
static void account()
{
	const cudaChannelFormatDesc four = {32, 32, 32, 32, cudaChannelFormatKindSigned};
	const size_t width = 65536, row = width * 16;
	size_t before, with, total, rows;
	cudaArray_t array;

	CUDA(cudaMemGetInfo(&before, &total));
	rows = total / 8 / row;
	CHECK(rows > 0);
	for (int i = 0; i < 12; i++) {
		CUDA(cudaMallocArray(&array, &four, width, rows));
		CUDA(cudaMemGetInfo(&with, &total));
		CHECK(i || with + rows * row / 2 <= before);
		CUDA(cudaFreeArray(array));
	}
}

int main()
{
	cudaArray_t array, other;
	cudaStream_t stream;

	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaMallocArray(&array, &ints, W, H));
	CUDA(cudaMallocArray(&other, &ints, W, H));
	bytes(array);
	rectangles(array, other, stream);
	refused(array);
	boxes();
	large(stream);
	levels();
	graphs(array, other, stream);
	CUDA(cudaFreeArray(array));
	CUDA(cudaFreeArray(other));
	account();
	CUDA(cudaStreamDestroy(stream));
	printf("copies with arrays are right\n");
	return 0;
}
