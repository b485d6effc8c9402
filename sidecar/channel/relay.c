/* SPDX-License-Identifier: Apache-2.0 */
#include "sidecar/channel/relay.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/wait.h"
#include "sidecar/channel/channel.h"
#include "sidecar/channel/request.h"

#define SECOND 1000000000ull
#define STACK (256u * 1024)    /* a TLS handshake is made on it */
#define ROOM (256u * 1024)     /* bytes that one end said and the other has not taken yet */
#define RELAYS_MOST 1024u      /* of a sidecar … */
#define RELAYS_PER_SESSION 72u /* … and of a session: the others', and some that just end */
#define DIAL_NS (5 * SECOND)   /* for both; the program waits longer */
/* Workers say something each 3 s and give a silent one up after 15: this is for machines that
 * are gone without a word. */
#define SILENT_NS (30 * SECOND)
/* Of a session that shares memory with its worker: it has a network's address, too. */
#define LOCAL "local://"

/* What one end said: [head, tail) of a ring. */
struct relay_way {
	unsigned char *room;
	uint64_t head, tail;
};

struct relay_end {
	char address[AGENT_TEXT];
	char session[LOG_SESSION];
	struct session_hello hello; /* wiped once it was said */
	struct link *link;
	struct relay_way said; /* by it */
	uint64_t heard_at;
};

struct relay {
	struct relay *next; /* server->relays, under its lock */
	struct server *server;
	struct channel_request request; /* without the tickets */
	struct log_subject subject;
	int socket; /* the channel's, for the answer; -1: it was answered */
	int pid;
	unsigned parts[2]; /* which of the sidecar's agents they are */
	struct relay_end ends[2];
	uint64_t opened_at; /* 0: not yet; the server's lock */
	_Atomic uint64_t bytes;
};

/* ---- the list ---- */

static unsigned relays_of(const struct relays *relays, const char *session)
{
	unsigned n = 0;

	for (const struct relay *r = relays->first; r; r = r->next)
		n += !strcmp(r->ends[0].session, session);
	return n;
}

const struct relay *relay_next(
	const struct relays *relays, const struct relay *after, struct relay_view *view)
{
	const struct relay *r = after ? after->next : relays->first;

	while (r && !r->opened_at)
		r = r->next;
	for (int i = 0; r && i < 2; i++) {
		view->agents[i] = r->ends[i].address;
		view->sessions[i] = r->ends[i].session;
	}
	if (r) {
		view->pid = r->pid;
		view->opened_at = r->opened_at;
		view->bytes = atomic_load_explicit(&r->bytes, memory_order_relaxed);
	}
	return r;
}

static void relay_free(struct relay *r)
{
	struct server *server = r->server;
	bool listed = false;

	pthread_mutex_lock(&server->lock);
	for (struct relay **at = &server->relays.first; *at; at = &(*at)->next)
		if (*at == r) {
			*at = r->next;
			server->relays.count--;
			listed = true;
			break;
		}
	pthread_mutex_unlock(&server->lock);
	if (listed && r->opened_at)
		log_of(&r->subject, LOG_INFO, "relay.closed", "between=%s and=%s bytes=%llu",
			r->ends[0].address, r->ends[1].address, (unsigned long long)r->bytes);
	for (int i = 0; i < 2; i++) {
		link_close(r->ends[i].link);
		free(r->ends[i].said.room);
	}
	if (r->socket >= 0)
		close(r->socket);
	explicit_bzero(r, sizeof(*r));
	free(r);
}

/* ---- answers ---- */

static void answer(const struct server *server, int socket,
	const struct channel_request *request, uint32_t status, const char *text)
{
	struct channel_answer answer = request_answer(request, status, text);

	/* Who does not read it has gone, and his sessions end. */
	(void)!request_reply(&server->options, socket, &answer, NULL, 0);
}

/* Both ends are there. The first one between these agents is told to people: the program's
 * copies cost this pod's network twice. */
