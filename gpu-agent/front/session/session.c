/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions, as the front sees them: from the HELLO that brought the token to the exit of the
 * worker.  A session waits for a worker before it is welcomed, so that a client that got its
 * WELCOME is served at once; when the link's last connection is there all go to the worker, and
 * the front keeps only the account, and a copy of the first connection, never read, by which it
 * sees that the client is gone though its worker may not.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/front/direct.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/session/hello.h"
#include "gpu-agent/front/journal.h"
#include "gpu-agent/front/http/metrics.h"
#include "gpu-agent/front/networks.h"
#include "gpu-agent/front/worker_pool.h"
#include "gpu-agent/front/ledger/quota.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/front/sharing.h"
#include "gpu-agent/front/ledger/tenant_quotas.h"
#include "gpu-agent/front/tenants.h"
#include "gpu-agent/front/tensor/tensors.h"
#include "gpu-agent/front/uploads.h"
#include "gpu-agent/supervisor/settings/token.h"
#include "protocol/wire/status.h"

/* How long a worker may outlive its client: it ends by itself within seconds (watchdog.c). */
#define GONE_NS (4000 * FRONT_MS)

const char *session_state_name(enum session_state state)
{
	static const char *const names[] = {"free", "waiting", "joining", "running", "ending"};

	return names[state];
}

int session_open_table(struct front *front, struct error *error)
{
	uint32_t n = front->config->max_sessions;

	front->sessions = calloc(n, sizeof(*front->sessions));
	front->pods = calloc(n, sizeof(*front->pods));
	front->late = calloc(SESSIONS_LATE, sizeof(*front->late));
	if (!front->sessions || !front->pods || !front->late)
		return error_set(error, ENOMEM, "a table of %u sessions", n);
	for (uint32_t i = 0; i < n; i++)
		front->sessions[i].commands.fd = -1;
	return 0;
}

static void close_joined(struct session *session)
{
	while (session->joined_count)
		transport_drop(session->transport, session->joined[--session->joined_count]);
}

static void set_free(struct front *front, struct session *session)
{
	struct session_late *late = &front->late[front->late_count++ % SESSIONS_LATE];
	int fd = events_forget(&front->events, &session->commands);

	if (fd >= 0)
		transport_drop(session->transport, fd);
	close_joined(session);
	tenant_quotas_leave(front, session);
	memcpy(late->id, session->id, sizeof(late->id));
	memcpy(late->secret, session->secret, sizeof(late->secret));
	late->end = session->end;
	session->tenant->sessions--;
	journal_forget(front, session);
	memset(session, 0, sizeof(*session));
	session->commands.fd = -1;
	front->session_count--;
}

void session_subject(struct session *session)
{
	log_session(&session->subject, session->id);
	snprintf(session->subject.pod, sizeof(session->subject.pod), "%s", session->pod);
}

void session_give_up(struct front *front, struct session *session, const char *why)
{
	struct pool_worker *worker = session->worker;

	log_of(&session->subject, LOG_INFO, "session.dropped", "peer=%s text=\"%s\"",
		session->peer.text, why);
	quota_close_account(front, session);
	set_free(front, session);
	if (worker)
		pool_release(front, worker);
}

/* Before the hand-over the client has nothing to say: bytes are a fault, the end is the end. */
static void commands_ready(struct watch *watch, uint32_t mask)
{
	struct session *session = events_container(watch, struct session, commands);

	(void)mask;
	session_give_up(watch->owner, session, "the client closed the connection");
}

/* The pod is what the client says, but nobody can say it for a pod of another address. */
static bool same_pod(
	const struct session *session, const struct hello_from *from, const char *pod)
{
	return session->state && session->tenant == from->tenant &&
	       transport_same(&session->peer, from->peer) && !strcmp(session->pod, pod);
}

uint32_t session_may(const struct front *front, const struct hello_from *from,
	enum refusal *refusal, char text[192])
{
	const struct agent_config *config = front->config;
	char pod[sizeof(from->hello->pod)];
	uint32_t same = 0;

