/* SPDX-License-Identifier: Apache-2.0
 *
 * The device runtime (libcudadevrt's functions): launches that a kernel asks for, streams,
 * events, attributes.  Copies and fills are in device_moves.c.
 *
 * What a grid launches runs when all blocks of the grid are done, in the order of the launches,
 * each with what it launches itself; then what it launched into its tail stream.  CUDA lets no
 * kernel wait for its children, so it cannot tell; streams and events never ask for another
 * order than that of the calls.
 */
#include <pthread.h>
#include <stdlib.h>

#include "softgpu/ptx/internal.h"

enum {
	STREAM_TAIL = 3,
	CACHE_NO_PREFERENCE = 0,       /* cudaFuncCachePreferNone */
	BANKS_OF_FOUR_BYTES = 1,       /* cudaSharedMemBankSizeFourByte, all that there are */
	DEVICE_RUNTIME_VERSION = 6000, /* what libcudadevrt says of itself, also of 13.0 */
};

#define MAX_DEPTH 24
#define MAX_PENDING 65536 /* of one launch from the host */
#define MAX_PARAMS 32764

/* In front of the parameters that cudaGetParameterBufferV2 hands out, in memory that the kernel
 * may overwrite. */
struct buffer {
	uint64_t function;
	uint32_t grid[3], block[3], shared;
};
#define BUFFER_HEAD 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- What is to run ---- */

static void append(struct ptx_children *to, struct ptx_child *child)
{
	child->next = NULL;
	if (to->last)
		to->last->next = child;
	else
		to->first = child;
	to->last = child;
}

static void prepend_all(struct ptx_children *to, struct ptx_children *from)
{
	if (!from->first)
		return;
	from->last->next = to->first;
	if (!to->first)
		to->last = from->last;
	to->first = from->first;
	*from = (struct ptx_children){0};
}

void ptx_children_take(struct ptx_run_state *run, struct ptx_children *todo)
{
	prepend_all(todo, &run->at_end);
	prepend_all(todo, &run->children);
}

struct ptx_child *ptx_children_next(struct ptx_children *todo)
{
	struct ptx_child *child = todo->first;

	if (!child)
		return NULL;
	todo->first = child->next;
	if (!todo->first)
		todo->last = NULL;
	return child;
}

void ptx_children_drop(struct ptx_children *todo)
{
	struct ptx_child *child;

	while ((child = ptx_children_next(todo)))
		free(child);
}

int ptx_child_submit(struct ptx_run_state *run, struct ptx_child *child, uint64_t stream)
{
	bool tail = stream == STREAM_TAIL, added;

	/* What runs behind its launcher is not inside of it. */
	child->depth = run->depth + !tail;
	if (child->depth > MAX_DEPTH) {
		free(child);
		return PTX_CUDA_TOO_DEEP;
	}
	pthread_mutex_lock(&lock);
	added = atomic_load(run->pending) < MAX_PENDING;
	if (added) {
		atomic_fetch_add(run->pending, 1);
		append(tail ? &run->at_end : &run->children, child);
	}
	pthread_mutex_unlock(&lock);
	if (added)
		return PTX_CUDA_SUCCESS;
	free(child);
	return PTX_CUDA_TOO_MANY_PENDING;
}

/* ---- Launches ---- */

static const struct ptx_function *kernel_at(const struct ptx_module *module, uint64_t address)
{
	uint64_t index = (address - PTX_CODE_BASE) / 16;

	if (address < PTX_CODE_BASE || address % 16 || index >= module->nfunctions ||
		!module->functions[index].is_kernel || !module->functions[index].is_defined)
		return NULL;
	return &module->functions[index];
}

static uint64_t buffer_new(struct ptx_heap *heap, uint64_t params)
{
	uint64_t at = params > MAX_PARAMS ? 0 : ptx_heap_alloc(heap, BUFFER_HEAD + params);

	return at ? at + BUFFER_HEAD : 0;
}

