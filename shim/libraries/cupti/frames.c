/* SPDX-License-Identifier: Apache-2.0
 *
 * Which frame went to an agent by which call: the agents' records name frames.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/wire/channel.h"
#include "protocol/wire/class.h"
#include "shim/engine/lock.h"
#include "shim/libraries/cupti/cupti.h"

/* So many are known; the records of others are dropped. */
#define FRAMES_MAX (4u << 20)
#define LIBRARIES_MAX (1u << 20)
#define FRAMES_MUCH 200000u /* then the front's own thread hands out what there is */
#define FRAME_TURNS 8	    /* batches that a frame is known for */
#define FINISHES 256	    /* waits for all work that are known */

struct frames { /* of one agent */
	struct sent_frame *at;
	size_t count, room;
	bool sorted;
	size_t turns[FRAME_TURNS]; /* how many there were at the last batches, newest first */
	struct finish finishes[FINISHES]; /* a ring, in order */
	size_t finish_count;
};

static struct {
	pthread_mutex_t lock;
	struct frames frames[CHANNEL_AGENTS];
	struct library_call_seen *libraries;
	size_t library_count, library_room;
} store = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(frames, store.lock, LOCK_CUPTI_FRAMES);

/* With the lock held. UINT32_MAX: there is no room. */
static uint32_t library_add(const struct library_call_seen *seen)
{
	struct library_call_seen *at = record_room(store.libraries, store.library_count,
		&store.library_room, sizeof(*at), LIBRARIES_MAX);

	if (!at)
		return UINT32_MAX;
	store.libraries = at;
	at[store.library_count] = *seen;
	return (uint32_t)store.library_count++;
}

/* The last frame of the thread's call. */
static __thread struct {
	uint32_t correlation;
	unsigned agent;
	uint64_t seq;
} sent_last;

void frame_finished(const struct trace_call *call, uint64_t end)
{
	struct frames *of = &store.frames[sent_last.agent % CHANNEL_AGENTS];

	if (sent_last.correlation != call->number || !derive_is_finish(call))
		return;
	pthread_mutex_lock(&store.lock);
	of->finishes[of->finish_count++ % FINISHES] = (struct finish){sent_last.seq, end};
	pthread_mutex_unlock(&store.lock);
}

uint64_t frame_done(unsigned agent, uint64_t seq)
{
	const struct frames *of = &store.frames[agent % CHANNEL_AGENTS];
	uint64_t time = UINT64_MAX;
	size_t first;

	pthread_mutex_lock(&store.lock);
	first = of->finish_count > FINISHES ? of->finish_count - FINISHES : 0;
	for (size_t i = of->finish_count; i-- > first;) {
		const struct finish *one = &of->finishes[i % FINISHES];

		if (one->seq <= seq)
			break;
		if (one->time < time)
			time = one->time;
	}
	pthread_mutex_unlock(&store.lock);
	return time;
}

void frame_sent(const struct trace_call *call, unsigned agent, uint64_t seq, uint16_t op)
{
	struct sent_frame frame = {
		.seq = seq, .correlation = call ? call->number : 0, .library = UINT32_MAX};
	struct frames *of = &store.frames[agent % CHANNEL_AGENTS];
	struct library_call_seen seen;
	struct sent_frame *at;
	bool much = false;

	if (call ? !call->number : op < CLASS_LIBRARIES)
		return;
	if (call) {
		sent_last.correlation = call->number;
		sent_last.agent = agent;
		sent_last.seq = seq;
	} else {
		seen.time = cupti_time();
		seen.thread = record_thread();
		record_externals(&seen.ids);
	}
	pthread_mutex_lock(&store.lock);
	if (!call)
		frame.library = library_add(&seen);
	at = record_room(of->at, of->count, &of->room, sizeof(*at), FRAMES_MAX);
	if (at) {
		of->sorted = of->sorted && (!of->count || at[of->count - 1].seq < seq);
		of->at = at;
		at[of->count++] = frame;
		much = of->count % FRAMES_MUCH == 0;
	}
	pthread_mutex_unlock(&store.lock);
	if (much)
		deliver_soon();
}

static int by_seq(const void *a, const void *b)
{
	const struct sent_frame *x = a, *y = b;

	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

bool frame_find(unsigned agent, uint64_t seq, struct sent_frame *frame,
	struct library_call_seen *library)
{
	struct frames *of = &store.frames[agent % CHANNEL_AGENTS];
	struct sent_frame key = {.seq = seq}, *found = NULL;

	pthread_mutex_lock(&store.lock);
	/* Threads number their frames under the ring's lock, and come here behind it. */
	if (!of->sorted && of->count)
		qsort(of->at, of->count, sizeof(*of->at), by_seq);
	of->sorted = true;
	if (of->count)
		found = bsearch(&key, of->at, of->count, sizeof(*of->at), by_seq);
	if (found) {
		*frame = *found;
		if (found->library < store.library_count)
			*library = store.libraries[found->library];
	}
	pthread_mutex_unlock(&store.lock);
	return found != NULL;
}

/* With the lock held. */
static void frames_forget(struct frames *of)
{
	size_t gone = of->turns[FRAME_TURNS - 1];

	memmove(of->turns + 1, of->turns, (FRAME_TURNS - 1) * sizeof(of->turns[0]));
	of->turns[0] = of->count;
	if (!gone || gone > of->count)
		return;
	memmove(of->at, of->at + gone, (of->count - gone) * sizeof(*of->at));
	of->count -= gone;
	for (unsigned i = 0; i < FRAME_TURNS; i++)
		of->turns[i] -= of->turns[i] < gone ? of->turns[i] : gone;
}

void frames_end_batch(bool all)
{
	bool any = false;

	pthread_mutex_lock(&store.lock);
	for (unsigned i = 0; i < CHANNEL_AGENTS; i++) {
		struct frames *of = &store.frames[i];

		if (all) {
			free(of->at);
			*of = (struct frames){0};
		} else if (of->room) {
			frames_forget(of);
		}
		any = any || of->count;
	}
	if (!any) {
		free(store.libraries);
		store.libraries = NULL;
		store.library_count = store.library_room = 0;
	}
	pthread_mutex_unlock(&store.lock);
}
