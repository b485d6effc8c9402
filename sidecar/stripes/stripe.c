/* SPDX-License-Identifier: Apache-2.0 */
#include "sidecar/stripes/stripe.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/wait.h"

#define DIAL_NS 2000000000ull

/* Until *work, which others move, is not SEEN any more. False: it is over. */
static bool stripe_wait(const struct stripes *stripes, _Atomic uint32_t *work,
	_Atomic uint32_t *asleep, uint32_t seen)
{
	return wait_change(work, seen, asleep, &stripes->stop, stripes->spin) &&
	       !atomic_load(&stripes->stop);
}

void stripe_work(_Atomic uint32_t *work, _Atomic uint32_t *asleep)
{
	atomic_fetch_add_explicit(work, 1, memory_order_release);
	wait_changed(work, asleep);
}

/* The channel looks again at what it held back. */
static void stripes_tell(struct stripes *stripes)
{
	uint64_t one = 1;

	wait_fence();
	if (atomic_load_explicit(&stripes->held, memory_order_relaxed))
		(void)!write(stripes->wake, &one, sizeof(one));
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

/* The payload behind HEAD. */
static int stripe_receive(struct stripe *stripe, const struct session_piece *head,
	const struct stripe_place *place)
{
	struct piece_receiver *pieces = &stripe->receiver.pieces;
	unsigned char nowhere[4096];
	int ret = 0;

	if (head->length != place->n || pieces->marks)
		return -EPROTO;
	if (place->to)
		return piece_receive(pieces, stripe->link, head, place->to, NULL);
	for (uint32_t left = head->coded ? head->coded : place->n, n; left && !ret; left -= n) {
		n = left < sizeof(nowhere) ? left : (uint32_t)sizeof(nowhere);
		ret = link_receive_all(stripe->link, nowhere, n);
	}
	return ret;
}

/* What the agent says of names that were asked for. */
static int stripe_hear(struct stripe *stripe, const struct session_piece *head)
{
	uint64_t have;
	int ret = names_await(&stripe->names) ? piece_receive_plain(&stripe->receiver.pieces,
							stripe->link, head, &have, sizeof(have))
					      : -EPROTO;

	if (ret)
		return ret;
	names_hear(&stripe->names, head->length, have);
	stripe_work(&stripe->work, &stripe->asleep);
	return 0;
}

/* Until there is a place for payload N, or an answer to come. False: it is over. */
static bool receiver_wait(struct stripe *stripe, uint32_t n, bool payload)
{
	struct stripe_receiver *r = &stripe->receiver;

	for (;;) {
		uint32_t work = atomic_load_explicit(&r->work, memory_order_acquire);

		if (atomic_load_explicit(&r->awaited, memory_order_acquire) != n ||
			(!payload && names_await(&stripe->names)))
			return !atomic_load(&stripe->stripes->stop);
		if (!stripe_wait(stripe->stripes, &r->work, &r->asleep, work))
			return false;
	}
}

/* One of either. 1: payload N has landed; 0: none has; -ECANCELED: it is over; or -errno. */
static int receiver_turn(struct stripe *stripe, uint32_t n)
{
	struct stripe_receiver *r = &stripe->receiver;
	struct session_piece head;
	int ret;

	if (!receiver_wait(stripe, n, false))
		return -ECANCELED;
	ret = piece_receive_head(&r->pieces, stripe->link, &head);
	if (ret)
		return ret;
	if (r->pieces.marks & SESSION_PIECE_ASK)
		return stripe_hear(stripe, &head);
	if (!receiver_wait(stripe, n, true))
		return -ECANCELED;
	ret = stripe_receive(stripe, &head, &r->places[n % STRIPE_PLACES]);
	return ret ? ret : 1;
}

static void *receiver_main(void *argument)
{
	struct stripe *stripe = argument;
	struct stripes *stripes = stripe->stripes;
	struct stripe_receiver *r = &stripe->receiver;
	uint64_t one = 1;

	segment_guard(stripes->segments);
	for (uint32_t n = 0;;) {
		int ret = receiver_turn(stripe, n);

		if (ret == -ECANCELED)
			break;
		if (ret < 0 || segment_broken()) {
			stripe_broke(stripe, segment_broken() ? -EFAULT : ret);
			break;
		}
		if (!ret)
			continue;
		atomic_store_explicit(&r->landed, ++n, memory_order_release);
		wait_fence();
		if (atomic_load_explicit(&stripes->asleep, memory_order_relaxed))
			(void)!write(stripes->wake, &one, sizeof(one));
	}
	segment_guard(NULL);
	return NULL;
}

/* Each end says that it is there: an empty piece. The agent's may bring a seed. 0, or -errno.
 */
static int stripe_greet(struct stripe *stripe)
{
	const struct stripe_piece nothing = {0};
	struct session_names names;
	struct session_piece head;
	int ret = piece_send(&stripe->sender, stripe->link, nothing.bytes, nothing.n,
		&stripe->stripes->stop);

	if (!ret)
		ret = link_receive_all(stripe->link, &head, sizeof(head));
	if (ret || !head.coded || !stripe->stripes->named)
		return ret ? ret : head.length ? -EPROTO : 0;
	if (head.length || head.coded != sizeof(names))
		return -EPROTO;
	ret = link_receive_all(stripe->link, &names, sizeof(names));
	if (!ret)
		names_begin(&stripe->names, &names);
	return ret;
}

static int receiver_start(struct stripe *stripe)
{
	struct stripes *stripes = stripe->stripes;
	pthread_attr_t attributes;
	int ret;

	piece_receiver_init(
		&stripe->receiver.pieces, stripes->coded, &stripes->counts->received);
	stripe->receiver.pieces.names = stripe->names.on;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STRIPE_STACK);
	ret = pthread_create(&stripe->receiver.thread, &attributes, receiver_main, stripe);
	pthread_attr_destroy(&attributes);
	stripe->receiver.started = !ret;
	return -ret;
}

