/* SPDX-License-Identifier: Apache-2.0
 *
 * A place for a connection where there are few and anybody may come (hello.c,
 * http/http.c): a free one; where the peer has his share, the oldest of his
 * own; where all are taken, the oldest.  Who asks at once needs his place for a moment, so
 * silence is what loses it.
 */
#ifndef VCUDA_GPU_AGENT_FRONT_PEERS_H
#define VCUDA_GPU_AGENT_FRONT_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/transport.h"

struct peers {
	struct transport_peer peer; /* who comes */
	unsigned same;		    /* places that he has */
	int unused, oldest, own;    /* places; -1: none */
	uint64_t oldest_since, own_since;
};

void peers_begin(struct peers *peers, const struct transport_peer *peer);
/* Each place, once. */
void peers_meet(struct peers *peers, int place, bool taken, const struct transport_peer *peer,
	uint64_t since);
/* The place to have, of at least one that was met; one that is taken must be made free. An
 * address has `share` of them at the most, 1 or more. */
int peers_choose(const struct peers *peers, unsigned share);

/* What an address costs: so many connections a second, and more at a time. Those beyond are
 * turned away while more come than the front can look at; their cost is then no one else's. */
#define BUDGET_CONNECTIONS 512
#define BUDGET_REFILL_NS 5000000ull /* 200 a second */
#define BUDGETS 256		    /* addresses; who was silent longest is forgotten */

struct budgets {
	struct budget {
		struct transport_peer peer;
		uint64_t full_at; /* CLOCK_MONOTONIC ns: when nothing is used up any more */
	} at[BUDGETS];
};

/* One connection of PEER at NOW; false: it is beyond. */
bool peers_charge(struct budgets *budgets, const struct transport_peer *peer, uint64_t now);

#endif
