/* SPDX-License-Identifier: Apache-2.0
 *
 * One flow of bytes both ways between a socket of this process, behind which a link is read and
 * written, and a stream of QUIC.  What is to be sent is kept until the peer has acknowledged
 * it; what came is kept until the socket takes it, and only then the peer may send more.  So
 * either side is held up by the other one as over TCP, and each holds FLOW_BYTES at most.
 *
 * Of one thread: the pump's (pump.c).
 */
#ifndef VCUDA_TRANSPORT_LIGHT_FLOW_H
#define VCUDA_TRANSPORT_LIGHT_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* 1 Gb/s over 100 ms are 12.5 MB in flight. Pages are touched as far as they are needed. */
#define FLOW_BYTES (16u << 20)

/* A ring of bytes, which begins anew at its start when it is empty. */
struct flow_ring {
	unsigned char *bytes;
	uint64_t head, tail; /* counted since the beginning; head: the first that is kept */
	uint64_t base;	     /* what lies at bytes[0] */
};

struct flow {
	int fd;		      /* this end of a socket pair; -1: closed */
	struct flow_ring out; /* from the socket; head: acknowledged */
	uint64_t sent;	      /* out.head … out.tail: given to QUIC */
	struct flow_ring in;  /* from the stream; head: the socket took it */
	bool out_over;	      /* the socket says no more … */
	bool fin_sent;	      /* … and the peer was told */
	bool in_over;	      /* the peer says no more … */
	bool in_told;	      /* … and the socket was told */
	bool blocked;	      /* the stream takes no more now */
};

/* FD is the flow's from then on, -1: none yet. 0 or -ENOMEM. */
int flow_open(struct flow *flow, int fd);
void flow_close(struct flow *flow);

/* Takes from the socket what it has and there is room for. False: there was nothing. */
bool flow_fill(struct flow *flow);
/* What is to be sent next: how many pieces, 0 to 2. */
unsigned flow_pieces(const struct flow *flow, struct iovec pieces[2]);
/* The peer has the first bytes, up to offset END. */
void flow_acknowledged(struct flow *flow, uint64_t end);
/* Bytes that came. False: more than the peer may send. */
bool flow_take(struct flow *flow, const unsigned char *bytes, size_t n);
/* Gives the socket what it takes: how many bytes. */
size_t flow_drain(struct flow *flow);

static inline uint64_t flow_ring_used(const struct flow_ring *ring)
{
	return ring->tail - ring->head;
}
static inline bool flow_has_room(const struct flow *flow)
{
	return !flow->out_over && flow_ring_used(&flow->out) < FLOW_BYTES;
}
static inline bool flow_has_more(const struct flow *flow)
{
	return flow->sent < flow->out.tail || (flow->out_over && !flow->fin_sent);
}

#endif
