/* SPDX-License-Identifier: Apache-2.0 */
#include "sidecar/stripes.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/wait.h"

#define STACK (256u * 1024) /* a TLS handshake is made on it */
#define DIAL_NS 2000000000ull

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
	stripes->most = stripes->both ? SESSION_STRIPES : SESSION_STRIPES_ONE_WAY;
	for (int i = 0; i < SESSION_STRIPES; i++)
		stripes->at[i].stripes = stripes;
}

/* All of it, behind its head. 0, or -errno. */
static int stripe_send(struct stripe *stripe, const struct stripe_piece *piece)
{
	return piece_send(
		&stripe->sender, stripe->link, piece->bytes, piece->n, &stripe->stripes->stop);
}

/* Until *tail, which the channel moves, is not HEAD any more. False: it is over. */
static bool stripe_wait(const struct stripes *stripes, _Atomic uint32_t *tail,
	_Atomic uint32_t *asleep, uint32_t head)
{
	return wait_change(tail, head, asleep, &stripes->stop, stripes->spin) &&
	       !atomic_load(&stripes->stop);
}

/* One more in a queue that ends at *tail. */
static void stripe_queued(_Atomic uint32_t *tail, _Atomic uint32_t *asleep)
{
	atomic_fetch_add_explicit(tail, 1, memory_order_release);
	wait_changed(tail, asleep);
}

static void stripe_broke(struct stripe *stripe, int ret)
{
	uint64_t one = 1;

	if (atomic_load(&stripe->stripes->stop))
		return;
	log_warn("lane.broken", "lane=%u text=\"%s\"", stripe->number, strerror(-ret));
	if (ret == -EFAULT)
		atomic_store(&stripe->stripes->robbed, true);
	atomic_store(&stripe->state, STRIPE_BROKEN);
	(void)!write(stripe->stripes->wake, &one, sizeof(one));
}

static int stripe_receive(struct stripe *stripe, const struct stripe_place *place)
{
	struct piece_receiver *pieces = &stripe->receiver.pieces;
	unsigned char nowhere[4096];
	struct session_piece head;
	int ret = piece_receive_head(pieces, stripe->link, &head);

	if (ret || head.length != place->n)
		return ret ? ret : -EPROTO;
	if (place->to)
		return piece_receive(pieces, stripe->link, &head, place->to, NULL);
	for (uint32_t left = head.coded ? head.coded : place->n, n; left && !ret; left -= n) {
		n = left < sizeof(nowhere) ? left : (uint32_t)sizeof(nowhere);
		ret = link_receive_all(stripe->link, nowhere, n);
	}
	return ret;
}

static void *receiver_main(void *argument)
{
	struct stripe *stripe = argument;
	struct stripes *stripes = stripe->stripes;
	struct stripe_receiver *r = &stripe->receiver;
	uint64_t one = 1;

	segment_guard(stripes->segments);
	for (uint32_t n = 0; stripe_wait(stripes, &r->awaited, &r->asleep, n);) {
		int ret = stripe_receive(stripe, &r->places[n % STRIPE_PLACES]);

		if (ret || segment_broken()) {
			stripe_broke(stripe, segment_broken() ? -EFAULT : ret);
			break;
		}
		atomic_store_explicit(&r->landed, ++n, memory_order_release);
		wait_fence();
		if (atomic_load_explicit(&stripes->asleep, memory_order_relaxed))
			(void)!write(stripes->wake, &one, sizeof(one));
	}
	segment_guard(NULL);
	return NULL;
}

/* Each end says that it is there: an empty piece. 0, or -errno. */
static int stripe_greet(struct stripe *stripe)
{
	const struct stripe_piece nothing = {0};
	struct session_piece head;
	int ret = stripe_send(stripe, &nothing);

	if (!ret)
		ret = link_receive_all(stripe->link, &head, sizeof(head));
	return ret ? ret : head.length ? -EPROTO : 0;
}

static int receiver_start(struct stripe *stripe)
{
	struct stripes *stripes = stripe->stripes;
	pthread_attr_t attributes;
	int ret;

	piece_receiver_init(
		&stripe->receiver.pieces, stripes->coded, &stripes->counts->received);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	ret = pthread_create(&stripe->receiver.thread, &attributes, receiver_main, stripe);
	pthread_attr_destroy(&attributes);
	stripe->receiver.started = !ret;
	return -ret;
}

