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
