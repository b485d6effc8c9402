/* SPDX-License-Identifier: Apache-2.0
 *
 * The generated halves against each other: stubs and serve functions as they are, joined by an
 * engine of a page instead of ring and wire, with a driver that notes what it was called with.
 * What is written by hand is not here (the rule in parity.mk lets it abort).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu-agent/worker/worker.h"
#include "shim/generated/cuda_calls.h"
#include "protocol/generated/cuda_ops.h"
#include "protocol/generated/cuda_wire.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/procs.h"
#include "shim/engine/engine.h"
#include "shim/engine/thread.h"
#include "tests/parity/noting_driver.h"

CUresult cuStreamWaitEvent_ptsz(CUstream hStream, CUevent hEvent, unsigned int Flags);
CUresult cuFabricCpyBatchAsync(void);

/* --- the app's side of the engine
 * ------------------------------------------------------------- */

/* No thread captures. */
struct captures captures;
_Thread_local struct thread thread_self;
unsigned shim_perf = ~0u;
_Atomic unsigned char shim_watched =
	SHIM_COUNTING; /* so that it is seen which call was entered */
static unsigned entered = ~0u;
static unsigned forgotten;
static unsigned frames;
static _Alignas(16) unsigned char body[FRAME_BODY_MAX];
static _Alignas(16) unsigned char answer[ANSWER_MAX];

void shim_count_slow(unsigned call)
{
	entered = call;
}

CUresult shim_watch_slow(unsigned call)
{
	shim_count_slow(call);
	return CUDA_SUCCESS;
}

CUresult shim_ready(void)
{
	return CUDA_SUCCESS;
}

CUresult shim_enter_lasting(unsigned call)
{
	return shim_enter(call);
}

CUresult shim_enter_current(unsigned call)
{
	return shim_enter(call);
}

CUresult shim_enter_within(unsigned call)
{
	return shim_enter(call);
}

int shim_device(struct shim_call *call, CUdevice device)
{
	(void)call;
	return device;
}

void *shim_begin(struct shim_call *call, uint16_t op, size_t body_bytes)
{
	memset(call, 0, sizeof(*call));
	memset(body, 0, sizeof(body));
	call->op = op;
	call->body_bytes = (uint32_t)body_bytes;
	return body;
}

void shim_put(struct shim_call *call, struct wire_run *run, const void *bytes, size_t n)
{
	if (n > sizeof(body) - call->body_bytes - 8) {
		call->status = CUDA_ERROR_INVALID_VALUE;
		return;
	}
	run->offset = call->body_bytes;
	run->length = (uint32_t)n;
	memcpy(body + run->offset, bytes, n);
	call->body_bytes += (uint32_t)((n + 7) & ~(size_t)7);
}

void shim_put_string(struct shim_call *call, struct wire_run *run, const char *text)
{
	shim_put(call, run, text, strlen(text) + 1);
}

static void deliver(struct shim_call *call)
{
	const struct serve_entry *entry = serve_find(call->op);
	struct request r = {.header = {.op = call->op, .body = call->body_bytes},
		.body = body,
		.answer = answer};

	assert_non_null(entry);
	assert_true(call->body_bytes >= entry->body_bytes);
	frames++;
	memset(answer, 0, sizeof(answer));
	r.answer_bytes = entry->reply_bytes;
	if (!call->status)
		call->status = entry->serve(NULL, &r);
	call->reply_bytes = r.answer_bytes;
}

CUresult shim_post(struct shim_call *call)
{
	deliver(call);
	return call->status;
}

CUresult shim_learned(struct shim_call *call)
{
	return shim_post(call);
}

const void *shim_wait(struct shim_call *call, size_t reply_bytes)
{
	deliver(call);
	return call->status || call->reply_bytes < reply_bytes ? NULL : answer;
}

const void *shim_wait_cached(struct shim_call *call, size_t reply_bytes)
{
	return shim_wait(call, reply_bytes);
}

void shim_forget(uint16_t op)
{
	forgotten = op;
}

CUresult shim_end(struct shim_call *call)
{
	return call->status;
}

const void *shim_run(const struct shim_call *call, const struct wire_run *run, size_t *n)
{
	(void)call;
	*n = run->length;
	return answer + run->offset;
}

