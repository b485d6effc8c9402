/* SPDX-License-Identifier: Apache-2.0
 *
 * Workers, as the front sees them.  The supervisor makes them; the front asks for as many as it
 * wants warm, plus one for each session that waits.  What a worker says is a tenant's word:
 * each number is checked, each state change must fit the state.
 *
 * A worker serves one session.  Until one worker got ready (and after each that failed) they
 * are started one at a time, so that a missing driver is one line in the log and not a storm.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/probe/library.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/lease.h"
#include "gpu-agent/front/pool.h"
#include "gpu-agent/front/quota.h"
#include "gpu-agent/front/session.h"
#include "gpu-agent/front/sharing.h"
#include "gpu-agent/front/tenants.h"
#include "gpu-agent/sandbox/sandbox.h"
#include "protocol/wire/status.h"

/* A driver with many GPUs and nothing initialised takes tens of seconds. */
#define READY_NS (120000 * FRONT_MS)
#define RETRY_MIN (250 * FRONT_MS)
#define RETRY_MAX (10000 * FRONT_MS)
#define POOL_SLACK 64		       /* workers on their way out */
#define STARTS_MAX 8		       /* at once: making a context is CPU work of the driver */
#define DEVICE_MEMORY_MAX (1ull << 50) /* no GPU has more */
#define DATAGRAMS_A_TURN 16
/* A worker that has a session says something each second, whatever its driver does
 * (watchdog.c). It is ended after so many looks in which nothing came, which are worker_silence
 * in all: by looks and not by the clock, so that a front which was stopped itself blames
 * nobody. */
#define LOOKS_SILENT 6

const char *worker_state_name(enum worker_state state)
{
	static const char *const names[WORKER_STATES] = {
		"free", "asked", "starting", "ready", "taken", "busy", "ending"};

	return names[state];
}

int pool_open(struct front *front, struct error *error)
{
	struct pool *pool = &front->pool;

	pool->room = front->config->max_sessions + front->config->warm_workers + POOL_SLACK;
	pool->workers = calloc(pool->room, sizeof(*pool->workers));
	if (!pool->workers)
		return error_set(error, ENOMEM, "a table of %u workers", pool->room);
	for (uint32_t i = 0; i < pool->room; i++)
		pool->workers[i].handoff.fd = -1;
	pool->count[WORKER_FREE] = pool->room;
	return 0;
}

static void set_state(struct front *front, struct pool_worker *worker, enum worker_state state)
{
	front->pool.count[worker->state]--;
	front->pool.count[state]++;
	worker->state = state;
}

static void set_free(struct front *front, struct pool_worker *worker)
{
	int fd = events_forget(&front->events, &worker->handoff);

	if (fd >= 0)
		close(fd);
	if (worker->counted)
		ledger_context_remove(&front->ledger, worker->contexts);
	set_state(front, worker, WORKER_FREE);
	memset(worker, 0, sizeof(*worker));
	worker->handoff.fd = -1;
}

static uint32_t starting(const struct pool *pool)
{
	return pool->count[WORKER_ASKED] + pool->count[WORKER_STARTING];
}

/* A start came to nothing: say why once, tell who waits, try again later. */
static void fail(struct front *front, const char *text)
{
	struct pool *pool = &front->pool;

	pool->failing = true;
	pool->libraries = 0; /* whatever failed, that is left out */
	snprintf(pool->text, sizeof(pool->text), "%s", text);
	if (strcmp(pool->logged, text)) {
		snprintf(pool->logged, sizeof(pool->logged), "%s", text);
		log_error("worker.failed", "text=\"%s\"", text);
	}
	pool->retry_delay = pool->retry_delay ? pool->retry_delay * 2 : RETRY_MIN;
	if (pool->retry_delay > RETRY_MAX)
		pool->retry_delay = RETRY_MAX;
	pool->retry_at = wait_now() + pool->retry_delay;
	if (!pool->count[WORKER_READY])
		session_refuse_waiting(front, text);
}

static int send_worker(
	struct pool_worker *worker, const struct handoff *h, const int *fds, unsigned count)
{
	return descriptors_send(worker->handoff.fd, h, sizeof(*h), fds, count, MSG_DONTWAIT);
}

/* It is to be gone soon; the supervisor sees to it. */
static void expect_end(struct front *front, struct pool_worker *worker, uint32_t ms)
{
	struct control c = {.what = CONTROL_KILL, .pid = worker->pid, .ms = ms};

	if (worker->session)
		worker->session->state = SESSION_ENDING;
	set_state(front, worker, WORKER_ENDING);
	front_tell(front, &c);
}

