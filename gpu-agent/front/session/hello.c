/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections that have not said who they are.  Each has one fixed slot, 5 s, and room for
 * exactly one HELLO: what comes behind it stays in the socket for the worker.  Nothing is
 * allocated, started or looked up before the token was compared.
 *
 * A well-behaved client says its HELLO at once and holds a slot for no time at all; the limits
 * are there for the others.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/front/tensor/tensor_copy.h"
#include "gpu-agent/front/direct.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/session/hello.h"
#include "gpu-agent/front/session/hello_core.h"
#include "gpu-agent/front/identity.h"
#include "gpu-agent/front/ledger/quota.h"
#include "gpu-agent/front/session/renew.h"
#include "gpu-agent/front/session/resume.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/front/tenants.h"
#include "protocol/wire/status.h"
#include "transport/socket_link.h"

#define LINGER_NS (1000 * FRONT_MS)

const char *refusal_name(enum refusal refusal)
{
	static const char *const names[REFUSALS] = {
		[REFUSAL_MAGIC] = "magic",
		[REFUSAL_VERSION] = "version",
		[REFUSAL_ROLE] = "role",
		[REFUSAL_TOKEN] = "token",
		[REFUSAL_SECRET] = "secret",
		[REFUSAL_LATE] = "late",
		[REFUSAL_OVERTAKEN] = "overtaken",
		[REFUSAL_QUOTA] = "quota",
		[REFUSAL_DRAINING] = "draining",
		[REFUSAL_NOT_READY] = "not_ready",
		[REFUSAL_TIMEOUT] = "timeout",
		[REFUSAL_FLOOD] = "flood",
		[REFUSAL_TLS] = "tls",
	};

	return names[refusal];
}

void hello_refused(struct front *front, enum refusal refusal, const struct transport_peer *peer)
{
	static uint64_t logged_at;
	uint64_t now = wait_now();

	front->counters.refused[refusal]++;
	/* Who was overtaken is no fault of anybody's. */
	if (refusal == REFUSAL_OVERTAKEN || now - logged_at < 1000 * FRONT_MS)
		return;
	logged_at = now;
	log_warn("hello.refused", "reason=%s peer=%s", refusal_name(refusal), peer->text);
}

bool hello_welcome(
	const struct transport *transport, int fd, const struct session_welcome *welcome)
{
	return !transport_write(transport, fd, welcome, sizeof(*welcome));
}

/* The slot is free again; returns the connection. */
static int release(struct front *front, struct hello_slot *slot)
{
	front->half_open--;
	explicit_bzero(&slot->hello, sizeof(slot->hello));
	if (slot->got > sizeof(slot->hello)) /* else it was not written to */
		explicit_bzero(slot->credential, sizeof(slot->credential));
	return events_forget(&front->events, &slot->watch);
}

void hello_drop(struct front *front, struct hello_slot *slot)
{
	const struct transport *transport = slot->transport;

	transport_drop(transport, release(front, slot));
}

/* Until the peer has read what was said last. */
static void stay(struct hello_slot *slot)
{
	stream_finish(slot->watch.fd);
	slot->lingering = true;
	slot->got = 0;
	slot->deadline = wait_now() + LINGER_NS;
}

/* All that we say, and the connection stays until the peer closed it: closing with its bytes
 * unread would reset it, and the answer could be lost on the way. */
static void answer_last(
	struct front *front, struct hello_slot *slot, const struct session_welcome *welcome)
{
	if (!hello_welcome(slot->transport, slot->watch.fd, welcome)) {
		hello_drop(front, slot);
		return;
	}
	stay(slot);
}

static void refuse(struct front *front, struct hello_slot *slot, enum refusal refusal,
	uint32_t status, const char *text)
{
	struct session_welcome welcome = {
		.magic = SESSION_MAGIC,
		.version = SESSION_VERSION,
		.status = status,
	};

	hello_refused(front, refusal, &slot->peer);
	snprintf(welcome.text, sizeof(welcome.text), "%s", text);
	answer_last(front, slot, &welcome);
}

/* Of a session that was ended: its client hears why, though its worker could not say it. */
static bool answer_ended(
	struct front *front, struct hello_slot *slot, const struct hello_from *from)
{
	struct session_welcome welcome = {
		.magic = SESSION_MAGIC,
		.version = SESSION_VERSION,
		.status = STATUS_NOT_PERMITTED,
	};
	struct session_end end;

	if (!session_told_end(front, from, &end))
		return false;
	hello_refused(front, REFUSAL_LATE, &slot->peer);
	welcome.ended = end.status;
	snprintf(welcome.text, sizeof(welcome.text), "%s", end.text);
	answer_last(front, slot, &welcome);
	return true;
}

