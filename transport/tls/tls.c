/* SPDX-License-Identifier: Apache-2.0
 *
 * tls://HOST:PORT: the connections of `native` with TLS 1.3 on each.  The front finishes the
 * handshakes and passes a connection to the worker as two descriptors: the socket, and a memfd
 * with the keys of its two directions.  docs/SECURITY.md says why not kTLS.
 */
#include "transport/tls/tls.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/wait.h"
#include "transport/dial.h"
#include "transport/native.h"
#include "transport/socket_link.h"
#include "transport/tcp.h"
#include "transport/tls/connection.h"
#include "transport/tls/tls_context.h"
#include "transport/tls/link.h"

#define STREAMS 2 /* connections of a link */

int tls_secure(
	enum transport_end end, const struct transport_tls *settings, struct error *error)
{
	return tls_context_set(end, settings, error);
}

/* --- the agent's end ---------------------------------------------------------------------- */

int tls_listen(const char *address, struct transport_listening *listening, struct error *error)
{
	return native_listen_as(&transport_tls, address, listening, error);
}

int tls_accept(int listener, struct transport_peer *peer)
{
	int fd = transport_native.accept(listener, peer);
	struct error error;

	if (fd < 0)
		return fd;
	if (!tls_connection_open(fd, TRANSPORT_AGENT, NULL, peer, &error))
		return fd;
	close(fd);
	return -EPROTO;
}

ssize_t tls_read(int fd, void *bytes, size_t n)
{
	return tls_connection_read(fd, bytes, n);
}

int tls_write(int fd, const void *bytes, size_t n)
{
	return tls_connection_write(fd, bytes, n);
}

const char *tls_why(int fd)
{
	return tls_connection_why(fd);
}

void tls_forget(int fd)
{
	tls_connection_forget(fd);
}

void tls_certificate(int fd, struct transport_certificate *certificate)
{
	tls_connection_certificate(fd, certificate);
}

void tls_counts(struct transport_tls_counts *counts)
{
	tls_connection_counts(counts);
	counts->expires = tls_context_expires(TRANSPORT_AGENT);
}

