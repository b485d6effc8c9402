// SPDX-License-Identifier: Apache-2.0
/*
 * Programs that profile themselves: the library, opened by name as profilers do, and what it
 * has recorded.
 */
#pragma once

#include "driver.h"

/* cupti.h itself also wants the newest runtime's types. */
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_result.h>
#include <cupti_runtime_cbid.h>
#include <cupti_version.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <vector>

#ifndef LIBRARY
#if CUDART_VERSION >= 13000
#define LIBRARY "libcupti.so.13"
#else
#define LIBRARY "libcupti.so.12"
#endif
#endif

/* The library is opened by name, as profilers do. */
#define CUPTI_FUNCTIONS(F)                                                                     \
	F(cuptiActivityRegisterCallbacks)                                                      \
	F(cuptiActivityEnable)                                                                 \
	F(cuptiActivityDisable)                                                                \
	F(cuptiActivityFlushAll)                                                               \
	F(cuptiActivityGetNextRecord)                                                          \
	F(cuptiActivityGetNumDroppedRecords)                                                   \
	F(cuptiActivityPushExternalCorrelationId)                                              \
	F(cuptiActivityPopExternalCorrelationId)                                               \
	F(cuptiSubscribe)                                                                      \
	F(cuptiUnsubscribe)                                                                    \
	F(cuptiEnableCallback)                                                                 \
	F(cuptiEnableDomain)                                                                   \
	F(cuptiGetCallbackName)                                                                \
	F(cuptiGetStreamIdEx)                                                                  \
	F(cuptiGetContextId)                                                                   \
	F(cuptiGetResultString)                                                                \
	F(cuptiGetTimestamp)                                                                   \
	F(cuptiGetVersion)                                                                     \
	F(cuptiFinalize)
inline struct {
#define F(name) decltype(&::name) name;
	CUPTI_FUNCTIONS(F)
#undef F
} cupti;

#define CUPTI_IS(want, call)                                                                   \
	do {                                                                                   \
		CUptiResult got_ = (call);                                                     \
		if (got_ != (want))                                                            \
			FAIL("%s gave %d, not %d", #call, (int)got_, (int)(want));             \
	} while (0)
#define CUPTI(call) CUPTI_IS(CUPTI_SUCCESS, call)

inline void open_library()
{
	void *library = dlopen(LIBRARY, RTLD_NOW);

	if (!library)
		SKIP("no CUPTI: %s", dlerror());
#define F(name)                                                                                \
	cupti.name = (decltype(cupti.name))dlsym(library, #name);                              \
	CHECK(cupti.name != NULL);
	CUPTI_FUNCTIONS(F)
#undef F
}

/* --- records ------------------------------------------------------------------------------ */

inline struct {
	std::atomic_flag busy = ATOMIC_FLAG_INIT; /* buffers come in several threads */
	size_t buffers, bytes = 256 * 1024;
	std::vector<std::pair<CUpti_ActivityKernel9, std::string>>
		kernels; /* and their names */
	std::vector<CUpti_ActivityMemcpy5> copies;
	std::vector<CUpti_ActivityMemset4> fills;
	std::map<uint32_t, CUpti_ActivityAPI> runtime, driver; /* by correlation */
	std::map<uint32_t, std::map<int, uint64_t>> external;
} seen;

struct busy {
	busy()
	{
		while (seen.busy.test_and_set())
			;
	}
	~busy()
	{
		seen.busy.clear();
	}
};

inline void requested(uint8_t **buffer, size_t *size, size_t *records)
{
	*buffer = (uint8_t *)aligned_alloc(8, seen.bytes);
	*size = seen.bytes;
	*records = 0;
}

inline void take(const CUpti_Activity *r)
{
	switch (r->kind) {
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
	case CUPTI_ACTIVITY_KIND_KERNEL:
		seen.kernels.emplace_back(*(const CUpti_ActivityKernel9 *)r,
			((const CUpti_ActivityKernel9 *)r)->name);
		break;
	case CUPTI_ACTIVITY_KIND_MEMCPY:
		seen.copies.push_back(*(const CUpti_ActivityMemcpy5 *)r);
		break;
	case CUPTI_ACTIVITY_KIND_MEMSET:
		seen.fills.push_back(*(const CUpti_ActivityMemset4 *)r);
		break;
	case CUPTI_ACTIVITY_KIND_RUNTIME:
	case CUPTI_ACTIVITY_KIND_DRIVER: {
		const CUpti_ActivityAPI *a = (const CUpti_ActivityAPI *)r;

		(r->kind == CUPTI_ACTIVITY_KIND_RUNTIME ? seen.runtime
							: seen.driver)[a->correlationId] = *a;
		break;
	}
	case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
		const CUpti_ActivityExternalCorrelation *e =
			(const CUpti_ActivityExternalCorrelation *)r;

		seen.external[e->correlationId][e->externalKind] = e->externalId;
		break;
	}
	default: break;
	}
}

inline void completed(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t valid)
{
	busy guard;
	CUpti_Activity *record = NULL;
	CUptiResult result = CUPTI_SUCCESS;

	seen.buffers++;
	while (valid && !(result = cupti.cuptiActivityGetNextRecord(buffer, valid, &record)))
		take(record);
	CHECK(!valid || result == CUPTI_ERROR_MAX_LIMIT_REACHED);
	free(buffer);
}

inline void forget()
{
	busy guard;

	seen.kernels.clear();
	seen.copies.clear();
	seen.fills.clear();
	seen.runtime.clear();
	seen.driver.clear();
	seen.external.clear();
	seen.buffers = 0;
}

inline const CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
	CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_RUNTIME,
	CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};

inline void profile(bool on)
{
	for (CUpti_ActivityKind kind : kinds)
		CUPTI(on ? cupti.cuptiActivityEnable(kind) : cupti.cuptiActivityDisable(kind));
}

/* Each thread has a buffer of its own, so records come in any order: kernels are put into that
 * in which they ran. */
inline void flush()
{
	CUDA(cudaDeviceSynchronize());
	CUPTI(cupti.cuptiActivityFlushAll(0));
	std::sort(seen.kernels.begin(), seen.kernels.end(),
		[](const auto &a, const auto &b) { return a.first.start < b.first.start; });
}

inline const CUpti_ActivityKernel9 &kernel_like(const char *part, size_t nth = 0)
{
	for (const auto &one : seen.kernels)
		if (one.second.find(part) != std::string::npos && !nth--)
			return one.first;
	FAIL("no kernel like %s among %zu", part, seen.kernels.size());
}

inline const CUpti_ActivityAPI &call_of(uint32_t correlation, const char *name)
{
	const char *found = NULL;

	if (!seen.runtime.count(correlation))
		FAIL("no call of the runtime has correlation %u", correlation);
	CUPTI(cupti.cuptiGetCallbackName(
		CUPTI_CB_DOMAIN_RUNTIME_API, seen.runtime[correlation].cbid, &found));
	if (strncmp(found, name, strlen(name)))
		FAIL("%s instead of %s has correlation %u", found, name, correlation);
	return seen.runtime[correlation];
}
