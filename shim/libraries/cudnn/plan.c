/* SPDX-License-Identifier: Apache-2.0
 *
 * Execution plans. A plan is made on the agent once for each content and has a
 * name there; the same content finds the same plan again, in the same context, so that a
 * program which makes its plans anew for every step asks nothing.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "protocol/wire/handle.h"
#include "shim/libraries/cudnn/backend.h"
#include "shim/engine/sha256.h"
#include "shim/engine/lock.h"

/* Plans that no descriptor holds are kept for when they come again, up to so many. */
#define PLANS_MAX 1024
/* Tensors of a graph that are passed by value. */
#define VALUES_MAX 64

struct plan {
	struct plan *next; /* the lately used first */
	uint8_t digest[32];
	CUcontext context;
	uint64_t number;
	int64_t workspace;
	uint32_t holders; /* under the lock */
	uint32_t values;
	struct {
		int64_t uid;
		uint32_t bytes;
	} value[VALUES_MAX];
};

static struct {
	pthread_mutex_t lock;
	struct plan *plans;
	uint32_t plan_count;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(plan, kept.lock, LOCK_PLAN);

int64_t plan_workspace(const struct plan *plan)
{
	return plan->workspace;
}

uint64_t plan_number(const struct plan *plan)
{
	return plan->number;
}

uint32_t plan_value_bytes(const struct plan *plan, int64_t uid)
{
	for (uint32_t i = 0; i < plan->values; i++)
		if (plan->value[i].uid == uid)
			return plan->value[i].bytes;
	return 0;
}

static void close_plan(struct plan *plan)
{
	struct wire_vcudaCudnnPlanClose body = {.plan = plan->number};

	vcuda_front_release(plan->number);
	front_post(OP_vcudaCudnnPlanClose, &body, sizeof(body));
	free(plan);
}

/* With the lock held: one that nobody holds and was not used for longest, taken out; or NULL.
 */
static struct plan *remove_oldest(void)
{
	struct plan **found = NULL;
	struct plan *plan = NULL;

	if (kept.plan_count <= PLANS_MAX)
		return NULL;
	for (struct plan **at = &kept.plans; *at; at = &(*at)->next)
		if (!(*at)->holders)
			found = at;
	if (found) {
		plan = *found;
		*found = plan->next;
		kept.plan_count--;
	}
	return plan;
}

void plan_drop(struct plan *plan)
{
	struct plan *gone;

	pthread_mutex_lock(&kept.lock);
	plan->holders--;
	gone = remove_oldest();
	pthread_mutex_unlock(&kept.lock);
	if (gone)
		close_plan(gone);
}

/* Finds the plan, puts it first and holds it. */
static struct plan *find(const uint8_t *digest, CUcontext context)
{
	struct plan *plan = NULL;

	pthread_mutex_lock(&kept.lock);
	for (struct plan **at = &kept.plans; *at; at = &(*at)->next)
		if ((*at)->context == context && !memcmp((*at)->digest, digest, 32)) {
			plan = *at;
			*at = plan->next;
			plan->next = kept.plans;
			kept.plans = plan;
			plan->holders++;
			break;
		}
	pthread_mutex_unlock(&kept.lock);
	return plan;
}

/* The tensors that are passed by value, and what they take. */
static cudnnStatus_t note_values(struct plan *plan, const struct tree *tree)
{
	for (uint32_t i = 0; i < tree->nodes; i++) {
		const struct backend *b = tree->node[i];
		const struct backend_attribute *by, *dims, *type, *uid;
		uint64_t bytes;

		by = backend_find(b, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
		if (b->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR || !by || !by->count ||
			!*(const unsigned char *)by->data)
			continue;
		dims = backend_find(b, CUDNN_ATTR_TENSOR_DIMENSIONS);
		type = backend_find(b, CUDNN_ATTR_TENSOR_DATA_TYPE);
		uid = backend_find(b, CUDNN_ATTR_TENSOR_UNIQUE_ID);
		if (!dims || !type || !type->count || !uid || !uid->count ||
			dims->type != CUDNN_TYPE_INT64 || uid->type != CUDNN_TYPE_INT64)
			return cudnn_fault(CUDNN_STATUS_BAD_PARAM, "a tensor by value");
		bytes = cudnn_data_bytes(*(const uint32_t *)type->data);
		for (uint32_t n = 0; n < dims->count && bytes <= 4096; n++)
			bytes *= (uint64_t)((const int64_t *)dims->data)[n];
		if (!bytes || bytes > 4096 || plan->values == VALUES_MAX)
			return cudnn_fault(CUDNN_STATUS_NOT_SUPPORTED,
				"tensors by value that are too large or too many");
		plan->value[plan->values].uid = *(const int64_t *)uid->data;
		plan->value[plan->values++].bytes = (uint32_t)bytes;
	}
	return CUDNN_STATUS_SUCCESS;
}

/* Makes the plan on the agent under a name of its own, and its workspace comes back. */
static cudnnStatus_t make(struct plan *plan, const struct backend *b)
{
	struct ask ask = {
		.attribute = CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
		.type = CUDNN_TYPE_INT64,
		.wanted = 1,
	};
	uint8_t digest[32];
	cudnnStatus_t status;

	plan->number = vcuda_front_mint(KIND_cudnnPlan, plan);
	if (!plan->number)
		return CUDNN_STATUS_ALLOC_FAILED;
	ask.plan = plan->number;
	status = backend_ask(b, &ask, digest);
	if (!status && ask.bytes != sizeof(plan->workspace))
		status = CUDNN_STATUS_INTERNAL_ERROR;
	if (status)
		vcuda_front_release(plan->number);
	else
		memcpy(&plan->workspace, ask.answer, sizeof(plan->workspace));
	return status;
}

cudnnStatus_t plan_finalize(struct backend *b)
{
	struct tree *tree = malloc(sizeof(*tree));
	struct plan *plan = NULL;
	struct plan *gone = NULL;
	CUcontext context = NULL;
	uint8_t digest[32];
	cudnnStatus_t status;

	if (!tree)
		return CUDNN_STATUS_ALLOC_FAILED;
	cuCtxGetCurrent(&context);
	status = tree_of(tree, b);
	if (!status) {
		sha256(tree->words, 4 * (size_t)tree->count, digest);
		b->plan = find(digest, context);
	}
	if (!status && !b->plan) {
		plan = calloc(1, sizeof(*plan));
		status = plan ? note_values(plan, tree) : CUDNN_STATUS_ALLOC_FAILED;
		if (!status)
			status = make(plan, b);
	}
	free(tree->words);
	free(tree);
	if (status || b->plan) {
		free(plan);
		return status;
	}
	memcpy(plan->digest, digest, sizeof(digest));
	plan->context = context;
	plan->holders = 1;
	pthread_mutex_lock(&kept.lock);
	plan->next = kept.plans;
	kept.plans = plan;
	kept.plan_count++;
	gone = remove_oldest();
	pthread_mutex_unlock(&kept.lock);
	if (gone)
		close_plan(gone);
	b->plan = plan;
	return CUDNN_STATUS_SUCCESS;
}
