// SPDX-License-Identifier: Apache-2.0
/* Managed memory that is attached to the host, or to another stream, and that copies, fills and
 * kernels name all the same. */
#include <string.h>

#include "check.h"

#define BYTES (3 * 65536 + 100)

__global__ void add(unsigned char *to, const unsigned char *from, int n, int value)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		to[i] = from[i] + value;
}

struct both {
	int before;
	unsigned char *to;
	const unsigned char *from;
};

__global__ void add_both(struct both both, int n, int value)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		both.to[i] = both.from[i] + value;
}

/* Long enough that what comes behind it is not done when the host looks. */
__global__ void late(unsigned char *to, int n, int value)
{
	long long begin = clock64();

	while (clock64() - begin < 3000000)
		;
	for (int i = threadIdx.x; i < n; i += blockDim.x)
		to[i] = value;
}

/* How many bytes are not VALUE; of the first, a line that says what it is. */
static int wrong(const unsigned char *bytes, int value)
{
	int count = 0;

	for (int i = 0; i < BYTES; i++)
		if (bytes[i] != (unsigned char)value && !count++)
			fprintf(stderr, "byte %d is %d, not %d\n", i, bytes[i], value);
	return count;
}

static void touches(void *bytes)
{
	CHECK_EQ(*(unsigned char *)bytes, 22);
}

/* A host function that has looked at a page waits for no work: only it does. */
static void behind_function(unsigned char *device, unsigned char *plain, cudaStream_t stream)
{
	unsigned char *its, *held;

	CUDA(cudaMallocManaged(&its, BYTES, cudaMemAttachGlobal));
	CUDA(cudaMallocManaged(&held, BYTES, cudaMemAttachHost));
	CUDA(cudaMemsetAsync(its, 22, BYTES, stream));
	CUDA(cudaLaunchHostFunc(stream, touches, its));
	CUDA(cudaStreamSynchronize(stream));
	memset(held, 23, BYTES);
	memset(plain, 24, BYTES);
	late<<<1, 256>>>(device, BYTES, 25);
	CUDA(cudaMemcpy(held, plain, BYTES, cudaMemcpyHostToDevice));
	CHECK_EQ(wrong(held, 24), 0);
	CUDA(cudaFree(its));
	CUDA(cudaFree(held));
}

static unsigned char *attached(unsigned flags)
{
	unsigned char *data;

	CUDA(cudaMallocManaged(&data, BYTES, flags));
	return data;
}

/* From HELD, which the program wrote, in each way. */
static void copies_from(unsigned char *held, unsigned char *device, unsigned char *plain)
{
	static const cudaMemcpyKind kinds[] = {
		cudaMemcpyDefault, cudaMemcpyHostToDevice, cudaMemcpyDeviceToDevice};

	for (int i = 0; i < 3; i++) {
		memset(held, 10 + i, BYTES);
		CUDA(cudaMemcpy(device, held, BYTES, kinds[i]));
		CUDA(cudaMemcpy(plain, device, BYTES, cudaMemcpyDeviceToHost));
		CHECK_EQ_AT(i, wrong(plain, 10 + i), 0);
	}
	memset(held, 20, BYTES);
	CUDA(cudaMemcpy(plain, held, BYTES, cudaMemcpyDefault));
	CHECK_EQ(wrong(plain, 20), 0);
	memset(held, 21, BYTES);
	CUDA(cudaMemcpy2D(device, 512, held, 256, 256, 100, cudaMemcpyDefault));
	CUDA(cudaMemcpy2D(plain, 256, device, 512, 256, 100, cudaMemcpyDefault));
	for (int i = 0; i < 256 * 100; i++)
		CHECK_EQ_AT(i, plain[i], 21);
}

/* To HELD, which the program reads at once, often.  Where it reads what was there before, the
 * device's bytes and those of a second look tell which side had them. */
