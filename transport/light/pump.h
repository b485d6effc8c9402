/* SPDX-License-Identifier: Apache-2.0
 *
 * The thread that a light link has at each end.  It carries bytes between QUIC and one socket
 * pair for the link and for each stripe, so that who uses the link polls, sends and receives as
 * with any stream; QUIC's timers, the packets and the TCP connections, which say that the other
 * process is gone, are the pump's.
 *
 * It ends when the link is closed and the peer has all of what was sent, when the peer ends, or
 * when nothing comes any more: then the sockets are shut, as a broken TCP connection is.
 */
#ifndef VCUDA_TRANSPORT_LIGHT_PUMP_H
#define VCUDA_TRANSPORT_LIGHT_PUMP_H

#include "transport/light/quic.h"
#include "transport/transport.h"

#define PUMP_TCP 2 /* connections that only say when the other end is gone */

struct pump;

struct pump_wish {
	enum transport_end end;
	int tcp[PUMP_TCP];
	int udp;
	struct light_key key;
	struct session_hello hello; /* client: to knock again */
};

/* Makes the link; the client waits until both ends have their keys. The descriptors are the
 * pump's once it returns 0. -ETIMEDOUT: UDP does not get through. */
int pump_open(const struct pump_wish *wish, struct link **link, struct error *error);

/* Another UDP socket of LINK's client, which it takes. */
void pump_path(struct link *link, int fd);

/* From now on light_shuns_udp. */
void pump_shun_udp(void);

#endif