static void relay_opened(struct relay *r)
{
	struct relays *relays = &r->server->relays;
	bool first;

	pthread_mutex_lock(&r->server->lock);
	first = !(relays->told[r->parts[0]] >> r->parts[1] & 1);
	relays->told[r->parts[0]] |= 1ull << r->parts[1];
	relays->told[r->parts[1]] |= 1ull << r->parts[0];
	r->opened_at = wait_now();
	pthread_mutex_unlock(&r->server->lock);
	atomic_fetch_add(&relays->opened, 1);
	log_of(&r->subject, first ? LOG_WARN : LOG_INFO, "relay.open", "between=%s and=%s%s",
		r->ends[0].address, r->ends[1].address,
		first ? " text=\"neither of these agents may dial the other (peers: of their "
			"configuration) or reaches it: what goes between their GPUs goes "
			"through this sidecar\""
		      : "");
	answer(r->server, r->socket, &r->request, 0, "");
	close(r->socket);
	r->socket = -1;
}

/* ---- bytes ---- */

/* From the end into its ring. 1: something; 0: nothing; -errno: it is over. */
static int hear(struct relay_end *end, uint64_t now)
{
	struct relay_way *way = &end->said;
	size_t at = way->tail % ROOM, room = ROOM - (size_t)(way->tail - way->head);
	ssize_t got;

	if (!room) {
		end->heard_at = now; /* it is we who do not listen */
		return 0;
	}
	got = link_receive(end->link, way->room + at, room < ROOM - at ? room : ROOM - at);
	if (got == -EAGAIN)
		return now - end->heard_at < SILENT_NS ? 0 : -ETIMEDOUT;
	if (got <= 0)
		return got ? (int)got : -ECONNRESET;
	way->tail += (uint64_t)got;
	end->heard_at = now;
	return 1;
}

/* What FROM said goes to TO. As hear. */
static int pass_on(struct relay *r, struct relay_end *from, struct relay_end *to)
{
	struct relay_way *way = &from->said;
	size_t at = way->head % ROOM, n = (size_t)(way->tail - way->head), one;
	struct iovec parts[2];
	ssize_t sent;

	if (!n)
		return 0;
	one = n < ROOM - at ? n : ROOM - at;
	parts[0] = (struct iovec){way->room + at, one};
	parts[1] = (struct iovec){way->room, n - one};
	sent = link_send(to->link, parts, n > one ? 2 : 1);
	if (sent < 0)
		return sent == -EAGAIN ? 0 : (int)sent;
	way->head += (uint64_t)sent;
	atomic_fetch_add_explicit(&r->bytes, (uint64_t)sent, memory_order_relaxed);
	atomic_fetch_add_explicit(
		&r->server->relays.bytes, (uint64_t)sent, memory_order_relaxed);
	return sent > 0;
}

/* Everything that can be done now. As hear. */
static int turn(struct relay *r, uint64_t now)
{
	int done = 0;

	for (int i = 0; i < 2; i++) {
		struct relay_end *from = &r->ends[i], *to = &r->ends[!i];
		int heard = hear(from, now);
		int passed = pass_on(r, from, to);

		if (heard < 0 || passed < 0)
			return heard < 0 ? heard : passed;
		done |= heard | passed;
	}
	return done;
}

/* Until there is something to do, or a second is over. False: the sidecar ends. */
static bool relay_sleep(struct relay *r, uint64_t now)
{
	struct pollfd fds[5] = {[4] = {.fd = r->server->stop_fd, .events = POLLIN}};
	uint64_t until = now + SECOND;

	for (int i = 0; i < 2; i++) {
		struct relay_end *end = &r->ends[i];
		const struct relay_way *in = &end->said, *out = &r->ends[!i].said;

		link_fds(end->link, fds + 2 * i, out->tail != out->head);
		if (in->tail - in->head == ROOM)
			fds[2 * i].fd = -1;
		else if (link_wake_at(end->link) < until)
			until = link_wake_at(end->link);
	}
	poll(fds, 5, until > now ? (int)((until - now) / 1000000) + 1 : 0);
	return !fds[4].revents;
}

/* ---- the thread ---- */

static int dial_end(struct relay_end *end, uint64_t deadline, struct error *error)
{
	const struct transport *transport;
	int fd = transport_join(end->address, &end->hello, deadline, &transport, error);
	int ret;

	explicit_bzero(&end->hello, sizeof(end->hello));
	if (fd < 0)
		return fd;
	end->said.room = malloc(ROOM);
	ret = end->said.room ? transport->link(&fd, 1, TRANSPORT_CLIENT, &end->link, error)
			     : error_set(error, ENOMEM, "%u bytes for a relay", ROOM);
	if (ret)
		transport_drop(transport, fd);
	end->heard_at = wait_now();
	return ret;
}

