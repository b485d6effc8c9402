/* SPDX-License-Identifier: Apache-2.0
 *
 * Names that cross: handles are minted by the shim, so that creating a stream or an event is a
 * post.  A handle is {generation, kind, index}; the worker's table refuses a wrong kind and a
 * stale generation.  The app sees the same 64 bits as its CUstream, CUevent …
 */
#ifndef VCUDA_PROTOCOL_WIRE_HANDLE_H
#define VCUDA_PROTOCOL_WIRE_HANDLE_H

#include <stdint.h>

enum handle_kind {
	KIND_NONE = 0,
	KIND_CUcontext = 1,
	KIND_CUstream = 2,
	KIND_CUevent = 3,
	KIND_CUmodule = 4,
	KIND_CUfunction = 5,
	KIND_CUlibrary = 6,
	KIND_CUkernel = 7,
	KIND_CUmemoryPool = 8,
	KIND_CUgraph = 9,
	KIND_CUgraphExec = 10,
	KIND_CUgraphNode = 11,
	KIND_CUarray = 12,
	KIND_CUtexObject = 13,
	KIND_CUlinkState = 14,
	KIND_CUmemGenericAllocationHandle = 15,
#include "protocol/generated/library_kinds.inc" /* 16 to 22, 24, from 27 on */
	KIND_CUuserObject = 23,			/* the shim's alone */
	KIND_CUtexref = 25,
	KIND_CUsurfref = 26,
	KIND_CUgreenCtx = 62, /* the shim's alone */
	KIND_LAST
};

#define HANDLE_INDEX_BITS 24
#define HANDLE_INDEX_MAX (1u << 20) /* live handles a session; beyond it: OUT_OF_MEMORY */

/* generation: 1..2^32-1, so a handle is never 0, 1 or 2 (CUDA's special streams). */
static inline uint64_t handle_make(uint32_t generation, enum handle_kind kind, uint32_t index)
{
	return (uint64_t)generation << 32 | (uint64_t)kind << HANDLE_INDEX_BITS | index;
}
static inline uint32_t handle_generation(uint64_t handle)
{
	return (uint32_t)(handle >> 32);
}
static inline enum handle_kind handle_kind(uint64_t handle)
{
	return (enum handle_kind)(handle >> HANDLE_INDEX_BITS & 0xff);
}
static inline uint32_t handle_index(uint64_t handle)
{
	return (uint32_t)handle & ((1u << HANDLE_INDEX_BITS) - 1);
}

/* frame_header.context: 0 = none current; 1 + d = the primary context of device d; from
 * CONTEXT_CREATED on, contexts made by vcudaContextCreate under the number that the shim chose.
 */
#define CONTEXT_NONE 0
#define CONTEXT_PRIMARY(d) (1 + (d))
#define CONTEXT_CREATED 64
#define CONTEXT_MAX 1024

/* Streams in bodies: 0 and CU_STREAM_LEGACY (1) both name the legacy stream of the frame's
 * context; CU_STREAM_PER_THREAD (2) never crosses: the shim mints a stream per app thread. */

#endif
