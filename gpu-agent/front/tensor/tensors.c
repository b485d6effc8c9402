/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/front/tensor/tensors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/front/tensor/tensor_copy.h"
#include "gpu-agent/front/tensor/fallen.h"
#include "gpu-agent/front/tensor/sealing.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/ledger/quota.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/front/tenants.h"
#include "gpu-agent/front/tensor/tensor_socket.h"
#include "gpu-agent/front/tensor/tensor_outbound.h"

/* Without a store a question waits so long; one that was sent to a store that lives, longer:
 * the driver makes memory. */
#define AWAY_NS (900 * FRONT_MS)
#define ANSWER_NS (30000 * FRONT_MS)
#define RETRY_NS FRONT_MS
/* Who is told that a tensor is sealed follows within so long, or its session ends: what a
 * worker may be in, a long call of the driver, takes seconds. And so long ending may take. */
#define FOLLOW_NS (10000 * FRONT_MS)
#define ENDING_NS (10000 * FRONT_MS)
#define MESSAGES_A_TURN 64
/* A worker has one batch and a few endings under way (worker/driver/memory/tensor.c). */
#define ASKS_PER_WORKER (TENSOR_BATCH + 8)

struct tensors_ask {
	struct tensors_ask *next;
	struct tensor_message message;
	uint64_t since;
	bool sent;
	bool later; /* the store has said that it takes longer */
	bool held;  /* it is sealed, MESSAGE is the answer: others are to follow first */
};

static void send_waiting(struct front *front);

const struct tensor_table *tensors_table(const struct front *front)
{
	return front->tensors.table;
}

static void answer_refused(struct front *front, const struct tensors_ask *ask, const char *text)
{
	struct tensor_message m = ask->message;

	m.status = STATUS_NOT_READY;
	snprintf(m.text, sizeof(m.text), "%s", text);
	tensor_outbound_send(front, &m, -1);
}

/* ---- to the store ---- */

static void lose_store(struct front *front)
{
	int fd = events_forget(&front->events, &front->tensors.store);

	if (fd >= 0)
		close(fd);
	front->tensors.ready = front->tensors.introduce = false;
	for (struct tensors_ask *a = front->tensors.asks; a; a = a->next) {
		if (a->held)
			continue;
		a->message.again |= a->sent;
		if (a->sent)
			a->since = wait_now();
		a->sent = a->later = false;
	}
	tensor_copy_store_gone(front);
}

/* False: it does not go out now. */
static bool say(struct front *front, const struct tensor_message *message)
{
	int ret;

	if (front->tensors.store.fd < 0)
		return false;
	ret = descriptors_send(
		front->tensors.store.fd, message, sizeof(*message), NULL, 0, MSG_DONTWAIT);
	if (ret && ret != -EAGAIN && ret != -ENOBUFS)
		lose_store(front);
	return !ret;
}

bool tensors_tell_store(struct front *front, const struct tensor_message *message)
{
	return front->tensors.ready && say(front, message);
}

static void send_waiting(struct front *front)
{
	for (struct tensors_ask *a = front->tensors.asks; a && front->tensors.ready;
		a = a->next) {
		if (a->sent)
			continue;
		if (!say(front, &a->message))
			return;
		a->sent = true;
		a->since = wait_now();
	}
}

void tensors_space(const struct tenant *tenant, char space[TENSOR_SPACE])
{
	size_t n = strcspn(tenant->name, "/");

	memset(space, 0, TENSOR_SPACE);
	memcpy(space, tenant->name, n < TENSOR_SPACE ? n : TENSOR_SPACE - 1);
	if (!space[0])
		strcpy(space, "default");
}

/* What the session asked and has not read the answer of. */
static uint32_t under_way(const struct front *front, uint64_t session)
{
	uint32_t count = tensor_outbound_answers(front, session);

	for (const struct tensors_ask *a = front->tensors.asks; a; a = a->next)
		count += a->message.session == session;
	return count;
}

/* What is asked of GPU, once it is known whose it is. False: too much waits, or no memory. */
static bool put(
	struct front *front, const struct tensor_message *ask, uint32_t gpu, uint32_t at_once)
{
	struct tensors_ask **tail = &front->tensors.asks, *a;

	a = under_way(front, ask->session) < at_once ? calloc(1, sizeof(*a)) : NULL;
	if (!a)
		return false;
	while (*tail)
		tail = &(*tail)->next;
	a->message = *ask;
	a->message.again = ask->again != 0;
	memcpy(a->message.gpu, front->ledger.devices[gpu].uuid, sizeof(a->message.gpu));
	a->message.left = ledger_free(&front->ledger, gpu);
	a->message.about.room = front->ledger.devices[gpu].store;
	a->since = wait_now();
	*tail = a;
	if (front->config->store.bytes) {
		send_waiting(front);
		return true;
	}
	*tail = NULL;
	answer_refused(front, a, "this agent has no store of tensors (store.bytes)");
	free(a);
	return true;
}

