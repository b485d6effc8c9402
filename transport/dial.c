/* SPDX-License-Identifier: Apache-2.0
 *
 * The first connection says HELLO for the commands and is told session, secret and reply port;
 * the others join with them.  Nothing that the agent says is used before it is checked, and its
 * text is made printable before it reaches a log.
 */
#include "transport/dial.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/wait.h"
#include "protocol/wire/status.h"
#include "transport/credential.h"

#define CREDENTIAL_PIECE 2048 /* a write of tls:// is one record */

/* A front is back within 100 ms, or later where it died several times in turn. */
#define AGAIN_NS 100000000ull
#define AGAIN_MOST 4
#define END_NS 1500000000ull /* for END to arrive */
#define END_PAUSE_NS 50000000ull

static _Thread_local struct {
	void (*told)(void *argument, const struct session_welcome *welcome);
	void *argument;
} listener;

void transport_when_told(
	void (*told)(void *argument, const struct session_welcome *welcome), void *argument)
{
	listener.told = told;
	listener.argument = argument;
}

int dial_wait(uint64_t until, int fd, short events)
{
	for (;;) {
		struct pollfd pollfd = {.fd = fd, .events = events};
		uint64_t now = wait_now();
		int n;

		if (now >= until)
			return -ETIMEDOUT;
		n = poll(&pollfd, 1, (int)((until - now) / 1000000) + 1);
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
}

static int dial_receive(struct dial *dial, int fd, void *bytes, size_t n)
{
	char *at = bytes;

	while (n) {
		ssize_t got = transport_read(dial->transport, fd, at, n);
		int ret;

		if (got > 0) {
			at += got;
			n -= (size_t)got;
			continue;
		}
		if (!got)
			return -ECONNRESET;
		if (got != -EAGAIN && got != -EINTR)
			return (int)got;
		ret = dial_wait(dial->deadline, fd, POLLIN);
		if (ret < 0)
			return ret;
	}
	return 0;
}

/* The text is the agent's: one printable line of it. */
static void welcome_clean(struct session_welcome *welcome)
{
	welcome->text[sizeof(welcome->text) - 1] = 0;
	for (char *c = welcome->text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			*c = '?';
}

/* HELLO, with the credential behind it where this process has one. It fits into a socket that
 * nothing was written to. */
static int dial_say(struct dial *dial, int fd, const struct session_hello *wanted)
{
	struct session_hello hello = *wanted;
	char credential[SESSION_CREDENTIAL_MAX];
	ssize_t n = wanted->version == SESSION_VERSION
			    ? credential_get(dial->transport, credential, dial->error)
			    : 0;
	struct session_credential head = {.length = (uint32_t)n};
	int ret;

	if (n < 0)
		return (int)n;
	if (n)
		hello.version = SESSION_VERSION_CREDENTIAL;
	ret = transport_write(dial->transport, fd, &hello, sizeof(hello));
	if (!ret && n)
		ret = transport_write(dial->transport, fd, &head, sizeof(head));
	for (ssize_t at = 0, piece; !ret && at < n; at += piece) {
		piece = n - at < CREDENTIAL_PIECE ? n - at : CREDENTIAL_PIECE;
		ret = transport_write(dial->transport, fd, credential + at, (size_t)piece);
	}
	explicit_bzero(&hello, sizeof(hello));
	explicit_bzero(credential, sizeof(credential));
	return ret < 0 ? error_set(dial->error, -ret, "agent %s: handshake", dial->where) : 0;
}

/* Says HELLO on fd and checks what comes back. */
static int dial_greet(struct dial *dial, int fd, const struct session_hello *hello,
	struct session_welcome *welcome)
{
	size_t head = sizeof(welcome->magic);
	int ret = dial_say(dial, fd, hello);

	memset(welcome, 0, sizeof(*welcome));
	if (ret < 0)
		return ret;
	ret = dial_receive(dial, fd, welcome, head);
	if (!ret && welcome->magic != SESSION_MAGIC)
		return error_set(dial->error, 0,
			"agent %s: what answers there is not a vcuda agent%s%s", dial->where,
			dial->hint ? "; " : "", dial->hint ? dial->hint : "");
	if (!ret)
		ret = dial_receive(dial, fd, (char *)welcome + head, sizeof(*welcome) - head);
	if (ret == -EPROTO && dial->transport->why)
		return error_set(
			dial->error, 0, "agent %s: %s", dial->where, dial->transport->why(fd));
	if (ret == -ECONNRESET)
		return error_set(dial->error, ECONNRESET,
			"agent %s: closed the connection during the handshake", dial->where);
	if (ret < 0)
		return error_set(dial->error, -ret, "agent %s: handshake", dial->where);
	welcome_clean(welcome);
	if (welcome->version != SESSION_VERSION) {
		if (!welcome->status)
			welcome->status = STATUS_MISMATCH;
		error_set(dial->error, 0,
			"agent %s speaks protocol version %u, this side %u: install the same "
			"release on both",
			dial->where, welcome->version, SESSION_VERSION);
		return -ECONNREFUSED;
	}
	if (welcome->status) {
		error_set(dial->error, 0, "agent %s refused: %.190s (status %u)", dial->where,
			welcome->text[0] ? welcome->text : "no reason given", welcome->status);
		return -ECONNREFUSED;
	}
	if (welcome->features & ~hello->features)
		return error_set(dial->error, 0,
			"agent %s: granted features that were not asked for", dial->where);
	return 0;
}

/* Connects and says HELLO in the role that it names. fd, or -errno. */
static int dial_join(
	struct dial *dial, const struct session_hello *hello, struct session_welcome *welcome)
{
	int fd = dial->connect(dial, (enum session_role)hello->role);
	int ret = fd < 0 ? fd : dial_greet(dial, fd, hello, welcome);

	if (fd >= 0 && ret < 0)
		transport_drop(dial->transport, fd);
	return ret < 0 ? ret : fd;
}

/* All connections of a link, in order: their number, or -errno with *welcome saying why where
 * the agent did. What was opened before is in FDS either way. */
static int dial_all(struct dial *dial, struct session_hello *hello,
	struct session_welcome *welcome, int *fds, unsigned *count)
{
	struct session_welcome next = {0};
	uint64_t features = dial->transport->feature;

	while (*count < transport_connections(dial->transport, features)) {
		int fd = -1;

		if (*count && *count + 1 == dial->transport->connections &&
			dial->transport->feature) {
			hello->role = SESSION_LIGHT;
			fd = dial->last ? dial->last(dial, hello) : -1;
		}
		if (fd < 0)
			fd = dial_join(dial, hello, *count ? &next : welcome);

		if (fd < 0 && *count) {
			welcome->status = next.status;
			welcome->ended = next.ended;
			memcpy(welcome->text, next.text, sizeof(welcome->text));
		}
		if (fd < 0)
			return fd;
		fds[(*count)++] = fd;
		if (hello->role == SESSION_PROBE)
			return 0;
		if (*count == 1)
			features = welcome->features;
		if (*count == 1 && listener.told)
			listener.told(listener.argument, welcome);
		hello->role = SESSION_REPLIES;
		memcpy(hello->session, welcome->session, sizeof(hello->session));
		memcpy(hello->secret, welcome->secret, sizeof(hello->secret));
		dial->reply_port = welcome->reply_port;
	}
	return 0;
}

/* A front that died in the middle of a handshake: the connection ends, or the next one is
 * joined to a session that nobody knows. Nothing was begun, and another front is on its way. */
static bool front_died(int ret, unsigned count, const struct session_welcome *welcome)
{
	return ret == -ECONNRESET ||
	       (count && ret == -ECONNREFUSED && welcome->status == STATUS_NOT_PERMITTED);
}

static void drop_all(const struct dial *dial, int *fds, unsigned *count)
{
	while (*count)
		transport_drop(dial->transport, fds[--*count]);
}

/* END, until it arrives: the road may be cut just then, and without it the agent keeps the
 * session's memory until the grace is over.  A port that is closed has no workers. */
static int say_end(
	struct dial *dial, const struct session_hello *hello, struct session_welcome *welcome)
{
	int fd;

	for (uint64_t pause = END_PAUSE_NS;; pause *= 2) {
		fd = dial_join(dial, hello, welcome);
		if (fd >= 0)
			transport_drop(dial->transport, fd);
		if (fd >= 0 || fd == -ECONNREFUSED || wait_now() + pause >= dial->deadline)
			return fd < 0 ? fd : 0;
		poll(NULL, 0, (int)(pause / 1000000));
	}
}

/* A session was granted, and its client will not have it. */
static void give_up(struct dial *dial, struct session_hello *hello)
{
	struct session_welcome welcome;
	struct error error;
	struct dial last = *dial;

	hello->role = SESSION_END;
	last.error = &error;
	last.deadline = wait_now() + END_NS;
	say_end(&last, hello, &welcome);
}

/* Waits before try number TRY. false: it would be too late. */
static bool wait_again(const struct dial *dial, unsigned try)
{
	uint64_t ns = AGAIN_NS << try;

	if (try == AGAIN_MOST || wait_now() + ns >= dial->deadline)
		return false;
	poll(NULL, 0, (int)(ns / 1000000));
	return true;
}

int dial_session(struct dial *dial, const struct session_hello *wanted,
	struct session_welcome *welcome, struct link **link)
{
	struct session_hello hello;
	int fds[TRANSPORT_FDS], ret;
	unsigned count = 0, try = 0;

	*link = NULL;
	do {
		bool links;

		drop_all(dial, fds, &count);
		memset(welcome, 0, sizeof(*welcome));
		hello = *wanted;
		hello.magic = SESSION_MAGIC;
		if (!hello.version)
			hello.version = SESSION_VERSION;
		if (!hello.role)
			hello.role = SESSION_COMMANDS;
		if (hello.role == SESSION_END)
			ret = say_end(dial, &hello, welcome);
		else
			ret = dial_all(dial, &hello, welcome, fds, &count);
		links = !ret && hello.role != SESSION_PROBE && hello.role != SESSION_END;
		if (links)
			ret = dial->transport->link(
				fds, count, TRANSPORT_CLIENT, link, dial->error);
		if (ret && count && !wanted->role && welcome->features & SESSION_FEATURE_RESUME)
			give_up(dial, &hello);
	} while (ret && !wanted->role && front_died(ret, count, welcome) &&
		 wait_again(dial, try++));
	explicit_bzero(&hello, sizeof(hello));
	if (*link) {
		(*link)->place = dial->place;
		return 0;
	}
	drop_all(dial, fds, &count);
	return ret;
}

int dial_stripe(struct dial *dial, const struct session_hello *wanted, unsigned *number,
	struct link **stripe)
{
	struct session_hello hello = *wanted;
	struct session_welcome welcome;
	int fd, ret;

	*stripe = NULL;
	hello.magic = SESSION_MAGIC;
	hello.version = SESSION_VERSION;
	if (hello.role != SESSION_RENEW)
		hello.role = SESSION_STRIPE;
	fd = dial_join(dial, &hello, &welcome);
	explicit_bzero(&hello, sizeof(hello));
	if (fd < 0)
		return fd;
	if (wanted->role == SESSION_RENEW) {
		transport_drop(dial->transport, fd);
		return 0;
	}
	if (welcome.stripe && welcome.stripe <= SESSION_STRIPES)
		ret = dial->transport->link(&fd, 1, TRANSPORT_CLIENT, stripe, dial->error);
	else
		ret = error_set(dial->error, 0, "agent %s: a stripe with the number %u",
			dial->where, welcome.stripe);
	if (ret < 0) {
		transport_drop(dial->transport, fd);
		return ret;
	}
	*number = welcome.stripe;
	return 0;
}

int dial_peer(struct dial *dial, const struct session_hello *wanted)
{
	struct session_hello hello = *wanted;
	struct session_welcome welcome;
	int fd;

	hello.magic = SESSION_MAGIC;
	hello.version = SESSION_VERSION;
	fd = dial_join(dial, &hello, &welcome);
	explicit_bzero(&hello, sizeof(hello));
	return fd;
}
