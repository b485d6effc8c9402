/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/front/tensor/tensor_copy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/front/direct.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/handoff.h"
#include "gpu-agent/front/worker_pool.h"
#include "gpu-agent/front/tensor/tensors.h"
#include "protocol/wire/status.h"

#define COPIES 64  /* of each way, those that wait among them */
#define RUNNING 4u /* of each way: a worker each */
/* Until there is a worker, the other end has answered, or the store has. */
#define BEGIN_NS (60000 * FRONT_MS)
#define REDEEM_NS (5000 * FRONT_MS)
#define DIAL_NS (30000 * FRONT_MS)

enum copy_state {
	COPY_FREE,
	COPY_REDEEMING,	 /* the store looks what the ticket is for */
	COPY_SOURCELESS, /* what it is a copy of comes yet */
	COPY_WAITING,	 /* for a worker */
	COPY_DIALING,	 /* it has one */
	COPY_RUNNING,
};

struct tensor_copy {
	enum copy_state state;
	bool out; /* another agent fetches */
	uint64_t number;
	struct tensor_message message;	/* COPY, or REDEEM */
	struct tensor_message from;	/* SOURCE: it is of this agent's other GPU */
	int memory, source, connection; /* -1: none */
	const struct transport *transport;
	struct transport_peer peer;
	struct pool_worker *worker;
	uint64_t until;
};

struct tensor_copies {
	struct tensor_copy at[2 * COPIES];
	uint64_t numbers;
	struct tensor_copy_counts {
		uint64_t done, failed, bytes;
	} in, out;
};

int tensor_copy_open(struct front *front, struct error *error)
{
	front->copies = calloc(1, sizeof(*front->copies));
	return front->copies ? 0 : error_set(error, ENOMEM, "copies between agents");
}

static struct tensor_copy_counts *counts(struct front *front, const struct tensor_copy *c)
{
	return c->out ? &front->copies->out : &front->copies->in;
}

static struct tensor_copy *copy_new(
	struct front *front, bool out, enum copy_state state, uint64_t ns)
{
	for (uint32_t i = out ? COPIES : 0; i < (out ? 2 * COPIES : COPIES); i++) {
		struct tensor_copy *c = &front->copies->at[i];

		if (c->state != COPY_FREE)
			continue;
		*c = (struct tensor_copy){.state = state,
			.out = out,
			.number = COPY_NUMBER | ++front->copies->numbers,
			.memory = -1,
			.source = -1,
			.connection = -1,
			.until = wait_now() + ns};
		return c;
	}
	return NULL;
}

static struct tensor_copy *numbered(const struct front *front, uint64_t number)
{
	for (uint32_t i = 0; i < 2 * COPIES; i++)
		if (front->copies->at[i].state != COPY_FREE &&
			front->copies->at[i].number == number)
			return &front->copies->at[i];
	return NULL;
}

static uint32_t running(const struct front *front, bool out)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < 2 * COPIES; i++)
		n += front->copies->at[i].state >= COPY_DIALING &&
		     front->copies->at[i].out == out;
	return n;
}

/* The place is free; the worker, where it has one, is the caller's. */
static void copy_close(struct tensor_copy *c)
{
	if (c->memory >= 0)
		close(c->memory);
	if (c->source >= 0)
		close(c->source);
	if (c->connection >= 0)
		transport_drop(c->transport, c->connection);
	if (c->worker)
		c->worker->copy = NULL;
	explicit_bzero(c, sizeof(*c));
}

/* What the other end reads instead of bytes. */
static void refuse(const struct tensor_copy *c, uint32_t status, const char *text)
{
	struct session_welcome welcome = {
		.magic = SESSION_MAGIC, .version = SESSION_VERSION, .status = status};

	snprintf(welcome.text, sizeof(welcome.text), "%s", text);
	hello_welcome(c->transport, c->connection, &welcome);
}