bool stripe_idle(const struct stripe *stripe)
{
	return atomic_load_explicit(&stripe->head, memory_order_acquire) ==
	       atomic_load_explicit(&stripe->tail, memory_order_relaxed);
}

/* Asks for some of what is queued behind HEAD. 0, 1: it did not, it did; or -errno. */
static int stripe_ask(struct stripe *stripe, uint32_t head)
{
	struct names *names = &stripe->names;
	uint32_t tail = atomic_load_explicit(&stripe->tail, memory_order_acquire), count;
	int ret;

	while (names_may_look(names, head, tail)) {
		const struct stripe_piece *piece = &stripe->queue[names->looked % STRIPE_QUEUE];
		unsigned char byte;

		names_look(names, piece->bytes, piece->n,
			stripe->sender.codes && codec_is_fill(piece->bytes, piece->n, &byte));
	}
	count = names->count;
	if (!count)
		return 0;
	names_ask(names);
	ret = piece_send_ask(
		&stripe->sender, stripe->link, names->question, count, &stripe->stripes->stop);
	stripe_work(&stripe->receiver.work, &stripe->receiver.asleep);
	return ret ? ret : 1;
}

/* Piece number HEAD, as the agent wants it. 0: it has not said; 1; or -errno. */
static int stripe_send(struct stripe *stripe, uint32_t head)
{
	const struct stripe_piece *piece = &stripe->queue[head % STRIPE_QUEUE];
	const struct session_name *name;
	enum names_way way =
		stripe->names.on ? names_of(&stripe->names, head, &name) : NAMES_AS_IT_IS;
	int ret;

	if (way == NAMES_UNKNOWN)
		return 0;
	if (way == NAMES_NAMED) {
		ret = piece_send_named(
			&stripe->sender, stripe->link, name, &stripe->stripes->stop);
	} else {
		stripe->sender.marks = way == NAMES_LACKING ? SESSION_PIECE_KEEP : 0;
		ret = piece_send(&stripe->sender, stripe->link, piece->bytes, piece->n,
			&stripe->stripes->stop);
	}
	return ret ? ret : 1;
}

/* What there is to do for piece number HEAD and those behind it. As stripe_send. */
static int stripe_turn(struct stripe *stripe, uint32_t head)
{
	int asked = 0, ret;

	if (stripe->names.on) {
		ret = names_heed(&stripe->names);
		if (!ret)
			ret = asked = stripe_ask(stripe, head);
		if (ret < 0)
			return ret;
	}
	if (stripe_idle(stripe))
		return 0;
	ret = stripe_send(stripe, head);
	/* A question that went out may be answered already. */
	return ret || !asked ? ret : -EAGAIN;
}

static int stripe_serve(struct stripe *stripe)
{
	struct stripes *stripes = stripe->stripes;
	uint32_t head = 0, work;
	int ret;

	piece_sender_init(&stripe->sender, stripes->compress, &stripes->counts->sent);
	ret = stripes->both ? stripe_greet(stripe) : 0;

	if (ret)
		return ret;
	/* Before the receiver is there, which may say that it broke. */
	atomic_store_explicit(&stripe->state, STRIPE_OPEN, memory_order_release);
	stripes_tell(stripes);
	if (stripes->both)
		ret = receiver_start(stripe);
	while (!ret) {
		work = atomic_load_explicit(&stripe->work, memory_order_acquire);
		ret = stripe_turn(stripe, head);
		if (segment_broken())
			ret = -EFAULT;
		if (ret > 0) {
			ret = 0;
			atomic_store_explicit(&stripe->head, ++head, memory_order_release);
			stripes_tell(stripes);
			if (stripe_idle(stripe))
				piece_paused(&stripe->sender);
		} else if (ret == -EAGAIN) {
			ret = 0;
		} else if (!ret &&
			   !stripe_wait(stripes, &stripe->work, &stripe->asleep, work)) {
			break;
		}
	}
	return ret;
}

void *stripe_main(void *argument)
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
		stripes_tell(stripes);
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
