/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays as both ends know them: how large one is, what a copy may reach of it.  The memory of
 * an array is not laid out in a way that CUDA tells, so copies name it by its handle and a
 * place: bytes in a row, row, slice (or layer).
 */
#ifndef VCUDA_PROTOCOL_WIRE_ARRAY_H
#define VCUDA_PROTOCOL_WIRE_ARRAY_H

#include <stdbool.h>
#include <stdint.h>

#define ARRAY_LEVELS 20	   /* of a mipmapped array: more than the largest has */
#define ARRAY_SIDE 1048576 /* elements along one axis: more than any device has */

/* Flags, as CUDA_ARRAY3D_…; the others are for graphics and for memory that is mapped later. */
#define ARRAY_LAYERED 0x01u
#define ARRAY_CUBEMAP 0x04u
#define ARRAY_GATHER 0x08u
#define ARRAY_SPARSE 0x40u
#define ARRAY_DEFERRED 0x80u
#define ARRAY_FLAGS 0x1ffu

/* An array, or (levels != 0) a mipmapped one. width, height, depth count elements; depth is the
 * number of layers of a layered one. */
struct array_desc {
	uint64_t width, height, depth;
	uint32_t format; /* CUarray_format */
	uint32_t channels;
	uint32_t flags;
	uint32_t levels;
};
_Static_assert(sizeof(struct array_desc) == 40, "");

/* One level as copies see it. */
struct array_level {
	uint64_t row;	      /* bytes */
	uint64_t rows, depth; /* at least 1 */
	uint32_t element;     /* bytes; of a block-compressed format those of a block */
};

/* Block-compressed formats hold blocks of 4 x 4 elements. */
static inline bool array_blocks(uint32_t format)
{
	return format >= 0x91 && format <= 0x9e;
}

/* Planar formats (YUV) hold several arrays in one: the first has an element for each, the
 * others one for 1, 2 or 4 of these. */
struct array_planes {
	uint32_t count;	       /* 0: the format is not planar */
	uint32_t format;       /* of each plane: UNSIGNED_INT8 or UNSIGNED_INT16 */
	uint32_t across, down; /* by how much the others are halved */
};
static inline struct array_planes array_planes(uint32_t format)
{
	switch (format) {
	case 0xb0:						/* NV12 */
	case 0x53: return (struct array_planes){2, 0x01, 1, 1}; /* UINT8_SEMIPLANAR_420 */
	case 0x54:						/* UINT16_SEMIPLANAR_420 */
	case 0x9f:						/* P010, P016 */
	case 0xa1: return (struct array_planes){2, 0x02, 1, 1};
	case 0x55:						/* UINT8_SEMIPLANAR_422 */
	case 0xa2: return (struct array_planes){2, 0x01, 1, 0}; /* NV16 */
	case 0x56:						/* UINT16_SEMIPLANAR_422 */
	case 0xa3:						/* P210, P216 */
	case 0xa4: return (struct array_planes){2, 0x02, 1, 0};
	case 0x59: return (struct array_planes){3, 0x01, 1, 1}; /* UINT8_PLANAR_420 */
	case 0x5a: return (struct array_planes){3, 0x02, 1, 1}; /* UINT16_PLANAR_420 */
	case 0x5b: return (struct array_planes){3, 0x01, 1, 0}; /* UINT8_PLANAR_422 */
	case 0x5c: return (struct array_planes){3, 0x02, 1, 0}; /* UINT16_PLANAR_422 */
	case 0x5d:						/* UINT8_PLANAR_444 */
	case 0xb2: return (struct array_planes){3, 0x01, 0, 0}; /* Y444_PLANAR8 */
	case 0x5e:						/* UINT16_PLANAR_444 */
	case 0xb3: return (struct array_planes){3, 0x02, 0, 0}; /* Y444_PLANAR10 */
	case 0x57:						/* UINT8_SEMIPLANAR_444 */
	case 0xb4: return (struct array_planes){2, 0x01, 0, 0}; /* YUV444_8bit_SemiPlanar */
	case 0x58:						/* UINT16_SEMIPLANAR_444 */
	case 0xb5: return (struct array_planes){2, 0x02, 0, 0}; /* YUV444_16bit_SemiPlanar */
	default: return (struct array_planes){0};
	}
}

