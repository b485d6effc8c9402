/* SPDX-License-Identifier: Apache-2.0
 *
 * Bulk copies: what the decoder tells the handler in the instruction's `imm`, and what the
 * software GPU keeps in a tensor map's 128 bytes (softgpu/driver/tensor_map.c fills them in).
 */
#ifndef VCUDA_SOFTGPU_PTX_BULK_H
#define VCUDA_SOFTGPU_PTX_BULK_H

#include <stdint.h>

/* `ops` in decode/decode_bulk.c has them in this order. */
enum bulk_op {
	BULK_COPY,
	BULK_ADD,
	BULK_MIN,
	BULK_MAX,
	BULK_INC,
	BULK_DEC,
	BULK_AND,
	BULK_OR,
	BULK_XOR
};

enum bulk_type {
	BULK_U8,
	BULK_U16,
	BULK_U32,
	BULK_S32,
	BULK_U64,
	BULK_S64,
	BULK_F16,
	BULK_F32,
	BULK_F64,
	BULK_BF16,
	BULK_TYPES
};

struct bulk {
	unsigned rank : 3; /* of the tensor; 0: bytes side by side */
	unsigned to_shared : 1, has_barrier : 1, multicast : 1;
	unsigned op : 4, type : 4; /* type: of a reduction that is not a tensor's */
	unsigned im2col : 1;	   /* a column of pixels of a tensor, not a box of it */
};

/* The operands' place in a row of 64-bit registers. */
enum {
	BULK_TO,		   /* address; of a tensor the map's, where it is written */
	BULK_FROM,		   /* the same where it is read */
	BULK_BYTES,		   /* not of a tensor */
	BULK_BARRIER,		   /* address */
	BULK_BLOCKS,		   /* mask of the cluster's blocks that get the data */
	BULK_AT,		   /* the tensor's coordinates */
	BULK_OFFSET = BULK_AT + 5, /* of the filter, where a column is fetched */
	BULK_OPERANDS = BULK_OFFSET + 3
};

#define TENSOR_MAGIC 0x6d747376u
#define TENSOR_BOX_MAX 256
#define TENSOR_STRIDE_MAX 8
#define TENSOR_PIXELS_MAX 1024

struct tensor_map {
	uint32_t magic;
	uint8_t type;	  /* enum bulk_type */
	uint8_t rank;	  /* 1 to 5 */
	uint8_t swizzle;  /* log2 of the width in bytes over 16: 1, 2 or 3; 0: none */
	uint8_t fill_nan; /* of what is read outside */
	uint64_t address;
	uint64_t stride[4]; /* bytes from one to the next, of every dimension but the first */
	uint32_t last[5];   /* the tensor's size less one */
	uint16_t box[5];    /* elements; of im2col: channels of a pixel, pixels of a column */
	uint8_t step[5];    /* of the box, from one element that is moved to the next */
	uint8_t im2col;
	/* Of im2col, in width, height and depth: where the filter may lie, from the tensor's
	 * first element and from its last one. */
	int16_t lower[3], upper[3];
	uint8_t reserved[32]; /* zero */
};
_Static_assert(sizeof(struct tensor_map) == 128, "a CUtensorMap");

#endif
