/* SPDX-License-Identifier: Apache-2.0
 *
 * See direct.h.  Dialing waits (for a name, a connection, TLS), and the front does not: each
 * is a thread's, a few at once and each with a deadline, which gives the result back through a
 * pipe.  The thread touches nothing of the front's.
 */
#include "gpu-agent/front/direct.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/wait.h"
#include "gpu-agent/front/tensor/tensor_copy.h"
#include "gpu-agent/front/front.h"
#include "gpu-agent/front/session/session.h"
#include "gpu-agent/supervisor/settings/token.h"
#include "protocol/wire/status.h"

#define TICKETS 1024
#define TICKETS_PER_SESSION 64
#define DIALS 16	    /* at once … */
#define DIALS_PER_SESSION 2 /* … of which one session has so many */
#define DIAL_NS (5000 * FRONT_MS)
#define STACK (256u * 1024)
#define TELL_TRIES 100
#define TELL_PAUSE_MS 5

struct ticket {
	const struct session *session; /* NULL: none */
	uint64_t number;	       /* the session's */
	uint8_t secret[16], source[16];
	uint32_t link;
	uint64_t until;
};

struct direct {
	struct ticket tickets[TICKETS];
	struct watch done;     /* the pipe's end */
	int pipe;	       /* the threads' */
	uint64_t dials[DIALS]; /* sessions' numbers; 0: a free place */
};

/* What a thread does; it is the front's again when it comes through the pipe. */
struct dial_job {
	uint64_t number; /* of the session that asked */
	uint32_t link, place;
	uint64_t patience;
	int pipe, fd; /* fd: -errno, or the connection */
	char address[192];
	const char *peers; /* the configuration's, which stays */
	struct session_hello hello;
	const struct transport *transport;
	struct error error;
};

/* ---- tickets ---- */

/* One that nobody has; NULL: the session has enough, or there are no more. */
static struct ticket *ticket_new(struct direct *d, const struct session *session)
{
	struct ticket *found = NULL;
	uint64_t now = wait_now();
	uint32_t has = 0;

	for (uint32_t i = 0; i < TICKETS; i++) {
		struct ticket *t = &d->tickets[i];

		if (t->session && t->until <= now)
			*t = (struct ticket){0};
		if (!t->session)
			found = t;
		has += t->session == session;
	}
	return has < TICKETS_PER_SESSION ? found : NULL;
}

static void give_ticket(
	struct front *front, struct pool_worker *worker, const struct handoff *h)
{
	struct handoff answer = {.version = HANDOFF_VERSION,
		.what = HANDOFF_TICKETED,
		.device = h->device,
		.status = STATUS_OUT_OF_MEMORY};
	struct ticket *t = ticket_new(front->direct, worker->session);
	struct error error;

	if (t && !token_random(t->secret, sizeof(t->secret), &error)) {
		t->session = worker->session;
		t->number = worker->session->number;
		t->link = h->device;
		t->until = wait_now() + SESSION_TICKET_MS * FRONT_MS;
		memcpy(t->source, h->session, sizeof(t->source));
		memcpy(answer.ticket, t->secret, sizeof(answer.ticket));
		answer.status = STATUS_OK;
	}
	if (pool_say(worker, &answer))
		pool_fault(front, worker, "the worker does not take its TICKETED");
	explicit_bzero(&answer, sizeof(answer));
}

void direct_session_gone(struct front *front, const struct session *session)
{
	for (uint32_t i = 0; front->direct && i < TICKETS; i++)
		if (front->direct->tickets[i].session == session)
			front->direct->tickets[i] = (struct ticket){0};
}

/* Every one is compared in full, so that the time tells nothing; it is good once. */
static struct ticket *ticket_find(struct direct *d, const struct session_hello *hello)
{
	struct ticket *found = NULL;
	uint64_t now = wait_now();

	for (uint32_t i = 0; i < TICKETS; i++) {
		struct ticket *t = &d->tickets[i];
		bool secret = token_same(t->secret, hello->secret, sizeof(t->secret));
		bool source = token_same(t->source, hello->source, sizeof(t->source));

		if (secret && source && t->session && t->until > now)
			found = t;
	}
	return found;
}

