/* SPDX-License-Identifier: Apache-2.0
 *
 * Textures and surfaces: the driver says what one is, kernels name it by a number.  Texels lie
 * in device memory, row by row.
 */
#ifndef VCUDA_SOFTGPU_PTX_TEXTURE_H
#define VCUDA_SOFTGPU_PTX_TEXTURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define PTX_TEXTURE_LEVELS 20
#define PTX_TEXTURES (1u << 20) /* that may be there at once */

enum ptx_texel {
	PTX_TEXEL_U8,
	PTX_TEXEL_S8,
	PTX_TEXEL_U16,
	PTX_TEXEL_S16,
	PTX_TEXEL_U32,
	PTX_TEXEL_S32,
	PTX_TEXEL_F16,
	PTX_TEXEL_F32,
	PTX_TEXEL_10_10_10_2, /* parts of one, of red in the lowest bits, in 4 bytes in all */
};

/* Formats whose elements are blocks of texels. */
enum ptx_blocks {
	PTX_BLOCKS_NONE,
	PTX_BC1,
	PTX_BC2,
	PTX_BC3,
	PTX_BC4,
	PTX_BC4_SIGNED,
	PTX_BC5,
	PTX_BC5_SIGNED,
	PTX_BC6H,
	PTX_BC6H_SIGNED,
	PTX_BC7,
};
#define PTX_BLOCK_SIDE 4

/* As CUaddress_mode. */
enum ptx_address_mode { PTX_WRAP, PTX_CLAMP, PTX_MIRROR, PTX_BORDER };

/* Memory in tiles, one behind the other, of 2^x bytes of 2^y rows of 2^z slices. */
struct ptx_tiles {
	uint8_t x, y, z;
	uint32_t across, down; /* tiles; 0: the memory is in rows */
};

/* Where byte X of row Y of slice Z lies. */
static inline uint64_t ptx_tiles_offset(
	const struct ptx_tiles *t, uint64_t x, uint64_t y, uint64_t z)
{
	const uint64_t tile = ((z >> t->z) * t->down + (y >> t->y)) * t->across + (x >> t->x);
	const uint64_t row = (z & ((1u << t->z) - 1)) << t->y | (y & ((1u << t->y) - 1));

	return tile << (t->x + t->y + t->z) | row << t->x | (x & ((1u << t->x) - 1));
}

struct ptx_texture_level {
	uint64_t address;
	uint64_t pitch, slice; /* bytes from row to row, from slice (or layer) to slice */
	uint32_t width, height, depth; /* elements, at least 1; layers of a layered one */
	struct ptx_tiles tiles;
};

static inline uint64_t ptx_level_address(
	const struct ptx_texture_level *l, uint64_t x, uint64_t y, uint64_t z)
{
	return l->address + (l->tiles.across ? ptx_tiles_offset(&l->tiles, x, y, z)
					     : z * l->slice + y * l->pitch + x);
}

/* Where the memory of arrays may be missing: a byte for each 1 << PTX_ABSENT_SHIFT bytes of
 * addresses, from the one on that the window begins in.  The caller keeps it and may change it
 * while no kernel runs that reads such a texture. */
#define PTX_ABSENT_SHIFT 21
enum { PTX_ABSENT = 2 };
void ptx_absent_set(const atomic_uchar *map);

struct ptx_texture {
	struct ptx_texture_level levels[PTX_TEXTURE_LEVELS];
	uint32_t nlevels;
	enum ptx_texel texel;
	enum ptx_blocks blocks; /* then `texel` and the levels' sides are of what is read */
	uint32_t channels;
	uint32_t layers; /* 0: not layered; a cubemap has 6 for each cube */
	enum ptx_address_mode address[3];
	bool surface;
	bool memory;	 /* linear memory: beyond its end there is 0 */
	bool linear;	 /* filter */
	bool normalized; /* coordinates */
	bool integers;	 /* elements are read as they are; else small integers as 0 .. 1 */
	bool srgb;
	bool sparse; /* where ptx_absent_set()'s map says so it reads 0, and keeps nothing */
	bool block_view; /* blocks that the array is not of: alpha is 0 where they have none */
	bool level_linear;
	float bias, least, most; /* of the level */
	float border[4];
};

/* A number for it, which is never 0; 0: there is no room. Any thread. */
uint64_t ptx_texture_add(const struct ptx_texture *texture);
void ptx_texture_remove(uint64_t number);

