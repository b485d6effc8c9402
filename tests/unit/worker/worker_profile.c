/* SPDX-License-Identifier: Apache-2.0
 *
 * A session that is profiled: what the GPU did comes with the frame that caused it, with
 * numbers that can be asked for, and while the profile lasts; and clients that ask for anything
 * in any order.  CUPTI is the software GPU's; on a machine with a GPU, where LD_LIBRARY_PATH
 * has NVIDIA's, SOFTGPU=libcuda.so.1 build/tests/worker_profile.
 */
#include <limits.h>
#include <stdatomic.h>

#include "gpu-agent/worker/loop/beside.h"
#include "gpu-agent/worker/profiler.h"
#include "gpu-agent/worker/worker_state.h"
#include "protocol/wire/graph.h"
#include "protocol/wire/profile.h"
#include "tests/unit/worker/worker_image.h"

#define WINDOW 0x200000000000ull
#define KINDS (1u << PROFILE_CONCURRENT_KERNEL | 1u << PROFILE_COPY | 1u << PROFILE_FILL)
#define FORCED 1u
#define PTX                                                                                    \
	".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry work() { ret; }\n"     \
	".visible .entry late() { ret; }\n"

static struct peer peer, *p = &peer;
static unsigned char batch[4 << 20];

static CUresult enable(uint32_t kinds, struct wire_vcudaProfileEnable_reply *reply)
{
	struct wire_vcudaProfileEnable body = {.kinds = kinds};
	CUresult status = CALL_OF(OP_vcudaProfileEnable, body);

	if (reply)
		memcpy(reply, peer_body, sizeof(*reply));
	return status;
}

static struct wire_vcudaProfileFlush_reply flush(uint32_t flag)
{
	struct wire_vcudaProfileFlush body = {.flag = flag};
	struct wire_vcudaProfileFlush_reply reply;

	assert_int_equal(CALL_OF(OP_vcudaProfileFlush, body), CUDA_SUCCESS);
	memcpy(&reply, peer_body, sizeof(reply));
	return reply;
}

static CUresult read_part(uint64_t offset, uint64_t bytes)
{
	struct wire_vcudaProfileRead body = {.offset = offset, .bytes = bytes};
	struct frame_header h = call_header(p, OP_vcudaProfileRead, sizeof(body));
	bool lost;

	peer_send(p, &h, &body);
	assert_int_equal(peer_reply(p, &h, &lost), 0);
	assert_false(lost);
	if (!h.status) {
		assert_int_equal(h.length - h.body, bytes);
		assert_true(offset + bytes <= sizeof(batch));
		memcpy(batch + offset, peer_body + h.body, bytes);
	}
	return (CUresult)h.status;
}

static CUresult id_of(uint32_t what, uint64_t handle, uint64_t *id)
{
	struct wire_vcudaProfileId body = {.what = what, .handle = handle};
	struct wire_vcudaProfileId_reply reply;
	CUresult status = CALL_OF(OP_vcudaProfileId, body);

	memcpy(&reply, peer_body, sizeof(reply));
	if (id)
		*id = reply.id;
	return status;
}

/* All that is there, by small pieces; how much. */
static uint64_t fetch(void)
{
	uint64_t bytes = flush(0).bytes, at = 0;

	while (at < bytes) {
		uint64_t n = bytes - at < 1000 ? bytes - at : 1000;

		assert_int_equal(read_part(at, n), CUDA_SUCCESS);
		at += n;
	}
	return bytes;
}

/* The one record of the frame SEQ in the batch, NULL: none. */
static const struct profile_record *of_frame(uint64_t bytes, uint64_t seq)
{
	const struct profile_record *found = NULL, *record;

	for (uint64_t at = 0; at < bytes; at += record->bytes) {
		record = (void *)(batch + at);
		assert_true(record->bytes >= sizeof(*record) && record->bytes <= bytes - at);
		assert_true(record->start && record->start <= record->end);
		if (record->seq != seq)
			continue;
		assert_null(found);
		found = record;
	}
	return found;
}

static void map_memory(void)
{
	struct wire_vcudaMemMap map = {.address = WINDOW, .bytes = 2 << 20};

	assert_int_equal(CALL_OF(OP_vcudaMemMap, map), CUDA_SUCCESS);
}

