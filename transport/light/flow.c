/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/light/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define FILL_BYTES                                                                             \
	(256u * 1024) /* of one call, so that small frames of others wait no longer */

static int ring_open(struct flow_ring *ring)
{
	void *bytes = mmap(NULL, FLOW_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	*ring = (struct flow_ring){.bytes = bytes == MAP_FAILED ? NULL : bytes};
	return ring->bytes ? 0 : -ENOMEM;
}

static void ring_close(struct flow_ring *ring)
{
	if (ring->bytes)
		munmap(ring->bytes, FLOW_BYTES);
	ring->bytes = NULL;
}

/* The bytes FROM … FROM + N as one or two pieces. */
static unsigned ring_span(
	const struct flow_ring *ring, uint64_t from, uint64_t n, struct iovec pieces[2])
{
	size_t at = (size_t)((from - ring->base) % FLOW_BYTES), first = FLOW_BYTES - at;

	if (!n)
		return 0;
	if (n <= first) {
		pieces[0] = (struct iovec){ring->bytes + at, (size_t)n};
		return 1;
	}
	pieces[0] = (struct iovec){ring->bytes + at, first};
	pieces[1] = (struct iovec){ring->bytes, (size_t)n - first};
	return 2;
}

static void ring_drop(struct flow_ring *ring, uint64_t head)
{
	ring->head = head;
	if (ring->head == ring->tail)
		ring->base = ring->head;
}

int flow_open(struct flow *flow, int fd)
{
	*flow = (struct flow){.fd = fd};
	if (!ring_open(&flow->out) && !ring_open(&flow->in))
		return 0;
	flow_close(flow);
	return -ENOMEM;
}

void flow_close(struct flow *flow)
{
	if (flow->fd >= 0)
		close(flow->fd);
	flow->fd = -1;
	ring_close(&flow->out);
	ring_close(&flow->in);
}

bool flow_fill(struct flow *flow)
{
	uint64_t room = FLOW_BYTES - flow_ring_used(&flow->out);
	struct iovec pieces[2];
	struct msghdr message = {.msg_iov = pieces};
	ssize_t n;

	if (!flow_has_room(flow))
		return false;
	message.msg_iovlen = ring_span(
		&flow->out, flow->out.tail, room < FILL_BYTES ? room : FILL_BYTES, pieces);
	n = recvmsg(flow->fd, &message, MSG_DONTWAIT);
	if (n > 0)
		flow->out.tail += (uint64_t)n;
	else if (!n || (errno != EAGAIN && errno != EINTR))
		flow->out_over = true;
	return n > 0;
}

unsigned flow_pieces(const struct flow *flow, struct iovec pieces[2])
{
	return ring_span(&flow->out, flow->sent, flow->out.tail - flow->sent, pieces);
}

void flow_acknowledged(struct flow *flow, uint64_t end)
{
	if (end > flow->out.head && end <= flow->sent)
		ring_drop(&flow->out, end);
}

bool flow_take(struct flow *flow, const unsigned char *bytes, size_t n)
{
	struct iovec pieces[2];
	unsigned count;

	if (n > FLOW_BYTES - flow_ring_used(&flow->in))
		return false;
	count = ring_span(&flow->in, flow->in.tail, n, pieces);
	for (unsigned i = 0; i < count; i++) {
		memcpy(pieces[i].iov_base, bytes, pieces[i].iov_len);
		bytes += pieces[i].iov_len;
	}
	flow->in.tail += n;
	return true;
}

size_t flow_drain(struct flow *flow)
{
	struct iovec pieces[2];
	size_t total = 0;

	while (flow_ring_used(&flow->in)) {
		struct msghdr message = {
			.msg_iov = pieces,
			.msg_iovlen = ring_span(
				&flow->in, flow->in.head, flow_ring_used(&flow->in), pieces),
		};
		ssize_t n = sendmsg(flow->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		/* The kernel may be short of memory for a moment. */
		if (n < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM))
			return total;
		/* Nobody reads any more: it goes nowhere. */
		if (n < 0)
			n = (ssize_t)flow_ring_used(&flow->in);
		ring_drop(&flow->in, flow->in.head + (uint64_t)n);
		total += (size_t)n;
	}
	if (flow->in_over && !flow->in_told) {
		shutdown(flow->fd, SHUT_WR);
		flow->in_told = true;
	}
	return total;
}
