/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/front/peers.h"

void peers_begin(struct peers *peers, const struct transport_peer *peer)
{
	*peers = (struct peers){.peer = *peer, .unused = -1, .oldest = -1, .own = -1};
}

static void older(int *oldest, uint64_t *oldest_since, int place, uint64_t since)
{
	if (*oldest >= 0 && *oldest_since <= since)
		return;
	*oldest = place;
	*oldest_since = since;
}

void peers_meet(struct peers *peers, int place, bool taken, const struct transport_peer *peer,
	uint64_t since)
{
	if (!taken) {
		peers->unused = place;
		return;
	}
	older(&peers->oldest, &peers->oldest_since, place, since);
	if (!transport_same(peer, &peers->peer))
		return;
	peers->same++;
	older(&peers->own, &peers->own_since, place, since);
}

int peers_choose(const struct peers *peers, unsigned share)
{
	if (peers->same >= share)
		return peers->own;
	return peers->unused >= 0 ? peers->unused : peers->oldest;
}

static struct budget *budget_of(struct budgets *budgets, const struct transport_peer *peer)
{
	struct budget *oldest = &budgets->at[0];

	for (unsigned i = 0; i < BUDGETS; i++) {
		struct budget *budget = &budgets->at[i];

		if (budget->full_at && transport_same(&budget->peer, peer))
			return budget;
		if (budget->full_at < oldest->full_at)
			oldest = budget;
	}
	*oldest = (struct budget){.peer = *peer};
	return oldest;
}

bool peers_charge(struct budgets *budgets, const struct transport_peer *peer, uint64_t now)
{
	struct budget *budget = budget_of(budgets, peer);

	if (budget->full_at < now)
		budget->full_at = now;
	if (budget->full_at - now >= BUDGET_CONNECTIONS * BUDGET_REFILL_NS)
		return false;
	budget->full_at += BUDGET_REFILL_NS;
	return true;
}
