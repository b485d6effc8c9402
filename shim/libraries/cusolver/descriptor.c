/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects of parameters: made, set, put into calls.
 */
#include "shim/libraries/cusolver/cusolver.h"

#include <stdlib.h>

#include "shim/generated/cusolver_hand.h"

struct object {
	uint64_t kind; /* enum cusolver_item */
	union cusolver_content content;
};

cusolverStatus_t cusolver_object_create(void **to, enum cusolver_item kind)
{
	struct object *o;

	if (!to)
		return CUSOLVER_STATUS_INVALID_VALUE;
	o = calloc(1, sizeof(*o));
	if (!o)
		return CUSOLVER_STATUS_ALLOC_FAILED;
	o->kind = kind;
	*to = o;
	return CUSOLVER_STATUS_SUCCESS;
}

/* NULL: no object of that kind. */
static struct object *find(void *descriptor, enum cusolver_item kind)
{
	struct object *o = descriptor;

	return o && o->kind == kind ? o : NULL;
}

union cusolver_content *cusolver_object(void *descriptor, enum cusolver_item kind)
{
	struct object *o = find(descriptor, kind);

	return o ? &o->content : NULL;
}

cusolverStatus_t cusolver_object_destroy(void *descriptor, enum cusolver_item kind)
{
	struct object *o = find(descriptor, kind);

	if (!o)
		return descriptor ? CUSOLVER_STATUS_INVALID_VALUE : CUSOLVER_STATUS_SUCCESS;
	o->kind = 0;
	free(o);
	return CUSOLVER_STATUS_SUCCESS;
}

/* What a call answers where there is no such object. */
static int lacks(uint32_t kind)
{
	return kind == CUSOLVER_ITEM_REFINEMENT ? CUSOLVER_STATUS_IRS_PARAMS_NOT_INITIALIZED
	       : kind == CUSOLVER_ITEM_INFOS	? CUSOLVER_STATUS_IRS_INFOS_NOT_INITIALIZED
						: CUSOLVER_STATUS_INVALID_VALUE;
}

/* Of what the agent has the handle travels, and is not part of what the call is learned by. */
static void put_object(struct library_items *items, const void *object, uint32_t kind)
{
	uint64_t number = (uint64_t)(uintptr_t)object, *at;

	if (!vcuda_front_object(number, cusolver_object_kind(kind))) {
		library_fault(items, lacks(kind), "");
		return;
	}
	at = library_varying(items, sizeof(*at));
	if (at)
		*at = number;
}

/* The content of an object of ours, or of cuSPARSE's front. */
static bool content_of(
	const void *descriptor, enum cusolver_item kind, union cusolver_content *content)
{
	const struct object *o;

	if (kind == CUSOLVER_ITEM_MATRIX)
		return cusolver_matrix_of(descriptor, &content->matrix);
	o = find((void *)(uintptr_t)descriptor, kind);
	if (o)
		*content = o->content;
	return o;
}

/* Without an object of parameters the 64-bit calls take the library's defaults. */
static void put_nothing(struct library_items *items)
{
	uint32_t *at = library_key(items, 1);

	if (at)
		*at = 0;
}

void cusolver_put_descriptor(struct library_items *items, const void *descriptor, uint32_t kind)
{
	uint32_t bytes = cusolver_content_bytes(kind);
	union cusolver_content content;
	void *to;

	if (!descriptor && kind == CUSOLVER_ITEM_PARAMS) {
		put_nothing(items);
		return;
	}
	if (cusolver_object_kind(kind)) {
		put_object(items, descriptor, kind);
		return;
	}
	if (!content_of(descriptor, (enum cusolver_item)kind, &content)) {
		library_fault(items, lacks(kind), "");
		return;
	}
	to = library_put_content(items, kind, bytes / 4);
	if (to)
		memcpy(to, &content, bytes);
}

cusolverStatus_t hand_cusolverDnCreateParams(cusolverDnParams_t *params)
{
	return cusolver_object_create((void **)params, CUSOLVER_ITEM_PARAMS);
}

