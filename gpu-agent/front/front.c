/* SPDX-License-Identifier: Apache-2.0
 *
 * The front: one loop that listens, decides who gets a session, keeps the accounts, and answers
 * HTTP.  It never opens a CUDA library.  When it dies the supervisor starts another under the
 * same ports, which takes the sessions over (adopt.h).
 */
#include "gpu-agent/front/tensor/tensor_copy.h"
#include "gpu-agent/front/direct.h"
#include "gpu-agent/front/tensor/fallen.h"
#include "gpu-agent/front/front.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/front/adopt.h"
#include "gpu-agent/front/health.h"
#include "gpu-agent/front/session/hello.h"
#include "gpu-agent/front/http/http.h"
#include "gpu-agent/front/images.h"
#include "gpu-agent/front/identity.h"
#include "gpu-agent/front/journal.h"
#include "gpu-agent/front/networks.h"
#include "gpu-agent/front/worker_pool.h"
#include "gpu-agent/front/session/renew.h"
#include "gpu-agent/front/session/refusals.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/front/http/state.h"
#include "gpu-agent/front/tenants.h"
#include "gpu-agent/front/tensor/tensor_socket.h"
#include "gpu-agent/front/tensor/tensor_outbound.h"
#include "gpu-agent/front/tensor/tensors.h"
#include "gpu-agent/front/uploads.h"
#include "gpu-agent/supervisor/listening.h"
#include "gpu-agent/supervisor/settings/settings.h"
#include "protocol/wire/status.h"

#define TELL_MS 200
/* The supervisor tells at once what there is to take over. */
#define BEGIN_NS (10000 * FRONT_MS)

void front_clean(char *out, size_t n, const char *text, size_t text_size)
{
	size_t i;

	for (i = 0; i + 1 < n && i < text_size && text[i]; i++) {
		unsigned char c = (unsigned char)text[i];

		out[i] = c < ' ' || c >= 127 || c == '"' || c == '\\' ? '?' : text[i];
	}
	out[i] = 0;
}

bool front_is_ready(const struct front *front, const char **text)
{
	const struct pool *pool = &front->pool;

	*text = "";
	if (front->draining)
		*text = "draining";
	else if (pool->failing && !pool->count[WORKER_READY])
		*text = pool->text;
	else if (!front->ledger.device_count)
		*text = "the first worker is starting";
	else if (front->ledger.bugs)
		*text = "the ledger does not add up; the agent's log says where";
	return !**text;
}

bool front_tell_with(struct front *front, const struct control *control, int fd)
{
	struct pollfd p = {.fd = front->control.fd, .events = POLLOUT};

	/* Hundreds of datagrams queue; the wait is shorter than the supervisor's for us, so
	 * that the two cannot wait for each other. */
	for (int i = 0; i < 2; i++) {
		int ret = descriptors_send(
			front->control.fd, control, sizeof(*control), &fd, fd >= 0, 0);

		if (!ret)
			return true;
		if (ret == -EPIPE || ret == -ECONNRESET) {
			front->done = true; /* the supervisor is gone */
			return false;
		}
		/* Full, or short of memory, which is no reason to end all sessions. */
		p.events = ret == -EAGAIN ? POLLOUT : 0;
		poll(&p, 1, TELL_MS);
	}
	log_warn("supervisor.slow", "what=%u", control->what);
	return false;
}

bool front_tell(struct front *front, const struct control *control)
{
	return front_tell_with(front, control, -1);
}

static void start_drain(struct front *front, uint32_t ms)
{
	front->draining = true;
	front->drain_at = wait_now() + ms * FRONT_MS;
	session_refuse_waiting(front, "the agent is draining; try another one or later");
	for (uint32_t i = 0; i < front->pool.room; i++) {
		struct pool_worker *worker = &front->pool.workers[i];

		if (worker->state == WORKER_READY || worker->state == WORKER_STARTING)
			pool_stop(front, worker, STATUS_NOT_READY, "the agent is draining");
	}
}

