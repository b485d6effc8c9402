/* SPDX-License-Identifier: Apache-2.0
 *
 * Which textures and surfaces there are, by their numbers; and where those of arrays that have
 * their memory later have none.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "softgpu/ptx/internal.h"
#include "softgpu/ptx/texture.h"

/* As many numbers as were freed last are not given again, and stand for what they did: as on a
 * GPU, kernels may read a texture that was destroyed (COLMAP's do). */
#define NUMBERS_KEPT 256

struct slot {
	atomic_bool live, known;
	struct ptx_texture texture;
};

static struct {
	pthread_mutex_t lock;
	struct slot *slots; /* reserved at once, touched as far as used: entries never move */
	uint32_t *free;	    /* a ring: the oldest is taken first */
	uint32_t freed, taken, used;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *reserve(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

uint64_t ptx_texture_add(const struct ptx_texture *texture)
{
	uint32_t k, waiting;
	uint64_t number = 0;

	pthread_mutex_lock(&table.lock);
	if (!table.slots)
		table.slots = reserve(PTX_TEXTURES * sizeof(*table.slots));
	if (table.slots && !table.free)
		table.free = reserve(PTX_TEXTURES * sizeof(*table.free));
	waiting = table.freed - table.taken;
	if (table.free && (waiting || table.used < PTX_TEXTURES)) {
		k = waiting > NUMBERS_KEPT || table.used == PTX_TEXTURES
			    ? table.free[table.taken++ % PTX_TEXTURES]
			    : table.used++;
		table.slots[k].texture = *texture;
		atomic_store(&table.slots[k].live, true);
		atomic_store(&table.slots[k].known, true);
		number = k + 1;
	}
	pthread_mutex_unlock(&table.lock);
	return number;
}

void ptx_texture_remove(uint64_t number)
{
	pthread_mutex_lock(&table.lock);
	if (number - 1 < table.used && atomic_exchange(&table.slots[number - 1].live, false))
		table.free[table.freed++ % PTX_TEXTURES] = (uint32_t)(number - 1);
	pthread_mutex_unlock(&table.lock);
}

/* A texture that was removed may be another one while a kernel reads it; every texel's address
 * is checked, so that harms nobody else. */
const struct ptx_texture *ptx_texture_find(uint64_t number)
{
	struct slot *slot;

	if (number - 1 >= PTX_TEXTURES || !table.slots)
		return NULL;
	slot = &table.slots[number - 1];
	return atomic_load(&slot->known) ? &slot->texture : NULL;
}

static const atomic_uchar *_Atomic absent_map;

void ptx_absent_set(const atomic_uchar *map)
{
	absent_map = map;
}

bool ptx_texture_absent(const struct ptx_texture *t, uint64_t address)
{
	const uint64_t first = ptx_device_window.base >> PTX_ABSENT_SHIFT;

	return t->sparse && absent_map &&
	       address - ptx_device_window.base < ptx_device_window.span &&
	       atomic_load_explicit(&absent_map[(address >> PTX_ABSENT_SHIFT) - first],
		       memory_order_relaxed) == PTX_ABSENT;
}
