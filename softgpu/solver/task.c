/* SPDX-License-Identifier: Apache-2.0
 *
 * Tasks in streams.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/driver/task.h"
#include "softgpu/solver/jacobi.h"
#include "softgpu/solver/solver.h"

char solver_uplo(int uplo)
{
	return uplo == SOLVER_LOWER ? 'L' : uplo == SOLVER_UPPER ? 'U' : 0;
}

char solver_side(int side)
{
	return side == SOLVER_LEFT ? 'L' : side == SOLVER_RIGHT ? 'R' : 0;
}

char solver_op(int op, enum solver_type type)
{
	return op == 0 ? 'N' : op == 1 ? 'T' : op != 2 ? 0 : solver_complex(type) ? 'C' : 'T';
}

char solver_diag(int diag)
{
	return diag == 0 ? 'N' : diag == 1 ? 'U' : 0;
}

char solver_vectors(int jobz)
{
	return jobz == 0 ? 'N' : jobz == 1 ? 'V' : 0;
}

enum solver_type solver_type_of(int data_type)
{
	switch (data_type) {
	case 0: return SOLVER_S; /* CUDA_R_32F, … */
	case 1: return SOLVER_D;
	case 4: return SOLVER_C;
	case 5: return SOLVER_Z;
	default: return SOLVER_NO_TYPE;
	}
}

int solver_tell(struct solver_handle *handle, bool valid, int64_t elements, int *lwork)
{
	if (!handle)
		return SOLVER_NOT_INITIALIZED;
	if (!valid || !lwork || elements > INT_MAX)
		return SOLVER_INVALID_VALUE;
	*lwork = (int)elements;
	return SOLVER_SUCCESS;
}

int solver_tell_bytes(struct solver_handle *handle, bool valid, int64_t elements,
	enum solver_type type, size_t *device, size_t *host)
{
	if (!handle)
		return SOLVER_NOT_INITIALIZED;
	if (!valid || type == SOLVER_NO_TYPE || !device || !host)
		return SOLVER_INVALID_VALUE;
	*device = (size_t)elements * solver_size(type);
	*host = 0;
	return SOLVER_SUCCESS;
}

int solver_lapack_work(enum solver_type type, const void *query)
{
	double value =
		solver_real(type) == 4 ? (double)*(const float *)query : *(const double *)query;

	/* A float holds the size rounded, perhaps down. */
	value = value * 1.000001 + 1;
	return value < INT_MAX ? (int)value : INT_MAX;
}

double solver_number(const struct solver_task *task, const void *array, int64_t i)
{
	return solver_real(task->type) == 4 ? (double)((const float *)array)[i]
					    : ((const double *)array)[i];
}

void solver_set_number(const struct solver_task *task, void *array, int64_t i, double value)
{
	if (solver_real(task->type) == 4)
		((float *)array)[i] = (float)value;
	else
		((double *)array)[i] = value;
}

/* ---- what a task is made of ---- */

struct solver_task *solver_new(struct solver_handle *handle, void (*run)(struct solver_task *),
	enum solver_type type, int *status)
{
	struct solver_task *task;

	*status = SOLVER_NOT_INITIALIZED;
	if (!handle)
		return NULL;
	*status = SOLVER_INVALID_VALUE;
	if (type == SOLVER_NO_TYPE)
		return NULL;
	*status = SOLVER_EXECUTION_FAILED;
	if (handle->failed)
		return NULL;
	*status = SOLVER_ALLOC_FAILED;
	task = calloc(1, sizeof(*task));
	if (!task)
		return NULL;
	task->run = run;
	task->type = type;
	task->handle = handle;
	task->batch = 1;
	task->owners = 1;
	atomic_fetch_add(&handle->refs, 1);
	*status = SOLVER_SUCCESS;
	return task;
}

void solver_uses(struct solver_task *task, const void *at, uint64_t elements, unsigned size)
{
	uint64_t bytes;

	if (!elements)
		return;
	if (__builtin_mul_overflow(elements, size, &bytes) || task->used == SOLVER_USES) {
		task->too_much = true;
		return;
	}
	task->uses[task->used].at = at;
	task->uses[task->used++].bytes = bytes;
}

struct solver_matrix solver_matrices(struct solver_task *task, const void *at, int64_t rows,
	int64_t cols, int64_t ld, int64_t stride, int64_t batch)
{
	uint64_t elements = rows && cols ? (uint64_t)(cols - 1) * (uint64_t)ld + (uint64_t)rows
					 : 0; /* below 2^62 + 2^31 */
	uint64_t rest;

	if (elements && batch) {
		if (stride < 0 ||
			__builtin_mul_overflow((uint64_t)stride, (uint64_t)batch - 1, &rest) ||
			__builtin_add_overflow(elements, rest, &elements))
			task->too_much = true;
		else
			solver_uses(task, at, elements, solver_size(task->type));
	}
	return (struct solver_matrix){(void *)(uintptr_t)at, (int)ld, stride};
}

