/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans: their numbers, what they are set to, and their ends; versions.
 */
#include "shim/libraries/cufft/multi.h"

#include <stdatomic.h>
#include <stdlib.h>

/* What this front stands for, where there is no agent to ask. */
#define FRONT_VERSION (VCUDA_ABI == 11 ? 11401 : 12500)

static _Atomic(struct plan *) plans[CUFFT_PLANS + 1]; /* by number */

struct plan *fft_plan(cufftHandle number)
{
	return number > 0 && number <= CUFFT_PLANS ? atomic_load(&plans[number]) : NULL;
}

void fft_area(struct plan *plan, CUdeviceptr area, bool own)
{
	if (plan->own_area)
		cuMemFree(plan->area);
	plan->area = area;
	plan->own_area = own;
}

/* A number is not given again soon: a stale one is seen to be one. */
cufftResult hand_cufftCreate(cufftHandle *handle)
{
	static _Atomic unsigned next;
	struct plan *plan;

	if (!handle)
		return CUFFT_INVALID_VALUE;
	plan = calloc(1, sizeof(*plan));
	if (!plan)
		return CUFFT_ALLOC_FAILED;
	plan->content.plain.major = VCUDA_ABI;
	for (int i = 0; i < CUFFT_PLANS; i++) {
		unsigned number = atomic_fetch_add(&next, 1) % CUFFT_PLANS + 1;
		struct plan *none = NULL;

		if (atomic_compare_exchange_strong(&plans[number], &none, plan)) {
			*handle = (cufftHandle)number;
			return CUFFT_SUCCESS;
		}
	}
	free(plan);
	return CUFFT_ALLOC_FAILED;
}

/* The agent that knows the plan is that of its context. */
static CUresult plan_end(cufftHandle number, const struct plan *plan)
{
	struct wire_cufftDestroy body = {
		.plan = plan->made ? number : 0, .callbacks = plan->content.extra.callbacks};
	CUcontext context = NULL;
	CUresult posted;

	if (cuCtxGetCurrent(&context) || context == plan->context)
		return front_post(OP_cufftDestroy, &body, sizeof(body));
	if (cuCtxPushCurrent(plan->context))
		return CUDA_SUCCESS; /* it went with its context */
	posted = front_post(OP_cufftDestroy, &body, sizeof(body));
	cuCtxPopCurrent(&context);
	return posted;
}

cufftResult hand_cufftDestroy(cufftHandle number)
{
	struct plan *plan = fft_plan(number);
	CUresult posted = CUDA_SUCCESS;

	/* Of two threads that destroy it one finds it. */
	if (!plan || !atomic_compare_exchange_strong(&plans[number], &plan, NULL))
		return CUFFT_INVALID_PLAN;
	if (plan->multi)
		fft_multi_end(plan);
	else if (plan->made || plan->content.extra.callbacks)
		posted = plan_end(number, plan);
	fft_area(plan, 0, false);
	free(plan);
	return front_status(&cufft_front, posted);
}

cufftResult hand_cufftSetStream(cufftHandle number, cudaStream_t stream)
{
	struct plan *plan = fft_plan(number);

	if (!plan)
		return CUFFT_INVALID_PLAN;
	plan->stream = (CUstream)stream;
	return CUFFT_SUCCESS;
}

cufftResult hand_cufftSetAutoAllocation(cufftHandle number, int automatic)
{
	struct plan *plan = fft_plan(number);

	if (!plan)
		return CUFFT_INVALID_PLAN;
	plan->no_allocation = !automatic;
	return CUFFT_SUCCESS;
}

cufftResult hand_cufftSetWorkArea(cufftHandle number, void *area)
{
	struct plan *plan = fft_plan(number);

	if (!plan || plan->multi)
		return CUFFT_INVALID_PLAN;
	fft_area(plan, (CUdeviceptr)(uintptr_t)area, false);
	return CUFFT_SUCCESS;
}

