/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays and textures as a hostile client describes them: what no array can be, places that lie
 * outside of one, names of other things, memory that is not the session's. Each is an error and
 * the worker lives.
 */
#include <math.h>

#include "protocol/wire/array.h"
#include "protocol/wire/graph.h"
#include "tests/unit/worker/worker_peer.h"

#define FIRST 0x200000000000ull
#define BYTES (2ull << 20)
/* As handle_make() does, in a constant. */
#define HANDLE(KIND, N) (1ull << 32 | (uint64_t)(KIND) << HANDLE_INDEX_BITS | (N))
#define ARRAY(N) HANDLE(KIND_CUarray, N)
#define TEXTURE(N) HANDLE(KIND_CUtexObject, N)

/* A body with what it names behind it. */
struct create {
	struct wire_vcudaArrayCreate body;
	struct array_desc desc;
};
struct create_texture {
	struct wire_vcudaTextureCreate body;
	struct texture_desc desc;
};
struct copy {
	struct wire_vcudaArrayCopy body;
	struct graph_copy copy;
};

static CUresult create(struct peer *p, uint64_t name, const struct array_desc *desc)
{
	struct create c = {.body = {.array = name}, .desc = *desc};

	c.body.desc.offset = sizeof(c.body);
	c.body.desc.length = sizeof(c.desc);
	return CALL_OF(OP_vcudaArrayCreate, c);
}

static CUresult texture(
	struct peer *p, uint64_t name, uint32_t surface, const struct texture_desc *desc)
{
	struct create_texture c = {
		.body = {.texture = name, .surface = surface}, .desc = *desc};

	c.body.desc.offset = sizeof(c.body);
	c.body.desc.length = sizeof(c.desc);
	return CALL_OF(OP_vcudaTextureCreate, c);
}

static CUresult copy(struct peer *p, const struct graph_copy *what)
{
	struct copy c = {.copy = *what};

	c.body.copy.offset = sizeof(c.body);
	c.body.copy.length = sizeof(c.copy);
	return CALL_OF(OP_vcudaArrayCopy, c);
}

#define FLOATS .format = CU_AD_FORMAT_FLOAT, .channels = 1

/* ARRAY(1): 16 x 8 floats, ARRAY(2): 16 x 8 with 3 levels, ARRAY(3): its second one. */
static void start(struct peer *p)
{
	struct wire_vcudaMemMap map = {.address = FIRST, .bytes = BYTES};
	struct array_desc plain = {.width = 16, .height = 8, FLOATS};
	struct array_desc levels = {.width = 16, .height = 8, FLOATS, .levels = 3};
	struct wire_vcudaArrayLevel level = {.array = ARRAY(3), .of = ARRAY(2), .level = 1};

	peer_start(p);
	assert_int_equal(CALL_OF(OP_vcudaMemMap, map), CUDA_SUCCESS);
	assert_int_equal(create(p, ARRAY(1), &plain), CUDA_SUCCESS);
	assert_int_equal(create(p, ARRAY(2), &levels), CUDA_SUCCESS);
	assert_int_equal(CALL_OF(OP_vcudaArrayLevel, level), CUDA_SUCCESS);
}

