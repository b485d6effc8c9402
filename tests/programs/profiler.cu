// SPDX-License-Identifier: Apache-2.0
/*
 * CUPTI: a program that profiles itself.  Each thing that runs on the GPU has a record, with
 * the numbers that it was launched with, which names the call that launched it; calls name what
 * the program pushed.  Times are in order: call, work, end of the wait.
 */
#include "profiler.h"

#include <thread>

__global__ void fill(float *p, float value, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] = value;
}

__global__ void shares(float *p)
{
	extern __shared__ float own[];
	__shared__ float fixed[64];

	own[threadIdx.x] = p[threadIdx.x];
	fixed[threadIdx.x % 64] = 1;
	__syncthreads();
	p[threadIdx.x] = own[threadIdx.x] + fixed[threadIdx.x % 64];
}

/* --- work --------------------------------------------------------------------------------- */

static void launches(float *d, cudaStream_t stream, uint32_t number)
{
	uint64_t before, behind;

	CUPTI(cupti.cuptiGetTimestamp(&before));
	CUPTI(cupti.cuptiActivityPushExternalCorrelationId(
		CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 11));
	CUPTI(cupti.cuptiActivityPushExternalCorrelationId(
		CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 12));
	fill<<<dim3(4, 3, 2), dim3(32, 2, 1), 0, stream>>>(d, 1.5f, 128);
	LAUNCHED();
	uint64_t id = 0;
	CUPTI(cupti.cuptiActivityPopExternalCorrelationId(
		CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &id));
	CHECK_EQ(id, 12);
	shares<<<1, 128, 512>>>(d);
	LAUNCHED();
	CUPTI(cupti.cuptiActivityPopExternalCorrelationId(
		CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &id));
	CUPTI_IS(CUPTI_ERROR_QUEUE_EMPTY, cupti.cuptiActivityPopExternalCorrelationId(
						  CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &id));
	std::thread([d] { fill<<<1, 64>>>(d, 2, 64); }).join();
	flush();
	CUPTI(cupti.cuptiGetTimestamp(&behind));

	CHECK_EQ(seen.kernels.size(), 3);
	const CUpti_ActivityKernel9 &first = kernel_like("fill"), &second = kernel_like("shares"),
				    &third = kernel_like("fill", 1);
	CHECK_EQ(first.gridX * 100 + first.gridY * 10 + first.gridZ, 432);
	CHECK_EQ(first.blockX * 100 + first.blockY * 10 + first.blockZ, 3221);
	CHECK_EQ(first.streamId, number);
	CHECK_EQ(first.dynamicSharedMemory, 0);
	CHECK_EQ(second.dynamicSharedMemory, 512);
	CHECK_EQ(second.staticSharedMemory, 256);
	CHECK(second.streamId != number);
	CHECK_EQ(second.contextId, first.contextId);
	for (const CUpti_ActivityKernel9 *k : {&first, &second, &third}) {
		const CUpti_ActivityAPI &call = call_of(k->correlationId, "cudaLaunchKernel");

		CHECK(call.start >= before && call.end > call.start);
		CHECK(k->start >= call.start && k->end > k->start && k->end <= behind);
		CHECK_EQ(k->deviceId, 0);
		CHECK_EQ(k->graphId, 0);
	}
	CHECK_EQ(seen.external[first.correlationId][CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0], 12);
	CHECK_EQ(seen.external[second.correlationId][CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0], 11);
	CHECK_EQ(seen.external.count(third.correlationId), 0); /* another thread's */
	CHECK(seen.runtime[first.correlationId].threadId !=
		seen.runtime[third.correlationId].threadId);
	forget();
}

