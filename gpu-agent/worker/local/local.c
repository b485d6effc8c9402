/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/worker/local/local_part.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "gpu-agent/worker/reply/park.h"
#include "gpu-agent/worker/reply/reply.h"
#include "gpu-agent/worker/worker_state.h"
#include "transport/answer.h"

#define GONE_NS (300 * LOCAL_MS) /* behind the program's end, for what it had published */

enum local_way {
	LOCAL_COPIED, /* through staging memory */
	LOCAL_LENT,
	LOCAL_WAITS, /* as much is lent as may be: what comes next waits, which costs less than
			a copy */
};

/* The program's pinned memory takes nothing of ours while the GPU reads it: only a quota bounds
 * the bytes. The arena is what the program has for all that is under way. */
static uint32_t local_lend_most(const struct worker *w, uint32_t segment)
{
	return segment && !w->quotas.most[QUOTA_INFLIGHT] ? UINT32_MAX : w->in.size;
}

/* The payload of the frame that was taken is lent where the GPU can read it, and nothing but a
 * copy does: what is looked at, is looked at in memory that the program cannot change. */
static enum local_way local_in_place(struct worker *w)
{
	struct local *l = &w->local;
	const struct ring_entry *e = &l->took;
	struct receiver *r = &w->receiver;
	struct local_segment *of;

	if (!e->bulk || e->bulk_bytes < LOCAL_LEND_LEAST || (!e->segment && !l->separate) ||
		!serve_marked(r->frame.op, SERVE_COPIED) || !l->segments.at[e->segment])
		return LOCAL_COPIED;
	of = local_ours(l->segments.at[e->segment]);
	/* While it waited its number may have become another's. */
	if (!of->registered || !local_holds(&of->segment, e->bulk))
		return LOCAL_COPIED;
	r->range = local_lend(&l->in, of, e->bulk_bytes, local_lend_most(w, e->segment),
		e->segment ? 0 : l->ring.taken);
	r->payload = (unsigned char *)e->bulk;
	return r->range ? LOCAL_LENT : LOCAL_WAITS;
}

/* --- the program ----------------------------------------------------------------------------
 */

static void local_violation(struct worker *w, const char *text)
{
	w->stats.errors++;
	worker_end(w, CUDA_ERROR_EXTERNAL_DEVICE, "the client broke the protocol: %s", text);
}

static void local_count(struct worker *w, enum local_count frames, uint64_t bytes)
{
	struct local *l = &w->local;

	l->counts[frames]++;
	l->counts[frames + 1] += bytes;
	atomic_store_explicit(
		frames == LOCAL_SENT ? &l->page->frames_sent : &l->page->frames_received,
		l->counts[frames], memory_order_relaxed);
	atomic_store_explicit(
		frames == LOCAL_SENT ? &l->page->bytes_sent : &l->page->bytes_received,
		l->counts[frames + 1], memory_order_relaxed);
}

/* Memory with a number that the worker does not know yet: the sidecar said it before the
 * program could use it. */
static int local_pop(struct worker *w, struct ring_entry *entry, struct error *error)
{
	struct local *l = &w->local;
	int ret = ring_pop(&l->ring, l->entry, entry, error);

	if (ret != -EPROTO)
		return ret;
	local_control(w);
	return w->end.ended ? 0 : ring_pop(&l->ring, l->entry, entry, error);
}

/* What was popped names memory by a number, which may be another's since: the sidecar said so
 * before the program could use it. False: the session is over. */
static bool local_name_again(struct worker *w)
{
	struct local *l = &w->local;
	struct ring_entry *e = &l->took;
	uint64_t offset =
		(uint64_t)((const unsigned char *)e->bulk -
			   (const unsigned char *)segments_out(&l->segments, e->segment, 0, 0));

	if (!local_news(l))
		return true;
	local_control(w);
	if (w->end.ended)
		return false;
	e->bulk = segments_out(&l->segments, e->segment, offset, e->bulk_bytes);
	if (!e->bulk)
		local_violation(w, "a payload in memory that is not there any more");
	return e->bulk;
}

/* Into pinned memory of our own. */
static enum local_way local_stage(struct worker *w, uint32_t payload)
{
	const struct ring_entry *e = &w->local.took;
	struct receiver *r = &w->receiver;

	r->range = staging_alloc(w, &w->in, payload, &r->payload);
	if (!r->range)
		return LOCAL_WAITS;
	memcpy(r->payload,
		e->bulk ? e->bulk : w->local.entry + sizeof(r->frame) + r->frame.body, payload);
	return LOCAL_COPIED;
}

