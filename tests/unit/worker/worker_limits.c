/* SPDX-License-Identifier: Apache-2.0
 *
 * What a session may take of the agent's machine: a client that posts for ever, keeps all that
 * it makes, prints or has lines logged.
 */
#include "protocol/generated/cuda_wire.h"
#include "protocol/wire/graph.h"
#include "tests/unit/worker/worker_image.h"
#include "tests/unit/worker/worker_peer.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#define WINDOW 0x200000000000ull
#define MANY 200000
/* More than the worker has in work, and the sockets hold; a fraction of MANY. */
#define FEW 60000

#define blocked handle_make(1, KIND_CUstream, 3)

static void map_memory(struct peer *p)
{
	struct wire_vcudaMemMap map = {.address = WINDOW, .bytes = 2 << 20};
	struct frame_header h = call_header(p, OP_vcudaMemMap, sizeof(map));
	bool lost;

	peer_send(p, &h, &map);
	assert_int_equal(peer_reply(p, &h, &lost), 0);
	assert_int_equal(h.status, CUDA_SUCCESS);
}

static struct frame_header post_header(struct peer *p, uint16_t op, uint32_t body)
{
	struct frame_header h = call_header(p, op, body);

	h.kind = FRAME_POST;
	return h;
}

/* A stream that waits for a value which nobody writes. */
static void block_a_stream(struct peer *p)
{
	struct wire_vcudaStreamCreate create = {
		.stream = blocked, .flags = CU_STREAM_NON_BLOCKING};
	struct wire_cuStreamWaitValue32_v2 wait = {
		.stream = blocked, .addr = WINDOW + 4096, .value = 12345};
	struct frame_header h = post_header(p, OP_vcudaStreamCreate, sizeof(create));

	peer_send(p, &h, &create);
	h = post_header(p, OP_cuStreamWaitValue32_v2, sizeof(wait));
	peer_send(p, &h, &wait);
}

/* Sends that frame again and again until the worker takes no more for half a second; how often
 * it did. */
static unsigned send_until_full(
	struct peer *p, enum frame_kind kind, uint16_t op, const void *body, uint32_t n)
{
	unsigned sent = 0;

	for (; sent < MANY; sent++) {
		struct frame_header h = call_header(p, op, n);
		unsigned char bytes[512];
		struct pollfd poller = {.fd = p->commands, .events = POLLOUT};
		size_t at = 0;

		h.kind = (uint8_t)kind;
		memcpy(bytes, &h, sizeof(h));
		memcpy(bytes + sizeof(h), body, n);
		while (at < sizeof(h) + n) {
			ssize_t got = send(p->commands, bytes + at, sizeof(h) + n - at,
				MSG_NOSIGNAL | MSG_DONTWAIT);

			at += got > 0 ? (size_t)got : 0;
			if (got < 0 && poll(&poller, 1, 500) != 1)
				return sent;
		}
	}
	return sent;
}

static void work_in_a_stream_has_a_depth(void **state)
{
	struct wire_vcudaFill fill = {.dst = WINDOW,
		.pitch = 4,
		.value = 1,
		.element = 4,
		.width = 1,
		.height = 1,
		.stream = blocked};
	struct frame_header h;
	struct peer p;
	unsigned sent;

	(void)state;
	peer_start(&p);
	map_memory(&p);
	block_a_stream(&p);
	sent = send_until_full(&p, FRAME_POST, OP_vcudaFill, &fill, sizeof(fill));
	assert_in_range(sent, 8192, FEW);
	/* It lives, and says so. */
	do {
		static unsigned char rest[4096];

		assert_int_equal(read_all(p.replies, &h, sizeof(h)), 0);
		assert_int_equal(read_all(p.replies, rest, h.length), 0);
	} while (h.kind != FRAME_PONG);
	peer_stop_within(&p, 5);
}

static void waits_have_a_depth(void **state)
{
	struct wire_vcudaSync sync = {.scope = SYNC_STREAM, .handle = blocked};
	struct peer p;
	unsigned sent;

	(void)state;
	peer_start(&p);
	map_memory(&p);
	block_a_stream(&p);
	sent = send_until_full(&p, FRAME_CALL, OP_vcudaSync, &sync, sizeof(sync));
	assert_in_range(sent, 8192, FEW);
	peer_stop_within(&p, 5);
}

