/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays of the software GPU whose memory is mapped later: random boxes copied in, out and
 * between two of them are what a plain reference has, whichever tiles are mapped; what cannot
 * be mapped is refused; and nothing stays behind.
 */
#include "tests/unit/softgpu/softgpu_test.h"

#define TILE ((size_t)2 << 20)
#define ROUNDS 120

static unsigned seed;

static size_t any(size_t below)
{
	seed = seed * 1664525 + 1013904223;
	return below ? (seed >> 8) % below : 0;
}

struct shape {
	CUarray_format format;
	unsigned channels, flags;
	size_t width, height, depth;
	size_t element; /* bytes; of a block */
	size_t side;	/* texels of a block, or 1 */
};
static const struct shape shapes[] = {
	{CU_AD_FORMAT_UNSIGNED_INT8, 1, 0, 5000, 3000, 0, 1, 1},
	{CU_AD_FORMAT_HALF, 1, 0, 2500, 2100, 0, 2, 1},
	{CU_AD_FORMAT_FLOAT, 1, 0, 2048, 1024, 0, 4, 1},
	{CU_AD_FORMAT_FLOAT, 4, 0, 1200, 600, 0, 16, 1},
	{CU_AD_FORMAT_FLOAT, 1, 0, 300, 150, 140, 4, 1},
	{CU_AD_FORMAT_UNSIGNED_INT8, 4, 0, 129, 64, 65, 4, 1},
	{CU_AD_FORMAT_UNSIGNED_INT16, 4, CUDA_ARRAY3D_LAYERED, 1100, 600, 3, 8, 1},
	{CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED, 1100, 1100, 6, 4, 1},
	{CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED, 700, 700, 6, 4, 1}, /* all tail */
	{CU_AD_FORMAT_BC1_UNORM, 4, 0, 4100, 2100, 0, 8, 4},
};

/* An array, and what it should hold. */
struct model {
	CUarray array;
	size_t row, rows, depth; /* as bytes, rows, slices */
	size_t tile[3], tiles[3];
	bool *mapped;
	unsigned char *bytes;
	CUmemGenericAllocationHandle pool;
	CUDA_ARRAY_SPARSE_PROPERTIES properties;
	bool layered, whole;
};

static CUmemGenericAllocationHandle pool_of(size_t bytes)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemGenericAllocationHandle pool;

	prop.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
	ok(cuMemCreate(&pool, bytes, &prop, 0));
	return pool;
}

static CUarray array_of(const struct shape *s, unsigned flags)
{
	const CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = s->width,
		.Height = s->height,
		.Depth = s->depth,
		.Format = s->format,
		.NumChannels = s->channels,
		.Flags = s->flags | flags};
	CUarray array;

	ok(cuArray3DCreate(&array, &desc));
	return array;
}

static CUarrayMapInfo map_of(CUarray array, CUmemGenericAllocationHandle memory, size_t offset)
{
	return (CUarrayMapInfo){.resourceType = CU_RESOURCE_TYPE_ARRAY,
		.resource = {.array = array},
		.memOperationType =
			memory ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP,
		.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC,
		.memHandle = {.memHandle = memory},
		.offset = offset,
		.deviceBitMask = 1};
}

/* Each tile has its place in the pool, so it shows again what it held. */
static void map_tile(struct model *m, size_t x, size_t y, size_t z, bool in)
{
	const size_t tile = (z * m->tiles[1] + y) * m->tiles[0] + x;
	CUarrayMapInfo map = map_of(m->array, in ? m->pool : 0, in ? tile * TILE : 0);
	const unsigned width = m->properties.tileExtent.width;
	const unsigned height = m->properties.tileExtent.height;
	const unsigned depth = m->properties.tileExtent.depth;

	map.subresource.sparseLevel.offsetX = (unsigned)x * width;
	map.subresource.sparseLevel.offsetY = (unsigned)y * height;
	map.subresource.sparseLevel.extentWidth = width;
	map.subresource.sparseLevel.extentHeight = height;
	map.subresource.sparseLevel.extentDepth = depth;
	if (m->layered)
		map.subresource.sparseLevel.layer = (unsigned)z;
	else
		map.subresource.sparseLevel.offsetZ = (unsigned)z * depth;
	ok(cuMemMapArrayAsync(&map, 1, NULL));
	m->mapped[tile] = in;
}