	if (front->draining) {
		*refusal = REFUSAL_DRAINING;
		snprintf(text, 192, "the agent is draining; try another one or later");
		return STATUS_NOT_READY;
	}
	front_clean(pod, sizeof(pod), from->hello->pod, sizeof(from->hello->pod));
	for (uint32_t i = 0; i < config->max_sessions; i++)
		if (same_pod(&front->sessions[i], from, pod))
			same++;
	if (front->session_count >= config->max_sessions ||
		same >= config->max_sessions_per_pod) {
		bool all = front->session_count >= config->max_sessions;

		*refusal = REFUSAL_QUOTA;
		snprintf(text, 192, "%u sessions are running, no more are allowed (%s)",
			all ? front->session_count : same,
			all ? "max_sessions" : "max_sessions_per_pod");
		return STATUS_NOT_PERMITTED;
	}
	*refusal = REFUSAL_NOT_READY;
	if (networks_may(front, from->tenant, text))
		return STATUS_NOT_READY;
	*refusal = REFUSAL_QUOTA;
	if (tenants_may(front, from->tenant, text) ||
		tenant_quotas_may(front, from->tenant, text))
		return STATUS_NOT_PERMITTED;
	return quota_may(front, from, text);
}

uint32_t session_count_for(const struct front *front, const struct tenant *tenant)
{
	return tenants_several(front) ? tenant->sessions : front->session_count;
}

/* Another client came first since this one asked who is freest. */
static bool overtaken(const struct front *front, const struct hello_from *from)
{
	uint32_t seen;

	memcpy(&seen, from->hello->seen, sizeof(seen));
	return from->hello->features & SESSION_FEATURE_SEEN &&
	       session_count_for(front, from->tenant) > seen;
}

static struct session *session_alloc(struct front *front)
{
	for (uint32_t i = 0; i < front->config->max_sessions; i++)
		if (front->sessions[i].state == SESSION_FREE)
			return &front->sessions[i];
	return NULL;
}

uint32_t session_begin(struct front *front, int fd, const struct hello_from *from,
	enum refusal *refusal, char text[192])
{
	const struct session_hello *hello = from->hello;
	struct session *session;
	struct error error;
	uint64_t now = wait_now();
	uint32_t status = session_may(front, from, refusal, text);

	if (status)
		return status;
	if (overtaken(front, from)) {
		*refusal = REFUSAL_OVERTAKEN;
		snprintf(text, 192, "another session has begun here since it was asked for");
		return STATUS_PENDING;
	}
	*refusal = REFUSAL_NOT_READY;
	if (front->pool.failing && !front->pool.count[WORKER_READY]) {
		snprintf(text, 192, "%s", front->pool.text);
		return STATUS_NOT_READY;
	}
	session = session_alloc(front); /* session_may counted: there is one */
	session->tenant = from->tenant;
	if (token_random(session->id, sizeof(session->id), &error) ||
		token_random(session->secret, sizeof(session->secret), &error) ||
		tenant_quotas_enter(front, session) ||
		events_watch(&front->events, &session->commands, fd, EPOLLIN | EPOLLRDHUP,
			commands_ready)) {
		tenant_quotas_leave(front, session);
		memset(session, 0, sizeof(*session));
		session->commands.fd = -1;
		snprintf(text, 192, "the agent could not set up a session");
		return STATUS_NOT_READY;
	}
	session->state = SESSION_WAITING;
	session->number = ++front->next_session;
	session->pid = hello->pid;
	session->uid = hello->uid;
	session->asked = priority_asked(hello);
	session->grace_ms = resume_grace(front, hello);
	session->features =
		hello->features &
		(SESSION_FEATURE_STRIPES | SESSION_FEATURE_STRIPES_BACK | SESSION_FEATURE_PEER);
	/* No payload goes over a connection. */
	if (from->transport->shares && hello->features & SESSION_FEATURE_LOCAL)
		session->features = SESSION_FEATURE_LOCAL;
	if (!front->config->compress_off && session->features & SESSION_FEATURE_STRIPES)
		session->features |= hello->features & SESSION_FEATURE_ZSTD;
	session->features |= hello->features & from->transport->feature;
	if (session->grace_ms)
		session->features |= SESSION_FEATURE_RESUME;
	session->features = uploads_features(front, session->features, hello->features);
	session->started = time(NULL);
	session->begun = now;
	session->deadline = now + front->config->start_timeout_ms * FRONT_MS;
	front_clean(session->program, sizeof(session->program), hello->program,
		sizeof(hello->program));
	front_clean(session->pod, sizeof(session->pod), hello->pod, sizeof(hello->pod));
	session_subject(session);
	session->peer = *from->peer;
	session->transport = from->transport;
	session->proven_until = from->proven_ns == UINT64_MAX ? 0 : now + from->proven_ns;
	session->tenant->sessions++;
	session->limits = quota_enter(front, from);
	front->session_count++;
	pool_balance(front, now);
	return 0;
}

struct session *session_next_waiting(struct front *front)
{
	struct session *first = NULL;

