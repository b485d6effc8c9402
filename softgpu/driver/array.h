/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays: rows side by side in device memory, level behind level.
 */
#ifndef VCUDA_SOFTGPU_DRIVER_ARRAY_H
#define VCUDA_SOFTGPU_DRIVER_ARRAY_H

#include "softgpu/driver/softgpu.h"
#include "softgpu/ptx/texture.h"

#define ARRAY_LEVELS 20

/* The addresses of an array whose memory is mapped later: tiles, and behind them what is mapped
 * as a whole, its smallest levels. */
struct sparse {
	uint64_t base;
	size_t bytes;	     /* 0: it has its memory from the start */
	uint64_t tail;	     /* from `base` on, to the end */
	unsigned tail_level; /* the first level that is there */
};

struct CUarray_st {
	struct CUctx_st *context;
	struct CUarray_st *next;	/* of all that are no levels, under array_lock */
	struct CUmipmappedArray_st *of; /* whose level it is, or NULL */
	struct CUarray_st *whole;	/* whose plane it is, or NULL */
	struct CUarray_st *planes;	/* of a planar one; or NULL */
	unsigned plane_count;
	CUDA_ARRAY3D_DESCRIPTOR desc; /* a level's own */
	size_t element;		      /* bytes; of a block of a compressed format */
	uint64_t address;
	size_t row, rows, depth;     /* bytes, rows, slices or layers: at least 1 */
	struct ptx_tiles tiles;	     /* of a level of a sparse one, which may lie in its tail */
	const struct sparse *sparse; /* or NULL */
	struct sparse own;	     /* of one that is no level */
};

struct CUmipmappedArray_st {
	struct CUctx_st *context;
	struct CUmipmappedArray_st *next;
	CUDA_ARRAY3D_DESCRIPTOR desc;
	uint64_t address;
	unsigned count;
	struct sparse sparse;
	struct CUarray_st levels[ARRAY_LEVELS];
};

/* array_map.c: arrays whose memory is mapped later, tile by tile (SPARSE) or as a whole
 * (DEFERRED). Whether there may be such a one; the addresses of COUNT levels, which are laid
 * out in rows so far, of BYTES; and their end. */
bool array_map_shape(const CUDA_ARRAY3D_DESCRIPTOR *desc);
CUresult array_map_reserve(
	struct sparse *sparse, struct CUarray_st *levels, unsigned count, uint64_t bytes);
void array_map_release(struct sparse *sparse);
/* Of the granule at an address; under memory_lock it does not change to ABSENT. */
enum sparse_state { SPARSE_NONE, SPARSE_MAPPED, SPARSE_ABSENT = PTX_ABSENT };
enum sparse_state array_map_state(uint64_t address);

/* Blocks of 4 x 4 texels that an element is of such a format, and the format's channels; NONE:
 * it has none, or is not served. */
enum ptx_blocks array_blocks(CUarray_format format, unsigned *channels);
/* Bytes of an element of whole numbers or floats; 0: another format, or no such channels. */
size_t array_element(CUarray_format format, unsigned channels);
/* The same of colours that share an element (YUV), which textures do not read; no other
 * format's. */
size_t array_packed(CUarray_format format, unsigned channels);
/* Planar formats (YUV): brightness is the first plane, with an element for each of the array's.
 */
struct array_planes {
	unsigned count;	       /* 0: the format is not planar */
	CUarray_format format; /* of each */
	unsigned across, down; /* by how much the others are halved, 0 or 1 */
};
struct array_planes array_planes(CUarray_format format);
/* The whole numbers that a normalized format (UNORM, SNORM) has, and of how many channels it
 * is; any other format itself, and 0. */
CUarray_format array_whole(CUarray_format format, unsigned *channels);
/* The arrays of a context that ends; their memory goes with its other memory. */
void array_release_context(const struct CUctx_st *context);
/* reference.c: the references of a module, or those of a context that no module has. */
void reference_release_module(const struct CUmod_st *module);
void reference_release_context(const struct CUctx_st *context);
/* texture.c: what a texture, or (TEXTURE is NULL) a surface, is for the interpreter; of VIEW,
 * which may be NULL, whether it is one of blocks. */
CUresult texture_describe(struct ptx_texture *t, const CUDA_RESOURCE_DESC *resource,
	const CUDA_TEXTURE_DESC *texture, const CUDA_RESOURCE_VIEW_DESC *view);
/* texture.c: the same of its textures and surfaces. */
void texture_release_context(const struct CUctx_st *context);

#endif
