/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that was freed on a stream: see later.h.  A list of a few, the oldest first: one more
 * frees the oldest.
 */
#include "shim/driver/memory/later.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "shim/driver/memory/heap.h"
#include "shim/driver/memory/memory.h"
#include "shim/engine/lock.h"

#define LATER_MOST 16 /* times SLAB_LARGEST: the most bytes that are kept */

struct later {
	CUdeviceptr address;
	uint64_t id; /* of the allocation: its address may be another's by now */
	uint64_t stream;
	uint16_t context;
};

static struct {
	pthread_mutex_t lock;
	_Atomic unsigned count; /* read without the lock too */
	struct later at[LATER_MOST];
} later = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(later, later.lock, LOCK_LATER);

/* With the lock held. */
static CUresult entry_free(unsigned i)
{
	struct later gone = later.at[i];
	struct memory_range range;

	later.count--;
	memmove(&later.at[i], &later.at[i + 1], (later.count - i) * sizeof(*later.at));
	if (!memory_find(gone.address, &range) || range.id != gone.id)
		return CUDA_SUCCESS;
	return memory_free(gone.address);
}

CUresult later_free(CUdeviceptr address, uint64_t stream, uint16_t context)
{
	struct memory_range range;
	CUresult status = CUDA_SUCCESS;

	if (!memory_find(address, &range) || range.base != address || range.async ||
		range.reserved || range.global || range.bytes > SLAB_LARGEST)
		return memory_free(address);
	pthread_mutex_lock(&later.lock);
	for (unsigned i = 0; i < later.count; i++)
		if (later.at[i].id == range.id) {
			pthread_mutex_unlock(&later.lock);
			return CUDA_SUCCESS;
		}
	if (later.count == LATER_MOST)
		status = entry_free(0);
	later.at[later.count++] = (struct later){
		.address = address, .id = range.id, .stream = stream, .context = context};
	pthread_mutex_unlock(&later.lock);
	return status;
}

static bool free_those(
	bool (*are)(const struct later *, const struct later *), const struct later *argument)
{
	bool any = false;

	if (!atomic_load_explicit(&later.count, memory_order_relaxed))
		return false;
	pthread_mutex_lock(&later.lock);
	for (unsigned i = later.count; i--;)
		if (are(&later.at[i], argument)) {
			entry_free(i);
			any = true;
		}
	pthread_mutex_unlock(&later.lock);
	return any;
}

static bool of_stream(const struct later *one, const struct later *argument)
{
	return one->stream == argument->stream &&
	       (one->stream || one->context == argument->context);
}

static bool of_context(const struct later *one, const struct later *argument)
{
	return one->context == argument->context;
}

static bool every(const struct later *one, const struct later *argument)
{
	(void)one;
	(void)argument;
	return true;
}

void later_synced(uint64_t stream, uint16_t context)
{
	free_those(of_stream, &(struct later){.stream = stream, .context = context});
}

void later_context(uint16_t context)
{
	free_those(of_context, &(struct later){.context = context});
}

bool later_all(void)
{
	return free_those(every, NULL);
}