/* Bytes of an element, or block; 0: there is no such format, or not with so many channels. */
static inline uint32_t array_element(uint32_t format, uint32_t channels)
{
	static const uint8_t blocks[14] = {8, 8, 16, 16, 16, 16, 8, 8, 16, 16, 16, 16, 16, 16};
	uint32_t size = 0;

	switch (format) {
	case 0x01: /* UNSIGNED_INT8, SIGNED_INT8 */
	case 0x08: size = 1; break;
	case 0x02: /* UNSIGNED_INT16, SIGNED_INT16, HALF */
	case 0x09:
	case 0x10: size = 2; break;
	case 0x03: /* UNSIGNED_INT32, SIGNED_INT32, FLOAT */
	case 0x0a:
	case 0x20: size = 4; break;
	case 0x50: /* UNORM_INT_101010_2 */
	case 0x51: /* UINT8_PACKED_422, UINT8_PACKED_444 */
	case 0x52: return channels == 4 ? 4 : 0;
	case 0xa5: return channels == 2 ? 2 : 0; /* YUY2 */
	case 0xa6:				 /* Y210, Y216 */
	case 0xa7: return channels == 2 ? 4 : 0;
	case 0xa8: /* AYUV, Y410 */
	case 0xa9: return channels == 4 ? 4 : 0;
	case 0xb1: return channels == 4 ? 8 : 0; /* Y416 */
	default: break;
	}
	if (size)
		return channels == 1 || channels == 2 || channels == 4 ? size * channels : 0;
	if (format >= 0xc0 && format <= 0xcb) { /* UNORM_INT8X1 .. SNORM_INT16X4 */
		uint32_t fixed = 1u << (format - 0xc0) % 3, wide = (format - 0xc0) / 3 & 1;

		return channels == fixed ? fixed << wide : 0;
	}
	return array_blocks(format) ? blocks[format - 0x91] : 0;
}

static inline uint64_t array_halved(uint64_t side, uint32_t level)
{
	return side >> level ? side >> level : side != 0;
}

/* Level LEVEL of a mipmapped array, as an array. */
static inline struct array_desc array_of_level(const struct array_desc *a, uint32_t level)
{
	struct array_desc part = *a;

	part.levels = 0;
	part.width = array_halved(a->width, level);
	part.height = array_halved(a->height, level);
	if (!(a->flags & (ARRAY_LAYERED | ARRAY_CUBEMAP)))
		part.depth = array_halved(a->depth, level);
	return part;
}

/* Plane PLANE of a planar array, as an array. */
static inline struct array_desc array_of_plane(const struct array_desc *a, uint32_t plane)
{
	const struct array_planes planes = array_planes(a->format);
	struct array_desc part = *a;

	part.format = planes.format;
	part.channels = plane && planes.count == 2 ? 2 : 1;
	if (plane) {
		part.width = array_halved(a->width, planes.across);
		part.height = array_halved(a->height, planes.down);
	}
	return part;
}

/* How many arrays are parts of it, and the one of that number: levels or planes. */
static inline uint32_t array_parts(const struct array_desc *a)
{
	return a->levels ? a->levels : array_planes(a->format).count;
}
static inline struct array_desc array_part(const struct array_desc *a, uint32_t part)
{
	return a->levels ? array_of_level(a, part) : array_of_plane(a, part);
}

/* Of a planar array the first plane's. */
static inline struct array_level array_level(const struct array_desc *whole)
{
	const struct array_desc plane = array_of_plane(whole, 0);
	const struct array_desc *a = array_planes(whole->format).count ? &plane : whole;
	uint64_t block = array_blocks(a->format) ? 4 : 1;
	uint32_t element = array_element(a->format, a->channels);

	return (struct array_level){.row = (a->width + block - 1) / block * element,
		.rows = a->height ? (a->height + block - 1) / block : 1,
		.depth = a->depth ? a->depth : 1,
		.element = element};
}

