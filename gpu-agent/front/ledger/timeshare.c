/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/front/ledger/timeshare.h"

#include <inttypes.h>

#include "common/wait.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/worker_pool.h"
#include "gpu-agent/front/ledger/quota.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/front/tenants.h"
#include "gpu-agent/front/http/viewer.h"

#define CORES_MAX 256 /* that a software GPU computes with: a second cannot have more */
#define LATE_NS (FRONT_MS * 1000) /* that a worker's word may be on its way */
#define LEAST_NS 1000000u	  /* given at once, to each of many sessions */
#define AGAIN_NS (10 * FRONT_MS)  /* to a worker that does not read */

/* --- the arithmetic ----------------------------------------------------------------------- */

void timeshare_fill(struct timeshare_bucket *bucket, uint32_t share, uint64_t now)
{
	int64_t full = TIMESHARE_BURST_NS / AGENT_SHARE_WHOLE * (int64_t)share;
	uint64_t passed = now - bucket->at;

	if (full < TIMESHARE_RESUME_NS)
		full = TIMESHARE_RESUME_NS;
	/* More than it can be overdrawn fills it, and products stay small. */
	if (passed > TIMESHARE_DEBT_NS * AGENT_SHARE_WHOLE)
		passed = TIMESHARE_DEBT_NS * AGENT_SHARE_WHOLE;
	if (!bucket->at)
		bucket->tokens = full;
	else
		bucket->tokens += (int64_t)(passed * share / AGENT_SHARE_WHOLE);
	if (bucket->tokens > full)
		bucket->tokens = full;
	bucket->at = now;
}

void timeshare_charge(struct timeshare_bucket *bucket, uint64_t ns)
{
	if (ns > 2 * TIMESHARE_DEBT_NS)
		ns = 2 * TIMESHARE_DEBT_NS;
	bucket->tokens -= (int64_t)ns;
	if (bucket->tokens < -(int64_t)TIMESHARE_DEBT_NS)
		bucket->tokens = -(int64_t)TIMESHARE_DEBT_NS;
}

uint64_t timeshare_resumes(const struct timeshare_bucket *bucket, uint32_t share)
{
	int64_t missing = TIMESHARE_RESUME_NS - bucket->tokens;

	return missing <= 0 ? bucket->at
			    : bucket->at + (uint64_t)missing * AGENT_SHARE_WHOLE / share + 1;
}

void timeshare_turn(struct timeshare_gpu *gpu, uint64_t now)
{
	if (gpu->at)
		gpu->alone += (now - gpu->at) / (gpu->working ? gpu->working : 1);
	gpu->at = now;
}

uint64_t timeshare_divide(
	struct timeshare_gpu *gpu, uint32_t *part, uint64_t used, uint64_t passed)
{
	uint64_t now = used >= passed
			       ? TIMESHARE_ALL_NS
			       : (uint64_t)((double)used * TIMESHARE_ALL_NS / (double)passed);

	gpu->parts += now - *part;
	*part = (uint32_t)now;
	if (gpu->parts <= TIMESHARE_ALL_NS)
		return used;
	return (uint64_t)((double)used * TIMESHARE_ALL_NS / (double)gpu->parts);
}

/* --- sessions ----------------------------------------------------------------------------- */

static struct timeshare_bucket *bucket_of(const struct session *session, uint32_t gpu)
{
	return &session->tenant->timeshare.buckets[gpu];
}

/* What a session may use at once of what its bucket has, and its tenant's others as well. */
static uint64_t bucket_quantum(
	const struct session *session, const struct timeshare_bucket *bucket, int64_t enough)
{
	const uint32_t share = session->tenant->timeshare.share;
	uint64_t most = TIMESHARE_QUANTUM_NS, n = session->tenant->sessions;

	if (share == AGENT_SHARE_WHOLE || !share)
		return UINT64_MAX;
	if (bucket->tokens < enough)
		return 0;
	if ((uint64_t)bucket->tokens < most)
		most = (uint64_t)bucket->tokens;
	most /= n ? n : 1;
	return most < LEAST_NS ? LEAST_NS : most;
}

