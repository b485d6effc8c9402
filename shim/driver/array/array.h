/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays, textures and surfaces as the shim knows them: what was asked for, so that questions
 * are answered here and a copy is checked before it is sent.
 */
#ifndef VCUDA_SHIM_DRIVER_ARRAY_ARRAY_H
#define VCUDA_SHIM_DRIVER_ARRAY_ARRAY_H

#include <cuda.h>
#include <stdint.h>

#include "protocol/wire/array.h"

struct context;
struct vmm_memory;

struct array {
	uint64_t handle;
	struct context *context; /* that was current when it was made */
	struct array_desc desc;
	struct array_level level;
	uint64_t bytes;		   /* counted against the lease */
	struct vmm_memory **pools; /* array_map.c: what is mapped into it */
	uint32_t pool_count;
	struct array *parent;		   /* of a level, or plane: what it is a part of */
	struct array *parts[ARRAY_LEVELS]; /* levels, or planes: those that have a name */
};

/* The array, or (MIPMAPPED) the mipmapped array of that name; NULL: it is none. */
struct array *array_find(uint64_t handle, bool mipmapped);
/* The context goes: its arrays are stale. */
void array_reset(struct context *context);
/* array_map.c: the array goes, and holds no memory any more. */
void array_unmap(struct array *array);
/* texture.c: the same for its textures and surfaces. */
void texture_reset(struct context *context);

#endif
