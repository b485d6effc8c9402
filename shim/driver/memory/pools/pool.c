/* SPDX-License-Identifier: Apache-2.0
 *
 * Pools: see pool.h.
 */
#include "shim/driver/forms.h"
#include "shim/driver/memory/pools/pool.h"
#include "shim/driver/memory/pools/pool_memory.h"
#include "shim/driver/memory/pools/pool_state.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "shim/engine/handle.h"
#include "shim/driver/memory/later.h"
#include "shim/driver/memory/memory.h"
#include "shim/engine/lock.h"

struct pools pools = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(pool, pools.lock, LOCK_POOL);

struct pool *pool_of(CUmemoryPool pool)
{
	return shim_object_of((uint64_t)(uintptr_t)pool, KIND_CUmemoryPool);
}

struct pool *pool_new(const struct pool_place *place)
{
	struct pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	pool->place = *place;
	pool->device = place->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? place->location.id
									   : CU_DEVICE_INVALID;
	for (int i = 0; i < 4; i++)
		pool->policies[i] = 1;
	pool->handle = shim_mint(KIND_CUmemoryPool, pool);
	if (!pool->handle) {
		free(pool);
		return NULL;
	}
	pool->next = pools.all;
	pools.all = pool;
	return pool;
}

bool pool_place_is(const struct pool_place *a, const struct pool_place *b)
{
	return a->kind == b->kind && a->location.type == b->location.type &&
	       a->location.id == b->location.id;
}

struct pool *pool_default_at(const struct pool_place *place)
{
	struct pool **at = place->kind == POOL_DEVICE ? &pools.defaults[place->location.id]
						      : &pools.defaults_others;

	while (*at && !pool_place_is(&(*at)->place, place))
		at = &(*at)->next_default;
	if (!*at) {
		*at = pool_new(place);
		if (*at)
			(*at)->is_default = true;
	}
	return *at;
}

struct pool *pool_current_at(const struct pool_place *place)
{
	struct pool *pool = pool_default_at(place);

	return pool && pool->current ? pool->current : pool;
}

struct pool *pool_default(int device)
{
	const struct pool_place place = pool_place_on(device);

	return pool_default_at(&place);
}

struct pool *pool_current(int device)
{
	const struct pool_place place = pool_place_on(device);

	return pool_current_at(&place);
}

static struct pool_piece **bucket_of(CUdeviceptr address)
{
	return &pools.live[((address >> 9) * 0x9E3779B97F4A7C15u >> 54) % POOL_BUCKETS];
}

struct pool_piece **pool_piece_find(CUdeviceptr address)
{
	struct pool_piece **at = bucket_of(address);

	while (*at && (*at)->address != address)
		at = &(*at)->next;
	return *at ? at : NULL;
}

uint64_t pool_reserved(const struct pool *pool)
{
	return pool->units.holds * POOL_UNIT;
}

void pool_piece_add(struct pool_piece *piece, size_t asked)
{
	struct pool_piece **at = bucket_of(piece->address);
	struct pool *pool = piece->pool;

	piece->next = *at;
	*at = piece;
	piece->asked = asked;
	piece->place = pool_units_alloc(&pool->units, asked);
	if (pool_reserved(pool) > pool->reserved_high)
		pool->reserved_high = pool_reserved(pool);
	pool->used += asked;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
}

void pool_piece_gone(struct pool_piece *piece)
{
	piece->pool->used -= piece->asked;
	pool_units_free(&piece->pool->units, piece->place, piece->asked);
	pools.idle = true;
}

/* Takes a kept piece off its list, for pool_pieces_free(). */
static void kept_drop(struct pool_piece **at, struct pool_piece **gone)
{
	struct pool_piece *piece = *at;

	*at = piece->next;
	piece->pool->taken -= piece->bytes;
	piece->next = *gone;
	*gone = piece;
}

void pool_pieces_free(struct pool_piece *first)
{
	while (first) {
		struct pool_piece *piece = first;

		first = piece->next;
		pool_memory_put(piece, false);
		free(piece);
	}
}

struct pool_piece *pool_trim(struct pool *pool, uint64_t keep)
{
	struct pool_piece **at = &pools.kept, *gone = NULL;

	while (*at && pool->taken > keep) {
		if ((*at)->pool == pool && pool_memory_idle(*at))
			kept_drop(at, &gone);
		else
			at = &(*at)->next;
	}
	pool_units_trim(&pool->units, keep);
	return gone;
}

static void units_trim(void)
{
	for (struct pool *pool = pools.all; pool; pool = pool->next)
		pool_units_trim(&pool->units, pool->threshold);
}

