/* SPDX-License-Identifier: Apache-2.0
 *
 * See direct.h.  One lock is held while the frames for both ends are posted, so that what two
 * threads do is in the same order at every agent: else each of two copies could hold a stream
 * that the other one waits for.
 */
#include "shim/driver/copy/direct.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/wait.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "protocol/wire/channel.h"
#include "protocol/wire/direct.h"
#include "shim/driver/array/array.h"
#include "shim/driver/stream/order.h"
#include "shim/engine/completion.h"
#include "shim/engine/driver.h"
#include "shim/engine/engine.h"
#include "shim/engine/lock.h"
#include "shim/engine/session.h"
#include "shim/engine/statistics.h"
#include "shim/engine/thread.h"

/* After a connection could not be made, so long no other is tried. */
#define AGAIN_NS 5000000000ull
#define RELAY_MS 15000 /* that the sidecar has to dial both; it takes 5 s at the most */

/* Of two agents, the one with the lower number first. */
struct pair {
	uint32_t link;	      /* its number; 0: there is none */
	uint32_t counters[2]; /* set to it where an end sees it break */
	uint64_t again_at;    /* not before; 0: whenever */
};

static struct {
	pthread_mutex_t lock;
	struct pair *pairs; /* session_count times as many */
	uint32_t links;	    /* made so far */
	uint64_t ids;
} direct = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(direct, direct.lock, LOCK_DIRECT);

/* ---- connections ---- */

/* As in all logs, so as in the channel's answer. */
static bool session_id(const struct session *session, uint8_t id[16])
{
	for (int i = 0; i < 16; i++) {
		char two[3] = {session->name[2 * i], two[0] ? session->name[2 * i + 1] : 0, 0};
		char *end;

		id[i] = (uint8_t)strtoul(two, &end, 16);
		if (end != two + 2)
			return false;
	}
	return true;
}

static uint32_t pair_counter(uint32_t *counter)
{
	if (!*counter)
		*counter = completion_get();
	return *counter;
}

/* From the end that is dialed. */
static CUresult ask_ticket(struct pair *pair, struct session *from, struct session *to,
	uint32_t link, uint8_t ticket[16])
{
	struct session_visit visit = session_visit(to);
	const struct wire_vcudaDirectTicket_reply *reply;
	struct wire_vcudaDirectTicket *body;
	struct shim_call call;
	const void *bytes;
	uint8_t id[16];
	CUresult status;
	size_t n;

	body = shim_begin(&call, OP_vcudaDirectTicket, sizeof(*body));
	body->link = link;
	body->counter = pair_counter(&pair->counters[to->index > from->index]);
	if (!session_id(from, id))
		call.status = CUDA_ERROR_NOT_SUPPORTED;
	shim_put(&call, &body->session, id, sizeof(id));
	reply = shim_wait(&call, sizeof(*reply));
	bytes = reply ? shim_run(&call, &reply->ticket, &n) : NULL;
	if (bytes && n == 16)
		memcpy(ticket, bytes, 16);
	else if (!call.status)
		call.status = CUDA_ERROR_NOT_SUPPORTED;
	status = shim_end(&call);
	session_leave(visit);
	return status;
}

static CUresult ask_connect(struct pair *pair, struct session *from, struct session *to,
	uint32_t link, const uint8_t ticket[16])
{
	struct session_visit visit = session_visit(from);
	const struct wire_vcudaDirectConnect_reply *reply;
	struct wire_vcudaDirectConnect *body;
	struct shim_call call;
	const char *text;
	uint8_t id[16];
	CUresult status;
	size_t n = 0;

	body = shim_begin(&call, OP_vcudaDirectConnect, sizeof(*body));
	body->link = link;
	body->counter = pair_counter(&pair->counters[from->index > to->index]);
	if (!session_id(to, id))
		call.status = CUDA_ERROR_NOT_SUPPORTED;
	shim_put(&call, &body->session, id, sizeof(id));
	shim_put(&call, &body->ticket, ticket, 16);
	shim_put_string(&call, &body->address, session_reached(to));
	reply = shim_wait(&call, sizeof(*reply));
	text = reply ? shim_run(&call, &reply->text, &n) : NULL;
	if (call.status)
		session_debug("agent %s does not dial %s%s%.*s", from->agent, to->agent,
			text ? ": " : "", text ? (int)strnlen(text, n) : 0, text ? text : "");
	status = shim_end(&call);
	session_leave(visit);
	return status;
}