static int launch(struct ptx_warp *w, const struct buffer *what, uint64_t params, uint64_t size,
	uint64_t stream)
{
	struct ptx_run_state *run = w->block->run;
	const struct ptx_function *f = kernel_at(run->module, what->function);
	struct ptx_kernel kernel = {(struct ptx_module *)(uintptr_t)run->module,
		(struct ptx_function *)(uintptr_t)f};
	struct ptx_launch wanted = {.kernel = &kernel, .dynamic_shared = what->shared};
	struct ptx_error error = {0};
	struct ptx_child *child;

	if (!f)
		return PTX_CUDA_INVALID_DEVICE_FUNCTION;
	if (size < BUFFER_HEAD || size - BUFFER_HEAD < f->param_bytes)
		return PTX_CUDA_INVALID_VALUE;
	memcpy(wanted.grid, what->grid, sizeof(wanted.grid));
	memcpy(wanted.block, what->block, sizeof(wanted.block));
	for (int axis = 0; axis < 3; axis++)
		wanted.cluster[axis] = f->cluster[axis] ? f->cluster[axis] : 1;
	if (ptx_launch_check(&wanted, &error) == PTX_INVALID)
		return PTX_CUDA_INVALID_CONFIGURATION;
	child = calloc(1, sizeof(*child) + f->param_bytes);
	if (!child)
		return PTX_CUDA_MEMORY_ALLOCATION;
	child->function = f;
	memcpy(child->grid, what->grid, sizeof(child->grid));
	memcpy(child->block, what->block, sizeof(child->block));
	child->shared = what->shared;
	memcpy(child->params, (const void *)(uintptr_t)params, f->param_bytes);
	return ptx_child_submit(run, child, stream);
}

/* The buffer ends with the launch. */
static int launch_buffer(
	struct ptx_warp *w, uint64_t params, const struct buffer *what, uint64_t stream)
{
	struct ptx_heap *heap = w->block->run->module->heap;
	uint64_t size = ptx_heap_size(heap, params - BUFFER_HEAD);
	struct buffer head;
	int status;

	if (!size)
		return PTX_CUDA_INVALID_VALUE;
	memcpy(&head, (const void *)(uintptr_t)(params - BUFFER_HEAD), sizeof(head));
	status = launch(w, what ? what : &head, params, size, stream);
	ptx_heap_free(heap, params - BUFFER_HEAD);
	return status;
}

/* Function, grid, block and shared memory among the arguments; false: they are not there. */
static bool read_launch(struct ptx_warp *w, const struct ptx_call *call, unsigned lane,
	uint32_t dimensions, struct buffer *what)
{
	const void *grid = ptx_argument_at(w, call, lane, dimensions, sizeof(what->grid));
	const void *block = ptx_argument_at(w, call, lane, dimensions + 1, sizeof(what->block));

	if (!grid || !block)
		return false;
	memcpy(what->grid, grid, sizeof(what->grid));
	memcpy(what->block, block, sizeof(what->block));
	what->function = ptx_argument(w, call, lane, 0);
	what->shared = (uint32_t)ptx_argument(w, call, lane, dimensions + 2);
	return true;
}

/* ---- Everything else ---- */

static int put32(
	struct ptx_warp *w, const struct ptx_ins *i, unsigned lane, uint64_t at, int value)
{
	*(int *)ptx_generic(w, i, lane, at, sizeof(value)) = value;
	return PTX_CUDA_SUCCESS;
}

static int put64(
	struct ptx_warp *w, const struct ptx_ins *i, unsigned lane, uint64_t at, uint64_t value)
{
	*(uint64_t *)ptx_generic(w, i, lane, at, sizeof(value)) = value;
	return PTX_CUDA_SUCCESS;
}

/* A handle that no other call gives, and none that has a meaning of its own. */
static uint64_t new_handle(void)
{
	static atomic_uint_fast64_t handles = 0x1000;

	return atomic_fetch_add(&handles, 16);
}

static int limit(
	struct ptx_warp *w, const struct ptx_ins *i, unsigned lane, uint64_t at, uint64_t which)
{
	switch (which) {
	case 0: return put64(w, i, lane, at, 1024);	/* cudaLimitStackSize */
	case 1: return put64(w, i, lane, at, 1u << 20); /* cudaLimitPrintfFifoSize */
	case 2:						/* cudaLimitMallocHeapSize */
		return put64(w, i, lane, at, w->block->run->module->heap_bytes);
	case 4:
		return put64(w, i, lane, at,
			MAX_PENDING); /* cudaLimitDevRuntimePendingLaunchCount */
	default: return PTX_CUDA_INVALID_VALUE;
	}
}

static int attribute(struct ptx_warp *w, const struct ptx_ins *i, unsigned lane, uint64_t at,
	int which, int device)
{
	const struct ptx_launch *launched = w->block->run->launch;
	int value = 0;

	if (!launched->attribute || launched->attribute(&value, which, device))
		return PTX_CUDA_INVALID_VALUE;
	return put32(w, i, lane, at, value);
}

/* The head of struct cudaFuncAttributes. */
struct kernel_attributes {
	uint64_t shared, constants, local;
	int32_t max_threads, registers, ptx_version, binary_version;
};

