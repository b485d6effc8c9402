/* SPDX-License-Identifier: Apache-2.0
 *
 * native://HOST:PORT: two TCP connections a session (protocol/wire/session.h).
 */
#ifndef VCUDA_TRANSPORT_NATIVE_H
#define VCUDA_TRANSPORT_NATIVE_H

#include "transport/transport.h"

extern const struct transport transport_native;

/* Calls ADD with each numeric address that HOST[:PORT] stands for. 0, or -errno with *error. */
int native_expand(const char *address, void (*add)(void *argument, const char *address),
	void *argument, struct error *error);

#endif
