// SPDX-License-Identifier: Apache-2.0
/* Copies in batches: bytes of every direction by one call, with the attributes of each part; and
 * of rows and slices. */
#include "driver.h"

#include <vector>

enum { PIECES = 9, BYTES = 5000 };

#if CUDART_VERSION >= 13000
#define BATCH(dsts, srcs, sizes, n, attrs, at, k, failed, stream)                              \
	((void)(failed), cudaMemcpyBatchAsync(dsts, (const void *const *)(srcs), sizes, n,     \
				 attrs, at, k, stream))
#define BATCH3D(n, ops, failed, flags, stream)                                                 \
	((void)(failed), cudaMemcpy3DBatchAsync(n, ops, flags, stream))
#else
#define BATCH(dsts, srcs, sizes, n, attrs, at, k, failed, stream)                              \
	cudaMemcpyBatchAsync(dsts, srcs, sizes, n, attrs, at, k, failed, stream)
#define BATCH3D(n, ops, failed, flags, stream) cudaMemcpy3DBatchAsync(n, ops, failed, flags, stream)
#endif

static void flat(cudaStream_t stream)
{
	std::vector<unsigned char> in(PIECES * BYTES), out(PIECES * BYTES);
	unsigned char *device, *second, *pinned;
	void *dsts[PIECES], *srcs[PIECES];
	size_t sizes[PIECES], at[] = {0, 4}, failed = 7;
	cudaMemcpyAttributes attrs[2] = {};

	attrs[0].srcAccessOrder = cudaMemcpySrcAccessOrderStream;
	attrs[1].srcAccessOrder = cudaMemcpySrcAccessOrderDuringApiCall;
	CUDA(cudaMalloc((void **)&device, PIECES * BYTES));
	CUDA(cudaMalloc((void **)&second, PIECES * BYTES));
	CUDA(cudaMallocHost((void **)&pinned, PIECES * BYTES));
	for (int i = 0; i < PIECES * BYTES; i++) {
		in[i] = (unsigned char)(i * 7 + 1);
		pinned[i] = in[i];
	}
	for (int i = 0; i < PIECES; i++) {
		dsts[i] = device + i * BYTES;
		srcs[i] = (i & 1 ? pinned : in.data()) + i * BYTES;
		sizes[i] = BYTES - i; /* the last i bytes stay 0 */
	}
	CUDA(cudaMemsetAsync(device, 0, PIECES * BYTES, stream));
	CUDA(BATCH(dsts, srcs, sizes, PIECES, attrs, at, 2, &failed, stream));
	/* What was to be read during the call is the caller's again. */
	memset(in.data() + 4 * BYTES, 0xee, 5 * BYTES);
	for (int i = 4; i < PIECES; i++)
		memset(pinned + i * BYTES, 0xee, BYTES);

	/* Device to device, then both ways to the host. */
	for (int i = 0; i < PIECES; i++) {
		srcs[i] = dsts[i];
		dsts[i] = second + i * BYTES;
		sizes[i] = BYTES;
	}
	at[1] = 8;
	CUDA(BATCH(dsts, srcs, sizes, PIECES, attrs, at, 2, &failed, stream));
	for (int i = 0; i < PIECES; i++) {
		srcs[i] = dsts[i];
		dsts[i] = out.data() + i * BYTES;
	}
	attrs[0].srcAccessOrder = cudaMemcpySrcAccessOrderAny;
	CUDA(BATCH(dsts, srcs, sizes, PIECES, attrs, at, 1, &failed, stream));
	CUDA(cudaStreamSynchronize(stream));
	for (int i = 0; i < PIECES * BYTES; i++)
		CHECK_EQ_AT(i, out[i],
			i % BYTES < BYTES - i / BYTES ? (unsigned char)(i * 7 + 1) : 0);

	/* No attributes; an order that is none; more attributes than copies; the legacy stream. */
	CUDA_IS(cudaErrorInvalidValue,
		BATCH(dsts, srcs, sizes, PIECES, NULL, at, 0, &failed, stream));
	attrs[0].srcAccessOrder = cudaMemcpySrcAccessOrderInvalid;
	CUDA_IS(cudaErrorInvalidValue,
		BATCH(dsts, srcs, sizes, PIECES, attrs, at, 1, &failed, stream));
	attrs[0].srcAccessOrder = cudaMemcpySrcAccessOrderStream;
	CUDA_IS(cudaErrorInvalidValue, BATCH(dsts, srcs, sizes, 1, attrs, at, 2, &failed, stream));
	CUDA(cudaFree(device));
	CUDA(cudaFree(second));
	CUDA(cudaFreeHost(pinned));
}

