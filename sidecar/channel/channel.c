/* SPDX-License-Identifier: Apache-2.0 */
#include "sidecar/channel/channel.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/wait.h"
#include "protocol/wire/status.h"
#include "sidecar/channel/channel_core.h"

#define MS 1000000ull
#define SECOND 1000000000ull

#define BUDGET (1u << 20)      /* bytes received a turn */
#define CONTROL_NS (200000ull) /* how often the socket is looked at while frames flow */
#define PING_NS (2 * SECOND)   /* silence before a PING */
#define SAY_NS                                                                                 \
	(3 * SECOND)	    /* the longest that we say nothing: silence means we are stopped   \
			     */
#define BROKEN_NS (50 * MS) /* after a failed send, for the agent's last words to come */
#define DRAIN_NS (300 * MS) /* after the app's death, for what it had published */
#define LINGER_NS (5 * SECOND) /* after BYE, for the worker to finish what was posted */
/* Frames and bytes of the agent's that it is not told of: it keeps them. */
#define TELL_FRAMES 64
#define TELL_BYTES (1u << 20)
#define UPCALLS_NS (1 * MS) /* between looks at a full upcall ring: nobody rings for it */

static void channel_count(struct channel *channel)
{
	const struct channel_counts *before = &channel->before;
	struct channel_page *page = channel->page;
	uint64_t waiting = 0;
	uint64_t sent = channel->out.bytes + stripes_wire(&channel->pieces.sent);
	uint64_t received = channel->replies.bytes + stripes_wire(&channel->pieces.received);

	for (int i = 0; i < CHANNEL_SLOTS / 64; i++)
		waiting += (uint64_t)__builtin_popcountll(channel->ring.waiting[i]);
#define COUNT(to, value) atomic_store_explicit(&(to), (value), memory_order_relaxed)
	COUNT(page->frames_sent, before->frames_sent + channel->out.frames);
	COUNT(page->bytes_sent, before->bytes_sent + sent);
	COUNT(page->frames_received, before->frames_received + channel->replies.frames);
	COUNT(page->bytes_received, before->bytes_received + received);
	COUNT(channel->frames_sent, channel->out.frames);
	COUNT(channel->bytes_sent, sent);
	COUNT(channel->frames_received, channel->replies.frames);
	COUNT(channel->bytes_received, received);
	COUNT(channel->in_flight, ring_in_flight(&channel->ring));
	COUNT(channel->waiting, waiting);
#undef COUNT
}

/* Ring to link. true: something moved. */
static bool channel_forward(struct channel *channel, uint64_t now)
{
	struct error error;
	bool moved = false;
	ssize_t sent;

	if (channel->broken_at)
		return false;
	if (outbound_empty(&channel->out)) {
		int taken;

		channel->ring.counted = (uint32_t)channel->replies.numbered;
		taken = outbound_gather(
			&channel->out, &channel->ring, &channel->stripes, &error);

		if (taken < 0) {
			channel_poison(channel, &error);
			return true;
		}
		if (!taken)
			return false;
		moved = true;
		channel->told = channel->replies.numbered;
		channel->told_landed = channel->replies.landed;
		channel_count(channel); /* before an answer can come */
	}
	sent = outbound_send(&channel->out, channel->link);
	if (sent == -EFAULT) {
		channel_poison_robbed(channel);
		return true;
	}
	if (sent < 0)
		channel->broken_at = now;
	if (sent > 0)
		channel->said_at = now;
	return moved || sent > 0;
}

/* Link to segment. true: something moved. */
static bool channel_backward(struct channel *channel, uint64_t now)
{
	struct error error;
	ssize_t got = replies_receive(&channel->replies, channel->link, BUDGET, &error);

	if (channel->replies.lost) {
		char text[sizeof(channel->replies.text) + 16];

		snprintf(text, sizeof(text), "agent: %s", channel->replies.text);
		channel_lose(channel, channel->replies.status, text);
		return true;
	}
	if (got < 0) {
		channel->parted = channel->ring.bye; /* it answered BYE by closing */
		channel->finished = channel->gone;
		if (got == -EFAULT)
			channel_poison_robbed(channel);
		else if (got == -EPROTO)
			channel_lose(channel, STATUS_LOST, error.text);
		else
			channel_broke(channel, now, error.text);
		return true;
	}
	if (channel->replies.ping && outbound_control(&channel->out, FRAME_PONG, 0))
		channel->replies.ping = false;
	if (got) {
		channel->heard_at = now;
		channel->pinged_at = 0;
	} else if (channel->broken_at && now - channel->broken_at > BROKEN_NS) {
		channel_broke(channel, now, "the connection to the agent broke");
	}
	return got > 0;
}

/* A worker answers a PING at once, and in a long call of its driver it sends PONGs by itself
 * (gpu-agent/worker/loop/watchdog.c); only in the middle of a frame it cannot. */
static uint64_t channel_patience(const struct channel *channel)
{
	const struct options *options = &channel->server->options;
	bool within = channel->replies.in_payload || replies_wait(&channel->replies) ||
		      channel->replies.at < channel->replies.n;

	return (within ? options->busy_timeout : options->ping_timeout) * SECOND;
}