static void fail(struct front *front, struct tensor_copy *c, uint32_t status, const char *text)
{
	struct pool_worker *worker = c->worker;
	struct tensor_message told = c->message;
	const bool refused = c->out && c->state < COPY_RUNNING;

	counts(front, c)->failed++;
	log_warn("copy.failed", "way=%s name=\"%s\" text=\"%s\"", c->out ? "out" : "in",
		c->message.name, text);
	c->state = COPY_FREE; /* before the store is told: that may find it gone */
	if (!c->out) {
		told.what = TENSOR_COPIED;
		told.status = status;
		snprintf(told.text, sizeof(told.text), "%.159s", text);
		tensors_tell_store(front, &told);
	} else if (refused) {
		refuse(c, status, text);
	}
	copy_close(c);
	/* It may have the memory mapped, and a connection. */
	if (worker && worker->state == WORKER_BUSY)
		pool_stop(front, worker, STATUS_UNAVAILABLE, "the copy has ended");
	else if (worker)
		pool_release(front, worker);
}

/* ---- the worker ---- */

uint32_t tensor_copy_waiting(const struct front *front)
{
	uint32_t waits[2] = {0, 0}, n = 0;

	for (uint32_t i = 0; front->copies && i < 2 * COPIES; i++)
		waits[front->copies->at[i].out] += front->copies->at[i].state == COPY_WAITING;
	for (int out = 0; front->copies && out < 2; out++) {
		uint32_t room = RUNNING - running(front, out);

		n += waits[out] < room ? waits[out] : room;
	}
	return n;
}

static struct tensor_copy *next_waiting(const struct front *front)
{
	struct tensor_copy *found = NULL;

	for (uint32_t i = 0; i < 2 * COPIES; i++) {
		struct tensor_copy *c = &front->copies->at[i];

		if (c->state == COPY_WAITING && running(front, c->out) < RUNNING &&
			(!found || c->number < found->number))
			found = c;
	}
	return found;
}

/* The worker gets memory and connection, in this order. */
static void run(struct front *front, struct tensor_copy *c)
{
	struct tensor_message m = c->message;
	struct handoff h = {.version = HANDOFF_VERSION, .what = HANDOFF_PEER};
	int ret;

	m.version = TENSOR_VERSION;
	m.what = c->out ? TENSOR_SPILL : TENSOR_FILL;
	snprintf(h.text, sizeof(h.text), "%s", c->transport->name);
	ret = descriptors_send(
		c->worker->handoff.fd, &m, sizeof(m), &c->memory, 1, MSG_DONTWAIT);
	if (!ret) {
		pool_set_state(front, c->worker, WORKER_BUSY);
		ret = c->transport->handoff(
			c->worker->handoff.fd, &h, sizeof(h), &c->connection, 1);
	}
	if (ret) {
		fail(front, c, STATUS_NOT_READY, "the worker takes nothing");
		return;
	}
	transport_drop(c->transport, c->connection);
	close(c->memory);
	c->connection = c->memory = -1;
	c->state = COPY_RUNNING;
	c->until = UINT64_MAX; /* the worker's silence is looked at */
}

/* Both lie here: there is no connection. */
static void run_local(struct front *front, struct tensor_copy *c)
{
	struct tensor_message m = c->message;
	int fd = c->worker->handoff.fd, ret;

	m.what = TENSOR_FILL;
	ret = descriptors_send(fd, &m, sizeof(m), &c->memory, 1, MSG_DONTWAIT);
	if (!ret) {
		pool_set_state(front, c->worker, WORKER_BUSY);
		ret = descriptors_send(
			fd, &c->from, sizeof(c->from), &c->source, 1, MSG_DONTWAIT);
	}
	if (ret) {
		fail(front, c, STATUS_NOT_READY, "the worker takes nothing");
		return;
	}
	c->state = COPY_RUNNING;
	c->until = UINT64_MAX;
}

/* Behind the WELCOME the worker speaks. */
static void run_out(struct front *front, struct tensor_copy *c)
{
	const struct session_welcome welcome = {
		.magic = SESSION_MAGIC, .version = SESSION_VERSION};

	if (!hello_welcome(c->transport, c->connection, &welcome)) {
		fail(front, c, STATUS_NOT_READY, "the other agent is gone");
		return;
	}
	run(front, c);
}