/* Posts one; its frame. */
static uint64_t fill(uint64_t bytes)
{
	struct wire_vcudaFill body = {.dst = WINDOW,
		.pitch = bytes,
		.value = 7,
		.element = 1,
		.width = bytes,
		.height = 1};

	send_post(p, OP_vcudaFill, &body, sizeof(body));
	return p->seq;
}

static uint64_t launch(void)
{
	struct wire_vcudaLaunch body = {.function = handle_make(1, KIND_CUfunction, 2),
		.gridX = 3,
		.gridY = 2,
		.gridZ = 1,
		.blockX = 32,
		.blockY = 1,
		.blockZ = 1};

	send_post(p, OP_vcudaLaunch, &body, sizeof(body));
	return p->seq;
}

static uint64_t copy_out(uint64_t bytes)
{
	struct wire_vcudaCopyOut body = {
		.src = WINDOW, .pitch = bytes, .width = bytes, .height = 1, .depth = 1};

	assert_int_equal(CALL_OF(OP_vcudaCopyOut, body), CUDA_SUCCESS);
	return p->seq;
}

static void start(void)
{
	peer_start(p);
	map_memory();
	image_launch(p, PTX, "work");
	expect_alive(p);
}

/* Work of each kind, between work before and behind the profile. */
static void records_name_their_frames(void **state)
{
	struct wire_vcudaProfileEnable_reply began;
	uint64_t before, filled, launched, copied, behind, bytes, context, stream;
	struct wire_vcudaProfileFlush_reply over;
	const struct profile_record *record;

	(void)state;
	start();
	before = fill(64);
	expect_alive(p);
	assert_int_equal(enable(KINDS, &began), CUDA_SUCCESS);
	assert_true(began.now > 1000000000000000000ull && began.version);
	filled = fill(4096);
	launched = launch();
	copied = copy_out(1000);
	expect_alive(p);
	assert_int_equal(id_of(PROFILE_ID_CONTEXT, 0, &context), CUDA_SUCCESS);
	assert_int_equal(id_of(PROFILE_ID_STREAM, 0, &stream), CUDA_SUCCESS);
	assert_int_equal(enable(0, NULL), CUDA_SUCCESS);
	behind = fill(64);
	expect_alive(p);
	bytes = fetch();
	assert_null(of_frame(bytes, before));
	assert_null(of_frame(bytes, behind));
	assert_null(of_frame(bytes, 0));

	record = of_frame(bytes, filled);
	assert_non_null(record);
	assert_int_equal(record->kind, PROFILE_FILL);
	assert_int_equal(record->fill.bytes, 4096);
	assert_int_equal(record->context, context);
	assert_int_equal(record->stream, stream);
	assert_true(record->start >= began.now);

	record = of_frame(bytes, launched);
	assert_non_null(record);
	assert_int_equal(record->kind, PROFILE_CONCURRENT_KERNEL);
	assert_string_equal((const char *)(record + 1), "work");
	assert_int_equal(record->name_bytes, 5);
	assert_int_equal(record->kernel.grid[0], 3);
	assert_int_equal(record->kernel.grid[1], 2);
	assert_int_equal(record->kernel.block[0], 32);
	assert_int_equal(record->stream, stream);

	record = of_frame(bytes, copied);
	assert_non_null(record);
	assert_int_equal(record->kind, PROFILE_COPY);
	assert_int_equal(record->copy.bytes, 1000);
	assert_int_equal(record->copy.kind, 2); /* CUPTI_ACTIVITY_MEMCPY_KIND_DTOH */

	over = flush(0);
	assert_int_equal(over.bytes, 0);
	assert_int_equal(over.dropped, 0);
	assert_true(over.now > began.now);
	peer_stop(p);
}

/* Kinds that are not asked for are not recorded, and each can be turned on and off alone. */
static void kinds_come_and_go(void **state)
{
	uint64_t first, second, third, bytes;

	(void)state;
	start();
	assert_int_equal(enable(1u << PROFILE_COPY, NULL), CUDA_SUCCESS);
	first = fill(64);
	assert_int_equal(enable(1u << PROFILE_COPY | 1u << PROFILE_FILL, NULL), CUDA_SUCCESS);
	second = fill(64);
	assert_int_equal(enable(1u << PROFILE_COPY, NULL), CUDA_SUCCESS);
	fill(64);
	third = copy_out(64);
	expect_alive(p);
	bytes = fetch();
	assert_null(of_frame(bytes, first));
	assert_non_null(of_frame(bytes, second));
	assert_non_null(of_frame(bytes, third));
	/* One that excludes another says so, and leaves the session as it was. */
	assert_int_equal(enable(1u << PROFILE_KERNEL | 1u << PROFILE_GRAPH, NULL),
		CUDA_ERROR_NOT_SUPPORTED);
	launch();
	expect_alive(p);
	assert_int_equal(enable(KINDS, NULL), CUDA_SUCCESS);
	second = fill(64);
	expect_alive(p);
	assert_non_null(of_frame(fetch(), second));
	peer_stop(p);
}

