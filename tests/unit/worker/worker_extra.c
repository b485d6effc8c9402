/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts of the app's own and limits of kernels take device memory that no mapping shows: it
 * is of the session's lease, the front is asked where that is too little, and what is not
 * granted is not had.
 */
#include "protocol/generated/cuda_wire.h"
#include "tests/unit/worker/worker_peer.h"

#define WINDOW 0x200000000000ull
#define MIB (1ull << 20)
#define LEASE (64 * MIB) /* as peer_start gives it */
#define CONTEXT_BYTES (16 * MIB)
#define NUMBER CONTEXT_CREATED

static CUresult answer(struct peer *p)
{
	struct frame_header h;
	bool lost;

	assert_int_equal(peer_reply(p, &h, &lost), 0);
	assert_false(lost);
	return (CUresult)h.status;
}

static void ask(struct peer *p, uint16_t op, uint16_t context, const void *body, size_t n)
{
	struct frame_header h = call_header(p, op, (uint32_t)n);

	h.context = context;
	peer_send(p, &h, body);
}

static CUresult map(struct peer *p, uint64_t offset, uint64_t bytes)
{
	struct wire_vcudaMemMap body = {.address = WINDOW + offset, .bytes = bytes};

	ask(p, OP_vcudaMemMap, 0, &body, sizeof(body));
	return answer(p);
}

static void create(struct peer *p)
{
	struct wire_vcudaContextCreate body = {.number = NUMBER};

	ask(p, OP_vcudaContextCreate, 0, &body, sizeof(body));
}

static CUresult destroy(struct peer *p)
{
	struct wire_vcudaContextDestroy body = {.number = NUMBER};

	ask(p, OP_vcudaContextDestroy, 0, &body, sizeof(body));
	return answer(p);
}

static void set_limit(struct peer *p, uint32_t limit, uint64_t value)
{
	struct wire_cuCtxSetLimit body = {.limit = limit, .value = value};

	ask(p, OP_cuCtxSetLimit, CONTEXT_PRIMARY(0), &body, sizeof(body));
}

/* The worker asks its front for that much more, and gets a lease of `total`. */
static void grant(struct peer *p, uint64_t wanted, uint64_t total)
{
	struct handoff h = {0};

	while (h.what != HANDOFF_LEASE) {
		struct pollfd poller = {.fd = p->handoff, .events = POLLIN};

		if (poll(&poller, 1, PATIENCE_MS) != 1)
			fail_msg("the worker does not ask its front");
		assert_int_equal(recv(p->handoff, &h, sizeof(h), 0), sizeof(h));
	}
	assert_int_equal(h.bytes, wanted);
	h = (struct handoff){.version = HANDOFF_VERSION, .what = HANDOFF_GRANT, .bytes = total};
	assert_int_equal(send(p->handoff, &h, sizeof(h), 0), sizeof(h));
}

static void a_context_is_of_the_lease(void **state)
{
	struct peer p;

	(void)state;
	peer_start(&p);
	assert_int_equal(map(&p, 0, LEASE), CUDA_SUCCESS);
	create(&p);
	grant(&p, CONTEXT_BYTES, LEASE); /* nothing more */
	assert_int_equal(answer(&p), CUDA_ERROR_OUT_OF_MEMORY);
	create(&p);
	grant(&p, CONTEXT_BYTES, LEASE + CONTEXT_BYTES);
	assert_int_equal(answer(&p), CUDA_SUCCESS);
	assert_int_equal(map(&p, LEASE, 2 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	/* With the context its memory is there for others. */
	assert_int_equal(destroy(&p), CUDA_SUCCESS);
	assert_int_equal(map(&p, LEASE, CONTEXT_BYTES), CUDA_SUCCESS);
	assert_int_equal(map(&p, LEASE + CONTEXT_BYTES, 2 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	expect_alive(&p);
	peer_stop(&p);
}

/* Where the lease has room that the shim was not told of, nobody is asked. */
static void room_of_the_lease_is_used_first(void **state)
{
	struct peer p;

	(void)state;
	peer_start(&p);
	assert_int_equal(map(&p, 0, LEASE - CONTEXT_BYTES - 2 * MIB), CUDA_SUCCESS);
	create(&p);
	assert_int_equal(answer(&p), CUDA_SUCCESS);
	assert_int_equal(map(&p, LEASE, 2 * MIB), CUDA_SUCCESS);
	assert_int_equal(map(&p, 2 * LEASE, 2 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	peer_stop(&p);
}

static void limits_are_of_the_lease(void **state)
{
	const uint64_t heap = 8 * MIB; /* to begin with */
	struct peer p;

	(void)state;
	peer_start(&p);
	assert_int_equal(map(&p, 0, LEASE), CUDA_SUCCESS);
	set_limit(&p, CU_LIMIT_MALLOC_HEAP_SIZE, heap + 1024 * MIB);
	grant(&p, 1024 * MIB, LEASE);
	assert_int_equal(answer(&p), CUDA_ERROR_OUT_OF_MEMORY);
	set_limit(&p, CU_LIMIT_MALLOC_HEAP_SIZE, heap + 32 * MIB);
	grant(&p, 32 * MIB, LEASE + 32 * MIB);
	assert_int_equal(answer(&p), CUDA_SUCCESS);
	/* What is set aside already, or less, costs nothing more. */
	set_limit(&p, CU_LIMIT_MALLOC_HEAP_SIZE, heap);
	assert_int_equal(answer(&p), CUDA_SUCCESS);
	set_limit(&p, CU_LIMIT_MALLOC_HEAP_SIZE, heap + 32 * MIB);
	assert_int_equal(answer(&p), CUDA_SUCCESS);
	set_limit(&p, CU_LIMIT_MALLOC_HEAP_SIZE, UINT64_MAX);
	grant(&p, UINT64_MAX - heap - 32 * MIB, LEASE + 32 * MIB);
	assert_int_equal(answer(&p), CUDA_ERROR_OUT_OF_MEMORY);
	set_limit(&p, CU_LIMIT_STACK_SIZE, 512 * 1024); /* for each thread that may be there */
	for (;;) {
		struct handoff h;

		assert_int_equal(recv(p.handoff, &h, sizeof(h), 0), sizeof(h));
		if (h.what != HANDOFF_LEASE)
			continue;
		assert_true(h.bytes >= 64 * MIB);
		h = (struct handoff){.version = HANDOFF_VERSION,
			.what = HANDOFF_GRANT,
			.bytes = LEASE + 32 * MIB};
		assert_int_equal(send(p.handoff, &h, sizeof(h), 0), sizeof(h));
		break;
	}
	assert_int_equal(answer(&p), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(map(&p, LEASE, 2 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	peer_stop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_context_is_of_the_lease),
		cmocka_unit_test(room_of_the_lease_is_used_first),
		cmocka_unit_test(limits_are_of_the_lease),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
