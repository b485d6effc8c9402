/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays whose memory is mapped later: tile by tile, or as a whole.
 *
 * A tile is a granule of the VMM calls, nearly as high (and deep) as it is wide, counted in
 * elements.  Levels that do not span a tile along each axis are the tail, in rows, which is
 * mapped in granules.  All is one range of addresses; a map says of each granule of the window
 * whether it is such an array's, and mapped.  Where it is not, kernels and copies read 0, and
 * what they write is lost.
 */
#include "softgpu/driver/array.h"

#include <sys/mman.h>

#define GRANULE_BITS 21
_Static_assert(GRANULE == (size_t)1 << GRANULE_BITS && PTX_ABSENT_SHIFT == GRANULE_BITS,
	"a tile is what is mapped");

#define SHAPES (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)

static pthread_mutex_t map_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_uchar *_Atomic states; /* of enum sparse_state; made with the first array */

/* ---- states ---- */

static bool states_begin(void)
{
	const size_t size = (memory_window.span >> GRANULE_BITS) + 2;
	void *map = states;

	pthread_mutex_lock(&map_lock);
	if (!states) {
		map = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (map != MAP_FAILED) {
			states = map;
			ptx_absent_set(map);
		}
	}
	pthread_mutex_unlock(&map_lock);
	return map != MAP_FAILED;
}

static atomic_uchar *state_at(uint64_t address)
{
	return &states[(address >> GRANULE_BITS) - (memory_window.base >> GRANULE_BITS)];
}

enum sparse_state array_map_state(uint64_t address)
{
	return states && memory_in_window(address)
		       ? (enum sparse_state)atomic_load(state_at(address))
		       : SPARSE_NONE;
}

/* ---- addresses ---- */

/* As an H200's driver: neither surfaces nor cubemaps are sparse. */
#define NOT_SPARSE                                                                             \
	(CUDA_ARRAY3D_DEFERRED_MAPPING | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP)

/* Whole numbers of bytes a row, in two or three dimensions. */
bool array_map_shape(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	unsigned channels;

	return desc->Height &&
	       (array_blocks(desc->Format, &channels) ||
		       array_element(desc->Format, desc->NumChannels)) &&
	       !(desc->Flags & CUDA_ARRAY3D_SPARSE && desc->Flags & NOT_SPARSE);
}

static bool has_slices(const struct CUarray_st *level)
{
	return level->desc.Depth && !(level->desc.Flags & SHAPES);
}

static struct ptx_tiles tile_shape(const struct CUarray_st *level)
{
	const unsigned element = (unsigned)__builtin_ctzll(level->element);
	const unsigned all = GRANULE_BITS - element;
	const unsigned x = has_slices(level) ? (all + 2) / 3 : (all + 1) / 2;
	const unsigned y = has_slices(level) ? (all - x + 1) / 2 : all - x;

	return (struct ptx_tiles){
		.x = (uint8_t)(x + element), .y = (uint8_t)y, .z = (uint8_t)(all - x - y)};
}

static bool spans(const struct CUarray_st *level, const struct ptx_tiles *tile)
{
	return level->row >> tile->x && level->rows >> tile->y && level->depth >> tile->z;
}

static uint64_t tiles_for(uint64_t size, unsigned bits)
{
	return (size + (UINT64_C(1) << bits) - 1) >> bits;
}

static uint64_t deep(const struct CUarray_st *level)
{
	return tiles_for(level->depth, level->tiles.z);
}