/* False: the GPU is behind, and the ring waits. */
static bool local_payload(struct worker *w, uint32_t payload)
{
	enum local_way way = local_in_place(w);

	if (way == LOCAL_COPIED)
		way = local_stage(w, payload);
	w->receiver.payload_waits = way == LOCAL_WAITS;
	return way != LOCAL_WAITS;
}

bool local_receive(struct worker *w)
{
	struct local *l = &w->local;
	struct receiver *r = &w->receiver;
	uint32_t payload;

	if (l->again)
		return false; /* what is in the ring may name memory that was not said yet */
	if (!l->taken) {
		struct error error;
		int ret = local_pop(w, &l->took, &error);

		if (ret < 0)
			local_violation(w, error.text);
		if (ret <= 0)
			return false;
		if (l->took.bulk && l->took.segment && !local_name_again(w))
			return false;
		r->frame = l->took.header;
		l->taken = true;
		w->stats.bytes_received += sizeof(r->frame) + r->frame.length;
		local_count(w, LOCAL_SENT, sizeof(r->frame) + r->frame.length);
	}
	payload = r->frame.length - r->frame.body;
	r->payload_waits = false;
	if (payload && !local_payload(w, payload))
		return false;
	l->taken = false;
	r->payload_missing = r->payload_stripe = r->fill = 0;
	r->have_frame = true;
	return true;
}

bool local_room(const struct worker *w)
{
	const struct local *l = &w->local;
	uint64_t head = atomic_load_explicit(&l->page->upcall_head, memory_order_acquire);

	/* One that cannot be is found when it is used. */
	return l->upcall_tail - head != CHANNEL_UPCALLS;
}

static int local_deliver(struct worker *w, const struct frame_header *h, const void *body,
	uint32_t n, uint32_t payload, struct error *error)
{
	struct local *l = &w->local;
	struct frame_update update;
	struct frame_upcall upcall;
	uint32_t number = (uint32_t)l->counts[LOCAL_RECEIVED] + 1;

	switch (h->kind) {
	case FRAME_REPLY:
		if (!ring_waits(&l->ring, h->tag))
			return error_set(error, EPROTO, "an answer to no call");
		ring_answered(&l->ring, h->tag);
		answer_slot(&l->slots[h->tag], h, body, n, payload);
		return 0;
	case FRAME_UPDATE:
		memcpy(&update, body, sizeof(update));
		return answer_update(l->page, l->counters, &update, error);
	case FRAME_UPCALL:
		memcpy(&upcall, body, sizeof(upcall));
		return answer_upcall(
			l->page, l->upcalls, &l->upcall_tail, number, &upcall, error);
	default: return 0; /* ACK and DATA: what they say is said elsewhere */
	}
}

static void local_pong(struct worker *w)
{
	struct local_message pong = {.what = LOCAL_PONG};

	memcpy(pong.counts, w->local.counts, sizeof(pong.counts));
	(void)!local_say(w->link, &pong, NULL, 0); /* the next one comes */
}

static void local_finish(struct worker *w, struct frame_header *h, const void *body, uint32_t n,
	uint32_t payload)
{
	struct local *l = &w->local;
	struct error error = {0};
	int ret;

	if (h->kind == FRAME_PING || h->kind == FRAME_PONG) {
		local_pong(w);
		return;
	}
	if (h->kind == FRAME_LOST || l->broken)
		return; /* local_end says it */
	local_count(w, LOCAL_RECEIVED, sizeof(*h) + n + payload);
	ret = local_deliver(w, h, body, n, payload, &error);
	if (!ret)
		ret = ring_acknowledge(&l->ring, h->seq);
	local_captured(w);
	atomic_store_explicit(
		&w->sender.sent_bytes, l->counts[LOCAL_RECEIVED_BYTES], memory_order_relaxed);
	if (ret) {
		l->broken = true;
		local_violation(w, error.text[0] ? error.text : "its upcalls");
	}
}

void local_reply(struct worker *w, struct frame_header *header, const void *body, uint32_t n)
{
	header->seq = w->sender.seq;
	local_finish(w, header, body, n, 0);
}

void local_reply_payload(struct worker *w, struct frame_header *header,
	const struct frame_destination *destination, const void *bytes, uint32_t n,
	struct staging_range *range)
{
	void *to = local_in(w, destination, n);

	header->seq = w->sender.seq;
	if (to && to != bytes && !w->local.broken)
		memcpy(to, bytes, n);
	if (range)
		staging_done(range);
	if (to)
		local_finish(w, header, NULL, 0, n);
	else
		local_violation(w, "a place for an answer that it does not have");
}

