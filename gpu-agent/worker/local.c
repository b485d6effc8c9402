/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/worker/local.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "gpu-agent/worker/park.h"
#include "gpu-agent/worker/reply.h"
#include "gpu-agent/worker/worker_state.h"
#include "transport/answer.h"

#define MS 1000000ull
#define ATTACH_NS (10000 * MS)	/* for the sidecar to bring the memory */
#define GONE_NS (300 * MS)	/* behind the program's end, for what it had published */
#define LOCAL_LEND_LEAST 32768u /* bytes: a smaller payload is copied sooner than lent */

/* --- memory --------------------------------------------------------------------------------
 */

/* Takes no descriptor. 0, or -errno with *error. */
static int local_map(
	int fd, const struct local_message *m, struct segment **segment, struct error *error)
{
	struct local_segment *made;
	int ret = local_memory(fd, m->size, m->sealed, error);
	struct stat file;

	if (ret < 0)
		return ret;
	made = fstat(fd, &file) ? NULL : calloc(1, sizeof(*made));
	if (!made)
		return error_set(error, ENOMEM, "shared memory");
	made->device = file.st_dev;
	made->inode = file.st_ino;
	made->kept = true;
	made->segment.base = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (made->segment.base == MAP_FAILED) {
		free(made);
		return error_set(error, errno, "mapping shared memory of %llu MiB",
			(unsigned long long)(m->size >> 20));
	}
	made->segment.size = m->size;
	made->segment.fd = -1;
	*segment = &made->segment;
	return 0;
}

static struct local_segment *local_ours(struct segment *segment)
{
	return (struct local_segment *)segment;
}

/* Where the driver cannot, its bytes go through staging memory. */
static void local_register_one(struct worker *w, struct segment *segment)
{
	CUresult status = CUDA_ERROR_NOT_SUPPORTED;

	worker_use(w, CONTEXT_PRIMARY(0));
	if (w->cuda.cuMemHostRegister_v2 && w->cuda.cuMemHostUnregister)
		status = w->cuda.cuMemHostRegister_v2(
			segment->base, segment->size, CU_MEMHOSTREGISTER_PORTABLE);
	local_ours(segment)->registered = !status;
	if (status)
		log_info("local.register", "bytes=%zu status=%d", segment->size, (int)status);
}

void local_register(struct worker *w)
{
	local_register_one(w, w->local.segments.at[0]);
}

/* The driver waits for what it still does there: so nothing does. */
static void local_unmap(struct worker *w, struct segment *segment)
{
	if (local_ours(segment)->registered) {
		worker_use(w, CONTEXT_PRIMARY(0));
		w->cuda.cuMemHostUnregister(segment->base);
	}
	munmap(segment->base, segment->size);
	free(local_ours(segment));
}

static bool local_size(uint64_t size, uint64_t least)
{
	return size >= least && size <= (1ull << 40) && !(size & (size - 1));
}

/* The parts of segment 0, as the sidecar says how long they are; the page is the program's. */
static int local_parts(struct worker *w, const struct local_message *m, struct error *error)
{
	struct local *l = &w->local;
	unsigned char *base = l->segments.at[0]->base;
	struct channel_page layout = {0};
	int ret;

	if (!local_size(m->ring, 4u * (FRAME_BODY_MAX + 64u)) ||
		!local_size(m->arena, 2u * FRAME_CHUNK) || m->bounce < FRAME_CHUNK ||
		m->bounce > 1ull << 40 ||
		segments_layout(&layout, m->ring, m->arena, m->bounce) > m->size)
		return error_set(error, EPROTO,
			"shared memory of %llu bytes: ring, arena and bounce buffer do not fit",
			(unsigned long long)m->size);
	l->segments.arena = layout.arena;
	l->segments.arena_size = layout.arena_size;
	l->segments.bounce = layout.bounce;
	l->segments.bounce_size = layout.bounce_size;
	l->page = (struct channel_page *)base;
	l->slots = (struct channel_slot *)(base + layout.slots);
	l->counters = (_Atomic uint64_t *)(base + layout.counters);
	l->upcalls = (struct channel_upcall *)(base + layout.upcalls);
	l->separate = m->captured == 1;
	l->in.at = calloc(LOCAL_LOANS, sizeof(*l->in.at));
	l->out.at = calloc(LOCAL_LOANS, sizeof(*l->out.at));
	l->entry = aligned_alloc(64, (RING_ENTRY_MAX + 63) & ~63ul);
	ret = ring_consumer_init(
		&l->ring, l->page, base + layout.ring, layout.ring_size, &l->segments);
	if (ret < 0 || !l->entry || !l->in.at || !l->out.at)
		return error_set(error, ENOMEM, "ring");
	free(w->receiver.body);
	w->receiver.body = l->entry + sizeof(struct frame_header);
	return 0;
}

