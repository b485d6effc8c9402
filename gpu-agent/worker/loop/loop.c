/* SPDX-License-Identifier: Apache-2.0
 *
 * The turn: take frames, serve them, look at the GPU, answer; spin a little and then sleep
 * where there was nothing to do.
 */
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "common/log.h"
#include "gpu-agent/probe/library_search.h"
#include "gpu-agent/worker/loop/beside.h"
#include "gpu-agent/worker/loop/beside_call.h"
#include "gpu-agent/worker/loop/closing.h"
#include "gpu-agent/worker/direct/direct.h"
#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/loop/fence.h"
#include "gpu-agent/worker/loop/issued.h"
#include "gpu-agent/worker/limits/limits.h"
#include "gpu-agent/worker/local/local.h"
#include "gpu-agent/worker/loop/loop.h"
#include "gpu-agent/worker/loop/loop_input.h"
#include "gpu-agent/worker/limits/metering.h"
#include "gpu-agent/worker/profiler.h"
#include "gpu-agent/worker/reply/output.h"
#include "gpu-agent/worker/reply/park.h"
#include "gpu-agent/worker/reply/reply.h"
#include "gpu-agent/worker/staging/staging.h"
#include "gpu-agent/worker/loop/stash.h"
#include "gpu-agent/worker/staging/stripe.h"
#include "gpu-agent/worker/timing.h"
#include "gpu-agent/worker/loop/watchdog.h"
#include "gpu-agent/worker/worker_state.h"

/* Frames a turn serves before it looks at the GPU and the socket again. */
#define TURN_FRAMES 64
#define ASK_NS 4000000000ull	  /* of silence before a PING */
#define SILENCE_NS 15000000000ull /* the client's, until it counts as gone */

bool loop_marked(const struct serve_entry *entry, const struct frame_header *h, uint16_t mark)
{
	return entry && entry->flags & mark &&
	       (h->kind == FRAME_CALL || !(entry->flags & SERVE_FIRST));
}

/* The wait is over when the answer is there; a refusal is an answer too. `aside`: no CUDA call
 * of the app's. */
static void loop_answer(struct worker *w, struct request *r, bool aside, CUresult status)
{
	if (r->refused && !status)
		status = r->refused;
	if (status)
		worker_note(w, status);
	if (r->header.kind == FRAME_CALL) {
		if (!r->later || status)
			(aside ? reply_aside : reply_send)(
				w, r->header.tag, status, r->answer, r->answer_bytes);
	} else if (status && !w->deferred) {
		w->deferred = status;
	}
}

/* A serve function that puts bytes for the host on their way needs staging for them. More than
 * there can be: SERVE_NO_STAGING, or it is refused. */
static uint64_t loop_bytes_out(const struct worker *w)
{
	return serve_stages(w->receiver.frame.op, w->receiver.body, w->receiver.frame.body);
}

bool loop_stages(const struct worker *w)
{
	return loop_bytes_out(w) <= worker_payload_most(w);
}

bool loop_has_staging(struct worker *w)
{
	return !loop_stages(w) || staging_fits(w, &w->out, (uint32_t)loop_bytes_out(w));
}

/* reply_room(), of which each frame asks twice, in line where that is nearly nothing. */
static inline bool loop_room(const struct worker *w)
{
	return w->local.is ? reply_room(w) : send_window_room(&w->sender.window);
}

__attribute__((cold)) static void loop_failed(struct worker *w, const struct serve_entry *entry,
	const struct request *r, CUresult status)
{
	/* A library's statuses are its own. */
	if (status && r->header.op < CLASS_LIBRARIES)
		worker_last_error(w, status, entry->name);
	log_debug("call.failed", "call=%s status=%d seq=%llu", entry->name,
		(int)(status ? status : r->refused), (unsigned long long)r->header.seq);
}

