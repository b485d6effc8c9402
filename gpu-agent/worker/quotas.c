/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/worker/quotas.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "gpu-agent/worker/worker_state.h"

_Static_assert(QUOTA_LINK_BYTES == STAGING_BYTES, "what a session receives into");
_Static_assert(QUOTA_STRIPE_BYTES == STRIPE_SLOTS * FRAME_PAYLOAD_MAX, "and a stripe");

void quotas_begin(struct worker *w, const struct handoff *session)
{
	uint64_t inflight = session->quotas[QUOTA_INFLIGHT];

	memcpy(w->quotas, session->quotas, sizeof(w->quotas));
	/* The rings are empty. Who sends more waits until something of them is done. */
	if (inflight && inflight < STAGING_BYTES)
		w->in.size = w->out.size = (uint32_t)inflight & ~(STAGING_ALIGN - 1);
	if (w->quotas[QUOTA_LOG])
		log_limit((unsigned)w->quotas[QUOTA_LOG]);
}

/* On the program's own stderr: a status alone would be a GPU without memory. */
static void tell(struct worker *w, enum quota quota, uint64_t n)
{
	const struct quota_row *row = &quota_rows[quota];
	const uint64_t limit = w->quotas[quota], used = w->stats.quotas[quota];

	dprintf(STDERR_FILENO,
		"vcuda: the agent's quota %s of this tenant is used up: a session may have "
		"%" PRIu64 "%s, has %" PRIu64 " and wants %" PRIu64 " more\n",
		row->key, limit, row->bytes ? " bytes" : "", used, n);
	log_warn("session.quota", "quota=%s limit=%" PRIu64 " used=%" PRIu64 " wanted=%" PRIu64,
		row->key, limit, used, n);
}

bool quotas_take(struct worker *w, enum quota quota, uint64_t n)
{
	uint64_t *used = &w->stats.quotas[quota];

	if (w->quotas[quota] && (n > w->quotas[quota] || *used > w->quotas[quota] - n)) {
		if (!w->stats.quotas_refused[quota]++)
			tell(w, quota, n);
		return false;
	}
	*used += n;
	return true;
}

void quotas_give(struct worker *w, enum quota quota, uint64_t n)
{
	w->stats.quotas[quota] -= n;
}