/* The first message, ATTACH. 0, or -errno with *error. */
static int local_first(
	struct worker *w, struct local_message *m, int fds[LOCAL_FDS], struct error *error)
{
	uint64_t deadline = wait_now() + ATTACH_NS, now;
	int ret;

	while (!(ret = local_hear(w->link, &w->local.hearing, m, fds))) {
		struct pollfd readable[2];

		now = wait_now();
		if (now >= deadline)
			return error_set(error, ETIMEDOUT, "shared memory: none came");
		link_fds(w->link, readable, 0);
		poll(readable, 1, (int)((deadline - now) / MS) + 1);
	}
	if (ret > 0 && m->what != LOCAL_ATTACH)
		ret = -EPROTO;
	return ret < 0 ? error_set(error, -ret, "shared memory: what came was none") : 0;
}

static int local_attach(struct worker *w, struct error *error)
{
	struct local *l = &w->local;
	struct local_message m = {0};
	int fds[LOCAL_FDS] = {-1, -1};
	cleanup_close int memory = -1, bell = -1;
	int ret = local_first(w, &m, fds, error);

	memory = fds[0];
	bell = fds[1];
	if (!ret && bell < 0)
		ret = error_set(error, EPROTO, "shared memory: no doorbell came");
	if (!ret)
		ret = local_map(memory, &m, &l->segments.at[0], error);
	if (!ret)
		ret = local_parts(w, &m, error);
	if (!ret)
		l->doorbell = take_fd(&bell);
	return ret;
}

int local_open(struct worker *w, struct error *error)
{
	struct local_message answer = {.what = LOCAL_ATTACHED};
	int ret;

	w->local.is = true;
	w->local.doorbell = -1;
	local_hearing_init(&w->local.hearing);
	ret = local_attach(w, error);
	if (ret < 0) {
		answer.what = LOCAL_END;
		answer.status = CUDA_ERROR_SYSTEM_NOT_READY;
		snprintf(answer.text, sizeof(answer.text), "%.160s", error->text);
		local_say(w->link, &answer, NULL, 0);
		return ret;
	}
	segment_guard_install();
	segment_guard(&w->local.segments);
	ret = local_say(w->link, &answer, NULL, 0);
	return ret < 0 ? error_set(error, -ret, "shared memory: the client is gone") : 0;
}

static bool local_same(const struct local_segment *segment, int fd)
{
	struct stat file;

	return fd >= 0 && !fstat(fd, &file) && file.st_dev == segment->device &&
	       file.st_ino == segment->inode;
}

/* Where the session is resumed: the sidecar has it still, or another one in its place. True: it
 * is there already. */
static bool local_kept(struct worker *w, const struct local_message *m, int fd)
{
	struct segments *all = &w->local.segments;
	struct local_segment *old =
		m->segment && m->segment <= SEGMENTS_MAX && all->at[m->segment]
			? local_ours(all->at[m->segment])
			: NULL;

	if (!old || old->kept)
		return false;
	old->kept = local_same(old, fd);
	old->quiet = !old->kept;
	if (!old->kept)
		segments_remove(all, m->segment);
	return old->kept;
}

static void local_pin(struct worker *w, const struct local_message *m, int fd)
{
	struct error error = {0};
	struct segment *segment = NULL;

	if (local_kept(w, m, fd))
		return;
	if (local_map(fd, m, &segment, &error)) {
		worker_end(w, CUDA_ERROR_EXTERNAL_DEVICE, "%s", error.text);
	} else if (segments_put(&w->local.segments, m->segment, segment)) {
		local_unmap(w, segment);
		worker_end(w, CUDA_ERROR_EXTERNAL_DEVICE,
			"the client broke the protocol: pinned memory as number %u",
			m->segment);
	} else {
		local_register_one(w, segment);
	}
}

