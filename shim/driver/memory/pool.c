/* SPDX-License-Identifier: Apache-2.0
 *
 * Pools: see pool.h.
 */
#include "shim/driver/forms.h"
#include "shim/driver/memory/pool.h"
#include "shim/driver/memory/pool_state.h"

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

struct pool *pool_new(int device)
{
	struct pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	pool->device = device;
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

/* With the lock held. */
struct pool *pool_default(int device)
{
	if (!pools.defaults[device]) {
		pools.defaults[device] = pool_new(device);
		if (pools.defaults[device])
			pools.defaults[device]->is_default = true;
	}
	return pools.defaults[device];
}

struct pool *pool_current(int device)
{
	return pools.current[device] ? pools.current[device] : pool_default(device);
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
	piece->place = pool_units_take(&pool->units, asked);
	if (pool_reserved(pool) > pool->reserved_high)
		pool->reserved_high = pool_reserved(pool);
	pool->used += asked;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
}

void pool_piece_gone(struct pool_piece *piece)
{
	piece->pool->used -= piece->asked;
	pool_units_give(&piece->pool->units, piece->place, piece->asked);
	pools.idle = true;
}

/* Takes a kept piece off the list and gives its memory back. */
static void kept_drop(struct pool_piece **at)
{
	struct pool_piece *piece = *at;

	*at = piece->next;
	piece->pool->taken -= piece->bytes;
	memory_free(piece->address);
	free(piece);
}

void pool_trim(struct pool *pool, uint64_t keep)
{
	struct pool_piece **at = &pools.kept;

	while (*at && pool->taken > keep) {
		if ((*at)->pool == pool)
			kept_drop(at);
		else
			at = &(*at)->next;
	}
	pool_units_trim(&pool->units, keep);
}

static void units_trim(void)
{
	for (struct pool *pool = pools.all; pool; pool = pool->next)
		pool_units_trim(&pool->units, pool->threshold);
}

void pool_synced(void)
{
	if (!atomic_load_explicit(&pools.idle, memory_order_relaxed))
		return;
	pthread_mutex_lock(&pools.lock);
	for (struct pool_piece **at = &pools.kept; *at;) {
		struct pool *pool = (*at)->pool;

		if (pool->taken > pool->threshold)
			kept_drop(at);
		else
			at = &(*at)->next;
	}
	units_trim();
	pools.idle = false;
	pthread_mutex_unlock(&pools.lock);
}

void pool_stream_gone(uint64_t stream)
{
	later_synced(stream, 0);
	pthread_mutex_lock(&pools.lock);
	for (struct pool_piece **at = &pools.kept; *at;) {
		if ((*at)->stream == stream)
			kept_drop(at);
		else
			at = &(*at)->next;
	}
	pthread_mutex_unlock(&pools.lock);
}

void pool_context_gone(uint16_t context)
{
	later_context(context);
	pthread_mutex_lock(&pools.lock);
	for (struct pool_piece **at = &pools.kept; *at;) {
		if (!(*at)->stream && (*at)->context == context)
			kept_drop(at);
		else
			at = &(*at)->next;
	}
	units_trim(); /* nothing of it runs any more */
	pthread_mutex_unlock(&pools.lock);
}

bool pool_forget(CUdeviceptr address)
{
	struct pool_piece **at, *piece;

	pthread_mutex_lock(&pools.lock);
	at = pool_piece_find(address);
	piece = at ? *at : NULL;
	if (piece) {
		*at = piece->next;
		pool_piece_gone(piece);
		piece->pool->taken -= piece->bytes;
	}
	pthread_mutex_unlock(&pools.lock);
	free(piece);
	return piece != NULL;
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
	struct memory_range range;

	pthread_mutex_lock(&pools.lock);
	for (unsigned i = 0; i <= POOL_BUCKETS; i++) {
		struct pool_piece **at = i < POOL_BUCKETS ? &pools.live[i] : &pools.kept;

		while (*at) {
			struct pool_piece *piece = *at;

			if (piece->pool->device != device ||
				memory_find(piece->address, &range)) {
				at = &piece->next;
				continue;
			}
			*at = piece->next;
			piece->pool->taken -= piece->bytes;
			if (i < POOL_BUCKETS)
				pool_piece_gone(piece);
			free(piece);
		}
	}
	for (struct pool *pool = pools.all; pool; pool = pool->next)
		if (pool->device == device)
			pool_units_trim(&pool->units, 0);
	pthread_mutex_unlock(&pools.lock);
}
