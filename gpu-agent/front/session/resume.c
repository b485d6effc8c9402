/* SPDX-License-Identifier: Apache-2.0
 *
 * An attempt goes: RESUME with the session's secret; the worker is asked how far it got, and
 * parks where it has not seen the cut itself; WELCOME says that, with the next secret; the
 * link's other connections bring that one; all go to the worker.  Where an attempt comes to
 * nothing the session is as it was, and the next attempt takes its place.
 */
#include "gpu-agent/front/session/resume.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/journal.h"
#include "gpu-agent/front/worker_pool.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/supervisor/settings/token.h"
#include "protocol/wire/status.h"

#define JOIN_NS (5000 * FRONT_MS) /* for the other connections */
#define WORKER_NS                                                                              \
	(60000 * FRONT_MS) /* for the worker, which may be in a call of its driver             \
			    */
/* A worker ends by itself 5 s behind the grace (worker/reply/park.c). */
#define BEYOND_NS (9000 * FRONT_MS)

uint32_t resume_grace(const struct front *front, const struct session_hello *hello)
{
	uint32_t most = front->config->grace_ms;

	if (!(hello->features & SESSION_FEATURE_RESUME))
		return 0;
	return hello->grace_ms < most ? hello->grace_ms : most;
}

uint64_t resume_patience(const struct session *session)
{
	return session->grace_ms * FRONT_MS + BEYOND_NS;
}

static struct session *find(struct front *front, const struct hello_from *from)
{
	struct session *session = session_find(front, from, SESSION_RUNNING);

	return session && session->grace_ms ? session : NULL;
}

void resume_promote(struct session *session, const uint8_t secret[16])
{
	struct resume *resume = &session->resume;

	if (!resume->offered || !token_same(resume->next, secret, sizeof(resume->next)))
		return;
	memcpy(session->secret, resume->next, sizeof(session->secret));
	resume->offered = false;
}

static void drop_attempt(struct front *front, struct session *session)
{
	int fd = events_forget(&front->events, &session->commands);

	if (fd >= 0)
		transport_drop(session->transport, fd);
	while (session->joined_count)
		transport_drop(session->transport, session->joined[--session->joined_count]);
	session->resume.state = RESUME_NONE;
}

static void park(struct session *session)
{
	session->resume.parked_at = wait_now();
	if (!session->deadline)
		session->deadline = session->resume.parked_at + resume_patience(session);
}

/* Before the hand-over the client has nothing to say. */
static void attempt_ready(struct watch *watch, uint32_t mask)
{
	(void)mask;
	drop_attempt(watch->owner, events_container(watch, struct session, commands));
}

uint32_t resume_begin(struct front *front, int fd, const struct hello_from *from,
	enum refusal *refusal, char text[192])
{
	struct session *session = find(front, from);
	struct handoff h = {.version = HANDOFF_VERSION, .what = HANDOFF_PARK};

	if (!session) {
		front->counters.resumes_refused++;
		return session_unknown(front, from, refusal, text);
	}
	*refusal = REFUSAL_NOT_READY;
	drop_attempt(front, session);
	if (events_watch(&front->events, &session->commands, fd, EPOLLIN | EPOLLRDHUP,
		    attempt_ready)) {
		snprintf(text, 192, "the agent could not watch the connection");
		return STATUS_NOT_READY;
	}
	park(session);
	session->peer = *from->peer;
	session->resume.state = RESUME_ASKED;
	session->resume.received = from->hello->counted;
	session->resume.deadline = wait_now() + WORKER_NS;
	h.device = ++session->resume.attempt;
	if (pool_say(session->worker, &h)) {
		/* The worker does not read; the client tries again. */
		events_forget(&front->events, &session->commands);
		session->resume.state = RESUME_NONE;
		snprintf(text, 192, "the session's worker does not answer");
		return STATUS_NOT_READY;
	}
	return 0;
}