void loop_serve_frame(struct worker *w)
{
	static _Alignas(16) unsigned char answer[ANSWER_MAX];
	const struct serve_entry *entry = serve_find(w->receiver.frame.op);
	struct request r = {
		.header = w->receiver.frame,
		.body = w->receiver.body,
		.payload = w->receiver.payload,
		.payload_bytes = w->receiver.frame.length - w->receiver.frame.body,
		.fill = w->receiver.fill,
		.answer = answer,
	};
	CUresult status = CUDA_SUCCESS;
	const struct profiler *profiler;
	struct timing timing;

	if (!entry) {
		log_info("call.unknown", "op=%u", (unsigned)w->receiver.frame.op);
		status = CUDA_ERROR_NOT_SUPPORTED;
	} else if (r.header.body < entry->body_bytes || entry->reply_bytes > ANSWER_MAX ||
		   (r.payload_bytes && !(entry->flags & SERVE_PAYLOAD)) ||
		   (r.header.kind == FRAME_POST && !(entry->flags & SERVE_POST))) {
		status = CUDA_ERROR_INVALID_VALUE;
		w->stats.errors++;
	} else if (r.header.context && !(entry->flags & SERVE_NO_CONTEXT) &&
		   (r.header.context >= CONTEXT_MAX || !w->contexts[r.header.context])) {
		status = CUDA_ERROR_INVALID_CONTEXT;
	} else {
		if (r.header.context && !(entry->flags & SERVE_NO_CONTEXT))
			status = worker_use(w, r.header.context);
		w->mirror.unwritten &= MIRROR_OP(r.header.op);
		if (entry->reply_bytes)
			memset(answer, 0, entry->reply_bytes);
		r.answer_bytes = entry->reply_bytes;
		if (!status) {
			if (loop_marked(entry, &r.header, SERVE_SLOW))
				reply_flush(w);
			timing = timing_begin(w, &r.header);
			watchdog_enter(w);
			profiler = profiler_begin(w->profiler, r.header.seq);
			status = entry->serve(w, &r);
			profiler_end(profiler);
			watchdog_leave(w);
			timing_end(w, &timing);
		}
		if (status || r.refused)
			loop_failed(w, entry, &r, status);
	}
	loop_answer(w, &r, entry && entry->flags & SERVE_ASIDE, status);
}

void loop_range_done(struct worker *w)
{
	if (w->receiver.range && !w->receiver.range->event)
		staging_done(w->receiver.range);
	w->receiver.range = NULL;
}

static void loop_frame_done(struct worker *w)
{
	uint32_t payload = w->receiver.frame.length - w->receiver.frame.body;

	loop_range_done(w);
	w->receiver.have_frame = false;
	w->receiver.small = !w->receiver.payload_stripe && payload > RECEIVE_BYTES / 4;
	w->receiver.payload_stripe = 0;
}

/* A call that waits in the driver for all streams, or for room behind one, or may: some of them
 * may wait for another agent, which comes through the loop, or for another process. What that
 * depends on came before the frame. And no stream begins to wait so while a call beside the
 * loop may be there: the driver holds a lock meanwhile, which the loop wants. Behind a fault
 * nothing is waited for: the call may give up what copies are from or to. */
static bool loop_waits_for_others(struct worker *w, const struct serve_entry *entry)
{
	if (entry && entry->flags & SERVE_HOLDS && beside_outside(w))
		return true;
	if (!(w->direct && direct_busy(w)) && !(w->events && ipc_event_busy(w)))
		return false;
	if (!loop_marked(entry, &w->receiver.frame, SERVE_WAITS | SERVE_SLOW | SERVE_IDLES) &&
		!launch_first(w) && !direct_makes(w) && !direct_deep(w))
		return false;
	if (!w->sticky)
		return true;
	direct_give_up(w);
	ipc_event_give_up(w);
	return false;
}