static void *relay_main(void *argument)
{
	struct relay *r = argument;
	uint64_t deadline = wait_now() + DIAL_NS;
	struct error error = {0};
	char text[300];
	int ret = 0;

	log_about(&r->subject);
	for (int i = 0; !ret && i < 2; i++)
		ret = dial_end(&r->ends[i], deadline, &error);
	if (ret) {
		log_warn("relay.failed", "between=%s and=%s text=%s", r->ends[0].address,
			r->ends[1].address, log_quote(text, sizeof(text), error.text));
		answer(r->server, r->socket, &r->request, STATUS_NOT_READY, error.text);
	} else {
		relay_opened(r);
		do {
			uint64_t now = wait_now();

			ret = turn(r, now);
			if (!ret && !relay_sleep(r, now))
				break;
		} while (ret >= 0);
	}
	log_about(NULL);
	relay_free(r);
	return NULL;
}

/* ---- what the program asks for ---- */

static void end_init(struct relay_end *end, const struct channel *channel,
	const struct channel *other, const uint8_t ticket[16])
{
	struct session_hello *hello = &end->hello;

	snprintf(end->address, sizeof(end->address), "%s", channel->resume.address);
	if (!strncmp(end->address, LOCAL, strlen(LOCAL)))
		agents_chosen(&channel->server->agents[channel->part], end->address);
	transport_plain(end->address);
	memcpy(end->session, channel->subject.session, sizeof(end->session));
	hello->role = SESSION_PEER;
	memcpy(hello->session, channel->resume.hello.session, sizeof(hello->session));
	memcpy(hello->source, other->resume.hello.session, sizeof(hello->source));
	memcpy(hello->secret, ticket, sizeof(hello->secret));
}

/* The other channel of the same process. Under the server's lock. */
static const struct channel *other_of(const struct channel *channel, const uint8_t session[16])
{
	for (const struct channel *c = channel->server->channels; c; c = c->next)
		if (atomic_load(&c->state) == CHANNEL_OPEN && c != channel &&
			c->peer.pid == channel->peer.pid && c->peer.uid == channel->peer.uid &&
			!memcmp(c->resume.hello.session, session, 16))
			return c;
	return NULL;
}

/* Its place in the list, filled in. NULL: TEXT says why. */
static struct relay *relay_new(
	struct channel *channel, const struct channel_request *request, char text[256])
{
	struct server *server = channel->server;
	struct relay *r = calloc(1, sizeof(*r));
	const struct channel *other;

	if (!r || (r->socket = dup(channel->socket)) < 0) {
		snprintf(text, 256, "no memory for a relay");
		free(r);
		return NULL;
	}
	r->server = server;
	r->request.op = request->op;
	r->pid = channel->peer.pid;
	r->subject = channel->subject;
	pthread_mutex_lock(&server->lock);
	other = other_of(channel, request->relay.session);
	if (!other) {
		snprintf(text, 256,
			"the other session of the relay is none of this process' at another "
			"agent");
	} else if (server->relays.count >= RELAYS_MOST ||
		   relays_of(&server->relays, channel->subject.session) >= RELAYS_PER_SESSION) {
		snprintf(text, 256, "there are too many relays: %u, of a session at most %u",
			server->relays.count, RELAYS_PER_SESSION);
	} else {
		end_init(&r->ends[0], channel, other, request->relay.tickets[0]);
		end_init(&r->ends[1], other, channel, request->relay.tickets[1]);
		r->parts[0] = channel->part;
		r->parts[1] = other->part;
		r->next = server->relays.first;
		server->relays.first = r;
		server->relays.count++;
		text[0] = 0;
	}
	pthread_mutex_unlock(&server->lock);
	if (!text[0])
		return r;
	close(r->socket);
	free(r);
	return NULL;
}

void relay_start(struct channel *channel, const struct channel_request *request)
{
	char text[256] = "no thread for a relay";
	struct relay *r = relay_new(channel, request, text);
	pthread_attr_t attributes;
	pthread_t thread;
	int ret = -EAGAIN;

	if (r) {
		pthread_attr_init(&attributes);
		pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
		pthread_attr_setstacksize(&attributes, STACK);
		ret = pthread_create(&thread, &attributes, relay_main, r);
		pthread_attr_destroy(&attributes);
	}
	if (r && ret) {
		relay_free(r);
		snprintf(text, sizeof(text), "no thread for a relay");
	}
	if (ret)
		answer(channel->server, channel->socket, request, STATUS_NOT_READY, text);
}
