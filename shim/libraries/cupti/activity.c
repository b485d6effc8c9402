/* SPDX-License-Identifier: Apache-2.0
 *
 * What is recorded and what is not: kinds, single calls, settings.  Where what a kind needs is
 * not there, the answer is the one that an H200 gave (CUPTI 13.0).
 */
#include <string.h>

#include "shim/libraries/cupti/cupti.h"

static const struct kind {
	uint8_t enabled, disabled; /* the answers to enabling and disabling it */
	uint32_t agents;	   /* what the agents record of it: 1u << enum profile_kind */
} kinds[CUPTI_ACTIVITY_KIND_COUNT] = {
	[CUPTI_ACTIVITY_KIND_INVALID] = {.enabled = CUPTI_ERROR_NOT_COMPATIBLE},
	/* A copy of one byte again and again may be a fill there. */
	[CUPTI_ACTIVITY_KIND_MEMCPY] = {.agents = 1u << PROFILE_COPY | 1u << PROFILE_FILL},
	[CUPTI_ACTIVITY_KIND_MEMSET] = {.agents = 1u << PROFILE_FILL},
	[CUPTI_ACTIVITY_KIND_KERNEL] = {.agents = 1u << PROFILE_KERNEL},
	[CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL] = {.agents = 1u << PROFILE_CONCURRENT_KERNEL},
	[CUPTI_ACTIVITY_KIND_MEMCPY2] = {.agents = 1u << PROFILE_PEER_COPY},
	[CUPTI_ACTIVITY_KIND_GRAPH_TRACE] = {.agents = 1u << PROFILE_GRAPH},
	/* Counters, samples and events of GPUs before Volta. */
	[6] = {.enabled = CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED},
	[7] = {.enabled = CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED},
	[14 ... 16] = {.enabled = CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED},
	[18] = {.enabled = CUPTI_ERROR_NOT_COMPATIBLE},
	[20] = {.enabled = CUPTI_ERROR_NOT_COMPATIBLE},
	[21] = {.enabled = CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED},
	[23 ... 24] = {.enabled = CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED},
	[25] = {CUPTI_ERROR_NOT_READY, CUPTI_ERROR_NOT_READY, 0},
	[27] = {CUPTI_ERROR_INVALID_KIND, CUPTI_ERROR_INVALID_KIND, 0},
	[28] = {.enabled = CUPTI_ERROR_NOT_COMPATIBLE},
	[29 ... 32] = {.enabled = CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED},
	[41 ... 44] = {.enabled = CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED},
	[53] = {CUPTI_ERROR_INVALID_KIND, CUPTI_ERROR_INVALID_KIND, 0},
};

enum { CALL_ON = 1, CALL_OFF = 2 };
static struct {
	_Atomic uint64_t enabled; /* a bit a kind */
	_Atomic uint64_t was;	  /* … since nothing was recorded */
	_Atomic bool devices_due;
	_Atomic uint8_t calls[3][CUPTI_CALLS]; /* by domain: CALL_ON, CALL_OFF */
	/* Calls that are recorded whether their kind is enabled or not. */
	_Atomic uint32_t single_calls;
} activity;

bool cupti_enabled(int kind)
{
	return activity.enabled & 1ull << kind;
}

bool activity_was(int kind)
{
	return activity.was & 1ull << kind;
}

void activity_over(void)
{
	activity.was = activity.enabled;
}

bool activity_devices_due(void)
{
	return activity.devices_due && cupti_enabled(CUPTI_ACTIVITY_KIND_DEVICE);
}

void activity_devices_told(void)
{
	activity.devices_due = false;
}

bool activity_any(void)
{
	return activity.enabled || activity.single_calls;
}

bool cupti_api_enabled(struct callback place)
{
	uint8_t one;

	if (!place.domain || place.number >= CUPTI_CALLS)
		return false;
	one = activity.calls[place.domain][place.number];
	if (one)
		return one == CALL_ON;
	return cupti_enabled(place.domain == CALLBACK_DRIVER ? CUPTI_ACTIVITY_KIND_DRIVER
							     : CUPTI_ACTIVITY_KIND_RUNTIME);
}

static uint32_t agents_record(uint64_t of)
{
	uint32_t agents = 0;

	for (unsigned i = 0; i < CUPTI_ACTIVITY_KIND_COUNT; i++)
		if (of & 1ull << i)
			agents |= kinds[i].agents;
	return agents;
}

/* The program does not hear of it: what the other agents do, and its calls, are recorded. */
void activity_told(CUresult status)
{
	static int absent_logged_once, older_logged_once;

	if (status == CUDA_ERROR_NOT_FOUND)
		vcuda_front_missing(
			"cuptiActivityEnable", cupti_front.name, &absent_logged_once);
	else if (status == CUDA_ERROR_NOT_SUPPORTED)
		vcuda_front_older("cuptiActivityEnable", &older_logged_once);
}