/* The sidecar joins the two, with a ticket of each. */
static CUresult ask_relay(
	struct pair *pair, struct session *from, struct session *to, uint32_t link)
{
	struct channel_request request = {.op = CHANNEL_RELAY};
	struct channel_answer answer = {0};
	struct session_visit visit;
	CUresult status;
	bool answered = false;
	int fd = -1;

	status = ask_ticket(pair, to, from, link, request.relay.tickets[0]);
	if (!status)
		status = ask_ticket(pair, from, to, link, request.relay.tickets[1]);
	if (status || !session_id(to, request.relay.session))
		return CUDA_ERROR_NOT_SUPPORTED;
	statistics_event(STATISTICS_LOCAL_ROUND_TRIPS);
	visit = session_visit(from);
	pthread_mutex_lock(&from->socket_lock);
	if (from->relays)
		answered = attach_ask(&request, &answer, &fd, RELAY_MS);
	pthread_mutex_unlock(&from->socket_lock);
	if (fd >= 0)
		close(fd);
	answered &= answer.op == CHANNEL_RELAY;
	session_debug("copies between %s and %s go through %s%s", from->agent, to->agent,
		answered && !answer.status ? "the sidecar" : "this process: ",
		answered ? answer.text : "the sidecar does not relay");
	session_leave(visit);
	return answered && !answer.status ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

static bool pair_broken(const struct pair *pair, unsigned end, struct session *session)
{
	struct session_visit visit = session_visit(session);
	bool broken = pair->counters[end] && completion_read(pair->counters[end]) == pair->link;

	session_leave(visit);
	return broken;
}

/* With the lock held: the number of the connection of the two; 0: there is none. */
static uint32_t pair_link(struct session *from, struct session *to)
{
	struct session *low = from->index < to->index ? from : to,
		       *high = low == from ? to : from;
	struct pair *pair;
	uint8_t ticket[16] = {0};
	CUresult status;

	if (!direct.pairs)
		direct.pairs = calloc((size_t)session_count * session_count, sizeof(*pair));
	if (!direct.pairs || !(shim_perf & PERF_DIRECT))
		return 0;
	pair = &direct.pairs[low->index * session_count + high->index];
	if (pair->link && !pair_broken(pair, 0, low) && !pair_broken(pair, 1, high))
		return pair->link;
	pair->link = 0;
	if (pair->again_at > wait_now())
		return 0;
	/* Either front may be the one that is let through. */
	for (int turn = 0; turn < 2; turn++) {
		struct session *a = turn ? to : from, *b = turn ? from : to;
		uint32_t link = ++direct.links;

		status = ask_ticket(pair, a, b, link, ticket);
		if (!status)
			status = ask_connect(pair, a, b, link, ticket);
		if (!status) {
			session_debug("copies between %s and %s go from agent to agent",
				from->agent, to->agent);
			return pair->link = link;
		}
	}
	if (low->relays && !ask_relay(pair, low, high, ++direct.links))
		return pair->link = direct.links;
	pair->again_at = wait_now() + AGAIN_NS;
	return 0;
}

/* ---- copies ---- */

/* A stream that an end begins behind, and which it may hold. */
struct place {
	struct session *session;
	uint64_t stream;
	uint16_t context; /* whose legacy stream it is, where it is 0 */
	uint32_t flags;
};

static struct direct_box box_of(const struct shape *s, const struct copy_place *place)
{
	return (struct direct_box){
		.array = place->array ? place->array->handle : 0,
		.at = place->at,
		.pitch = place->pitch,
		.slice = place->slice,
		.width = s->width,
		.height = s->height,
		.depth = s->depth,
	};
}

static CUresult post_end(const struct place *place, uint32_t link, uint64_t id, int device,
	const struct direct_box *box, bool sends)
{
	struct session_visit visit = session_visit(place->session);
	struct shim_call call;
	CUresult status;
	/* Both bodies are one. */
	struct wire_vcudaDirectSend *body = shim_begin(
		&call, sends ? OP_vcudaDirectSend : OP_vcudaDirectReceive, sizeof(*body));

	_Static_assert(sizeof(*body) == sizeof(struct wire_vcudaDirectReceive), "");
	call.context = place->context;
	body->link = link;
	body->id = id;
	body->device = device_wire(device);
	body->flags = place->flags;
	body->stream = place->stream;
	shim_put(&call, &body->box, box, sizeof(*box));
	status = shim_post(&call);
	session_leave(visit);
	return status;
}

/* Nobody sends it: the stream that it holds would wait for ever. */
static void cancel_receive(struct session *session, uint32_t link, uint64_t id)
{
	struct session_visit visit = session_visit(session);
	struct wire_vcudaDirectCancel *body;
	struct shim_call call;

	body = shim_begin(&call, OP_vcudaDirectCancel, sizeof(*body));
	body->link = link;
	body->id = id;
	shim_post(
		&call); /* its own session is gone where that fails, and its streams with it */
	session_leave(visit);
}

/* The end that is not the stream's. A copy that CUDA calls synchronous is in order with the
 * legacy stream there; any comes behind what the program was told is done. */
static CUresult other_place(struct context *home, bool async, struct place *place)
{
	struct context *popped;
	CUresult status = CUDA_SUCCESS;

	*place = (struct place){.session = home->session, .context = home->number};
	if (async) {
		if (order_loose(home->session, &place->stream, &place->context))
			place->flags = DIRECT_BEHIND;
		return CUDA_SUCCESS;
	}
	if (!thread_push(home))
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = stream_number(CU_STREAM_LEGACY, &place->stream);
	thread_pop(&popped);
	place->flags = DIRECT_BEHIND | DIRECT_HOLDS;
	return status;
}

static CUresult copy_post(const struct shape *s, struct context *src, struct context *dst,
	const struct place *from, const struct place *to, uint32_t link)
{
	const struct direct_box src_box = box_of(s, &s->src), dst_box = box_of(s, &s->dst);
	uint64_t id = ++direct.ids;
	CUresult status = post_end(to, link, id, dst->device, &dst_box, false);

	if (status)
		return status;
	status = post_end(from, link, id, src->device, &src_box, true);
	if (status)
		cancel_receive(to->session, link, id);
	return status;
}

bool direct_copy(const struct shape *s, struct context *src, struct context *dst,
	uint64_t stream, bool async, CUresult *status)
{
	struct session *here = session_here();
	bool sends = src->session == here;
	struct place own = {.session = here,
			     .stream = stream,
			     .context = thread_self.number,
			     .flags = DIRECT_BEHIND | DIRECT_HOLDS},
		     other;
	struct context *end;
	bool elsewhere;
	uint32_t link;

	if ((!sends && dst->session != here) || !src->primary || !dst->primary)
		return false;
	/* Its end here may be another device's than the stream: see other_place(). */
	end = sends ? src : dst;
	elsewhere = !async && end->device != context_current()->device;
	if (elsewhere) {
		*status = order_after(end, stream);
		if (*status)
			return true;
	}
	pthread_mutex_lock(&direct.lock);
	link = pair_link(src->session, dst->session);
	if (link) {
		*status = other_place(sends ? dst : src, async, &other);
		if (!*status)
			*status = copy_post(s, src, dst, sends ? &own : &other,
				sends ? &other : &own, link);
	}
	pthread_mutex_unlock(&direct.lock);
	if (link && !*status && elsewhere)
		*status = order_copied(context_current(), stream, shim_sequence());
	if (link && !*status)
		statistics_copy(STATISTICS_DEVICE_TO_DEVICE, s->width * s->height * s->depth);
	return link;
}

/* ---- events ---- */

static CUresult post_signal(struct event *event, uint32_t link, uint64_t id)
{
	struct session_visit visit = session_visit(event->context->session);
	struct wire_vcudaDirectSignal *body;
	struct shim_call call;
	CUresult status;

	body = shim_begin(&call, OP_vcudaDirectSignal, sizeof(*body));
	body->link = link;
	body->id = id;
	body->event = event->handle;
	status = shim_post(&call);
	session_leave(visit);
	return status;
}

bool direct_await(struct event *event, uint64_t stream, CUresult *status)
{
	struct wire_vcudaDirectAwait *body;
	struct shim_call call;
	uint32_t link;

	pthread_mutex_lock(&direct.lock);
	link = pair_link(event->context->session, session_here());
	if (link) {
		uint64_t id = ++direct.ids;

		*status = post_signal(event, link, id);
		if (!*status) {
			body = shim_begin(&call, OP_vcudaDirectAwait, sizeof(*body));
			body->link = link;
			body->id = id;
			body->stream = stream;
			*status = shim_post(&call);
		}
	}
	pthread_mutex_unlock(&direct.lock);
	return link;
}