static int kernel_attributes(struct ptx_warp *w, const struct ptx_ins *i, unsigned lane,
	uint64_t at, uint64_t address)
{
	const struct ptx_module *module = w->block->run->module;
	const struct ptx_function *f = kernel_at(module, address);
	struct ptx_kernel kernel = {
		(struct ptx_module *)(uintptr_t)module, (struct ptx_function *)(uintptr_t)f};
	struct kernel_attributes head;
	struct ptx_kernel_info info;

	if (!f)
		return PTX_CUDA_INVALID_DEVICE_FUNCTION;
	ptx_kernel_info(&kernel, &info);
	head = (struct kernel_attributes){.shared = info.static_shared,
		.constants = info.const_bytes,
		.local = info.local_bytes,
		.max_threads = (int)info.max_threads,
		.registers = (int)info.registers,
		.ptx_version = info.ptx_version,
		.binary_version = info.target};
	for (size_t k = 0; k < sizeof(head); k += sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, (const char *)&head + k, sizeof(word));
		put64(w, i, lane, at + k, word);
	}
	return PTX_CUDA_SUCCESS;
}

static int occupancy(struct ptx_warp *w, const struct ptx_ins *i, unsigned lane,
	const struct ptx_call *call, bool flags)
{
	const struct ptx_launch *launched = w->block->run->launch;
	const struct ptx_module *module = w->block->run->module;
	const struct ptx_function *f = kernel_at(module, ptx_argument(w, call, lane, 1));
	struct ptx_kernel kernel = {
		(struct ptx_module *)(uintptr_t)module, (struct ptx_function *)(uintptr_t)f};
	const uint64_t at = ptx_argument(w, call, lane, 0);
	const int threads = (int)ptx_argument(w, call, lane, 2);
	struct ptx_kernel_info info;

	if (!f)
		return PTX_CUDA_INVALID_DEVICE_FUNCTION;
	if (!launched->resident || !at || threads <= 0 ||
		(flags && ptx_argument(w, call, lane, 4) & ~UINT64_C(1)))
		return PTX_CUDA_INVALID_VALUE;
	ptx_kernel_info(&kernel, &info);
	return put32(w, i, lane, at,
		launched->resident(&info, (unsigned)threads, ptx_argument(w, call, lane, 3)));
}

/* What the functions here can return. */
static const struct {
	int error;
	const char *name, *text;
} errors[] = {
	{PTX_CUDA_SUCCESS, "cudaSuccess", "no error"},
	{PTX_CUDA_INVALID_VALUE, "cudaErrorInvalidValue", "invalid argument"},
	{PTX_CUDA_MEMORY_ALLOCATION, "cudaErrorMemoryAllocation", "out of memory"},
	{PTX_CUDA_INVALID_CONFIGURATION, "cudaErrorInvalidConfiguration",
		"invalid configuration argument"},
	{PTX_CUDA_INVALID_COPY_DIRECTION, "cudaErrorInvalidMemcpyDirection",
		"invalid copy direction for memcpy"},
	{PTX_CUDA_TOO_DEEP, "cudaErrorLaunchMaxDepthExceeded",
		"launch would exceed maximum depth of nested launches"},
	{PTX_CUDA_TOO_MANY_PENDING, "cudaErrorLaunchPendingCountExceeded",
		"launch failed because launch would exceed "
		"cudaLimitDevRuntimePendingLaunchCount"},
	{PTX_CUDA_INVALID_DEVICE_FUNCTION, "cudaErrorInvalidDeviceFunction",
		"invalid device function"},
	{PTX_CUDA_NOT_SUPPORTED, "cudaErrorNotSupported", "operation not supported"},
};

static uint64_t error_text(struct ptx_heap *heap, int error, bool name)
{
	static const char unknown[] = "unrecognized error code";

	for (size_t k = 0; k < sizeof(errors) / sizeof(errors[0]); k++)
		if (errors[k].error == error)
			return ptx_heap_text(heap, name ? errors[k].name : errors[k].text);
	return ptx_heap_text(heap, unknown);
}

static int call_one(struct ptx_warp *w, const struct ptx_ins *i, unsigned lane,
	enum ptx_builtin what, const struct ptx_call *call)
{
#define ARG(n) ptx_argument(w, call, lane, n)
	struct ptx_heap *heap = w->block->run->module->heap;
	const struct ptx_launch *launched = w->block->run->launch;
	struct buffer wanted = {0};
	uint64_t at;

