/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches.  The fast path adds to the driver's launch one look at the current context and one
 * table lookup; what the runtime calls by other names than the driver is sorted out only after
 * a failure.
 */
#include "shim/runtime/register.h"

#include <limits.h>

static bool beyond(CUdevice device, CUdevice_attribute attribute, unsigned value)
{
	int limit;

	return !value || (cuDeviceGetAttribute(&limit, attribute, device) == CUDA_SUCCESS &&
				 value > (unsigned)limit);
}

/* Where the driver says "invalid value", CUDA 12's runtime says "invalid configuration
 * argument"; CUDA 13's passes the driver's word on (both seen on an H200). */
static cudaError_t launch_error(CUresult status, dim3 grid, dim3 block)
{
#if CUDART_VERSION >= 13000
	const bool passed_on = true;
#else
	const bool passed_on = false;
#endif
	CUdevice device;
	uint64_t threads = (uint64_t)block.x * block.y * block.z;

	if (status == CUDA_ERROR_INVALID_IMAGE || status == CUDA_ERROR_INVALID_HANDLE ||
		status == CUDA_ERROR_NOT_FOUND)
		return status == CUDA_ERROR_INVALID_HANDLE ? cudaErrorInvalidResourceHandle
							   : cudaErrorInvalidDeviceFunction;
	if (passed_on || status != CUDA_ERROR_INVALID_VALUE ||
		cuCtxGetDevice(&device) != CUDA_SUCCESS)
		return runtime_status(status);
	if (beyond(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, block.x) ||
		beyond(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, block.y) ||
		beyond(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, block.z) ||
		beyond(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, grid.x) ||
		beyond(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, grid.y) ||
		beyond(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, grid.z) ||
		beyond(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
			threads > UINT_MAX ? UINT_MAX : (unsigned)threads))
		return cudaErrorInvalidConfiguration;
	return cudaErrorInvalidValue;
}

/* Makes the context of the STREAM current, to be popped, and says the kernel's FUNCTION there.
 * False: it is the thread's, or there is no such stream; and for CUDA 12, whose runtime
 * launches in the current context only (seen on an H200; CUDA 13's goes to another device's,
 * too). */
static bool elsewhere(struct symbol *symbol, cudaStream_t stream, CUfunction *function)
{
	CUcontext theirs, ours, popped;

	if (CUDART_VERSION < 13000 || !stream || stream == cudaStreamLegacy ||
		stream == cudaStreamPerThread || cuStreamGetCtx((CUstream)stream, &theirs) ||
		cuCtxGetCurrent(&ours) || ours == theirs || cuCtxPushCurrent(theirs))
		return false;
	if (!runtime_enter() && !register_bound(symbol, function))
		return true;
	(void)cuCtxPopCurrent(&popped);
	return false;
}

/* INVALID_HANDLE: there is no such place. */
static CUresult launch_elsewhere(struct symbol *symbol, dim3 grid, dim3 block, void **args,
	size_t shared, cudaStream_t stream)
{
	CUfunction function;
	CUcontext popped;
	CUresult status;

	if (!elsewhere(symbol, stream, &function))
		return CUDA_ERROR_INVALID_HANDLE;
	status = cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
		(unsigned)shared, (CUstream)stream, args, NULL);
	(void)cuCtxPopCurrent(&popped);
	return status;
}

/* After the driver said STATUS of the kernel's FUNCTION, which is not success. */
__attribute__((noinline)) static cudaError_t launch_again(CUresult status,
	struct symbol *symbol, dim3 grid, dim3 block, void **args, size_t shared,
	cudaStream_t stream)
{
	CUfunction function;
	cudaError_t error;

	for (int again = 0;; again++) {
		/* The stream is none, or another context's; or the context was destroyed by
		 * the driver API, and another has taken its handle: then the kernel's
		 * function there is new. */
		if (status == CUDA_ERROR_INVALID_HANDLE)
			status = launch_elsewhere(symbol, grid, block, args, shared, stream);
		if (status != CUDA_ERROR_INVALID_HANDLE || again)
			return status ? launch_error(status, grid, block) : cudaSuccess;
		/* Nothing of the other context's is bound any more. */
		error = runtime_enter() ?: register_bind(symbol, &function);
		if (error)
			return error;
		status = cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y,
			block.z, (unsigned)shared, (CUstream)stream, args, NULL);
		if (status == CUDA_SUCCESS)
			return cudaSuccess;
	}
}