CUresult shim_refused(unsigned call, const char *name, const char *reason)
{
	assert_string_equal(cuda_calls[call].name, name);
	assert_string_equal(cuda_calls[call].verb, "refused");
	assert_true(strlen(reason) > 5);
	return CUDA_ERROR_NOT_SUPPORTED;
}

uint64_t shim_handle(struct shim_call *call, const void *handle, enum handle_kind kind)
{
	(void)call;
	(void)kind;
	return (uint64_t)(uintptr_t)handle;
}

uint64_t shim_stream(struct shim_call *call, CUstream stream)
{
	return shim_handle(call, stream, KIND_CUstream);
}

uint64_t shim_address(struct shim_call *call, uint64_t address)
{
	(void)call;
	return address;
}

uint64_t shim_function(struct shim_call *call, CUfunction function)
{
	return shim_handle(call, function, KIND_CUfunction);
}

/* --- the worker's side
 * ------------------------------------------------------------------------ */

static struct cuda_driver driver;
static const unsigned char zeros[FRAME_BODY_MAX];

const struct cuda_driver *worker_driver(const struct worker *w)
{
	(void)w;
	return &driver;
}

CUresult worker_lacks(struct worker *w, const char *name)
{
	(void)w;
	(void)name;
	return CUDA_ERROR_NOT_FOUND;
}

const void *worker_in(struct request *r, const struct wire_run *run, uint64_t need)
{
	if (run->length != need || run->offset > r->header.body ||
		need > r->header.body - run->offset) {
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
		return zeros;
	}
	return r->body + run->offset;
}

void *worker_out(struct request *r, struct wire_run *run, uint64_t n)
{
	run->offset = r->answer_bytes;
	run->length = (uint32_t)n;
	if (n > ANSWER_MAX - r->answer_bytes) {
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
		run->length = 0;
	}
	r->answer_bytes += run->length;
	return r->answer + run->offset;
}

void *worker_handle(struct worker *w, struct request *r, uint64_t handle, enum handle_kind kind)
{
	(void)w;
	(void)r;
	assert_in_range(kind, KIND_CUcontext, KIND_LAST - 1);
	return (void *)(uintptr_t)handle; /* NOLINT: the test's handles are pointers */
}

CUstream worker_stream(struct worker *w, struct request *r, uint64_t handle)
{
	return worker_handle(w, r, handle, KIND_CUstream);
}

CUdeviceptr worker_range(struct worker *w, struct request *r, uint64_t address, uint64_t bytes)
{
	(void)w;
	if (address != 0x7000 || (bytes != 4 && bytes != 8))
		worker_refuse(r, CUDA_ERROR_ILLEGAL_ADDRESS);
	return address;
}

static int start(void **state)
{
	(void)state;
	driver = (struct cuda_driver){.cuCtxSetCacheConfig = set_config,
		.cuOccupancyMaxActiveBlocksPerMultiprocessor = occupancy,
		.cuTensorMapEncodeTiled = encode,
		.cuStreamSetAttribute = set_attribute,
		.cuStreamWaitValue64_v2 = wait_value};
	frames = forgotten = 0;
	return 0;
}

/* --- what must hold
 * ---------------------------------------------------------------------------- */

static void outs_come_home(void **state)
{
	int blocks = 0;

	(void)state;
	assert_int_equal(cuOccupancyMaxActiveBlocksPerMultiprocessor(
				 &blocks, (CUfunction)0x88, 256, 1 << 20),
		CUDA_SUCCESS);
	assert_int_equal(entered, CALL_cuOccupancyMaxActiveBlocksPerMultiprocessor);
	assert_int_equal(blocks, 256 + (1 << 20));
}

static void null_outs_send_nothing(void **state)
{
	(void)state;
	assert_int_equal(cuOccupancyMaxActiveBlocksPerMultiprocessor(
				 NULL, (CUfunction)0x88, 256, 1 << 20),
		CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(frames, 0);
}

static void a_failure_comes_home_and_caches_are_forgotten(void **state)
{
	(void)state;
	assert_int_equal(
		cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1), CUDA_ERROR_UNSUPPORTED_LIMIT);
	assert_int_equal(config_value, CU_FUNC_CACHE_PREFER_L1);
	assert_int_equal(forgotten, OP_cuOccupancyAvailableDynamicSMemPerBlock);
}

