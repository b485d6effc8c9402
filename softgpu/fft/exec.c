/* SPDX-License-Identifier: Apache-2.0
 *
 * Transforms as tasks in streams and graphs.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "softgpu/driver/task.h"
#include "softgpu/fft/fft.h"

#define ANY_TYPE 0 /* cufftXtExec takes a plan of each */

struct task {
	struct fft_plan *plan;
	CUcontext context;
	void *in, *out;
	CUdeviceptr area;
	int direction;
};

static void task_drop(void *argument)
{
	struct task *t = argument;

	fft_plan_drop(t->plan);
	free(t);
}

static bool side_reaches(
	const struct fft_shape *s, const struct fft_side *side, const void *at, bool out)
{
	uint32_t bytes = fft_bytes(s, out);
	uint64_t all;

	return !__builtin_mul_overflow(fft_extent(s, side, out), bytes, &all) &&
	       cuSoftgpuTaskReaches((uint64_t)(uintptr_t)at, all);
}

static bool task_reaches(const struct task *t)
{
	const struct fft_shape *s = &t->plan->shape;
	struct fft_side sides[2];

	fft_sides(s, t->in == t->out, sides);
	return side_reaches(s, &sides[0], t->in, false) &&
	       side_reaches(s, &sides[1], t->out, true) &&
	       (!t->area || cuSoftgpuTaskReaches(t->area, t->plan->area_bytes));
}

static void task_run(void *argument)
{
	struct task *t = argument;

	cuCtxSetCurrent(t->context);
	cuSoftgpuTaskBegin();
	if (!task_reaches(t) || !fft_transform(t->plan, t->in, t->out, t->direction))
		t->plan->failed = true;
	cuSoftgpuTaskEnd();
}

static void task_run_and_drop(void *argument)
{
	task_run(argument);
	task_drop(argument);
}

/* In a graph the task runs as often as the graph does, and goes with it. */
static int task_capture(struct task *t, CUgraph graph)
{
	CUstream stream = t->plan->stream;
	CUuserObject object;

	if (cuUserObjectCreate(&object, t, task_drop, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)) {
		task_drop(t);
		return FFT_EXEC_FAILED;
	}
	if (cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE)) {
		cuUserObjectRelease(object, 1);
		return FFT_EXEC_FAILED;
	}
	return cuLaunchHostFunc(stream, task_run, t) ? FFT_EXEC_FAILED : FFT_SUCCESS;
}

static int task_submit(struct task *t)
{
	CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
	CUgraph graph;

	if (!cuCtxGetCurrent(&t->context) &&
		!cuStreamGetCaptureInfo(
			t->plan->stream, &capturing, NULL, &graph, NULL, NULL, NULL)) {
		if (capturing == CU_STREAM_CAPTURE_STATUS_ACTIVE)
			return task_capture(t, graph);
		if (!capturing && !cuLaunchHostFunc(t->plan->stream, task_run_and_drop, t))
			return FFT_SUCCESS;
	}
	task_drop(t);
	return FFT_EXEC_FAILED;
}

static int plan_type(const struct fft_shape *s)
{
	int type = s->number == FFT_F64 ? FFT_DOUBLE : 0;

	return type | (s->kind == FFT_COMPLEX		    ? FFT_C2C
			      : s->kind == FFT_FORWARD_REAL ? FFT_R2C
							    : FFT_C2R);
}

/* What no kernel could load or store. */
static bool misaligned(const struct fft_shape *s, const void *in, const void *out)
{
	return (uintptr_t)in % fft_bytes(s, false) || (uintptr_t)out % fft_bytes(s, true);
}

static int exec_check(
	struct fft_plan *plan, int type, const void *in, const void *out, int direction)
{
	bool halves = plan->shape.number < FFT_F32;

	if (!plan->made)
		return FFT_INVALID_PLAN;
	if (type != ANY_TYPE && (halves || type != plan_type(&plan->shape)))
		return FFT_INVALID_TYPE;
	if (!in || !out || misaligned(&plan->shape, in, out))
		return FFT_INVALID_VALUE;
	if (plan->shape.kind == FFT_COMPLEX && direction != 1 && direction != -1)
		return FFT_INVALID_VALUE;
	if (plan->area_bytes && !plan->area)
		return FFT_NO_WORKSPACE;
	/* Told once: the agent keeps the plan for those that a program makes later. */
	return atomic_exchange(&plan->failed, false) ? FFT_EXEC_FAILED : FFT_SUCCESS;
}

static int exec(int number, int type, void *in, void *out, int direction)
{
	struct fft_plan *plan = fft_plan_get(number);
	struct task *t;
	int status;

	if (!plan)
		return FFT_INVALID_PLAN;
	status = exec_check(plan, type, in, out, direction);
	t = status ? NULL : malloc(sizeof(*t));
	if (!t) {
		fft_plan_drop(plan);
		return status ? status : FFT_ALLOC_FAILED;
	}
	*t = (struct task){
		.plan = plan, .in = in, .out = out, .area = plan->area, .direction = direction};
	return task_submit(t);
}

FFT_CALL(cufftXtExec, int number, void *in, void *out, int direction)
{
	return exec(number, ANY_TYPE, in, out, direction);
}

#define EXEC_COMPLEX(NAME, TYPE)                                                               \
	FFT_CALL(NAME, int number, void *in, void *out, int direction)                         \
	{                                                                                      \
		return exec(number, TYPE, in, out, direction);                                 \
	}
#define EXEC_REAL(NAME, TYPE)                                                                  \
	FFT_CALL(NAME, int number, void *in, void *out)                                        \
	{                                                                                      \
		return exec(number, TYPE, in, out, 1);                                         \
	}
EXEC_COMPLEX(cufftExecC2C, FFT_C2C)
EXEC_COMPLEX(cufftExecZ2Z, FFT_C2C | FFT_DOUBLE)
EXEC_REAL(cufftExecR2C, FFT_R2C)
EXEC_REAL(cufftExecC2R, FFT_C2R)
EXEC_REAL(cufftExecD2Z, FFT_R2C | FFT_DOUBLE)
EXEC_REAL(cufftExecZ2D, FFT_C2R | FFT_DOUBLE)