static void from_host(unsigned char *held, unsigned char *plain)
{
	for (int i = 0; i < 20; i++) {
		int count;

		memset(plain, 80 + i, BYTES);
		CUDA(cudaMemcpy(held, plain, BYTES, cudaMemcpyHostToDevice));
		count = wrong(held, 80 + i);
		if (!count)
			continue;
		fprintf(stderr, "%d bytes are wrong; a second look: ", count);
		CHECK(wrong(held, 80 + i) <= BYTES);
		CUDA(cudaDeviceSynchronize());
		CUDA(cudaMemcpy(plain, held, BYTES, cudaMemcpyDeviceToHost));
		fprintf(stderr, "the device has %d and %d at the ends\n", plain[0],
			plain[BYTES - 1]);
		CHECK_EQ_AT(i, count, 0);
	}
}

/* To HELD, behind a kernel of STREAM that takes long. */
static void copies_to(
	unsigned char *held, unsigned char *device, unsigned char *plain, cudaStream_t stream)
{
	static const cudaMemcpyKind kinds[] = {
		cudaMemcpyDefault, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice};

	for (int i = 0; i < 3; i++) {
		memset(held, 0, BYTES);
		late<<<1, 256, 0, stream>>>(device, BYTES, 30 + i);
		CUDA(cudaMemcpyAsync(held, device, BYTES, kinds[i], stream));
		CUDA(cudaStreamSynchronize(stream));
		CHECK_EQ_AT(i, wrong(held, 30 + i), 0);
	}
	from_host(held, plain);
	held[7] = 1;
	CUDA(cudaMemsetAsync(held, 41, BYTES, stream));
	CUDA(cudaStreamSynchronize(stream));
	CHECK_EQ(wrong(held, 41), 0);
	/* What it writes of a fill stays, though the fill comes first. */
	CUDA(cudaMemset(held, 42, BYTES));
	CUDA(cudaDeviceSynchronize());
	memset(held, 43, BYTES);
	CHECK_EQ(wrong(held, 43), 0);
	CUDA(cudaMemcpy(plain, held, BYTES, cudaMemcpyDefault));
	CHECK_EQ(wrong(plain, 43), 0);
}

static void kernels(unsigned flags, unsigned char *device, cudaStream_t stream)
{
	const int blocks = (BYTES + 255) / 256;
	unsigned char *from = attached(flags), *to = attached(flags);

	memset(from, 50, BYTES);
	memset(to, 0, BYTES);
	add<<<blocks, 256, 0, stream>>>(to, from, BYTES, 1);
	CUDA(cudaStreamSynchronize(stream));
	CHECK_EQ(wrong(to, 51), 0);
	memset(from, 60, BYTES);
	add<<<blocks, 256, 0, stream>>>(device, from, BYTES, 2);
	add<<<blocks, 256, 0, stream>>>(to, device, BYTES, 2);
	CUDA(cudaStreamSynchronize(stream));
	CHECK_EQ(wrong(to, 64), 0);
	CUDA(cudaFree(from));
	CUDA(cudaFree(to));

	struct both both = {0, attached(flags), attached(flags)};

	memset((void *)both.from, 70, BYTES);
	add_both<<<blocks, 256, 0, stream>>>(both, BYTES, 3);
	CUDA(cudaDeviceSynchronize());
	CHECK_EQ(wrong(both.to, 73), 0);
	CUDA(cudaFree((void *)both.from));
	CUDA(cudaFree(both.to));
}

int main()
{
	unsigned char *held, *its, *device, *plain = (unsigned char *)malloc(BYTES);
	cudaStream_t stream, other;

	if (!device_attribute(cudaDevAttrManagedMemory))
		SKIP("no managed memory");
	held = attached(cudaMemAttachHost);
	its = attached(cudaMemAttachGlobal);
	CUDA(cudaMalloc(&device, BYTES));
	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	copies_from(held, device, plain);
	copies_to(held, device, plain, stream);
	copies_to(held, device, plain, other);
	CUDA(cudaStreamAttachMemAsync(stream, its, 0, cudaMemAttachSingle));
	CUDA(cudaStreamSynchronize(stream));
	copies_from(its, device, plain);
	copies_to(its, device, plain, other);
	copies_to(its, device, plain, stream);
	behind_function(device, plain, stream);
	kernels(cudaMemAttachHost, device, stream);
	kernels(cudaMemAttachHost, device, other);
	CUDA(cudaDeviceSynchronize());
	return 0;
}
