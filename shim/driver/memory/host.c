/* SPDX-License-Identifier: Apache-2.0
 *
 * Pinned host memory: see host.h.  Small pieces are cut from segments of 1 MiB; larger ones
 * have a segment each.
 */
#include "shim/driver/graph/capture.h"
#include "shim/driver/memory/host.h"
#include "shim/driver/memory/memory.h"

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim/generated/cuda_hand.h"
#include "shim/engine/blocks.h"
#include "shim/driver/callback.h"
#include "shim/driver/context.h"
#include "shim/driver/memory/mirror.h"
#include "shim/engine/driver.h"
#include "shim/engine/engine.h"
#include "shim/engine/rejoin.h"
#include "shim/engine/session.h"
#include "shim/engine/statistics.h"
#include "shim/engine/status.h"
#include "shim/driver/stream.h"
#include "shim/engine/thread.h"
#include "shim/engine/lock.h"

/* Pages: what kernels reach is mirrored by pages, each piece by itself. */
#define HOST_UNIT HOST_PAGE
#define HOST_SHARED (1u << 20)	       /* a segment for small pieces */
#define HOST_LARGEST (HOST_SHARED / 4) /* larger ones get their own */
#define HOST_PAGE 4096u
/* The sidecar reserves the memory before it answers: 1 GiB takes about 0.3 s. */
#define HOST_PIN_MS 60000
#define HOST_FLAGS                                                                             \
	(unsigned)(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP |                      \
		   CU_MEMHOSTALLOC_WRITECOMBINED)
#define HOST_REGISTER_FLAGS                                                                    \
	(unsigned)(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |                \
		   CU_MEMHOSTREGISTER_READ_ONLY)

struct segment {
	struct segment *next;
	struct session
		*session; /* whose sidecar channel shares it: only there it has a number */
	unsigned char *base;
	size_t size;
	uint32_t number;
	bool shared;
	_Atomic bool used; /* by posts since the last time that a free waited */
	struct blocks map; /* shared ones */
};

struct piece {
	unsigned char *base;
	size_t bytes;
	unsigned flags;
	uint64_t id;
	uint16_t context;
	struct context *home;	 /* the context with which it goes */
	struct segment *segment; /* NULL: registered */
	bool active;		 /* kernels reach it (mirror.h) … */
	bool apart;		 /* … or cannot */
	uint64_t out_seq; /* the last copy from the device that was not awaited; 0: none */
	uint64_t out_stream;
};

static struct {
	pthread_mutex_t lock;
	struct segment *segments;
	struct piece *pieces;	    /* by address */
	_Atomic size_t piece_count; /* read without the lock too */
	size_t piece_room;
	uint64_t last_piece;
} pinned = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(host, pinned.lock, LOCK_HOST);

struct host_extent host_extent;

/* ---- segments ---- */

static CUresult segment_new(size_t size, bool shared, struct segment **out)
{
	struct channel_request request = {.op = CHANNEL_PIN, .size = size};
	struct channel_answer answer;
	struct segment *segment = calloc(1, sizeof(*segment));
	struct session *here = session_here();
	int fd = -1;
	uint32_t before;
	bool answered;
	void *wanted;

	if (!segment)
		return CUDA_ERROR_OUT_OF_MEMORY;
	wanted = mirror_place(size);
	stats_event(STATS_LOCAL_ROUND_TRIPS);
	do {
		pthread_mutex_lock(&here->socket_lock);
		before = rejoin_count();
		answered = attach_ask(&request, &answer, &fd, HOST_PIN_MS);
		if (answered && !answer.status && answer.size >= size)
			segment->base = attach_map(fd, size, wanted);
		if (segment->base) {
			rejoin_hold(answer.segment, fd, answer.size);
			fd = -1;
		}
		pthread_mutex_unlock(&here->socket_lock);
	} while (!answered && rejoin_wait(before));
	if (fd >= 0)
		close(fd);
	if (wanted && segment->base != wanted)
		mirror_unplace(wanted, size);
	if (!segment->base) {
		free(segment);
		if (!answered)
			return session_check() ? session_status() : status_of(CAUSE_LOST);
		session_debug("%zu bytes of pinned memory: %s", size, answer.text);
		return answer.status ? status_wire(answer.status) : CUDA_ERROR_OUT_OF_MEMORY;
	}
	segment->session = here;
	segment->size = size;
	segment->number = answer.segment;
	segment->shared = shared;
	if (shared)
		blocks_init(&segment->map, HOST_SHARED / HOST_UNIT);
	segment->next = pinned.segments;
	pinned.segments = segment;
	*out = segment;
	return CUDA_SUCCESS;
}

