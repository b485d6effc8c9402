/* SPDX-License-Identifier: Apache-2.0
 *
 * The connections: asked of the front, made by both fronts, and given up where the other end is
 * silent.  One that breaks fails what was under way over it; the program, which sees its
 * counter, has another one made when it needs it.
 */
#include "gpu-agent/worker/direct/direct.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/log.h"
#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/reply/reply.h"
#include "gpu-agent/worker/worker_state.h"

struct direct *direct_get(struct worker *w)
{
	struct direct *d = w->direct;

	if (d)
		return d;
	d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	worker_use(w, CONTEXT_PRIMARY(0));
	if (staging_open(w, &d->in) || staging_open(w, &d->out)) {
		free(d->in.ranges);
		free(d);
		return NULL;
	}
	d->copies_tail = &d->copies;
	d->pieces_tail = &d->pieces;
	w->direct = d;
	return d;
}

/* Broken ones too. */
static struct direct_link *link_numbered(const struct worker *w, uint32_t number)
{
	for (uint32_t i = 0; w->direct && i < w->direct->count; i++)
		if (w->direct->links[i]->number == number)
			return w->direct->links[i];
	return NULL;
}

struct direct_link *direct_find(const struct worker *w, uint32_t number)
{
	struct direct_link *l = link_numbered(w, number);

	return l && l->state != DIRECT_BROKEN ? l : NULL;
}

/* A place for one more: a broken one's, if need be. */
static struct direct_link *link_new(struct direct *d)
{
	struct direct_link *l = d->count < DIRECT_LINKS ? calloc(1, sizeof(*l)) : NULL;

	if (l)
		d->links[d->count++] = l;
	for (uint32_t i = 0; !l && i < d->count; i++)
		if (d->links[i]->state == DIRECT_BROKEN)
			l = d->links[i];
	return l;
}

/* The number is the program's, and none that is in use. */
static CUresult link_make(struct worker *w, struct request *r, uint32_t number,
	uint32_t counter, const uint8_t session[16], struct direct_link **made)
{
	struct direct *d = direct_get(w);
	struct direct_link *l;

	if (!number || link_numbered(w, number) ||
		(counter && (counter < COUNTER_FIRST_FREE || counter >= CHANNEL_COUNTERS)))
		return CUDA_ERROR_INVALID_VALUE;
	l = d ? link_new(d) : NULL;
	if (!l)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*l = (struct direct_link){.number = number,
		.counter = counter,
		.tag = r->header.tag,
		.made_at = wait_now()};
	memcpy(l->session, session, sizeof(l->session));
	direct_say(
		w, l, DIRECT_HELLO, 0, DIRECT_VERSION); /* before all that frames want said */
	direct_prepare(w);
	*made = l;
	return CUDA_SUCCESS;
}

static CUresult ask(
	struct worker *w, struct request *r, struct direct_link *l, struct handoff *h)
{
	h->version = HANDOFF_VERSION;
	h->device = l->number;
	memcpy(h->session, l->session, sizeof(h->session));
	if (send(w->handoff, h, sizeof(*h), MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(*h)) {
		l->tag = -1; /* it is answered here */
		direct_break(w, l, "the agent's front takes no requests");
		return CUDA_ERROR_SYSTEM_NOT_READY;
	}
	r->later = true;
	return CUDA_SUCCESS;
}

CUresult serve_vcudaDirectTicket(struct worker *w, struct request *r)
{
	const struct wire_vcudaDirectTicket *req = (const void *)r->body;
	const uint8_t *session = worker_in(r, &req->session, 16);
	static struct handoff h;
	struct direct_link *l;
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	if (!w->cuda.cuStreamWaitValue64)
		return worker_lacks(w, "cuStreamWaitValue64");
	status = link_make(w, r, req->link, req->counter, session, &l);
	if (status)
		return status;
	h = (struct handoff){.what = HANDOFF_TICKET};
	return ask(w, r, l, &h);
}

CUresult serve_vcudaDirectConnect(struct worker *w, struct request *r)
{
	const struct wire_vcudaDirectConnect *req = (const void *)r->body;
	const uint8_t *session = worker_in(r, &req->session, 16);
	const uint8_t *ticket = worker_in(r, &req->ticket, 16);
	const char *address = worker_string(r, &req->address);
	static struct handoff h;
	struct direct_link *l;
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	if (!w->cuda.cuStreamWaitValue64)
		return worker_lacks(w, "cuStreamWaitValue64");
	if (strlen(address) >= sizeof(h.text))
		return CUDA_ERROR_INVALID_VALUE;
	status = link_make(w, r, req->link, req->counter, session, &l);
	if (status)
		return status;
	h = (struct handoff){.what = HANDOFF_DIAL};
	memcpy(h.ticket, ticket, sizeof(h.ticket));
	strcpy(h.text, address);
	return ask(w, r, l, &h);
}

/* What vcudaDirectConnect waits for. */
static void answer_connect(
	struct worker *w, struct direct_link *l, CUresult status, const char *text)
{
	struct {
		struct wire_vcudaDirectConnect_reply reply;
		char text[192];
	} answer = {.reply.text = {sizeof(answer.reply), sizeof(answer.text)}};

