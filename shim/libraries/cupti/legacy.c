/* SPDX-License-Identifier: Apache-2.0
 *
 * Events and metrics, which CUPTI has for GPUs before Turing only.  On an H200 each of them
 * answers so, whatever it is given.
 */
#include "shim/libraries/cupti/cupti.h"

/* No parameter is looked at, so none is declared; for C it is legacy_NAME. */
#define LEGACY(name)                                                                           \
	EXPORT CUptiResult legacy_##name(void) __asm__(#name);                                 \
	CUptiResult legacy_##name(void)                                                        \
	{                                                                                      \
		COUNT(name);                                                                   \
		return cupti_result(CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED);                \
	}

LEGACY(cuptiDeviceEnumEventDomains)
LEGACY(cuptiDeviceEnumMetrics)
LEGACY(cuptiDeviceGetEventDomainAttribute)
LEGACY(cuptiDeviceGetNumEventDomains)
LEGACY(cuptiDeviceGetNumMetrics)
LEGACY(cuptiDisableKernelReplayMode)
LEGACY(cuptiEnableKernelReplayMode)
LEGACY(cuptiEnumEventDomains)
LEGACY(cuptiEnumMetrics)
LEGACY(cuptiEventDomainEnumEvents)
LEGACY(cuptiEventDomainGetAttribute)
LEGACY(cuptiEventDomainGetNumEvents)
LEGACY(cuptiEventGetAttribute)
LEGACY(cuptiEventGetIdFromName)
LEGACY(cuptiEventGroupAddEvent)
LEGACY(cuptiEventGroupCreate)
LEGACY(cuptiEventGroupDestroy)
LEGACY(cuptiEventGroupDisable)
LEGACY(cuptiEventGroupEnable)
LEGACY(cuptiEventGroupGetAttribute)
LEGACY(cuptiEventGroupReadAllEvents)
LEGACY(cuptiEventGroupReadEvent)
LEGACY(cuptiEventGroupRemoveAllEvents)
LEGACY(cuptiEventGroupRemoveEvent)
LEGACY(cuptiEventGroupResetAllEvents)
LEGACY(cuptiEventGroupSetAttribute)
LEGACY(cuptiEventGroupSetDisable)
LEGACY(cuptiEventGroupSetEnable)
LEGACY(cuptiEventGroupSetsCreate)
LEGACY(cuptiEventGroupSetsDestroy)
LEGACY(cuptiGetNumEventDomains)
LEGACY(cuptiGetNumMetrics)
LEGACY(cuptiKernelReplaySubscribeUpdate)
LEGACY(cuptiMetricCreateEventGroupSets)
LEGACY(cuptiMetricEnumEvents)
LEGACY(cuptiMetricEnumProperties)
LEGACY(cuptiMetricGetAttribute)
LEGACY(cuptiMetricGetIdFromName)
LEGACY(cuptiMetricGetNumEvents)
LEGACY(cuptiMetricGetNumProperties)
LEGACY(cuptiMetricGetRequiredEventGroupSets)
LEGACY(cuptiMetricGetValue)
LEGACY(cuptiMetricGetValue2)
LEGACY(cuptiSetEventCollectionMode)
