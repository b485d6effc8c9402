/* SPDX-License-Identifier: Apache-2.0
 *
 * The Unix socket of a channel: attaching and pinned memory.  The peer is known by SO_PEERCRED;
 * what it says of itself is for the log.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/wait.h"
#include "sidecar/channel/channel.h"
#include "sidecar/channel/relay.h"
#include "sidecar/channel/request.h"

#define TURN 16 /* requests a turn */

static int answer_send(
	struct channel *channel, struct channel_answer *answer, const int *fds, unsigned count)
{
	return request_reply(&channel->server->options, channel->socket, answer, fds, count);
}

/* --- ATTACH --- */

int attach_parts(
	struct channel *channel, const struct channel_page *layout, struct error *error)
{
	struct segments *segments = &channel->segments;
	unsigned char *base = segments->at[0]->base;
	int ret;

	segments->arena = layout->arena;
	segments->arena_size = layout->arena_size;
	segments->bounce = layout->bounce;
	segments->bounce_size = layout->bounce_size;
	channel->page = (struct channel_page *)base;
	ret = ring_consumer_init(&channel->ring, channel->page, base + layout->ring,
		layout->ring_size, segments);
	if (ret < 0)
		return error_set(error, -ret, "ring");
	channel->replies.page = channel->page;
	channel->replies.slots = (struct channel_slot *)(base + layout->slots);
	channel->replies.counters = (_Atomic uint64_t *)(base + layout->counters);
	channel->replies.upcalls = (struct channel_upcall *)(base + layout->upcalls);
	channel->replies.ring = &channel->ring;
	channel->replies.segments = segments;
	channel->replies.stripes = &channel->stripes;
	channel->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (channel->doorbell < 0)
		return error_set(error, errno, "doorbell");
	return 0;
}

static int attach_memory(struct channel *channel, struct error *error)
{
	const struct options *options = &channel->server->options;
	struct channel_page layout = {
		.magic = CHANNEL_MAGIC, .version = CHANNEL_VERSION, .state = CHANNEL_OPEN};
	int ret = server_segment(channel->server, &channel->segments.at[0], error);

	if (!ret && !(channel->request.features & CHANNEL_FEATURE_RESERVE))
		ret = segment_fill(channel->segments.at[0], NULL, NULL, error);
	if (ret < 0)
		return ret;
	segments_layout(&layout, options->ring, options->arena, options->bounce);
	memcpy(channel->segments.at[0]->base, &layout, sizeof(layout));
	return attach_parts(channel, &layout, error);
}

/* Whether its payloads may be coded. A session that is adopted may have been opened so. */
static bool attach_codes(const struct channel *channel)
{
	return channel->adopting ||
	       (channel->server->options.compress != CONTROLLER_OFF &&
		       !(channel->request.features & CHANNEL_FEATURE_PLAIN));
}

/* Whether its payloads may be told by their content. */
static bool attach_names(const struct channel *channel)
{
	return channel->server->options.upload_cache &&
	       !(channel->request.features & CHANNEL_FEATURE_UNNAMED);
}

struct session_hello attach_hello(const struct channel *channel)
{
	const struct options *options = &channel->server->options;
	struct session_hello hello = {
		.version = SESSION_VERSION,
		.pid = (uint32_t)channel->peer.pid,
		.uid = channel->peer.uid,
		.features = SESSION_FEATURE_STRIPES | SESSION_FEATURE_STRIPES_BACK |
			    (attach_codes(channel) ? SESSION_FEATURE_ZSTD : 0) |
			    (attach_names(channel) ? SESSION_FEATURE_NAMES : 0) |
			    (options->grace ? SESSION_FEATURE_RESUME : 0) | options->priority,
		.grace_ms = (uint32_t)options->grace * 1000,
		.vram_limit = options->vram_limit,
		.gpu_count = (uint32_t)options->gpu_count,
	};

	memcpy(hello.program, channel->program, sizeof(hello.program));
	memcpy(hello.pod, options->pod, sizeof(hello.pod));
	memcpy(hello.pod_uid, options->pod_uid, sizeof(hello.pod_uid));
	memcpy(hello.token, options->token, sizeof(hello.token));
	return hello;
}