/* --- for the instructions --- */

/* What a tex or tld4 is, in its instruction. */
struct ptx_fetch {
	uint8_t dims;	/* 1 to 3 */
	bool layered;	/* the first coordinate is the layer */
	bool cube;	/* the coordinates are a direction */
	bool whole;	/* coordinates are integers */
	uint8_t level;	/* enum ptx_fetch_level */
	uint8_t gather; /* tld4: 1 + the component; 0: tex */
	bool offset;	/* texels are moved by whole numbers */
	uint8_t half;	/* enum ptx_fetch_half */
};
enum ptx_fetch_half { PTX_WORDS, PTX_HALF_PAIRS, PTX_HALVES };
enum ptx_fetch_level { PTX_LEVEL_NONE, PTX_LEVEL_GIVEN, PTX_LEVEL_GRAD };

/* The registers of one, 32 bits each, side by side. */
enum ptx_fetch_register {
	PTX_FETCH_COORDINATE = 0, /* 4 */
	PTX_FETCH_LEVEL = 4,	  /* the level, or two vectors of 4: the gradients */
	PTX_FETCH_OFFSET = 12,	  /* 4 */
	PTX_FETCH_RESULT = 16,	  /* 4 */
	PTX_FETCH_REGISTERS = 20,
};

/* What a surface instruction is. Its registers are the four coordinates of above, and four
 * values of 64 bits in a row of their own. */
enum ptx_surface_outside { PTX_SURFACE_TRAP, PTX_SURFACE_CLAMP, PTX_SURFACE_ZERO };
/* What the first coordinate counts: bytes, values, or elements, which the values become. */
enum ptx_surface_unit { PTX_SURFACE_BYTES, PTX_SURFACE_VALUES, PTX_SURFACE_ELEMENTS };
struct ptx_surface {
	uint8_t dims;
	bool layered;
	uint8_t bytes, count; /* of a value, how many */
	uint8_t outside;      /* enum ptx_surface_outside: what is done about a byte there */
	uint8_t unit;	      /* enum ptx_surface_unit */
	uint8_t reserved[2];
};
_Static_assert(sizeof(struct ptx_fetch) == 8 && sizeof(struct ptx_surface) == 8, "");

enum ptx_texture_query {
	PTX_ASK_WIDTH,
	PTX_ASK_HEIGHT,
	PTX_ASK_DEPTH,
	PTX_ASK_LAYERS,
	PTX_ASK_LEVELS,
	PTX_ASK_TYPE,
	PTX_ASK_ORDER,
	PTX_ASK_NORMALIZED,
	PTX_ASK_FILTER,
	PTX_ASK_ADDRESS_0,
	PTX_ASK_ADDRESS_1,
	PTX_ASK_ADDRESS_2,
	PTX_ASK_NOTHING, /* what is 0 of every texture and surface here */
};
/* LEVEL: of the sizes; one that there is not has none. */
uint32_t ptx_texture_ask(
	const struct ptx_texture *t, enum ptx_texture_query query, uint32_t level);

/* NULL: there is no such texture. */
const struct ptx_texture *ptx_texture_find(uint64_t number);
/* It is sparse, and has no memory there. */
bool ptx_texture_absent(const struct ptx_texture *t, uint64_t address);
/* False: a texel lies outside of the device's memory. IN: the registers before the results;
 * OUT: four results. */
bool ptx_texture_fetch(const struct ptx_texture *t, const struct ptx_fetch *fetch,
	const uint32_t *in, uint32_t *out);
/* Of a channel. */
uint32_t ptx_texel_bytes(enum ptx_texel texel);
uint32_t ptx_block_bytes(enum ptx_blocks blocks);
/* The texel (x, y) of the block at P: four numbers. */
void ptx_block_texel(
	enum ptx_blocks blocks, const unsigned char *p, uint32_t x, uint32_t y, double *v);
/* The same of texel AT, row by row, of a block of BC6H or BC7 (texture_bptc.c). */
void ptx_bptc_texel(enum ptx_blocks blocks, const unsigned char *p, uint32_t at, double *v);
/* Writes COUNT values as a formatted store does, to the element at P: numbers of the element's
 * kind in 32 bits each; what the element cannot hold becomes its least or greatest number. */
void ptx_texture_store(
	const struct ptx_texture *t, void *p, const uint32_t *values, uint32_t count);

#endif
