/* SPDX-License-Identifier: Apache-2.0
 *
 * A program whose sidecar is gone brings its segments here (docs/RESUME.md): what they say is
 * checked as if the program had written it, which it can.  Then the session is looked for as
 * behind a cut.
 */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/wait.h"
#include "sidecar/channel/channel.h"
#include "sidecar/channel/request.h"

#define MS 1000000ull
#define HOLDS_NS (5000 * MS) /* for all of them; they are sent in one go */

_Static_assert(CHANNEL_ADDRESS == AGENT_TEXT, "an address is as long in the page");

/* The page's own words, each read once. 0, or -EPERM with *error. */
static int adopt_page(const struct channel *channel, struct channel_page *once,
	struct channel_carry *carry, struct error *error)
{
	const struct segment *segment = channel->segments.at[0];
	struct channel_page layout = {0};

	memcpy(once, segment->base, offsetof(struct channel_page, tail));
	memcpy(carry, segment->base + offsetof(struct channel_page, carry), sizeof(*carry));
	__asm__ volatile("" ::: "memory");
	carry->address[sizeof(carry->address) - 1] = 0;
	if (once->magic != CHANNEL_MAGIC || once->version != CHANNEL_VERSION)
		return error_set(error, EPERM, "the segment is of channel version %u, not %u",
			once->version, CHANNEL_VERSION);
	if (!options_channel_sizes(once->ring_size, once->arena_size, once->bounce_size) ||
		segments_layout(&layout, once->ring_size, once->arena_size,
			once->bounce_size) != segment->size ||
		memcmp(&layout.size, &once->size,
			offsetof(struct channel_page, tail) -
				offsetof(struct channel_page, size)))
		return error_set(error, EPERM, "the segment has another layout");
	if (!carry->grace_ms || !(carry->features & SESSION_FEATURE_RESUME))
		return error_set(error, EPERM, "the segment's session cannot be resumed");
	if (carry->uid != channel->peer.uid)
		return error_set(error, EPERM, "the segment is of user %u, not %u", carry->uid,
			channel->peer.uid);
	return 0;
}

/* The HOLD that comes next, at DEADLINE at the latest. 0, or -errno with *error. */
static int adopt_hold(struct channel *channel, uint64_t deadline, struct error *error)
{
	struct pollfd readable = {.fd = channel->socket, .events = POLLIN};
	enum channel_mode mode = channel->server->options.mode;
	struct channel_request request;
	struct segment *segment = NULL;
	uint64_t now = wait_now();
	cleanup_close int fd = -1;
	int ret = now < deadline;

	if (ret)
		ret = poll(&readable, 1, (int)((deadline - now) / MS) + 1);
	if (ret > 0)
		ret = request_receive_fd(channel->socket, &request, &fd);
	if (ret <= 0 || request.op != CHANNEL_HOLD)
		return error_set(error, EPERM, "less pinned memory comes than was announced");
	ret = segment_adopt(mode, fd, request.size, &segment, error);
	if (ret < 0)
		return ret;
	fd = -1;
	if (segments_put(&channel->segments, request.segment, segment)) {
		segment_free(segment);
		return error_set(error, EPERM, "pinned memory as number %u", request.segment);
	}
	return 0;
}

static int adopt_memory(struct channel *channel, const struct channel_request *request,
	struct channel_carry *carry, struct error *error)
{
	uint64_t deadline = wait_now() + HOLDS_NS, head;
	struct channel_page once;
	int ret = segment_adopt(channel->server->options.mode, channel->segment, request->size,
		&channel->segments.at[0], error);

	if (ret < 0)
		return ret;
	channel->segment = -1;
	if (request->size < sizeof(once) || request->segment > SEGMENTS_MAX)
		return error_set(error, EPERM, "%u pinned segments", request->segment);
	ret = adopt_page(channel, &once, carry, error);
	for (uint32_t i = 0; !ret && i < request->segment; i++)
		ret = adopt_hold(channel, deadline, error);
	if (!ret)
		ret = attach_parts(channel, &once, error);
	if (ret < 0)
		return ret;
	head = atomic_load(&channel->page->head);
	channel->ring.taken = channel->ring.released = head;
	if (head % 16 || replies_adopt(&channel->replies, carry))
		return error_set(error, EPERM, "the segment's counts cannot be");
	atomic_store(&channel->page->idle, 0);
	channel->before = (struct channel_counts){
		.frames_sent = atomic_load(&channel->page->frames_sent),
		.bytes_sent = atomic_load(&channel->page->bytes_sent),
		.frames_received = atomic_load(&channel->page->frames_received),
		.bytes_received = atomic_load(&channel->page->bytes_received),
	};
	return 0;
}