static void what_no_array_can_be_is_refused(void **state)
{
	static const struct array_desc none[] = {
		{.width = 0, FLOATS},
		{.width = UINT64_MAX, FLOATS},
		{.width = 16, .height = UINT64_MAX, FLOATS},
		{.width = 16, .height = 16, .depth = 1ull << 63, FLOATS},
		{.width = 1ull << 20, .height = 1ull << 20, .depth = 1ull << 20, FLOATS},
		{.width = 16, .format = CU_AD_FORMAT_FLOAT, .channels = 3},
		{.width = 16, .format = CU_AD_FORMAT_FLOAT, .channels = 0},
		{.width = 16, .format = 0, .channels = 1},
		{.width = 16, .format = UINT32_MAX, .channels = 1},
		{.width = 16, FLOATS, .flags = 0x80000000u},
		{.width = 16, .height = 8, .depth = 6, FLOATS, .flags = ARRAY_CUBEMAP},
		{.width = 16, FLOATS, .levels = ARRAY_LEVELS + 1},
		{.width = 16, FLOATS, .levels = UINT32_MAX},
	};
	struct array_desc good = {.width = 16, FLOATS};
	struct peer peer, *p = &peer;

	(void)state;
	start(p);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_int_not_equal(create(p, ARRAY(10), &none[i]), CUDA_SUCCESS);
	/* A name that is taken, of another kind, out of the table. */
	assert_int_equal(create(p, ARRAY(1), &good), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(create(p, TEXTURE(10), &good), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(create(p, ARRAY(HANDLE_INDEX_MAX), &good), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(create(p, ARRAY(10), &good), CUDA_SUCCESS);
	expect_alive(p);
	peer_stop(p);
}

static void planes_are_of_planar_arrays(void **state)
{
	struct array_desc nv12 = {
		.width = 16, .height = 8, .format = CU_AD_FORMAT_NV12, .channels = 3};
	struct array_desc none[] = {nv12, nv12, nv12};
	struct wire_vcudaArrayLevel plane = {.array = ARRAY(11), .of = ARRAY(10), .level = 1};
	struct wire_vcudaArrayLevel beyond = {.array = ARRAY(12), .of = ARRAY(10), .level = 2};
	struct wire_vcudaArrayLevel of_plane = {.array = ARRAY(12), .of = ARRAY(11)};
	struct wire_vcudaArrayOut out = {
		.array = ARRAY(11), .width = 16, .height = 4, .depth = 1};
	struct wire_vcudaArrayDestroy part = {.array = ARRAY(11)}, whole = {.array = ARRAY(10)};
	struct peer peer, *p = &peer;

	(void)state;
	start(p);
	none[0].channels = 1;
	none[1].levels = 2;
	none[2].height = 0;
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_int_equal(create(p, ARRAY(10), &none[i]), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(create(p, ARRAY(10), &nv12), CUDA_SUCCESS);
	assert_int_equal(CALL_OF(OP_vcudaArrayLevel, plane), CUDA_SUCCESS);
	assert_int_equal(CALL_OF(OP_vcudaArrayLevel, beyond), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(CALL_OF(OP_vcudaArrayLevel, of_plane), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(CALL_OF(OP_vcudaArrayOut, out), CUDA_SUCCESS);
	out.height = 5;
	assert_int_equal(CALL_OF(OP_vcudaArrayOut, out), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(CALL_OF(OP_vcudaArrayDestroy, part), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(CALL_OF(OP_vcudaArrayDestroy, whole), CUDA_SUCCESS);
	assert_int_equal(CALL_OF(OP_vcudaArrayOut, out), CUDA_ERROR_INVALID_HANDLE);
	expect_alive(p);
	peer_stop(p);
}

struct map {
	struct wire_vcudaArrayMap body;
	struct array_map list[1];
};

static CUresult map(struct peer *p, const struct array_map *what)
{
	struct map m = {.body = {.count = 1}, .list = {*what}};

	m.body.list.offset = sizeof(m.body);
	m.body.list.length = sizeof(m.list);
	return CALL_OF(OP_vcudaArrayMap, m);
}

/* A tile of the software GPU: all columns, 512 rows. */
#define TILE .array = ARRAY(10), .extent = {1024, 512, 1}
#define POOL HANDLE(KIND_CUmemGenericAllocationHandle, 11)
#define NO_POOL HANDLE(KIND_CUmemGenericAllocationHandle, 12)

static void what_is_mapped_lies_in_the_pool(void **state)
{
	static const struct array_map none[] = {
		{TILE, .memory = NO_POOL},
		{TILE, .memory = ARRAY(1)},
		{TILE, .memory = POOL, .offset = BYTES},
		{TILE, .memory = POOL, .offset = UINT64_MAX},
		{TILE, .memory = POOL, .offset = 65536},
		{TILE, .memory = POOL, .tail = 2},
		{TILE, .memory = POOL, .level = 1},
		{.array = ARRAY(10), .memory = POOL, .extent = {1024, UINT32_MAX, UINT32_MAX}},
		{.array = ARRAY(10),
			.memory = POOL,
			.extent = {1024, 512, 1},
			.at = {0, 1024, 0}},
		{.array = ARRAY(10), .memory = POOL, .tail = 1, .tail_size = BYTES + 1},
		{.array = ARRAY(1), .memory = POOL, .extent = {16, 8, 1}},
		{.array = ARRAY(9), .memory = POOL, .extent = {1024, 512, 1}},
		{.array = POOL, .memory = POOL, .extent = {1024, 512, 1}},
	};
	struct array_desc sparse = {
		.width = 1024, .height = 1024, FLOATS, .flags = ARRAY_SPARSE};
	struct wire_vcudaVmmCreate pool = {.memory = POOL, .tile_pool = 1, .bytes = BYTES};
	struct wire_vcudaVmmCreate other = {.memory = NO_POOL, .bytes = BYTES};
	struct wire_vcudaVmmRelease release = {.memory = POOL};
	struct wire_vcudaArrayDestroy destroy = {.array = ARRAY(10)};
	const struct array_map good = {TILE, .memory = POOL}, unmapped = {TILE};
	struct wire_vcudaArrayMap empty = {0};
	struct peer peer, *p = &peer;

	(void)state;
	start(p);
	assert_int_equal(create(p, ARRAY(10), &sparse), CUDA_SUCCESS);
	assert_int_equal(CALL_OF(OP_vcudaVmmCreate, pool), CUDA_SUCCESS);
	assert_int_equal(CALL_OF(OP_vcudaVmmCreate, other), CUDA_SUCCESS);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		CUresult status = map(p, &none[i]);

		if (!status)
			print_message("%zu was mapped\n", i);
		assert_int_not_equal(status, CUDA_SUCCESS);
	}
	assert_int_not_equal(CALL_OF(OP_vcudaArrayMap, empty), CUDA_SUCCESS);
	assert_int_equal(map(p, &good), CUDA_SUCCESS);
	assert_int_equal(CALL_OF(OP_vcudaVmmRelease, release), CUDA_SUCCESS);
	assert_int_equal(map(p, &good), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(map(p, &unmapped), CUDA_SUCCESS);
	assert_int_equal(CALL_OF(OP_vcudaArrayDestroy, destroy), CUDA_SUCCESS);
	expect_alive(p);
	peer_stop(p);
}

static void levels_are_of_mipmapped_arrays(void **state)
{
	struct wire_vcudaArrayLevel beyond = {.array = ARRAY(10), .of = ARRAY(2), .level = 3};
	struct wire_vcudaArrayLevel plain = {.array = ARRAY(10), .of = ARRAY(1)};
	struct wire_vcudaArrayLevel stale = {.array = ARRAY(10), .of = ARRAY(2)};
	struct wire_vcudaArrayDestroy level = {.array = ARRAY(3)}, whole = {.array = ARRAY(2)};
	struct peer peer, *p = &peer;

	(void)state;
	start(p);
	assert_int_equal(CALL_OF(OP_vcudaArrayLevel, beyond), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(CALL_OF(OP_vcudaArrayLevel, plain), CUDA_ERROR_INVALID_VALUE);
	/* A level goes with its array, not before. */
	assert_int_equal(CALL_OF(OP_vcudaArrayDestroy, level), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(CALL_OF(OP_vcudaArrayDestroy, whole), CUDA_SUCCESS);
	assert_int_equal(CALL_OF(OP_vcudaArrayDestroy, level), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(CALL_OF(OP_vcudaArrayDestroy, whole), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(CALL_OF(OP_vcudaArrayLevel, stale), CUDA_ERROR_INVALID_HANDLE);
	expect_alive(p);
	peer_stop(p);
}

/* Of ARRAY(1): 64 bytes a row, 8 rows. */
static const struct box {
	uint64_t array, x, y, z, width, height, depth;
	CUresult status;
} boxes[] = {
	{ARRAY(1), 0, 0, 0, 64, 8, 1, CUDA_SUCCESS},
	{ARRAY(1), 60, 7, 0, 4, 1, 1, CUDA_SUCCESS},
	{ARRAY(3), 0, 0, 0, 32, 4, 1, CUDA_SUCCESS},
	{ARRAY(1), 60, 7, 0, 8, 1, 1, CUDA_ERROR_INVALID_VALUE},
	{ARRAY(1), 2, 0, 0, 4, 1, 1, CUDA_SUCCESS},
	{ARRAY(1), 0, 0, 0, 6, 1, 1, CUDA_SUCCESS},
	{ARRAY(1), 0, 1, 0, 64, 8, 1, CUDA_ERROR_INVALID_VALUE},
	{ARRAY(1), 0, 0, 0, 64, 1, 2, CUDA_ERROR_INVALID_VALUE},
	{ARRAY(1), 0, 0, 1, 4, 1, 1, CUDA_ERROR_INVALID_VALUE},
	{ARRAY(1), UINT64_MAX - 3, 0, 0, 4, 1, 1, CUDA_ERROR_INVALID_VALUE},
	{ARRAY(1), 0, UINT64_MAX, 0, 4, 1, 1, CUDA_ERROR_INVALID_VALUE},
	{ARRAY(1), 0, 0, UINT64_MAX, 4, 1, 1, CUDA_ERROR_INVALID_VALUE},
	{ARRAY(1), 0, 0, 0, 0, 1, 1, CUDA_ERROR_INVALID_VALUE},
	{ARRAY(1), 0, 0, 0, 4, 0, 1, CUDA_ERROR_INVALID_VALUE},
	{ARRAY(1), 0, 0, 0, 4, 1, 0, CUDA_ERROR_INVALID_VALUE},
	{ARRAY(2), 0, 0, 0, 4, 1, 1, CUDA_ERROR_INVALID_VALUE},
	{ARRAY(9), 0, 0, 0, 4, 1, 1, CUDA_ERROR_INVALID_HANDLE},
	{HANDLE(KIND_CUstream, 1), 0, 0, 0, 4, 1, 1, CUDA_ERROR_INVALID_HANDLE},
};

static void copies_stay_inside(void **state)
{
	struct peer peer, *p = &peer;

	(void)state;
	start(p);
	for (size_t i = 0; i < sizeof(boxes) / sizeof(boxes[0]); i++) {
		const struct box *b = &boxes[i];
		struct wire_vcudaArrayOut out = {.array = b->array,
			.x = b->x,
			.y = b->y,
			.z = b->z,
			.width = b->width,
			.height = b->height,
			.depth = b->depth};
		struct graph_copy to = {.dst = b->x,
			.dst_pitch = b->y,
			.dst_slice = b->z,
			.dst_array = b->array,
			.src = FIRST,
			.src_pitch = 64,
			.src_slice = 1024,
			.width = b->width,
			.height = b->height,
			.depth = b->depth};
		struct graph_copy from = {.src = b->x,
			.src_pitch = b->y,
			.src_slice = b->z,
			.src_array = b->array,
			.dst = FIRST,
			.dst_pitch = 64,
			.dst_slice = 1024,
			.width = b->width,
			.height = b->height,
			.depth = b->depth};

		assert_int_equal(copy(p, &to), b->status);
		assert_int_equal(copy(p, &from), b->status);
		assert_int_equal(CALL_OF(OP_vcudaArrayOut, out), b->status);
	}
	expect_alive(p);
	peer_stop(p);
}

/* Rows of a compressed array are rows of blocks. 14 x 9 texels: 4 x 3 blocks of 8 bytes. */
static void compressed_arrays_are_copied_by_their_blocks(void **state)
{
	struct array_desc desc = {
		.width = 14, .height = 9, .format = CU_AD_FORMAT_BC1_UNORM, .channels = 4};
	struct graph_copy c = {.dst_array = ARRAY(9),
		.src = FIRST,
		.src_pitch = 64,
		.src_slice = 1024,
		.width = 32,
		.height = 3,
		.depth = 1};
	struct texture_desc surface = {.kind = CU_RESOURCE_TYPE_ARRAY, .place = ARRAY(9)};
	struct peer peer, *p = &peer;

	(void)state;
	start(p);
	desc.channels = 2;
	assert_int_equal(create(p, ARRAY(9), &desc), CUDA_ERROR_INVALID_VALUE);
	desc.channels = 4;
	assert_int_equal(create(p, ARRAY(9), &desc), CUDA_SUCCESS);
	assert_int_equal(copy(p, &c), CUDA_SUCCESS);
	c.height = 4;
	assert_int_equal(copy(p, &c), CUDA_ERROR_INVALID_VALUE);
	c.height = 3;
	c.width = 33;
	assert_int_equal(copy(p, &c), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(texture(p, TEXTURE(9), 1, &surface), CUDA_ERROR_INVALID_VALUE);
	desc.format = CU_AD_FORMAT_BC7_UNORM;
	assert_int_equal(create(p, ARRAY(10), &desc), CUDA_SUCCESS);
	desc.format = CU_AD_FORMAT_BC6H_UF16;
	assert_int_equal(create(p, ARRAY(11), &desc), CUDA_ERROR_INVALID_VALUE);
	desc.channels = 3;
	assert_int_equal(create(p, ARRAY(11), &desc), CUDA_SUCCESS);
	/* What a read of packed colours gives nobody says; the software GPU has none. */
	desc.format = CU_AD_FORMAT_YUY2;
	desc.channels = 2;
	assert_int_equal(create(p, ARRAY(12), &desc), CUDA_SUCCESS);
	surface.place = ARRAY(12);
	assert_int_equal(texture(p, TEXTURE(9), 1, &surface), CUDA_ERROR_NOT_SUPPORTED);
	expect_alive(p);
	peer_stop(p);
}

static void the_other_side_is_the_sessions(void **state)
{
	struct graph_copy c = {.dst_array = ARRAY(1),
		.src = FIRST + BYTES - 32,
		.src_pitch = 64,
		.src_slice = 1024,
		.width = 64,
		.height = 1,
		.depth = 1};
	struct peer peer, *p = &peer;

	(void)state;
	start(p);
	assert_int_equal(copy(p, &c), CUDA_ERROR_INVALID_VALUE);
	c.src -= 32;
	assert_int_equal(copy(p, &c), CUDA_SUCCESS);
	expect_alive(p);
	peer_stop(p);
}

#define SAMPLER .level_most = 1.0f
#define LINEAR                                                                                 \
	.kind = CU_RESOURCE_TYPE_LINEAR, .format = CU_AD_FORMAT_FLOAT, .channels = 1, SAMPLER
#define PITCH                                                                                  \
	.kind = CU_RESOURCE_TYPE_PITCH2D, .format = CU_AD_FORMAT_FLOAT, .channels = 1, SAMPLER
#define OF_ARRAY .kind = CU_RESOURCE_TYPE_ARRAY, .place = ARRAY(1)

static void textures_are_of_what_is_the_sessions(void **state)
{
	static const struct texture_desc none[] = {
		{.kind = 7},
		{.kind = UINT32_MAX, .place = FIRST},
		{.kind = CU_RESOURCE_TYPE_ARRAY, .place = ARRAY(9)},
		{.kind = CU_RESOURCE_TYPE_ARRAY, .place = ARRAY(2)},
		{.kind = CU_RESOURCE_TYPE_ARRAY, .place = FIRST},
		{.kind = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY, .place = ARRAY(1)},
		{OF_ARRAY, .address = {4, 0, 0}},
		{OF_ARRAY, .address = {0, 0, UINT32_MAX}},
		{OF_ARRAY, .filter = 2},
		{OF_ARRAY, .level_filter = UINT32_MAX},
		{OF_ARRAY, .flags = 0x100},
		{OF_ARRAY, .level_bias = NAN},
		{OF_ARRAY, .level_most = INFINITY},
		{OF_ARRAY, .viewed = 1, .view_format = 0x23},
		{OF_ARRAY, .viewed = 1, .view_width = UINT64_MAX},
		{OF_ARRAY, .viewed = 1, .view_levels = {0, 1}},
		{OF_ARRAY, .viewed = 1, .view_levels = {1, 0}},
		{LINEAR, .place = FIRST, .bytes = 0},
		{LINEAR, .place = FIRST, .bytes = UINT64_MAX},
		{LINEAR, .place = UINT64_MAX, .bytes = 16},
		{LINEAR, .place = 0x110000000000ull, .bytes = 16},
		{LINEAR, .place = FIRST, .bytes = 16, .viewed = 1},
		{.kind = CU_RESOURCE_TYPE_LINEAR,
			.format = CU_AD_FORMAT_BC1_UNORM,
			.channels = 4,
			.place = FIRST,
			.bytes = 16},
		{.kind = CU_RESOURCE_TYPE_LINEAR,
			.format = CU_AD_FORMAT_FLOAT,
			.channels = 3,
			.place = FIRST,
			.bytes = 16},
		{PITCH, .place = FIRST, .width = 16, .height = 8, .pitch = 32},
		{PITCH, .place = FIRST, .width = 0, .height = 8, .pitch = 64, .bytes = 64},
		{PITCH, .place = FIRST, .width = 16, .height = 1ull << 40, .pitch = 64,
			.bytes = 64},
		{PITCH, .place = FIRST, .width = 16, .height = 8, .pitch = 1ull << 61,
			.bytes = 64},
		{PITCH, .place = FIRST + BYTES, .width = 128, .height = 2, .pitch = 512,
			.bytes = 64},
	};
	struct texture_desc good[] = {{OF_ARRAY},
		{.kind = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
			.place = ARRAY(2),
			.flags = CU_TRSF_NORMALIZED_COORDINATES,
			SAMPLER},
		{LINEAR, .place = FIRST, .bytes = BYTES},
		{PITCH, .place = FIRST, .width = 16, .height = 8, .pitch = 512, .bytes = 1},
		/* They end behind it, as they may natively. */
		{LINEAR, .place = FIRST, .bytes = BYTES + 4},
		{PITCH, .place = FIRST + BYTES - 512, .width = 128, .height = 2, .pitch = 512,
			.bytes = 64}};
	struct wire_vcudaTextureDestroy gone = {.texture = TEXTURE(20)};
	struct wire_vcudaTextureDestroy other = {.texture = ARRAY(1)};
	struct peer peer, *p = &peer;

	(void)state;
	start(p);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		CUresult status = texture(p, TEXTURE(20), 0, &none[i]);

		if (status == CUDA_SUCCESS)
			print_message("texture %zu was made\n", i);
		assert_int_not_equal(status, CUDA_SUCCESS);
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(
			texture(p, TEXTURE(20 + (uint32_t)i), 0, &good[i]), CUDA_SUCCESS);
	/* Surfaces are of arrays. */
	assert_int_equal(texture(p, TEXTURE(30), 1, &good[0]), CUDA_SUCCESS);
	assert_int_not_equal(texture(p, TEXTURE(31), 1, &good[2]), CUDA_SUCCESS);
	assert_int_equal(texture(p, TEXTURE(20), 0, &good[0]), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(CALL_OF(OP_vcudaTextureDestroy, other), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(CALL_OF(OP_vcudaTextureDestroy, gone), CUDA_SUCCESS);
	assert_int_equal(CALL_OF(OP_vcudaTextureDestroy, gone), CUDA_ERROR_INVALID_HANDLE);
	expect_alive(p);
	peer_stop(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_no_array_can_be_is_refused),
		cmocka_unit_test(planes_are_of_planar_arrays),
		cmocka_unit_test(what_is_mapped_lies_in_the_pool),
		cmocka_unit_test(levels_are_of_mipmapped_arrays),
		cmocka_unit_test(copies_stay_inside),
		cmocka_unit_test(compressed_arrays_are_copied_by_their_blocks),
		cmocka_unit_test(the_other_side_is_the_sessions),
		cmocka_unit_test(textures_are_of_what_is_the_sessions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
