/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker while its loop is in a call of the driver that does not return: what was ready
 * before is answered, there are signs of life, and it ends with its client.  The loading of a
 * module and pinned memory stand at a gate that the test opens (gate_driver.c).
 */
#include "tests/unit/worker/worker_peer.h"

#include <openssl/sha.h>

#include "protocol/wire/array.h"

#define WINDOW 0x200000000000ull
#define TAG_AT_ONCE 6
#define PTX ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }\n"

static int gate[2];

static void gate_open(void)
{
	assert_int_equal(write(gate[1], "", 1), 1);
}

static void gate_start(struct peer *p)
{
	char text[16];

	assert_int_equal(pipe(gate), 0);
	snprintf(text, sizeof(text), "%d", gate[0]);
	setenv("VCUDA_SOFTGPU_GATE", text, 1);
	peer_driver = getenv("GATE_DRIVER");
	gate_open(); /* for the staging memory of both directions */
	gate_open();
	peer_start(p);
	peer_driver = NULL;
}

static void gate_close(void)
{
	close(gate[0]);
	close(gate[1]);
}

struct load_call {
	struct frame_header header;
	struct wire_vcudaModuleLoad load;
	uint8_t digest[32];
};

static void send_all(struct peer *p, const void *bytes, size_t n)
{
	assert_int_equal(send(p->commands, bytes, n, MSG_NOSIGNAL), n);
}

/* The image's bytes, so that loading it is one call. */
static void send_image(struct peer *p)
{
	struct {
		struct frame_header header;
		struct wire_vcudaModuleData data;
		uint8_t digest[32];
		char ptx[sizeof(PTX)];
	} __attribute__((packed)) f = {.ptx = PTX};

	f.header = call_header(p, OP_vcudaModuleData, sizeof(f.data) + 32);
	f.header.kind = FRAME_POST;
	f.header.length += sizeof(PTX);
	f.data.digest = (struct wire_run){sizeof(f.data), 32};
	f.data.size = sizeof(PTX);
	SHA256((const void *)PTX, sizeof(PTX), f.digest);
	send_all(p, &f, sizeof(f));
}

static struct load_call load_call(struct peer *p)
{
	struct load_call f = {.load = {.module = handle_make(1, KIND_CUmodule, 1),
				      .digest = {sizeof(f.load), 32},
				      .size = sizeof(PTX),
				      .kind = IMAGE_PTX,
				      .jit = {sizeof(f.load), 0}}};

	f.header = call_header(p, OP_vcudaModuleLoad, sizeof(f.load) + 32);
	SHA256((const void *)PTX, sizeof(PTX), f.digest);
	return f;
}

/* A call that is answered at once, and one that lasts, in one packet. */
static void send_both(struct peer *p)
{
	struct {
		struct frame_header header;
		struct wire_vcudaOutput output;
		struct load_call load;
	} __attribute__((packed)) both = {.output = {.which = OUTPUT_STDOUT}};

	both.header = call_header(p, OP_vcudaOutput, sizeof(both.output));
	both.header.tag = TAG_AT_ONCE;
	both.load = load_call(p);
	send_all(p, &both, sizeof(both));
}

/* Two threads of a program: the answer of the one is not held by the call of the other, and
 * the sidecar hears of the worker meanwhile. */
static void what_is_ready_is_answered_before_a_call_that_lasts(void **state)
{
	struct frame_header h;
	unsigned pongs = 0;
	struct peer p;
	bool lost;

	(void)state;
	gate_start(&p);
	send_image(&p);
	send_both(&p);
	assert_int_equal(peer_reply(&p, &h, &lost), 0);
	assert_int_equal(h.tag, TAG_AT_ONCE);
	while (pongs < 3)
		pongs += next_frame(&p, &h) == FRAME_PONG;
	gate_open();
	assert_int_equal(peer_reply(&p, &h, &lost), 0);
	assert_int_equal(h.tag, 5);
	assert_int_equal(h.status, CUDA_SUCCESS);
	expect_alive(&p);
	peer_stop(&p);
	gate_close();
}

