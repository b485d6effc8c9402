/* SPDX-License-Identifier: Apache-2.0 */
#include "sidecar/stripes/stripes.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/wait.h"
#include "sidecar/stripes/stripe.h"

/* Named payloads wait for the stripes: dialing, and pinned memory at the agent. */
#define HOLD_NS 3000000000ull
#define FULL_NS 1000000000ull

void stripes_init(struct stripes *stripes, struct link *link, const struct session_hello *hello,
	const struct session_welcome *welcome, const struct stripes_setting *setting)
{
	memset(stripes, 0, sizeof(*stripes));
	stripes->wake = setting->wake;
	stripes->spin = setting->spin ? SESSION_STRIPE_SPIN : 0;
	stripes->segments = setting->segments;
	stripes->counts = setting->counts;
	stripes->coded = welcome->features & SESSION_FEATURE_ZSTD;
	stripes->compress = stripes->coded ? setting->compress : CONTROLLER_OFF;
	stripes->hello = *hello;
	memcpy(stripes->hello.session, welcome->session, sizeof(welcome->session));
	memcpy(stripes->hello.secret, welcome->secret, sizeof(welcome->secret));
	stripes->place = link->place;
	stripes->possible =
		welcome->features & SESSION_FEATURE_STRIPES && stripes->place.transport;
	stripes->both = welcome->features & SESSION_FEATURE_STRIPES_BACK;
	stripes->named = stripes->both && welcome->features & SESSION_FEATURE_NAMES;
	stripes->most = stripes->both ? SESSION_STRIPES : SESSION_STRIPES_ONE_WAY;
	for (int i = 0; i < SESSION_STRIPES; i++)
		stripes->at[i].stripes = stripes;
}

static void stripes_open(struct stripes *stripes)
{
	pthread_attr_t attributes;

	stripes->tried = true;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STRIPE_STACK);
	for (unsigned i = 0; i < stripes->most; i++) {
		struct stripe *stripe = &stripes->at[i];

		atomic_store(&stripe->state, STRIPE_DIALING);
		stripe->started =
			!pthread_create(&stripe->thread, &attributes, stripe_main, stripe);
		if (!stripe->started) {
			log_warn("lane.refused", "text=\"no thread to send with\"");
			atomic_store(&stripe->state, STRIPE_REFUSED);
		}
	}
	pthread_attr_destroy(&attributes);
}

static bool stripe_put(struct stripe *stripe, const unsigned char *bytes, uint32_t n)
{
	uint32_t tail = atomic_load_explicit(&stripe->tail, memory_order_relaxed);

	if (atomic_load_explicit(&stripe->state, memory_order_acquire) != STRIPE_OPEN ||
		tail - atomic_load_explicit(&stripe->head, memory_order_acquire) ==
			STRIPE_QUEUE)
		return false;
	stripe->queue[tail % STRIPE_QUEUE] = (struct stripe_piece){bytes, n};
	atomic_store_explicit(&stripe->tail, tail + 1, memory_order_release);
	stripe_work(&stripe->work, &stripe->asleep);
	return true;
}

unsigned stripes_streams(const struct stripes *stripes)
{
	return stripes->possible && stripes->both && !stripes->named ? stripes->most : 0;
}

/* A payload of a large copy: where payloads are named, also the rest behind whole pieces. */
static bool stripes_large(struct stripes *stripes, uint32_t n)
{
	if (stripes->named)
		return n >= SESSION_STRIPE_LEAST ||
		       (stripes->whole && n >= SESSION_NAMES_LEAST);
	return n >= SESSION_STRIPE_SHARE && session_stripe_suits(n, wait_now(), &stripes->last);
}

/* False: there are none yet. */
static bool stripes_bulk(struct stripes *stripes, uint32_t n)
{
	if (!stripes->possible || !stripes_large(stripes, n))
		return false;
	if (stripes->tried)
		return true;
	stripes->bulk += n;
	if (stripes->bulk >= STRIPES_OPEN_AT)
		stripes_open(stripes);
	return false;
}

static unsigned stripes_in(const struct stripes *stripes, enum stripe_state state)
{
	unsigned n = 0;

	for (int i = 0; i < SESSION_STRIPES; i++)
		n += atomic_load_explicit(&stripes->at[i].state, memory_order_relaxed) == state;
	return n;
}

/* Of those that are open each has as much as it takes. */
static bool stripes_full(const struct stripes *stripes)
{
	for (int i = 0; i < SESSION_STRIPES; i++) {
		const struct stripe *stripe = &stripes->at[i];

		if (atomic_load_explicit(&stripe->state, memory_order_acquire) == STRIPE_OPEN &&
			atomic_load_explicit(&stripe->tail, memory_order_relaxed) -
					atomic_load_explicit(
						&stripe->head, memory_order_acquire) <
				STRIPE_QUEUE)
			return false;
	}
	return true;
}

static bool stripes_awaited(struct stripes *stripes, uint64_t *until)
{
	uint64_t now = wait_now();

	if (stripes_in(stripes, STRIPE_OPEN)) {
		*until = now + FULL_NS;
		return stripes_full(stripes) && !stripes_broken(stripes);
	}
	*until = stripes->hold_until;
	return now < *until && !stripes_broken(stripes) &&
	       stripes_in(stripes, STRIPE_DIALING) + stripes_in(stripes, STRIPE_GREETING);
}

