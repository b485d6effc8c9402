/* SPDX-License-Identifier: Apache-2.0
 *
 * The ids that a thread pushes around its calls: a stack for each kind.
 */
#include "softgpu/cupti/activity.h"

#include <pthread.h>
#include <stdlib.h>

#define KINDS CUPTI_EXTERNAL_CORRELATION_KIND_SIZE

struct stack {
	uint64_t *ids;
	size_t depth, room;
};
static __thread struct stack *stacks; /* KINDS of them; NULL: nothing was ever pushed */
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void stacks_free(void *pointer)
{
	struct stack *own = pointer;

	for (int kind = 0; kind < KINDS; kind++)
		free(own[kind].ids);
	free(own);
	stacks = NULL;
}

static void key_new(void)
{
	pthread_key_create(&key, stacks_free);
}

static bool kind_valid(CUpti_ExternalCorrelationKind kind)
{
	return kind > CUPTI_EXTERNAL_CORRELATION_KIND_INVALID && kind < KINDS;
}

static bool stack_push(struct stack *stack, uint64_t id)
{
	if (stack->depth == stack->room) {
		size_t room = stack->room ? 2 * stack->room : 16;
		uint64_t *ids = realloc(stack->ids, room * sizeof(*ids));

		if (!ids)
			return false;
		stack->ids = ids;
		stack->room = room;
	}
	stack->ids[stack->depth++] = id;
	return true;
}

CUPTI_CALL(
	cuptiActivityPushExternalCorrelationId, CUpti_ExternalCorrelationKind kind, uint64_t id)
{
	if (!kind_valid(kind))
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!stacks) {
		stacks = calloc(KINDS, sizeof(*stacks));
		if (!stacks)
			return CUPTI_ERROR_OUT_OF_MEMORY;
		pthread_once(&once, key_new);
		pthread_setspecific(key, stacks);
	}
	return stack_push(&stacks[kind], id) ? CUPTI_SUCCESS : CUPTI_ERROR_OUT_OF_MEMORY;
}

CUPTI_CALL(cuptiActivityPopExternalCorrelationId, CUpti_ExternalCorrelationKind kind,
	uint64_t *lastId)
{
	if (!kind_valid(kind))
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!stacks || !stacks[kind].depth)
		return CUPTI_ERROR_QUEUE_EMPTY;
	stacks[kind].depth--;
	if (lastId)
		*lastId = stacks[kind].ids[stacks[kind].depth];
	return CUPTI_SUCCESS;
}

void external_records(uint32_t call)
{
	for (int kind = 0; stacks && kind < KINDS; kind++) {
		const struct stack *stack = &stacks[kind];
		CUpti_ActivityExternalCorrelation record = {
			.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
			.externalKind = kind,
			.correlationId = call};

		if (!stack->depth)
			continue;
		record.externalId = stack->ids[stack->depth - 1];
		backlog_add((const CUpti_Activity *)&record);
	}
}
