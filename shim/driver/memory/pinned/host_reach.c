/* SPDX-License-Identifier: Apache-2.0
 *
 * Which pinned memory kernels may come to use: what work names, and what is named in data that
 * goes to the device.
 */
#include "shim/driver/memory/pinned/host.h"
#include "shim/driver/memory/pinned/host_state.h"

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "shim/driver/graph/capture.h"
#include "shim/driver/memory/managed/managed.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/mirror/mirror.h"
#include "shim/driver/memory/pinned/words.h"
#include "shim/driver/stream/stream.h"
#include "shim/engine/driver.h"
#include "shim/engine/thread.h"

/* More of one copy is searched for addresses only where that was announced (host.h). */
#define HOST_CARRIED_MOST (64u << 10)
/* Words that are looked through together before any is looked at by itself, and so few that
 * each is at once. */
#define NAMED_TOGETHER 512u
#define NAMED_FEW 16u

/* With the lock held. */
static CUresult piece_activate(struct host_piece *piece)
{
	CUresult status = piece->active	  ? CUDA_SUCCESS
			  : piece->mapped ? vmm_host_reach(piece)
					  : mirror_activate(piece->base, piece->bytes);

	if (!status && !piece->active) {
		host_piece_idle(piece, false);
		piece->active = true;
	}
	piece->apart = !piece->active;
	return status;
}

/* Waits for a copy from the device that was not awaited. */
static void out_wait(const struct host_out *out)
{
	bool here = out->context == thread_self.number;

	if (!out->seq)
		return;
	if (here && (!out->stream || stream_find(out->stream))) {
		if (!capture_graph(out->stream))
			(void)sync_wait(SYNC_STREAM, out->stream, NULL);
	} else if (!capture_any()) {
		(void)sync_wait(SYNC_CONTEXT, 0, NULL);
	}
}

/* AGAIN: though it could not the last time. */
static CUresult reach(uint64_t address, bool again)
{
	const void *host = (const void *)(uintptr_t)address;
	CUresult status = CUDA_ERROR_INVALID_VALUE;
	struct host_out outs[HOST_OUTS + 1];
	struct host_piece *piece;

	pthread_mutex_lock(&pinned.lock);
	piece = host_piece_at(host);
	/* The mirror begins with what the program has there, so what is to be copied there
	 * before comes first. An error of the device is told by what comes next. */
	if (piece && !piece->active && (again || !piece->apart) && host_piece_awaited(piece)) {
		memcpy(outs, piece->outs, sizeof(piece->outs));
		outs[HOST_OUTS] = piece->lost;
		outs[HOST_OUTS].context = CONTEXT_NONE;
		pthread_mutex_unlock(&pinned.lock);
		for (unsigned i = 0; i <= HOST_OUTS; i++)
			out_wait(&outs[i]);
		pthread_mutex_lock(&pinned.lock);
		piece = host_piece_at(host);
	}
	if (piece && (again || !piece->apart))
		status = piece_activate(piece);
	pthread_mutex_unlock(&pinned.lock);
	return status;
}

/* Where what was registered behind the piece around ADDRESS begins, or ends before it, if the
 * two touch: a program may register a block in parts. 0: nothing. */
static uint64_t registered_beside(uint64_t address, bool behind)
{
	const struct host_piece *piece, *other = NULL;
	uint64_t beside = 0;

	pthread_mutex_lock(&pinned.lock);
	piece = host_piece_at((const void *)(uintptr_t)address);
	if (piece && !piece->segment)
		other = host_piece_at(behind ? piece->base + piece->bytes : piece->base - 1);
	if (other && !other->segment)
		beside = (uintptr_t)(behind ? other->base : other->base + other->bytes - 1);
	pthread_mutex_unlock(&pinned.lock);
	return beside;
}

/* With all that touches it. */
static CUresult reach_whole(uint64_t address, bool again)
{
	CUresult status = reach(address, again);

	for (int behind = 0; !status && behind < 2 && host_idle(); behind++)
		for (uint64_t at = registered_beside(address, behind); at;
			at = registered_beside(at, behind))
			reach(at, false);
	return status;
}

CUresult host_reach(uint64_t address)
{
	return reach_whole(address, true);
}

static void name_each(const unsigned char *at, size_t words)
{
	for (size_t i = 0; i < words; i++) {
		uint64_t word;

		memcpy(&word, at + 8 * i, 8);
		if (__builtin_expect(host_maybe(word), 0))
			reach_whole(word, false);
	}
}

void host_named(const void *words, size_t bytes)
{
	const unsigned char *at = words;
	size_t left = bytes / 8;

	while (left) {
		const size_t n = left < NAMED_TOGETHER ? left : NAMED_TOGETHER;

		if (n < NAMED_FEW || words_maybe_in(at, n, host_low(), host_span()))
			name_each(at, n);
		at += 8 * n;
		left -= n;
	}
}

bool host_carries(const void *bytes, size_t n, uint64_t to)
{
	const size_t skip = -to % 8;

	return host_idle() && n >= skip + 8 &&
	       words_maybe_in((const unsigned char *)bytes + skip, (n - skip) / 8, host_low(),
		       host_span());
}

void host_named_all(void)
{
	bool found = true;

	/* Whoever frees a piece, or makes one, changes the list. */
	for (size_t i = 0; found; i++) {
		uint64_t base = 0;

		pthread_mutex_lock(&pinned.lock);
		found = i < pinned.piece_count;
		if (found)
			base = (uintptr_t)pinned.pieces[i].base;
		pthread_mutex_unlock(&pinned.lock);
		if (found)
			reach(base, false);
	}
}

void host_carried(const void *bytes, size_t n, uint64_t to, size_t most)
{
	const size_t skip = -to % 8;

	if (!host_idle() || n < skip + 8 ||
		(most > HOST_CARRIED_MOST &&
			!atomic_load_explicit(&host_extent.idle_mapped, memory_order_relaxed)))
		return;
	host_named((const unsigned char *)bytes + skip, n - skip);
}

CUresult pinned_before(const void *body, size_t bytes)
{
	CUresult status = managed_words(body, bytes);

	if (status || !host_any())
		return status;
	host_named(body, bytes);
	return mirror_before();
}
