/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections of a session behind its first: which session one is of, and what it becomes
 * there.
 */
#include <stdio.h>

#include "gpu-agent/front/front.h"
#include "gpu-agent/front/session/hello.h"
#include "gpu-agent/front/journal.h"
#include "gpu-agent/front/worker_pool.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/front/ledger/tenant_quotas.h"
#include "gpu-agent/front/tenants.h"
#include "gpu-agent/front/uploads.h"
#include "gpu-agent/supervisor/settings/token.h"
#include "protocol/wire/status.h"

bool session_is_whole(const struct session *session)
{
	return 1 + session->joined_count ==
	       transport_connections(session->transport, session->features);
}

bool session_lacks(const struct session *session, uint32_t role)
{
	unsigned before = role == SESSION_LIGHT ? 1 : 0;

	return session->joined_count == before && !session_is_whole(session) &&
	       (role != SESSION_LIGHT || session->features & SESSION_FEATURE_LIGHT);
}

struct session *session_find(
	struct front *front, const struct hello_from *from, enum session_state state)
{
	const struct session_hello *hello = from->hello;
	struct session *found = NULL;

	for (uint32_t i = 0; i < front->config->max_sessions; i++) {
		struct session *session = &front->sessions[i];
		bool id = token_same(session->id, hello->session, sizeof(session->id));
		bool secret =
			token_same(session->secret, hello->secret, sizeof(session->secret));
		bool next = token_same(
			session->resume.next, hello->secret, sizeof(session->resume.next));

		if (id && (secret || (next && session->resume.offered)) &&
			session->state == state &&
			(!from->tenant || session->tenant == from->tenant) &&
			session->transport == from->transport)
			found = session;
	}
	if (found)
		resume_promote(found, hello->secret);
	return found;
}

/* The same among those that are over. */
static const struct session_late *find_late(
	const struct front *front, const struct session_hello *hello)
{
	const struct session_late *found = NULL;

	for (uint32_t i = 0; i < SESSIONS_LATE && i < front->late_count; i++) {
		const struct session_late *l = &front->late[i];
		bool id = token_same(l->id, hello->session, sizeof(l->id));
		bool secret = token_same(l->secret, hello->secret, sizeof(l->secret));

		if (id && secret)
			found = l;
	}
	return found;
}

void session_set_end(struct session *session, uint32_t status, const char *text)
{
	if (session->end.status || !status)
		return;
	session->end.status = status;
	snprintf(session->end.text, sizeof(session->end.text), "%s", text);
}

bool session_told_end(
	struct front *front, const struct hello_from *from, struct session_end *end)
{
	const struct session *ending = session_find(front, from, SESSION_ENDING);
	const struct session_late *late = find_late(front, from->hello);

	*end = ending ? ending->end : late ? late->end : (struct session_end){0};
	return end->status;
}

/* A connection that comes too late is no attempt on a secret: a program's stripes are on their
 * way when it ends. */
uint32_t session_unknown(struct front *front, const struct hello_from *from,
	enum refusal *refusal, char text[192])
{
	bool ending = session_find(front, from, SESSION_ENDING);
	bool late = ending || find_late(front, from->hello);

	if (ending && from->hello->role == SESSION_RESUME) {
		/* Its client may have seen the worker's end before we know how that was. */
		*refusal = REFUSAL_LATE;
		snprintf(text, 192, "the session is ending");
		return STATUS_NOT_READY;
	}
	*refusal = late ? REFUSAL_LATE : REFUSAL_SECRET;
	snprintf(text, 192, "%s",
		late ? "the session is over" : "no session waits for these connections");
	return STATUS_NOT_PERMITTED;
}

uint32_t session_join(struct front *front, int fd, const struct hello_from *from,
	enum refusal *refusal, char text[192])
{
	struct session *session = session_find(front, from, SESSION_JOINING);
	struct session_welcome welcome;

	if (!session)
		return resume_join(front, fd, from, refusal, text);
	if (!session_lacks(session, from->hello->role))
		return session_unknown(front, from, refusal, text);
	welcome = session_greeting(front, session);
	*refusal = REFUSAL_NOT_READY;
	if (!hello_welcome(session->transport, fd, &welcome)) {
		snprintf(text, 192, "the client does not take its WELCOME");
		session_give_up(front, session, text);
		return STATUS_NOT_READY;
	}
	session_joined(front, session, fd);
	return 0;
}

uint32_t session_stripe(struct front *front, int fd, const struct hello_from *from,
	enum refusal *refusal, char text[192])
{
	struct session *session = session_find(front, from, SESSION_RUNNING);
	struct session_welcome welcome;
	uint32_t most;

	if (!session)
		return session_unknown(front, from, refusal, text);
	most = session->features & SESSION_FEATURE_STRIPES_BACK ? SESSION_STRIPES
								: SESSION_STRIPES_ONE_WAY;
	*refusal = REFUSAL_SECRET;
	if (!(session->features & SESSION_FEATURE_STRIPES)) {
		snprintf(text, 192, "no session takes this stripe");
		return STATUS_NOT_PERMITTED;
	}
	if (session->stripes >= most) {
		*refusal = REFUSAL_QUOTA;
		snprintf(text, 192, "the session has its %u stripes", most);
		return STATUS_NOT_PERMITTED;
	}
	if (!tenant_quotas_stripe(front, session)) {
		*refusal = REFUSAL_QUOTA;
		snprintf(text, 192, "inflight_bytes of '%s' has no room for another stripe",
			session->tenant->name);
		return STATUS_NOT_PERMITTED;
	}
	welcome = session_greeting(front, session);
	welcome.stripe = (uint8_t)(session->stripes + 1);
	*refusal = REFUSAL_LATE;
	/* A client that hears the worker greet waits for it. Then the worker sends, too, behind
	 * what we send: its place in what is encrypted is known when nothing comes of us. */
	if (most == SESSION_STRIPES)
		hello_welcome(session->transport, fd, &welcome);
	uploads_lane(front, session, welcome.stripe);
	/* Else first: a frame that names the stripe must find it at the worker. */
	if (!pool_hand_over_stripe(session, welcome.stripe, fd)) {
		session->stripes++;
		journal_session(front, session);
	} else if (most != SESSION_STRIPES) {
		snprintf(text, 192, "the session is ending");
		return STATUS_NOT_READY;
	}
	/* Who does not take it does not use the stripe either. */
	if (most != SESSION_STRIPES)
		hello_welcome(session->transport, fd, &welcome);
	transport_drop(session->transport, fd);
	return 0;
}