void pool_stop(
	struct front *front, struct pool_worker *worker, uint32_t status, const char *text)
{
	struct handoff h = {.version = HANDOFF_VERSION, .what = HANDOFF_STOP, .status = status};

	if (worker->state == WORKER_ENDING || worker->state < WORKER_STARTING)
		return;
	snprintf(h.text, sizeof(h.text), "%s", text);
	send_worker(worker, &h, NULL, 0);
	expect_end(front, worker, CONTROL_STOP_MS);
}

int pool_say(struct pool_worker *worker, const struct handoff *h)
{
	return send_worker(worker, h, NULL, 0);
}

int pool_say_with(struct pool_worker *worker, const struct handoff *h, int fd)
{
	return send_worker(worker, h, &fd, 1);
}

void pool_fault(struct front *front, struct pool_worker *worker, const char *text)
{
	front->counters.peer_faults++;
	log_error("worker.fault", "worker=%d text=\"%s\"", worker->pid, text);
	if (worker->state == WORKER_STARTING) {
		worker->failed = true;
		fail(front, text);
	}
	if (worker->state != WORKER_ENDING)
		expect_end(front, worker, 0);
}

/* --- what workers say --------------------------------------------------------------------- */

static bool devices_make_sense(const struct handoff *h)
{
	if (!h->device_count || h->device_count > HANDOFF_DEVICES)
		return false;
	for (uint32_t d = 0; d < h->device_count; d++)
		if (!h->devices[d].total_memory ||
			h->devices[d].total_memory > DEVICE_MEMORY_MAX ||
			h->devices[d].free_memory > h->devices[d].total_memory ||
			h->devices[d].context_memory > h->devices[d].total_memory)
			return false;
	return true;
}

/* Said once, and again where it changes: the kernel is the same for all of them. */
static void note_sandbox(struct front *front, uint32_t parts)
{
	struct pool *pool = &front->pool;
	char text[SANDBOX_TEXT];

	if (pool->driver[0] && pool->sandbox == parts)
		return;
	pool->sandbox = parts;
	sandbox_text(text, parts);
	if (parts == SANDBOX_ALL || front->config->sandbox_off)
		log_info("worker.sandbox", "text=\"%s\"", text);
	else
		log_warn("worker.sandbox", "text=\"%s\"", text);
}

static void worker_is_ready(struct front *front, struct pool_worker *worker, struct handoff *h)
{
	struct pool *pool = &front->pool;
	struct ledger *ledger = &front->ledger;

	if (worker->state != WORKER_STARTING || !devices_make_sense(h)) {
		pool_fault(front, worker, "the worker's READY makes no sense");
		return;
	}
	for (uint32_t d = 0; d < h->device_count; d++) {
		char name[sizeof(h->devices[d].name)] = "";

		front_clean(name, sizeof(name), h->devices[d].name, sizeof(name));
		memcpy(h->devices[d].name, name, sizeof(name));
	}
	if (!ledger_same(ledger, h->devices, h->device_count)) {
		if (ledger->device_count &&
			(front->session_count || pool->count[WORKER_READY])) {
			pool_fault(front, worker,
				"the worker sees other GPUs than those before it");
			return;
		}
		ledger_devices(
			ledger, h->devices, h->device_count, front->config->memory_reserve);
	}
	for (uint32_t d = 0; d < h->device_count; d++)
		worker->contexts[d] = h->devices[d].context_memory;
	ledger_context_add(ledger, worker->contexts);
	worker->counted = true;
	set_state(front, worker, WORKER_READY);
	if (!front->session_count && starting(pool) == 0)
		for (uint32_t d = 0; d < h->device_count; d++)
			ledger_foreign(ledger, d,
				h->devices[d].total_memory - h->devices[d].free_memory +
					h->devices[d].context_memory);
	note_sandbox(front, h->sandbox);
	pool->driver_version = h->driver_version;
	front_clean(pool->driver, sizeof(pool->driver), h->text, sizeof(h->text));
	front_clean(pool->driver_release, sizeof(pool->driver_release), h->release,
		sizeof(h->release));
	if (pool->failing || !pool->logged[0])
		log_info("worker.ready", "worker=%d gpus=%u driver=\"%s\"", worker->pid,
			h->device_count, pool->driver);
	pool->failing = false;
	pool->text[0] = 0;
	snprintf(pool->logged, sizeof(pool->logged), "ready");
	pool->retry_delay = 0;
	pool_balance(front, wait_now());
}