/* All connections have come. */
static void hand_back(struct front *front, struct session *session)
{
	struct handoff h = {
		.version = HANDOFF_VERSION,
		.what = HANDOFF_RESUME,
		.bytes = session->resume.received,
	};
	int fds[1 + TRANSPORT_FDS], ret;
	unsigned count = 1 + session->joined_count;

	fds[0] = session->commands.fd;
	memcpy(fds + 1, session->joined, session->joined_count * sizeof(fds[0]));
	ret = session->transport->handoff(
		session->worker->handoff.fd, &h, sizeof(h), fds, count);
	if (ret) {
		log_of(&session->subject, LOG_WARN, "session.resume", "text=\"%s\"",
			strerror(-ret));
		drop_attempt(front, session);
		return;
	}
	while (session->joined_count)
		transport_drop(session->transport, session->joined[--session->joined_count]);
	events_forget(&front->events, &session->commands);
	if (session->transport->forget)
		session->transport->forget(fds[0]);
	journal_client(front, session, fds[0]);
	session_watch_client(front, session, fds[0]);
	session->deadline = 0;
	session->stripes = 0;
	journal_session(front, session);
	session->resume.state = RESUME_NONE;
	session->resume.parked_at = 0;
	session->resume.times++;
	front->counters.resumes++;
	log_of(&session->subject, LOG_INFO, "session.resumed", "times=%u peer=%s",
		session->resume.times, session->peer.text);
}

void resume_joined(struct front *front, struct session *session)
{
	if (session_is_whole(session))
		hand_back(front, session);
}

bool resume_parked(
	struct front *front, struct pool_worker *worker, const struct handoff *handoff)
{
	struct session *session = worker->session;
	struct resume *resume = &session->resume;
	struct session_welcome welcome;
	struct error error;

	if (!session->grace_ms || session->state != SESSION_RUNNING)
		return session->state == SESSION_ENDING;
	if (resume->state != RESUME_ASKED && !handoff->device)
		park(session);
	if (resume->state != RESUME_ASKED || handoff->device != resume->attempt)
		return true;
	if (token_random(resume->next, sizeof(resume->next), &error)) {
		drop_attempt(front, session);
		return true;
	}
	resume->offered = true;
	resume->state = RESUME_JOINING;
	resume->deadline = wait_now() + JOIN_NS;
	journal_session(front, session);
	welcome = session_greeting(front, session);
	welcome.taken = handoff->bytes;
	memcpy(welcome.secret, resume->next, sizeof(welcome.secret));
	if (hello_welcome(session->transport, session->commands.fd, &welcome))
		resume_joined(front, session);
	else
		drop_attempt(front, session);
	explicit_bzero(&welcome, sizeof(welcome));
	return true;
}

uint32_t resume_join(struct front *front, int fd, const struct hello_from *from,
	enum refusal *refusal, char text[192])
{
	struct session *session = find(front, from);
	struct session_welcome welcome;

	if (!session || session->resume.offered)
		return session_unknown(front, from, refusal, text);
	journal_session(front, session); /* the secret before is over at the next front too */
	if (session->resume.state != RESUME_JOINING ||
		!session_lacks(session, from->hello->role)) {
		*refusal = REFUSAL_LATE;
		snprintf(text, 192, "the connection before this one is gone again");
		return STATUS_NOT_READY;
	}
	welcome = session_greeting(front, session);
	session->joined[session->joined_count++] = fd;
	if (hello_welcome(session->transport, fd, &welcome))
		resume_joined(front, session);
	else
		drop_attempt(front, session);
	return 0;
}

uint32_t resume_end(struct front *front, int fd, const struct hello_from *from,
	enum refusal *refusal, char text[192])
{
	struct session *session = find(front, from);
	struct session_welcome welcome = {.magic = SESSION_MAGIC, .version = SESSION_VERSION};

	/* One that is over already, most likely: the client is told no more. */
	(void)refusal;
	(void)text;
	if (session) {
		log_of(&session->subject, LOG_INFO, "session.given_up", "peer=%s",
			from->peer->text);
		session->resume.parked_at = 0;
		pool_stop(front, session->worker, STATUS_OK, "the client ended it");
	}
	hello_welcome(from->transport, fd, &welcome);
	transport_drop(from->transport, fd);
	return 0;
}

uint64_t resume_tick(struct front *front, struct session *session, uint64_t now)
{
	if (session->resume.state == RESUME_NONE)
		return UINT64_MAX;
	if (session->resume.deadline > now)
		return session->resume.deadline;
	drop_attempt(front, session);
	return UINT64_MAX;
}
