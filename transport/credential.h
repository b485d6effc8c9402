/* SPDX-License-Identifier: Apache-2.0
 *
 * What transport_credential was told: the signed token of this process.
 */
#ifndef VCUDA_TRANSPORT_CREDENTIAL_H
#define VCUDA_TRANSPORT_CREDENTIAL_H

#include "transport/transport.h"

/* The token as its file has it now: its length; 0: there is none; -errno with *error: it may
 * not go over TRANSPORT. Any thread. */
ssize_t credential_get(const struct transport *transport, char text[SESSION_CREDENTIAL_MAX],
	struct error *error);

#endif