/* ---- connections ---- */

static int hand_over(const struct session *session, const struct transport *transport,
	uint32_t link, int fd, bool dialed)
{
	struct handoff h = {
		.version = HANDOFF_VERSION,
		.what = HANDOFF_PEER,
		.device = link,
		.bytes = dialed,
	};

	snprintf(h.text, sizeof(h.text), "%s", transport->name);
	if (!session->worker || session->worker->handoff.fd < 0)
		return -EPIPE;
	return transport->handoff(session->worker->handoff.fd, &h, sizeof(h), &fd, 1);
}

uint32_t direct_join(struct front *front, int fd, const struct hello_from *from,
	enum refusal *refusal, char text[192])
{
	const struct session_hello *hello = from->hello;
	struct ticket *found = ticket_find(front->direct, hello), t;
	const struct session_welcome welcome = {
		.magic = SESSION_MAGIC, .version = SESSION_VERSION};

	*refusal = REFUSAL_SECRET;
	if (!found || !token_same(found->session->id, hello->session, sizeof(hello->session)) ||
		found->session->state != SESSION_RUNNING ||
		found->session->number != found->number) {
		snprintf(text, 192,
			"the ticket is not one of this agent's, was used before, or is "
			"another session's");
		return STATUS_NOT_PERMITTED;
	}
	t = *found;
	explicit_bzero(found, sizeof(*found));
	*refusal = REFUSAL_LATE;
	/* First: behind it the worker speaks. */
	if (!hello_welcome(from->transport, fd, &welcome) ||
		hand_over(t.session, from->transport, t.link, fd, false)) {
		snprintf(text, 192, "the session is ending");
		return STATUS_NOT_READY;
	}
	front->counters.peers_accepted++;
	log_of(&t.session->subject, LOG_INFO, "direct.accepted", "link=%u peer=%s", t.link,
		from->peer->text);
	transport_drop(from->transport, fd);
	return 0;
}

/* ---- dialing ---- */

static void *dial_main(void *argument)
{
	struct dial_job *job = argument;

	if (transport_allowed_by_name(job->peers, job->address))
		job->fd = transport_join(job->address, &job->hello, wait_now() + job->patience,
			&job->transport, &job->error);
	else
		job->fd = error_set(&job->error, EPERM,
			"this agent goes to no agent at %.90s (peers:)", job->address);
	explicit_bzero(&job->hello, sizeof(job->hello));
	/* A pointer is written whole. The front stays while there are jobs, or is no more;
	 * without this word it would keep the job, and its connection. */
	for (int i = 0; i < TELL_TRIES && write(job->pipe, &job, sizeof(job)) < 0; i++)
		poll(NULL, 0, TELL_PAUSE_MS);
	return NULL;
}

static int dial_start(struct dial_job *job)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	ret = pthread_create(&thread, &attributes, dial_main, job);
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ret;
}

static void dial_failed(struct front *front, struct pool_worker *worker, uint32_t link,
	uint32_t status, const char *text)
{
	struct handoff answer = {.version = HANDOFF_VERSION,
		.what = HANDOFF_PEER,
		.device = link,
		.status = status};

	front->counters.peers_failed++;
	snprintf(answer.text, sizeof(answer.text), "%s", text);
	log_of(&worker->session->subject, LOG_INFO, "direct.failed", "link=%u text=\"%s\"",
		link, answer.text);
	if (pool_say(worker, &answer))
		pool_fault(front, worker, "the worker does not take its PEER");
}

/* A place for one more; -1: the session has its share, or all are taken. A program dials one
 * after the other: it needs a second place only while a dial of an earlier one still waits. */
static int dial_place(const struct direct *d, uint64_t number)
{
	uint32_t has = 0;
	int place = -1;

	for (int i = 0; i < DIALS; i++) {
		has += d->dials[i] == number;
		if (!d->dials[i])
			place = i;
	}
	return has < DIALS_PER_SESSION ? place : -1;
}

