/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory that a program on this machine shares with its worker, and what of it is lent to
 * the GPU: see local.h.
 */
#include "gpu-agent/worker/local/local_part.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "gpu-agent/worker/loop/closing.h"
#include "gpu-agent/worker/local/local.h"
#include "gpu-agent/worker/reply/park.h"
#include "gpu-agent/worker/reply/reply.h"
#include "gpu-agent/worker/worker_state.h"
#include "transport/answer.h"

#define ATTACH_NS (10000 * LOCAL_MS) /* for the sidecar to bring the memory */

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

struct local_segment *local_ours(struct segment *segment)
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
	l->ring.pinned_most = FRAME_LENT_MAX;
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
		poll(readable, 1, (int)((deadline - now) / LOCAL_MS) + 1);
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
	struct local_message answer = {.what = LOCAL_ATTACHED, .size = FRAME_LENT_MAX};
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

bool local_same(const struct local_segment *segment, int fd)
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

void local_memory_pin(struct worker *w, const struct local_message *m, int fd)
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

bool local_holds(const struct segment *segment, const void *bytes)
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

void local_close(struct worker *w)
{
	const struct local_message answer = {.what = LOCAL_UNPINNED};
	struct segment **at = &w->local.segments.closing;

	while (*at && !w->end.ended) {
		struct segment *segment = *at;
		bool quiet = local_ours(segment)->quiet;

		/* The driver waits for the context until it forgets the memory. */
		if (local_used(w, segment) || closing_waits(w)) {
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

void local_memory_unpin(struct worker *w, const struct local_message *m)
{
	if (segments_remove(&w->local.segments, m->segment))
		worker_end(w, CUDA_ERROR_EXTERNAL_DEVICE,
			"the client broke the protocol: it gives back what it does not have");
	else
		local_close(w);
}

/* --- loans -----------------------------------------------------------------------------------
 */

struct staging_range *local_lend(struct local_loans *loans, struct local_segment *of,
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

void local_captured(struct worker *w)
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
	if (w->local.segments.closing)
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

void *local_in(struct worker *w, const struct frame_destination *destination, uint32_t n)
{
	const struct segments *segments = &w->local.segments;

	if (destination->segment && local_news(&w->local))
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
