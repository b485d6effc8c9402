/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/front/session/renew.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/journal.h"
#include "gpu-agent/front/worker_pool.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/front/tenants.h"
#include "protocol/wire/status.h"

uint32_t renew_session(struct front *front, const struct hello_from *from,
	enum refusal *refusal, char text[192])
{
	struct session *session = session_find(front, from, SESSION_RUNNING);

	if (!session) {
		*refusal = REFUSAL_SECRET;
		snprintf(text, 192, "no such session runs");
		return STATUS_NOT_PERMITTED;
	}
	session->proven_until =
		from->proven_ns == UINT64_MAX ? 0 : wait_now() + from->proven_ns;
	journal_session(front, session);
	front->counters.renewed++;
	log_info("session.renewed", "number=%" PRIu64, session->number);
	return 0;
}

uint64_t renew_tick(struct front *front, uint64_t now)
{
	uint64_t next = UINT64_MAX, grace = front->config->expiry_grace_ms * FRONT_MS;

	for (uint32_t i = 0; front->session_count && i < front->config->max_sessions; i++) {
		struct session *session = &front->sessions[i];

		if (session->state != SESSION_RUNNING || !session->proven_until)
			continue;
		if (session->proven_until + grace > now) {
			if (session->proven_until + grace < next)
				next = session->proven_until + grace;
			continue;
		}
		log_warn("session.expired", "number=%" PRIu64 " tenant=%s", session->number,
			session->tenant->name);
		front->counters.expired++;
		session->proven_until = 0;
		pool_stop(front, session->worker, STATUS_NOT_PERMITTED,
			"what proved who the client is has expired, and it brought nothing "
			"new");
	}
	return next;
}

void renew_revoked(struct front *front)
{
	for (uint32_t i = 0; front->session_count && i < front->config->max_sessions; i++) {
		struct session *session = &front->sessions[i];

		/* What ends by itself is not renewed, and networks see to their own. */
		if (session->state != SESSION_RUNNING || session->proven_until ||
			session->tenant->known || session->tenant->network)
			continue;
		log_warn("session.revoked", "number=%" PRIu64 " tenant=%s", session->number,
			session->tenant->name);
		pool_stop(front, session->worker, STATUS_NOT_PERMITTED,
			"the agent has no token of the session's tenant any more");
	}
}