/* Of all agents and the program's calls. */
static void enabled_set(uint64_t to)
{
	uint64_t was = atomic_exchange(&activity.enabled, to);

	activity.was |= to;
	if (!was && to)
		cupti_time_look();
	record_watch();
	if (agents_record(was) != agents_record(to))
		activity_told(vcuda_profile_enable(agents_record(to)));
}

static CUptiResult kind_enable(CUpti_ActivityKind kind)
{
	const uint64_t kernels = 1ull << CUPTI_ACTIVITY_KIND_KERNEL |
				 1ull << CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;

	if (kind < 0 || kind >= CUPTI_ACTIVITY_KIND_COUNT)
		return CUPTI_SUCCESS; /* NVIDIA's lets a newer one's kinds pass */
	if (kinds[kind].enabled)
		return kinds[kind].enabled;
	if ((kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE && activity.enabled & kernels) ||
		(kernels & 1ull << kind && cupti_enabled(CUPTI_ACTIVITY_KIND_GRAPH_TRACE)))
		return CUPTI_ERROR_NOT_COMPATIBLE;
	if (kind == CUPTI_ACTIVITY_KIND_DEVICE)
		activity.devices_due = true;
	enabled_set(activity.enabled | 1ull << kind);
	return CUPTI_SUCCESS;
}

static CUptiResult kind_disable(CUpti_ActivityKind kind)
{
	if (kind < 0 || kind >= CUPTI_ACTIVITY_KIND_COUNT)
		return CUPTI_SUCCESS;
	if (kinds[kind].disabled)
		return kinds[kind].disabled;
	if (!cupti_enabled(kind))
		return CUPTI_SUCCESS;
	/* What was recorded until now is not lost with the agents' recorder. */
	if (kinds[kind].agents)
		deliver_fetch();
	enabled_set(activity.enabled & ~(1ull << kind));
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
	COUNT(cuptiActivityEnable);
	return cupti_result(kind_enable(kind));
}

EXPORT CUptiResult cuptiActivityEnableAndDump(CUpti_ActivityKind kind)
{
	COUNT(cuptiActivityEnableAndDump);
	return cupti_result(kind_enable(kind));
}

EXPORT CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
	COUNT(cuptiActivityDisable);
	return cupti_result(kind_disable(kind));
}

/* Contexts are recorded all or none. */
EXPORT CUptiResult cuptiActivityEnableContext(CUcontext context, CUpti_ActivityKind kind)
{
	COUNT(cuptiActivityEnableContext);
	(void)context;
	return cupti_result(kind_enable(kind));
}

EXPORT CUptiResult cuptiActivityDisableContext(CUcontext context, CUpti_ActivityKind kind)
{
	COUNT(cuptiActivityDisableContext);
	(void)context;
	return cupti_result(kind_disable(kind));
}

/* --- single calls ------------------------------------------------------------------------- */

static CUptiResult call_enable(unsigned domain, CUpti_CallbackId cbid, uint8_t enable)
{
	uint8_t was;

	if (!cbid || cbid >= callback_numbers(domain))
		return CUPTI_ERROR_INVALID_PARAMETER;
	was = atomic_exchange(&activity.calls[domain][cbid], enable ? CALL_ON : CALL_OFF);
	activity.single_calls += (uint32_t)(enable != 0) - (uint32_t)(was == CALL_ON);
	record_watch();
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t enable)
{
	COUNT(cuptiActivityEnableDriverApi);
	return cupti_result(call_enable(CALLBACK_DRIVER, cbid, enable));
}

EXPORT CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, uint8_t enable)
{
	COUNT(cuptiActivityEnableRuntimeApi);
	return cupti_result(call_enable(CALLBACK_RUNTIME, cbid, enable));
}

/* --- settings ----------------------------------------------------------------------------- */

/* What more could be recorded, and is not: the program does without, as where NVIDIA's has
 * nothing to say. */
#define SWITCH(name)                                                                           \
	EXPORT CUptiResult name(uint8_t enable)                                                \
	{                                                                                      \
		COUNT(name);                                                                   \
		(void)enable;                                                                  \
		return CUPTI_SUCCESS;                                                          \
	}
SWITCH(cuptiActivityEnableAllocationSource)
SWITCH(cuptiActivityEnableDeviceGraph)
SWITCH(cuptiActivityEnableLatencyTimestamps)
SWITCH(cuptiActivityEnableLaunchAttributes)
SWITCH(cuptiActivityEnableAllSyncRecords)
#if VCUDA_ABI == 13
SWITCH(cuptiActivityEnableCudaEventDeviceTimestamps)
#endif

