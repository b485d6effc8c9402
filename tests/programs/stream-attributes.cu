// SPDX-License-Identifier: Apache-2.0
/*
 * What a stream is: its device, its number, its priority within the range, attributes that are
 * set, told and copied; and what does not exist.
 */
#include "check.h"

#include <set>
#include <thread>

static unsigned long long number(cudaStream_t stream)
{
	unsigned long long id = 0;

	CUDA(cudaStreamGetId(stream, &id));
	return id;
}

static int policy(cudaStream_t stream)
{
	cudaStreamAttrValue value = {};

	CUDA(cudaStreamGetAttribute(
		stream, cudaStreamAttributeSynchronizationPolicy, &value));
	return value.syncPolicy;
}

static void numbers(cudaStream_t a, cudaStream_t b)
{
	std::set<unsigned long long> seen = {
		number(a), number(b), number(cudaStreamLegacy), number(cudaStreamPerThread)};
	unsigned long long other = 0;

	CHECK_EQ(seen.size(), 4);
	CHECK_EQ(number(a), number(a));
	CHECK_EQ(number(NULL), number(cudaStreamLegacy));
	std::thread([&] { other = number(cudaStreamPerThread); }).join();
	CHECK(!seen.count(other));
	CUDA_IS(cudaErrorInvalidValue, cudaStreamGetId(a, NULL));
}

static void priorities()
{
	int least, greatest, got;
	cudaStream_t stream;

	CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	CHECK(greatest <= least);
	for (int asked : {greatest - 100, greatest, least, least + 100}) {
		CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, asked));
		CUDA(cudaStreamGetPriority(stream, &got));
		CHECK_EQ(got, asked < greatest ? greatest : asked > least ? least : asked);
		CUDA(cudaStreamDestroy(stream));
	}
	CUDA(cudaStreamGetPriority(NULL, &got));
	CHECK_EQ(got, 0);
	CUDA(cudaDeviceGetStreamPriorityRange(NULL, NULL));
}

static void copied_to(cudaStream_t from, cudaStream_t to)
{
	cudaStreamAttrValue value = {};

	value.syncPolicy = cudaSyncPolicyYield;
	CUDA(cudaStreamSetAttribute(
		from, cudaStreamAttributeSynchronizationPolicy, &value));
	CHECK_EQ(policy(from), (int)cudaSyncPolicyYield);
	CHECK(policy(to) != (int)cudaSyncPolicyYield);
	CUDA(cudaStreamCopyAttributes(to, from));
	CHECK_EQ(policy(to), (int)cudaSyncPolicyYield);
	CUDA_IS(cudaErrorInvalidValue,
		cudaStreamGetAttribute(from, (cudaStreamAttrID)4711, &value));
	CUDA_IS(cudaErrorInvalidValue,
		cudaStreamSetAttribute(from, (cudaStreamAttrID)4711, &value));
	CUDA_IS(cudaErrorInvalidValue, cudaGetLastError());
}

int main()
{
	cudaStream_t a, b;
	unsigned flags;

	CUDA(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
	CUDA(cudaStreamCreate(&b));
	CUDA(cudaStreamGetFlags(a, &flags));
	CHECK_EQ(flags, cudaStreamNonBlocking);
	CUDA(cudaStreamGetFlags(b, &flags));
	CHECK_EQ(flags, cudaStreamDefault);
#if CUDART_VERSION >= 12080
	int device = -1;

	CUDA(cudaStreamGetDevice(a, &device));
	CHECK_EQ(device, 0);
#endif
	numbers(a, b);
	priorities();
	copied_to(a, b);
	CUDA(cudaStreamDestroy(a));
	CUDA(cudaStreamDestroy(b));
	printf("streams are what was asked for\n");
	return 0;
}
