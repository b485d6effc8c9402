/* SPDX-License-Identifier: Apache-2.0
 *
 * The sockets that an agent listens on, of whatever transports.
 */
#include <stdio.h>
#include <unistd.h>

#include "transport/transport.h"

static void unlisten(struct transport_listener *listener)
{
	if (listener->instance.socket[0])
		instance_lock_release(&listener->instance);
	else
		close(listener->fd);
}

int transport_listening_add(struct transport_listening *listening,
	const struct transport *transport, int fd, uint32_t roles,
	const struct instance_lock *instance, struct error *error)
{
	struct transport_listener listener = {.fd = fd, .roles = roles};

	snprintf(listener.transport, sizeof(listener.transport), "%s", transport->name);
	if (instance)
		listener.instance = *instance;
	if (listening->count == TRANSPORT_LISTENERS) {
		unlisten(&listener);
		return error_set(error, 0, "listen: more than %d sockets", TRANSPORT_LISTENERS);
	}
	listening->at[listening->count++] = listener;
	return 0;
}

void transport_unlisten(struct transport_listening *listening)
{
	while (listening->count)
		unlisten(&listening->at[--listening->count]);
}
