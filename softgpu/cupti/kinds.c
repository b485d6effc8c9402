/* SPDX-License-Identifier: Apache-2.0
 *
 * Which kinds of records are wanted, of every context and of one, and what else is set.  Kinds
 * that have no records here are answered as an H200 answers.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/cupti/activity.h"
#include "softgpu/driver/work/work.h"

/* Work of the device, which the driver tells of. */
#define WORK                                                                                   \
	(1ull << CUPTI_ACTIVITY_KIND_KERNEL | 1ull << CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL |  \
		1ull << CUPTI_ACTIVITY_KIND_MEMCPY | 1ull << CUPTI_ACTIVITY_KIND_MEMCPY2 |     \
		1ull << CUPTI_ACTIVITY_KIND_MEMSET | 1ull << CUPTI_ACTIVITY_KIND_GRAPH_TRACE)

struct of_context {
	uint32_t context;
	uint64_t kinds;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t of_all;
static struct of_context *of_contexts;
static size_t contexts;

/* ---- what is enabled; under the lock ---- */

static uint64_t enabled_anywhere(void)
{
	uint64_t kinds = of_all;

	for (size_t i = 0; i < contexts; i++)
		kinds |= of_contexts[i].kinds;
	return kinds;
}

/* The driver tells us only what somebody wants. */
static void kinds_changed(void)
{
	cuSoftgpuProfile(enabled_anywhere() & WORK ? &records_profiler : NULL);
}

static uint64_t *kinds_of(uint32_t context)
{
	struct of_context *more;

	for (size_t i = 0; i < contexts; i++)
		if (of_contexts[i].context == context)
			return &of_contexts[i].kinds;
	more = realloc(of_contexts, (contexts + 1) * sizeof(*more));
	if (!more)
		return NULL;
	of_contexts = more;
	more[contexts] = (struct of_context){.context = context};
	return &more[contexts++].kinds;
}

uint64_t kinds_wanted(uint32_t context)
{
	uint64_t kinds;

	pthread_mutex_lock(&lock);
	kinds = of_all;
	for (size_t i = 0; i < contexts; i++)
		if (of_contexts[i].context == context)
			kinds |= of_contexts[i].kinds;
	pthread_mutex_unlock(&lock);
	return kinds;
}

void kinds_end(void)
{
	pthread_mutex_lock(&lock);
	of_all = 0;
	contexts = 0;
	kinds_changed();
	pthread_mutex_unlock(&lock);
}

/* ---- the calls ---- */

static CUptiResult kind_enable_answer(CUpti_ActivityKind kind)
{
	switch (kind) {
	case 0:	 /* INVALID */
	case 18: /* CDP_KERNEL */
	case 20: /* ENVIRONMENT */
	case 28: /* DEVICE_ATTRIBUTE */ return CUPTI_ERROR_NOT_COMPATIBLE;
	case 6:		/* EVENT */
	case 7:		/* METRIC */
	case 14 ... 16: /* SOURCE_LOCATOR, GLOBAL_ACCESS, BRANCH */
	case 21:	/* EVENT_INSTANCE */
	case 23:	/* METRIC_INSTANCE */
	case 24:	/* INSTRUCTION_EXECUTION */
	case 29 ... 32: /* SHARED_ACCESS, PC_SAMPLING, …_RECORD_INFO, INSTRUCTION_CORRELATION */
	case 41 ... 44: /* INSTANTANEOUS_… */ return CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED;
	case 25: /* UNIFIED_MEMORY_COUNTER, before it is configured */
		return CUPTI_ERROR_NOT_READY;
	case 27: /* MODULE */
	case 53: /* DEVICE_GRAPH_TRACE */ return CUPTI_ERROR_INVALID_KIND;
	default: return CUPTI_SUCCESS;
	}
}

static CUptiResult kind_disable_answer(CUpti_ActivityKind kind)
{
	CUptiResult result = kind_enable_answer(kind);

	return result == CUPTI_ERROR_INVALID_KIND || result == CUPTI_ERROR_NOT_READY
		       ? result
		       : CUPTI_SUCCESS;
}

/* Kernels one at a time exclude those at once, and graphs as a whole. */
static bool kind_compatible(CUpti_ActivityKind kind)
{
	const uint64_t others = kind_bit(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) |
				kind_bit(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
	uint64_t kinds = enabled_anywhere();

	if (kind == CUPTI_ACTIVITY_KIND_KERNEL)
		return !(kinds & others);
	return !(kind_bit((unsigned)kind) & others) ||
	       !(kinds & kind_bit(CUPTI_ACTIVITY_KIND_KERNEL));
}

/* CONTEXT: its number, or 0 for every one. */
static CUptiResult kind_set(uint32_t context, CUpti_ActivityKind kind, bool enable)
{
	CUptiResult result = enable ? kind_enable_answer(kind) : kind_disable_answer(kind);
	uint64_t *kinds = &of_all;

	if (result)
		return result;
	pthread_mutex_lock(&lock);
	if (enable && !kind_compatible(kind))
		result = CUPTI_ERROR_NOT_COMPATIBLE;
	else if (context && !(kinds = kinds_of(context)))
		result = CUPTI_ERROR_OUT_OF_MEMORY;
	else if (enable)
		*kinds |= kind_bit((unsigned)kind);
	else
		*kinds &= ~kind_bit((unsigned)kind);
	kinds_changed();
	pthread_mutex_unlock(&lock);
	return result;
}

static CUptiResult kind_set_of(CUcontext handle, CUpti_ActivityKind kind, bool enable)
{
	uint32_t context, device;

	if (!handle)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (cuSoftgpuProfileContext(handle, &context, &device))
		return CUPTI_ERROR_INVALID_CONTEXT;
	return kind_set(context, kind, enable);
}

CUPTI_CALL(cuptiActivityEnable, CUpti_ActivityKind kind)
{
	return kind_set(0, kind, true);
}

CUPTI_CALL(cuptiActivityDisable, CUpti_ActivityKind kind)
{
	return kind_set(0, kind, false);
}

CUPTI_CALL(cuptiActivityEnableContext, CUcontext context, CUpti_ActivityKind kind)
{
	return kind_set_of(context, kind, true);
}

CUPTI_CALL(cuptiActivityDisableContext, CUcontext context, CUpti_ActivityKind kind)
{
	return kind_set_of(context, kind, false);
}

/* ---- attributes: kept, and without effect; as an H200 has them at first ---- */

static struct attribute {
	size_t bytes; /* 0: not supported */
	uint64_t value;
} attributes[] = {
	[CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE] = {sizeof(size_t), 3200000},
	[CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_CDP] = {sizeof(size_t), 8388608},
	[CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT] = {sizeof(size_t), 250},
	[CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER] = {sizeof(uint8_t), 0},
	[CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE] = {sizeof(size_t), 3},
	[CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED] = {sizeof(uint8_t), 0},
	[CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER] = {sizeof(uint8_t), 1},
	[CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_DEVICE_GRAPHS] = {sizeof(size_t), 16777216},
};

static CUptiResult attribute_of(CUpti_ActivityAttribute attr, const size_t *size,
	const void *value, struct attribute **a)
{
	if (!size || !value || attr < 0 ||
		(size_t)attr >= sizeof(attributes) / sizeof(*attributes))
		return CUPTI_ERROR_INVALID_PARAMETER;
	*a = &attributes[attr];
	if (!(*a)->bytes)
		return CUPTI_ERROR_NOT_SUPPORTED;
	return *size < (*a)->bytes ? CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT : CUPTI_SUCCESS;
}

/* Values are little-endian: the low bytes are the shorter form. */
CUPTI_CALL(
	cuptiActivityGetAttribute, CUpti_ActivityAttribute attr, size_t *valueSize, void *value)
{
	struct attribute *a;
	CUptiResult result = attribute_of(attr, valueSize, value, &a);

	if (result)
		return result;
	pthread_mutex_lock(&lock);
	memcpy(value, &a->value, a->bytes);
	pthread_mutex_unlock(&lock);
	*valueSize = a->bytes;
	return CUPTI_SUCCESS;
}

CUPTI_CALL(
	cuptiActivitySetAttribute, CUpti_ActivityAttribute attr, size_t *valueSize, void *value)
{
	struct attribute *a;
	CUptiResult result = attribute_of(attr, valueSize, value, &a);

	if (result)
		return result;
	pthread_mutex_lock(&lock);
	memcpy(&a->value, value, a->bytes);
	pthread_mutex_unlock(&lock);
	return CUPTI_SUCCESS;
}
