/* SPDX-License-Identifier: Apache-2.0
 *
 * What the worker does in which order, where a host function holds the stream up, a context
 * goes, or the client does not read: nothing overtakes, nothing is lost, nobody waits for ever.
 */
#include "tests/unit/worker/worker_image.h"
#include "tests/unit/worker/worker_peer.h"

#include <time.h>

#define WINDOW 0x200000000000ull
#define HELD 400 /* more frames than the worker issues behind a host function */

static void send_all(struct peer *p, const void *bytes, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t sent =
			send(p->commands, (const char *)bytes + at, n - at, MSG_NOSIGNAL);

		assert_true(sent > 0);
		at += (size_t)sent;
	}
}

static struct frame_header post_header(
	struct peer *p, uint16_t op, uint32_t body, uint32_t payload)
{
	struct frame_header h = call_header(p, op, body);

	h.kind = FRAME_POST;
	h.length += payload;
	return h;
}

static void post(struct peer *p, uint16_t op, const void *body, uint32_t n)
{
	struct frame_header h = post_header(p, op, n, 0);

	peer_send(p, &h, body);
}

/* The next frame of the kind, others are dropped; its body (at most `n` bytes) is in *body. */
static void expect_kind(
	struct peer *p, enum frame_kind kind, struct frame_header *h, void *body, size_t n)
{
	static unsigned char bytes[1 << 21];

	do {
		assert_int_equal(read_all(p->replies, h, sizeof(*h)), 0);
		assert_true(h->length <= sizeof(bytes));
		assert_int_equal(read_all(p->replies, bytes, h->length), 0);
		if (h->kind == FRAME_LOST)
			fail_msg("session lost: %.*s", (int)h->length, bytes);
	} while (h->kind != kind);
	memcpy(body, bytes, h->length < n ? h->length : n);
}

static void expect_upcall(struct peer *p, uint64_t ticket)
{
	struct frame_upcall upcall;
	struct frame_header h;

	expect_kind(p, FRAME_UPCALL, &h, &upcall, sizeof(upcall));
	assert_int_equal(upcall.value, ticket);
}

static void map_memory(struct peer *p)
{
	struct wire_vcudaMemMap map = {.address = WINDOW, .bytes = 16 << 20};
	struct frame_header h;
	bool lost;

	h = call_header(p, OP_vcudaMemMap, sizeof(map));
	peer_send(p, &h, &map);
	assert_int_equal(peer_reply(p, &h, &lost), 0);
	assert_int_equal(h.status, CUDA_SUCCESS);
}

static void hold(struct peer *p, uint64_t ticket)
{
	struct wire_vcudaHostFunc func = {.ticket = ticket};

	post(p, OP_vcudaHostFunc, &func, sizeof(func));
}

static void fill(struct peer *p, uint32_t value)
{
	struct wire_vcudaFill f = {.dst = WINDOW,
		.pitch = 4,
		.value = value,
		.element = 4,
		.width = 1,
		.height = 1};

	post(p, OP_vcudaFill, &f, sizeof(f));
}

/* While frames are kept back, the first half of another one arrives. */
static void half_a_frame_waits_beside_those_kept_back(void **state)
{
	enum { BYTES = 256 * 1024 };
	struct wire_vcudaCopyIn in = {
		.dst = WINDOW, .pitch = BYTES, .width = BYTES, .height = 1, .depth = 1};
	struct wire_vcudaCopyOut out = {
		.src = WINDOW + BYTES - 4, .pitch = 4, .width = 4, .height = 1, .depth = 1};
	struct wire_vcudaHostFuncDone done = {.ticket = 1};
	struct {
		struct frame_header done_header;
		struct wire_vcudaHostFuncDone done;
		struct frame_header header;
		struct wire_vcudaCopyIn in;
	} __attribute__((packed)) first;
	static unsigned char bytes[BYTES];
	struct {
		struct frame_destination destination;
		uint32_t value;
	} got = {0};
	struct frame_header h;
	struct peer p;

	(void)state;
	memset(bytes, 0x5a, sizeof(bytes));
	peer_start(&p);
	map_memory(&p);
	hold(&p, 1);
	for (uint32_t i = 0; i < HELD; i++)
		fill(&p, i);
	expect_upcall(&p, 1);
	first.done_header = post_header(&p, OP_vcudaHostFuncDone, sizeof(done), 0);
	first.done = done;
	first.header = post_header(&p, OP_vcudaCopyIn, sizeof(in), BYTES);
	first.in = in;
	send_all(&p, &first, sizeof(first));
	send_all(&p, bytes, BYTES / 2);
	usleep(100000);
	send_all(&p, bytes + BYTES / 2, BYTES / 2);
	h = call_header(&p, OP_vcudaCopyOut, sizeof(out));
	peer_send(&p, &h, &out);
	expect_kind(&p, FRAME_REPLY, &h, &got, sizeof(got));
	assert_int_equal(h.status, CUDA_SUCCESS);
	assert_int_equal(got.value, 0x5a5a5a5a);
	expect_alive(&p);
	peer_stop(&p);
}

