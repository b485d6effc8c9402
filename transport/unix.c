/* SPDX-License-Identifier: Apache-2.0
 *
 * unix://PATH: a Unix stream socket, for an agent on the same machine.  One connection a link,
 * which carries commands one way and replies the other, and stripes as TCP has them.  Tokens
 * are asked for as ever.  A peer is known by his user: all connections of one user are one
 * peer's.
 *
 * `listen` makes the folder if it may, and the file with mode 0660, or as unix://PATH?mode=0666
 * says. A lock beside it tells a dead agent's file, which is replaced, from a live one's, which
 * is an error; the agent removes both when it ends.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/instance_lock.h"
#include "common/unix_socket.h"
#include "common/wait.h"
#include "transport/dial.h"
#include "transport/socket_link.h"
#include "transport/unix.h"

#define UNIX_MODE 0660
#define UNIX_AGAIN_US 10000 /* between tries where the agent's queue is full */

extern const struct transport transport_unix;

/* PATH[?mode=OCTAL] */
struct unix_address {
	char path[UNIX_PATH];
	unsigned mode;
};

static int unix_parse(const char *text, struct unix_address *address, struct error *error)
{
	const char *question = strchr(text, '?');
	size_t n = question ? (size_t)(question - text) : strlen(text);
	char *end = NULL;

	address->mode = UNIX_MODE;
	/* The lock and the file that becomes the socket have longer names. */
	if (*text != '/' || n + sizeof(".lock") > sizeof(address->path))
		return error_set(error, 0,
			"%.120s: an absolute path of at most %zu bytes is expected", text,
			sizeof(address->path) - sizeof(".lock"));
	memcpy(address->path, text, n);
	address->path[n] = 0;
	if (!question)
		return 0;
	if (!strncmp(question, "?mode=", 6) && question[6] >= '0' && question[6] <= '7')
		address->mode = (unsigned)strtoul(question + 6, &end, 8);
	if (!end || *end || address->mode > 0777)
		return error_set(error, 0, "%.120s: behind ? stands mode=OCTAL", text);
	return 0;
}

/* --- the agent's end ---------------------------------------------------------------------- */

int unix_listen_as(const struct transport *transport, const char *text,
	struct transport_listening *listening, struct error *error)
{
	struct unix_address address;
	struct instance_lock instance;
	int ret = unix_parse(text, &address, error);
	const struct instance_kind kind = {
		.who = "agent",
		.setting = "path in listen",
		.type = SOCK_STREAM,
		.mode = address.mode,
	};

	if (!ret)
		ret = instance_lock_acquire(&instance, address.path, &kind, error);
	if (ret < 0)
		return error_wrap(error, ret, "listen");
	return transport_listening_add(listening, transport, instance.listen_fd,
		TRANSPORT_ROLE(SESSION_COMMANDS) | TRANSPORT_ROLE(SESSION_STRIPE) |
			TRANSPORT_ROLE(SESSION_PROBE) | TRANSPORT_ROLE(SESSION_RESUME) |
			TRANSPORT_ROLE(SESSION_END),
		&instance, error);
}

static int unix_transport_listen(
	const char *text, struct transport_listening *listening, struct error *error)
{
	return unix_listen_as(&transport_unix, text, listening, error);
}

int unix_transport_accept(int listener, struct transport_peer *peer)
{
	struct unix_peer who;
	int fd = unix_accept(listener, &who);

	if (fd < 0)
		return fd;
	/* ff00::/8 are IPv6's groups: no connection comes from one. */
	*peer = (struct transport_peer){.key = {0xff}};
	memcpy(peer->key + 1, &who.uid, sizeof(who.uid));
	snprintf(peer->text, sizeof(peer->text), "uid:%u", who.uid);
	return fd;
}

/* --- the client's end --------------------------------------------------------------------- */

int unix_dial_connect(struct dial *dial, enum session_role role)
{
	struct unix_address address;
	const char *text = dial->place.transport ? (char *)dial->place.bytes : dial->address;
	int ret = unix_parse(text, &address, dial->error);
	int fd;

	(void)role;
	if (ret < 0)
		return ret;
	snprintf(dial->where, sizeof(dial->where), "%s://%s", dial->transport->name,
		address.path);
	for (;;) {
		fd = unix_connect(address.path, SOCK_STREAM | SOCK_NONBLOCK, dial->error);
		if (fd != -EAGAIN || wait_now() > dial->deadline)
			break;
		usleep(UNIX_AGAIN_US);
	}
	if (fd == -ENOENT || fd == -ECONNREFUSED)
		error_set(dial->error, 0,
			"agent %s: nobody listens there: is gpu-agent running on this machine, "
			"and is that its listen:?",
			dial->where);
	else if (fd < 0)
		error_wrap(dial->error, fd, "agent %s", dial->where);
	if (fd < 0)
		return fd == -EAGAIN ? -ETIMEDOUT : fd;
	_Static_assert(sizeof(address.path) <= sizeof(dial->place.bytes), "a place has room");
	dial->place.transport = dial->transport;
	memcpy(dial->place.bytes, address.path, sizeof(address.path));
	return fd;
}

int unix_dial_as(const struct transport *transport,
	int (*connect)(struct dial *dial, enum session_role role), const char *address,
	const struct session_hello *hello, struct session_welcome *welcome, uint64_t deadline,
	struct link **link, struct error *error)
{
	struct dial dial = {
		.connect = connect,
		.transport = transport,
		.address = address,
		.deadline = deadline,
		.error = error,
	};

	return dial_session(&dial, hello, welcome, link);
}

static int unix_dial(const char *address, const struct session_hello *hello,
	struct session_welcome *welcome, uint64_t deadline, struct link **link,
	struct error *error)
{
	return unix_dial_as(&transport_unix, unix_dial_connect, address, hello, welcome,
		deadline, link, error);
}

int unix_open_stripe_as(const struct transport *transport,
	int (*connect)(struct dial *dial, enum session_role role),
	const struct transport_place *place, const struct session_hello *hello,
	uint64_t deadline, unsigned *number, struct link **stripe, struct error *error)
{
	struct dial dial = {
		.connect = connect,
		.transport = transport,
		.place = *place,
		.deadline = deadline,
		.error = error,
	};

	return dial_stripe(&dial, hello, number, stripe);
}

static int unix_open_stripe(const struct transport_place *place,
	const struct session_hello *hello, uint64_t deadline, unsigned *number,
	struct link **stripe, struct error *error)
{
	return unix_open_stripe_as(&transport_unix, unix_dial_connect, place, hello, deadline,
		number, stripe, error);
}

int unix_describe(
	const char *text, struct transport_description *description, struct error *error)
{
	struct unix_address address;

	snprintf(description->host, sizeof(description->host), "127.0.0.1");
	return unix_parse(text, &address, error);
}

const struct transport transport_unix = {
	.name = "unix",
	.connections = 1,
	.listen = unix_transport_listen,
	.accept = unix_transport_accept,
	.dial = unix_dial,
	.link = stream_link,
	.handoff = stream_handoff,
	.open_stripe = unix_open_stripe,
	.describe = unix_describe,
};