static bool local_holds(const struct segment *segment, const void *bytes)
{
	const unsigned char *at = bytes;

	return at >= segment->base && at < segment->base + segment->size;
}

/* The GPU uses it, or a frame that waits for room does. */
static bool local_used(const struct worker *w, struct segment *segment)
{
	const struct local *l = &w->local;

	return local_ours(segment)->loans || (l->taken && local_holds(segment, l->took.bulk));
}

/* What was given back goes once nothing uses it. */
static void local_close(struct worker *w)
{
	const struct local_message answer = {.what = LOCAL_UNPINNED};
	struct segment **at = &w->local.segments.closing;

	while (*at && !w->ended) {
		struct segment *segment = *at;
		bool quiet = local_ours(segment)->quiet;

		if (local_used(w, segment)) {
			at = &segment->next;
			continue;
		}
		*at = segment->next;
		local_unmap(w, segment);
		if (!quiet && !park_is(w) && local_say(w->link, &answer, NULL, 0))
			park_or_end(
				w, CUDA_ERROR_EXTERNAL_DEVICE, "the client takes no answers");
	}
}

static void local_unpin(struct worker *w, const struct local_message *m)
{
	if (segments_remove(&w->local.segments, m->segment))
		worker_end(w, CUDA_ERROR_EXTERNAL_DEVICE,
			"the client broke the protocol: it gives back what it does not have");
	else
		local_close(w);
}

/* --- loans -----------------------------------------------------------------------------------
 */

/* NULL: too many are out, or they would be more bytes than staging memory has: the GPU is
 * behind.
 */
static struct staging_range *local_lend(struct local_loans *loans, struct local_segment *of,
	uint32_t n, uint32_t most, uint64_t end)
{
	struct local_loan *loan = &loans->at[(loans->first + loans->count) % LOCAL_LOANS];

	if (loans->count == LOCAL_LOANS || loans->bytes + n > most)
		return NULL;
	*loan = (struct local_loan){.of = of, .end = end, .bytes = n};
	atomic_store_explicit(&loan->range.held, STAGING_FRAME, memory_order_relaxed);
	loans->count++;
	loans->bytes += n;
	of->loans++;
	return &loan->range;
}

static bool local_reap_some(struct worker *w, struct local_loans *loans)
{
	bool some = false;

	while (loans->count) {
		struct local_loan *loan = &loans->at[loans->first];

		if (!staging_idle(w, &loan->range))
			break;
		loan->of->loans--;
		loans->bytes -= loan->bytes;
		loans->first = (loans->first + 1) % LOCAL_LOANS;
		loans->count--;
		some = true;
	}
	return some;
}

/* The program may use its arena again, as far as frames are acknowledged and nobody reads it.
 */
static void local_captured(struct worker *w)
{
	struct local *l = &w->local;
	uint64_t captured = l->ring.released;

	if (!l->separate)
		return;
	for (uint32_t i = 0; i < l->in.count; i++) {
		const struct local_loan *loan = &l->in.at[(l->in.first + i) % LOCAL_LOANS];

		if (!loan->end)
			continue;
		if (captured - (loan->end - 1) < l->ring.size)
			captured = loan->end - 1;
		break;
	}
	if (captured == l->captured)
		return;
	l->captured = captured;
	atomic_store_explicit(&l->page->captured, captured, memory_order_release);
	wait_fence();
	if (atomic_load_explicit(&l->page->want_progress, memory_order_relaxed))
		answer_progress(l->page);
}

bool local_reap(struct worker *w)
{
	bool some = local_reap_some(w, &w->local.in);

	if (some)
		local_captured(w);
	some |= local_reap_some(w, &w->local.out);
	if (some && w->local.segments.closing)
		local_close(w);
	return some;
}

