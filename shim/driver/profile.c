/* SPDX-License-Identifier: Apache-2.0
 *
 * See profile.h.  A worker's clock is another machine's: with each answer it says what it
 * showed, which was between question and answer.  Between two such looks the records' times
 * are turned by what lies between both differences, so that clocks that drift apart do no harm.
 */
#include "shim/driver/profile.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/context/context.h"
#include "shim/engine/driver.h"
#include "shim/engine/engine.h"
#include "shim/engine/lock.h"
#include "shim/engine/session.h"
#include "shim/engine/status.h"
#include "shim/generated/vcuda_send.h"

#define EXPORT __attribute__((visibility("default")))

#define CLOCK_LOOKS 8	       /* the fastest answer is the one that counts */
#define CLOCK_LASTS 1000000000 /* ns that a look holds: clocks drift by 50 us then */
/* A batch beyond that is a protocol violation: an agent keeps much less. */
#define BATCH_MAX (1ull << 30)

struct clock_look {
	int64_t ahead; /* ns that the worker's clock shows more than ours */
	int64_t at;    /* when, by the worker's */
	int64_t took;
};

static struct {
	pthread_mutex_t lock;
	uint32_t kinds;	  /* what is wanted; the sessions know it once they are ready */
	CUresult refused; /* the first agent's that does not do it */
	struct agent_profile {
		bool on;
		bool more;	/* since it was on, its last records may still come */
		uint32_t kinds; /* what it was told */
		uint64_t dropped;
		struct clock_look last;
	} agents[CHANNEL_AGENTS];
} profile = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(profile, profile.lock, LOCK_PROFILE);

static int64_t now_here(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static struct clock_look looked(int64_t before, int64_t after, uint64_t now)
{
	return (struct clock_look){
		.ahead = (int64_t)now - (before + (after - before) / 2),
		.at = (int64_t)now,
		.took = after - before,
	};
}

/* The thread's session is told, so often that an answer comes fast: that one says best what the
 * worker's clock shows. */
static CUresult enable_looking(uint32_t kinds, unsigned looks, struct clock_look *best)
{
	CUresult status = CUDA_SUCCESS;
	uint32_t version;

	for (unsigned i = 0; i < looks && !status; i++) {
		struct clock_look look;
		uint64_t now = 0;
		int64_t before = now_here();

		status = send_vcudaProfileEnable(kinds, &now, &version);
		look = looked(before, now_here(), now);
		if (!status && (!i || look.took < best->took))
			*best = look;
	}
	return status;
}

/* The thread's session. */
static void enable_here(uint32_t kinds)
{
	struct agent_profile *agent = &profile.agents[session_here()->index];
	struct clock_look look = agent->last;
	CUresult status = enable_looking(kinds, kinds && !agent->on ? CLOCK_LOOKS : 1, &look);

	if (!status && kinds && !agent->on)
		agent->last = look;
	agent->on = kinds && !status;
	agent->kinds = kinds;
	agent->more |= agent->on;
	if (!profile.refused)
		profile.refused = status;
}

static bool is_ready(const struct session *session)
{
	return atomic_load_explicit(&session->phase, memory_order_acquire) == SESSION_READY;
}

static void enable_all(void)
{
	for (unsigned i = 0; i < session_count; i++) {
		struct session_visit visit;

		if (!is_ready(sessions[i]) || (!profile.kinds && !profile.agents[i].on))
			continue;
		visit = session_visit(sessions[i]);
		enable_here(profile.kinds);
		session_leave(visit);
	}
}

EXPORT CUresult vcuda_profile_enable(uint32_t kinds)
{
	CUresult status;

	pthread_mutex_lock(&profile.lock);
	profile.kinds = kinds;
	profile.refused = CUDA_SUCCESS;
	enable_all();
	status = profile.refused;
	pthread_mutex_unlock(&profile.lock);
	return status;
}

void profile_ready(void)
{
	if (!profile.kinds)
		return;
	pthread_mutex_lock(&profile.lock);
	enable_all();
	pthread_mutex_unlock(&profile.lock);
}

/* --- what was recorded -------------------------------------------------------------------- */

static CUresult read_piece(unsigned char *batch, uint64_t at, size_t n)
{
	struct wire_vcudaProfileRead *body;
	struct shim_call call;
	uint64_t bounce;
	CUresult status = shim_bounce_get(n, &bounce);

	if (status)
		return status;
	body = shim_begin(&call, OP_vcudaProfileRead, sizeof(*body));
	body->offset = at;
	body->bytes = n;
	body->destination.offset = bounce;
	return shim_bounce_read(&call, bounce, n, batch + at);
}

static CUresult read_batch(unsigned char **batch, uint64_t bytes)
{
	CUresult status = CUDA_SUCCESS;

	if (bytes > BATCH_MAX)
		return status_of(CAUSE_VIOLATION);
	*batch = malloc(bytes ? bytes : 1);
	if (!*batch)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint64_t at = 0, n; !status && at < bytes; at += n) {
		n = bytes - at < FRAME_CHUNK ? bytes - at : FRAME_CHUNK;
		status = read_piece(*batch, at, n);
	}
	return status;
}

/* What the clock there showed more than ours when it showed TIME. */
static int64_t ahead_at(int64_t time, const struct clock_look *a, const struct clock_look *b)
{
	double part;

	if (b->at <= a->at)
		return b->ahead;
	part = (double)(time - a->at) / (double)(b->at - a->at);
	part = part < 0 ? 0 : part > 1 ? 1 : part;
	return a->ahead + (int64_t)(part * (double)(b->ahead - a->ahead));
}

