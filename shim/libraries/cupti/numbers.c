/* SPDX-License-Identifier: Apache-2.0
 *
 * By which numbers records name contexts, streams and events.  What a handle was is never
 * another's, so that what is known stays true.
 */
#include <pthread.h>
#include <stdlib.h>

#include "shim/engine/lock.h"
#include "shim/libraries/cupti/cupti.h"

struct number {
	uint64_t key;	/* 0: empty */
	uint64_t other; /* a stream's context */
	uint64_t recording;
	uint32_t number;
};

/* Open addressing. */
struct numbers {
	struct number *at;
	size_t count, room; /* a power of two */
};

static struct {
	pthread_mutex_t lock;
	struct numbers contexts, streams, events;
	uint64_t recordings;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(all, all.lock, LOCK_CUPTI_NUMBERS);

static size_t place(const struct numbers *of, uint64_t key, uint64_t other)
{
	size_t at = (key * 0x9e3779b97f4a7c15u ^ other * 0xc2b2ae3d27d4eb4fu) >> 20;

	for (at &= of->room - 1; of->at[at].key; at = (at + 1) & (of->room - 1))
		if (of->at[at].key == key && of->at[at].other == other)
			break;
	return at;
}

static bool grow(struct numbers *of)
{
	struct numbers new = {.room = of->room ? 2 * of->room : 64, .count = of->count};

	new.at = calloc(new.room, sizeof(*new.at));
	if (!new.at)
		return false;
	for (size_t i = 0; i < of->room; i++)
		if (of->at[i].key)
			new.at[place(&new, of->at[i].key, of->at[i].other)] = of->at[i];
	free(of->at);
	*of = new;
	return true;
}

/* With the lock held. NULL: no memory; number 0: it is new. */
static struct number *entry(struct numbers *of, uint64_t key, uint64_t other)
{
	struct number *found;

	if (of->count * 2 >= of->room && !grow(of))
		return NULL;
	found = &of->at[place(of, key, other)];
	if (!found->key) {
		*found = (struct number){.key = key, .other = other};
		of->count++;
	}
	return found;
}

static uint32_t known(struct numbers *of, uint64_t key, uint64_t other)
{
	struct number *found;
	uint32_t number;

	pthread_mutex_lock(&all.lock);
	found = entry(of, key, other);
	number = found ? found->number : 0;
	pthread_mutex_unlock(&all.lock);
	return number;
}

static void learn(struct numbers *of, uint64_t key, uint64_t other, uint32_t number)
{
	struct number *found;

	pthread_mutex_lock(&all.lock);
	found = entry(of, key, other);
	if (found)
		found->number = number;
	pthread_mutex_unlock(&all.lock);
}

static uint32_t asked(struct numbers *of, uint64_t key, uint64_t other, enum profile_id what,
	CUcontext context, const void *handle)
{
	uint32_t number = known(of, key, other);
	uint64_t id = 0;

	if (number)
		return number;
	cupti_own++;
	if (vcuda_profile_id(what, context, handle, &id))
		id = 0;
	cupti_own--;
	if (id)
		learn(of, key, other, (uint32_t)id);
	return (uint32_t)id;
}

CUcontext number_current(void)
{
	CUcontext context = NULL;

	cupti_own++;
	if (cuCtxGetCurrent(&context))
		context = NULL;
	cupti_own--;
	return context;
}

uint32_t number_context(CUcontext context)
{
	if (!context)
		context = number_current();
	return context ? asked(&all.contexts, (uint64_t)(uintptr_t)context, 0,
				 PROFILE_ID_CONTEXT, context, NULL)
		       : 0;
}

uint32_t number_stream(CUcontext context, CUstream stream)
{
	if (!context)
		context = number_current();
	if (!stream)
		stream = CU_STREAM_LEGACY;
	return context ? asked(&all.streams, (uint64_t)(uintptr_t)stream,
				 (uint64_t)(uintptr_t)context, PROFILE_ID_STREAM, context,
				 stream)
		       : 0;
}

uint32_t number_event(CUevent event, bool records, uint64_t *recording)
{
	struct number *found;
	uint32_t number = 0;

	pthread_mutex_lock(&all.lock);
	found = event ? entry(&all.events, (uint64_t)(uintptr_t)event, 0) : NULL;
	if (found) {
		if (!found->number)
			found->number = (uint32_t)all.events.count;
		if (records)
			found->recording = ++all.recordings;
		number = found->number;
		*recording = found->recording;
	}
	pthread_mutex_unlock(&all.lock);
	return number;
}
