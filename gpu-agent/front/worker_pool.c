/* SPDX-License-Identifier: Apache-2.0
 *
 * Workers, as the front sees them.  The supervisor makes them; the front asks for as many as it
 * wants warm, plus one for each session that waits.  What workers say is read in handoff.c.
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
#include "gpu-agent/probe/library_search.h"
#include "gpu-agent/front/tensor/tensor_copy.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/handoff.h"
#include "gpu-agent/front/ledger/lease.h"
#include "gpu-agent/front/worker_pool.h"
#include "gpu-agent/front/session/refusals.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/front/sharing.h"
#include "gpu-agent/sandbox/sandbox.h"
#include "protocol/wire/status.h"

/* A driver with many GPUs and nothing initialised takes tens of seconds. */
#define READY_NS (120000 * FRONT_MS)
#define RETRY_MIN (250 * FRONT_MS)
#define RETRY_MAX (10000 * FRONT_MS)
#define KILLED_MOST 4
#define POOL_SLACK 64 /* workers on their way out */
#define SHORT_NS (10000 * FRONT_MS)
#define STARTS_MAX 8 /* at once: making a context is CPU work of the driver */

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
		pool->workers[i].handoff.fd = pool->workers[i].refusals.fd = -1;
	pool->count[WORKER_FREE] = pool->room;
	return 0;
}

void pool_set_state(struct front *front, struct pool_worker *worker, enum worker_state state)
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
	refusals_end(front, worker);
	tensor_copy_worker_gone(front, worker);
	if (worker->counted)
		ledger_context_remove(&front->ledger, worker->contexts);
	pool_set_state(front, worker, WORKER_FREE);
	memset(worker, 0, sizeof(*worker));
	worker->handoff.fd = worker->refusals.fd = -1;
}

uint32_t pool_starting(const struct pool *pool)
{
	return pool->count[WORKER_ASKED] + pool->count[WORKER_STARTING];
}

void pool_failed(struct front *front, const char *text)
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
	if (worker->state == WORKER_ENDING)
		return 0; /* it hears no more */
	return descriptors_send(worker->handoff.fd, h, sizeof(*h), fds, count, MSG_DONTWAIT);
}

void pool_expect_end(struct front *front, struct pool_worker *worker, uint32_t ms)
{
	struct control c = {.what = CONTROL_KILL, .pid = worker->pid, .ms = ms};

	if (worker->session)
		worker->session->state = SESSION_ENDING;
	worker->ending_since = wait_now();
	pool_set_state(front, worker, WORKER_ENDING);
	front_tell(front, &c);
}

void pool_stop(
	struct front *front, struct pool_worker *worker, uint32_t status, const char *text)
{
	struct handoff h = {.version = HANDOFF_VERSION, .what = HANDOFF_STOP, .status = status};

	if (worker->state == WORKER_ENDING || worker->state < WORKER_STARTING)
		return;
	snprintf(h.text, sizeof(h.text), "%s", text);
	if (worker->session)
		session_set_end(worker->session, status, text);
	send_worker(worker, &h, NULL, 0);
	/* Nothing comes behind it: that is seen without reading what stands before it. */
	shutdown(worker->handoff.fd, SHUT_WR);
	pool_expect_end(front, worker, CONTROL_STOP_MS);
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
		pool_failed(front, text);
	}
	if (worker->state != WORKER_ENDING)
		pool_expect_end(front, worker, 0);
}

/* --- what the supervisor says ------------------------------------------------------------- */

static struct pool_worker *find_state(struct front *front, enum worker_state state)
{
	if (!front->pool.count[state])
		return NULL;
	for (uint32_t i = 0; i < front->pool.room; i++)
		if (front->pool.workers[i].state == state)
			return &front->pool.workers[i];
	return NULL;
}

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
		if (worker) {
			set_free(front, worker);
			pool_failed(
				front, "the front could not take a worker that was started");
		}
		return;
	}
	worker->pid = control->pid;
	worker->deadline = wait_now() + READY_NS;
	pool_set_state(front, worker, WORKER_STARTING);
	front->counters.worker_starts++;
}

struct pool_worker *pool_adopt(
	struct front *front, pid_t pid, const uint64_t contexts[HANDOFF_DEVICES], int fd)
{
	struct pool_worker *worker = find_state(front, WORKER_FREE);

	if (!worker ||
		events_watch(&front->events, &worker->handoff, fd, EPOLLIN, handoff_ready))
		return NULL;
	worker->number = ++front->pool.next_number;
	worker->pid = pid;
	worker->adopted = true;
	memcpy(worker->contexts, contexts, sizeof(worker->contexts));
	ledger_context_add(&front->ledger, worker->contexts);
	worker->counted = true;
	pool_set_state(front, worker, WORKER_BUSY);
	return worker;
}