/* The front hears of it, too. */
static void the_front_hears_of_a_worker_in_a_call(void **state)
{
	struct handoff said;
	struct load_call f;
	unsigned alive = 0;
	struct peer p;

	(void)state;
	gate_start(&p);
	send_image(&p);
	f = load_call(&p);
	send_all(&p, &f, sizeof(f));
	while (alive < 2) {
		struct pollfd poller = {.fd = p.handoff, .events = POLLIN};

		assert_int_equal(poll(&poller, 1, PATIENCE_MS), 1);
		assert_int_equal(recv(p.handoff, &said, sizeof(said), 0), sizeof(said));
		alive += said.what == HANDOFF_ALIVE;
	}
	gate_open();
	peer_stop(&p);
	gate_close();
}

static void it_ends_with_its_client_during_a_call(void **state)
{
	struct peer p;

	(void)state;
	gate_start(&p);
	send_image(&p);
	send_both(&p); /* an answer is in the queue */
	usleep(200000);
	peer_stop_within(&p, 5);
	gate_close();
}

/* Nor may answers that cannot be sent keep it. */
static void it_ends_with_a_client_that_never_read(void **state)
{
	enum { BYTES = 1 << 19, COPIES = 24 };
	struct wire_vcudaMemMap map = {.address = WINDOW, .bytes = 2 << 20};
	struct wire_vcudaCopyOut out = {
		.src = WINDOW, .pitch = BYTES, .width = BYTES, .height = 1, .depth = 1};
	struct frame_header h;
	struct load_call f;
	struct peer p;
	bool lost;

	(void)state;
	peer_small = true;
	gate_start(&p);
	peer_small = false;
	CALL(OP_vcudaMemMap, map, CUDA_SUCCESS);
	send_image(&p);
	for (int i = 0; i < COPIES; i++) {
		h = call_header(&p, OP_vcudaCopyOut, sizeof(out));
		peer_send(&p, &h, &out);
	}
	usleep(200000);
	f = load_call(&p);
	send_all(&p, &f, sizeof(f));
	usleep(200000);
	peer_stop_within(&p, 5);
	gate_close();
}

/* A module goes while a host function is outstanding: what comes behind does not wait. */
static void a_module_that_goes_holds_nothing_up(void **state)
{
	struct wire_vcudaModuleUnload unload;
	struct wire_vcudaOutput output = {.which = OUTPUT_STDOUT};
	struct frame_header h;
	struct load_call f;
	struct peer p;
	bool lost;

	(void)state;
	gate_start(&p);
	gate_open();
	send_image(&p);
	f = load_call(&p);
	send_all(&p, &f, sizeof(f));
	assert_int_equal(peer_reply(&p, &h, &lost), 0);
	assert_int_equal(h.status, CUDA_SUCCESS);
	begin_function(&p);
	unload.module = f.load.module;
	send_post(&p, OP_vcudaModuleUnload, &unload, sizeof(unload));
	CALL(OP_vcudaOutput, output, CUDA_SUCCESS);
	CALL(OP_vcudaModuleUnload, unload, CUDA_ERROR_INVALID_HANDLE);
	end_function(&p);
	expect_alive(&p);
	peer_stop(&p);
	gate_close();
}

static void a_texture_that_goes_holds_nothing_up(void **state)
{
	struct wire_vcudaMemMap map = {.address = WINDOW, .bytes = 2 << 20};
	struct wire_vcudaOutput output = {.which = OUTPUT_STDOUT};
	struct {
		struct frame_header header;
		struct wire_vcudaTextureCreate body;
		struct texture_desc desc;
	} create = {.desc = {.kind = CU_RESOURCE_TYPE_LINEAR,
			    .format = CU_AD_FORMAT_FLOAT,
			    .channels = 1,
			    .place = WINDOW,
			    .bytes = 64}};
	struct wire_vcudaTextureDestroy destroy;
	struct frame_header h;
	struct peer p;
	bool lost;

	(void)state;
	peer_start(&p);
	CALL(OP_vcudaMemMap, map, CUDA_SUCCESS);
	create.header =
		call_header(&p, OP_vcudaTextureCreate, sizeof(create) - sizeof(create.header));
	create.body.texture = destroy.texture = handle_make(1, KIND_CUtexObject, 7);
	create.body.desc.offset = sizeof(create.body);
	create.body.desc.length = sizeof(create.desc);
	send_all(&p, &create, sizeof(create));
	assert_int_equal(peer_reply(&p, &h, &lost), 0);
	assert_int_equal(h.status, CUDA_SUCCESS);
	begin_function(&p);
	send_post(&p, OP_vcudaTextureDestroy, &destroy, sizeof(destroy));
	CALL(OP_vcudaOutput, output, CUDA_SUCCESS);
	CALL(OP_vcudaTextureDestroy, destroy, CUDA_ERROR_INVALID_HANDLE);
	end_function(&p);
	expect_alive(&p);
	peer_stop(&p);
}