void tensors_ask(
	struct front *front, struct pool_worker *worker, const struct tensor_message *ask)
{
	const struct session *session = worker->session;
	uint32_t gpu = quota_gpu(front, session, ask->device);
	struct tensor_message m = *ask;

	m.worker = worker->pid;
	m.session = session->number;
	tensors_space(session->tenant, m.space);
	if (ask->version != TENSOR_VERSION || !ask->what || ask->what >= TENSOR_OPERATIONS ||
		gpu == UINT32_MAX || !memchr(ask->name, 0, TENSOR_NAME) ||
		!memchr(ask->text, 0, sizeof(ask->text)) ||
		!put(front, &m, gpu, ASKS_PER_WORKER))
		pool_fault(front, worker, "a question on tensors that makes no sense");
}

bool tensors_ask_for(struct front *front, const struct tensor_message *ask, uint32_t at_once)
{
	struct tensor_message m = *ask;
	uint32_t gpu = 0;

	while (gpu < front->ledger.device_count &&
		memcmp(front->ledger.devices[gpu].uuid, ask->gpu, sizeof(ask->gpu)))
		gpu++;
	if (gpu == front->ledger.device_count && ask->what == TENSOR_TAKE) {
		if (under_way(front, ask->session) >= at_once)
			return false;
		m.status = STATUS_INVALID_DEVICE;
		snprintf(m.text, sizeof(m.text), "this agent does not have that GPU");
		tensor_outbound_send(front, &m, -1);
		return true;
	}
	if (gpu == front->ledger.device_count)
		gpu = 0;
	return front->ledger.device_count && put(front, &m, gpu, at_once);
}

/* Seals whose other writers have all followed, or ended. */
static void answer_held(struct front *front)
{
	for (struct tensors_ask **at = &front->tensors.asks; *at;) {
		struct tensors_ask *a = *at;

		if (!a->held || sealing_waits(front, a->message.id)) {
			at = &a->next;
			continue;
		}
		*at = a->next;
		tensor_outbound_send(front, &a->message, -1);
		free(a);
	}
}

void tensors_followed(struct front *front, uint64_t session, const uint8_t id[16])
{
	struct tensor_message m = {
		.version = TENSOR_VERSION, .what = TENSOR_FOLLOWED, .session = session};

	memcpy(m.id, id, sizeof(m.id));
	/* A store that does not hear it tells the session once more. */
	tensors_tell_store(front, &m);
	sealing_followed(front, session, id);
	answer_held(front);
}

void tensors_session_over(struct front *front, const struct session *session)
{
	tensors_over(front, session->number);
}

void tensors_over(struct front *front, uint64_t session)
{
	struct tensor_message over = {
		.version = TENSOR_VERSION, .what = TENSOR_OVER, .session = session};

	for (struct tensors_ask **at = &front->tensors.asks; *at;) {
		struct tensors_ask *a = *at;

		if (a->message.session != session) {
			at = &a->next;
			continue;
		}
		*at = a->next;
		free(a);
	}
	tensor_outbound_over(front, session);
	sealing_over(front, session);
	answer_held(front);
	/* The store may have been told that it runs. */
	front->tensors.introduced = 0;
	/* A store that does not hear it now asks who runs (READY). */
	if (front->tensors.ready && !say(front, &over))
		lose_store(front);
}

/* ---- from the store ---- */

/* Of the sessions, and behind them of the processes of the node; 0: none is there. */
static uint64_t number_at(const struct front *front, uint32_t index)
{
	if (index >= front->config->max_sessions)
		return tensor_socket_session(front, index - front->config->max_sessions);
	return front->sessions[index].state == SESSION_FREE ? 0 : front->sessions[index].number;
}

/* Tells the store which sessions run: as many as it takes now, the others at the next tick.
 * Who begins meanwhile asks nothing before the store is ready, so it holds nothing. */
static void introduce(struct front *front)
{
	struct tensor_message m = {.version = TENSOR_VERSION, .what = TENSOR_SESSIONS};
	uint32_t at = front->tensors.introduced;

	if (!front->tensors.introduce || (!at && !say(front, &m)))
		return;
	m.what = TENSOR_SESSION;
	for (at += !at; at <= front->config->max_sessions + TENSOR_SOCKET_CLIENTS; at++) {
		front->tensors.introduced = at;
		m.session = number_at(front, at - 1);
		if (m.session && !say(front, &m))
			return;
	}
	front->tensors.introduced = at;
	m.what = TENSOR_END;
	if (say(front, &m)) {
		front->tensors.introduce = false;
		front->tensors.ready = true;
		fallen_tell(front);
	}
}

