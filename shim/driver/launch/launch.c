/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches: checked (launch_fits.c) against the device's and the function's limits, written
 * straight into the ring, not awaited.  This is the hottest path of the library: no allocation,
 * one lock, and no system call unless the sidecar sleeps.
 */
#include <string.h>

#include "shim/generated/cuda_hand.h"
#include "protocol/generated/cuda_ops.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/generated/vcuda_send.h"
#include "protocol/wire/launch.h"
#include "shim/driver/context/context.h"
#include "shim/driver/forms.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/launch/launch_config.h"
#include "shim/engine/driver.h"
#include "shim/engine/engine.h"
#include "shim/engine/thread.h"
#include "shim/driver/memory/pinned/host.h"
#include "shim/driver/memory/managed/managed.h"
#include "shim/driver/memory/mirror/mirror.h"
#include "shim/driver/module/module.h"
#include "shim/driver/stream/straight.h"
#include "shim/driver/stream/stream.h"
#include "shim/engine/handle.h"

/* kernelParams or extra. */
static CUresult launch_params(struct launch *l, void **params, void **extra)
{
	const struct function_info *info = &l->function->info;

	l->param_bytes = info->param_bytes;
	if (params) {
		if (extra)
			return CUDA_ERROR_INVALID_VALUE;
		if (info->param_count > l->function->layout_count)
			return CUDA_ERROR_NOT_SUPPORTED;
		l->params = params;
		return CUDA_SUCCESS;
	}
	if (!extra)
		return info->param_count ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	l->param_bytes = 0;
	for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
			l->packed = extra[1];
		else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
			l->param_bytes = *(const size_t *)extra[1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (l->param_bytes > FRAME_BODY_MAX / 2 || (l->param_bytes && !l->packed) ||
		(!l->param_bytes && info->param_bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (info->param_count && info->param_count <= l->function->layout_count &&
		l->param_bytes > (info->param_bytes + 7u) / 8 * 8)
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	return CUDA_SUCCESS;
}

/* A block that ends early is none that NVIDIA's driver refuses: zeros follow. */
static size_t launch_param_bytes(const struct launch *l)
{
	const size_t least = l->function->info.param_bytes;

	return l->packed && l->param_bytes < least ? least : l->param_bytes;
}

/* Writes the body: the struct, the attributes, the parameter block. */
static void launch_write(const struct launch *l, unsigned char *to)
{
	struct wire_vcudaLaunch *body = (struct wire_vcudaLaunch *)to;
	uint32_t attribute_bytes = l->attribute_count * (uint32_t)sizeof(CUlaunchAttribute);
	unsigned char *params = to + sizeof(*body) + attribute_bytes;
	uint32_t param_bytes = (uint32_t)launch_param_bytes(l);
	const struct function *f = l->function;

	*body = (struct wire_vcudaLaunch){.function = f->handle,
		.gridX = l->grid[0],
		.gridY = l->grid[1],
		.gridZ = l->grid[2],
		.blockX = l->block[0],
		.blockY = l->block[1],
		.blockZ = l->block[2],
		.sharedBytes = l->shared,
		.stream = l->stream,
		.flags = l->flags,
		.attribute_bytes = attribute_bytes,
		.attributes = {sizeof(*body), attribute_bytes},
		.param_bytes = param_bytes,
		.params = {(uint32_t)sizeof(*body) + attribute_bytes, param_bytes}};
	if (attribute_bytes)
		memcpy(to + sizeof(*body), l->attributes, attribute_bytes);
	if (l->packed) {
		memcpy(params, l->packed, l->param_bytes);
		memset(params + l->param_bytes, 0, param_bytes - l->param_bytes);
		return;
	}
	for (uint32_t i = 0; l->params && i < f->layout_count; i++) {
		const struct function_param *p = &f->layout[i];

		/* Most are 8 or 4 bytes: no call for those. */
		if (p->size == 8)
			memcpy(params + p->offset, l->params[i], 8);
		else if (p->size == 4)
			memcpy(params + p->offset, l->params[i], 4);
		else
			memcpy(params + p->offset, l->params[i], p->size);
	}
}

static CUresult launch_named(const void *words, size_t bytes)
{
	if (session_count == 1 && host_any())
		host_named(words, bytes);
	return managed_words(words, bytes);
}

/* Pinned and managed memory that a parameter names: kernels reach it from now on. */
static CUresult launch_names(const struct launch *l)
{
	const struct function *f = l->function;
	CUresult status = CUDA_SUCCESS;

	if (l->packed)
		return launch_named(l->packed, l->param_bytes);
	for (uint32_t i = 0; l->params && i < f->layout_count && !status; i++) {
		uint64_t word;

		if (f->layout[i].size < 8)
			continue;
		memcpy(&word, l->params[i], 8);
		if (f->layout[i].size > 8 || host_maybe(word) || managed_near(word))
			status = launch_named(l->params[i], f->layout[i].size);
	}
	return status;
}

/* A pointer into pinned memory, which no kernel of several agents reaches. One within a
 * structure may be for something else than the kernel. */
static bool launch_points_out(const struct launch *l)
{
	const struct function *f = l->function;
	struct host_range range;

	for (uint32_t i = 0; i < f->layout_count; i++) {
		const struct function_param *p = &f->layout[i];
		const void *at = l->params ? l->params[i] : NULL;
		uint64_t word;

		if (p->size != sizeof(word))
			continue;
		if (l->packed && (uint64_t)p->offset + sizeof(word) <= l->param_bytes)
			at = (const unsigned char *)l->packed + p->offset;
		if (!at)
			continue;
		memcpy(&word, at, sizeof(word));
		if (host_maybe(word) && host_find((const void *)(uintptr_t)word, &range))
			return true;
	}
	return false;
}

static CUresult launch_reach(const struct launch *l)
{
	CUresult status;

	if (session_count == 1 || !launch_points_out(l)) {
		status = launch_names(l);
		return status || session_count > 1 ? status : mirror_before();
	}
	logs_add("cuLaunchKernel", "kernels of several agents do not reach host memory");
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* A kernel of a library belongs to no context: it is launched in the stream's (as CUDA 13
 * does), which is the current one until stream_lent() if this is true. */
static bool launch_lend(CUfunction f, CUstream handle)
{
	const uint64_t kernel = (uint64_t)(uintptr_t)f;
	const struct context *current = thread_self.current;
	const struct stream *stream;

	if (__builtin_expect(handle_kind(kernel) != KIND_CUkernel, 1) || !current)
		return false;
	stream = shim_object_of((uint64_t)(uintptr_t)handle, KIND_CUstream);
	return stream && stream->context->home != current->home && thread_push(stream->context);
}

/* Is the function of the context that the stream is in? */
static bool launch_at_home(const struct launch *l)
{
	const struct stream *stream = stream_find(l->stream);

	return !stream || stream->context->home == module_context(l->function->module)->home;
}

/* Straight into the ring: nothing of it has to be fetched or told meanwhile. */
static inline CUresult launch_post(const struct launch *l, size_t bytes)
{
	CUresult status = CUDA_SUCCESS;
	void *body = shim_post_begin(OP_vcudaLaunch, (uint32_t)bytes, &status);

	if (__builtin_expect(!body, 0))
		return status;
	launch_write(l, body);
	shim_post_end(OP_vcudaLaunch);
	return CUDA_SUCCESS;
}

/* By the function's limits alone. False: launch_fits() knows. */
static inline bool launch_within(const struct function_limits *limits, const struct launch *l)
{
	for (int i = 0; i < 3; i++)
		if (l->grid[i] - 1 >= limits->grid[i] || l->block[i] - 1 >= limits->block[i])
			return false;
	return (uint64_t)l->block[0] * l->block[1] * l->block[2] <= limits->threads &&
	       l->shared <= limits->shared;
}

/* Is this the case of nearly all launches, of which there is nothing to ask but what is asked
 * here? Then *L is all that is to be posted. */
static inline bool launch_straight(
	struct launch *l, CUfunction f, CUstream stream, void **params, void **extra)
{
	const struct function *function =
		handle_object((uint64_t)(uintptr_t)f, KIND_CUfunction);
	const struct stream *on = stream_straight(stream, &l->stream);

	if (!function || !on || function->context != on->context || !params || extra ||
		atomic_load_explicit(&function->unused, memory_order_relaxed) ||
		function->info.param_count > function->layout_count)
		return false;
	l->function = function;
	l->params = params;
	l->param_bytes = function->info.param_bytes;
	if (!launch_within(&function->limits, l) || (host_any() && launch_names(l)))
		return false;
	return shim_perf & PERF_POST && !mirror_any() &&
	       !atomic_load_explicit(&mirror_apart, memory_order_relaxed);
}

static CUresult launch_send(const struct launch *l)
{
	size_t bytes = sizeof(struct wire_vcudaLaunch) +
		       l->attribute_count * sizeof(CUlaunchAttribute) + launch_param_bytes(l);
	CUresult status = CUDA_ERROR_INVALID_HANDLE;
	struct shim_call call;
	void *body;

	if (launch_at_home(l))
		status = launch_fits(l->function, l->grid, l->block, l->shared,
			l->flags & LAUNCH_COOPERATIVE);
	if (!status && l->attribute_count)
		status = launch_attributes_fit(l);
	if (!status && l->flags & LAUNCH_COOPERATIVE)
		status = launch_cooperative_fits(l);
	if (!status && (host_any() || managed_any))
		status = launch_reach(l);
	if (status) {
		/* As natively, it spoils the capture that it would be a node of. */
		(void)capture_refuse(l->stream);
		return status;
	}
	/* Parameters that lie in managed memory may have to be fetched: not under the ring's
	 * lock. */
	if (shim_perf & PERF_POST && !managed_any && !mirror_apart)
		return launch_post(l, bytes);
	body = shim_begin(&call, OP_vcudaLaunch, bytes);
	if (!call.status)
		launch_write(l, body);
	if (!call.status && atomic_load(&mirror_apart))
		mirror_addresses((unsigned char *)body + bytes - launch_param_bytes(l),
			launch_param_bytes(l));
	status = shim_post(&call);
	return status || shim_perf & PERF_ASYNC ? status : sync_launched(l->stream);
}

/* Of any launch: *L has its shape. */
__attribute__((noinline)) static CUresult launch_any(
	struct launch *l, CUfunction f, CUstream stream, void **params, void **extra)
{
	struct function *function;
	const bool lent = launch_lend(f, stream);
	CUresult status = function_find(f, &function);

	if (status)
		status = context_missing() ?: status;
	l->function = function;
	l->params = NULL;
	if (!status)
		status = stream_launched(stream, &l->stream);
	if (!status)
		status = launch_params(l, params, extra);
	if (!status)
		status = launch_send(l);
	if (lent)
		stream_lent();
	return status;
}

CUresult hand_cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
	unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
	unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
	void **kernelParams, void **extra)
{
	struct launch l;

	/* Field by field: the attributes are large, and not used here. */
	l.grid[0] = gridDimX;
	l.grid[1] = gridDimY;
	l.grid[2] = gridDimZ;
	l.block[0] = blockDimX;
	l.block[1] = blockDimY;
	l.block[2] = blockDimZ;
	l.shared = sharedMemBytes;
	l.flags = 0;
	l.attribute_count = 0;
	l.packed = NULL;
	if (__builtin_expect(launch_straight(&l, f, hStream, kernelParams, extra), 1))
		return launch_post(&l, sizeof(struct wire_vcudaLaunch) + l.param_bytes);
	return launch_any(&l, f, hStream, kernelParams, extra);
}

CUresult hand_cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX,
	unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX,
	unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes,
	CUstream hStream, void **kernelParams)
{
	struct function *function;
	struct launch l = {.grid = {gridDimX, gridDimY, gridDimZ},
		.block = {blockDimX, blockDimY, blockDimZ},
		.shared = sharedMemBytes,
		.flags = LAUNCH_COOPERATIVE};
	const bool lent = launch_lend(f, hStream);
	CUresult status = function_find(f, &function);

	l.function = function;
	if (!status)
		status = stream_launched(hStream, &l.stream);
	if (!status)
		status = launch_params(&l, kernelParams, NULL);
	if (!status)
		status = launch_send(&l);
	if (lent)
		stream_lent();
	return status;
}

CUresult hand_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams,
	void **extra, CUstream null_stream)
{
	struct launch l = {0};
	CUstream stream;
	bool lent = false;
	CUresult status;

	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	stream = config->hStream ? config->hStream : null_stream;
	status = stream_lend(stream, (uintptr_t)f, &lent)
			 ?: context_missing() ?: capture_node(stream);
	if (!status && !lent)
		lent = launch_lend(f, stream);
	if (!status)
		status = launch_config(&l, config, f);
	if (!status)
		status = stream_launched(stream, &l.stream);
	if (!status)
		status = launch_params(&l, kernelParams, extra);
	if (!status)
		status = launch_send(&l);
	for (uint32_t i = 0; !status && i < l.event_count; i++)
		status = event_record(l.events[i], stream, 0, OP_cuEventRecord);
	if (lent)
		stream_lent();
	return status;
}
