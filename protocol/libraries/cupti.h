/* SPDX-License-Identifier: Apache-2.0
 *
 * CUPTI as both ends know it: the types of its ABI (no header of NVIDIA's is needed to build).
 * Records are the newest form of each kind: newer forms append to older ones, and a program
 * steps over them by cuptiActivityGetNextRecord.
 */
#ifndef VCUDA_PROTOCOL_LIBRARIES_CUPTI_H
#define VCUDA_PROTOCOL_LIBRARIES_CUPTI_H

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

typedef int CUptiResult;
typedef int CUpti_ActivityKind;
typedef int CUpti_ActivityAttribute;
typedef int CUpti_ActivityThreadIdType;
typedef int CUpti_CallbackDomain;
typedef int CUpti_DeviceAttribute;
typedef int CUpti_DeviceVirtualizationMode;
typedef int CUpti_ExternalCorrelationKind;
typedef uint32_t CUpti_CallbackId;
typedef CUpti_CallbackDomain *CUpti_DomainTable;
typedef struct CUpti_Subscriber_st *CUpti_SubscriberHandle;
typedef struct CUpti_SubscriberParams CUpti_SubscriberParams;
typedef struct CUpti_ActivityUnifiedMemoryCounterConfig
	CUpti_ActivityUnifiedMemoryCounterConfig;
typedef struct {
	CUpti_ActivityKind kind;
} CUpti_Activity;
typedef void (*CUpti_CallbackFunc)(
	void *userdata, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void *cbdata);
typedef void (*CUpti_BuffersCallbackRequestFunc)(
	uint8_t **buffer, size_t *size, size_t *maxNumRecords);
typedef void (*CUpti_BuffersCallbackCompleteFunc)(
	CUcontext context, uint32_t streamId, uint8_t *buffer, size_t size, size_t validSize);
typedef uint64_t (*CUpti_TimestampCallbackFunc)(void);

#endif