static void what_the_driver_lacks_is_said(void **state)
{
	size_t value = 7;

	(void)state;
	assert_int_equal(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE), CUDA_ERROR_NOT_FOUND);
	assert_int_equal(value, 7);
}

static void runs_and_opaque_structs_arrive(void **state)
{
	cuuint64_t dim[] = {64, 8, 1ull << 33}, strides[] = {256, 512};
	cuuint32_t box[] = {8, 8, 4}, element[] = {1, 1, 1};
	CUtensorMap map, expected;

	(void)state;
	memset(&expected, 0x5a, sizeof(expected));
	assert_int_equal(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 3,
				 (void *)0x70000, dim, strides, box, element, 0, 0, 0, 0),
		CUDA_SUCCESS);
	assert_memory_equal(&map, &expected, sizeof(map));
}

static void a_count_that_is_wrong_reaches_no_driver(void **state)
{
	struct wire_cuTensorMapEncodeTiled *encode;
	struct shim_call call;
	cuuint64_t dim[3] = {1, 1, 1};

	(void)state;
	for (uint32_t rank = 0; rank < 6; rank++) {
		encode = shim_begin(&call, OP_cuTensorMapEncodeTiled, sizeof(*encode));
		encode->tensorRank = rank;
		shim_put(&call, &encode->globalDim, dim, sizeof(dim));
		assert_null(shim_wait(&call, 0));
		assert_int_equal(shim_end(&call), CUDA_ERROR_INVALID_VALUE);
	}
}

/* The worker's halves, whose other halves are written by hand. */
static CUresult waits_for(uint64_t address, uint64_t value)
{
	struct wire_cuStreamWaitValue64_v2 *wait;
	struct shim_call call;

	wait = shim_begin(&call, OP_cuStreamWaitValue64_v2, sizeof(*wait));
	wait->addr = address;
	wait->value = value;
	return shim_post(&call);
}