static void numbers_can_be_asked_for(void **state)
{
	struct wire_vcudaGraphMake make = {
		.graph = handle_make(1, KIND_CUgraph, 4), .what = GRAPH_NEW};
	struct wire_vcudaGraphInstantiate instantiate = {
		.graph = make.graph, .exec = handle_make(1, KIND_CUgraphExec, 5)};
	struct wire_vcudaStreamCreate create = {.stream = handle_make(1, KIND_CUstream, 3)};
	uint64_t legacy, stream, graph, exec;

	(void)state;
	start();
	send_post(p, OP_vcudaStreamCreate, &create, sizeof(create));
	assert_int_equal(CALL_OF(OP_vcudaGraphMake, make), CUDA_SUCCESS);
	assert_int_equal(CALL_OF(OP_vcudaGraphInstantiate, instantiate), CUDA_SUCCESS);
	/* Before anything is enabled, too. */
	assert_int_equal(id_of(PROFILE_ID_STREAM, 0, &legacy), CUDA_SUCCESS);
	assert_int_equal(id_of(PROFILE_ID_STREAM, create.stream, &stream), CUDA_SUCCESS);
	assert_int_not_equal(legacy, stream);
	assert_int_equal(id_of(PROFILE_ID_GRAPH, make.graph, &graph), CUDA_SUCCESS);
	assert_int_equal(id_of(PROFILE_ID_GRAPH_EXEC, instantiate.exec, &exec), CUDA_SUCCESS);
	assert_true(graph && exec);
	assert_int_equal(
		id_of(PROFILE_ID_GRAPH, create.stream, NULL), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(id_of(PROFILE_ID_GRAPH, 0, NULL), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(
		id_of(PROFILE_ID_GRAPH_EXEC, make.graph, NULL), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(id_of(PROFILE_ID_STREAM, make.graph, NULL), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(id_of(PROFILE_IDS, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(id_of(UINT32_MAX, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	expect_alive(p);
	peer_stop(p);
}

static void anything_may_be_asked_in_any_order(void **state)
{
	struct wire_vcudaProfileFlush nothing = {0};
	uint64_t bytes;

	(void)state;
	start();
	assert_int_equal(CALL_OF(OP_vcudaProfileFlush, nothing), CUDA_ERROR_NOT_FOUND);
	assert_int_equal(read_part(0, 8), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(enable(1u << PROFILE_KINDS, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(enable(UINT32_MAX, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(enable(0, NULL), CUDA_SUCCESS);
	assert_int_equal(flush(0).bytes, 0);
	assert_int_equal(flush(UINT32_MAX).bytes, 0);
	for (int i = 0; i < 3000; i++) {
		assert_int_equal(enable(i % 2 ? KINDS : 0, NULL), CUDA_SUCCESS);
		fill(64);
	}
	expect_alive(p);
	bytes = flush(FORCED).bytes;
	assert_true(bytes >= 1000 * sizeof(struct profile_record));
	assert_int_equal(read_part(0, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(read_part(bytes, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(read_part(bytes - 1, 2), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(read_part(1, UINT64_MAX), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(read_part(UINT64_MAX, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(read_part(0, 1ull << 32), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(read_part(bytes - 1, 1), CUDA_SUCCESS);
	assert_int_equal(read_part(0, 1), CUDA_SUCCESS);
	/* What was read to its end goes with the profile. */
	assert_int_equal(enable(0, NULL), CUDA_SUCCESS);
	assert_int_equal(read_part(0, 1), CUDA_ERROR_INVALID_VALUE);
	expect_alive(p);
	peer_stop(p);
}

/* A profile that nobody reads: the worker has no more than it may have. */
static void a_profile_that_is_not_read_is_bounded(void **state)
{
	enum { MANY = 500000, SIZE = sizeof(struct profile_record) };
	struct wire_vcudaFill one = {
		.dst = WINDOW, .pitch = 4, .element = 4, .width = 1, .height = 1};
	struct {
		struct frame_header h;
		struct wire_vcudaFill fill;
	} frames[100];
	struct wire_vcudaProfileFlush_reply flushed;

	(void)state;
	start();
	assert_int_equal(enable(1u << PROFILE_FILL, NULL), CUDA_SUCCESS);
	for (int i = 0; i < MANY / 100; i++) {
		for (int k = 0; k < 100; k++) {
			frames[k].h = call_header(p, OP_vcudaFill, sizeof(one));
			frames[k].h.kind = FRAME_POST;
			frames[k].fill = one;
		}
		assert_int_equal(send(p->commands, frames, sizeof(frames), MSG_NOSIGNAL),
			sizeof(frames));
		if (i % 50 == 0)
			expect_alive(p);
	}
	expect_alive(p);
	flushed = flush(FORCED);
	assert_true(flushed.bytes <= 64u << 20);
	assert_true(flushed.dropped > 0);
	assert_int_equal(flushed.bytes / SIZE + flushed.dropped, MANY);
	assert_int_equal(enable(0, NULL), CUDA_SUCCESS);
	assert_int_equal(read_part(0, 8), CUDA_SUCCESS); /* it was not read to its end */
	assert_int_equal(flush(FORCED).bytes, 0);
	assert_int_equal(read_part(0, 8), CUDA_ERROR_INVALID_VALUE);
	expect_alive(p);
	peer_stop(p);
}

/* What the profiler is told; by the thread of the job alone. */
static struct {
	uint64_t seq; /* of the frame that is worked for; 0: none */
	uint64_t ran; /* that the job was run for */
	unsigned begun;
} told;

static void told_begin(uint64_t seq)
{
	told.seq = seq;
	told.begun++;
}

static void told_end(void)
{
	told.seq = 0;
}

static void job_run(struct beside_job *job)
{
	(void)job;
	told.ran = told.seq;
}

static CUresult set_current(CUcontext context)
{
	(void)context;
	return CUDA_SUCCESS;
}

/* Beside the loop, a thread works for the frame that its job is for, one after the other. */
static void jobs_beside_the_loop_have_their_frame(void **state)
{
	static const struct profiler profiler = {told_begin, told_end};
	static struct worker w = {.cuda.cuCtxSetCurrent = set_current};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct beside_job job = {.run = job_run, .seq = 77 + i};

		w.profiler = i ? NULL : &profiler;
		assert_true(beside_start(&w, &job, 0));
		for (int k = 0; k < PATIENCE_MS && !atomic_load(&job.ended); k++)
			usleep(1000);
		assert_true(atomic_load(&job.ended));
		assert_int_equal(told.ran, i ? 0 : 77);
		assert_int_equal(told.seq, 0);
		assert_int_equal(told.begun, 1);
	}
}

/* A driver with nothing beside it. */
static void without_cupti_the_session_goes_on(void **state)
{
	char folder[] = "/tmp/worker-profile.XXXXXX", driver[64], real[PATH_MAX];
	uint64_t id;

	(void)state;
	if (peer_nvidia())
		skip();
	assert_non_null(mkdtemp(folder));
	assert_non_null(realpath(getenv("SOFTGPU"), real));
	snprintf(driver, sizeof(driver), "%s/libvcuda-softgpu.so", folder);
	assert_int_equal(symlink(real, driver), 0);
	peer_driver = driver;
	start();
	peer_driver = NULL;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(enable(KINDS, NULL), CUDA_ERROR_NOT_FOUND);
		assert_int_equal(id_of(PROFILE_ID_CONTEXT, 0, &id), CUDA_ERROR_NOT_FOUND);
	}
	fill(64);
	expect_alive(p);
	peer_stop(p);
	unlink(driver);
	rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_name_their_frames),
		cmocka_unit_test(kinds_come_and_go),
		cmocka_unit_test(numbers_can_be_asked_for),
		cmocka_unit_test(anything_may_be_asked_in_any_order),
		cmocka_unit_test(a_profile_that_is_not_read_is_bounded),
		cmocka_unit_test(without_cupti_the_session_goes_on),
		/* Last: a worker that is forked later would have the job, too. */
		cmocka_unit_test(jobs_beside_the_loop_have_their_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