static void dial(struct front *front, struct tensor_copy *c)
{
	struct session_hello hello = {.role = SESSION_COPY};
	int ret;

	memcpy(hello.secret, c->message.id, sizeof(hello.secret));
	c->until = wait_now() + 2 * DIAL_NS;
	ret = front->config->peers[0]
		      ? direct_dial(front, c->number, c->message.text, &hello, DIAL_NS)
		      : -EPERM;
	if (ret)
		fail(front, c, ret == -EPERM ? STATUS_NOT_PERMITTED : STATUS_NOT_READY,
			ret == -EPERM ? "this agent goes to no other agent (peers: is empty)"
				      : "too many agents are being dialed; try again");
	explicit_bzero(&hello, sizeof(hello));
}

void tensor_copy_assign(struct front *front, struct pool_worker *worker)
{
	struct tensor_copy *c = next_waiting(front);

	if (!c) {
		pool_release(front, worker);
		return;
	}
	c->worker = worker;
	worker->copy = c;
	c->state = COPY_DIALING;
	if (c->out)
		run_out(front, c);
	else if (c->source >= 0)
		run_local(front, c);
	else
		dial(front, c);
}

void tensor_copy_heard(
	struct front *front, struct pool_worker *worker, const struct tensor_message *m)
{
	struct tensor_copy *c = worker->copy;
	struct tensor_message told;
	char text[TENSOR_TEXT];

	if (m->version != TENSOR_VERSION || c->state != COPY_RUNNING ||
		(m->what != TENSOR_MOVED && m->what != TENSOR_MOVED_ALL)) {
		pool_fault(front, worker, "a word on a copy that makes no sense");
		return;
	}
	if (m->what == TENSOR_MOVED)
		return;
	front_clean(text, sizeof(text), m->text, sizeof(m->text));
	if (m->status) {
		fail(front, c, m->status, text);
		return;
	}
	counts(front, c)->done++;
	counts(front, c)->bytes += c->message.about.bytes;
	log_info("copy.done", "way=%s name=\"%s\" bytes=%" PRIu64, c->out ? "out" : "in",
		c->message.name, c->message.about.bytes);
	told = c->message;
	told.what = TENSOR_COPIED;
	told.status = 0;
	if (!c->out)
		tensors_tell_store(front, &told);
	copy_close(c);
	if (worker->state == WORKER_BUSY)
		pool_set_state(front, worker, WORKER_READY);
	pool_balance(front, wait_now());
}

void tensor_copy_worker_gone(struct front *front, struct pool_worker *worker)
{
	struct tensor_copy *c = worker->copy;

	if (!c)
		return;
	c->worker = NULL;
	worker->copy = NULL;
	fail(front, c, STATUS_NOT_READY, "the worker that copied has ended");
}

/* ---- to here ---- */

void tensor_copy_fetch(struct front *front, const struct tensor_message *m, int memory)
{
	struct tensor_copy *c = copy_new(front, false, COPY_WAITING, BEGIN_NS);
	struct tensor_message told = *m;

	if (!c || memory < 0) {
		told.what = TENSOR_COPIED;
		told.status = STATUS_NOT_READY;
		snprintf(told.text, sizeof(told.text), "this agent fetches %d tensors already",
			COPIES);
		if (memory >= 0)
			close(memory);
		if (c)
			copy_close(c);
		tensors_tell_store(front, &told);
		return;
	}
	c->message = *m;
	c->message.text[sizeof(c->message.text) - 1] = 0;
	c->memory = memory;
	if (!c->message.text[0])
		c->state = COPY_SOURCELESS;
	pool_balance(front, wait_now());
}

void tensor_copy_source(struct front *front, const struct tensor_message *m, int memory)
{
	for (uint32_t i = 0; i < COPIES && memory >= 0; i++) {
		struct tensor_copy *c = &front->copies->at[i];

		if (c->state != COPY_SOURCELESS || c->message.tag != m->tag)
			continue;
		c->from = *m;
		c->source = memory;
		c->state = COPY_WAITING;
		pool_balance(front, wait_now());
		return;
	}
	if (memory >= 0)
		close(memory);
}

void tensor_copy_dialed(struct front *front, uint64_t number, int fd,
	const struct transport *transport, const char *text)
{
	struct tensor_copy *c = numbered(front, number);

	if (!c || c->state != COPY_DIALING) {
		if (fd >= 0)
			transport_drop(transport, fd);
		return;
	}
	if (fd < 0) {
		fail(front, c, fd == -EPERM ? STATUS_NOT_PERMITTED : STATUS_NOT_READY, text);
		return;
	}
	c->transport = transport;
	c->connection = fd;
	run(front, c);
}