static uint64_t class_quantum(
	const struct front *front, const struct session *session, uint32_t gpu, uint64_t now)
{
	const struct timeshare_session *t = &session->timeshare;

	if (!front->priorities)
		return UINT64_MAX;
	return priority_quantum(
		&front->timeshares[gpu].classes, t->priority, t->given_at[gpu], now);
}

/* Allows it more of each GPU that its share and its class let it have. True: it need not wait.
 */
static bool allow(struct front *front, struct session *session, uint64_t now, int64_t enough)
{
	struct timeshare_session *t = &session->timeshare;
	bool goes_on = true;

	for (uint32_t i = 0; i < quota_gpu_count(front, session); i++) {
		uint32_t gpu = quota_gpu(front, session, i);
		struct timeshare_bucket *bucket = bucket_of(session, gpu);
		uint64_t by_share, by_class = class_quantum(front, session, gpu, now), most;

		timeshare_fill(bucket, session->tenant->timeshare.share, now);
		by_share = bucket_quantum(session, bucket, enough);
		most = by_share < by_class ? by_share : by_class;
		if (most) {
			t->allowed[gpu] = most == UINT64_MAX ? most : t->used[gpu] + most;
			t->given_at[gpu] = now;
		}
		goes_on &= t->used[gpu] < t->allowed[gpu];
	}
	return goes_on;
}

static bool is_behind(const struct front *front, const struct session *session)
{
	bool is = false;

	for (uint32_t i = 0; front->priorities && i < quota_gpu_count(front, session); i++)
		is |= priority_is_behind(
			&front->timeshares[quota_gpu(front, session, i)].classes,
			session->timeshare.priority);
	return is;
}

static void fill_allowed(
	const struct front *front, const struct session *session, struct handoff *h)
{
	for (uint32_t i = 0; i < quota_gpu_count(front, session); i++)
		h->devices[i].gpu_ns = session->timeshare.allowed[quota_gpu(front, session, i)];
}

/* false: the worker has not read what it was told before; it is told later. */
static bool say_more(struct front *front, struct session *session)
{
	struct handoff h = {.version = HANDOFF_VERSION,
		.what = HANDOFF_MORE,
		.device_count = quota_gpu_count(front, session)};

	fill_allowed(front, session, &h);
	return pool_say(session->worker, &h) == 0;
}

static void set_works(struct front *front, struct session *session, bool works)
{
	if (session->timeshare.works == works)
		return;
	session->timeshare.works = works;
	for (uint32_t i = 0; i < quota_gpu_count(front, session); i++) {
		struct timeshare_gpu *gpu = &front->timeshares[quota_gpu(front, session, i)];

		gpu->working += works ? 1 : -1u;
		gpu->classes.working[session->timeshare.priority] += works ? 1 : -1u;
	}
}

static void set_waits(struct front *front, struct session *session, bool waits)
{
	front->timeshare_waiting += waits - session->timeshare.waits;
	session->timeshare.waits = waits;
}

void timeshare_begin(struct front *front, struct session *session, struct handoff *h)
{
	struct timeshare_session *t = &session->timeshare;

	*t = (struct timeshare_session){
		.reported_at = wait_now(), .priority = priority_of(session)};
	if (!session->tenant->timeshare.share && !front->priorities)
		return;
	t->tells = true;
	allow(front, session, t->reported_at, TIMESHARE_RESUME_NS);
	for (uint32_t i = 0; i < quota_gpu_count(front, session); i++) {
		uint32_t gpu = quota_gpu(front, session, i);

		timeshare_turn(&front->timeshares[gpu], t->reported_at);
		t->alone[gpu] = front->timeshares[gpu].alone;
		/* 0 would say that its time is counted only. */
		if (!t->allowed[gpu])
			t->allowed[gpu] = 1;
	}
	fill_allowed(front, session, h);
}

void timeshare_end(struct front *front, struct session *session)
{
	set_works(front, session, false);
	set_waits(front, session, false);
	for (uint32_t i = 0; i < quota_gpu_count(front, session); i++) {
		uint32_t gpu = quota_gpu(front, session, i);

		front->timeshares[gpu].parts -= session->timeshare.part[gpu];
		session->timeshare.part[gpu] = 0;
	}
}

