/* SPDX-License-Identifier: Apache-2.0
 *
 * References to textures as a hostile client sets them: to other things' names, to memory that
 * is not the session's, to numbers that are no modes. Each is an error and the worker lives.
 */
#include <math.h>

#include "protocol/wire/array.h"
#include "protocol/wire/reference.h"
#include "tests/unit/worker/worker_peer.h"

#define FIRST 0x200000000000ull
#define BYTES (2ull << 20)
#define HANDLE(KIND, N) (1ull << 32 | (uint64_t)(KIND) << HANDLE_INDEX_BITS | (N))
#define REFERENCE HANDLE(KIND_CUtexref, 5)
#define ARRAY(N) HANDLE(KIND_CUarray, N)

/* Bodies with what they name behind them. */
struct get {
	struct wire_vcudaTextureReference body;
	char name[8];
};
struct set {
	struct wire_vcudaReferenceSet body;
	struct reference_setting setting;
};
struct create {
	struct wire_vcudaArrayCreate body;
	struct array_desc desc;
};

static CUresult get(struct peer *p, uint64_t reference, uint64_t module, const char *name)
{
	struct get g = {.body = {.reference = reference, .module = module}};

	g.body.name.offset = sizeof(g.body);
	g.body.name.length = (uint32_t)strlen(name) + 1;
	memcpy(g.name, name, strlen(name));
	return CALL_OF(OP_vcudaTextureReference, g);
}

static CUresult set(struct peer *p, uint64_t reference, uint32_t what,
	const struct reference_setting *setting)
{
	struct set s = {.body = {.reference = reference, .what = what}, .setting = *setting};

	s.body.setting.offset = sizeof(s.body);
	s.body.setting.length = sizeof(s.setting);
	return CALL_OF(OP_vcudaReferenceSet, s);
}

/* REFERENCE, of no module; ARRAY(1), and ARRAY(2) with levels. */
static void start(struct peer *p)
{
	struct wire_vcudaMemMap map = {.address = FIRST, .bytes = BYTES};
	struct create c = {.body = {.array = ARRAY(1)},
		.desc = {
			.width = 16, .height = 8, .format = CU_AD_FORMAT_FLOAT, .channels = 1}};

	peer_start(p);
	c.body.desc.offset = sizeof(c.body);
	c.body.desc.length = sizeof(c.desc);
	assert_int_equal(CALL_OF(OP_vcudaMemMap, map), CUDA_SUCCESS);
	assert_int_equal(CALL_OF(OP_vcudaArrayCreate, c), CUDA_SUCCESS);
	c.body.array = ARRAY(2);
	c.desc.levels = 3;
	assert_int_equal(CALL_OF(OP_vcudaArrayCreate, c), CUDA_SUCCESS);
	assert_int_equal(get(p, REFERENCE, 0, ""), CUDA_SUCCESS);
}

#define FLOATS .format = CU_AD_FORMAT_FLOAT, .channels = 1
#define OVER .flags = CU_TRSA_OVERRIDE_FORMAT