static void local_forget_some(struct worker *w, struct local_loans *loans, uint16_t context)
{
	for (uint32_t i = 0; i < loans->count; i++)
		staging_range_forget(
			w, &loans->at[(loans->first + i) % LOCAL_LOANS].range, context);
}

void local_forget(struct worker *w, uint16_t context)
{
	local_forget_some(w, &w->local.in, context);
	local_forget_some(w, &w->local.out, context);
}

/* Where answers may land. The sidecar said it before the program could name it, and its number
 * may have been another's before. */
static void *local_in(struct worker *w, const struct frame_destination *destination, uint32_t n)
{
	const struct segments *segments = &w->local.segments;

	if (destination->segment)
		local_control(w);
	return segments_in(segments, destination->segment, destination->offset, n);
}

struct staging_range *local_place(struct worker *w, const struct frame_destination *destination,
	uint32_t n, unsigned char **bytes)
{
	struct local *l = &w->local;
	struct local_segment *of;

	*bytes = local_in(w, destination, n);
	if (!*bytes || n < LOCAL_LEND_LEAST)
		return NULL;
	of = local_ours(l->segments.at[destination->segment]);
	return of->registered ? local_lend(&l->out, of, n, UINT32_MAX, 0) : NULL;
}

/* The payload of the frame that was taken is where the GPU can read it, and nothing but a copy
 * does: what is looked at, is looked at in memory that the program cannot change. */
static bool local_in_place(struct worker *w)
{
	struct local *l = &w->local;
	const struct ring_entry *e = &l->took;
	struct receiver *r = &w->receiver;
	struct local_segment *of;

	if (!e->bulk || e->bulk_bytes < LOCAL_LEND_LEAST || (!e->segment && !l->separate) ||
		(r->frame.op != OP_vcudaCopyIn && r->frame.op != OP_vcudaArrayIn) ||
		!l->segments.at[e->segment])
		return false;
	of = local_ours(l->segments.at[e->segment]);
	/* While it waited its number may have become another's. */
	if (!of->registered || !local_holds(&of->segment, e->bulk))
		return false;
	r->range = local_lend(
		&l->in, of, e->bulk_bytes, w->in.size, e->segment ? 0 : l->ring.taken);
	r->payload = (unsigned char *)e->bulk;
	return r->range;
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
	return w->ended ? 0 : ring_pop(&l->ring, l->entry, entry, error);
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

	local_control(w);
	if (w->ended)
		return false;
	e->bulk = segments_out(&l->segments, e->segment, offset, e->bulk_bytes);
	if (!e->bulk)
		local_violation(w, "a payload in memory that is not there any more");
	return e->bulk;
}

/* Into pinned memory of our own. False: there is no room. */
static bool local_stage(struct worker *w, uint32_t payload)
{
	const struct ring_entry *e = &w->local.took;
	struct receiver *r = &w->receiver;

	r->range = staging_alloc(w, &w->in, payload, &r->payload);
	r->payload_waits = !r->range;
	if (!r->range)
		return false; /* the GPU is behind: the ring waits */
	memcpy(r->payload,
		e->bulk ? e->bulk : w->local.entry + sizeof(r->frame) + r->frame.body, payload);
	return true;
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
	if (payload && !local_in_place(w) && !local_stage(w, payload))
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
	const struct local_message answer = {.what = LOCAL_ATTACHED};
	struct local *l = &w->local;

	if (!l->again || !local_same(local_ours(l->segments.at[0]), fds[0]) || fds[1] < 0) {
		local_violation(w, "it brings other memory than the session has");
		return;
	}
	close(l->doorbell);
	l->doorbell = fds[1];
	fds[1] = -1;
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
	switch (m->what) {
	case LOCAL_PIN: local_pin(w, m, fds[0]); break;
	case LOCAL_UNPIN: local_unpin(w, m); break;
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

	while (!w->ended && !park_is(w)) {
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
	struct local_message end = {.what = LOCAL_END, .status = w->end_status};

	memcpy(end.counts, w->local.counts, sizeof(end.counts));
	snprintf(end.text, sizeof(end.text), "%.160s", w->end_text);
	(void)!local_say(w->link, &end, NULL, 0); /* else the end of the link says it */
}