static void stop_sessions(struct front *front)
{
	log_warn("drain.stop", "sessions=%u", front->session_count);
	front->stopped = true;
	for (uint32_t i = 0; i < front->pool.room; i++)
		if (front->pool.workers[i].state == WORKER_BUSY ||
			front->pool.workers[i].state == WORKER_TAKEN)
			pool_stop(
				front, &front->pool.workers[i], STATUS_LOST, "the agent ended");
}

/* Draining is over when no session is left and every worker was reaped. */
static uint64_t drain_tick(struct front *front, uint64_t now)
{
	if (!front->draining)
		return UINT64_MAX;
	if (!front->session_count &&
		front->pool.count[WORKER_FREE] + front->pool.count[WORKER_ASKED] ==
			front->pool.room) {
		front->done = true;
		return now;
	}
	if (!front->stopped && front->drain_at <= now)
		stop_sessions(front);
	return front->stopped ? UINT64_MAX : front->drain_at;
}

static void take_tokens(struct front *front, int fd)
{
	static struct agent_config fresh;
	struct error error;

	if (fd < 0 || settings_from_fd(&fresh, fd, &error)) {
		log_error("tokens.lost", "text=\"%s\"", fd < 0 ? "no memfd" : error.text);
		return;
	}
	tenants_replace(front, &fresh);
	renew_revoked(front);
	front->http_tokens = fresh.http_tokens;
	memset(&fresh, 0, sizeof(fresh));
}

/* By the UUID that the driver gave: NVML numbers devices in its own way. */
static void take_meter(struct front *front, const struct control *c)
{
	struct control_gpu gpu;
	char uuid[sizeof(gpu.uuid)] = "";

	memcpy(&gpu, c->text, sizeof(gpu));
	for (uint32_t d = 0; d < front->ledger.device_count; d++) {
		state_uuid_text(uuid, sizeof(uuid), front->ledger.devices[d].uuid);
		if (strncmp(uuid, gpu.uuid, sizeof(gpu.uuid)))
			continue;
		front->meters[d] = gpu;
		front->metered_at[d] = wait_now();
		fallen_metered(front, d, &gpu);
	}
}

static void handle_control(struct front *front, struct control *c, int fd)
{
	if (c->what == CONTROL_GPU)
		take_meter(front, c);
	c->text[sizeof(c->text) - 1] = 0;
	switch (c->what) {
	case CONTROL_STORE: tensors_store(front, fd); return;
	case CONTROL_UPLOADS: uploads_join(front, fd); return;
	case CONTROL_STARTED: pool_started(front, c, fd); return;
	case CONTROL_KEPT: adopt_kept(front, c, fd); return;
	case CONTROL_ADOPT: adopt_worker(front, c, fd); return;
	case CONTROL_BEGIN: adopt_end(front); break;
	case CONTROL_REFUSED: pool_refused(front, c); break;
	case CONTROL_EXITED: pool_exited(front, c); break;
	case CONTROL_DRAIN: start_drain(front, c->ms); break;
	case CONTROL_GPU: break;
	case CONTROL_TOKENS: take_tokens(front, fd); break;
	case CONTROL_LIBRARY:
		if (c->number < AGENT_LIBRARIES && front->library_count < CONTROL_LIBRARIES)
			front->libraries[front->library_count++] = *c;
		break;
	default: log_error("supervisor.nonsense", "what=%u", c->what); break;
	}
	if (fd >= 0)
		close(fd);
}

static void control_ready(struct watch *watch, uint32_t mask)
{
	struct front *front = watch->owner;
	struct control c;
	int fd, ret;

	(void)mask;
	while ((ret = control_hear(watch->fd, &c, &fd)) > 0)
		handle_control(front, &c, fd);
	front->done |= ret < 0;
}

