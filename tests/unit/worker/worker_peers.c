/* SPDX-License-Identifier: Apache-2.0
 *
 * Peer access in a real worker with two devices: what it tells of them, the errors of giving
 * and taking access, what a context's end takes away, and numbers that a hostile client makes
 * up.
 */
#include "gpu-agent/generated/serve_hand.h"
#include "gpu-agent/worker/driver/memory/vmm.h"
#include "tests/unit/worker/worker_peer.h"

#define WINDOW 0x200000000000ull
#define SECOND (WINDOW + (1ull << 41))
#define GRANULE (2ull << 20)

static void start(struct peer *p)
{
	setenv("VCUDA_SOFTGPU_DEVICES", "2", 1);
	peer_start(p);
}

static CUresult reach(struct peer *p, uint16_t context, uint32_t peer, uint32_t on)
{
	struct wire_vcudaPeerContext body = {.peer = peer, .on = on};
	struct frame_header h = call_header(p, OP_vcudaPeerContext, sizeof(body));
	bool lost;

	h.context = context;
	peer_send(p, &h, &body);
	assert_int_equal(peer_reply(p, &h, &lost), 0);
	assert_false(lost);
	return (CUresult)h.status;
}

static CUresult pool(struct peer *p, int device, int accessor, uint32_t on)
{
	struct wire_vcudaPeerPool body = {.device = device, .accessor = accessor, .on = on};

	return CALL_OF(OP_vcudaPeerPool, body);
}

static CUresult map(struct peer *p, int device, uint64_t address)
{
	struct wire_vcudaMemMap body = {.device = device, .address = address, .bytes = GRANULE};

	return CALL_OF(OP_vcudaMemMap, body);
}