/* What the GPU does in time is not held up. */
static void much_work_is_done(void **state)
{
	struct wire_vcudaFill fill = {
		.dst = WINDOW, .pitch = 4, .element = 4, .width = 1, .height = 1};
	struct {
		struct frame_header h;
		struct wire_vcudaFill fill;
	} batch[100];
	struct peer p;

	(void)state;
	peer_start(&p);
	map_memory(&p);
	for (int i = 0; i < 600; i++) {
		for (int k = 0; k < 100; k++) {
			batch[k].h = post_header(&p, OP_vcudaFill, sizeof(fill));
			batch[k].fill = fill;
		}
		assert_int_equal(
			send(p.commands, batch, sizeof(batch), MSG_NOSIGNAL), sizeof(batch));
	}
	expect_alive(&p);
	peer_stop(&p);
}

static void graphs_are_counted(void **state)
{
	struct wire_vcudaGraphMake make = {.what = GRAPH_NEW};
	enum { BATCH = 512, LIMIT = 1 << 20 };
	struct wire_vcudaGraphAdd add = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
	struct frame_header h;
	struct peer p;
	bool lost;

	(void)state;
	peer_start(&p);
	make.graph = handle_make(1, KIND_CUgraph, 1);
	CALL(OP_vcudaGraphMake, make, CUDA_SUCCESS);
	add.graph = make.graph;
	add.after = add.params = (struct wire_run){sizeof(add), 0};
	CALL(OP_vcudaGraphAdd, add, CUDA_SUCCESS);
	/* The rest at once: 2 are there. */
	for (uint32_t i = 2; i < LIMIT;) {
		static struct {
			struct frame_header h;
			struct wire_vcudaGraphMake make;
		} batch[BATCH];
		int n = 0;

		for (; n < BATCH && i < LIMIT; n++, i++) {
			batch[n].h = post_header(&p, OP_vcudaGraphMake, sizeof(make));
			batch[n].make.what = GRAPH_NEW;
			/* Numbers 2 and up; the table of names ends below the limit. */
			batch[n].make.graph = handle_make(1, KIND_CUgraph, i);
		}
		for (size_t at = 0; at < (size_t)n * sizeof(batch[0]);) {
			ssize_t sent = send(p.commands, (char *)batch + at,
				(size_t)n * sizeof(batch[0]) - at, MSG_NOSIGNAL);

			assert_true(sent > 0);
			at += (size_t)sent;
		}
	}
	expect_alive(&p);
	add.node = 1;
	CALL(OP_vcudaGraphAdd, add, CUDA_ERROR_OUT_OF_MEMORY);
	peer_stop(&p);
}

static void expect_lost(struct peer *p, const char *reason)
{
	char text[256] = "";
	struct frame_header h;

	do {
		assert_int_equal(read_all(p->replies, &h, sizeof(h)), 0);
		assert_true(h.length < sizeof(text));
		assert_int_equal(read_all(p->replies, text, h.length), 0);
		text[h.length] = 0;
	} while (h.kind != FRAME_LOST);
	assert_int_equal(h.status, CUDA_ERROR_OUT_OF_MEMORY);
	assert_non_null(strstr(text, reason));
}

static void a_session_with_too_much_memory_is_over(void **state)
{
	struct wire_vcudaEventCreate create = {0};
	struct peer p;

	(void)state;
	peer_host_memory = 64 << 20;
	peer_start(&p);
	peer_host_memory = 0;
	for (uint32_t i = 1; i < HANDLE_INDEX_MAX; i++) {
		struct frame_header h = post_header(&p, OP_vcudaEventCreate, sizeof(create));

		create.event = handle_make(1, KIND_CUevent, i);
		if (send(p.commands, &h, sizeof(h), MSG_NOSIGNAL) != sizeof(h) ||
			send(p.commands, &create, sizeof(create), MSG_NOSIGNAL) !=
				sizeof(create))
			break;
	}
	expect_lost(&p, "host_memory (64 MiB)");
	peer_stop(&p);
}