static uint64_t turned(uint64_t time, const struct clock_look *a, const struct clock_look *b)
{
	return time ? time - (uint64_t)ahead_at((int64_t)time, a, b) : 0;
}

/* An agent counts its contexts, streams and graphs from 1, and its GPUs as they come with its
 * session: the process has those of all agents, and CUDA_VISIBLE_DEVICES may hide or move GPUs.
 */
#define NUMBER_AGENT_SHIFT 24
_Static_assert(CHANNEL_AGENTS <= 1u << (31 - NUMBER_AGENT_SHIFT), "numbers stay positive");

static uint32_t number_of_process(unsigned agent, uint64_t number)
{
	bool counted = number && number < 1u << NUMBER_AGENT_SHIFT;

	return (uint32_t)number | (counted ? agent << NUMBER_AGENT_SHIFT : 0);
}

static uint32_t device_of_process(unsigned agent, uint32_t number)
{
	for (int i = 0; i < devices.count; i++)
		if (devices.at[i].agent == agent && (uint32_t)devices.at[i].number == number)
			return (uint32_t)i;
	return number;
}

static void numbers_of_process(unsigned agent, struct profile_record *r)
{
	r->device = device_of_process(agent, r->device);
	r->context = number_of_process(agent, r->context);
	r->stream = number_of_process(agent, r->stream);
	r->graph = number_of_process(agent, r->graph);
	if (r->kind != PROFILE_PEER_COPY)
		return;
	r->copy.source_device = device_of_process(agent, r->copy.source_device);
	r->copy.target_device = device_of_process(agent, r->copy.target_device);
	r->copy.source_context = number_of_process(agent, r->copy.source_context);
	r->copy.target_context = number_of_process(agent, r->copy.target_context);
}

static CUresult each_record(unsigned char *batch, uint64_t bytes, unsigned agent,
	const struct clock_look *before, const struct clock_look *after, profile_each *each,
	void *user)
{
	for (uint64_t at = 0; at < bytes;) {
		struct profile_record *r = (void *)(batch + at);
		const char *name = "";

		if (bytes - at < sizeof(*r) || r->bytes < sizeof(*r) || r->bytes > bytes - at ||
			r->bytes % 8 || r->kind >= PROFILE_KINDS ||
			r->name_bytes > r->bytes - sizeof(*r))
			return status_of(CAUSE_VIOLATION);
		if (r->name_bytes) {
			name = (const char *)(r + 1);
			if (name[r->name_bytes - 1])
				return status_of(CAUSE_VIOLATION);
		}
		at += r->bytes;
		r->start = turned(r->start, before, after);
		r->end = turned(r->end, before, after);
		r->completed = turned(r->completed, before, after);
		numbers_of_process(agent, r);
		each(user, agent, r, name);
	}
	return CUDA_SUCCESS;
}

static CUresult flush_here(uint32_t flag, profile_each *each, void *user)
{
	unsigned index = session_here()->index;
	struct agent_profile *agent = &profile.agents[index];
	struct clock_look after = agent->last;
	unsigned char *batch = NULL;
	uint64_t bytes = 0, now = 0;
	CUresult status = send_vcudaProfileFlush(flag, &bytes, &agent->dropped, &now);

	if (status)
		return status;
	/* Itself it takes the agent longer than an answer may that tells the time. */
	if ((int64_t)now - after.at > CLOCK_LASTS)
		status = enable_looking(agent->kinds, CLOCK_LOOKS / 2, &after);
	if (!status)
		status = read_batch(&batch, bytes);
	if (!status)
		status = each_record(batch, bytes, index, &agent->last, &after, each, user);
	free(batch);
	agent->last = after;
	return status;
}

EXPORT CUresult vcuda_profile_flush(
	uint32_t flag, profile_each *each, void *user, uint64_t *dropped)
{
	CUresult status;

	if (dropped)
		*dropped = 0;
	pthread_mutex_lock(&profile.lock);
	status = profile.refused;
	for (unsigned i = 0; i < session_count; i++) {
		struct session_visit visit;
		CUresult one;

		if (!is_ready(sessions[i]) || !profile.agents[i].more)
			continue;
		visit = session_visit(sessions[i]);
		one = flush_here(flag, each, user);
		session_leave(visit);
		profile.agents[i].more = profile.agents[i].on;
		if (!status)
			status = one;
		if (dropped)
			*dropped += profile.agents[i].dropped;
	}
	pthread_mutex_unlock(&profile.lock);
	return status;
}

EXPORT CUresult vcuda_profile_id(
	enum profile_id what, CUcontext context, const void *handle, uint64_t *id)
{
	struct context *current = thread_self.current;
	struct context *found = context ? context_of(context) : current;
	uint64_t number = (uint64_t)(uintptr_t)handle;
	CUresult status = CUDA_SUCCESS;

	if (!found)
		return CUDA_ERROR_INVALID_CONTEXT;
	thread_set(found);
	if (what == PROFILE_ID_STREAM)
		status = stream_number((CUstream)handle, &number);
	if (!status)
		status = send_vcudaProfileId(what, number, id);
	if (!status)
		*id = number_of_process(session_here()->index, *id);
	thread_set(current);
	return status;
}
