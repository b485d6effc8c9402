/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of CUPTI on the software GPU share: the functions, and a program's half of the
 * hand-out of buffers, which keeps every record that it is given.
 */
#ifndef VCUDA_TESTS_SOFTGPU_CUPTI_H
#define VCUDA_TESTS_SOFTGPU_CUPTI_H

#include "protocol/libraries/cupti_records.h"
#include "tests/unit/softgpu/softgpu_test.h"

#include <pthread.h>
#include <unistd.h>

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind);
CUptiResult cuptiActivityDisableContext(CUcontext context, CUpti_ActivityKind kind);
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind);
CUptiResult cuptiActivityEnableContext(CUcontext context, CUpti_ActivityKind kind);
CUptiResult cuptiActivityFlush(CUcontext context, uint32_t stream, uint32_t flag);
CUptiResult cuptiActivityFlushAll(uint32_t flag);
CUptiResult cuptiActivityGetAttribute(CUpti_ActivityAttribute attr, size_t *size, void *value);
CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t size, CUpti_Activity **record);
CUptiResult cuptiActivityGetNumDroppedRecords(
	CUcontext context, uint32_t stream, size_t *dropped);
CUptiResult cuptiActivityPopExternalCorrelationId(
	CUpti_ExternalCorrelationKind kind, uint64_t *last);
CUptiResult cuptiActivityPushExternalCorrelationId(
	CUpti_ExternalCorrelationKind kind, uint64_t id);
CUptiResult cuptiActivityRegisterCallbacks(
	CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete);
CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attr, size_t *size, void *value);
CUptiResult cuptiFinalize(void);
CUptiResult cuptiGetContextId(CUcontext context, uint32_t *id);
CUptiResult cuptiGetDeviceId(CUcontext context, uint32_t *id);
CUptiResult cuptiGetGraphExecId(CUgraphExec exec, uint32_t *id);
CUptiResult cuptiGetGraphId(CUgraph graph, uint32_t *id);
CUptiResult cuptiGetResultString(CUptiResult result, const char **text);
CUptiResult cuptiGetStreamId(CUcontext context, CUstream stream, uint32_t *id);
CUptiResult cuptiGetStreamIdEx(
	CUcontext context, CUstream stream, uint8_t per_thread, uint32_t *id);
CUptiResult cuptiGetTimestamp(uint64_t *timestamp);
CUptiResult cuptiGetVersion(uint32_t *version);

#define RECORDS_MAX 20000
/* Any record, by the kind that all begin with. */
union record {
	CUpti_Activity any;
	CUpti_ActivityKernel10 kernel;
	CUpti_ActivityMemcpy6 copy;
	CUpti_ActivityMemcpyPtoP4 peer;
	CUpti_ActivityMemset4 fill;
	CUpti_ActivityGraphTrace2 graph;
	CUpti_ActivityExternalCorrelation external;
};
static struct {
	union record at[RECORDS_MAX];
	size_t count, buffers;
	size_t total;			    /* the list holds only so many */
	size_t buffer_size, buffer_records; /* 0: none is given; 0: as many as fit */
	void (*within)(void);		    /* both functions call it */
	pthread_mutex_t lock;
} got = {.buffer_size = 1 << 16, .lock = PTHREAD_MUTEX_INITIALIZER};

static inline size_t record_size(const CUpti_Activity *record)
{
	switch (record->kind) {
	case CUPTI_ACTIVITY_KIND_KERNEL:
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(CUpti_ActivityKernel10);
	case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(CUpti_ActivityMemcpy6);
	case CUPTI_ACTIVITY_KIND_MEMCPY2: return sizeof(CUpti_ActivityMemcpyPtoP4);
	case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(CUpti_ActivityMemset4);
	case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: return sizeof(CUpti_ActivityGraphTrace2);
	default: return sizeof(CUpti_ActivityExternalCorrelation);
	}
}

static inline void buffer_requested(uint8_t **buffer, size_t *size, size_t *records_max)
{
	*buffer = NULL;
	*size = got.buffer_size;
	*records_max = got.buffer_records;
	if (got.buffer_size)
		*buffer = aligned_alloc(8, got.buffer_size);
	if (got.within)
		got.within();
}

static inline void buffer_completed(
	CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	CUpti_Activity *record = NULL;
	CUptiResult result;

	(void)context, (void)stream;
	assert_true(valid <= size);
	pthread_mutex_lock(&got.lock);
	got.buffers++;
	while (!(result = cuptiActivityGetNextRecord(buffer, valid, &record))) {
		got.total++;
		if (got.count < RECORDS_MAX)
			memcpy(&got.at[got.count++], record, record_size(record));
	}
	pthread_mutex_unlock(&got.lock);
	is(result, CUPTI_ERROR_MAX_LIMIT_REACHED);
	free(buffer);
	if (got.within)
		got.within();
}