/* SYMBOL may be NULL. Needs a context. */
__attribute__((always_inline)) static inline cudaError_t launch(struct symbol *symbol,
	dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream)
{
	CUfunction function;
	CUresult status;
	cudaError_t error;

	if (unlikely(!symbol))
		return cudaErrorInvalidDeviceFunction;
	if (unlikely(shared > UINT_MAX))
		return cudaErrorInvalidValue;
	error = register_bound(symbol, &function);
	if (unlikely(error))
		return error;
	status = cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
		(unsigned)shared, (CUstream)stream, args, NULL);
	return likely(status == CUDA_SUCCESS)
		       ? cudaSuccess
		       : launch_again(status, symbol, grid, block, args, shared, stream);
}

cudaError_t hand_cudaLaunchKernel(const void *func, dim3 gridDim, dim3 blockDim, void **args,
	size_t sharedMem, cudaStream_t stream)
{
	struct symbol *symbol;
	cudaError_t error = runtime_enter();

	if (unlikely(error))
		return error;
	symbol = table_find(&register_table, func);
	return likely(symbol) ? launch(symbol, gridDim, blockDim, args, sharedMem, stream)
			      : register_unknown(func);
}

/* nvcc 13's stubs: the handle comes from __cudaGetKernel, which gives the symbol itself. */
cudaError_t hand___cudaLaunchKernel(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim,
	void **args, size_t sharedMem, cudaStream_t stream)
{
	cudaError_t error = runtime_enter();

	if (unlikely(error))
		return error;
	return launch((struct symbol *)kernel, gridDim, blockDim, args, sharedMem, stream);
}

cudaError_t hand_cudaLaunchCooperativeKernel(const void *func, dim3 gridDim, dim3 blockDim,
	void **args, size_t sharedMem, cudaStream_t stream)
{
	CUfunction function;
	CUresult status;
	cudaError_t error = runtime_enter();

	if (!error)
		error = register_function(func, &function);
	if (error)
		return error;
	if (sharedMem > UINT_MAX)
		return cudaErrorInvalidValue;
	status =
		cuLaunchCooperativeKernel(function, gridDim.x, gridDim.y, gridDim.z, blockDim.x,
			blockDim.y, blockDim.z, (unsigned)sharedMem, (CUstream)stream, args);
	return status ? launch_error(status, gridDim, blockDim) : cudaSuccess;
}

#if CUDART_VERSION < 13000
/* One launch of the list, for the driver: the kernel's function in the stream's context. */
static cudaError_t launch_listed(const struct cudaLaunchParams *from, CUDA_LAUNCH_PARAMS *to)
{
	CUcontext context;
	cudaError_t error;

	if (from->sharedMem > UINT_MAX)
		return cudaErrorInvalidValue;
	*to = (CUDA_LAUNCH_PARAMS){.gridDimX = from->gridDim.x,
		.gridDimY = from->gridDim.y,
		.gridDimZ = from->gridDim.z,
		.blockDimX = from->blockDim.x,
		.blockDimY = from->blockDim.y,
		.blockDimZ = from->blockDim.z,
		.sharedMemBytes = (unsigned)from->sharedMem,
		.hStream = (CUstream)from->stream,
		.kernelParams = from->args};
	error = runtime_status(cuStreamGetCtx(to->hStream, &context));
	if (!error)
		error = runtime_status(cuCtxPushCurrent(context));
	if (error)
		return error;
	error = register_function(from->func, &to->function);
	cuCtxPopCurrent(&context);
	return error;
}