/* Of the time that the session used, what was its own. */
static uint64_t own_part(const struct front *front, const struct session *session, uint32_t gpu,
	uint64_t used, uint64_t passed)
{
	uint64_t alone = front->timeshares[gpu].alone - session->timeshare.alone[gpu];

	if (front->config->driver == DRIVER_SOFTWARE || !passed || alone >= passed)
		return used;
	return (uint64_t)((double)used * (double)alone / (double)passed);
}

static void charge(
	struct front *front, struct session *session, const struct handoff *h, uint64_t now)
{
	struct timeshare_session *t = &session->timeshare;
	struct timeshare *tenant = &session->tenant->timeshare;
	uint64_t passed = now - t->reported_at;

	for (uint32_t i = 0; i < quota_gpu_count(front, session); i++) {
		uint32_t gpu = quota_gpu(front, session, i);
		uint64_t used = h->devices[i].gpu_ns - t->used[gpu];

		timeshare_turn(&front->timeshares[gpu], now);
		used = own_part(front, session, gpu, used, passed);
		timeshare_fill(bucket_of(session, gpu), tenant->share, now);
		timeshare_charge(bucket_of(session, gpu), used);
		tenant->used += used;
		t->own += used;
		t->used[gpu] = h->devices[i].gpu_ns;
		t->alone[gpu] = front->timeshares[gpu].alone;
	}
	if (t->waits)
		tenant->waited += passed;
	t->reported_at = now;
}

/* What the front before had charged is not known: it begins with what is told first. */
static void take_over(
	struct front *front, struct session *session, const struct handoff *h, uint64_t now)
{
	struct timeshare_session *t = &session->timeshare;

	for (uint32_t i = 0; i < quota_gpu_count(front, session); i++) {
		uint32_t gpu = quota_gpu(front, session, i);

		timeshare_turn(&front->timeshares[gpu], now);
		t->alone[gpu] = front->timeshares[gpu].alone;
		t->used[gpu] = h->devices[i].gpu_ns;
	}
	t->reported_at = now;
}

static bool makes_sense(const struct front *front, const struct session *session,
	const struct handoff *h, uint64_t now)
{
	const struct timeshare_session *t = &session->timeshare;
	uint64_t most = (now - t->reported_at + LATE_NS) * CORES_MAX;

	if (h->device_count != quota_gpu_count(front, session))
		return false;
	for (uint32_t i = 0; t->reported_at && i < h->device_count; i++) {
		uint64_t before = t->used[quota_gpu(front, session, i)];

		if (h->devices[i].gpu_ns < before || h->devices[i].gpu_ns - before > most)
			return false;
	}
	return true;
}

void timeshare_report(struct front *front, struct pool_worker *worker, const struct handoff *h)
{
	struct session *session = worker->session;
	uint64_t now = wait_now();
	bool goes_on;

	if (!makes_sense(front, session, h, now)) {
		pool_fault(front, worker, "a TIME that makes no sense");
		return;
	}
	session->timeshare.tells = true;
	if (session->timeshare.reported_at)
		charge(front, session, h, now);
	else
		take_over(front, session, h, now);
	if (worker->state != WORKER_BUSY)
		return;
	set_works(front, session, h->status == 1);
	/* Whoever stopped goes on when there is enough for some work. */
	goes_on = allow(front, session, now, h->bytes ? TIMESHARE_RESUME_NS : 1);
	if (!goes_on && !session->timeshare.waits && is_behind(front, session))
		session->tenant->timeshare.held++;
	set_waits(front, session, !goes_on || !say_more(front, session));
}

uint64_t timeshare_grown(uint64_t *used, uint64_t told, uint64_t most)
{
	uint64_t grown = told > *used ? told - *used : 0;

	*used += grown;
	return grown < most ? grown : most;
}

