/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of live handles: an open hash from address to kind.  A handle that is not in it is
 * never followed, so a stale or made-up one costs an error and not a crash.
 */
#include "softgpu/driver/softgpu.h"

#include <stdlib.h>

struct slot {
	const void *object; /* NULL: never used; TOMBSTONE: was */
	enum object_kind kind;
};

static const char tombstone;
#define TOMBSTONE ((const void *)&tombstone)

static pthread_mutex_t object_lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot *slots;
static size_t slot_count, slots_taken, objects_live; /* slot_count is a power of two */

static size_t object_hash(const void *object)
{
	return (size_t)(((uintptr_t)object >> 4) * 0x9e3779b97f4a7c15u >> 20);
}

static struct slot *object_slot(const void *object)
{
	if (!slot_count)
		return NULL;
	for (size_t i = object_hash(object);; i++) {
		struct slot *slot = &slots[i & (slot_count - 1)];

		if (slot->object == object)
			return slot;
		if (!slot->object)
			return NULL;
	}
}

static void object_put(const void *object, enum object_kind kind)
{
	size_t i = object_hash(object);

	while (slots[i & (slot_count - 1)].object)
		i++;
	slots[i & (slot_count - 1)] = (struct slot){object, kind};
	slots_taken++;
}

/* Room for one more with half of the slots empty; tombstones go. */
static bool object_grow(void)
{
	struct slot *old = slots;
	size_t old_count = slot_count, count = 256;

	if (slot_count && slots_taken + 1 <= slot_count / 2)
		return true;
	while (count < 4 * (objects_live + 1))
		count *= 2;
	slots = calloc(count, sizeof(*slots));
	if (!slots) {
		slots = old;
		return false;
	}
	slot_count = count;
	slots_taken = 0;
	for (size_t i = 0; i < old_count; i++)
		if (old[i].object && old[i].object != TOMBSTONE)
			object_put(old[i].object, old[i].kind);
	free(old);
	return true;
}

bool object_add(const void *object, enum object_kind kind)
{
	bool room;

	pthread_mutex_lock(&object_lock);
	room = object_grow();
	if (room) {
		object_put(object, kind);
		objects_live++;
	}
	pthread_mutex_unlock(&object_lock);
	return room;
}

void object_remove(const void *object)
{
	struct slot *slot;

	pthread_mutex_lock(&object_lock);
	slot = object_slot(object);
	if (slot) {
		*slot = (struct slot){TOMBSTONE, OBJECT_NONE};
		objects_live--;
	}
	pthread_mutex_unlock(&object_lock);
}

enum object_kind object_kind(const void *handle)
{
	struct slot *slot;
	enum object_kind kind = OBJECT_NONE;

	if (!handle || handle == TOMBSTONE)
		return OBJECT_NONE;
	pthread_mutex_lock(&object_lock);
	slot = object_slot(handle);
	if (slot)
		kind = slot->kind;
	pthread_mutex_unlock(&object_lock);
	return kind;
}
