/* SPDX-License-Identifier: Apache-2.0
 *
 * The mirror of host memory in a real worker: where it may lie, how much there may be of it,
 * what is written to it and told of it, and clients that say something else.
 */
#include <errno.h>
#include <sys/uio.h>

#include "protocol/wire/mirror.h"
#include "tests/unit/worker/worker_peer.h"

#define HOST 0x480000000000ull /* the worker's window, where it gets it */
#define PAGE (uint64_t)MIRROR_PAGE

static struct peer peer, *p = &peer;

/* Sends; *PAYLOAD (may be NULL): bytes behind the answer's body. */
static CUresult call_of(uint16_t op, const void *body, size_t n, uint32_t *payload)
{
	struct frame_header h = call_header(p, op, (uint32_t)n);
	bool lost;

	peer_send(p, &h, body);
	assert_int_equal(peer_reply(p, &h, &lost), 0);
	assert_false(lost);
	if (payload)
		*payload = h.length - h.body;
	return (CUresult)h.status;
}

static CUresult map(uint64_t address, uint64_t bytes)
{
	struct wire_vcudaMirrorMap body = {.address = address, .bytes = bytes};

	return call_of(OP_vcudaMirrorMap, &body, sizeof(body), NULL);
}

static CUresult unmap(uint64_t address)
{
	struct wire_vcudaMirrorUnmap body = {.address = address};

	return call_of(OP_vcudaMirrorUnmap, &body, sizeof(body), NULL);
}

/* WORDS times VALUE from ADDRESS on, in a frame that says so many BYTES. */
static CUresult put(uint64_t address, uint32_t words, uint64_t value, uint32_t bytes)
{
	struct {
		struct wire_vcudaMirrorWrite call;
		struct mirror_run run;
		uint64_t values[8];
		uint8_t masks[8];
	} body = {.run = {.address = address, .words = words}};

	body.call.bytes = bytes;
	body.call.runs.offset = offsetof(__typeof__(body), run);
	body.call.runs.length = bytes;
	for (size_t i = 0; i < 8; i++)
		body.values[i] = value;
	memset(&body.values[words < 8 ? words : 7], 0xff, 8); /* the masks */
	return call_of(OP_vcudaMirrorWrite, &body, sizeof(body), NULL);
}
#define PUT(ADDRESS, WORDS, VALUE) put(ADDRESS, WORDS, VALUE, (uint32_t)mirror_run_bytes(WORDS))

static CUresult fill(uint64_t address, uint64_t words)
{
	struct wire_vcudaFill body = {
		.dst = address, .value = 7, .element = 4, .width = words, .height = 1};

	return call_of(OP_vcudaFill, &body, sizeof(body), NULL);
}

static CUresult fetch(uint32_t scope, uint64_t capacity, uint32_t *bytes)
{
	struct wire_vcudaMirrorFetch body = {.scope = scope, .capacity = capacity};

	return call_of(OP_vcudaMirrorFetch, &body, sizeof(body), bytes);
}

