/* SPDX-License-Identifier: Apache-2.0
 *
 * Payloads that go out over stripes: a thread each, started at the stripe's first payload,
 * which does nothing but send from staging.  The frame that names the stripe goes over the
 * link, so the order of answers is the link's.
 */
#include <string.h>

#include "common/wait.h"
#include "gpu-agent/worker/staging/staging.h"
#include "gpu-agent/worker/staging/stripe.h"
#include "gpu-agent/worker/worker_state.h"
#include "protocol/wire/session.h"

#define STACK (128u * 1024)

static int sender_send(struct stripe *stripe, const struct stripe_piece *piece)
{
	int ret;

	pthread_mutex_lock(&stripe->sending);
	ret = piece_send(
		&stripe->sender.pieces, stripe->link, piece->bytes, piece->n, &stripe->cut);
	pthread_mutex_unlock(&stripe->sending);
	return ret;
}

static bool sender_idle(const struct stripe *stripe)
{
	const struct stripe_sender *s = &stripe->sender;

	return atomic_load_explicit(&s->head, memory_order_acquire) ==
	       atomic_load_explicit(&s->tail, memory_order_relaxed);
}

/* What cannot be sent is let go all the same: its frame is not counted, and is kept. */
static void *sender_main(void *argument)
{
	struct stripe *stripe = argument;
	struct stripe_sender *s = &stripe->sender;

	for (uint32_t head = 0;
		wait_change(&s->tail, head, &s->asleep, &stripe->cut, stripe->spin_ns);) {
		const struct stripe_piece *piece = &s->queue[head % STRIPE_QUEUE];

		if (!atomic_load_explicit(&stripe->cut, memory_order_relaxed) &&
			!atomic_load_explicit(&s->broken, memory_order_relaxed) &&
			sender_send(stripe, piece))
			atomic_store_explicit(&s->broken, true, memory_order_relaxed);
		staging_sent(piece->range);
		atomic_store_explicit(&s->head, ++head, memory_order_release);
		if (sender_idle(stripe))
			piece_paused(&s->pieces);
	}
	atomic_store_explicit(&s->over, true, memory_order_release);
	return NULL;
}

static bool sender_start(struct stripe *stripe)
{
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	stripe->sender.started =
		!pthread_create(&stripe->sender.thread, &attributes, sender_main, stripe);
	pthread_attr_destroy(&attributes);
	return stripe->sender.started;
}

static bool sender_put(struct stripe *stripe, const struct stripe_piece *piece)
{
	struct stripe_sender *s = &stripe->sender;
	uint32_t tail = atomic_load_explicit(&s->tail, memory_order_relaxed);

	if (!atomic_load_explicit(&stripe->both, memory_order_acquire) ||
		atomic_load_explicit(&s->broken, memory_order_relaxed) ||
		tail - atomic_load_explicit(&s->head, memory_order_acquire) == STRIPE_QUEUE ||
		(!s->started && !sender_start(stripe)))
		return false;
	staging_sending(piece->range);
	s->queue[tail % STRIPE_QUEUE] = *piece;
	atomic_store_explicit(&s->tail, tail + 1, memory_order_release);
	wait_changed(&s->tail, &s->asleep);
	return true;
}

uint32_t stripes_send(
	struct worker *w, const unsigned char *bytes, uint32_t n, struct staging_range *range)
{
	const struct stripe_piece piece = {bytes, n, range};

	if (n < SESSION_STRIPE_SHARE || !range || !w->stripes.count ||
		!session_stripe_suits(n, wait_now(), &w->stripes.last))
		return 0;
	/* The first that has nothing to do: it worked last, and may be awake. */
	for (uint32_t i = 1; i <= SESSION_STRIPES; i++)
		if (stripe_there(w, i) && sender_idle(w->stripes.at[i]) &&
			sender_put(w->stripes.at[i], &piece))
			return i;
	for (uint32_t i = 0; i < SESSION_STRIPES; i++) {
		uint32_t number = w->stripes.next++ % SESSION_STRIPES + 1;

		if (stripe_there(w, number) && sender_put(w->stripes.at[number], &piece))
			return number;
	}
	return 0;
}

bool stripes_sending(const struct worker *w)
{
	for (uint32_t i = 1; i <= SESSION_STRIPES; i++) {
		if (w->stripes.at[i] && !sender_idle(w->stripes.at[i]))
			return true;
	}
	return false;
}

bool stripe_send_broken(const struct worker *w)
{
	for (uint32_t i = 1; i <= SESSION_STRIPES; i++)
		if (stripe_there(w, i) && atomic_load_explicit(&w->stripes.at[i]->sender.broken,
						  memory_order_relaxed))
			return true;
	return false;
}

void stripe_send_end(struct stripe *stripe)
{
	wait_wake(&stripe->sender.tail);
}

bool stripe_send_reset(struct stripe *stripe)
{
	struct stripe_sender *s = &stripe->sender;

	if (s->started) {
		if (!atomic_load_explicit(&s->over, memory_order_acquire))
			return false;
		pthread_join(s->thread, NULL);
	}
	piece_sender_fini(&s->pieces);
	memset(s, 0, sizeof(*s));
	return true;
}
