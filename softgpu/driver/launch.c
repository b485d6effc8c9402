/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches: arguments are checked and the parameters taken at the call; an executor hands the
 * kernel to the interpreter, and what goes wrong there sticks to the context.
 */
#include "softgpu/driver/softgpu.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "softgpu/driver/graph/graph.h"
#include "softgpu/driver/launch_core.h"
#include "softgpu/driver/work/work.h"
#include "softgpu/driver/task.h"

#define ATTRIBUTES_MAX 64

static atomic_uint launches;

static CUresult result_of(enum ptx_status status)
{
	switch (status) {
	case PTX_OK: return CUDA_SUCCESS;
	case PTX_NOT_SUPPORTED: return CUDA_ERROR_NOT_SUPPORTED;
	case PTX_NO_MEMORY: return CUDA_ERROR_OUT_OF_MEMORY;
	case PTX_ILLEGAL_ADDRESS: return CUDA_ERROR_ILLEGAL_ADDRESS;
	case PTX_MISALIGNED_ADDRESS: return CUDA_ERROR_MISALIGNED_ADDRESS;
	case PTX_ASSERT: return CUDA_ERROR_ASSERT;
	case PTX_ILLEGAL_INSTRUCTION: return CUDA_ERROR_ILLEGAL_INSTRUCTION;
	case PTX_STACK_ERROR: return CUDA_ERROR_HARDWARE_STACK_ERROR;
	case PTX_TIMEOUT: return CUDA_ERROR_LAUNCH_TIMEOUT;
	case PTX_INVALID: return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	default: return CUDA_ERROR_LAUNCH_FAILED;
	}
}

/* The injected hang: nothing but the passing of time, until it is cancelled or times out. */
static enum ptx_status hang(const struct launch_op *op)
{
	uint64_t begin = softgpu_now_ns();
	struct timespec pause = {.tv_nsec = 1000000};

	while (!atomic_load(op->ptx.cancel)) {
		if (op->ptx.timeout_ns && softgpu_now_ns() - begin >= op->ptx.timeout_ns)
			return PTX_TIMEOUT;
		nanosleep(&pause, NULL);
	}
	return PTX_TIMEOUT;
}

/* Whether the work that now begins is to have a wrong bit. */
bool cuSoftgpuTaskSpoils(void)
{
	static atomic_uint works;

	return settings.fault_wrong &&
	       (atomic_fetch_add(&works, 1) + 1) % settings.fault_wrong == 0;
}

static void launch_run(struct op *base)
{
	atomic_bool spoilt = false;
	struct launch_op *op = (struct launch_op *)base;
	struct ptx_error error = {0};
	unsigned number = atomic_fetch_add(&launches, 1) + 1;
	enum ptx_status status;
	CUresult result;

	op->ptx.params = op->params; /* the operation may be a copy of a node's */
	op->ptx.spoil = cuSoftgpuTaskSpoils() ? &spoilt : NULL;
	if (device_fallen(base->context->device->ordinal)) {
		soft_log_note("kernel %s: the device has fallen", op->function->name);
		context_fault(base->context, CUDA_ERROR_ECC_UNCORRECTABLE);
		return;
	}
	if (number == settings.fault_launch) {
		status = PTX_ILLEGAL_ADDRESS;
		strcpy(error.text, "injected by VCUDA_SOFTGPU_FAULT");
	} else if (number == settings.fault_hang) {
		status = hang(op);
		strcpy(error.text, "injected by VCUDA_SOFTGPU_FAULT");
	} else {
		status = ptx_launch(&op->ptx, &error);
	}
	if (status == PTX_OK)
		return;
	result = result_of(status);
	if (result == CUDA_ERROR_NOT_SUPPORTED)
		soft_log_problem("kernel %s, PTX line %d: %s: not supported",
			op->function->name, error.line, error.text);
	else
		soft_log_note("kernel %s, PTX line %d: %s (CUDA error %d)", op->function->name,
			error.line, error.text, (int)result);
	context_fault(base->context, result);
}

/* For kernels that ask. */
static int attribute(int *value, int attribute, int device)
{
	return (int)cuDeviceGetAttribute(value, (CUdevice_attribute)attribute, device);
}

