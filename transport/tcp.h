/* SPDX-License-Identifier: Apache-2.0
 *
 * TCP addresses and listening sockets, for `native` and for the agent's HTTP port.
 */
#ifndef VCUDA_TRANSPORT_TCP_H
#define VCUDA_TRANSPORT_TCP_H

#include <stdint.h>
#include <sys/socket.h>

#include "common/error.h"
#include "transport/transport.h"

/* Parses "HOST[:PORT]", "[v6]:PORT"; host must hold 256 bytes. -EINVAL with *error. */
int tcp_parse_host(const char *text, uint16_t default_port, char *host, uint16_t *port,
	struct error *error);

/* A listening TCP socket, CLOEXEC, non-blocking, SO_REUSEADDR; host NULL or "" = every address.
 * port 0: any; *bound says which.  fd or -errno; a busy port says so in *error. */
int tcp_listen(const char *host, uint16_t port, uint16_t *bound, struct error *error);

/* A connection to HOST whose every wait ends after SECONDS, that for the connection too; names
 * are looked up as resolve.h says. It blocks. fd, or -errno with *error naming host and port.
 */
int tcp_connect(const char *host, uint16_t port, unsigned seconds, struct error *error);

/* Who FROM is: key is his address, IPv4 mapped, and text what people write. */
void tcp_peer(const struct sockaddr_storage *from, struct transport_peer *peer);

#endif
