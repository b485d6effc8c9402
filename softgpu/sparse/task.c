/* SPDX-License-Identifier: Apache-2.0
 *
 * Tasks in streams.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/driver/task.h"
#include "softgpu/sparse/sparse.h"

struct sparse_task {
	sparse_run *run;
	_Atomic unsigned owners; /* its stream or graph, and who waits for it */
	struct sparse_handle *handle;
	struct sparse_state *state;
	CUcontext context;
	bool waited;	   /* somebody is told how it ended */
	bool without_room; /* waited for, and met a lack of memory */
	_Alignas(max_align_t) char arguments[];
};

void *sparse_state_new(size_t size, void (*fini)(struct sparse_state *))
{
	struct sparse_state *state = calloc(1, size);

	if (state) {
		state->refs = 1;
		state->fini = fini;
	}
	return state;
}

void sparse_state_drop(struct sparse_state *state)
{
	if (!state || atomic_fetch_sub(&state->refs, 1) != 1)
		return;
	if (state->fini)
		state->fini(state);
	free(state);
}

int sparse_descr_new(
	void *to, size_t bytes, size_t state_bytes, void (*fini)(struct sparse_state *))
{
	void *state, *descr;

	if (!to)
		return SPARSE_INVALID_VALUE;
	descr = calloc(1, bytes);
	state = descr ? sparse_state_new(state_bytes, fini) : NULL;
	if (!state) {
		free(descr);
		return SPARSE_ALLOC_FAILED;
	}
	memcpy(descr, &state, sizeof(state));
	memcpy(to, &descr, sizeof(descr));
	return SPARSE_SUCCESS;
}

int sparse_descr_drop(void *descr)
{
	struct sparse_state *state;

	if (!descr)
		return SPARSE_INVALID_VALUE;
	memcpy(&state, descr, sizeof(state));
	sparse_state_drop(state);
	free(descr);
	return SPARSE_SUCCESS;
}

struct sparse_state *sparse_task_state(const struct sparse_task *task)
{
	return task->state;
}

void sparse_handle_drop(struct sparse_handle *handle)
{
	if (atomic_fetch_sub(&handle->refs, 1) == 1)
		free(handle);
}

void sparse_fail(struct sparse_task *task)
{
	task->handle->failed = true;
}

/* No machine has so much, and sanitizers end a program that asks for it. */
#define SCRATCH_MOST (1ull << 38)

void *sparse_scratch(struct sparse_task *task, int64_t elements, size_t size)
{
	void *scratch = elements < 0 || (uint64_t)elements > SCRATCH_MOST / size
				? NULL
				: calloc(elements ? (size_t)elements : 1, size);

	if (!scratch && task->waited)
		task->without_room = true;
	else if (!scratch)
		sparse_fail(task);
	return scratch;
}

void *sparse_area(
	struct sparse_task *task, const void *at, int64_t first, int64_t count, unsigned size)
{
	static char nothing[16];
	uint64_t address = (uint64_t)(uintptr_t)at, bytes, skip;

	if (!count)
		return at ? (void *)(uintptr_t)at : nothing;
	if (first >= 0 && count > 0 && !(address % size) &&
		!__builtin_mul_overflow((uint64_t)count, size, &bytes) &&
		!__builtin_mul_overflow((uint64_t)first, size, &skip) &&
		!__builtin_add_overflow(address, skip, &address) &&
		cuSoftgpuTaskReaches(address, bytes))
		return (void *)(uintptr_t)address;
	sparse_fail(task);
	return NULL;
}

static void task_drop(void *argument)
{
	struct sparse_task *task = argument;

	if (atomic_fetch_sub(&task->owners, 1) != 1)
		return;
	sparse_handle_drop(task->handle);
	sparse_state_drop(task->state);
	free(task);
}

static void task_run(void *argument)
{
	struct sparse_task *task = argument;

	cuCtxSetCurrent(task->context);
	cuSoftgpuTaskBegin();
	task->run(task, task->arguments);
	cuSoftgpuTaskEnd();
}