/* Sends what says that we are there. */
static bool channel_control(struct channel *channel, uint8_t kind, uint64_t now)
{
	if (!outbound_control(&channel->out, kind, 0))
		return false;
	channel->said_at = now;
	if (outbound_send(&channel->out, channel->link) < 0)
		channel->broken_at = now;
	return true;
}

void channel_say(struct channel *channel, uint64_t now)
{
	if (channel->link && !channel->broken_at && now - channel->said_at >= SAY_NS)
		channel_control(channel, FRAME_PONG, now);
}

/* What no command has told the agent, which keeps what it sent until then. */
static void channel_tell(struct channel *channel)
{
	const struct replies *replies = &channel->replies;

	if (!channel->resume.possible || channel->broken_at ||
		(replies->numbered - channel->told < TELL_FRAMES &&
			replies->landed - channel->told_landed < TELL_BYTES))
		return;
	if (!outbound_control(&channel->out, FRAME_TAKEN, replies->numbered))
		return;
	channel->told = replies->numbered;
	channel->told_landed = replies->landed;
}

static void channel_ping(struct channel *channel, uint64_t now)
{
	channel_say(channel, now);
	if (channel->replies.upcalls_full || channel->broken_at) {
		channel->heard_at = now; /* it is we who do not listen */
		channel->pinged_at = 0;
		return;
	}
	if (!channel->pinged_at) {
		if (now - channel->heard_at >= PING_NS &&
			channel_control(channel, FRAME_PING, now))
			channel->pinged_at = now;
	} else if (now - channel->pinged_at >= channel_patience(channel)) {
		channel_broke(channel, now, "the agent does not answer any more");
	}
}