	switch (what) {
	case PTX_RUNTIME_LAUNCH:
		if (!read_launch(w, call, lane, 2, &wanted))
			return PTX_CUDA_INVALID_VALUE;
		return launch_buffer(w, ARG(1), &wanted, ARG(5));
	case PTX_RUNTIME_LAUNCH_OF: return launch_buffer(w, ARG(0), NULL, ARG(1));
	case PTX_RUNTIME_COPY:
	case PTX_RUNTIME_COPY_2D:
	case PTX_RUNTIME_COPY_3D:
	case PTX_RUNTIME_FILL:
	case PTX_RUNTIME_FILL_2D:
	case PTX_RUNTIME_FILL_3D: return ptx_runtime_move(w, i, lane, what, call);
	/* The only streams are non-blocking ones, the only events those without a time. */
	case PTX_RUNTIME_CREATE:
		return ARG(1) ? put64(w, i, lane, ARG(0), new_handle())
			      : PTX_CUDA_INVALID_VALUE;
	case PTX_RUNTIME_DEVICE: return put32(w, i, lane, ARG(0), launched->device);
	case PTX_RUNTIME_DEVICES: return put32(w, i, lane, ARG(0), launched->devices);
	case PTX_RUNTIME_ATTRIBUTE:
		return attribute(w, i, lane, ARG(0), (int)ARG(1), (int)ARG(2));
	case PTX_RUNTIME_LIMIT: return limit(w, i, lane, ARG(0), ARG(1));
	case PTX_RUNTIME_VERSION:
		return ARG(0) ? put32(w, i, lane, ARG(0), DEVICE_RUNTIME_VERSION)
			      : PTX_CUDA_INVALID_VALUE;
	case PTX_RUNTIME_CACHE:
		return ARG(0) ? put32(w, i, lane, ARG(0), CACHE_NO_PREFERENCE)
			      : PTX_CUDA_INVALID_VALUE;
	case PTX_RUNTIME_BANKS:
		return ARG(0) ? put32(w, i, lane, ARG(0), BANKS_OF_FOUR_BYTES)
			      : PTX_CUDA_INVALID_VALUE;
	case PTX_RUNTIME_GRAPH: return PTX_CUDA_NOT_SUPPORTED;
	case PTX_RUNTIME_OCCUPANCY: return occupancy(w, i, lane, call, false);
	case PTX_RUNTIME_OCCUPANCY_FLAGS: return occupancy(w, i, lane, call, true);
	case PTX_RUNTIME_KERNEL: return kernel_attributes(w, i, lane, ARG(0), ARG(1));
	case PTX_RUNTIME_MALLOC:
		at = ptx_heap_alloc(heap, ARG(1));
		put64(w, i, lane, ARG(0), at);
		return at ? PTX_CUDA_SUCCESS : PTX_CUDA_MEMORY_ALLOCATION;
	case PTX_RUNTIME_FREE: ptx_heap_free(heap, ARG(0)); return PTX_CUDA_SUCCESS;
	default: return PTX_CUDA_SUCCESS;
	}
}

void ptx_runtime_call(struct ptx_warp *w, const struct ptx_ins *i, unsigned lane,
	enum ptx_builtin what, const struct ptx_call *call)
{
	struct ptx_heap *heap = w->block->run->module->heap;
	uint64_t value;

	switch (what) {
	case PTX_RUNTIME_BUFFER: value = buffer_new(heap, ARG(1)); break;
	case PTX_RUNTIME_BUFFER_OF: {
		struct buffer head = {0};
		const struct ptx_function *f;

		value = 0;
		if (!read_launch(w, call, lane, 1, &head))
			break;
		f = kernel_at(w->block->run->module, head.function);
		if (f)
			value = buffer_new(heap, f->param_bytes);
		if (value)
			memcpy((void *)(uintptr_t)(value - BUFFER_HEAD), &head, sizeof(head));
		else
			w->last_error[lane] = f ? PTX_CUDA_MEMORY_ALLOCATION
						: PTX_CUDA_INVALID_DEVICE_FUNCTION;
		break;
	}
	case PTX_RUNTIME_ERROR_NAME:
	case PTX_RUNTIME_ERROR_TEXT:
		value = error_text(heap, (int)ARG(0), what == PTX_RUNTIME_ERROR_NAME);
		break;
	case PTX_RUNTIME_PEEK_ERROR: value = w->last_error[lane]; break;
	case PTX_RUNTIME_LAST_ERROR:
		value = w->last_error[lane];
		w->last_error[lane] = PTX_CUDA_SUCCESS;
		break;
	default:
		value = (uint64_t)call_one(w, i, lane, what, call);
		if (value)
			w->last_error[lane] = (uint16_t)value;
	}
	ptx_result(w, call, lane, value);
}