static bool stripe_idle(const struct stripe *stripe)
{
	return atomic_load_explicit(&stripe->head, memory_order_acquire) ==
	       atomic_load_explicit(&stripe->tail, memory_order_relaxed);
}

static int stripe_serve(struct stripe *stripe)
{
	struct stripes *stripes = stripe->stripes;
	uint32_t head = 0;
	int ret;

	piece_sender_init(&stripe->sender, stripes->compress, &stripes->counts->sent);
	ret = stripes->both ? stripe_greet(stripe) : 0;

	if (ret)
		return ret;
	/* Before the receiver is there, which may say that it broke. */
	atomic_store_explicit(&stripe->state, STRIPE_OPEN, memory_order_release);
	if (stripes->both)
		ret = receiver_start(stripe);
	while (!ret && stripe_wait(stripes, &stripe->tail, &stripe->asleep, head)) {
		ret = stripe_send(stripe, &stripe->queue[head % STRIPE_QUEUE]);
		if (segment_broken())
			ret = -EFAULT;
		if (!ret)
			atomic_store_explicit(&stripe->head, ++head, memory_order_release);
		if (stripe_idle(stripe))
			piece_paused(&stripe->sender);
	}
	return ret;
}

static void *stripe_main(void *argument)
{
	struct stripe *stripe = argument;
	struct stripes *stripes = stripe->stripes;
	struct error error = {0};
	int ret;

	if (stripes->place.transport->open_stripe(&stripes->place, &stripes->hello,
		    wait_now() + DIAL_NS, &stripe->number, &stripe->link, &error)) {
		/* The link and the other stripes carry everything; it only takes longer. */
		log_warn("lane.refused", "text=\"%s\"", error.text);
		atomic_store(&stripe->state, STRIPE_REFUSED);
		return NULL;
	}
	/* Who closes it sees this, or we see that it is to be closed. */
	atomic_store(&stripe->state, STRIPE_GREETING);
	if (atomic_load(&stripes->stop))
		return NULL;
	segment_guard(stripes->segments);
	ret = stripe_serve(stripe);
	if (ret)
		stripe_broke(stripe, ret);
	segment_guard(NULL);
	return NULL;
}

static void stripes_open(struct stripes *stripes)
{
	pthread_attr_t attributes;

	stripes->tried = true;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
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
	stripe_queued(&stripe->tail, &stripe->asleep);
	return true;
}

/* False: there are none yet. */
static bool stripes_bulk(struct stripes *stripes, uint32_t n)
{
	if (!stripes->possible || n < SESSION_STRIPE_LEAST)
		return false;
	if (stripes->tried)
		return true;
	stripes->bulk += n;
	if (stripes->bulk >= STRIPES_OPEN_AT)
		stripes_open(stripes);
	return false;
}

void stripes_came(struct stripes *stripes, uint32_t n)
{
	if (stripes->both)
		stripes_bulk(stripes, n);
}

unsigned stripes_queue(struct stripes *stripes, const unsigned char *bytes, uint32_t n)
{
	if (!stripes_bulk(stripes, n))
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
	stripe_queued(&r->awaited, &r->asleep);
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

static unsigned stripes_in(const struct stripes *stripes, enum stripe_state state)
{
	unsigned n = 0;

	for (int i = 0; i < SESSION_STRIPES; i++)
		n += atomic_load_explicit(&stripes->at[i].state, memory_order_relaxed) == state;
	return n;
}

static void counts_add(struct piece_counts *to, const struct piece_counts *counts)
{
	atomic_fetch_add(&to->payload, atomic_load(&counts->payload));
	atomic_fetch_add(&to->wire, atomic_load(&counts->wire));
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

		wait_wake(&stripe->tail);
		if (state >= STRIPE_GREETING)
			link_shut(stripe->link);
		pthread_join(stripe->thread, NULL);
		stripe->started = false;
		if (stripe->receiver.started) {
			wait_wake(&stripe->receiver.awaited);
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
