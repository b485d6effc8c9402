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
#include <sys/mman.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/log.h"
#include "gpu-agent/uploads.h"
#include "gpu-agent/worker/staging/staging.h"
#include "gpu-agent/worker/staging/stripe.h"
#include "gpu-agent/worker/worker_state.h"

#define STACK (128u * 1024)
#define SLOT_BYTES FRAME_PAYLOAD_MAX
_Static_assert(STRIPE_SLOTS *SLOT_BYTES == UPLOADS_MEMORY, "agent-uploads knows the slots");

static void stripe_ring(struct stripe *stripe)
{
	uint64_t one = 1;

	wait_fence();
	if (atomic_load_explicit(&stripe->awaited, memory_order_relaxed))
		(void)!write(stripe->wake, &one, sizeof(one));
}

/* Memory that agent-uploads reads and writes, too, and that the driver takes. */
static bool stripe_allocate_shared(struct stripe *stripe)
{
	const struct cuda_driver *cuda = stripe->cuda;
	void *base;
	int memory;

	if (stripe->uploads.ask < 0 || !cuda->cuMemHostRegister_v2)
		return false;
	memory = uploads_memory(&base);
	if (memory < 0)
		return false;
	if (!cuda->cuMemHostRegister_v2(base, UPLOADS_MEMORY, CU_MEMHOSTREGISTER_PORTABLE)) {
		stripe->base = base;
		stripe->memory = memory;
		return true;
	}
	log_warn("uploads.memory", "text=\"the driver does not take shared memory\"");
	munmap(base, UPLOADS_MEMORY);
	close(memory);
	return false;
}

static bool stripe_allocate(struct stripe *stripe)
{
	const struct cuda_driver *cuda = stripe->cuda;
	void *base = NULL;

	if (cuda->cuCtxSetCurrent(stripe->context))
		return false;
	if (stripe_allocate_shared(stripe))
		return true;
	if (cuda->cuMemHostAlloc(
		    &base, (size_t)STRIPE_SLOTS * SLOT_BYTES, CU_MEMHOSTALLOC_PORTABLE))
		return false;
	stripe->base = base;
	return true;
}

/* The client receives there, and waits until it hears that we are there: once. */
static int stripe_greet(struct stripe *stripe)
{
	const struct uploads_lane_end *uploads = &stripe->uploads;
	struct session_names names = {.seed = uploads->seed};
	struct session_piece empty = {.coded = uploads->began ? sizeof(names) : 0};
	struct iovec iov[2] = {{&empty, sizeof(empty)}, {&names, sizeof(names)}};
	int ret = atomic_load_explicit(&stripe->both, memory_order_relaxed)
			  ? -EPROTO
			  : link_send_all(stripe->link, iov, uploads->began ? 2 : 1,
				    &stripe->cut, NULL);

	if (!ret)
		atomic_store_explicit(&stripe->both, true, memory_order_release);
	return ret;
}

/* What the client asks of HEAD's names. */
static int stripe_answer(struct stripe *stripe, const struct session_piece *head)
{
	struct session_name names[SESSION_NAMES_ASK];
	struct session_piece answer = {
		.length = SESSION_PIECE_ASK | head->length, .coded = sizeof(uint64_t)};
	uint64_t have;
	struct iovec iov[2] = {{&answer, sizeof(answer)}, {&have, sizeof(have)}};
	int ret = piece_receive_plain(&stripe->pieces, stripe->link, head, names,
		head->length * (uint32_t)sizeof(names[0]));

	if (ret || !atomic_load_explicit(&stripe->both, memory_order_relaxed))
		return ret ? ret : -EPROTO;
	have = uploads_ask(&stripe->uploads, names, head->length);
	pthread_mutex_lock(&stripe->sending);
	ret = link_send_all(stripe->link, iov, 2, &stripe->cut, NULL);
	pthread_mutex_unlock(&stripe->sending);
	return ret;
}

/* The next payload, into slot NUMBER. */
static int stripe_take(
	struct stripe *stripe, const struct session_piece *piece, uint32_t number)
{
	struct stripe_slot *slot = &stripe->slots[number];
	unsigned char *bytes = stripe->base + number * SLOT_BYTES;
	uint32_t marks = stripe->pieces.marks;
	int ret;

