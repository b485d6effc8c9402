/* SPDX-License-Identifier: Apache-2.0
 *
 * Unix stream sockets with a path: what unix:// and local:// have in common.
 */
#ifndef VCUDA_TRANSPORT_UNIX_H
#define VCUDA_TRANSPORT_UNIX_H

#include "transport/dial.h"

/* As transport.listen, dial, accept and describe; the address is TRANSPORT's. */
int unix_listen_as(const struct transport *transport, const char *text,
	struct transport_listening *listening, struct error *error);
/* connect: struct dial's, unix_dial_connect or one that asks it. */
int unix_dial_connect(struct dial *dial, enum session_role role);
int unix_dial_as(const struct transport *transport,
	int (*connect)(struct dial *dial, enum session_role role), const char *address,
	const struct session_hello *hello, struct session_welcome *welcome, uint64_t deadline,
	struct link **link, struct error *error);
int unix_open_stripe_as(const struct transport *transport,
	int (*connect)(struct dial *dial, enum session_role role),
	const struct transport_place *place, const struct session_hello *hello,
	uint64_t deadline, unsigned *number, struct link **stripe, struct error *error);
int unix_transport_accept(int listener, struct transport_peer *peer);
int unix_describe(
	const char *text, struct transport_description *description, struct error *error);

#endif
