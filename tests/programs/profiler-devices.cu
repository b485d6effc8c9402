// SPDX-License-Identifier: Apache-2.0
/*
 * CUPTI with several devices, of one agent or of several: a record names its device as the
 * program does, and each device's contexts and streams by the numbers that CUPTI gives for them.
 */
#include "profiler.h"

__global__ void fill(float *p, float value, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] = value;
}

struct side {
	int device;
	float *memory;
	cudaStream_t stream;
	CUcontext context;
	uint32_t context_number, stream_number, legacy_number;
};

static void side_open(struct side *side, int device)
{
	side->device = device;
	CUDA(cudaSetDevice(device));
	CUDA(cudaMalloc(&side->memory, 4096));
	CUDA(cudaStreamCreateWithFlags(&side->stream, cudaStreamNonBlocking));
	ENTRY(cuCtxGetCurrent);
	DRIVER(p_cuCtxGetCurrent(&side->context));
	CUPTI(cupti.cuptiGetContextId(side->context, &side->context_number));
	CUPTI(cupti.cuptiGetStreamIdEx(side->context, side->stream, 0, &side->stream_number));
	CUPTI(cupti.cuptiGetStreamIdEx(side->context, NULL, 0, &side->legacy_number));
	CHECK(side->context_number && side->stream_number && side->legacy_number);
	CHECK(side->stream_number != side->legacy_number);
}

/* Each with another grid. */
static void side_work(const struct side *side)
{
	CUDA(cudaSetDevice(side->device));
	fill<<<side->device + 1, 32, 0, side->stream>>>(side->memory, 1, 32);
	LAUNCHED();
	fill<<<side->device + 1, 64>>>(side->memory, 1, 32);
	LAUNCHED();
	CUDA(cudaMemsetAsync(side->memory, 3, 256 + side->device, side->stream));
	CUDA(cudaDeviceSynchronize());
}

static void side_check(const struct side *side)
{
	int kernels = 0, fills = 0;

	for (const auto &one : seen.kernels) {
		const CUpti_ActivityKernel9 &k = one.first;

		if (k.gridX != side->device + 1)
			continue;
		CHECK_EQ(k.deviceId, side->device);
		CHECK_EQ(k.contextId, side->context_number);
		CHECK_EQ(k.streamId, k.blockX == 32 ? side->stream_number : side->legacy_number);
		kernels++;
	}
	for (const CUpti_ActivityMemset4 &f : seen.fills) {
		if (f.bytes != 256u + side->device)
			continue;
		CHECK_EQ(f.deviceId, side->device);
		CHECK_EQ(f.contextId, side->context_number);
		CHECK_EQ(f.streamId, side->stream_number);
		fills++;
	}
	CHECK_EQ(kernels, 2);
	CHECK_EQ(fills, 1);
}

int main()
{
	int count = 0;

	open_library();
	CUDA(cudaGetDeviceCount(&count));
	if (count < 2)
		SKIP("there is one device");
	CUPTI(cupti.cuptiActivityRegisterCallbacks(requested, completed));
	profile(true);
	std::vector<struct side> sides(count);
	for (int i = 0; i < count; i++)
		side_open(&sides[i], i);
	for (int i = 0; i < count; i++)
		for (int j = 0; j < i; j++) {
			CHECK(sides[i].context_number != sides[j].context_number);
			CHECK(sides[i].stream_number != sides[j].stream_number);
		}
	for (const struct side &side : sides)
		side_work(&side);
	flush();
	for (const struct side &side : sides)
		side_check(&side);
	profile(false);
	return 0;
}