	uploads_drain(&stripe->uploads, number);
	slot->length = piece->length;
	slot->wire = (uint32_t)sizeof(*piece) + (piece->coded ? piece->coded : piece->length);
	if (marks & SESSION_PIECE_NAMED) {
		struct session_name name;

		slot->fill = -1;
		ret = piece_receive_named(&stripe->pieces, stripe->link, piece, &name);
		if (ret)
			return ret;
		/* It is not there any more: the client is to send all of it again. */
		return uploads_get(&stripe->uploads, &name, number) ? 0 : -ECONNRESET;
	}
	ret = piece_receive(&stripe->pieces, stripe->link, piece, bytes, &slot->fill);
	if (!ret && marks & SESSION_PIECE_KEEP && slot->fill < 0)
		uploads_keep(&stripe->uploads, number, piece->length);
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

/* Until there is room for payload COUNT. False: it is over. */
static bool stripe_has_room(struct stripe *stripe, uint32_t count)
{
	return wait_change(&stripe->freed, count - STRIPE_SLOTS, &stripe->asleep, &stripe->cut,
		       stripe->spin_ns) &&
	       !atomic_load_explicit(&stripe->cut, memory_order_relaxed);
}

/* Receives for as long as something comes. 0: it was told to end; else -errno. */
static int stripe_run(struct stripe *stripe)
{
	int ret = 0;

	for (uint32_t filled = stripe->taken; !ret;) {
		struct session_piece piece;

		ret = piece_receive_head(&stripe->pieces, stripe->link, &piece);
		if (ret)
			break;
		if (!piece.length) {
			ret = piece.coded ? -EPROTO : stripe_greet(stripe);
			continue;
		}
		if (stripe->pieces.marks & SESSION_PIECE_ASK) {
			ret = stripe_answer(stripe, &piece);
			continue;
		}
		if (!stripe_has_room(stripe, filled))
			break;
		ret = stripe_take(stripe, &piece, filled % STRIPE_SLOTS);
		if (ret)
			break;
		atomic_store_explicit(&stripe->filled, ++filled, memory_order_release);
		stripe_ring(stripe);
	}
	return ret;
}

static void *stripe_main(void *argument)
{
	struct stripe *stripe = argument;

	if (stripe->base || stripe_allocate(stripe)) {
		uploads_begin(&stripe->uploads, stripe->memory);
		stripe->pieces.names = stripe->uploads.began;
		stripe_blame(stripe, stripe_run(stripe));
		uploads_end(&stripe->uploads);
	} else {
		atomic_store_explicit(&stripe->failed, true, memory_order_relaxed);
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
	piece_receiver_init(&stripe->pieces, w->stripes.coded, &w->stripes.received);
	piece_sender_init(&stripe->sender.pieces, w->stripes.compress, &w->stripes.sent);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	ret = pthread_create(&stripe->thread, &attributes, stripe_main, stripe);
	pthread_attr_destroy(&attributes);
	return -ret;
}

void stripes_cut(struct worker *w)
{
	for (uint32_t i = 1; i <= SESSION_STRIPES; i++) {
		struct stripe *stripe = w->stripes.at[i];

		if (!stripe || atomic_exchange(&stripe->cut, true))
			continue;
		link_shut(stripe->link);
		wait_wake(&stripe->freed);
		stripe_send_end(stripe);
	}
}

static struct stripe *stripe_new(void)
{
	struct stripe *stripe = calloc(1, sizeof(*stripe));

	if (!stripe)
		return NULL;
	stripe->memory = stripe->uploads.ask = stripe->uploads.keep = -1;
	pthread_mutex_init(&stripe->sending, NULL);
	return stripe;
}

/* One that was cut has its memory, of which the GPU may still read; else a new one. A thread
 * that has not ended waits for the driver, and the loop does not wait for it: it keeps what it
 * has for good.  So does one whose memory agent-uploads may still write to. */
static struct stripe *stripe_alloc(struct stripe *old)
{
	if (!old || !atomic_load_explicit(&old->over, memory_order_acquire) ||
		old->uploads.may_write || !stripe_send_reset(old))
		return stripe_new();
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

static void stripe_drop_uploads(struct worker *w, uint32_t number)
{
	for (int i = 0; i < 2; i++)
		if (w->stripes.uploads[number][i])
			close(w->stripes.uploads[number][i]);
	memset(w->stripes.uploads[number], 0, sizeof(w->stripes.uploads[number]));
}

void stripe_uploads(struct worker *w, uint32_t number, const int fds[TRANSPORT_FDS])
{
	unsigned count = descriptors_count(fds, TRANSPORT_FDS);

	if (!number || number > SESSION_STRIPES || count != 2) {
		while (count)
			close(fds[--count]);
		return;
	}
	stripe_drop_uploads(w, number);
	memcpy(w->stripes.uploads[number], fds, sizeof(w->stripes.uploads[number]));
}

/* The lane that came before it, where there is one. */
static void stripe_join_uploads(struct worker *w, struct stripe *stripe, uint32_t number)
{
	stripe->uploads = (struct uploads_lane_end){.ask = -1, .keep = -1};
	if (!w->stripes.uploads[number][0])
		return;
	stripe->uploads.ask = w->stripes.uploads[number][0];
	stripe->uploads.keep = w->stripes.uploads[number][1];
	memset(w->stripes.uploads[number], 0, sizeof(w->stripes.uploads[number]));
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
	stripe = stripe_alloc(w->stripes.at[number]);
	if (stripe)
		stripe_join_uploads(w, stripe, number);
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
	w->stripes.count += !w->stripes.at[number];
	w->stripes.at[number] = stripe;
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
		atomic_load(&w->stripes.sent.wire);
	w->stats.saved_received = piece_saved(&w->stripes.received);
	w->stats.saved_sent = piece_saved(&w->stripes.sent);
}

bool stripe_there(const struct worker *w, uint32_t number)
{
	return w->stripes.at[number] &&
	       !atomic_load_explicit(&w->stripes.at[number]->cut, memory_order_relaxed);
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
		if (w->stripes.at[i] && w->stripes.at[i]->taken !=
						atomic_load_explicit(&w->stripes.at[i]->freed,
							memory_order_relaxed))
			return true;
	return false;
}

void stripes_reap(struct worker *w)
{
	for (uint32_t i = 1; i <= SESSION_STRIPES && w->stripes.count; i++) {
		struct stripe *stripe = w->stripes.at[i];
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
		struct stripe *stripe = w->stripes.at[i];

		if (!stripe)
			continue;
		for (uint32_t at = atomic_load_explicit(&stripe->freed, memory_order_relaxed);
			at != stripe->taken; at++)
			staging_range_forget(
				w, &stripe->slots[at % STRIPE_SLOTS].range, context);
	}
}