/* Dials the agent. 0, or the CUresult to answer with *error. */
static uint32_t attach_dial(struct channel *channel, struct error *error)
{
	struct server *server = channel->server;
	const struct options *options = &server->options;
	uint64_t deadline = wait_now() + options->attach_timeout * 1000000000ull;
	struct session_hello hello = attach_hello(channel);
	struct session_welcome welcome;
	struct stripes_setting setting = channel_stripes(channel);
	char address[AGENT_TEXT];
	struct spread_part part;
	int ret;

	spread_part(&server->spread, channel->part, &part);
	hello.gpu_count = part.gpus;
	ret = agents_dial(&server->agents[channel->part], part.agents, &hello, &welcome,
		deadline, &channel->link, error);
	if (!ret) {
		agents_shared(&server->agents[channel->part], channel->link, address);
		resume_init(&channel->resume, address, &hello, &welcome,
			spread_count(&server->spread) > 1, channel->doorbell);
		channel->ring.counts = channel->resume.possible;
		stripes_init(&channel->stripes, channel->link, &hello, &welcome, &setting);
		atomic_store_explicit(&channel->page->streams,
			stripes_streams(&channel->stripes), memory_order_relaxed);
	}
	explicit_bzero(&hello, sizeof(hello));
	if (!ret && welcome.features & SESSION_FEATURE_LOCAL)
		ret = local_attach(channel, deadline, error);
	if (!ret) {
		log_session(&channel->subject, welcome.session);
		channel->renewal.place = channel->link->place;
		memcpy(channel->renewal.session, welcome.session, sizeof(welcome.session));
		memcpy(channel->renewal.secret, welcome.secret, sizeof(welcome.secret));
		return 0;
	}
	return ret == -ECONNREFUSED && welcome.status ? welcome.status : STATUS_NOT_READY;
}

/* Two parts of the list may lead to one agent, whose GPUs would be there twice: the later part
 * is refused. What another process found behind a later one may have changed since. */
static bool attach_twice(struct channel *channel, struct error *error)
{
	const struct transport_place *place = &channel->link->place;
	struct server *server = channel->server;
	unsigned same = channel->part;

	pthread_mutex_lock(&server->lock);
	server->places[channel->part] = *place;
	for (unsigned i = 0; i < channel->part; i++) {
		const struct transport_place *other = &server->places[i];

		if (place->transport && other->transport == place->transport &&
			!memcmp(other->bytes, place->bytes, sizeof(place->bytes)))
			same = i;
	}
	pthread_mutex_unlock(&server->lock);
	if (same == channel->part)
		return false;
	error_set(error, 0, "agents %u and %u of '%.160s' are one and the same", same + 1,
		channel->part + 1, server->options.agent);
	return true;
}

/* With gpu_spread: which agents the process gets, before it asks for the first one's. 0, or the
 * CUresult with *error. */
static uint32_t attach_choose(
	struct channel *channel, const struct channel_request *request, struct error *error)
{
	struct server *server = channel->server;
	uint64_t deadline = wait_now() + server->options.attach_timeout * 1000000000ull;
	struct spread_wish wish = options_spread(&server->options);
	struct session_hello hello;
	bool alone, anew;
	int ret;

	if (request->segment)
		return 0;
	pthread_mutex_lock(&server->lock);
	alone = server->channel_count == 1;
	pthread_mutex_unlock(&server->lock);
	hello = attach_hello(channel);
	hello.gpu_count = 0; /* how many there are is asked */
	ret = spread_choose(&server->spread, &wish, &hello, alone, deadline, &anew, error);
	explicit_bzero(&hello, sizeof(hello));
	for (unsigned i = 0; anew && i < CHANNEL_AGENTS; i++)
		agents_forget(&server->agents[i]);
	return !ret ? 0 : ret == -EPERM ? STATUS_NOT_PERMITTED : STATUS_NOT_READY;
}

/* What must hold before anything is made. 0, or the CUresult with *error. */
static uint32_t attach_allowed(
	struct channel *channel, const struct channel_request *request, struct error *error)
{
	struct server *server = channel->server;
	uint32_t status;
	unsigned count;