static void map_tail(struct model *m)
{
	const size_t size = m->properties.miptailSize;
	CUarrayMapInfo map;

	m->pool = pool_of(size);
	map = map_of(m->array, m->pool, 0);
	map.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
	map.subresource.miptail.size = size;
	ok(cuMemMapArrayAsync(&map, 1, NULL));
}

static size_t ceiling(size_t a, size_t b)
{
	return (a + b - 1) / b;
}

static void begin(struct model *m, const struct shape *s)
{
	const CUDA_ARRAY_SPARSE_PROPERTIES *p = &m->properties;

	*m = (struct model){.array = array_of(s, CUDA_ARRAY3D_SPARSE),
		.row = ceiling(s->width, s->side) * s->element,
		.rows = ceiling(s->height, s->side),
		.depth = s->depth ? s->depth : 1,
		.layered = s->flags != 0};
	is(cuArrayGetSparseProperties(NULL, m->array), CUDA_ERROR_INVALID_VALUE);
	ok(cuArrayGetSparseProperties(&m->properties, m->array));
	m->bytes = calloc(m->row * m->rows, m->depth);
	assert_non_null(m->bytes);
	m->whole = p->flags & CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL;
	assert_int_equal(!p->miptailSize, !m->whole);
	if (m->whole) {
		map_tail(m);
		return;
	}
	m->tile[0] = p->tileExtent.width / s->side * s->element;
	m->tile[1] = p->tileExtent.height / s->side;
	m->tile[2] = p->tileExtent.depth;
	assert_int_equal(m->tile[0] * m->tile[1] * m->tile[2], TILE);
	m->tiles[0] = ceiling(m->row, m->tile[0]);
	m->tiles[1] = ceiling(m->rows, m->tile[1]);
	m->tiles[2] = ceiling(m->depth, m->tile[2]);
	m->mapped = calloc(m->tiles[0] * m->tiles[1] * m->tiles[2], sizeof(bool));
	assert_non_null(m->mapped);
	m->pool = pool_of(m->tiles[0] * m->tiles[1] * m->tiles[2] * TILE);
}

static void end(struct model *m)
{
	ok(cuArrayDestroy(m->array));
	ok(cuMemRelease(m->pool));
	free(m->bytes);
	free(m->mapped);
}

static bool there(const struct model *m, size_t x, size_t y, size_t z)
{
	return m->whole ||
	       m->mapped[(z / m->tile[2] * m->tiles[1] + y / m->tile[1]) * m->tiles[0] +
			 x / m->tile[0]];
}

struct box {
	size_t at[3], size[3];
};

/* Often at, or across, the edge of a tile. */
static struct box any_box(const struct model *m, size_t element)
{
	const size_t all[3] = {m->row / element, m->rows, m->depth}, most[3] = {700, 12, 5};
	struct box b;

	for (int k = 0; k < 3; k++) {
		const size_t tile = m->whole ? 64 : k ? m->tile[k] : m->tile[0] / element;

		b.at[k] = any(3) ? any(all[k]) : any(ceiling(all[k], tile)) * tile;
		if (b.at[k] && any(2))
			b.at[k] -= any(b.at[k] < 9 ? b.at[k] : 9);
		b.size[k] = 1 + any(most[k]);
		if (b.size[k] > all[k] - b.at[k])
			b.size[k] = all[k] - b.at[k];
	}
	b.at[0] *= element;
	b.size[0] *= element;
	return b;
}

static unsigned char *at(const struct model *m, size_t x, size_t y, size_t z)
{
	return m->bytes + (z * m->rows + y) * m->row + x;
}