/* One for each GPU of the plan. */
cufftResult hand_cufftXtSetWorkArea(cufftHandle number, void **areas)
{
	const struct plan *plan = fft_plan(number);

	if (!plan || (plan->multi && !plan->made))
		return CUFFT_INVALID_PLAN;
	if (!areas)
		return CUFFT_INVALID_VALUE;
	if (!plan->multi)
		return hand_cufftSetWorkArea(number, areas[0]);
	fft_multi_areas(plan, areas);
	return CUFFT_SUCCESS;
}

cufftResult hand_cufftGetSize(cufftHandle number, size_t *bytes)
{
	struct plan *plan = fft_plan(number);

	if (!plan || !plan->made)
		return CUFFT_INVALID_PLAN;
	if (!bytes)
		return CUFFT_INVALID_VALUE;
	if (plan->multi)
		fft_multi_sizes(plan, bytes);
	else
		*bytes = plan->area_bytes;
	return CUFFT_SUCCESS;
}

/* ---- properties: what the agent's library is told before it makes the plan ---- */

static cufftResult property_of(cufftHandle number, cufftProperty property, struct plan **plan)
{
	*plan = fft_plan(number);
	if (!*plan)
		return CUFFT_INVALID_PLAN;
	return property < 1 || property > CUFFT_PROPERTIES ? CUFFT_INVALID_VALUE
							   : CUFFT_SUCCESS;
}

static cufftResult property_set(
	cufftHandle number, cufftProperty property, long long int value, bool set)
{
	struct plan *plan;
	cufftResult status = property_of(number, property, &plan);
	uint32_t bit = status ? 0 : 1u << (property - 1);

	if (status)
		return status;
	if (plan->made)
		return CUFFT_NOT_SUPPORTED;
	plan->content.plain.property[property - 1] = value;
	plan->content.plain.properties &= ~bit;
	plan->content.plain.properties |= set ? bit : 0;
	return CUFFT_SUCCESS;
}

cufftResult hand_cufftSetPlanPropertyInt64(
	cufftHandle number, cufftProperty property, const long long int value)
{
	return property_set(number, property, value, true);
}

cufftResult hand_cufftResetPlanProperty(cufftHandle number, cufftProperty property)
{
	return property_set(number, property, 0, false);
}

cufftResult hand_cufftGetPlanPropertyInt64(
	cufftHandle number, cufftProperty property, long long int *value)
{
	struct plan *plan;
	cufftResult status = property_of(number, property, &plan);

	if (status || !value)
		return status ? status : CUFFT_INVALID_VALUE;
	*value = plan->content.plain.property[property - 1];
	return CUFFT_SUCCESS;
}

/* ---- versions ---- */

/* That of the agent's library, once the program has begun to use CUDA: to begin it here would
 * be seen after a fork. */
static int version_get(void)
{
	static _Atomic int known;
	struct wire_cufftGetVersion body = {.major = VCUDA_ABI};
	struct wire_cufftGetVersion_reply reply = {0};
	int version = atomic_load(&known);
	CUcontext context;

	if (version)
		return version;
	if (cuCtxGetCurrent(&context) ||
		front_ask(OP_cufftGetVersion, &body, sizeof(body), &reply, sizeof(reply)) ||
		reply.plain.status || reply.version <= 0)
		return FRONT_VERSION;
	atomic_store(&known, reply.version);
	return reply.version;
}

cufftResult hand_cufftGetVersion(int *version)
{
	if (!version)
		return CUFFT_INVALID_VALUE;
	*version = version_get();
	return CUFFT_SUCCESS;
}

cufftResult hand_cufftGetProperty(libraryPropertyType type, int *value)
{
	int version;

	if ((unsigned)type > PATCH_LEVEL || !value)
		return CUFFT_INVALID_VALUE;
	version = version_get();
	*value = type == MAJOR_VERSION	 ? version / 1000
		 : type == MINOR_VERSION ? version / 100 % 10
					 : version % 100;
	return CUFFT_SUCCESS;
}
