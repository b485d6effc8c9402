/* SPDX-License-Identifier: Apache-2.0 */
#include "sidecar/channel/local.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "common/wait.h"
#include "protocol/wire/status.h"
#include "sidecar/channel/channel.h"

#define MS 1000000ull
#define SECOND 1000000000ull
#define PING_NS (2 * SECOND)
#define ROOM_NS (5 * SECOND)   /* for the worker to take what it is given */
#define LINGER_NS (5 * SECOND) /* behind GONE, for the worker to finish */

/* What a program made the worker count, as far as it goes. */
static void local_count(struct channel *channel, const struct local_message *message)
{
	channel->out.frames = message->counts[LOCAL_SENT];
	channel->out.bytes = message->counts[LOCAL_SENT_BYTES];
	channel->replies.frames = message->counts[LOCAL_RECEIVED];
	channel->replies.bytes = message->counts[LOCAL_RECEIVED_BYTES];
	atomic_store_explicit(&channel->frames_sent, channel->out.frames, memory_order_relaxed);
	atomic_store_explicit(&channel->bytes_sent, channel->out.bytes, memory_order_relaxed);
	atomic_store_explicit(
		&channel->frames_received, channel->replies.frames, memory_order_relaxed);
	atomic_store_explicit(
		&channel->bytes_received, channel->replies.bytes, memory_order_relaxed);
}

