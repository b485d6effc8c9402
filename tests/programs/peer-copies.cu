// SPDX-License-Identifier: Apache-2.0
/* Copies between two devices in every form, with peer access and without: the bytes are the same,
 * and so is what unified addressing says of a pointer, whichever device is current. */
#include "check.h"

static const int WIDTH = 200, HEIGHT = 60, DEPTH = 5;
static const int BYTES = WIDTH * HEIGHT * DEPTH;

struct buffers {
	unsigned char *at[2];
	cudaStream_t stream[2];
};

static unsigned char pattern(int seed, int i)
{
	return (unsigned char)(i * 7 + i / 251 + seed);
}

static void fill(const struct buffers *b, int seed)
{
	static unsigned char bytes[BYTES];

	for (int i = 0; i < BYTES; i++)
		bytes[i] = pattern(seed, i);
	CUDA(cudaMemcpy(b->at[0], bytes, BYTES, cudaMemcpyDefault));
	CUDA(cudaSetDevice(1));
	CUDA(cudaMemset(b->at[1], 0xee, BYTES));
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaSetDevice(0));
	CUDA(cudaDeviceSynchronize());
}

/* A box of w x h x d from the beginning of each slice was copied, all else was left. */
static void check_box(const struct buffers *b, int seed, int w, int h, int d)
{
	static unsigned char got[BYTES];

	for (int i = 0; i < 2; i++) {
		CUDA(cudaSetDevice(i));
		CUDA(cudaDeviceSynchronize());
	}
	CUDA(cudaMemcpy(got, b->at[1], BYTES, cudaMemcpyDefault));
	for (int i = 0; i < BYTES; i++) {
		int x = i % WIDTH, y = i / WIDTH % HEIGHT, z = i / WIDTH / HEIGHT;

		CHECK_EQ_AT(i, got[i],
			x < w && y < h && z < d ? pattern(seed, i) : (unsigned char)0xee);
	}
}

#define WHOLE(seed, copy)                                                                      \
	do {                                                                                   \
		fill(b, seed);                                                                 \
		CUDA(cudaSetDevice(current));                                                  \
		CUDA(copy);                                                                    \
		check_box(b, seed, WIDTH, HEIGHT, DEPTH);                                      \
	} while (0)

static void linear(const struct buffers *b, int current)
{
	unsigned char *to = b->at[1], *from = b->at[0];

	WHOLE(1, cudaMemcpyPeer(to, 1, from, 0, BYTES));
	WHOLE(2, cudaMemcpyPeerAsync(to, 1, from, 0, BYTES, b->stream[current]));
	WHOLE(3, cudaMemcpyPeerAsync(to, 1, from, 0, BYTES, b->stream[1 - current]));
	WHOLE(4, cudaMemcpy(to, from, BYTES, cudaMemcpyDefault));
	WHOLE(5, cudaMemcpy(to, from, BYTES, cudaMemcpyDeviceToDevice));
	WHOLE(6, cudaMemcpyAsync(to, from, BYTES, cudaMemcpyDefault, b->stream[current]));
	WHOLE(7, cudaMemcpyAsync(to, from, BYTES, cudaMemcpyDeviceToDevice,
			 b->stream[1 - current]));
	WHOLE(8, cudaMemcpy2D(to, WIDTH, from, WIDTH, WIDTH, HEIGHT * DEPTH, cudaMemcpyDefault));
}

static cudaMemcpy3DPeerParms peer_box(const struct buffers *b, int w, int h, int d)
{
	cudaMemcpy3DPeerParms box = {};

	box.srcDevice = 0;
	box.dstDevice = 1;
	box.srcPtr = make_cudaPitchedPtr(b->at[0], WIDTH, WIDTH, HEIGHT);
	box.dstPtr = make_cudaPitchedPtr(b->at[1], WIDTH, WIDTH, HEIGHT);
	box.extent = make_cudaExtent(w, h, d);
	return box;
}