static void worker_failed(
	struct front *front, struct pool_worker *worker, const struct handoff *h)
{
	char text[sizeof(h->text)];

	if (worker->state != WORKER_STARTING) {
		pool_fault(front, worker, "FAILED from a worker that was ready");
		return;
	}
	front_clean(text, sizeof(text), h->text, sizeof(h->text));
	worker->failed = true;
	expect_end(front, worker, CONTROL_STOP_MS);
	fail(front, text[0] ? text : "the worker failed and does not say why");
}

/* The libraries are all that outlives the session: a hostile worker has others opened. */
static void note_stats(struct front *front, struct pool_worker *worker, const struct handoff *h)
{
	front->pool.libraries |= h->libraries & (LIBRARY_BITS - 1);
	session_stats(front, worker->session, h);
}

static void worker_says_ended(
	struct front *front, struct pool_worker *worker, const struct handoff *h)
{
	char text[sizeof(h->text)];

	front_clean(text, sizeof(text), h->text, sizeof(h->text));
	if (worker->session) {
		note_stats(front, worker, h);
		log_info("session.ended", "session=%" PRIu64 " worker=%d status=%u text=\"%s\"",
			worker->session->number, worker->pid, h->status, text);
	}
	if (worker->state != WORKER_ENDING)
		expect_end(front, worker, CONTROL_STOP_MS);
}

/* *fd: what came with it, or -1. */
static void handle(struct front *front, struct pool_worker *worker, struct handoff *h, int *fd)
{
	bool has_session = worker->session &&
			   (worker->state == WORKER_BUSY || worker->state == WORKER_ENDING);

	if (h->version != HANDOFF_VERSION) {
		pool_fault(front, worker, "another version of the hand-off protocol");
		return;
	}
	switch (h->what) {
	case HANDOFF_READY: worker_is_ready(front, worker, h); return;
	case HANDOFF_FAILED: worker_failed(front, worker, h); return;
	case HANDOFF_ENDED: worker_says_ended(front, worker, h); return;
	case HANDOFF_STATS:
		if (has_session)
			note_stats(front, worker, h);
		else
			pool_fault(front, worker, "STATS without a session");
		return;
	case HANDOFF_LEASE:
		if (has_session)
			lease_wanted(front, worker, h);
		else
			pool_fault(front, worker, "LEASE without a session");
		return;
	case HANDOFF_ALIVE:
		if (!has_session)
			pool_fault(front, worker, "ALIVE without a session");
		return;
	case HANDOFF_SHARE:
	case HANDOFF_UNSHARE:
	case HANDOFF_WANT:
		if (has_session)
			sharing_request(front, worker, h, fd);
		else
			pool_fault(front, worker, "sharing without a session");
		return;
	default: pool_fault(front, worker, "a datagram of no known kind"); return;
	}
}

static void handoff_ready(struct watch *watch, uint32_t mask)
{
	struct pool_worker *worker = events_container(watch, struct pool_worker, handoff);
	struct front *front = watch->owner;

	(void)mask;
	for (int i = 0; i < DATAGRAMS_A_TURN && watch->fd >= 0; i++) {
		struct handoff h;
		int fd;
		ssize_t n = descriptors_receive(watch->fd, &h, sizeof(h), &fd, 1, MSG_DONTWAIT);

		if (n == -EAGAIN)
			return;
		if (n == (ssize_t)sizeof(h))
			handle(front, worker, &h, &fd);
		if (fd >= 0)
			close(fd);
		worker->silent = 0;
		if (n == (ssize_t)sizeof(h))
			continue;
		/* The end, or nonsense: nothing more is read; the exit comes as EXITED. */
		if (n > 0)
			pool_fault(front, worker, "a datagram of the wrong size");
		close(events_forget(&front->events, watch));
		if (worker->state != WORKER_ENDING)
			expect_end(front, worker, CONTROL_STOP_MS);
		return;
	}
}

/* --- what the supervisor says ------------------------------------------------------------- */

static struct pool_worker *find_number(struct front *front, uint32_t number)
{
	for (uint32_t i = 0; i < front->pool.room; i++)
		if (front->pool.workers[i].state == WORKER_ASKED &&
			front->pool.workers[i].number == number)
			return &front->pool.workers[i];
	return NULL;
}