/* It is an array that there can be: of a known format, no side too long; gathered from in two
 * dimensions only. */
static inline bool array_valid(const struct array_desc *a)
{
	const uint32_t planes = array_planes(a->format).count;

	/* One with planes has three channels, and no levels. */
	return (planes ? a->channels == 3 && !a->levels && a->height
		       : array_element(a->format, a->channels)) &&
	       a->width && a->width <= ARRAY_SIDE && a->height <= ARRAY_SIDE &&
	       a->depth <= ARRAY_SIDE && a->levels <= ARRAY_LEVELS &&
	       !(a->flags & ~ARRAY_FLAGS) &&
	       (!(a->flags & ARRAY_GATHER) || (a->height && !a->depth));
}

/* What it counts for: NVIDIA's devices keep tiles of 64 bytes x 8 rows and give memory in steps
 * of 64 KiB. 0: none yet (sparse, or mapped later). The array is valid. */
static inline uint64_t array_bytes(const struct array_desc *a)
{
	uint64_t bytes = 0;

	if (a->flags & (ARRAY_SPARSE | ARRAY_DEFERRED))
		return 0;
	for (uint32_t i = 0; i < (array_parts(a) ? array_parts(a) : 1); i++) {
		struct array_desc part = array_parts(a) ? array_part(a, i) : *a;
		struct array_level level = array_level(&part);
		uint64_t rows = level.rows > 1 ? (level.rows + 7) & ~7ull : 1, slice;

		/* Sides are below 2^20, an element below 2^5: only the product of three can
		 * overflow. */
		if (__builtin_mul_overflow(
			    ((level.row + 63) & ~63ull) * rows, level.depth, &slice) ||
			__builtin_add_overflow(bytes, slice, &bytes))
			return UINT64_MAX;
	}
	return bytes > UINT64_MAX - 65535 ? UINT64_MAX : (bytes + 65535) & ~65535ull;
}

/* A box of WIDTH bytes, HEIGHT rows, DEPTH slices from (x, y, z) on lies in it. It may begin
 * and end within an element, as natively. */
static inline bool array_holds(const struct array_level *level, uint64_t x, uint64_t y,
	uint64_t z, uint64_t width, uint64_t height, uint64_t depth)
{
	return x <= level->row && width <= level->row - x && y <= level->rows &&
	       height <= level->rows - y && z <= level->depth && depth <= level->depth - z;
}

/* What vcudaArrayMap maps or unmaps: tiles of a level of a sparse array, or bytes of its mip
 * tail; an array whose mapping is deferred as a whole. Memory is a tile pool. */
#define ARRAY_MAPS 128 /* in a call */
struct array_map {
	uint64_t array;
	uint64_t memory, offset; /* no memory: unmaps */
	uint32_t tail;		 /* 1: the tail, 0: a level */
	uint32_t level, layer, reserved;
	uint32_t at[3], extent[3]; /* elements */
	uint64_t tail_offset, tail_size;
};
_Static_assert(sizeof(struct array_map) == 80, "");

/* What vcudaArrayAsk asks for. */
enum array_ask {
	ARRAY_ASK_SPARSE = 0,	    /* CUDA_ARRAY_SPARSE_PROPERTIES */
	ARRAY_ASK_REQUIREMENTS = 1, /* CUDA_ARRAY_MEMORY_REQUIREMENTS */
};

/* vcudaTextureCreate's description: what is read, how, and which part of it (CUDA's resource,
 * texture and resource view). A surface has the first only. */
struct texture_desc {
	uint32_t kind; /* CUresourcetype */
	uint32_t format, channels;
	uint32_t viewed;
	uint64_t place; /* an array's handle, or a device address */
	uint64_t bytes, width, height, pitch;
	uint32_t address[3];
	uint32_t filter;
	uint32_t flags;
	uint32_t anisotropy;
	uint32_t level_filter;
	float level_bias, level_least, level_most;
	float border[4];
	uint32_t view_format;
	uint32_t view_levels[2], view_layers[2];
	uint32_t reserved;
	uint64_t view_width, view_height, view_depth;
};
_Static_assert(sizeof(struct texture_desc) == 160, "");

#endif
