/* SPDX-License-Identifier: Apache-2.0
 *
 * Which connections get a slot: each may cost something, and where there is no slot left one of
 * those that have not said who they are makes room.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/wait.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/session/hello.h"
#include "gpu-agent/front/session/hello_core.h"
#include "gpu-agent/front/session/knock.h"
#include "gpu-agent/front/peers.h"
#include "gpu-agent/supervisor/settings/token.h"
#include "transport/socket_link.h"

#define ACCEPTS_A_TURN 256
#define PRESSED 32		     /* at once … */
#define PRESSED_NS (1000 * FRONT_MS) /* … are too many for so long */

static void evict(struct front *front, struct hello_slot *slot)
{
	hello_refused(front, REFUSAL_FLOOD, &slot->peer);
	tcp_stream_reset(slot->watch.fd);
	hello_drop(front, slot);
}

static struct hello_slot *make_room(struct front *front, const struct transport_peer *peer)
{
	struct hello_slot *slot;
	struct peers peers;

	peers_begin(&peers, peer);
	for (int i = 0; i < HELLO_SLOTS; i++) {
		slot = &front->slots[i];
		peers_meet(&peers, i, slot->watch.fd >= 0, &slot->peer, slot->since);
	}
	slot = &front->slots[peers_choose(&peers, HELLO_PER_ADDRESS)];
	if (slot->watch.fd >= 0)
		evict(front, slot);
	return slot;
}

/* Whether the connection may cost anything. Each is counted, and none is turned away while
 * there is time for all. */
static bool affordable(struct front *front, const struct transport_peer *peer, int at_once)
{
	uint64_t now = wait_now();

	if (at_once >= PRESSED)
		front->pressed_until = now + PRESSED_NS;
	return peers_charge(front->budgets, peer, now) || now >= front->pressed_until;
}

static void listener_ready(struct watch *watch, uint32_t mask)
{
	struct front *front = watch->owner;
	size_t which = (size_t)(watch - front->listeners);

	(void)mask;
	for (int i = 0; i < ACCEPTS_A_TURN; i++) {
		struct transport_peer peer = {0};
		struct hello_slot *slot;
		int fd = front->transports[which]->accept(watch->fd, &peer);

		if (fd < 0)
			return;
		if (!affordable(front, &peer, i)) {
			hello_refused(front, REFUSAL_FLOOD, &peer);
			tcp_stream_reset(fd);
			transport_drop(front->transports[which], fd);
			continue;
		}
		slot = make_room(front, &peer);
		slot->transport = front->transports[which];
		if (events_watch(&front->events, &slot->watch, fd, EPOLLIN, hello_ready)) {
			transport_drop(slot->transport, fd);
			continue;
		}
		front->half_open++;
		slot->roles = front->config->listening.at[which].roles;
		slot->lingering = false;
		slot->got = 0;
		slot->peer = peer;
		slot->since = wait_now();
		slot->deadline = slot->since + SESSION_HELLO_MS * FRONT_MS;
		hello_ready(&slot->watch, EPOLLIN);
	}
}

int hello_open(struct front *front, struct error *error)
{
	const struct transport_listening *listening = &front->config->listening;

	front->slots = calloc(HELLO_SLOTS, sizeof(*front->slots));
	front->budgets = calloc(1, sizeof(*front->budgets));
	if (!front->slots || !front->budgets)
		return error_set(error, ENOMEM, "slots for connections");
	for (unsigned i = 0; i < HELLO_SLOTS; i++)
		front->slots[i].watch.fd = -1;
	if (token_random(front->identity, sizeof(front->identity), error))
		return -EIO;
	for (unsigned i = 0; i < listening->count; i++) {
		int fd = AGENT_FD_LISTEN + (int)i, ret;

		front->transports[i] = transport_named(listening->at[i].transport);
		if (!front->transports[i])
			return error_set(
				error, 0, "no transport '%.16s'", listening->at[i].transport);
		ret = events_watch(&front->events, &front->listeners[i], fd, EPOLLIN,
			listening->at[i].knocks ? knocks_ready : listener_ready);
		if (ret)
			return error_set(error, -ret, "watch the listening socket %d", fd);
	}
	return 0;
}

void hello_close(struct front *front)
{
	for (unsigned i = 0; i < HELLO_SLOTS; i++)
		if (front->slots[i].watch.fd >= 0)
			hello_drop(front, &front->slots[i]);
	for (unsigned i = 0; i < front->config->listening.count; i++)
		close(events_forget(&front->events, &front->listeners[i]));
	free(front->budgets);
	free(front->slots);
}