/* There is always something kept back, and in the sum far more than may be at a time. */
static void what_was_kept_back_needs_no_memory_any_more(void **state)
{
	enum { BYTES = 1 << 20, ROUNDS = 90 };
	struct wire_vcudaCopyIn in = {
		.dst = WINDOW, .pitch = BYTES, .width = BYTES, .height = 1, .depth = 1};
	struct wire_vcudaHostFuncDone done;
	struct frame_header h;
	static unsigned char bytes[BYTES];
	struct peer p;

	(void)state;
	peer_start(&p);
	map_memory(&p);
	hold(&p, 0);
	for (uint64_t round = 0; round < ROUNDS; round++) {
		for (uint32_t i = 0; i < HELD; i++)
			fill(&p, i);
		h = post_header(&p, OP_vcudaCopyIn, sizeof(in), BYTES);
		peer_send(&p, &h, &in);
		send_all(&p, bytes, BYTES);
		hold(&p, round + 1);
		expect_upcall(&p, round);
		done.ticket = round;
		post(&p, OP_vcudaHostFuncDone, &done, sizeof(done));
	}
	expect_upcall(&p, ROUNDS);
	done.ticket = ROUNDS;
	post(&p, OP_vcudaHostFuncDone, &done, sizeof(done));
	expect_alive(&p);
	peer_stop(&p);
}

/* A kernel that faults after a while. */
static const char ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
			  ".visible .entry late()\n{\n"
			  "	.reg .pred p;\n	.reg .b64 begin, time;\n"
			  "	mov.u64 begin, %globaltimer;\n"
			  "again:\n"
			  "	mov.u64 time, %globaltimer;\n"
			  "	sub.u64 time, time, begin;\n"
			  "	setp.lt.u64 p, time, 300000000;\n"
			  "	@p bra again;\n"
			  "	mov.u64 begin, 16;\n"
			  "	st.global.u32 [begin], 1;\n"
			  "	ret;\n}\n";

static void load_and_launch(struct peer *p)
{
	image_launch(p, ptx, "late");
}

/* The driver drops it, and no word of it comes: what is behind must be answered all the same.
 */
static void a_host_function_behind_a_fault_holds_nothing_up(void **state)
{
	struct wire_vcudaSync sync = {.scope = SYNC_CONTEXT};
	struct frame_header h;
	struct peer p;
	bool lost;

	(void)state;
	peer_start(&p);
	map_memory(&p);
	load_and_launch(&p);
	hold(&p, 1);
	for (uint32_t i = 0; i < HELD; i++)
		fill(&p, i);
	h = call_header(&p, OP_vcudaSync, sizeof(sync));
	peer_send(&p, &h, &sync);
	assert_int_equal(peer_reply(&p, &h, &lost), 0);
	assert_int_equal(h.status, CUDA_ERROR_ILLEGAL_ADDRESS);
	peer_stop(&p);
}