#define EACH_BYTE(b)                                                                           \
	for (size_t z = 0, n = 0; z < (b)->size[2]; z++)                                       \
		for (size_t y = 0; y < (b)->size[1]; y++)                                      \
			for (size_t x = 0; x < (b)->size[0]; x++, n++)

static unsigned char host[700 * 16 * 12 * 5];

static CUDA_MEMCPY3D copy_of(const struct box *b)
{
	return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = host,
		.srcPitch = b->size[0],
		.srcHeight = b->size[1],
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = host,
		.dstPitch = b->size[0],
		.dstHeight = b->size[1],
		.WidthInBytes = b->size[0],
		.Height = b->size[1],
		.Depth = b->size[2]};
}

static void from_array(CUDA_MEMCPY3D *c, const struct model *m, const struct box *b)
{
	c->srcMemoryType = CU_MEMORYTYPE_ARRAY;
	c->srcArray = m->array;
	c->srcXInBytes = b->at[0];
	c->srcY = b->at[1];
	c->srcZ = b->at[2];
}

static void to_array(CUDA_MEMCPY3D *c, const struct model *m, const struct box *b)
{
	c->dstMemoryType = CU_MEMORYTYPE_ARRAY;
	c->dstArray = m->array;
	c->dstXInBytes = b->at[0];
	c->dstY = b->at[1];
	c->dstZ = b->at[2];
}

static void put(struct model *m, const struct box *b)
{
	CUDA_MEMCPY3D c = copy_of(b);

	EACH_BYTE(b)
	{
		host[n] = (unsigned char)(1 + any(255));
		if (there(m, b->at[0] + x, b->at[1] + y, b->at[2] + z))
			*at(m, b->at[0] + x, b->at[1] + y, b->at[2] + z) = host[n];
	}
	to_array(&c, m, b);
	ok(cuMemcpy3D(&c));
}

static void check(const struct model *m, const struct box *b)
{
	CUDA_MEMCPY3D c = copy_of(b);

	memset(host, 0xee, b->size[0] * b->size[1] * b->size[2]);
	from_array(&c, m, b);
	ok(cuMemcpy3D(&c));
	EACH_BYTE(b)
	{
		const size_t px = b->at[0] + x, py = b->at[1] + y, pz = b->at[2] + z;
		const unsigned want = there(m, px, py, pz) ? *at(m, px, py, pz) : 0;

		if (host[n] != want)
			fail_msg("byte %zu of row %zu of slice %zu: %u, not %u", px, py, pz,
				host[n], want);
	}
}

/* From one array to another of the same shape. */
static void across(const struct model *from, struct model *to, size_t element)
{
	struct box a = any_box(from, element), b = a;
	CUDA_MEMCPY3D c = copy_of(&a);

	for (int k = 0; k < 3; k++)
		if (a.at[k] && any(2))
			b.at[k] -= k ? 1 : element;
	EACH_BYTE(&a)
	{
		const size_t px = a.at[0] + x, py = a.at[1] + y, pz = a.at[2] + z;
		const unsigned char byte = there(from, px, py, pz) ? *at(from, px, py, pz) : 0;

		(void)n;
		if (there(to, b.at[0] + x, b.at[1] + y, b.at[2] + z))
			*at(to, b.at[0] + x, b.at[1] + y, b.at[2] + z) = byte;
	}
	from_array(&c, from, &a);
	to_array(&c, to, &b);
	ok(cuMemcpy3D(&c));
	check(to, &b);
}

static void toggle(struct model *m)
{
	size_t x, y, z;

	if (m->whole)
		return;
	x = any(m->tiles[0]);
	y = any(m->tiles[1]);
	z = any(m->tiles[2]);
	map_tile(m, x, y, z, !m->mapped[(z * m->tiles[1] + y) * m->tiles[0] + x]);
}