	if (l->tag < 0)
		return;
	snprintf(answer.text, sizeof(answer.text), "%s", text);
	reply_aside(w, (uint16_t)l->tag, status, &answer, sizeof(answer));
	l->tag = -1;
}

static void answer_ticket(struct worker *w, struct direct_link *l, const struct handoff *h)
{
	struct {
		struct wire_vcudaDirectTicket_reply reply;
		uint8_t ticket[16];
	} answer = {.reply.ticket = {sizeof(answer.reply), sizeof(answer.ticket)}};

	if (l->tag < 0)
		return;
	memcpy(answer.ticket, h->ticket, sizeof(answer.ticket));
	reply_aside(w, (uint16_t)l->tag, (CUresult)h->status, &answer, sizeof(answer));
	l->tag = -1;
	if (h->status)
		direct_break(w, l, "there is no ticket");
}

/* The connection is there. */
static void link_open(struct worker *w, struct direct_link *l, const struct handoff *h,
	int fds[TRANSPORT_FDS])
{
	unsigned count = descriptors_count(fds, TRANSPORT_FDS);
	char name[TRANSPORT_NAME];
	const struct transport *transport;
	struct error error = {0};

	snprintf(name, sizeof(name), "%.*s", (int)sizeof(name) - 1, h->text);
	transport = transport_named(name);
	/* One connection is the same from both ends; the front handed it over from either. */
	if (!transport || transport->link(fds, count, TRANSPORT_AGENT, &l->link, &error)) {
		while (count)
			close(fds[--count]);
		direct_break(w, l, transport ? error.text : "no such transport");
		return;
	}
	l->state = DIRECT_OPEN;
	l->heard_at = l->said_at = wait_now();
	log_info("direct.open", "link=%u transport=%s dialed=%u", l->number, name,
		(unsigned)h->bytes);
	answer_connect(w, l, CUDA_SUCCESS, "");
}

void direct_answer(struct worker *w, const struct handoff *h, int fds[TRANSPORT_FDS])
{
	struct direct_link *l = direct_find(w, h->device);
	unsigned count = descriptors_count(fds, TRANSPORT_FDS);

	if (l && h->what == HANDOFF_TICKETED) {
		answer_ticket(w, l, h);
	} else if (l && l->state == DIRECT_MAKING && count) {
		link_open(w, l, h, fds);
		return;
	} else if (l && l->state == DIRECT_MAKING && h->status) {
		char text[sizeof(h->text)];

		snprintf(text, sizeof(text), "%.*s", (int)sizeof(text) - 1, h->text);
		answer_connect(w, l, (CUresult)h->status, text);
		direct_break(w, l, text);
	}
	while (count)
		close(fds[--count]);
}

void direct_break(struct worker *w, struct direct_link *l, const char *why)
{
	bool was_open = l->state == DIRECT_OPEN;

	if (l->state == DIRECT_BROKEN)
		return;
	l->state = DIRECT_BROKEN;
	if (was_open)
		log_info("direct.broken", "link=%u text=\"%s\"", l->number, why);
	answer_connect(w, l, CUDA_ERROR_SYSTEM_NOT_READY, why);
	direct_fail_all(w, l);
	direct_wire_close(l);
	if (l->counter)
		reply_update(w, l->counter, l->number);
}

/* A sign of life; or the end of one that gives none. */
static void link_look(struct worker *w, struct direct_link *l, uint64_t now)
{
	if (l->state == DIRECT_MAKING && now - l->made_at >= DIRECT_MAKE_NS)
		direct_break(w, l, "the other agent did not connect in time");
	if (l->state != DIRECT_OPEN)
		return;
	if (now - l->heard_at >= DIRECT_SILENT_NS)
		direct_break(w, l, "the other agent says nothing any more");
	else if (now - l->said_at >= DIRECT_QUIET_NS && !l->count)
		direct_say(w, l, DIRECT_ALIVE, 0, 0);
}

bool direct_turn(struct worker *w)
{
	struct direct *d = w->direct;
	bool progress = false;

	if (!reply_room(w))
		return false; /* what it would tell has no place */
	for (uint32_t i = 0; i < d->count; i++) {
		/* First: what came during a long call is heard before silence is judged. */
		progress |= direct_exchange(w, d->links[i]);
		link_look(w, d->links[i], wait_now());
	}
	return progress | direct_pump(w);
}

unsigned direct_fds(struct worker *w, struct pollfd *fds)
{
	struct direct *d = w->direct;
	unsigned n = 0;

	for (uint32_t i = 0; d && i < d->count; i++) {
		struct direct_link *l = d->links[i];

		if (l->state != DIRECT_OPEN)
			continue;
		link_fds(l->link, fds + n, l->count > 0);
		if (l->room_wanted)
			fds[n].fd = -1;
		n += 2;
	}
	return n;
}

uint32_t direct_open_count(const struct worker *w)
{
	uint32_t n = 0;

	for (uint32_t i = 0; w->direct && i < w->direct->count; i++)
		n += w->direct->links[i]->state == DIRECT_OPEN;
	return n;
}

bool direct_watches(const struct worker *w)
{
	const struct direct *d = w->direct;

	return d && (d->pieces || d->in.count);
}

bool direct_busy(const struct worker *w)
{
	return w->direct && (w->direct->copies || w->direct->waits);
}
