/* SPDX-License-Identifier: Apache-2.0
 *
 * native://HOST:PORT: two TCP connections a session (protocol/wire/session.h).
 */
#ifndef VCUDA_TRANSPORT_NATIVE_H
#define VCUDA_TRANSPORT_NATIVE_H

#include "transport/transport.h"

#include "transport/dial.h"

extern const struct transport transport_native;

/* For transports over TCP: native's listen for another one's name, and its connect. The first
 * NATIVE_PLACE bytes of a place are native's. */
#define NATIVE_PLACE 128
int native_listen_as(const struct transport *transport, const char *address,
	struct transport_listening *listening, struct error *error);
int native_connect(struct dial *dial, enum session_role role);

/* Calls ADD with each numeric address that HOST[:PORT] stands for. 0, or -errno with *error. */
int native_expand(const char *address, void (*add)(void *argument, const char *address),
	void *argument, struct error *error);

#endif
