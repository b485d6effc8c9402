/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles, and tasks in streams.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/blas/blas.h"
#include "softgpu/driver/task.h"

bool blas_reaches(const void *at, uint64_t bytes, uint32_t element)
{
	uint64_t address = (uint64_t)(uintptr_t)at;

	return !(address % (element > 8	     ? 8
				   : element ? element
					     : 1)) &&
	       cuSoftgpuTaskReaches(address, bytes);
}

void *blas_member(
	struct blas_task *task, const struct blas_place *place, int i, uint64_t elements)
{
	uint32_t size = blas_size(place->type);
	const void *at = place->at;
	uint64_t bytes;

	if (place->array) {
		const void *const *array = at;

		if (!blas_reaches(&array[i], sizeof(*array), sizeof(*array)))
			goto failed;
		at = array[i];
	} else {
		at = (const void *)((uintptr_t)at +
				    (uint64_t)place->stride * (uint64_t)i * size);
	}
	if (!__builtin_mul_overflow(elements, size, &bytes) && blas_reaches(at, bytes, size))
		return (void *)(uintptr_t)at;
failed:
	task->handle->failed = true;
	return NULL;
}

/* The bytes of a scalar, as the computation's type. */
static void scalar_in(
	enum blas_type type, enum blas_type scalar, unsigned char *to, const void *from)
{
	float wide;
	int32_t whole;
	uint16_t half;

	if (scalar == BLAS_F16 || scalar == BLAS_BF16) {
		memcpy(&half, from, sizeof(half));
		wide = scalar == BLAS_F16 ? blas_half_in(half) : blas_bfloat_in(half);
		memcpy(to, &wide, sizeof(wide));
	} else if (scalar == BLAS_I32 && type == BLAS_F32) {
		memcpy(&whole, from, sizeof(whole));
		wide = (float)whole;
		memcpy(to, &wide, sizeof(wide));
	} else {
		memcpy(to, from, blas_size(scalar));
	}
}

void blas_handle_drop(struct blas_handle *handle)
{
	if (atomic_fetch_sub(&handle->refs, 1) == 1)
		free(handle);
}

void blas_drop(struct blas_task *task)
{
	if (atomic_fetch_sub(&task->owners, 1) != 1)
		return;
	blas_handle_drop(task->handle);
	free(task);
}

void blas_begin(
	struct blas_task *task, struct blas_handle *handle, void (*run)(struct blas_task *task))
{
	task->run = run;
	task->handle = handle;
	atomic_fetch_add(&handle->refs, 1);
	task->owners = 1;
}

struct blas_task *blas_new(void *handle, void (*run)(struct blas_task *), enum blas_type type,
	enum blas_type scalar, const void *alpha, const void *beta, int *status)
{
	struct blas_handle *h = handle;
	struct blas_task *task;

	*status = BLAS_NOT_INITIALIZED;
	if (!h)
		return NULL;
	*status = BLAS_EXECUTION_FAILED;
	if (h->failed)
		return NULL;
	*status = BLAS_ALLOC_FAILED;
	task = aligned_alloc(16, (sizeof(*task) + 15) & ~(size_t)15);
	if (!task)
		return NULL;
	memset(task, 0, sizeof(*task));
	blas_begin(task, h, run);
	task->type = type;
	task->scalar = scalar;
	task->batch = 1;
	task->a.type = task->b.type = task->c.type = type;
	if (h->pointer_mode)
		task->alpha_at = alpha;
	else if (alpha)
		scalar_in(type, scalar, task->alpha, alpha);
	blas_beta(task, scalar, beta);
	*status = BLAS_SUCCESS;
	return task;
}

void blas_beta(struct blas_task *task, enum blas_type scalar, const void *beta)
{
	task->beta_scalar = scalar;
	if (task->handle->pointer_mode)
		task->beta_at = beta;
	else if (beta)
		scalar_in(task->type, scalar, task->beta, beta);
}

/* One bit of the sum, or of the first element of C. */
static void spoil(struct blas_task *task)
{
	unsigned char *at = task->result_bytes ? task->value
			    : task->c.at       ? blas_member(task, &task->c, 0, 1)
					       : NULL;

	if (at)
		at[0] ^= 1;
}

static void task_run_still(struct blas_task *task)
{
	uint32_t bytes = blas_size(task->scalar), beta_bytes = blas_size(task->beta_scalar);

	if ((task->alpha_at && !blas_reaches(task->alpha_at, bytes, bytes)) ||
		(task->beta_at && !blas_reaches(task->beta_at, beta_bytes, beta_bytes)) ||
		(task->result &&
			!blas_reaches(task->result, task->result_bytes, task->result_bytes))) {
		task->handle->failed = true;
		return;
	}
	if (task->alpha_at)
		scalar_in(task->type, task->scalar, task->alpha, task->alpha_at);
	if (task->beta_at)
		scalar_in(task->type, task->beta_scalar, task->beta, task->beta_at);
	task->run(task);
	if (cuSoftgpuTaskSpoils())
		spoil(task);
	if (task->result)
		memcpy(task->result, task->value, task->result_bytes);
}

static void task_run(void *argument)
{
	struct blas_task *task = argument;

	cuCtxSetCurrent(task->context);
	cuSoftgpuTaskBegin();
	task_run_still(task);
	cuSoftgpuTaskEnd();
}

static void task_drop(void *argument)
{
	blas_drop(argument);
}