static void boxes(const struct buffers *b, int current)
{
	cudaMemcpy3DPeerParms peer = peer_box(b, 111, 31, 4);
	cudaMemcpy3DParms plain = {};

	fill(b, 20);
	CUDA(cudaSetDevice(current));
	CUDA(cudaMemcpy2D(b->at[1], WIDTH, b->at[0], WIDTH, 77, 33, cudaMemcpyDeviceToDevice));
	check_box(b, 20, 77, 33, 1);
	fill(b, 21);
	CUDA(cudaSetDevice(current));
	CUDA(cudaMemcpy2DAsync(b->at[1], WIDTH, b->at[0], WIDTH, 78, 34, cudaMemcpyDefault,
		b->stream[current]));
	check_box(b, 21, 78, 34, 1);
	fill(b, 22);
	CUDA(cudaSetDevice(current));
	CUDA(cudaMemcpy3DPeer(&peer));
	check_box(b, 22, 111, 31, 4);
	fill(b, 23);
	CUDA(cudaSetDevice(current));
	CUDA(cudaMemcpy3DPeerAsync(&peer, b->stream[current]));
	check_box(b, 23, 111, 31, 4);
	plain.srcPtr = peer.srcPtr;
	plain.dstPtr = peer.dstPtr;
	plain.extent = make_cudaExtent(50, HEIGHT, DEPTH);
	plain.kind = cudaMemcpyDefault;
	fill(b, 24);
	CUDA(cudaSetDevice(current));
	CUDA(cudaMemcpy3D(&plain));
	check_box(b, 24, 50, HEIGHT, DEPTH);
}

/* An array of one device and the memory of the other. */
static void arrays(const struct buffers *b)
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned char>();
	cudaMemcpy3DPeerParms in = peer_box(b, WIDTH, HEIGHT, 1), out = in;
	cudaArray_t array;

	CUDA(cudaSetDevice(1));
	CUDA(cudaMallocArray(&array, &format, WIDTH, HEIGHT));
	fill(b, 30);
	in.dstArray = array;
	in.dstPtr = cudaPitchedPtr();
	CUDA(cudaMemcpy3DPeer(&in));
	out.srcArray = array;
	out.srcPtr = cudaPitchedPtr();
	out.srcDevice = 1;
	CUDA(cudaMemcpy3DPeer(&out));
	check_box(b, 30, WIDTH, HEIGHT, 1);
	CUDA(cudaSetDevice(1));
	CUDA(cudaFreeArray(array));
}

/* REACHED: either device has access to the other's memory; then it can fill it, too. */
static void addresses(const struct buffers *b, int current, bool reached)
{
	cudaPointerAttributes what;
	unsigned char *pinned, local;

	CUDA(cudaSetDevice(current));
	for (int i = 0; i < 2; i++) {
		CUDA(cudaPointerGetAttributes(&what, b->at[i] + 100));
		CHECK_EQ(what.type, cudaMemoryTypeDevice);
		CHECK_EQ(what.device, i);
		CHECK(what.devicePointer == (i == current || reached ? b->at[i] + 100 : NULL));
		CHECK(!what.hostPointer);
		CUDA_IS(i == current || reached ? cudaSuccess : cudaErrorInvalidValue,
			cudaMemset(b->at[i], 0x77, BYTES));
		cudaGetLastError();
	}
	CUDA(cudaMallocHost(&pinned, 4096));
	CUDA(cudaPointerGetAttributes(&what, pinned));
	CHECK_EQ(what.type, cudaMemoryTypeHost);
	CHECK_EQ(what.device, current);
	CHECK(what.hostPointer == pinned);
	CUDA(cudaFreeHost(pinned));
	CUDA(cudaPointerGetAttributes(&what, &local));
	CHECK_EQ(what.type, cudaMemoryTypeUnregistered);
}

static void all(const struct buffers *b, bool reached)
{
	for (int current = 0; current < 2; current++) {
		addresses(b, current, reached);
		linear(b, current);
		boxes(b, current);
	}
	arrays(b);
}

int main()
{
	struct buffers b;
	int count, can = 0;

	CUDA(cudaGetDeviceCount(&count));
	if (count < 2)
		SKIP("one device only");
	for (int i = 0; i < 2; i++) {
		CUDA(cudaSetDevice(i));
		CUDA(cudaMalloc(&b.at[i], BYTES));
		CUDA(cudaStreamCreate(&b.stream[i]));
	}
	CUDA(cudaDeviceCanAccessPeer(&can, 0, 1));
	all(&b, false);
	for (int i = 0; can && i < 2; i++) {
		CUDA(cudaSetDevice(i));
		CUDA(cudaDeviceEnablePeerAccess(1 - i, 0));
	}
	if (can)
		all(&b, true);
	for (int i = 0; i < 2; i++) {
		CUDA(cudaSetDevice(i));
		CUDA(cudaFree(b.at[i]));
		CUDA(cudaStreamDestroy(b.stream[i]));
	}
	return 0;
}