/* The driver waits for the function, so the loop must not wait for the driver. */
static void a_context_goes_after_its_host_functions(void **state)
{
	struct wire_vcudaContextCreate create = {.number = CONTEXT_CREATED};
	struct wire_vcudaContextDestroy destroy = {.number = CONTEXT_CREATED};
	struct wire_vcudaHostFunc func = {.ticket = 7};
	struct wire_vcudaHostFuncDone done = {.ticket = 7};
	struct frame_header h;
	struct peer p;
	bool lost;

	(void)state;
	peer_start(&p);
	for (int round = 0; round < 3; round++) {
		CALL(OP_vcudaContextCreate, create, CUDA_SUCCESS);
		h = post_header(&p, OP_vcudaHostFunc, sizeof(func), 0);
		h.context = CONTEXT_CREATED;
		peer_send(&p, &h, &func);
		post(&p, OP_vcudaContextDestroy, &destroy, sizeof(destroy));
		expect_upcall(&p, 7);
		post(&p, OP_vcudaHostFuncDone, &done, sizeof(done));
	}
	expect_alive(&p);
	peer_stop(&p);
}

/* The client reads nothing for a while: no synchronisation is answered before the bytes of the
 * copies that stand before it. */
static void copies_come_before_the_answer(void **state)
{
	struct wire_vcudaCopyOut out = {
		.src = WINDOW, .pitch = 4, .width = 4, .height = 1, .depth = 1};
	struct wire_vcudaSync sync = {.scope = SYNC_STREAM};
	static unsigned char body[1 << 20];
	struct frame_header h;
	struct peer p;

	(void)state;
	peer_small = true;
	peer_start(&p);
	peer_small = false;
	map_memory(&p);
	for (unsigned n = 440; n < 600; n += 8) {
		unsigned data = 0;

		for (unsigned i = 0; i < n; i++)
			post(&p, OP_vcudaCopyOut, &out, sizeof(out));
		h = call_header(&p, OP_vcudaSync, sizeof(sync));
		peer_send(&p, &h, &sync);
		usleep(15000);
		do {
			assert_int_equal(read_all(p.replies, &h, sizeof(h)), 0);
			assert_int_equal(read_all(p.replies, body, h.length), 0);
			data += h.kind == FRAME_DATA;
		} while (h.kind != FRAME_REPLY);
		assert_int_equal(h.status, CUDA_SUCCESS);
		assert_int_equal(data, n);
	}
	peer_stop(&p);
}

/* Two wait for one event, which the app destroys meanwhile. */
static void an_event_that_two_wait_for_may_be_destroyed(void **state)
{
	struct wire_vcudaEventCreate create = {.event = handle_make(1, KIND_CUevent, 3)};
	struct wire_vcudaEventDestroy destroy = {.event = create.event};
	struct wire_vcudaSync sync = {.scope = SYNC_EVENT, .handle = create.event};
	struct wire_vcudaHostFuncDone done = {.ticket = 1};
	struct {
		uint64_t event, stream;
	} record = {.event = create.event};
	unsigned tags = 0;
	struct frame_header h;
	struct peer p;
	bool lost;

	(void)state;
	peer_start(&p);
	hold(&p, 1);
	expect_upcall(&p, 1); /* it runs: before that, its end would be nobody's */
	CALL(OP_vcudaEventCreate, create, CUDA_SUCCESS);
	post(&p, OP_cuEventRecord, &record, sizeof(record));
	for (uint16_t tag = 1; tag <= 2; tag++) {
		h = call_header(&p, OP_vcudaSync, sizeof(sync));
		h.tag = tag;
		peer_send(&p, &h, &sync);
	}
	post(&p, OP_vcudaEventDestroy, &destroy, sizeof(destroy));
	post(&p, OP_vcudaHostFuncDone, &done, sizeof(done));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(peer_reply(&p, &h, &lost), 0);
		assert_int_equal(h.status, CUDA_SUCCESS);
		tags |= 1u << h.tag;
	}
	assert_int_equal(tags, 6);
	expect_alive(&p);
	peer_stop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(half_a_frame_waits_beside_those_kept_back),
		cmocka_unit_test(what_was_kept_back_needs_no_memory_any_more),
		cmocka_unit_test(a_host_function_behind_a_fault_holds_nothing_up),
		cmocka_unit_test(a_context_goes_after_its_host_functions),
		cmocka_unit_test(copies_come_before_the_answer),
		cmocka_unit_test(an_event_that_two_wait_for_may_be_destroyed),
	};

	if (!getenv("SOFTGPU")) {
		fprintf(stderr, "worker_order: SOFTGPU must name libvcuda-softgpu.so\n");
		return 1;
	}
	return cmocka_run_group_tests_name("worker_order", tests, NULL, NULL);
}
