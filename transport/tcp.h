/* SPDX-License-Identifier: Apache-2.0
 *
 * TCP addresses and listening sockets, for `native` and for the agent's HTTP port.
 */
#ifndef VCUDA_TRANSPORT_TCP_H
#define VCUDA_TRANSPORT_TCP_H

#include <stdint.h>

#include "common/error.h"

/* Parses "HOST[:PORT]", "[v6]:PORT"; host must hold 256 bytes. -EINVAL with *error. */
int tcp_parse_host(const char *text, uint16_t default_port, char *host, uint16_t *port,
	struct error *error);

/* A listening TCP socket, CLOEXEC, non-blocking, SO_REUSEADDR; host NULL or "" = every address.
 * port 0: any; *bound says which.  fd or -errno; a busy port says so in *error. */
int tcp_listen(const char *host, uint16_t port, uint16_t *bound, struct error *error);

#endif
