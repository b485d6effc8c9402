/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans: their numbers, what they are set to, and the calls that make them.
 */
#include "softgpu/fft/fft.h"
#include "softgpu/driver/task.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fft_plan *plans[FFT_PLANS];

/* Says, once, why there is no plan with them. */
static void callbacks_refused(void)
{
	static atomic_flag logged_once = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&logged_once))
		cuSoftgpuProblem("a plan of cuFFT has a callback in LTO-IR, which is not PTX: "
				 "no plan is made with it");
}

struct fft_plan *fft_plan_get(int number)
{
	struct fft_plan *plan = NULL;

	pthread_mutex_lock(&lock);
	if (number > 0 && number < FFT_PLANS)
		plan = plans[number];
	if (plan)
		atomic_fetch_add(&plan->refs, 1);
	pthread_mutex_unlock(&lock);
	return plan;
}

void fft_plan_drop(struct fft_plan *plan)
{
	if (atomic_fetch_sub(&plan->refs, 1) != 1)
		return;
	fft_transform_end(plan);
	free(plan);
}

FFT_CALL(cufftCreate, int *number)
{
	struct fft_plan *plan;
	int at = 1;

	if (!number)
		return FFT_INVALID_VALUE;
	plan = calloc(1, sizeof(*plan));
	if (!plan)
		return FFT_ALLOC_FAILED;
	plan->refs = 1;
	pthread_mutex_lock(&lock);
	while (at < FFT_PLANS && plans[at])
		at++;
	if (at < FFT_PLANS)
		plans[at] = plan;
	pthread_mutex_unlock(&lock);
	if (at == FFT_PLANS) {
		free(plan);
		return FFT_ALLOC_FAILED;
	}
	*number = at;
	return FFT_SUCCESS;
}

FFT_CALL(cufftDestroy, int number)
{
	struct fft_plan *plan = fft_plan_get(number);

	if (!plan)
		return FFT_INVALID_PLAN;
	pthread_mutex_lock(&lock);
	plans[number] = NULL;
	pthread_mutex_unlock(&lock);
	if (plan->own_area)
		cuMemFree(plan->area); /* waits for the tasks that have it */
	fft_plan_drop(plan);
	fft_plan_drop(plan);
	return FFT_SUCCESS;
}

/* One statement about the plan of a number. */
#define WITH_PLAN(NUMBER, STATEMENT)                                                           \
	struct fft_plan *plan = fft_plan_get(NUMBER);                                          \
	if (!plan)                                                                             \
		return FFT_INVALID_PLAN;                                                       \
	STATEMENT;                                                                             \
	fft_plan_drop(plan)

FFT_CALL(cufftSetStream, int number, CUstream stream)
{
	WITH_PLAN(number, plan->stream = stream);
	return FFT_SUCCESS;
}

FFT_CALL(cufftSetAutoAllocation, int number, int automatic)
{
	WITH_PLAN(number, plan->no_allocation = !automatic);
	return FFT_SUCCESS;
}

static void plan_set_area(struct fft_plan *plan, CUdeviceptr area, bool own)
{
	if (plan->own_area)
		cuMemFree(plan->area);
	plan->area = area;
	plan->own_area = own;
}

FFT_CALL(cufftSetWorkArea, int number, void *area)
{
	WITH_PLAN(number, plan_set_area(plan, (CUdeviceptr)(uintptr_t)area, false));
	return FFT_SUCCESS;
}

/* ---- properties ---- */

#define JIT 1	  /* may be patient: 0 or 1 */
#define THREADS 2 /* of the host, that it may use */
#define LAST 4

static int property_set(int number, int property, long long value, long long *get)
{
	struct fft_plan *plan = fft_plan_get(number);
	int status = FFT_SUCCESS;

	if (!plan)
		return FFT_INVALID_PLAN;
	if (property < JIT || property > LAST)
		status = FFT_INVALID_VALUE;
	else if (get)
		*get = plan->property[property];
	else if (plan->made)
		status = FFT_NOT_SUPPORTED;
	else if (value < 0 || (property != THREADS && value > 1))
		status = FFT_INVALID_VALUE;
	else
		plan->property[property] = value;
	fft_plan_drop(plan);
	return status;
}

FFT_CALL(cufftSetPlanPropertyInt64, int number, int property, long long value)
{
	return property_set(number, property, value, NULL);
}

FFT_CALL(cufftGetPlanPropertyInt64, int number, int property, long long *value)
{
	return value ? property_set(number, property, 0, value) : FFT_INVALID_VALUE;
}

FFT_CALL(cufftResetPlanProperty, int number, int property)
{
	return property_set(number, property, 0, NULL);
}

/* ---- making ---- */

static int area_size(const struct fft_shape *shape, size_t *bytes)
{
	*bytes = fft_shape_area(shape);
	return FFT_SUCCESS;
}