EXPORT CUptiResult cuptiActivityEnableHWTrace(uint8_t enable)
{
	COUNT(cuptiActivityEnableHWTrace);
	(void)enable;
	return cupti_result(CUPTI_ERROR_NOT_SUPPORTED);
}

EXPORT CUptiResult cuptiActivityConfigureUnifiedMemoryCounter(
	CUpti_ActivityUnifiedMemoryCounterConfig *config, uint32_t count)
{
	COUNT(cuptiActivityConfigureUnifiedMemoryCounter);
	return cupti_result(
		config && count ? CUPTI_ERROR_NOT_SUPPORTED : CUPTI_ERROR_INVALID_PARAMETER);
}

/* How NVIDIA's keeps its buffers: taken and told, and of no matter here. */
static struct setting {
	size_t size; /* 0: there is none of that number */
	_Atomic uint64_t value;
} settings[] = {
	[CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE] = {8, 3200000},
	[CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_CDP] = {8, 8388608},
	[CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT] = {8, 250},
	[CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER] = {1, 0},
	[CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE] = {8, 3},
	[CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED] = {1, 0},
	[CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER] = {1, 1},
	[CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_DEVICE_GRAPHS] = {8, 16777216},
};

static CUptiResult setting_of(
	CUpti_ActivityAttribute attr, const size_t *size, const void *value, struct setting **s)
{
	if (!size || !value || attr < 0 ||
		(size_t)attr >= sizeof(settings) / sizeof(settings[0]))
		return CUPTI_ERROR_INVALID_PARAMETER;
	*s = &settings[attr];
	if (!(*s)->size)
		return CUPTI_ERROR_NOT_SUPPORTED;
	return *size < (*s)->size ? CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT : CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityGetAttribute(
	CUpti_ActivityAttribute attr, size_t *valueSize, void *value)
{
	struct setting *s;
	CUptiResult result = setting_of(attr, valueSize, value, &s);
	uint64_t now;

	COUNT(cuptiActivityGetAttribute);
	if (result)
		return cupti_result(result);
	now = s->value;
	memcpy(value, &now, s->size);
	*valueSize = s->size;
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivitySetAttribute(
	CUpti_ActivityAttribute attr, size_t *valueSize, void *value)
{
	struct setting *s;
	CUptiResult result = setting_of(attr, valueSize, value, &s);
	uint64_t now = 0;

	COUNT(cuptiActivitySetAttribute);
	if (result)
		return cupti_result(result);
	memcpy(&now, value, s->size);
	s->value = now;
	return CUPTI_SUCCESS;
}

/* --- buffers ------------------------------------------------------------------------------ */

EXPORT CUptiResult cuptiActivityRegisterCallbacks(
	CUpti_BuffersCallbackRequestFunc funcBufferRequested,
	CUpti_BuffersCallbackCompleteFunc funcBufferCompleted)
{
	COUNT(cuptiActivityRegisterCallbacks);
	if (!funcBufferRequested || !funcBufferCompleted)
		return cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
	deliver_to(funcBufferRequested, funcBufferCompleted);
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
	COUNT(cuptiActivityFlushAll);
	deliver(flag);
	return cupti_result(CUPTI_SUCCESS);
}

EXPORT CUptiResult cuptiActivityFlush(CUcontext context, uint32_t streamId, uint32_t flag)
{
	COUNT(cuptiActivityFlush);
	(void)context, (void)streamId;
	deliver(flag);
	return cupti_result(CUPTI_SUCCESS);
}

EXPORT CUptiResult cuptiActivityFlushPeriod(uint32_t time)
{
	COUNT(cuptiActivityFlushPeriod);
	deliver_period(time);
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiActivityGetNumDroppedRecords(
	CUcontext context, uint32_t streamId, size_t *dropped)
{
	COUNT(cuptiActivityGetNumDroppedRecords);
	(void)context, (void)streamId;
	if (!dropped)
		return cupti_result(CUPTI_ERROR_INVALID_PARAMETER);
	*dropped = deliver_dropped();
	return CUPTI_SUCCESS;
}

EXPORT CUptiResult cuptiFinalize(void)
{
	COUNT(cuptiFinalize);
	deliver(1);
	for (unsigned domain = 1; domain < 3; domain++)
		for (unsigned i = 0; i < CUPTI_CALLS; i++)
			activity.calls[domain][i] = 0;
	activity.single_calls = 0;
	callback_end();
	enabled_set(0);
	frames_end_batch(true);
	return CUPTI_SUCCESS;
}
