/* SPDX-License-Identifier: Apache-2.0
 *
 * Pinned memory as the app asks for it: allocated, registered, freed, and where the device sees
 * it.
 */
#include "shim/driver/graph/capture.h"
#include "shim/driver/memory/pinned/host.h"
#include "shim/driver/memory/pinned/host_state.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/virtual/vmm.h"
#include "shim/driver/memory/virtual/vmm_host.h"
#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "shim/generated/cuda_hand.h"
#include "shim/engine/blocks.h"
#include "shim/driver/context/context.h"
#include "shim/driver/memory/mirror/mirror.h"
#include "shim/engine/driver.h"
#include "shim/engine/engine.h"
#include "shim/engine/attach/rejoin.h"
#include "shim/engine/session.h"
#include "shim/driver/stream/stream.h"
#include "shim/engine/thread.h"
#include "shim/engine/lock.h"

#define HOST_FLAGS                                                                             \
	(unsigned)(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP |                      \
		   CU_MEMHOSTALLOC_WRITECOMBINED)
#define HOST_REGISTER_FLAGS                                                                    \
	(unsigned)(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |                \
		   CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY)

/* That there is none is written even before cuInit. */
CUresult hand_cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
	CUresult status;

	if (pp)
		*pp = NULL;
	status = shim_ready();
	if (!status)
		status = context_missing();
	if (!status)
		status = capture_unsafe();
	if (status)
		return status;
	if (!pp || Flags & ~HOST_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	if (!bytesize)
		return CUDA_SUCCESS;
	if (bytesize > SIZE_MAX / 2)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&pinned.lock);
	status = host_alloc(bytesize, Flags, pp);
	pthread_mutex_unlock(&pinned.lock);
	return status;
}

/* Frames that name the segment must be acknowledged, and what was asked for must have arrived
 * in it, before it goes: one synchronisation of every context says both. */
static CUresult host_drain(void)
{
	struct context *context = context_current();
	uint64_t seq;

	return context ? sync_wait(SYNC_CONTEXT, 0, &seq) : CUDA_SUCCESS;
}

/* The same for what goes with HOME. */
static void host_drain_at(struct context *home)
{
	struct context *old;
	bool elsewhere = session_count > 1 && home->session != session_here();

	if (elsewhere && !thread_push(home))
		return;
	host_drain();
	if (elsewhere)
		thread_pop(&old);
}

/* Whether something outstanding may use it. */
static bool piece_used(struct host_piece *piece)
{
	return (piece->segment && atomic_exchange(&piece->segment->used, false)) ||
	       piece->active;
}

/* Of a pool's file. */
static void piece_unmap(const struct host_piece *piece)
{
	const size_t bytes = (piece->bytes + HOST_PAGE - 1) & ~(size_t)(HOST_PAGE - 1);

	munmap(piece->base, bytes);
	mirror_unplace(piece->base, bytes);
}

/* With the lock held; nothing outstanding uses it. */
static void piece_free(struct host_piece *piece)
{
	struct host_segment *segment = piece->segment;

	if (piece->mapped)
		vmm_host_leave(piece);
	else if (piece->active)
		mirror_deactivate(piece->base, piece->bytes);
	if (segment && segment->shared)
		blocks_free(&segment->map,
			(uint32_t)((size_t)(piece->base - segment->base) / HOST_UNIT),
			(uint32_t)((piece->bytes + HOST_UNIT - 1) / HOST_UNIT));
	else if (segment)
		host_segment_free(segment);
	else if (piece->pooled)
		piece_unmap(piece);
	host_piece_remove(piece);
}

/* What there is at an address. */
enum host_made { HOST_REGISTERED, HOST_ALLOCATED, HOST_POOLED, HOST_MAPPED };

/* With the lock held: the piece that begins at P, is one of those, and has that number (0:
 * whichever); NULL: there is none. */
static struct host_piece *piece_made(const void *p, enum host_made made, uint64_t id)
{
	struct host_piece *piece = host_piece_at(p);

	if (!piece || piece->base != p || (id && piece->id != id))
		return NULL;
	return made == (piece->pooled		? HOST_POOLED
			       : piece->mapped	? HOST_MAPPED
			       : piece->segment ? HOST_ALLOCATED
						: HOST_REGISTERED)
		       ? piece
		       : NULL;
}