void pool_synced(void)
{
	struct pool_piece *gone = NULL;
	bool left = false;

	if (!atomic_load_explicit(&pools.idle, memory_order_relaxed))
		return;
	pthread_mutex_lock(&pools.lock);
	for (struct pool_piece **at = &pools.kept; *at;) {
		struct pool *pool = (*at)->pool;
		bool over = pool->taken > pool->threshold;

		if (over && pool_memory_idle(*at)) {
			kept_drop(at, &gone);
		} else {
			left |= over;
			at = &(*at)->next;
		}
	}
	units_trim();
	pools.idle = left;
	pthread_mutex_unlock(&pools.lock);
	pool_pieces_free(gone);
}

void pool_stream_gone(uint64_t stream, uint64_t synced)
{
	struct pool_piece *gone = NULL;

	later_synced(stream, 0);
	pthread_mutex_lock(&pools.lock);
	for (struct pool_piece **at = &pools.kept; *at;) {
		if ((*at)->stream == stream)
			(*at)->idle = (*at)->seq <= synced;
		if ((*at)->stream == stream && (*at)->pool->place.kind == POOL_DEVICE)
			kept_drop(at, &gone);
		else
			at = &(*at)->next;
	}
	pthread_mutex_unlock(&pools.lock);
	pool_pieces_free(gone);
}

/* With the lock held: what has no memory any more, of that device's and of hosts' pools. */
static void sweep(int device)
{
	for (unsigned i = 0; i <= POOL_BUCKETS; i++) {
		struct pool_piece **at = i < POOL_BUCKETS ? &pools.live[i] : &pools.kept;

		while (*at) {
			struct pool_piece *piece = *at;

			if ((piece->pool->place.kind == POOL_DEVICE &&
				    piece->pool->device != device) ||
				pool_memory_lives(piece)) {
				at = &piece->next;
				continue;
			}
			*at = piece->next;
			piece->pool->taken -= piece->bytes;
			if (i < POOL_BUCKETS)
				pool_piece_gone(piece);
			pool_memory_gone(piece);
			free(piece);
		}
	}
}

void pool_context_gone(uint16_t context)
{
	struct pool_piece *gone = NULL;

	later_context(context);
	pthread_mutex_lock(&pools.lock);
	sweep(CU_DEVICE_INVALID); /* managed memory went with it */
	for (struct pool_piece **at = &pools.kept; *at;) {
		if ((*at)->context == context)
			(*at)->idle = true; /* nothing of it runs any more */
		if (!(*at)->stream && (*at)->context == context &&
			(*at)->pool->place.kind == POOL_DEVICE)
			kept_drop(at, &gone);
		else
			at = &(*at)->next;
	}
	units_trim();
	pools.idle = true;
	pthread_mutex_unlock(&pools.lock);
	pool_pieces_free(gone);
}

bool pool_kept_at(CUdeviceptr address)
{
	for (const struct pool_piece *kept = pools.kept; kept; kept = kept->next)
		if (kept->address == address)
			return true;
	return false;
}

bool pool_free(CUdeviceptr address, CUresult *status)
{
	struct pool_piece **at, *piece;
	bool again, kept;

	pthread_mutex_lock(&pools.lock);
	at = pool_piece_find(address);
	piece = at ? *at : NULL;
	again = piece && piece->opens;
	if (again) {
		piece->opens--;
	} else if (piece) {
		*at = piece->next;
		pool_piece_gone(piece);
		piece->pool->taken -= piece->bytes;
	}
	kept = !piece && pool_kept_at(address);
	pthread_mutex_unlock(&pools.lock);
	if (!piece && !kept)
		return false;
	*status = CUDA_SUCCESS;
	if (again)
		return true;
	*status = piece ? pool_memory_put(piece, true) : CUDA_ERROR_INVALID_VALUE;
	free(piece);
	return true;
}

CUmemoryPool pool_holding(CUdeviceptr base)
{
	struct pool_piece **at;
	uint64_t handle;

	pthread_mutex_lock(&pools.lock);
	at = pool_piece_find(base);
	handle = at ? (*at)->pool->handle : 0;
	pthread_mutex_unlock(&pools.lock);
	return (CUmemoryPool)(uintptr_t)handle;
}

void pool_reset(int device)
{
	const uint16_t context = device_primary(device);

	pthread_mutex_lock(&pools.lock);
	sweep(device);
	for (struct pool_piece *kept = pools.kept; kept; kept = kept->next)
		kept->idle |= kept->context == context;
	for (struct pool *pool = pools.all; pool; pool = pool->next)
		if (pool->device == device)
			pool_units_trim(&pool->units, 0);
	pools.idle = true;
	pthread_mutex_unlock(&pools.lock);
}
