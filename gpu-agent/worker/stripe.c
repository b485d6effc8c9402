/* SPDX-License-Identifier: Apache-2.0
 *
 * Stripes at the worker's end: a thread each, which does nothing but receive into pinned memory
 * of its own, ahead of the frames that name the pieces.  The loop takes a piece when its
 * frame's turn has come, so the order of calls is the link's; the copying, which one core does
 * at a fraction of a fast wire's speed, is done by several.  The memory is the thread's to get,
 * too: the driver may make that wait for the GPU, and the loop must not.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/log.h"
#include "gpu-agent/worker/staging.h"
#include "gpu-agent/worker/stripe.h"
#include "gpu-agent/worker/worker_state.h"

#define STACK (128u * 1024)
#define SLOT_BYTES FRAME_PAYLOAD_MAX

static void stripe_ring(struct stripe *stripe)
{
	uint64_t one = 1;

	wait_fence();
	if (atomic_load_explicit(&stripe->awaited, memory_order_relaxed))
		(void)!write(stripe->wake, &one, sizeof(one));
}

static bool stripe_allocate(struct stripe *stripe)
{
	const struct cuda_driver *cuda = stripe->cuda;
	void *base = NULL;

	if (cuda->cuCtxSetCurrent(stripe->context) ||
		cuda->cuMemHostAlloc(
			&base, (size_t)STRIPE_SLOTS * SLOT_BYTES, CU_MEMHOSTALLOC_PORTABLE))
		return false;
	stripe->base = base;
	return true;
}

/* The client receives there, and waits until it hears that we are there: once. */
static int stripe_greet(struct stripe *stripe)
{
	struct session_piece nothing = {0};
	struct iovec iov = {&nothing, sizeof(nothing)};
	int ret = atomic_load_explicit(&stripe->both, memory_order_relaxed)
			  ? -EPROTO
			  : link_send_all(stripe->link, &iov, 1, &stripe->cut, NULL);

	if (!ret)
		atomic_store_explicit(&stripe->both, true, memory_order_release);
	return ret;
}

/* Before `over`. */
static void stripe_blame(struct stripe *stripe, int ret)
{
	if (ret == -EPROTO)
		atomic_store_explicit(&stripe->forged, true, memory_order_relaxed);
	else if (ret == -ENOMEM)
		atomic_store_explicit(&stripe->failed, true, memory_order_relaxed);
}

static void *stripe_main(void *argument)
{
	struct stripe *stripe = argument;
	bool ready = stripe->base || stripe_allocate(stripe);

	if (!ready)
		atomic_store_explicit(&stripe->failed, true, memory_order_relaxed);
	for (uint32_t filled = stripe->taken; ready;) {
		struct stripe_slot *slot = &stripe->slots[filled % STRIPE_SLOTS];
		struct session_piece piece;
		int ret;

		/* Until the oldest slot is free again. */
		if (!wait_change(&stripe->freed, filled - STRIPE_SLOTS, &stripe->asleep,
			    &stripe->cut, stripe->spin_ns) ||
			atomic_load_explicit(&stripe->cut, memory_order_relaxed))
			break;
		ret = piece_receive_head(&stripe->pieces, stripe->link, &piece);
		if (!ret && !piece.length) {
			if (stripe_greet(stripe))
				break;
			continue;
		}
		if (!ret)
			ret = piece_receive(&stripe->pieces, stripe->link, &piece,
				stripe->base + filled % STRIPE_SLOTS * SLOT_BYTES, &slot->fill);
		if (ret) {
			stripe_blame(stripe, ret);
			break;
		}
		slot->length = piece.length;
		slot->wire =
			(uint32_t)sizeof(piece) + (piece.coded ? piece.coded : piece.length);
		atomic_store_explicit(&stripe->filled, ++filled, memory_order_release);
		stripe_ring(stripe);
	}
	atomic_store_explicit(&stripe->over, true, memory_order_release);
	stripe_ring(stripe);
	return NULL;
}

static int stripe_start(struct worker *w, struct stripe *stripe)
{
	pthread_attr_t attributes;
	int ret;

	stripe->cuda = &w->cuda;
	stripe->context = w->devices[0].primary;
	stripe->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (stripe->wake < 0)
		return -errno;
	stripe->spin_ns = w->spin_ns ? SESSION_STRIPE_SPIN : 0;
	piece_receiver_init(&stripe->pieces, w->coded, &w->pieces_received);
	piece_sender_init(&stripe->sender.pieces, w->compress, &w->pieces_sent);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	ret = pthread_create(&stripe->thread, &attributes, stripe_main, stripe);
	pthread_attr_destroy(&attributes);
	return -ret;
}

void stripes_cut(struct worker *w)
{
	for (uint32_t i = 1; i <= SESSION_STRIPES; i++) {
		struct stripe *stripe = w->stripes[i];

		if (!stripe || atomic_exchange(&stripe->cut, true))
			continue;
		link_shut(stripe->link);
		wait_wake(&stripe->freed);
		stripe_send_end(stripe);
	}
}

/* One that was cut has its memory, of which the GPU may still read; else a new one. A thread
 * that has not ended waits for the driver, and the loop does not wait for it: it keeps what it
 * has for good. */
static struct stripe *stripe_alloc(struct stripe *old)
{
	if (!old || !atomic_load_explicit(&old->over, memory_order_acquire) ||
		!stripe_send_reset(old))
		return calloc(1, sizeof(*old));
	pthread_join(old->thread, NULL);
	piece_receiver_fini(&old->pieces);
	link_close(old->link);
	close(old->wake);
	old->link = NULL;
	atomic_store(&old->filled, old->taken);
	atomic_store(&old->over, false);
	atomic_store(&old->failed, false);
	atomic_store(&old->forged, false);
	atomic_store(&old->both, false);
	atomic_store(&old->cut, false);
	return old;
}