static void values_and_ranges_arrive(void **state)
{
	CUstreamAttrValue value = {.priority = -3};
	struct wire_cuStreamSetAttribute *set;
	struct shim_call call;

	(void)state;
	set = shim_begin(&call, OP_cuStreamSetAttribute, sizeof(*set));
	set->hStream = 0x99;
	set->attr = CU_LAUNCH_ATTRIBUTE_PRIORITY;
	memcpy(set->param, &value, sizeof(set->param));
	assert_int_equal(shim_post(&call), CUDA_SUCCESS);
	assert_int_equal(waits_for(0x7000, 1ull << 63), CUDA_SUCCESS);
	assert_int_equal(waits_for(0x7004, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void refused_calls_say_so(void **state)
{
	(void)state;
	assert_int_equal(cuDeviceGetNvSciSyncAttributes(NULL, 0, 0), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(cuFabricCpyBatchAsync(), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(frames, 0);
}

static void every_opcode_is_found_and_no_other(void **state)
{
	unsigned found = 0;

	(void)state;
	for (unsigned op = 0; op <= UINT16_MAX; op++) {
		const struct serve_entry *entry = serve_find((uint16_t)op);

		if (!entry)
			continue;
		found++;
		assert_int_equal(entry->op, op);
		assert_int_equal(entry->body_bytes % 8, 0);
		assert_int_equal(entry->reply_bytes % 8, 0);
		assert_true(entry->reply_bytes <= ANSWER_MAX && entry->serve && entry->name[0]);
		assert_true(entry->flags & SERVE_CALL);
	}
	assert_true(found > 50);
	assert_string_equal(serve_find(OP_cuMemGetInfo_v2)->name, "cuMemGetInfo_v2");
}

/* A frame that is shorter than its struct says nothing; a product that overflows is too much.
 */
static void frames_say_what_they_stage_and_overtake(void **state)
{
	struct wire_vcudaCopyOut out = {.width = 3, .height = 5, .depth = 7, .stream = 99};
	struct wire_vcudaLinkRead link = {.offset = 1, .bytes = 4096};
	struct wire_vcudaSync sync = {.scope = SYNC_CONTEXT, .handle = 88};

	(void)state;
	assert_true(serve_stages(OP_vcudaCopyOut, &out, sizeof(out)) == 105);
	assert_true(serve_stages(OP_vcudaCopyOut, &out, sizeof(out) - 1) == SERVE_NO_STAGING);
	out.height = 1ull << 40;
	out.depth = 1ull << 40;
	assert_true(serve_stages(OP_vcudaCopyOut, &out, sizeof(out)) > FRAME_PAYLOAD_MAX);
	assert_true(serve_stages(OP_vcudaLinkRead, &link, sizeof(link)) == 4096);
	assert_true(serve_stages(OP_vcudaOpen, &link, sizeof(link)) == FRAME_PAYLOAD_MAX);
	assert_true(serve_stages(OP_cuMemGetInfo_v2, &link, sizeof(link)) == SERVE_NO_STAGING);

	assert_true(serve_overtaking(OP_vcudaCopyOut, &out, sizeof(out)) == 99);
	assert_true(serve_overtaking(OP_vcudaSync, &sync, sizeof(sync)) == 0);
	sync.scope = SYNC_STREAM;
	assert_true(serve_overtaking(OP_vcudaSync, &sync, sizeof(sync)) == 88);
	assert_true(serve_overtaking(OP_vcudaHostFuncDone, &sync, 8) == SERVE_OVERTAKES);
	assert_true(serve_overtaking(OP_vcudaLinkRead, &link, sizeof(link)) == 0);
	assert_true(serve_find(OP_vcudaOutput)->flags & SERVE_ASIDE);
	assert_false(serve_find(OP_vcudaSync)->flags & SERVE_ASIDE);
}

static void procs_have_versions_in_order(void **state)
{
	unsigned count;
	const struct cuda_proc *proc = cuda_proc_find("cuMemAlloc", &count);

	(void)state;
	assert_non_null(proc);
	assert_int_equal(count, 2);
	assert_int_equal(proc[1].since, 3020);
	assert_ptr_equal(proc[1].function, (void *)cuMemAlloc_v2);
	assert_null(proc[1].per_thread);

	proc = cuda_proc_find("cuStreamWaitEvent", &count);
	assert_non_null(proc);
	assert_ptr_equal(proc->per_thread, (void *)cuStreamWaitEvent_ptsz);
	assert_int_equal(proc->per_thread_since, 7000);

	assert_null(cuda_proc_find("cuMemAlloc_v2", &count));
	assert_null(cuda_proc_find("", &count));
	assert_null(cuda_proc_find("cuZzz", &count));
	for (unsigned call = 0; call < CALL_RUNTIME_FIRST; call++) {
		const char *name = cuda_calls[call].name;

		if (!strcmp(name, "cuGetExportTable") || !strcmp(name, "cuCtxAttach"))
			assert_non_null(cuda_proc_find(name, &count));
	}
	for (unsigned call = 0; call < CALL_RUNTIME_FIRST; call++)
		assert_non_null(cuda_calls[call].name);
}

static void a_library_that_is_no_driver_is_named(void **state)
{
	struct cuda_driver d;
	struct error error = {0};

	(void)state;
	assert_true(cuda_driver_open(&d, "/nowhere/libcuda.so.1", &error) < 0);
	assert_non_null(strstr(error.text, "/nowhere/libcuda.so.1"));
	assert_true(cuda_driver_open(&d, "libm.so.6", &error) < 0);
	assert_non_null(strstr(error.text, "libm.so.6 is no CUDA driver"));
}

#define TEST(name) cmocka_unit_test_setup(name, start)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(outs_come_home),
		TEST(null_outs_send_nothing),
		TEST(a_failure_comes_home_and_caches_are_forgotten),
		TEST(what_the_driver_lacks_is_said),
		TEST(runs_and_opaque_structs_arrive),
		TEST(a_count_that_is_wrong_reaches_no_driver),
		TEST(values_and_ranges_arrive),
		TEST(refused_calls_say_so),
		TEST(every_opcode_is_found_and_no_other),
		TEST(frames_say_what_they_stage_and_overtake),
		TEST(procs_have_versions_in_order),
		TEST(a_library_that_is_no_driver_is_named),
	};

	/* One, which nobody looks into. */
	thread_self.current = thread_self.plain = (struct context *)body;
	return cmocka_run_group_tests_name("generated", tests, NULL, NULL);
}