	for (uint32_t i = 0; i < front->config->max_sessions; i++) {
		struct session *session = &front->sessions[i];

		if (session->state == SESSION_WAITING &&
			(!first || session->number < first->number))
			first = session;
	}
	return first;
}

/* The end of the client's side, or a broken connection; the worker reads it too, if it can. */
static void client_gone(struct watch *watch, uint32_t mask)
{
	struct session *session = events_container(watch, struct session, commands);
	struct front *front = watch->owner;

	(void)mask;
	close(events_forget(&front->events, watch));
	session->deadline =
		wait_now() + (session->grace_ms ? resume_patience(session) : GONE_NS);
}

void session_watch_client(struct front *front, struct session *session, int fd)
{
	if (session->commands.fd >= 0 ||
		events_watch(&front->events, &session->commands, fd, EPOLLRDHUP, client_gone))
		close(fd);
}

/* All connections have come: they are the worker's. */
static void hand_over(struct front *front, struct session *session)
{
	int fds[1 + TRANSPORT_FDS], ret;
	unsigned count = 1 + session->joined_count;

	fds[0] = events_forget(&front->events, &session->commands);
	memcpy(fds + 1, session->joined, session->joined_count * sizeof(fds[0]));
	/* First: a worker that has a session and stands nowhere would be ended. */
	journal_session(front, session);
	ret = pool_hand_over(front, session, fds, count);
	close_joined(session);
	/* What stays is only watched. */
	if (session->transport->forget)
		session->transport->forget(fds[0]);
	if (ret) {
		close(fds[0]);
		/* The worker is on its way out, and session_ended comes with its exit: the
		 * client sees its connections close. */
		log_of(&session->subject, LOG_ERROR, "session.handoff", "worker=%d text=\"%s\"",
			session->worker->pid, strerror(-ret));
		session->state = SESSION_ENDING;
		journal_forget(front, session);
		pool_stop(front, session->worker, STATUS_NOT_READY, "it took no session");
		return;
	}
	journal_client(front, session, fds[0]);
	session_watch_client(front, session, fds[0]);
	session->state = SESSION_RUNNING;
	session->deadline = 0;
	front->counters.sessions++;
	log_of(&session->subject, LOG_INFO, "session.open",
		"number=%llu worker=%d tenant=%s peer=%s program=\"%s\" client=%u",
		(unsigned long long)session->number, session->worker->pid,
		session->tenant->name, session->peer.text, session->program, session->pid);
}

void session_joined(struct front *front, struct session *session, int fd)
{
	session->joined[session->joined_count++] = fd;
	if (session->state != SESSION_JOINING)
		resume_joined(front, session);
	else if (session_is_whole(session))
		hand_over(front, session);
}

struct session_welcome session_greeting(
	const struct front *front, const struct session *session)
{
	struct session_welcome welcome = {
		.magic = SESSION_MAGIC,
		.version = SESSION_VERSION,
		.features = session->features,
		.reply_port = front->config->bound[LISTEN_SEND],
	};

	memcpy(welcome.session, session->id, sizeof(welcome.session));
	return welcome;
}

void session_assign(struct front *front, struct session *session, struct pool_worker *worker)
{
	struct session_welcome welcome = session_greeting(front, session);

	welcome.granted_ms = session->grace_ms;
	memcpy(welcome.secret, session->secret, sizeof(welcome.secret));
	session->worker = worker;
	session->state = SESSION_JOINING;
	session->deadline = wait_now() + SESSION_HELLO_MS * FRONT_MS;
	if (!quota_open_account(front, session)) {
		welcome.status = STATUS_NOT_PERMITTED;
		snprintf(welcome.text, sizeof(welcome.text),
			"more GPUs are asked for than the %u "
			"that this agent has",
			(uint32_t)__builtin_popcount(quota_good(front, session->tenant)));
		hello_welcome(session->transport, session->commands.fd, &welcome);
		session_give_up(front, session, welcome.text);
	} else if (!hello_welcome(session->transport, session->commands.fd, &welcome)) {
		session_give_up(front, session, "the client does not take its WELCOME");
	} else {
		metrics_wait(front, session->subject.session, wait_now() - session->begun);
		if (session_is_whole(session))
			hand_over(front, session);
		else
			pool_announce(front, session);
	}
	explicit_bzero(&welcome, sizeof(welcome));
}