/* Nothing is to come with a descriptor. */
static int local_next(struct channel *channel, struct local_message *message)
{
	int fds[LOCAL_FDS];
	int ret = local_hear(channel->link, &channel->local.hearing, message, fds);

	for (int i = 0; ret > 0 && i < LOCAL_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return ret;
}

int local_attach(struct channel *channel, uint64_t deadline, struct error *error)
{
	const struct options *options = &channel->server->options;
	const struct segment *segment = channel->segments.at[0];
	const struct local_message attach = {
		.what = LOCAL_ATTACH,
		.sealed = options->mode == CHANNEL_POD,
		.captured = channel->request.features & CHANNEL_FEATURE_CAPTURED ? 1 : 0,
		.size = segment->size,
		.ring = channel->ring.size,
		.arena = channel->segments.arena_size,
		.bounce = channel->segments.bounce_size,
	};
	struct local_message answer = {0};
	/* The worker's driver locks all of it, which would give it memory of the agent's. */
	int ret = segment_fill(channel->segments.at[0], NULL, NULL, error);

	if (ret < 0)
		return ret;
	channel->local.is = true;
	local_hearing_init(&channel->local.hearing);
	ret = local_say_until(
		channel->link, &attach, (int[]){segment->fd, channel->doorbell}, 2, deadline);
	while (!ret) {
		struct pollfd fds[2];
		uint64_t now = wait_now();

		ret = local_next(channel, &answer);
		if (ret)
			break;
		if (now >= deadline)
			return error_set(error, ETIMEDOUT,
				"agent: its worker does not map the shared memory");
		link_fds(channel->link, fds, 0);
		poll(fds, 1, (int)((deadline - now) / MS) + 1);
	}
	if (ret < 0)
		return error_set(error, -ret, "agent: its worker, which is to map memory");
	if (answer.what == LOCAL_END)
		return error_set(error, 0, "agent: %s", answer.text);
	if (answer.what != LOCAL_ATTACHED)
		return error_set(error, EPROTO, "agent: it says %u before it has the memory",
			answer.what);
	atomic_store_explicit(&channel->page->lent_most, answer.size, memory_order_relaxed);
	return 0;
}

/* What a number of pinned memory is, and then the page: the worker has heard it, or looks. */
static int local_name(struct channel *channel, struct local_message *message, const int *fd,
	uint64_t deadline)
{
	uint64_t which = channel->local.named + 1;
	int ret;

	message->counts[0] = which;
	ret = local_say_until(channel->link, message, fd, fd ? 1 : 0, deadline);
	if (ret < 0)
		return ret;
	channel->local.named = which;
	atomic_store_explicit(&channel->page->named, which, memory_order_release);
	return 0;
}

int local_resume(struct channel *channel, struct error *error)
{
	struct local_message held = {.what = LOCAL_HELD};
	uint64_t deadline = wait_now() + ROOM_NS;
	int ret = local_attach(channel, deadline, error);

	channel->local.unpinned = 0;
	/* As another sidecar left it, or the program, which then misleads itself. */
	channel->local.named =
		atomic_load_explicit(&channel->page->named, memory_order_relaxed);
	for (uint32_t i = 1; !ret && i <= SEGMENTS_MAX; i++)
		if (channel->segments.at[i])
			ret = local_pin(channel, i, error);
	if (ret < 0)
		return ret;
	ret = local_name(channel, &held, NULL, deadline);
	return ret < 0 ? error_set(error, -ret, "the agent takes no more memory") : 0;
}

int local_pin(struct channel *channel, uint32_t number, struct error *error)
{
	const struct segment *segment = channel->segments.at[number];
	struct local_message pin = {
		.what = LOCAL_PIN,
		.segment = number,
		.sealed = channel->server->options.mode == CHANNEL_POD,
		.size = segment->size,
	};
	int ret = channel->link ? local_name(channel, &pin, &segment->fd, wait_now() + ROOM_NS)
				: -EPIPE;

	return ret < 0 ? error_set(error, -ret, "the agent takes no more memory") : 0;
}

void local_unpin(struct channel *channel, uint32_t number)
{
	struct local_message unpin = {.what = LOCAL_UNPIN, .segment = number};

	if (!channel->link)
		return;
	if (local_name(channel, &unpin, NULL, wait_now() + ROOM_NS))
		channel_lose(channel, STATUS_LOST, "the agent does not give memory back");
	else
		channel->local.unpinned++;
}

/* The session is over, one way or the other. */
static void local_over(struct channel *channel, uint32_t status, const char *text)
{
	channel->parted = channel->local.ended && !status;
	channel->finished = channel->gone;
	channel_lose(channel, status, text);
}

static void local_take(struct channel *channel, const struct local_message *message)
{
	char text[sizeof(message->text) + 16];

	switch (message->what) {
	case LOCAL_PONG: local_count(channel, message); break;
	case LOCAL_UNPINNED:
		/* All that was given back before it is not the worker's either. */
		if (channel->local.unpinned && !--channel->local.unpinned)
			segments_reap(&channel->segments);
		break;
	case LOCAL_END:
		local_count(channel, message);
		channel->local.ended = true;
		snprintf(text, sizeof(text), "agent: %s", message->text);
		local_over(channel, message->status, text);
		break;
	default: channel_lose(channel, STATUS_LOST, "agent: an unknown message"); break;
	}
}

/* Without a word: the agent may take us back, as over a wire. */
static void local_cut(struct channel *channel, uint64_t now)
{
	local_hearing_fini(&channel->local.hearing);
	channel->finished = channel->gone;
	channel->local.is = false; /* until it does */
	channel_broke(channel, now, "the agent closed the connection");
	channel->local.is = !channel->link && !resume_is_cut(&channel->resume);
}

/* What the worker says. */
static void local_listen(struct channel *channel, uint64_t now)
{
	while (channel->link) {
		struct local_message message;
		int ret = local_next(channel, &message);

		if (!ret)
			return;
		if (ret == -EPROTO) {
			local_over(channel, STATUS_LOST, "agent: what it says is no message");
			return;
		}
		if (ret < 0) {
			local_cut(channel, now);
			return;
		}
		channel->heard_at = now;
		channel->pinged_at = 0;
		local_take(channel, &message);
	}
}

static void local_ping(struct channel *channel, uint64_t now)
{
	const struct local_message ping = {.what = LOCAL_PING};
	uint64_t patience = channel->server->options.ping_timeout * SECOND;

	if (channel->pinged_at && now - channel->pinged_at >= patience)
		channel_lose(channel, STATUS_LOST, "the agent does not answer any more");
	else if (now - channel->said_at >= PING_NS &&
		 !local_say(channel->link, &ping, NULL, 0)) {
		channel->said_at = now;
		if (!channel->pinged_at)
			channel->pinged_at = now;
	}
}

/* The program is gone: the worker serves what it published, and ends. */
static void local_farewell(struct channel *channel, uint64_t now)
{
	const struct local_message gone = {.what = LOCAL_GONE};

	if (!channel->gone_at) {
		channel->gone_at = now;
		atomic_fetch_add(&channel->server->ending, 1);
	}
	if (channel->link && !channel->local.parting)
		channel->local.parting = !local_say(channel->link, &gone, NULL, 0);
	channel->finished = !channel->link || now - channel->gone_at >= LINGER_NS;
}

static void local_sleep(struct channel *channel, uint64_t now)
{
	uint64_t at = channel->gone ? now + 20 * MS : channel->said_at + PING_NS;
	struct pollfd fds[4] = {
		{.fd = channel->gone ? -1 : channel->socket, .events = POLLIN},
		{.fd = channel->stopping ? -1 : channel->server->stop_fd, .events = POLLIN},
		{.fd = -1},
		{.fd = -1},
	};

	if (channel->link)
		link_fds(channel->link, fds + 2, 0);
	else
		at = now + 60 * SECOND;
	if (poll(fds, 3, at > now ? (int)((at - now) / MS) + 1 : 0) < 0 && errno != EINTR)
		channel_lose(channel, STATUS_LOST, "the sidecar cannot poll");
	if (fds[1].revents)
		channel->stopping = true;
}

void local_turn(struct channel *channel)
{
	uint64_t now = wait_now();

	if (!channel->gone)
		attach_serve(channel);
	if (channel->link)
		local_listen(channel, now);
	if (!channel->local.is)
		return; /* it is cut */
	if (channel->link)
		local_ping(channel, now);
	if (segment_broken() && channel->link)
		channel_lose(channel, STATUS_LOST, "the program took shared memory away");
	if (channel->gone)
		local_farewell(channel, now);
	if (!channel->finished && !channel->stopping)
		local_sleep(channel, now);
}