/* Two slices of 3 rows of 10 bytes into a room of rows of 16 and slices of 5. */
static void rows(cudaStream_t stream)
{
	enum { WIDTH = 10, HEIGHT = 3, DEPTH = 2, PITCH = 16, LAYER = 5 };
	unsigned char in[WIDTH * HEIGHT * DEPTH], out[PITCH * LAYER * DEPTH];
	cudaMemcpy3DBatchOp op[1] = {};
	unsigned char *device;
	size_t failed = 7;

	for (int i = 0; i < (int)sizeof(in); i++)
		in[i] = (unsigned char)(i + 1);
	CUDA(cudaMalloc((void **)&device, sizeof(out)));
	CUDA(cudaMemsetAsync(device, 0, sizeof(out), stream));
	op[0].src.type = op[0].dst.type = cudaMemcpyOperandTypePointer;
	op[0].src.op.ptr.ptr = in;
	op[0].dst.op.ptr.ptr = device;
	op[0].dst.op.ptr.rowLength = PITCH;
	op[0].dst.op.ptr.layerHeight = LAYER;
	op[0].extent = make_cudaExtent(WIDTH, HEIGHT, DEPTH);
	op[0].srcAccessOrder = cudaMemcpySrcAccessOrderDuringApiCall;
	CUDA(BATCH3D(1, op, &failed, 0, stream));
	memset(in, 0, sizeof(in));
	CUDA(cudaMemcpyAsync(out, device, sizeof(out), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamSynchronize(stream));
	for (int i = 0; i < (int)sizeof(out); i++) {
		int x = i % PITCH, y = i / PITCH % LAYER, z = i / PITCH / LAYER;

		CHECK_EQ_AT(i, (int)out[i],
			x < WIDTH && y < HEIGHT ? (z * HEIGHT + y) * WIDTH + x + 1 : 0);
	}
	op[0].dst.op.ptr.rowLength = WIDTH - 1;
	CUDA_IS(cudaErrorInvalidValue, BATCH3D(1, op, &failed, 0, stream));
	CUDA(cudaFree(device));
}

/* The forms of CUDA 12.8, which tell of which copy it is what is wrong. */
typedef CUresult (*batch_call)(CUdeviceptr *, CUdeviceptr *, size_t *, size_t,
	CUmemcpyAttributes *, size_t *, size_t, size_t *, CUstream);
typedef CUresult (*batch_3d_call)(
	size_t, CUDA_MEMCPY3D_BATCH_OP *, size_t *, unsigned long long, CUstream);

enum { NONE = -1, UNWRITTEN = 7 };

static void flat_refused(CUstream stream)
{
	batch_call batch = driver_entry<batch_call>("cuMemcpyBatchAsync", 12080);
	CUmemcpyAttributes attr = {}, bad[4] = {};
	unsigned char host[64] = {};
	CUdeviceptr device, dsts[2], srcs[2] = {(CUdeviceptr)host, (CUdeviceptr)host};
	size_t sizes[2] = {4, 4}, at = 0, failed;
	ENTRY(cuMemAlloc);
	ENTRY(cuMemFree);
	ENTRY(cuStreamBeginCapture);
	ENTRY(cuStreamEndCapture);
	ENTRY(cuGraphDestroy);
	CUgraph graph;

#define REFUSED(status, index, call)                                                           \
	do {                                                                                   \
		failed = UNWRITTEN;                                                            \
		DRIVER_IS(status, call);                                                       \
		CHECK_EQ((long long)failed, (long long)(index));                               \
	} while (0)
	DRIVER(p_cuMemAlloc(&device, 64));
	dsts[0] = device, dsts[1] = device + 4;
	attr.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	attr.srcLocHint.type = attr.dstLocHint.type = CU_MEM_LOCATION_TYPE_DEVICE;
	attr.flags = CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE;
	REFUSED(CUDA_SUCCESS, NONE, batch(dsts, srcs, sizes, 2, &attr, &at, 1, &failed, stream));
	attr.flags = 0;

	/* Attributes come before the copies, and are of none. */
	for (CUmemcpyAttributes &wrong : bad)
		wrong = attr;
	bad[0].flags = 2;
	bad[1].srcLocHint.id = 99;
	bad[2].dstLocHint.type = (CUmemLocationType)5;
	bad[3].srcAccessOrder = (CUmemcpySrcAccessOrder)4;
	srcs[0] = 0;
	for (CUmemcpyAttributes &wrong : bad)
		REFUSED(CUDA_ERROR_INVALID_VALUE, NONE,
			batch(dsts, srcs, sizes, 2, &wrong, &at, 1, &failed, stream));
	REFUSED(CUDA_ERROR_INVALID_VALUE, 0,
		batch(dsts, srcs, sizes, 2, &attr, &at, 1, &failed, stream));
	srcs[0] = srcs[1];
	sizes[1] = 0;
	REFUSED(CUDA_ERROR_INVALID_VALUE, 1,
		batch(dsts, srcs, sizes, 2, &attr, &at, 1, &failed, stream));
	sizes[1] = 4;
	REFUSED(CUDA_ERROR_INVALID_VALUE, UNWRITTEN,
		batch(dsts, srcs, sizes, 2, &attr, &at, 1, &failed, NULL));

	DRIVER(p_cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	REFUSED(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, NONE,
		batch(dsts, srcs, sizes, 2, &attr, &at, 1, &failed, stream));
	DRIVER(p_cuStreamEndCapture(stream, &graph)); /* which goes on */
	DRIVER(p_cuGraphDestroy(graph));
	DRIVER(p_cuMemFree(device));
}

static void rows_refused(CUstream stream)
{
	batch_3d_call batch = driver_entry<batch_3d_call>("cuMemcpy3DBatchAsync", 12080);
	CUDA_MEMCPY3D_BATCH_OP ops[2] = {};
	unsigned char host[64] = {};
	CUcontext context;
	CUdeviceptr device;
	size_t failed;
	ENTRY(cuMemAlloc);
	ENTRY(cuMemFree);
	ENTRY(cuCtxPopCurrent);
	ENTRY(cuCtxPushCurrent);

	DRIVER(p_cuMemAlloc(&device, 64));
	for (CUDA_MEMCPY3D_BATCH_OP &op : ops) {
		op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
		op.src.op.ptr.ptr = (CUdeviceptr)host;
		op.dst.op.ptr.ptr = device;
		op.extent = {4, 2, 1};
		op.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	}
	/* What is wrong in a copy itself is told before the others are looked at … */
	ops[0].dst.op.ptr.ptr = 0;
	ops[1].flags = 2;
	REFUSED(CUDA_ERROR_INVALID_VALUE, 1, batch(2, ops, &failed, 0, stream));
	ops[1].flags = 1;
	ops[1].extent.depth = 0;
	REFUSED(CUDA_ERROR_INVALID_VALUE, 1, batch(2, ops, &failed, 0, stream));
	ops[1].extent.depth = 1;
	ops[1].dst.type = (CUmemcpy3DOperandType)3;
	REFUSED(CUDA_ERROR_INVALID_VALUE, 1, batch(2, ops, &failed, 0, stream));
	/* … and of what it names no number is. */
	ops[1].dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
	REFUSED(CUDA_ERROR_INVALID_VALUE, NONE, batch(2, ops, &failed, 0, stream));
	ops[0].dst.op.ptr.ptr = device;
	REFUSED(CUDA_SUCCESS, NONE, batch(2, ops, &failed, 0, stream));
	/* The stream's context is not the thread's. */
	DRIVER(p_cuCtxPopCurrent(&context));
	REFUSED(CUDA_ERROR_INVALID_VALUE, NONE, batch(2, ops, &failed, 0, stream));
	REFUSED(CUDA_ERROR_INVALID_CONTEXT, NONE, batch(2, ops, &failed, 0, CU_STREAM_PER_THREAD));
	DRIVER(p_cuCtxPushCurrent(context));
	DRIVER(p_cuMemFree(device));
}

int main(void)
{
	cudaStream_t stream;

	CUDA(cudaStreamCreate(&stream));
	flat(stream);
	rows(stream);
	flat_refused(stream);
	rows_refused(stream);
	CUDA(cudaStreamDestroy(stream));
	return 0;
}