void pool_refused(struct front *front, const struct control *control)
{
	struct pool_worker *worker = find_number(front, control->number);

	if (worker) {
		set_free(front, worker);
		pool_failed(front, control->text);
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
		log_of(worker->session ? &worker->session->subject : NULL, LOG_ERROR,
			"worker.crash", "worker=%d signal=%d", worker->pid, WTERMSIG(status));
}

/* Somebody, or the kernel for want of memory, killed a worker that was starting: that says
 * nothing of the GPU, so the next one is tried at once and who waits goes on waiting. Not for
 * ever. */
static bool killed_in_passing(struct front *front, int status)
{
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL ||
		++front->pool.killed > KILLED_MOST)
		return false;
	log_warn("worker.killed", "text=\"a worker was killed before it was ready\"");
	return true;
}

/* What a worker could not say any more. */
static void tell_exit(struct session *session, int status)
{
	char text[sizeof(session->end.text)];

	if (WIFSIGNALED(status))
		snprintf(text, sizeof(text), "the session's worker was ended by signal %d (%s)",
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		snprintf(text, sizeof(text), "the session's worker exited with status %d",
			WEXITSTATUS(status));
	else
		return;
	session_set_end(session, STATUS_LOST, text);
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
			handoff_handle(front, worker, &h, &fd);
	}
	count_exit(front, worker, control->status);
	session = worker->session;
	was_starting = !worker->counted && !worker->failed;
	set_free(front, worker);
	if (session) {
		tell_exit(session, control->status);
		session_ended(front, session);
	}
	if (was_starting && !front->draining && !killed_in_passing(front, control->status)) {
		if (WIFSIGNALED(control->status))
			snprintf(text, sizeof(text),
				"a worker was ended by signal %d before it was ready",
				WTERMSIG(control->status));
		else if (WEXITSTATUS(control->status) == AGENT_EXIT_NO_EXEC)
			snprintf(text, sizeof(text),
				"no worker can be started: the system does not execute the "
				"agent's program");
		else
			snprintf(text, sizeof(text),
				"a worker exited with status %d before it was ready",
				WEXITSTATUS(control->status));
		pool_failed(front, text);
	}
	for (uint32_t i = 0; i < front->pool.room; i++)
		lease_retry(front, &front->pool.workers[i], wait_now());
	pool_balance(front, wait_now());
}

/* --- what the front wants ----------------------------------------------------------------- */

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
	pool_set_state(front, worker, WORKER_ASKED);
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
	uint32_t wanted, most, waiting = 0;

	if (front->done)
		return;
	while ((worker = find_state(front, WORKER_READY)) &&
		(session = session_next_waiting(front))) {
		worker->session = session;
		pool_set_state(front, worker, WORKER_TAKEN);
		replacement_begin(&pool->replacement, now);
		session_assign(front, session, worker);
	}
	while (tensor_copy_waiting(front) && (worker = find_state(front, WORKER_READY))) {
		pool_set_state(front, worker, WORKER_TAKEN);
		tensor_copy_assign(front, worker);
	}
	if (front->draining || (pool->failing && now < pool->retry_at))
		return;
	for (uint32_t i = 0; i < front->config->max_sessions && front->session_count; i++)
		if (front->sessions[i].state == SESSION_WAITING)
			waiting++;
	waiting += tensor_copy_waiting(front);
	wanted = waiting + (now < pool->short_until ? 0 : front->config->warm_workers);
	if (!wanted && front->doubts)
		wanted = 1;
	/* A session that came to nothing gave its worker back, when another one was on its way
	 * in its place: each holds a context's memory. */
	while (pool->count[WORKER_READY] > wanted && (worker = find_state(front, WORKER_READY)))
		pool_stop(front, worker, STATUS_OK, "there are enough");
	if (replacement_waits(&pool->replacement, pool->count[WORKER_READY], waiting, now))
		return;
	most = starts_at_once(front);
	while (pool->count[WORKER_READY] + pool_starting(pool) < wanted &&
		pool_starting(pool) < most)
		if (!ask_for_worker(front))
			break;
}

void pool_short(struct front *front, struct pool_worker *worker)
{
	uint64_t now = wait_now();

	if (worker->told_short)
		return;
	worker->told_short = true;
	front->pool.short_until = now + SHORT_NS;
	log_warn("pool.short", "session=%" PRIu64 " warm=%u", worker->session->number,
		front->pool.count[WORKER_READY]);
	pool_balance(front, now);
}

void pool_release(struct front *front, struct pool_worker *worker)
{
	worker->session = NULL;
	if (worker->state == WORKER_TAKEN)
		pool_set_state(front, worker, WORKER_READY);
	pool_balance(front, wait_now());
}
