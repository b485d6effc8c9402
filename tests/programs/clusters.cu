// SPDX-License-Identifier: Apache-2.0
/*
 * Clusters of blocks: each block reads its neighbour's shared memory, by a size that the kernel
 * was compiled for and by one that the launch asks for; a grid that is not whole clusters, and
 * a cluster that is too large, are refused at the launch, and nothing after it fails.
 */
#include "check.h"

enum { THREADS = 32, BLOCKS = 16 };

__device__ static unsigned rank()
{
	unsigned value;

	asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(value));
	return value;
}

__device__ static unsigned blocks()
{
	unsigned value;

	asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(value));
	return value;
}

__device__ static void meet()
{
	asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory");
}

/* What the next block of the cluster has in its shared memory. */
__device__ static void neighbour(int *out)
{
	__shared__ int own[THREADS];
	unsigned at, value;

	own[threadIdx.x] = 100 * rank() + threadIdx.x;
	meet();
	asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
		: "=r"(at)
		: "r"((unsigned)__cvta_generic_to_shared(&own[threadIdx.x])),
		"r"((rank() + 1) % blocks()));
	asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(at) : "memory");
	out[blockIdx.x * THREADS + threadIdx.x] = value;
	meet();
}

__global__ void asked(int *out)
{
	neighbour(out);
}

#ifdef __clang__ /* which has no such attribute */
#define COMPILED_FOR_FOUR
#else
#define COMPILED_FOR_FOUR __cluster_dims__(4, 1, 1)
#endif

__global__ void COMPILED_FOR_FOUR compiled(int *out)
{
	neighbour(out);
}

static cudaError_t launch_of(
	void (*kernel)(int *), int *out, unsigned grid, unsigned cluster, unsigned preferred,
	cudaStream_t stream = 0)
{
	cudaLaunchAttribute attributes[2] = {};
	cudaLaunchConfig_t config = {};

	attributes[0].id = cudaLaunchAttributeClusterDimension;
	attributes[0].val.clusterDim.x = cluster;
	attributes[0].val.clusterDim.y = attributes[0].val.clusterDim.z = 1;
	config.gridDim = dim3(grid);
	config.blockDim = dim3(THREADS);
	config.stream = stream;
	config.attrs = attributes;
	config.numAttrs = 1;
	if (preferred) {
		attributes[1] = attributes[0];
		attributes[1].id = (cudaLaunchAttributeID)11; /* PreferredClusterDimension */
		attributes[1].val.clusterDim.x = preferred;
		config.numAttrs = 2;
	}
	return cudaLaunchKernelEx(&config, kernel, out);
}

static cudaError_t launch(int *out, unsigned grid, unsigned cluster)
{
	return launch_of(asked, out, grid, cluster, 0);
}

static void check(const int *out, unsigned cluster)
{
	int host[BLOCKS * THREADS];

	CUDA(cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost));
	for (unsigned i = 0; i < BLOCKS * THREADS; i++)
		CHECK_EQ_AT(i, host[i],
			(int)(100 * ((i / THREADS % cluster + 1) % cluster) + i % THREADS));
	CUDA(cudaMemset((void *)out, 0, sizeof(host)));
}

/* A launch with clusters of 2 that may be of 4: each block is in one or in the other. */
static void check_preferred(const int *out)
{
	int host[BLOCKS * THREADS];

	CUDA(cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost));
	for (unsigned i = 0; i < BLOCKS * THREADS; i++) {
		const int of_two = 100 * ((i / THREADS % 2 + 1) % 2) + i % THREADS;
		const int of_four = 100 * ((i / THREADS % 4 + 1) % 4) + i % THREADS;

		if (host[i] != of_two)
			CHECK_EQ_AT(i, host[i], of_four);
	}
	CUDA(cudaMemset((void *)out, 0, sizeof(host)));
}

static void preferred(int *out)
{
	cudaGraphExec_t exec;
	cudaStream_t stream;
	cudaGraph_t graph;

	CUDA(launch_of(asked, out, BLOCKS, 2, 4));
	check_preferred(out);
	CUDA(launch_of(asked, out, BLOCKS, 2, 2));
	check(out, 2);
	/* A grid is whole ones of both. */
	CHECK(launch_of(asked, out, BLOCKS, 2, 6) != cudaSuccess);
	CHECK(cudaGetLastError() != cudaSuccess);
	CUDA(cudaDeviceSynchronize());
	CUDA(cudaStreamCreate(&stream));
	CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CUDA(launch_of(asked, out, BLOCKS, 2, 4, stream));
	CUDA(cudaStreamEndCapture(stream, &graph));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 2; i++) {
		CUDA(cudaGraphLaunch(exec, stream));
		CUDA(cudaStreamSynchronize(stream));
		check_preferred(out);
	}
	CUDA(cudaGraphExecDestroy(exec));
	CUDA(cudaGraphDestroy(graph));
	CUDA(cudaStreamDestroy(stream));
}

static void refused(cudaError_t status)
{
	CUDA_IS(cudaErrorInvalidClusterSize, status);
	CUDA_IS(cudaErrorInvalidClusterSize, cudaGetLastError());
	CUDA(cudaDeviceSynchronize());
}

int main()
{
	cudaFuncAttributes attributes;
	int *out;

	/* The kernels are for compute capability 9.0. */
	if (cudaFuncGetAttributes(&attributes, asked))
		SKIP("the device has no clusters");
	CUDA(cudaMalloc(&out, BLOCKS * THREADS * sizeof(int)));
	for (unsigned cluster : {1, 2, 4, 8}) {
		CUDA(launch(out, BLOCKS, cluster));
		check(out, cluster);
	}
	refused(launch(out, BLOCKS, 3));
	preferred(out);
	refused(launch_of(asked, out, 12, 2, 3)); /* not of whole ones of 2 */
	refused(launch(out, BLOCKS, 16));
	/* Larger than every device has them: this one may, where the kernel allows it. */
	CUDA(cudaFuncSetAttribute(asked, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
	CUDA(launch(out, BLOCKS, 16));
	check(out, 16);
	refused(launch(out, 32, 32));
	refused(launch(out, BLOCKS, 0));
#ifndef __clang__
	compiled<<<BLOCKS, THREADS>>>(out);
	LAUNCHED();
	check(out, 4);
	compiled<<<6, THREADS>>>(out);
	refused(cudaPeekAtLastError());
	CUDA(launch_of(compiled, out, BLOCKS, 4, 0));
	check(out, 4);
	refused(launch_of(compiled, out, BLOCKS, 2, 0));
	/* What a kernel was compiled for cannot be set; of another it can, again and again. */
	CUDA_IS(cudaErrorInvalidValue,
		cudaFuncSetAttribute(compiled, cudaFuncAttributeRequiredClusterWidth, 2));
	CUDA(cudaFuncSetAttribute(compiled, cudaFuncAttributeRequiredClusterDepth, 1));
	cudaGetLastError();
	refused(launch_of(compiled, out, BLOCKS, 2, 0));
	CUDA(launch_of(compiled, out, BLOCKS, 4, 0));
	check(out, 4);
	CUDA(cudaFuncGetAttributes(&attributes, compiled));
	CHECK_EQ(attributes.requiredClusterWidth, 4);
#endif
	for (int width : {2, 4, 0})
		CUDA(cudaFuncSetAttribute(
			asked, cudaFuncAttributeRequiredClusterWidth, width));
	CUDA(cudaDeviceSynchronize());
	CUDA(launch(out, BLOCKS, 2));
	check(out, 2);
	CUDA(cudaFree(out));
	printf("clusters are right\n");
	return 0;
}