/* A memfd with STATE, read from its start. fd, or -errno. */
static int keys_to_fd(const struct tls_state *state)
{
	int fd = memfd_create("vcuda-tls", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (pwrite(fd, state, sizeof(*state), 0) == (ssize_t)sizeof(*state))
		return fd;
	close(fd);
	return -EIO;
}

static int keys_from_fd(int fd, struct tls_state *state)
{
	return pread(fd, state, sizeof(*state), 0) == (ssize_t)sizeof(*state) ? 0 : -EIO;
}

/* A stripe goes to its worker before its WELCOME is said here: nobody but the client sends on
 * one, or two records would have one nonce. */
int tls_handoff(int socket, const void *message, size_t n, const int *fds, unsigned count)
{
	int all[2 * STREAMS], ret = 0;
	unsigned made = 0;

	_Static_assert(2 * STREAMS <= TRANSPORT_FDS, "a worker takes so many");
	if (count > STREAMS)
		return -EINVAL;
	for (; made < count && !ret; made++) {
		struct tls_state state;

		ret = tls_connection_state(fds[made], &state);
		all[2 * made] = fds[made];
		all[2 * made + 1] = ret ? -1 : keys_to_fd(&state);
		if (!ret && all[2 * made + 1] < 0)
			ret = all[2 * made + 1];
		explicit_bzero(&state, sizeof(state));
	}
	if (!ret)
		ret = descriptors_send(socket, message, n, all, 2 * count, MSG_DONTWAIT);
	while (made--)
		if (all[2 * made + 1] >= 0)
			close(all[2 * made + 1]);
	return ret;
}

/* --- both --------------------------------------------------------------------------------- */

static int link_of_agent(
	const int *fds, unsigned count, struct link **link, struct error *error)
{
	struct tls_state states[STREAMS];
	int sockets[STREAMS],
		ret = count && count % 2 == 0 && count <= 2 * STREAMS
			      ? 0
			      : error_set(error, 0, "a tls link over %u descriptors", count);

	for (unsigned i = 0; !ret && i < count / 2; i++) {
		sockets[i] = fds[2 * i];
		ret = keys_from_fd(fds[2 * i + 1], &states[i]);
		if (ret)
			error_set(error, -ret, "the keys of a tls link");
	}
	if (!ret)
		ret = tls_link_open(sockets, states, count / 2, TRANSPORT_AGENT, link, error);
	explicit_bzero(states, sizeof(states));
	for (unsigned i = 0; !ret && i < count / 2; i++)
		close(fds[2 * i + 1]);
	return ret;
}

static int link_of_client(
	const int *fds, unsigned count, struct link **link, struct error *error)
{
	struct tls_state states[STREAMS];
	int ret = count && count <= STREAMS
			  ? 0
			  : error_set(error, 0, "a tls link over %u connections", count);

	for (unsigned i = 0; !ret && i < count; i++) {
		ret = tls_connection_state(fds[i], &states[i]);
		if (ret)
			error_set(error, -ret, "the keys of a tls link");
	}
	if (!ret)
		ret = tls_link_open(fds, states, count, TRANSPORT_CLIENT, link, error);
	explicit_bzero(states, sizeof(states));
	for (unsigned i = 0; !ret && i < count; i++)
		tls_connection_forget(fds[i]);
	return ret;
}

int tls_link(const int *fds, unsigned count, enum transport_end end, struct link **link,
	struct error *error)
{
	return end == TRANSPORT_AGENT ? link_of_agent(fds, count, link, error)
				      : link_of_client(fds, count, link, error);
}

/* --- the client's end --------------------------------------------------------------------- */

/* The whole of FD's handshake. 0, or -errno with *error. */
static int shake(struct dial *dial, int fd)
{
	int ret;

	while ((ret = tls_connection_handshake(fd, dial->error)) == -EAGAIN) {
		ret = dial_wait(dial->deadline, fd, POLLIN);
		if (ret < 0)
			return error_set(
				dial->error, -ret, "agent %s: TLS handshake", dial->where);
	}
	return ret ? error_wrap(dial->error, ret, "agent %s", dial->where) : 0;
}

/* The place of a link that is a TLS one: where it is, and whom it was made to. */
static void remember_host(struct dial *dial, const char *host)
{
	size_t at = NATIVE_PLACE;

	snprintf((char *)dial->place.bytes + at, sizeof(dial->place.bytes) - at, "%s", host);
}

static int connect_tls(struct dial *dial, enum session_role role)
{
	char host[256];
	uint16_t port;
	int ret = 0, fd;

	if (role == SESSION_STRIPE || role == SESSION_RENEW)
		snprintf(host, sizeof(host), "%s", (char *)dial->place.bytes + NATIVE_PLACE);
	else
		ret = tcp_parse_host(
			dial->address, SESSION_PORT_RECV, host, &port, dial->error);
	fd = ret < 0 ? ret : native_connect(dial, role);
	if (fd < 0)
		return fd;
	remember_host(dial, host);
	ret = tls_connection_open(fd, TRANSPORT_CLIENT, host, NULL, dial->error);
	if (!ret)
		ret = shake(dial, fd);
	if (!ret)
		return fd;
	tls_connection_forget(fd);
	close(fd);
	return ret;
}

int tls_dial(const char *address, const struct session_hello *hello,
	struct session_welcome *welcome, uint64_t deadline, struct link **link,
	struct error *error)
{
	struct dial dial = {
		.connect = connect_tls,
		.transport = &transport_tls,
		.address = address,
		.deadline = deadline,
		.error = error,
	};

	return dial_session(&dial, hello, welcome, link);
}

int tls_join(const char *address, const struct session_hello *hello, uint64_t deadline,
	struct error *error)
{
	struct dial dial = {
		.connect = connect_tls,
		.transport = &transport_tls,
		.address = address,
		.deadline = deadline,
		.error = error,
	};

	return dial_peer(&dial, hello);
}

int tls_open_stripe(const struct transport_place *place, const struct session_hello *hello,
	uint64_t deadline, unsigned *number, struct link **stripe, struct error *error)
{
	struct dial dial = {
		.connect = connect_tls,
		.transport = &transport_tls,
		.place = *place,
		.deadline = deadline,
		.error = error,
	};

	return dial_stripe(&dial, hello, number, stripe);
}