	if (request->version != CHANNEL_VERSION) {
		error_set(error, 0,
			"the program's vcuda libraries speak channel version %u, the sidecar "
			"%u: install "
			"the same release of both",
			request->version, CHANNEL_VERSION);
		return STATUS_MISMATCH;
	}
	if (!server->options.agent[0]) {
		error_set(error, 0,
			"the sidecar knows no agent: give it --agent HOST[:PORT] or `agent:` "
			"in its "
			"configuration");
		return STATUS_NO_DEVICE;
	}
	if (atomic_load(&server->draining)) {
		error_set(error, 0, "the sidecar is draining: it takes no more processes");
		return STATUS_NOT_READY;
	}
	status = attach_choose(channel, request, error);
	if (status)
		return status;
	count = spread_count(&server->spread);
	if (count > 1 && !(request->features & CHANNEL_FEATURE_AGENTS)) {
		error_set(error, 0,
			"the program's vcuda libraries know one agent only, the sidecar has "
			"%u: install the same release of both",
			count);
		return STATUS_MISMATCH;
	}
	if (request->segment >= count) {
		error_set(error, 0, "the program asks for agent %u of %u", request->segment,
			count);
		return STATUS_MISMATCH;
	}
	return 0;
}

static uint32_t attach_grant(
	struct channel *channel, const struct channel_request *request, struct error *error)
{
	uint32_t status = attach_allowed(channel, request, error);
	struct channel_answer answer;
	struct segment *segment;
	struct spread_part part;

	if (status)
		return status;
	channel->part = request->segment;
	if (attach_memory(channel, error) < 0)
		return STATUS_OUT_OF_MEMORY;
	status = attach_dial(channel, error);
	if (status)
		return status;
	if (attach_twice(channel, error))
		return STATUS_NOT_PERMITTED;

	segment = channel->segments.at[0];
	answer = request_answer(request, 0, "");
	answer.agents = spread_count(&channel->server->spread);
	spread_part(&channel->server->spread, channel->part, &part);
	snprintf(answer.agent, sizeof(answer.agent), "%.127s", part.agents);
	channel->heirs = channel->resume.possible && request->features & CHANNEL_FEATURE_ADOPT;
	if (channel->heirs) {
		resume_carry(&channel->resume, channel->page, segment->fd);
		answer.features = CHANNEL_FEATURE_ADOPT;
	}
	answer.features |= request->features & CHANNEL_FEATURE_RELAY;
	answer.features |= request->features & (channel->local.is ? CHANNEL_FEATURE_CAPTURED
								  : CHANNEL_FEATURE_RESERVE);
	answer.mode = channel->server->options.mode;
	answer.size = segment->size;
	memcpy(answer.session, channel->subject.session, sizeof(channel->subject.session));
	channel_open(channel);
	if (answer_send(channel, &answer, (int[]){channel->doorbell, segment->fd}, 2) < 0) {
		error_set(error, 0, "the program went away while it was being attached");
		channel->gone = true;
		return STATUS_NOT_READY;
	}
	return 0;
}

int attach_attach(struct channel *channel, const struct channel_request *request)
{
	struct server *server = channel->server;
	struct error error = {0};
	struct channel_answer answer;
	char program[80], text[260];
	uint64_t since = wait_now();
	uint32_t status;

	answer = request_answer(request, 0, "");
	answer.op = CHANNEL_HEARTBEAT;
	if (answer_send(channel, &answer, &server->heartbeat.fd, 1) < 0)
		return -ECONNRESET;
	memcpy(channel->program, request->program, sizeof(channel->program));
	log_quote(program, sizeof(program), channel->program);
	status = attach_grant(channel, request, &error);
	if (!status) {
		struct spread_part part;

		spread_part(&server->spread, channel->part, &part);
		atomic_fetch_add(&server->attached, 1);
		latency_observe(
			&channel->timing.classes[LATENCY_ATTACH], wait_now() - since, 1);
		log_info("channel.open", "app=%d uid=%u program=%s agent=%s", channel->peer.pid,
			channel->peer.uid, program, part.agents);
		return 0;
	}
	atomic_fetch_add(&server->refused, 1);
	log_warn("channel.refused", "app=%d program=%s status=%u text=%s", channel->peer.pid,
		program, status, log_quote(text, sizeof(text), error.text));
	if (!channel->gone) {
		answer = request_answer(request, status, error.text);
		answer_send(channel, &answer, NULL, 0);
	}
	return -EACCES;
}

