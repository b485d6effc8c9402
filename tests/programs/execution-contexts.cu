// SPDX-License-Identifier: Apache-2.0
/* The runtime's execution contexts (CUDA 13.1): a device's and green ones, with streams and events
 * of their own. By name, since older runtimes have none. */
#include "check.h"

#include <cuda.h>
#include <dlfcn.h>

typedef struct execution *context;

template <typename F> static F runtime(const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	if (!found)
		SKIP("the runtime has no %s", name);
	return (F)found;
}

__global__ void fill(int *data, int value)
{
	data[blockIdx.x * blockDim.x + threadIdx.x] = value + threadIdx.x;
}

#if CUDART_VERSION >= 13000
/* A node that is run if its handle, of such a context, says so from the start. */
static void decides(context of, int *data)
{
	auto handle_of = runtime<cudaError_t (*)(cudaGraphConditionalHandle *, cudaGraph_t, context,
		unsigned, unsigned)>("cudaGraphConditionalHandleCreate_v2");

	for (unsigned preset = 0; preset < 2; preset++) {
		cudaGraphNodeParams params = {};
		cudaMemsetParams fill = {};
		cudaGraphConditionalHandle handle;
		cudaGraphNode_t node;
		cudaGraphExec_t exec;
		cudaGraph_t graph;
		int got;

		CUDA(cudaGraphCreate(&graph, 0));
		CUDA_IS(cudaErrorInvalidValue, handle_of(NULL, graph, of, 0, 0));
		(void)cudaGetLastError();
		CUDA(handle_of(&handle, graph, of, preset, cudaGraphCondAssignDefault));
		params.type = cudaGraphNodeTypeConditional;
		params.conditional.handle = handle;
		params.conditional.type = cudaGraphCondTypeIf;
		params.conditional.size = 1;
		CUDA(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &params));
		fill.dst = data;
		fill.elementSize = 4;
		fill.width = fill.height = 1;
		fill.value = 4711;
		CUDA(cudaGraphAddMemsetNode(&node, params.conditional.phGraph_out[0], NULL, 0, &fill));
		CUDA(cudaGraphInstantiate(&exec, graph, 0));
		CUDA(cudaMemset(data, 0, 4));
		CUDA(cudaGraphLaunch(exec, 0));
		CUDA(cudaMemcpy(&got, data, 4, cudaMemcpyDeviceToHost));
		CHECK_EQ(got, preset ? 4711 : 0);
		CUDA(cudaGraphExecDestroy(exec));
		CUDA(cudaGraphDestroy(graph));
	}
}
#endif

int main(void)
{
	auto device_resource = runtime<cudaError_t (*)(int, CUdevResource *, int)>(
		"cudaDeviceGetDevResource");
	auto split = runtime<cudaError_t (*)(CUdevResource *, unsigned *, const CUdevResource *,
		CUdevResource *, unsigned, unsigned)>("cudaDevSmResourceSplitByCount");
	auto describe = runtime<cudaError_t (*)(CUdevResourceDesc *, CUdevResource *, unsigned)>(
		"cudaDevResourceGenerateDesc");
	auto create = runtime<cudaError_t (*)(context *, CUdevResourceDesc, int, unsigned)>(
		"cudaGreenCtxCreate");
	auto destroy = runtime<cudaError_t (*)(context)>("cudaExecutionCtxDestroy");
	auto resource_of = runtime<cudaError_t (*)(context, CUdevResource *, int)>(
		"cudaExecutionCtxGetDevResource");
	auto device_of =
		runtime<cudaError_t (*)(int *, context)>("cudaExecutionCtxGetDevice");
	auto id_of = runtime<cudaError_t (*)(context, unsigned long long *)>(
		"cudaExecutionCtxGetId");
	auto stream_create = runtime<cudaError_t (*)(cudaStream_t *, context, unsigned, int)>(
		"cudaExecutionCtxStreamCreate");
	auto synchronize = runtime<cudaError_t (*)(context)>("cudaExecutionCtxSynchronize");
	auto of_device = runtime<cudaError_t (*)(context *, int)>("cudaDeviceGetExecutionCtx");
	auto stream_resource = runtime<cudaError_t (*)(cudaStream_t, CUdevResource *, int)>(
		"cudaStreamGetDevResource");
	CUdevResource whole, part[2], told;
	CUdevResourceDesc descriptor;
	unsigned long long id, other;
	context green, primary;
	cudaStream_t stream;
	unsigned groups = 2;
	int *data, host[256], device = -1;

	CUDA(cudaFree(0));
	CUDA(device_resource(0, &whole, CU_DEV_RESOURCE_TYPE_SM));
	CUDA(split(NULL, &groups, &whole, NULL, 0, 1));
	if (groups < 2)
		SKIP("too few processors to split");
	groups = 2;
	CUDA(split(part, &groups, &whole, NULL, 0, 1));
	CUDA(describe(&descriptor, &part[0], 1));
	CUDA(create(&green, descriptor, 0, 0));
	CUDA(resource_of(green, &told, CU_DEV_RESOURCE_TYPE_SM));
	CHECK_EQ(told.sm.smCount, part[0].sm.smCount);
	CUDA(device_of(&device, green));
	CHECK_EQ(device, 0);
	CUDA(of_device(&primary, 0));
	CUDA(id_of(green, &id));
	CUDA(id_of(primary, &other));
	CHECK(id != other);
	CUDA(resource_of(primary, &told, CU_DEV_RESOURCE_TYPE_SM));
	CHECK_EQ(told.sm.smCount, whole.sm.smCount);

	CUDA(cudaMalloc((void **)&data, sizeof(host)));
	CUDA(stream_create(&stream, green, cudaStreamNonBlocking, 0));
	CUDA(stream_resource(stream, &told, CU_DEV_RESOURCE_TYPE_SM));
	CHECK_EQ(told.sm.smCount, part[0].sm.smCount);
	fill<<<1, 256, 0, stream>>>(data, 1000);
	LAUNCHED();
	CUDA(synchronize(green));
	CUDA(cudaMemcpy(host, data, sizeof(host), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 256; i++)
		CHECK_EQ_AT(i, host[i], 1000 + i);
	CUDA(cudaStreamDestroy(stream));
#if CUDART_VERSION >= 13000
	decides(NULL, data);
	decides(primary, data);
#endif
	CUDA(destroy(green));
	CUDA(cudaFree(data));
	return 0;
}