/* What was made at P and not yet freed. */
static CUresult piece_release(void *p, enum host_made made, uint64_t id, CUresult missing)
{
	struct context *home = NULL;
	struct host_piece *piece;

	pthread_mutex_lock(&pinned.lock);
	piece = piece_made(p, made, id);
	if (piece && piece_used(piece))
		home = piece->home;
	pthread_mutex_unlock(&pinned.lock);
	if (home)
		host_drain_at(home);
	pthread_mutex_lock(&pinned.lock);
	piece = piece_made(p, made, id);
	if (piece)
		piece_free(piece);
	pthread_mutex_unlock(&pinned.lock);
	return piece ? CUDA_SUCCESS : missing;
}

CUresult host_pool_alloc(size_t bytes, CUdeviceptr *address, uint64_t *id)
{
	struct host_piece *piece;
	CUresult status;
	void *base;

	if (bytes > SIZE_MAX / 2)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&pinned.lock);
	/* Devices have it mapped, whether the program said so or not. */
	status = host_alloc(bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP, &base);
	if (!status) {
		piece = host_piece_at(base);
		piece->pooled = true;
		piece->home = &devices.at[context_current()->device].primary;
		*address = (uintptr_t)base;
		*id = piece->id;
	}
	pthread_mutex_unlock(&pinned.lock);
	return status;
}

CUresult host_pool_adopt(void *base, size_t bytes, uint64_t *id)
{
	struct host_piece piece = {.base = base,
		.bytes = bytes,
		.flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP,
		.pooled = true};
	CUresult status = CUDA_SUCCESS;

	pthread_mutex_lock(&pinned.lock);
	if (!host_piece_add(&piece)) {
		status = CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		host_piece_at(base)->home = &devices.at[context_current()->device].primary;
		*id = pinned.last_piece;
	}
	pthread_mutex_unlock(&pinned.lock);
	return status;
}

CUresult host_map(struct vmm_host *memory, CUdeviceptr at, int device, struct vmm_access access)
{
	const struct host_piece piece = {.base = (void *)(uintptr_t)at,
		.bytes = memory->bytes,
		.flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP,
		.mapped = memory,
		.device = device,
		.access = access};
	CUresult status;

	pthread_mutex_lock(&pinned.lock);
	status = host_piece_add(&piece) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_unlock(&pinned.lock);
	return status;
}

CUresult host_map_access(CUdeviceptr at, struct vmm_access access)
{
	CUresult status = CUDA_SUCCESS;
	struct host_piece *piece;

	pthread_mutex_lock(&pinned.lock);
	piece = piece_made((void *)(uintptr_t)at, HOST_MAPPED, 0);
	if (piece) {
		if (piece->active)
			status = vmm_host_let(piece, access);
		if (!status) {
			piece->access = access;
			piece->apart = false;
		}
	}
	pthread_mutex_unlock(&pinned.lock);
	return status;
}

void host_unmap(CUdeviceptr at)
{
	struct host_piece *piece;

	pthread_mutex_lock(&pinned.lock);
	piece = piece_made((void *)(uintptr_t)at, HOST_MAPPED, 0);
	if (piece)
		piece_free(piece);
	pthread_mutex_unlock(&pinned.lock);
}

CUresult host_unmap_drain(CUdeviceptr at, size_t bytes)
{
	bool used = false;

	pthread_mutex_lock(&pinned.lock);
	for (size_t i = 0; i < pinned.piece_count; i++)
		used |= pinned.pieces[i].mapped && pinned.pieces[i].active &&
			(uintptr_t)pinned.pieces[i].base - at < bytes;
	pthread_mutex_unlock(&pinned.lock);
	return used ? host_drain() : CUDA_SUCCESS;
}

void host_pool_free(CUdeviceptr address, uint64_t id, bool wait)
{
	struct host_piece *piece;

	if (wait) {
		piece_release((void *)(uintptr_t)address, HOST_POOLED, id, CUDA_SUCCESS);
		return;
	}
	pthread_mutex_lock(&pinned.lock);
	piece = piece_made((void *)(uintptr_t)address, HOST_POOLED, id);
	if (piece)
		piece_free(piece);
	pthread_mutex_unlock(&pinned.lock);
}

void host_context_drain(struct context *context)
{
	struct context *old, *current = context_current();
	bool used = false;

	pthread_mutex_lock(&pinned.lock);
	for (size_t i = 0; i < pinned.piece_count; i++)
		used |= pinned.pieces[i].home == context && piece_used(&pinned.pieces[i]);
	pthread_mutex_unlock(&pinned.lock);
	if (!used)
		return;
	if (current && current != context && current->session == context->session)
		host_drain();
	if (!thread_push(context))
		return;
	host_drain();
	thread_pop(&old);
}