/* Lays the levels out, from 0 on. */
static void lay_out(struct sparse *sparse, struct CUarray_st *levels, unsigned count)
{
	const struct ptx_tiles tile = tile_shape(&levels[0]);
	uint64_t at = 0;

	sparse->tail_level = count;
	for (unsigned i = 0; i < count; i++) {
		struct CUarray_st *level = &levels[i];

		level->address = at;
		if (sparse->tail_level == count && spans(level, &tile)) {
			level->tiles = tile;
			level->tiles.across = (uint32_t)tiles_for(level->row, tile.x);
			level->tiles.down = (uint32_t)tiles_for(level->rows, tile.y);
			at += level->tiles.across * (uint64_t)level->tiles.down * deep(level)
			      << GRANULE_BITS;
			sparse->tail = at;
		} else {
			if (sparse->tail_level == count)
				sparse->tail_level = i;
			at += (level->row * level->rows * level->depth + 255) & ~(uint64_t)255;
		}
	}
	sparse->bytes = (at + GRANULE - 1) / GRANULE * GRANULE;
}

CUresult array_map_reserve(
	struct sparse *sparse, struct CUarray_st *levels, unsigned count, uint64_t bytes)
{
	CUdeviceptr base;
	CUresult ret;

	if (!states_begin())
		return CUDA_ERROR_OUT_OF_MEMORY;
	*sparse = (struct sparse){.bytes = (bytes + GRANULE - 1) / GRANULE * GRANULE};
	if (levels[0].desc.Flags & CUDA_ARRAY3D_SPARSE)
		lay_out(sparse, levels, count);
	ret = cuMemAddressReserve(&base, sparse->bytes, 0, 0, 0);
	if (ret) {
		sparse->bytes = 0;
		return ret;
	}
	sparse->base = base;
	for (uint64_t at = 0; at < sparse->bytes; at += GRANULE)
		atomic_store(state_at(base + at), SPARSE_ABSENT);
	for (unsigned i = 0; i < count; i++) {
		levels[i].address += base;
		levels[i].sparse = sparse;
	}
	return CUDA_SUCCESS;
}

/* First nobody looks there, who holds memory_lock or is waited for. */
static void unmap(uint64_t at, enum sparse_state state)
{
	if (atomic_exchange(state_at(at), (unsigned char)state) == SPARSE_MAPPED)
		cuMemUnmap(at, GRANULE);
}

void array_map_release(struct sparse *sparse)
{
	for (uint64_t at = 0; at < sparse->bytes; at += GRANULE)
		unmap(sparse->base + at, SPARSE_NONE);
	if (sparse->bytes)
		cuMemAddressFree(sparse->base, sparse->bytes);
	sparse->bytes = 0;
}

/* ---- questions ---- */

/* In elements: of blocks, texels. */
static void tile_extent(const struct CUarray_st *level, unsigned extent[3])
{
	const struct ptx_tiles tile = tile_shape(level);
	unsigned channels;
	const unsigned side = array_blocks(level->desc.Format, &channels) ? PTX_BLOCK_SIDE : 1;

	extent[0] = (1u << tile.x) / (unsigned)level->element * side;
	extent[1] = (1u << tile.y) * side;
	extent[2] = 1u << tile.z;
}

static void properties(CUDA_ARRAY_SPARSE_PROPERTIES *out, const struct sparse *sparse,
	const struct CUarray_st *levels, bool single)
{
	unsigned extent[3];

	tile_extent(&levels[0], extent);
	*out = (CUDA_ARRAY_SPARSE_PROPERTIES){.tileExtent = {extent[0], extent[1], extent[2]},
		.miptailFirstLevel = sparse->tail_level,
		.miptailSize = sparse->bytes - sparse->tail,
		.flags = single ? CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL : 0};
}

/* One that does not span a tile is all tail. */
CUresult cuArrayGetSparseProperties(
	CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUarray array)
{
	if (!sparseProperties || !object_is(array, OBJECT_ARRAY) || array->of ||
		!(array->desc.Flags & CUDA_ARRAY3D_SPARSE))
		return CUDA_ERROR_INVALID_VALUE;
	properties(sparseProperties, &array->own, array, !array->own.tail_level);
	sparseProperties->miptailFirstLevel = 0;
	return CUDA_SUCCESS;
}