static void segment_free(struct segment *segment)
{
	struct channel_request request = {.op = CHANNEL_UNPIN, .segment = segment->number};
	struct session_visit visit = session_visit(segment->session);
	struct segment **at = &pinned.segments;

	while (*at != segment)
		at = &(*at)->next;
	*at = segment->next;
	munmap(segment->base, segment->size);
	mirror_unplace(segment->base, segment->size);
	pthread_mutex_lock(&session_here()->socket_lock);
	rejoin_release(segment->number);
	attach_tell(&request);
	pthread_mutex_unlock(&session_here()->socket_lock);
	session_leave(visit);
	free(segment);
}

/* ---- pieces ---- */

/* The index of the last piece at or below the address; -1: none. */
static long piece_below(const void *host)
{
	size_t low = 0, high = pinned.piece_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (pinned.pieces[middle].base <= (const unsigned char *)host)
			low = middle + 1;
		else
			high = middle;
	}
	return (long)low - 1;
}

static struct piece *piece_at(const void *host)
{
	long below = piece_below(host);

	if (below < 0)
		return NULL;
	return (size_t)((const unsigned char *)host - pinned.pieces[below].base) <
			       pinned.pieces[below].bytes
		       ? &pinned.pieces[below]
		       : NULL;
}

/* Never shrinks: an address outside is no piece's, one inside may be. */
static void extent_grow(const struct piece *piece)
{
	uint64_t low = atomic_load(&host_extent.low), span = atomic_load(&host_extent.span);
	uint64_t from = (uintptr_t)piece->base, to = from + piece->bytes;

	if (span && low < from)
		from = low;
	if (span && low + span > to)
		to = low + span;
	/* Whoever looks meanwhile sees too much. */
	atomic_store(&host_extent.span, UINT64_MAX);
	atomic_store(&host_extent.low, from);
	atomic_store(&host_extent.span, to - from);
}

static bool piece_add(const struct piece *piece)
{
	size_t at = (size_t)(piece_below(piece->base) + 1);

	if (pinned.piece_count == pinned.piece_room) {
		size_t room = pinned.piece_room ? 2 * pinned.piece_room : 64;
		struct piece *list = realloc(pinned.pieces, room * sizeof(*list));

		if (!list)
			return false;
		pinned.pieces = list;
		pinned.piece_room = room;
	}
	memmove(&pinned.pieces[at + 1], &pinned.pieces[at],
		(pinned.piece_count - at) * sizeof(*pinned.pieces));
	pinned.pieces[at] = *piece;
	pinned.pieces[at].id = ++pinned.last_piece;
	pinned.pieces[at].context = thread_self.number;
	pinned.pieces[at].home = context_current()->home;
	pinned.piece_count++;
	extent_grow(piece);
	return true;
}

static void piece_remove(struct piece *piece)
{
	size_t at = (size_t)(piece - pinned.pieces);

	memmove(&pinned.pieces[at], &pinned.pieces[at + 1],
		(--pinned.piece_count - at) * sizeof(*pinned.pieces));
}

