/* SPDX-License-Identifier: Apache-2.0
 *
 * Each lock of the shim has a rank (enum lock_rank of engine.h).  Where the shim is compiled
 * with VCUDA_LOCK_ORDER and linked with lock_order.c (tests/shim/shim.mk), a thread that takes
 * a lock whose rank is not above those that it holds ends the process with the names of both,
 * and so does a lock that has no rank.  Elsewhere there is no code behind a rank.
 */
#ifndef VCUDA_SHIM_ENGINE_LOCK_H
#define VCUDA_SHIM_ENGINE_LOCK_H

#include <pthread.h>

#include "shim/engine/engine.h"

#ifdef VCUDA_LOCK_ORDER
void lock_order_rank(const void *lock, enum lock_rank rank, const char *name);
/* For a lock that is none of pthread's: before it is taken, and when it was released. */
void lock_order_acquire(const void *lock);
void lock_order_release(const void *lock);
#else
static inline void lock_order_rank(const void *lock, enum lock_rank rank, const char *name)
{
	(void)lock, (void)rank, (void)name;
}
static inline void lock_order_acquire(const void *lock)
{
	(void)lock;
}
static inline void lock_order_release(const void *lock)
{
	(void)lock;
}
#endif

/* Beside a lock that lasts as long as the process; ID is a name of its own in the file.  The
 * rank is known before a program registers its kernels, which its own constructors do. */
#ifdef VCUDA_LOCK_ORDER
#define LOCK_RANK(id, lock, rank)                                                              \
	__attribute__((constructor(101))) static void rank_of_##id(void)                       \
	{                                                                                      \
		lock_order_rank(&(lock), rank, #id);                                           \
	}                                                                                      \
	_Static_assert((rank) < LOCK_RANKS, "")
#else
#define LOCK_RANK(id, lock, rank) _Static_assert(sizeof(lock) && (rank) < LOCK_RANKS, "")
#endif

#endif