/* The ledger counts what is the agent's; another program on the GPU may have the memory. */
static void granted_memory_that_is_not_there_ends_the_session(void **state)
{
	struct wire_vcudaMemMap map = {.address = WINDOW, .bytes = 1 << 30};
	struct wire_vcudaVmmCreate create = {
		.memory = handle_make(1, KIND_CUmemGenericAllocationHandle, 1),
		.bytes = 1 << 30};
	struct frame_header h;
	struct peer p;

	(void)state;
	setenv("VCUDA_SOFTGPU_MEMORY", "512M", 1);
	peer_lease = 4ull << 30;
	for (int named = 0; named < 2; named++) {
		peer_start(&p);
		h = named ? post_header(&p, OP_vcudaVmmCreate, sizeof(create))
			  : post_header(&p, OP_vcudaMemMap, sizeof(map));
		peer_send(&p, &h, named ? (void *)&create : (void *)&map);
		expect_lost(&p, "1024 MiB that the agent granted are not free");
		peer_stop(&p);
	}
	peer_lease = 64 << 20;
	unsetenv("VCUDA_SOFTGPU_MEMORY");
}

static void lines_of_the_log_are_counted(void **state)
{
	static char log[1 << 22];
	int file = memfd_create("log", MFD_CLOEXEC), saved = dup(STDERR_FILENO);
	time_t begun = time(NULL);
	unsigned lines = 0;
	struct peer p;
	ssize_t n;

	(void)state;
	setenv("VCUDA_LOG", "info", 1);
	dup2(file, STDERR_FILENO);
	peer_start(&p);
	dup2(saved, STDERR_FILENO);
	close(saved);
	for (int i = 0; i < 20000; i++) {
		struct frame_header h = post_header(&p, 65000, 0);

		peer_send(&p, &h, "");
	}
	expect_alive(&p);
	peer_stop(&p);
	setenv("VCUDA_LOG", "warn", 1);
	n = pread(file, log, sizeof(log) - 1, 0);
	assert_true(n > 0);
	for (const char *at = log; (at = strchr(at, '\n')); at++)
		lines++;
	assert_in_range(lines, 50, 100 * (unsigned)(time(NULL) - begun + 2));
	close(file);
}

/* ---- what kernels print ---- */

#define LINE 1000
#define LINES 72000

/* A kernel that prints LINES times LINE bytes. */
static const char *printing(void)
{
	static char ptx[16384];
	size_t at = 0;

	at += (size_t)snprintf(ptx, sizeof(ptx),
		".version 7.0\n.target sm_50\n.address_size 64\n"
		".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
		".global .align 8 .b8 text[%d] = {",
		LINE + 1);
	for (int i = 0; i < LINE - 1; i++)
		at += (size_t)snprintf(ptx + at, sizeof(ptx) - at, "120, ");
	snprintf(ptx + at, sizeof(ptx) - at,
		"10, 0};\n"
		".visible .entry many()\n{\n"
		"	.reg .pred p;\n	.reg .b32 i;\n	.reg .b64 f;\n"
		"	mov.u32 i, 0;\n	mov.u64 f, text;\n"
		"again:\n"
		"	{\n	.param .b64 p0;\n	st.param.b64 [p0], f;\n"
		"	.param .b64 p1;\n	st.param.b64 [p1], 0;\n	.param .b32 r;\n"
		"	call.uni (r), vprintf, (p0, p1);\n	}\n"
		"	add.u32 i, i, 1;\n	setp.lt.u32 p, i, %d;\n	@p bra again;\n"
		"	ret;\n}\n",
		LINES);
	return ptx;
}

static void launch_printing(struct peer *p)
{
	image_launch(p, printing(), "many");
}

/* Memory of the files that stand for the worker's stdout and stderr. Who is not root cannot see
 * it: then only what the app is told is checked. */
static uint64_t output_bytes(const struct peer *p)
{
	char path[320], target[64];
	struct dirent *entry;
	uint64_t bytes = 0;
	struct stat st;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)p->worker);
	folder = opendir(path);
	if (!folder)
		return 1 << 20;
	while ((entry = readdir(folder))) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)p->worker, entry->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = 0;
		if (atoi(entry->d_name) <= STDERR_FILENO && strstr(target, "vcuda-output") &&
			!stat(path, &st))
			bytes += (uint64_t)st.st_blocks * 512;
	}
	closedir(folder);
	return bytes;
}