/* The session goes on with this sidecar's own token and names. */
static bool adopt_session(struct channel *channel, struct channel_carry *carry,
	const struct channel_request *request)
{
	const struct options *options = &channel->server->options;
	uint64_t grace = carry->grace_ms, away = request->away_ms;
	struct session_hello hello;
	struct session_welcome welcome = {.features = SESSION_FEATURE_RESUME};

	channel->adopting = channel->heirs = true;
	hello = attach_hello(channel);
	if (grace > options->grace * 1000)
		grace = options->grace * 1000;
	welcome.granted_ms = (uint32_t)grace;
	memcpy(welcome.session, carry->session, sizeof(welcome.session));
	memcpy(welcome.secret, carry->secrets[atomic_load(&carry->serves) & 1],
		sizeof(welcome.secret));
	resume_init(&channel->resume, carry->address, &hello, &welcome,
		spread_count(&channel->server->spread) > 1, channel->doorbell);
	resume_carried(&channel->resume, carry, channel->segments.at[0]->fd);
	channel->ring.counts = true;
	log_session(&channel->subject, welcome.session);
	memcpy(channel->renewal.session, welcome.session, sizeof(welcome.session));
	explicit_bzero(&hello, sizeof(hello));
	explicit_bzero(&welcome, sizeof(welcome));
	channel->resume.possible = resume_start(&channel->resume, channel->replies.numbered,
		wait_now() - (away < grace ? away : grace) * MS,
		"the sidecar was started again");
	return channel->resume.possible;
}

/* The agent of the session is one of ours. */
static int adopt_keep(struct channel *channel, const char *address, struct error *error)
{
	struct server *server = channel->server;
	unsigned count = spread_count(&server->spread);
	struct spread_part part;
	int ret = -ENOENT;

	for (unsigned i = 0; ret < 0 && i < count; i++) {
		spread_part(&server->spread, i, &part);
		ret = agents_keep(&server->agents[i], part.agents, address, error);
		channel->part = i;
	}
	return ret;
}

/* 0, or the CUresult to answer with *error: NOT_PERMITTED where asking again is of no use. */
static uint32_t adopt_grant(struct channel *channel, const struct channel_request *request,
	struct channel_carry *carry, struct error *error)
{
	struct server *server = channel->server;
	int ret;

	if (request->version != CHANNEL_VERSION || !server->options.grace) {
		error_set(error, 0, "this sidecar takes no sessions of another one over");
		return STATUS_NOT_PERMITTED;
	}
	ret = adopt_memory(channel, request, carry, error);
	if (!ret && adopt_keep(channel, carry->address, error))
		return STATUS_NOT_READY; /* names may come back */
	return !ret ? 0 : ret == -EPERM ? STATUS_NOT_PERMITTED : STATUS_NOT_READY;
}

int adopt_adopt(struct channel *channel, const struct channel_request *request)
{
	struct server *server = channel->server;
	struct channel_answer answer = request_answer(request, 0, "");
	struct channel_carry carry = {0};
	struct error error = {0};
	char program[80], text[260];
	uint32_t status;

	segment_guard(&channel->segments);
	answer.op = CHANNEL_HEARTBEAT;
	if (request_reply(&server->options, channel->socket, &answer, &server->heartbeat.fd, 1))
		return -ECONNRESET;
	memcpy(channel->program, request->program, sizeof(channel->program));
	log_quote(program, sizeof(program), channel->program);
	status = adopt_grant(channel, request, &carry, &error);
	if (!status && !adopt_session(channel, &carry, request)) {
		error_set(&error, errno, "a thread that dials the agent");
		status = STATUS_NOT_READY;
	}
	explicit_bzero(&carry, sizeof(carry));
	answer = request_answer(request, status, error.text);
	answer.features =
		CHANNEL_FEATURE_ADOPT |
		(request->features & (CHANNEL_FEATURE_RELAY | CHANNEL_FEATURE_RESERVE));
	if (status) {
		atomic_fetch_add(&server->refused, 1);
		log_warn("channel.refused", "app=%d program=%s status=%u text=%s",
			channel->peer.pid, program, status,
			log_quote(text, sizeof(text), error.text));
		request_reply(&server->options, channel->socket, &answer, NULL, 0);
		return -EACCES;
	}
	channel_open(channel);
	if (request_reply(&server->options, channel->socket, &answer, &channel->doorbell, 1))
		channel->gone = true;
	atomic_fetch_add(&server->attached, 1);
	log_info("channel.adopted", "app=%d uid=%u program=%s pinned=%u away_ms=%u",
		channel->peer.pid, channel->peer.uid, program, channel->segments.pinned,
		request->away_ms);
	return 0;
}

int adopt_resumed(struct channel *channel, uint64_t taken, struct error *error)
{
	channel->adopting = false;
	/* Nothing has been gathered yet. */
	return ring_adopt(
		&channel->ring, taken, channel->replies.slots, channel->out.buffer, error);
}