static void boxes_are_what_a_reference_has(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof(shapes) / sizeof(shapes[0]); k++) {
		struct model one, two;
		size_t before, after, total;

		seed = (unsigned)k;
		ok(cuMemGetInfo(&before, &total));
		begin(&one, &shapes[k]);
		begin(&two, &shapes[k]);
		for (unsigned round = 0; round < ROUNDS; round++) {
			struct box b = any_box(&one, shapes[k].element);

			toggle(&one);
			toggle(&two);
			put(&one, &b);
			check(&one, &b);
			b = any_box(&one, shapes[k].element);
			check(&one, &b);
			across(&one, &two, shapes[k].element);
		}
		end(&one);
		end(&two);
		ok(cuMemGetInfo(&after, &total));
		assert_int_equal(before, after);
	}
}

/* ---- what is refused ---- */

static CUresult map(CUarrayMapInfo info)
{
	return cuMemMapArrayAsync(&info, 1, NULL);
}

/* Two by two tiles of 1024 by 512 floats. */
static void what_cannot_be_mapped_is_refused(void **state)
{
	const struct shape *s = &shapes[2];
	CUarray array = array_of(s, CUDA_ARRAY3D_SPARSE), plain = array_of(s, 0);
	CUmemGenericAllocationHandle pool = pool_of(2 * TILE);
	CUarrayMapInfo good = map_of(array, pool, 0), bad;

	(void)state;
	good.subresource.sparseLevel.extentWidth = 1024;
	good.subresource.sparseLevel.extentHeight = 512;
	good.subresource.sparseLevel.extentDepth = 1;
#define REFUSED(field, value)                                                                  \
	bad = good;                                                                            \
	bad.field = value;                                                                     \
	is(map(bad), CUDA_ERROR_INVALID_VALUE)
	REFUSED(subresource.sparseLevel.offsetX, 1);
	REFUSED(subresource.sparseLevel.offsetX, 2048);
	REFUSED(subresource.sparseLevel.offsetY, 4096);
	REFUSED(subresource.sparseLevel.offsetY, 0xfffffe00);
	REFUSED(subresource.sparseLevel.offsetZ, 1);
	REFUSED(subresource.sparseLevel.extentWidth, 0);
	REFUSED(subresource.sparseLevel.extentWidth, 512);
	REFUSED(subresource.sparseLevel.extentWidth, 3072);
	REFUSED(subresource.sparseLevel.extentHeight, 0xfffffe00);
	REFUSED(subresource.sparseLevel.extentDepth, 0);
	REFUSED(subresource.sparseLevel.extentDepth, 2);
	REFUSED(subresource.sparseLevel.level, 1);
	REFUSED(subresource.sparseLevel.layer, 1);
	REFUSED(subresourceType, (CUarraySparseSubresourceType)7);
	REFUSED(subresourceType, CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL);
	REFUSED(deviceBitMask, 2);
	REFUSED(deviceBitMask, 0);
	REFUSED(flags, 1);
	REFUSED(reserved[1], 1);
	REFUSED(memOperationType, (CUmemOperationType)3);
	REFUSED(memOperationType, CU_MEM_OPERATION_TYPE_UNMAP);
	REFUSED(memHandle.memHandle, 0);
	REFUSED(memHandle.memHandle, 4711);
	REFUSED(offset, 65536);
	REFUSED(offset, 2 * TILE);
	REFUSED(offset, 0 - TILE);
	REFUSED(resource.array, plain);
	bad = good;
	bad.resource.array = NULL;
	is(map(bad), CUDA_ERROR_INVALID_HANDLE);
	bad.resourceType = CU_RESOURCE_TYPE_LINEAR;
	is(map(bad), CUDA_ERROR_INVALID_HANDLE);
	is(cuMemMapArrayAsync(&good, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	ok(map(good));
	ok(cuArrayDestroy(array));
	bad = good;
	is(map(bad), CUDA_ERROR_INVALID_HANDLE);
	ok(cuArrayDestroy(plain));
	ok(cuMemRelease(pool));
}

static void shapes_that_there_are_not_are_refused(void **state)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = 4096,
		.Format = CU_AD_FORMAT_FLOAT,
		.NumChannels = 1,
		.Flags = CUDA_ARRAY3D_SPARSE};
	CUDA_ARRAY_MEMORY_REQUIREMENTS wants;
	CUDA_ARRAY_SPARSE_PROPERTIES tile;
	CUmipmappedArray levels;
	CUarray array;

	(void)state;
	is(cuArray3DCreate(&array, &desc), CUDA_ERROR_INVALID_VALUE);
	desc.Height = 4096;
	desc.Flags |= CUDA_ARRAY3D_DEFERRED_MAPPING;
	is(cuArray3DCreate(&array, &desc), CUDA_ERROR_INVALID_VALUE);
	desc.Flags = CUDA_ARRAY3D_SPARSE;
	desc.Format = CU_AD_FORMAT_NV12;
	desc.NumChannels = 3;
	is(cuArray3DCreate(&array, &desc), CUDA_ERROR_INVALID_VALUE);
	desc.Flags = 0;
	is(cuMipmappedArrayCreate(&levels, &desc, 2), CUDA_ERROR_INVALID_VALUE);
	ok(cuArray3DCreate(&array, &desc));
	is(cuArrayGetSparseProperties(&tile, array), CUDA_ERROR_INVALID_VALUE);
	is(cuArrayGetMemoryRequirements(&wants, array, 0), CUDA_ERROR_INVALID_VALUE);
	ok(cuArrayDestroy(array));
}