/* Who the client was taken for, and until when: for `vcuda doctor`. */
static void say_who(const struct hello_from *from, char text[192])
{
	size_t at = strlen(text);
	char until[32];
	struct tm tm;
	time_t end = time(NULL) + (time_t)(from->proven_ns / (1000 * FRONT_MS));

	if (from->proven_ns == UINT64_MAX) {
		snprintf(text + at, 192 - at, "; as %s", from->tenant->name);
		return;
	}
	strftime(until, sizeof(until), "%FT%TZ", gmtime_r(&end, &tm));
	snprintf(text + at, 192 - at, "; as %s until %s", from->tenant->name, until);
}

static void answer_probe(
	struct front *front, struct hello_slot *slot, const struct hello_from *from)
{
	struct session_welcome welcome = {
		.magic = SESSION_MAGIC,
		.version = SESSION_VERSION,
		.reply_port = front->config->bound[LISTEN_SEND],
	};
	enum refusal refusal = REFUSAL_NOT_READY;
	const char *why = "";
	char waste[192];
	uint32_t gpus;
	bool full;

	front->counters.probes++;
	memcpy(welcome.session, front->identity, sizeof(welcome.session));
	welcome.status = session_may(front, from, &refusal, welcome.text);
	/* Full is no fault: the agent answers, and what runs there goes on. The text says it,
	 * and with nothing free it is the last that a client of several agents tries. */
	full = welcome.status && refusal == REFUSAL_QUOTA && !quota_may(front, from, waste);
	if (full)
		welcome.status = STATUS_OK;
	if (!welcome.status && !front_is_ready(front, &why)) {
		welcome.status = STATUS_NOT_READY;
		snprintf(welcome.text, sizeof(welcome.text), "%s", why);
	}
	gpus = quota_good(front, from->tenant);
	welcome.gpus = (uint8_t)__builtin_popcount(gpus);
	welcome.sessions = session_count_for(front, from->tenant);
	for (uint32_t d = 0; d < front->ledger.device_count && !full; d++)
		if (gpus >> d & 1 && quota_free(front, from->tenant, d) > welcome.free_memory)
			welcome.free_memory = quota_free(front, from->tenant, d);
	if (!welcome.status && !full) {
		snprintf(welcome.text, sizeof(welcome.text), "ready: %u %s, %u ready %s",
			welcome.gpus, welcome.gpus == 1 ? "GPU" : "GPUs",
			front->pool.count[WORKER_READY],
			front->pool.count[WORKER_READY] == 1 ? "worker" : "workers");
		say_who(from, welcome.text);
	}
	answer_last(front, slot, &welcome);
}

static void answer_renew(
	struct front *front, struct hello_slot *slot, const struct hello_from *from)
{
	struct session_welcome welcome = {.magic = SESSION_MAGIC, .version = SESSION_VERSION};
	enum refusal refusal = REFUSAL_SECRET;
	char text[192] = "";
	uint32_t status = renew_session(front, from, &refusal, text);

	if (status)
		refuse(front, slot, refusal, status, text);
	else
		answer_last(front, slot, &welcome);
}

static const char wrong_token[] = "the token is not the agent's; set it on the client's side "
				  "(token_file)";

static bool serves(const struct hello_slot *slot, uint32_t role)
{
	return role <= SESSION_LIGHT && slot->roles & TRANSPORT_ROLE(role);
}

static void say_where(const struct front *front, uint32_t role, char text[192])
{
	snprintf(text, 192,
		"role %u is not served on this port: commands go to port %u, replies to %u",
		role, front->config->bound[LISTEN_RECV], front->config->bound[LISTEN_SEND]);
}

/* Another agent's front, on the port for commands. Its ticket is what it is known by. */
static void answer_peer(
	struct front *front, struct hello_slot *slot, const struct hello_from *from)
{
	enum refusal refusal = REFUSAL_ROLE;
	char text[192] = "";
	int fd = events_forget(&front->events, &slot->watch);
	uint32_t status = STATUS_INVALID_VALUE;

	if (slot->roles & TRANSPORT_ROLE(SESSION_COMMANDS))
		status = slot->hello.role == SESSION_PEER
				 ? direct_join(front, fd, from, &refusal, text)
				 : tensor_copy_join(front, fd, from, &refusal, text);
	else
		say_where(front, slot->hello.role, text);
	if (!status) {
		release(front, slot);
	} else if (events_watch(&front->events, &slot->watch, fd, EPOLLIN, hello_ready)) {
		transport_drop(slot->transport, fd);
		release(front, slot);
	} else {
		refuse(front, slot, refusal, status, text);
	}
}

