/* SPDX-License-Identifier: Apache-2.0
 *
 * Pinned host memory: see host.h.  Small pieces are cut from segments of 1 MiB; larger ones
 * have a segment each.
 */
#include "shim/driver/graph/capture.h"
#include "shim/driver/memory/pinned/host.h"
#include "shim/driver/memory/pinned/host_state.h"
#include "shim/driver/memory/memory.h"

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim/generated/cuda_hand.h"
#include "shim/engine/blocks.h"
#include "shim/driver/stream/function_order.h"
#include "shim/driver/context/context.h"
#include "shim/driver/memory/managed/managed.h"
#include "shim/driver/memory/mirror/mirror.h"
#include "shim/engine/driver.h"
#include "shim/engine/engine.h"
#include "shim/engine/attach/rejoin.h"
#include "shim/engine/session.h"
#include "shim/engine/statistics.h"
#include "shim/engine/status.h"
#include "shim/driver/stream/stream.h"
#include "shim/engine/thread.h"
#include "shim/engine/lock.h"

#define HOST_SHARED (1u << 20)	       /* a segment for small pieces */
#define HOST_LARGEST (HOST_SHARED / 4) /* larger ones get their own */
/* The sidecar reserves the memory before it answers: 1 GiB takes about 0.3 s. */
#define HOST_PIN_MS 60000

struct pinned pinned = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(host, pinned.lock, LOCK_HOST);

struct host_extent host_extent;

/* ---- segments ---- */