/* Layers share a tail; and arrays that a context leaves behind go with it. */
static void levels_of_layers_have_one_tail(void **state)
{
	const CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = 2048,
		.Height = 1024,
		.Depth = 3,
		.Format = CU_AD_FORMAT_FLOAT,
		.NumChannels = 1,
		.Flags = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_LAYERED};
	CUDA_ARRAY_SPARSE_PROPERTIES tile;
	CUmemGenericAllocationHandle pool;
	size_t before, after, total;
	CUmipmappedArray levels;
	CUarrayMapInfo info;
	CUcontext context;

	(void)state;
	ok(cuMemGetInfo(&before, &total));
	ok(cuCtxCreate(&context, NULL, 0, 0));
	ok(cuMipmappedArrayCreate(&levels, &desc, 12));
	ok(cuMipmappedArrayGetSparseProperties(&tile, levels));
	assert_int_equal(tile.flags, CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL);
	assert_int_equal(tile.miptailFirstLevel, 2);
	/* Levels of 512 x 256 and less, in three layers. */
	assert_in_range(tile.miptailSize, 3 * 4 * 512 * 256, 2 * TILE);
	pool = pool_of(tile.miptailSize);
	info = map_of(NULL, pool, 0);
	info.resourceType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
	info.resource.mipmap = levels;
	info.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
	info.subresource.miptail.size = tile.miptailSize + TILE;
	is(map(info), CUDA_ERROR_INVALID_VALUE);
	info.subresource.miptail.size = tile.miptailSize - 65536;
	is(map(info), CUDA_ERROR_INVALID_VALUE);
	info.subresource.miptail.size = tile.miptailSize;
	info.subresource.miptail.layer = 1;
	is(map(info), CUDA_ERROR_INVALID_VALUE);
	info.subresource.miptail.layer = 0;
	ok(map(info));
	ok(cuMemRelease(pool));
	array_of(&shapes[2], CUDA_ARRAY3D_SPARSE);
	ok(cuCtxDestroy(context));
	ok(cuMemGetInfo(&after, &total));
	assert_int_equal(before, after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(boxes_are_what_a_reference_has),
		cmocka_unit_test(what_cannot_be_mapped_is_refused),
		cmocka_unit_test(shapes_that_there_are_not_are_refused),
		cmocka_unit_test(levels_of_layers_have_one_tail),
	};

	setenv("VCUDA_SOFTGPU_MEMORY", "1G", 1);
	return cmocka_run_group_tests(tests, context_setup, context_teardown);
}