bool stripes_hold(struct stripes *stripes, uint32_t n, uint64_t *until)
{
	bool waits;

	if (!stripes->named || !stripes->possible || !stripes_large(stripes, n))
		return false;
	if (!stripes->tried) {
		stripes->hold_until = wait_now() + HOLD_NS;
		stripes_open(stripes);
	}
	/* Who changes what is looked at sees that it is awaited, or we see the change. */
	atomic_store_explicit(&stripes->held, true, memory_order_relaxed);
	wait_fence();
	waits = stripes_awaited(stripes, until);
	if (!waits)
		atomic_store_explicit(&stripes->held, false, memory_order_relaxed);
	return waits;
}

void stripes_came(struct stripes *stripes, uint32_t n)
{
	if (stripes->both)
		stripes_bulk(stripes, n);
}

unsigned stripes_queue(struct stripes *stripes, const unsigned char *bytes, uint32_t n)
{
	bool bulk = stripes_bulk(stripes, n);

	stripes->whole = n >= FRAME_CHUNK;
	if (!bulk)
		return 0;
	/* The first that has nothing to do: it worked last, and may be awake. */
	for (int i = 0; i < SESSION_STRIPES; i++)
		if (stripe_idle(&stripes->at[i]) && stripe_put(&stripes->at[i], bytes, n))
			return stripes->at[i].number;
	for (int i = 0; i < SESSION_STRIPES; i++) {
		struct stripe *stripe = &stripes->at[stripes->next++ % SESSION_STRIPES];

		if (stripe_put(stripe, bytes, n))
			return stripe->number;
	}
	return 0;
}

static const struct stripe *stripe_numbered(const struct stripes *stripes, unsigned number)
{
	for (int i = 0; i < SESSION_STRIPES; i++) {
		const struct stripe *stripe = &stripes->at[i];
		uint32_t state = atomic_load_explicit(&stripe->state, memory_order_acquire);

		if (state >= STRIPE_GREETING && stripe->number == number)
			return stripe;
	}
	return NULL;
}

int stripes_await(struct stripes *stripes, unsigned number, unsigned char *to, uint32_t n,
	uint32_t *ticket)
{
	const struct stripe *found = stripes->both ? stripe_numbered(stripes, number) : NULL;
	struct stripe_receiver *r = found ? &stripes->at[found - stripes->at].receiver : NULL;

	if (!r)
		return -EPROTO;
	*ticket = atomic_load_explicit(&r->awaited, memory_order_relaxed);
	if (*ticket - atomic_load_explicit(&r->landed, memory_order_acquire) == STRIPE_PLACES)
		return -EAGAIN;
	r->places[*ticket % STRIPE_PLACES] = (struct stripe_place){to, n};
	atomic_store_explicit(&r->awaited, *ticket + 1, memory_order_release);
	stripe_work(&r->work, &r->asleep);
	return 0;
}

bool stripes_landed(const struct stripes *stripes, unsigned number, uint32_t ticket)
{
	const struct stripe *stripe = stripe_numbered(stripes, number);

	return stripe &&
	       (int32_t)(atomic_load_explicit(&stripe->receiver.landed, memory_order_acquire) -
			 ticket) > 0;
}

void stripes_sleep(struct stripes *stripes, bool asleep)
{
	atomic_store_explicit(&stripes->asleep, asleep, memory_order_relaxed);
	wait_fence();
}

bool stripes_idle(const struct stripes *stripes)
{
	for (int i = 0; i < SESSION_STRIPES; i++)
		if (!stripe_idle(&stripes->at[i]))
			return false;
	return true;
}

static void counts_add(struct piece_counts *to, const struct piece_counts *counts)
{
	atomic_fetch_add(&to->payload, atomic_load(&counts->payload));
	atomic_fetch_add(&to->wire, atomic_load(&counts->wire));
	atomic_fetch_add(&to->named, atomic_load(&counts->named));
	atomic_fetch_add(&to->named_bytes, atomic_load(&counts->named_bytes));
	for (unsigned kind = 0; kind < CODEC_KINDS; kind++)
		atomic_fetch_add(&to->pieces[kind], atomic_load(&counts->pieces[kind]));
}

void stripes_add(struct stripes_counts *to, const struct stripes_counts *counts)
{
	counts_add(&to->sent, &counts->sent);
	counts_add(&to->received, &counts->received);
}

unsigned stripes_count(const struct stripes *stripes)
{
	return stripes_in(stripes, STRIPE_OPEN);
}

unsigned stripes_refused(const struct stripes *stripes)
{
	return stripes_in(stripes, STRIPE_REFUSED);
}

bool stripes_broken(const struct stripes *stripes)
{
	return stripes_in(stripes, STRIPE_BROKEN);
}

bool stripes_robbed(const struct stripes *stripes)
{
	return atomic_load(&stripes->robbed);
}

void stripes_close(struct stripes *stripes)
{
	atomic_store(&stripes->stop, true);
	for (int i = 0; i < SESSION_STRIPES; i++) {
		struct stripe *stripe = &stripes->at[i];

		if (!stripe->started)
			continue;
		uint32_t state = atomic_load(&stripe->state);

		wait_wake(&stripe->work);
		if (state >= STRIPE_GREETING)
			link_shut(stripe->link);
		pthread_join(stripe->thread, NULL);
		stripe->started = false;
		if (stripe->receiver.started) {
			wait_wake(&stripe->receiver.work);
			pthread_join(stripe->receiver.thread, NULL);
			stripe->receiver.started = false;
		}
		piece_sender_fini(&stripe->sender);
		piece_receiver_fini(&stripe->receiver.pieces);
		link_close(stripe->link);
		stripe->link = NULL;
	}
	explicit_bzero(&stripes->hello, sizeof(stripes->hello));
}
