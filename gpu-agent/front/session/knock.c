/* SPDX-License-Identifier: Apache-2.0
 *
 * Anybody can send a datagram in anybody's name.  So one costs a comparison with each session's
 * secret and nothing else, until it names a session: no slot, no answer, no line in the log.
 */
#include "gpu-agent/front/session/knock.h"

#include "gpu-agent/front/front.h"
#include "gpu-agent/front/session/hello.h"
#include "gpu-agent/front/worker_pool.h"
#include "gpu-agent/front/session/resume.h"
#include "gpu-agent/front/session/session.h"

#define KNOCKS_A_TURN 256

/* The session that is named, or NULL. *joins: it waits for this connection; else it has one,
 * and its client's address may have changed. */
static struct session *find(struct front *front, const struct transport *transport,
	const struct transport_knock *knock, bool *joins)
{
	const struct hello_from from = {
		.hello = &knock->hello, .peer = &knock->peer, .transport = transport};
	struct session *session = session_find(front, &from, SESSION_JOINING);

	*joins = session != NULL;
	if (!session) {
		session = session_find(front, &from, SESSION_RUNNING);
		*joins = session && session->resume.state == RESUME_JOINING;
	}
	if (!session || !(session->features & SESSION_FEATURE_LIGHT) ||
		(*joins && !session_lacks(session, SESSION_LIGHT)) ||
		(!*joins && session->resume.state != RESUME_NONE))
		return NULL;
	return session;
}

static void serve(struct front *front, struct session *session, bool joins, int fd)
{
	struct session_welcome welcome = session_greeting(front, session);

	hello_welcome(session->transport, fd, &welcome);
	if (joins) {
		session_joined(front, session, fd);
		return;
	}
	pool_hand_over_path(session, fd);
	transport_drop(session->transport, fd);
}

void knocks_ready(struct watch *watch, uint32_t mask)
{
	struct front *front = watch->owner;
	const struct transport *transport = front->transports[watch - front->listeners];

	(void)mask;
	for (int i = 0; i < KNOCKS_A_TURN; i++) {
		struct transport_knock knock;
		struct session *session = NULL;
		bool joins;
		int ret = transport->knock(watch->fd, &knock);
		int fd = -1;

		if (ret < 0 && ret != -EPROTO)
			return;
		if (!ret)
			session = find(front, transport, &knock, &joins);
		if (session)
			fd = transport->admit(watch->fd, &knock);
		if (fd >= 0)
			serve(front, session, joins, fd);
		if (fd >= 0)
			front->counters.knocks_taken++;
		else
			front->counters.knocks_refused++;
	}
}