/* Serves the complete frame of a call, or keeps it. false: neither can be done now. */
static bool loop_call(struct worker *w, bool behind)
{
	const struct serve_entry *entry = serve_find(w->receiver.frame.op);
	const uint16_t flags = entry ? entry->flags : 0;
	const bool some = w->streams.deep || w->fences.count || w->metering.stopped;

	if (flags & SERVE_OVERTAKING && serve_overtaking(w->receiver.frame.op, w->receiver.body,
						w->receiver.frame.body) == SERVE_OVERTAKES) {
		loop_serve_frame(w);
		return true;
	}
	if (behind && !stash_overtakes(w))
		return stash_keep(w);
	if ((!behind && some && limits_full(w)) || loop_waits_for_others(w, entry) ||
		!loop_room(w) || (flags & SERVE_STAGES && !loop_has_staging(w)))
		return false;
	loop_serve_frame(w);
	if (w->callbacks.outstanding || w->kept.issued.named)
		issued_frame(w);
	return true;
}

/* Deals with the complete frame. false: it has to wait. */
static bool loop_handle(struct worker *w)
{
	bool behind = (w->kept.stash.used || w->kept.parked.used || w->callbacks.outstanding) &&
		      stash_behind(w);

	if (!behind && !loop_room(w))
		return false;
	switch (w->receiver.frame.kind) {
	case FRAME_PING: reply_plain(w, FRAME_PONG, CUDA_SUCCESS, NULL); break;
	case FRAME_PONG:
	case FRAME_TAKEN: break;
	case FRAME_BYE: worker_end(w, CUDA_SUCCESS, "the client ended it"); break;
	default:
		if (!loop_call(w, behind))
			return false;
		w->receiver.taken = w->receiver.frame.seq;
		w->receiver.unacked_bytes +=
			(uint32_t)sizeof(w->receiver.frame) + w->receiver.frame.length;
		w->stats.frames_received++;
	}
	loop_frame_done(w);
	return true;
}

static bool loop_receive(struct worker *w)
{
	bool progress = false, filled = false;

	for (int n = 0; n < TURN_FRAMES && !w->end.ended && !w->park.wanted && !park_is(w);
		n++) {
		while (w->receiver.have_frame && w->receiver.payload_missing) {
			uint32_t payload = w->receiver.frame.length - w->receiver.frame.body,
				 got;

			if (w->receiver.payload_stripe) {
				if (!loop_stripe_receive(w))
					return progress;
				progress = true;
				continue;
			}
			if (!loop_read(w,
				    w->receiver.payload + payload - w->receiver.payload_missing,
				    w->receiver.payload_missing, &got))
				return progress;
			w->receiver.payload_missing -= got;
			progress = true;
		}
		if (w->receiver.have_frame) {
			if (!loop_handle(w) && !loop_look_ahead(w))
				return progress;
			progress = true;
			continue;
		}
		if (w->local.is ? local_receive(w) : loop_parse(w))
			continue;
		if (w->local.is || w->end.ended || filled || !loop_fill(w))
			return progress;
		filled = progress = true;
	}
	return progress;
}