static int dial_begin(struct front *front, uint64_t number, uint32_t link, const char *address,
	const struct session_hello *hello, uint64_t patience)
{
	struct direct *d = front->direct;
	int place = dial_place(d, number);
	struct dial_job *job = place >= 0 ? calloc(1, sizeof(*job)) : NULL;

	if (!job)
		return -EAGAIN;
	job->place = (uint32_t)place;
	job->number = number;
	job->link = link;
	job->patience = patience;
	job->pipe = d->pipe;
	job->peers = front->config->peers;
	snprintf(job->address, sizeof(job->address), "%s", address);
	transport_plain(job->address);
	job->hello = *hello;
	if (dial_start(job)) {
		explicit_bzero(job, sizeof(*job));
		free(job);
		return -EAGAIN;
	}
	d->dials[place] = number;
	return 0;
}

int direct_dial(struct front *front, uint64_t number, const char *address,
	const struct session_hello *hello, uint64_t patience_ns)
{
	return dial_begin(front, number, 0, address, hello, patience_ns);
}

static void dial(struct front *front, struct pool_worker *worker, const struct handoff *h)
{
	struct session_hello hello = {.role = SESSION_PEER};
	char address[192];

	front_clean(address, sizeof(address), h->text, sizeof(h->text));
	if (!front->config->peers[0]) {
		dial_failed(front, worker, h->device, STATUS_NOT_PERMITTED,
			"this agent goes to no other agent (peers: is empty)");
		return;
	}
	memcpy(hello.session, h->session, sizeof(hello.session));
	memcpy(hello.secret, h->ticket, sizeof(hello.secret));
	memcpy(hello.source, worker->session->id, sizeof(hello.source));
	if (dial_begin(front, worker->session->number, h->device, address, &hello, DIAL_NS))
		dial_failed(front, worker, h->device, STATUS_NOT_READY,
			"too many agents are being dialed; try again");
	explicit_bzero(&hello, sizeof(hello));
}

static struct session *session_numbered(struct front *front, uint64_t number)
{
	for (uint32_t i = 0; i < front->config->max_sessions; i++)
		if (front->sessions[i].state == SESSION_RUNNING &&
			front->sessions[i].number == number)
			return &front->sessions[i];
	return NULL;
}

static void dial_done(struct front *front, struct dial_job *job)
{
	struct session *session = session_numbered(front, job->number);
	struct pool_worker *worker = session ? session->worker : NULL;

	front->direct->dials[job->place] = 0;
	if (job->number & COPY_NUMBER) {
		tensor_copy_dialed(
			front, job->number, job->fd, job->transport, job->error.text);
		free(job);
		return;
	}
	if (worker && job->fd < 0)
		dial_failed(front, worker, job->link,
			job->fd == -EPERM ? STATUS_NOT_PERMITTED : STATUS_NOT_READY,
			job->error.text);
	else if (worker && hand_over(session, job->transport, job->link, job->fd, true))
		dial_failed(
			front, worker, job->link, STATUS_NOT_READY, "the session is ending");
	else if (worker)
		front->counters.peers_dialed++;
	if (job->fd >= 0)
		transport_drop(job->transport, job->fd);
	free(job);
}

static void dials_ready(struct watch *watch, uint32_t mask)
{
	struct dial_job *job;

	(void)mask;
	while (read(watch->fd, &job, sizeof(job)) == (ssize_t)sizeof(job))
		dial_done(watch->owner, job);
}

void direct_request(struct front *front, struct pool_worker *worker, const struct handoff *h)
{
	if (h->what == HANDOFF_TICKET)
		give_ticket(front, worker, h);
	else
		dial(front, worker, h);
}

int direct_open(struct front *front, struct error *error)
{
	struct direct *d = calloc(1, sizeof(*d));
	int pipe[2];

	if (!d || pipe2(pipe, O_CLOEXEC | O_NONBLOCK)) {
		free(d);
		return error_set(error, d ? errno : ENOMEM, "connections between agents");
	}
	front->direct = d;
	d->pipe = pipe[1];
	d->done.fd = -1;
	return events_watch(&front->events, &d->done, pipe[0], EPOLLIN, dials_ready);
}

/* What is still being dialed ends with the process. */
void direct_close(struct front *front)
{
	close(events_forget(&front->events, &front->direct->done));
}