/* What a worker said while the front did not listen is heard at once. */
void timeshare_stats(struct front *front, struct session *session, const struct handoff *h)
{
	struct timeshare_session *t = &session->timeshare;
	const uint32_t cores = front->config->driver == DRIVER_SOFTWARE ? CORES_MAX : 1;
	uint64_t now = wait_now();
	uint64_t passed = now - (t->reported_at ? t->reported_at : session->begun);

	if (t->tells || h->device_count != quota_gpu_count(front, session))
		return;
	for (uint32_t i = 0; i < h->device_count; i++) {
		uint32_t gpu = quota_gpu(front, session, i);
		uint64_t used = timeshare_grown(
			&t->used[gpu], h->devices[i].gpu_ns, (passed + LATE_NS) * cores);

		if (cores == 1 && t->reported_at)
			used = timeshare_divide(
				&front->timeshares[gpu], &t->part[gpu], used, passed);
		t->own += used;
		session->tenant->timeshare.used += used;
	}
	t->reported_at = now;
}

static uint64_t resumes_at(const struct front *front, const struct session *session)
{
	const uint32_t share = session->tenant->timeshare.share;
	uint64_t next = 0;

	for (uint32_t i = 0; i < quota_gpu_count(front, session); i++) {
		uint32_t gpu = quota_gpu(front, session, i);
		uint64_t turn = session->timeshare.given_at[gpu] + PRIORITY_EVERY_NS;
		uint64_t at = share ? timeshare_resumes(bucket_of(session, gpu), share) : 0;

		if (front->priorities && turn > at &&
			priority_is_behind(
				&front->timeshares[gpu].classes, session->timeshare.priority))
			at = turn; /* or when the others are done, which is heard */
		if (at > next)
			next = at;
	}
	return next;
}

uint64_t timeshare_tick(struct front *front, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t i = 0; front->timeshare_waiting && i < front->config->max_sessions; i++) {
		struct session *session = &front->sessions[i];
		uint64_t at;

		if (!session->timeshare.waits || session->state != SESSION_RUNNING)
			continue;
		if (!allow(front, session, now, TIMESHARE_RESUME_NS)) {
			at = resumes_at(front, session);
		} else if (!say_more(front, session)) {
			at = now + AGAIN_NS;
		} else {
			session->tenant->timeshare.waited +=
				now - session->timeshare.reported_at;
			session->timeshare.reported_at = now;
			set_waits(front, session, false);
			continue;
		}
		if (at < next)
			next = at;
	}
	return next;
}

void timeshare_metrics(FILE *out, const struct front *front, const struct viewer *viewer)
{
	const struct tenant *tenant;

	fprintf(out, "# HELP vcuda_agent_tenant_gpu_seconds_total GPU time of tenants.\n"
		     "# TYPE vcuda_agent_tenant_gpu_seconds_total counter\n");
	for (uint32_t i = 0; (tenant = tenants_at(front, i)); i++)
		if (viewer_sees(viewer, tenant))
			fprintf(out,
				"vcuda_agent_tenant_gpu_seconds_total{tenant=\"%s\"} %.6f\n",
				tenant->name, (double)tenant->timeshare.used / 1e9);
	fprintf(out,
		"# HELP vcuda_agent_tenant_gpu_wait_seconds_total How long sessions waited "
		"for their share of it or for a higher class.\n"
		"# TYPE vcuda_agent_tenant_gpu_wait_seconds_total counter\n");
	for (uint32_t i = 0; (tenant = tenants_at(front, i)); i++)
		if ((tenant->timeshare.share || front->priorities) &&
			viewer_sees(viewer, tenant))
			fprintf(out,
				"vcuda_agent_tenant_gpu_wait_seconds_total{tenant=\"%s\"} "
				"%.6f\n",
				tenant->name, (double)tenant->timeshare.waited / 1e9);
	fprintf(out, "# HELP vcuda_agent_tenant_gpu_share_ratio What part of each GPU's time "
		     "they may have.\n# TYPE vcuda_agent_tenant_gpu_share_ratio gauge\n");
	for (uint32_t i = 0; (tenant = tenants_at(front, i)); i++)
		if (tenant->timeshare.share && viewer_sees(viewer, tenant))
			fprintf(out, "vcuda_agent_tenant_gpu_share_ratio{tenant=\"%s\"} %.3f\n",
				tenant->name,
				(double)tenant->timeshare.share / AGENT_SHARE_WHOLE);
}