static int plan_make(struct fft_plan *plan, const struct fft_shape *shape, size_t *bytes)
{
	CUdeviceptr area = 0;

	if (plan->made)
		return FFT_INVALID_PLAN; /* the documented status: only once */
	plan->area_bytes = fft_shape_area(shape);
	if (!plan->no_allocation && plan->area_bytes) {
		if (cuMemAlloc(&area, plan->area_bytes))
			return FFT_ALLOC_FAILED;
		plan_set_area(plan, area, true);
	}
	plan->shape = *shape;
	plan->made = true;
	return area_size(shape, bytes);
}

enum what { MAKE, SIZE };

static int plan_do(
	enum what what, int number, const struct fft_arguments *arguments, size_t *bytes)
{
	struct fft_plan *plan = fft_plan_get(number);
	struct fft_shape shape;
	int status;

	if (!plan)
		return FFT_INVALID_PLAN;
	status = bytes ? fft_shape_make(&shape, arguments) : FFT_INVALID_VALUE;
	if (!status && plan->callbacks) {
		callbacks_refused();
		status = FFT_MISSING_DEPENDENCY;
	}
	if (!status)
		status = what == MAKE ? plan_make(plan, &shape, bytes)
				      : area_size(&shape, bytes);
	fft_plan_drop(plan);
	return status;
}

#define MANY64_PARAMETERS                                                                      \
	int number, int rank, long long *n, long long *in_embed, long long in_stride,          \
		long long in_dist, long long *out_embed, long long out_stride,                 \
		long long out_dist, int type, long long batch, size_t *bytes
#define XT_PARAMETERS                                                                          \
	int number, int rank, long long *n, long long *in_embed, long long in_stride,          \
		long long in_dist, int in_type, long long *out_embed, long long out_stride,    \
		long long out_dist, int out_type, long long batch, size_t *bytes, int run_type
#define ARGUMENTS                                                                              \
	.rank = rank, .n = n, .in_embed = in_embed, .out_embed = out_embed,                    \
	.in_stride = in_stride, .in_dist = in_dist, .out_stride = out_stride,                  \
	.out_dist = out_dist, .batch = batch

FFT_CALL(cufftXtMakePlanMany, XT_PARAMETERS)
{
	return plan_do(MAKE, number,
		&(struct fft_arguments){ARGUMENTS, .in_type = in_type, .out_type = out_type,
			.run_type = run_type},
		bytes);
}

FFT_CALL(cufftXtGetSizeMany, XT_PARAMETERS)
{
	return plan_do(SIZE, number,
		&(struct fft_arguments){ARGUMENTS, .in_type = in_type, .out_type = out_type,
			.run_type = run_type},
		bytes);
}

FFT_CALL(cufftMakePlanMany64, MANY64_PARAMETERS)
{
	struct fft_arguments a = {ARGUMENTS};

	return fft_types(&a, type) ? plan_do(MAKE, number, &a, bytes) : FFT_INVALID_TYPE;
}

FFT_CALL(cufftGetSizeMany64, MANY64_PARAMETERS)
{
	struct fft_arguments a = {ARGUMENTS};

	return fft_types(&a, type) ? plan_do(SIZE, number, &a, bytes) : FFT_INVALID_TYPE;
}

/* A transform here gets by with whatever work area there is. */
FFT_CALL(cufftXtSetWorkAreaPolicy, int number, int policy, size_t *limit)
{
	struct fft_plan *plan = fft_plan_get(number);
	int status = FFT_SUCCESS;
	size_t most;

	if (!plan)
		return FFT_INVALID_PLAN;
	most = plan->made ? fft_shape_area(&plan->shape) : 0;
	if (!plan->made)
		status = FFT_INVALID_PLAN;
	else if (policy == 0) /* CUFFT_WORKAREA_MINIMAL */
		plan->area_bytes = 0;
	else if (policy == 1 && limit) /* …_USER */
		plan->area_bytes = *limit < most ? *limit : most;
	else if (policy == 2) /* …_PERFORMANCE: cuFFT 12 on an H200 answers so */
		status = FFT_INVALID_PLAN;
	else
		status = FFT_INVALID_VALUE;
	fft_plan_drop(plan);
	return status;
}

FFT_CALL(cufftGetSize, int number, size_t *bytes)
{
	struct fft_plan *plan = fft_plan_get(number);
	int status = FFT_INVALID_PLAN;

	if (!plan)
		return FFT_INVALID_PLAN;
	if (!bytes) {
		status = FFT_INVALID_VALUE;
	} else if (plan->made) {
		*bytes = plan->area_bytes;
		status = FFT_SUCCESS;
	}
	fft_plan_drop(plan);
	return status;
}