static void loop_tell_stats(struct worker *w, uint64_t now)
{
	enum { SECOND = 1000000000 };

	if (now - w->stats_at < SECOND)
		return;
	w->stats_at = now;
	nvml_sample(w, now);
	limits_look(w);
	stripes_stats(w);
	w->stats.version = HANDOFF_VERSION;
	w->stats.what = HANDOFF_STATS;
	w->stats.libraries = library_used();
	w->stats.peers = direct_open_count(w);
	w->stats.device_count = w->device_count;
	for (uint32_t i = 0; i < w->device_count; i++)
		w->stats.devices[i].used = w->devices[i].used;
	metering_stats(w);
	/* A front that does not read loses a second's figures, no more. */
	(void)!send(w->handoff, &w->stats, sizeof(w->stats), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* A PING may wait behind a frame that has to wait for room: says by itself that it lives.
 */
static void loop_tell_alive(struct worker *w, uint64_t now)
{
	enum { SECOND = 1000000000 };
	bool behind = w->receiver.have_frame || w->receiver.at < w->receiver.end;

	if (w->stats.frames_sent != w->liveness.alive_frames || !behind) {
		w->liveness.alive_frames = w->stats.frames_sent;
		w->liveness.alive_at = now;
	} else if (now - w->liveness.alive_at >= SECOND && reply_room(w)) {
		reply_plain(w, FRAME_PONG, CUDA_SUCCESS, NULL);
	}
}

/* A sidecar that runs says something every 3 s, and answers a PING. One that was stopped keeps
 * its connections open, and the session its memory. */
static void loop_listen(struct worker *w, uint64_t now)
{
	bool behind = (w->receiver.have_frame && !w->receiver.payload_missing) ||
		      w->receiver.payload_waits;

	if (w->stats.bytes_received != w->liveness.heard_bytes || behind ||
		!w->liveness.heard_at) {
		w->liveness.heard_bytes = w->stats.bytes_received;
		w->liveness.heard_at = w->liveness.asked_at = now;
	} else if (now - w->liveness.heard_at >= SILENCE_NS) {
		park_or_end(w, CUDA_ERROR_EXTERNAL_DEVICE, "the client says nothing any more");
	} else if (now - w->liveness.asked_at >= ASK_NS && reply_room(w)) {
		w->liveness.asked_at = now;
		reply_plain(w, FRAME_PING, CUDA_SUCCESS, NULL);
	}
}

/* Sleeps until something can have happened. What the GPU does wakes nobody, nor do the threads
 * that send: while one is awaited, the naps grow from 20 us to 1 ms, so that a long kernel
 * costs little of a core. */
static void loop_sleep(struct worker *w, uint64_t idle_ns)
{
	struct pollfd fds[5 + 2 * DIRECT_LINKS] = {0};
	struct timespec timeout = {.tv_sec = 1};
	uint64_t wake = UINT64_MAX, now = wait_now();
	bool bell;
	bool gpu = w->fences.first || w->kept.stash.used || w->kept.parked.used ||
		   w->in.count || stripes_busy(w) || stripes_sending(w) || w->mirror.tag >= 0 ||
		   local_lends(&w->local) || metering_watches(w) || direct_watches(w) ||
		   ipc_event_busy(w);
	struct stripe *stripe = w->receiver.have_frame && w->receiver.payload_missing &&
						w->receiver.payload_stripe
					? w->stripes.at[w->receiver.payload_stripe]
					: NULL;

	if (park_is(w))
		fds[0].fd = fds[1].fd = -1;
	else if (w->local.is)
		local_fds(w, fds);
	else
		link_fds(w->link, fds, reply_waits(w));
	if ((w->receiver.have_frame && !w->receiver.payload_missing) ||
		w->receiver.payload_waits) {
		/* It waits for room, not for bytes; or for the client's count among them. */
		if (!loop_awaits_count(w))
			fds[0].fd = -1;
		if (w->park.grace && send_window_gone(&w->sender.window))
			wake = now + RELIEVE_NS;
	} else if (stripe)
		fds[0] = (struct pollfd){.fd = stripe->wake, .events = POLLIN};
	else if (!park_is(w) && !w->local.is)
		wake = link_wake_at(w->link);
	fds[2].fd = w->handoff;
	fds[2].events = POLLIN;
	fds[3].fd = w->callbacks.wake;
	fds[3].events = POLLIN;
	fds[4].fd = beside_wake();
	fds[4].events = POLLIN;
	if (gpu) {
		uint64_t nap = idle_ns / 8,
			 longest = w->metering.on ? METERING_NAP_NS : 1000000;

		timeout.tv_sec = 0;
		timeout.tv_nsec = nap < 20000	  ? 20000
				  : nap > longest ? (long)longest
						  : (long)nap;
	}
	if (w->receiver.taken != w->receiver.acked && reply_room(w) && wake > now + ACK_IDLE_NS)
		wake = now + ACK_IDLE_NS;
	if (wake <= now)
		return;
	if (wake - now < (uint64_t)timeout.tv_sec * 1000000000u + (uint64_t)timeout.tv_nsec) {
		timeout.tv_sec = 0;
		timeout.tv_nsec = (long)(wake - now);
	}
	bell = w->local.is && fds[0].fd >= 0;
	if ((!stripe || stripe_sleep(stripe)) && (!bell || local_doze(w)))
		ppoll(fds, 5 + direct_fds(w, fds + 5), &timeout, NULL);
	if (stripe)
		stripe_awake(stripe);
	if (bell)
		local_awake(w, fds[0].revents);
	if (w->local.is && fds[1].revents)
		local_control(w);
	if (fds[2].revents)
		worker_control(w);
	if (fds[4].revents)
		beside_heard();
}

/* What asks the driver, in each turn. */
static bool loop_ask_driver(struct worker *w)
{
	bool progress = false;

	if (w->kept.closings)
		closing_poll(w); /* behind a fault, or a call beside the loop */
	progress |= fence_poll(w);
	if (local_lends(&w->local) || w->local.segments.closing)
		progress |= local_reap(w);
	if (w->mirror.tag >= 0)
		progress |= mirror_poll(w);
	if (w->metering.on)
		progress |= metering_poll(w);
	if (w->stripes.count)
		stripes_reap(w);
	if (w->direct)
		progress |= direct_turn(w);
	if (w->events)
		progress |= ipc_event_turn(w);
	return progress;
}

void loop_run(struct worker *w)
{
	uint64_t idle_since = wait_now(), now, looked = idle_since;

	watchdog_start(w);
	while (!w->end.ended) {
		bool progress = stash_serve(w);

		progress |= loop_receive(w);
		watchdog_enter(w);
		if (!stash_driver_waits(w))
			progress |= loop_ask_driver(w);
		stash_tell(w);
		progress |= host_function_poll(w);
		progress |= beside_poll(w);
		if (w->metering.asked)
			worker_control(w); /* a loop that never sleeps hears it, too */
		now = wait_now();
		if (!stash_driver_waits(w))
			metering_look(w, now);
		watchdog_leave(w);
		if (w->park.grace) {
			progress |= reply_relieve(w, now);
			park_turn(w, now);
		}
		/* Without room the frames that go out later say it. */
		if (reply_room(w) &&
			(w->receiver.taken - w->receiver.acked >= ACK_FRAMES ||
				w->receiver.unacked_bytes >= ACK_BYTES ||
				(!progress && w->receiver.taken != w->receiver.acked &&
					now - idle_since >= ACK_IDLE_NS)))
			reply_plain(w, FRAME_ACK, CUDA_SUCCESS, NULL);
		progress |= reply_flush(w);

		if (now - looked > 10000000) { /* 10 ms: also while it never sleeps */
			watchdog_enter(w);
			worker_control(w);
			if (w->local.is)
				local_control(w);
			loop_tell_stats(w, now);
			if (!park_is(w)) {
				loop_tell_alive(w, now);
				loop_listen(w, now);
			}
			if (!stash_driver_waits(w))
				staging_reap(w, &w->in);
			if (stripe_send_broken(w))
				park_or_end(w, CUDA_SUCCESS, "a stripe to the client broke");
			if (w->fences.first)
				output_limit(w);
			watchdog_leave(w);
			looked = now;
		}
		if (progress) {
			idle_since = now;
		} else if (now - idle_since <
			   ((w->fences.first || w->mirror.tag >= 0) && w->spin_ns
					   ? WAIT_CALL_NS
					   : w->spin_ns)) {
			wait_relax();
		} else {
			loop_sleep(w, now - idle_since);
		}
	}
	metering_stats(w);
	/* What is on its way out goes out: the last answers and why it ended. */
	if (w->local.is)
		local_end(w);
	else if (w->end.status)
		reply_plain(w, FRAME_LOST, w->end.status, w->end.text);
	for (int i = 0; i < 50 && (reply_waits(w) || stripes_sending(w)) && !park_is(w); i++) {
		struct pollfd fds[2];

		reply_flush(w);
		link_fds(w->link, fds, 1);
		poll(fds + 1, reply_waits(w), reply_waits(w) || stripes_sending(w) ? 10 : 0);
	}
}