void host_context_gone(const struct context *context)
{
	pthread_mutex_lock(&pinned.lock);
	for (size_t i = pinned.piece_count; i-- > 0;)
		if (pinned.pieces[i].home == context)
			piece_free(&pinned.pieces[i]);
	pthread_mutex_unlock(&pinned.lock);
}

CUresult hand_cuMemFreeHost(void *p)
{
	return p ? piece_release(p, HOST_ALLOCATED, 0, CUDA_ERROR_INVALID_VALUE) : CUDA_SUCCESS;
}

/* A driver that pins the pages faults where one is missing, or may not be written. */
static bool range_registers(const void *p, size_t bytes, unsigned flags)
{
	int device;

	/* Nor is device memory the program's, or memory of a device that is not NVIDIA's here.
	 */
	return p && bytes && (uintptr_t)p + bytes >= (uintptr_t)p &&
	       !(flags & ~HOST_REGISTER_FLAGS) && !memory_in_window((uintptr_t)p, &device) &&
	       mirror_usable((uintptr_t)p, (uintptr_t)p + bytes,
		       !(flags & CU_MEMHOSTREGISTER_READ_ONLY));
}

/* With the lock held: whether what is to be read only begins in a page whose first byte is
 * registered for writing. That is what NVIDIA's driver looks at: other bytes of the page do not
 * matter. */
static bool page_written(const struct host_piece *piece)
{
	uintptr_t page = (uintptr_t)piece->base / HOST_PAGE * HOST_PAGE;
	const struct host_piece *other = piece->flags & CU_MEMHOSTREGISTER_READ_ONLY
						 ? host_piece_at((void *)page)
						 : NULL;

	return other && !(other->flags & CU_MEMHOSTREGISTER_READ_ONLY);
}

/* Whether PIECE ends in the one at BELOW, but does not begin in it: natively that is nothing to
 * one of a device's memory. */
static bool piece_begun(const struct host_piece *piece, long below)
{
	const struct host_piece *other = &pinned.pieces[below];

	return other->base > piece->base &&
	       other->base + other->bytes > piece->base + piece->bytes;
}

CUresult hand_cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
	struct host_piece piece = {.base = p, .bytes = bytesize, .flags = Flags};
	CUresult status = CUDA_SUCCESS;
	long below;

	if (!context_current())
		return context_missing();
	if (!range_registers(p, bytesize, Flags))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pinned.lock);
	below = host_piece_below((unsigned char *)p + bytesize - 1);
	if (below >= 0 && Flags & CU_MEMHOSTREGISTER_IOMEMORY && piece_begun(&piece, below))
		below--;
	if (below >= 0 &&
		pinned.pieces[below].base + pinned.pieces[below].bytes > (unsigned char *)p)
		/* What CUDA has allocated is no memory to register. */
		status = pinned.pieces[below].segment || pinned.pieces[below].pooled ||
					 pinned.pieces[below].mapped
				 ? CUDA_ERROR_INVALID_VALUE
				 : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	else if (Flags & CU_MEMHOSTREGISTER_IOMEMORY || page_written(&piece))
		status = CUDA_ERROR_INVALID_VALUE;
	else if (!host_piece_add(&piece))
		status = CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_unlock(&pinned.lock);
	return status;
}

/* It knows two flags, and does not look at others. */
CUresult hand_cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags)
{
	return hand_cuMemHostRegister_v2(p, bytesize,
		Flags & (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
}

/* An address within what is known is no address of what is registered, elsewhere it is not
 * registered. */
CUresult hand_cuMemHostUnregister(void *p)
{
	struct memory_range range;
	struct host_range host;
	bool known = !p || host_find(p, &host) ||
		     (memory_find((uintptr_t)p, &range) &&
			     (!range.reserved || vmm_mapped((uintptr_t)p, 1)));

	return piece_release(p, HOST_REGISTERED, 0,
		known ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

CUresult hand_cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
	CUresult status;

	if (!pdptr)
		return CUDA_ERROR_INVALID_VALUE;
	*pdptr = 0;
	status = context_missing();
	if (!status)
		status = Flags ? CUDA_ERROR_INVALID_VALUE : host_reach((uintptr_t)p);
	if (!status)
		*pdptr = mirror_address((uintptr_t)p);
	return status;
}

CUresult hand_cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
	struct host_range range;

	if (!pFlags)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context_current())
		return context_missing();
	if (!host_find(p, &range))
		return CUDA_ERROR_INVALID_VALUE;
	/* With unified addressing what is allocated is mapped, whether that was asked for or
	 * not. */
	*pFlags = range.flags | (range.registered ? 0 : CU_MEMHOSTALLOC_DEVICEMAP);
	return CUDA_SUCCESS;
}