static void task_run_and_drop(void *argument)
{
	task_run(argument);
	task_drop(argument);
}

static int task_new(struct sparse_handle *handle, sparse_run *run, const void *arguments,
	size_t size, struct sparse_state *state, struct sparse_task **task)
{
	struct sparse_task *t;

	if (!handle)
		return SPARSE_NO_HANDLE;
	if (handle->failed)
		return SPARSE_EXECUTION_FAILED;
	t = calloc(1, sizeof(*t) + size);
	if (!t)
		return SPARSE_ALLOC_FAILED;
	t->run = run;
	t->owners = 1;
	t->handle = handle;
	t->state = state;
	memcpy(t->arguments, arguments, size);
	atomic_fetch_add(&handle->refs, 1);
	if (state)
		atomic_fetch_add(&state->refs, 1);
	*task = t;
	return SPARSE_SUCCESS;
}

/* In a graph the task runs as often as the graph does, and goes with it. */
static int task_captured(struct sparse_task *task, CUstream stream, CUgraph graph)
{
	CUuserObject object;

	if (cuUserObjectCreate(
		    &object, task, task_drop, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)) {
		task_drop(task);
		return SPARSE_EXECUTION_FAILED;
	}
	if (cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE)) {
		cuUserObjectRelease(object, 1);
		return SPARSE_EXECUTION_FAILED;
	}
	return cuLaunchHostFunc(stream, task_run, task) ? SPARSE_EXECUTION_FAILED
							: SPARSE_SUCCESS;
}

/* Whether the stream takes the task, and the graph that it becomes a part of. */
static int task_place(struct sparse_task *task, bool waits, CUgraph *graph)
{
	CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
	CUstream stream = task->handle->stream;

	*graph = NULL;
	if (cuCtxGetCurrent(&task->context) ||
		cuStreamGetCaptureInfo(stream, &capturing, NULL, graph, NULL, NULL, NULL) ||
		(capturing && capturing != CU_STREAM_CAPTURE_STATUS_ACTIVE))
		return SPARSE_EXECUTION_FAILED;
	if (capturing && waits) {
		cuStreamSynchronize(stream); /* which a capture does not survive */
		return SPARSE_EXECUTION_FAILED;
	}
	if (!capturing)
		*graph = NULL;
	return SPARSE_SUCCESS;
}

int sparse_submit(struct sparse_handle *handle, sparse_run *run, const void *arguments,
	size_t size, struct sparse_state *state)
{
	struct sparse_task *task;
	CUgraph graph;
	int status = task_new(handle, run, arguments, size, state, &task);

	if (status)
		return status;
	status = task_place(task, false, &graph);
	if (!status && graph)
		return task_captured(task, handle->stream, graph);
	if (!status && !cuLaunchHostFunc(handle->stream, task_run_and_drop, task))
		return SPARSE_SUCCESS;
	task_drop(task);
	return status ? status : SPARSE_EXECUTION_FAILED;
}

int sparse_finish(struct sparse_handle *handle, sparse_run *run, void *arguments, size_t size,
	struct sparse_state *state)
{
	struct sparse_task *task;
	CUgraph graph;
	int status = task_new(handle, run, arguments, size, state, &task);

	if (status)
		return status;
	status = task_place(task, true, &graph);
	if (!status) {
		task->owners = 2;
		task->waited = true;
		if (cuLaunchHostFunc(handle->stream, task_run_and_drop, task)) {
			task->owners = 1;
			status = SPARSE_EXECUTION_FAILED;
		} else if (cuStreamSynchronize(handle->stream) || handle->failed) {
			status = SPARSE_EXECUTION_FAILED;
		} else if (task->without_room) {
			status = SPARSE_INSUFFICIENT_RESOURCES;
		} else {
			memcpy(arguments, task->arguments, size);
		}
	}
	task_drop(task);
	return status;
}
