/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiles against ngtcp2 0.12 (Debian 12) and 1.x.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "transport/light/quic_state.h"

#define RECEIVES_A_TURN 32
#define SENDS_A_TURN 32

/* --- paths -------------------------------------------------------------------------------- */

void quic_path_take(struct quic_path *path, int fd)
{
	*path = (struct quic_path){.fd = fd};
	path->local_size = sizeof(path->local);
	path->remote_size = sizeof(path->remote);
	if (getsockname(fd, (struct sockaddr *)&path->local, &path->local_size))
		path->local_size = 0;
	if (getpeername(fd, (struct sockaddr *)&path->remote, &path->remote_size))
		path->remote_size = 0;
}

ngtcp2_path quic_path_of(struct quic_path *path)
{
	return (ngtcp2_path){
		.local = {(ngtcp2_sockaddr *)&path->local, path->local_size},
		.remote = {(ngtcp2_sockaddr *)&path->remote, path->remote_size},
	};
}

static bool same_address(const struct quic_path *path, const ngtcp2_addr *remote)
{
	return path->fd >= 0 && path->remote_size == remote->addrlen &&
	       !memcmp(&path->remote, remote->addr, path->remote_size);
}

/* The one that leads to REMOTE; else the first. */
static unsigned path_to(const struct quic *quic, const ngtcp2_addr *remote)
{
	for (unsigned i = 1; i < QUIC_PATHS; i++)
		if (same_address(&quic->paths[i], remote))
			return i;
	return 0;
}

void quic_path_add(struct quic *quic, int fd)
{
	const ngtcp2_path *used = ngtcp2_conn_get_path(quic->conn);
	struct quic_path path;
	unsigned spare;

	quic_path_take(&path, fd);
	spare = path_to(quic, &used->remote) ? 0 : 1;
	for (unsigned i = 0; i < QUIC_PATHS; i++)
		if (quic->paths[i].fd >= 0 && path.remote_size == quic->paths[i].remote_size &&
			!memcmp(&path.remote, &quic->paths[i].remote, path.remote_size)) {
			close(fd); /* it knocked twice */
			return;
		}
	if (quic->paths[spare].fd >= 0)
		close(quic->paths[spare].fd);
	if (quic->pending && quic->pending_path == spare)
		quic->pending = 0;
	udp_tune(fd);
	quic->paths[spare] = path;
}

int quic_path_fd(const struct quic *quic, unsigned i)
{
	return quic->paths[i].fd;
}

/* --- receiving ---------------------------------------------------------------------------- */

static int end_with(struct quic *quic, int code)
{
	if (quic->over)
		return quic->over;
	quic->over = code == NGTCP2_ERR_HANDSHAKE_TIMEOUT || code == NGTCP2_ERR_IDLE_CLOSE
			     ? -ETIMEDOUT
			     : -ECONNRESET;
	snprintf(quic->why, sizeof(quic->why), "%s", ngtcp2_strerror(code));
	return quic->over;
}

/* A packet that makes no sense is dropped, whoever sent it: only what was signed with the keys
 * ends a connection. */
static int take_packet(struct quic *quic, struct quic_path *from, const uint8_t *packet,
	size_t n, uint64_t now)
{
	const ngtcp2_path path = quic_path_of(from);
	const ngtcp2_pkt_info info = {0};
	int ret;

	if (knock_is(packet, n)) {
		if (!quic->ready)
			knock_again(from->fd);
		return 0;
	}
	ret = ngtcp2_conn_read_pkt(quic->conn, &path, &info, packet, n, now);
	if (!ret || ret == NGTCP2_ERR_DISCARD_PKT || ret == NGTCP2_ERR_RETRY)
		return 0;
	return end_with(quic, ret);
}

