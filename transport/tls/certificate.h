/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VCUDA_TRANSPORT_TLS_CERTIFICATE_H
#define VCUDA_TRANSPORT_TLS_CERTIFICATE_H

#include <openssl/types.h>
#include <stdbool.h>

#include "transport/transport.h"

/* What the peer of SESSION, whose handshake is over, has shown: *certificate, all 0 where that
 * is nothing. False: it has expired, which nobody looks at where a ticket was used. */
bool certificate_read(const SSL *session, struct transport_certificate *certificate);

#endif