/* A whole HELLO of our version. */
static void decide(struct front *front, struct hello_slot *slot)
{
	const struct session_hello *hello = &slot->hello;
	struct hello_from from = {
		.hello = hello, .peer = &slot->peer, .transport = slot->transport};
	enum refusal refusal = REFUSAL_ROLE;
	char text[192] = "";
	uint32_t status;
	bool known;
	int fd;

	if (hello->role == SESSION_PEER || hello->role == SESSION_COPY) {
		answer_peer(front, slot, &from);
		return;
	}
	known = identity_of(front, slot, &from);
	if ((hello->role == SESSION_RESUME || hello->role == SESSION_REPLIES ||
		    hello->role == SESSION_END) &&
		answer_ended(front, slot, &from))
		return;
	if (!known) {
		refuse(front, slot, REFUSAL_TOKEN, STATUS_NOT_PERMITTED, wrong_token);
		return;
	}
	if (hello->role == SESSION_PROBE) {
		answer_probe(front, slot, &from);
		return;
	}
	if (hello->role == SESSION_RENEW) {
		answer_renew(front, slot, &from);
		return;
	}
	/* Who takes it watches it himself. */
	fd = events_forget(&front->events, &slot->watch);
	if (!serves(slot, hello->role)) {
		status = STATUS_INVALID_VALUE;
		say_where(front, hello->role, text);
	} else if (hello->role == SESSION_COMMANDS) {
		status = session_begin(front, fd, &from, &refusal, text);
	} else if (hello->role == SESSION_REPLIES || hello->role == SESSION_LIGHT) {
		status = session_join(front, fd, &from, &refusal, text);
	} else if (hello->role == SESSION_RESUME) {
		status = resume_begin(front, fd, &from, &refusal, text);
	} else if (hello->role == SESSION_END) {
		status = resume_end(front, fd, &from, &refusal, text);
	} else {
		status = session_stripe(front, fd, &from, &refusal, text);
	}
	if (!status) {
		release(front, slot);
	} else if (events_watch(&front->events, &slot->watch, fd, EPOLLIN, hello_ready)) {
		transport_drop(slot->transport, fd);
		release(front, slot);
	} else {
		refuse(front, slot, refusal, status, text);
	}
}

/* All that it is going to say, as far as that is known; false: more than it may. */
static bool wanted(const struct hello_slot *slot, uint32_t *n)
{
	const uint32_t plain = sizeof(slot->hello), head = sizeof(slot->credential_head);

	*n = plain;
	if (slot->got < plain || slot->hello.version != SESSION_VERSION_CREDENTIAL)
		return true;
	*n += head;
	if (slot->got < plain + head)
		return true;
	*n += slot->credential_head.length;
	return slot->credential_head.length &&
	       slot->credential_head.length <= SESSION_CREDENTIAL_MAX;
}

/* What came so far; false: the slot was answered or dropped. */
static bool look(struct front *front, struct hello_slot *slot)
{
	const struct session_hello *hello = &slot->hello;
	uint32_t n = 0;
	char text[192];

	if (slot->got >= sizeof(hello->magic) && hello->magic != SESSION_MAGIC) {
		hello_refused(front, REFUSAL_MAGIC, &slot->peer);
		hello_drop(front, slot);
		return false;
	}
	if (slot->got >= offsetof(struct session_hello, role) &&
		hello->version != SESSION_VERSION &&
		hello->version != SESSION_VERSION_CREDENTIAL) {
		snprintf(text, sizeof(text),
			"the client speaks session protocol %u, this agent %u (gpu-agent %s); "
			"use the same release on both sides",
			hello->version, SESSION_VERSION, AGENT_VERSION);
		refuse(front, slot, REFUSAL_VERSION, STATUS_MISMATCH, text);
		return false;
	}
	if (!wanted(slot, &n)) {
		refuse(front, slot, REFUSAL_TOKEN, STATUS_NOT_PERMITTED, wrong_token);
		return false;
	}
	if (slot->got == n) {
		decide(front, slot);
		return false;
	}
	return true;
}

static void linger(struct front *front, struct hello_slot *slot)
{
	char waste[2048];
	ssize_t n;

	while ((n = stream_read(slot->watch.fd, waste, sizeof(waste))) > 0) {
		slot->got += (uint32_t)n;
		if (slot->got > HELLO_DRAIN_BYTES)
			break;
	}
	if (n == -EAGAIN)
		return;
	hello_drop(front, slot);
}

void hello_ready(struct watch *watch, uint32_t mask)
{
	struct hello_slot *slot = events_container(watch, struct hello_slot, watch);
	struct front *front = watch->owner;
	uint32_t most;
	ssize_t n;

	(void)mask;
	if (slot->lingering) {
		linger(front, slot);
		return;
	}
	do {
		wanted(slot, &most);
		n = transport_read(slot->transport, watch->fd, (char *)&slot->hello + slot->got,
			most - slot->got);
		if (n == -EAGAIN)
			return;
		if (n == -EPROTO) {
			hello_refused(front, REFUSAL_TLS, &slot->peer);
			stay(slot);
			return;
		}
		if (n <= 0) {
			hello_drop(front, slot);
			return;
		}
		slot->got += (uint32_t)n;
	} while (look(front, slot));
}

uint64_t hello_tick(struct front *front, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; front->half_open && i < HELLO_SLOTS; i++) {
		struct hello_slot *slot = &front->slots[i];

		if (slot->watch.fd < 0)
			continue;
		if (slot->deadline <= now) {
			if (!slot->lingering)
				hello_refused(front, REFUSAL_TIMEOUT, &slot->peer);
			hello_drop(front, slot);
		} else if (slot->deadline < next) {
			next = slot->deadline;
		}
	}
	return next;
}