static CUresult host_alloc(size_t bytes, unsigned flags, void **out)
{
	struct piece piece = {.bytes = bytes, .flags = flags};
	uint32_t units = (uint32_t)((bytes + HOST_UNIT - 1) / HOST_UNIT);
	uint32_t unit = BLOCKS_NONE;
	CUresult status = CUDA_SUCCESS;

	if (bytes > HOST_LARGEST) {
		status = segment_new((bytes + HOST_PAGE - 1) & ~(size_t)(HOST_PAGE - 1), false,
			&piece.segment);
		if (status)
			return status;
		piece.base = piece.segment->base;
	} else {
		for (struct segment *s = pinned.segments; s && unit == BLOCKS_NONE;
			s = s->next) {
			if (!s->shared || s->session != session_here())
				continue;
			unit = blocks_alloc(&s->map, units);
			piece.segment = s;
		}
		if (unit == BLOCKS_NONE) {
			status = segment_new(HOST_SHARED, true, &piece.segment);
			if (status)
				return status;
			unit = blocks_alloc(&piece.segment->map, units);
		}
		piece.base = piece.segment->base + (size_t)unit * HOST_UNIT;
	}
	if (!piece_add(&piece)) {
		if (piece.segment->shared)
			blocks_free(&piece.segment->map, unit, units);
		else
			segment_free(piece.segment);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = piece.base;
	return CUDA_SUCCESS;
}

bool host_find(const void *host, struct host_range *range)
{
	struct piece *piece;

	pthread_mutex_lock(&pinned.lock);
	piece = piece_at(host);
	if (piece)
		*range = (struct host_range){.base = piece->base,
			.bytes = piece->bytes,
			.flags = piece->flags,
			.id = piece->id,
			.context = piece->context,
			.registered = !piece->segment};
	pthread_mutex_unlock(&pinned.lock);
	return piece != NULL;
}

bool shim_pinned(const void *host, size_t n, struct frame_bulk *bulk)
{
	struct piece *piece;
	bool found = false;

	/* Most programs that copy pageable memory have none of it. */
	if (!atomic_load_explicit(&pinned.piece_count, memory_order_relaxed))
		return false;
	pthread_mutex_lock(&pinned.lock);
	piece = piece_at(host);
	if (piece && piece->segment && piece->segment->session == session_here() &&
		n <= piece->bytes - (size_t)((const unsigned char *)host - piece->base)) {
		*bulk = (struct frame_bulk){.segment = piece->segment->number,
			.length = (uint32_t)n,
			.offset =
				(uint64_t)((const unsigned char *)host - piece->segment->base)};
		atomic_store(&piece->segment->used, true);
		found = true;
	}
	pthread_mutex_unlock(&pinned.lock);
	return found;
}

void host_written_later(const void *host, uint64_t stream, uint64_t seq)
{
	struct piece *piece;

	pthread_mutex_lock(&pinned.lock);
	piece = piece_at(host);
	if (piece) {
		piece->out_seq = seq;
		piece->out_stream = stream;
	}
	pthread_mutex_unlock(&pinned.lock);
}

bool host_busy(const void *host)
{
	struct context *context = context_current();
	struct piece *piece;
	bool busy = false;

	if (!atomic_load_explicit(&pinned.piece_count, memory_order_relaxed))
		return false;
	pthread_mutex_lock(&pinned.lock);
	piece = piece_at(host);
	/* Only its own agent writes to it unawaited. */
	if (piece && piece->segment && piece->segment->session != session_here()) {
		busy = callback_outstanding();
	} else if (piece) {
		struct stream *stream = stream_find(piece->out_stream);

		if (piece->out_seq &&
			((stream && atomic_load(&stream->synced) >= piece->out_seq) ||
				(context && atomic_load(&context->synced) >= piece->out_seq)))
			piece->out_seq = 0;
		busy = piece->out_seq || callback_outstanding();
	}
	pthread_mutex_unlock(&pinned.lock);
	return busy;
}

/* ---- kernels ---- */

/* With the lock held. */
static CUresult piece_activate(struct piece *piece)
{
	CUresult status =
		piece->active ? CUDA_SUCCESS : mirror_activate(piece->base, piece->bytes);

	piece->active = piece->active || !status;
	piece->apart = !piece->active;
	return status;
}

/* AGAIN: though it could not the last time. */
static CUresult reach(uint64_t address, bool again)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE;
	struct piece *piece;

	pthread_mutex_lock(&pinned.lock);
	piece = piece_at((const void *)(uintptr_t)address);
	if (piece && (again || !piece->apart))
		status = piece_activate(piece);
	pthread_mutex_unlock(&pinned.lock);
	return status;
}

