/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of the arena and of the bounce buffer: a program that copies little never has more
 * than the first CHANNEL_FIRST bytes of each; the sidecar, which it counts against, gives the
 * rest when it is wanted.
 */
#ifndef VCUDA_SHIM_ENGINE_RESERVE_H
#define VCUDA_SHIM_ENGINE_RESERVE_H

#include <stdbool.h>

#include "shim/engine/session.h"

/* While joining. ASKED: the rest is to be asked for; else all has memory. */
void reserve_begin(bool asked);

/* All has memory. */
static inline bool reserve_whole(void)
{
	return atomic_load_explicit(&session_here()->reserve.whole, memory_order_acquire);
}

/* Asks for the rest. False: all had memory before, or there is none now, and what there is must
 * do. The ring's lock is not held. */
bool reserve_more(void);

#endif