int quic_receive(struct quic *quic, unsigned i, uint64_t now)
{
	struct quic_path *path = &quic->paths[i];
	int ret = -EAGAIN;

	for (int turn = 0; turn < RECEIVES_A_TURN; turn++) {
		size_t size;
		ssize_t n =
			udp_receive(path->fd, quic->received, sizeof(quic->received), &size);

		if (n == -EAGAIN)
			return ret;
		/* What ICMP says of one datagram, which anybody can say, ends nothing. */
		if (n <= 0)
			continue;
		for (size_t at = 0; at < (size_t)n; at += size) {
			size_t left = (size_t)n - at;
			int got = take_packet(quic, path, quic->received + at,
				left < size ? left : size, now);

			if (got)
				return got;
		}
		ret = 0;
	}
	return ret;
}

void quic_consumed(struct quic *quic, unsigned i, size_t n)
{
	if (!n || !quic->ready)
		return;
	ngtcp2_conn_extend_max_stream_offset(
		quic->conn, quic_stream((enum transport_end) !quic->end, i), n);
	ngtcp2_conn_extend_max_offset(quic->conn, n);
}

/* --- sending ------------------------------------------------------------------------------ */

/* The next flow that has something to say: frames before payloads. */
static struct flow *next_flow(struct quic *quic)
{
	for (unsigned i = 0; quic->ready && i < QUIC_FLOWS; i++) {
		struct flow *flow = &quic->flows[i];

		if (!flow->blocked && flow_has_more(flow))
			return flow;
	}
	return NULL;
}

/* One packet into AT: its length, 0 where none may be sent now, or an error of ngtcp2's. */
static ngtcp2_ssize write_packet(
	struct quic *quic, ngtcp2_path *path, uint8_t *at, size_t room, uint64_t now)
{
	for (;;) {
		struct flow *flow = next_flow(quic);
		struct iovec pieces[2];
		ngtcp2_pkt_info info;
		ngtcp2_ssize taken = -1, n;
		unsigned count = flow ? flow_pieces(flow, pieces) : 0;
		ngtcp2_vec vec[2];
		bool last;

		for (unsigned i = 0; i < count; i++)
			vec[i] = (ngtcp2_vec){pieces[i].iov_base, pieces[i].iov_len};
		last = flow && flow->out_over;
		n = ngtcp2_conn_writev_stream(quic->conn, path, &info, at, room, &taken,
			last ? NGTCP2_WRITE_STREAM_FLAG_FIN : NGTCP2_WRITE_STREAM_FLAG_NONE,
			flow ? quic_stream(quic->end, (unsigned)(flow - quic->flows)) : -1, vec,
			count, now);
		if (flow && (n == NGTCP2_ERR_STREAM_DATA_BLOCKED ||
				    n == NGTCP2_ERR_STREAM_NOT_FOUND ||
				    n == NGTCP2_ERR_STREAM_SHUT_WR)) {
			flow->blocked = true;
			continue;
		}
		if (taken >= 0 && flow) {
			flow->sent += (uint64_t)taken;
			if (last && flow->sent == flow->out.tail)
				flow->fin_sent = true;
		}
		return n;
	}
}

static int push(struct quic *quic, uint64_t now)
{
	int ret = udp_send(quic->paths[quic->pending_path].fd, quic->batch, quic->pending,
		quic->pending_size);

	if (ret == -EAGAIN)
		return ret;
	/* Whatever else became of them, QUIC sends them again. */
	quic->pending = 0;
	ngtcp2_conn_update_pkt_tx_time(quic->conn, now);
	return 0;
}

/* Packets of one size and to one place, the last may be shorter. 1: there may be more to send;
 * 0; or -errno. */