void stripe_open(struct worker *w, uint32_t number, const int fds[TRANSPORT_FDS])
{
	unsigned count = descriptors_count(fds, TRANSPORT_FDS);
	struct error error = {0};
	struct stripe *stripe;
	int ret;

	if (!count || !number || number > SESSION_STRIPES || stripe_there(w, number)) {
		log_error("lane.refused", "lane=%u fds=%u", number, count);
		while (count)
			close(fds[--count]);
		return;
	}
	stripe = stripe_alloc(w->stripes[number]);
	if (!stripe)
		ret = -ENOMEM;
	else if (w->transport->stripe)
		ret = w->transport->stripe(w->link, number, fds, count, &stripe->link, &error);
	else
		ret = w->transport->link(fds, count, TRANSPORT_AGENT, &stripe->link, &error);
	if (!ret)
		ret = stripe_start(w, stripe);
	if (ret) {
		worker_end(w, CUDA_ERROR_OUT_OF_MEMORY, "a stripe could not be opened: %s",
			strerror(-ret));
		return;
	}
	w->stripe_count += !w->stripes[number];
	w->stripes[number] = stripe;
	log_debug("lane.open", "lane=%u", number);
}

int stripe_receive(struct stripe *stripe, uint32_t n, unsigned char **bytes, uint32_t *fill,
	struct staging_range **range)
{
	struct stripe_slot *slot = &stripe->slots[stripe->taken % STRIPE_SLOTS];
	bool over = atomic_load_explicit(&stripe->over, memory_order_acquire);

	if (atomic_load_explicit(&stripe->filled, memory_order_acquire) == stripe->taken)
		return !over		       ? -EAGAIN
		       : stripe_forged(stripe) ? -EPROTO
		       : atomic_load_explicit(&stripe->failed, memory_order_relaxed)
			       ? -ENOMEM
			       : -ECONNRESET;
	if (slot->length != n)
		return -EPROTO;
	slot->range = (struct staging_range){.held = STAGING_FRAME};
	*range = &slot->range;
	*fill = (uint32_t)(slot->fill + 1);
	*bytes = stripe->base + stripe->taken % STRIPE_SLOTS * SLOT_BYTES;
	stripe->taken++;
	return 0;
}

bool stripe_forged(const struct stripe *stripe)
{
	return atomic_load_explicit(&stripe->forged, memory_order_relaxed);
}

uint32_t stripe_took(const struct stripe *stripe)
{
	return stripe->slots[(stripe->taken - 1) % STRIPE_SLOTS].wire;
}

void stripes_stats(struct worker *w)
{
	w->stats.bytes_sent =
		atomic_load_explicit(&w->sender.sent_bytes, memory_order_relaxed) +
		atomic_load(&w->pieces_sent.wire);
	w->stats.saved_received = piece_saved(&w->pieces_received);
	w->stats.saved_sent = piece_saved(&w->pieces_sent);
}

bool stripe_there(const struct worker *w, uint32_t number)
{
	return w->stripes[number] &&
	       !atomic_load_explicit(&w->stripes[number]->cut, memory_order_relaxed);
}

bool stripe_sleep(struct stripe *stripe)
{
	uint64_t rings;

	(void)!read(stripe->wake, &rings, sizeof(rings));
	atomic_store_explicit(&stripe->awaited, 1, memory_order_relaxed);
	wait_fence();
	if (atomic_load_explicit(&stripe->filled, memory_order_acquire) == stripe->taken &&
		!atomic_load_explicit(&stripe->over, memory_order_acquire))
		return true;
	stripe_awake(stripe);
	return false;
}

void stripe_awake(struct stripe *stripe)
{
	atomic_store_explicit(&stripe->awaited, 0, memory_order_relaxed);
}

bool stripes_busy(const struct worker *w)
{
	for (uint32_t i = 1; i <= SESSION_STRIPES; i++)
		if (w->stripes[i] &&
			w->stripes[i]->taken != atomic_load_explicit(&w->stripes[i]->freed,
							memory_order_relaxed))
			return true;
	return false;
}

void stripes_reap(struct worker *w)
{
	for (uint32_t i = 1; i <= SESSION_STRIPES && w->stripe_count; i++) {
		struct stripe *stripe = w->stripes[i];
		uint32_t freed;

		if (!stripe)
			continue;
		freed = atomic_load_explicit(&stripe->freed, memory_order_relaxed);
		while (freed != stripe->taken &&
			staging_idle(w, &stripe->slots[freed % STRIPE_SLOTS].range))
			freed++;
		if (freed == atomic_load_explicit(&stripe->freed, memory_order_relaxed))
			continue;
		atomic_store_explicit(&stripe->freed, freed, memory_order_release);
		wait_changed(&stripe->freed, &stripe->asleep);
	}
}

void stripes_forget(struct worker *w, uint16_t context)
{
	for (uint32_t i = 1; i <= SESSION_STRIPES; i++) {
		struct stripe *stripe = w->stripes[i];

		if (!stripe)
			continue;
		for (uint32_t at = atomic_load_explicit(&stripe->freed, memory_order_relaxed);
			at != stripe->taken; at++)
			staging_range_forget(
				w, &stripe->slots[at % STRIPE_SLOTS].range, context);
	}
}
