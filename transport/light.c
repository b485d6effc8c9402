/* SPDX-License-Identifier: Apache-2.0
 *
 * The row of light://HOST:PORT: the two TCP connections of `native` for the handshake and the
 * end of a session, and QUIC over UDP for all that is between, on the agent's send port.  Where
 * UDP does not get through, or one of the two ends is built without QUIC (transport/light), TCP
 * carries everything.
 */
#include "transport/light/light.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "transport/native.h"
#include "transport/socket_link.h"
#include "transport/tcp.h"

/* --- the agent's end ---------------------------------------------------------------------- */

static int listen_udp(
	const char *address, struct transport_listening *listening, struct error *error)
{
	char host[256] = "";
	uint16_t port = 0;
	int fd, ret = *address ? tcp_parse_host(address, 0, host, &port, error) : 0;

	if (ret < 0)
		return ret;
	if (!light_udp_listen)
		return error_set(error, EOPNOTSUPP, "light: this program was built without it");
	fd = light_udp_listen(host, listening->taken.replies, error);
	if (fd < 0)
		return error_wrap(error, fd, "ports.send");
	ret = transport_listening_add(
		listening, &transport_light, fd, TRANSPORT_ROLE(SESSION_LIGHT), NULL, error);
	if (!ret)
		listening->at[listening->count - 1].knocks = true;
	return ret;
}

static int listen_light(
	const char *address, struct transport_listening *listening, struct error *error)
{
	unsigned before = listening->count;
	int ret = native_listen_as(&transport_light, address, listening, error);

	if (ret < 0)
		return ret;
	for (unsigned i = before; i < listening->count; i++)
		if (listening->at[i].roles & TRANSPORT_ROLE(SESSION_REPLIES))
			listening->at[i].roles |= TRANSPORT_ROLE(SESSION_LIGHT);
	ret = listen_udp(address, listening, error);
	while (ret < 0 && listening->count > before)
		close(listening->at[--listening->count].fd);
	return ret;
}

static int accept_light(int listener, struct transport_peer *peer)
{
	return transport_native.accept(listener, peer);
}

/* --- both --------------------------------------------------------------------------------- */

static int link_light(const int *fds, unsigned count, enum transport_end end,
	struct link **link, struct error *error)
{
	int ret;

	if (light_link)
		return light_link(fds, count, end, link, error);
	ret = stream_link(fds, count < 2 ? count : 2, end, link, error);
	for (unsigned i = 2; !ret && i < count; i++)
		close(fds[i]);
	return ret;
}

static int handoff_light(
	int socket, const void *message, size_t n, const int *fds, unsigned count)
{
	return (light_handoff ? light_handoff : stream_handoff)(socket, message, n, fds, count);
}

static void forget_light(int fd)
{
	if (light_forget)
		light_forget(fd);
}

/* Of a link by UDP the stripe's connection says only that it is wanted. */
static int stripe_light(struct link *link, unsigned number, const int *fds, unsigned count,
	struct link **stripe, struct error *error)
{
	uint64_t pump = light_number ? light_number(link) : 0;
	int ret;

	if (!pump)
		return stream_link(fds, count, TRANSPORT_AGENT, stripe, error);
	ret = light_stripe(pump, number, stripe, error);
	for (unsigned i = 0; !ret && i < count; i++)
		close(fds[i]);
	return ret;
}

/* --- the client's end --------------------------------------------------------------------- */

/* A place: native's, and behind it the number of the pump. */
static void remember_pump(struct link *link)
{
	uint64_t number = light_number ? light_number(link) : 0;

	memcpy(link->place.bytes + NATIVE_PLACE, &number, sizeof(number));
}

static int connect_light(struct dial *dial, enum session_role role)
{
	return native_connect(dial, role == SESSION_LIGHT ? SESSION_REPLIES : role);
}

static int dial_light(const char *address, const struct session_hello *wanted,
	struct session_welcome *welcome, uint64_t deadline, struct link **link,
	struct error *error)
{
	struct session_hello hello = *wanted;
	struct dial dial = {
		.connect = connect_light,
		.last = light_dial_last,
		.transport = &transport_light,
		.address = address,
		.hint = "the port to name is its receive port (9998)",
		.deadline = deadline,
		.error = error,
	};
	int ret;

	/* Else the agent would wait for a connection more. */
	if (light_dial_last)
		hello.features |= SESSION_FEATURE_LIGHT;
	ret = dial_session(&dial, &hello, welcome, link);
	/* The knock came through, and QUIC did not: now it is shunned. */
	if (ret == -ETIMEDOUT && light_shuns_udp && light_shuns_udp() && !wanted->role)
		ret = dial_session(&dial, &hello, welcome, link);
	explicit_bzero(&hello, sizeof(hello));
	if (!ret && *link) {
		remember_pump(*link);
		if (!light_number || !light_number(*link))
			log_info("light.tcp",
				"agent=%s text=\"UDP does not get through, or the agent does "
				"not listen there: TCP carries all\"",
				address);
	}
	return ret;
}

static int open_stripe_light(const struct transport_place *place,
	const struct session_hello *hello, uint64_t deadline, unsigned *number,
	struct link **stripe, struct error *error)
{
	struct dial dial = {
		.connect = connect_light,
		.transport = &transport_light,
		.place = *place,
		.deadline = deadline,
		.error = error,
	};
	struct session_hello ours = *hello;
	uint64_t pump;
	int ret;

	if (light_dial_last)
		ours.features |= SESSION_FEATURE_LIGHT;
	ret = dial_stripe(&dial, &ours, number, stripe);
	explicit_bzero(&ours, sizeof(ours));
	memcpy(&pump, place->bytes + NATIVE_PLACE, sizeof(pump));
	if (ret < 0 || !*stripe || !pump)
		return ret;
	link_close(*stripe);
	return light_stripe(pump, *number, stripe, error);
}

static int join_light(const char *address, const struct session_hello *hello, uint64_t deadline,
	struct error *error)
{
	return transport_native.join(address, hello, deadline, error);
}

static int describe_light(
	const char *address, struct transport_description *description, struct error *error)
{
	return transport_native.describe(address, description, error);
}

const struct transport transport_light = {
	.name = "light",
	.clear = true,
	.far = true,
	.connections = 3,
	.feature = SESSION_FEATURE_LIGHT,
	.listen = listen_light,
	.accept = accept_light,
	.knock = light_knock,
	.admit = light_admit,
	.path = light_path,
	.stripe = stripe_light,
	.dial = dial_light,
	.link = link_light,
	.handoff = handoff_light,
	.forget = forget_light,
	.open_stripe = open_stripe_light,
	.join = join_light,
	.describe = describe_light,
};