/* Takes FD. */
static void take_ready(struct front *front, int fd)
{
	void *table =
		fd < 0 ? MAP_FAILED
		       : mmap(NULL, sizeof(struct tensor_table), PROT_READ, MAP_SHARED, fd, 0);

	if (fd >= 0)
		close(fd);
	if (table == MAP_FAILED) {
		log_error("store.table", "text=\"%s\"", strerror(errno));
	} else {
		if (front->tensors.table)
			munmap((void *)(uintptr_t)front->tensors.table,
				sizeof(struct tensor_table));
		front->tensors.table = table;
	}
	front->tensors.ready = false;
	front->tensors.introduce = true;
	front->tensors.introduced = 0;
	introduce(front);
	send_waiting(front);
}

static void take_used(struct front *front, const struct tensor_message *m)
{
	for (uint32_t d = 0; d < front->ledger.device_count; d++)
		if (!memcmp(front->ledger.devices[d].uuid, m->gpu, sizeof(m->gpu)))
			ledger_store(&front->ledger, d, m->about.room);
}

/* FD stays the caller's. */
static void take_answer(struct front *front, const struct tensor_message *m, int fd)
{
	for (struct tensors_ask **at = &front->tensors.asks; *at; at = &(*at)->next) {
		struct tensors_ask *a = *at;

		if (a->message.worker != m->worker || a->message.tag != m->tag ||
			a->message.session != m->session || !a->sent || a->held)
			continue;
		if (m->what == TENSOR_SEAL && !m->status && sealing_waits(front, m->id)) {
			a->message = *m;
			a->held = true;
			a->since = wait_now();
			return;
		}
		*at = a->next;
		tensor_outbound_send(front, m, fd);
		free(a);
		return;
	}
}

static void note_later(struct front *front, const struct tensor_message *m)
{
	for (struct tensors_ask *a = front->tensors.asks; a; a = a->next)
		if (a->message.worker == m->worker && a->message.tag == m->tag &&
			a->message.session == m->session)
			a->later = true;
}

/* True: FD is taken. */
static bool take_one(struct front *front, const struct tensor_message *m, int fd)
{
	switch (m->what) {
	case TENSOR_READY: take_ready(front, fd); return true;
	case TENSOR_COPY: tensor_copy_fetch(front, m, fd); return true;
	case TENSOR_SOURCE: tensor_copy_source(front, m, fd); return true;
	case TENSOR_REDEEM: tensor_copy_redeemed(front, m, fd); return true;
	case TENSOR_USED: take_used(front, m); return false;
	case TENSOR_READ_ONLY:
		sealing_told(front, m);
		tensor_outbound_send(front, m, -1);
		return false;
	case TENSOR_LATER: note_later(front, m); return false;
	default: take_answer(front, m, fd); return false;
	}
}

static void store_ready(struct watch *watch, uint32_t mask)
{
	struct front *front = watch->owner;

	(void)mask;
	for (int i = 0; i < MESSAGES_A_TURN && watch->fd >= 0; i++) {
		struct tensor_message m;
		int fd;
		ssize_t n = descriptors_receive(watch->fd, &m, sizeof(m), &fd, 1, MSG_DONTWAIT);

		if (n == -EAGAIN)
			return;
		if (n != (ssize_t)sizeof(m) || m.version != TENSOR_VERSION) {
			if (fd >= 0)
				close(fd);
			lose_store(front);
			return;
		}
		if (!take_one(front, &m, fd) && fd >= 0)
			close(fd);
	}
}

void tensors_store(struct front *front, int fd)
{
	lose_store(front);
	if (fd >= 0 &&
		events_watch(&front->events, &front->tensors.store, fd, EPOLLIN, store_ready))
		close(fd);
}

/* When it is refused, or looked at again. */
static uint64_t until_of(struct front *front, const struct tensors_ask *a, uint64_t now)
{
	if (a->held && now >= a->since + FOLLOW_NS) {
		sealing_enforce(front, a->message.id);
		return a->since + FOLLOW_NS + ENDING_NS;
	}
	if (a->held)
		return a->since + FOLLOW_NS;
	/* A copy has deadlines of its own, and the store tells its end. */
	return a->later ? UINT64_MAX : a->since + (a->sent ? ANSWER_NS : AWAY_NS);
}

uint64_t tensors_tick(struct front *front, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	if (front->tensors.introduce && front->tensors.store.fd >= 0) {
		introduce(front);
		next = now + RETRY_NS;
	}
	send_waiting(front);
	for (struct tensors_ask **at = &front->tensors.asks; *at;) {
		struct tensors_ask *a = *at;
		uint64_t until = until_of(front, a, now);

		if (until <= now) {
			*at = a->next;
			answer_refused(front, a,
				a->held	  ? "it is sealed, but who wrote it has not ended and "
					    "may still write"
				: a->sent ? "the agent's store does not answer"
					  : "the agent's store is starting; try again");
			free(a);
			continue;
		}
		if (!a->sent && front->tensors.ready && now + RETRY_NS < next)
			next = now + RETRY_NS;
		if (until < next)
			next = until;
		at = &a->next;
	}
	return next;
}