void session_refuse_waiting(struct front *front, const char *text)
{
	struct session_welcome welcome = {
		.magic = SESSION_MAGIC,
		.version = SESSION_VERSION,
		.status = STATUS_NOT_READY,
	};

	snprintf(welcome.text, sizeof(welcome.text), "%s", text);
	for (uint32_t i = 0; i < front->config->max_sessions; i++) {
		struct session *session = &front->sessions[i];

		if (session->state != SESSION_WAITING)
			continue;
		front->counters.refused[REFUSAL_NOT_READY]++;
		hello_welcome(session->transport, session->commands.fd, &welcome);
		quota_close_account(front, session);
		set_free(front, session);
	}
}

void session_ended(struct front *front, struct session *session)
{
	log_of(&session->subject, LOG_INFO, "session.close",
		"seconds=%lld launches=%llu received=%llu sent=%llu errors=%llu",
		(long long)(time(NULL) - session->started),
		(unsigned long long)session->stats.launches,
		(unsigned long long)session->stats.bytes_received,
		(unsigned long long)session->stats.bytes_sent,
		(unsigned long long)session->stats.errors);
	metrics_duration(front, wait_now() - session->begun);
	front->counters.resumes_expired += session->resume.parked_at != 0;
	sharing_forget(front, session);
	tensors_session_over(front, session);
	direct_session_gone(front, session);
	timeshare_end(front, session);
	quota_close_account(front, session);
	set_free(front, session);
}

/* A counter of a worker only grows; one that does not is wrong and is left out. */
static void count_up(uint64_t *seen, uint64_t now, uint64_t *total, uint64_t *tenant)
{
	if (now > *seen) {
		*total += now - *seen;
		*tenant += now - *seen;
		*seen = now;
	}
}

void session_stats(struct front *front, struct session *session, const struct handoff *h)
{
	struct session_stats *seen = &session->stats;
	struct session_stats *total = &front->counters.totals;
	struct session_stats *tenant = &session->tenant->totals;

#define COUNT_UP(field) count_up(&seen->field, h->field, &total->field, &tenant->field)
	COUNT_UP(frames_received);
	COUNT_UP(frames_sent);
	COUNT_UP(bytes_received);
	COUNT_UP(bytes_sent);
	COUNT_UP(launches);
	COUNT_UP(copies_in_bytes);
	COUNT_UP(copies_out_bytes);
	COUNT_UP(saved_received);
	COUNT_UP(saved_sent);
	COUNT_UP(errors);
	COUNT_UP(peer_sent);
	COUNT_UP(peer_received);
#undef COUNT_UP
	session->peers = h->peers <= DIRECT_PEERS_MOST ? h->peers : DIRECT_PEERS_MOST;
	front_clean(session->last_error, sizeof(session->last_error), h->last_error,
		sizeof(h->last_error));
	tenant_quotas_count(session, h);
	latencies_take(&front->counters.latencies, session->subject.session, session->latency,
		h->latency);
	for (uint32_t i = 0; i < h->device_count && i < quota_gpu_count(front, session); i++)
		seen->used[quota_gpu(front, session, i)] = h->devices[i].used;
	timeshare_stats(front, session, h);
	journal_stats(front, session);
}

uint64_t session_tick(struct front *front, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t i = 0; front->session_count && i < front->config->max_sessions; i++) {
		struct session *session = &front->sessions[i];
		struct session_welcome late = {
			.magic = SESSION_MAGIC,
			.version = SESSION_VERSION,
			.status = STATUS_NOT_READY,
		};

		if (session->state == SESSION_FREE || session->state == SESSION_ENDING)
			continue;
		if (session->resume.state) {
			uint64_t at = resume_tick(front, session, now);

			next = at < next ? at : next;
		}
		if (!session->deadline)
			continue;
		if (session->deadline > now) {
			if (session->deadline < next)
				next = session->deadline;
			continue;
		}
		if (session->state == SESSION_RUNNING) {
			log_of(&session->subject, LOG_WARN, "session.outlived", "worker=%d",
				session->worker->pid);
			session->deadline = 0;
			pool_stop(
				front, session->worker, STATUS_NOT_READY, "the client is gone");
			continue;
		}
		if (session->state == SESSION_WAITING) {
			front->counters.refused[REFUSAL_NOT_READY]++;
			snprintf(late.text, sizeof(late.text),
				"no worker got ready within start_timeout (%u ms); the agent's "
				"log "
				"says more",
				front->config->start_timeout_ms);
			hello_welcome(session->transport, session->commands.fd, &late);
		}
		session_give_up(front, session,
			session->state == SESSION_WAITING ? "no worker in time"
							  : "not all connections in time");
	}
	return next;
}