static void what_nobody_reads_is_dropped(void **state)
{
	struct wire_vcudaOutput fetch = {.which = OUTPUT_STDOUT};
	struct wire_vcudaSync sync = {.scope = SYNC_CONTEXT};
	struct {
		struct wire_vcudaOutput_reply answer;
		char text[2000];
	} got;
	struct frame_header h;
	struct peer p;

	(void)state;
	peer_start(&p);
	launch_printing(&p);
	h = call_header(&p, OP_vcudaSync, sizeof(sync));
	peer_send(&p, &h, &sync);
	/* It takes its time under a sanitizer. */
	for (time_t end = time(NULL) + 120; h.kind != FRAME_REPLY;) {
		struct pollfd poller = {.fd = p.replies, .events = POLLIN};

		assert_true(time(NULL) < end);
		assert_true(output_bytes(&p) < 80 << 20);
		if (poll(&poller, 1, 100) != 1)
			continue;
		assert_int_equal(read_all(p.replies, &h, sizeof(h)), 0);
		assert_true(h.length <= sizeof(got));
		assert_int_equal(read_all(p.replies, &got, h.length), 0);
	}
	assert_int_equal(h.status, CUDA_SUCCESS);
	assert_in_range(output_bytes(&p), 1 << 20, 80 << 20);
	h = call_header(&p, OP_vcudaOutput, sizeof(fetch));
	peer_send(&p, &h, &fetch);
	do {
		assert_int_equal(read_all(p.replies, &h, sizeof(h)), 0);
		assert_true(h.length <= sizeof(got));
		assert_int_equal(read_all(p.replies, &got, h.length), 0);
	} while (h.kind != FRAME_REPLY);
	got.text[sizeof(got.text) - 1] = 0;
	assert_non_null(strstr(got.text, "bytes that kernels printed were not read in time"));
	peer_stop(&p);
}

/* What says only that somebody is there brings nothing with it. */
static void a_ping_has_no_body(void **state)
{
	static const uint8_t kinds[] = {FRAME_PING, FRAME_PONG, FRAME_PING};

	(void)state;
	for (uint32_t i = 0; i < sizeof(kinds); i++) {
		/* One send: the worker may close at the header, before a second. */
		struct {
			struct frame_header header;
			char body[8];
		} frame = {.header = {.kind = kinds[i],
				   .magic = FRAME_MAGIC,
				   .length = sizeof(frame.body),
				   .body = i < 2 ? sizeof(frame.body) : 0}};
		struct frame_header h;
		char text[256] = "";
		struct peer p;

		_Static_assert(sizeof(frame) == sizeof(struct frame_header) + 8, "no padding");
		peer_start(&p);
		assert_int_equal(
			send(p.commands, &frame, sizeof(frame), MSG_NOSIGNAL), sizeof(frame));
		do {
			assert_int_equal(read_all(p.replies, &h, sizeof(h)), 0);
			assert_true(h.length < sizeof(text));
			assert_int_equal(read_all(p.replies, text, h.length), 0);
			text[h.length] = 0;
		} while (h.kind != FRAME_LOST);
		assert_non_null(strstr(text, "broke the protocol: a body where there is none"));
		peer_stop(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_in_a_stream_has_a_depth),
		cmocka_unit_test(waits_have_a_depth),
		cmocka_unit_test(much_work_is_done),
		cmocka_unit_test(graphs_are_counted),
		cmocka_unit_test(a_session_with_too_much_memory_is_over),
		cmocka_unit_test(granted_memory_that_is_not_there_ends_the_session),
		cmocka_unit_test(lines_of_the_log_are_counted),
		cmocka_unit_test(what_nobody_reads_is_dropped),
		cmocka_unit_test(a_ping_has_no_body),
	};

	if (!getenv("SOFTGPU")) {
		fprintf(stderr, "worker_limits: SOFTGPU must name libvcuda-softgpu.so\n");
		return 1;
	}
	return cmocka_run_group_tests_name("worker_limits", tests, NULL, NULL);
}
