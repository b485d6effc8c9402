/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VCUDA_TRANSPORT_TLS_LINK_H
#define VCUDA_TRANSPORT_TLS_LINK_H

#include "transport/tls/connection.h"

/* A link over COUNT connections (1 or 2) with their keys, as stream_link; owns the descriptors
 * once it returns 0. */
int tls_link_open(const int *fds, const struct tls_state *states, unsigned count,
	enum transport_end end, struct link **link, struct error *error);

#endif