void pool_started(struct front *front, const struct control *control, int fd)
{
	struct pool_worker *worker = find_number(front, control->number);

	if (!worker || fd < 0 ||
		events_watch(&front->events, &worker->handoff, fd, EPOLLIN, handoff_ready)) {
		log_error("worker.unwanted", "worker=%d", control->pid);
		if (fd >= 0)
			close(fd);
		front_tell(front, &(struct control){.what = CONTROL_KILL, .pid = control->pid});
		return;
	}
	worker->pid = control->pid;
	worker->deadline = wait_now() + READY_NS;
	set_state(front, worker, WORKER_STARTING);
	front->counters.worker_starts++;
}

void pool_refused(struct front *front, const struct control *control)
{
	struct pool_worker *worker = find_number(front, control->number);

	if (worker) {
		set_free(front, worker);
		fail(front, control->text);
	}
}

static void count_exit(struct front *front, const struct pool_worker *worker, int status)
{
	if (WIFSIGNALED(status))
		front->counters.exits_signal++;
	else if (WEXITSTATUS(status) || worker->failed)
		front->counters.exits_failed++;
	else
		front->counters.exits_clean++;
	if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
		log_error("worker.crash", "worker=%d signal=%d session=%" PRIu64, worker->pid,
			WTERMSIG(status), worker->session ? worker->session->number : 0);
}

void pool_exited(struct front *front, const struct control *control)
{
	struct pool_worker *worker = NULL;
	struct session *session;
	bool was_starting;
	char text[192];

	for (uint32_t i = 0; i < front->pool.room && !worker; i++)
		if (front->pool.workers[i].state != WORKER_FREE &&
			front->pool.workers[i].pid == control->pid)
			worker = &front->pool.workers[i];
	if (!worker || control->pid <= 0)
		return;
	/* Its last words (FAILED, ENDED, STATS) may still lie in the socket. */
	while (worker->handoff.fd >= 0 && worker->state != WORKER_FREE) {
		struct handoff h;
		int fd;
		ssize_t n = descriptors_receive(
			worker->handoff.fd, &h, sizeof(h), &fd, 1, MSG_DONTWAIT);

		if (fd >= 0)
			close(fd);
		if (n != (ssize_t)sizeof(h))
			break;
		fd = -1;
		if (h.what == HANDOFF_FAILED || h.what == HANDOFF_ENDED ||
			h.what == HANDOFF_STATS)
			handle(front, worker, &h, &fd);
	}
	count_exit(front, worker, control->status);
	session = worker->session;
	was_starting = !worker->counted && !worker->failed;
	set_free(front, worker);
	if (session)
		session_ended(front, session);
	if (was_starting && !front->draining) {
		if (WIFSIGNALED(control->status))
			snprintf(text, sizeof(text),
				"a worker was ended by signal %d before it was ready",
				WTERMSIG(control->status));
		else
			snprintf(text, sizeof(text),
				"a worker exited with status %d before it was ready",
				WEXITSTATUS(control->status));
		fail(front, text);
	}
	for (uint32_t i = 0; i < front->pool.room; i++)
		lease_retry(front, &front->pool.workers[i], wait_now());
	pool_balance(front, wait_now());
}

/* --- what the front wants ----------------------------------------------------------------- */

static struct pool_worker *find_state(struct front *front, enum worker_state state)
{
	if (!front->pool.count[state])
		return NULL;
	for (uint32_t i = 0; i < front->pool.room; i++)
		if (front->pool.workers[i].state == state)
			return &front->pool.workers[i];
	return NULL;
}

static uint32_t starts_at_once(const struct front *front)
{
	cpu_set_t set;
	int cores = 1;

	/* One at a time until one worked. */
	if (front->pool.failing || !front->ledger.device_count)
		return 1;
	if (!sched_getaffinity(0, sizeof(set), &set))
		cores = CPU_COUNT(&set);
	return cores < STARTS_MAX ? (uint32_t)cores : STARTS_MAX;
}

static bool ask_for_worker(struct front *front)
{
	struct pool_worker *worker = find_state(front, WORKER_FREE);
	struct control c = {.what = CONTROL_START, .libraries = front->pool.libraries};

	if (!worker)
		return false;
	worker->number = ++front->pool.next_number;
	worker->deadline = wait_now() + READY_NS;
	set_state(front, worker, WORKER_ASKED);
	c.number = worker->number;
	if (front_tell(front, &c))
		return true;
	set_free(front, worker);
	return false;
}

