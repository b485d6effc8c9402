/* SPDX-License-Identifier: Apache-2.0
 *
 * References to textures and surfaces, as CUDA had them before there were objects: a variable
 * of a module, and what is set for it by one call each.
 */
#ifndef VCUDA_PROTOCOL_WIRE_REFERENCE_H
#define VCUDA_PROTOCOL_WIRE_REFERENCE_H

#include <stdint.h>

/* What vcudaReferenceSet sets and vcudaReferenceAsk asks for, and where it stands. */
enum reference_what {
	REFERENCE_ARRAY = 0,	    /* place: the array's handle; flags */
	REFERENCE_MIPMAPPED = 1,    /* the same */
	REFERENCE_SURFACE = 2,	    /* the same, of a surface reference */
	REFERENCE_MEMORY = 3,	    /* place: an address; bytes */
	REFERENCE_PITCHED = 4,	    /* place: an address; bytes of a row; the rest but flags */
	REFERENCE_FORMAT = 5,	    /* format, channels */
	REFERENCE_ADDRESS_MODE = 6, /* dimension, mode */
	REFERENCE_FILTER = 7,	    /* mode */
	REFERENCE_LEVEL_FILTER = 8, /* mode */
	REFERENCE_LEVEL_BIAS = 9,   /* number[0] */
	REFERENCE_LEVEL_CLAMP = 10, /* number[0] and [1] */
	REFERENCE_ANISOTROPY = 11,  /* mode */
	REFERENCE_BORDER = 12,	    /* number */
	REFERENCE_FLAGS = 13,	    /* flags */
	REFERENCE_PARAMETER = 14,   /* place: the function's handle; dimension: the unit */
};

struct reference_setting {
	uint64_t place, bytes, width, height;
	uint32_t format, channels, flags;
	uint32_t mode; /* CUaddress_mode, CUfilter_mode, or what is counted */
	int32_t dimension;
	float number[4];
	uint32_t reserved;
};
_Static_assert(sizeof(struct reference_setting) == 72, "");

#endif