static int send_batch(struct quic *quic, uint64_t now)
{
	size_t size = ngtcp2_conn_get_path_max_tx_udp_payload_size(quic->conn), n = 0;
	size_t most = ngtcp2_conn_get_send_quantum(quic->conn), packet = 0;
	bool more = true;

	if (most > UDP_BATCH - QUIC_DATAGRAM)
		most = UDP_BATCH - QUIC_DATAGRAM;
	do {
		ngtcp2_path_storage to;
		ngtcp2_ssize got;
		unsigned path;
		int ret;

		ngtcp2_path_storage_zero(&to);
		got = write_packet(quic, &to.path, quic->batch + n, QUIC_DATAGRAM, now);
		if (got < 0)
			return end_with(quic, (int)got);
		if (!got) {
			more = false;
			break;
		}
		path = path_to(quic, &to.path.remote);
		/* A probe of the path's MTU or another path: on its own. */
		if (n && (path != quic->pending_path || (size_t)got > packet)) {
			size_t before = n;

			memmove(quic->received, quic->batch + before, (size_t)got);
			quic->pending = before;
			quic->pending_size = packet;
			ret = push(quic, now); /* else it is lost */
			quic->pending = 0;
			if (ret < 0 && ret != -EAGAIN)
				return ret;
			memcpy(quic->batch, quic->received, (size_t)got);
			n = 0;
		}
		if (!n)
			packet = (size_t)got;
		quic->pending_path = path;
		n += (size_t)got;
		if ((size_t)got < packet || (size_t)got > size)
			break;
	} while (n < most);
	if (!n)
		return 0;
	quic->pending = n;
	quic->pending_size = packet;
	if (push(quic, now))
		return -EAGAIN;
	return more;
}

int quic_send(struct quic *quic, uint64_t now)
{
	int ret = 1;

	if (quic->over)
		return quic->over;
	for (unsigned i = 0; i < QUIC_FLOWS; i++)
		quic->flows[i].blocked = false;
	if (ngtcp2_conn_get_expiry(quic->conn) <= now) {
		ret = ngtcp2_conn_handle_expiry(quic->conn, now);
		if (ret)
			return end_with(quic, ret);
	}
	if (quic->pending && push(quic, now))
		return -EAGAIN;
	ret = 1;
	for (int turn = 0; ret > 0 && turn < SENDS_A_TURN; turn++)
		ret = send_batch(quic, now);
	return ret < 0 ? ret : 0;
}

uint64_t quic_due(const struct quic *quic)
{
	return ngtcp2_conn_get_expiry(quic->conn);
}

bool quic_is_ready(const struct quic *quic)
{
	return quic->ready;
}

static ngtcp2_conn_stat state_of(const struct quic *quic)
{
	ngtcp2_conn_stat stat;

#if NGTCP2_VERSION_NUM >= 0x010000
	ngtcp2_conn_info info;

	ngtcp2_conn_get_conn_info(quic->conn, &info);
	memset(&stat, 0, sizeof(stat));
	stat.smoothed_rtt = info.smoothed_rtt;
	stat.cwnd = info.cwnd;
	stat.loss_detection_timer = info.bytes_in_flight ? 0 : UINT64_MAX;
#else
	ngtcp2_conn_get_conn_stat(quic->conn, &stat);
#endif
	return stat;
}

bool quic_awaits(const struct quic *quic)
{
	/* Not bytes_in_flight: 0.12 counts some that nobody acknowledges. */
	return state_of(quic).loss_detection_timer != UINT64_MAX;
}

void quic_count(const struct quic *quic, struct quic_counts *counts)
{
	ngtcp2_conn_stat stat = state_of(quic);

	*counts = (struct quic_counts){
		.rtt_ns = stat.smoothed_rtt,
		.cwnd = stat.cwnd,
		.probe_ns = ngtcp2_conn_get_pto(quic->conn),
	};
}

void quic_say_end(struct quic *quic, uint64_t now)
{
	ngtcp2_path_storage to;
	ngtcp2_pkt_info info;
	ngtcp2_ssize n;

	if (quic->over || !quic->ready)
		return;
	ngtcp2_path_storage_zero(&to);
#if NGTCP2_VERSION_NUM >= 0x010000
	ngtcp2_ccerr why;

	ngtcp2_ccerr_default(&why);
#else
	ngtcp2_connection_close_error why;

	ngtcp2_connection_close_error_default(&why);
#endif
	n = ngtcp2_conn_write_connection_close(
		quic->conn, &to.path, &info, quic->batch, QUIC_DATAGRAM, &why, now);
	if (n > 0)
		udp_send(quic->paths[path_to(quic, &to.path.remote)].fd, quic->batch, (size_t)n,
			(size_t)n);
	quic->over = -ECONNRESET;
}

const char *quic_why(const struct quic *quic)
{
	return quic->why;
}
