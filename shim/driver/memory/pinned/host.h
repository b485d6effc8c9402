/* SPDX-License-Identifier: Apache-2.0
 *
 * Pinned host memory: segments shared with the sidecar from the start, so that a copy names
 * bytes instead of moving them.  Memory that the app registers itself stays pageable to us.
 * Kernels reach both (mirror.h).
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_PINNED_HOST_H
#define VCUDA_SHIM_DRIVER_MEMORY_PINNED_HOST_H

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/wire/frame.h"

struct context;

struct host_range {
	void *base;
	size_t bytes;
	unsigned flags;
	uint64_t id;
	uint16_t context;
	bool registered;  /* by cuMemHostRegister: not CUDA's */
	bool pooled;	  /* a memory pool's */
	bool mapped;	  /* by cuMemMap … */
	uint64_t writers; /* … and these devices may write there, a bit for each */
};

/* The device will write to this memory: a copy that is not awaited, frame SEQ on STREAM. */
void host_written_later(const void *host, uint64_t stream, uint64_t seq);
/* May the device, or a host function that STREAM is behind, still write to pinned memory? Then
 * a copy on the stream that reads it must wait for the stream first: bytes are taken when the
 * copy is posted, not when the stream comes to it. */
bool host_busy(const void *host, uint64_t stream);

/* Where all pieces lie: [low, low + span); span 0: there are none. And how many of them kernels
 * do not reach yet, and how many of those have the flag Mapped. */
extern struct host_extent {
	_Atomic uint64_t low, span;
	_Atomic uint32_t idle, idle_mapped;
} host_extent;

static inline bool host_any(void)
{
	return atomic_load_explicit(&host_extent.span, memory_order_relaxed) != 0;
}
static inline bool host_idle(void)
{
	return atomic_load_explicit(&host_extent.idle, memory_order_relaxed) != 0;
}
static inline uint64_t host_low(void)
{
	return atomic_load_explicit(&host_extent.low, memory_order_relaxed);
}
static inline uint64_t host_span(void)
{
	return atomic_load_explicit(&host_extent.span, memory_order_relaxed);
}
static inline bool host_maybe(uint64_t address)
{
	return address - host_low() < host_span();
}

/* Kernels may use the piece around the address from now on (mirror.h). INVALID_VALUE: it is in
 * none. */
CUresult host_reach(uint64_t address);
/* The same for each of the words that is an address of a piece: what a kernel or a library
 * gets. Where a piece cannot be reached, the kernel that uses it faults. */
void host_named(const void *words, size_t bytes);
/* All pieces, whatever was named. */
void host_named_all(void);
/* The same of BYTES that go to the device's memory at TO, where a kernel may find an address in
 * them: words are what lies at a multiple of 8 there. Of MOST bytes at once those above 64 KiB
 * are looked at only while memory of the flag Mapped is not reached: tables of addresses are
 * smaller, and weights are not to be searched. */
void host_carried(const void *bytes, size_t n, uint64_t to, size_t most);
/* May there be one? Of a small copy; where not, host_carried() has nothing to do. */
bool host_carries(const void *bytes, size_t n, uint64_t to);

/* For a copy, not awaited, of N bytes between the allocation around HOST and the device: where
 * they lie for the sidecar. False: that is nothing to go by, since the memory is registered,
 * another agent's or none, or since the device, or a host function, may still write what is to
 * be READ. */
bool host_lent(const void *host, size_t n, bool read, struct frame_bulk *bulk);

/* The context is about to go: waits until nothing outstanding uses what was allocated or
 * registered in it. Then, once it is gone or was reset: that memory is no more. */
void host_context_drain(struct context *context);
void host_context_gone(const struct context *context);

/* For a memory pool: BYTES that go with the current device's primary context.  *ID is no other
 * allocation's. */
CUresult host_pool_alloc(size_t bytes, CUdeviceptr *address, uint64_t *id);
/* The same where BASE is, pages of a file that both sides of a pool map: it is unmapped when it
 * is freed, or goes. */
CUresult host_pool_adopt(void *base, size_t bytes, uint64_t *id);
/* Frees them.  Where they may still be in use, WAIT says that this waits for it. */
void host_pool_free(CUdeviceptr address, uint64_t id, bool wait);

/* For cuMemMap: MEMORY is mapped at AT, in DEVICE's window. Then who may use it, until it is
 * unmapped; nothing that is outstanding does then: waits for what may use some in
 * [at, + bytes). */
struct vmm_host;
struct vmm_access;
CUresult host_map(
	struct vmm_host *memory, CUdeviceptr at, int device, struct vmm_access access);
CUresult host_map_access(CUdeviceptr at, struct vmm_access access);
CUresult host_unmap_drain(CUdeviceptr at, size_t bytes);
void host_unmap(CUdeviceptr at);

/* Whether the program's machine has that NUMA node. */
bool host_numa(int node);
/* All of [host, + n) is mapped by cuMemMap, and somebody was let to each part. */
bool host_mapped_all(const void *host, size_t n);
/* The allocation or registration around an address. */
bool host_find(const void *host, struct host_range *range);

#endif
