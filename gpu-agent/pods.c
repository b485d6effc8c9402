/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/pods.h"

#include <stdio.h>
#include <string.h>

#include "common/log.h"

static bool limited(const struct session_hello *hello)
{
	return hello->memory_limit || hello->gpu_count;
}

/* The UID, or the name where it brings none. */
static void identity_of(const struct session_hello *hello, struct pod *pod)
{
	if (hello->pod_uid[0])
		front_clean(pod->identity, sizeof(pod->identity), hello->pod_uid,
			sizeof(hello->pod_uid));
	else
		front_clean(
			pod->identity, sizeof(pod->identity), hello->pod, sizeof(hello->pod));
}

uint32_t pods_may(const struct front *front, const struct session_hello *hello, char text[192])
{
	uint32_t there = front->ledger.device_count;

	if (!there || hello->gpu_count <= there)
		return 0;
	snprintf(
		text, 192, "%u GPUs are asked for, this agent has %u", hello->gpu_count, there);
	return STATUS_NOT_PERMITTED;
}

struct pod *pods_enter(struct front *front, const struct session_hello *hello)
{
	struct pod wanted = {.wanted = hello->gpu_count, .budget.limit = hello->memory_limit};
	struct pod *found = NULL, *unused = NULL;

	if (!limited(hello))
		return NULL;
	identity_of(hello, &wanted);
	for (uint32_t i = 0; i < front->config->max_sessions && !found; i++) {
		struct pod *pod = &front->pods[i];

		if (!pod->sessions)
			unused = unused ? unused : pod;
		else if (!strcmp(pod->identity, wanted.identity))
			found = pod;
	}
	if (!found) { /* one a session at most: there is room */
		found = unused;
		*found = wanted;
	} else if (wanted.budget.limit &&
		   (!found->budget.limit || wanted.budget.limit < found->budget.limit)) {
		found->budget.limit = wanted.budget.limit;
	}
	found->sessions++;
	return found;
}

static void pods_leave(struct pod *pod)
{
	if (pod)
		pod->sessions--;
}

/* The freest GPUs, in the order of their numbers. */
static bool choose(const struct ledger *ledger, struct pod *pod)
{
	uint32_t count = pod->wanted ? pod->wanted : ledger->device_count, chosen = 0;

	if (count > ledger->device_count)
		return false;
	for (uint32_t n = 0; n < count; n++) {
		uint32_t best = HANDOFF_DEVICES;

		for (uint32_t d = 0; d < ledger->device_count; d++)
			if (!(chosen >> d & 1) &&
				(best == HANDOFF_DEVICES ||
					ledger_free(ledger, d) > ledger_free(ledger, best)))
				best = d;
		chosen |= 1u << best;
	}
	for (uint32_t d = 0; d < ledger->device_count; d++)
		if (chosen >> d & 1)
			pod->gpus[pod->gpu_count++] = (uint8_t)d;
	return true;
}

bool pods_open_account(struct front *front, struct session *session)
{
	struct pod *pod = session->limits;
	uint32_t devices = 0;

	if (pod && !pod->gpu_count && !choose(&front->ledger, pod))
		return false;
	for (uint32_t i = 0; i < pods_gpu_count(front, session); i++)
		devices |= 1u << pods_gpu(front, session, i);
	ledger_open(&front->ledger, &session->account, devices, pod ? &pod->budget : NULL,
		front->config->lease_initial);
	return true;
}

void pods_close_account(struct front *front, struct session *session)
{
	ledger_close(&front->ledger, &session->account);
	if (session->limits) {
		pods_tell(front, session);
		pods_leave(session->limits);
		session->limits = NULL;
	}
}

uint32_t pods_gpu_count(const struct front *front, const struct session *session)
{
	return session->limits ? session->limits->gpu_count : front->ledger.device_count;
}

uint32_t pods_gpu(const struct front *front, const struct session *session, uint32_t index)
{
	if (index >= pods_gpu_count(front, session))
		return UINT32_MAX;
	return session->limits ? session->limits->gpus[index] : index;
}

void pods_fill_others(
	const struct front *front, const struct session *session, struct handoff *h)
{
	const struct pod *pod = session->limits;

	for (uint32_t i = 0; pod && i < pods_gpu_count(front, session); i++) {
		uint32_t d = pods_gpu(front, session, i);

		h->devices[i].others = pod->budget.lease[d] - session->account.lease[d];
	}
}

void pods_tell(struct front *front, const struct session *session)
{
	const struct pod *pod = session->limits;

	if (!pod || pod->sessions < 2)
		return;
	for (uint32_t i = 0; i < front->config->max_sessions; i++) {
		struct session *other = &front->sessions[i];
		struct handoff h = {.version = HANDOFF_VERSION, .what = HANDOFF_OTHERS};

		if (other == session || other->limits != pod || other->state != SESSION_RUNNING)
			continue;
		h.device_count = pods_gpu_count(front, other);
		pods_fill_others(front, other, &h);
		pool_say(other->worker, &h);
	}
}