static void launch_tell(const struct op *base, struct softgpu_work *work)
{
	const struct launch_op *op = (const struct launch_op *)base;
	const struct ptx_kernel_info *info = &op->function->info;
	const uint32_t *cluster = op->ptx.cluster;
	struct softgpu_kernel *kernel = &work->kernel;

	work->kind = SOFTGPU_WORK_KERNEL;
	*kernel = (struct softgpu_kernel){.name = op->function->name,
		.cluster_policy = op->hints.cluster_policy,
		.registers = info->registers,
		.static_shared = (uint32_t)info->static_shared,
		.dynamic_shared = op->ptx.dynamic_shared,
		.local = (uint32_t)info->local_bytes,
		.carveout = op->function->carveout,
		.cooperative = op->ptx.cooperative};
	memcpy(kernel->grid, op->ptx.grid, sizeof(kernel->grid));
	memcpy(kernel->block, op->ptx.block, sizeof(kernel->block));
	if (!op->hints.has_cluster && cluster[0] * cluster[1] * cluster[2] == 1)
		return;
	memcpy(kernel->cluster, cluster, sizeof(kernel->cluster));
	kernel->cluster_most = function_cluster_most(op->function);
}

static void launch_drop(struct op *op)
{
	module_put(((struct launch_op *)op)->function->module);
	free(op);
}

static void launch_copied(struct op *op)
{
	module_get(((struct launch_op *)op)->function->module);
}

/* The largest cluster that fits; every dimension divides the grid. */
static bool cluster_valid(
	const struct CUfunc_st *function, const uint32_t cluster[3], const uint32_t grid[3])
{
	uint64_t size = (uint64_t)cluster[0] * cluster[1] * cluster[2];

	return size && size <= function_cluster_most(function) && grid[0] % cluster[0] == 0 &&
	       grid[1] % cluster[1] == 0 && grid[2] % cluster[2] == 0;
}

/* Whole clusters of the regular size, which the grid is whole ones of; without effect where
 * there is none. */
static bool preferred_valid(const struct launch *launch)
{
	const uint32_t *cluster = launch->ptx.cluster;
	const unsigned *preferred = launch->hints.preferred;

	if (!launch->hints.has_preferred ||
		(!launch->hints.has_cluster && cluster[0] * cluster[1] * cluster[2] == 1))
		return true;
	for (int i = 0; i < 3; i++)
		if (!preferred[i] || preferred[i] % cluster[i] ||
			launch->ptx.grid[i] % preferred[i])
			return false;
	return true;
}