/* The driver would wait in there for the function: another thread's calls go on meanwhile. */
static void a_module_is_loaded_when_no_function_is_outstanding(void **state)
{
	struct wire_vcudaOutput output = {.which = OUTPUT_STDOUT};
	struct frame_header h;
	struct load_call f;
	struct peer p;
	bool lost;

	(void)state;
	peer_start(&p);
	send_image(&p);
	begin_function(&p);
	for (int i = 0; i < 2; i++) {
		f = load_call(&p);
		f.load.module = handle_make(1, KIND_CUmodule, (uint32_t)i + 1);
		f.header.tag = (uint16_t)(10 + i);
		send_all(&p, &f, sizeof(f));
	}
	for (int i = 0; i < 3; i++) {
		CALL(OP_vcudaOutput, output, CUDA_SUCCESS);
		assert_int_equal(h.tag, 5);
	}
	end_function(&p);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(peer_reply(&p, &h, &lost), 0);
		assert_int_equal(h.tag, 10 + i);
		assert_int_equal(h.status, CUDA_SUCCESS);
	}
	expect_alive(&p);
	peer_stop(&p);
}

/* What a thread posts is in order with its own call, which waits behind a post that waits. */
static void a_call_stays_behind_its_threads_posts(void **state)
{
	struct wire_vcudaContextCreate create = {.number = CONTEXT_CREATED};
	struct wire_vcudaContextDestroy destroy = {.number = CONTEXT_CREATED};
	struct frame_header h;
	struct load_call f;
	struct peer p;
	bool lost;

	(void)state;
	peer_start(&p);
	CALL(OP_vcudaContextCreate, create, CUDA_SUCCESS);
	send_image(&p);
	begin_function(&p);
	send_post(&p, OP_vcudaContextDestroy, &destroy, sizeof(destroy));
	f = load_call(&p);
	f.header.context = CONTEXT_CREATED;
	send_all(&p, &f, sizeof(f));
	end_function(&p);
	assert_int_equal(peer_reply(&p, &h, &lost), 0);
	assert_int_equal(h.status, CUDA_ERROR_INVALID_CONTEXT);
	expect_alive(&p);
	peer_stop(&p);
}

static void calls_that_are_kept_have_a_limit(void **state)
{
	enum { PAYLOAD = 1 << 20, CALLS = 80 };
	static unsigned char zeros[PAYLOAD];
	struct wire_vcudaPrimaryReset reset = {0};
	struct frame_header h;
	struct peer p;
	bool lost;

	(void)state;
	peer_start(&p);
	begin_function(&p);
	for (int i = 0; i < CALLS; i++) {
		h = call_header(&p, OP_vcudaPrimaryReset, sizeof(reset));
		h.length += PAYLOAD;
		/* It ends the session at some time, between the two as well. */
		if (send(p.commands, &h, sizeof(h), MSG_NOSIGNAL) != sizeof(h) ||
			send(p.commands, &reset, sizeof(reset), MSG_NOSIGNAL) !=
				sizeof(reset) ||
			send(p.commands, zeros, PAYLOAD, MSG_NOSIGNAL) != PAYLOAD)
			break;
	}
	assert_int_equal(peer_reply(&p, &h, &lost), 0);
	assert_true(lost);
	peer_stop(&p);
}