/* --- later requests --- */

/* An answer that the kernel has no memory for, again and again: its program waits, and the page
 * tells it. Who reads no answers, or is gone, is told nothing. */
static void attach_answer(
	struct channel *channel, struct channel_answer *answer, const int *fd, unsigned count)
{
	int ret = answer_send(channel, answer, fd, count);

	if (ret == -ENOBUFS || ret == -ENOMEM)
		channel_lose(channel, STATUS_LOST,
			"the sidecar had no memory for an answer to the program");
	else if (ret < 0)
		channel->gone = true;
}

/* The agent must not take a long reservation for our end. */
static void attach_still_here(void *channel)
{
	channel_say(channel, wait_now());
}

static void attach_pin(struct channel *channel, const struct channel_request *request)
{
	const struct options *options = &channel->server->options;
	struct channel_answer answer = request_answer(request, 0, "");
	struct error error = {0};
	struct segment *segment = NULL;
	int number = -ENOSPC;

	if (atomic_load_explicit(&channel->page->state, memory_order_relaxed) == CHANNEL_LOST) {
		answer = request_answer(request, STATUS_LOST, "the session is lost");
	} else if (!request->size || channel->segments.pinned >= SEGMENTS_MAX) {
		error_set(&error, 0, "%u pinned pieces are the most a process may have",
			SEGMENTS_MAX);
	} else if (!segment_create(options->mode, request->size, &segment, attach_still_here,
			   channel, &error)) {
		number = segments_add(&channel->segments, segment);
	}
	if (number >= 0 && channel->local.is &&
		local_pin(channel, (uint32_t)number, &error) < 0) {
		segments_remove(&channel->segments, (uint32_t)number);
		segment = NULL; /* on its way out */
		number = -EPIPE;
	}
	if (number >= 0) {
		answer.mode = options->mode;
		answer.segment = (uint32_t)number;
		answer.size = segment->size;
	} else {
		if (!answer.status)
			answer = request_answer(request, STATUS_OUT_OF_MEMORY, error.text);
		segment_free(segment);
	}
	attach_answer(channel, &answer, number >= 0 ? &segment->fd : NULL, number >= 0);
}

static void attach_reserve(struct channel *channel, const struct channel_request *request)
{
	struct channel_answer answer = request_answer(request, 0, "");
	struct error error = {0};

	if (segment_fill(channel->segments.at[0], attach_still_here, channel, &error))
		answer = request_answer(request, STATUS_OUT_OF_MEMORY, error.text);
	attach_answer(channel, &answer, NULL, 0);
}

static void attach_unpin(struct channel *channel, uint32_t number)
{
	if (segments_remove(&channel->segments, number) < 0)
		channel_lose(channel, STATUS_LOST,
			"the program gave back pinned memory that it does not have");
	else if (channel->local.is)
		local_unpin(channel, number);
}

void attach_serve(struct channel *channel)
{
	struct channel_request request;
	int ret = 1;

	for (int i = 0; i < TURN && !channel->gone; i++) {
		ret = request_receive(channel->socket, &request);
		if (ret <= 0)
			break;
		switch (request.op) {
		case CHANNEL_PIN: attach_pin(channel, &request); break;
		case CHANNEL_UNPIN: attach_unpin(channel, request.segment); break;
		case CHANNEL_RESERVE: attach_reserve(channel, &request); break;
		case CHANNEL_RELAY: relay_start(channel, &request); break;
		default: ret = -EPROTO;
		}
		if (ret < 0)
			break;
	}
	/* It stays until the program closes the socket: its memory is the program's so long. */
	if (ret == -EPROTO)
		channel_lose(channel, STATUS_LOST, "the program said nonsense on the socket");
	else if (ret < 0)
		channel->gone = true;
	atomic_store_explicit(&channel->pinned, channel->segments.pinned, memory_order_relaxed);
	atomic_store_explicit(
		&channel->pinned_bytes, channel->segments.pinned_bytes, memory_order_relaxed);
}
