/* SPDX-License-Identifier: Apache-2.0
 *
 * native://HOST:PORT: two TCP connections a session (protocol/wire/session.h).
 */
#ifndef VCUDA_TRANSPORT_NATIVE_H
#define VCUDA_TRANSPORT_NATIVE_H

#include "transport/transport.h"

extern const struct transport transport_native;

#endif
