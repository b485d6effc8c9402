/* SPDX-License-Identifier: Apache-2.0
 *
 * Lanes at the worker's end: a thread each, which does nothing but receive into pinned memory
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

#include "common/log.h"
#include "gpu-agent/worker/worker_state.h"

#define STACK (128u * 1024)
#define SLEEP_NS 1000000000ull
#define SLOT_BYTES FRAME_PAYLOAD_MAX

/* Until the oldest slot is free again. */
static void lane_wait(struct lane *lane, uint32_t filled)
{
	uint64_t since = wait_now();
	uint32_t freed;

	while (filled - (freed = atomic_load_explicit(&lane->freed, memory_order_acquire)) ==
		LANE_SLOTS) {
		if (wait_now() - since < lane->spin_ns) {
			wait_relax();
			continue;
		}
		atomic_store_explicit(&lane->asleep, 1, memory_order_relaxed);
		wait_fence();
		if (atomic_load_explicit(&lane->freed, memory_order_acquire) == freed)
			wait_sleep(&lane->freed, freed, SLEEP_NS);
		atomic_store_explicit(&lane->asleep, 0, memory_order_relaxed);
	}
}

static void lane_ring(struct lane *lane)
{
	uint64_t one = 1;

	wait_fence();
	if (atomic_load_explicit(&lane->awaited, memory_order_relaxed))
		(void)!write(lane->wake, &one, sizeof(one));
}

static bool lane_allocate(struct lane *lane)
{
	const struct cuda_driver *cuda = lane->cuda;
	void *base = NULL;

	if (cuda->cuCtxSetCurrent(lane->context) ||
		cuda->cuMemHostAlloc(
			&base, (size_t)LANE_SLOTS * SLOT_BYTES, CU_MEMHOSTALLOC_PORTABLE))
		return false;
	lane->base = base;
	return true;
}

static void *lane_main(void *argument)
{
	struct lane *lane = argument;
	bool ready = lane_allocate(lane);

	if (!ready)
		atomic_store_explicit(&lane->failed, true, memory_order_relaxed);
	for (uint32_t filled = 0; ready; filled++) {
		struct lane_slot *slot = &lane->slots[filled % LANE_SLOTS];
		struct session_piece piece;

		lane_wait(lane, filled);
		if (link_receive_all(lane->stripe, &piece, sizeof(piece)) ||
			piece.length > SLOT_BYTES ||
			link_receive_all(lane->stripe,
				lane->base + filled % LANE_SLOTS * SLOT_BYTES, piece.length))
			break;
		slot->length = piece.length;
		atomic_store_explicit(&lane->filled, filled + 1, memory_order_release);
		lane_ring(lane);
	}
	atomic_store_explicit(&lane->over, true, memory_order_release);
	lane_ring(lane);
	return NULL;
}

static int lane_start(struct worker *w, struct lane *lane)
{
	pthread_attr_t attributes;
	int ret;

	lane->cuda = &w->cuda;
	lane->context = w->devices[0].primary;
	lane->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (lane->wake < 0)
		return -errno;
	lane->spin_ns = w->spin_ns;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	ret = pthread_create(&lane->thread, &attributes, lane_main, lane);
	pthread_attr_destroy(&attributes);
	return -ret;
}

void lane_open(struct worker *w, uint32_t number, int fd)
{
	struct error error = {0};
	struct lane *lane;
	int ret;

	if (fd < 0 || !number || number > SESSION_LANES || w->lanes[number]) {
		log_error("lane.refused", "lane=%u fd=%d", number, fd);
		if (fd >= 0)
			close(fd);
		return;
	}
	lane = calloc(1, sizeof(*lane));
	ret = lane ? w->transport->link(&fd, 1, TRANSPORT_AGENT, &lane->stripe, &error)
		   : -ENOMEM;
	if (!ret)
		ret = lane_start(w, lane);
	if (ret) {
		worker_end(w, CUDA_ERROR_OUT_OF_MEMORY, "a lane could not be opened: %s",
			strerror(-ret));
		return;
	}
	w->lanes[number] = lane;
	w->lane_count++;
	log_debug("lane.open", "lane=%u", number);
}

int lane_take(
	struct lane *lane, uint32_t n, unsigned char **bytes, struct staging_range **range)
{
	struct lane_slot *slot = &lane->slots[lane->taken % LANE_SLOTS];
	bool over = atomic_load_explicit(&lane->over, memory_order_acquire);

	if (atomic_load_explicit(&lane->filled, memory_order_acquire) == lane->taken)
		return !over ? -EAGAIN
		       : atomic_load_explicit(&lane->failed, memory_order_relaxed)
			       ? -ENOMEM
			       : -ECONNRESET;
	if (slot->length != n)
		return -EPROTO;
	slot->range = (struct staging_range){0};
	*range = &slot->range;
	*bytes = lane->base + lane->taken % LANE_SLOTS * SLOT_BYTES;
	lane->taken++;
	return 0;
}

bool lane_sleep(struct lane *lane)
{
	uint64_t rings;

	(void)!read(lane->wake, &rings, sizeof(rings));
	atomic_store_explicit(&lane->awaited, 1, memory_order_relaxed);
	wait_fence();
	if (atomic_load_explicit(&lane->filled, memory_order_acquire) == lane->taken &&
		!atomic_load_explicit(&lane->over, memory_order_acquire))
		return true;
	lane_awake(lane);
	return false;
}

void lane_awake(struct lane *lane)
{
	atomic_store_explicit(&lane->awaited, 0, memory_order_relaxed);
}

bool lanes_busy(const struct worker *w)
{
	for (uint32_t i = 1; i <= SESSION_LANES; i++)
		if (w->lanes[i] &&
			w->lanes[i]->taken !=
				atomic_load_explicit(&w->lanes[i]->freed, memory_order_relaxed))
			return true;
	return false;
}

void lanes_reap(struct worker *w)
{
	for (uint32_t i = 1; i <= SESSION_LANES && w->lane_count; i++) {
		struct lane *lane = w->lanes[i];
		uint32_t freed;

		if (!lane)
			continue;
		freed = atomic_load_explicit(&lane->freed, memory_order_relaxed);
		while (freed != lane->taken &&
			staging_free(w, &lane->slots[freed % LANE_SLOTS].range))
			freed++;
		if (freed == atomic_load_explicit(&lane->freed, memory_order_relaxed))
			continue;
		atomic_store_explicit(&lane->freed, freed, memory_order_release);
		wait_fence();
		if (atomic_load_explicit(&lane->asleep, memory_order_relaxed))
			wait_wake(&lane->freed);
	}
}

void lanes_forget(struct worker *w, uint16_t context)
{
	for (uint32_t i = 1; i <= SESSION_LANES; i++) {
		struct lane *lane = w->lanes[i];

		if (!lane)
			continue;
		for (uint32_t at = atomic_load_explicit(&lane->freed, memory_order_relaxed);
			at != lane->taken; at++)
			staging_range_forget(w, &lane->slots[at % LANE_SLOTS].range, context);
	}
}
