/* SPDX-License-Identifier: Apache-2.0
 *
 * What a worker gets with its session: its connections, then stripes and further paths.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gpu-agent/front/front.h"
#include "gpu-agent/front/handoff.h"
#include "gpu-agent/front/worker_pool.h"
#include "gpu-agent/front/ledger/quota.h"
#include "gpu-agent/front/session/refusals.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/front/ledger/tenant_quotas.h"
#include "gpu-agent/front/tenants.h"
#include "gpu-agent/front/ledger/timeshare.h"

void pool_announce(struct front *front, struct session *session)
{
	struct handoff h = {
		.version = HANDOFF_VERSION,
		.what = HANDOFF_COMING,
		.device_count = quota_gpu_count(front, session),
	};

	for (uint32_t i = 0; i < h.device_count; i++)
		h.gpus[i] = (uint8_t)quota_gpu(front, session, i);
	/* What does not arrive costs the session a moment of its open. */
	pool_say(session->worker, &h);
}

int pool_hand_over(struct front *front, struct session *session, const int *fds, unsigned count)
{
	struct pool_worker *worker = session->worker;
	struct handoff h = {
		.version = HANDOFF_VERSION,
		.what = HANDOFF_SESSION,
		.device_count = quota_gpu_count(front, session),
		.bytes = quota_limit(session),
		.grace_ms = session->grace_ms,
		.shares = session->features & SESSION_FEATURE_LOCAL ? 1 : 0,
		.coded = !!(session->features & SESSION_FEATURE_ZSTD),
	};
	struct control tenant = {.what = CONTROL_TENANT, .pid = worker->pid};
	int ret;

	snprintf(h.text, sizeof(h.text), "%s", session->transport->name);
	memcpy(h.session, session->id, sizeof(h.session));
	snprintf(h.pod, sizeof(h.pod), "%s", session->pod);
	for (uint32_t i = 0; i < h.device_count; i++) {
		h.gpus[i] = (uint8_t)quota_gpu(front, session, i);
		h.devices[i].lease = session->account.lease[h.gpus[i]];
	}
	quota_fill_others(front, session, &h);
	timeshare_begin(front, session, &h);
	tenant_quotas_fill(session, &h);
	if (worker->handoff.fd < 0 || worker->state != WORKER_TAKEN)
		return -EPIPE;
	/* First: so that it has them before the client's first call. */
	snprintf(tenant.text, sizeof(tenant.text), "%s", session->tenant->name);
	front_tell(front, &tenant);
	refusals_keep(front, worker);
	ret = tenant_quotas_tell(front, session);
	if (ret)
		return ret;
	ret = session->transport->handoff(worker->handoff.fd, &h, sizeof(h), fds, count);
	if (!ret)
		pool_set_state(front, worker, WORKER_BUSY);
	return ret;
}

int pool_hand_over_stripe(struct session *session, uint32_t stripe, int fd)
{
	struct handoff h = {
		.version = HANDOFF_VERSION,
		.what = HANDOFF_STRIPE,
		.device = stripe,
	};

	if (!session->worker || session->worker->handoff.fd < 0)
		return -EPIPE;
	return session->transport->handoff(session->worker->handoff.fd, &h, sizeof(h), &fd, 1);
}

int pool_hand_over_path(struct session *session, int fd)
{
	struct handoff h = {.version = HANDOFF_VERSION, .what = HANDOFF_PATH};

	if (!session->worker || session->worker->handoff.fd < 0)
		return -EPIPE;
	return session->transport->handoff(session->worker->handoff.fd, &h, sizeof(h), &fd, 1);
}
