/* SPDX-License-Identifier: Apache-2.0 */
#include "sidecar/stripes.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/wait.h"

#define STACK (128u * 1024)
#define DIAL_NS 2000000000ull
#define SLEEP_NS 1000000000ull
#define STALL_MS 1000 /* between looks at `stop` while the wire takes nothing */

void lanes_init(struct lanes *lanes, struct link *link, const struct session_hello *hello,
	const struct session_welcome *welcome, int wake, uint64_t spin)
{
	memset(lanes, 0, sizeof(*lanes));
	lanes->wake = wake;
	lanes->spin = spin;
	lanes->hello = *hello;
	memcpy(lanes->hello.session, welcome->session, sizeof(welcome->session));
	memcpy(lanes->hello.secret, welcome->secret, sizeof(welcome->secret));
	lanes->place = link->place;
	lanes->possible = welcome->features & SESSION_FEATURE_LANES && lanes->place.transport;
	for (int i = 0; i < SESSION_LANES; i++)
		lanes->at[i].lanes = lanes;
}

/* All of it, behind its length. 0, or -errno. */
static int lane_send(struct lane *lane, const struct lane_piece *piece)
{
	struct session_piece head = {.length = piece->n};
	struct iovec all[2] = {{&head, sizeof(head)}, {(void *)piece->bytes, piece->n}};
	struct iovec *iov = all;
	int count = 2;

	while (count) {
		ssize_t sent = link_send(lane->stripe, iov, count);
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
			link_fds(lane->stripe, fds, 1);
			poll(fds + 1, 1, STALL_MS);
		} else {
			return (int)sent;
		}
		if (atomic_load_explicit(&lane->lanes->stop, memory_order_relaxed))
			return -ECANCELED;
	}
	return 0;
}

/* Until there is a piece, or it is over. */
static bool lane_wait(struct lane *lane, uint32_t head)
{
	uint64_t since = wait_now();

	while (atomic_load_explicit(&lane->tail, memory_order_acquire) == head) {
		if (atomic_load(&lane->lanes->stop))
			return false;
		if (wait_now() - since < lane->lanes->spin) {
			wait_relax();
			continue;
		}
		atomic_store_explicit(&lane->asleep, 1, memory_order_relaxed);
		wait_fence();
		if (atomic_load_explicit(&lane->tail, memory_order_acquire) == head &&
			!atomic_load(&lane->lanes->stop))
			wait_sleep(&lane->tail, head, SLEEP_NS);
		atomic_store_explicit(&lane->asleep, 0, memory_order_relaxed);
	}
	return !atomic_load(&lane->lanes->stop);
}

static void lane_broke(struct lane *lane, const char *why)
{
	uint64_t one = 1;

	if (atomic_load(&lane->lanes->stop))
		return;
	log_warn("lane.broken", "lane=%u text=\"%s\"", lane->number, why);
	atomic_store(&lane->state, LANE_BROKEN);
	(void)!write(lane->lanes->wake, &one, sizeof(one));
}

static void *lane_main(void *argument)
{
	struct lane *lane = argument;
	struct lanes *lanes = lane->lanes;
	struct error error = {0};
	uint32_t head = 0;

	if (lanes->place.transport->open_stripe(&lanes->place, &lanes->hello,
		    wait_now() + DIAL_NS, &lane->number, &lane->stripe, &error)) {
		/* The link and the other lanes carry everything; it only takes longer. */
		log_warn("lane.refused", "text=\"%s\"", error.text);
		atomic_store(&lane->state, LANE_REFUSED);
		return NULL;
	}
	atomic_store_explicit(&lane->state, LANE_OPEN, memory_order_release);
	while (lane_wait(lane, head)) {
		const struct lane_piece *piece = &lane->queue[head % LANE_QUEUE];
		int ret = lane_send(lane, piece);

		if (ret < 0) {
			lane_broke(lane, strerror(-ret));
			return NULL;
		}
		atomic_store_explicit(&lane->head, ++head, memory_order_release);
	}
	return NULL;
}

static void lanes_open(struct lanes *lanes)
{
	pthread_attr_t attributes;

	lanes->tried = true;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	for (int i = 0; i < SESSION_LANES; i++) {
		struct lane *lane = &lanes->at[i];

		atomic_store(&lane->state, LANE_DIALING);
		lane->started = !pthread_create(&lane->thread, &attributes, lane_main, lane);
		if (!lane->started) {
			log_warn("lane.refused", "text=\"no thread to send with\"");
			atomic_store(&lane->state, LANE_REFUSED);
		}
	}
	pthread_attr_destroy(&attributes);
}

static bool lane_put(struct lane *lane, const unsigned char *bytes, uint32_t n)
{
	uint32_t tail = atomic_load_explicit(&lane->tail, memory_order_relaxed);

	if (atomic_load_explicit(&lane->state, memory_order_acquire) != LANE_OPEN ||
		tail - atomic_load_explicit(&lane->head, memory_order_acquire) == LANE_QUEUE)
		return false;
	lane->queue[tail % LANE_QUEUE] = (struct lane_piece){bytes, n};
	atomic_store_explicit(&lane->tail, tail + 1, memory_order_release);
	wait_fence();
	if (atomic_load_explicit(&lane->asleep, memory_order_relaxed))
		wait_wake(&lane->tail);
	return true;
}

unsigned lanes_take(struct lanes *lanes, const unsigned char *bytes, uint32_t n)
{
	if (!lanes->possible || n < LANE_LEAST)
		return 0;
	lanes->bulk += n;
	if (!lanes->tried) {
		if (lanes->bulk >= LANES_OPEN_AT)
			lanes_open(lanes);
		return 0;
	}
	for (int i = 0; i < SESSION_LANES; i++) {
		struct lane *lane = &lanes->at[lanes->next++ % SESSION_LANES];

		if (lane_put(lane, bytes, n))
			return lane->number;
	}
	return 0;
}

bool lanes_idle(const struct lanes *lanes)
{
	for (int i = 0; i < SESSION_LANES; i++)
		if (atomic_load_explicit(&lanes->at[i].head, memory_order_acquire) !=
			atomic_load_explicit(&lanes->at[i].tail, memory_order_relaxed))
			return false;
	return true;
}

static unsigned lanes_in(const struct lanes *lanes, enum lane_state state)
{
	unsigned n = 0;

	for (int i = 0; i < SESSION_LANES; i++)
		n += atomic_load_explicit(&lanes->at[i].state, memory_order_relaxed) == state;
	return n;
}

unsigned lanes_count(const struct lanes *lanes)
{
	return lanes_in(lanes, LANE_OPEN);
}

unsigned lanes_refused(const struct lanes *lanes)
{
	return lanes_in(lanes, LANE_REFUSED);
}

bool lanes_broken(const struct lanes *lanes)
{
	return lanes_in(lanes, LANE_BROKEN);
}

void lanes_close(struct lanes *lanes)
{
	atomic_store(&lanes->stop, true);
	for (int i = 0; i < SESSION_LANES; i++) {
		struct lane *lane = &lanes->at[i];

		if (!lane->started)
			continue;
		wait_wake(&lane->tail);
		if (atomic_load(&lane->state) == LANE_OPEN)
			link_shut(lane->stripe);
		pthread_join(lane->thread, NULL);
		lane->started = false;
		link_close(lane->stripe);
		lane->stripe = NULL;
	}
	explicit_bzero(&lanes->hello, sizeof(lanes->hello));
}