struct solver_matrix solver_matrix(
	struct solver_task *task, const void *at, int64_t rows, int64_t cols, int64_t ld)
{
	return solver_matrices(task, at, rows, cols, ld, 0, 1);
}

void solver_work(struct solver_task *task, void *at, uint64_t bytes)
{
	task->work = at;
	task->work_bytes = bytes;
	solver_uses(task, at, bytes, 1);
}

void solver_handle_drop(struct solver_handle *handle)
{
	if (atomic_fetch_sub(&handle->refs, 1) == 1)
		free(handle);
}

void solver_jacobi_drop(struct solver_jacobi *jacobi)
{
	if (jacobi && atomic_fetch_sub(&jacobi->refs, 1) == 1)
		free(jacobi);
}

void solver_drop(struct solver_task *task)
{
	if (atomic_fetch_sub(&task->owners, 1) != 1)
		return;
	solver_handle_drop(task->handle);
	solver_jacobi_drop(task->jacobi);
	free(task);
}

/* ---- running ---- */

void *solver_scratch(struct solver_task *task, uint64_t elements, unsigned size)
{
	void *scratch = calloc(elements ? elements : 1, size);

	if (!scratch)
		task->handle->failed = true;
	return scratch;
}

bool solver_reaches(struct solver_task *task, const void *at, uint64_t elements, unsigned size)
{
	uint64_t bytes;

	if (!elements)
		return true;
	if (!((uintptr_t)at % 4) && !__builtin_mul_overflow(elements, size, &bytes) &&
		cuSoftgpuTaskReaches((uint64_t)(uintptr_t)at, bytes))
		return true;
	task->handle->failed = true;
	return false;
}

static bool task_reaches_all(struct solver_task *task)
{
	for (unsigned i = 0; i < task->used; i++)
		if (!solver_reaches(task, task->uses[i].at, task->uses[i].bytes, 1))
			return false;
	return true;
}

static void task_run(void *argument)
{
	struct solver_task *task = argument;

	cuCtxSetCurrent(task->context);
	cuSoftgpuTaskBegin();
	if (task_reaches_all(task)) {
		/* What a program kept there is lost, as natively. */
		if (task->work_bytes)
			memset(task->work, 0xff, task->work_bytes);
		task->run(task);
	}
	cuSoftgpuTaskEnd();
}

static void task_drop(void *argument)
{
	solver_drop(argument);
}

static void task_run_and_drop(void *argument)
{
	task_run(argument);
	solver_drop(argument);
}

/* In a graph the task runs as often as the graph does, and goes with it. */
static int task_captured(struct solver_task *task, CUstream stream, CUgraph graph)
{
	CUuserObject object;

	if (cuUserObjectCreate(
		    &object, task, task_drop, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)) {
		solver_drop(task);
		return SOLVER_EXECUTION_FAILED;
	}
	if (cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE)) {
		cuUserObjectRelease(object, 1);
		return SOLVER_EXECUTION_FAILED;
	}
	return cuLaunchHostFunc(stream, task_run, task) ? SOLVER_EXECUTION_FAILED
							: SOLVER_SUCCESS;
}

/* Whether the stream takes the task, and the graph that it becomes a part of. */
static int task_place(struct solver_task *task, bool waits, CUgraph *graph)
{
	CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
	CUstream stream = task->handle->stream;

	*graph = NULL;
	if (task->too_much)
		return SOLVER_INVALID_VALUE;
	if (cuCtxGetCurrent(&task->context) ||
		cuStreamGetCaptureInfo(stream, &capturing, NULL, graph, NULL, NULL, NULL) ||
		(capturing && capturing != CU_STREAM_CAPTURE_STATUS_ACTIVE))
		return SOLVER_EXECUTION_FAILED;
	if (capturing && waits) {
		cuStreamSynchronize(stream); /* which a capture does not survive */
		return SOLVER_EXECUTION_FAILED;
	}
	if (!capturing)
		*graph = NULL;
	return SOLVER_SUCCESS;
}

int solver_submit(struct solver_task *task)
{
	CUstream stream = task->handle->stream;
	CUgraph graph;
	int status = task_place(task, false, &graph);

	if (!status && graph)
		return task_captured(task, stream, graph);
	if (!status && !cuLaunchHostFunc(stream, task_run_and_drop, task))
		return SOLVER_SUCCESS;
	solver_drop(task);
	return status ? status : SOLVER_EXECUTION_FAILED;
}

int solver_finish(struct solver_task *task)
{
	CUstream stream = task->handle->stream;
	CUgraph graph;
	int status = task_place(task, true, &graph);

	if (!status) {
		atomic_fetch_add(&task->owners, 1);
		if (cuLaunchHostFunc(stream, task_run_and_drop, task)) {
			solver_drop(task);
			status = SOLVER_EXECUTION_FAILED;
		} else if (cuStreamSynchronize(stream) || task->handle->failed) {
			status = SOLVER_EXECUTION_FAILED;
		}
	}
	if (status)
		solver_drop(task);
	return status;
}