static inline size_t dropped_count(void)
{
	size_t dropped;

	is(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped), CUPTI_SUCCESS);
	return dropped;
}

/* All that is complete, and nothing of before. */
static inline void flush(void)
{
	is(cuptiActivityFlushAll(0), CUPTI_SUCCESS);
}

static inline void forget(void)
{
	flush();
	got.count = got.buffers = got.total = 0;
	dropped_count();
}

static inline size_t count_of(CUpti_ActivityKind kind)
{
	size_t count = 0;

	for (size_t i = 0; i < got.count; i++)
		count += got.at[i].any.kind == kind;
	return count;
}

/* The Nth record of a kind, from 0 on. */
static inline const union record *record_of(CUpti_ActivityKind kind, size_t n)
{
	for (size_t i = 0; i < got.count; i++)
		if (got.at[i].any.kind == kind && !n--)
			return &got.at[i];
	fail_msg("no such record of kind %d", kind);
	return NULL;
}

static inline void kinds_set(CUptiResult (*set)(CUpti_ActivityKind kind))
{
	is(set(CUPTI_ACTIVITY_KIND_DRIVER), CUPTI_SUCCESS);
	is(set(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
	is(set(CUPTI_ACTIVITY_KIND_MEMCPY), CUPTI_SUCCESS);
	is(set(CUPTI_ACTIVITY_KIND_MEMCPY2), CUPTI_SUCCESS);
	is(set(CUPTI_ACTIVITY_KIND_MEMSET), CUPTI_SUCCESS);
	is(set(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION), CUPTI_SUCCESS);
}

/* ---- what the tests work with ---- */

static const char text[] = ".version 7.5\n"
			   ".target sm_75\n"
			   ".address_size 64\n"
			   ".visible .entry _Z3setPii(.param .u64 to, .param .u32 value)\n"
			   "{\n"
			   "	.reg .b32 %r<2>;\n"
			   "	.reg .b64 %rd<3>;\n"
			   "	.shared .align 4 .b8 part[96];\n"
			   "	ld.param.u64 %rd1, [to];\n"
			   "	ld.param.u32 %r1, [value];\n"
			   "	cvta.to.global.u64 %rd2, %rd1;\n"
			   "	st.shared.u32 [part], %r1;\n"
			   "	st.global.u32 [%rd2], %r1;\n"
			   "	ret;\n"
			   "}\n";

static struct {
	CUcontext context;
	CUstream stream;
	CUfunction set;
	CUdeviceptr memory, other;
	unsigned char *pinned;
	uint32_t context_id;
} gpu;

#define BYTES 4096u

static inline int setup(void **state)
{
	CUmodule module;

	(void)state;
	setenv("VCUDA_SOFTGPU_DEVICES", "2", 1);
	ok(cuInit(0));
	ok(cuCtxCreate(&gpu.context, NULL, 0, 0));
	ok(cuModuleLoadData(&module, text));
	ok(cuModuleGetFunction(&gpu.set, module, "_Z3setPii"));
	ok(cuStreamCreate(&gpu.stream, CU_STREAM_DEFAULT));
	ok(cuMemAlloc(&gpu.memory, BYTES));
	ok(cuMemAlloc(&gpu.other, BYTES));
	ok(cuMemHostAlloc((void **)&gpu.pinned, BYTES, 0));
	is(cuptiGetContextId(gpu.context, &gpu.context_id), CUPTI_SUCCESS);
	is(cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed), CUPTI_SUCCESS);
	return 0;
}

static inline int begin(void **state)
{
	(void)state;
	forget();
	kinds_set(cuptiActivityEnable);
	return 0;
}

static inline int end(void **state)
{
	(void)state;
	ok(cuCtxSynchronize());
	kinds_set(cuptiActivityDisable);
	forget();
	return 0;
}

static inline void launch_at(CUdeviceptr to, CUstream stream, int value)
{
	void *params[] = {&to, &value};

	ok(cuLaunchKernel(gpu.set, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

static inline void launch(CUstream stream, int value)
{
	launch_at(gpu.memory, stream, value);
}

static inline void push(int kind, uint64_t id)
{
	is(cuptiActivityPushExternalCorrelationId(kind, id), CUPTI_SUCCESS);
}

static inline void pop(int kind, uint64_t id)
{
	uint64_t last;

	is(cuptiActivityPopExternalCorrelationId(kind, &last), CUPTI_SUCCESS);
	is(last, id);
}

static inline void sync_and_flush(void)
{
	ok(cuCtxSynchronize());
	flush();
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

#endif