/* The layers share one tail. */
CUresult cuMipmappedArrayGetSparseProperties(
	CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUmipmappedArray mipmap)
{
	if (!sparseProperties || !object_is(mipmap, OBJECT_MIPMAPPED) ||
		!(mipmap->desc.Flags & CUDA_ARRAY3D_SPARSE))
		return CUDA_ERROR_INVALID_VALUE;
	properties(
		sparseProperties, &mipmap->sparse, mipmap->levels, mipmap->desc.Flags & SHAPES);
	return CUDA_SUCCESS;
}

static CUresult requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, const struct sparse *sparse,
	unsigned flags, CUdevice device)
{
	if (!out || !(flags & CUDA_ARRAY3D_DEFERRED_MAPPING))
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_get(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*out = (CUDA_ARRAY_MEMORY_REQUIREMENTS){.size = sparse->bytes, .alignment = GRANULE};
	return CUDA_SUCCESS;
}

CUresult cuArrayGetMemoryRequirements(
	CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUarray array, CUdevice device)
{
	if (!object_is(array, OBJECT_ARRAY) || array->of)
		return CUDA_ERROR_INVALID_VALUE;
	return requirements(memoryRequirements, &array->own, array->desc.Flags, device);
}

CUresult cuMipmappedArrayGetMemoryRequirements(
	CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUmipmappedArray mipmap,
	CUdevice device)
{
	if (!object_is(mipmap, OBJECT_MIPMAPPED))
		return CUDA_ERROR_INVALID_VALUE;
	return requirements(memoryRequirements, &mipmap->sparse, mipmap->desc.Flags, device);
}

/* ---- mapping ---- */

/* A box of granules, counted from `start` on: `first` and `count` along each axis of `across`
 * and `down`. */
struct box {
	uint64_t start;
	uint64_t across, down;
	uint64_t first[3], count[3];
};

/* Along one axis, of which ALL tiles there are. */
static bool box_axis(
	struct box *box, int axis, unsigned at, unsigned size, unsigned tile, uint64_t all)
{
	box->first[axis] = at / tile;
	box->count[axis] = size / tile;
	return at % tile == 0 && size % tile == 0 && size && box->first[axis] < all &&
	       box->count[axis] <= all - box->first[axis];
}

static CUresult box_of_level(const CUarrayMapInfo *info, const struct CUarray_st *levels,
	const struct sparse *sparse, struct box *box)
{
	const unsigned number = info->subresource.sparseLevel.level;
	const unsigned layer = info->subresource.sparseLevel.layer;
	unsigned z = info->subresource.sparseLevel.offsetZ, extent[3];
	const struct CUarray_st *level = &levels[number];

	if (number >= sparse->tail_level)
		return CUDA_ERROR_INVALID_VALUE;
	if (level->desc.Flags & SHAPES) {
		if (z || layer >= level->depth)
			return CUDA_ERROR_INVALID_VALUE;
		z = layer;
	} else if (layer) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	tile_extent(level, extent);
	*box = (struct box){level->address, level->tiles.across, level->tiles.down, {0}, {0}};
	if (!box_axis(box, 0, info->subresource.sparseLevel.offsetX,
		    info->subresource.sparseLevel.extentWidth, extent[0], box->across) ||
		!box_axis(box, 1, info->subresource.sparseLevel.offsetY,
			info->subresource.sparseLevel.extentHeight, extent[1], box->down) ||
		!box_axis(box, 2, z, info->subresource.sparseLevel.extentDepth, extent[2],
			deep(level)) ||
		(!has_slices(level) && box->count[2] != 1))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* SIZE bytes of the tail, or of what is mapped as a whole. */
static CUresult box_of_tail(
	const struct sparse *sparse, uint64_t offset, uint64_t size, struct box *box)
{
	const uint64_t all = sparse->bytes - sparse->tail;

	if (offset % GRANULE || size % GRANULE || !size || offset > all || size > all - offset)
		return CUDA_ERROR_INVALID_VALUE;
	*box = (struct box){sparse->base + sparse->tail, all / GRANULE, 1,
		{offset / GRANULE, 0, 0}, {size / GRANULE, 1, 1}};
	return CUDA_SUCCESS;
}

static CUresult box_of(
	const CUarrayMapInfo *info, const struct CUctx_st **context, struct box *box)
{
	const struct CUmipmappedArray_st *mipmap = info->resource.mipmap;
	const struct CUarray_st *levels = info->resource.array;
	const struct sparse *sparse;

	if (info->resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY &&
		object_is(mipmap, OBJECT_MIPMAPPED)) {
		levels = mipmap->levels;
		sparse = &mipmap->sparse;
	} else if (info->resourceType == CU_RESOURCE_TYPE_ARRAY &&
		   object_is(levels, OBJECT_ARRAY)) {
		if (levels->of)
			return CUDA_ERROR_INVALID_VALUE;
		sparse = &levels->own;
	} else {
		return CUDA_ERROR_INVALID_HANDLE;
	}
	*context = levels->context;
	if (!sparse->bytes || info->flags || info->reserved[0] || info->reserved[1])
		return CUDA_ERROR_INVALID_VALUE;
	if (levels->desc.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING)
		return box_of_tail(sparse, 0, sparse->bytes, box);
	if (info->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL)
		return box_of_level(info, levels, sparse, box);
	if (info->subresourceType != CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL ||
		info->subresource.miptail.layer)
		return CUDA_ERROR_INVALID_VALUE;
	return box_of_tail(
		sparse, info->subresource.miptail.offset, info->subresource.miptail.size, box);
}

/* What was there before goes. */
static CUresult map_granule(
	uint64_t at, CUmemGenericAllocationHandle memory, uint64_t offset, int device)
{
	const CUmemAccessDesc access = {
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUresult ret;

	unmap(at, SPARSE_ABSENT);
	if (!memory)
		return CUDA_SUCCESS;
	ret = cuMemMap(at, GRANULE, offset, memory, 0);
	if (ret)
		return ret;
	ret = cuMemSetAccess(at, GRANULE, &access, 1);
	if (ret)
		cuMemUnmap(at, GRANULE);
	else
		atomic_store(state_at(at), SPARSE_MAPPED);
	return ret;
}

static CUresult map_one(const CUarrayMapInfo *info)
{
	const bool maps = info->memOperationType == CU_MEM_OPERATION_TYPE_MAP;
	const struct CUctx_st *context;
	uint64_t offset = info->offset;
	struct box box;
	CUresult ret = box_of(info, &context, &box);

	if (ret)
		return ret;
	if (info->deviceBitMask != 1u << context->device->ordinal ||
		(!maps && info->memOperationType != CU_MEM_OPERATION_TYPE_UNMAP) ||
		maps == !info->memHandle.memHandle)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint64_t z = box.first[2]; z < box.first[2] + box.count[2]; z++)
		for (uint64_t y = box.first[1]; y < box.first[1] + box.count[1]; y++)
			for (uint64_t x = box.first[0]; !ret && x < box.first[0] + box.count[0];
				x++) {
				const uint64_t granule = (z * box.down + y) * box.across + x;

				ret = map_granule(box.start + granule * GRANULE,
					info->memHandle.memHandle, offset,
					context->device->ordinal);
				offset += GRANULE;
			}
	return ret;
}

/* At once, behind all that the context was given. */
CUresult cuMemMapArrayAsync(CUarrayMapInfo *mapInfoList, unsigned int count, CUstream hStream)
{
	struct CUctx_st *context;
	CUresult ret = soft_context_current(&context);

	(void)hStream;
	if (ret)
		return ret;
	if (!mapInfoList || !count)
		return CUDA_ERROR_INVALID_VALUE;
	queue_drain(context, 0);
	for (unsigned i = 0; !ret && i < count; i++)
		ret = map_one(&mapInfoList[i]);
	return ret;
}