static CUresult segment_new(size_t size, bool shared, struct host_segment **out)
{
	struct channel_request request = {.op = CHANNEL_PIN, .size = size};
	struct channel_answer answer;
	struct host_segment *segment = calloc(1, sizeof(*segment));
	struct session *here = session_here();
	int fd = -1;
	uint32_t before;
	bool answered;
	void *wanted;

	if (!segment)
		return CUDA_ERROR_OUT_OF_MEMORY;
	wanted = mirror_place(size);
	statistics_event(STATISTICS_LOCAL_ROUND_TRIPS);
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

void host_segment_free(struct host_segment *segment)
{
	struct channel_request request = {.op = CHANNEL_UNPIN, .segment = segment->number};
	struct session_visit visit = session_visit(segment->session);
	struct host_segment **at = &pinned.segments;

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

long host_piece_below(const void *host)
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

struct host_piece *host_piece_at(const void *host)
{
	long below = host_piece_below(host);

	if (below < 0)
		return NULL;
	return (size_t)((const unsigned char *)host - pinned.pieces[below].base) <
			       pinned.pieces[below].bytes
		       ? &pinned.pieces[below]
		       : NULL;
}

void host_piece_idle(const struct host_piece *piece, bool more)
{
	if (piece->active)
		return;
	atomic_fetch_add(&host_extent.idle, more ? 1 : -1u);
	if (piece->flags & CU_MEMHOSTALLOC_DEVICEMAP)
		atomic_fetch_add(&host_extent.idle_mapped, more ? 1 : -1u);
}

/* Never shrinks: an address outside is no piece's, one inside may be. */
static void extent_grow(const struct host_piece *piece)
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

bool host_piece_add(const struct host_piece *piece)
{
	size_t at = (size_t)(host_piece_below(piece->base) + 1);

	if (pinned.piece_count == pinned.piece_room) {
		size_t room = pinned.piece_room ? 2 * pinned.piece_room : 64;
		struct host_piece *list = realloc(pinned.pieces, room * sizeof(*list));

		if (!list)
			return false;
		pinned.pieces = list;
		pinned.piece_room = room;
	}
	memmove(&pinned.pieces[at + 1], &pinned.pieces[at],
		(pinned.piece_count - at) * sizeof(*pinned.pieces));
	pinned.pieces[at] = *piece;
	pinned.pieces[at].id = ++pinned.last_piece;
	if (!piece->mapped) {
		pinned.pieces[at].context = thread_self.number;
		pinned.pieces[at].home = context_current()->home;
	}
	pinned.piece_count++;
	extent_grow(piece);
	host_piece_idle(piece, true);
	return true;
}

void host_piece_remove(struct host_piece *piece)
{
	size_t at = (size_t)(piece - pinned.pieces);

	host_piece_idle(piece, false);
	memmove(&pinned.pieces[at], &pinned.pieces[at + 1],
		(--pinned.piece_count - at) * sizeof(*pinned.pieces));
}

CUresult host_alloc(size_t bytes, unsigned flags, void **out)
{
	struct host_piece piece = {.bytes = bytes, .flags = flags};
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
		for (struct host_segment *s = pinned.segments; s && unit == BLOCKS_NONE;
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
	if (!host_piece_add(&piece)) {
		if (piece.segment->shared)
			blocks_free(&piece.segment->map, unit, units);
		else
			host_segment_free(piece.segment);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = piece.base;
	return CUDA_SUCCESS;
}

bool host_find(const void *host, struct host_range *range)
{
	struct host_piece *piece;

	pthread_mutex_lock(&pinned.lock);
	piece = host_piece_at(host);
	if (piece)
		*range = (struct host_range){.base = piece->base,
			.bytes = piece->bytes,
			.flags = piece->flags,
			.id = piece->id,
			.context = piece->context,
			.registered = !piece->segment && !piece->pooled && !piece->mapped,
			.pooled = piece->pooled,
			.mapped = piece->mapped != NULL,
			.writers = piece->access.writers};
	pthread_mutex_unlock(&pinned.lock);
	return piece != NULL;
}

bool host_mapped_all(const void *host, size_t n)
{
	const unsigned char *at = host, *const end = at + n;
	const struct host_piece *piece;

	pthread_mutex_lock(&pinned.lock);
	do {
		piece = host_piece_at(at);
		if (piece && (!piece->mapped || !(piece->access.readers || piece->access.host)))
			piece = NULL;
		if (piece)
			at = piece->base + piece->bytes;
	} while (piece && at < end);
	pthread_mutex_unlock(&pinned.lock);
	return piece != NULL;
}

bool host_numa(int node)
{
	char path[48];

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d", node);
	/* Kernels without NUMA have no such folder, and one node. */
	return !node || (node > 0 && !access(path, F_OK));
}

/* With the lock held. */
static bool piece_lent(
	const struct host_piece *piece, const void *host, size_t n, struct frame_bulk *bulk)
{
	const unsigned char *at = host;

	if (!piece->segment || piece->segment->session != session_here() ||
		n > piece->bytes - (size_t)(at - piece->base))
		return false;
	*bulk = (struct frame_bulk){.segment = piece->segment->number,
		.length = (uint32_t)n,
		.offset = (uint64_t)(at - piece->segment->base)};
	atomic_store_explicit(&piece->segment->used, true, memory_order_relaxed);
	return true;
}

bool shim_pinned(const void *host, size_t n, struct frame_bulk *bulk)
{
	struct host_piece *piece;
	bool found;

	/* Most programs that copy pageable memory have none of it. */
	if (!atomic_load_explicit(&pinned.piece_count, memory_order_relaxed))
		return false;
	pthread_mutex_lock(&pinned.lock);
	piece = host_piece_at(host);
	found = piece && piece_lent(piece, host, n, bulk);
	pthread_mutex_unlock(&pinned.lock);
	return found;
}

/* Whether OUT, of no stream that is known, is known to be done. */
static bool lost_done(const struct host_out *out)
{
	const struct context *context = context_current();

	return context && context->number == out->context &&
	       atomic_load(&context->synced) >= out->seq;
}

/* With the lock held: forgets the copies of PIECE that are known to be done. */
static void outs_reap(struct host_piece *piece)
{
	for (unsigned i = 0; i < HOST_OUTS; i++) {
		struct host_out *out = &piece->outs[i];

		if (out->seq && stream_reached(out->stream, out->context, out->seq))
			out->seq = 0;
	}
	if (piece->lost.seq && lost_done(&piece->lost))
		piece->lost.seq = 0;
}

void host_written_later(const void *host, uint64_t stream, uint64_t seq)
{
	const struct host_out now = {stream, seq, thread_self.number};
	struct host_piece *piece;
	struct host_out *free = NULL;

	pthread_mutex_lock(&pinned.lock);
	piece = host_piece_at(host);
	for (unsigned i = 0; piece && i < HOST_OUTS; i++) {
		struct host_out *out = &piece->outs[i];

		if (out->seq && out->stream == stream && out->context == now.context) {
			free = out;
			break;
		}
		if (!out->seq && !free)
			free = out;
	}
	if (piece && free)
		*free = now;
	else if (piece && (!piece->lost.seq || piece->lost.context == now.context))
		piece->lost = now;
	else if (piece)
		piece->lost.context = CONTEXT_NONE; /* of two: never known to be done */
	pthread_mutex_unlock(&pinned.lock);
}

bool host_piece_awaited(struct host_piece *piece)
{
	bool some;

	/* Only its own agent writes to it unawaited. */
	if (piece->segment && piece->segment->session != session_here())
		return false;
	outs_reap(piece);
	some = piece->lost.seq != 0;
	for (unsigned i = 0; i < HOST_OUTS && !some; i++)
		some = piece->outs[i].seq;
	return some;
}

bool host_busy(const void *host, uint64_t stream)
{
	struct host_piece *piece;
	bool busy;

	if (!atomic_load_explicit(&pinned.piece_count, memory_order_relaxed))
		return false;
	busy = function_outstanding() && function_outstanding_to(function_order_last(stream));
	pthread_mutex_lock(&pinned.lock);
	piece = host_piece_at(host);
	busy = piece && (busy || host_piece_awaited(piece));
	pthread_mutex_unlock(&pinned.lock);
	return busy;
}

bool host_lent(const void *host, size_t n, bool read, struct frame_bulk *bulk)
{
	struct host_piece *piece;
	bool lent;

	if (!host_maybe((uintptr_t)host) || (read && function_outstanding()))
		return false;
	pthread_mutex_lock(&pinned.lock);
	piece = host_piece_at(host);
	lent = piece && !(read && host_piece_awaited(piece)) &&
	       piece_lent(piece, host, n, bulk);
	pthread_mutex_unlock(&pinned.lock);
	return lent;
}
