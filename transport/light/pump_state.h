/* SPDX-License-Identifier: Apache-2.0
 *
 * A pump, for its thread (pump.c) and for the links over it (link.c): nobody else's.
 */
#ifndef VCUDA_TRANSPORT_LIGHT_PUMP_STATE_H
#define VCUDA_TRANSPORT_LIGHT_PUMP_STATE_H

#include <stdatomic.h>

#include "transport/light/pump.h"

#define MILLISECOND 1000000ull
#define PUMP_PARTING_NS (1000 * MILLISECOND) /* for the last bytes to arrive */

enum pump_state { PUMP_OPENING, PUMP_OPEN, PUMP_OVER };

struct pump {
	struct pump *next;
	uint64_t number;
	_Atomic int users;	/* the thread, and each link */
	_Atomic uint32_t state; /* enum pump_state; a futex */
	_Atomic bool given_up;	/* before it was open: the descriptors stay the caller's */
	struct pump_wish wish;
	struct quic *quic;
	struct flow flows[QUIC_FLOWS];
	int doorbell;
	_Atomic int attach[QUIC_FLOWS]; /* sockets of stripes that the thread is to take; -1 */
	_Atomic int path;		/* a UDP socket, likewise */
	uint64_t heard_at, asked_at;	/* since when an answer is awaited; 0: none is */
	uint64_t knocked_at, parting_at;
	bool was_open;
	char why[160];
};

/* One that one user has, and no thread yet; NULL: no memory. */
struct pump *pump_new(const struct pump_wish *wish);
/* Its thread, another user. 0 or -errno. */
int pump_start(struct pump *pump);
/* By its number, for one user more; NULL: it is gone. */
struct pump *pump_get(uint64_t number);
/* A user less: the last one frees it. */
void pump_put(struct pump *pump);
/* The thread looks what is wished. */
void pump_ring(struct pump *pump);
/* Waits until the state is not STATE any more, NS at the longest. */
enum pump_state pump_await(struct pump *pump, enum pump_state state, uint64_t ns);

#endif
