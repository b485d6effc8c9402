/* SPDX-License-Identifier: Apache-2.0 */
#include "sidecar/stripes.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/wait.h"

#define STACK (256u * 1024) /* a TLS handshake is made on it */
#define DIAL_NS 2000000000ull
#define SLEEP_NS 1000000000ull
#define STALL_MS 1000 /* between looks at `stop` while the wire takes nothing */

void stripes_init(struct stripes *stripes, struct link *link, const struct session_hello *hello,
	const struct session_welcome *welcome, int wake, uint64_t spin)
{
	memset(stripes, 0, sizeof(*stripes));
	stripes->wake = wake;
	stripes->spin = spin;
	stripes->hello = *hello;
	memcpy(stripes->hello.session, welcome->session, sizeof(welcome->session));
	memcpy(stripes->hello.secret, welcome->secret, sizeof(welcome->secret));
	stripes->place = link->place;
	stripes->possible =
		welcome->features & SESSION_FEATURE_STRIPES && stripes->place.transport;
	for (int i = 0; i < SESSION_STRIPES; i++)
		stripes->at[i].stripes = stripes;
}

/* All of it, behind its length. 0, or -errno. */
static int stripe_send(struct stripe *stripe, const struct stripe_piece *piece)
{
	struct session_piece head = {.length = piece->n};
	struct iovec all[2] = {{&head, sizeof(head)}, {(void *)piece->bytes, piece->n}};
	struct iovec *iov = all;
	int count = 2;

	while (count) {
		ssize_t sent = link_send(stripe->link, iov, count);
		struct pollfd fds[2];

		if (sent >= 0) {
			while (count && (size_t)sent >= iov->iov_len) {
				sent -= (ssize_t)iov->iov_len;
				iov++;
				count--;
			}
			if (count) {
				iov->iov_base = (char *)iov->iov_base + sent;
				iov->iov_len -= (size_t)sent;
			}
		} else if (sent == -EAGAIN) {
			link_fds(stripe->link, fds, 1);
			poll(fds + 1, 1, STALL_MS);
		} else {
			return (int)sent;
		}
		if (atomic_load_explicit(&stripe->stripes->stop, memory_order_relaxed))
			return -ECANCELED;
	}
	return 0;
}

/* Until there is a piece, or it is over. */
static bool stripe_wait(struct stripe *stripe, uint32_t head)
{
	uint64_t since = wait_now();

	while (atomic_load_explicit(&stripe->tail, memory_order_acquire) == head) {
		if (atomic_load(&stripe->stripes->stop))
			return false;
		if (wait_now() - since < stripe->stripes->spin) {
			wait_relax();
			continue;
		}
		atomic_store_explicit(&stripe->asleep, 1, memory_order_relaxed);
		wait_fence();
		if (atomic_load_explicit(&stripe->tail, memory_order_acquire) == head &&
			!atomic_load(&stripe->stripes->stop))
			wait_sleep(&stripe->tail, head, SLEEP_NS);
		atomic_store_explicit(&stripe->asleep, 0, memory_order_relaxed);
	}
	return !atomic_load(&stripe->stripes->stop);
}

static void stripe_broke(struct stripe *stripe, const char *why)
{
	uint64_t one = 1;

	if (atomic_load(&stripe->stripes->stop))
		return;
	log_warn("lane.broken", "lane=%u text=\"%s\"", stripe->number, why);
	atomic_store(&stripe->state, STRIPE_BROKEN);
	(void)!write(stripe->stripes->wake, &one, sizeof(one));
}

static void *stripe_main(void *argument)
{
	struct stripe *stripe = argument;
	struct stripes *stripes = stripe->stripes;
	struct error error = {0};
	uint32_t head = 0;

	if (stripes->place.transport->open_stripe(&stripes->place, &stripes->hello,
		    wait_now() + DIAL_NS, &stripe->number, &stripe->link, &error)) {
		/* The link and the other stripes carry everything; it only takes longer. */
		log_warn("lane.refused", "text=\"%s\"", error.text);
		atomic_store(&stripe->state, STRIPE_REFUSED);
		return NULL;
	}
	atomic_store_explicit(&stripe->state, STRIPE_OPEN, memory_order_release);
	while (stripe_wait(stripe, head)) {
		const struct stripe_piece *piece = &stripe->queue[head % STRIPE_QUEUE];
		int ret = stripe_send(stripe, piece);

		if (ret < 0) {
			stripe_broke(stripe, strerror(-ret));
			return NULL;
		}
		atomic_store_explicit(&stripe->head, ++head, memory_order_release);
	}
	return NULL;
}

static void stripes_open(struct stripes *stripes)
{
	pthread_attr_t attributes;

	stripes->tried = true;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	for (int i = 0; i < SESSION_STRIPES; i++) {
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
	wait_fence();
	if (atomic_load_explicit(&stripe->asleep, memory_order_relaxed))
		wait_wake(&stripe->tail);
	return true;
}

unsigned stripes_queue(struct stripes *stripes, const unsigned char *bytes, uint32_t n)
{
	if (!stripes->possible || n < STRIPE_LEAST)
		return 0;
	stripes->bulk += n;
	if (!stripes->tried) {
		if (stripes->bulk >= STRIPES_OPEN_AT)
			stripes_open(stripes);
		return 0;
	}
	for (int i = 0; i < SESSION_STRIPES; i++) {
		struct stripe *stripe = &stripes->at[stripes->next++ % SESSION_STRIPES];

		if (stripe_put(stripe, bytes, n))
			return stripe->number;
	}
	return 0;
}

bool stripes_idle(const struct stripes *stripes)
{
	for (int i = 0; i < SESSION_STRIPES; i++)
		if (atomic_load_explicit(&stripes->at[i].head, memory_order_acquire) !=
			atomic_load_explicit(&stripes->at[i].tail, memory_order_relaxed))
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

void stripes_close(struct stripes *stripes)
{
	atomic_store(&stripes->stop, true);
	for (int i = 0; i < SESSION_STRIPES; i++) {
		struct stripe *stripe = &stripes->at[i];

		if (!stripe->started)
			continue;
		wait_wake(&stripe->tail);
		if (atomic_load(&stripe->state) == STRIPE_OPEN)
			link_shut(stripe->link);
		pthread_join(stripe->thread, NULL);
		stripe->started = false;
		link_close(stripe->link);
		stripe->link = NULL;
	}
	explicit_bzero(&stripes->hello, sizeof(stripes->hello));
}
