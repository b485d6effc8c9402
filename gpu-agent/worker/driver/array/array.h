/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays, textures and surfaces of the session.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_DRIVER_ARRAY_ARRAY_H
#define VCUDA_GPU_AGENT_WORKER_DRIVER_ARRAY_ARRAY_H

#include "gpu-agent/worker/worker_state.h"
#include "protocol/wire/array.h"

struct vmm;
struct worker_array {
	CUarray array; /* NULL: a mipmapped one */
	CUmipmappedArray mipmap;
	bool part; /* a level, or plane: goes with what it is a part of */
	uint32_t device;
	uint64_t bytes; /* counted as used */
	struct array_desc desc;
	struct array_level level;
	struct vmm **pools; /* array_map.c: each that was ever mapped into it */
	uint32_t pool_count;
};
/* The array goes, and with it what it holds of them. */
void array_tiles_unmap(struct worker *w, struct worker_array *array);

/* The array whose box is copied: refuses a handle that is none, and a box that it does not
 * hold. */
struct worker_array *array_box(struct worker *w, struct request *r, uint64_t handle, uint64_t x,
	uint64_t y, uint64_t z, uint64_t width, uint64_t height, uint64_t depth);
/* The name of one of the driver's arrays; 0: it is none of the session's. */
uint64_t array_name(const struct worker *w, CUarray array);
uint64_t array_mipmapped_name(const struct worker *w, CUmipmappedArray mipmap);
/* One whose context goes; its name is about to. */
void array_forget(struct worker *w, struct worker_array *array);
struct worker_texture;
void texture_forget(struct worker *w, struct worker_texture *texture);

#endif
