// SPDX-License-Identifier: Apache-2.0
/*
 * CUPTI's callbacks, before and behind each launch and where a stream was made; and records in
 * many small buffers, of which none is lost.
 */
#include "profiler.h"

__global__ void fill(float *p, float value, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] = value;
}

static struct {
	int enters, leaves, streams;
	uint32_t correlation, grid;
	std::string symbol;
	void *data;
} called;

static void callback(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
	const CUpti_CallbackData *d = (const CUpti_CallbackData *)data;

	CHECK(user == &called);
	if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
		called.streams += id == CUPTI_CBID_RESOURCE_STREAM_CREATED;
		return;
	}
	CHECK_EQ((int)domain, CUPTI_CB_DOMAIN_RUNTIME_API);
	CHECK_EQ(id, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000);
	if (d->callbackSite == CUPTI_API_ENTER) {
		const struct {
			const void *function;
			dim3 gridDim, blockDim;
		} *p = (decltype(p))d->functionParams;

		called.enters++;
		called.grid = p->gridDim.x * 100 + p->blockDim.x;
		called.symbol = d->symbolName ? d->symbolName : "";
		*d->correlationData = 4711;
	} else {
		called.leaves++;
		CHECK_EQ(*d->correlationData, 4711);
		CHECK_EQ(*(const cudaError_t *)d->functionReturnValue, cudaSuccess);
	}
	called.correlation = d->correlationId;
}

static void callbacks(float *d)
{
	CUpti_SubscriberHandle subscriber, second;
	cudaStream_t stream;

	CUPTI(cupti.cuptiSubscribe(&subscriber, callback, &called));
	CUPTI_IS(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
		cupti.cuptiSubscribe(&second, callback, NULL));
	CUPTI(cupti.cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API,
		CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000));
	CUPTI(cupti.cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE));
	CUPTI_IS(CUPTI_ERROR_INVALID_PARAMETER,
		cupti.cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, 99999));
	fill<<<5, 32>>>(d, 1, 128);
	LAUNCHED();
	CUDA(cudaStreamCreate(&stream));
	flush();
	CHECK_EQ(called.enters, 1);
	CHECK_EQ(called.leaves, 1);
	CHECK_EQ(called.grid, 532);
	CHECK(called.symbol.find("fill") != std::string::npos);
	CHECK_EQ(called.streams, 1);
	CHECK_EQ(kernel_like("fill").correlationId, called.correlation);
	CUPTI(cupti.cuptiUnsubscribe(subscriber));
	fill<<<5, 32>>>(d, 1, 128);
	CHECK_EQ(called.enters, 1);
	CUDA(cudaStreamDestroy(stream));
	flush();
	forget();
}

/* Many small buffers: nothing is lost between them. */
static void small_buffers(float *d)
{
	size_t dropped = 0;

	seen.bytes = 8 * 1024;
	for (int i = 0; i < 300; i++)
		fill<<<1, 32>>>(d, (float)i, 32);
	flush();
	CHECK_EQ(seen.kernels.size(), 300);
	CHECK(seen.buffers > 5);
	for (const auto &one : seen.kernels)
		call_of(one.first.correlationId, "cudaLaunchKernel");
	CUPTI(cupti.cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped));
	CHECK_EQ(dropped, 0);
	seen.bytes = 256 * 1024;
	forget();
}

int main()
{
	float *d;

	open_library();
	CUPTI(cupti.cuptiActivityRegisterCallbacks(requested, completed));
	CUDA(cudaMalloc(&d, 4096));
	profile(true);
	callbacks(d);
	small_buffers(d);
	profile(false);
	CUPTI(cupti.cuptiFinalize());
	return 0;
}