/* --- the sidecar, and the one after it -----------------------------------------------------
 */

void local_resumed(struct worker *w)
{
	local_hearing_fini(&w->local.hearing);
	w->local.again = true;
	w->local.gone_at = 0;
}

/* The same memory, and another doorbell. */
static void local_attach_again(struct worker *w, int fds[LOCAL_FDS])
{
	const struct local_message answer = {.what = LOCAL_ATTACHED, .size = FRAME_LENT_MAX};
	struct local *l = &w->local;

	if (!l->again || !local_same(local_ours(l->segments.at[0]), fds[0]) || fds[1] < 0) {
		local_violation(w, "it brings other memory than the session has");
		return;
	}
	close(l->doorbell);
	l->doorbell = fds[1];
	fds[1] = -1;
	l->named = 0;
	for (uint32_t i = 1; i <= SEGMENTS_MAX; i++)
		if (l->segments.at[i])
			local_ours(l->segments.at[i])->kept = false;
	if (local_say(w->link, &answer, NULL, 0))
		park_or_end(w, CUDA_ERROR_EXTERNAL_DEVICE, "the client takes no answers");
}

static void local_held(struct worker *w)
{
	struct segments *all = &w->local.segments;

	w->local.again = false;

	for (uint32_t i = 1; i <= SEGMENTS_MAX; i++) {
		if (!all->at[i] || local_ours(all->at[i])->kept)
			continue;
		local_ours(all->at[i])->quiet = true;
		segments_remove(all, i);
	}
	local_close(w);
}

/* ----------------------------------------------------------------------------
 */

static void local_hear_one(struct worker *w, const struct local_message *m, int fds[LOCAL_FDS])
{
	w->stats.bytes_received += sizeof(*m);
	if (m->what == LOCAL_PIN || m->what == LOCAL_UNPIN || m->what == LOCAL_HELD)
		w->local.named = m->counts[0];
	switch (m->what) {
	case LOCAL_PIN: local_memory_pin(w, m, fds[0]); break;
	case LOCAL_UNPIN: local_memory_unpin(w, m); break;
	case LOCAL_GONE: w->local.gone_at = wait_now(); break;
	case LOCAL_PING: local_pong(w); break;
	case LOCAL_ATTACH: local_attach_again(w, fds); break;
	case LOCAL_HELD: local_held(w); break;
	default: local_violation(w, "an unknown message"); break;
	}
	for (int i = 0; i < LOCAL_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

void local_control(struct worker *w)
{
	struct local *l = &w->local;

	while (!w->end.ended && !park_is(w)) {
		struct local_message m;
		int fds[LOCAL_FDS];
		int ret = local_hear(w->link, &l->hearing, &m, fds);

		if (!ret)
			break;
		if (ret > 0)
			local_hear_one(w, &m, fds);
		else if (ret == -EPROTO)
			local_violation(w, "what the sidecar says is no message");
		else
			park_or_end(w, CUDA_SUCCESS, "the client is gone");
		if (ret < 0)
			break;
	}
	if (l->segments.closing)
		local_close(w);
	if (segment_broken() && !l->broken) {
		l->broken = true;
		local_violation(w, "it took shared memory away");
	}
	if (l->gone_at && (!ring_waiting(&l->ring) || wait_now() - l->gone_at >= GONE_NS))
		worker_end(w, CUDA_SUCCESS, "the client is gone");
}

void local_fds(const struct worker *w, struct pollfd fds[2])
{
	struct pollfd link[2];

	link_fds(w->link, link, 0);
	fds[0] = (struct pollfd){
		.fd = w->local.again ? -1 : w->local.doorbell, .events = POLLIN};
	fds[1] = (struct pollfd){.fd = link[0].fd, .events = POLLIN};
}

bool local_doze(struct worker *w)
{
	atomic_store_explicit(&w->local.page->idle, 1, memory_order_relaxed);
	wait_fence();
	return !ring_waiting(&w->local.ring);
}

void local_awake(struct worker *w, bool rung)
{
	uint64_t rings;

	atomic_store_explicit(&w->local.page->idle, 0, memory_order_relaxed);
	if (rung && read(w->local.doorbell, &rings, sizeof(rings)) < 0)
		rings = 0; /* the ring is looked at anyway */
}

void local_end(struct worker *w)
{
	struct local_message end = {.what = LOCAL_END, .status = w->end.status};

	memcpy(end.counts, w->local.counts, sizeof(end.counts));
	snprintf(end.text, sizeof(end.text), "%.160s", w->end.text);
	(void)!local_say(w->link, &end, NULL, 0); /* else the end of the link says it */
}