/* ---- from here ---- */

uint32_t tensor_copy_join(struct front *front, int fd, const struct hello_from *from,
	enum refusal *refusal, char text[192])
{
	struct tensor_message ask = {.version = TENSOR_VERSION, .what = TENSOR_REDEEM};
	struct tensor_copy *c = copy_new(front, true, COPY_REDEEMING, REDEEM_NS);

	*refusal = REFUSAL_NOT_READY;
	if (!c) {
		snprintf(text, 192, "%d tensors are being fetched here already", COPIES);
		return STATUS_NOT_READY;
	}
	ask.tag = c->number;
	memcpy(ask.id, from->hello->secret, sizeof(ask.id));
	if (!tensors_tell_store(front, &ask)) {
		copy_close(c);
		snprintf(text, 192, "the agent's store is away");
		return STATUS_NOT_READY;
	}
	c->connection = fd;
	c->transport = from->transport;
	c->peer = *from->peer;
	return 0;
}

void tensor_copy_redeemed(struct front *front, const struct tensor_message *m, int memory)
{
	struct tensor_copy *c = numbered(front, m->tag);

	if (!c || c->state != COPY_REDEEMING) {
		if (memory >= 0)
			close(memory);
		return;
	}
	c->message = *m;
	c->memory = memory;
	if (m->status || memory < 0) {
		fail(front, c, m->status ? m->status : STATUS_NOT_READY, m->text);
		return;
	}
	log_info("copy.asked", "name=\"%s\" agent=%s peer=%s", m->name, m->text, c->peer.text);
	c->state = COPY_WAITING;
	c->until = wait_now() + DIAL_NS;
	pool_balance(front, wait_now());
}

/* ---- the end ---- */

void tensor_copy_store_gone(struct front *front)
{
	for (uint32_t i = 0; front->copies && i < 2 * COPIES; i++) {
		struct tensor_copy *c = &front->copies->at[i];

		/* The next one knows nothing of what was on its way here. */
		if (c->state != COPY_FREE && (!c->out || c->state == COPY_REDEEMING))
			fail(front, c, STATUS_NOT_READY, "the agent's store has ended");
	}
}

uint64_t tensor_copy_tick(struct front *front, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t i = 0; i < 2 * COPIES; i++) {
		struct tensor_copy *c = &front->copies->at[i];

		if (c->state == COPY_FREE)
			continue;
		if (c->until <= now)
			fail(front, c, STATUS_NOT_READY,
				c->state == COPY_WAITING ? "no worker was free for it in time"
							 : "nobody answered in time");
		else if (c->until < next)
			next = c->until;
	}
	return next;
}

void tensor_copy_metrics(FILE *out, const struct front *front)
{
	const struct {
		const char *way;
		const struct tensor_copy_counts *counts;
	} ways[] = {{"in", &front->copies->in}, {"out", &front->copies->out}};

	fputs("# HELP vcuda_agent_tensor_copies_total Tensors copied from (in) and to (out) "
	      "other agents, and copies that failed.\n"
	      "# TYPE vcuda_agent_tensor_copies_total counter\n",
		out);
	for (int i = 0; i < 2; i++)
		fprintf(out,
			"vcuda_agent_tensor_copies_total{way=\"%s\",result=\"done\"} %" PRIu64
			"\n"
			"vcuda_agent_tensor_copies_total{way=\"%s\",result=\"failed\"} %" PRIu64
			"\n",
			ways[i].way, ways[i].counts->done, ways[i].way, ways[i].counts->failed);
	fputs("# HELP vcuda_agent_tensor_copied_bytes_total Bytes of tensors copied from and "
	      "to "
	      "other agents.\n"
	      "# TYPE vcuda_agent_tensor_copied_bytes_total counter\n",
		out);
	for (int i = 0; i < 2; i++)
		fprintf(out, "vcuda_agent_tensor_copied_bytes_total{way=\"%s\"} %" PRIu64 "\n",
			ways[i].way, ways[i].counts->bytes);
}
