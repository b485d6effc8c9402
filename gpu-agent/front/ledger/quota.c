/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/front/ledger/quota.h"

#include <stdio.h>
#include <string.h>

#include "gpu-agent/front/tensor/fallen.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/session/hello.h"
#include "gpu-agent/front/worker_pool.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/front/tenants.h"
#include "protocol/wire/status.h"

static bool limited(const struct session_hello *hello)
{
	return hello->vram_limit || hello->gpu_count;
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

uint32_t quota_gpus(const struct front *front, const struct tenant *tenant)
{
	uint32_t there = (1u << front->ledger.device_count) - 1;

	return tenant->gpus ? tenant->gpus & there : there;
}

uint32_t quota_good(const struct front *front, const struct tenant *tenant)
{
	return quota_gpus(front, tenant) & ~fallen_gpus(front);
}

uint64_t quota_free(const struct front *front, const struct tenant *tenant, uint32_t device)
{
	const struct ledger_budget *budget = &tenant->budget;
	uint64_t left = ledger_free(&front->ledger, device), own = UINT64_MAX;

	if (budget->limit)
		own = budget->limit > budget->lease[device]
			      ? budget->limit - budget->lease[device]
			      : 0;
	return left < own ? left : own;
}

uint32_t quota_may(const struct front *front, const struct hello_from *from, char text[192])
{
	uint32_t there = (uint32_t)__builtin_popcount(quota_good(front, from->tenant));
	uint32_t fallen = quota_gpus(front, from->tenant) & fallen_gpus(front);
	uint32_t wanted = from->hello->gpu_count;
	const char *why = fallen ? front->fallen[__builtin_ctz(fallen)].why : "";

	if (!front->ledger.device_count || (there && wanted <= there))
		return 0;
	if (!wanted) {
		snprintf(text, 192, "there is no GPU; %s", why);
		return STATUS_NOT_READY;
	}
	snprintf(text, 192, "%u GPUs are asked for, this agent has %u%s%s%s", wanted, there,
		from->tenant->gpus ? " for this network" : "", fallen ? "; " : "", why);
	return STATUS_NOT_PERMITTED;
}

/* One of those that were chosen for it has fallen: it gets others for its next session. */
static bool is_hit(const struct front *front, const struct pod *pod)
{
	uint32_t gpus = 0;

	for (uint32_t i = 0; i < pod->gpu_count; i++)
		gpus |= 1u << pod->gpus[i];
	return gpus & fallen_gpus(front);
}

static bool same(const struct pod *a, const struct pod *b)
{
	return a->tenant == b->tenant && a->wanted == b->wanted && a->allowed == b->allowed &&
	       a->budget.limit == b->budget.limit && transport_same(&a->peer, &b->peer) &&
	       !strcmp(a->identity, b->identity);
}

/* The pod that is the same, or a new one; counted. */
static struct pod *enter(struct front *front, const struct pod *wanted)
{
	struct pod *found = NULL, *unused = NULL;

	for (uint32_t i = 0; i < front->config->max_sessions && !found; i++) {
		struct pod *pod = &front->pods[i];

		if (!pod->sessions)
			unused = unused ? unused : pod;
		else if (same(pod, wanted) && !is_hit(front, pod))
			found = pod;
	}
	if (!found) { /* one a session at most: there is room */
		found = unused;
		*found = *wanted;
	}
	found->sessions++;
	return found;
}

struct pod *quota_enter(struct front *front, const struct hello_from *from)
{
	struct pod wanted = {
		.wanted = from->hello->gpu_count,
		.allowed = from->tenant->gpus,
		.peer = *from->peer,
		.tenant = from->tenant,
		.budget = {.limit = from->hello->vram_limit, .parent = &from->tenant->budget},
	};

	if (!limited(from->hello) && !wanted.allowed)
		return NULL;
	identity_of(from->hello, &wanted);
	return enter(front, &wanted);
}

struct pod *quota_adopt(struct front *front, const struct pod *had, struct tenant *tenant)
{
	struct pod pod = *had;

	pod.sessions = 0;
	pod.tenant = tenant;
	pod.budget =
		(struct ledger_budget){.limit = had->budget.limit, .parent = &tenant->budget};
	return enter(front, &pod);
}

static void quota_leave(struct pod *pod)
{
	if (pod)
		pod->sessions--;
}

/* The freest GPUs, in the order of their numbers. */
static bool choose(const struct front *front, struct pod *pod)
{
	const struct ledger *ledger = &front->ledger;
	uint32_t all = (1u << ledger->device_count) - 1, chosen = 0;
	uint32_t may = (pod->allowed ? pod->allowed & all : all) & ~fallen_gpus(front);
	uint32_t there = (uint32_t)__builtin_popcount(may);
	uint32_t count = pod->wanted ? pod->wanted : there;

	if (!count || count > there)
		return false;
	for (uint32_t n = 0; n < count; n++) {
		uint32_t best = HANDOFF_DEVICES;

		for (uint32_t d = 0; d < ledger->device_count; d++)
			if ((may & ~chosen) >> d & 1 &&
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

/* Of a session without limits, which has all: those that are left. */
static struct pod *enter_rest(struct front *front, const struct session *session)
{
	struct pod rest = {
		.peer = session->peer,
		.tenant = session->tenant,
		.budget = {.parent = &session->tenant->budget},
	};

	snprintf(rest.identity, sizeof(rest.identity), "session %llu",
		(unsigned long long)session->number);
	return enter(front, &rest);
}

/* Since the pod's GPUs were chosen one of them may have fallen. */
static struct pod *standing(struct front *front, struct session *session)
{
	struct pod *pod = session->limits;

	if (!pod)
		return fallen_gpus(front) ? enter_rest(front, session) : NULL;
	if (is_hit(front, pod)) {
		struct pod fresh = *pod;

		fresh.sessions = fresh.gpu_count = 0;
		memset(fresh.budget.lease, 0, sizeof(fresh.budget.lease));
		quota_leave(pod);
		pod = enter(front, &fresh);
	}
	return pod;
}

bool quota_open_account(struct front *front, struct session *session)
{
	struct pod *pod = session->limits = standing(front, session);
	uint32_t devices = 0;

	if (pod && !pod->gpu_count && !choose(front, pod))
		return false;
	for (uint32_t i = 0; i < quota_gpu_count(front, session); i++)
		devices |= 1u << quota_gpu(front, session, i);
	ledger_open(&front->ledger, &session->account, devices,
		pod ? &pod->budget : &session->tenant->budget, front->config->lease_initial);
	return true;
}

void quota_close_account(struct front *front, struct session *session)
{
	ledger_close(&front->ledger, &session->account);
	quota_tell(front, session);
	if (session->limits) {
		quota_leave(session->limits);
		session->limits = NULL;
	}
}

uint32_t quota_gpu_count(const struct front *front, const struct session *session)
{
	return session->limits ? session->limits->gpu_count : front->ledger.device_count;
}

uint32_t quota_gpu(const struct front *front, const struct session *session, uint32_t index)
{
	if (index >= quota_gpu_count(front, session))
		return UINT32_MAX;
	return session->limits ? session->limits->gpus[index] : index;
}

uint64_t quota_limit(const struct session *session)
{
	uint64_t tenants = session->tenant->budget.limit;
	uint64_t pods = session->limits ? session->limits->budget.limit : 0;

	return !pods || (tenants && tenants < pods) ? tenants : pods;
}

/* What is not left to the session of `limit`, where one of its budgets has it. */
static uint64_t others_of(const struct ledger_budget *budget, uint64_t limit,
	const struct session *session, uint32_t device)
{
	uint64_t theirs = budget->lease[device] - session->account.lease[device];
	uint64_t left = budget->limit > theirs ? budget->limit - theirs : 0;

	return budget->limit && left < limit ? limit - left : 0;
}

void quota_fill_others(
	const struct front *front, const struct session *session, struct handoff *h)
{
	const struct ledger_budget *budget =
		session->limits ? &session->limits->budget : &session->tenant->budget;
	uint64_t limit = quota_limit(session);

	for (uint32_t i = 0; limit && i < quota_gpu_count(front, session); i++) {
		uint32_t d = quota_gpu(front, session, i);

		for (const struct ledger_budget *b = budget; b; b = b->parent) {
			uint64_t others = others_of(b, limit, session, d);

			if (others > h->devices[i].others)
				h->devices[i].others = others;
		}
	}
}

void quota_tell_one(struct front *front, struct session *session)
{
	struct handoff h = {.version = HANDOFF_VERSION,
		.what = HANDOFF_OTHERS,
		.device_count = quota_gpu_count(front, session)};

	quota_fill_others(front, session, &h);
	pool_say(session->worker, &h);
}

void quota_tell(struct front *front, const struct session *session)
{
	const struct pod *pod = session->limits;

	tenants_changed(front, session->tenant);
	if (!pod || pod->sessions < 2)
		return;
	for (uint32_t i = 0; i < front->config->max_sessions; i++) {
		struct session *other = &front->sessions[i];

		if (other != session && other->limits == pod && other->state == SESSION_RUNNING)
			quota_tell_one(front, other);
	}
}