cusolverStatus_t hand_cusolverDnDestroyParams(cusolverDnParams_t params)
{
	return cusolver_object_destroy(params, CUSOLVER_ITEM_PARAMS);
}

cusolverStatus_t hand_cusolverDnSetAdvOptions(
	cusolverDnParams_t params, cusolverDnFunction_t function, cusolverAlgMode_t algo)
{
	struct object *o = find(params, CUSOLVER_ITEM_PARAMS);

	if (!o || function < 0 || function >= CUSOLVER_FUNCTIONS || algo < 0 || algo > 2)
		return CUSOLVER_STATUS_INVALID_VALUE;
	o->content.params.algorithm[function] = (uint8_t)(1 + algo);
	return CUSOLVER_STATUS_SUCCESS;
}

static struct cusolver_jacobi *jacobi_of(void *info, enum cusolver_item kind)
{
	struct object *o = find(info, kind);

	return o ? &o->content.jacobi : NULL;
}

static cusolverStatus_t tolerance_set(struct cusolver_jacobi *j, double tolerance)
{
	if (!j)
		return CUSOLVER_STATUS_INVALID_VALUE;
	j->tolerance = tolerance;
	j->set |= CUSOLVER_SET_TOLERANCE;
	return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t sweeps_set(struct cusolver_jacobi *j, int sweeps)
{
	if (!j || sweeps < 0)
		return CUSOLVER_STATUS_INVALID_VALUE;
	j->max_sweeps = sweeps;
	j->set |= CUSOLVER_SET_MAX_SWEEPS;
	return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t sort_set(struct cusolver_jacobi *j, int sort)
{
	if (!j)
		return CUSOLVER_STATUS_INVALID_VALUE;
	j->sort = sort;
	j->set |= CUSOLVER_SET_SORT;
	return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t hand_cusolverDnCreateSyevjInfo(syevjInfo_t *info)
{
	return cusolver_object_create((void **)info, CUSOLVER_ITEM_SYEVJ);
}

cusolverStatus_t hand_cusolverDnDestroySyevjInfo(syevjInfo_t info)
{
	return cusolver_object_destroy(info, CUSOLVER_ITEM_SYEVJ);
}

cusolverStatus_t hand_cusolverDnXsyevjSetTolerance(syevjInfo_t info, double tolerance)
{
	return tolerance_set(jacobi_of(info, CUSOLVER_ITEM_SYEVJ), tolerance);
}

cusolverStatus_t hand_cusolverDnXsyevjSetMaxSweeps(syevjInfo_t info, int max_sweeps)
{
	return sweeps_set(jacobi_of(info, CUSOLVER_ITEM_SYEVJ), max_sweeps);
}

cusolverStatus_t hand_cusolverDnXsyevjSetSortEig(syevjInfo_t info, int sort_eig)
{
	return sort_set(jacobi_of(info, CUSOLVER_ITEM_SYEVJ), sort_eig);
}

cusolverStatus_t hand_cusolverDnCreateGesvdjInfo(gesvdjInfo_t *info)
{
	return cusolver_object_create((void **)info, CUSOLVER_ITEM_GESVDJ);
}

cusolverStatus_t hand_cusolverDnDestroyGesvdjInfo(gesvdjInfo_t info)
{
	return cusolver_object_destroy(info, CUSOLVER_ITEM_GESVDJ);
}

cusolverStatus_t hand_cusolverDnXgesvdjSetTolerance(gesvdjInfo_t info, double tolerance)
{
	return tolerance_set(jacobi_of(info, CUSOLVER_ITEM_GESVDJ), tolerance);
}

cusolverStatus_t hand_cusolverDnXgesvdjSetMaxSweeps(gesvdjInfo_t info, int max_sweeps)
{
	return sweeps_set(jacobi_of(info, CUSOLVER_ITEM_GESVDJ), max_sweeps);
}

cusolverStatus_t hand_cusolverDnXgesvdjSetSortEig(gesvdjInfo_t info, int sort_svd)
{
	return sort_set(jacobi_of(info, CUSOLVER_ITEM_GESVDJ), sort_svd);
}
