/* SPDX-License-Identifier: Apache-2.0
 *
 * A copy as all of CUDA's descriptions of one come to be: for copy.c (how bytes go) and
 * copy_described.c (cuMemcpy2D, cuMemcpy3D, a graph's nodes).
 */
#ifndef VCUDA_SHIM_DRIVER_COPY_COPY_H
#define VCUDA_SHIM_DRIVER_COPY_COPY_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/wire/graph.h"
#include "shim/driver/graph/graph.h"

enum side { SIDE_HOST, SIDE_DEVICE, SIDE_ARRAY };

struct array;

/* Where the bytes of one side lie. Slices are `slice` bytes apart. In an array, which tells
 * no addresses, the same three numbers are a place: byte in its row, row, slice. */
struct copy_place {
	enum side side;
	const struct array *array;
	uint64_t at;
	size_t pitch, slice;
	size_t before; /* bytes from where the descriptor says that the memory begins */
};

/* What CUDA's descriptors say, checked. */
struct shape {
	struct copy_place src, dst;
	size_t width, height, depth;
};

/* Which of the two an address of the unified space is. */
enum side copy_side_of(uint64_t address);

static inline uint64_t copy_address(const void *host)
{
	return (uint64_t)(uintptr_t)host;
}
/* All of a side lies in device memory that is live. */
bool copy_place_ok(const struct shape *s, const struct copy_place *place);
/* One row, one slice: their distances are of no matter. */
void copy_tidy(struct shape *s);
/* The same, and memory that kernels reach is the device's in a copy, which thus reads it, or
 * writes it, when the stream comes to it. True: a side of the copy is such. */
bool copy_mirrored(struct shape *s);
/* A copy with the app on one side. */
struct part_copy copy_app(const struct shape *s);
/* Does it: posts, or with !ASYNC towards the host waits. */
CUresult copy_shape(struct shape *s, CUstream hStream, bool async);

/* Does it in the context OWNER, in which its memory is, between what STREAM has to do before
 * and what comes after. */
CUresult copy_by_owner(struct shape *s, struct context *owner, uint64_t stream);

/* --- copy_agents.c --- */
/* Whether a side is of another agent than the thread's. */
bool copy_elsewhere(const struct shape *s);
/* The same copy then: by the other agent where both sides are its own (or the app's), from
 * agent to agent where they can (direct.h), else by way of this process and done when it
 * returns. */
CUresult copy_agents(struct shape *s, uint64_t stream, bool async);

/* --- copy_array.c --- */
/* Both sides that are arrays hold what is copied of them. */
bool copy_arrays_ok(const struct shape *s);
/* The copy as a node of a graph, or a frame, has it: neither side is the app's. */
struct graph_copy copy_inside(const struct shape *s);
/* Between arrays, or with device memory: a post. */
CUresult copy_array_inside(const struct shape *s, uint64_t stream);

#endif