cudaError_t hand_cudaLaunchCooperativeKernelMultiDevice(
	struct cudaLaunchParams *launchParamsList, unsigned int numDevices, unsigned int flags)
{
	CUDA_LAUNCH_PARAMS list[64]; /* devices that a process can have at the most */
	cudaError_t error = runtime_enter();

	if (error)
		return error;
	if (!launchParamsList || !numDevices || numDevices > sizeof(list) / sizeof(list[0]))
		return cudaErrorInvalidValue;
	for (unsigned i = 0; !error && i < numDevices; i++)
		error = launch_listed(&launchParamsList[i], &list[i]);
	if (error)
		return error;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
	return runtime_status(cuLaunchCooperativeKernelMultiDevice(list, numDevices, flags));
#pragma GCC diagnostic pop
}
#endif

/* The attributes are the driver's own, under other names. */
_Static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute), "attribute layout");
_Static_assert(offsetof(cudaLaunchAttribute, val) == offsetof(CUlaunchAttribute, value),
	"attribute layout");

static cudaError_t launch_config(const cudaLaunchConfig_t *config, CUlaunchConfig *driver)
{
	if (!config || (config->numAttrs && !config->attrs) ||
		config->dynamicSmemBytes > UINT_MAX)
		return cudaErrorInvalidValue;
	*driver = (CUlaunchConfig){
		.gridDimX = config->gridDim.x,
		.gridDimY = config->gridDim.y,
		.gridDimZ = config->gridDim.z,
		.blockDimX = config->blockDim.x,
		.blockDimY = config->blockDim.y,
		.blockDimZ = config->blockDim.z,
		.sharedMemBytes = (unsigned)config->dynamicSmemBytes,
		.hStream = (CUstream)config->stream,
		.attrs = (CUlaunchAttribute *)config->attrs,
		.numAttrs = config->numAttrs,
	};
	return cudaSuccess;
}

cudaError_t hand_cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func,
	void **args, cudaStream_t null_stream)
{
	CUlaunchConfig driver;
	CUfunction function;
	CUcontext popped;
	CUresult status;
	struct symbol *symbol;
	cudaError_t error = launch_config(config, &driver);

	if (!error)
		error = runtime_enter();
	if (!error)
		error = register_function(func, &function);
	if (error)
		return error;
	if (!driver.hStream)
		driver.hStream = (CUstream)null_stream;
	status = cuLaunchKernelEx(&driver, function, args, NULL);
	symbol = status == CUDA_ERROR_INVALID_HANDLE ? table_find(&register_table, func) : NULL;
	if (symbol && elsewhere(symbol, (cudaStream_t)driver.hStream, &function)) {
		status = cuLaunchKernelEx(&driver, function, args, NULL);
		(void)cuCtxPopCurrent(&popped);
	}
	return status ? launch_error(status, config->gridDim, config->blockDim) : cudaSuccess;
}

static cudaError_t clusters(int *answer, const void *func, const cudaLaunchConfig_t *config,
	CUresult (*ask)(int *, CUfunction, const CUlaunchConfig *))
{
	CUlaunchConfig driver;
	CUfunction function;
	cudaError_t error = launch_config(config, &driver);

	if (!error)
		error = runtime_enter();
	if (!error)
		error = register_function(func, &function);
	return error ? error : runtime_status(ask(answer, function, &driver));
}

cudaError_t hand_cudaOccupancyMaxActiveClusters(
	int *numClusters, const void *func, const cudaLaunchConfig_t *launchConfig)
{
	return clusters(numClusters, func, launchConfig, cuOccupancyMaxActiveClusters);
}

cudaError_t hand_cudaOccupancyMaxPotentialClusterSize(
	int *clusterSize, const void *func, const cudaLaunchConfig_t *launchConfig)
{
	return clusters(clusterSize, func, launchConfig, cuOccupancyMaxPotentialClusterSize);
}