static void copies(float *d, cudaStream_t stream)
{
	const size_t many = 24 << 20;
	std::vector<char> host(many, 3);
	float *pinned;
	char *big;

	for (size_t i = 0; i < many; i++)
		host[i] = (char)(i * 31);
	CUDA(cudaMalloc(&big, many));
	CUDA(cudaMallocHost(&pinned, 4096));
	forget();
	CUDA(cudaMemcpy(big, host.data(), many, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy(host.data(), big, 1000, cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpyAsync(d, pinned, 4096, cudaMemcpyHostToDevice, stream));
	CUDA(cudaMemcpyAsync(big, d, 2048, cudaMemcpyDeviceToDevice, stream));
	CUDA(cudaMemset(d, 7, 1024));
	CUDA(cudaMemsetAsync(big, 0, many, stream));
	flush();
	CHECK_EQ(seen.copies.size(), 4);
	static const struct {
		const char *call;
		int kind, source, target, flags;
		size_t bytes;
	} want[] = {
		{"cudaMemcpy_", CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, 1, 3, 0, many},
		{"cudaMemcpy_", CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, 3, 1, 0, 1000},
		{"cudaMemcpyAsync", CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, 2, 3, 1, 4096},
		{"cudaMemcpyAsync", CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, 3, 3, 1, 2048},
	};
	std::map<uint32_t, CUpti_ActivityMemcpy5> in_order;
	for (const CUpti_ActivityMemcpy5 &c : seen.copies)
		in_order[c.correlationId] = c;
	CHECK_EQ(in_order.size(), 4);
	size_t i = 0;
	for (const auto &one : in_order) {
		const CUpti_ActivityMemcpy5 &c = one.second;

		call_of(c.correlationId, want[i].call);
		CHECK_EQ_AT(i, c.copyKind, want[i].kind);
		CHECK_EQ_AT(i, c.srcKind, want[i].source);
		CHECK_EQ_AT(i, c.dstKind, want[i].target);
		CHECK_EQ_AT(i, c.flags, want[i].flags);
		CHECK_EQ_AT(i, c.bytes, want[i].bytes);
		CHECK(c.end > c.start);
		i++;
	}
	CHECK_EQ(seen.fills.size(), 2);
	for (const CUpti_ActivityMemset4 &f : seen.fills) {
		bool large = f.bytes == many;

		call_of(f.correlationId, large ? "cudaMemsetAsync" : "cudaMemset_");
		CHECK_EQ(f.bytes, large ? many : 1024);
		CHECK_EQ(f.value, large ? 0 : 7);
		CHECK_EQ(f.flags, large ? 1 : 0);
	}
	CUDA(cudaFree(big));
	CUDA(cudaFreeHost(pinned));
	forget();
}

static void graphs(float *d, cudaStream_t stream)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	fill<<<1, 64, 0, stream>>>(d, 3, 64);
	CUDA(cudaMemsetAsync(d, 0, 256, stream));
	shares<<<1, 64, 256, stream>>>(d);
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	flush();
	CHECK_EQ(seen.kernels.size(), 0); /* nothing has run */
	forget();
	CUDA(cudaGraphLaunch(exec, stream));
	CUDA(cudaGraphLaunch(exec, stream));
	flush();
	CHECK_EQ(seen.kernels.size(), 4);
	CHECK_EQ(seen.fills.size(), 2);
	const CUpti_ActivityKernel9 &first = kernel_like("fill"), &second = kernel_like("shares"),
				    &again = kernel_like("fill", 1);
	CHECK_EQ(first.correlationId, second.correlationId);
	CHECK(first.correlationId != again.correlationId);
	CHECK(first.graphId != 0 && first.graphId == again.graphId);
	CHECK(first.graphNodeId == again.graphNodeId && first.graphNodeId != second.graphNodeId);
	call_of(first.correlationId, "cudaGraphLaunch");
	call_of(again.correlationId, "cudaGraphLaunch");
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	flush();
	forget();
}

int main()
{
	cudaStream_t stream;
	uint32_t version = 0, number = 0, context_number = 0;
	CUcontext context = NULL;
	float *d;

	open_library();
	CUPTI(cupti.cuptiGetVersion(&version));
	CHECK(version > 0);
	CUPTI(cupti.cuptiActivityRegisterCallbacks(requested, completed));
	CUDA(cudaMalloc(&d, 4096));
	CUDA(cudaStreamCreate(&stream));
	fill<<<1, 32>>>(d, 0, 32); /* not profiled */
	profile(true);
	ENTRY(cuCtxGetCurrent);
	DRIVER(p_cuCtxGetCurrent(&context));
	CUPTI(cupti.cuptiGetContextId(context, &context_number));
	CUPTI(cupti.cuptiGetStreamIdEx(context, (CUstream)stream, 0, &number));
	CHECK(number && context_number);
	flush();
	forget();
	launches(d, stream, number);
	copies(d, stream);
	graphs(d, stream);
	profile(false);
	fill<<<1, 32>>>(d, 0, 32);
	flush();
	CHECK_EQ(seen.kernels.size(), 0);
	CUPTI(cupti.cuptiFinalize());
	fill<<<1, 32>>>(d, 0, 32);
	CUDA(cudaDeviceSynchronize());
	return 0;
}