static void nothing_but_its_own_addresses(void **state)
{
	static _Alignas(4096) char taken[8192];
	uint64_t ours = (uintptr_t)taken;

	(void)state;
	memset(taken, 3, sizeof(taken)); /* the worker is a fork: it has them too */
	peer_start(p);
	assert_int_equal(map(HOST, 2 * PAGE), CUDA_SUCCESS);
	assert_int_equal(map(HOST, 2 * PAGE), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(map(HOST + PAGE, 2 * PAGE), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(map(HOST - PAGE, 2 * PAGE), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(map(HOST + 2 * PAGE, PAGE), CUDA_SUCCESS);
	assert_int_equal(map(HOST + 4 * PAGE + 1, PAGE), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(map(HOST + 4 * PAGE, PAGE + 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(map(HOST + 4 * PAGE, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(map(HOST + 4 * PAGE, -PAGE), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(map(-PAGE, PAGE), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(map(0, PAGE), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(map(1ull << 47, PAGE), CUDA_ERROR_INVALID_VALUE);
	/* What is the worker's already. */
	assert_int_equal(map(ours, PAGE), CUDA_ERROR_MAP_FAILED);
	assert_int_equal(map(ours - PAGE, 2 * PAGE), CUDA_ERROR_MAP_FAILED);
	assert_int_equal(unmap(ours), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(unmap(HOST + PAGE), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(unmap(HOST), CUDA_SUCCESS);
	assert_int_equal(unmap(HOST), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(fill(HOST, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(fill(HOST + 2 * PAGE, 1), CUDA_SUCCESS);
	assert_int_equal(fill(HOST + 3 * PAGE - 4, 2), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(map(HOST, 2 * PAGE), CUDA_SUCCESS);
	expect_alive(p);
	peer_stop(p);
}

static void no_more_than_its_share(void **state)
{
	uint64_t at = HOST;

	(void)state;
	peer_host_memory = 1ull << 30;
	peer_start(p);
	assert_int_equal(map(at, (256 << 20) + PAGE), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(map(at, 128 << 20), CUDA_SUCCESS);
	assert_int_equal(map(at + (128 << 20), (128 << 20) + PAGE), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(map(at + (128 << 20), 128 << 20), CUDA_SUCCESS);
	assert_int_equal(unmap(at), CUDA_SUCCESS);
	assert_int_equal(map(at, 128 << 20), CUDA_SUCCESS);
	assert_int_equal(unmap(at), CUDA_SUCCESS);
	for (int i = 0; i < 4095; i++, at += PAGE)
		assert_int_equal(map(at, PAGE), CUDA_SUCCESS);
	assert_int_equal(map(at, PAGE), CUDA_ERROR_OUT_OF_MEMORY);
	expect_alive(p);
	peer_stop(p);
	peer_host_memory = 0;
}

static void runs_lie_in_what_is_mapped(void **state)
{
	uint32_t bytes;

	(void)state;
	peer_start(p);
	assert_int_equal(map(HOST, PAGE), CUDA_SUCCESS);
	assert_int_equal(map(HOST + 2 * PAGE, PAGE), CUDA_SUCCESS);
	assert_int_equal(PUT(HOST, 4, 9), CUDA_SUCCESS);
	assert_int_equal(PUT(HOST + PAGE - 32, 4, 9), CUDA_SUCCESS);
	assert_int_equal(PUT(HOST + PAGE - 24, 4, 9), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(PUT(HOST + PAGE, 4, 9), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(PUT(HOST - 8, 4, 9), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(PUT(HOST + 4, 1, 9), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(PUT(-8ull, 1, 9), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(put(HOST, 0, 9, 16), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(put(HOST, 4, 9, 24), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(put(HOST, UINT32_MAX, 9, 64), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(put(HOST, 4, 9, 4000), CUDA_ERROR_INVALID_VALUE);
	/* What the program wrote is not told to it; what the device wrote is, once. */
	assert_int_equal(fetch(SYNC_CONTEXT, MIRROR_FETCH_MAX, &bytes), CUDA_SUCCESS);
	assert_int_equal(bytes, sizeof(struct mirror_answer));
	assert_int_equal(fill(HOST + 2 * PAGE, 8), CUDA_SUCCESS);
	assert_int_equal(fetch(SYNC_CONTEXT, MIRROR_FETCH_MAX, &bytes), CUDA_SUCCESS);
	assert_int_equal(bytes, sizeof(struct mirror_answer) + mirror_run_bytes(4));
	assert_int_equal(fetch(SYNC_NONE, MIRROR_FETCH_MAX, &bytes), CUDA_SUCCESS);
	assert_int_equal(bytes, sizeof(struct mirror_answer));
	assert_int_equal(fetch(SYNC_NONE, 0, &bytes), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(fetch(SYNC_NONE, 15, &bytes), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(fetch(SYNC_NONE, UINT64_MAX, &bytes), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(fetch(5, MIRROR_FETCH_MAX, &bytes), CUDA_ERROR_INVALID_VALUE);
	expect_alive(p);
	peer_stop(p);
}

/* Writes there as nothing can that the worker knows of. */
static void poke(uint64_t address, uint64_t value)
{
	const struct iovec from = {&value, sizeof(value)};
	const struct iovec to = {(void *)(uintptr_t)address, sizeof(value)};

	if (process_vm_writev(p->worker, &from, 1, &to, 1, 0) < 0 && errno == EPERM)
		skip(); /* not root */
}

/* To release one of many must not cost a look through all of them. */
static void memory_is_looked_through_once(void **state)
{
	uint32_t bytes;

	(void)state;
	peer_start(p);
	assert_int_equal(map(HOST, 4 * PAGE), CUDA_SUCCESS);
	assert_int_equal(fetch(SYNC_CONTEXT, MIRROR_FETCH_MAX, &bytes), CUDA_SUCCESS);
	poke(HOST, 5);
	assert_int_equal(map(HOST + 8 * PAGE, PAGE), CUDA_SUCCESS);
	assert_int_equal(fetch(SYNC_CONTEXT, MIRROR_FETCH_MAX, &bytes), CUDA_SUCCESS);
	assert_int_equal(bytes, sizeof(struct mirror_answer));
	assert_int_equal(unmap(HOST + 8 * PAGE), CUDA_SUCCESS);
	assert_int_equal(fetch(SYNC_CONTEXT, MIRROR_FETCH_MAX, &bytes), CUDA_SUCCESS);
	assert_int_equal(bytes, sizeof(struct mirror_answer));
	/* Whatever else was asked may have written. */
	assert_int_equal(fill(HOST + 2 * PAGE, 8), CUDA_SUCCESS);
	assert_int_equal(fetch(SYNC_CONTEXT, MIRROR_FETCH_MAX, &bytes), CUDA_SUCCESS);
	assert_int_equal(bytes,
		sizeof(struct mirror_answer) + mirror_run_bytes(1) + mirror_run_bytes(4));
	/* While something runs every look is one. */
	begin_function(p);
	assert_int_equal(fetch(SYNC_NONE, MIRROR_FETCH_MAX, &bytes), CUDA_SUCCESS);
	poke(HOST, 6);
	assert_int_equal(fetch(SYNC_NONE, MIRROR_FETCH_MAX, &bytes), CUDA_SUCCESS);
	assert_int_equal(bytes, sizeof(struct mirror_answer) + mirror_run_bytes(1));
	end_function(p);
	expect_alive(p);
	peer_stop(p);
}

static void one_wait_at_a_time(void **state)
{
	struct wire_vcudaMirrorWait wait = {0};
	struct frame_header h;
	uint32_t bytes;
	bool lost;

	(void)state;
	peer_start(p);
	assert_int_equal(map(HOST, PAGE), CUDA_SUCCESS);
	/* Nothing runs: it is answered. */
	assert_int_equal(
		call_of(OP_vcudaMirrorWait, &wait, sizeof(wait), &bytes), CUDA_SUCCESS);
	assert_int_equal(bytes, sizeof(struct mirror_answer));
	/* A stream that waits for the program: it is parked, and the second is refused. */
	begin_function(p);
	h = call_header(p, OP_vcudaMirrorWait, sizeof(wait));
	peer_send(p, &h, &wait);
	assert_int_equal(call_of(OP_vcudaMirrorWait, &wait, sizeof(wait), &bytes),
		CUDA_ERROR_NOT_PERMITTED);
	end_function(p);
	assert_int_equal(peer_reply(p, &h, &lost), 0);
	assert_int_equal(h.status, CUDA_SUCCESS);
	expect_alive(p);
	peer_stop(p);
}

#define WINDOW 0x200000000000ull
#define GRANULE (2ull << 20)
#define MEMORY(i) handle_make(1 + (i), KIND_CUmemGenericAllocationHandle, 1)

/* *AT: where the worker has it. */
static CUresult create_host(unsigned i, uint64_t bytes, uint64_t *at)
{
	struct wire_vcudaVmmCreateHost body = {.memory = MEMORY(i), .bytes = bytes};
	struct wire_vcudaVmmCreateHost_reply answer = {0};
	CUresult status = call_of(OP_vcudaVmmCreateHost, &body, sizeof(body), NULL);

	memcpy(&answer, peer_body, sizeof(answer));
	if (!status)
		*at = answer.address;
	return status;
}

static CUresult place(unsigned i, uint64_t address, uint64_t bytes)
{
	struct wire_vcudaVmmMap body = {
		.memory = MEMORY(i), .address = address, .bytes = bytes};

	return CALL_OF(OP_vcudaVmmMap, body);
}

static CUresult displace(uint64_t address, uint64_t bytes)
{
	struct wire_vcudaVmmUnmap body = {.address = address, .bytes = bytes};

	return CALL_OF(OP_vcudaVmmUnmap, body);
}

static CUresult release(unsigned i)
{
	struct wire_vcudaVmmRelease body = {.memory = MEMORY(i)};

	return CALL_OF(OP_vcudaVmmRelease, body);
}

/* Memory with a name: one mirror, of the worker's own, and the device's addresses of it. */
static void memory_with_a_name(void **state)
{
	struct wire_vcudaPrimaryReset reset = {.device = 0};
	uint64_t at = 0, other = 0;
	uint32_t bytes;

	(void)state;
	peer_host_memory = 64 << 20;
	peer_start(p);
	assert_int_equal(create_host(0, 0, &at), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(create_host(0, GRANULE + PAGE, &at), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(create_host(0, -GRANULE, &at), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(create_host(0, 18 << 20, &at), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(create_host(0, 2 * GRANULE, &at), CUDA_SUCCESS);
	assert_int_equal(create_host(0, GRANULE, &other), CUDA_ERROR_INVALID_HANDLE);
	/* It is no context's, though one was current. */
	assert_int_equal(CALL_OF(OP_vcudaPrimaryReset, reset), CUDA_SUCCESS);
	assert_int_equal(place(0, at, 2 * GRANULE), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(place(0, WINDOW, 4 * GRANULE), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(place(0, WINDOW, 2 * GRANULE), CUDA_SUCCESS);
	assert_int_equal(place(0, WINDOW + 8 * GRANULE, 2 * GRANULE), CUDA_SUCCESS);
	/* What the device writes at one of its addresses is told once, as the mirror's. */
	assert_int_equal(PUT(at, 4, 9), CUDA_SUCCESS);
	assert_int_equal(PUT(WINDOW, 4, 9), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(fill(WINDOW + 9 * GRANULE, 8), CUDA_SUCCESS);
	assert_int_equal(fetch(SYNC_CONTEXT, MIRROR_FETCH_MAX, &bytes), CUDA_SUCCESS);
	assert_int_equal(bytes, sizeof(struct mirror_answer) + mirror_run_bytes(4));
	assert_int_equal(fill(WINDOW + GRANULE, 8), CUDA_SUCCESS); /* the same, there already */
	assert_int_equal(fetch(SYNC_CONTEXT, MIRROR_FETCH_MAX, &bytes), CUDA_SUCCESS);
	assert_int_equal(bytes, sizeof(struct mirror_answer));
	/* Neither is it the program's to end, nor is there another mirror of it. */
	assert_int_equal(unmap(at), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(map(at, PAGE), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(displace(at, 2 * GRANULE), CUDA_ERROR_INVALID_VALUE);
	/* It counts until it is released and mapped nowhere. */
	assert_int_equal(create_host(1, 14 << 20, &other), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(release(0), CUDA_SUCCESS);
	assert_int_equal(displace(WINDOW, 2 * GRANULE), CUDA_SUCCESS);
	assert_int_equal(PUT(at, 4, 10), CUDA_SUCCESS);
	assert_int_equal(create_host(1, 14 << 20, &other), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(displace(WINDOW + 8 * GRANULE, 2 * GRANULE), CUDA_SUCCESS);
	assert_int_equal(PUT(at, 4, 11), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(create_host(1, 14 << 20, &other), CUDA_SUCCESS);
	assert_int_equal(fill(WINDOW, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(release(1), CUDA_SUCCESS);
	expect_alive(p);
	peer_stop(p);
	peer_host_memory = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_but_its_own_addresses),
		cmocka_unit_test(no_more_than_its_share),
		cmocka_unit_test(runs_lie_in_what_is_mapped),
		cmocka_unit_test(memory_is_looked_through_once),
		cmocka_unit_test(one_wait_at_a_time),
		cmocka_unit_test(memory_with_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
