/* SPDX-License-Identifier: Apache-2.0
 *
 * The check behind shim/engine/lock.h: a thread takes the shim's locks in the order of enum
 * lock_rank. pthread_mutex_lock, _trylock and _unlock come here by the linker's --wrap.
 */
#include "shim/engine/lock.h"

#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>

#define LOCKS 8192 /* ever seen at different addresses */
#define HELD_MAX 16

struct ranked {
	const void *lock;
	enum lock_rank rank;
	const char *name;
};

static struct ranked ranked[LOCKS];
static pthread_mutex_t ranked_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local struct ranked held[HELD_MAX];
static _Thread_local unsigned held_count;

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __real_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);

/* The place of a lock, or the free one where it goes. */
static struct ranked *place_of(const void *lock)
{
	uintptr_t at = (uintptr_t)lock / 8;

	for (unsigned i = 0; i < LOCKS; i++) {
		struct ranked *place = &ranked[(at + i) % LOCKS];

		if (!place->lock || place->lock == lock)
			return place;
	}
	fprintf(stderr, "lock order: more than %d locks\n", LOCKS);
	abort();
}

/* The last one at an address counts: the memory of a freed lock is used again. */
void lock_order_rank(const void *lock, enum lock_rank rank, const char *name)
{
	__real_pthread_mutex_lock(&ranked_lock);
	*place_of(lock) = (struct ranked){lock, rank, name};
	__real_pthread_mutex_unlock(&ranked_lock);
}

void lock_order_acquire(const void *lock)
{
	struct ranked one;

	__real_pthread_mutex_lock(&ranked_lock);
	one = *place_of(lock);
	__real_pthread_mutex_unlock(&ranked_lock);
	if (!one.lock) {
		fprintf(stderr, "lock order: the lock at %p has no rank\n", lock);
		abort();
	}
	for (unsigned i = 0; i < held_count; i++)
		if (held[i].rank >= one.rank) {
			fprintf(stderr, "lock order: %s is taken under %s\n", one.name,
				held[i].name);
			abort();
		}
	if (held_count == HELD_MAX) {
		fprintf(stderr, "lock order: a thread holds %d locks\n", HELD_MAX);
		abort();
	}
	held[held_count++] = one;
}

void lock_order_release(const void *lock)
{
	for (unsigned i = held_count; i-- > 0;)
		if (held[i].lock == lock) {
			held[i] = held[--held_count];
			return;
		}
	fprintf(stderr, "lock order: the lock at %p is released and not held\n", lock);
	abort();
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	lock_order_acquire(mutex);
	return __real_pthread_mutex_lock(mutex);
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	int busy = __real_pthread_mutex_trylock(mutex);

	if (!busy)
		lock_order_acquire(mutex);
	return busy;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	lock_order_release(mutex);
	return __real_pthread_mutex_unlock(mutex);
}