static void send_piece(struct peer *p, const char *text, uint64_t size, uint64_t offset)
{
	enum { PIECE = 16 };
	struct {
		struct frame_header header;
		struct wire_vcudaModuleData data;
		uint8_t digest[32];
		char bytes[PIECE];
	} __attribute__((packed)) f = {0};
	uint32_t n = size - offset < PIECE ? (uint32_t)(size - offset) : PIECE;

	f.header = call_header(p, OP_vcudaModuleData, sizeof(f.data) + 32);
	f.header.kind = FRAME_POST;
	f.header.length += n;
	f.data.digest = (struct wire_run){sizeof(f.data), 32};
	f.data.size = size;
	f.data.offset = offset;
	SHA256((const void *)text, size, f.digest);
	memcpy(f.bytes, text + offset, n);
	send_all(p, &f, sizeof(f) - PIECE + n);
}

/* Two threads load modules that were never here, a third one of the same. */
static void images_come_at_once(void **state)
{
	static const char other[sizeof(PTX)] = ".version 7.0\n.target sm_70\n";
	struct frame_header h;
	struct load_call f;
	struct peer p;
	bool lost;

	(void)state;
	peer_start(&p);
	for (uint64_t at = 0; at < sizeof(PTX); at += 16) {
		send_piece(&p, PTX, sizeof(PTX), at);
		send_piece(&p, other, sizeof(PTX), at);
		send_piece(&p, PTX, sizeof(PTX), at);
	}
	f = load_call(&p);
	send_all(&p, &f, sizeof(f));
	assert_int_equal(peer_reply(&p, &h, &lost), 0);
	assert_int_equal(h.status, CUDA_SUCCESS);
	assert_int_equal(h.deferred, CUDA_SUCCESS);
	expect_alive(&p);
	peer_stop(&p);
}

/* Its memory comes when the driver gives it; the loop goes on meanwhile. */
static void the_loop_does_not_wait_for_the_memory_of_a_stripe(void **state)
{
	struct handoff message = {
		.version = HANDOFF_VERSION, .what = HANDOFF_STRIPE, .device = 1};
	struct wire_vcudaMemMap map = {.address = WINDOW, .bytes = 2 << 20};
	struct wire_vcudaCopyIn in = {
		.dst = WINDOW, .pitch = 4, .width = 4, .height = 1, .depth = 1};
	struct {
		struct session_piece piece;
		uint32_t value;
	} __attribute__((packed)) piece = {.piece = {.length = 4}, .value = 1234};
	struct frame_header h;
	struct peer p;
	bool lost;
	int stripe[2];

	(void)state;
	gate_start(&p);
	CALL(OP_vcudaMemMap, map, CUDA_SUCCESS);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stripe), 0);
	assert_int_equal(
		descriptors_send(p.handoff, &message, sizeof(message), &stripe[1], 1, 0), 0);
	usleep(100000);
	expect_alive(&p);
	gate_open();
	assert_int_equal(send(stripe[0], &piece, sizeof(piece), 0), sizeof(piece));
	h = call_header(&p, OP_vcudaCopyIn, sizeof(in));
	h.length += 4;
	h.flags = 1 << FRAME_STRIPE_SHIFT;
	peer_send(&p, &h, &in);
	assert_int_equal(peer_reply(&p, &h, &lost), 0);
	assert_int_equal(h.status, CUDA_SUCCESS);
	expect_alive(&p);
	peer_stop(&p);
	close(stripe[0]);
	close(stripe[1]);
	gate_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(images_come_at_once),
		cmocka_unit_test(what_is_ready_is_answered_before_a_call_that_lasts),
		cmocka_unit_test(the_front_hears_of_a_worker_in_a_call),
		cmocka_unit_test(it_ends_with_its_client_during_a_call),
		cmocka_unit_test(a_module_that_goes_holds_nothing_up),
		cmocka_unit_test(a_texture_that_goes_holds_nothing_up),
		cmocka_unit_test(a_module_is_loaded_when_no_function_is_outstanding),
		cmocka_unit_test(a_call_stays_behind_its_threads_posts),
		cmocka_unit_test(calls_that_are_kept_have_a_limit),
		cmocka_unit_test(the_loop_does_not_wait_for_the_memory_of_a_stripe),
		cmocka_unit_test(it_ends_with_a_client_that_never_read),
	};

	if (!getenv("GATE_DRIVER")) {
		fprintf(stderr, "worker_calls: GATE_DRIVER must name libgate-driver.so\n");
		return 1;
	}
	return cmocka_run_group_tests_name("worker_calls", tests, NULL, NULL);
}