void pool_balance(struct front *front, uint64_t now)
{
	struct pool *pool = &front->pool;
	struct pool_worker *worker;
	struct session *session;
	uint32_t wanted, most;

	if (front->done)
		return;
	while ((worker = find_state(front, WORKER_READY)) &&
		(session = session_next_waiting(front))) {
		worker->session = session;
		set_state(front, worker, WORKER_TAKEN);
		session_assign(front, session, worker);
	}
	if (front->draining || (pool->failing && now < pool->retry_at))
		return;
	wanted = front->config->warm_workers;
	for (uint32_t i = 0; i < front->config->max_sessions && front->session_count; i++)
		if (front->sessions[i].state == SESSION_WAITING)
			wanted++;
	most = starts_at_once(front);
	while (pool->count[WORKER_READY] + starting(pool) < wanted && starting(pool) < most)
		if (!ask_for_worker(front))
			break;
}

int pool_hand_over(struct front *front, struct session *session, const int *fds, unsigned count)
{
	struct pool_worker *worker = session->worker;
	struct handoff h = {
		.version = HANDOFF_VERSION,
		.what = HANDOFF_SESSION,
		.device_count = quota_gpu_count(front, session),
		.bytes = quota_limit(session),
	};
	struct control tenant = {.what = CONTROL_TENANT, .pid = worker->pid};
	int ret;

	snprintf(h.text, sizeof(h.text), "%s", session->transport->name);
	memcpy(h.session, session->id, sizeof(h.session));
	for (uint32_t i = 0; i < h.device_count; i++) {
		h.gpus[i] = (uint8_t)quota_gpu(front, session, i);
		h.devices[i].lease = session->account.lease[h.gpus[i]];
	}
	quota_fill_others(front, session, &h);
	if (worker->handoff.fd < 0 || worker->state != WORKER_TAKEN)
		return -EPIPE;
	/* First: so that it has them before the client's first call. */
	snprintf(tenant.text, sizeof(tenant.text), "%s", session->tenant->name);
	front_tell(front, &tenant);
	ret = session->transport->handoff(worker->handoff.fd, &h, sizeof(h), fds, count);
	if (!ret)
		set_state(front, worker, WORKER_BUSY);
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

void pool_release(struct front *front, struct pool_worker *worker)
{
	worker->session = NULL;
	if (worker->state == WORKER_TAKEN)
		set_state(front, worker, WORKER_READY);
	pool_balance(front, wait_now());
}

/* Ends those that give no sign of life any more; when to look again. */
static uint64_t look(struct front *front, uint64_t now)
{
	struct pool *pool = &front->pool;

	if (!pool->count[WORKER_BUSY])
		return UINT64_MAX;
	if (pool->look_at > now)
		return pool->look_at;
	pool->look_at = now + front->config->worker_silence_ms * FRONT_MS / LOOKS_SILENT;
	for (uint32_t i = 0; i < pool->room; i++) {
		struct pool_worker *worker = &pool->workers[i];

		if (worker->state != WORKER_BUSY || ++worker->silent <= LOOKS_SILENT)
			continue;
		log_error("worker.silent", "worker=%d", worker->pid);
		pool_stop(front, worker, STATUS_UNAVAILABLE,
			"the worker gives no sign of life any more");
	}
	return pool->look_at;
}

uint64_t pool_tick(struct front *front, uint64_t now)
{
	struct pool *pool = &front->pool;
	uint64_t next = look(front, now);

	if (pool->failing && !front->draining) {
		pool_balance(front, now);
		if (pool->retry_at > now && pool->retry_at < next)
			next = pool->retry_at;
	}
	for (uint32_t i = 0; starting(pool) && i < pool->room; i++) {
		struct pool_worker *worker = &pool->workers[i];

		if (worker->state != WORKER_STARTING)
			continue;
		if (worker->deadline <= now) {
			worker->failed = true;
			expect_end(front, worker, 0);
			fail(front, "a worker did not get ready within 120 s; is the driver "
				    "stuck?");
		} else if (worker->deadline < next) {
			next = worker->deadline;
		}
	}
	for (uint32_t i = 0; i < pool->room; i++) {
		struct pool_worker *worker = &pool->workers[i];

		if (worker->wishes_until && worker->wishes_until <= now)
			lease_retry(front, worker, now);
		if (worker->wishes_until && worker->wishes_until < next)
			next = worker->wishes_until;
	}
	return next;
}