static void settings_are_checked(void **state)
{
	static const struct {
		uint32_t what;
		struct reference_setting setting;
	} none[] = {
		{REFERENCE_ARRAY, {.place = ARRAY(9), OVER}},
		{REFERENCE_ARRAY, {.place = ARRAY(2), OVER}},
		{REFERENCE_ARRAY, {.place = REFERENCE, OVER}},
		{REFERENCE_MIPMAPPED, {.place = ARRAY(1), OVER}},
		{REFERENCE_SURFACE, {.place = ARRAY(1)}},
		{REFERENCE_MEMORY, {.place = FIRST, .bytes = BYTES + 1}},
		{REFERENCE_MEMORY, {.place = FIRST, .bytes = UINT64_MAX}},
		{REFERENCE_MEMORY, {.place = UINT64_MAX, .bytes = 16}},
		{REFERENCE_MEMORY, {.place = 0x110000000000ull, .bytes = 16}},
		{REFERENCE_PITCHED,
			{.place = FIRST, .bytes = 32, .width = 16, .height = 8, FLOATS}},
		{REFERENCE_PITCHED, {.place = FIRST,
					    .bytes = 1ull << 61,
					    .width = 16,
					    .height = 9,
					    FLOATS}},
		{REFERENCE_PITCHED,
			{.place = FIRST, .bytes = BYTES, .width = 16, .height = 2, FLOATS}},
		{REFERENCE_PITCHED, {.place = FIRST,
					    .bytes = 512,
					    .width = 16,
					    .height = 8,
					    .channels = 1}},
		{REFERENCE_FORMAT, {.format = UINT32_MAX, .channels = 1}},
		{REFERENCE_FORMAT, {.format = CU_AD_FORMAT_FLOAT, .channels = 3}},
		{REFERENCE_FORMAT, {.format = CU_AD_FORMAT_FLOAT, .channels = UINT32_MAX}},
		{REFERENCE_ADDRESS_MODE, {.dimension = 3}},
		{REFERENCE_ADDRESS_MODE, {.dimension = -1}},
		{REFERENCE_ADDRESS_MODE, {.mode = 4}},
		{REFERENCE_FILTER, {.mode = 2}},
		{REFERENCE_LEVEL_FILTER, {.mode = UINT32_MAX}},
		{REFERENCE_LEVEL_BIAS, {.number = {NAN}}},
		{REFERENCE_LEVEL_CLAMP, {.number = {0, INFINITY}}},
		{REFERENCE_FLAGS, {.flags = 0x100}},
		{REFERENCE_PARAMETER, {.place = REFERENCE, .dimension = -1}},
		{REFERENCE_PARAMETER + 1, {0}},
		{UINT32_MAX, {0}},
	};
	struct peer peer, *p = &peer;

	(void)state;
	start(p);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		CUresult status = set(p, REFERENCE, none[i].what, &none[i].setting);

		if (!status)
			print_message("setting %zu was taken\n", i);
		assert_int_not_equal(status, CUDA_SUCCESS);
	}
	assert_int_equal(set(p, REFERENCE, REFERENCE_ARRAY,
				 &(struct reference_setting){.place = ARRAY(1), OVER}),
		CUDA_SUCCESS);
	assert_int_equal(set(p, REFERENCE, REFERENCE_MEMORY,
				 &(struct reference_setting){.place = FIRST, .bytes = BYTES}),
		CUDA_SUCCESS);
	expect_alive(p);
	peer_stop(p);
}

static void names_are_of_references(void **state)
{
	struct wire_vcudaReferenceDestroy gone = {.reference = REFERENCE};
	struct wire_vcudaReferenceDestroy array = {.reference = ARRAY(1)};
	struct wire_vcudaReferenceAsk ask = {.reference = REFERENCE, .what = UINT32_MAX};
	struct wire_vcudaReferenceAsk bound = {.reference = REFERENCE, .what = REFERENCE_ARRAY};
	const struct reference_setting flags = {0};
	struct peer peer, *p = &peer;

	(void)state;
	start(p);
	assert_int_equal(get(p, REFERENCE, 0, ""), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(get(p, ARRAY(10), 0, ""), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(
		get(p, HANDLE(KIND_CUtexref, 12), ARRAY(1), "name"), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(set(p, ARRAY(1), REFERENCE_FLAGS, &flags), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(CALL_OF(OP_vcudaReferenceAsk, ask), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(CALL_OF(OP_vcudaReferenceAsk, bound), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(CALL_OF(OP_vcudaReferenceDestroy, array), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(CALL_OF(OP_vcudaReferenceDestroy, gone), CUDA_SUCCESS);
	assert_int_equal(CALL_OF(OP_vcudaReferenceDestroy, gone), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(set(p, REFERENCE, REFERENCE_FLAGS, &flags), CUDA_ERROR_INVALID_HANDLE);
	expect_alive(p);
	peer_stop(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settings_are_checked),
		cmocka_unit_test(names_are_of_references),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