/* Before anybody is let in: what others hold must be known. */
static int take_over(struct front *front, struct error *error)
{
	uint64_t until = wait_now() + BEGIN_NS;

	while (!front->begun && !front->done && wait_now() < until)
		events_turn(&front->events, until);
	return front->begun ? 0 : error_set(error, ETIMEDOUT, "the supervisor does not begin");
}

/* For the ready file: when it is known whether we are ready, and whenever that changes. */
static void report_state(struct front *front)
{
	struct control c = {.what = CONTROL_STATE};
	const char *text;
	bool ready = front_is_ready(front, &text);

	if (!ready && !front->pool.failing && !front->draining)
		return; /* not known yet */
	if (front->state_sent && front->sent_ready == ready && !strcmp(front->sent_text, text))
		return;
	c.status = ready ? 0 : STATUS_NOT_READY;
	snprintf(c.text, sizeof(c.text), "%s", text);
	if (!front_tell(front, &c))
		return;
	front->state_sent = true;
	front->sent_ready = ready;
	snprintf(front->sent_text, sizeof(front->sent_text), "%s", text);
	if (ready)
		log_info("agent.ready", "gpus=%u driver=\"%s\"", front->ledger.device_count,
			front->pool.driver);
	else
		log_warn("agent.not_ready", "text=\"%s\"", text);
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static int open_all(struct front *front, struct error *error)
{
	int ret = events_open(&front->events, front, error);

	if (!ret)
		ret = events_watch(&front->events, &front->control, AGENT_FD_SOCKET, EPOLLIN,
			control_ready);
	if (!ret)
		ret = tenants_open(front, error);
	if (!ret)
		ret = identity_open(front, error);
	if (!ret)
		ret = session_open_table(front, error);
	if (!ret)
		ret = pool_open(front, error);
	if (!ret)
		ret = images_open(front, error);
	if (!ret)
		ret = take_over(front, error);
	if (!ret)
		ret = direct_open(front, error);
	if (!ret)
		ret = tensor_copy_open(front, error);
	if (!ret)
		ret = http_open(front, AGENT_FD_HTTP, error);
	if (!ret)
		ret = hello_open(front, error);
	if (!ret)
		health_open(front);
	if (!ret)
		tensor_socket_open(front);
	return ret;
}

int front_main(const struct agent_config *config)
{
	static struct front front;
	struct error error = {0};

	front.config = config;
	front.tensors.store.fd = -1;
	front.uploads.process.fd = -1;
	front.started = time(NULL);
	front.ledger.limit = config->memory_limit;
	if (listening_secure(config, &error) || open_all(&front, &error)) {
		fprintf(stderr, "gpu-agent: front: %s\n", error.text);
		return 1;
	}
	pool_balance(&front, wait_now());
	while (!front.done) {
		uint64_t now = wait_now(), next;

		next = sooner(pool_tick(&front, now), session_tick(&front, now));
		next = sooner(next, renew_tick(&front, now));
		next = sooner(next, refusals_tick(&front, now));
		next = sooner(next, fallen_tick(&front, now));
		next = sooner(next, hello_tick(&front, now));
		next = sooner(next, networks_tick(&front, now));
		next = sooner(next, tenants_tick(&front, now));
		next = sooner(next, timeshare_tick(&front, now));
		next = sooner(next, tensors_tick(&front, now));
		next = sooner(next, tensor_copy_tick(&front, now));
		next = sooner(next, tensor_socket_tick(&front, now));
		next = sooner(next, tensor_outbound_tick(&front, now));
		next = sooner(next, drain_tick(&front, now));
		next = sooner(next, http_tick(&front));
		report_state(&front);
		if (front.done)
			break;
		events_turn(&front.events, next);
	}
	health_close(&front);
	tensor_socket_close(&front);
	hello_close(&front);
	direct_close(&front);
	http_close(&front);
	identity_close(&front);
	images_close(&front);
	tenants_close(&front);
	networks_close(&front);
	journal_close(&front);
	free(front.late);
	free(front.sessions);
	free(front.pods);
	free(front.pool.workers);
	return 0;
}
