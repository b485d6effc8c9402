/* SPDX-License-Identifier: Apache-2.0
 *
 * One QUIC connection of ngtcp2's, for the flows of one link: the link's is 0, those of its
 * stripes are 1 … SESSION_STRIPES.  A flow is one unidirectional stream of each end's, the
 * i-th.  TLS 1.3 is GnuTLS's, and the key that both know (knock.h) takes the place of
 * certificates.
 *
 * Of one thread: the pump's.
 */
#ifndef VCUDA_TRANSPORT_LIGHT_QUIC_H
#define VCUDA_TRANSPORT_LIGHT_QUIC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "protocol/wire/session.h"
#include "transport/light/flow.h"
#include "transport/light/knock.h"
#include "transport/transport.h"

#define QUIC_FLOWS (1 + SESSION_STRIPES)
#define QUIC_PATHS 2 /* a client's address, and the one that it had before or will have */

struct quic_path {
	int fd; /* -1: none */
	struct sockaddr_storage local, remote;
	socklen_t local_size, remote_size;
};

struct quic;

struct quic_counts {
	uint64_t rtt_ns, cwnd; /* round trip; bytes that may be under way */
	uint64_t probe_ns;     /* how long QUIC waits before it asks whether something came */
};

/* FLOWS has QUIC_FLOWS of them. FD is the first path's, and stays the caller's. 0, or -errno
 * with *error. */
int quic_open(struct quic **quic, enum transport_end end, const struct light_key *key, int fd,
	struct flow *flows, struct error *error);
void quic_close(struct quic *quic); /* NULL is fine */

/* Another socket of the same peer's; the one that is not used goes. */
void quic_path_add(struct quic *quic, int fd);
/* For poll: COUNT of QUIC_PATHS, -1 where there is none. */
int quic_path_fd(const struct quic *quic, unsigned i);

/* Takes what came on path I. 0; -EAGAIN: there was nothing; -errno: the connection is over. */
int quic_receive(struct quic *quic, unsigned i, uint64_t now);
/* Sends what may be sent now, and does what is due. 0; -EAGAIN: a socket takes no more now; or
 * -errno: the connection is over. */
int quic_send(struct quic *quic, uint64_t now);
/* The socket took N bytes of flow I: the peer may send as many more. */
void quic_consumed(struct quic *quic, unsigned i, size_t n);
/* CLOCK_MONOTONIC ns at which quic_send is due. */
uint64_t quic_due(const struct quic *quic);
/* Both ends have the keys. */
bool quic_is_ready(const struct quic *quic);
/* Something was sent, and there is no sign yet that it came. */
bool quic_awaits(const struct quic *quic);
/* Tells the peer that it is over. */
void quic_say_end(struct quic *quic, uint64_t now);
void quic_count(const struct quic *quic, struct quic_counts *counts);
/* Why it is over. */
const char *quic_why(const struct quic *quic);

#endif