static void task_run_and_drop(void *argument)
{
	task_run(argument);
	blas_drop(argument);
}

/* In a graph the task runs as often as the graph does, and goes with it. */
static int task_captured(struct blas_task *task, CUstream stream, CUgraph graph)
{
	CUuserObject object;

	if (cuUserObjectCreate(
		    &object, task, task_drop, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)) {
		blas_drop(task);
		return BLAS_EXECUTION_FAILED;
	}
	if (cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE)) {
		cuUserObjectRelease(object, 1);
		return BLAS_EXECUTION_FAILED;
	}
	return cuLaunchHostFunc(stream, task_run, task) ? BLAS_EXECUTION_FAILED : BLAS_SUCCESS;
}

/* Until the result is there. Where that cannot be waited for, the stream keeps the task. */
static int task_wait(struct blas_task *task, void *result)
{
	struct blas_handle *h = task->handle;
	int status = BLAS_EXECUTION_FAILED;

	atomic_fetch_add(&task->owners, 1);
	if (cuLaunchHostFunc(h->stream, task_run_and_drop, task)) {
		blas_drop(task);
	} else if (!cuStreamSynchronize(h->stream) && !h->failed) {
		memcpy(result, task->value, task->result_bytes);
		status = BLAS_SUCCESS;
	}
	blas_drop(task);
	return status;
}

int blas_submit(struct blas_task *task, void *result, uint32_t result_bytes)
{
	CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
	struct blas_handle *h = task->handle;
	bool waits = result && !h->pointer_mode;
	CUgraph graph;

	task->result_bytes = result_bytes;
	if (result && h->pointer_mode)
		task->result = result;
	if (cuCtxGetCurrent(&task->context) ||
		cuStreamGetCaptureInfo(h->stream, &capturing, NULL, &graph, NULL, NULL, NULL) ||
		(capturing && (waits || capturing != CU_STREAM_CAPTURE_STATUS_ACTIVE))) {
		/* Waiting is what a capture does not survive. */
		if (waits)
			cuStreamSynchronize(h->stream);
		blas_drop(task);
		return BLAS_EXECUTION_FAILED;
	}
	if (capturing)
		return task_captured(task, h->stream, graph);
	if (waits)
		return task_wait(task, result);
	if (!cuLaunchHostFunc(h->stream, task_run_and_drop, task))
		return BLAS_SUCCESS;
	blas_drop(task);
	return BLAS_EXECUTION_FAILED;
}

/* ---- the handle's own functions ---- */

BLAS_EXPORT int cublasCreate_v2(void **handle);
BLAS_EXPORT int cublasCreate_v2(void **handle)
{
	struct blas_handle *h;

	if (!handle)
		return BLAS_INVALID_VALUE;
	h = calloc(1, sizeof(*h));
	if (!h)
		return BLAS_ALLOC_FAILED;
	h->refs = 1;
	*handle = h;
	return BLAS_SUCCESS;
}

BLAS_EXPORT int cublasDestroy_v2(void *handle);
BLAS_EXPORT int cublasDestroy_v2(void *handle)
{
	if (!handle)
		return BLAS_NOT_INITIALIZED;
	/* As NVIDIA's does; where it cannot be done, tasks still name the handle, which stays.
	 */
	cuCtxSynchronize();
	blas_handle_drop(handle);
	return BLAS_SUCCESS;
}

BLAS_EXPORT int cublasGetVersion_v2(void *handle, int *version);
BLAS_EXPORT int cublasGetVersion_v2(void *handle, int *version)
{
	(void)handle;
	*version = BLAS_VERSION;
	return BLAS_SUCCESS;
}

BLAS_EXPORT int cublasSetStream_v2(void *handle, CUstream stream);
BLAS_EXPORT int cublasSetStream_v2(void *handle, CUstream stream)
{
	((struct blas_handle *)handle)->stream = stream;
	return BLAS_SUCCESS;
}

#define BLAS_SETTING(NAME, SUFFIX, FIELD)                                                      \
	BLAS_EXPORT int cublasSet##NAME##SUFFIX(void *handle, int value);                      \
	BLAS_EXPORT int cublasSet##NAME##SUFFIX(void *handle, int value)                       \
	{                                                                                      \
		((struct blas_handle *)handle)->FIELD = value;                                 \
		return BLAS_SUCCESS;                                                           \
	}                                                                                      \
	BLAS_EXPORT int cublasGet##NAME##SUFFIX(void *handle, int *value);                     \
	BLAS_EXPORT int cublasGet##NAME##SUFFIX(void *handle, int *value)                      \
	{                                                                                      \
		*value = ((struct blas_handle *)handle)->FIELD;                                \
		return BLAS_SUCCESS;                                                           \
	}
BLAS_SETTING(PointerMode, _v2, pointer_mode)
BLAS_SETTING(MathMode, , math)
BLAS_SETTING(AtomicsMode, , atomics)
BLAS_SETTING(SmCountTarget, , sm_count)
/* Nothing is emulated: these are kept. */
BLAS_SETTING(EmulationStrategy, , strategy)
BLAS_SETTING(EmulationSpecialValuesSupport, , special_values)
BLAS_SETTING(FixedPointEmulationMantissaControl, , mantissa_control)
BLAS_SETTING(FixedPointEmulationMaxMantissaBitCount, , max_bits)
BLAS_SETTING(FixedPointEmulationMantissaBitOffset, , bit_offset)
