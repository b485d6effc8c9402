/* SPDX-License-Identifier: Apache-2.0
 *
 * What quic_open.c makes and quic.c works with: nobody else's.
 */
#ifndef VCUDA_TRANSPORT_LIGHT_QUIC_STATE_H
#define VCUDA_TRANSPORT_LIGHT_QUIC_STATE_H

#include <ngtcp2/ngtcp2.h>

#include "transport/light/quic.h"
#include "transport/light/quic_tls.h"
#include "transport/light/udp.h"

#define QUIC_DATAGRAM 1452 /* payload over IPv6 in 1500 bytes; less where the path has less */

struct quic {
	ngtcp2_conn *conn;
	struct quic_tls tls;
	struct light_key key;
	enum transport_end end;
	struct flow *flows;
	struct quic_path paths[QUIC_PATHS];
	bool ready;
	int over; /* -errno, for good */
	char why[96];
	/* A batch that no socket took yet. */
	unsigned pending_path;
	size_t pending, pending_size;
	unsigned char batch[UDP_BATCH];
	unsigned char received[UDP_BATCH + 512];
};

/* Numbers of unidirectional streams (RFC 9000, 2.1). */
static inline int64_t quic_stream(enum transport_end sender, unsigned flow)
{
	return 4 * (int64_t)flow + (sender == TRANSPORT_CLIENT ? 2 : 3);
}

/* What leads to FD's peer. */
void quic_path_take(struct quic_path *path, int fd);
ngtcp2_path quic_path_of(struct quic_path *path);

#endif