CUresult launch_check(const struct launch *launch)
{
	const struct ptx_kernel_info *info = &launch->function->info;
	const uint32_t *grid = launch->ptx.grid, *block = launch->ptx.block;
	uint64_t threads = (uint64_t)block[0] * block[1] * block[2];

	if (!grid[0] || !grid[1] || !grid[2] || grid[0] > GRID_X_MAX || grid[1] > GRID_YZ_MAX ||
		grid[2] > GRID_YZ_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (!block[0] || !block[1] || !block[2] || block[0] > THREADS_PER_BLOCK ||
		block[1] > THREADS_PER_BLOCK || block[2] > BLOCK_Z_MAX ||
		threads > THREADS_PER_BLOCK)
		return CUDA_ERROR_INVALID_VALUE;
	if (threads > info->max_threads)
		return CUDA_ERROR_INVALID_VALUE;
	if (info->required[0] &&
		(block[0] != info->required[0] || block[1] != info->required[1] ||
			block[2] != info->required[2]))
		return CUDA_ERROR_INVALID_VALUE;
	if (launch->dynamic_shared > (size_t)launch->function->max_dynamic_shared)
		return CUDA_ERROR_INVALID_VALUE;
	if (!cluster_valid(launch->function, launch->ptx.cluster, grid) ||
		!preferred_valid(launch))
		return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	return CUDA_SUCCESS;
}

CUresult launch_cooperative_check(const struct launch *launch)
{
	const uint32_t *grid = launch->ptx.grid, *block = launch->ptx.block;
	uint64_t blocks;
	int resident = 0;
	CUresult ret = cuOccupancyMaxActiveBlocksPerMultiprocessor(&resident, launch->function,
		(int)(block[0] * block[1] * block[2]), launch->dynamic_shared);

	if (ret)
		return ret;
	if (__builtin_mul_overflow((uint64_t)grid[0] * grid[1], (uint64_t)grid[2], &blocks) ||
		blocks > (uint64_t)resident * device_sm_count())
		return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
	return CUDA_SUCCESS;
}

/* The parameters from an array of pointers, or from one buffer named in EXTRA. */
static CUresult take_params(
	const struct ptx_kernel_info *info, void **params, void **extra, unsigned char *to)
{
	const void *buffer = NULL;
	size_t size = 0;

	if (params && extra)
		return CUDA_ERROR_INVALID_VALUE;
	if (params) {
		for (unsigned i = 0; i < info->param_count; i++) {
			if (!params[i])
				return CUDA_ERROR_INVALID_VALUE;
			memcpy(to + info->params[i].offset, params[i], info->params[i].size);
		}
		return CUDA_SUCCESS;
	}
	if (!extra)
		return info->param_count ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	for (unsigned i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
		if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
			buffer = extra[i + 1];
		else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[i + 1])
			size = *(size_t *)extra[i + 1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (info->param_bytes && (!buffer || size < info->param_bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (info->param_bytes)
		memcpy(to, buffer, info->param_bytes);
	return CUDA_SUCCESS;
}

/* The operation, checked and with its parameters taken. */
static CUresult launch_op(const struct launch *launch, struct CUctx_st *context, void **params,
	void **extra, struct launch_op **out)
{
	const struct ptx_kernel_info *info = &launch->function->info;
	struct launch_op *op;
	CUresult ret;

	if (launch->function->module->context != context)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!launch->function->kernel) {
		soft_log_problem("kernel %s: machine code only: the software GPU runs PTX",
			launch->function->name);
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	ret = launch_check(launch);
	if (!ret && launch->ptx.cooperative)
		ret = launch_cooperative_check(launch);
	if (ret)
		return ret;
	op = calloc(1, sizeof(*op) + info->param_bytes);
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	ret = take_params(info, params, extra, op->params);
	if (ret) {
		free(op);
		return ret;
	}
	op->op.kind = OP_WORK;
	op->op.run = launch_run;
	op->op.drop = launch_drop;
	op->op.copied = launch_copied;
	op->op.profile.tell = launch_tell;
	op->op.bytes = (uint32_t)(sizeof(*op) + info->param_bytes);
	op->op.node = CU_GRAPH_NODE_TYPE_KERNEL;
	op->function = launch->function;
	module_get(op->function->module);
	op->ptx = launch->ptx;
	op->hints = launch->hints;
	op->ptx.kernel = launch->function->kernel;
	op->ptx.dynamic_shared = (uint32_t)launch->dynamic_shared;
	op->ptx.timeout_ns = settings.timeout_ns;
	op->ptx.cancel = &context->cancel;
	op->ptx.device = context->device->ordinal;
	op->ptx.devices = (int)settings.devices;
	op->ptx.attribute = attribute;
	op->ptx.resident = occupancy_resident;
	*out = op;
	return CUDA_SUCCESS;
}

static CUresult launch_submit(
	struct launch *launch, struct CUstream_st *stream, void **params, void **extra)
{
	struct launch_op *op;
	CUresult ret = launch_op(launch, stream->context, params, extra, &op);

	if (ret)
		return ret;
	return queue_submit(stream, &op->op, false) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* An event that a launch's attributes ask for, once the launch is queued. */
static CUresult launch_events(const CUlaunchConfig *config, CUstream stream)
{
	for (unsigned i = 0; i < config->numAttrs; i++) {
		const CUlaunchAttribute *attr = &config->attrs[i];
		CUresult ret = CUDA_SUCCESS;

		if (attr->id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
			ret = cuEventRecord(attr->value.launchCompletionEvent.event, stream);
		else if (attr->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
			ret = cuEventRecord(attr->value.programmaticEvent.event, stream);
		if (ret)
			return ret;
	}
	return CUDA_SUCCESS;
}

/* A launch may have some more, which are for streams and events. */
static CUresult launch_attributes(const CUlaunchConfig *config, struct launch *launch)
{
	if (config->numAttrs && !config->attrs)
		return CUDA_ERROR_INVALID_VALUE;
	if (config->numAttrs > ATTRIBUTES_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < config->numAttrs; i++) {
		const CUlaunchAttribute *attr = &config->attrs[i];
		CUresult ret = launch_attribute_set(
			&launch->ptx, &launch->hints, attr->id, &attr->value);

		if (ret == CUDA_ERROR_INVALID_VALUE && attr->id >= 0 && attr->id <= 32)
			continue;
		if (ret)
			return ret;
	}
	return CUDA_SUCCESS;
}

/* ---- of a graph's node ---- */

/* What the function itself says about clusters. */
static void launch_cluster(struct launch *launch)
{
	for (int i = 0; i < 3; i++) {
		if (launch->function->info.cluster[i])
			launch->ptx.cluster[i] = launch->function->info.cluster[i];
		else if (launch->function->cluster[i])
			launch->ptx.cluster[i] = (uint32_t)launch->function->cluster[i];
	}
}

CUresult launch_op_new(const CUDA_KERNEL_NODE_PARAMS *p, struct op **out)
{
	struct launch launch = {.ptx = {.cluster = {1, 1, 1}}};
	struct CUctx_st *context;
	struct launch_op *op = NULL;
	CUresult ret;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	ret = soft_context_current(&context);
	if (!ret && p->ctx && p->ctx != context)
		ret = CUDA_ERROR_NOT_SUPPORTED; /* one context a graph */
	if (!ret)
		ret = function_use(
			p->func ? p->func : (CUfunction)p->kern, context, &launch.function);
	if (ret)
		return ret;
	launch.ptx.grid[0] = p->gridDimX;
	launch.ptx.grid[1] = p->gridDimY;
	launch.ptx.grid[2] = p->gridDimZ;
	launch.ptx.block[0] = p->blockDimX;
	launch.ptx.block[1] = p->blockDimY;
	launch.ptx.block[2] = p->blockDimZ;
	launch.dynamic_shared = p->sharedMemBytes;
	launch.hints.domain_map.remote = 1;
	/* As NVIDIA's driver: a cluster without a width is none to a node. */
	if (launch.function->info.cluster[0] || launch.function->cluster[0])
		launch_cluster(&launch);
	/* Of whatever context: a node brings its own. */
	ret = launch_op(
		&launch, launch.function->module->context, p->kernelParams, p->extra, &op);
	if (!ret)
		*out = &op->op;
	return ret;
}

void launch_op_read(struct op *base, CUDA_KERNEL_NODE_PARAMS *p)
{
	struct launch_op *op = (struct launch_op *)base;
	const struct ptx_kernel_info *info = &op->function->info;

	for (unsigned i = 0; i < info->param_count && i < PARAMS_READ; i++)
		op->pointers[i] = op->params + info->params[i].offset;
	*p = (CUDA_KERNEL_NODE_PARAMS){.func = op->function,
		.gridDimX = op->ptx.grid[0],
		.gridDimY = op->ptx.grid[1],
		.gridDimZ = op->ptx.grid[2],
		.blockDimX = op->ptx.block[0],
		.blockDimY = op->ptx.block[1],
		.blockDimZ = op->ptx.block[2],
		.sharedMemBytes = op->ptx.dynamic_shared,
		.kernelParams = op->pointers,
		.ctx = op->function->module->context};
}

static CUresult launch(const CUlaunchConfig *config, CUfunction handle, void **params,
	void **extra, CUstream hStream, bool cooperative)
{
	struct launch launch = {
		.ptx = {.grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
			.block = {config->blockDimX, config->blockDimY, config->blockDimZ},
			.cluster = {1, 1, 1},
			.cooperative = cooperative},
		.dynamic_shared = config->sharedMemBytes,
	};
	struct CUstream_st *stream;
	CUresult ret = stream_use(hStream, &stream);

	if (ret)
		return ret;
	ret = function_use(handle, stream->context, &launch.function);
	if (!ret)
		launch_cluster(&launch);
	if (!ret)
		ret = launch_attributes(config, &launch);
	if (!ret)
		ret = launch_submit(&launch, stream, params, extra);
	stream_done(stream);
	return ret ? ret : launch_events(config, hStream);
}

CUresult cuLaunchKernelEx(
	const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra)
{
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	return launch(config, f, kernelParams, extra, config->hStream, false);
}

CUresult cuLaunchKernelEx_ptsz(
	const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra)
{
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	return launch(config, f, kernelParams, extra, stream_ptsz(config->hStream), false);
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
	unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
	unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
	void **kernelParams, void **extra)
{
	CUlaunchConfig config = {gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ,
		sharedMemBytes, hStream, NULL, 0};

	return launch(&config, f, kernelParams, extra, hStream, false);
}

CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
	unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
	unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
	void **kernelParams)
{
	CUlaunchConfig config = {gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ,
		sharedMemBytes, hStream, NULL, 0};

	return launch(&config, f, kernelParams, NULL, hStream, true);
}