CUresult host_reach(uint64_t address)
{
	return reach(address, true);
}

void host_named(const void *words, size_t bytes)
{
	const unsigned char *at = words;

	for (size_t i = 0; i + 8 <= bytes; i += 8) {
		uint64_t word;

		memcpy(&word, at + i, 8);
		if (__builtin_expect(host_maybe(word), 0))
			reach(word, false);
	}
}

CUresult pinned_before(const void *body, size_t bytes)
{
	if (!host_any())
		return CUDA_SUCCESS;
	host_named(body, bytes);
	return mirror_before();
}

/* ---- the interface ---- */

CUresult hand_cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
	CUresult status;

	if (pp)
		*pp = NULL;
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
	/* A failure is for who asks for its device address, or names it to a kernel. */
	if (!status && Flags & CU_MEMHOSTALLOC_DEVICEMAP)
		host_reach((uintptr_t)*pp);
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
static bool piece_used(struct piece *piece)
{
	return (piece->segment && atomic_exchange(&piece->segment->used, false)) ||
	       piece->active;
}

/* With the lock held; nothing outstanding uses it. */
static void piece_free(struct piece *piece)
{
	struct segment *segment = piece->segment;

	if (piece->active)
		mirror_deactivate(piece->base, piece->bytes);
	if (segment && segment->shared)
		blocks_free(&segment->map,
			(uint32_t)((size_t)(piece->base - segment->base) / HOST_UNIT),
			(uint32_t)((piece->bytes + HOST_UNIT - 1) / HOST_UNIT));
	else if (segment)
		segment_free(segment);
	piece_remove(piece);
}

/* What was allocated (or registered) at P and not yet freed. */
static CUresult piece_release(void *p, bool registered, CUresult missing)
{
	struct context *home = NULL;
	struct piece *piece;

	pthread_mutex_lock(&pinned.lock);
	piece = piece_at(p);
	if (piece && !piece->segment == registered && piece->base == p && piece_used(piece))
		home = piece->home;
	pthread_mutex_unlock(&pinned.lock);
	if (home)
		host_drain_at(home);
	pthread_mutex_lock(&pinned.lock);
	piece = piece_at(p);
	if (!piece || !piece->segment != registered || piece->base != p)
		piece = NULL;
	else
		piece_free(piece);
	pthread_mutex_unlock(&pinned.lock);
	return piece ? CUDA_SUCCESS : missing;
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
	return p ? piece_release(p, false, CUDA_ERROR_INVALID_VALUE) : CUDA_SUCCESS;
}

CUresult hand_cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
	struct piece piece = {.base = p, .bytes = bytesize, .flags = Flags};
	CUresult status = CUDA_SUCCESS;
	long below;
	int device;

	if (!context_current())
		return context_missing();
	/* Nor is device memory the program's, or memory of a device that is not NVIDIA's here.
	 */
	if (!p || !bytesize || (uintptr_t)p + bytesize < (uintptr_t)p ||
		Flags & (unsigned)CU_MEMHOSTREGISTER_IOMEMORY || Flags & ~HOST_REGISTER_FLAGS ||
		memory_in_window((uintptr_t)p, &device))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&pinned.lock);
	below = piece_below((unsigned char *)p + bytesize - 1);
	if (below >= 0 &&
		pinned.pieces[below].base + pinned.pieces[below].bytes > (unsigned char *)p)
		status = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	else if (!piece_add(&piece))
		status = CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_unlock(&pinned.lock);
	if (!status && Flags & CU_MEMHOSTREGISTER_DEVICEMAP)
		host_reach((uintptr_t)p);
	return status;
}

CUresult hand_cuMemHostUnregister(void *p)
{
	struct memory_range range;

	if (!p || (memory_find((uintptr_t)p, &range) && range.base == (uintptr_t)p))
		return CUDA_ERROR_INVALID_VALUE;
	return piece_release(p, true, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
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