static void given_and_taken(void **state)
{
	const uint16_t first = CONTEXT_PRIMARY(0), second = CONTEXT_PRIMARY(1);
	struct wire_vcudaContextCreate create = {.number = CONTEXT_CREATED, .device = 1};
	struct wire_vcudaContextDestroy destroy = {.number = CONTEXT_CREATED};
	struct wire_vcudaPrimaryReset reset = {.device = 0};
	struct peer peer, *p = &peer;

	(void)state;
	start(p);
	/* Gaps, so that more than one run of mappings is opened. */
	for (unsigned i = 0; i < 60; i += 3)
		assert_int_equal(
			map(p, i % 2, (i % 2 ? SECOND : WINDOW) + i * GRANULE), CUDA_SUCCESS);
	assert_int_equal(reach(p, second, first, 0), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	assert_int_equal(reach(p, second, first, 1), CUDA_SUCCESS);
	assert_int_equal(reach(p, second, first, 1), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
	assert_int_equal(reach(p, first, second, 1), CUDA_SUCCESS);
	assert_int_equal(pool(p, 0, 1, 1), CUDA_SUCCESS);
	assert_int_equal(reach(p, second, first, 0), CUDA_SUCCESS);
	assert_int_equal(pool(p, 0, 1, 0), CUDA_SUCCESS);
	assert_int_equal(pool(p, 0, 1, 0), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	/* A reset takes all that the context has, and what others have of it. */
	assert_int_equal(reach(p, second, first, 1), CUDA_SUCCESS);
	assert_int_equal(CALL_OF(OP_vcudaPrimaryReset, reset), CUDA_SUCCESS);
	assert_int_equal(reach(p, second, first, 0), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	assert_int_equal(reach(p, first, second, 1), CUDA_SUCCESS);
	/* So does the end of one. */
	assert_int_equal(CALL_OF(OP_vcudaContextCreate, create), CUDA_SUCCESS);
	assert_int_equal(reach(p, CONTEXT_CREATED, first, 1), CUDA_SUCCESS);
	assert_int_equal(CALL_OF(OP_vcudaContextDestroy, destroy), CUDA_SUCCESS);
	assert_int_equal(reach(p, second, CONTEXT_CREATED, 1), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(CALL_OF(OP_vcudaContextCreate, create), CUDA_SUCCESS);
	assert_int_equal(reach(p, CONTEXT_CREATED, first, 1), CUDA_SUCCESS);
	expect_alive(p);
	peer_stop(p);
}

static void numbers_that_are_made_up(void **state)
{
	static const uint32_t contexts[] = {
		0, 40, CONTEXT_CREATED, CONTEXT_MAX, UINT32_MAX, 0x10000 + CONTEXT_PRIMARY(0)};
	static const int devices[] = {-1, 2, 15, 16, INT32_MAX, INT32_MIN};
	struct peer peer, *p = &peer;

	(void)state;
	start(p);
	for (size_t i = 0; i < sizeof(contexts) / sizeof(*contexts); i++)
		for (uint32_t on = 0; on < 2; on++)
			assert_int_equal(reach(p, CONTEXT_PRIMARY(1), contexts[i], on),
				CUDA_ERROR_INVALID_CONTEXT);
	assert_int_not_equal(reach(p, CONTEXT_PRIMARY(1), CONTEXT_PRIMARY(1), 1), CUDA_SUCCESS);
	for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); i++) {
		assert_int_equal(pool(p, devices[i], 0, 1), CUDA_ERROR_INVALID_DEVICE);
		assert_int_equal(pool(p, 0, devices[i], 1), CUDA_ERROR_INVALID_DEVICE);
	}
	assert_int_equal(pool(p, 1, 1, 1), CUDA_ERROR_INVALID_DEVICE);
	expect_alive(p);
	peer_stop(p);
}

static void mappings_of_others(void **state)
{
	const uint64_t memory = handle_make(1, KIND_CUmemGenericAllocationHandle, 1);
	struct wire_vcudaVmmCreate create = {.memory = memory, .bytes = 2 * GRANULE};
	struct wire_vcudaVmmMap mapping = {
		.memory = memory, .address = WINDOW, .bytes = 2 * GRANULE};
	struct wire_vcudaVmmAccess access = {
		.address = WINDOW, .bytes = 2 * GRANULE, .accessor = 1, .flags = 3};
	struct wire_vcudaVmmUnmap unmap = {.bytes = 2 * GRANULE};
	struct wire_vcudaVmmAccess wrong;
	struct peer peer, *p = &peer;

	(void)state;
	start(p);
	assert_int_equal(CALL_OF(OP_vcudaVmmAccess, access), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(CALL_OF(OP_vcudaVmmCreate, create), CUDA_SUCCESS);
	assert_int_equal(CALL_OF(OP_vcudaVmmMap, mapping), CUDA_SUCCESS);
	assert_int_equal(map(p, 0, WINDOW + 2 * GRANULE), CUDA_SUCCESS);
	assert_int_equal(CALL_OF(OP_vcudaVmmAccess, access), CUDA_SUCCESS);
#define WRONG(field_, value_, status_)                                                         \
	do {                                                                                   \
		wrong = access;                                                                \
		wrong.field_ = value_;                                                         \
		assert_int_equal(CALL_OF(OP_vcudaVmmAccess, wrong), status_);                  \
	} while (0)
	WRONG(bytes, GRANULE, CUDA_ERROR_INVALID_VALUE);     /* a part of a mapping */
	WRONG(bytes, 3 * GRANULE, CUDA_ERROR_INVALID_VALUE); /* one without a name behind it */
	WRONG(bytes, 0, CUDA_ERROR_INVALID_VALUE);
	WRONG(bytes, UINT64_MAX - GRANULE + 1, CUDA_ERROR_INVALID_VALUE);
	WRONG(address, WINDOW + GRANULE, CUDA_ERROR_INVALID_VALUE);
	WRONG(address, SECOND, CUDA_ERROR_INVALID_VALUE);
	WRONG(address, 0, CUDA_ERROR_INVALID_VALUE);
	WRONG(flags, 2, CUDA_ERROR_INVALID_VALUE);
	WRONG(flags, UINT32_MAX, CUDA_ERROR_INVALID_VALUE);
	WRONG(device, 2, CUDA_ERROR_INVALID_DEVICE);
	WRONG(device, -1, CUDA_ERROR_INVALID_DEVICE);
	WRONG(accessor, 0, CUDA_SUCCESS); /* its own */
	WRONG(accessor, 2, CUDA_ERROR_INVALID_DEVICE);
	WRONG(accessor, INT32_MIN, CUDA_ERROR_INVALID_DEVICE);
	/* In the other device's window, which then has it; it goes from there. */
	mapping.address = SECOND + 8 * GRANULE;
	assert_int_equal(CALL_OF(OP_vcudaVmmMap, mapping), CUDA_SUCCESS);
	assert_int_equal(CALL_OF(OP_vcudaVmmMap, mapping), CUDA_ERROR_INVALID_VALUE);
	access = (struct wire_vcudaVmmAccess){.device = 1,
		.address = mapping.address,
		.bytes = mapping.bytes,
		.accessor = 0,
		.flags = 3};
	assert_int_equal(CALL_OF(OP_vcudaVmmAccess, access), CUDA_SUCCESS);
	unmap.address = mapping.address;
	assert_int_equal(CALL_OF(OP_vcudaVmmUnmap, unmap), CUDA_ERROR_INVALID_VALUE);
	unmap.device = 1;
	assert_int_equal(CALL_OF(OP_vcudaVmmUnmap, unmap), CUDA_SUCCESS);
	mapping.address = WINDOW - GRANULE;
	assert_int_equal(CALL_OF(OP_vcudaVmmMap, mapping), CUDA_ERROR_INVALID_VALUE);
	mapping.address = WINDOW + 64 * (SECOND - WINDOW);
	assert_int_equal(CALL_OF(OP_vcudaVmmMap, mapping), CUDA_ERROR_INVALID_VALUE);
	expect_alive(p);
	peer_stop(p);
}

/* A piece of it is another device's for itself, whatever becomes of its access to all. */
static void memory_without_a_name(void **state)
{
	struct wire_vcudaVmmAccess access = {
		.address = WINDOW, .bytes = 2 * GRANULE, .accessor = 1, .flags = 3};
	struct wire_vcudaMemMap mapping = {.address = WINDOW, .bytes = 2 * GRANULE};
	struct wire_vcudaMemUnmap unmap = {
		.address = WINDOW, .bytes = 2 * GRANULE, .ticket = 1};
	struct wire_vcudaVmmAccess wrong;
	struct peer peer, *p = &peer;

	(void)state;
	start(p);
	assert_int_equal(CALL_OF(OP_vcudaMemMap, mapping), CUDA_SUCCESS);
	assert_int_equal(map(p, 0, WINDOW + 2 * GRANULE), CUDA_SUCCESS);
	assert_int_equal(CALL_OF(OP_vcudaVmmAccess, access), CUDA_SUCCESS);
	WRONG(bytes, GRANULE, CUDA_ERROR_INVALID_VALUE);
	WRONG(bytes, 4 * GRANULE, CUDA_ERROR_INVALID_VALUE);
	WRONG(flags, 1, CUDA_ERROR_INVALID_VALUE); /* all or nothing */
	WRONG(accessor, 0, CUDA_ERROR_INVALID_VALUE);
	WRONG(accessor, 2, CUDA_ERROR_INVALID_DEVICE);
	for (uint32_t on = 1; on <= 2; on++)
		assert_int_equal(pool(p, 0, 1, on & 1), CUDA_SUCCESS);
	WRONG(flags, 0, CUDA_SUCCESS);
	WRONG(bytes, 3 * GRANULE, CUDA_SUCCESS);
	assert_int_equal(CALL_OF(OP_vcudaMemUnmap, unmap), CUDA_SUCCESS);
	expect_alive(p);
	assert_int_equal(CALL_OF(OP_vcudaVmmAccess, access), CUDA_ERROR_INVALID_VALUE);
	peer_stop(p);
}

static CUresult refusal;

static CUresult set_access(
	CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
	(void)address, (void)bytes, (void)access, (void)count;
	return refusal;
}

/* What the driver refuses, nobody has: neither then, nor where access to all is given later. */
static void what_the_driver_refuses(void **state)
{
	struct worker *w = calloc(1, sizeof(*w));
	struct wire_vcudaVmmAccess access = {
		.address = WINDOW, .bytes = 2 * GRANULE, .accessor = 1, .flags = 3};
	struct request r = {.body = (void *)&access};
	struct vmm named = {0};
	struct mapping mappings[4] = {
		{.granules = 1}, {.granules = 1}, {.granules = 2, .of = &named}};

	(void)state;
	assert_non_null(w);
	w->device_count = 2;
	w->devices[0].window = WINDOW;
	w->devices[0].window_bytes = 4 * GRANULE;
	w->devices[0].granularity = GRANULE;
	w->devices[0].mappings = mappings;
	w->cuda.cuMemSetAccess = set_access;
	refusal = CUDA_ERROR_INVALID_DEVICE;
	assert_int_equal(serve_vcudaVmmAccess(w, &r), refusal);
	assert_int_equal(mappings[0].others | mappings[1].others, 0);
	access.address += 2 * GRANULE;
	assert_int_equal(serve_vcudaVmmAccess(w, &r), refusal);
	assert_int_equal(named.others, 0);
	refusal = CUDA_SUCCESS;
	assert_int_equal(serve_vcudaVmmAccess(w, &r), CUDA_SUCCESS);
	assert_int_equal(named.others, 2);
	access.address -= 2 * GRANULE;
	assert_int_equal(serve_vcudaVmmAccess(w, &r), CUDA_SUCCESS);
	assert_int_equal(mappings[0].others & mappings[1].others, 2);
	/* Nor does it lose what the driver does not take. */
	refusal = CUDA_ERROR_INVALID_DEVICE;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	assert_int_equal(serve_vcudaVmmAccess(w, &r), refusal);
	assert_int_equal(mappings[0].others & mappings[1].others, 2);
	free(w);
}

/* Who does not ask for it, an older program, gets the answer that it knows. */
static void told_to_who_asks(void **state)
{
	const uint64_t plain = sizeof(struct open_info) + 2 * sizeof(struct open_device);
	const uint64_t whole = plain + 4 * sizeof(struct open_peer);
	struct wire_vcudaOpen body = {.version = OPEN_VERSION, .capacity = plain};
	const struct open_info *info = (const void *)peer_body;
	const struct open_peer *peers = (const void *)(peer_body + plain);
	struct peer peer, *p = &peer;
	struct frame_header h;
	bool lost;

	(void)state;
	start(p);
	for (int asks = 0; asks < 2; asks++) {
		body.features = asks ? OPEN_FEATURE_PEERS | 1u << 20 : 1u << 20;
		body.capacity = asks ? whole : plain;
		h = call_header(p, OP_vcudaOpen, sizeof(body));
		peer_send(p, &h, &body);
		assert_int_equal(peer_reply(p, &h, &lost), 0);
		assert_int_equal(h.status, CUDA_SUCCESS);
		assert_int_equal(h.length - h.body, body.capacity);
		memmove(peer_body, peer_body + h.body, h.length - h.body);
		assert_int_equal(info->features, asks ? OPEN_FEATURE_PEERS : 0);
		assert_int_equal(info->device_count, 2);
	}
	for (int i = 0; i < 4; i++) {
		assert_int_equal(peers[i].can, i == 1 || i == 2);
		assert_int_equal(peers[i].attributes[CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED],
			i == 1 || i == 2);
	}
	body.capacity = whole - 1;
	assert_int_equal(CALL_OF(OP_vcudaOpen, body), CUDA_ERROR_INVALID_VALUE);
	peer_stop(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(given_and_taken),
		cmocka_unit_test(numbers_that_are_made_up),
		cmocka_unit_test(mappings_of_others),
		cmocka_unit_test(memory_without_a_name),
		cmocka_unit_test(what_the_driver_refuses),
		cmocka_unit_test(told_to_who_asks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