/* The app is gone: what it published goes out, BYE waits for the worker, then all is over. */
static void channel_farewell(struct channel *channel, uint64_t now)
{
	bool all_out = outbound_empty(&channel->out) && stripes_idle(&channel->stripes) &&
		       !ring_waiting(&channel->ring);

	if (!channel->gone_at) {
		channel->gone_at = now;
		atomic_fetch_add(&channel->server->ending, 1);
	}
	if (!channel->link)
		channel->finished = true;
	else if (channel->ring.bye && outbound_empty(&channel->out))
		/* Nobody sees what a program that was killed had posted. */
		channel->finished =
			now - channel->gone_at >= (channel->killed ? DRAIN_NS : LINGER_NS);
	else if (all_out && channel->resume.possible)
		/* Else the worker would wait for us. */
		channel->killed = channel->ring.bye =
			outbound_control(&channel->out, FRAME_BYE, channel->ring.last + 1);
	else
		channel->finished = all_out || now - channel->gone_at >= DRAIN_NS;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t channel_deadline(const struct channel *channel, uint64_t now)
{
	uint64_t at = now + 60 * SECOND;

	if (channel->gone)
		at = sooner(at, now + 20 * MS);
	if (!channel->link)
		return at;
	if (!replies_paused(&channel->replies))
		at = sooner(at, link_wake_at(channel->link));
	if (channel->broken_at)
		at = sooner(at, channel->broken_at + BROKEN_NS + MS);
	if (channel->replies.upcalls_full)
		at = sooner(at, now + UPCALLS_NS);
	if (!channel->broken_at)
		at = sooner(at, channel->said_at + SAY_NS);
	if (channel->out.held)
		at = sooner(at, channel->out.held_until);
	if (channel->pinged_at)
		return sooner(at, channel->pinged_at + channel_patience(channel));
	return sooner(at, channel->heard_at + PING_NS);
}

/* Sleeps until something may have changed. Publishes that it does, fence, looks again. */
static void channel_sleep(struct channel *channel, uint64_t now)
{
	struct channel_page *page = channel->page;
	bool held = channel->link && channel->out.held;
	bool takes =
		channel->link && outbound_empty(&channel->out) && !channel->broken_at && !held;
	bool cut = resume_is_cut(&channel->resume);
	bool lands = replies_wait(&channel->replies);
	uint64_t at = channel_deadline(channel, now);
	uint64_t wait = at > now ? at - now : 0;
	struct timespec timeout = {
		.tv_sec = (time_t)(wait / SECOND), .tv_nsec = (long)(wait % SECOND)};
	struct pollfd fds[5] = {
		{.fd = channel->gone ? -1 : channel->socket, .events = POLLIN},
		{.fd = channel->stopping ? -1 : channel->server->stop_fd, .events = POLLIN},
		{.fd = takes || cut || lands || held ? channel->doorbell : -1,
			.events = POLLIN},
		{.fd = -1},
		{.fd = -1},
	};
	uint64_t rings;

	if (channel->link)
		link_fds(channel->link, fds + 3, !outbound_empty(&channel->out));
	if (replies_paused(&channel->replies))
		fds[3].fd = -1;
	if (channel->broken_at)
		fds[4].fd = -1;
	if (takes)
		atomic_store_explicit(&page->idle, 1, memory_order_relaxed);
	if (takes || lands)
		stripes_sleep(&channel->stripes, lands);
	if ((!takes || !ring_waiting(&channel->ring)) && !replies_ready(&channel->replies) &&
		ppoll(fds, 5, &timeout, NULL) < 0 && errno != EINTR)
		channel_lose(channel, STATUS_LOST, "the sidecar cannot poll");
	if (takes)
		atomic_store_explicit(&page->idle, 0, memory_order_relaxed);
	if (lands)
		stripes_sleep(&channel->stripes, false);
	if (fds[2].revents && read(channel->doorbell, &rings, sizeof(rings)) < 0)
		rings = 0; /* another wake-up took it: the ring is looked at anyway */
	if (fds[0].revents)
		channel->control_at = 0;
	if (fds[1].revents)
		channel->stopping = true;
	if (fds[4].revents & (POLLERR | POLLHUP) && !channel->broken_at)
		channel->broken_at = wait_now();
}

/* ns before it sleeps */
static uint64_t channel_spin(const struct channel *channel)
{
	uint64_t spin = channel->server->spin;

	bool soon = ring_any_waits(&channel->ring) || replies_wait(&channel->replies);

	return spin && spin < WAIT_CALL_NS && soon ? WAIT_CALL_NS : spin;
}

/* A worker that has not parked yet knows the numbers of pinned memory as they were: none is
 * given to the program anew before the worker hears of it. */
static bool channel_held_back(const struct channel *channel)
{
	return resume_is_cut(&channel->resume) &&
	       !strncmp(channel->resume.address, "local://", 8);
}

static bool channel_app_left(const struct channel *channel)
{
	char byte;

	return !recv(channel->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
}

static void channel_turn(struct channel *channel)
{
	uint64_t now = wait_now();
	bool moved = false;

	if (channel->local.is) {
		local_turn(channel);
		return;
	}
	channel->timing.now = now;
	if (now - channel->control_at > CONTROL_NS) {
		channel->control_at = now;
		if (!channel->gone && channel_held_back(channel))
			channel->gone = channel_app_left(channel);
		else if (!channel->gone)
			attach_serve(channel);
	}
	if (atomic_load(&channel->resume.state) >= RESUME_DONE) {
		channel_resumed(channel, now);
		if (channel->local.is)
			return; /* its frames are the worker's */
		moved = true;
	}
	if (channel->link)
		moved |= channel_forward(channel, now);
	if (channel->link)
		moved |= channel_backward(channel, now);
	if (channel->link && channel_robbed(channel))
		channel_poison_robbed(channel);
	if (channel->link)
		channel_tell(channel);
	if (channel->link)
		channel_ping(channel, now);
	if (channel->link && stripes_broken(&channel->stripes) && !channel->broken_at)
		channel->broken_at = now;
	if (channel->segments.closing && outbound_empty(&channel->out) &&
		stripes_idle(&channel->stripes) && !channel->replies.in_payload &&
		!replies_wait(&channel->replies))
		segments_reap(&channel->segments);
	if (channel->gone)
		channel_farewell(channel, now);
	if (moved) {
		channel_count(channel);
		channel->work_at = now;
		return;
	}
	if (channel->finished || channel->stopping)
		return;
	if (channel->link && now - channel->work_at < channel_spin(channel)) {
		for (int i = 0; i < 32 && !ring_waiting(&channel->ring); i++)
			wait_relax();
		return;
	}
	channel_sleep(channel, now);
}

/* The worker hears BYE, the app why; or nobody hears anything, and both wait for the sidecar
 * that comes next. */
static void channel_stop(struct channel *channel)
{
	channel->left = channel->heirs && !channel->gone && !channel->ring.bye &&
			atomic_load(&channel->server->leaving) &&
			atomic_load(&channel->state) != CHANNEL_LOST;
	if (channel->left) {
		log_info("channel.left", "app=%d", channel->peer.pid);
		return;
	}
	if (channel->link && !channel->ring.bye && !channel->broken_at && !channel->local.is) {
		outbound_control(&channel->out, FRAME_BYE, channel->ring.last + 1);
		outbound_send(&channel->out, channel->link);
	}
	channel_lose(channel, STATUS_LOST, "the sidecar was stopped");
}

void channel_serve(struct channel *channel)
{
	uint64_t now = wait_now();

	channel->heard_at = channel->said_at = channel->work_at = channel->control_at = now;
	channel->out.timing = channel->replies.timing = &channel->timing;
	segment_guard(&channel->segments);
	while (!channel->finished && !channel->stopping)
		channel_turn(channel);
	if (channel->stopping)
		channel_stop(channel);
	if (!channel->local.is)
		channel_count(channel);
	segment_guard(NULL);
	log_info("channel.closed",
		"app=%d frames_sent=%llu bytes_sent=%llu frames_received=%llu "
		"bytes_received=%llu saved_sent=%llu saved_received=%llu",
		channel->peer.pid, (unsigned long long)channel->frames_sent,
		(unsigned long long)channel->bytes_sent,
		(unsigned long long)channel->frames_received,
		(unsigned long long)channel->bytes_received,
		(unsigned long long)piece_saved(&channel->pieces.sent),
		(unsigned long long)piece_saved(&channel->pieces.received));
}
